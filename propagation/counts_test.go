package propagation_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/genaitrace/otelgenai/propagation"
	"github.com/genaitrace/otelgenai/semconv"
)

func TestWhatIsLeftOutIsCountedInAMetric(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	b := propagation.New(propagation.WithBudget(1024), propagation.WithPromptChain(), propagation.WithFormats(propagation.B3),
		propagation.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))), propagation.WithMeterProvider(nil))
	inject(b, bulky(t, 1500, 3000, 4000))
	b.Extract(t.Context(), propagation.HTTPHeader{
		"Traceparent": {benchTraceparent},
		"B3":          {"11111111111111111111111111111111-2222222222222222-1"},
		"Baggage":     {"k=" + strings.Repeat("v", 9000)},
	})

	stats := b.Stats()
	want := map[string]int64{
		"baggage_member": stats.ShedBaggageMembers, "prompt_chain": stats.ShedPromptChains,
		"tracestate_member": stats.ShedStateMembers, "baggage": 1,
	}
	var rm metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(t.Context(), &rm))
	require.Len(t, rm.ScopeMetrics, 1)
	for _, m := range rm.ScopeMetrics[0].Metrics {
		known, ok := semconv.LookupMetric(m.Name)
		require.True(t, ok, m.Name)
		assert.Equal(t, known.Unit, m.Unit)
		assert.Equal(t, known.Brief, m.Description)
		points := m.Data.(metricdata.Sum[int64]).DataPoints
		if m.Name == "genai.propagation.conflicts" {
			require.Len(t, points, 1)
			assert.EqualValues(t, 1, points[0].Value)
			continue
		}
		got := map[string]int64{}
		for _, p := range points {
			part, ok := p.Attributes.Value(semconv.GenAIPropagationPartKey)
			require.True(t, ok)
			got[part.AsString()] = p.Value
		}
		assert.Equal(t, want, got)
		for part := range got {
			assert.Positive(t, got[part], part)
		}
	}
	assert.Len(t, rm.ScopeMetrics[0].Metrics, 2)
}

func TestTheZeroBridgeCountsWithoutAMetric(t *testing.T) {
	var b propagation.Bridge
	inject(&b, bulky(t, 0, 0, 5000))
	assert.Positive(t, b.Stats().ShedBaggageMembers)
}
