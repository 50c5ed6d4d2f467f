package integration_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/cmd/genaitrace/otlp"
	"github.com/genaitrace/otelgenai/sampling"
)

// TestTwoTiersOfCollectorsKeepWhatThePolicySays runs three Collectors as processes of
// their own with the configuration that a policy becomes: one that balances, two that
// sample.
func TestTwoTiersOfCollectorsKeepWhatThePolicySays(t *testing.T) {
	program := part(t, "collector", "otelcol")
	backend, err := otlp.Listen(otlp.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, backend.Close(context.Background())) })

	policy := sampling.Any(sampling.Errors(), sampling.Slow(time.Second))
	front, first, second := address(t), address(t), address(t)
	for _, listen := range []string{first, second} {
		c, err := sampling.CollectorConfig(policy, sampling.CollectorOptions{
			Backend: "http://" + backend.GRPCAddr(), Samplers: sampling.SamplerTier{Hosts: []string{first, second}},
			Listen: front, SamplerListen: listen, DecisionWait: 6 * time.Second,
		})
		require.NoError(t, err)
		startCollector(t, program, listen, c.TailSampling())
		if listen == second {
			startCollector(t, program, front, c.LoadBalancing())
		}
	}

	exporter, err := otlptracegrpc.New(t.Context(), otlptracegrpc.WithEndpoint(front), otlptracegrpc.WithInsecure())
	require.NoError(t, err)
	tp := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter))
	want := make(map[trace.TraceID]int) // spans of the traces to be kept
	for i := range 300 {
		id, spans := makeTrace(tp.Tracer("integration"), i)
		if i%10 == 0 || i%10 == 1 {
			want[id] = spans
		}
	}
	require.NoError(t, tp.Shutdown(context.Background()))

	got := make(map[trace.TraceID]int)
	eventually(t, "what is kept", func() error {
		got = make(map[trace.TraceID]int)
		n := 0
		for _, s := range backend.Capture().Spans {
			got[s.TraceID]++
			n++
		}
		if len(got) < len(want) || n < 3*len(want) {
			return fmt.Errorf("%d traces of %d have come", len(got), len(want))
		}
		return nil
	})
	time.Sleep(time.Second) // what else might come
	assert.Equal(t, want, got)
}

// makeTrace makes a trace of three spans: the first of ten fails, the second takes two
// seconds.
func makeTrace(tracer trace.Tracer, i int) (trace.TraceID, int) {
	start := time.Now().Add(-3 * time.Second)
	end := start.Add(100 * time.Millisecond)
	if i%10 == 1 {
		end = start.Add(2 * time.Second)
	}
	ctx, root := tracer.Start(context.Background(), "POST /v1/chat/completions", trace.WithTimestamp(start), trace.WithSpanKind(trace.SpanKindServer))
	ctx, call := tracer.Start(ctx, "chat m-1", trace.WithTimestamp(start), trace.WithSpanKind(trace.SpanKindClient))
	_, phase := tracer.Start(ctx, "inference.decode", trace.WithTimestamp(start))
	if i%10 == 0 {
		phase.SetStatus(codes.Error, "")
	}
	phase.End(trace.WithTimestamp(end))
	call.End(trace.WithTimestamp(end))
	root.End(trace.WithTimestamp(end))
	return root.SpanContext().TraceID(), 3
}

// startCollector runs one with configurations, of which the later ones win.
func startCollector(t *testing.T, program, listens string, configs ...string) {
	t.Helper()
	dir := t.TempDir()
	var args []string
	for i, config := range append(configs, "service: {telemetry: {metrics: {level: none}}}\n") {
		file := filepath.Join(dir, fmt.Sprintf("%d.yaml", i))
		require.NoError(t, os.WriteFile(file, []byte(config), 0o600))
		args = append(args, "--config="+file)
	}
	start(t, program, args...)
	eventually(t, "the Collector listens", func() error { return dial(listens) })
}
