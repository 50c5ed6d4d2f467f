// Package recording is the flag -record of the examples: all that a program records, in
// a file that genaitrace checks and draws.
package recording

import (
	"context"
	"fmt"

	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/genaitrace/otelgenai/capture"
	"github.com/genaitrace/otelgenai/cmd/genaitrace/otlp"
)

// A Recording keeps telemetry in memory until it is written: at most 100,000 spans and
// as many log records. A nil one keeps nothing.
type Recording struct {
	recorder *capture.Recorder
	file     string
}

// To returns what writes to a file; nil where that is empty.
func To(file string) *Recording {
	if file == "" {
		return nil
	}
	return &Recording{capture.NewRecorder(capture.WithoutSource()), file}
}

// Traces are the options of a provider of spans that are to be kept.
func (r *Recording) Traces() []sdktrace.TracerProviderOption {
	if r == nil {
		return nil
	}
	return []sdktrace.TracerProviderOption{sdktrace.WithSpanProcessor(r.recorder.SpanProcessor())}
}

// Metrics are the same of a provider of metrics.
func (r *Recording) Metrics() []sdkmetric.Option {
	if r == nil {
		return nil
	}
	return []sdkmetric.Option{sdkmetric.WithReader(r.recorder.MetricReader())}
}

// Logs are the same of a provider of log records.
func (r *Recording) Logs() []sdklog.LoggerProviderOption {
	if r == nil {
		return nil
	}
	return []sdklog.LoggerProviderOption{sdklog.WithProcessor(r.recorder.LogProcessor())}
}

// Write writes the file, with what else there is, and says so, and how to look at it. It
// comes before the providers are shut down: a meter provider that is tells nothing.
func (r *Recording) Write(ctx context.Context, others ...*capture.Capture) (said string, err error) {
	if r == nil {
		return "", nil
	}
	recorded, err := r.recorder.Capture(ctx)
	if err != nil {
		return "", fmt.Errorf("-record: %w", err)
	}
	for _, other := range others {
		recorded.Add(other)
	}
	if err := otlp.WriteFile(r.file, recorded); err != nil {
		return "", fmt.Errorf("-record: %w", err)
	}
	said = fmt.Sprintf("recorded %d spans and %d metrics in %s: go run ./cmd/genaitrace view %s",
		len(recorded.Spans), len(recorded.Metrics), r.file, r.file)
	if recorded.Dropped > 0 {
		said += fmt.Sprintf(" (%d more were not kept)", recorded.Dropped)
	}
	return said, nil
}
