package sampling_test

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/sampling"
	"github.com/genaitrace/otelgenai/semconv"
)

// printer is an exporter that prints names and reasons.
type printer struct{}

func (printer) ExportSpans(_ context.Context, spans []sdktrace.ReadOnlySpan) error {
	for _, span := range spans {
		fmt.Print(span.Name())
		for _, kv := range span.Attributes() {
			if kv.Key == semconv.GenAISamplingReasonKey {
				fmt.Print(", kept by ", kv.Value.AsString())
			}
		}
		fmt.Println()
	}
	return nil
}
func (printer) Shutdown(context.Context) error { return nil }

func Example() {
	tail, err := sampling.NewTail(printer{}, sampling.Any(sampling.Errors(), sampling.Slow(3*time.Second)))
	if err != nil {
		fmt.Println(err)
		return
	}
	provider := sdktrace.NewTracerProvider(tail.ProviderOptions()...)
	tracer := provider.Tracer("example")

	for _, path := range []string{"/fine", "/broken"} {
		ctx, root := tracer.Start(context.Background(), "GET "+path)
		_, query := tracer.Start(ctx, "query")
		if path == "/broken" {
			query.SetStatus(codes.Error, "")
		}
		query.End()
		root.End()
	}

	_ = tail.Shutdown(context.Background())
	_ = provider.Shutdown(context.Background())
	// Output:
	// query
	// GET /broken, kept by errors
}

// A service of several models: failures, guardrails and what is slow for its model are
// kept whole, within a budget; health checks are not; of the rest one in fifty is kept
// whole, and of every trace its entry.
func ExamplePolicy() {
	policy := sampling.First(
		sampling.Case{When: sampling.Match("health", sampling.Selector{Name: "GET /healthz"}), Then: sampling.Baseline(0)},
		sampling.Case{Then: sampling.Any(
			sampling.Limit(sampling.Any(
				sampling.Errors(),
				sampling.Match("guardrail", sampling.Selector{Event: "content_blocked"}),
				sampling.SlowBy("gen_ai.request.model", map[string]time.Duration{"qwen2.5-72b": 20 * time.Second}, 3*time.Second),
			), 50),
			sampling.Baseline(0.02),
			sampling.KeyPath(sampling.Baseline(1), sampling.Selector{Kind: trace.SpanKindServer}),
		)},
	)
	fmt.Println(policy.Validate())
	fmt.Println(policy)
	// Output:
	// <nil>
	// first(match(health: {name=GET /healthz}) => baseline(0), any(limit(any(errors, match(guardrail: {event=content_blocked}), slow_by(gen_ai.request.model, "qwen2.5-72b": 20s, other: 3s)), 50/s), baseline(0.02), key_path(baseline(1), {kind=server})))
}

// Policies belong into configuration files. What is wrong is named with its place.
func ExamplePolicy_json() {
	var config struct {
		Sampling sampling.Policy `json:"sampling"`
	}
	err := json.Unmarshal([]byte(`{
		"sampling": {"any": [
			{"errors": {}},
			{"slow": {"over": "3s"}},
			{"baseline": {"ratio": 5}}
		]}
	}`), &config)
	fmt.Println(err)
	fmt.Println(config.Sampling.Validate())
	// Output:
	// <nil>
	// sampling: policy.any.2.baseline: ratio is 5 and must be from 0 to 1
}
