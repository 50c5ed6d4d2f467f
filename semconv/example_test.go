package semconv_test

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/genaitrace/otelgenai/semconv"
)

func Example() {
	attributes := []attribute.KeyValue{
		semconv.GenAISpanRole(semconv.GenAISpanRolePrefill),
		semconv.AIPrefillDurationMs(120.25),
		semconv.AIKVCacheHitRatio(0.42),
	}
	fmt.Println(semconv.SpanInferencePrefill)
	for _, kv := range attributes {
		fmt.Println(kv.Key, "=", kv.Value)
	}
	// Output:
	// inference.prefill
	// genai.span.role = prefill
	// ai.prefill.duration_ms = 120.25
	// ai.kv_cache.hit_ratio = 0.42
}

// An enum takes strings that have no constant.
func ExampleGenAISpanRole() {
	kv := semconv.GenAISpanRole("speculate")
	fmt.Println(kv.Key, "=", kv.Value)
	// Output: genai.span.role = speculate
}

func ExampleNewGenAITelemetryFaults() {
	meter := noop.NewMeterProvider().Meter("example")

	faults, err := semconv.NewGenAITelemetryFaults(meter)
	if err != nil {
		fmt.Println(err)
		return
	}
	faults.Add(context.Background(), 1, semconv.GenAIFaultCount)
	fmt.Println(faults.Name())
	// Output: genai.telemetry.faults
}

// Any name that people write is found, with what it stands for here.
func ExampleLookup() {
	for _, key := range []attribute.Key{"llm.prompt.tokens", "gen_ai.system", "ai.response.delay_ms"} {
		a, _ := semconv.Lookup(key)
		target, _ := a.Target()
		fmt.Println(a.Key, a.Type, "→", target, "×", a.Factor)
	}
	// Output:
	// llm.prompt.tokens int → ai.tokens.input × 1
	// gen_ai.system enum → gen_ai.provider.name × 1
	// ai.response.delay_ms double → gen_ai.response.time_to_first_chunk × 0.001
}

func ExampleSuggest() {
	fmt.Println(semconv.Suggest("gen_ai.usage.inputtokens")[0])
	// Output: gen_ai.usage.input_tokens
}

// Some words that people write have no name here; an error message says why.
func ExampleInstead() {
	const key = "model.latency_ms"
	if _, known := semconv.Lookup(key); !known {
		if advice, ok := semconv.Instead(key); ok {
			fmt.Printf("%s is no key: here that is %s\n", key, advice)
		}
	}
	// Output: model.latency_ms is no key: here that is the duration of the span inference.generate or model.forward itself
}

func ExampleLookupSpan() {
	span, _ := semconv.LookupSpan("gen_ai.client.inference")
	for _, r := range span.Attributes {
		if r.Level == semconv.LevelRequired {
			fmt.Println(r.Key, "is required")
		}
		if r.Key == "error.type" {
			fmt.Println(r.Key, "is required where", r.If)
		}
	}
	// Output:
	// gen_ai.operation.name is required
	// gen_ai.provider.name is required
	// error.type is required where the operation failed
}
