package contract_test

import (
	"context"
	"fmt"
	"os"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/capture"
	"github.com/genaitrace/otelgenai/contract"
)

// A contract is parsed, a capture checked, and the findings read.
func Example() {
	c, err := contract.Parse("observability.yaml", []byte(`
contract: genai.observability/v1
name: chat-service
spans:
  gateway:
    match: {kind: server}
    attributes: {http.route: required}
  call:
    match: {operation: chat}
    name: "chat {gen_ai.request.model}"
    parent: {within: gateway}
requests:
  chat: {root: gateway, requires: [call]}
`))
	if err != nil {
		fmt.Println(err) // the file, the line, the column, and what was probably meant
		return
	}

	recorder := capture.NewRecorder()
	tracer := recorder.TracerProvider().Tracer("example")
	ctx, request := tracer.Start(context.Background(), "POST /chat", trace.WithSpanKind(trace.SpanKindServer))
	_, call := tracer.Start(ctx, "chat", trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		attribute.String("gen_ai.operation.name", "chat"), attribute.String("gen_ai.provider.name", "vllm"), attribute.String("gen_ai.request.model", "toy-1")))
	call.End()
	request.End()
	got, err := recorder.Capture(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}

	report := c.Check(got)
	for _, f := range report.Findings {
		fmt.Printf("%s %s: %s\n", f.Severity, f.Rule, f.Message)
		fmt.Printf("  at %s, line %s\n  want %s, found %s\n", f.Path, f.Contract, f.Expected, f.Found)
	}
	fmt.Println("failed:", report.Failed(false))

	// Output:
	// error attribute.missing: gateway has no http.route
	//   at POST /chat, line observability.yaml:7:18
	//   want http.route, found nothing
	// error span.name: call span is named "chat"
	//   at POST /chat › chat, line observability.yaml:8:3
	//   want chat toy-1, found chat
	// failed: true
}

// A built-in profile is a contract as it is.
func ExampleBuiltin() {
	c, err := contract.Builtin("tools")
	if err != nil {
		fmt.Println(err)
		return
	}
	recorder := capture.NewRecorder()
	_, span := recorder.TracerProvider().Tracer("example").Start(context.Background(), "execute_tool", trace.WithAttributes(
		attribute.String("gen_ai.operation.name", "execute_tool"), attribute.String("user.note", "ask ops@example.com")))
	span.End()
	got, err := recorder.Capture(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range c.Check(got).Findings {
		if f.On == "tool" && f.Rule != "contract.unexercised" {
			fmt.Println(f.Rule, f.Key, "–", f.Message)
		}
	}
	// Output:
	// attribute.missing gen_ai.tool.name – tool has no gen_ai.tool.name
	// convention.missing gen_ai.tool.name – execute_tool is a span of the type gen_ai.execute_tool and has no gen_ai.tool.name
	// forbid.value user.note – user.note holds something that looks like an e-mail address
	// span.parent  – tool span is not inside loop
}

// A checker takes telemetry as it comes, and lets go of traces that are complete.
func ExampleChecker() {
	c, err := contract.Parse("queue.yaml", []byte(`
contract: genai.observability/v1
name: queue
spans:
  queue: {match: {name: "wait *"}}
slo:
  - {id: wait, on: queue, value: duration, p99: 200ms}
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	checker := c.NewChecker(contract.WithQuiet(time.Minute))
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for i := range 1000 { // such as the messages of a receiver, or the lines of a file
		at := start.Add(time.Duration(i) * time.Second)
		checker.Add(&capture.Capture{Spans: []*capture.Span{{
			TraceID: trace.TraceID{byte(i >> 8), byte(i), 1}, SpanID: trace.SpanID{1},
			Name: "wait gpu", Start: at, End: at.Add(time.Duration(i/4) * time.Millisecond),
		}}})
	}
	if err := checker.Report().WriteText(os.Stdout); err != nil {
		fmt.Println(err)
	}
	// Output:
	// error  slo.missed  p99 of duration is 247ms over 1000 spans
	//        span      wait gpu
	//        expected  at most 200ms
	//        found     247ms
	//        trace     03e40100000000000000000000000000 span 0100000000000000
	//        fix       make it faster, or change the objective
	//        contract  queue.yaml:7:6
	//
	// queue: 1 error, 1000 spans in 1000 traces, 0 metrics, 0 log records; 7 of 23 rules tested
}
