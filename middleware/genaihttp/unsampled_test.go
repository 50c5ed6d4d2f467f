package genaihttp_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/genaitrace/otelgenai/middleware/genaihttp"
)

// Spans that record nothing are values which Go cannot compare.
func TestAModelCallBelowAHandlerWhoseSpanDoesNotRecord(t *testing.T) {
	engine := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, textEvent+doneEvent)
	}))
	defer engine.Close()
	target, err := url.Parse(engine.URL)
	require.NoError(t, err)
	for name, tp := range map[string]trace.TracerProvider{
		"not sampled": sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample())),
		"no tracing":  tracenoop.NewTracerProvider(),
	} {
		t.Run(name, func(t *testing.T) {
			o := newTelemetry(t)
			gateway := httptest.NewServer(genaihttp.NewReverseProxy(&httputil.ReverseProxy{
				Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) },
			}, genaihttp.WithTracerProvider(tp), genaihttp.WithMeterProvider(o.mp)))
			defer gateway.Close()
			resp, err := http.Post(gateway.URL+"/v1/chat/completions", "application/json", strings.NewReader(`{"model":"m","stream":true}`))
			require.NoError(t, err)
			body, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			assert.Equal(t, textEvent+doneEvent, string(body))
		})
	}
}
