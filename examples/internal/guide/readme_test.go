package guide

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/contract/contracttest"
	"github.com/genaitrace/otelgenai/middleware/genaihttp"
)

func TestChat(t *testing.T) {
	obs := contracttest.New(t, contracttest.File("observability.yaml"))
	srv := newServer(obs.TracerProvider(), obs.MeterProvider())
	post(t, srv, "/v1/chat/completions")
	obs.Require(t, "chat") // else: rule, span, expected and found, the line that started the span
}

// newServer is a gateway before a server that always gives the same answer.
func newServer(tp trace.TracerProvider, mp metric.MeterProvider) http.Handler {
	transport := genaihttp.NewTransport(answering{}, genaihttp.WithTracerProvider(tp), genaihttp.WithMeterProvider(mp))
	return genaihttp.NewHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		out := r.Clone(r.Context())
		out.RequestURI, out.URL.Scheme, out.URL.Host = "", "http", "127.0.0.1"
		resp, err := transport.RoundTrip(out)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		defer resp.Body.Close()
		_, _ = io.Copy(w, resp.Body)
	}), genaihttp.WithTracerProvider(tp), genaihttp.WithMeterProvider(mp))
}

type answering struct{}

func (answering) RoundTrip(r *http.Request) (*http.Response, error) {
	_, _ = io.Copy(io.Discard, r.Body)
	return &http.Response{
		StatusCode: http.StatusOK,
		Header:     http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(`{"id":"1","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Hi"},` +
			`"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":1,"total_tokens":4}}`)),
		Request: r,
	}, nil
}

func post(t *testing.T, srv http.Handler, path string) {
	t.Helper()
	body := `{"model":"m","messages":[{"role":"user","content":"Hello"}]}`
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	srv.ServeHTTP(w, r)
	require.Equal(t, http.StatusOK, w.Code)
}
