package propagation_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/propagation"
)

func TestTheCallerMarkIsPutInFront(t *testing.T) {
	tests := []struct {
		why, before, after string
	}{
		{"no tracestate", "", "genai=c:1"},
		{"other members", "ot=th:8,vendor=x", "genai=c:1,ot=th:8,vendor=x"},
		{"31 members", members(0, 31), "genai=c:1," + members(0, 31)},
		{"32 members", members(0, 32), "genai=c:1," + members(0, 31)},
		{"32 members with ours", members(0, 31) + ",genai=x:1", "genai=c:1;x:1," + members(0, 31)},
		{"unknown sub-fields", "ot=th:8,genai=x:1;yy:2", "genai=c:1;x:1;yy:2,ot=th:8"},
		{"another value of the mark", "genai=x:1;c:0;y:2", "genai=c:1;x:1;y:2"},
		{"another mark that hides a space", "genai=x:1 ;c:0", "genai=c:1;x:1"},
		{"empty sub-fields", "genai=;;x:1;", "genai=c:1;x:1"},
		{"sub-fields that leave no room", "genai=x:1;y:" + strings.Repeat("v", 250), "genai=c:1;x:1"},
		{"a sub-field that fills the room", "genai=y:" + strings.Repeat("v", 250), "genai=c:1;y:" + strings.Repeat("v", 250)},
		{"a sub-field one too long for it", "genai=y:" + strings.Repeat("v", 251), "genai=c:1"},
		{"already marked", "ot=th:8,genai=x:1;c:1", "ot=th:8,genai=x:1;c:1"},
	}
	for _, tt := range tests {
		t.Run(tt.why, func(t *testing.T) {
			before := mustSpanContext(t, benchTraceparent, tt.before).WithRemote(false)
			ctx := propagation.ContextWithCallerMark(trace.ContextWithSpanContext(context.Background(), before))
			after := trace.SpanContextFromContext(ctx)
			assert.Equal(t, tt.after, after.TraceState().String())
			assert.Equal(t, before, after.WithTraceState(before.TraceState()), "more than the tracestate changed")
			assert.True(t, propagation.HasCallerMark(after))
			assert.Equal(t, ctx, propagation.ContextWithCallerMark(ctx), "marking twice is marking once")
		})
	}
}

func TestThereIsNoMarkWithoutASpanContext(t *testing.T) {
	ctx := context.Background()
	assert.Equal(t, ctx, propagation.ContextWithCallerMark(ctx))
	assert.False(t, propagation.HasCallerMark(trace.SpanContext{}))
}

func TestOnlyTheMarkIsAMark(t *testing.T) {
	for state, want := range map[string]bool{
		"genai=c:1":         true,
		"ot=c:0,genai=c:1":  true,
		"genai=x:1;c:1;y:2": true,
		"genai=c:0":         false,
		"genai=c:0;c:1":     false,
		"genai=c:10":        false,
		"genai=cc:1":        false,
		"genai=c":           false,
		"genai=x:c:1":       false,
		"ot=c:1":            false,
		"":                  false,
	} {
		sc := mustSpanContext(t, benchTraceparent, state)
		assert.Equal(t, want, propagation.HasCallerMark(sc), "%q", state)
		assert.Zero(t, testing.AllocsPerRun(100, func() { propagation.HasCallerMark(sc) }))
	}
}

// A host sees the mark of its caller on its own span, because the SDK hands
// the tracestate of a parent on to its children.
func TestASpanBelowAMarkedCallerHasTheMark(t *testing.T) {
	for name, sampler := range map[string]sdktrace.Sampler{
		"parent based, on":  sdktrace.ParentBased(sdktrace.AlwaysSample()),
		"parent based, off": sdktrace.ParentBased(sdktrace.NeverSample()),
		"ratio":             sdktrace.TraceIDRatioBased(0.5),
	} {
		t.Run(name, func(t *testing.T) {
			provider := sdktrace.NewTracerProvider(sdktrace.WithSampler(sampler))
			defer func() { assert.NoError(t, provider.Shutdown(context.Background())) }()
			tracer := provider.Tracer("test")

			ctx, client := tracer.Start(context.Background(), "chat", trace.WithSpanKind(trace.SpanKindClient))
			wire := propagation.GRPCMetadata{}
			propagation.New().Inject(propagation.ContextWithCallerMark(ctx), wire)
			assert.False(t, propagation.HasCallerMark(client.SpanContext()), "the caller's own span is marked")
			client.End()

			ctx = propagation.New().Extract(context.Background(), wire)
			ctx, server := tracer.Start(ctx, "Generate", trace.WithSpanKind(trace.SpanKindServer))
			defer server.End()
			_, inference := tracer.Start(ctx, "inference.generate")
			defer inference.End()

			assert.Equal(t, client.SpanContext().TraceID(), inference.SpanContext().TraceID())
			assert.True(t, propagation.HasCallerMark(server.SpanContext()))
			assert.True(t, propagation.HasCallerMark(inference.SpanContext()))
		})
	}
}
