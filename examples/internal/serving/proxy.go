package serving

import (
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"

	"github.com/genaitrace/otelgenai/examples/internal/chatapi"
	"github.com/genaitrace/otelgenai/examples/internal/telemetry"
	"github.com/genaitrace/otelgenai/middleware/genaihttp"
)

// NewProxy is the gateway before any OpenAI-compatible server. The transport
// makes the span of the model call; what the server does inside stays unknown.
func NewProxy(base *url.URL, tel *telemetry.Telemetry) http.Handler {
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL, r.Out.Host = base.JoinPath("chat", "completions"), ""
			// The transport then asks for compression itself, and undoes it
			// before it reads the answer.
			r.Out.Header.Del("Accept-Encoding")
		},
		Transport: genaihttp.NewTransport(http.DefaultTransport,
			genaihttp.WithTracerProvider(tel.Traces),
			genaihttp.WithMeterProvider(tel.Metrics),
			genaihttp.WithLoggerProvider(tel.Logs),
		),
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if r.Context().Err() == nil {
				unreachable := &chatapi.Error{Status: http.StatusBadGateway, Message: "the server cannot be reached: " + err.Error()}
				unreachable.Write(w)
			}
		},
		ErrorLog: log.New(io.Discard, "", 0), // the trace says what happened
	}
	mux := http.NewServeMux()
	mux.Handle("POST "+chatapi.Path, proxy)
	return mux
}
