package genaigrpc_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/baggage"
	otelcodes "go.opentelemetry.io/otel/codes"
	otelprop "go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/middleware/genaigrpc"
	"github.com/genaitrace/otelgenai/propagation"
	"github.com/genaitrace/otelgenai/semconv"
)

// A lateConn delays what its client sends next, once.
type lateConn struct {
	net.Conn
	by *atomic.Int64 // nanoseconds
}

func (c lateConn) Write(p []byte) (int, error) {
	time.Sleep(time.Duration(c.by.Swap(0)))
	return c.Conn.Write(p)
}

// Both ends keep a deadline, counted from when each of them learnt of it, and the
// client's cancellation comes about when the server's own deadline passes.
// Whichever is first, it is the deadline that passed, and nobody left. A request
// that was on its way for longer than the cancellation is makes the client first.
func TestADeadlineOfTheClientIsATimeoutOnTheServerAndBelow(t *testing.T) {
	for _, late := range []time.Duration{0, time.Millisecond, 9 * time.Millisecond} {
		t.Run(late.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const rpcs = 20
				o := newTelemetry(t)
				var by atomic.Int64
				listener := bufconn.Listen(1 << 16)
				l := start(t, service{complete: func(ctx context.Context, _ string) (_ string, err error) {
					if _, ok := ctx.Deadline(); !ok {
						return "warm", nil
					}
					_, inf := o.tracer().StartInference(ctx, genaitrace.Request{Model: "m"})
					defer inf.EndErr(&err)
					<-ctx.Done()
					return "", ctx.Err()
				}}, listener, "passthrough:///engine:8033",
					[]grpc.ServerOption{grpc.StatsHandler(genaigrpc.NewServerHandler(o.options()...))},
					[]grpc.DialOption{grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
						conn, err := listener.DialContext(ctx)
						return lateConn{conn, &by}, err
					})})
				_, err := complete(t.Context(), l.conn)
				require.NoError(t, err)
				for range rpcs {
					by.Store(int64(late))
					ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
					_, err := complete(ctx, l.conn)
					cancel()
					require.Equal(t, codes.DeadlineExceeded, status.Code(err))
				}
				l.stop()
				checkTimeouts(t, o, rpcs)
			})
		})
	}
}

func checkTimeouts(t *testing.T, o *telemetry, rpcs int) {
	t.Helper()
	servers, inferences := 0, 0
	for _, span := range o.ended() {
		switch {
		case span.SpanKind() == trace.SpanKindServer && attr(span, "rpc.response.status_code") == "OK":
		case span.SpanKind() == trace.SpanKindServer:
			servers++
			assert.Equal(t, otelcodes.Error, span.Status().Code)
			assert.Equal(t, "DEADLINE_EXCEEDED", attr(span, "rpc.response.status_code"))
			assert.Equal(t, "DEADLINE_EXCEEDED", attr(span, "error.type"))
			assert.Equal(t, string(semconv.GenAIStreamTerminalTimeout), attr(span, semconv.GenAIStreamTerminalKey))
		default:
			inferences++
			assert.Equal(t, otelcodes.Error, span.Status().Code)
			assert.Equal(t, "timeout", attr(span, "error.type"))
			require.Len(t, span.Events(), 1)
			assert.Equal(t, semconv.EventEarlyStop, span.Events()[0].Name)
			assert.Equal(t, semconv.GenAIEarlyStopReason(semconv.GenAIEarlyStopReasonTimeout), span.Events()[0].Attributes[0])
		}
	}
	assert.Equal(t, rpcs, servers)
	assert.Equal(t, rpcs, inferences)
}

// A client that leaves long before its deadline still left.
func TestAClientThatLeavesBeforeItsDeadlineIsNoTimeout(t *testing.T) {
	o := newTelemetry(t)
	began := make(chan struct{})
	l := connectLoopback(t, service{complete: func(ctx context.Context, _ string) (_ string, err error) {
		_, inf := o.tracer().StartInference(ctx, genaitrace.Request{Model: "m"})
		defer inf.EndErr(&err)
		close(began)
		<-ctx.Done()
		return "", ctx.Err()
	}}, []grpc.ServerOption{grpc.StatsHandler(genaigrpc.NewServerHandler(o.options()...))}, nil)
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	go func() { <-began; cancel() }()
	_, err := complete(ctx, l.conn)
	require.Equal(t, codes.Canceled, status.Code(err))
	l.stop()
	server := o.only("inference.v1.Inference/Complete", trace.SpanKindServer)
	assert.Equal(t, otelcodes.Unset, server.Status().Code)
	assert.Equal(t, string(semconv.GenAIStreamTerminalClientCancelled), attr(server, semconv.GenAIStreamTerminalKey))
	assert.Equal(t, otelcodes.Unset, o.only(semconv.SpanInferenceGenerate, trace.SpanKindInternal).Status().Code)
}

// received returns the metadata that reaches a server from a client that has md
// in its outgoing metadata, as a proxy that forwards what it got.
func received(t *testing.T, o *telemetry, ctx context.Context, md metadata.MD, opts ...genaigrpc.Option) metadata.MD {
	t.Helper()
	var got metadata.MD
	l := connect(t, service{complete: func(ctx context.Context, _ string) (string, error) {
		got, _ = metadata.FromIncomingContext(ctx)
		return "", nil
	}}, nil, []grpc.DialOption{grpc.WithStatsHandler(genaigrpc.NewClientHandler(o.options(opts...)...))})
	_, err := complete(metadata.NewOutgoingContext(ctx, md), l.conn)
	require.NoError(t, err)
	l.stop()
	return got
}

// What a proxy copied of somebody else's context is not ours to send on.
func TestAContextThatWasForwardedIsReplaced(t *testing.T) {
	const stale = "00-11111111111111111111111111111111-2222222222222222-01"
	binary := string(append(append([]byte{0, 0}, make([]byte, 16)...), 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 1))
	stranger := func() metadata.MD {
		return metadata.Pairs("traceparent", stale, "tracestate", "genai=c:1", "baggage", "tenant=evil",
			"baggage", "more=evil", "grpc-trace-bin", binary, "x-own", "kept")
	}
	bag, err := baggage.Parse("tenant=acme")
	require.NoError(t, err)
	for _, tt := range []struct {
		name    string
		ctx     context.Context
		p       otelprop.TextMapPropagator
		baggage []string
		bin     bool // of our own
	}{
		{"default", t.Context(), nil, nil, false},
		{"default, with baggage", baggage.ContextWithBaggage(t.Context(), bag), nil, []string{"tenant=acme"}, false},
		{"trace-bin", t.Context(), propagation.New(propagation.WithFormats(propagation.TraceBin)), nil, true},
		{"trace-bin, with baggage", baggage.ContextWithBaggage(t.Context(), bag), propagation.New(propagation.WithFormats(propagation.TraceBin)), []string{"tenant=acme"}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := newTelemetry(t)
			got := received(t, o, tt.ctx, stranger(), genaigrpc.WithPropagators(tt.p))
			sc := o.only("inference.v1.Inference/Complete", trace.SpanKindClient).SpanContext()
			assert.Equal(t, []string{"00-" + sc.TraceID().String() + "-" + sc.SpanID().String() + "-01"}, got.Get("traceparent"))
			assert.Empty(t, got.Get("tracestate"))
			assert.Equal(t, tt.baggage, got.Get("baggage"))
			assert.Equal(t, []string{"kept"}, got.Get("x-own"))
			if !tt.bin {
				assert.NotContains(t, got.Get("grpc-trace-bin"), binary)
				return
			}
			require.Len(t, got.Get("grpc-trace-bin"), 1)
			assert.NotEqual(t, binary, got.Get("grpc-trace-bin")[0])
			assert.Contains(t, got.Get("grpc-trace-bin")[0], string(traceID(sc)))
		})
	}
}

func traceID(sc trace.SpanContext) []byte { id := sc.TraceID(); return id[:] }

// Propagation that is switched off leaves the metadata as it is.
func TestPropagatorsWithoutFieldsLeaveTheMetadataAlone(t *testing.T) {
	o := newTelemetry(t)
	got := received(t, o, t.Context(), metadata.Pairs("traceparent", "copied", "baggage", "tenant=t1"),
		genaigrpc.WithPropagators(otelprop.NewCompositeTextMapPropagator()))
	assert.Equal(t, []string{"copied"}, got.Get("traceparent"))
	assert.Equal(t, []string{"tenant=t1"}, got.Get("baggage"))
}

// The caller's usage is told by a span that is recorded, or by nobody: then the
// server must count.
func TestACallThatIsNotRecordedDoesNotMarkItsRPCs(t *testing.T) {
	for name, sampler := range map[string]sdktrace.Sampler{"recorded": sdktrace.AlwaysSample(), "not recorded": sdktrace.NeverSample()} {
		t.Run(name, func(t *testing.T) {
			o := newTelemetry(t, sdktrace.WithSampler(sampler))
			ctx, call := o.tracer().StartCall(t.Context(), genaitrace.Request{Model: "m"})
			require.NotNil(t, call, "for its metrics at least")
			var marks []string
			for range 2 { // the second is an RPC below the call
				marks = append(marks, received(t, o, ctx, nil).Get("tracestate")...)
			}
			call.End()
			if name == "recorded" {
				assert.Equal(t, []string{"genai=c:1", "genai=c:1"}, marks)
			} else {
				assert.Empty(t, marks)
			}
		})
	}
}
