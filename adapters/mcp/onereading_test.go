package genaimcp_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/trace"

	genaimcp "github.com/genaitrace/otelgenai/adapters/mcp"
)

// A busyProvider is a busy machine: the goroutine loses the processor wherever a span
// starts or ends.
type busyProvider struct{ trace.TracerProvider }

func (p busyProvider) Tracer(name string, opts ...trace.TracerOption) trace.Tracer {
	return busyTracer{p.TracerProvider.Tracer(name, opts...)}
}

type busyTracer struct{ trace.Tracer }

func (t busyTracer) Start(ctx context.Context, name string, opts ...trace.SpanStartOption) (context.Context, trace.Span) {
	time.Sleep(3 * time.Millisecond)
	ctx, span := t.Tracer.Start(ctx, name, opts...)
	return trace.ContextWithSpan(ctx, busySpan{span}), busySpan{span}
}

type busySpan struct{ trace.Span }

func (s busySpan) End(opts ...trace.SpanEndOption) {
	time.Sleep(5 * time.Millisecond)
	s.Span.End(opts...)
}

// The span of a message and its metric are timed by the same readings of the clock.
func TestAMessageIsTimedByOneReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record()
		client := mcp.NewClient(implementation, nil)
		client.AddSendingMiddleware(func(mcp.MethodHandler) mcp.MethodHandler {
			return func(context.Context, string, mcp.Request) (mcp.Result, error) {
				time.Sleep(10 * time.Millisecond)
				panic("no server")
			}
		})
		genaimcp.Attach(client, genaimcp.WithTracerProvider(busyProvider{r.provider}), genaimcp.WithMeterProvider(r.meters))
		here, there := mcp.NewInMemoryTransports()
		other, err := there.Connect(t.Context())
		require.NoError(t, err)
		defer other.Close()
		assert.Panics(t, func() {
			_, _ = client.Connect(t.Context(), here, &mcp.ClientSessionOptions{ProtocolVersion: stateful})
		})

		require.Len(t, r.spans.Ended(), 1)
		span := r.spans.Ended()[0]
		assert.Equal(t, span.EndTime().Sub(span.StartTime()).Seconds(), r.duration(t, "mcp.client.operation.duration"))
	})
}

// duration is the one value of a histogram.
func (r *recording) duration(t *testing.T, name string) float64 {
	t.Helper()
	var got metricdata.ResourceMetrics
	require.NoError(t, r.reader.Collect(t.Context(), &got))
	for _, scope := range got.ScopeMetrics {
		for _, m := range scope.Metrics {
			if m.Name == name {
				points := m.Data.(metricdata.Histogram[float64]).DataPoints
				require.Len(t, points, 1)
				require.EqualValues(t, 1, points[0].Count)
				return points[0].Sum
			}
		}
	}
	require.Fail(t, "no "+name)
	return 0
}
