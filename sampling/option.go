package sampling

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"go.opentelemetry.io/otel/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Limits bound what a [Tail] holds. A zero field means its default.
type Limits struct {
	// Bytes that undecided traces may take, as estimated from their spans. Beyond it,
	// traces give up the spans they hold, oldest first: those that the policy would
	// keep as they are are exported, the others go on without, and are
	// marked if they are kept later. Default: 64 MiB.
	Bytes int
	// Traces that have open spans or are undecided. Beyond it, the oldest is judged as
	// it is and forgotten. Default: 50,000. Each takes about 500 bytes.
	Traces int
	// TraceSpans and TraceBytes bound one trace. Beyond them, spans without
	// children that did not fail and match nothing are dropped, then, an eighth
	// further on, all but roots. Default: 10,000 spans and 16 MiB.
	TraceSpans, TraceBytes int
	// QueueBytes that may wait for the exporter; at least twice TraceBytes.
	// Beyond it, traces are lost. Default: 32 MiB.
	QueueBytes int
	// Linger is how long a trace whose local roots have ended waits for its other
	// open spans. It is looked at once a second. Default: 1 s.
	Linger time.Duration
	// Age is how long a trace may stay undecided, and how long after the decision it is
	// remembered for spans that are still open. Default: 10 min.
	Age time.Duration
	// ExportTimeout is how long one call of the exporter may take. Default: 30 s.
	ExportTimeout time.Duration
}

func (l Limits) withDefaults() Limits {
	for _, d := range []struct {
		field *int
		value int
	}{
		{&l.Bytes, 64 << 20}, {&l.Traces, 50_000}, {&l.TraceSpans, 10_000},
		{&l.TraceBytes, 16 << 20}, {&l.QueueBytes, 32 << 20},
	} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{{&l.Linger, time.Second}, {&l.Age, 10 * time.Minute}, {&l.ExportTimeout, 30 * time.Second}} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	return l
}

func (l Limits) check() error {
	if min(l.Bytes, l.Traces, l.TraceSpans, l.TraceBytes, l.QueueBytes) < 0 || min(l.Linger, l.Age, l.ExportTimeout) < 0 {
		return fmt.Errorf("sampling: limits must not be negative: %+v", l)
	}
	if l.QueueBytes/2 < l.TraceBytes {
		return fmt.Errorf("sampling: Limits.QueueBytes %d is less than twice TraceBytes %d, so that the largest traces could not be exported", l.QueueBytes, l.TraceBytes)
	}
	return nil
}

// An Option configures [NewTail].
type Option interface{ apply(*config) }

type optionFunc func(*config)

func (f optionFunc) apply(c *config) { f(c) }

type config struct {
	policy  Policy
	limits  Limits
	head    Head
	trust   Trust
	meter   metric.MeterProvider
	custom  map[string]func(Trace) bool
	memory  func() float64
	problem error
}

// WithLimits bounds memory and time. Limits that are negative or contradict each other are
// an error of [NewTail]. Default: those that [Limits] names.
func WithLimits(l Limits) Option { return optionFunc(func(c *config) { c.limits = l }) }

// WithHead sets what callees are told. Default: [HeadCertain].
func WithHead(h Head) Option { return optionFunc(func(c *config) { c.head = h }) }

// WithTrust sets which other processes are believed. Default: [TrustConsistent].
func WithTrust(t Trust) Option { return optionFunc(func(c *config) { c.trust = t }) }

// WithMeterProvider sets where metrics go. Default, and where mp is nil: the global
// provider at the time of [NewTail].
func WithMeterProvider(mp metric.MeterProvider) Option {
	return optionFunc(func(c *config) { c.meter = mp })
}

// A Trace is what a custom policy sees of a local trace: the spans of this process.
type Trace struct {
	ID trace.TraceID
	// Spans that have ended, in the order in which they did. They must not be changed.
	Spans []sdktrace.ReadOnlySpan
	// Duration from the start of the first span to the last end.
	Duration time.Duration
	// Failed is whether a span has the status Error.
	Failed bool
}

// WithCustom gives the function of [Custom] under the same name, which reports whether
// to keep a trace. It is asked once a trace, when the trace is complete and no other
// policy has decided, one trace after the other, on a goroutine of its own: it may
// take its time, but a trace that has waited for a second is decided without it. A
// panic counts as no and is reported through otel.Handle.
func WithCustom(name string, keep func(Trace) bool) Option {
	return optionFunc(func(c *config) {
		if keep == nil {
			c.problem = errors.Join(c.problem, fmt.Errorf("sampling: WithCustom(%q): the function is nil", name))
			return
		}
		if c.custom == nil {
			c.custom = map[string]func(Trace) bool{}
		}
		c.custom[name] = keep
	})
}

// WithMemoryPressure gives [Adaptive] the memory in use, from 0 to 1, such as that of a
// GPU. The function is called once a second on a goroutine of its own; where it
// panics, returns NaN, or has returned nothing for ten seconds, the pressure is unknown.
func WithMemoryPressure(inUse func() float64) Option {
	return optionFunc(func(c *config) { c.memory = inUse })
}

func configure(p Policy, opts []Option) (config, error) {
	c := config{policy: p}
	for _, o := range opts {
		if o != nil {
			o.apply(&c)
		}
	}
	c.limits = c.limits.withDefaults()
	err := errors.Join(c.problem, c.limits.check())
	if c.head.set && !c.head.always && !(c.head.ratio >= 0 && c.head.ratio <= 1) {
		err = errors.Join(err, fmt.Errorf("sampling: HeadRatio(%v): the ratio must be from 0 to 1", c.head.ratio))
	}
	if c.trust < TrustConsistent || c.trust > TrustNone {
		err = errors.Join(err, fmt.Errorf("sampling: WithTrust(%d): no such kind", c.trust))
	}
	return c, err
}

// wire checks that what the policy asks for is there, and nothing in vain.
func (c config) wire(p *compiled) error {
	var err error
	for _, name := range p.custom {
		if c.custom[name] == nil {
			err = errors.Join(err, fmt.Errorf("sampling: the policy asks custom(%s): give its function with WithCustom", name))
		}
	}
	for name := range c.custom {
		if !slices.Contains(p.custom, name) {
			err = errors.Join(err, fmt.Errorf("sampling: WithCustom(%q): the policy has no custom(%s)", name, name))
		}
	}
	if p.memory && c.memory == nil {
		err = errors.Join(err, errors.New("sampling: the policy adapts to memory: say how much is in use with WithMemoryPressure"))
	}
	return err
}
