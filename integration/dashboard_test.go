package integration_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	otelprom "go.opentelemetry.io/otel/exporters/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	otelsemconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/genaitrace/otelgenai/genaitrace"
)

const dashboards = "../docs/dashboards"

// unanswered are expressions of the dashboard and the rules that a load leaves without
// data, each with the reason. There is none: the load is bad enough for every alert.
var unanswered = map[string]string{}

// TestEveryQueryOfTheDashboardFindsItsData runs a bad hour in seconds: answers, failures,
// an overloaded engine, a caller that miscounts and another service whose one request is
// stuck. Every query of the panels, every recording rule and every alert must then find
// data in a real Prometheus, whichever way the metrics got there.
func TestEveryQueryOfTheDashboardFindsItsData(t *testing.T) {
	program := part(t, "prometheus", "usr", "bin", "prometheus")
	for _, way := range []struct {
		name  string
		start func(t *testing.T, jobs ...string) (providers []*sdkmetric.MeterProvider, scrapes []scrape)
	}{
		{"scraped from the service", scraped},
		{"through a Collector", throughCollector},
	} {
		t.Run(way.name, func(t *testing.T) {
			providers, scrapes := way.start(t, "service", "stuck")
			prom := startPrometheus(t, program, []string{filepath.Join(dashboards, "rules.yaml"), prices(t)}, scrapes...)
			badHour(t, prom, providers[0], providers[1])

			for what, expr := range expressions(t, prom) {
				if reason := unanswered[expr]; reason != "" {
					t.Logf("%s: left out, %s", what, reason)
					continue
				}
				eventually(t, what, func() error { return hasData(t, prom, expr) })
			}
			alertsName(t, prom)
			for _, provider := range providers {
				require.NoError(t, provider.Shutdown(context.Background()))
			}
		})
	}
}

// scraped gives each job a page of metrics of its own.
func scraped(t *testing.T, jobs ...string) (providers []*sdkmetric.MeterProvider, scrapes []scrape) {
	for _, job := range jobs {
		registry := prometheus.NewRegistry()
		reader, err := otelprom.New(otelprom.WithRegisterer(registry))
		require.NoError(t, err)
		page := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{EnableOpenMetrics: true}))
		t.Cleanup(page.Close)
		providers = append(providers, sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)))
		scrapes = append(scrapes, scrape{job: job, target: strings.TrimPrefix(page.URL, "http://")})
	}
	return providers, scrapes
}

// throughCollector sends the metrics of all jobs to one Collector, whose page tells them
// apart by service.name.
func throughCollector(t *testing.T, jobs ...string) (providers []*sdkmetric.MeterProvider, scrapes []scrape) {
	listens, page := address(t), address(t)
	startCollector(t, part(t, "collector", "otelcol"), listens, fmt.Sprintf(`
receivers: {otlp: {protocols: {grpc: {endpoint: %q}}}}
exporters: {prometheus: {endpoint: %q, enable_open_metrics: true}}
service: {pipelines: {metrics: {receivers: [otlp], exporters: [prometheus]}}}
`, listens, page))
	for _, job := range jobs {
		exporter, err := otlpmetricgrpc.New(t.Context(), otlpmetricgrpc.WithEndpoint(listens), otlpmetricgrpc.WithInsecure())
		require.NoError(t, err)
		providers = append(providers, sdkmetric.NewMeterProvider(
			sdkmetric.WithResource(resource.NewSchemaless(otelsemconv.ServiceName(job))),
			sdkmetric.WithReader(sdkmetric.NewPeriodicReader(exporter, sdkmetric.WithInterval(200*time.Millisecond)))))
	}
	return providers, []scrape{{job: "collector", target: page, keepJob: true}}
}

// badHour asks twice, because a rate needs a value to start from.
func badHour(t *testing.T, prom promServer, mp, stuck *sdkmetric.MeterProvider) {
	t.Helper()
	_, inf := genaitrace.New(genaitrace.WithTracerProvider(tracenoop.NewTracerProvider()), genaitrace.WithMeterProvider(stuck)).
		StartInference(t.Context(), genaitrace.Request{Model: "m-1"})
	t.Cleanup(inf.End)

	s := startService(t, tracenoop.NewTracerProvider(), mp)
	questions := slices.Concat(slices.Repeat([]string{"hello"}, 35), slices.Repeat([]string{"fail"}, 8), slices.Repeat([]string{"overloaded"}, 7))
	for wave := range 2 {
		var asked sync.WaitGroup
		for _, question := range questions {
			asked.Go(func() {
				s.ask(t, question)
			})
		}
		asked.Wait()
		prom.reaches(t, "gen_ai_server_request_duration_seconds_count", float64((wave+1)*len(questions)))
		prom.reaches(t, "gen_ai_client_inference_duration_seconds_count", float64((wave+1)*len(questions)))
	}
}

// prices is a file with the rules that the page of the dashboard shows, for the model of
// the service.
func prices(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(dashboards, "README.md"))
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(page), "```yaml\n")
	require.True(t, found)
	block, _, _ := strings.Cut(rest, "```")
	file := filepath.Join(t.TempDir(), "prices.yaml")
	require.NoError(t, os.WriteFile(file, []byte(strings.ReplaceAll(block, "my-model", "m-1")), 0o600))
	return file
}

// expressions are the queries of the dashboard by panel, and the rules as Prometheus has
// them, each by what it asks and by what it records.
func expressions(t *testing.T, prom promServer) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dashboards, "grafana.json"))
	require.NoError(t, err)
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr, LegendFormat string }
		}
	}
	require.NoError(t, json.Unmarshal(text, &dashboard))
	all := make(map[string]string)
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			key := "panel " + panel.Title + ", " + target.LegendFormat
			require.NotContains(t, all, key)
			all[key] = strings.NewReplacer("$__rate_interval", "1m", "$job", ".*").Replace(target.Expr)
		}
	}
	panels := len(all)
	require.Greater(t, panels, 30)

	var got struct {
		Data struct {
			Groups []struct {
				Rules []struct{ Name, Query, Type string }
			}
		}
	}
	require.NoError(t, prom.get(t, "rules", url.Values{}, &got))
	for _, group := range got.Data.Groups {
		for _, rule := range group.Rules {
			all[rule.Type+" "+rule.Name] = rule.Query
			if rule.Type == "recording" {
				all["recorded "+rule.Name] = rule.Name
			}
		}
	}
	require.Greater(t, len(all), panels+30)
	return all
}

// hasData says why an expression is of no use: it has no series, or none that is a number.
func hasData(t *testing.T, prom promServer, expr string) error {
	samples, err := prom.query(t, expr)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(samples, func(s sample) bool { return !math.IsNaN(s.value) }) {
		return errors.New(expr + " has no data")
	}
	return nil
}

// alertsName holds that the alerts of a bad hour are pending, each for the job that it is
// about and for no other.
func alertsName(t *testing.T, prom promServer) {
	t.Helper()
	for alert, job := range map[string]string{
		"GenAICallsFail": "service", "GenAIRequestsFail": "service", "GenAIFirstTokenSlow": "service", "GenAIQueueLong": "service",
		"GenAIDecodeSlow": "service", "GenAITelemetryFaults": "service", "GenAIRequestsStuck": "stuck",
	} {
		eventually(t, alert, func() error {
			samples, err := prom.query(t, fmt.Sprintf("ALERTS{alertname=%q}", alert))
			if err == nil && len(samples) == 0 {
				err = errors.New(alert + " is not pending")
			}
			for _, s := range samples {
				if s.labels["job"] != job {
					err = fmt.Errorf("%s is about %v, want %s", alert, s.labels, job)
				}
			}
			return err
		})
	}
}
