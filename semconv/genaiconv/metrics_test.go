package genaiconv_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

func TestRequiredAttributesAreParameters(t *testing.T) {
	meter, collect := testMeter(t)
	ttft, err := genaiconv.NewServerTimeToFirstToken(meter)
	require.NoError(t, err)
	tokens, err := genaiconv.NewClientInferenceUsageInputTokens(meter)
	require.NoError(t, err)

	ttft.Record(t.Context(), 0.35, genaiconv.OperationNameChat, "vllm",
		ttft.AttrRequestModel("qwen"), ttft.AttrServerPort(8000))
	tokens.Add(t.Context(), 19, genaiconv.OperationNameChat, "vllm", genaiconv.TokenModalityText)

	got := collect()
	require.Equal(t, attribute.NewSet(
		attribute.String("gen_ai.operation.name", "chat"), attribute.String("gen_ai.provider.name", "vllm"),
		attribute.String("gen_ai.request.model", "qwen"), attribute.Int("server.port", 8000),
	), got[ttft.Name()].Data.(metricdata.Histogram[float64]).DataPoints[0].Attributes)
	sum := got[tokens.Name()].Data.(metricdata.Sum[int64]).DataPoints[0]
	require.EqualValues(t, 19, sum.Value)
	require.Equal(t, attribute.NewSet(
		attribute.String("gen_ai.operation.name", "chat"), attribute.String("gen_ai.provider.name", "vllm"),
		attribute.String("gen_ai.token.modality", "text"),
	), sum.Attributes)
}

func TestTheRequiredValueWinsOverTheSameKeyInAttrs(t *testing.T) {
	meter, collect := testMeter(t)
	ttft, err := genaiconv.NewServerTimeToFirstToken(meter)
	require.NoError(t, err)
	attrs := []attribute.KeyValue{genaiconv.ProviderName("mine"), genaiconv.RequestModel("qwen")}

	ttft.Record(t.Context(), 0.35, genaiconv.OperationNameChat, "vllm", attrs...)

	set := collect()[ttft.Name()].Data.(metricdata.Histogram[float64]).DataPoints[0].Attributes
	provider, _ := set.Value(genaiconv.ProviderNameKey)
	require.Equal(t, "vllm", provider.AsString())
	require.Equal(t, genaiconv.ProviderName("mine"), attrs[0], "the slice of the caller is not changed")
}

func TestInstrumentsTellWhatTheyAre(t *testing.T) {
	meter, collect := testMeter(t)
	calls, err := genaiconv.NewInvokeAgentInferenceCalls(meter)
	require.NoError(t, err)
	calls.RecordSet(t.Context(), 3, attribute.NewSet(genaiconv.AgentName("planner")))

	got := collect()["gen_ai.invoke_agent.inference_calls"]
	require.Equal(t, []string{calls.Name(), calls.Unit(), calls.Description()}, []string{got.Name, got.Unit, got.Description})
	require.Equal(t, genaiconv.InvokeAgentInferenceCallsBuckets(), got.Data.(metricdata.Histogram[int64]).DataPoints[0].Bounds)
}

func TestTheZeroValueRecordsNothing(t *testing.T) {
	var ttft genaiconv.ServerTimeToFirstToken
	ttft.Record(t.Context(), 1, genaiconv.OperationNameChat, "vllm")
	ttft.RecordSet(t.Context(), 1, attribute.Set{})
	var tokens genaiconv.ClientInferenceUsageInputTokens
	tokens.Add(t.Context(), 1, genaiconv.OperationNameChat, "vllm", genaiconv.TokenModalityText)
	tokens.AddSet(t.Context(), 1, attribute.Set{})
}

var prebuilt = attribute.NewSet(
	genaiconv.OperationName(genaiconv.OperationNameChat), genaiconv.ProviderName("vllm"), genaiconv.RequestModel("qwen"))

func TestRecordSetAllocatesNothing(t *testing.T) {
	meter, _ := testMeter(t)
	ttft, err := genaiconv.NewServerTimeToFirstToken(meter)
	require.NoError(t, err)
	tokens, err := genaiconv.NewClientInferenceUsageInputTokens(meter)
	require.NoError(t, err)
	ctx := t.Context()

	require.Zero(t, testing.AllocsPerRun(1000, func() { ttft.RecordSet(ctx, 0.35, prebuilt) }))
	require.Zero(t, testing.AllocsPerRun(1000, func() { tokens.AddSet(ctx, 19, prebuilt) }))
	nobody, err := genaiconv.NewServerTimeToFirstToken(nil)
	require.NoError(t, err)
	require.Zero(t, testing.AllocsPerRun(1000, func() { nobody.Record(ctx, 0.35, genaiconv.OperationNameChat, "vllm") }))
}

func BenchmarkRecord(b *testing.B) {
	meter, _ := testMeter(b)
	ttft, err := genaiconv.NewServerTimeToFirstToken(meter)
	require.NoError(b, err)
	ctx, inst := context.Background(), ttft.Inst()
	opts := []metric.RecordOption{metric.WithAttributeSet(prebuilt)}
	b.Run("set", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			ttft.RecordSet(ctx, 0.35, prebuilt)
		}
	})
	b.Run("options", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			inst.Record(ctx, 0.35, opts...)
		}
	})
	b.Run("attributes", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			ttft.Record(ctx, 0.35, genaiconv.OperationNameChat, "vllm", genaiconv.RequestModel("qwen"))
		}
	})
}

// testMeter returns a meter and what reads its metrics, by name.
func testMeter(tb testing.TB) (metric.Meter, func() map[string]metricdata.Metrics) {
	tb.Helper()
	reader := sdkmetric.NewManualReader()
	meter := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter("test")
	return meter, func() map[string]metricdata.Metrics {
		tb.Helper()
		var got metricdata.ResourceMetrics
		require.NoError(tb, reader.Collect(context.Background(), &got))
		named := map[string]metricdata.Metrics{}
		for _, s := range got.ScopeMetrics {
			for _, m := range s.Metrics {
				named[m.Name] = m
			}
		}
		return named
	}
}
