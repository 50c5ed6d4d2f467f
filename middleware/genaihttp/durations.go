package genaihttp

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	otelsemconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/semconv/v1.43.0/httpconv"
)

// durations records how long requests took, http.server.request.duration.
type durations struct{ histogram metric.Float64Histogram }

func newDurations(m metric.Meter) durations {
	h, err := httpconv.NewServerRequestDuration(m)
	if err != nil {
		otel.Handle(fmt.Errorf("genaihttp: %w", err))
	}
	histogram := h.Inst()
	if histogram == nil {
		histogram = noop.Float64Histogram{}
	}
	return durations{histogram}
}

func (d durations) enabled(ctx context.Context) bool { return d.histogram.Enabled(ctx) }

func (d durations) record(ctx context.Context, took time.Duration, r *http.Request, route string, status int, errType string) {
	if !d.enabled(ctx) {
		return
	}
	name, _ := method(r)
	attrs := make([]attribute.KeyValue, 0, 5)
	attrs = append(attrs, otelsemconv.HTTPRequestMethodKey.String(name), otelsemconv.URLScheme(scheme(r)))
	if route != "" {
		attrs = append(attrs, otelsemconv.HTTPRoute(route))
	}
	if status != 0 {
		attrs = append(attrs, otelsemconv.HTTPResponseStatusCode(status))
	}
	if errType != "" {
		attrs = append(attrs, otelsemconv.ErrorTypeKey.String(errType))
	}
	d.histogram.Record(ctx, took.Seconds(), metric.WithAttributeSet(attribute.NewSet(attrs...)))
}

func scheme(r *http.Request) string {
	if r.TLS != nil {
		return "https"
	}
	return "http"
}
