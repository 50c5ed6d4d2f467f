package genaigrpc_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/baggage"
	otelcodes "go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/middleware/genaigrpc"
	"github.com/genaitrace/otelgenai/propagation"
	"github.com/genaitrace/otelgenai/semconv"
)

// served connects s with the server handler alone.
func served(t *testing.T, o *telemetry, s service, opts ...grpc.ServerOption) link {
	t.Helper()
	return connect(t, s, append(opts, grpc.StatsHandler(genaigrpc.NewServerHandler(o.options()...))), nil)
}

func TestAClientThatLeavesMidStreamIsNoError(t *testing.T) {
	for name, answer := range map[string]error{
		"the handler returns the cancellation": context.Canceled,
		"the handler calls it its own failure": status.Error(codes.Internal, "send failed"),
		"the handler notices nothing":          nil,
	} {
		t.Run(name, func(t *testing.T) {
			o := newTelemetry(t)
			l := served(t, o, service{generate: func(prompt string, stream grpc.ServerStream) error {
				_ = once(prompt, stream)
				return answer
			}})
			ctx, leave := context.WithCancel(context.Background())
			stream, err := generate(ctx, t, l.conn)
			require.NoError(t, err)
			require.NoError(t, stream.RecvMsg(new(wrapperspb.StringValue)))
			leave()
			l.stop()

			span := o.server()
			assert.Equal(t, otelcodes.Unset, span.Status().Code)
			assert.Equal(t, "CANCELLED", attr(span, "rpc.response.status_code"))
			assert.Equal(t, string(semconv.GenAIStreamTerminalClientCancelled), attr(span, semconv.GenAIStreamTerminalKey))
			assert.Nil(t, attr(span, "error.type"))
		})
	}
}

func TestAServerThatStopsMidStreamEndsItsSpans(t *testing.T) {
	o := newTelemetry(t)
	l := traced(t, o, service{generate: once})
	stream, err := generate(context.Background(), t, l.conn)
	require.NoError(t, err)
	require.NoError(t, stream.RecvMsg(new(wrapperspb.StringValue)))
	l.server.Stop()
	_, err = read(stream)
	require.Equal(t, codes.Unavailable, status.Code(err))
	l.stop()

	assert.Equal(t, otelcodes.Unset, o.server().Status().Code)
	client := o.client()
	assert.Equal(t, otelcodes.Error, client.Status().Code)
	assert.Equal(t, "UNAVAILABLE", attr(client, "error.type"))
}

func TestAHandlerThatCancelsWhatTheClientWaitsForSaysNothingOfTheClient(t *testing.T) {
	o := newTelemetry(t)
	l := served(t, o, service{generate: func(string, grpc.ServerStream) error { return context.Canceled }})
	stream, err := generate(context.Background(), t, l.conn)
	require.NoError(t, err)
	_, err = read(stream)
	require.Equal(t, codes.Canceled, status.Code(err))
	l.stop()

	span := o.server()
	assert.Equal(t, otelcodes.Unset, span.Status().Code)
	assert.Equal(t, "CANCELLED", attr(span, "rpc.response.status_code"))
	assert.Nil(t, attr(span, semconv.GenAIStreamTerminalKey))
}

func TestADeadlineThatPassesEndsTheServersSpanAsATimeout(t *testing.T) {
	for name, answer := range map[string]error{
		"the handler returns it":               status.FromContextError(context.DeadlineExceeded).Err(),
		"the handler calls it its own failure": status.Error(codes.Internal, "send failed"),
		"the handler notices nothing":          nil,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newTelemetry(t)
				h := genaigrpc.NewServerHandler(o.options()...)
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second) // grpc-timeout
				defer cancel()
				ctx = h.TagRPC(ctx, &stats.RPCTagInfo{FullMethodName: generateMethod})
				h.HandleRPC(ctx, &stats.Begin{})
				<-ctx.Done()
				h.HandleRPC(ctx, &stats.End{EndTime: time.Now(), Error: answer})

				span := o.server()
				assert.Equal(t, otelcodes.Error, span.Status().Code)
				assert.Equal(t, "DEADLINE_EXCEEDED", attr(span, "rpc.response.status_code"))
				assert.Equal(t, "DEADLINE_EXCEEDED", attr(span, "error.type"))
				assert.Equal(t, string(semconv.GenAIStreamTerminalTimeout), attr(span, semconv.GenAIStreamTerminalKey))
				assert.Equal(t, 2*time.Second, span.EndTime().Sub(span.StartTime()))
			})
		})
	}
}

func TestAPanicThatAnInterceptorRecoversIsAnInternalError(t *testing.T) {
	o := newTelemetry(t)
	l := served(t, o, service{generate: func(string, grpc.ServerStream) error { panic("no model") }},
		grpc.StreamInterceptor(func(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) (err error) {
			defer func() {
				if recover() != nil {
					err = status.Error(codes.Internal, "panic: no model")
				}
			}()
			return next(srv, stream)
		}))
	stream, err := generate(context.Background(), t, l.conn)
	require.NoError(t, err)
	_, err = read(stream)
	require.Equal(t, codes.Internal, status.Code(err))
	l.stop()

	span := o.server()
	assert.Equal(t, otelcodes.Error, span.Status().Code)
	assert.Empty(t, span.Status().Description, "the text of an error may be the user's")
	assert.Equal(t, "INTERNAL", attr(span, "error.type"))
}

// A panic that nobody recovers ends the process. Goexit unwinds the handler in
// the same way, and lets the test go on.
func TestAHandlerThatUnwindsEndsItsSpanAsAnError(t *testing.T) {
	o := newTelemetry(t)
	l := served(t, o, service{generate: func(string, grpc.ServerStream) error {
		runtime.Goexit()
		return nil
	}})
	ctx, cancel := context.WithCancel(context.Background())
	_, err := generate(ctx, t, l.conn)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return len(o.spans.Ended()) == 1 }, 10*time.Second, time.Millisecond)
	cancel()
	l.stop()

	span := o.server()
	assert.Equal(t, otelcodes.Error, span.Status().Code)
	assert.Equal(t, "panic", attr(span, "error.type"))
	assert.Nil(t, attr(span, "rpc.response.status_code"), "none was sent")
}

func TestAMethodThatTheServerDoesNotHave(t *testing.T) {
	unknown := grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		return sendText(stream, "forwarded")
	})
	for name, tc := range map[string]struct {
		method string
		opts   []grpc.ServerOption
		span   string // "" where gRPC tells no handler
		label  string
		code   codes.Code
	}{
		"unknown method":                 {method: "/inference.v1.Inference/Nope", span: "grpc", label: "_OTHER", code: codes.Unimplemented},
		"unknown service":                {method: "/nope.v1.Nope/Nope", span: "grpc", label: "_OTHER", code: codes.Unimplemented},
		"not a method":                   {method: "nope", code: codes.Unimplemented},
		"a handler for unknown methods":  {method: "/nope.v1.Nope/Nope", opts: []grpc.ServerOption{unknown}, span: "nope.v1.Nope/Nope", label: "nope.v1.Nope/Nope"},
		"not a method, a handler for it": {method: "nope", opts: []grpc.ServerOption{unknown}, code: codes.Unimplemented},
	} {
		t.Run(name, func(t *testing.T) {
			o := newTelemetry(t)
			l := served(t, o, service{}, tc.opts...)
			for range 3 {
				out := new(wrapperspb.StringValue)
				err := l.conn.Invoke(context.Background(), tc.method, wrapperspb.String("hi"), out)
				require.Equal(t, tc.code, status.Code(err), "%v", err)
			}
			l.stop()

			spans := o.ended()
			if tc.span == "" {
				assert.Empty(t, spans)
				return
			}
			require.Len(t, spans, 3)
			for _, span := range spans {
				assert.Equal(t, tc.span, span.Name())
				assert.Equal(t, tc.label, attr(span, "rpc.method"))
				if tc.code == codes.OK {
					assert.Equal(t, otelcodes.Unset, span.Status().Code)
					continue
				}
				assert.Equal(t, otelcodes.Error, span.Status().Code)
				assert.Equal(t, "UNIMPLEMENTED", attr(span, "rpc.response.status_code"))
				assert.Equal(t, strings.TrimPrefix(tc.method, "/"), attr(span, "rpc.method_original"))
			}
			points := o.points("rpc.server.call.duration")
			require.Len(t, points, 1)
			assert.EqualValues(t, 3, points[0].Count)
		})
	}
}

// gRPC reports nothing after InHeader where the client of an unknown method has
// left before the refusal is written.
func TestAnUnknownMethodWhoseClientLeftEndsItsSpan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newTelemetry(t)
		h := genaigrpc.NewServerHandler(o.options()...)
		ctx := h.TagRPC(t.Context(), &stats.RPCTagInfo{FullMethodName: "/nope.v1.Nope/Nope"})
		h.HandleRPC(ctx, &stats.InHeader{FullMethod: "/nope.v1.Nope/Nope"})
		time.Sleep(time.Minute)

		span := o.only("grpc", trace.SpanKindServer)
		assert.Equal(t, "UNIMPLEMENTED", attr(span, "rpc.response.status_code"))
		assert.Zero(t, span.EndTime().Sub(span.StartTime()))
	})
}

func TestALongRPCOutlivesTheWaitForARefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newTelemetry(t)
		l := served(t, o, service{generate: func(string, grpc.ServerStream) error {
			time.Sleep(time.Hour)
			return nil
		}})
		stream, err := generate(context.Background(), t, l.conn)
		require.NoError(t, err)
		_, err = read(stream)
		require.NoError(t, err)
		l.stop()
		assert.Equal(t, time.Hour, o.server().EndTime().Sub(o.server().StartTime()))
	})
}

func TestNamesAreBoundedWhereAProxyForwardsAnyMethod(t *testing.T) {
	o := newTelemetry(t)
	h := genaigrpc.NewServerHandler(o.options()...)
	serve := func(full string) {
		ctx := h.TagRPC(t.Context(), &stats.RPCTagInfo{FullMethodName: full})
		h.HandleRPC(ctx, &stats.Begin{BeginTime: time.Now()})
		h.HandleRPC(ctx, &stats.OutTrailer{})
		h.HandleRPC(ctx, &stats.End{EndTime: time.Now()})
	}
	const n = 1500
	for i := range n {
		serve(fmt.Sprintf("/s/M%d", i))
	}
	serve("/s/M0") // is still known

	names, originals := map[string]int{}, 0
	for _, s := range o.ended() {
		names[s.Name()]++
		if attr(s, "rpc.method") == "_OTHER" {
			originals++
			assert.NotNil(t, attr(s, "rpc.method_original"))
		}
	}
	assert.Len(t, names, 1001)
	assert.Equal(t, 500, names["grpc"])
	assert.Equal(t, 500, originals)
	assert.Equal(t, 2, names["s/M0"])
	assert.Len(t, o.points("rpc.server.call.duration"), 1001)
}

func TestNamesFromTheWireAreBoundedAndValid(t *testing.T) {
	o := newTelemetry(t)
	h := genaigrpc.NewServerHandler(o.options()...)
	ctx := h.TagRPC(t.Context(), &stats.RPCTagInfo{FullMethodName: "/s/" + strings.Repeat("é\xff", 200)})
	h.HandleRPC(ctx, &stats.Begin{BeginTime: time.Now()})
	h.HandleRPC(ctx, &stats.End{EndTime: time.Now()})
	for _, s := range o.ended() {
		assert.LessOrEqual(t, len([]rune(s.Name())), 256)
		assert.True(t, strings.HasPrefix(s.Name(), "s/é\uFFFD"), s.Name())
		assert.NotContains(t, s.Name(), "\xff")
	}
}

func TestAPublicEndpointLinksToItsCaller(t *testing.T) {
	o := newTelemetry(t)
	bag, err := baggage.Parse("tenant=evil")
	require.NoError(t, err)
	seen := make(chan int, 1)
	l := connect(t, service{generate: func(_ string, stream grpc.ServerStream) error {
		seen <- baggage.FromContext(stream.Context()).Len()
		return nil
	}}, []grpc.ServerOption{grpc.StatsHandler(genaigrpc.NewServerHandler(o.options(genaigrpc.WithPublicEndpoint())...))}, nil)

	md := metadata.MD{}
	propagation.New().Inject(propagation.ContextWithCallerMark(baggage.ContextWithBaggage(inbound(), bag)), propagation.GRPCMetadata(md))
	stream, err := generate(metadata.NewOutgoingContext(context.Background(), md), t, l.conn)
	require.NoError(t, err)
	_, err = read(stream)
	require.NoError(t, err)
	l.stop()

	span := o.server()
	assert.False(t, span.Parent().IsValid())
	require.Len(t, span.Links(), 1)
	assert.Equal(t, "00f067aa0ba902b7", span.Links()[0].SpanContext.SpanID().String())
	assert.NotEqual(t, span.Links()[0].SpanContext.TraceID(), span.SpanContext().TraceID())
	assert.False(t, propagation.HasCallerMark(span.SpanContext()), "a stranger cannot say who reports usage")
	assert.Zero(t, <-seen, "baggage members")
}

func TestAPublicEndpointWithoutACallerHasNoLink(t *testing.T) {
	o := newTelemetry(t)
	l := connect(t, service{generate: three},
		[]grpc.ServerOption{grpc.StatsHandler(genaigrpc.NewServerHandler(o.options(genaigrpc.WithPublicEndpoint())...))}, nil)
	stream, err := generate(context.Background(), t, l.conn)
	require.NoError(t, err)
	_, err = read(stream)
	require.NoError(t, err)
	l.stop()
	assert.Empty(t, o.server().Links())
}

// A bridge may read several formats, of which one is the parent.
func TestContradictoryFormatsBecomeALink(t *testing.T) {
	o := newTelemetry(t)
	bridge := propagation.New(propagation.WithFormats(propagation.B3))
	l := connect(t, service{generate: three},
		[]grpc.ServerOption{grpc.StatsHandler(genaigrpc.NewServerHandler(o.options(genaigrpc.WithPropagators(bridge))...))}, nil)
	md := metadata.MD{}
	propagation.New().Inject(inbound(), propagation.GRPCMetadata(md))
	md.Set("b3", "11111111111111111111111111111111-2222222222222222-1")
	stream, err := generate(metadata.NewOutgoingContext(context.Background(), md), t, l.conn)
	require.NoError(t, err)
	_, err = read(stream)
	require.NoError(t, err)
	l.stop()
	span := o.server()
	assert.Equal(t, trace.SpanContextFromContext(inbound()).SpanID(), span.Parent().SpanID())
	require.Len(t, span.Links(), 1)
	assert.Equal(t, "2222222222222222", span.Links()[0].SpanContext.SpanID().String())
}

// An outerHandler stands for another instrumentation of the same server.
type outerHandler struct {
	stats.Handler
	tracer trace.Tracer
}

func (h outerHandler) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (h outerHandler) HandleConn(context.Context, stats.ConnStats)                       {}

func (h outerHandler) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context {
	md, _ := metadata.FromIncomingContext(ctx)
	ctx, _ = h.tracer.Start(propagation.W3C.Extract(ctx, propagation.GRPCMetadata(md)), "outer")
	return ctx
}

func (h outerHandler) HandleRPC(ctx context.Context, s stats.RPCStats) {
	if _, ok := s.(*stats.End); ok {
		trace.SpanFromContext(ctx).End()
	}
}

func TestBehindAnotherStatsHandlerTheSpanIsItsChild(t *testing.T) {
	o := newTelemetry(t)
	h := genaigrpc.NewServerHandler(o.options()...)
	outer := outerHandler{tracer: o.tp.Tracer("other")}

	md := metadata.MD{}
	propagation.New().Inject(inbound(), propagation.GRPCMetadata(md))
	ctx := metadata.NewIncomingContext(t.Context(), md)
	outerCtx := outer.TagRPC(ctx, &stats.RPCTagInfo{FullMethodName: generateMethod})
	ctx = h.TagRPC(outerCtx, &stats.RPCTagInfo{FullMethodName: generateMethod})
	h.HandleRPC(ctx, &stats.Begin{})
	h.HandleRPC(ctx, &stats.OutTrailer{})
	h.HandleRPC(ctx, &stats.End{EndTime: time.Now()})
	outer.HandleRPC(outerCtx, &stats.End{})

	parent := o.only("outer", trace.SpanKindInternal)
	assert.Equal(t, parent.SpanContext().SpanID(), o.server().Parent().SpanID())
}

func TestTTFTCountsFromTheArrivalAtTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newTelemetry(t)
		tr := o.tracer()
		l := served(t, o, service{generate: func(_ string, stream grpc.ServerStream) error {
			time.Sleep(30 * time.Millisecond) // authentication, say
			ctx, inf := tr.StartInference(stream.Context(), genaitrace.Request{Model: "m", Stream: true})
			_, p := inf.StartPrefill(ctx, genaitrace.Prompt{})
			time.Sleep(20 * time.Millisecond)
			p.End()
			_, d := inf.StartDecode(ctx)
			d.Token()
			err := sendText(stream, "a")
			d.End()
			inf.End()
			time.Sleep(7 * time.Millisecond)
			return err
		}})
		stream, err := generate(context.Background(), t, l.conn)
		require.NoError(t, err)
		_, err = read(stream)
		require.NoError(t, err)
		l.stop()

		server := o.server()
		inference := o.only("inference.generate", trace.SpanKindInternal)
		assert.Equal(t, 50.0, attr(inference, semconv.LLMTTFTMsKey))
		assert.Equal(t, 30*time.Millisecond, inference.StartTime().Sub(server.StartTime()))
		assert.Equal(t, 57*time.Millisecond, server.EndTime().Sub(server.StartTime()))

		points := o.points("gen_ai.server.time_to_first_token")
		require.Len(t, points, 1)
		assert.Equal(t, 0.05, points[0].Sum)
		points = o.points("rpc.server.call.duration")
		require.Len(t, points, 1)
		assert.Equal(t, 0.057, points[0].Sum)
	})
}

func TestAnUnsampledRPCIsStillMeasuredAndKnowsItsArrival(t *testing.T) {
	o := newTelemetry(t, sdktrace.WithSampler(sdktrace.NeverSample()))
	l := traced(t, o, service{generate: func(_ string, stream grpc.ServerStream) error {
		_, ok := genaitrace.ArrivalFromContext(stream.Context())
		if !ok {
			return errors.New("no arrival time")
		}
		return nil
	}})
	stream, err := generate(context.Background(), t, l.conn)
	require.NoError(t, err)
	_, err = read(stream)
	require.NoError(t, err)
	l.stop()

	assert.Empty(t, o.ended())
	for _, name := range []string{"rpc.server.call.duration", "rpc.client.call.duration"} {
		points := o.points(name)
		require.Len(t, points, 1, name)
		assert.EqualValues(t, 1, points[0].Count)
	}
}
