package genaigrpc

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	otelcodes "go.opentelemetry.io/otel/codes"
	otelprop "go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/stats"

	"github.com/genaitrace/otelgenai/genaitrace"
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
// Any other RPC gets a CLIENT span, named by the full method and without
// gen_ai attributes. Its status is Error for every code but OK; an RPC that
// this side cancelled is CANCELLED, and no error.
//
// Each attempt of an RPC that gRPC retries is an RPC here, and a call is fed by one
// after the other: the last one decides what stands on its span.
//
// gRPC reports the end of a stream once the stream was read to its end or its
// context was cancelled, or when the connection is closed. The span of a stream
// that is dropped without either never ends: cancel its context.
//
// Metric: rpc.client.call.duration, for each attempt.
func NewClientHandler(opts ...Option) stats.Handler {
	c := newConfig(opts)
	return &clientHandler{
		tracer:     c.tracer(),
		durations:  newClientDurations(c.meter()),
		propagator: c.propagator,
		tail:       c.tail,
	}
}

type clientHandler struct {
	tracer     trace.Tracer
	durations  *durations
	propagator otelprop.TextMapPropagator
	tail       TailSampler
	methods    methods
}

// A clientRPC is one attempt of an RPC between TagRPC and its end.
type clientRPC struct {
	handler *clientHandler
	method  *method
	call    *genaitrace.Call // nil: the span is our own
	span    trace.Span
	start   time.Time
	server  server
	streams bool // the client may send any number of messages

	requested, answered, ended atomic.Bool
}

func (*clientHandler) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

func (*clientHandler) HandleConn(context.Context, stats.ConnStats) {}

// TagRPC is where metadata can still be added.
func (h *clientHandler) TagRPC(ctx context.Context, info *stats.RPCTagInfo) context.Context {
	m, known := h.methods.lookup(info.FullMethodName)
	if !known {
		h.methods.remember(info.FullMethodName, m)
	}
	r := &clientRPC{handler: h, method: m, start: time.Now()}
	call := genaitrace.CallFromContext(ctx)
	if call.Watch() > 0 {
		r.call, r.span = call, call.Span()
		r.span.SetAttributes(m.attrs...)
	} else {
		ctx, r.span = h.tracer.Start(ctx, m.name,
			trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(m.attrs...), trace.WithTimestamp(r.start))
	}
	carried := ctx
	if call.Span().IsRecording() {
		carried = propagation.ContextWithCallerMark(ctx)
	}
	ctx = inject(ctx, carried, h.propagator)
	if r.call == nil && !r.span.IsRecording() && !h.durations.enabled(ctx) {
		return ctx
	}
	return context.WithValue(ctx, h, r)
}

func (h *clientHandler) HandleRPC(ctx context.Context, event stats.RPCStats) {
	switch e := event.(type) {
	case *stats.InPayload:
		return // once a token: as little as possible
	case *stats.Begin:
		if r := h.rpc(ctx); r != nil {
			r.streams = e.IsClientStream
		}
	case *stats.OutHeader:
		if r := h.rpc(ctx); r != nil {
			r.sent(e)
		}
	case *stats.OutPayload:
		if r := h.rpc(ctx); r != nil {
			r.requested.Store(true)
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

// sent notes which server the RPC goes to. A call has its server.address from
// its starter, who may know better than the name that the connection bears.
func (r *clientRPC) sent(e *stats.OutHeader) {
	r.server = serverOf(e.Authority)
	if !r.span.IsRecording() {
		return
	}
	attrs := peerAttributes(e.RemoteAddr)
	if r.call == nil {
		attrs = r.server.appendTo(attrs)
	}
	r.span.SetAttributes(attrs...)
}

func (r *clientRPC) end(ctx context.Context, e *stats.End) {
	if !r.ended.CompareAndSwap(false, true) {
		return
	}
	code := r.code(e.Error)
	// A CANCELLED that a server sends to a client that waits is a failure.
	cancelled := code == codes.Canceled && errors.Is(ctx.Err(), context.Canceled)
	failed := code != codes.OK && !cancelled
	if r.call != nil {
		r.feed(code, cancelled)
	} else {
		r.finish(code, failed, e.EndTime)
	}
	r.handler.durations.record(ctx, e.EndTime.Sub(r.start),
		series{method: r.method.label, server: r.server, code: code, failed: failed})
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
// gives the call back where gRPC may make another attempt.
func (r *clientRPC) feed(code codes.Code, cancelled bool) {
	r.call.SetAttributes(endAttributes[code]...)
	switch {
	case code == codes.OK:
		return
	case cancelled:
		r.call.SetTerminal(semconv.GenAIStreamTerminalClientCancelled)
	case code == codes.DeadlineExceeded:
		r.call.SetTerminal(semconv.GenAIStreamTerminalTimeout)
		r.call.SetErrorType(codeNames[code])
	case code != hidden:
		r.call.SetErrorType(codeNames[code])
	}
	r.call.Release()
}

// finish ends a span of our own.
func (r *clientRPC) finish(code codes.Code, failed bool, at time.Time) {
	if failed {
		r.span.SetAttributes(failureAttributes[code]...)
		r.span.SetStatus(otelcodes.Error, "")
	} else {
		r.span.SetAttributes(endAttributes[code]...)
	}
	r.span.End(trace.WithTimestamp(at))
}
