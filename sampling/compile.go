package sampling

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
)

// A judge says what a policy makes of a trace.
type judge func(*view) verdict

// A verdict is the threshold by which a trace is kept. While the trace goes on, it
// is an interval: whatever else happens, the threshold will be in [low, high]. Both
// are equal once the view is final, unless a custom policy has not been asked.
type verdict struct {
	low, high threshold
	reason    reason
}

// A reason is an index into compiled.reasons: what made a policy keep a trace.
type reason uint8

const (
	noReason     reason = iota // nothing keeps the trace
	reasonForced               // Tail.Keep
	reasonRemote               // the caller keeps the trace
	reasonHead                 // HeadRatio
	reasonCallee               // a callee keeps the trace
	fixedReasons
)

// A view is what is known of a local trace.
type view struct {
	r       uint64        // randomness of the trace
	elapsed time.Duration // from the first start here to the last end, or to now
	total   time.Duration // the same, from when the request began
	facts   uint64        // which facts (see compiler.fact) hold
	keys    [maxKeys]string
	custom  uint64 // which custom policies keep the trace
	final   bool   // nothing more will come: what is not a fact is false
	asked   bool   // custom is valid
	counts  bool   // policies that learn may learn from this judgement, the one of the whole trace

	// Set by the judge: by what each key path keeps its spans, and the least of it.
	paths  [maxPaths]threshold
	path   threshold
	pathBy reason
}

// Limits of a policy, so that a view has a fixed size.
const (
	maxFacts  = 64
	maxKeys   = 4
	maxPaths  = 8
	maxCustom = 8
	maxDepth  = 32
	maxLeaves = 100
)

// compiled is a policy ready to judge.
type compiled struct {
	judge     judge
	selectors []selectorFact
	keys      []attribute.Key
	paths     [][]Selector
	layers    []compiledLayer
	custom    []string
	reasons   []string
	tickers   []ticker
	gauges    []gauge
	learners  []*learner
	patience  time.Duration // no trace is kept for its age before; 0 where none ever is
	memory    bool          // a policy asks for the memory pressure
}

type selectorFact struct {
	Selector
	bit uint64
}

type compiledLayer struct {
	Selector
	threshold threshold
}

// A ticker is what adapts once a second.
type ticker interface {
	tick(now time.Duration, memory pressure)
}

// failedFact is the fact that a span of the trace failed.
const failedFact = 1

// The compiler collects what rules need and what is wrong with them.
type compiler struct {
	compiled
	path    []string
	errs    []error
	nested  bool // KeyPath may not stand here
	certain int  // depth of places where chance may not be
}

func compile(p Policy) (*compiled, error) {
	if p.IsZero() {
		return nil, errNoPolicy
	}
	c := &compiler{}
	c.reasons = []string{"", "forced", "remote", "head", "callee"}
	c.judge = c.policy("policy", p)
	if len(c.reasons) > maxLeaves {
		c.errs = append(c.errs, fmt.Errorf("sampling: the policy has more than %d different reasons to keep a trace", maxLeaves-fixedReasons))
	}
	if err := errors.Join(c.errs...); err != nil {
		return nil, err
	}
	return &c.compiled, nil
}

// failf notes an error at the place where the compiler is.
func (c *compiler) failf(format string, args ...any) {
	const enough = 20
	if len(c.errs) < enough {
		c.errs = append(c.errs, fmt.Errorf("sampling: %s: %w", strings.Join(c.path, "."), fmt.Errorf(format, args...)))
	}
}

// policy compiles a part of a policy, which the error calls place.
func (c *compiler) policy(place string, p Policy) judge {
	c.path = append(c.path, place)
	defer func() { c.path = c.path[:len(c.path)-1] }()
	switch {
	case p.IsZero():
		c.failf("no policy here")
	case len(c.path) > 2*maxDepth:
		c.failf("nested too deeply")
	default:
		c.path[len(c.path)-1] += "." + p.rule.name()
		return p.rule.compile(c)
	}
	return nil
}

// inner compiles a part where KeyPath may not stand.
func (c *compiler) inner(place string, p Policy) judge {
	outer := c.nested
	c.nested = true
	defer func() { c.nested = outer }()
	return c.policy(place, p)
}

// condition compiles a part that is true or false and may not depend on chance.
func (c *compiler) condition(place string, p Policy) judge {
	c.certain++
	defer func() { c.certain-- }()
	return c.inner(place, p)
}

// chance reports that the rule depends on chance or rate.
func (c *compiler) chance() {
	if c.certain > 0 {
		c.failf("depends on chance or rate, which a condition must not")
	}
}

func (c *compiler) reason(name string) reason {
	if i := slices.Index(c.reasons[fixedReasons:], name); i >= 0 {
		return fixedReasons + reason(i)
	}
	c.reasons = append(c.reasons, name)
	return reason(min(len(c.reasons), maxLeaves) - 1)
}

// fact returns the bit that is set in view.facts once s has selected a span.
func (c *compiler) fact(s Selector) uint64 {
	s.check(c, false)
	if len(c.selectors)+1 >= maxFacts {
		c.failf("more than %d selectors", maxFacts-1)
		return 0
	}
	bit := uint64(2) << len(c.selectors)
	c.selectors = append(c.selectors, selectorFact{s, bit})
	return bit
}

// key returns the index in view.keys of an attribute's value.
func (c *compiler) key(key attribute.Key) int {
	if key == "" {
		c.failf("key is empty: name the attribute")
	}
	i := slices.Index(c.keys, key)
	switch {
	case i >= 0:
		return i
	case len(c.keys) == maxKeys:
		c.failf("more than %d different attributes", maxKeys)
		return 0
	default:
		c.keys = append(c.keys, key)
		return len(c.keys) - 1
	}
}

// waits notes that a trace may be kept for having lasted d.
func (c *compiler) waits(d time.Duration) {
	if d <= 0 {
		c.failf("%s is no limit: give a duration of more than 0", d)
		return
	}
	if c.patience == 0 || d < c.patience {
		c.patience = d
	}
}

// holds is the verdict on what is true for good once it is true.
func holds(v *view, is bool, why reason) verdict {
	switch {
	case is:
		return verdict{always, always, why}
	case v.final:
		return verdict{never, never, noReason}
	default:
		return verdict{always, never, why}
	}
}

func (errorsRule) compile(c *compiler) judge {
	why := c.reason("errors")
	return func(v *view) verdict { return holds(v, v.facts&failedFact != 0, why) }
}

func (r matchRule) compile(c *compiler) judge {
	if r.Name == "" {
		c.failf("name is empty: it becomes the reason for keeping a trace")
	}
	why, bit := c.reason(r.Name), c.fact(r.Select)
	return func(v *view) verdict { return holds(v, v.facts&bit != 0, why) }
}

func (r slowRule) compile(c *compiler) judge {
	limit := time.Duration(r.Over)
	c.waits(limit)
	why := c.reason("slow")
	return func(v *view) verdict { return holds(v, v.total >= limit, why) }
}

func (r slowByRule) compile(c *compiler) judge {
	c.waits(time.Duration(r.Other))
	limits, longest := make(map[string]time.Duration, len(r.Limits)), time.Duration(r.Other)
	for value, d := range r.Limits {
		c.waits(time.Duration(d))
		limits[value], longest = time.Duration(d), max(longest, time.Duration(d))
	}
	why, key, other := c.reason("slow_by"), c.key(r.Key), time.Duration(r.Other)
	return func(v *view) verdict {
		limit, known := limits[v.keys[key]]
		switch {
		case known:
		case v.keys[key] != "" || v.final:
			limit = other
		default: // the attribute may still come
			limit = longest
		}
		return holds(v, v.total >= limit, why)
	}
}

func (r baselineRule) compile(c *compiler) judge {
	c.chance()
	c.ratio("ratio", r.Ratio)
	t, why := thresholdOf(r.Ratio), c.reason("baseline")
	return func(*view) verdict { return verdict{t, t, why} }
}

func (c *compiler) ratio(name string, p float64) {
	if !(p >= 0 && p <= 1) {
		c.failf("%s is %v and must be from 0 to 1", name, p)
	}
}

func (r customRule) compile(c *compiler) judge {
	if r.Name == "" {
		c.failf("name is empty: give the one that WithCustom has")
	}
	i := slices.Index(c.custom, r.Name)
	if i < 0 {
		i = len(c.custom)
		c.custom = append(c.custom, r.Name)
	}
	if i >= maxCustom {
		c.failf("more than %d custom policies", maxCustom)
	}
	why, bit := c.reason("custom:"+r.Name), uint64(1)<<min(i, maxCustom)
	return func(v *view) verdict {
		if v.asked {
			return holds(v, v.custom&bit != 0, why)
		}
		return verdict{always, never, why}
	}
}

// parts compiles the members of Any and All.
func (c *compiler) parts(policies []Policy, compile func(string, Policy) judge) []judge {
	if len(policies) == 0 {
		c.failf("has no policies")
	}
	judges := make([]judge, len(policies))
	for i, p := range policies {
		judges[i] = compile(fmt.Sprint(i), p)
	}
	return judges
}

func (r anyRule) compile(c *compiler) judge {
	judges := c.parts(r, c.policy)
	return func(v *view) verdict {
		sum := verdict{never, never, noReason}
		for _, judge := range judges {
			d := judge(v)
			if d.high < sum.high {
				sum.reason = d.reason
			}
			sum.low, sum.high = min(sum.low, d.low), min(sum.high, d.high)
		}
		return sum
	}
}

func (r allRule) compile(c *compiler) judge {
	judges := c.parts(r, c.inner)
	return func(v *view) verdict {
		sum := verdict{always, always, noReason}
		for i, judge := range judges {
			d := judge(v)
			if d.high > sum.high || i == 0 {
				sum.reason = d.reason
			}
			sum.low, sum.high = max(sum.low, d.low), max(sum.high, d.high)
		}
		return sum
	}
}

func (r notRule) compile(c *compiler) judge {
	of, why := c.condition("of", r.Of), c.reason("not")
	return func(v *view) verdict {
		d := of(v) // each end is always or never
		return verdict{never - d.high, never - d.low, why}
	}
}

func (r firstRule) compile(c *compiler) judge {
	type branch struct{ when, then judge }
	if len(r) == 0 {
		c.failf("has no cases")
	}
	branches := make([]branch, len(r))
	for i, rc := range r {
		if !rc.When.IsZero() {
			branches[i].when = c.condition(fmt.Sprintf("%d.when", i), rc.When)
		} else if i < len(r)-1 {
			c.failf("%d.when is empty, so the cases after it decide nothing", i)
		}
		branches[i].then = c.policy(fmt.Sprintf("%d.then", i), rc.Then)
	}
	return func(v *view) verdict {
		sum, open := verdict{never, never, noReason}, false
		for _, b := range branches {
			condition := verdict{}
			if b.when != nil {
				condition = b.when(v)
			}
			if condition.low == never {
				continue
			}
			d := b.then(v)
			if !open {
				sum = d
			}
			// Where a condition may still turn out either way, so may the verdict.
			sum.low, sum.high = min(sum.low, d.low), max(sum.high, d.high)
			if condition.high == always {
				return sum
			}
			open = true
		}
		if open {
			sum.high = never
		}
		return sum
	}
}

func (r keyPathRule) compile(c *compiler) judge {
	if c.nested {
		c.failf("may stand at the top, in any, or in a case of first only")
	}
	if len(r.Spans) == 0 {
		c.failf("spans is empty: select the spans to keep")
	}
	of := c.inner("of", r.Of)
	var selected uint64
	for _, s := range r.Spans {
		selected |= c.fact(s)
	}
	if len(c.paths) == maxPaths {
		c.failf("more than %d key paths", maxPaths)
		return nil
	}
	i := len(c.paths)
	c.paths = append(c.paths, r.Spans)
	return func(v *view) verdict {
		d := of(v)
		if v.facts&selected != 0 {
			v.paths[i] = d.low
			if d.low < v.path {
				v.path, v.pathBy = d.low, d.reason
			}
		}
		return verdict{never, never, noReason}
	}
}

func (r layersRule) compile(c *compiler) judge {
	if len(c.path) > 1 {
		c.failf("may stand at the top only")
	}
	if len(r.Layers) == 0 {
		c.failf("layers is empty")
	}
	for i, l := range r.Layers {
		c.path = append(c.path, fmt.Sprintf("layers.%d", i))
		l.Select.check(c, true)
		c.ratio("ratio", l.Ratio)
		c.path = c.path[:len(c.path)-1]
		c.layers = append(c.layers, compiledLayer{l.Select, thresholdOf(l.Ratio)})
	}
	return c.policy("of", r.Of)
}

// verdictOn judges a trace, and sets what key paths keep of it.
func (p *compiled) verdictOn(v *view) verdict {
	for i := range p.paths {
		v.paths[i] = never
	}
	v.path = never
	return p.judge(v)
}

// certain is the threshold by which a trace is kept whatever happens in it.
func (p *compiled) certain() threshold { return p.verdictOn(&view{}).high }
