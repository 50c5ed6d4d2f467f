package genaitrace

import (
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/semconv"
)

// maxTokenEvents bounds what WithTokenEvents can ask for.
const maxTokenEvents = 10_000

// WithTokenEvents asks for an event "token" for each generated token, with its
// position in the phase, on the span of the decode phase, for at most limit tokens
// of a phase (1 to 10,000); the later ones have none. The span says so
// (genai.token.event_limit), which a contract can allow. Default: none, because the
// timeline says when each token came for a hundredth of the bytes.
//
// The SDK keeps 128 events of a span and drops the oldest, so the tracer provider
// needs a limit of limit + 100 for them:
//
//	limits := sdktrace.NewSpanLimits()
//	limits.EventCountLimit = 2000 + 100
//	tp := sdktrace.NewTracerProvider(sdktrace.WithRawSpanLimits(limits), …)
//
// Under a lower one the span keeps the last tokens. The events for the first token
// and for stalls are written after them, and stay; one for an early stop stays
// where few tokens follow. Each event costs what AddEvent with a time and an
// attribute costs (BenchmarkToken/everytoken), more once the SDK drops one for
// each, and the span holds all of them until it is exported.
func WithTokenEvents(limit int) Option {
	return optionFunc(func(c config) config {
		if limit < 1 || limit > maxTokenEvents {
			c.err = errors.Join(c.err, fmt.Errorf("WithTokenEvents: limit is %d: want 1 to %d", limit, maxTokenEvents))
			return c
		}
		c.tokenEvents = limit
		return c
	})
}

// tokenEvent writes the event of the token that was stamped last.
func (d *Decode) tokenEvent(at int64) {
	d.events--
	d.span.AddEvent(semconv.EventToken, trace.WithTimestamp(d.inf.when(at)),
		trace.WithAttributes(semconv.GenAITokenPosition(d.stamped)))
	d.stamped++
}
