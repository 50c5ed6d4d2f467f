package genaitrace

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	otelsemconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/genaitrace/content"
	"github.com/genaitrace/otelgenai/internal/bound"
	"github.com/genaitrace/otelgenai/semconv"
)

// maxPhases bounds how many phases of one inference are remembered; later ones get
// their spans but no share of the TTFT, and their metric when they end.
const maxPhases = 64

// An Inference records one request in the process that runs the model.
// Its methods are safe for concurrent use, do nothing on a nil Inference, and
// do nothing after its end.
type Inference struct {
	t     *Tracer
	ctx   context.Context //nolint:containedctx // metrics of the end want the span's context
	span  trace.Span
	req   Request
	base  time.Time     // carries the monotonic reading
	after time.Duration // base − arrival
	began int64         // the span's start, since arrival
	inner bool          // an outer span carries the official usage keys

	mu         sync.Mutex
	ended      bool
	open       []*Phase
	intervals  []interval
	latest     int64 // end of a phase or last token, as known
	tokens     tokenStats
	usage      usage
	finish     []string
	responseID string
	response   string
	stops      stopNotes
	underWay   underWay
	spanEnd    spanEnd
	measures   measures
	labels     *phaseLabels         // of the phase that labelled a goroutine last
	facts      []attribute.KeyValue // written at the end
	passes     int                  // spans of forward passes and kernels
	dropped    int                  // those that were too many
	seen       partSet              // phases that were observed
	reported   *reportedPhases      // nil where nothing was
	preempted  *preemptions         // nil where it never was
	prompt     *PromptFacts         // nil where unknown
	content    *contentNotes        // nil where nothing may be written
	batches    []*Batch             // that it joined
	batchLinks int
	firstPhase [5]Phase // the usual phases need no allocation of their own
	openSpace  [4]*Phase
	oneFinish  [1]string
	oneBatch   [1]*Batch
	ranSpace   [8]interval
	phases     int
}

// StartInference starts the span of one request in the engine
// (inference.generate, INTERNAL) and returns the context to go on with.
// The returned Inference is nil, and costs nothing, where neither the span nor
// a metric records.
//
// Metrics: gen_ai.server.request.duration, .time_to_first_token and
// .time_per_output_token; genai.queue.wait, genai.prefill.duration and
// genai.decode.duration, one value a phase, observed or reported; genai.token.rate,
// genai.tokens and genai.kv_cache.hit_ratio. genai.active_requests goes up here and
// down at the end, genai.token.stalls is counted when decode ends; all others are
// recorded at the end, also where the span is not sampled.
func (t *Tracer) StartInference(ctx context.Context, req Request) (context.Context, *Inference) {
	if t == nil || t.metrics == nil {
		return ctx, nil
	}
	req.clean()
	given := req.Arrived
	if given.IsZero() {
		given = takeArrival(ctx)
	}
	arrived, now := t.arrival(ctx, given)
	inner := isInner(ctx)
	attrs := t.startAttributes(ctx, &req, semconv.GenAISpanRoleInference)
	options, began := startOptions(trace.SpanKindInternal, attrs, req.Arrived, arrived, now, 0)
	options, chained := followChain(ctx, options)
	ctx, span := t.tracer.Start(ctx, semconv.SpanInferenceGenerate, options...)
	if !span.IsRecording() && !t.metrics.serverEnabled(ctx) && !t.logs.enabled(ctx, completionEvent) {
		return ctx, nil
	}
	if chained {
		ctx = goOn(ctx, string(req.Operation))
	}
	inf := &Inference{
		t: t, ctx: ctx, span: span, req: req, inner: inner,
		base: now, after: now.Sub(arrived), began: began,
	}
	inf.open, inf.intervals, inf.finish = inf.openSpace[:0], inf.ranSpace[:0], inf.oneFinish[:0]
	inf.batches = inf.oneBatch[:0]
	inf.underWay = t.metrics.enter(ctx, hostSide, &req)
	return ctx, inf
}

// Span returns the span, for what this package has no method for.
func (inf *Inference) Span() trace.Span {
	if inf == nil || inf.t == nil {
		return noSpan
	}
	return inf.span
}

// SetAttributes adds attributes to the span.
func (inf *Inference) SetAttributes(attrs ...attribute.KeyValue) {
	if inf != nil && inf.t != nil {
		inf.span.SetAttributes(attrs...)
	}
}

// SetUsage notes token counts; known fields replace those of earlier calls.
func (inf *Inference) SetUsage(u Usage) {
	if inf == nil || inf.t == nil {
		return
	}
	inf.mu.Lock()
	defer inf.mu.Unlock()
	if inf.ended {
		return
	}
	if !inf.usage.merge(u) {
		inf.t.metrics.fault(inf.ctx, semconv.GenAIFaultCount, errCount)
	}
}

// SetFinish notes why generation ended, one reason a choice. Reasons that are all
// empty are unknown and change nothing.
func (inf *Inference) SetFinish(reasons ...string) {
	if inf == nil || inf.t == nil {
		return
	}
	inf.mu.Lock()
	defer inf.mu.Unlock()
	if !inf.ended {
		inf.finish = cleanReasons(inf.finish, reasons)
	}
}

// SetResponse notes the identifier of the response and the model that
// answered; empty values are unknown and change nothing.
func (inf *Inference) SetResponse(id, model string) {
	if inf == nil || inf.t == nil {
		return
	}
	inf.mu.Lock()
	defer inf.mu.Unlock()
	if inf.ended {
		return
	}
	if id != "" {
		inf.responseID = bound.String(id, maxName)
	}
	if model != "" {
		inf.response = bound.String(model, maxName)
	}
}

// End ends the inference well. Phases that are still open end with it.
func (inf *Inference) End() { inf.end(nil, 0, time.Time{}) }

// EndAt is End at a given time; a zero time, or one in the future, means now.
// A time before the start is dropped and counted as a fault; for one before the last
// token or the end of a phase, which is counted too, the inference ends with those.
func (inf *Inference) EndAt(t time.Time) { inf.end(nil, 0, t) }

// Fail ends the inference with an error: status Error and error.type, unless
// err or the context says that the caller went away (an early_stop event and
// no error). A nil err ends it well. An error can name its own error.type by a
// method ErrorType() string; else it is the name of its Go type. Its message is
// not recorded: it may quote a prompt.
func (inf *Inference) Fail(err error) { inf.end(err, 0, time.Time{}) }

// EndErr is for defer: it ends the inference with the error that the function
// returns. Where the function panics, the inference ends as failed and the
// panic goes on.
//
//	defer inf.EndErr(&err)
func (inf *Inference) EndErr(err *error) {
	if r := recover(); r != nil {
		inf.end(nil, panicked, time.Time{})
		panic(r)
	}
	if err == nil {
		inf.End()
		return
	}
	inf.Fail(*err)
}

// endFlag says what an error value cannot.
type endFlag uint8

const panicked endFlag = 1

var (
	errCount = errors.New("token count that is negative, or larger than the whole, dropped")
	errPanic = errors.New("panic")
)

// judge turns an end into an outcome and a value for error.type.
func judge(ctx context.Context, err error, flag endFlag) (outcome, string, error) {
	if flag == panicked {
		return failed, errTypePanic, errPanic
	}
	how, errType := classify(ctx, err)
	return how, errType, err
}

func (inf *Inference) end(err error, flag endFlag, at time.Time) {
	if inf == nil || inf.t == nil {
		return
	}
	how, errType, err := judge(inf.ctx, err, flag)

	inf.mu.Lock()
	if inf.ended {
		inf.mu.Unlock()
		return
	}
	inf.ended = true
	open, batches := inf.stillOpen(), inf.batches
	inf.mu.Unlock()
	defer inf.underWay.leave(inf.ctx)

	for _, p := range open {
		p.finish(how, errType, err, at)
	}
	duration, at, wrong := endTime(at, inf.began, inf.latest, inf.base, inf.after)
	if wrong != nil {
		inf.t.metrics.fault(inf.ctx, semconv.GenAIFaultTime, wrong)
	}
	inf.stopOn(inf.span, how, at)
	inf.resume(duration)
	for _, b := range batches {
		b.leave(inf, inf.when(duration))
	}
	if inf.span.IsRecording() {
		inf.describe(how, errType, err, duration)
	}
	entries := inf.logEnd(how, errType, err, duration)
	inf.spanEnd.end(inf.span, at)
	inf.record(how, errType, duration)
	inf.t.logs.emitAll(inf.ctx, entries)
}

var (
	errBeforeStart  = errors.New("end before start: ended now instead")
	errBeforeLatest = errors.New("end before a token or the end of a phase inside: ended with the last of them instead")
)

// endTime is the end of something that started at start, in nanoseconds since
// arrival, and the timestamp for its span. A time in the future is now. What is known
// to have happened inside, the latest of it at latest, is not left outside; and a time
// before the start says nothing, so that is now too. Both are wrong.
func endTime(given time.Time, start, latest int64, base time.Time, after time.Duration) (end int64, stamp time.Time, wrong error) {
	passed := time.Since(base)
	now, stamp := int64(passed+after), base.Add(passed)
	if given.IsZero() {
		return now, stamp, nil
	}
	end = sinceArrival(given, base, after)
	switch {
	case end >= now:
		return now, stamp, nil
	case end < start:
		return now, stamp, errBeforeStart
	case end < latest:
		return latest, base.Add(time.Duration(latest) - after), errBeforeLatest
	}
	return end, given, nil
}

// sinceArrival is t in nanoseconds since arrival. A zero t, or one in the
// future, is now; the time span to a t too far off to subtract saturates.
func sinceArrival(t, base time.Time, after time.Duration) int64 {
	now := time.Since(base)
	if !t.IsZero() {
		now = min(now, t.Sub(base))
	}
	return int64(now + after)
}

// now is nanoseconds since arrival.
func (inf *Inference) now() int64 { return int64(time.Since(inf.base) + inf.after) }

// when is a time since arrival.
func (inf *Inference) when(ns int64) time.Time { return inf.base.Add(time.Duration(ns) - inf.after) }

// ran notes when a part ran. inf.mu is held, or the inference has ended.
func (inf *Inference) ran(p part, start, end int64) {
	if len(inf.intervals) < maxPhases {
		inf.intervals = append(inf.intervals, interval{p, start, end})
	}
}

// describe writes everything that is known only at the end, in one call.
func (inf *Inference) describe(how outcome, errType string, err error, end int64) {
	attrs := append(make([]attribute.KeyValue, 0, 16+len(inf.facts)), inf.facts...)
	if inf.dropped > 0 {
		attrs = append(attrs, semconv.GenAISpanDroppedCount(inf.dropped))
	}
	reported := inf.place(end)
	if inf.tokens.count > 0 {
		attrs = inf.appendTokens(attrs, reported.intervals())
	}
	attrs = reported.appendTo(attrs)
	reported.draw(inf.ctx, inf.t, inf.usage.prompt(), inf.when)
	attrs = inf.preempted.appendTo(attrs, inf.span, inf.when)
	attrs = appendResponse(attrs, inf.responseID, inf.response, inf.finish)
	attrs = inf.prompt.appendTo(attrs)
	attrs = inf.content.appendTo(attrs, content.OnSpans)
	tokens := inf.known()
	attrs = tokens.appendTo(attrs, inf.inner)
	if how == cancelled {
		attrs = append(attrs, semconv.GenAIStreamTerminal(semconv.GenAIStreamTerminalClientCancelled))
	}
	if errType != "" {
		attrs = append(attrs, otelsemconv.ErrorTypeKey.String(errType))
	}
	inf.span.SetAttributes(inf.t.words.Rewrite(attrs)...)
	setStatus(inf.span, how, err)
}

// appendTokens appends the times of the first and the last token, and where the
// time to the first went.
func (inf *Inference) appendTokens(attrs []attribute.KeyValue, reported []interval) []attribute.KeyValue {
	first := inf.tokens.first
	attrs = append(attrs, semconv.LLMTTFTMs(ms(first)), semconv.GenAILastTokenMs(ms(inf.tokens.last)))
	if at, ok := inf.tokens.firstAnswer(); ok {
		attrs = append(attrs, semconv.GenAIFirstVisibleMs(ms(at)))
	}
	p := partitionTTFT(inf.intervals, reported, first)
	attrs = p.appendTo(attrs)
	start, ok := firstStart(inf.intervals, partPrefill)
	if !ok {
		start, ok = firstStart(reported, partPrefill)
	}
	if ok && start <= first {
		attrs = append(attrs, semconv.AIFirstTokenDurationMs(ms(first-start)))
	}
	return attrs
}

// firstStart is when the first phase of a kind started. intervals are in the
// order in which phases ended.
func firstStart(intervals []interval, want part) (start int64, ok bool) {
	for _, iv := range intervals {
		if iv.part == want && (!ok || iv.start < start) {
			start, ok = iv.start, true
		}
	}
	return start, ok
}

// setStatus marks failures. The message of an error may hold text of the user,
// so the status carries the error's type at most.
func setStatus(span trace.Span, how outcome, err error) {
	if how.isError() {
		span.SetStatus(codes.Error, statusText(err))
	}
}

// statusText describes an error without its message.
func statusText(err error) string {
	if err == nil || err == errPanic { //nolint:errorlint // our own, and never wrapped
		return ""
	}
	if name := errorType(err); name != bound.Other {
		return name
	}
	return ""
}
