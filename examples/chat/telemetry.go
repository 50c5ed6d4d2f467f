package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/genaitrace/otelgenai/examples/internal/otlp"
	"github.com/genaitrace/otelgenai/examples/internal/spanlog"
	"github.com/genaitrace/otelgenai/genaitrace"
)

// flushTimeout bounds how long the program waits for a collector at its end.
const flushTimeout = 5 * time.Second

// telemetry is what every hop records with.
type telemetry struct {
	tracer  *genaitrace.Tracer
	traces  *sdktrace.TracerProvider
	metrics *sdkmetric.MeterProvider
	spans   *spanlog.Recorder

	tracesTo, metricsTo *url.URL // nil: they are not exported
	sent                *sentSpans
}

// newTelemetry records spans in memory, and exports traces and metrics over OTLP
// where the environment names an endpoint.
func newTelemetry(ctx context.Context) (*telemetry, error) {
	exporters, err := otlp.New(ctx, false)
	if err != nil {
		return nil, err
	}
	tel := &telemetry{spans: &spanlog.Recorder{}, tracesTo: exporters.TracesTo, metricsTo: exporters.MetricsTo}
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
	if exporters.Traces != nil {
		tel.sent = &sentSpans{SpanExporter: exporters.Traces}
		traces = append(traces, sdktrace.WithBatcher(tel.sent))
	}
	if exporters.Metrics != nil {
		metrics = append(metrics, sdkmetric.WithReader(sdkmetric.NewPeriodicReader(exporters.Metrics)))
	}
	tel.use(sdktrace.NewTracerProvider(traces...), sdkmetric.NewMeterProvider(metrics...))
	return tel, nil
}

func (t *telemetry) use(traces *sdktrace.TracerProvider, metrics *sdkmetric.MeterProvider) {
	t.traces, t.metrics = traces, metrics
	t.tracer = genaitrace.New(genaitrace.WithTracerProvider(traces), genaitrace.WithMeterProvider(metrics))
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
