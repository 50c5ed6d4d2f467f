package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/genaitrace/otelgenai/examples/internal/chatclient"
	"github.com/genaitrace/otelgenai/examples/internal/toy"
	"github.com/genaitrace/otelgenai/examples/internal/toyserver"
	"github.com/genaitrace/otelgenai/middleware/genaihttp"
)

// The gateway without what a program needs besides.
func Example() {
	engine := httptest.NewServer(toyserver.New(toy.Config{}))
	defer engine.Close()
	upstream, err := url.Parse(engine.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	spans := tracetest.NewSpanRecorder()
	traces := genaihttp.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)))

	gateway := genaihttp.NewReverseProxy(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(upstream) },
	}, traces)

	server := httptest.NewServer(gateway)
	client := chatclient.New(chatclient.Options{BaseURL: server.URL + "/v1", APIKey: "none", Model: toy.Model, Stream: true})
	_, err = client.Ask(context.Background(), "What is 1 + 1?", func(text string) { fmt.Print(text) })
	fmt.Println()
	if err != nil {
		fmt.Println(err)
	}
	server.Close()
	http.DefaultClient.CloseIdleConnections()
	for _, s := range spans.Ended() {
		fmt.Println(s.SpanKind(), s.Name())
	}
	// Output:
	// 1 + 1 = 2.
	// internal queue.wait
	// internal inference.prefill
	// internal inference.decode
	// client chat toy-1
	// server POST /v1/chat/completions
}
