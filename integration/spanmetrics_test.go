package integration_test

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	otelsemconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/cmd/genaitrace/otlp"
	"github.com/genaitrace/otelgenai/sampling"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// bounds of the histogram of durations that the page shows, in seconds.
var bounds = []float64{0.005, 0.1, 0.25, 0.5, 2}

// beside is the file of one's own that docs/sampling.md shows beside the configuration
// that a policy becomes, here with addresses of this test and with what is kept in a file.
func beside(t *testing.T, page, kept string) []string {
	t.Helper()
	text, err := os.ReadFile("../docs/sampling.md")
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(text), "```yaml\nconnectors:\n")
	require.True(t, found)
	block, _, _ := strings.Cut(rest, "```")
	shown := strings.NewReplacer("localhost:8889", page, "flush_interval: 15s", "flush_interval: 200ms").Replace("connectors:\n" + block)
	return []string{shown, fmt.Sprintf("exporters: {file: {path: %q}}\nservice: {pipelines: {traces: {exporters: [file]}}}\n", kept)}
}

// TestSpanMetricsSayWhatTheSpansSay sends every span of a load to a Collector that counts
// spans and measures them by operation, keeps some traces, and shows both to Prometheus
// and to a file. Prometheus must have as many spans of each operation as were made, with
// their durations; the file must have the traces that the policy keeps, whole; and our own
// metrics, on the same page, must agree.
func TestSpanMetricsSayWhatTheSpansSay(t *testing.T) {
	program := part(t, "prometheus", "usr", "bin", "prometheus")
	collector := part(t, "collector", "otelcol")

	listens, page, kept := address(t), address(t), filepath.Join(t.TempDir(), "kept.jsonl")
	c, err := sampling.CollectorConfig(sampling.Any(sampling.Errors(), sampling.Slow(200*time.Millisecond)), sampling.CollectorOptions{
		Backend: "http://127.0.0.1:4317", Samplers: sampling.SamplerTier{Hosts: []string{listens}},
		SamplerListen: listens, DecisionWait: 6 * time.Second,
	})
	require.NoError(t, err)
	startCollector(t, collector, listens, append([]string{c.TailSampling()}, beside(t, page, kept)...)...)
	prom := startPrometheus(t, program, nil, scrape{job: "collector", target: page, keepJob: true})

	made := tracetest.NewInMemoryExporter()
	spans, err := otlptracegrpc.New(t.Context(), otlptracegrpc.WithEndpoint(listens), otlptracegrpc.WithInsecure())
	require.NoError(t, err)
	metrics, err := otlpmetricgrpc.New(t.Context(), otlpmetricgrpc.WithEndpoint(listens), otlpmetricgrpc.WithInsecure())
	require.NoError(t, err)
	service := resource.NewSchemaless(otelsemconv.ServiceName("service"))
	tp := sdktrace.NewTracerProvider(sdktrace.WithResource(service), sdktrace.WithBatcher(spans), sdktrace.WithSyncer(made))
	mp := sdkmetric.NewMeterProvider(sdkmetric.WithResource(service), sdkmetric.WithReader(sdkmetric.NewPeriodicReader(metrics)))
	s := startService(t, tp, mp)
	fast, slow, failed := 30, 4, 3
	for question, times := range map[string]int{"hello": fast, "slow": slow, "fail": failed} {
		for range times {
			s.ask(t, question)
		}
	}
	s.gateway.Close()
	s.engine.Close()
	require.NoError(t, tp.ForceFlush(t.Context()))
	require.NoError(t, mp.Shutdown(t.Context()))

	// By the load: a request is two HTTP requests, a call and an inference.
	all := float64(fast + slow + failed)
	for series, want := range map[string]float64{
		`span_kind="SPAN_KIND_SERVER"`: 2 * all,
		`span_kind="SPAN_KIND_CLIENT", gen_ai_operation_name="chat", gen_ai_request_model="m-1"`: all,
		`span_name="inference.generate"`:                                                   all,
		`span_name="inference.generate", status_code="STATUS_CODE_ERROR"`:                  float64(failed),
		`span_name="inference.decode"`:                                                     float64(fast + slow),
		`span_name="queue.wait", status_code!="STATUS_CODE_ERROR", service_name="service"`: all,
		`genai_span_role="inference", span_kind="SPAN_KIND_INTERNAL", error_type!="", gen_ai_request_model="m-1", job="service"`:   float64(failed),
		`genai_span_role="inference", span_kind="SPAN_KIND_INTERNAL", gen_ai_request_model="m-1", status_code="STATUS_CODE_UNSET"`: float64(fast + slow),
	} {
		prom.reaches(t, "traces_span_metrics_calls_total{"+series+"}", want)
	}

	// By the spans themselves, one operation after the other.
	operations := make(map[operation]*measured)
	for _, span := range made.GetSpans() {
		m := operations[operationOf(span)]
		if m == nil {
			m = &measured{within: make([]float64, len(bounds))}
			operations[operationOf(span)] = m
		}
		m.add(span.EndTime.Sub(span.StartTime).Seconds())
	}
	assert.Greater(t, len(operations), 7)
	for o, m := range operations {
		prom.reaches(t, "traces_span_metrics_calls_total"+o.selector(), m.count)
		prom.reaches(t, "traces_span_metrics_duration_seconds_count"+o.selector(), m.count)
		sum, err := prom.value(t, "traces_span_metrics_duration_seconds_sum"+o.selector())
		require.NoError(t, err)
		assert.InDelta(t, m.sum, sum, 1e-6, o)
		for i, bound := range bounds {
			prom.reaches(t, fmt.Sprintf("traces_span_metrics_duration_seconds_bucket%s", o.selector(fmt.Sprintf("le=%q", fmt.Sprint(bound)))), m.within[i])
		}
	}

	// Our own metrics of the same calls, which came over the same Collector.
	for own, theirs := range map[string]string{
		`gen_ai_client_inference_duration_seconds_count`:                               `calls_total{span_kind="SPAN_KIND_CLIENT", gen_ai_operation_name="chat"}`,
		`gen_ai_server_request_duration_seconds_count{error_type!=""}`:                 `calls_total{span_name="inference.generate", status_code="STATUS_CODE_ERROR"}`,
		`genai_queue_wait_seconds_count`:                                               `calls_total{span_name="queue.wait"}`,
		`http_server_request_duration_seconds_count{http_response_status_code!="500"}`: `calls_total{span_kind="SPAN_KIND_SERVER", status_code="STATUS_CODE_UNSET"}`,
	} {
		want, err := prom.value(t, "traces_span_metrics_"+theirs)
		require.NoError(t, err)
		prom.reaches(t, own, want)
	}
	got, err := prom.value(t, `gen_ai_client_inference_duration_seconds_sum`)
	require.NoError(t, err)
	want, err := prom.value(t, `traces_span_metrics_duration_seconds_sum{span_kind="SPAN_KIND_CLIENT", gen_ai_operation_name="chat"}`)
	require.NoError(t, err)
	assert.InDelta(t, want, got, math.Max(0.001*all, 0.02*want), "the metric and the spans of the calls")

	// What the policy keeps is in the file, whole.
	wantKept := make(map[trace.TraceID]int)
	for _, span := range made.GetSpans() {
		if slowOrFailed(made.GetSpans(), span.SpanContext.TraceID()) {
			wantKept[span.SpanContext.TraceID()]++
		}
	}
	assert.Len(t, wantKept, slow+failed)
	eventually(t, "what is kept", func() error {
		capture, err := otlp.ReadFile(kept)
		if err != nil {
			return err
		}
		gotKept := make(map[trace.TraceID]int)
		for _, span := range capture.Spans {
			gotKept[span.TraceID]++
		}
		if fmt.Sprint(gotKept) != fmt.Sprint(wantKept) {
			return fmt.Errorf("%d traces are in the file, want %d", len(gotKept), len(wantKept))
		}
		return nil
	})
	require.NoError(t, tp.Shutdown(context.Background()))
}

// operation is what spans are measured by; its parts are as Prometheus has them.
type operation struct{ name, kind, status, model, role, errorType string }

func operationOf(span tracetest.SpanStub) operation {
	set := attribute.NewSet(span.Attributes...)
	text := func(key attribute.Key) string { v, _ := set.Value(key); return v.AsString() }
	return operation{
		name: span.Name, kind: "SPAN_KIND_" + strings.ToUpper(span.SpanKind.String()),
		status: "STATUS_CODE_" + strings.ToUpper(span.Status.Code.String()),
		model:  text(genaiconv.RequestModelKey), role: text(semconv.GenAISpanRoleKey), errorType: text(otelsemconv.ErrorTypeKey),
	}
}

// selector matches the series of the operation; a label that is empty matches its absence.
func (o operation) selector(more ...string) string {
	return fmt.Sprintf("{span_name=%q, span_kind=%q, status_code=%q, gen_ai_request_model=%q, genai_span_role=%q, error_type=%q, %s}",
		o.name, o.kind, o.status, o.model, o.role, o.errorType, strings.Join(more, ", "))
}

// measured is a histogram of durations, with its buckets added up as Prometheus has them.
type measured struct {
	count, sum float64
	within     []float64
}

func (m *measured) add(seconds float64) {
	m.count++
	m.sum += seconds
	for i, bound := range bounds {
		if seconds <= bound {
			m.within[i]++
		}
	}
}

// slowOrFailed judges a trace as the policy does, by all that the service made of it.
func slowOrFailed(spans tracetest.SpanStubs, id trace.TraceID) bool {
	var start, end time.Time
	for _, span := range spans {
		if span.SpanContext.TraceID() != id {
			continue
		}
		if span.Status.Code == codes.Error {
			return true
		}
		if start.IsZero() || span.StartTime.Before(start) {
			start = span.StartTime
		}
		if span.EndTime.After(end) {
			end = span.EndTime
		}
	}
	return end.Sub(start) > 200*time.Millisecond
}
