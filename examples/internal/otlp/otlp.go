// Package otlp makes the OTLP exporters of the examples from the variables
// OTEL_EXPORTER_OTLP_*, and says clearly what is wrong with them.
package otlp

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"

	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploggrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploghttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// Exporters are those that the environment asks for; nil ones it does not. Log records
// are asked for by OTEL_LOGS_EXPORTER=otlp: many backends that take traces refuse them.
type Exporters struct {
	Traces                      sdktrace.SpanExporter
	Metrics                     sdkmetric.Exporter
	Logs                        sdklog.Exporter
	TracesTo, MetricsTo, LogsTo *url.URL
}

// New makes the exporters. patient ones try again where a collector does not
// answer; a program that ends soon would only be kept waiting.
func New(ctx context.Context, patient bool) (e Exporters, err error) {
	if e.TracesTo, err = endpoint("TRACES"); err != nil {
		return Exporters{}, err
	}
	if e.MetricsTo, err = endpoint("METRICS"); err != nil {
		return Exporters{}, err
	}
	if os.Getenv("OTEL_LOGS_EXPORTER") == "otlp" {
		if e.LogsTo, err = endpoint("LOGS"); err != nil {
			return Exporters{}, err
		}
	}
	if e.TracesTo != nil {
		if e.Traces, err = newSpanExporter(ctx, patient); err != nil {
			return Exporters{}, fmt.Errorf("OTLP exporter of traces: %w", err)
		}
	}
	if e.MetricsTo != nil {
		if e.Metrics, err = newMetricExporter(ctx, patient); err != nil {
			return Exporters{}, fmt.Errorf("OTLP exporter of metrics: %w", err)
		}
	}
	if e.LogsTo != nil {
		if e.Logs, err = newLogExporter(ctx, patient); err != nil {
			return Exporters{}, fmt.Errorf("OTLP exporter of log records: %w", err)
		}
	}
	return e, nil
}

// setting returns the variable that says something about a signal, TRACES, METRICS or
// LOGS: its own one, or else that of all signals.
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

// newSpanExporter reads its other settings from the environment by itself.
func newSpanExporter(ctx context.Context, patient bool) (sdktrace.SpanExporter, error) {
	switch name, protocol := setting("TRACES", "PROTOCOL"); protocol {
	case "grpc":
		var opts []otlptracegrpc.Option
		if !patient {
			opts = append(opts, otlptracegrpc.WithRetry(otlptracegrpc.RetryConfig{}))
		}
		return otlptracegrpc.New(ctx, opts...)
	case "", "http/protobuf":
		var opts []otlptracehttp.Option
		if !patient {
			opts = append(opts, otlptracehttp.WithRetry(otlptracehttp.RetryConfig{}))
		}
		return otlptracehttp.New(ctx, opts...)
	default:
		return nil, fmt.Errorf("%s is %q, want http/protobuf or grpc", name, protocol)
	}
}

// newMetricExporter does the same for metrics.
func newMetricExporter(ctx context.Context, patient bool) (sdkmetric.Exporter, error) {
	switch name, protocol := setting("METRICS", "PROTOCOL"); protocol {
	case "grpc":
		var opts []otlpmetricgrpc.Option
		if !patient {
			opts = append(opts, otlpmetricgrpc.WithRetry(otlpmetricgrpc.RetryConfig{}))
		}
		return otlpmetricgrpc.New(ctx, opts...)
	case "", "http/protobuf":
		var opts []otlpmetrichttp.Option
		if !patient {
			opts = append(opts, otlpmetrichttp.WithRetry(otlpmetrichttp.RetryConfig{}))
		}
		return otlpmetrichttp.New(ctx, opts...)
	default:
		return nil, fmt.Errorf("%s is %q, want http/protobuf or grpc", name, protocol)
	}
}

// newLogExporter does the same for log records.
func newLogExporter(ctx context.Context, patient bool) (sdklog.Exporter, error) {
	switch name, protocol := setting("LOGS", "PROTOCOL"); protocol {
	case "grpc":
		var opts []otlploggrpc.Option
		if !patient {
			opts = append(opts, otlploggrpc.WithRetry(otlploggrpc.RetryConfig{}))
		}
		return otlploggrpc.New(ctx, opts...)
	case "", "http/protobuf":
		var opts []otlploghttp.Option
		if !patient {
			opts = append(opts, otlploghttp.WithRetry(otlploghttp.RetryConfig{}))
		}
		return otlploghttp.New(ctx, opts...)
	default:
		return nil, fmt.Errorf("%s is %q, want http/protobuf or grpc", name, protocol)
	}
}
