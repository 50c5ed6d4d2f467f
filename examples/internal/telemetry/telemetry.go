// Package telemetry is what the examples record with: in memory, to draw the traces of
// their few requests, and over OTLP where the environment names an endpoint.
package telemetry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	otellog "go.opentelemetry.io/otel/log"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	otlpfile "github.com/genaitrace/otelgenai/cmd/genaitrace/otlp"
	"github.com/genaitrace/otelgenai/examples/internal/otlp"
	"github.com/genaitrace/otelgenai/examples/internal/recording"
	"github.com/genaitrace/otelgenai/examples/internal/spanlog"
	"github.com/genaitrace/otelgenai/genaitrace"
)

// flushTimeout bounds how long the program waits for a collector at its end.
const flushTimeout = 5 * time.Second

// Telemetry is what every hop records with.
type Telemetry struct {
	Tracer  *genaitrace.Tracer
	Traces  *sdktrace.TracerProvider
	Metrics *sdkmetric.MeterProvider
	Logs    otellog.LoggerProvider // nil: nobody reads log records, so none are made
	Spans   *spanlog.Recorder

	TracesTo, MetricsTo, LogsTo *url.URL // nil: they are not exported
	sent                        *sentSpans
	endLogs                     func(context.Context) error // nil where Logs is

	recording *recording.Recording // nil: nothing is written to a file

	child    bool
	receiver *otlpfile.Receiver // of what child processes record; nil without
}

// New records as service, unless OTEL_SERVICE_NAME says another name. Where file is
// not empty, Close writes all that was recorded to it, log records included.
func New(ctx context.Context, service, file string) (*Telemetry, error) {
	return newTelemetry(ctx, service, file, nil, nil)
}

func newTelemetry(ctx context.Context, service, file string, traces []sdktrace.TracerProviderOption, metrics []sdkmetric.Option) (*Telemetry, error) {
	exporters, err := otlp.New(ctx, false)
	if err != nil {
		return nil, err
	}
	tel := &Telemetry{
		Spans:    &spanlog.Recorder{},
		TracesTo: exporters.TracesTo, MetricsTo: exporters.MetricsTo, LogsTo: exporters.LogsTo,
		recording: recording.To(file),
	}
	res, err := resource.New(ctx,
		resource.WithTelemetrySDK(),
		resource.WithAttributes(attribute.String("service.name", service)),
		resource.WithFromEnv(), // OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES win
	)
	if err != nil {
		return nil, fmt.Errorf("resource: %w", err)
	}
	traces = append(traces, sdktrace.WithResource(res), sdktrace.WithSyncer(tel.Spans))
	metrics = append(metrics, sdkmetric.WithResource(res))
	traces, metrics = append(traces, tel.recording.Traces()...), append(metrics, tel.recording.Metrics()...)
	logs := append(tel.recording.Logs(), sdklog.WithResource(res))
	if exporters.Logs != nil {
		logs = append(logs, sdklog.WithProcessor(sdklog.NewBatchProcessor(exporters.Logs)))
	}
	if file != "" || exporters.Logs != nil {
		provider := sdklog.NewLoggerProvider(logs...)
		tel.Logs, tel.endLogs = provider, provider.Shutdown
	}
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

// On records with the providers of a test, and exports nothing.
func On(traces *sdktrace.TracerProvider, metrics *sdkmetric.MeterProvider) *Telemetry {
	t := &Telemetry{Spans: &spanlog.Recorder{}}
	t.use(traces, metrics)
	return t
}

func (t *Telemetry) use(traces *sdktrace.TracerProvider, metrics *sdkmetric.MeterProvider) {
	t.Traces, t.Metrics = traces, metrics
	t.Tracer = genaitrace.New(
		genaitrace.WithTracerProvider(traces), genaitrace.WithMeterProvider(metrics), genaitrace.WithLoggerProvider(t.Logs))
}

// Close sends what is left and says where it went. It takes no longer than
// five seconds. Child processes must have ended.
func (t *Telemetry) Close(stderr io.Writer) {
	ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
	defer cancel()
	if t.receiver != nil {
		_ = t.receiver.Close(ctx) // who still sends is cut off
	}
	t.write(ctx, stderr) // a meter provider that is shut down tells nothing
	var (
		wg                             sync.WaitGroup
		tracesErr, metricsErr, logsErr error
	)
	wg.Go(func() { tracesErr = t.Traces.Shutdown(ctx) })
	wg.Go(func() { metricsErr = t.Metrics.Shutdown(ctx) })
	if t.endLogs != nil {
		wg.Go(func() { logsErr = t.endLogs(ctx) })
	}
	wg.Wait()

	var exported []string
	if t.TracesTo != nil {
		n, err := t.sent.result()
		tracesErr = errors.Join(tracesErr, err)
		if n > 0 {
			exported = append(exported, fmt.Sprintf("%d spans to %s", n, t.TracesTo.Redacted()))
		}
	}
	if t.MetricsTo != nil && metricsErr == nil {
		exported = append(exported, "the metrics to "+t.MetricsTo.Redacted())
	}
	if t.LogsTo != nil && logsErr == nil {
		exported = append(exported, "the log records to "+t.LogsTo.Redacted())
	}
	if len(exported) > 0 && !t.child {
		fmt.Fprintf(stderr, "exported %s\n", sentence(exported))
	}
	for _, err := range []error{tracesErr, metricsErr, logsErr} {
		if err != nil {
			fmt.Fprintf(stderr, "warning: telemetry: %v\n", err)
		}
	}
}

// sentence puts together what went where; one place for all is said once.
func sentence(exported []string) string {
	last := len(exported) - 1
	_, place, _ := strings.Cut(exported[last], " to ")
	if !slices.ContainsFunc(exported, func(e string) bool { return !strings.HasSuffix(e, " to "+place) }) {
		for i := range last {
			exported[i], _, _ = strings.Cut(exported[i], " to ")
		}
	}
	if last == 0 {
		return exported[0]
	}
	return strings.Join(exported[:last], ", ") + " and " + exported[last]
}

// write puts what was recorded into the file, and says how to look at it.
func (t *Telemetry) write(ctx context.Context, stderr io.Writer) {
	said, err := t.recording.Write(ctx, t.Children())
	switch {
	case err != nil:
		fmt.Fprintf(stderr, "warning: telemetry: %v\n", err)
	case said != "":
		fmt.Fprintln(stderr, said)
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
