package facts

import (
	"context"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/semconv"
)

// A Processor stamps the facts of the context that a span is started in, but for
// those that the span was started with. It goes before processors that read the
// attributes of a span as it starts. Samplers come before all processors: they see
// facts on the spans of genaitrace alone. It is safe for concurrent use.
type Processor struct {
	// Vocabulary is in which words facts are written that have an official and
	// a house name, as in [genaitrace.WithVocabulary]. Default: the official one.
	Vocabulary semconv.Vocabulary
}

var _ sdktrace.SpanProcessor = Processor{}

// OnStart stamps a span.
func (p Processor) OnStart(parent context.Context, span sdktrace.ReadWriteSpan) {
	facts := genaitrace.FactsFromContext(parent)
	if len(facts) == 0 || span.InstrumentationScope().Name == genaitrace.ScopeName {
		return // those of genaitrace have them
	}
	if p.Vocabulary != semconv.Standard {
		facts = p.Vocabulary.Rewrite(slices.Clone(facts))
	}
	has := span.Attributes()
	known := func(fact attribute.KeyValue) bool {
		return slices.ContainsFunc(has, func(kv attribute.KeyValue) bool { return kv.Key == fact.Key })
	}
	if slices.ContainsFunc(facts, known) {
		facts = slices.DeleteFunc(slices.Clone(facts), known)
	}
	span.SetAttributes(facts...)
}

// OnEnd does nothing.
func (Processor) OnEnd(sdktrace.ReadOnlySpan) {}

// Shutdown does nothing.
func (Processor) Shutdown(context.Context) error { return nil }

// ForceFlush does nothing.
func (Processor) ForceFlush(context.Context) error { return nil }
