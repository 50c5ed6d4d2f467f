package genaihttp_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/genaitrace/otelgenai/middleware/genaihttp"
)

// A client without the transport of this package loses the trace.
func ExampleCheck() {
	tp := sdktrace.NewTracerProvider()
	root := genaihttp.NewHandler(http.NewServeMux(), genaihttp.WithTracerProvider(tp))

	fmt.Println(genaihttp.Check(context.Background(), root, &http.Transport{DisableKeepAlives: true}))
	// Output:
	// genaihttp: check of transport: requests carry no trace context; make the client with genaihttp.NewTransport around its transport, and propagators that write
}

// A health endpoint that also tells whether traces come through.
func ExampleProbe() {
	tp := sdktrace.NewTracerProvider()
	transport := genaihttp.NewTransport(&http.Transport{DisableKeepAlives: true}, genaihttp.WithTracerProvider(tp))

	mux := http.NewServeMux()
	mux.Handle("/health", genaihttp.Probe(transport))
	server := httptest.NewServer(genaihttp.NewHandler(mux, genaihttp.WithTracerProvider(tp)))
	defer server.Close()

	resp, err := http.Get(server.URL + "/health?probe=trace")
	if err != nil {
		panic(err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	fmt.Print(resp.StatusCode, " ", string(body))
	// Output:
	// 200 {"status":"ok","checks":[{"check":"handler","ok":true},{"check":"extract","ok":true},{"check":"span","ok":true},{"check":"transport","ok":true},{"check":"export","ok":true}]}
}
