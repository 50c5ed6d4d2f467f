package genaitrace_test

import (
	"context"
	"fmt"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/semconv"
)

// One request in the process that runs the model.
func Example() {
	spans := tracetest.NewInMemoryExporter()
	tp := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	mp := sdkmetric.NewMeterProvider()
	tr := genaitrace.New(genaitrace.WithTracerProvider(tp), genaitrace.WithMeterProvider(mp))

	generate := func(ctx context.Context, prompt []int) (err error) {
		ctx, inf := tr.StartInference(ctx, genaitrace.Request{Model: "qwen2.5-7b-instruct", Stream: true})
		defer inf.EndErr(&err) // ends open phases too, and lets a panic pass
		_, prefill := inf.StartPrefill(ctx, genaitrace.Prompt{Tokens: len(prompt)})
		tokens := prompt // a model that repeats its prompt
		prefill.End()
		_, decode := inf.StartDecode(ctx)
		for range tokens {
			decode.Token() // the first one fixes the time to first token
		}
		return nil
	}
	fmt.Println("error:", generate(context.Background(), []int{7, 8, 9}))

	printTree(spans.GetSpans(), trace.SpanID{}, "")
	// Output:
	// error: <nil>
	// inference.generate
	//   inference.prefill
	//   inference.decode: 3 tokens [phase.transition first_token]
}

func printTree(spans tracetest.SpanStubs, parent trace.SpanID, indent string) {
	for _, s := range spans {
		if s.Parent.SpanID() != parent {
			continue
		}
		line := indent + s.Name
		for _, kv := range s.Attributes {
			if kv.Key == semconv.GenAITokenCountKey {
				line += fmt.Sprintf(": %d tokens", kv.Value.AsInt64())
			}
		}
		var events []string
		for _, e := range s.Events {
			events = append(events, e.Name)
		}
		if len(events) > 0 {
			line += " [" + strings.Join(events, " ") + "]"
		}
		fmt.Println(line)
		printTree(spans, s.SpanContext.SpanID(), indent+"  ")
	}
}

// A caller stamps each data event of the stream that it reads.
func ExampleTracer_StartCall() {
	spans := tracetest.NewInMemoryExporter()
	tr := genaitrace.New(genaitrace.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))))

	_, call := tr.StartCall(context.Background(), genaitrace.Request{Provider: "openai", Model: "gpt-4o", Stream: true})
	call.Chunk(genaitrace.NoOutput) // a role
	call.Chunk(genaitrace.Visible)  // answer text
	call.SetUsage(genaitrace.Usage{InputTokens: new(19), OutputTokens: new(1)})
	call.SetFinish("stop")
	call.SetTerminal(semconv.GenAIStreamTerminalDone)
	call.End()

	s := spans.GetSpans()[0]
	fmt.Println(s.Name)
	for _, kv := range s.Attributes {
		switch kv.Key {
		case semconv.GenAIStreamTerminalKey, semconv.GenAIChunkCountKey, semconv.GenAIChunkOutputCountKey:
			fmt.Println(kv.Key, "=", kv.Value.AsInterface())
		}
	}
	// Output:
	// chat gpt-4o
	// genai.chunk.count = 2
	// genai.chunk.output_count = 1
	// genai.stream.terminal = done
}

// Three tokens 20 ms apart, as a span's attribute holds them.
func ExampleDecodeTimeline() {
	line, err := genaitrace.DecodeTimeline("AQMBgIA")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(line.Ticks, "tokens")
	for token, offset := range line.Offsets() {
		fmt.Println(token, offset)
	}
	// Output:
	// 3 tokens
	// 0 0s
	// 1 20.598318ms
	// 2 41.196636ms
}

// The wait for the scheduler by length of prompt and number format of the weights.
func ExampleWithMetricDimensions() {
	reader := sdkmetric.NewManualReader()
	tr := genaitrace.New(
		genaitrace.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))),
		genaitrace.WithMetricDimensions(semconv.GenAIPromptLengthBucketKey, semconv.GenAIQuantizationKey))

	ctx, inf := tr.StartInference(context.Background(), genaitrace.Request{Model: "qwen2.5-7b-instruct"})
	inf.SetEngine(genaitrace.Engine{Quantization: "fp8"})
	_, queue := inf.StartQueue(ctx)
	queue.End()
	inf.SetUsage(genaitrace.Usage{InputTokens: new(2456)})
	inf.End()

	var recorded metricdata.ResourceMetrics
	_ = reader.Collect(ctx, &recorded)
	for _, m := range recorded.ScopeMetrics[0].Metrics {
		if m.Name == semconv.GenAIQueueWaitName {
			point := m.Data.(metricdata.Histogram[float64]).DataPoints[0]
			fmt.Println(m.Name, point.Attributes.Encoded(attribute.DefaultEncoder()))
		}
	}
	// Output:
	// genai.queue.wait gen_ai.operation.name=chat,gen_ai.request.model=qwen2.5-7b-instruct,genai.prompt.length_bucket=1k-4k,genai.quantization=fp8
}
