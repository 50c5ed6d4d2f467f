package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/attribute"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/genaitrace/otelgenai/examples/internal/otlp"
	"github.com/genaitrace/otelgenai/examples/internal/recording"
	"github.com/genaitrace/otelgenai/middleware/genaihttp"
)

// flushTimeout bounds how long the program waits for a collector at its end.
const flushTimeout = 5 * time.Second

// telemetry is what the gateway records with: metrics for Prometheus to scrape, and
// traces and metrics over OTLP where the environment names an endpoint.
type telemetry struct {
	traces  *sdktrace.TracerProvider
	metrics *sdkmetric.MeterProvider
	scrape  http.Handler
	to      []string // where OTLP goes, for people

	recording *recording.Recording // nil: nothing is written to a file
}

// newTelemetry makes it. Where the gateway goes on serving, it tries again while a
// collector does not answer.
func newTelemetry(ctx context.Context, cfg *config) (*telemetry, error) {
	exporters, err := otlp.New(ctx, !cfg.once)
	if err != nil {
		return nil, err
	}
	res, err := resource.New(ctx,
		resource.WithTelemetrySDK(),
		resource.WithAttributes(attribute.String("service.name", "otelgenai-gateway")),
		resource.WithFromEnv(), // OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES win
	)
	if err != nil {
		return nil, fmt.Errorf("resource: %w", err)
	}
	registry := prometheus.NewRegistry()
	reader, err := otelprometheus.New(otelprometheus.WithRegisterer(registry), otelprometheus.WithoutScopeInfo())
	if err != nil {
		return nil, fmt.Errorf("exporter for Prometheus: %w", err)
	}
	tel := &telemetry{
		// Exemplars, which lead from a bucket to a trace, are a part of OpenMetrics.
		scrape:    promhttp.HandlerFor(registry, promhttp.HandlerOpts{EnableOpenMetrics: true}),
		recording: recording.To(cfg.record),
	}
	traces := append([]sdktrace.TracerProviderOption{sdktrace.WithResource(res)}, tel.recording.Traces()...)
	metrics := append([]sdkmetric.Option{sdkmetric.WithResource(res), sdkmetric.WithReader(reader)}, tel.recording.Metrics()...)
	if exporters.Traces != nil {
		traces = append(traces, sdktrace.WithBatcher(exporters.Traces))
		tel.to = append(tel.to, "traces to "+exporters.TracesTo.Redacted())
	}
	if exporters.Metrics != nil {
		metrics = append(metrics, sdkmetric.WithReader(sdkmetric.NewPeriodicReader(exporters.Metrics)))
		tel.to = append(tel.to, "metrics to "+exporters.MetricsTo.Redacted())
	}
	tel.traces = sdktrace.NewTracerProvider(traces...)
	tel.metrics = sdkmetric.NewMeterProvider(metrics...)
	return tel, nil
}

func (t *telemetry) options() []genaihttp.Option {
	return []genaihttp.Option{genaihttp.WithTracerProvider(t.traces), genaihttp.WithMeterProvider(t.metrics)}
}

// close writes the file of -record, sends what is left, and tells out of what went
// wrong. It takes no longer than flushTimeout.
func (t *telemetry) close(out *log.Logger) {
	ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
	defer cancel()
	said, recordErr := t.recording.Write(ctx)
	if said != "" {
		out.Print(said)
	}
	var (
		wg                    sync.WaitGroup
		tracesErr, metricsErr error
	)
	wg.Go(func() { tracesErr = t.traces.Shutdown(ctx) })
	wg.Go(func() { metricsErr = t.metrics.Shutdown(ctx) })
	wg.Wait()
	if err := errors.Join(recordErr, tracesErr, metricsErr); err != nil {
		out.Printf("telemetry: %v", err)
	}
}
