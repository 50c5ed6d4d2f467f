package benchmarks

import (
	"context"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/otel/propagation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/genaitrace/otelgenai/middleware/genaigrpc"
)

// BenchmarkUnary is an RPC with one answer, in memory, with a stats handler on each
// side that makes a span and a duration and passes W3C headers on: otelgrpc's, and ours
// for an RPC that is no model call. "bare" has none. Of what is "dropped" the sampler
// records nothing, while the durations are still measured.
func BenchmarkUnary(b *testing.B) {
	benchmarkGRPC(b, func(conn *grpc.ClientConn, out *wrapperspb.StringValue) error {
		return conn.Invoke(context.Background(), unaryMethod, grpcToken, out)
	})
}

// BenchmarkStream500 is a stream of 500 messages, read to its end, as BenchmarkUnary.
func BenchmarkStream500(b *testing.B) {
	benchmarkGRPC(b, func(conn *grpc.ClientConn, out *wrapperspb.StringValue) error {
		stream, err := conn.NewStream(context.Background(), &benchService.Streams[0], streamMethod)
		if err != nil {
			return err
		}
		if err := stream.SendMsg(grpcToken); err != nil {
			return err
		}
		for err == nil {
			err = stream.RecvMsg(out)
		}
		if err != io.EOF {
			return err
		}
		return nil
	})
}

// BenchmarkUnaryEvents is what the two handlers of BenchmarkUnary cost by themselves:
// they are told what gRPC tells them of one RPC, and there is no gRPC between them.
func BenchmarkUnaryEvents(b *testing.B) {
	for _, side := range grpcSides[1:] {
		b.Run(side.name, func(b *testing.B) {
			rpc := unaryEvents(side.handlers(b))
			b.ReportAllocs()
			before := cpuTime()
			for b.Loop() {
				rpc()
			}
			b.ReportMetric(float64(cpuTime()-before)/float64(b.N), "cpu-ns/op")
		})
	}
}

// A plain RPC, of which both libraries say the same, costs no more with ours.
func TestAPlainRPCAllocatesNoMoreThanWithOtelgrpc(t *testing.T) {
	for name, sampler := range map[string]sdktrace.Sampler{"sampled": sdktrace.AlwaysSample(), "dropped": sdktrace.NeverSample()} {
		theirs := testing.AllocsPerRun(1000, unaryEvents(otelgrpcHandlers(sampler)(t)))
		ours := testing.AllocsPerRun(1000, unaryEvents(otelgenaiHandlers(sampler)(t)))
		t.Logf("%s: %.0f allocations, %.0f with otelgrpc", name, ours, theirs)
		assert.LessOrEqual(t, ours, theirs, name)
	}
}

// unaryEvents tells two handlers what gRPC would of one RPC.
func unaryEvents(server, client stats.Handler) (rpc func()) {
	tag := &stats.RPCTagInfo{FullMethodName: unaryMethod}
	addr := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8033}
	conn := server.TagConn(context.Background(), &stats.ConnTagInfo{RemoteAddr: addr, LocalAddr: addr})
	return func() {
		now := time.Now()
		calling := client.TagRPC(context.Background(), tag)
		client.HandleRPC(calling, &stats.Begin{Client: true, BeginTime: now})
		client.HandleRPC(calling, &stats.OutHeader{
			Client: true, FullMethod: unaryMethod, RemoteAddr: addr, LocalAddr: addr, Authority: "bench:8033",
		})
		client.HandleRPC(calling, &stats.OutPayload{Client: true, SentTime: now})

		md, _ := metadata.FromOutgoingContext(calling)
		serving := server.TagRPC(metadata.NewIncomingContext(conn, md), tag)
		server.HandleRPC(serving, &stats.InHeader{FullMethod: unaryMethod, RemoteAddr: addr, LocalAddr: addr})
		server.HandleRPC(serving, &stats.Begin{BeginTime: now})
		server.HandleRPC(serving, &stats.InPayload{RecvTime: now})
		server.HandleRPC(serving, &stats.OutHeader{})
		server.HandleRPC(serving, &stats.OutPayload{SentTime: now})
		server.HandleRPC(serving, &stats.OutTrailer{})
		server.HandleRPC(serving, &stats.End{BeginTime: now, EndTime: now})

		client.HandleRPC(calling, &stats.InHeader{Client: true})
		client.HandleRPC(calling, &stats.InPayload{Client: true, RecvTime: now})
		client.HandleRPC(calling, &stats.InTrailer{Client: true})
		client.HandleRPC(calling, &stats.End{Client: true, BeginTime: now, EndTime: now})
	}
}

// grpcSides are what a connection may have on each of its ends.
var grpcSides = []struct {
	name     string
	handlers func(testing.TB) (server, client stats.Handler) // nil: none
}{
	{"bare", nil},
	{"otelgrpc", otelgrpcHandlers(sdktrace.AlwaysSample())},
	{"otelgenai", otelgenaiHandlers(sdktrace.AlwaysSample())},
	{"otelgrpc-dropped", otelgrpcHandlers(sdktrace.NeverSample())},
	{"otelgenai-dropped", otelgenaiHandlers(sdktrace.NeverSample())},
}

func benchmarkGRPC(b *testing.B, call func(*grpc.ClientConn, *wrapperspb.StringValue) error) {
	for _, side := range grpcSides {
		b.Run(side.name, func(b *testing.B) {
			var server []grpc.ServerOption
			var client []grpc.DialOption
			if side.handlers != nil {
				s, c := side.handlers(b)
				server = append(server, grpc.StatsHandler(s))
				client = append(client, grpc.WithStatsHandler(c))
			}
			conn := connectGRPC(b, server, client)
			out := new(wrapperspb.StringValue)
			b.ReportAllocs()
			before := cpuTime()
			for b.Loop() {
				require.NoError(b, call(conn, out))
			}
			b.ReportMetric(float64(cpuTime()-before)/float64(b.N), "cpu-ns/op")
		})
	}
}

func otelgrpcHandlers(s sdktrace.Sampler) func(testing.TB) (server, client stats.Handler) {
	return func(tb testing.TB) (server, client stats.Handler) {
		tp, mp := grpcProviders(tb, s)
		opts := []otelgrpc.Option{
			otelgrpc.WithTracerProvider(tp), otelgrpc.WithMeterProvider(mp),
			otelgrpc.WithPropagators(propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})),
		}
		return otelgrpc.NewServerHandler(opts...), otelgrpc.NewClientHandler(opts...)
	}
}

func otelgenaiHandlers(s sdktrace.Sampler) func(testing.TB) (server, client stats.Handler) {
	return func(tb testing.TB) (server, client stats.Handler) {
		tp, mp := grpcProviders(tb, s)
		opts := []genaigrpc.Option{genaigrpc.WithTracerProvider(tp), genaigrpc.WithMeterProvider(mp)}
		return genaigrpc.NewServerHandler(opts...), genaigrpc.NewClientHandler(opts...)
	}
}

// grpcProviders are the SDK's, with a batch processor whose exporter does nothing.
func grpcProviders(tb testing.TB, s sdktrace.Sampler) (*sdktrace.TracerProvider, *sdkmetric.MeterProvider) {
	tp := sdktrace.NewTracerProvider(sdktrace.WithSampler(s), sdktrace.WithBatcher(nowhere{}))
	mp := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))
	tb.Cleanup(func() {
		_ = tp.Shutdown(context.Background())
		_ = mp.Shutdown(context.Background())
	})
	return tp, mp
}

const (
	unaryMethod  = "/bench.v1.Bench/Unary"
	streamMethod = "/bench.v1.Bench/Stream500"
)

var grpcToken = wrapperspb.String("token")

// benchService is bench.v1.Bench, written by hand.
var benchService = grpc.ServiceDesc{
	ServiceName: "bench.v1.Bench", HandlerType: (*any)(nil),
	Methods: []grpc.MethodDesc{{
		MethodName: "Unary",
		Handler: func(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			return grpcToken, decode(new(wrapperspb.StringValue))
		},
	}},
	Streams: []grpc.StreamDesc{{
		StreamName: "Stream500", ServerStreams: true,
		Handler: func(_ any, stream grpc.ServerStream) error {
			if err := stream.RecvMsg(new(wrapperspb.StringValue)); err != nil {
				return err
			}
			for range 500 {
				if err := stream.SendMsg(grpcToken); err != nil {
					return err
				}
			}
			return nil
		},
	}},
}

// connectGRPC serves benchService in memory.
func connectGRPC(b *testing.B, server []grpc.ServerOption, client []grpc.DialOption) *grpc.ClientConn {
	b.Helper()
	listener := bufconn.Listen(1 << 16)
	gs := grpc.NewServer(append(server, grpc.WaitForHandlers(true))...)
	gs.RegisterService(&benchService, nil)
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = gs.Serve(listener)
	}()
	conn, err := grpc.NewClient("passthrough:///bench:8033", append(client,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))...)
	require.NoError(b, err)
	b.Cleanup(func() {
		_ = conn.Close()
		gs.Stop()
		<-served
	})
	return conn
}
