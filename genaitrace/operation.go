package genaitrace

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	otelsemconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/semconv"
)

// An Operation is work around a model call that has a span of its own: what a
// gateway does before it calls a model, a search, a tool, a run of an agent. Its
// parent is the span that its context carries. Where neither the span nor a metric
// of the operation records, the Operation is nil and costs nothing. Its methods are
// safe for concurrent use, do nothing on a nil Operation, and do nothing after its
// end.
type Operation struct {
	t    *Tracer
	ctx  context.Context //nolint:containedctx // it says whether the work was cancelled
	span trace.Span
	kind *operationKind
	last ending    // nil where the kind adds nothing
	base time.Time // of the start

	spanEnd spanEnd

	gateway *Call // that the wait for a rate limit is told to, if any

	mu    sync.Mutex
	ended bool
	facts []attribute.KeyValue // written at the end, in one call
}

// operationKind is what tells one operation from another.
type operationKind struct {
	name     string
	role     semconv.GenAISpanRoleAttr
	duration attribute.Key           // the house key that repeats the span's duration
	options  []trace.SpanStartOption // of one that starts with its role alone
}

// newOperationKind prepares what each span of the kind starts with. The role is
// given at the start, because samplers read it.
func newOperationKind(name string, role semconv.GenAISpanRoleAttr, duration attribute.Key) operationKind {
	return operationKind{name, role, duration, []trace.SpanStartOption{trace.WithAttributes(semconv.GenAISpanRole(role))}}
}

// An ending is what some kinds of operations add to their end. Its methods are
// called once, the first with the operation's lock held.
type ending interface {
	// settle may change how the operation ended, and appends what is known only now.
	settle(end operationEnd, attrs []attribute.KeyValue) (operationEnd, []attribute.KeyValue)
	// record writes the metrics.
	record(o *Operation, end operationEnd)
}

// operationEnd is how an operation ended.
type operationEnd struct {
	how     outcome
	errType string
	took    int64 // ns
}

// startOperation starts an operation whose facts come at its end.
func (t *Tracer) startOperation(ctx context.Context, kind *operationKind) (context.Context, *Operation) {
	if t == nil || t.tracer == nil {
		return ctx, nil
	}
	ctx, span, began := t.startPrepared(ctx, kind.name, kind.options)
	if !span.IsRecording() {
		return ctx, nil
	}
	return ctx, t.newOperation(ctx, span, began, kind)
}

// A startTeller is a span of the SDK, which says when it started.
type startTeller interface{ StartTime() time.Time }

// startPrepared starts a span that has nothing but prepared options, and returns the
// reading of the clock that it starts at: the SDK's, which costs nothing more, and where
// the span above says that its SDK does not tell it, one that this span is given. Below
// a span that does not record, this one will hardly record either.
func (t *Tracer) startPrepared(ctx context.Context, name string, prepared []trace.SpanStartOption) (context.Context, trace.Span, time.Time) {
	options := t.withFacts(ctx, prepared)
	above := trace.SpanFromContext(ctx)
	if _, tells := above.(startTeller); !tells && above.IsRecording() {
		began := time.Now()
		ctx, span := t.tracer.Start(ctx, name, append(slices.Clip(options), trace.WithTimestamp(began))...)
		return ctx, span, began
	}
	ctx, span := t.tracer.Start(ctx, name, options...)
	if told, ok := span.(startTeller); ok {
		return ctx, span, told.StartTime()
	}
	return ctx, span, time.Now()
}

func (t *Tracer) newOperation(ctx context.Context, span trace.Span, began time.Time, kind *operationKind) *Operation {
	return &Operation{t: t, ctx: ctx, span: span, kind: kind, base: began}
}

// newWork is newOperation for a kind that adds something to its end, in one piece of
// memory.
func newWork[E any, P interface {
	*E
	ending
}](t *Tracer, ctx context.Context, span trace.Span, began time.Time, kind *operationKind, end E) (*Operation, P) { //nolint:revive // the Tracer stands where a receiver would
	work := &struct {
		operation Operation
		end       E
	}{end: end}
	work.operation = Operation{t: t, ctx: ctx, span: span, kind: kind, last: P(&work.end), base: began}
	return &work.operation, &work.end
}

// attributes begins what an operation starts with, with room for some more:
// the facts of the context, and the role. What the operation says itself comes last,
// and wins.
func (kind *operationKind) attributes(ctx context.Context, room int) []attribute.KeyValue {
	facts := FactsFromContext(ctx)
	attrs := append(make([]attribute.KeyValue, 0, len(facts)+1+room), facts...)
	return append(attrs, semconv.GenAISpanRole(kind.role))
}

// startSpan starts the span of an operation with all that samplers may read, and
// returns the reading of the clock that it starts at. attrs are in Standard's words.
func (t *Tracer) startSpan(ctx context.Context, name string, kind trace.SpanKind, attrs []attribute.KeyValue) (context.Context, trace.Span, time.Time) {
	began := time.Now()
	ctx, span := t.tracer.Start(ctx, name, ofKind(kind), trace.WithAttributes(t.words.Rewrite(attrs)...), trace.WithTimestamp(began))
	return ctx, span, began
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

// learn changes what the ending of an operation knows, unless that has ended.
func (o *Operation) learn(change func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.ended {
		change()
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
	if facts == nil {
		facts = make([]attribute.KeyValue, 0, 4) // one is seldom alone
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
	var end operationEnd
	end.how, end.errType, err = judge(o.ctx, err, flag)
	took, at, wrong := endTime(at, 0, 0, o.base, 0)
	end.took = took

	o.mu.Lock()
	if o.ended {
		o.mu.Unlock()
		return
	}
	o.ended = true
	attrs := o.facts
	if o.last != nil {
		end, attrs = o.last.settle(end, attrs)
	}
	o.mu.Unlock()

	if wrong != nil {
		o.t.metrics.fault(o.ctx, semconv.GenAIFaultTime, wrong)
	}
	if o.gateway != nil {
		o.gateway.waited(took, wrong == nil)
	}
	if o.span.IsRecording() {
		if o.kind.duration != "" && wrong == nil {
			attrs = append(attrs, o.kind.duration.Float64(ms(took)))
		}
		if end.errType != "" {
			attrs = append(attrs, otelsemconv.ErrorTypeKey.String(end.errType))
		}
		if len(attrs) > 0 {
			o.span.SetAttributes(o.t.words.Rewrite(attrs)...)
		}
		if o.t.stacks && end.how.isError() {
			addStack(o.span, end.errType, at)
		}
		setStatus(o.span, end.how, err)
	}
	o.logException(end, err, took)
	o.spanEnd.end(o.span, at)
	if o.last != nil {
		o.last.record(o, end)
	}
}
