package propagation

import (
	"context"
	"fmt"
	"sync/atomic"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// ScopeName is the name of the instrumentation scope of the metrics of a [Bridge].
const ScopeName = "github.com/genaitrace/otelgenai/propagation"

// WithMeterProvider sets where a Bridge counts what it leaves out, in
// genai.propagation.shed by its genai.propagation.part, and contradictory formats, in
// genai.propagation.conflicts. Default, and where mp is nil: the global provider
// at the time of [New]. The zero Bridge has [Bridge.Stats] alone.
func WithMeterProvider(mp metric.MeterProvider) Option {
	return optionFunc(func(b *Bridge) {
		if mp != nil {
			b.meterProvider = mp
		}
	})
}

// Stats counts what a [Bridge] left out, since it was made.
type Stats struct {
	// What did not fit into the budget or its format.
	ShedBaggageMembers, ShedPromptChains, ShedStateMembers int64
	// RefusedBaggage counts requests with more than 8192 bytes of baggage.
	RefusedBaggage int64
	// Conflicts counts those that [Received] tells of.
	Conflicts int64
}

// Stats returns the counts so far. A nil Bridge shares them with all nil ones.
func (b *Bridge) Stats() Stats {
	b = b.orPlain()
	return Stats{
		ShedBaggageMembers: b.shedBaggage.n.Load(),
		ShedPromptChains:   b.shedChains.n.Load(),
		ShedStateMembers:   b.shedState.n.Load(),
		RefusedBaggage:     b.refusedBaggage.n.Load(),
		Conflicts:          b.conflicts.n.Load(),
	}
}

// A count is a number of Stats and a series of a metric.
type count struct {
	n       atomic.Int64
	counter metric.Int64Counter // nil where there is none
	series  []metric.AddOption
}

func (c *count) add(ctx context.Context, n int) {
	if n <= 0 {
		return
	}
	c.n.Add(int64(n))
	if c.counter != nil {
		c.counter.Add(ctx, int64(n), c.series...)
	}
}

// connect makes the metrics. Names and texts are those of the registry, which this
// package, being below it, cannot import.
func (b *Bridge) connect() {
	if b.meterProvider == nil {
		b.meterProvider = otel.GetMeterProvider()
	}
	meter := b.meterProvider.Meter(ScopeName)
	shed := newCounter(meter, "genai.propagation.shed", "{item}",
		"parts of the context that were not sent on, or not taken, because they were too large")
	for part, c := range map[string]*count{
		"baggage_member":    &b.shedBaggage,
		"prompt_chain":      &b.shedChains,
		"tracestate_member": &b.shedState,
		"baggage":           &b.refusedBaggage,
	} {
		c.counter = shed
		c.series = []metric.AddOption{metric.WithAttributeSet(attribute.NewSet(attribute.String("genai.propagation.part", part)))}
	}
	b.conflicts.counter = newCounter(meter, "genai.propagation.conflicts", "{conflict}",
		"trace contexts of a request that contradict the one that counts, and became links")
}

func newCounter(m metric.Meter, name, unit, description string) metric.Int64Counter {
	c, err := m.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(description))
	if err != nil {
		otel.Handle(fmt.Errorf("propagation: %w", err))
		return nil
	}
	return c
}
