package genaigrpc_test

import (
	"context"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/stats"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/genaitrace/otelgenai/middleware/genaigrpc"
)

// BenchmarkStream500 is a stream of 500 messages in memory, read to its end:
// without stats handlers, with one on each side that records, and with one on
// each side where neither span nor metric records. "empty" has handlers that do
// nothing: what gRPC itself pays to have any, two allocations a message.
func BenchmarkStream500(b *testing.B) {
	for _, bm := range []struct {
		name     string
		handlers func() (server, client stats.Handler)
	}{
		{"bare", nil},
		{"otelgenai", handlers(
			genaigrpc.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(discard{}))),
			genaigrpc.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))),
		)},
		{"notrecording", handlers(
			genaigrpc.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample()))),
			genaigrpc.WithMeterProvider(metricnoop.NewMeterProvider()),
		)},
		{"empty", func() (server, client stats.Handler) { return emptyHandler{}, emptyHandler{} }},
	} {
		b.Run(bm.name, func(b *testing.B) {
			var server []grpc.ServerOption
			var client []grpc.DialOption
			if bm.handlers != nil {
				s, c := bm.handlers()
				server = append(server, grpc.StatsHandler(s))
				client = append(client, grpc.WithStatsHandler(c))
			}
			message := wrapperspb.String("token")
			l := connect(b, service{generate: func(_ string, stream grpc.ServerStream) error {
				for range 500 {
					if err := stream.SendMsg(message); err != nil {
						return err
					}
				}
				return nil
			}}, server, client)
			out := new(wrapperspb.StringValue)
			b.ReportAllocs()
			for b.Loop() {
				stream, err := generate(context.Background(), b, l.conn)
				require.NoError(b, err)
				for err == nil {
					err = stream.RecvMsg(out)
				}
				require.Equal(b, io.EOF, err)
			}
		})
	}
}

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
	for name, h := range map[string]stats.Handler{
		"server": genaigrpc.NewServerHandler(o.options()...),
		"client": genaigrpc.NewClientHandler(o.options()...),
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
