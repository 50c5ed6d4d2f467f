package genaigrpc_test

import (
	"context"
	"io"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/genaitrace/otelgenai/middleware/genaigrpc"
)

// BenchmarkStream500 is a stream of 500 messages in memory, read to its end:
// without stats handlers, with one on each side that records, the same where the
// RPC is a model call whose every message is a chunk, one on each side where neither
// span nor metric records, and a handler that is as short as it can be and makes the
// same spans and durations. "empty" has handlers that do nothing: what gRPC itself
// pays to have any, two allocations a message.
func BenchmarkStream500(b *testing.B) {
	message := wrapperspb.String("token")
	s := service{generate: func(_ string, stream grpc.ServerStream) error {
		for range 500 {
			if err := stream.SendMsg(message); err != nil {
				return err
			}
		}
		return nil
	}}
	benchmark(b, s, genaigrpc.ModelCall{Method: generateMethod}, func(l link) error {
		stream, err := generate(context.Background(), b, l.conn)
		out := new(wrapperspb.StringValue)
		for err == nil {
			err = stream.RecvMsg(out)
		}
		if err != io.EOF {
			return err
		}
		return nil
	})
}

// BenchmarkUnary is an RPC with one answer, as BenchmarkStream500.
func BenchmarkUnary(b *testing.B) {
	s := service{complete: func(context.Context, string) (string, error) { return "done", nil }}
	benchmark(b, s, genaigrpc.ModelCall{Method: completeMethod}, func(l link) error {
		_, err := complete(context.Background(), l.conn)
		return err
	})
}

func benchmark(b *testing.B, s service, model genaigrpc.ModelCall, call func(link) error) {
	recording := func() []genaigrpc.Option {
		return []genaigrpc.Option{
			genaigrpc.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(discard{}))),
			genaigrpc.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))),
		}
	}
	for _, bm := range []struct {
		name     string
		handlers func() (server, client stats.Handler)
	}{
		{"bare", nil},
		{"empty", func() (server, client stats.Handler) { return emptyHandler{}, emptyHandler{} }},
		{"handwritten", func() (server, client stats.Handler) { return newHandwritten(), newHandwritten() }},
		{"otelgenai", handlers(recording()...)},
		{"modelcall", handlers(append(recording(), genaigrpc.WithModelCall(model))...)},
		{"notrecording", handlers(
			genaigrpc.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample()))),
			genaigrpc.WithMeterProvider(metricnoop.NewMeterProvider()),
		)},
	} {
		b.Run(bm.name, func(b *testing.B) {
			var server []grpc.ServerOption
			var client []grpc.DialOption
			if bm.handlers != nil {
				s, c := bm.handlers()
				server = append(server, grpc.StatsHandler(s))
				client = append(client, grpc.WithStatsHandler(c))
			}
			l := connect(b, s, server, client)
			b.ReportAllocs()
			for b.Loop() {
				require.NoError(b, call(l))
			}
		})
	}
}

// A handwritten handler is the least that makes one span and one duration of an RPC
// on each side, and passes the trace on. It has no idea of how an RPC ended.
type handwritten struct {
	emptyHandler

	tracer   trace.Tracer
	duration metric.Float64Histogram
}

func newHandwritten() handwritten {
	mp := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))
	duration, _ := mp.Meter("handwritten").Float64Histogram("rpc.call.duration")
	return handwritten{
		tracer:   sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(discard{})).Tracer("handwritten"),
		duration: duration,
	}
}

func (h handwritten) TagRPC(ctx context.Context, info *stats.RPCTagInfo) context.Context {
	md, incoming := metadata.FromIncomingContext(ctx)
	if incoming {
		ctx = propagation.TraceContext{}.Extract(ctx, metadataCarrier(md))
	}
	ctx, _ = h.tracer.Start(ctx, info.FullMethodName, trace.WithAttributes(
		attribute.String("rpc.system.name", "grpc"), attribute.String("rpc.method", info.FullMethodName)))
	if incoming {
		return ctx
	}
	md, _ = metadata.FromOutgoingContext(ctx)
	if md == nil {
		md = metadata.MD{}
	}
	propagation.TraceContext{}.Inject(ctx, metadataCarrier(md))
	return metadata.NewOutgoingContext(ctx, md)
}

func (h handwritten) HandleRPC(ctx context.Context, event stats.RPCStats) {
	end, ok := event.(*stats.End)
	if !ok {
		return
	}
	span := trace.SpanFromContext(ctx)
	span.SetAttributes(attribute.String("rpc.response.status_code", status.Code(end.Error).String()))
	span.End()
	h.duration.Record(ctx, end.EndTime.Sub(end.BeginTime).Seconds(), metric.WithAttributes(
		attribute.String("rpc.system.name", "grpc"), attribute.String("rpc.response.status_code", status.Code(end.Error).String())))
}

type metadataCarrier metadata.MD

func (c metadataCarrier) Get(key string) string {
	if values := c[key]; len(values) > 0 {
		return values[0]
	}
	return ""
}

func (c metadataCarrier) Set(key, value string) { c[key] = []string{value} }

func (c metadataCarrier) Keys() []string { return slices.Collect(maps.Keys(c)) }

func handlers(opts ...genaigrpc.Option) func() (server, client stats.Handler) {
	return func() (server, client stats.Handler) {
		return genaigrpc.NewServerHandler(opts...), genaigrpc.NewClientHandler(opts...)
	}
}

type emptyHandler struct{}

func (emptyHandler) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (emptyHandler) HandleRPC(context.Context, stats.RPCStats)                         {}
func (emptyHandler) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (emptyHandler) HandleConn(context.Context, stats.ConnStats)                       {}

// A discard is a processor that keeps nothing.
type discard struct{}

func (discard) OnStart(context.Context, sdktrace.ReadWriteSpan) {}
func (discard) OnEnd(sdktrace.ReadOnlySpan)                     {}
func (discard) Shutdown(context.Context) error                  { return nil }
func (discard) ForceFlush(context.Context) error                { return nil }

func TestAMessageAllocatesNothing(t *testing.T) {
	o := newTelemetry(t)
	model := genaigrpc.WithModelCall(genaigrpc.ModelCall{Method: generateMethod})
	for name, h := range map[string]stats.Handler{
		"server":               genaigrpc.NewServerHandler(o.options()...),
		"client":               genaigrpc.NewClientHandler(o.options()...),
		"server, a model call": genaigrpc.NewServerHandler(o.options(model)...),
		"client, a model call": genaigrpc.NewClientHandler(o.options(model)...),
	} {
		ctx := h.TagRPC(t.Context(), &stats.RPCTagInfo{FullMethodName: generateMethod})
		h.HandleRPC(ctx, &stats.Begin{})
		in, out := &stats.InPayload{}, &stats.OutPayload{}
		assert.Zero(t, testing.AllocsPerRun(100, func() {
			h.HandleRPC(ctx, in)
			h.HandleRPC(ctx, out)
		}), name)
	}
}

// BenchmarkMessage is what the client handler does with one message of an answer:
// of an RPC that is no model call, of one that is, and of Triton's stream of tokens,
// whose message is read by the names of its fields.
func BenchmarkMessage(b *testing.B) {
	p := triton(b)
	token := p.streamed(b, textAnswer("a", "token", false))
	for _, bm := range []struct {
		name, method string
		message      any
	}{
		{"plain", completeMethod, token},
		{"modelcall", generateMethod, token},
		{"triton", modelStreamInfer, token},
	} {
		b.Run(bm.name, func(b *testing.B) {
			h := genaigrpc.NewClientHandler(
				genaigrpc.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(discard{}))),
				genaigrpc.WithMeterProvider(metricnoop.NewMeterProvider()),
				genaigrpc.WithModelCall(genaigrpc.ModelCall{Method: generateMethod}))
			ctx := h.TagRPC(b.Context(), &stats.RPCTagInfo{FullMethodName: bm.method})
			h.HandleRPC(ctx, &stats.Begin{Client: true, IsServerStream: true})
			h.HandleRPC(ctx, &stats.OutPayload{Client: true, SentTime: time.Now(), Payload: p.request(b, `{"id": "a"}`)})
			in := &stats.InPayload{Client: true, Payload: bm.message, RecvTime: time.Now()}
			b.ReportAllocs()
			for b.Loop() {
				h.HandleRPC(ctx, in)
			}
			h.HandleRPC(ctx, &stats.End{Client: true, EndTime: time.Now()})
		})
	}
}
