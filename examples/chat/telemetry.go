package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
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

	tracesTo, metricsTo *url.URL // nil: they are not exported
	sent                *sentSpans
}

// newTelemetry records spans in memory, and exports traces and metrics over OTLP
// where the environment names an endpoint.
func newTelemetry(ctx context.Context) (_ *telemetry, err error) {
	tel := &telemetry{spans: &recorder{}}
	if tel.tracesTo, err = endpoint("TRACES"); err != nil {
		return nil, err
	}
	if tel.metricsTo, err = endpoint("METRICS"); err != nil {
		return nil, err
	}
	res, err := resource.New(ctx,
		resource.WithTelemetrySDK(),
		resource.WithAttributes(attribute.String("service.name", "otelgenai-chat")),
		resource.WithFromEnv(), // OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES win
	)
	if err != nil {
		return nil, fmt.Errorf("resource: %w", err)
	}
	traces := []sdktrace.TracerProviderOption{sdktrace.WithResource(res), sdktrace.WithSyncer(tel.spans)}
	metrics := []sdkmetric.Option{sdkmetric.WithResource(res)}
	if tel.tracesTo != nil {
		exporter, err := newSpanExporter(ctx)
		if err != nil {
			return nil, fmt.Errorf("OTLP exporter of traces: %w", err)
		}
		tel.sent = &sentSpans{SpanExporter: exporter}
		traces = append(traces, sdktrace.WithBatcher(tel.sent))
	}
	if tel.metricsTo != nil {
		exporter, err := newMetricExporter(ctx)
		if err != nil {
			return nil, fmt.Errorf("OTLP exporter of metrics: %w", err)
		}
		metrics = append(metrics, sdkmetric.WithReader(sdkmetric.NewPeriodicReader(exporter)))
	}
	tel.use(sdktrace.NewTracerProvider(traces...), sdkmetric.NewMeterProvider(metrics...))
	return tel, nil
}

func (t *telemetry) use(traces *sdktrace.TracerProvider, metrics *sdkmetric.MeterProvider) {
	t.traces, t.metrics = traces, metrics
	t.tracer = genaitrace.New(genaitrace.WithTracerProvider(traces), genaitrace.WithMeterProvider(metrics))
}

// setting returns the variable that says something about a signal, TRACES or
// METRICS: its own one, or else that of all signals.
func setting(signal, key string) (name, value string) {
	for _, name = range []string{"OTEL_EXPORTER_OTLP_" + signal + "_" + key, "OTEL_EXPORTER_OTLP_" + key} {
		if value = strings.TrimSpace(os.Getenv(name)); value != "" {
			break
		}
	}
	return name, value
}

// endpoint returns where a signal is exported to, nil for nowhere. The exporters
// read the variable themselves, but take localhost for what they cannot read.
func endpoint(signal string) (*url.URL, error) {
	name, value := setting(signal, "ENDPOINT")
	if value == "" || strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") {
		return nil, nil //nolint:nilnil // nowhere is no error
	}
	u, err := url.Parse(value)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		_, host, found := strings.Cut(value, "://")
		if !found {
			host = value
		}
		return nil, fmt.Errorf("%s is %q, want a URL that starts with http:// or https://, such as http://%s", name, value, cmp.Or(host, "localhost:4318"))
	}
	return u, nil
}

// newSpanExporter reads its settings from the OTEL_EXPORTER_OTLP_* variables. It
// does not retry: the program ends soon, and a collector that is not there would
// only keep it waiting.
func newSpanExporter(ctx context.Context) (sdktrace.SpanExporter, error) {
	switch name, protocol := setting("TRACES", "PROTOCOL"); protocol {
	case "grpc":
		return otlptracegrpc.New(ctx, otlptracegrpc.WithRetry(otlptracegrpc.RetryConfig{}))
	case "", "http/protobuf":
		return otlptracehttp.New(ctx, otlptracehttp.WithRetry(otlptracehttp.RetryConfig{}))
	default:
		return nil, fmt.Errorf("%s is %q, want http/protobuf or grpc", name, protocol)
	}
}

// newMetricExporter does the same for metrics.
func newMetricExporter(ctx context.Context) (sdkmetric.Exporter, error) {
	switch name, protocol := setting("METRICS", "PROTOCOL"); protocol {
	case "grpc":
		return otlpmetricgrpc.New(ctx, otlpmetricgrpc.WithRetry(otlpmetricgrpc.RetryConfig{}))
	case "", "http/protobuf":
		return otlpmetrichttp.New(ctx, otlpmetrichttp.WithRetry(otlpmetrichttp.RetryConfig{}))
	default:
		return nil, fmt.Errorf("%s is %q, want http/protobuf or grpc", name, protocol)
	}
}

// close sends what is left and says where it went. It takes no longer than
// flushTimeout.
func (t *telemetry) close(stderr io.Writer) {
	ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
	defer cancel()
	var (
		wg                    sync.WaitGroup
		tracesErr, metricsErr error
	)
	wg.Go(func() { tracesErr = t.traces.Shutdown(ctx) })
	wg.Go(func() { metricsErr = t.metrics.Shutdown(ctx) })
	wg.Wait()

	var exported []string
	if t.tracesTo != nil {
		n, err := t.sent.result()
		tracesErr = errors.Join(tracesErr, err)
		if n > 0 {
			exported = append(exported, fmt.Sprintf("%d spans to %s", n, t.tracesTo.Redacted()))
		}
	}
	if t.metricsTo != nil && metricsErr == nil {
		exported = append(exported, "the metrics to "+t.metricsTo.Redacted())
	}
	if len(exported) == 2 && *t.tracesTo == *t.metricsTo {
		exported[0], _, _ = strings.Cut(exported[0], " to ") // it is said once
	}
	if len(exported) > 0 {
		fmt.Fprintf(stderr, "exported %s\n", strings.Join(exported, " and "))
	}
	for _, err := range []error{tracesErr, metricsErr} {
		if err != nil {
			fmt.Fprintf(stderr, "warning: telemetry: %v\n", err)
		}
	}
}

// sentSpans counts what its exporter sent and keeps its first error, which is
// told at the end and not in the middle of an answer.
type sentSpans struct {
	sdktrace.SpanExporter
	mu  sync.Mutex
	n   int
	err error
}

func (s *sentSpans) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := s.SpanExporter.ExportSpans(ctx, spans)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.n += len(spans)
	}
	s.err = cmp.Or(s.err, err)
	return nil
}

func (s *sentSpans) result() (n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.n, s.err
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
