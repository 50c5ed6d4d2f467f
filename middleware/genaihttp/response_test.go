package genaihttp_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/genaitrace/otelgenai/middleware/genaihttp"
	"github.com/genaitrace/otelgenai/propagation"
)

// responseOf serves h behind a handler with the options, on a socket, and returns
// what its response says.
func responseOf(t *testing.T, h http.HandlerFunc, opts ...genaihttp.Option) (*http.Response, propagation.Response) {
	t.Helper()
	server := httptest.NewServer(genaihttp.NewHandler(h, opts...))
	t.Cleanup(server.Close)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, http.NoBody)
	require.NoError(t, err)
	resp, err := server.Client().Do(req)
	require.NoError(t, err)
	_, err = io.Copy(io.Discard, resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	return resp, propagation.ReadResponse(propagation.HTTPHeader(resp.Header))
}

func TestAResponseTellsItsTraceHoweverTheHandlerWritesIt(t *testing.T) {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Server-Timing", "db;dur=5, trace;desc=00-11111111111111111111111111111111-2222222222222222-01")
		_, _ = io.WriteString(w, "answer")
	}))
	defer upstream.Close()
	target, err := url.Parse(upstream.URL)
	require.NoError(t, err)
	for name, h := range map[string]http.HandlerFunc{
		"nothing":  func(http.ResponseWriter, *http.Request) {},
		"a status": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) },
		"early hints": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusEarlyHints)
			w.WriteHeader(http.StatusOK)
		},
		"bytes":        func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hi")) },
		"a string":     func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hi") },
		"a flush":      func(w http.ResponseWriter, _ *http.Request) { _ = http.NewResponseController(w).Flush() },
		"a stream":     func(w http.ResponseWriter, _ *http.Request) { say(w, roleEvent, textEvent, doneEvent) },
		"a metric too": func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Server-Timing", "db;dur=5") },
		"a proxy":      httputil.NewSingleHostReverseProxy(target).ServeHTTP,
	} {
		t.Run(name, func(t *testing.T) {
			o := newTelemetry(t)
			resp, told := responseOf(t, h, append(o.options(), genaihttp.WithTraceResponse())...)
			assert.Equal(t, o.only().SpanContext().TraceID(), told.SpanContext.TraceID())
			assert.Equal(t, o.only().SpanContext().SpanID(), told.SpanContext.SpanID())
			assert.True(t, told.SpanContext.IsSampled())
			if name == "a metric too" || name == "a proxy" {
				assert.Contains(t, told.Durations, "db")
			}
			assert.Len(t, resp.Header.Values("Server-Timing"), 1)
			if name == "a status" {
				assert.Equal(t, http.StatusTeapot, resp.StatusCode)
			}
		})
	}
}

func TestAResponseTellsThatItsTraceIsNotSampled(t *testing.T) {
	tp := sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample()))
	_, told := responseOf(t, func(http.ResponseWriter, *http.Request) {}, genaihttp.WithTraceResponse(),
		genaihttp.WithTracerProvider(tp), genaihttp.WithMeterProvider(metricnoop.NewMeterProvider()))
	assert.True(t, told.SpanContext.IsValid())
	assert.False(t, told.SpanContext.IsSampled())
}

func TestAResponseTellsNothingUnlessItIsAsked(t *testing.T) {
	o := newTelemetry(t)
	resp, told := responseOf(t, func(http.ResponseWriter, *http.Request) {}, o.options()...)
	assert.False(t, told.SpanContext.IsValid())
	assert.NotContains(t, resp.Header, "Server-Timing")
	o.only()
}
