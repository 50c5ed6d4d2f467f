package wire_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
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

// house is the dialect of a server that nobody else knows: {"tok":"Hi"} for each
// token, {"end":"length","n":2} at the end.
type house struct{}

func (house) Read(a *wire.Answer, e wire.Event) {
	var event struct {
		Tok, End string
		N        *int
	}
	if json.Unmarshal(e.Data, &event) != nil {
		return
	}
	if event.Tok != "" {
		a.Note(wire.KindContent)
	}
	if event.End != "" {
		a.SetFinish(0, event.End)
		a.SetUsage(genaitrace.Usage{OutputTokens: event.N})
		a.Note(wire.KindDone)
	}
}

// A dialect of one's own is a method. Its endpoint tells genaihttp which requests
// are calls of the model.
func ExampleDialect() {
	endpoint := wire.Endpoint{Path: "/predict", Provider: "house", Dialect: house{}}

	spans := tracetest.NewSpanRecorder()
	tracer := genaitrace.New(genaitrace.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))))
	_, call := tracer.StartCall(context.Background(), genaitrace.Request{Provider: endpoint.Provider, Stream: true})
	stream := wire.NewStream(call, wire.Exchange{Dialect: endpoint.Dialect})
	stream.Push([]byte("data: {\"tok\":\"Hi\"}\n\ndata: {\"end\":\"length\",\"n\":2}\n\n"))
	stream.End(io.EOF)
	call.End()

	for _, a := range spans.Ended()[0].Attributes() {
		switch a.Key {
		case semconv.GenAIChunkOutputCountKey, genaiconv.UsageOutputTokensKey, genaiconv.ResponseFinishReasonsKey, semconv.GenAIStreamTerminalKey:
			fmt.Printf("%s = %s\n", a.Key, a.Value.String())
		}
	}
	// Output:
	// gen_ai.response.finish_reasons = ["length"]
	// gen_ai.usage.output_tokens = 2
	// genai.chunk.output_count = 1
	// genai.stream.terminal = done
}

// What an engine says of its own work.
func ExampleStream_EngineTimes() {
	stream := wire.NewStream(nil, wire.Exchange{Path: "/v1/chat/completions"})
	stream.Push([]byte(`data: {"choices":[],"metrics":{"queue_time_ms":25.75,"time_to_first_token_ms":60.5}}` + "\n\n"))
	stream.End(io.EOF)
	times := stream.EngineTimes()
	fmt.Println(*times.Queue, *times.Prefill, times.Source)

	// Output:
	// 25.75ms 60.5ms vllm.metrics
}
