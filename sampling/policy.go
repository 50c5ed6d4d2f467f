package sampling

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/genaitrace/otelgenai/semconv"
)

// A Policy says which traces to keep. It is a value: it prints, it is written to
// and read from JSON, and [Policy.Validate] says what is wrong with it. Policies
// nest; make them with the functions of this package, which take any argument: what is
// out of range is an error of Validate and of [NewTail]. The zero Policy is no policy and
// not valid.
//
// A policy does nothing by itself: [NewTail] makes from it what decides, and what
// learns, so that one policy may serve any number of Tails.
type Policy struct{ rule rule } //nolint:recvcheck // a value, but for reading JSON into it

// A rule is the content of a policy.
type rule interface {
	// name is the rule's key in JSON.
	name() string
	// String writes the rule as text.
	String() string
	// compile makes the function that judges traces, and reports to c what is
	// wrong with the rule.
	compile(c *compiler) judge
}

// DefaultSlow is how long a request may take before [Slow] keeps it.
const DefaultSlow = 3 * time.Second

// Default keeps failed requests, those that take [DefaultSlow] or longer, and one in
// twenty of the others.
func Default() Policy { return Any(Errors(), Slow(0), Baseline(0.05)) }

// Errors keeps a trace in which a span has the status Error.
func Errors() Policy { return Policy{errorsRule{}} }

type errorsRule struct{}

func (errorsRule) name() string   { return "errors" }
func (errorsRule) String() string { return "errors" }

// Slow keeps a trace that lasts d or longer, from the start of its first span in this
// process to its last end, or until now. Where a caller in another process says
// when the request began (every Tail does, see [Tail.Sampler]), it counts from there, so
// that what a request waited for elsewhere makes it slow here. Zero means
// [DefaultSlow].
func Slow(d time.Duration) Policy {
	if d == 0 {
		d = DefaultSlow
	}
	return Policy{slowRule{text(d)}}
}

type slowRule struct {
	Over text `json:"over"`
}

func (slowRule) name() string     { return "slow" }
func (r slowRule) String() string { return "slow(" + r.Over.String() + ")" }

// SlowBy is [Slow] with a limit of its own for some values of an attribute, such
// as the model. The attribute may be on any span of the trace; the first value
// seen counts, also if the span that carries it has not ended. A trace without the
// attribute, or with another value, has the limit other.
//
//	sampling.SlowBy("gen_ai.request.model", map[string]time.Duration{"qwen2.5-72b": 20 * time.Second}, 3*time.Second)
func SlowBy(key attribute.Key, limits map[string]time.Duration, other time.Duration) Policy {
	r := slowByRule{Key: key, Limits: make(map[string]text, len(limits)), Other: text(other)}
	for value, d := range limits {
		r.Limits[value] = text(d)
	}
	return Policy{r}
}

type slowByRule struct {
	Key    attribute.Key   `json:"key"`
	Limits map[string]text `json:"limits"`
	Other  text            `json:"other"`
}

func (slowByRule) name() string { return "slow_by" }
func (r slowByRule) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "slow_by(%s", r.Key)
	for _, value := range sortedKeys(r.Limits) {
		fmt.Fprintf(&b, ", %q: %s", value, r.Limits[value])
	}
	fmt.Fprintf(&b, ", other: %s)", r.Other)
	return b.String()
}

// SlowTTFT keeps a trace in which a span reports a time to first token
// (llm.ttft_ms) of d or longer.
func SlowTTFT(d time.Duration) Policy {
	return Match("slow_ttft", Selector{Key: semconv.LLMTTFTMsKey, AtLeast: float64(d) / float64(time.Millisecond)})
}

// Match keeps a trace that has a span which s selects. The name is what metrics and
// spans give as the reason for keeping it.
//
//	sampling.Match("guardrail", sampling.Selector{Event: "content_blocked"})
//	sampling.Match("early_stop", sampling.Selector{Event: "early_stop"})
func Match(name string, s Selector) Policy { return Policy{matchRule{name, s}} }

type matchRule struct {
	Name   string   `json:"name"`
	Select Selector `json:"select"`
}

func (matchRule) name() string     { return "match" }
func (r matchRule) String() string { return fmt.Sprintf("match(%s: %s)", r.Name, r.Select) }

// Custom asks the function that [WithCustom] gives under the same name.
func Custom(name string) Policy { return Policy{customRule{name}} }

type customRule struct {
	Name string `json:"name"`
}

func (customRule) name() string     { return "custom" }
func (r customRule) String() string { return "custom(" + r.Name + ")" }

// Baseline keeps the share p of all traces, from 0 to 1, chosen by trace ID:
// the same ones in every service that samples consistently, and those of a smaller
// share within those of a larger one. Baseline(1) keeps everything.
func Baseline(p float64) Policy { return Policy{baselineRule{p}} }

type baselineRule struct {
	Ratio float64 `json:"ratio"`
}

func (baselineRule) name() string     { return "baseline" }
func (r baselineRule) String() string { return "baseline(" + number(r.Ratio) + ")" }

// Any keeps what one of the policies keeps.
func Any(policies ...Policy) Policy { return Policy{anyRule(slices.Clone(policies))} }

type anyRule []Policy

func (anyRule) name() string     { return "any" }
func (r anyRule) String() string { return "any(" + join(r) + ")" }

// All keeps what each of the policies keeps. With a share among them, it is the share of
// what the others keep:
//
//	sampling.All(sampling.Match("health", health), sampling.Baseline(0.001))
func All(policies ...Policy) Policy { return Policy{allRule(slices.Clone(policies))} }

type allRule []Policy

func (allRule) name() string     { return "all" }
func (r allRule) String() string { return "all(" + join(r) + ")" }

// Not keeps what p does not. The policy must not depend on chance or rate.
func Not(p Policy) Policy { return Policy{notRule{p}} }

type notRule struct {
	Of Policy `json:"of"`
}

func (notRule) name() string     { return "not" }
func (r notRule) String() string { return "not(" + r.Of.String() + ")" }

// First lets the first case decide whose condition holds. A trace for which none
// holds is not kept.
//
//	sampling.First(
//		sampling.Case{When: sampling.Match("health", health), Then: sampling.Baseline(0)},
//		sampling.Case{Then: sampling.Default()},
//	)
func First(cases ...Case) Policy { return Policy{firstRule(slices.Clone(cases))} }

// A Case is a case of [First].
type Case struct {
	// When is the condition; it must not depend on chance or rate. The zero
	// Policy always holds.
	When Policy `json:"when,omitzero"`
	// Then decides.
	Then Policy `json:"then"`
}

type firstRule []Case

func (firstRule) name() string { return "first" }
func (r firstRule) String() string {
	cases := make([]string, len(r))
	for i, c := range r {
		cases[i] = c.Then.String()
		if !c.When.IsZero() {
			cases[i] = c.When.String() + " => " + cases[i]
		}
	}
	return "first(" + strings.Join(cases, ", ") + ")"
}

// KeyPath keeps, of the traces that p keeps, only the spans that one of the
// selectors selects and their ancestors up to the local root: a trace of few spans
// without a hole. Where another policy keeps the trace, it is whole.
//
// Layers of detail are key paths with shares of their own: since shares nest, a
// trace in the smallest one has the spans of all.
//
//	sampling.Any(sampling.Errors(), sampling.Slow(0),
//		sampling.KeyPath(sampling.Baseline(1), sampling.Selector{Kind: trace.SpanKindServer}), // entry spans of every trace
//		sampling.KeyPath(sampling.Baseline(0.1), sampling.Selector{MinDuration: 50 * time.Millisecond}),
//		sampling.Baseline(0.01), // all spans, in one of a hundred
//	)
//
// A KeyPath stands at the top, in Any, or in a Case of First. A trace that is
// decided while spans of it are still open is kept whole.
func KeyPath(p Policy, selectors ...Selector) Policy {
	return Policy{keyPathRule{p, slices.Clone(selectors)}}
}

type keyPathRule struct {
	Of    Policy     `json:"of"`
	Spans []Selector `json:"spans"`
}

func (keyPathRule) name() string { return "key_path" }
func (r keyPathRule) String() string {
	parts := []string{r.Of.String()}
	for _, s := range r.Spans {
		parts = append(parts, s.String())
	}
	return "key_path(" + strings.Join(parts, ", ") + ")"
}

// Layers decides as p does and thins out what is recorded at all: the spans of a layer,
// and what is below them, are not even started but for a share of the
// traces. That saves their whole cost, and slow and failed traces lack them
// as well, because nobody knows at the start. Use it for the finest spans, such as
// those of GPU kernels; where recording is affordable, [KeyPath] loses less. A local
// root is never thinned out. Layers stands at the top.
func Layers(p Policy, layers ...Layer) Policy {
	return Policy{layersRule{p, slices.Clone(layers)}}
}

// A Layer is a set of spans and the share of traces that has them.
type Layer struct {
	// Select may name what is known when a span starts: Name, Kind, Key with
	// Values, and AtLeast.
	Select Selector `json:"select"`
	// Ratio is from 0 to 1.
	Ratio float64 `json:"ratio"`
}

type layersRule struct {
	Of     Policy  `json:"of"`
	Layers []Layer `json:"layers"`
}

func (layersRule) name() string { return "layers" }
func (r layersRule) String() string {
	parts := []string{r.Of.String()}
	for _, l := range r.Layers {
		parts = append(parts, l.Select.String()+": "+number(l.Ratio))
	}
	return "layers(" + strings.Join(parts, ", ") + ")"
}

// IsZero reports whether p is the zero Policy.
func (p Policy) IsZero() bool { return p.rule == nil }

// String returns p in a form that reads like the calls that made it.
func (p Policy) String() string {
	if p.IsZero() {
		return "none"
	}
	return p.rule.String()
}

// Validate returns an error that names each part of p that is wrong, and nil where
// [NewTail] would take p.
func (p Policy) Validate() error {
	_, err := compile(p)
	return err
}

var errNoPolicy = errors.New("sampling: no policy given: use Default, or Baseline(0) to keep nothing")

// text is a duration that is written like "1m30s".
type text time.Duration //nolint:recvcheck // a value, but for reading into it

func (d text) String() string               { return time.Duration(d).String() }
func (d text) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

func (d *text) UnmarshalText(b []byte) error {
	parsed, err := time.ParseDuration(string(b))
	*d = text(parsed)
	return err
}

func number(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }

func join(policies []Policy) string {
	parts := make([]string, len(policies))
	for i, p := range policies {
		parts[i] = p.String()
	}
	return strings.Join(parts, ", ")
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
