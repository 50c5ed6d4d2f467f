package genaitrace

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	otelsemconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/internal/bound"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

const (
	// maxBatchLinks is how many requests the span of a batch links to: the SDK
	// keeps 128 links of a span and drops the first.
	maxBatchLinks = 100
	// maxBatches is how many batches one request remembers.
	maxBatches = 100
)

// BatchFacts holds what is known of a batch when it starts. Zero values are
// unknown.
type BatchFacts struct {
	// Model is the model that runs the batch.
	Model string
	// Size is how many requests the batch holds, where the engine knows it. Zero
	// means the most that were in it at one time; those that record nothing
	// cannot join, so under sampling without metrics give the size.
	Size int
}

// A Batch records requests that an engine works on together. Its span
// (inference.batch) is the root of a trace of its own: each request stays in its
// own trace below its own parent, and both link to one another, so a batch of 500
// requests adds one span. The requests of a static batch join before it runs; in
// continuous batching they come and go as they are scheduled, and a Batch stands
// for one run of the loop, for example from one idle moment to the next.
//
// The span gets ai.batch.size and ai.batch.avg_latency_ms, the mean time that the
// requests spent in the batch, and links to the first 100 sampled ones. Metric:
// genai.batch.size. The methods are safe for concurrent use, do nothing on a nil
// Batch, and do nothing after its end.
type Batch struct {
	t     *Tracer
	ctx   context.Context //nolint:containedctx // the metric of the end wants the span's context
	span  trace.Span
	facts BatchFacts
	base  time.Time
	done  atomic.Bool

	spanEnd spanEnd

	mu       sync.Mutex
	in       map[*Inference]time.Duration // since base
	most     int                          // at one time
	requests int                          // that ever joined
	total    time.Duration                // that they spent here
	links    int
}

// StartBatch starts the span of a batch and returns the context for the work that
// is done for all of its requests together. Do not start a request with it: its
// span would become a child of the batch. The returned Batch is nil, and costs
// nothing, where neither the span nor the metric records.
func (t *Tracer) StartBatch(ctx context.Context, facts BatchFacts) (context.Context, *Batch) {
	if t == nil || t.metrics == nil {
		return ctx, nil
	}
	if facts.Size < 0 {
		t.metrics.fault(ctx, semconv.GenAIFaultCount, errCount)
		facts.Size = 0
	}
	facts.Model = bound.String(facts.Model, maxName)
	began := time.Now()
	var start struct { // in one piece of memory
		attrs   [4]attribute.KeyValue
		options [3]trace.SpanStartOption
	}
	attrs := append(start.attrs[:0], FactsFromContext(ctx)...)
	attrs = append(attrs, semconv.GenAISpanRole(semconv.GenAISpanRoleBatch))
	if facts.Model != "" {
		attrs = append(attrs, genaiconv.RequestModel(facts.Model))
	}
	options := append(start.options[:0], trace.WithNewRoot(), trace.WithTimestamp(began), trace.WithAttributes(t.words.Rewrite(attrs)...))
	ctx, span := t.tracer.Start(ctx, semconv.SpanInferenceBatch, options...)
	if !span.IsRecording() && !t.metrics.server.batchSize.Enabled(ctx) {
		return ctx, nil
	}
	return ctx, &Batch{t: t, ctx: ctx, span: span, facts: facts, base: began, in: map[*Inference]time.Duration{}}
}

// Span returns the span, for what this package has no method for.
func (b *Batch) Span() trace.Span {
	if b == nil || b.t == nil {
		return noSpan
	}
	return b.span
}

// SetAttributes adds attributes to the span.
func (b *Batch) SetAttributes(attrs ...attribute.KeyValue) {
	if b != nil && b.t != nil {
		b.span.SetAttributes(attrs...)
	}
}

// Join puts a request into the batch. One that is in it already, or has ended,
// changes nothing. It leaves by [Batch.Leave], by its own end, or with the end of
// the batch, whichever comes first, and may join again.
func (b *Batch) Join(inf *Inference) {
	if b == nil || b.t == nil || inf == nil || inf.t == nil || b.done.Load() {
		return
	}
	isNew, ok := inf.join(b)
	if !ok {
		return
	}
	if b.admit(inf, isNew) {
		b.span.AddLink(trace.Link{SpanContext: inf.span.SpanContext()})
	}
	if inf.hasEnded() { // meanwhile, before it could know of this batch
		b.Leave(inf)
	}
}

// Leave takes a request out of the batch; one that is not in it changes nothing.
func (b *Batch) Leave(inf *Inference) {
	if b != nil && b.t != nil {
		b.leave(inf, time.Now())
	}
}

func (b *Batch) leave(inf *Inference, at time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	joined, here := b.in[inf]
	if !here {
		return
	}
	delete(b.in, inf)
	b.total += max(at.Sub(b.base)-joined, 0)
}

// admit takes a request in and says whether the batch links to it.
func (b *Batch) admit(inf *Inference, isNew bool) (link bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.done.Load() {
		return false
	}
	if _, here := b.in[inf]; !here {
		b.in[inf] = time.Since(b.base)
		b.most = max(b.most, len(b.in))
	}
	if !isNew {
		return false
	}
	b.requests++
	if b.links == maxBatchLinks || !inf.span.SpanContext().IsSampled() {
		return false
	}
	b.links++
	return true
}

// join notes a batch that the request goes into, and links to it where it is new.
// ok is false where the request cannot go into one.
func (inf *Inference) join(b *Batch) (isNew, ok bool) {
	inf.mu.Lock()
	defer inf.mu.Unlock()
	switch {
	case inf.ended:
		return false, false
	case slices.Contains(inf.batches, b):
		return false, true
	case len(inf.batches) == maxBatches:
		inf.batches = slices.DeleteFunc(inf.batches, func(other *Batch) bool { return other.done.Load() })
		if len(inf.batches) == maxBatches {
			return false, false
		}
	}
	inf.batches = append(inf.batches, b)
	if inf.batchLinks < maxBatchLinks && b.span.SpanContext().IsSampled() {
		inf.batchLinks++
		inf.span.AddLink(trace.Link{SpanContext: b.span.SpanContext()})
	}
	return true, true
}

func (inf *Inference) hasEnded() bool {
	inf.mu.Lock()
	defer inf.mu.Unlock()
	return inf.ended
}

// End ends the batch well. Requests that are still in it go on by themselves.
func (b *Batch) End() { b.end(nil, 0, time.Time{}) }

// EndAt is End at a given time; a zero time, or one in the future, means now, and
// a time before the start is dropped and counted as a fault.
func (b *Batch) EndAt(t time.Time) { b.end(nil, 0, t) }

// Fail ends the batch with an error; see [Inference.Fail]. Its requests are not
// ended by that.
func (b *Batch) Fail(err error) { b.end(err, 0, time.Time{}) }

// EndErr is for defer; see [Inference.EndErr].
func (b *Batch) EndErr(err *error) {
	if r := recover(); r != nil {
		b.end(nil, panicked, time.Time{})
		panic(r)
	}
	if err == nil {
		b.End()
		return
	}
	b.Fail(*err)
}

func (b *Batch) end(err error, flag endFlag, at time.Time) {
	if b == nil || b.t == nil || !b.done.CompareAndSwap(false, true) {
		return
	}
	how, errType, err := judge(b.ctx, err, flag)
	duration, at, wrong := endTime(at, 0, 0, b.base, 0)
	m := b.t.metrics
	if wrong != nil {
		m.fault(b.ctx, semconv.GenAIFaultTime, wrong)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for inf, joined := range b.in {
		b.total += max(time.Duration(duration)-joined, 0)
		delete(b.in, inf)
	}
	size := max(b.facts.Size, b.most)
	if b.span.IsRecording() {
		attrs := make([]attribute.KeyValue, 0, 4)
		if size > 0 {
			attrs = append(attrs, semconv.AIBatchSize(size))
		}
		if b.requests > 0 {
			attrs = append(attrs, semconv.AIBatchAvgLatencyMs(ms(int64(b.total)/int64(b.requests))))
		}
		if errType != "" {
			attrs = append(attrs, otelsemconv.ErrorTypeKey.String(errType))
		}
		b.span.SetAttributes(attrs...)
		setStatus(b.span, how, err)
	}
	b.spanEnd.end(b.span, at)
	if size > 0 {
		m.recordBatch(b.ctx, b.facts.Model, size)
	}
}
