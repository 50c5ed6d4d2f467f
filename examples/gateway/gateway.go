package main

import (
	"fmt"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"

	"github.com/genaitrace/otelgenai/examples/internal/chatapi"
	"github.com/genaitrace/otelgenai/middleware/genaihttp"
)

// newGateway passes every request on to upstream. This is all that it takes to trace
// it: a SERVER span around the proxy, a CLIENT span for each call of a model, and
// below that what the engine tells of its work.
func newGateway(upstream *url.URL, base http.RoundTripper, faults *log.Logger, opts ...genaihttp.Option) http.Handler {
	return genaihttp.NewReverseProxy(&httputil.ReverseProxy{
		Rewrite:      func(r *httputil.ProxyRequest) { r.SetURL(upstream) },
		Transport:    base,
		ErrorHandler: unreachable(upstream, faults),
		ErrorLog:     faults,
	}, opts...)
}

// unreachable answers where upstream does not, in a shape that the clients of OpenAI,
// Anthropic and Ollama can read.
func unreachable(upstream *url.URL, faults *log.Logger) func(http.ResponseWriter, *http.Request, error) {
	return func(w http.ResponseWriter, r *http.Request, err error) {
		if r.Context().Err() != nil { // nobody reads it
			return
		}
		e := &chatapi.Error{
			Status: http.StatusBadGateway, Code: "upstream_unreachable",
			Message: fmt.Sprintf("the upstream %s cannot be reached: %v", upstream, err),
		}
		faults.Print(e.Message)
		e.Write(w)
	}
}
