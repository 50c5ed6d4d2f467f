package genaigrpc_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/propagation"
	"github.com/genaitrace/otelgenai/semconv"
)

// inbound is a context as an HTTP handler has it, below the span of a client.
func inbound() context.Context {
	return propagation.New().Extract(context.Background(), propagation.HTTPHeader(http.Header{
		"Traceparent": {"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"},
		"Tracestate":  {"vendor=opaque"},
	}))
}

// An engine below the service, as the host records it.
func engine(tr *genaitrace.Tracer) service {
	return service{generate: func(_ string, stream grpc.ServerStream) (err error) {
		ctx, inf := tr.StartInference(stream.Context(), genaitrace.Request{Provider: "toy", Model: "m", Stream: true})
		defer inf.EndErr(&err)
		_, p := inf.StartPrefill(ctx, genaitrace.Prompt{Tokens: 2})
		p.End()
		_, d := inf.StartDecode(ctx)
		for _, text := range []string{"a", "b", "c"} {
			d.Token()
			if err := sendText(stream, text); err != nil {
				return err
			}
		}
		d.End()
		inf.SetUsage(genaitrace.Usage{InputTokens: new(2), OutputTokens: new(3)})
		inf.SetFinish("stop")
		return nil
	}}
}

func TestAModelCallIsOneSpanFromHTTPToTheEngine(t *testing.T) {
	o := newTelemetry(t)
	tr := o.tracer()
	l := traced(t, o, engine(tr))

	ctx, call := tr.StartCall(inbound(), genaitrace.Request{Provider: "toy", Model: "m", Stream: true})
	stream, err := generate(ctx, t, l.conn)
	require.NoError(t, err)
	texts, err := read(stream)
	require.NoError(t, err)
	assert.Equal(t, []string{"a", "b", "c"}, texts)
	for range texts {
		call.Chunk(genaitrace.Visible)
	}
	call.SetUsage(genaitrace.Usage{InputTokens: new(2), OutputTokens: new(3)})
	call.End()
	l.stop()

	o.golden("model_call")
	for _, s := range o.ended() {
		assert.Equal(t, "4bf92f3577b34da6a3ce929d0e0e4736", s.SpanContext().TraceID().String())
		assert.Equal(t, trace.FlagsSampled, s.SpanContext().TraceFlags())
		assert.Equal(t, "opaque", s.SpanContext().TraceState().Get("vendor"))
	}
}

func TestAnRPCOutsideOfACallHasASpanOnBothSides(t *testing.T) {
	o := newTelemetry(t)
	l := traced(t, o, service{
		generate: three,
		complete: func(context.Context, string) (string, error) { return "done", nil },
	})
	ctx := inbound()

	got, err := complete(ctx, l.conn)
	require.NoError(t, err)
	assert.Equal(t, "done", got)
	stream, err := generate(ctx, t, l.conn)
	require.NoError(t, err)
	texts, err := read(stream)
	require.NoError(t, err)
	assert.Len(t, texts, 3)
	l.stop()

	o.golden("plain")
}

func TestTheServerLearnsThatItsCallerReportsUsage(t *testing.T) {
	for name, inCall := range map[string]bool{"call": true, "plain": false} {
		t.Run(name, func(t *testing.T) {
			o := newTelemetry(t)
			marked := make(chan bool, 1)
			l := traced(t, o, service{complete: func(ctx context.Context, _ string) (string, error) {
				marked <- propagation.HasCallerMark(trace.SpanContextFromContext(ctx))
				return "", nil
			}})
			ctx := context.Background()
			var call *genaitrace.Call
			if inCall {
				ctx, call = o.tracer().StartCall(ctx, genaitrace.Request{Model: "m"})
			}
			_, err := complete(ctx, l.conn)
			require.NoError(t, err)
			call.End()
			l.stop()

			assert.Equal(t, inCall, <-marked)
			for _, s := range o.ended() {
				isServer := s.SpanKind() == trace.SpanKindServer
				assert.Equal(t, inCall && isServer, propagation.HasCallerMark(s.SpanContext()), s.Name())
			}
		})
	}
}

func TestASecondRPCOfACallIsASpanBelowItAndStillMarked(t *testing.T) {
	o := newTelemetry(t)
	var marks []bool
	l := traced(t, o, service{complete: func(ctx context.Context, _ string) (string, error) {
		marks = append(marks, propagation.HasCallerMark(trace.SpanContextFromContext(ctx)))
		return "", nil
	}})
	ctx, call := o.tracer().StartCall(context.Background(), genaitrace.Request{Model: "m"})
	for range 2 {
		_, err := complete(ctx, l.conn)
		require.NoError(t, err)
	}
	call.End()
	l.stop()

	assert.Equal(t, []bool{true, true}, marks)
	o.golden("second_rpc")
}

func TestACallThatAnotherTransportFeedsIsLeftAlone(t *testing.T) {
	o := newTelemetry(t)
	l := traced(t, o, service{complete: func(context.Context, string) (string, error) { return "", nil }})
	ctx, call := o.tracer().StartCall(context.Background(), genaitrace.Request{Model: "m"})
	require.True(t, call.Watch() > 0)
	_, err := complete(ctx, l.conn)
	require.NoError(t, err)
	call.End()
	l.stop()

	span := o.only("chat m", trace.SpanKindClient)
	assert.Nil(t, attr(span, "rpc.method"))
	inner := o.only("inference.v1.Inference/Complete", trace.SpanKindClient)
	assert.Equal(t, span.SpanContext().SpanID(), inner.Parent().SpanID())
}

func TestAnEndedCallIsNotFed(t *testing.T) {
	o := newTelemetry(t)
	l := traced(t, o, service{complete: func(context.Context, string) (string, error) { return "", nil }})
	ctx, call := o.tracer().StartCall(context.Background(), genaitrace.Request{Model: "m"})
	call.End()
	_, err := complete(ctx, l.conn)
	require.NoError(t, err)
	l.stop()

	o.only("inference.v1.Inference/Complete", trace.SpanKindClient)
	assert.False(t, propagation.HasCallerMark(o.only("inference.v1.Inference/Complete", trace.SpanKindServer).SpanContext()))
}

func TestTheHandlersSpanIsWhatTheServiceSees(t *testing.T) {
	o := newTelemetry(t)
	seen := make(chan trace.SpanContext, 1)
	l := traced(t, o, service{generate: func(_ string, stream grpc.ServerStream) error {
		seen <- trace.SpanContextFromContext(stream.Context())
		_, ok := genaitrace.ArrivalFromContext(stream.Context())
		assert.True(t, ok, "arrival time")
		return nil
	}})
	stream, err := generate(context.Background(), t, l.conn)
	require.NoError(t, err)
	_, err = read(stream)
	require.NoError(t, err)
	l.stop()

	span := o.server()
	assert.True(t, span.SpanContext().Equal(<-seen))
	assert.Equal(t, string(semconv.GenAISpanRoleService), attr(span, semconv.GenAISpanRoleKey))
	assert.Nil(t, attr(o.client(), semconv.GenAISpanRoleKey))
}

func TestMetadataOfTheApplicationIsLeftAsItWas(t *testing.T) {
	o := newTelemetry(t)
	var got metadata.MD
	l := traced(t, o, service{complete: func(ctx context.Context, _ string) (string, error) {
		got, _ = metadata.FromIncomingContext(ctx)
		return "", nil
	}})
	// As a proxy has it that forwards the metadata of what it serves.
	const stale = "00-11111111111111111111111111111111-2222222222222222-01"
	md := metadata.Pairs("traceparent", stale, "tracestate", "old=1", "x-tenant", "a", "x-tenant", "b", "raw-bin", "\x00\xff")
	before := md.Copy()

	_, err := complete(metadata.NewOutgoingContext(context.Background(), md), l.conn)
	require.NoError(t, err)
	l.stop()

	assert.Equal(t, before, md)
	assert.Equal(t, []string{"a", "b"}, got.Get("x-tenant"))
	assert.Equal(t, []string{"\x00\xff"}, got.Get("raw-bin"))
	assert.Empty(t, got.Get("tracestate"))
	client := o.only("inference.v1.Inference/Complete", trace.SpanKindClient).SpanContext()
	assert.Equal(t, []string{"00-" + client.TraceID().String() + "-" + client.SpanID().String() + "-01"}, got.Get("traceparent"))
}
