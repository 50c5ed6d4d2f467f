package genaigrpc

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	otelcodes "go.opentelemetry.io/otel/codes"
	otelprop "go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/stats"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/internal/deadline"
	"github.com/genaitrace/otelgenai/internal/fault"
	"github.com/genaitrace/otelgenai/propagation"
	"github.com/genaitrace/otelgenai/semconv"
)

// NewServerHandler returns what [google.golang.org/grpc.StatsHandler] takes. It
// gives each RPC a SERVER span, named by the full method, with
// genai.span.role=service, below the span of the caller. The handler's context
// carries the span and the time of arrival, from which an inference started
// below counts its TTFT ([genaitrace.ContextWithArrival]).
//
// The status is Error for the codes that are a server's own fault: UNKNOWN,
// DEADLINE_EXCEEDED, UNIMPLEMENTED, INTERNAL, UNAVAILABLE and DATA_LOSS.
// A client that leaves before its answer is complete is no error, whatever the
// handler then returns: the code is CANCELLED and genai.stream.terminal says
// client_cancelled. gRPC cannot tell that from a lost connection, nor from
// [google.golang.org/grpc.Server.Stop].
//
// The span of a handler that does not return ends after 15 to 30 minutes in which no
// message passed in either direction ([WithIdleTimeout]), or after 60 to 75 where it
// has sent none. It is no error then and has no status code: the handler may be at
// work. genai.stream.terminal says timeout, or how the client left where it has.
//
// A method that the server does not have names the span "grpc", so that
// strangers cannot choose names.
//
// An RPC of a [ModelCall] has the facts of its request on its span. Each request of
// a ModelStreamInfer is a SERVER span of its own below it (genai.span.role=gateway).
//
// Metrics: rpc.server.call.duration, and for the requests of a ModelStreamInfer
// genai.time_to_first_token and genai.active_requests.
func NewServerHandler(opts ...Option) stats.Handler {
	c := newConfig(opts)
	return &serverHandler{
		tracer:     c.tracer(),
		durations:  newServerDurations(c.meter()),
		propagator: c.propagator,
		public:     c.publicEndpoint,
		methods: methods{
			common: []attribute.KeyValue{semconv.GenAISpanRole(semconv.GenAISpanRoleService)},
			calls:  c.modelCalls,
		},
		calls:  c.calls(),
		words:  c.words(),
		tenant: c.tenant,
		watch:  &idleWatch{timeout: c.idleTimeout},
		faults: c.faults,
	}
}

type serverHandler struct {
	tracer     trace.Tracer
	durations  *durations
	propagator otelprop.TextMapPropagator
	public     bool
	methods    methods
	calls      *genaitrace.Tracer
	words      semconv.Vocabulary
	tenant     func(ctx context.Context, method string) string
	watch      *idleWatch
	faults     *fault.Counter
}

// A serverRPC is one RPC between TagRPC and its last event. gRPC reports the
// events that matter here from the one goroutine that serves the RPC.
type serverRPC struct {
	handler  *serverHandler
	ctx      context.Context //nolint:containedctx // what an RPC that stands idle knows of its client
	full     string
	method   *method
	model    modelRPC // reads the messages; nil where nobody does
	span     trace.Span
	start    time.Time
	answered bool // the status was handed to a stream that the client held open

	// Of a method that has not been served before:
	refusal *time.Timer

	begun   atomic.Bool
	replied atomic.Bool // an answer began
	life    life
}

// peerKey is where TagConn leaves the attributes of the peer, which are the
// same for all RPCs of a connection.
type peerKey struct{}

func (*serverHandler) TagConn(ctx context.Context, info *stats.ConnTagInfo) context.Context {
	return context.WithValue(ctx, peerKey{}, trace.WithAttributes(appendPeer(nil, info.RemoteAddr)...))
}

func (*serverHandler) HandleConn(context.Context, stats.ConnStats) {}

// TagRPC starts the span, because only the context that it returns reaches the
// method's handler.
func (h *serverHandler) TagRPC(ctx context.Context, info *stats.RPCTagInfo) context.Context {
	arrived := time.Now()
	m, served := h.methods.lookup(info.FullMethodName)
	if h.tenant != nil {
		ctx = propagation.ContextWithTenant(ctx, h.tenantOf(ctx, info.FullMethodName))
	}
	ctx, span := h.startSpan(ctx, m, arrived)
	ctx = genaitrace.ContextWithArrival(ctx, arrived)
	if !span.IsRecording() && !h.durations.enabled(ctx) {
		return ctx
	}
	r := &serverRPC{handler: h, full: info.FullMethodName, method: m, span: span, start: arrived}
	if m.model != nil {
		r.model = h.modelRPC(ctx, r)
	}
	r.ctx = context.WithValue(ctx, h, r)
	if !served {
		r.refusal = time.AfterFunc(refusalGrace, func() { r.refuse(r.start) })
	}
	return r.ctx
}

func (h *serverHandler) startSpan(ctx context.Context, m *method, at time.Time) (context.Context, trace.Span) {
	opts := make([]trace.SpanStartOption, 0, 6)
	opts = append(opts, trace.WithSpanKind(trace.SpanKindServer), m.start, trace.WithTimestamp(at))
	if peer, ok := ctx.Value(peerKey{}).(trace.SpanStartOption); ok {
		opts = append(opts, peer)
	}

	if sc := trace.SpanContextFromContext(ctx); sc.IsValid() && !sc.IsRemote() {
		// A stats handler before this one started a span of its own.
		if m.model != nil {
			opts = append(opts, trace.WithAttributes(receivedAttributes(ctx, ctx)...))
		}
		return h.tracer.Start(ctx, m.name, opts...)
	}
	remote := h.extract(ctx)
	if m.model != nil {
		opts = append(opts, trace.WithAttributes(receivedAttributes(ctx, remote)...))
	}
	if links := propagation.Links(remote); len(links) > 0 {
		opts = append(opts, trace.WithLinks(links...))
	}
	if !h.public {
		return h.tracer.Start(remote, m.name, opts...)
	}
	opts = append(opts, trace.WithNewRoot())
	if sc := trace.SpanContextFromContext(remote); sc.IsValid() {
		opts = append(opts, trace.WithLinks(trace.Link{SpanContext: sc}))
	}
	return h.tracer.Start(ctx, m.name, opts...)
}

func (h *serverHandler) HandleRPC(ctx context.Context, event stats.RPCStats) {
	switch e := event.(type) {
	case *stats.InPayload:
		if r := h.rpc(ctx); r != nil {
			r.request(e)
		}
	case *stats.OutPayload: // once a token
		if r := h.rpc(ctx); r != nil {
			r.reply(e)
		}
	case *stats.Begin:
		if r := h.rpc(ctx); r != nil {
			r.begin()
		}
	case *stats.OutTrailer:
		if r := h.rpc(ctx); r != nil {
			r.answer()
		}
	case *stats.End:
		if r := h.rpc(ctx); r != nil {
			r.end(ctx, e)
		}
	}
}

func (h *serverHandler) rpc(ctx context.Context) *serverRPC {
	r, _ := ctx.Value(h).(*serverRPC)
	return r
}

// begin notes that the server has the method, or a handler for unknown ones.
func (r *serverRPC) begin() {
	r.begun.Store(true)
	if r.refusal != nil {
		r.refusal.Stop()
		r.handler.methods.remember(r.full, r.method)
	}
	r.handler.watch.add(&r.life, r)
}

func (r *serverRPC) request(e *stats.InPayload) {
	r.life.move()
	if r.model != nil {
		r.model.sent(e.Payload, e.RecvTime)
	}
}

func (r *serverRPC) reply(e *stats.OutPayload) {
	r.life.move()
	if !r.replied.Load() {
		r.replied.Store(true)
	}
	if r.model != nil {
		r.model.answered(e.Payload, e.SentTime)
	}
}

// answer notes that the status of the RPC went out.
func (r *serverRPC) answer() {
	r.answered = true
	if r.begun.Load() {
		return
	}
	if r.refusal != nil {
		r.refusal.Stop()
	}
	r.refuse(time.Now())
}

// refusalGrace is how long to wait for any event of an RPC of an unknown
// method. gRPC begins or refuses an RPC at once.
const refusalGrace = 10 * time.Second

// refuse ends an RPC whose method the server does not have. gRPC sends neither
// Begin nor End for it, only the trailer of its refusal, and not even that
// where the client has left already.
func (r *serverRPC) refuse(at time.Time) {
	if r.begun.Load() {
		return
	}
	if first, _ := r.life.end(); !first {
		return
	}
	r.span.SetName(otherName)
	r.span.SetAttributes(unknownMethod(r.full)...)
	r.span.SetAttributes(failureAttributes[codes.Unimplemented]...)
	r.span.SetStatus(otelcodes.Error, "")
	r.span.End(trace.WithTimestamp(at))
	r.handler.durations.record(context.Background(), at.Sub(r.start),
		series{method: otherMethod, code: codes.Unimplemented, failed: true})
}

// end ends an RPC that had a handler.
func (r *serverRPC) end(ctx context.Context, e *stats.End) {
	r.handler.watch.remove(&r.life)
	first, late := r.life.end()
	if late {
		r.handler.faults.Count(ctx, semconv.GenAIFaultLate, endedLate)
	}
	if !first && !late {
		return
	}
	code := codeOf(e.Error)
	if !r.answered {
		code = unanswered(ctx, e.Error)
	}
	how := ending{
		code: code, failed: code == unwound || isServerError(code), at: e.EndTime,
		cancelled: code == codes.Canceled && !r.answered,
	}
	if q := keyed(r.model); q != nil {
		q.end(how)
	}
	if first {
		r.settle(ctx, how)
	}
}

// look ends what stands idle: requests of the stream, then the span of an RPC that has
// begun to answer, whose client is gone, or that has been silent for longer.
func (r *serverRPC) look(quiet int) (again bool) {
	q := keyed(r.model)
	if q != nil {
		q.lookIdle(r.handler.watch.timeout)
	}
	gone := r.ctx.Err() != nil
	if quiet >= unansweredLooks || quiet > 0 && (gone || r.replied.Load()) {
		r.expire(gone)
	}
	return q != nil || r.life.runs()
}

// expire ends the span of an RPC that goes on, as far as this side knows.
func (r *serverRPC) expire(gone bool) {
	if !r.life.expire() {
		return
	}
	how := ending{code: silent, at: time.Now()}
	if gone {
		how.code = unanswered(r.ctx, nil)
		how.failed, how.cancelled = isServerError(how.code), how.code == codes.Canceled
	}
	r.settle(r.ctx, how)
}

// settle ends the span and records how long the RPC took.
func (r *serverRPC) settle(ctx context.Context, how ending) {
	switch {
	case how.cancelled:
		r.span.SetAttributes(semconv.GenAIStreamTerminal(semconv.GenAIStreamTerminalClientCancelled))
	case how.code == silent, how.code == codes.DeadlineExceeded:
		r.span.SetAttributes(semconv.GenAIStreamTerminal(semconv.GenAIStreamTerminalTimeout))
	}
	r.span.SetAttributes(how.attributes()...)
	if how.failed {
		r.span.SetStatus(otelcodes.Error, "")
	}
	r.span.End(trace.WithTimestamp(how.at))
	r.handler.durations.record(ctx, how.at.Sub(r.start),
		series{method: r.method.label, code: how.code, failed: how.failed})
}

// unanswered is the code of what ended an RPC whose status never went out,
// whatever the handler returned. The context of a stream is done once its
// status went out, so that it tells of the client only where none did.
func unanswered(ctx context.Context, handlers error) codes.Code {
	switch err := ctx.Err(); {
	case errors.Is(err, context.DeadlineExceeded), err != nil && deadline.Reached(ctx):
		return codes.DeadlineExceeded
	case err != nil:
		return codes.Canceled
	case handlers == nil:
		return unwound
	default:
		return codeOf(handlers)
	}
}
