package deferred_test

import (
	"context"
	"fmt"
	"net/http"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/genaitrace/otelgenai/propagation"
	"github.com/genaitrace/otelgenai/propagation/deferred"
)

// A mesh that samples nothing itself sends b3 without a sampling state: the
// service is to decide.
func Example() {
	provider := sdktrace.NewTracerProvider(sdktrace.WithSampler(
		deferred.NewSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(1)))))
	defer func() { _ = provider.Shutdown(context.Background()) }()

	header := http.Header{"B3": {"4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7"}}
	ctx := propagation.New(propagation.WithFormats(propagation.B3)).
		Extract(context.Background(), propagation.HTTPHeader(header))
	fmt.Println(propagation.SamplingFromContext(ctx))

	_, span := provider.Tracer("example").Start(ctx, "chat")
	defer span.End()
	fmt.Println(span.SpanContext().TraceID(), span.SpanContext().IsSampled())
	// Output:
	// deferred
	// 4bf92f3577b34da6a3ce929d0e0e4736 true
}
