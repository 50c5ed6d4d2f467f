package fault_test

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/genaitrace/otelgenai/internal/fault"
	"github.com/genaitrace/otelgenai/semconv"
)

func TestEachFaultIsCountedAndTheFirstOfEachReported(t *testing.T) {
	var mu sync.Mutex
	var reported []string
	before := otel.GetErrorHandler()
	defer otel.SetErrorHandler(before)
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		mu.Lock()
		defer mu.Unlock()
		reported = append(reported, err.Error())
	}))
	reader := sdkmetric.NewManualReader()
	c := fault.NewCounter("pkg", sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter("test"))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			restored := false
			func() {
				defer c.Catch(context.Background(), "callback panicked", func() { restored = true })
				panic("why")
			}()
			assert.True(t, restored)
			func() {
				defer c.Catch(context.Background(), "callback panicked", func() { t.Error("nothing panicked") })
			}()
			c.Count(context.Background(), semconv.GenAIFaultLate, "too late")
		})
	}
	wg.Wait()
	const further = " (reported once; further ones are counted in genai.telemetry.faults)"
	assert.ElementsMatch(t, []string{"pkg: callback panicked: why" + further, "pkg: too late" + further}, reported)

	var rm metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(t.Context(), &rm))
	counted := map[string]int64{}
	for _, p := range rm.ScopeMetrics[0].Metrics[0].Data.(metricdata.Sum[int64]).DataPoints {
		kind, _ := p.Attributes.Value(semconv.GenAIFaultKey)
		counted[kind.AsString()] = p.Value
	}
	assert.Equal(t, map[string]int64{"panic": 8, "late": 8}, counted)
}
