package genaihttp_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/genaitrace/otelgenai/middleware/genaihttp"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// A gateway that streams an answer: its span has the route, and knows when the
// first token left.
func ExampleNewHandler() {
	spans := tracetest.NewSpanRecorder()
	tp := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))

	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, content := range []string{"Hel", "lo"} {
			fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":%q}}]}\n\n", content)
			_ = http.NewResponseController(w).Flush()
		}
		fmt.Fprint(w, "data: [DONE]\n\n")
	})
	gateway := genaihttp.NewHandler(mux, genaihttp.WithTracerProvider(tp))

	gateway.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/v1/chat/completions", nil))

	span := spans.Ended()[0]
	fmt.Println(span.SpanKind(), span.Name())
	for _, a := range span.Attributes() {
		switch a.Key {
		case semconv.GenAISpanRoleKey, semconv.GenAIChunkCountKey, semconv.GenAIStreamTerminalKey:
			fmt.Printf("%s = %s\n", a.Key, a.Value.String())
		case semconv.LLMTTFTMsKey:
			fmt.Println(a.Key, "is there")
		}
	}
	// Output:
	// server POST /v1/chat/completions
	// genai.span.role = gateway
	// llm.ttft_ms is there
	// genai.chunk.count = 2
	// genai.stream.terminal = done
}

// A client of a model server: any client that takes an http.Client can be given
// the transport.
func ExampleNewTransport() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, `data: {"model":"qwen2.5-7b-instruct","choices":[{"index":0,"delta":{"content":"Hello"}}]}

data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":19,"completion_tokens":1}}

data: [DONE]

`)
	}))
	defer server.Close()

	spans := tracetest.NewSpanRecorder()
	tp := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
	client := &http.Client{Transport: genaihttp.NewTransport(http.DefaultTransport, genaihttp.WithTracerProvider(tp))}

	resp, err := client.Post(server.URL+"/v1/chat/completions", "application/json",
		strings.NewReader(`{"model":"qwen2.5-7b-instruct","stream":true,"messages":[]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()

	span := spans.Ended()[0]
	fmt.Println(span.SpanKind(), span.Name())
	for _, a := range span.Attributes() {
		switch a.Key {
		case genaiconv.UsageInputTokensKey, genaiconv.UsageOutputTokensKey, genaiconv.ResponseFinishReasonsKey,
			semconv.GenAIStreamTerminalKey:
			fmt.Printf("%s = %s\n", a.Key, a.Value.String())
		}
	}
	// Output:
	// client chat qwen2.5-7b-instruct
	// gen_ai.response.finish_reasons = ["stop"]
	// gen_ai.usage.input_tokens = 19
	// gen_ai.usage.output_tokens = 1
	// genai.stream.terminal = done
}

// A gateway before any model server: one span for what the gateway's client sees,
// one for what the gateway sees of the model server.
func ExampleNewReverseProxy() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, `data: {"model":"qwen2.5-7b-instruct","choices":[{"index":0,"delta":{"content":"Hello"}}]}

data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}

data: [DONE]

`)
	}))
	defer server.Close()
	upstream, _ := url.Parse(server.URL)

	spans := tracetest.NewSpanRecorder()
	tp := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
	gateway := httptest.NewServer(genaihttp.NewReverseProxy(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(upstream) },
	}, genaihttp.WithTracerProvider(tp)))

	resp, err := http.Post(gateway.URL+"/v1/chat/completions", "application/json",
		strings.NewReader(`{"model":"qwen2.5-7b-instruct","stream":true,"messages":[]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	gateway.Close()

	for _, span := range spans.Ended() {
		fmt.Println(span.SpanKind(), span.Name())
	}
	// Output:
	// client chat qwen2.5-7b-instruct
	// server POST /v1/chat/completions
}
