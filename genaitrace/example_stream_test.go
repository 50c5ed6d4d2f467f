package genaitrace_test

import (
	"context"
	"errors"
	"fmt"
	"iter"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// A delta is an item of some client library's stream.
type delta struct {
	Text   string
	Finish string
}

// deltas stands for a client library.
func deltas(texts ...string) iter.Seq2[delta, error] {
	return func(yield func(delta, error) bool) {
		for _, text := range texts {
			if !yield(delta{Text: text}, nil) {
				return
			}
		}
		yield(delta{Finish: "stop"}, nil)
	}
}

// exampleTracer is a Tracer, and what prints attributes of its first span.
func exampleTracer() (tr *genaitrace.Tracer, printSpan func(keys ...string)) {
	spans := tracetest.NewInMemoryExporter()
	tr = genaitrace.New(genaitrace.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))))
	return tr, func(keys ...string) {
		s := spans.GetSpans()[0]
		fmt.Println(s.Name)
		for _, key := range keys {
			for _, kv := range s.Attributes {
				if string(kv.Key) == key {
					fmt.Println(key, "=", kv.Value.AsInterface())
				}
			}
		}
	}
}

// A caller ranges over the stream of a client library, and leaves when it likes.
func ExampleRangeChunks() {
	tr, printSpan := exampleTracer()

	_, call := tr.StartCall(context.Background(), genaitrace.Request{Model: "gpt-4o", Stream: true})
	observe := func(call *genaitrace.Call, d delta) genaitrace.ChunkKind {
		if d.Finish != "" {
			call.SetFinish(d.Finish)
			return genaitrace.NoOutput
		}
		return genaitrace.Visible
	}
	for d, err := range genaitrace.RangeChunks(call, deltas("Hel", "lo"), observe) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Print(d.Text)
	}
	fmt.Println()

	printSpan("genai.chunk.count", "genai.chunk.output_count", "genai.stream.terminal")
	// Output:
	// Hello
	// chat gpt-4o
	// genai.chunk.count = 3
	// genai.chunk.output_count = 2
	// genai.stream.terminal = finish
}

// A caller receives from a stream until it has enough.
func ExampleReceiveChunks() {
	tr, printSpan := exampleTracer()
	receive := func() (delta, error) { return delta{Text: "la"}, nil } // such as stream.Recv of gRPC

	_, call := tr.StartCall(context.Background(), genaitrace.Request{Model: "gpt-4o", Stream: true})
	recv, stop := genaitrace.ReceiveChunks(call, receive, nil)
	for range 3 {
		d, err := recv()
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Print(d.Text)
	}
	stop() // usually deferred
	fmt.Println()

	printSpan("genai.chunk.count", "genai.stream.terminal")
	// Output:
	// lalala
	// chat gpt-4o
	// genai.chunk.count = 3
	// genai.stream.terminal = client_cancelled
}

// A service hands out the tokens of its engine as a sequence, and records the
// request from inside of it.
func ExampleRangeTokens() {
	spans := tracetest.NewInMemoryExporter()
	tr := genaitrace.New(genaitrace.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))))
	engine := func(yield func([]int, error) bool) { _ = yield([]int{7}, nil) && yield([]int{8, 9}, nil) } // two steps

	generate := func(ctx context.Context) iter.Seq2[[]int, error] {
		return func(yield func([]int, error) bool) {
			var err error
			ctx, inf := tr.StartInference(ctx, genaitrace.Request{Stream: true})
			defer inf.EndErr(&err)
			_, decode := inf.StartDecode(ctx)
			var tokens []int
			for tokens, err = range genaitrace.RangeTokens(decode, engine, func(step []int) int { return len(step) }) {
				if !yield(tokens, err) {
					return
				}
			}
		}
	}
	for tokens := range generate(context.Background()) {
		fmt.Println(tokens)
	}

	printTree(spans.GetSpans(), trace.SpanID{}, "")
	// Output:
	// [7]
	// [8 9]
	// inference.generate
	//   inference.decode: 3 tokens [first_token]
}

// A call with one answer.
func ExampleDo() {
	tr, printSpan := exampleTracer()
	complete := func(context.Context, string) (string, error) { return "", errors.New("overloaded") } // a client library

	_, err := genaitrace.Do(context.Background(), tr, genaitrace.Request{Provider: genaiconv.ProviderNameOpenAI, Model: "gpt-4o"},
		func(ctx context.Context) (string, error) {
			answer, err := complete(ctx, "Hello")
			if err == nil {
				genaitrace.CallFromContext(ctx).SetFinish("stop")
			}
			return answer, err
		})
	fmt.Println("error:", err)

	printSpan("error.type")
	// Output:
	// error: overloaded
	// chat gpt-4o
	// error.type = _OTHER
}

// What is true of a whole request is said once.
func ExampleContextWith() {
	tr, printSpan := exampleTracer()

	ctx := genaitrace.ContextWith(context.Background(),
		genaitrace.TenantID("acme"),
		genaitrace.TraceSource(semconv.GenAITraceSourceUserInput),
		genaitrace.PromptName("summary"), genaitrace.PromptVersion("v3"))
	_, call := tr.StartCall(ctx, genaitrace.Request{Model: "gpt-4o"})
	call.End()

	printSpan("genai.tenant.id", "genai.trace.source", "gen_ai.prompt.name", "gen_ai.prompt.version")
	// Output:
	// chat gpt-4o
	// genai.tenant.id = acme
	// genai.trace.source = user_input
	// gen_ai.prompt.name = summary
	// gen_ai.prompt.version = v3
}
