package genaitrace_test

import (
	"maps"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/semconv"
)

func TestMetricsAreTheSameWhereTheSpanIsNotSampled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sampled, unsampled := record(t), record(t, sdktrace.WithSampler(sdktrace.NeverSample()))
		for _, r := range []*recording{sampled, unsampled} {
			runInference(t, r)
			runCall(t, r)
		}
		assert.Empty(t, unsampled.recorder.Ended())
		want, got := sampled.allMetrics(), unsampled.allMetrics()
		require.ElementsMatch(t, slices.Collect(maps.Keys(want)), slices.Collect(maps.Keys(got)))
		for name := range want {
			metricdatatest.AssertEqual(t, want[name], got[name], metricdatatest.IgnoreTimestamp(), metricdatatest.IgnoreExemplars())
		}
	})
}

// Children of a request that is not sampled must not become traces of their
// own.
func TestAPhaseOfAnUnsampledInferenceHasNoSpanOfItsOwn(t *testing.T) {
	r := record(t, sdktrace.WithSampler(sdktrace.NeverSample()))
	ctx, inf := r.StartInference(t.Context(), genaitrace.Request{})
	require.NotNil(t, inf, "metrics record")
	below, d := inf.StartDecode(ctx)
	require.NotNil(t, d)
	assert.Equal(t, trace.SpanContextFromContext(ctx), trace.SpanContextFromContext(below))
	assert.False(t, d.Span().IsRecording())
	d.Token()
	inf.Fail(typedError("device_lost"))
	assert.Equal(t, "device_lost", dims(r.point("gen_ai.server.request.duration").Attributes)["error.type"])
}

func TestAHandleIsNilWhereNeitherSpanNorMetricRecords(t *testing.T) {
	unsampled := sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample()))
	tr := genaitrace.New(genaitrace.WithTracerProvider(unsampled), genaitrace.WithMeterProvider(metricnoop.NewMeterProvider()))
	ctx, inf := tr.StartInference(t.Context(), fullRequest())
	assert.Nil(t, inf)
	assert.True(t, trace.SpanContextFromContext(ctx).IsValid(), "the trace context goes on")
	ctx, d := inf.StartDecode(ctx)
	assert.Nil(t, d)
	_, call := tr.StartCall(ctx, fullRequest())
	assert.Nil(t, call)
	_, gateway := tr.StartGateway(ctx, genaitrace.GatewayRequest{Name: "POST /"})
	assert.Nil(t, gateway)
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		d.Token()
		d.Tokens(4)
		call.Chunk(genaitrace.Visible)
		inf.SetFinish()
		d.End()
		inf.End()
		call.End()
	}))
}

func TestSpansAreRecordedWhereNoMetricIs(t *testing.T) {
	r := record(t)
	tr := genaitrace.New(genaitrace.WithTracerProvider(r.provider), genaitrace.WithMeterProvider(metricnoop.NewMeterProvider()))
	ctx, inf := tr.StartInference(t.Context(), fullRequest())
	_, d := inf.StartDecode(ctx)
	d.Token()
	inf.End()
	assert.True(t, r.span(semconv.SpanInferenceGenerate).has(semconv.LLMTTFTMsKey))
}

func TestMetricsAreRecordedWhereThereIsNoTracing(t *testing.T) {
	r := record(t)
	r.Tracer = genaitrace.New(genaitrace.WithTracerProvider(tracenoop.NewTracerProvider()), genaitrace.WithMeterProvider(r.meters))
	_, inf := r.StartInference(t.Context(), genaitrace.Request{})
	inf.End()
	assert.Equal(t, uint64(1), r.point("gen_ai.server.request.duration").Count)
}
