// Package tail is what the middleware of every transport does with a tail sampler.
package tail

import (
	"context"

	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/internal/fault"
)

// A Sampler decides about traces once they have happened; genaihttp and genaigrpc
// document it.
type Sampler interface {
	Promise(ctx context.Context, failed bool) trace.SpanContext
	CalleeResponded(ctx context.Context, callee trace.SpanContext)
}

// Guard keeps what panics in s from the service: it has promised nothing then, and heard
// nothing. Of a nil Sampler it is nil.
func Guard(s Sampler, faults *fault.Counter) Sampler {
	if s == nil {
		return nil
	}
	return guarded{s, faults}
}

type guarded struct {
	Sampler

	faults *fault.Counter
}

func (g guarded) Promise(ctx context.Context, failed bool) (sc trace.SpanContext) {
	defer g.faults.Catch(ctx, "TailSampler.Promise panicked, nothing is told of the trace", func() { sc = trace.SpanContext{} })
	return g.Sampler.Promise(ctx, failed)
}

func (g guarded) CalleeResponded(ctx context.Context, callee trace.SpanContext) {
	defer g.faults.Catch(ctx, "TailSampler.CalleeResponded panicked, response not heard", func() {})
	g.Sampler.CalleeResponded(ctx, callee)
}

// Promised is ctx with what s knows of the trace by now, for a callee: the span of ctx may
// have begun before that. s may be nil.
func Promised(ctx context.Context, s Sampler) context.Context {
	if s == nil {
		return ctx
	}
	span := trace.SpanFromContext(ctx)
	if span.SpanContext().IsSampled() {
		return ctx
	}
	sc := s.Promise(ctx, false)
	if !sc.IsSampled() {
		return ctx
	}
	return trace.ContextWithSpan(ctx, promised{span, sc})
}

// A promised span is one of which others are told more than it knows itself.
type promised struct {
	trace.Span

	sc trace.SpanContext
}

func (s promised) SpanContext() trace.SpanContext { return s.sc }

// Parent is for formats that carry it. Spans of the SDK have one.
func (s promised) Parent() trace.SpanContext {
	if child, ok := s.Span.(interface{ Parent() trace.SpanContext }); ok {
		return child.Parent()
	}
	return trace.SpanContext{}
}
