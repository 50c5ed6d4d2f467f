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
	sdklog "go.opentelemetry.io/otel/sdk/log"
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
	logs    *sdklog.LoggerProvider // nil: nobody reads log records, so none are made
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
	logs := append(tel.recording.Logs(), sdklog.WithResource(res))
	if exporters.Logs != nil {
		logs = append(logs, sdklog.WithProcessor(sdklog.NewBatchProcessor(exporters.Logs)))
		tel.to = append(tel.to, "log records to "+exporters.LogsTo.Redacted())
	}
	if cfg.record != "" || exporters.Logs != nil {
		tel.logs = sdklog.NewLoggerProvider(logs...)
	}
	tel.traces = sdktrace.NewTracerProvider(traces...)
	tel.metrics = sdkmetric.NewMeterProvider(metrics...)
	return tel, nil
}

func (t *telemetry) options() []genaihttp.Option {
	options := []genaihttp.Option{genaihttp.WithTracerProvider(t.traces), genaihttp.WithMeterProvider(t.metrics)}
	if t.logs != nil {
		options = append(options, genaihttp.WithLoggerProvider(t.logs))
	}
	return options
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
		wg                             sync.WaitGroup
		tracesErr, metricsErr, logsErr error
	)
	wg.Go(func() { tracesErr = t.traces.Shutdown(ctx) })
	wg.Go(func() { metricsErr = t.metrics.Shutdown(ctx) })
	if t.logs != nil {
		wg.Go(func() { logsErr = t.logs.Shutdown(ctx) })
	}
	wg.Wait()
	if err := errors.Join(recordErr, tracesErr, metricsErr, logsErr); err != nil {
		out.Printf("telemetry: %v", err)
	}
}
