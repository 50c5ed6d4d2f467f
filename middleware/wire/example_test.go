package wire_test

import (
	"context"
	"fmt"
	"strings"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/middleware/wire"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// A service that gets a stream by other means than this module's transport
// shows it to a Stream as it reads.
func ExampleStream() {
	spans := tracetest.NewSpanRecorder()
	tracer := genaitrace.New(genaitrace.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))))

	_, call := tracer.StartCall(context.Background(), genaitrace.Request{Model: "qwen2.5-7b-instruct", Stream: true})
	body := strings.NewReader(`data: {"model":"qwen2.5-7b-instruct-v1","choices":[{"index":0,"delta":{"content":"Hi"}}]}

data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":19,"completion_tokens":1}}

data: [DONE]

`)
	stream := wire.NewStream(call, wire.Exchange{})
	p := make([]byte, 64)
	for {
		n, err := body.Read(p)
		stream.Push(p[:n])
		if err != nil {
			stream.End(err)
			break
		}
	}
	call.End()

	span := spans.Ended()[0]
	fmt.Println(span.Name())
	for _, a := range span.Attributes() {
		switch a.Key {
		case genaiconv.ResponseModelKey, genaiconv.UsageInputTokensKey, genaiconv.UsageOutputTokensKey,
			genaiconv.ResponseFinishReasonsKey, semconv.GenAIStreamTerminalKey:
			fmt.Printf("%s = %s\n", a.Key, a.Value.String())
		}
	}
	// Output:
	// chat qwen2.5-7b-instruct
	// gen_ai.response.model = qwen2.5-7b-instruct-v1
	// gen_ai.response.finish_reasons = ["stop"]
	// gen_ai.usage.input_tokens = 19
	// gen_ai.usage.output_tokens = 1
	// genai.stream.terminal = done
}

// What a request asks for, from the first bytes of its body.
func ExampleReadRequest() {
	r := wire.ReadRequest("/v1/chat/completions", []byte(`{"model":"qwen2.5-7b-instruct","stream":true,"messages":[{"role":"user","content":"cut he`))
	fmt.Println(r.Model, r.Stream)

	// Output:
	// qwen2.5-7b-instruct true
}
