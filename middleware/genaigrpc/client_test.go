package genaigrpc_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/baggage"
	otelcodes "go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/middleware/genaigrpc"
	"github.com/genaitrace/otelgenai/semconv"
)

func TestAClientThatCancelsItsStreamIsNoError(t *testing.T) {
	o := newTelemetry(t)
	l := traced(t, o, service{generate: once})
	ctx, leave := context.WithCancel(context.Background())
	stream, err := generate(ctx, t, l.conn)
	require.NoError(t, err)
	require.NoError(t, stream.RecvMsg(new(wrapperspb.StringValue)))
	leave()
	_, err = read(stream)
	require.Equal(t, codes.Canceled, status.Code(err))
	l.stop()

	span := o.client()
	assert.Equal(t, otelcodes.Unset, span.Status().Code)
	assert.Equal(t, "CANCELLED", attr(span, "rpc.response.status_code"))
	assert.Nil(t, attr(span, "error.type"))
	assert.Equal(t, span.SpanContext().SpanID(), o.server().Parent().SpanID())
}

func TestCancellingTheContextEndsAStreamThatNobodyReads(t *testing.T) {
	o := newTelemetry(t)
	l := traced(t, o, service{generate: once})
	ctx, leave := context.WithCancel(context.Background())
	stream, err := generate(ctx, t, l.conn)
	require.NoError(t, err)
	require.NoError(t, stream.RecvMsg(new(wrapperspb.StringValue)))
	leave()
	require.Eventually(t, func() bool { return len(o.spans.Ended()) == 2 }, 10*time.Second, time.Millisecond)
	l.stop()
	o.client()
}

func TestClosingTheConnectionEndsAStreamThatNobodyReads(t *testing.T) {
	o := newTelemetry(t)
	l := traced(t, o, service{generate: once})
	stream, err := generate(context.Background(), t, l.conn)
	require.NoError(t, err)
	require.NoError(t, stream.RecvMsg(new(wrapperspb.StringValue)))
	l.stop()
	require.Eventually(t, func() bool { return len(o.spans.Ended()) == 2 }, 10*time.Second, time.Millisecond)
	assert.Equal(t, otelcodes.Error, o.client().Status().Code)
}

func TestAContextThatIsCancelledBeforehandStartsNothing(t *testing.T) {
	o := newTelemetry(t)
	l := traced(t, o, service{generate: three})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := generate(ctx, t, l.conn)
	require.Equal(t, codes.Canceled, status.Code(err))
	_, err = complete(ctx, l.conn)
	require.Equal(t, codes.Canceled, status.Code(err))
	l.stop()
	assert.Empty(t, o.ended())
}

func TestADeadlineEndsTheClientsSpanOnTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newTelemetry(t)
		l := traced(t, o, service{generate: once})
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		stream, err := generate(ctx, t, l.conn)
		require.NoError(t, err)
		_, err = read(stream)
		require.Equal(t, codes.DeadlineExceeded, status.Code(err))
		l.stop()

		span := o.client()
		assert.Equal(t, otelcodes.Error, span.Status().Code)
		assert.Equal(t, "DEADLINE_EXCEEDED", attr(span, "error.type"))
		assert.Equal(t, 2*time.Second, span.EndTime().Sub(span.StartTime()))
		points := o.points("rpc.client.call.duration")
		require.Len(t, points, 1)
		assert.Equal(t, 2.0, points[0].Sum)
		// Both sides keep the deadline: whichever of them ends the stream, it is that.
		assert.Equal(t, string(semconv.GenAIStreamTerminalTimeout), attr(o.server(), semconv.GenAIStreamTerminalKey))
	})
}

func TestHowAnRPCEndsDecidesHowItsCallEnds(t *testing.T) {
	for name, tc := range map[string]struct {
		generate  func(string, grpc.ServerStream) error
		timeout   time.Duration
		leave     bool
		status    otelcodes.Code
		code      string
		errorType any
		terminal  any
	}{
		"well": {generate: three, code: "OK", terminal: "eof"},
		"unavailable": {
			generate: func(string, grpc.ServerStream) error { return status.Error(codes.Unavailable, "draining") },
			status:   otelcodes.Error, code: "UNAVAILABLE", errorType: "UNAVAILABLE",
		},
		"a server's cancellation": {
			generate: func(string, grpc.ServerStream) error { return context.Canceled },
			status:   otelcodes.Error, code: "CANCELLED", errorType: "CANCELLED",
		},
		"deadline": {
			generate: once, timeout: time.Second,
			status: otelcodes.Error, code: "DEADLINE_EXCEEDED", errorType: "DEADLINE_EXCEEDED", terminal: "timeout",
		},
		"cancelled": {generate: once, leave: true, code: "CANCELLED", terminal: "client_cancelled"},
	} {
		for end, finish := range map[string]func(*genaitrace.Call, error){
			"Fail": func(c *genaitrace.Call, err error) { c.Fail(err) },
			"End":  func(c *genaitrace.Call, _ error) { c.End() },
		} {
			if end == "End" && tc.terminal == nil {
				continue // whoever knows of the error must say so
			}
			t.Run(name+"/"+end, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					o := newTelemetry(t)
					l := traced(t, o, service{generate: tc.generate})
					ctx, leave := context.WithCancel(context.Background())
					defer leave()
					if tc.timeout > 0 {
						var cancel context.CancelFunc
						ctx, cancel = context.WithTimeout(ctx, tc.timeout)
						defer cancel()
					}
					ctx, call := o.tracer().StartCall(ctx, genaitrace.Request{Model: "m", Stream: true})
					stream, err := generate(ctx, t, l.conn)
					require.NoError(t, err)
					for err == nil {
						if err = stream.RecvMsg(new(wrapperspb.StringValue)); err == nil {
							call.Chunk(genaitrace.Visible)
						}
						if tc.leave {
							leave()
						}
					}
					finish(call, err)
					l.stop()

					span := o.only("chat m", trace.SpanKindClient)
					assert.Equal(t, tc.status, span.Status().Code)
					assert.Equal(t, tc.code, attr(span, "rpc.response.status_code"))
					assert.Equal(t, tc.errorType, attr(span, "error.type"))
					assert.Equal(t, tc.terminal, attr(span, semconv.GenAIStreamTerminalKey))
					assert.Equal(t, span.SpanContext().SpanID(), o.server().Parent().SpanID())
				})
			})
		}
	}
}

const retryConfig = `{"methodConfig": [{"name": [{}], "retryPolicy": {
	"maxAttempts": 3, "initialBackoff": "0.001s", "maxBackoff": "0.001s",
	"backoffMultiplier": 1, "retryableStatusCodes": ["UNAVAILABLE"]}}]}`

// flaky fails twice before it answers.
func flaky() service {
	var attempts atomic.Int32
	return service{generate: func(prompt string, stream grpc.ServerStream) error {
		if attempts.Add(1) < 3 {
			return status.Error(codes.Unavailable, "starting")
		}
		return three(prompt, stream)
	}}
}

func connectRetrying(t *testing.T, o *telemetry, s service) link {
	t.Helper()
	return connect(t, s,
		[]grpc.ServerOption{grpc.StatsHandler(genaigrpc.NewServerHandler(o.options()...))},
		[]grpc.DialOption{
			grpc.WithStatsHandler(genaigrpc.NewClientHandler(o.options()...)),
			grpc.WithDefaultServiceConfig(retryConfig),
		})
}

func TestEachAttemptThatGRPCRetriesHasASpan(t *testing.T) {
	o := newTelemetry(t)
	l := connectRetrying(t, o, flaky())
	stream, err := generate(context.Background(), t, l.conn)
	require.NoError(t, err)
	texts, err := read(stream)
	require.NoError(t, err)
	require.Len(t, texts, 3)
	l.stop()

	o.golden("retried")
}

func TestTheFirstAttemptFeedsTheCall(t *testing.T) {
	o := newTelemetry(t)
	l := connectRetrying(t, o, flaky())
	ctx, call := o.tracer().StartCall(context.Background(), genaitrace.Request{Model: "m"})
	stream, err := generate(ctx, t, l.conn)
	require.NoError(t, err)
	_, err = read(stream)
	require.NoError(t, err)
	call.End()
	l.stop()

	assert.Equal(t, otelcodes.Unset, o.only("chat m", trace.SpanKindClient).Status().Code)
	o.golden("retried_call")
}

// gRPC reports the end of such an attempt without an error, although the caller
// gets one.
func TestAServerThatFailsBeforeItIsAskedIsNoSuccess(t *testing.T) {
	refuse := grpc.StreamInterceptor(func(any, grpc.ServerStream, *grpc.StreamServerInfo, grpc.StreamHandler) error {
		return status.Error(codes.ResourceExhausted, "queue full")
	})
	for name, inCall := range map[string]bool{"call": true, "plain": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newTelemetry(t)
				l := connect(t, service{}, []grpc.ServerOption{refuse},
					[]grpc.DialOption{grpc.WithStatsHandler(genaigrpc.NewClientHandler(o.options()...))})
				ctx := context.Background()
				var call *genaitrace.Call
				if inCall {
					ctx, call = o.tracer().StartCall(ctx, genaitrace.Request{})
				}
				stream, err := l.conn.NewStream(ctx, &serviceDesc.Streams[0], generateMethod)
				require.NoError(t, err)
				synctest.Wait() // until the refusal is there
				require.NoError(t, stream.SendMsg(wrapperspb.String("hi")))
				_, err = read(stream)
				require.Equal(t, codes.ResourceExhausted, status.Code(err))
				call.Fail(err)
				l.stop()

				spans := o.ended()
				require.Len(t, spans, 1)
				assert.Equal(t, otelcodes.Error, spans[0].Status().Code)
				assert.Nil(t, attr(spans[0], "rpc.response.status_code"), "gRPC hid it")
				assert.NotNil(t, attr(spans[0], "error.type"))
			})
		})
	}
}

// A brokenPropagator writes what gRPC would refuse, or panics.
type brokenPropagator struct{ panics bool }

func (p brokenPropagator) Inject(_ context.Context, c propagation.TextMapCarrier) {
	if p.panics {
		panic("inject")
	}
	for _, key := range []string{":path", "grpc-timeout", "Grpc-Status", "content-type", "te", "bad key", "naïve", ""} {
		c.Set(key, "x")
	}
	c.Set("x-prompt-trace", "user→router")
	c.Set("x-line", "a\r\nb")
}

func (p brokenPropagator) Extract(ctx context.Context, _ propagation.TextMapCarrier) context.Context {
	if p.panics {
		panic("extract")
	}
	return ctx
}

func (brokenPropagator) Fields() []string { return nil }

func TestABrokenPropagatorNeverFailsTheRPC(t *testing.T) {
	for name, p := range map[string]brokenPropagator{"illegal": {}, "panics": {panics: true}} {
		t.Run(name, func(t *testing.T) {
			o := newTelemetry(t)
			opts := o.options(genaigrpc.WithPropagators(p))
			l := connect(t, service{generate: three},
				[]grpc.ServerOption{grpc.StatsHandler(genaigrpc.NewServerHandler(opts...))},
				[]grpc.DialOption{grpc.WithStatsHandler(genaigrpc.NewClientHandler(opts...))})
			stream, err := generate(context.Background(), t, l.conn)
			require.NoError(t, err)
			texts, err := read(stream)
			require.NoError(t, err)
			assert.Len(t, texts, 3)
			l.stop()

			assert.False(t, o.server().Parent().IsValid())
			assert.Equal(t, "OK", attr(o.client(), "rpc.response.status_code"))
		})
	}
}

func TestBaggageTravels(t *testing.T) {
	o := newTelemetry(t)
	seen := make(chan string, 1)
	l := traced(t, o, service{complete: func(ctx context.Context, _ string) (string, error) {
		seen <- baggage.FromContext(ctx).Member("tenant").Value()
		return "", nil
	}})
	bag, err := baggage.Parse("tenant=acme")
	require.NoError(t, err)
	_, err = complete(baggage.ContextWithBaggage(context.Background(), bag), l.conn)
	require.NoError(t, err)
	assert.Equal(t, "acme", <-seen)
}

func TestNilOptionsKeepTheDefaults(t *testing.T) {
	o := newTelemetry(t)
	opts := []genaigrpc.Option{
		nil,
		genaigrpc.WithTracerProvider(o.tp), genaigrpc.WithTracerProvider(nil),
		genaigrpc.WithMeterProvider(o.mp), genaigrpc.WithMeterProvider(nil),
		genaigrpc.WithPropagators(nil),
	}
	l := connect(t, service{generate: three},
		[]grpc.ServerOption{grpc.StatsHandler(genaigrpc.NewServerHandler(opts...))},
		[]grpc.DialOption{grpc.WithStatsHandler(genaigrpc.NewClientHandler(opts...))})
	stream, err := generate(context.Background(), t, l.conn)
	require.NoError(t, err)
	_, err = read(stream)
	require.NoError(t, err)
	l.stop()
	assert.Equal(t, o.client().SpanContext().SpanID(), o.server().Parent().SpanID())
}

func TestWithoutAnyProviderRPCsWork(t *testing.T) {
	l := connect(t, service{generate: three},
		[]grpc.ServerOption{grpc.StatsHandler(genaigrpc.NewServerHandler())},
		[]grpc.DialOption{grpc.WithStatsHandler(genaigrpc.NewClientHandler())})
	stream, err := generate(context.Background(), t, l.conn)
	require.NoError(t, err)
	texts, err := read(stream)
	require.NoError(t, err)
	assert.Len(t, texts, 3)
}

func TestAUnaryErrorReachesTheCallerUnchanged(t *testing.T) {
	o := newTelemetry(t)
	want := status.New(codes.ResourceExhausted, "queue full")
	l := traced(t, o, service{complete: func(context.Context, string) (string, error) { return "", want.Err() }})
	_, err := complete(context.Background(), l.conn)
	l.stop()
	assert.True(t, errors.Is(err, want.Err()), "%v", err)
}
