package interop

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.uber.org/goleak"

	"github.com/genaitrace/otelgenai/middleware/genaihttp"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A recording is what one test records.
type recording struct {
	spans  *tracetest.SpanRecorder
	tp     *sdktrace.TracerProvider
	reader *sdkmetric.ManualReader
	mp     *sdkmetric.MeterProvider
}

func newRecording() *recording {
	r := &recording{spans: tracetest.NewSpanRecorder(), reader: sdkmetric.NewManualReader()}
	r.tp = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(r.spans))
	r.mp = sdkmetric.NewMeterProvider(sdkmetric.WithReader(r.reader))
	return r
}

func (r *recording) ours() []genaihttp.Option {
	return []genaihttp.Option{genaihttp.WithTracerProvider(r.tp), genaihttp.WithMeterProvider(r.mp)}
}

func (r *recording) theirs() []otelhttp.Option {
	return []otelhttp.Option{
		otelhttp.WithTracerProvider(r.tp), otelhttp.WithMeterProvider(r.mp), otelhttp.WithPropagators(propagation.TraceContext{}),
	}
}

// counts is how often each histogram of seconds was recorded.
func (r *recording) counts(t *testing.T) map[string]uint64 {
	t.Helper()
	var rm metricdata.ResourceMetrics
	require.NoError(t, r.reader.Collect(t.Context(), &rm))
	counts := make(map[string]uint64)
	for _, sm := range rm.ScopeMetrics {
		for _, m := range sm.Metrics {
			if h, ok := m.Data.(metricdata.Histogram[float64]); ok {
				for _, p := range h.DataPoints {
					counts[m.Name] += p.Count
				}
			}
		}
	}
	return counts
}

func attributes(s sdktrace.ReadOnlySpan) map[attribute.Key]any {
	all := make(map[attribute.Key]any)
	for _, a := range s.Attributes() {
		all[a.Key] = a.Value.AsInterface()
	}
	return all
}

// ended waits for n spans and returns them by their names and kinds.
func (r *recording) ended(t *testing.T, n int) map[string]sdktrace.ReadOnlySpan {
	t.Helper()
	require.Eventually(t, func() bool { return len(r.spans.Ended()) >= n }, 10*time.Second, time.Millisecond)
	byName := make(map[string]sdktrace.ReadOnlySpan)
	for _, s := range r.spans.Ended() {
		byName[s.SpanKind().String()+" "+s.Name()+" of "+s.InstrumentationScope().Name[strings.LastIndex(s.InstrumentationScope().Name, "/")+1:]] = s
	}
	require.Len(t, r.spans.Ended(), n)
	require.Len(t, r.spans.Started(), n)
	return byName
}

const stream = `data: {"id":"c1","model":"m-1","choices":[{"index":0,"delta":{"content":"hi"}}]}

data: {"id":"c1","model":"m-1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}

data: {"id":"c1","model":"m-1","choices":[],"usage":{"prompt_tokens":19,"completion_tokens":1}}

data: [DONE]

`

func engine(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(w, stream)
}

const request = `{"model":"m","stream":true,"messages":[],"stream_options":{"include_usage":true}}`

func post(t *testing.T, client *http.Client, url string) string {
	t.Helper()
	resp, err := client.Post(url+"/v1/chat/completions", "application/json", strings.NewReader(request))
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return string(body)
}

// What otelhttp's handler records of a request, with and without ours below it, is
// the same, but for the sizes that it measures of ours.
func TestInsideOtelhttpsHandler(t *testing.T) {
	serve := func(t *testing.T, next func(*recording) http.Handler, spans int) (*recording, map[string]sdktrace.ReadOnlySpan) {
		t.Helper()
		r := newRecording()
		server := httptest.NewServer(otelhttp.NewHandler(next(r), "gateway", r.theirs()...))
		defer server.Close()
		assert.Equal(t, stream, post(t, server.Client(), server.URL))
		return r, r.ended(t, spans)
	}
	_, alone := serve(t, func(*recording) http.Handler { return http.HandlerFunc(engine) }, 1)
	r, both := serve(t, func(r *recording) http.Handler {
		return genaihttp.NewHandler(http.HandlerFunc(engine), r.ours()...)
	}, 2)

	const theirs = "server POST of otelhttp"
	require.Contains(t, both, theirs)
	assert.Equal(t, keys(attributes(alone[theirs])), keys(attributes(both[theirs])), "their span is theirs")
	ours := both["server POST /v1/chat/completions of genaitrace"]
	require.NotNil(t, ours)
	assert.Equal(t, both[theirs].SpanContext().SpanID(), ours.Parent().SpanID())
	assert.Contains(t, attributes(ours), semconv.LLMTTFTMsKey)
	assert.EqualValues(t, 1, r.counts(t)["http.server.request.duration"], "once, by the outer one")
}

// Alone, ours records the duration.
func TestAloneTheDurationIsOurs(t *testing.T) {
	r := newRecording()
	server := httptest.NewServer(genaihttp.NewHandler(http.HandlerFunc(engine), r.ours()...))
	defer server.Close()
	post(t, server.Client(), server.URL)
	r.ended(t, 1)
	assert.EqualValues(t, 1, r.counts(t)["http.server.request.duration"])
}

// On the client side either may be around the other: each has its own span, ours is
// the call, and the upstream sees the inner one.
func TestWithOtelhttpsTransport(t *testing.T) {
	for name, wrap := range map[string]func(r *recording, base http.RoundTripper) http.RoundTripper{
		"inside": func(r *recording, base http.RoundTripper) http.RoundTripper {
			return otelhttp.NewTransport(genaihttp.NewTransport(base, r.ours()...), r.theirs()...)
		},
		"around": func(r *recording, base http.RoundTripper) http.RoundTripper {
			return genaihttp.NewTransport(otelhttp.NewTransport(base, r.theirs()...), r.ours()...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRecording()
			var seen []string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				seen = req.Header["Traceparent"]
				engine(w, req)
			}))
			defer server.Close()
			base := &http.Transport{}
			defer base.CloseIdleConnections()
			assert.Equal(t, stream, post(t, &http.Client{Transport: wrap(r, base)}, server.URL))
			spans := r.ended(t, 2)
			ours, theirs := spans["client chat m of genaitrace"], spans["client HTTP POST of otelhttp"]
			require.NotNil(t, ours)
			require.NotNil(t, theirs)
			outer, inner := theirs, ours
			if name == "around" {
				outer, inner = ours, theirs
			}
			assert.Equal(t, outer.SpanContext().SpanID(), inner.Parent().SpanID())
			require.Len(t, seen, 1)
			assert.Contains(t, seen[0], inner.SpanContext().SpanID().String())
			assert.EqualValues(t, 19, attributes(ours)[genaiconv.UsageInputTokensKey])
			assert.Contains(t, attributes(ours), semconv.LLMTTFTMsKey)
			assert.NotContains(t, attributes(theirs), semconv.LLMTTFTMsKey)
			assert.NotContains(t, attributes(theirs), genaiconv.OperationNameKey)
			assert.EqualValues(t, 1, r.counts(t)[genaiconv.ClientInferenceDurationName])
			assert.EqualValues(t, 1, r.counts(t)["http.client.request.duration"])
		})
	}
}

func keys(m map[attribute.Key]any) map[attribute.Key]bool {
	all := make(map[attribute.Key]bool, len(m))
	for k := range m {
		all[k] = true
	}
	return all
}
