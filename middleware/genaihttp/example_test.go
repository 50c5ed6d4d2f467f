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

// One line for a service on net/http.
func Example() {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "{}") })
	server := &http.Server{Addr: "localhost:8080", Handler: genaihttp.NewHandler(mux)}
	_ = server // server.ListenAndServe()
}

// A router stands for chi, whose middleware has net/http's own shape, and for gin and
// echo, which take that shape through an adapter. Its routes are not a ServeMux's,
// so the middleware names them.
type router struct {
	middleware []func(http.Handler) http.Handler
	routes     map[string]http.HandlerFunc // by pattern, here one segment and a name
}

func (r *router) Use(m func(http.Handler) http.Handler) { r.middleware = append(r.middleware, m) }

func (r *router) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	var h http.Handler = http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		tenant, rest, _ := strings.Cut(strings.TrimPrefix(req.URL.Path, "/tenants/"), "/")
		_ = tenant
		pattern := "/tenants/{tenant}/" + rest
		if route, ok := r.routes[pattern]; ok {
			genaihttp.SetRoute(req.Context(), pattern) // chi: chi.RouteContext(ctx).RoutePattern()
			route(w, req)
			return
		}
		http.NotFound(w, req)
	})
	for _, m := range r.middleware {
		h = m(h)
	}
	h.ServeHTTP(w, req)
}

// With a router whose middleware is a func(http.Handler) http.Handler.
//
//	chi:  r.Use(traced)
//	echo: e.Use(echo.WrapMiddleware(traced))
//	gin:  http.ListenAndServe(addr, traced(engine)), and in a gin.HandlerFunc
//	      genaihttp.SetRoute(c.Request.Context(), c.FullPath())
func ExampleSetRoute() {
	spans := tracetest.NewSpanRecorder()
	tp := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
	traced := func(next http.Handler) http.Handler {
		return genaihttp.NewHandler(next, genaihttp.WithTracerProvider(tp))
	}

	r := &router{routes: map[string]http.HandlerFunc{
		"/tenants/{tenant}/chat": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "{}") },
	}}
	r.Use(traced)

	r.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/tenants/acme/chat", nil))
	r.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/tenants/acme/secrets", nil))
	for _, span := range spans.Ended() {
		fmt.Println(span.Name())
	}
	// Output:
	// POST /tenants/{tenant}/chat
	// POST
}
