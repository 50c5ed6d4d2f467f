package genaigrpc_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	otelcodes "go.opentelemetry.io/otel/codes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/middleware/genaigrpc"
)

func TestAnRPCThatReachesNoServerEndsItsSpan(t *testing.T) {
	for name, tc := range map[string]struct {
		wait bool
		code codes.Code
		want string
		took time.Duration
	}{
		"at once":         {false, codes.Unavailable, "UNAVAILABLE", 0},
		"waiting for one": {true, codes.DeadlineExceeded, "DEADLINE_EXCEEDED", time.Minute},
	} {
		for kind, streams := range map[string]bool{"unary": false, "stream": true} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					o := newTelemetry(t)
					conn, err := grpc.NewClient("passthrough:///engine:8033",
						grpc.WithTransportCredentials(insecure.NewCredentials()),
						grpc.WithStatsHandler(genaigrpc.NewClientHandler(o.options()...)),
						grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return nil, errors.New("refused") }),
						grpc.WithDefaultCallOptions(grpc.WaitForReady(tc.wait)))
					require.NoError(t, err)
					ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
					defer cancel()
					if streams {
						_, err = generate(ctx, t, conn)
					} else {
						_, err = complete(ctx, conn)
					}
					require.Equal(t, tc.code, status.Code(err))
					require.NoError(t, conn.Close())
					spans := o.ended()
					require.Len(t, spans, 1)
					assert.Equal(t, otelcodes.Error, spans[0].Status().Code)
					assert.Equal(t, tc.want, attr(spans[0], "rpc.response.status_code"))
					assert.Nil(t, attr(spans[0], "server.address"), "none was reached")
					assert.Equal(t, tc.took, lasted(spans[0]))
				})
			})
		}
	}
}

// TestAttemptsThatGRPCDropsEnd has retries that find no connection: gRPC tells the begin of
// two attempts for each and the end of one.
func TestAttemptsThatGRPCDropsEnd(t *testing.T) {
	for name, tc := range map[string]struct {
		opts  []genaigrpc.Option
		given bool
		spans int
	}{
		"plain":      {nil, false, 5},
		"model call": {[]genaigrpc.Option{genaigrpc.WithModelCall(genaigrpc.ModelCall{Method: "inference.v1.Inference/Complete"})}, false, 5},
		"given":      {nil, true, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newTelemetry(t)
				conn, err := grpc.NewClient("passthrough:///engine:8033",
					grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultServiceConfig(retryConfig),
					grpc.WithStatsHandler(genaigrpc.NewClientHandler(o.options(tc.opts...)...)),
					grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return nil, errors.New("refused") }))
				require.NoError(t, err)
				ctx, call := context.Background(), (*genaitrace.Call)(nil)
				if tc.given {
					ctx, call = o.tracer().StartCall(ctx, genaitrace.Request{Model: "m"})
				}
				_, err = complete(ctx, conn)
				require.Equal(t, codes.Unavailable, status.Code(err))
				call.EndErr(&err)
				require.NoError(t, conn.Close())
				synctest.Wait()
				spans := o.ended()
				assert.Len(t, spans, tc.spans)
				last := spans[len(spans)-1]
				assert.Equal(t, "UNAVAILABLE", attr(last, "rpc.response.status_code"), "of the last attempt")
				assert.Equal(t, otelcodes.Error, last.Status().Code)
			})
		})
	}
}

// What each attempt is sent does not grow by what the ones before were sent.
func TestMetadataOfAnAttemptIsThatOfTheRPC(t *testing.T) {
	o := newTelemetry(t)
	flaky := flaky()
	var mu sync.Mutex
	var seen []metadata.MD
	l := connectRetrying(t, o, service{generate: func(prompt string, stream grpc.ServerStream) error {
		md, _ := metadata.FromIncomingContext(stream.Context())
		mu.Lock()
		seen = append(seen, md)
		mu.Unlock()
		return flaky.generate(prompt, stream)
	}})
	ctx := metadata.AppendToOutgoingContext(context.Background(), "x-tenant", "a", "x-tenant", "b")
	stream, err := generate(ctx, t, l.conn)
	require.NoError(t, err)
	_, err = read(stream)
	require.NoError(t, err)
	l.stop()

	require.Len(t, seen, 3)
	parents := map[string]bool{}
	for _, md := range seen {
		assert.Len(t, md.Get("traceparent"), 1)
		assert.Equal(t, []string{"a", "b"}, md.Get("x-tenant"))
		parents[md.Get("traceparent")[0]] = true
	}
	assert.Len(t, parents, 3, "each attempt is the parent of what served it")
}

func TestAServerThatStopsGracefullyLetsItsStreamsEnd(t *testing.T) {
	o := newTelemetry(t)
	proceed := make(chan struct{})
	l := traced(t, o, service{generate: func(prompt string, stream grpc.ServerStream) error {
		if err := sendText(stream, "a"); err != nil {
			return err
		}
		<-proceed
		return three(prompt, stream)
	}, complete: func(context.Context, string) (string, error) { return "", nil }})
	stream, err := generate(context.Background(), t, l.conn)
	require.NoError(t, err)
	require.NoError(t, stream.RecvMsg(new(wrapperspb.StringValue)))
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		l.server.GracefulStop()
	}()
	require.Eventually(t, func() bool { // refused, or on a connection that drains
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, err := complete(ctx, l.conn)
		return status.Code(err) == codes.Unavailable
	}, 10*time.Second, time.Millisecond)
	close(proceed)
	texts, err := read(stream)
	require.NoError(t, err)
	assert.Len(t, texts, 3)
	<-stopped
	l.stop()
	for _, s := range []string{attr(o.server(), "rpc.response.status_code").(string), attr(o.client(), "rpc.response.status_code").(string)} {
		assert.Equal(t, "OK", s)
	}
}

// One goroutine sends while another receives. To be run with -race.
func TestAStreamIsSentAndReceivedAtTheSameTime(t *testing.T) {
	const n = 200
	for name, opts := range map[string][]genaigrpc.Option{
		"plain":      nil,
		"model call": {genaigrpc.WithModelCall(genaigrpc.ModelCall{Method: "inference.v1.Chat/Talk"})},
	} {
		t.Run(name, func(t *testing.T) {
			o := newTelemetry(t)
			l := connectServices(t, service{}, []*grpc.ServiceDesc{&echo},
				[]grpc.ServerOption{grpc.StatsHandler(genaigrpc.NewServerHandler(o.options(opts...)...))},
				[]grpc.DialOption{grpc.WithStatsHandler(genaigrpc.NewClientHandler(o.options(opts...)...))})
			stream, err := l.conn.NewStream(context.Background(), &echo.Streams[1], "/inference.v1.Chat/Talk")
			require.NoError(t, err)
			var sender sync.WaitGroup
			sender.Go(func() {
				for range n {
					assert.NoError(t, stream.SendMsg(wrapperspb.String("a")))
				}
				assert.NoError(t, stream.CloseSend())
			})
			texts, err := read(stream)
			sender.Wait()
			require.NoError(t, err)
			assert.Len(t, texts, n)
			l.stop()
			assert.Len(t, o.ended(), 2)
		})
	}
}

// The bound on names is for methods that nobody named.
func TestAModelCallIsOneHoweverManyMethodsWereSeen(t *testing.T) {
	o := newTelemetry(t)
	model := genaigrpc.WithModelCall(genaigrpc.ModelCall{Method: generateMethod, Operation: "chat"})
	client := genaigrpc.NewClientHandler(o.options(model)...)
	server := genaigrpc.NewServerHandler(o.options(model)...)
	call := func(method string) {
		ctx := client.TagRPC(t.Context(), &stats.RPCTagInfo{FullMethodName: method})
		client.HandleRPC(ctx, &stats.Begin{Client: true})
		client.HandleRPC(ctx, &stats.End{Client: true, EndTime: time.Now(), Error: io.ErrUnexpectedEOF})
		ctx = server.TagRPC(t.Context(), &stats.RPCTagInfo{FullMethodName: method})
		server.HandleRPC(ctx, &stats.Begin{})
		server.HandleRPC(ctx, &stats.OutTrailer{})
		server.HandleRPC(ctx, &stats.End{EndTime: time.Now()})
	}
	for i := range 1100 {
		call(fmt.Sprintf("/s/M%d", i))
	}
	call(generateMethod)
	spans := o.spans.Ended()
	require.Len(t, spans, 2*1101)
	assert.Equal(t, "chat", spans[len(spans)-2].Name())
	assert.Equal(t, "inference.v1.Inference/Generate", spans[len(spans)-1].Name())
}

func TestAModelCallWithoutTheNameOfAMethodIsReported(t *testing.T) {
	for _, method := range []string{"", "/", "Generate", "/Generate", "inference.v1.Inference/", "/inference.v1.Inference//"} {
		t.Run(method, func(t *testing.T) {
			reported := make(chan error, 10)
			otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { reported <- err }))
			defer otel.SetErrorHandler(otel.ErrorHandlerFunc(func(error) {})) // the first one cannot be set again
			o := newTelemetry(t)
			genaigrpc.NewClientHandler(o.options(genaigrpc.WithModelCall(genaigrpc.ModelCall{Method: method}))...)
			require.Len(t, reported, 1)
			err := <-reported
			assert.ErrorContains(t, err, fmt.Sprintf("ModelCall.Method %q", method))
			assert.ErrorContains(t, err, "inference.v1.Inference/Generate")
		})
	}
}
