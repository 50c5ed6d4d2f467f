package genaitrace

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/internal/bound"
	"github.com/genaitrace/otelgenai/semconv"
)

// A ChunkKind says what a data event of a streamed response carried. The values
// are ordered.
type ChunkKind uint8

const (
	// NoOutput is an event without generated output: a role, usage, a finish
	// reason, a heartbeat between the others. Comments, end marks and heartbeats
	// before the first of them are no chunks at all.
	NoOutput ChunkKind = iota
	// Output is generated output other than answer text: reasoning, a tool's
	// name or arguments.
	Output
	// Visible is answer text, a refusal included.
	Visible
)

// NoChunk marks an item that is no data event, such as a comment, a heartbeat or
// an end mark: nothing is stamped.
const NoChunk ChunkKind = 255

// A Call records one model call as its caller sees it ([Tracer.StartCall]), or
// as a gateway that serves it sees it ([Tracer.StartGateway]). A chunk is not a
// token: nothing here derives token counts from chunks.
//
// Chunk and ChunkAt are for the one goroutine that reads the stream; the other
// methods are safe for concurrent use. All do nothing on a nil Call and after
// its end.
type Call struct {
	t        *Tracer
	ctx      context.Context //nolint:containedctx // metrics of the end want the span's context
	span     trace.Span
	req      Request
	base     time.Time
	after    time.Duration // base − arrival
	began    int64         // the span's start, since arrival
	gateway  bool
	inner    bool        // an outer span carries the official usage keys
	nested   bool        // an outer call of this process counts the tokens
	run      *agentEnd   // of an agent that counts the call
	joined   *joinedSpan // nil where the span is the call's own
	clock    clock
	underWay underWay
	spanEnd  spanEnd
	done     atomic.Bool
	watched  atomic.Bool // a transport feeds this call
	itemized atomic.Bool // the items of a wrapped stream feed it

	mu         sync.Mutex
	unwatch    func() bool // takes back the watch over ctx, if any
	usage      usage
	finish     []string
	oneFinish  [1]string // where finish begins
	responseID string
	response   string
	terminal   semconv.GenAIStreamTerminalAttr
	errType    string
	attempts   int
	stops      stopNotes
	reported   *reportedPhases // nil where nothing was
	limits     rateLimits      // of a gateway
	prompt     *PromptFacts    // nil where unknown
	content    *contentNotes   // nil where nothing may be written
}

// StartCall starts the span of a model call at its caller ("chat {model}",
// CLIENT) and returns the context to make the call with. The HTTP transport and
// the gRPC client handler of this module recognise that context: they feed the
// Call instead of starting a span of their own. The returned Call is nil, and
// costs nothing, where neither the span nor a metric records.
//
// Read the answer to its end, and end the call, before you tell your own client
// that it is complete: clients close at once, and the cancelled context would
// make the call look abandoned.
//
// Metrics:
//   - gen_ai.client.inference.duration; of embeddings gen_ai.client.embeddings.duration,
//     of what is no inference gen_ai.client.operation.duration
//   - of streams also .time_to_first_chunk and .time_per_output_chunk, and the house
//     histogram genai.time_to_first_token
//   - of an inference the token counters gen_ai.client.inference.usage.*, whose
//     modality is unknown, and the histograms .operation.input_tokens and
//     .output_tokens; of embeddings gen_ai.client.embeddings.operation.input_tokens.
//     Where an outer call of the trace counts the same tokens, none of them
//   - genai.active_calls, up here and down at the end
//
// All others are recorded in one pass at the end, also where the span is not sampled.
// time_per_output_chunk is one SDK record a chunk, the largest part of what a stream
// costs; where a view drops it, it costs nothing.
func (t *Tracer) StartCall(ctx context.Context, req Request) (context.Context, *Call) {
	if t == nil || t.metrics == nil {
		return ctx, nil
	}
	req.clean()
	arrived, now := t.arrival(ctx, req.Arrived)
	inner := isInner(ctx)
	attrs := t.startAttributes(ctx, &req, req.callRole())
	options, began := startOptions(trace.SpanKindClient, attrs, req.Arrived, arrived, now, 0)
	around := ctx
	options, chained := followChain(ctx, options)
	ctx, span := t.tracer.Start(ctx, t.spanName(string(req.Operation), req.Model), options...)
	if !span.IsRecording() && !t.metrics.callEnabled(ctx) && !t.logs.enabled(ctx, completionEvent) {
		return ctx, nil
	}
	if chained {
		ctx = goOn(ctx, string(req.Operation))
	}
	c := &Call{t: t, ctx: ctx, span: span, req: req, inner: inner, base: now, after: now.Sub(arrived), began: began}
	c.nested = CallFromContext(around) != nil
	c.clock.start(c.base, c.after, t.stalls)
	c.finish = c.oneFinish[:0]
	c.underWay = t.metrics.enter(ctx, callSide, &req)
	c.run = runOf(around, &req)
	return context.WithValue(ctx, callKey, c), c
}

// CallFromContext returns the running call of [Tracer.StartCall] that ctx
// belongs to, or nil.
func CallFromContext(ctx context.Context) *Call {
	c, _ := ctx.Value(callKey).(*Call)
	if c == nil || c.done.Load() {
		return nil
	}
	return c
}

// Watch claims the call for a transport that feeds it, and returns the number of
// this attempt, from 1; 0 where another attempt has the call. What an earlier
// attempt noted of its failure and of the engine's times is forgotten: the last
// attempt decides.
//
// It is for transports; this module's call it themselves.
func (c *Call) Watch() (attempt int) {
	if c == nil || c.t == nil || !c.watched.CompareAndSwap(false, true) {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.attempts++
	c.terminal, c.errType, c.reported = "", "", nil
	return c.attempts
}

// Release gives the call back after an attempt that brought no answer, so that
// the next one can feed it.
func (c *Call) Release() {
	if c != nil {
		c.watched.Store(false)
	}
}

// Span returns the span, for what this package has no method for.
func (c *Call) Span() trace.Span {
	if c == nil || c.t == nil {
		return noSpan
	}
	return c.span
}

// SetAttributes adds attributes to the span.
func (c *Call) SetAttributes(attrs ...attribute.KeyValue) {
	if c != nil && c.t != nil {
		c.span.SetAttributes(attrs...)
	}
}

// Chunk stamps a data event of the streamed response.
func (c *Call) Chunk(kind ChunkKind) {
	if c == nil || c.t == nil || kind == NoChunk {
		return
	}
	if c.joined != nil && kind >= Output && !c.joined.told && !c.done.Load() {
		at := c.clock.now()
		c.clock.tickAt(at, min(kind, Visible))
		c.tellFirst(at)
		return
	}
	c.clock.tick(min(kind, Visible))
}

// ChunkAt stamps a data event that arrived at t; a zero time, or one in the
// future, means now, and one before the start is dropped and counted.
func (c *Call) ChunkAt(kind ChunkKind, t time.Time) {
	if c == nil || c.t == nil || kind == NoChunk {
		return
	}
	at := sinceArrival(t, c.base, c.after)
	if at < 0 {
		c.t.metrics.fault(c.ctx, semconv.GenAIFaultTime, errChunkTime)
		return
	}
	c.clock.tickAt(at, min(kind, Visible))
}

var errChunkTime = errors.New("call: time of a chunk before the request: chunk dropped")

// SetRequest notes facts of the request that were not known at the start, such
// as those read from a body as it was sent. What is known already stays; Arrived
// is ignored. A model that was unknown renames the span of StartCall.
func (c *Call) SetRequest(late Request) {
	if c == nil || c.t == nil {
		return
	}
	late.clean()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done.Load() {
		return
	}
	news := c.req.learn(late)
	if c.gateway {
		return // its span tells of HTTP; the model is a dimension of its metric
	}
	if news.Model != "" {
		c.span.SetName(c.t.spanName(string(c.req.Operation), news.Model))
	}
	if attrs := news.appendFacts(nil); len(attrs) > 0 {
		c.span.SetAttributes(c.t.words.Rewrite(attrs)...)
	}
}

// SetUsage notes token counts; known fields replace those of earlier calls.
func (c *Call) SetUsage(u Usage) {
	if c == nil || c.t == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.usage.merge(u) {
		c.t.metrics.fault(c.ctx, semconv.GenAIFaultCount, errCount)
	}
}

// SetFinish notes why generation ended, one reason a choice. Reasons that are all
// empty are unknown and change nothing.
func (c *Call) SetFinish(reasons ...string) {
	if c == nil || c.t == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.finish = cleanReasons(c.finish, reasons)
}

// SetResponse notes the identifier of the response and the model that
// answered; empty values are unknown and change nothing.
func (c *Call) SetResponse(id, model string) {
	if c == nil || c.t == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if id != "" {
		c.responseID = bound.String(id, maxName)
	}
	if model != "" {
		c.response = bound.String(model, maxName)
	}
}

// SetTerminal notes how the stream ended. error, truncated, http_error and
// timeout make the call a failure, whatever End or Fail says later. Only the
// first value counts.
func (c *Call) SetTerminal(terminal semconv.GenAIStreamTerminalAttr) {
	if c == nil || c.t == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.terminal == "" {
		c.terminal = semconv.GenAIStreamTerminalAttr(bound.String(string(terminal), maxReason))
	}
}

// SetErrorType notes the error.type of a failure, in the words of the protocol:
// it wins over the type of the error that Fail gets. Only the first value
// counts.
func (c *Call) SetErrorType(errType string) {
	if c == nil || c.t == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.errType == "" {
		c.errType = bound.String(errType, maxReason)
	}
}

// End ends the call well, unless [Call.SetTerminal] noted a failure.
func (c *Call) End() { c.end(nil, 0, time.Time{}) }

// EndAt is End at a given time; a zero time, or one in the future, means now.
// A time before the start is dropped and counted as a fault; for one before the last
// chunk, which is counted too, the call ends with that.
func (c *Call) EndAt(t time.Time) { c.end(nil, 0, t) }

// Fail ends the call with an error: status Error and error.type, unless err or
// the context says that the call was cancelled. nil and io.EOF itself end it well.
// An error can name its own error.type by a method ErrorType() string; else it is
// the name of its Go type.
func (c *Call) Fail(err error) { c.end(err, 0, time.Time{}) }

// EndErr is for defer; see [Inference.EndErr].
func (c *Call) EndErr(err *error) {
	if r := recover(); r != nil {
		c.end(nil, panicked, time.Time{})
		panic(r)
	}
	if err == nil {
		c.End()
		return
	}
	c.Fail(*err)
}

// when is a time since arrival.
func (c *Call) when(ns int64) time.Time { return c.base.Add(time.Duration(ns) - c.after) }

// Fault counts an input that telemetry could not read, and reports the first of
// each kind to the error handler of OpenTelemetry. A kind that is none of the
// registry's counts as _OTHER.
func (c *Call) Fault(kind semconv.GenAIFaultAttr, err error) {
	if c != nil && c.t != nil {
		c.t.metrics.fault(c.ctx, kind, err)
	}
}
