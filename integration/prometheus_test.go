package integration_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	otelprom "go.opentelemetry.io/otel/exporters/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/genaitrace/otelgenai/sampling"
)

const rules = "../docs/dashboards/rules.yaml"

// TestExemplarsInPrometheusOpenKeptTraces runs requests under a Tail that keeps the slow
// and the failed ones. Prometheus must count all of them, and each of its exemplars of
// the time to first token must be a trace that Jaeger has.
func TestExemplarsInPrometheusOpenKeptTraces(t *testing.T) {
	program := part(t, "prometheus", "usr", "bin", "prometheus")
	j := startJaeger(t)

	tail, err := sampling.NewTail(j.exporter(t), sampling.Any(sampling.Errors(), sampling.Slow(200*time.Millisecond)))
	require.NoError(t, err)
	tp := sdktrace.NewTracerProvider(tail.ProviderOptions()...)
	registry := prometheus.NewRegistry()
	reader, err := otelprom.New(otelprom.WithRegisterer(registry))
	require.NoError(t, err)
	mp := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader), sdkmetric.WithExemplarFilter(tail.Kept))
	metrics := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{EnableOpenMetrics: true}))
	t.Cleanup(metrics.Close)

	prom := startPrometheus(t, program, []string{rules}, scrape{job: "service", target: strings.TrimPrefix(metrics.URL, "http://")})

	s := startService(t, tp, mp)
	fast, slow, failed := 20, 3, 2
	for i := range fast {
		s.ask(t, "hello")
		if i == 0 { // a rate needs a value to start from
			s.ask(t, "fail")
			eventually(t, "the first requests are there", func() error {
				_, err := prom.value(t, `gen_ai_server_request_duration_seconds_count{error_type!=""}`)
				return err
			})
		}
	}
	for range slow {
		s.ask(t, "slow")
	}
	s.ask(t, "fail")
	s.gateway.Close()
	s.engine.Close()
	require.NoError(t, tail.ForceFlush(context.Background()))

	// Every request is in the histograms, kept or not.
	for series, want := range map[string]int{
		`gen_ai_server_time_to_first_token_seconds_count`:                    fast + slow,
		`genai_time_to_first_token_seconds_count{genai_span_role="gateway"}`: 2 * (fast + slow), // the front of the engine is one, too
		`gen_ai_server_request_duration_seconds_count`:                       fast + slow + failed,
		`gen_ai_server_request_duration_seconds_count{error_type!=""}`:       failed,
	} {
		prom.reaches(t, series, float64(want))
	}

	// The published rules find them.
	for _, record := range []string{
		"call_rate:rate5m", "call_duration_seconds:p95_5m", "request_rate:rate5m", "request_error_ratio:rate5m",
		"ttft_seconds:p95_5m", "host_ttft_seconds:p99_5m", "queue_wait_seconds:p95_5m", "prefill_seconds:p95_5m",
		"seconds_per_output_token:p95_5m", "output_tokens:rate5m",
	} {
		eventually(t, record, func() error {
			got, err := prom.value(t, "genai:"+record)
			if err == nil && !(got > 0) {
				err = fmt.Errorf("%s is %v", record, got)
			}
			return err
		})
	}

	// What has an exemplar was kept, and can be opened.
	var got struct {
		Data []struct {
			SeriesLabels map[string]string
			Exemplars    []struct{ Labels map[string]string }
		}
	}
	eventually(t, "exemplars", func() error {
		err := prom.get(t, "query_exemplars", url.Values{
			"query": {`{__name__=~"gen_?ai_.*time_to_first_token_seconds_bucket"}`},
			"start": {fmt.Sprint(time.Now().Add(-time.Hour).Unix())}, "end": {fmt.Sprint(time.Now().Add(time.Hour).Unix())},
		}, &got)
		if err == nil && len(got.Data) == 0 {
			return fmt.Errorf("there are none")
		}
		return err
	})
	opened := make(map[string]bool)
	for _, series := range got.Data {
		for _, e := range series.Exemplars {
			id := e.Labels["trace_id"]
			require.NotEmpty(t, id, "%v", series.SeriesLabels)
			if !opened[id] {
				opened[id] = true
				assert.NotEmpty(t, j.trace(t, id, 1))
			}
		}
	}
	assert.NotEmpty(t, opened)
	assert.LessOrEqual(t, len(opened), slow)

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	require.NoError(t, tail.Shutdown(ctx))
	require.NoError(t, tp.Shutdown(ctx))
	require.NoError(t, mp.Shutdown(ctx))
}
