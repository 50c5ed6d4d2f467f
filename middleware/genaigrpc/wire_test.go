package genaigrpc_test

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	otelcodes "go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"

	"github.com/genaitrace/otelgenai/middleware/genaigrpc"
)

func TestOverLoopbackBothSidesKnowTheirPeer(t *testing.T) {
	o := newTelemetry(t)
	l := connectLoopback(t, service{generate: three},
		[]grpc.ServerOption{grpc.StatsHandler(genaigrpc.NewServerHandler(o.options()...))},
		[]grpc.DialOption{grpc.WithStatsHandler(genaigrpc.NewClientHandler(o.options()...))})
	stream, err := generate(context.Background(), t, l.conn)
	require.NoError(t, err)
	_, err = read(stream)
	require.NoError(t, err)
	l.stop()

	client, server := o.client(), o.server()
	assert.Equal(t, "127.0.0.1", attr(client, "server.address"))
	assert.Equal(t, "127.0.0.1", attr(client, "network.peer.address"))
	assert.Equal(t, attr(client, "server.port"), attr(client, "network.peer.port"))
	assert.Equal(t, "127.0.0.1", attr(server, "network.peer.address"))
	assert.Positive(t, attr(server, "network.peer.port"))
	assert.NotEqual(t, attr(client, "network.peer.port"), attr(server, "network.peer.port"))
	assert.Equal(t, client.SpanContext().SpanID(), server.Parent().SpanID())
}

func TestGeneratedStubsNeedNothingElse(t *testing.T) {
	o := newTelemetry(t)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := grpc.NewServer(grpc.StatsHandler(genaigrpc.NewServerHandler(o.options()...)))
	healthServer := health.NewServer()
	healthpb.RegisterHealthServer(server, healthServer)
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) })
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithStatsHandler(genaigrpc.NewClientHandler(o.options()...)))
	require.NoError(t, err)
	client := healthpb.NewHealthClient(conn)

	_, err = client.Check(context.Background(), &healthpb.HealthCheckRequest{})
	require.NoError(t, err)
	_, err = client.Check(context.Background(), &healthpb.HealthCheckRequest{Service: "nope"})
	require.Equal(t, codes.NotFound, status.Code(err))
	ctx, cancel := context.WithCancel(context.Background())
	watch, err := client.Watch(ctx, &healthpb.HealthCheckRequest{})
	require.NoError(t, err)
	_, err = watch.Recv()
	require.NoError(t, err)
	cancel()
	require.NoError(t, conn.Close())
	server.GracefulStop()
	serving.Wait()

	require.Eventually(t, func() bool { return len(o.spans.Ended()) == 6 }, 10*time.Second, time.Millisecond)
	o.only("grpc.health.v1.Health/Watch", trace.SpanKindServer)
	o.only("grpc.health.v1.Health/Watch", trace.SpanKindClient)
}

// refuseOnce is a server that refuses its first stream unprocessed, which gRPC
// retries without being told to, and answers the request of the second with OK.
func refuseOnce(conn net.Conn) error {
	if _, err := io.ReadFull(conn, make([]byte, len(http2.ClientPreface))); err != nil {
		return err
	}
	framer := http2.NewFramer(conn, conn)
	if err := framer.WriteSettings(); err != nil {
		return err
	}
	streams := 0
	for {
		frame, err := framer.ReadFrame()
		if err != nil {
			return err
		}
		switch f := frame.(type) {
		case *http2.SettingsFrame:
			if !f.IsAck() {
				err = framer.WriteSettingsAck()
			}
		case *http2.HeadersFrame:
			if streams++; streams == 1 {
				err = framer.WriteRSTStream(f.StreamID, http2.ErrCodeRefusedStream)
			}
		case *http2.DataFrame:
			if streams == 2 && f.StreamEnded() {
				err = writeOK(framer, f.StreamID)
			}
		}
		if err != nil {
			return err
		}
	}
}

func writeOK(framer *http2.Framer, stream uint32) error {
	var block writer
	encoder := hpack.NewEncoder(&block)
	for _, f := range [][2]string{{":status", "200"}, {"content-type", "application/grpc"}, {"grpc-status", "0"}} {
		if err := encoder.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]}); err != nil {
			return err
		}
	}
	return framer.WriteHeaders(http2.HeadersFrameParam{
		StreamID: stream, BlockFragment: block, EndStream: true, EndHeaders: true,
	})
}

type writer []byte

func (w *writer) Write(p []byte) (int, error) {
	*w = append(*w, p...)
	return len(p), nil
}

// A begins counts the attempts that gRPC calls transparent retries.
type begins struct {
	stats.Handler
	transparent *int
}

func (h begins) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (h begins) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (h begins) HandleConn(context.Context, stats.ConnStats)                       {}

func (h begins) HandleRPC(_ context.Context, s stats.RPCStats) {
	if b, ok := s.(*stats.Begin); ok && b.IsTransparentRetryAttempt {
		*h.transparent++
	}
}

func TestATransparentRetryIsAnAttemptOfItsOwn(t *testing.T) {
	o := newTelemetry(t)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var serving sync.WaitGroup
	serving.Go(func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		_ = refuseOnce(conn)
	})
	transparent := 0
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithStatsHandler(begins{transparent: &transparent}),
		grpc.WithStatsHandler(genaigrpc.NewClientHandler(o.options()...)))
	require.NoError(t, err)
	stream, err := generate(context.Background(), t, conn)
	require.NoError(t, err)
	_, err = read(stream)
	require.NoError(t, err)
	require.NoError(t, conn.Close())
	require.NoError(t, listener.Close())
	serving.Wait()

	assert.Equal(t, 1, transparent)
	var got []otelcodes.Code
	for _, s := range o.ended() {
		got = append(got, s.Status().Code)
	}
	assert.Equal(t, []otelcodes.Code{otelcodes.Error, otelcodes.Unset}, got)
}
