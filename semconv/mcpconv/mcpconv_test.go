package mcpconv_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/genaitrace/otelgenai/semconv/genaiconv"
	"github.com/genaitrace/otelgenai/semconv/mcpconv"
)

func TestMetricsHaveTheirUnitBucketsAndAttributes(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	meter := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter("test")
	call, err := mcpconv.NewClientOperationDuration(meter)
	require.NoError(t, err)
	session, err := mcpconv.NewServerSessionDuration(meter)
	require.NoError(t, err)

	call.Record(t.Context(), 0.12, mcpconv.MethodNameToolsCall, call.AttrGenAIToolName("get_weather"))
	session.Record(t.Context(), 60, session.AttrNetworkTransport("pipe"))

	var got metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(t.Context(), &got))
	require.Len(t, got.ScopeMetrics, 1)
	metrics := got.ScopeMetrics[0].Metrics
	require.Len(t, metrics, 2)
	require.Equal(t, []string{"mcp.client.operation.duration", "s", "mcp.server.session.duration", "s"},
		[]string{metrics[0].Name, metrics[0].Unit, metrics[1].Name, metrics[1].Unit})
	point := metrics[0].Data.(metricdata.Histogram[float64]).DataPoints[0]
	require.Equal(t, mcpconv.ClientOperationDurationBuckets(), point.Bounds)
	require.Equal(t, attribute.NewSet(
		mcpconv.MethodName(mcpconv.MethodNameToolsCall), genaiconv.ToolName("get_weather"),
	), point.Attributes)
}

func TestMethodNamesAreThoseOnTheWire(t *testing.T) {
	require.Equal(t, attribute.String("mcp.method.name", "tools/call"), mcpconv.MethodName(mcpconv.MethodNameToolsCall))
	require.Equal(t, attribute.String("mcp.method.name", "sampling/createMessage"), mcpconv.MethodName(mcpconv.MethodNameSamplingCreateMessage))
	require.Equal(t, attribute.String("mcp.method.name", "own/method"), mcpconv.MethodName("own/method"))
}
