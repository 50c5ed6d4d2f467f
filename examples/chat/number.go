package main

import (
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/examples/internal/serving"
	"github.com/genaitrace/otelgenai/examples/internal/telemetry"
)

// numberKey is the attribute for the number of a request.
const numberKey = "chat.request.number"

// traced gives every request to gateway a SERVER span, with its number on it.
func traced(gateway http.Handler, tel *telemetry.Telemetry) http.Handler {
	return serving.Traced(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n := r.Header.Get(numberHeader); n != "" {
			trace.SpanFromContext(r.Context()).SetAttributes(attribute.String(numberKey, n))
		}
		gateway.ServeHTTP(w, r)
	}), tel)
}
