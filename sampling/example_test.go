package sampling_test

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/metric"
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

// A tail with a printing exporter, and the tracer of its provider.
func exampleTail(policy sampling.Policy, opts ...sampling.Option) (*sampling.Tail, trace.Tracer) {
	tail, err := sampling.NewTail(printer{}, policy, opts...)
	if err != nil {
		panic(err)
	}
	return tail, sdktrace.NewTracerProvider(tail.ProviderOptions()...).Tracer("example")
}

// A debug header keeps a request that no policy would.
func ExampleTail_Keep() {
	tail, tracer := exampleTail(sampling.Errors())
	for _, header := range []string{"", "1"} {
		ctx, span := tracer.Start(context.Background(), "GET /items")
		if header != "" {
			tail.Keep(ctx, "debug header")
		}
		span.End()
	}
	_ = tail.Shutdown(context.Background())
	// Output:
	// GET /items, kept by debug header
}

// A gateway whose engine fails and is made good in time: the engine keeps its part, says so
// in its response, and the gateway follows. The middleware of this module does what stands
// between the two, see its option WithTailSampler.
func ExampleTail_Promise() {
	gateway, ofGateway := exampleTail(sampling.Errors())
	engine, ofEngine := exampleTail(sampling.Errors())

	ctx, request := ofGateway.Start(context.Background(), "gateway")

	there, served := ofEngine.Start(trace.ContextWithRemoteSpanContext(context.Background(), request.SpanContext()), "engine")
	_, kernel := ofEngine.Start(there, "kernel")
	kernel.SetStatus(codes.Error, "out of memory, tried again")
	kernel.End()
	answer := engine.Promise(there, false)
	served.End()

	gateway.CalleeResponded(ctx, answer)
	request.End()

	_ = engine.Shutdown(context.Background())
	_ = gateway.Shutdown(context.Background())
	// Output:
	// kernel
	// engine, kept by errors
	// gateway, kept by callee
}

// Exemplars of any instrument point at traces that exist.
func ExampleTail_Kept() {
	tail, tracer := exampleTail(sampling.Baseline(1))
	meters := metric.NewMeterProvider(metric.WithExemplarFilter(tail.Kept))
	ctx, span := tracer.Start(context.Background(), "GET /items")
	latency, err := meters.Meter("example").Float64Histogram("latency")
	if err != nil {
		fmt.Println(err)
		return
	}
	latency.Record(ctx, 0.25)
	fmt.Println(tail.Kept(ctx), tail.Kept(context.Background()))
	span.End()
	_ = tail.Shutdown(context.Background())
	// Output:
	// true false
	// GET /items, kept by baseline
}

// What only code can tell. The function may take its time and even panic.
func ExampleWithCustom() {
	tail, tracer := exampleTail(sampling.Any(sampling.Errors(), sampling.Custom("crowded")),
		sampling.WithCustom("crowded", func(t sampling.Trace) bool { return len(t.Spans) > 2 }))
	for _, steps := range []int{1, 2} {
		ctx, root := tracer.Start(context.Background(), fmt.Sprint("work of ", steps))
		for range steps {
			_, step := tracer.Start(ctx, "step")
			step.End()
		}
		root.End()
	}
	_ = tail.Shutdown(context.Background())
	// Output:
	// step
	// step
	// work of 2, kept by custom:crowded
}

// Of ordinary traces the entry and what is slow, with its ancestors; of failed ones all.
func ExampleKeyPath() {
	tail, tracer := exampleTail(sampling.Any(
		sampling.Errors(),
		sampling.KeyPath(sampling.Baseline(1),
			sampling.Selector{Kind: trace.SpanKindServer},
			sampling.Selector{Name: "inference.*", MinDuration: 50 * time.Millisecond}),
	))
	start := time.Now()
	at := func(ms int) trace.SpanEventOption {
		return trace.WithTimestamp(start.Add(time.Duration(ms) * time.Millisecond))
	}
	ctx, root := tracer.Start(context.Background(), "POST /chat", trace.WithSpanKind(trace.SpanKindServer), at(0))
	_, auth := tracer.Start(ctx, "auth", at(0))
	auth.End(at(1))
	inner, route := tracer.Start(ctx, "route", at(1))
	_, prefill := tracer.Start(inner, "inference.prefill", at(2))
	prefill.End(at(80))
	_, post := tracer.Start(inner, "inference.postprocess", at(80))
	post.End(at(82))
	route.End(at(83))
	root.End(at(84))
	_ = tail.Shutdown(context.Background())
	// Output:
	// inference.prefill
	// route
	// POST /chat, kept by baseline
}
