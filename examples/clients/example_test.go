package clients_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"

	"github.com/anthropics/anthropic-sdk-go/v2"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/genaitrace/otelgenai/examples/internal/toy"
	"github.com/genaitrace/otelgenai/examples/internal/toyserver"
	"github.com/genaitrace/otelgenai/middleware/genaihttp"
)

// openai-go makes no spans. With the transport each call has one, and below it what
// the server tells of its work.
func Example_openai() {
	server := httptest.NewServer(toyserver.New(toy.Config{}))
	defer server.Close()
	spans := tracetest.NewSpanRecorder()
	traces := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))

	client := openai.NewClient(option.WithHTTPClient(&http.Client{
		Transport: genaihttp.NewTransport(http.DefaultTransport, genaihttp.WithTracerProvider(traces)),
	}), option.WithBaseURL(server.URL+"/v1"), option.WithAPIKey("none"))

	stream := client.Chat.Completions.NewStreaming(context.Background(), openai.ChatCompletionNewParams{
		Model:         toy.Model,
		Messages:      []openai.ChatCompletionMessageParamUnion{openai.UserMessage("What is 1 + 1?")},
		StreamOptions: openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)},
	})
	for stream.Next() {
		for _, choice := range stream.Current().Choices {
			fmt.Print(choice.Delta.Content)
		}
	}
	fmt.Println()
	if err := stream.Err(); err != nil {
		fmt.Println(err)
	}
	show(spans)
	// Output:
	// 1 + 1 = 2.
	// queue.wait
	// inference.prefill
	// inference.decode
	// chat toy-1
	//   gen_ai.response.finish_reasons = ["stop"]
	//   gen_ai.usage.input_tokens = 18
	//   gen_ai.usage.output_tokens = 6
	//   llm.ttft_ms
}

// anthropic-sdk-go makes a span of each call by itself. The transport adds to it what
// the library does not see, the times of a stream above all, and makes no second one:
// a back end that adds up tokens counts them once.
func Example_anthropic() {
	server := httptest.NewServer(http.HandlerFunc(claude))
	defer server.Close()
	spans := tracetest.NewSpanRecorder()
	traces := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))

	client := anthropic.NewClient(anthropicoption.WithHTTPClient(&http.Client{
		Transport: genaihttp.NewTransport(http.DefaultTransport, genaihttp.WithTracerProvider(traces)),
	}), anthropicoption.WithTracerProvider(traces), anthropicoption.WithBaseURL(server.URL), anthropicoption.WithAPIKey("none"))

	stream := client.Messages.NewStreaming(context.Background(), anthropic.MessageNewParams{
		Model: "claude-fx", MaxTokens: 64,
		Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("Say hello."))},
	})
	for stream.Next() {
		fmt.Print(stream.Current().Delta.Text)
	}
	fmt.Println()
	if err := stream.Err(); err != nil {
		fmt.Println(err)
	}
	show(spans)
	// Output:
	// Hello!
	// anthropic.messages.create
	//   gen_ai.response.finish_reasons = ["end_turn"]
	//   gen_ai.usage.input_tokens = 25
	//   gen_ai.usage.output_tokens = 15
	//   llm.ttft_ms
}

// show prints the spans that ended, and a few of their attributes.
func show(spans *tracetest.SpanRecorder) {
	http.DefaultClient.CloseIdleConnections()
	for _, s := range spans.Ended() {
		fmt.Println(s.Name())
		var lines []string
		for _, a := range s.Attributes() {
			switch a.Key {
			case "gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens", "gen_ai.response.finish_reasons":
				lines = append(lines, fmt.Sprintf("  %s = %s", a.Key, a.Value.String()))
			case "llm.ttft_ms": // another one each time
				lines = append(lines, "  "+string(a.Key))
			}
		}
		slices.Sort(lines)
		if len(lines) > 0 {
			fmt.Println(strings.Join(lines, "\n"))
		}
	}
}

// claude answers as Anthropic's Messages API does.
func claude(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, event := range []string{
		`{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","content":[],"model":"claude-fx","stop_reason":null,"usage":{"input_tokens":25,"output_tokens":1}}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello"}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"!"}}`,
		`{"type":"content_block_stop","index":0}`,
		`{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":15}}`,
		`{"type":"message_stop"}`,
	} {
		_, kind, _ := strings.Cut(event, `"type":"`)
		kind, _, _ = strings.Cut(kind, `"`)
		fmt.Fprintf(w, "event: %s\ndata: %s\n\n", kind, event)
		_ = http.NewResponseController(w).Flush()
	}
}
