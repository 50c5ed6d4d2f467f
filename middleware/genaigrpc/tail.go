package genaigrpc

import (
	"context"

	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/stats"

	"github.com/genaitrace/otelgenai/middleware/internal/tail"
	"github.com/genaitrace/otelgenai/propagation"
)

// A TailSampler decides about traces once they have happened. *sampling.Tail is one.
// Its methods are called by many goroutines. A panic of theirs is counted in
// genai.telemetry.faults and goes no further.
type TailSampler interface {
	// Promise is what others are told of the span of ctx: sampled where the trace is
	// going to be kept. failed says that a response is a failure of the server.
	Promise(ctx context.Context, failed bool) trace.SpanContext
	// CalleeResponded takes what the response to a request made with ctx says of the
	// span that served it.
	CalleeResponded(ctx context.Context, callee trace.SpanContext)
}

// WithTailSampler makes the client handler tell s what the trailers of servers say of
// their traces, so that a failure which a server handled keeps the caller's part too, and
// the servers what is certain of the trace since the span of the call began.
// Only connections to services of one's own should have it. Server handlers ignore it:
// see [TailServerOptions]. Default, and where s is nil: trailers are not read.
func WithTailSampler(s TailSampler) Option {
	return optionFunc(func(c config) config {
		c.tail = s
		return c
	})
}

// TailServerOptions are interceptors by which a server tells its callers, in the trailers
// traceresponse and server-timing of each RPC, whether its trace is kept (see
// [propagation.InjectResponse]). They are needed beside a stats handler, which makes the
// span but can no longer write a trailer when it hears of the end. Give them before
// other interceptors, so that these have had their say on the error; not to servers
// that strangers can reach. A panic of s is counted with the global meter provider.
//
//	grpc.NewServer(append(genaigrpc.TailServerOptions(tail),
//		grpc.StatsHandler(genaigrpc.NewServerHandler()))...)
func TailServerOptions(s TailSampler) []grpc.ServerOption {
	if s == nil {
		return nil
	}
	s = tail.Guard(s, globalFaults())
	unary := func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		resp, err := handler(ctx, req)
		if md := tell(ctx, s, err); md != nil {
			_ = grpc.SetTrailer(ctx, md) // the RPC goes on without
		}
		return resp, err
	}
	stream := func(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		err := handler(srv, ss)
		if md := tell(ss.Context(), s, err); md != nil {
			ss.SetTrailer(md)
		}
		return err
	}
	return []grpc.ServerOption{grpc.ChainUnaryInterceptor(unary), grpc.ChainStreamInterceptor(stream)}
}

// tell returns the trailer of an RPC whose handler has returned.
func tell(ctx context.Context, s TailSampler, err error) metadata.MD {
	if ctx.Err() != nil {
		return nil // nobody is there to hear it
	}
	sc := s.Promise(ctx, isServerError(codeOf(err)))
	if !sc.IsValid() {
		return nil
	}
	md := metadata.MD{}
	propagation.InjectResponse(trace.ContextWithSpanContext(ctx, sc), propagation.GRPCMetadata(md))
	return md
}

// listen tells the tail sampler what a trailer says.
func (h *clientHandler) listen(ctx context.Context, e *stats.InTrailer) {
	if h.tail == nil {
		return
	}
	if callee := propagation.ReadResponse(propagation.GRPCMetadata(e.Trailer)).SpanContext; callee.IsValid() {
		h.tail.CalleeResponded(ctx, callee)
	}
}

// TraceResponseServerOptions are interceptors by which a server tells its callers,
// in the trailer of each RPC, which span served it and whether it is sampled, as
// genaihttp.WithTraceResponse does over HTTP. It is a trailer and no header, because a
// header makes an RPC that fails at once look answered, and clients do not retry
// that. The trace ID goes to whoever called, strangers included.
//
//	grpc.NewServer(append(genaigrpc.TraceResponseServerOptions(),
//		grpc.StatsHandler(genaigrpc.NewServerHandler()))...)
//
// [TailServerOptions] tell it too, with what becomes of the trace: use one of them.
func TraceResponseServerOptions() []grpc.ServerOption { return TailServerOptions(spanAsItIs{}) }

// spanAsItIs tells of a span what its context says.
type spanAsItIs struct{}

func (spanAsItIs) Promise(ctx context.Context, _ bool) trace.SpanContext {
	return trace.SpanContextFromContext(ctx)
}

func (spanAsItIs) CalleeResponded(context.Context, trace.SpanContext) {}
