package genaigrpc_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	otelcodes "go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/stats"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/middleware/genaigrpc"
	"github.com/genaitrace/otelgenai/semconv"
)

// late returns how many RPCs ended after their time-out.
func (o *telemetry) late() (n int64) {
	o.t.Helper()
	var rm metricdata.ResourceMetrics
	require.NoError(o.t, o.reader.Collect(context.Background(), &rm))
	for _, sm := range rm.ScopeMetrics {
		for _, m := range sm.Metrics {
			sum, ok := m.Data.(metricdata.Sum[int64])
			if !ok || m.Name != semconv.GenAITelemetryFaultsName {
				continue
			}
			for _, p := range sum.DataPoints {
				if kind, _ := p.Attributes.Value(semconv.GenAIFaultKey); kind.AsString() == string(semconv.GenAIFaultLate) {
					n += p.Value
				}
			}
		}
	}
	return n
}

// requireIdle checks a span that its time-out ended, about which nothing is known.
func requireIdle(t *testing.T, s sdktrace.ReadOnlySpan, took time.Duration) {
	t.Helper()
	assert.Equal(t, took, lasted(s))
	assert.Equal(t, otelcodes.Unset, s.Status().Code)
	assert.Equal(t, "timeout", attr(s, semconv.GenAIStreamTerminalKey))
	assert.Nil(t, attr(s, "rpc.response.status_code"))
	assert.Nil(t, attr(s, "error.type"))
}

// requireOnce checks that an RPC was measured once, as long as its span.
func requireOnce(t *testing.T, o *telemetry, metric string, took time.Duration, code, errorType string) {
	t.Helper()
	points := o.points(metric)
	require.Len(t, points, 1)
	assert.EqualValues(t, 1, points[0].Count)
	assert.Equal(t, took.Seconds(), points[0].Sum)
	gotCode, _ := points[0].Attributes.Value("rpc.response.status_code")
	gotType, _ := points[0].Attributes.Value("error.type")
	assert.Equal(t, [2]string{code, errorType}, [2]string{gotCode.AsString(), gotType.AsString()})
}

// calling connects s with the client handler alone.
func calling(t *testing.T, o *telemetry, s service, opts ...genaigrpc.Option) link {
	t.Helper()
	return connectServices(t, s, []*grpc.ServiceDesc{&echo}, nil,
		[]grpc.DialOption{grpc.WithStatsHandler(genaigrpc.NewClientHandler(o.options(opts...)...))})
}

// servedBy connects s with a server handler alone.
func servedBy(t *testing.T, o *telemetry, s service, opts ...genaigrpc.Option) link {
	t.Helper()
	return connect(t, s, []grpc.ServerOption{grpc.StatsHandler(genaigrpc.NewServerHandler(o.options(opts...)...))}, nil)
}

func TestAStreamThatIsNeitherReadNorCancelledEndsItsSpan(t *testing.T) {
	for name, tc := range map[string]struct {
		opts    []genaigrpc.Option
		timeout time.Duration
	}{
		"by default": {nil, 15 * time.Minute},
		"sooner":     {[]genaigrpc.Option{genaigrpc.WithIdleTimeout(time.Minute)}, time.Minute},
		"in no time": {[]genaigrpc.Option{genaigrpc.WithIdleTimeout(1)}, time.Second},
		"later":      {[]genaigrpc.Option{genaigrpc.WithIdleTimeout(time.Minute), nil, genaigrpc.WithIdleTimeout(24 * time.Hour)}, 24 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newTelemetry(t)
				l := calling(t, o, service{generate: once}, tc.opts...)
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				stream, err := generate(ctx, t, l.conn)
				require.NoError(t, err)
				require.NoError(t, stream.RecvMsg(new(wrapperspb.StringValue)))

				time.Sleep(2*tc.timeout - 1)
				synctest.Wait()
				require.Empty(t, o.spans.Ended())
				time.Sleep(time.Nanosecond)
				synctest.Wait()
				requireIdle(t, o.client(), 2*tc.timeout)
				assert.Equal(t, "engine", attr(o.client(), "server.address"))
				requireOnce(t, o, "rpc.client.call.duration", 2*tc.timeout, "", "")
				assert.Zero(t, o.late())

				time.Sleep(tc.timeout)
				cancel()
				synctest.Wait()
				l.stop()
				o.client()
				requireOnce(t, o, "rpc.client.call.duration", 2*tc.timeout, "", "")
				assert.EqualValues(t, 1, o.late())
			})
		})
	}
}

func TestAStreamThatGoesOnAfterItsTimeoutIsOneSpan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newTelemetry(t)
		slow := func(_ string, stream grpc.ServerStream) error {
			for _, wait := range []time.Duration{0, 50 * time.Minute, time.Minute} {
				time.Sleep(wait)
				if err := sendText(stream, "a"); err != nil {
					return err
				}
			}
			return nil
		}
		l := traced(t, o, service{generate: slow})
		stream, err := generate(context.Background(), t, l.conn)
		require.NoError(t, err)
		texts, err := read(stream)
		require.NoError(t, err)
		assert.Len(t, texts, 3)
		l.stop()

		requireIdle(t, o.client(), 30*time.Minute)
		requireIdle(t, o.server(), 30*time.Minute)
		requireOnce(t, o, "rpc.client.call.duration", 30*time.Minute, "", "")
		requireOnce(t, o, "rpc.server.call.duration", 30*time.Minute, "", "")
		assert.EqualValues(t, 2, o.late())
	})
}

func TestAStreamWithMessagesInEitherDirectionIsNotIdle(t *testing.T) {
	for name, desc := range map[string]grpc.StreamDesc{"the client's": echo.Streams[0], "both": echo.Streams[1]} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newTelemetry(t)
				l := connectServices(t, service{}, []*grpc.ServiceDesc{&echo},
					[]grpc.ServerOption{grpc.StatsHandler(genaigrpc.NewServerHandler(o.options()...))},
					[]grpc.DialOption{grpc.WithStatsHandler(genaigrpc.NewClientHandler(o.options()...))})
				stream, err := l.conn.NewStream(context.Background(), &desc, "/inference.v1.Chat/"+desc.StreamName)
				require.NoError(t, err)
				for range 24 {
					time.Sleep(14 * time.Minute)
					require.NoError(t, stream.SendMsg(wrapperspb.String("a")))
				}
				require.NoError(t, stream.CloseSend())
				_, err = read(stream)
				require.NoError(t, err)
				l.stop()
				for _, s := range o.ended() {
					assert.Equal(t, "OK", attr(s, "rpc.response.status_code"), s.SpanKind())
					assert.Equal(t, 24*14*time.Minute, lasted(s), s.SpanKind())
				}
				assert.Zero(t, o.late())
			})
		})
	}
}

func TestWithoutATimeoutAStreamIsOpenUntilItEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newTelemetry(t)
		never := []genaigrpc.Option{genaigrpc.WithIdleTimeout(time.Minute), genaigrpc.WithIdleTimeout(0)}
		l := calling(t, o, service{generate: once}, never...)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		_, err := generate(ctx, t, l.conn)
		require.NoError(t, err)
		time.Sleep(1000 * time.Hour)
		synctest.Wait()
		require.Empty(t, o.spans.Ended())
		cancel()
		synctest.Wait()
		l.stop()
		assert.Equal(t, "CANCELLED", attr(o.client(), "rpc.response.status_code"))
		assert.Equal(t, 1000*time.Hour, lasted(o.client()))
		assert.Zero(t, o.late())
	})
}

// A caller that waits for its one answer has not left it.
func TestAUnaryRPCOfAClientIsNeverIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newTelemetry(t)
		l := calling(t, o, service{complete: func(context.Context, string) (string, error) {
			time.Sleep(3 * time.Hour)
			return "done", nil
		}})
		_, err := complete(context.Background(), l.conn)
		require.NoError(t, err)
		l.stop()
		span := o.only("inference.v1.Inference/Complete", trace.SpanKindClient)
		assert.Equal(t, "OK", attr(span, "rpc.response.status_code"))
		assert.Equal(t, 3*time.Hour, lasted(span))
	})
}

// A handler at work is left alone for an hour, and then too it has not failed.
func TestAHandlerThatDoesNotReturn(t *testing.T) {
	for name, tc := range map[string]struct {
		handler  func(stream grpc.ServerStream, release <-chan struct{})
		timeout  time.Duration // of the RPC
		leaves   bool          // the client
		took     time.Duration
		code     any
		terminal string
		status   otelcodes.Code
	}{
		"before its answer": {
			handler: func(_ grpc.ServerStream, release <-chan struct{}) { <-release },
			took:    75 * time.Minute, terminal: "timeout",
		},
		"within its answer": {
			handler: func(stream grpc.ServerStream, release <-chan struct{}) {
				_ = sendText(stream, "a")
				<-release
			},
			took: 30 * time.Minute, terminal: "timeout",
		},
		"whose client left": {
			handler: func(_ grpc.ServerStream, release <-chan struct{}) { <-release },
			leaves:  true, took: 30 * time.Minute, code: "CANCELLED", terminal: "client_cancelled",
		},
		"whose deadline passed": {
			handler: func(_ grpc.ServerStream, release <-chan struct{}) { <-release },
			timeout: time.Minute, took: 30 * time.Minute,
			code: "DEADLINE_EXCEEDED", terminal: "timeout", status: otelcodes.Error,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newTelemetry(t)
				release := make(chan struct{})
				l := servedBy(t, o, service{generate: func(_ string, stream grpc.ServerStream) error {
					tc.handler(stream, release)
					return nil
				}})
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				if tc.timeout > 0 {
					ctx, cancel = context.WithTimeout(ctx, tc.timeout)
					defer cancel()
				}
				_, err := generate(ctx, t, l.conn)
				require.NoError(t, err)
				synctest.Wait()
				if tc.leaves {
					cancel()
				}
				time.Sleep(tc.took - 1)
				synctest.Wait()
				require.Empty(t, o.spans.Ended())
				time.Sleep(time.Nanosecond)
				synctest.Wait()

				span := o.server()
				assert.Equal(t, tc.took, lasted(span))
				assert.Equal(t, tc.status, span.Status().Code)
				assert.Equal(t, tc.code, attr(span, "rpc.response.status_code"))
				assert.Equal(t, tc.terminal, attr(span, semconv.GenAIStreamTerminalKey))
				assert.Zero(t, o.late())
				close(release)
				cancel()
				synctest.Wait()
				l.stop()
				o.server()
				assert.EqualValues(t, 1, o.late())
				assert.EqualValues(t, 1, o.points("rpc.server.call.duration")[0].Count)
			})
		})
	}
}

func TestAModelCallThatEndsAfterItsTimeoutIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newTelemetry(t)
		l := calling(t, o, service{generate: once}, genaigrpc.WithModelCall(genaigrpc.ModelCall{Method: generateMethod}))
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		stream, err := generate(ctx, t, l.conn)
		require.NoError(t, err)
		require.NoError(t, stream.RecvMsg(new(wrapperspb.StringValue)))
		time.Sleep(time.Hour)
		cancel()
		synctest.Wait()
		l.stop()

		call := o.only("chat", trace.SpanKindClient)
		assert.Equal(t, 30*time.Minute, lasted(call))
		assert.Equal(t, otelcodes.Error, call.Status().Code)
		assert.Equal(t, "timeout", attr(call, "error.type"))
		assert.Nil(t, attr(call, "rpc.response.status_code"))
		requireOnce(t, o, "rpc.client.call.duration", 30*time.Minute, "", "timeout")
		assert.EqualValues(t, 1, o.late())
	})
}

// A call of somebody else's is not ours to end.
func TestAGivenCallThatStandsIdleIsItsStarters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newTelemetry(t)
		l := calling(t, o, service{generate: once})
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		ctx, call := o.tracer().StartCall(ctx, genaitrace.Request{Model: "m", Stream: true})
		_, err := generate(ctx, t, l.conn)
		require.NoError(t, err)
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		require.Empty(t, o.spans.Ended())
		cancel()
		synctest.Wait()
		call.Fail(context.Canceled)
		l.stop()
		assert.Equal(t, "client_cancelled", attr(o.only("chat m", trace.SpanKindClient), semconv.GenAIStreamTerminalKey))
		assert.Zero(t, o.late())
	})
}

// A client may keep one stream for the requests of a day.
func TestARequestOnAStreamThatStoodIdleHasItsSpan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newTelemetry(t)
		s := newSession(t, o)
		s.send("a")
		s.receive(finalA)
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		rpc := o.only("inference.GRPCInferenceService/ModelStreamInfer", trace.SpanKindClient)
		requireIdle(t, rpc, 30*time.Minute)

		s.send("b")
		time.Sleep(time.Second)
		s.receive(textAnswer("b", "x", true))
		s.send("c") // and is never answered
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		s.end(nil)

		calls := s.calls()
		require.Len(t, calls, 3)
		assert.Equal(t, time.Second, lasted(calls[1]))
		assert.Equal(t, otelcodes.Unset, calls[1].Status().Code)
		assert.Equal(t, "timeout", attr(calls[2], semconv.GenAIStreamTerminalKey))
		for _, c := range calls {
			assert.Equal(t, rpc.SpanContext().SpanID(), c.Parent().SpanID())
		}
		assert.EqualValues(t, 1, o.late())
	})
}

// The messages of a stream need not wait for a pick, nor for each other, while its
// time-out passes. To be run with -race.
func TestTimeoutsWhileStreamsBeginMoveAndEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newTelemetry(t)
		server := genaigrpc.NewServerHandler(o.options(genaigrpc.WithIdleTimeout(time.Minute))...)
		client := genaigrpc.NewClientHandler(o.options(genaigrpc.WithIdleTimeout(time.Minute))...)
		const n = 1000
		var streams sync.WaitGroup
		for i := range n {
			streams.Go(func() {
				time.Sleep(time.Duration(i) * 100 * time.Millisecond)
				ctx := client.TagRPC(context.Background(), &stats.RPCTagInfo{FullMethodName: generateMethod})
				client.HandleRPC(ctx, &stats.Begin{Client: true, IsServerStream: true})
				served := server.TagRPC(context.Background(), &stats.RPCTagInfo{FullMethodName: generateMethod})
				server.HandleRPC(served, &stats.Begin{IsServerStream: true})
				server.HandleRPC(served, &stats.OutPayload{SentTime: time.Now()})
				if i%4 > 0 {
					time.Sleep(time.Duration(i%4) * time.Minute) // ends with a look, or is found idle by it
				}
				client.HandleRPC(ctx, &stats.OutHeader{Client: true, Authority: "engine:8033"})
				client.HandleRPC(ctx, &stats.InPayload{Client: true, RecvTime: time.Now()})
				if i%5 == 0 {
					return // is never ended
				}
				client.HandleRPC(ctx, &stats.End{Client: true, EndTime: time.Now(), Error: errors.New("x")})
				server.HandleRPC(served, &stats.OutTrailer{})
				server.HandleRPC(served, &stats.End{EndTime: time.Now()})
			})
		}
		streams.Wait()
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Len(t, o.ended(), 2*n)
		for _, s := range o.ended() {
			assert.LessOrEqual(t, lasted(s), 5*time.Minute)
		}
	})
}

// What a time-out has not ended, the end of the connection does, over a real one.
func TestTheEndOfAConnectionEndsTheServersSpan(t *testing.T) {
	o := newTelemetry(t)
	l := connectLoopback(t, service{generate: once},
		[]grpc.ServerOption{grpc.StatsHandler(genaigrpc.NewServerHandler(o.options()...))}, nil)
	stream, err := generate(context.Background(), t, l.conn)
	require.NoError(t, err)
	require.NoError(t, stream.RecvMsg(new(wrapperspb.StringValue)))
	require.NoError(t, l.conn.Close()) // and nobody reads or cancels the stream
	require.Eventually(t, func() bool { return len(o.spans.Ended()) == 1 }, 10*time.Second, time.Millisecond)

	span := o.server()
	assert.Equal(t, "CANCELLED", attr(span, "rpc.response.status_code"))
	assert.Equal(t, "client_cancelled", attr(span, semconv.GenAIStreamTerminalKey))
	assert.Equal(t, otelcodes.Unset, span.Status().Code)
	l.stop()
	assert.Zero(t, o.late())
}

// The time-out of an RPC holds without a span that records.
func TestAnUnsampledStreamThatStandsIdleIsMeasuredOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newTelemetry(t, sdktrace.WithSampler(sdktrace.NeverSample()))
		l := calling(t, o, service{generate: once})
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		_, err := generate(ctx, t, l.conn)
		require.NoError(t, err)
		time.Sleep(time.Hour)
		cancel()
		synctest.Wait()
		l.stop()
		requireOnce(t, o, "rpc.client.call.duration", 30*time.Minute, "", "")
		assert.EqualValues(t, 1, o.late())
	})
}
