package semconv_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/genaitrace/otelgenai/semconv"
)

// The names below are a promise to users: other spellings break their code.
func TestAttributesHaveTheirKeyAndType(t *testing.T) {
	tests := []struct {
		got, want attribute.KeyValue
	}{
		{semconv.AIModelName("qwen"), attribute.String("ai.model.name", "qwen")},
		{semconv.AITokensInput(2456), attribute.Int("ai.tokens.input", 2456)},
		{semconv.LLMTTFTMs(350), attribute.Float64("llm.ttft_ms", 350)},
		{semconv.LLMQueueWaitMs(35.5), attribute.Float64("llm.queue_wait_ms", 35.5)},
		{semconv.AIKVCacheHit(true), attribute.Bool("ai.kv_cache.hit", true)},
		{semconv.AIKVCacheHitRatio(0.42), attribute.Float64("ai.kv_cache.hit_ratio", 0.42)},
		{semconv.GenAIRequestID("req-7f3a"), attribute.String("genai.request_id", "req-7f3a")},
		{semconv.GenAITokenGapP50Ms(12.5), attribute.Float64("genai.token.gap.p50_ms", 12.5)},
		{semconv.GenAISpanRole(semconv.GenAISpanRoleRateLimit), attribute.String("genai.span.role", "ratelimit")},
		{semconv.GenAISpanRole(semconv.GenAISpanRoleMCP), attribute.String("genai.span.role", "mcp")},
		{semconv.GenAISpanRole("own"), attribute.String("genai.span.role", "own")},
		{semconv.GenAIStreamTerminal(semconv.GenAIStreamTerminalEOF), attribute.String("genai.stream.terminal", "eof")},
	}
	for _, tt := range tests {
		require.Equal(t, tt.want, tt.got)
	}
}

func TestMetricsHaveTheirUnitAndBuckets(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	meter := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter("test")

	ttft, err := semconv.NewGenAITimeToFirstToken(meter)
	require.NoError(t, err)
	ttft.Record(t.Context(), 0.35)
	faults, err := semconv.NewGenAITelemetryFaults(meter)
	require.NoError(t, err)
	faults.Add(t.Context(), 2, semconv.GenAIFaultCount)

	var got metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(t.Context(), &got))
	require.Len(t, got.ScopeMetrics, 1)
	metrics := got.ScopeMetrics[0].Metrics
	require.Len(t, metrics, 2)

	require.Equal(t, "genai.time_to_first_token", metrics[0].Name)
	require.Equal(t, "s", metrics[0].Unit)
	require.NotEmpty(t, metrics[0].Description)
	histogram := metrics[0].Data.(metricdata.Histogram[float64])
	require.Equal(t, semconv.GenAITimeToFirstTokenBuckets(), histogram.DataPoints[0].Bounds)

	require.Equal(t, "genai.telemetry.faults", metrics[1].Name)
	require.Equal(t, "{fault}", metrics[1].Unit)
	sum := metrics[1].Data.(metricdata.Sum[int64])
	require.True(t, sum.IsMonotonic)
	require.EqualValues(t, 2, sum.DataPoints[0].Value)
}

func TestNilMeterRecordsNothing(t *testing.T) {
	var none metric.Meter

	ttft, err := semconv.NewGenAITimeToFirstToken(none)
	require.NoError(t, err)
	ttft.Record(t.Context(), 1)

	faults, err := semconv.NewGenAITelemetryFaults(none)
	require.NoError(t, err)
	faults.Add(t.Context(), 1, semconv.GenAIFaultCount)
}
