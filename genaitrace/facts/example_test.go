package facts_test

import (
	"context"
	"fmt"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/genaitrace/facts"
	"github.com/genaitrace/otelgenai/semconv"
)

// What an agent does on behalf of a tenant says so, down to its database.
func ExampleProcessor() {
	spans := tracetest.NewSpanRecorder()
	tp := sdktrace.NewTracerProvider(
		sdktrace.WithSpanProcessor(facts.Processor{}), // first
		sdktrace.WithSpanProcessor(spans),
	)

	ctx := genaitrace.ContextWith(context.Background(),
		genaitrace.TenantID("acme"), genaitrace.TraceSource(semconv.GenAITraceSourceAgentLoop))
	_, query := tp.Tracer("database/driver").Start(ctx, "SELECT documents")
	query.End()

	for _, kv := range spans.Ended()[0].Attributes() {
		fmt.Println(kv.Key, "=", kv.Value.AsString())
	}
	// Output:
	// genai.trace.source = agent_loop
	// genai.tenant.id = acme
}
