package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/genaitrace/otelgenai/genaitrace"
)

// flushTimeout bounds how long the program waits for a collector at its end.
const flushTimeout = 5 * time.Second

// telemetry is what every hop records with.
type telemetry struct {
	tracer  *genaitrace.Tracer
	traces  *sdktrace.TracerProvider
	metrics *sdkmetric.MeterProvider
	spans   *recorder
}

// newTelemetry records spans in memory, and exports traces and metrics over OTLP
// where the environment names an endpoint.
func newTelemetry(ctx context.Context) (*telemetry, error) {
	tel := &telemetry{spans: &recorder{}}
	traces := []sdktrace.TracerProviderOption{sdktrace.WithSyncer(tel.spans)}
	var metrics []sdkmetric.Option
	if os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" {
		res, err := resource.New(ctx,
			resource.WithTelemetrySDK(),
			resource.WithAttributes(attribute.String("service.name", "otelgenai-chat")),
			resource.WithFromEnv(), // OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES win
		)
		if err != nil {
			return nil, fmt.Errorf("resource: %w", err)
		}
		spans, reader, err := newExporters(ctx)
		if err != nil {
			return nil, fmt.Errorf("OTLP exporter: %w", err)
		}
		traces = append(traces, sdktrace.WithBatcher(spans), sdktrace.WithResource(res))
		metrics = append(metrics, sdkmetric.WithReader(reader), sdkmetric.WithResource(res))
	}
	tel.use(sdktrace.NewTracerProvider(traces...), sdkmetric.NewMeterProvider(metrics...))
	return tel, nil
}

func (t *telemetry) use(traces *sdktrace.TracerProvider, metrics *sdkmetric.MeterProvider) {
	t.traces, t.metrics = traces, metrics
	t.tracer = genaitrace.New(genaitrace.WithTracerProvider(traces), genaitrace.WithMeterProvider(metrics))
}

// newExporters reads its settings from the OTEL_EXPORTER_OTLP_* variables. It
// does not retry: the program ends soon, and a collector that is not there would
// only keep it waiting.
func newExporters(ctx context.Context) (sdktrace.SpanExporter, sdkmetric.Reader, error) {
	var (
		spans   sdktrace.SpanExporter
		metrics sdkmetric.Exporter
		errs    [2]error
	)
	switch protocol := os.Getenv("OTEL_EXPORTER_OTLP_PROTOCOL"); protocol {
	case "grpc":
		spans, errs[0] = otlptracegrpc.New(ctx, otlptracegrpc.WithRetry(otlptracegrpc.RetryConfig{}))
		metrics, errs[1] = otlpmetricgrpc.New(ctx, otlpmetricgrpc.WithRetry(otlpmetricgrpc.RetryConfig{}))
	case "", "http/protobuf":
		spans, errs[0] = otlptracehttp.New(ctx, otlptracehttp.WithRetry(otlptracehttp.RetryConfig{}))
		metrics, errs[1] = otlpmetrichttp.New(ctx, otlpmetrichttp.WithRetry(otlpmetrichttp.RetryConfig{}))
	default:
		return nil, nil, fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL is %q, want http/protobuf or grpc", protocol)
	}
	if err := errors.Join(errs[:]...); err != nil {
		return nil, nil, err
	}
	return spans, sdkmetric.NewPeriodicReader(metrics), nil
}

// close sends what is left. It takes no longer than flushTimeout.
func (t *telemetry) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
	defer cancel()
	var (
		wg   sync.WaitGroup
		errs [2]error
	)
	wg.Go(func() { errs[0] = t.traces.Shutdown(ctx) })
	wg.Go(func() { errs[1] = t.metrics.Shutdown(ctx) })
	wg.Wait()
	return errors.Join(errs[:]...)
}

// recorder keeps ended spans for the waterfall.
type recorder struct {
	mu    sync.Mutex
	spans []sdktrace.ReadOnlySpan
}

func (r *recorder) ExportSpans(_ context.Context, spans []sdktrace.ReadOnlySpan) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.spans = append(r.spans, spans...)
	return nil
}

func (r *recorder) Shutdown(context.Context) error { return nil }

func (r *recorder) ended() []sdktrace.ReadOnlySpan {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.spans
}
