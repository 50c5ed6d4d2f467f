package genaigrpc

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	otelcodes "go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/stats"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/internal/fault"
	"github.com/genaitrace/otelgenai/middleware/internal/tail"
	"github.com/genaitrace/otelgenai/propagation"
	"github.com/genaitrace/otelgenai/semconv"
)

// NewClientHandler returns what [google.golang.org/grpc.WithStatsHandler]
// takes. It writes the trace context into the metadata of each RPC.
//
// An RPC made with the context of [genaitrace.Tracer.StartCall] is that model
// call, and gets no second span: the call's span gets the rpc attributes, a
// failure gives it its error.type, and a passed deadline or a cancellation its
// genai.stream.terminal. The call stays for its starter to end. The metadata
// tells the server that the caller reports the token usage.
//
// An RPC of a [ModelCall] is a model call too, and is one without StartCall: its
// CLIENT span is that of the call ("chat {model}"), with its metrics, and each
// message of a streamed answer is a chunk of it, a given call's as well.
//
// Any other RPC gets a CLIENT span, named by the full method and without
// gen_ai attributes. Its status is Error for every code but OK; an RPC that
// this side cancelled is CANCELLED, and no error.
//
// Each attempt of an RPC that gRPC retries is an RPC here, and a call is fed by one
// after the other: the last one decides what stands on its span.
//
// gRPC reports the end of a stream once the stream was read to its end or its
// context was cancelled, or when the connection is closed. The span of one that is
// dropped without any of these ends after 15 to 30 minutes in which no message passed
// ([WithIdleTimeout]), with genai.stream.terminal=timeout. A model call has then failed;
// of another RPC that stands idle, as one may that waits for news, nothing is known: it
// has no status code and is no error.
//
// Metrics: rpc.client.call.duration, for each attempt, and for model calls those of
// [genaitrace.Tracer.StartCall].
func NewClientHandler(opts ...Option) stats.Handler {
	c := newConfig(opts)
	return &clientHandler{
		tracer:    c.tracer(),
		durations: newClientDurations(c.meter()),
		injector:  newInjector(c.propagator, c.member, c.faults),
		tail:      c.tail,
		methods:   methods{calls: c.modelCalls},
		calls:     c.calls(),
		watch:     &idleWatch{timeout: c.idleTimeout},
		faults:    c.faults,
	}
}

type clientHandler struct {
	tracer    trace.Tracer
	durations *durations
	injector  injector
	tail      TailSampler
	methods   methods
	calls     *genaitrace.Tracer
	watch     *idleWatch
	retries   retries
	faults    *fault.Counter
}

// A clientRPC is one attempt of an RPC between TagRPC and its end.
type clientRPC struct {
	handler *clientHandler
	ctx     context.Context //nolint:containedctx // the metric of the end wants the span's context
	method  *method
	call    *genaitrace.Call // that the RPC is; nil: the span is that of an RPC
	own     bool             // nobody else ends the call
	model   modelRPC         // reads the messages; nil where nobody does
	span    trace.Span
	start   time.Time
	server  server
	peer    net.Addr
	streams bool // the client may send any number of messages

	// addressed says that server and peer are known.
	requested, addressed, answered atomic.Bool

	life life
}

func (*clientHandler) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

func (*clientHandler) HandleConn(context.Context, stats.ConnStats) {}

// TagRPC is where metadata can still be added.
func (h *clientHandler) TagRPC(ctx context.Context, info *stats.RPCTagInfo) context.Context {
	m, known := h.methods.lookup(info.FullMethodName)
	if !known {
		h.methods.remember(info.FullMethodName, m)
	}
	h.retries.next(ctx)
	r := &clientRPC{handler: h, method: m, start: time.Now()}
	call := genaitrace.CallFromContext(ctx)
	switch given := call.Watch() > 0; {
	case given:
		r.call, r.span = call, call.Span()
		r.span.SetAttributes(m.attrs...)
	case m.model != nil && !m.model.keyed:
		ctx, r.call = h.calls.StartCall(ctx, genaitrace.Request{
			Operation: m.model.Operation, Provider: m.model.Provider, Arrived: r.start,
		})
		r.call.Watch()
		r.own, r.span = true, trace.SpanFromContext(ctx)
		r.call.SetAttributes(m.attrs...)
	default:
		ctx, r.span = h.tracer.Start(ctx, m.name,
			trace.WithSpanKind(trace.SpanKindClient), m.start, trace.WithTimestamp(r.start))
	}
	carried := tail.Promised(ctx, h.tail)
	if call.Span().IsRecording() {
		carried = propagation.ContextWithCallerMark(carried)
	}
	ctx = h.injector.inject(ctx, carried)
	if m.model != nil {
		r.model = h.modelRPC(ctx, r)
	}
	if r.call == nil && r.model == nil && !r.span.IsRecording() && !h.durations.enabled(ctx) {
		return ctx
	}
	h.retries.begun(ctx, r)
	r.ctx = context.WithValue(ctx, h, r)
	return r.ctx
}

// modelRPC returns what reads the messages of an RPC that calls a model.
func (h *clientHandler) modelRPC(ctx context.Context, r *clientRPC) modelRPC {
	model := r.method.model
	switch {
	case model.keyed:
		return &requests{method: model, rpc: r.span, given: r.call, start: func(f *request, at time.Time) *genaitrace.Call {
			_, call := h.calls.StartCall(ctx, genaitrace.Request{
				Operation: model.Operation, Provider: f.Provider, Model: f.Model, Stream: true, Arrived: at,
				ServerAddress: r.to().address, ServerPort: r.to().port,
			})
			return call
		}}
	case r.call != nil:
		return &single{method: model, call: r.call}
	default:
		return nil
	}
}

func (h *clientHandler) HandleRPC(ctx context.Context, event stats.RPCStats) {
	switch e := event.(type) {
	case *stats.InPayload: // once a token
		if r := h.rpc(ctx); r != nil {
			r.answer(e)
		}
	case *stats.Begin:
		if r := h.rpc(ctx); r != nil {
			r.begin(e)
		}
	case *stats.OutHeader:
		if r := h.rpc(ctx); r != nil {
			r.sent(e)
		}
	case *stats.OutPayload:
		if r := h.rpc(ctx); r != nil {
			r.request(e)
		}
	case *stats.InTrailer:
		h.listen(ctx, e)
		if r := h.rpc(ctx); r != nil {
			r.answered.Store(true)
		}
	case *stats.End:
		if r := h.rpc(ctx); r != nil {
			r.end(ctx, e)
		}
	}
}

func (h *clientHandler) rpc(ctx context.Context) *clientRPC {
	r, _ := ctx.Value(h).(*clientRPC)
	return r
}

func (r *clientRPC) begin(e *stats.Begin) {
	r.streams = e.IsClientStream
	if r.model != nil {
		r.model.begin(e.IsServerStream)
	}
	if e.IsClientStream || e.IsServerStream { // else somebody waits for the answer
		r.handler.watch.add(&r.life, r)
	}
}

func (r *clientRPC) answer(e *stats.InPayload) {
	r.life.move()
	if r.model != nil {
		r.model.answered(e.Payload, e.RecvTime)
	}
}

func (r *clientRPC) request(e *stats.OutPayload) {
	r.life.move()
	r.requested.Store(true)
	if r.model != nil {
		r.model.sent(e.Payload, e.SentTime)
	}
}

// sent notes which server the RPC goes to. A call is told at once. It has its
// server.address from its starter, who may know better than the name that the
// connection bears.
func (r *clientRPC) sent(e *stats.OutHeader) {
	r.server, r.peer = serverOf(e.Authority), e.RemoteAddr
	r.addressed.Store(true)
	if r.call == nil {
		return
	}
	if r.own {
		r.call.SetRequest(genaitrace.Request{ServerAddress: r.server.address, ServerPort: r.server.port})
	}
	r.call.SetAttributes(appendPeer(nil, r.peer)...)
}

// to is where the RPC went, as far as that is known.
func (r *clientRPC) to() server {
	if r.addressed.Load() {
		return r.server
	}
	return server{}
}

func (r *clientRPC) end(ctx context.Context, e *stats.End) {
	r.handler.watch.remove(&r.life)
	first, late := r.life.end()
	if late {
		r.handler.faults.Count(ctx, semconv.GenAIFaultLate, endedLate)
	}
	if !first && !late {
		return
	}
	if !r.addressed.Load() {
		r.handler.retries.expect(ctx)
	}
	code := r.code(e.Error)
	// A CANCELLED that a server sends to a client that waits is a failure.
	cancelled := code == codes.Canceled && errors.Is(ctx.Err(), context.Canceled)
	how := ending{code: code, cancelled: cancelled, failed: code != codes.OK && !cancelled, at: e.EndTime}
	if q := keyed(r.model); q != nil {
		q.end(how)
	}
	if first {
		r.settle(ctx, how)
	}
}

// look ends what stands idle: requests of the stream, then the span of the RPC. A given
// call is ended by whoever started it.
func (r *clientRPC) look(quiet int) (again bool) {
	q := keyed(r.model)
	if q != nil {
		q.lookIdle(r.handler.watch.timeout)
	}
	given := r.call != nil && !r.own
	if quiet > 0 && !given && r.life.expire() {
		r.settle(r.ctx, ending{code: silent, failed: r.call != nil, at: time.Now()})
	}
	return q != nil || r.life.runs()
}

// settle ends the span and records how long the RPC took.
func (r *clientRPC) settle(ctx context.Context, how ending) {
	if r.call != nil {
		r.feed(how)
	} else {
		r.finish(how)
	}
	r.handler.durations.record(ctx, how.at.Sub(r.start),
		series{method: r.method.label, server: r.to(), code: how.code, failed: how.failed})
}

// code is the code of an RPC that ended with err. Where the server ends a
// stream before the request was written, writing fails with io.EOF, and gRPC
// reports that io.EOF as the good end of the attempt. An RPC that ended well
// has its status in a trailer, and its server has read the request.
func (r *clientRPC) code(err error) codes.Code {
	if err == nil && (!r.answered.Load() || !r.streams && !r.requested.Load()) {
		return hidden
	}
	return codeOf(err)
}

// feed notes on the call how its RPC ended, for when its starter ends it, and
// gives the call back where gRPC may make another attempt. A call of our own ends.
func (r *clientRPC) feed(how ending) {
	r.call.SetAttributes(endAttributes[how.code]...)
	if r.own {
		how.finish(r.call)
		return
	}
	how.tell(r.call)
	if how.code != codes.OK {
		r.call.Release()
	}
}

// finish ends a span of our own.
func (r *clientRPC) finish(how ending) {
	if r.span.IsRecording() {
		r.span.SetAttributes(r.endAttributes(how)...) // at once: the SDK copies all of them each time
	}
	if how.failed {
		r.span.SetStatus(otelcodes.Error, "")
	}
	r.span.End(trace.WithTimestamp(how.at))
}

func (r *clientRPC) endAttributes(how ending) []attribute.KeyValue {
	attrs := make([]attribute.KeyValue, 0, 6)
	if r.addressed.Load() {
		attrs = r.server.appendTo(appendPeer(attrs, r.peer))
	}
	if how.code == silent {
		attrs = append(attrs, semconv.GenAIStreamTerminal(semconv.GenAIStreamTerminalTimeout))
	}
	return append(attrs, how.attributes()...)
}
