package genaitrace

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	otelsemconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/semconv"
)

// An Operation is work around a model call that has a span of its own, such as
// what a gateway does before it calls a model. Its parent is the span that its
// context carries. Where the span does not record, the Operation is nil and costs
// nothing. Its methods are safe for concurrent use, do nothing on a nil Operation,
// and do nothing after its end.
type Operation struct {
	t    *Tracer
	ctx  context.Context //nolint:containedctx // it says whether the work was cancelled
	span trace.Span
	kind *operationKind
	base time.Time // of the start

	gateway *Call // that the wait for a rate limit is told to, if any

	mu    sync.Mutex
	ended bool
	facts []attribute.KeyValue // written at the end, in one call
}

// operationKind is what tells one operation from another.
type operationKind struct {
	name     string
	duration attribute.Key // the house key that repeats the span's duration
	options  []trace.SpanStartOption
}

// newOperationKind prepares what each span of the kind starts with. The role is
// given at the start, because samplers read it.
func newOperationKind(name string, role semconv.GenAISpanRoleAttr, duration attribute.Key) operationKind {
	return operationKind{name, duration, []trace.SpanStartOption{trace.WithAttributes(semconv.GenAISpanRole(role))}}
}

// startOperation starts an operation. What samplers read is among the kind's
// options; what else is known goes to note.
func (t *Tracer) startOperation(ctx context.Context, kind *operationKind) (context.Context, *Operation) {
	if t == nil || t.tracer == nil {
		return ctx, nil
	}
	ctx, span := t.tracer.Start(ctx, kind.name, t.withFacts(ctx, kind.options)...)
	if !span.IsRecording() {
		return ctx, nil
	}
	return ctx, &Operation{t: t, ctx: ctx, span: span, kind: kind, base: time.Now()}
}

// Span returns the span, for what this package has no method for.
func (o *Operation) Span() trace.Span {
	if o == nil || o.t == nil {
		return noSpan
	}
	return o.span
}

// SetAttributes adds attributes to the span.
func (o *Operation) SetAttributes(attrs ...attribute.KeyValue) {
	if o != nil && o.t != nil {
		o.span.SetAttributes(attrs...)
	}
}

// note keeps a fact for the end.
func (o *Operation) note(fact attribute.KeyValue) {
	if o == nil || o.t == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.ended {
		o.facts = noted(o.facts, fact)
	}
}

// noted adds a fact, in the place of an earlier one with its key.
func noted(facts []attribute.KeyValue, fact attribute.KeyValue) []attribute.KeyValue {
	for i := range facts {
		if facts[i].Key == fact.Key {
			facts[i] = fact
			return facts
		}
	}
	return append(facts, fact)
}

// End ends the operation well.
func (o *Operation) End() { o.end(nil, 0, time.Time{}) }

// EndAt is End at a given time; a zero time, or one in the future, means now,
// and a time before the start is dropped and counted as a fault.
func (o *Operation) EndAt(t time.Time) { o.end(nil, 0, t) }

// Fail ends the operation with an error; see [Inference.Fail].
func (o *Operation) Fail(err error) { o.end(err, 0, time.Time{}) }

// EndErr is for defer; see [Inference.EndErr].
func (o *Operation) EndErr(err *error) {
	if r := recover(); r != nil {
		o.end(nil, panicked, time.Time{})
		panic(r)
	}
	if err == nil {
		o.End()
		return
	}
	o.Fail(*err)
}

func (o *Operation) end(err error, flag endFlag, at time.Time) {
	if o == nil || o.t == nil {
		return
	}
	how, errType, err := judge(o.ctx, err, flag)

	o.mu.Lock()
	if o.ended {
		o.mu.Unlock()
		return
	}
	o.ended = true
	attrs := o.facts
	o.mu.Unlock()

	took, at, sane := endTime(at, 0, o.base, 0)
	if !sane {
		o.t.metrics.fault(o.ctx, semconv.GenAIFaultTime, errBeforeStart)
	}
	if o.gateway != nil {
		o.gateway.waited(took, sane)
	}
	if o.kind.duration != "" && sane {
		attrs = append(attrs, o.kind.duration.Float64(ms(took)))
	}
	if errType != "" {
		attrs = append(attrs, otelsemconv.ErrorTypeKey.String(errType))
	}
	if len(attrs) > 0 {
		o.span.SetAttributes(o.t.words.Rewrite(attrs)...)
	}
	setStatus(o.span, how, err)
	endSpan(o.span, at)
}
