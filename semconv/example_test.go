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
