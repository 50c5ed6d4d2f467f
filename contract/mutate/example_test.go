package mutate_test

import (
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/capture"
	"github.com/genaitrace/otelgenai/contract"
	"github.com/genaitrace/otelgenai/contract/mutate"
)

// A contract that names a queue and says almost nothing about it.
func ExampleRun() {
	c, err := contract.Parse("queue.yaml", []byte(`
contract: genai.observability/v1
name: queue
spans:
  queue:
    match: {name: queue.wait}
    kind: internal
    attributes: {llm.queue_wait_ms: required}
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	good := &capture.Capture{Spans: []*capture.Span{{
		TraceID: trace.TraceID{1}, SpanID: trace.SpanID{1}, Name: "queue.wait", Kind: trace.SpanKindInternal,
		Start: start, End: start.Add(60 * time.Millisecond),
		Attributes: capture.Attributes{attribute.String("genai.span.role", "queue"), attribute.Float64("llm.queue_wait_ms", 60)},
	}}}
	result, err := mutate.Run(c, good)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("score %.2f; not caught:\n", result.Score())
	for _, m := range result.Survivors() {
		fmt.Println(m)
	}
	// Output:
	// score 0.64; not caught:
	// explode of queue
	// status-error-without-type of queue
	// flood of queue
	// scale-up llm.queue_wait_ms of queue
	// scale-down llm.queue_wait_ms of queue
}
