package sampling

import (
	"fmt"
	"maps"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
)

// The policies in this file learn from the traces they judge, each local trace once,
// and adapt once a second.

// A gauge is the share that a policy keeps at present, for the metrics.
type gauge struct {
	policy string
	read   func() float64
}

// maxRise is how much a share may grow in a second, so that a fresh process, or
// one that was idle, is not flooded.
const maxRise = 2

// A share is a probability that moves.
type share struct{ t atomic.Uint64 }

func (s *share) load() threshold { return s.t.Load() }
func (s *share) value() float64  { return probabilityOf(s.t.Load()) }
func (s *share) set(p float64)   { s.t.Store(thresholdOf(p)) }

// follow sets the share to p, or as near to it as it may rise in one step.
func (s *share) follow(p float64) {
	if floor := 1e-6; s.value() < floor {
		s.set(floor)
	}
	s.set(min(p, s.value()*maxRise))
}

// AboveQuantile keeps a trace that lasts longer, in this process, than the share q of the
// recent ones, such as 0.99: the limit is learned, and in an overload, when everything is slow,
// the policy still keeps about 1-q of the traces. The limit is right within 3 %.
func AboveQuantile(q float64, o QuantileOptions) Policy {
	return Policy{quantileRule{
		Q: q, By: o.By, Window: text(o.Window), MinSamples: o.MinSamples,
		Floor: text(o.Floor), Ceiling: text(o.Ceiling),
	}}
}

// QuantileOptions are the options of [AboveQuantile]. The zero value is usable.
type QuantileOptions struct {
	// By is an attribute, such as the model, whose values have limits of their own:
	// the first 64 values; the others share one. Default: one limit for all.
	By attribute.Key
	// Window is how far back the policy looks. Default: one minute.
	Window time.Duration
	// MinSamples is how many traces of a value the window must have, else no
	// limit but Ceiling holds. Default: 200.
	MinSamples int
	// Floor and Ceiling bound the limit. Default: neither.
	Floor, Ceiling time.Duration
}

type quantileRule struct {
	Q          float64       `json:"q"`
	By         attribute.Key `json:"by,omitempty"`
	Window     text          `json:"window,omitzero"`
	MinSamples int           `json:"min_samples,omitempty"`
	Floor      text          `json:"floor,omitzero"`
	Ceiling    text          `json:"ceiling,omitzero"`
}

func (quantileRule) name() string { return "above_quantile" }
func (r quantileRule) String() string {
	s := "above_quantile(" + number(r.Q)
	for _, part := range []struct {
		given bool
		text  string
	}{
		{r.By != "", "by: " + string(r.By)},
		{r.Window != 0, "window: " + r.Window.String()},
		{r.MinSamples != 0, fmt.Sprintf("min samples: %d", r.MinSamples)},
		{r.Floor != 0, "floor: " + r.Floor.String()},
		{r.Ceiling != 0, "ceiling: " + r.Ceiling.String()},
	} {
		if part.given {
			s += ", " + part.text
		}
	}
	return s + ")"
}

func (r quantileRule) compile(c *compiler) judge {
	if !(r.Q > 0 && r.Q < 1) {
		c.failf("q is %v and must lie between 0 and 1", r.Q)
	}
	if r.Window == 0 {
		r.Window = text(time.Minute)
	}
	if r.MinSamples == 0 {
		r.MinSamples = 200
	}
	if min(r.Window, r.Floor, r.Ceiling) < 0 {
		c.failf("window is %s, floor %s and ceiling %s; none may be negative", r.Window, r.Floor, r.Ceiling)
	}
	if r.MinSamples < 0 {
		c.failf("min_samples is %d and must not be negative", r.MinSamples)
	}
	if r.Ceiling != 0 && r.Ceiling < r.Floor {
		c.failf("ceiling %s is below floor %s", r.Ceiling, r.Floor)
	}
	c.waits(max(time.Duration(r.Floor), time.Second))
	l := &learner{rule: r, key: -1, why: c.reason("above_quantile")}
	if r.By != "" {
		l.key = c.key(r.By)
	}
	l.groups.Store(&map[string]*group{})
	c.tickers = append(c.tickers, l)
	c.learners = append(c.learners, l)
	return l.judge
}

// A learner is an AboveQuantile at work.
type learner struct {
	rule   quantileRule
	key    int // index in view.keys, or -1
	why    reason
	mu     sync.Mutex // held to add a group
	groups atomic.Pointer[map[string]*group]
}

type group struct {
	window window // of durations in µs
	limit  atomic.Int64
}

const (
	maxGroups  = 64
	otherGroup = "_OTHER"
)

func (l *learner) judge(v *view) verdict {
	if ceiling := time.Duration(l.rule.Ceiling); ceiling != 0 && v.elapsed >= ceiling && !v.counts {
		return verdict{always, always, l.why}
	}
	var name string
	if l.key >= 0 {
		name = v.keys[l.key]
		if name == "" && !v.final {
			return verdict{always, never, l.why} // the attribute may still come
		}
	}
	g := l.group(name)
	if v.counts {
		g.window.add(uint64(max(0, v.elapsed.Microseconds())))
	}
	limit := time.Duration(g.limit.Load())
	return holds(v, limit != 0 && v.elapsed >= limit, l.why)
}

func (l *learner) group(name string) *group {
	groups := *l.groups.Load()
	if g := groups[name]; g != nil {
		return g
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	groups = *l.groups.Load()
	if g := groups[name]; g != nil {
		return g
	}
	if len(groups) >= maxGroups {
		if name = otherGroup; groups[name] != nil {
			return groups[name]
		}
	}
	more := maps.Clone(groups)
	g := &group{}
	g.limit.Store(int64(l.rule.Ceiling))
	more[strings.Clone(name)] = g
	l.groups.Store(&more)
	return g
}

func (l *learner) tick(now time.Duration, _ pressure) {
	for _, g := range *l.groups.Load() {
		g.window.tick(now, time.Duration(l.rule.Window)/2)
		limit := time.Duration(l.rule.Ceiling)
		if total := g.window.total(); total >= uint64(l.rule.MinSamples) {
			// The end of the bucket: where all traces last equally long, none is
			// longer than the others.
			bucket := g.window.at(l.rule.Q * float64(total))
			learned := max(time.Duration(lowOf(bucket+1))*time.Microsecond, time.Duration(l.rule.Floor), 1)
			if limit == 0 || learned < limit {
				limit = learned
			}
		}
		g.limit.Store(int64(limit))
	}
}

// TargetRate keeps that share of all traces that makes perSecond traces a second, but
// never less than least nor more than most: everything, with most = 1, while there
// is little traffic. It chooses by trace ID as [Baseline] does, and each process has
// its own rate.
func TargetRate(perSecond, least, most float64) Policy {
	return Policy{targetRateRule{perSecond, least, most}}
}

type targetRateRule struct {
	PerSecond float64 `json:"per_second"`
	Min       float64 `json:"min"`
	Max       float64 `json:"max"`
}

func (targetRateRule) name() string { return "target_rate" }
func (r targetRateRule) String() string {
	return fmt.Sprintf("target_rate(%s/s, %s to %s)", number(r.PerSecond), number(r.Min), number(r.Max))
}

func (r targetRateRule) compile(c *compiler) judge {
	c.chance()
	c.rate(r.PerSecond)
	c.interval(r.Min, r.Max)
	s := &targetRate{rule: r}
	s.share.set(r.Max)
	c.tickers = append(c.tickers, s)
	c.gauges = append(c.gauges, gauge{"target_rate", s.share.value})
	why := c.reason("target_rate")
	return func(v *view) verdict {
		if v.counts {
			s.seen.Add(1)
		}
		t := s.share.load()
		return verdict{t, t, why}
	}
}

func (c *compiler) rate(perSecond float64) {
	if !(perSecond > 0) || math.IsInf(perSecond, 0) {
		c.failf("per_second is %v and must be a number greater than 0", perSecond)
	}
}

func (c *compiler) interval(least, most float64) {
	c.ratio("min", least)
	c.ratio("max", most)
	if least > most {
		c.failf("min %v is greater than max %v", least, most)
	}
}

type targetRate struct {
	rule  targetRateRule
	share share
	seen  atomic.Uint64
	last  time.Duration
	rate  float64 // traces a second, smoothed
}

func (s *targetRate) tick(now time.Duration, _ pressure) {
	passed := (now - s.last).Seconds()
	if passed <= 0 {
		return
	}
	rate := float64(s.seen.Swap(0)) / passed
	// A rising rate counts at once, for it fills queues; a falling one by and by.
	s.rate = max(rate, s.rate+(rate-s.rate)*0.2)
	s.last = now
	s.share.follow(min(max(s.rule.PerSecond/max(s.rate, 1e-9), s.rule.Min), s.rule.Max))
}

// Limit keeps what p keeps, up to about perSecond traces a second, chosen by trace
// ID so that counts stay true: beyond the budget, it is a share of what p
// keeps. It adapts within seconds; the first second has no limit.
func Limit(p Policy, perSecond float64) Policy { return Policy{limitRule{p, perSecond}} }

type limitRule struct {
	Of        Policy  `json:"of"`
	PerSecond float64 `json:"per_second"`
}

func (limitRule) name() string { return "limit" }
func (r limitRule) String() string {
	return fmt.Sprintf("limit(%s, %s/s)", r.Of, number(r.PerSecond))
}

func (r limitRule) compile(c *compiler) judge {
	c.chance()
	c.rate(r.PerSecond)
	of := c.inner("of", r.Of)
	l := &limiter{perSecond: r.PerSecond}
	c.tickers = append(c.tickers, l)
	c.gauges = append(c.gauges, gauge{"limit", l.share.value})
	return func(v *view) verdict {
		d := of(v)
		if v.counts && v.r >= d.low {
			l.passed.add((never - v.r) >> rankShift)
		}
		t := l.share.load()
		return verdict{max(d.low, t), max(d.high, t), d.reason}
	}
}

// A limiter is a Limit at work. It remembers the ranks, 2^56-R, of the traces that
// the inner policy kept: its share is the largest one that would have let
// through no more of them than the budget.
type limiter struct {
	perSecond float64
	passed    window
	share     share
}

const (
	rankShift = 56 - histogramBits
	limitTurn = 5 * time.Second
)

func (l *limiter) tick(now time.Duration, _ pressure) {
	budget := l.perSecond * max(l.passed.covers(now).Seconds(), 1)
	p := 1.0
	if float64(l.passed.total()) > budget {
		p = probabilityOf(never - lowOf(l.passed.at(budget))<<rankShift)
	}
	l.passed.tick(now, limitTurn)
	l.share.follow(p)
}

// Adaptive keeps a share of all traces that shrinks while the service is under pressure
// and grows back when it is not. It steers ordinary traffic only: put it beside
// [Errors] and [Slow], which keep what they keep.
//
// Once a second the share is multiplied by 0.75 if the 95th percentile of
// the duration of local traces (of the last 5 to 10 seconds) is above P95, by 0.6 if the
// memory pressure is above Memory, and by 1.25 if both are below nine tenths
// of their limits; in between it stays.
func Adaptive(o AdaptiveOptions) Policy {
	return Policy{adaptiveRule{Start: o.Start, Min: o.Min, Max: o.Max, P95: text(o.P95), Memory: o.Memory}}
}

// AdaptiveOptions are the options of [Adaptive]. At least one of P95 and Memory must be
// given.
type AdaptiveOptions struct {
	// Start is the first share, Min and Max bound it. Default: 0.8, 0.05 and 0.95.
	Start, Min, Max float64
	// P95 is the duration above which the service is under pressure, for example
	// 120 ms. Zero: durations do not matter.
	P95 time.Duration
	// Memory is the memory in use, from 0 to 1, above which the service is under
	// pressure, for example 0.85. It is measured by the function of
	// [WithMemoryPressure]. Zero: memory does not matter.
	Memory float64
}

type adaptiveRule struct {
	Start  float64 `json:"start,omitempty"`
	Min    float64 `json:"min,omitempty"`
	Max    float64 `json:"max,omitempty"`
	P95    text    `json:"p95,omitzero"`
	Memory float64 `json:"memory,omitempty"`
}

func (r adaptiveRule) withDefaults() adaptiveRule {
	for _, d := range []struct {
		p     *float64
		value float64
	}{{&r.Start, 0.8}, {&r.Min, 0.05}, {&r.Max, 0.95}} {
		if *d.p == 0 {
			*d.p = d.value
		}
	}
	return r
}

func (adaptiveRule) name() string { return "adaptive" }
func (r adaptiveRule) String() string {
	r = r.withDefaults()
	s := fmt.Sprintf("adaptive(%s, %s to %s", number(r.Start), number(r.Min), number(r.Max))
	if r.P95 != 0 {
		s += ", p95: " + r.P95.String()
	}
	if r.Memory != 0 {
		s += ", memory: " + number(r.Memory)
	}
	return s + ")"
}

func (r adaptiveRule) compile(c *compiler) judge {
	r = r.withDefaults()
	c.chance()
	c.ratio("start", r.Start)
	c.ratio("memory", r.Memory)
	c.interval(r.Min, r.Max)
	if r.P95 < 0 {
		c.failf("p95 is %s and must not be negative", r.P95)
	}
	if r.P95 == 0 && r.Memory == 0 {
		c.failf("neither p95 nor memory is given, so nothing would move the share: use Baseline")
	}
	if r.Start < r.Min || r.Start > r.Max {
		c.failf("start %v is not between min %v and max %v", r.Start, r.Min, r.Max)
	}
	c.memory = c.memory || r.Memory != 0
	a := &adapter{rule: r}
	a.share.set(r.Start)
	c.tickers = append(c.tickers, a)
	c.gauges = append(c.gauges, gauge{"adaptive", a.share.value})
	why := c.reason("adaptive")
	return func(v *view) verdict {
		if v.counts {
			a.durations.add(uint64(max(0, v.elapsed.Microseconds())))
		}
		t := a.share.load()
		return verdict{t, t, why}
	}
}

// An adapter is an Adaptive at work.
type adapter struct {
	rule      adaptiveRule
	share     share
	durations window // µs
}

const adaptTurn = 5 * time.Second

// pressure is the memory in use, from 0 to 1, where it is known.
type pressure struct {
	value float64
	known bool
}

func (a *adapter) tick(now time.Duration, memory pressure) {
	factor, calm := 1.0, true
	if total := a.durations.total(); a.rule.P95 != 0 && total > 0 {
		p95 := lowOf(a.durations.at(0.95 * float64(total)))
		limit := uint64(time.Duration(a.rule.P95).Microseconds())
		if p95 > limit {
			factor *= 0.75
		}
		calm = calm && 10*p95 < 9*limit
	}
	if a.rule.Memory != 0 && memory.known {
		if memory.value > a.rule.Memory {
			factor *= 0.6
		}
		calm = calm && memory.value < 0.9*a.rule.Memory
	}
	if calm {
		factor = 1.25
	}
	a.durations.tick(now, adaptTurn)
	a.share.set(min(max(a.share.value()*factor, a.rule.Min), a.rule.Max))
}
