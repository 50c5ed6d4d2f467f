package genaitrace_test

import (
	"context"
	"errors"
	"fmt"
	"testing/fstest"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/semconv"
)

// What a gateway does before its model call: each step is a span with its outcome.
func ExampleTracer_StartRoute() {
	spans := tracetest.NewInMemoryExporter()
	tr := genaitrace.New(genaitrace.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))))

	choose := func(ctx context.Context, model string) (backend string, err error) {
		_, route := tr.StartRoute(ctx, model)
		defer route.EndErr(&err)
		route.SetBackend("vllm")
		return "engine-7:8033", nil
	}

	ctx, gateway := tr.StartGateway(context.Background(), genaitrace.GatewayRequest{Name: "POST /v1/chat/completions"})
	_, limit := tr.StartRateLimit(ctx)
	limit.End() // its length is genai.ratelimit.wait_ms
	_, lookup := tr.StartCache(ctx)
	lookup.SetHit(false)
	lookup.End()
	backend, err := choose(ctx, "qwen2.5-7b-instruct")
	gateway.End()

	fmt.Println(backend, err)
	printTree(spans.GetSpans(), trace.SpanID{}, "")
	// Output:
	// engine-7:8033 <nil>
	// POST /v1/chat/completions
	//   gateway.ratelimit
	//   gateway.cache
	//   gateway.route
}

// A prompt that is computed in pieces: one phase, one pass a piece.
func ExamplePhase_StartForward() {
	spans := tracetest.NewInMemoryExporter()
	tr := genaitrace.New(genaitrace.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))))

	ctx, inf := tr.StartInference(context.Background(), genaitrace.Request{Model: "qwen2.5-7b-instruct"})
	inf.SetEngine(genaitrace.Engine{Backend: "vllm", Quantization: "fp8", DeviceID: new(0), DeviceName: "NVIDIA H100"})
	ctx, prefill := inf.StartPrefill(ctx, genaitrace.Prompt{Tokens: 1300, Cached: new(300)})
	for step, tokens := range []int{512, 488} {
		_, pass := prefill.StartForward(ctx, genaitrace.Forward{StepID: new(1042 + step), Tokens: tokens, BatchSize: 4})
		pass.End()
	}
	prefill.SetResources(genaitrace.Resources{BlocksAllocated: new(82), BlocksEvicted: new(0)})
	prefill.End()
	inf.End()

	printTree(spans.GetSpans(), trace.SpanID{}, "")
	// Output:
	// inference.generate
	//   inference.prefill
	//     model.forward
	//     model.forward
}

// Of all the steps that a phase reports, the costliest become events.
func ExamplePhase_RecordStep() {
	spans := tracetest.NewInMemoryExporter()
	tr := genaitrace.New(
		genaitrace.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))),
		genaitrace.WithStepEvents(2))

	ctx, inf := tr.StartInference(context.Background(), genaitrace.Request{Model: "qwen2.5-7b-instruct"})
	_, decode := inf.StartDecode(ctx)
	for position, kernel := range []time.Duration{2e6, 19e6, 2e6, 23e6, 2e6} {
		decode.Token()
		decode.RecordStep(genaitrace.Step{ID: new(1042 + position), Position: new(position), Kernel: &kernel})
	}
	inf.End()

	for _, event := range spans.GetSpans()[0].Events {
		if event.Name == semconv.EventEngineStep {
			fmt.Println(event.Attributes[0].Value.AsInt64(), event.Attributes[2].Value.AsFloat64(), "ms")
		}
	}
	// Output:
	// 1043 19 ms
	// 1045 23 ms
}

// A tokenizer that belongs to another model counts and reads wrongly: the caller
// learns it and decides.
func ExampleInference_CheckTokenizer() {
	tr := genaitrace.New()
	files := fstest.MapFS{"tokenizer.json": {Data: []byte(`{"model": {"vocab": {"hello": 0}}}`)}} // os.DirFS(folder)
	fingerprint, err := genaitrace.TokenizerFingerprint(files, "tokenizer.json")
	if err != nil {
		fmt.Println(err)
		return
	}
	tokenizers := genaitrace.TokenizerBinding{"qwen2.5-7b-instruct": "b7c4e19f02ad5310"}

	_, inf := tr.StartInference(context.Background(), genaitrace.Request{Model: "qwen2.5-7b-instruct"})
	defer inf.End()
	err = inf.CheckTokenizer(tokenizers, "qwen2.5-7b-instruct", fingerprint)
	if mismatch, ok := errors.AsType[*genaitrace.TokenizerError](err); ok {
		fmt.Println("reload the tokenizer of", mismatch.Model)
	}
	// Output:
	// reload the tokenizer of qwen2.5-7b-instruct
}
