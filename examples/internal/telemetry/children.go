package telemetry

import (
	"context"
	"fmt"
	"os"

	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/genaitrace/otelgenai/capture"
	otlpfile "github.com/genaitrace/otelgenai/cmd/genaitrace/otlp"
)

// parentVariable tells a child process where its parent receives telemetry.
const parentVariable = "OTELGENAI_EXAMPLE_PARENT"

// ReceiveChildren begins to receive what child processes record, so that it can be drawn
// and written with what this one does. Their environment needs env; they record with
// [NewChild]. Close ends it.
func (t *Telemetry) ReceiveChildren() (env []string, err error) {
	if t.receiver, err = otlpfile.Listen(otlpfile.Config{}); err != nil {
		return nil, err
	}
	return []string{parentVariable + "=http://" + t.receiver.HTTPAddr()}, nil
}

// Children is what child processes have sent so far. They send the rest as they end.
func (t *Telemetry) Children() *capture.Capture {
	if t.receiver == nil {
		return &capture.Capture{}
	}
	return t.receiver.Capture()
}

// NewChild is [New] in a child process, which also tells its parent what it records.
// Close says nothing but warnings: where things went is for the parent to tell.
func NewChild(ctx context.Context, service string) (*Telemetry, error) {
	parent := os.Getenv(parentVariable)
	if parent == "" {
		return nil, fmt.Errorf("%s is not set: this is for the program to start by itself", parentVariable)
	}
	spans, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(parent+"/v1/traces"),
		otlptracehttp.WithRetry(otlptracehttp.RetryConfig{}))
	if err != nil {
		return nil, err
	}
	points, err := otlpmetrichttp.New(ctx, otlpmetrichttp.WithEndpointURL(parent+"/v1/metrics"),
		otlpmetrichttp.WithRetry(otlpmetrichttp.RetryConfig{}))
	if err != nil {
		return nil, err
	}
	tel, err := newTelemetry(ctx, service, "",
		[]sdktrace.TracerProviderOption{sdktrace.WithBatcher(spans)},
		[]sdkmetric.Option{sdkmetric.WithReader(sdkmetric.NewPeriodicReader(points))})
	if err != nil {
		return nil, err
	}
	tel.child = true
	return tel, nil
}
