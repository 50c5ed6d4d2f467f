package genaiconv_test

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

func Example() {
	attributes := []attribute.KeyValue{
		genaiconv.OperationName(genaiconv.OperationNameChat),
		genaiconv.ProviderName("vllm"), // no constant: any string will do
		genaiconv.RequestModel("qwen2.5-7b-instruct"),
		genaiconv.ResponseFinishReasons("stop"),
		genaiconv.UsageOutputTokens(42),
	}
	for _, kv := range attributes {
		fmt.Println(kv.Key, "=", kv.Value)
	}
	// Output:
	// gen_ai.operation.name = chat
	// gen_ai.provider.name = vllm
	// gen_ai.request.model = qwen2.5-7b-instruct
	// gen_ai.response.finish_reasons = ["stop"]
	// gen_ai.usage.output_tokens = 42
}

// Boundaries of one's own replace those of the convention.
func ExampleNewServerTimeToFirstToken() {
	meter := noop.NewMeterProvider().Meter("example")
	buckets := append(genaiconv.ServerTimeToFirstTokenBuckets(), 30, 60)

	ttft, err := genaiconv.NewServerTimeToFirstToken(meter,
		metric.WithExplicitBucketBoundaries(buckets...))
	if err != nil {
		fmt.Println(err)
		return
	}
	ttft.Record(context.Background(), 0.35, genaiconv.OperationNameChat, "vllm",
		ttft.AttrRequestModel("qwen2.5-7b-instruct"))
	fmt.Println(ttft.Name(), len(buckets))
	// Output: gen_ai.server.time_to_first_token 18
}

func ExampleJSONValue() {
	messages, err := genaiconv.JSONValue([]genaiconv.Message{{
		Role:  genaiconv.RoleUser,
		Parts: genaiconv.Parts{genaiconv.TextPart{Content: "How long is a stall?"}},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	kv := genaiconv.InputMessages(messages)
	fmt.Println(kv.Key)
	fmt.Println(kv.Value.AsString())
	// Output:
	// gen_ai.input.messages
	// [{"role":"user","parts":[{"type":"text","content":"How long is a stall?"}]}]
}
