package genaiconv_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// The names below are a promise to users: other spellings break their code.
func TestAttributesHaveTheirKeyAndType(t *testing.T) {
	tests := []struct {
		got, want attribute.KeyValue
	}{
		{genaiconv.OperationName(genaiconv.OperationNameChat), attribute.String("gen_ai.operation.name", "chat")},
		{genaiconv.ProviderName(genaiconv.ProviderNameOpenAI), attribute.String("gen_ai.provider.name", "openai")},
		{genaiconv.ProviderName("vllm"), attribute.String("gen_ai.provider.name", "vllm")},
		{genaiconv.RequestModel("qwen"), attribute.String("gen_ai.request.model", "qwen")},
		{genaiconv.RequestStream(true), attribute.Bool("gen_ai.request.stream", true)},
		{genaiconv.RequestTopP(0.95), attribute.Float64("gen_ai.request.top_p", 0.95)},
		{
			genaiconv.ResponseFinishReasons("stop", "length"),
			attribute.StringSlice("gen_ai.response.finish_reasons", []string{"stop", "length"}),
		},
		{genaiconv.ResponseTimeToFirstChunk(0.25), attribute.Float64("gen_ai.response.time_to_first_chunk", 0.25)},
		{genaiconv.UsageCacheReadInputTokens(8), attribute.Int("gen_ai.usage.cache_read.input_tokens", 8)},
	}
	for _, tt := range tests {
		require.Equal(t, tt.want, tt.got)
	}
}

// histograms are the ones that a service of inference lives by.
var histograms = map[string]struct {
	make    func(metric.Meter, ...metric.Float64HistogramOption) (metric.Float64Histogram, error)
	buckets func() []float64
}{
	"gen_ai.client.inference.duration": {
		raw(genaiconv.NewClientInferenceDuration), genaiconv.ClientInferenceDurationBuckets,
	},
	"gen_ai.client.inference.time_to_first_chunk": {
		raw(genaiconv.NewClientInferenceTimeToFirstChunk), genaiconv.ClientInferenceTimeToFirstChunkBuckets,
	},
	"gen_ai.client.inference.time_per_output_chunk": {
		raw(genaiconv.NewClientInferenceTimePerOutputChunk), genaiconv.ClientInferenceTimePerOutputChunkBuckets,
	},
	"gen_ai.server.request.duration": {
		raw(genaiconv.NewServerRequestDuration), genaiconv.ServerRequestDurationBuckets,
	},
	"gen_ai.server.time_to_first_token": {
		raw(genaiconv.NewServerTimeToFirstToken), genaiconv.ServerTimeToFirstTokenBuckets,
	},
	"gen_ai.server.time_per_output_token": {
		raw(genaiconv.NewServerTimePerOutputToken), genaiconv.ServerTimePerOutputTokenBuckets,
	},
}

// raw makes the instrument inside a typed one.
func raw[I interface {
	Inst() metric.Float64Histogram
}](
	create func(metric.Meter, ...metric.Float64HistogramOption) (I, error),
) func(metric.Meter, ...metric.Float64HistogramOption) (metric.Float64Histogram, error) {
	return func(m metric.Meter, opts ...metric.Float64HistogramOption) (metric.Float64Histogram, error) {
		i, err := create(m, opts...)
		return i.Inst(), err
	}
}

func TestHistogramsHaveTheirUnitAndBuckets(t *testing.T) {
	for name, h := range histograms {
		t.Run(name, func(t *testing.T) {
			got := record(t, h.make)
			require.Equal(t, name, got.Name)
			require.Equal(t, "s", got.Unit)
			require.NotEmpty(t, got.Description)
			require.Equal(t, h.buckets(), got.Data.(metricdata.Histogram[float64]).DataPoints[0].Bounds)
		})
	}
}

func TestOptionsOfTheCallerWin(t *testing.T) {
	got := record(t, raw(genaiconv.NewServerTimeToFirstToken),
		metric.WithDescription("mine"), metric.WithExplicitBucketBoundaries(1, 2))

	require.Equal(t, "mine", got.Description)
	require.Equal(t, "s", got.Unit)
	require.Equal(t, []float64{1, 2}, got.Data.(metricdata.Histogram[float64]).DataPoints[0].Bounds)
}

func TestBucketsAreTheCallersOwn(t *testing.T) {
	genaiconv.ServerTimeToFirstTokenBuckets()[0] = 99

	require.Equal(t, 0.001, genaiconv.ServerTimeToFirstTokenBuckets()[0])
}

func TestNilMeterRecordsNothing(t *testing.T) {
	for name, h := range histograms {
		t.Run(name, func(t *testing.T) {
			instrument, err := h.make(nil)
			require.NoError(t, err)
			instrument.Record(t.Context(), 1)
		})
	}
}

// record makes an instrument, records one value and returns what is collected.
func record(
	t *testing.T,
	instrument func(metric.Meter, ...metric.Float64HistogramOption) (metric.Float64Histogram, error),
	opts ...metric.Float64HistogramOption,
) metricdata.Metrics {
	t.Helper()
	reader := sdkmetric.NewManualReader()
	meter := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter("test")
	histogram, err := instrument(meter, opts...)
	require.NoError(t, err)
	histogram.Record(t.Context(), 0.35)

	var got metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(t.Context(), &got))
	require.Len(t, got.ScopeMetrics, 1)
	require.Len(t, got.ScopeMetrics[0].Metrics, 1)
	return got.ScopeMetrics[0].Metrics[0]
}
