package genaihttp_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/baggage"
	otelprop "go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/middleware/genaihttp"
	"github.com/genaitrace/otelgenai/propagation"
	"github.com/genaitrace/otelgenai/semconv"
)

// sent makes a model call through a transport and returns the headers that left.
func sent(t *testing.T, ctx context.Context, target, body string, header http.Header, opts ...genaihttp.Option) http.Header {
	t.Helper()
	var got http.Header
	base := baseTransport(func(r *http.Request) (*http.Response, error) {
		got = r.Header
		return answers(200, "application/json", answer)(r)
	})
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, target+"/v1/chat/completions", strings.NewReader(body))
	require.NoError(t, err)
	for k, v := range header {
		req.Header[k] = v
	}
	resp, err := genaihttp.NewTransport(base, opts...).RoundTrip(req)
	require.NoError(t, err)
	_, err = readAll(resp)
	require.NoError(t, err)
	resp.Body.Close()
	return got
}

// withBaggage is a context with a caller, its tracestate and baggage.
func withBaggage(t *testing.T) context.Context {
	t.Helper()
	state, err := trace.ParseTraceState("vendor=1")
	require.NoError(t, err)
	bag, err := baggage.Parse("tenant=t1")
	require.NoError(t, err)
	return baggage.ContextWithBaggage(trace.ContextWithRemoteSpanContext(t.Context(), callerSpan.WithTraceState(state)), bag)
}

var (
	parties = map[string]string{"own": "http://engine.internal", "third": "https://api.example.com"}
	copied  = http.Header{
		"Traceparent": {"00-11111111111111111111111111111111-2222222222222222-01"},
		"Tracestate":  {"copied=1"},
		"Baggage":     {"copied=1"},
		"X-Own":       {"kept"},
	}
)

// Propagation that is switched off leaves all headers as the caller made them.
func TestPropagatorsWithoutFieldsLeaveAllHeadersAlone(t *testing.T) {
	off := genaihttp.WithPropagators(otelprop.NewCompositeTextMapPropagator())
	for party, target := range parties {
		for name, header := range map[string]http.Header{"none": {}, "copied": copied} {
			t.Run(party+", "+name, func(t *testing.T) {
				o := newTelemetry(t)
				assert.Equal(t, header, sent(t, withBaggage(t), target, chatRequest, header, append(o.options(), off)...))
				o.only()
			})
		}
	}
}

// Third parties get traceparent alone, whatever the propagators write.
func TestThirdPartiesGetTraceparentAlone(t *testing.T) {
	for name, p := range map[string]otelprop.TextMapPropagator{
		"default":           nil,
		"W3C alone":         propagation.W3C,
		"with trace-bin":    propagation.New(propagation.WithFormats(propagation.TraceBin)),
		"OpenTelemetry's":   otelprop.NewCompositeTextMapPropagator(otelprop.TraceContext{}, otelprop.Baggage{}),
		"trace context":     otelprop.TraceContext{},
		"baggage alone":     otelprop.Baggage{},
		"trace-bin, no W3C": propagation.TraceBin,
		"reads Jaeger":      propagation.New(propagation.WithReadFormats(propagation.W3C, propagation.Jaeger)),
	} {
		t.Run(name, func(t *testing.T) {
			o := newTelemetry(t)
			header := copied.Clone()
			header.Set("Grpc-Trace-Bin", "AAAA")
			header.Set("Uber-Trace-Id", "1:2:0:1")
			got := sent(t, withBaggage(t), parties["third"], chatRequest, header, append(o.options(), genaihttp.WithPropagators(p))...)
			assert.NotContains(t, got, "Tracestate")
			assert.NotContains(t, got, "Baggage")
			assert.Equal(t, []string{"kept"}, got["X-Own"])
			if name != "baggage alone" && name != "trace-bin, no W3C" {
				assert.Equal(t, []string{traceparent(o.only().SpanContext())}, got["Traceparent"])
			}
			if strings.Contains(name, "trace-bin") {
				assert.NotContains(t, got, "Grpc-Trace-Bin")
			}
			if name == "reads Jaeger" {
				assert.NotContains(t, got, "Uber-Trace-Id")
			}
		})
	}
}

// A Bridge that trusts a host trusts it in a transport, too.
func TestTheTrustedHostsOfABridgeGetAll(t *testing.T) {
	o := newTelemetry(t)
	bridge := propagation.New(propagation.WithTrustedHosts("api.example.com"))
	got := sent(t, withBaggage(t), parties["third"], chatRequest, http.Header{}, append(o.options(), genaihttp.WithPropagators(bridge))...)
	assert.Contains(t, got, "Baggage")
	assert.Contains(t, got, "Tracestate", "with the mark of a caller")
}

// The gateway of strangers: what their headers say ends there, though the proxy
// copies them.
func TestWhatAStrangerSaysDoesNotPassAPublicEndpoint(t *testing.T) {
	o := newTelemetry(t)
	var seen http.Header
	base := baseTransport(func(r *http.Request) (*http.Response, error) {
		seen = r.Header
		return answers(200, "application/json", answer)(r)
	})
	proxy := &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: "engine.internal"}) },
		Transport: genaihttp.NewTransport(base, o.options()...),
	}
	h := genaihttp.NewHandler(proxy, append(o.options(), genaihttp.WithPublicEndpoint())...)
	for _, path := range []string{"/v1/chat/completions", "/v1/models"} {
		req := httptest.NewRequest(http.MethodPost, path, strings.NewReader(chatRequest))
		req.Header.Set("Traceparent", traceparent(callerSpan))
		req.Header.Set("Tracestate", "genai=c:1,vendor=1")
		req.Header.Set("Baggage", "tenant=evil")
		h.ServeHTTP(httptest.NewRecorder(), req)
		assert.NotContains(t, seen, "Baggage", path)
		assert.NotContains(t, seen.Get("Traceparent"), callerSpan.TraceID().String(), path)
		if path == "/v1/models" {
			assert.NotContains(t, seen, "Tracestate")
		} else {
			assert.Equal(t, []string{"genai=c:1"}, seen["Tracestate"], "our own mark")
			assert.Equal(t, traceparent(o.named("chat gpt-fx").SpanContext()), seen.Get("Traceparent"))
		}
	}
}

// A panicker is a propagator that panics where it is told to.
type panicker struct{ where string }

func (p panicker) Inject(_ context.Context, c otelprop.TextMapCarrier) {
	c.Set("x-half", "written")
	if p.where == "inject" {
		panic("secret")
	}
}

func (p panicker) Extract(ctx context.Context, _ otelprop.TextMapCarrier) context.Context {
	if p.where == "extract" {
		panic("secret")
	}
	return ctx
}

func (p panicker) Fields() []string {
	if p.where == "fields" {
		panic("secret")
	}
	return []string{"x-half"}
}

// handled collects what reaches otel.Handle while the test runs.
func handled(t *testing.T) func() []error {
	t.Helper()
	var mu sync.Mutex
	var errs []error
	before := otel.GetErrorHandler()
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		mu.Lock()
		defer mu.Unlock()
		errs = append(errs, err)
	}))
	t.Cleanup(func() { otel.SetErrorHandler(before) })
	return func() []error {
		mu.Lock()
		defer mu.Unlock()
		return append([]error(nil), errs...)
	}
}

func TestAPropagatorThatPanicsNeverBreaksARequest(t *testing.T) {
	for _, where := range []string{"inject", "fields"} {
		t.Run("transport: "+where, func(t *testing.T) {
			reported := handled(t)
			o := newTelemetry(t)
			got := sent(t, t.Context(), parties["own"], chatRequest, copied, append(o.options(), genaihttp.WithPropagators(panicker{where}))...)
			assert.Equal(t, []string{"kept"}, got["X-Own"])
			checkEnding(t, o.only(), "", "")
			require.Len(t, reported(), 1)
			assert.ErrorContains(t, reported()[0], "propagator")
		})
	}
	t.Run("handler: extract", func(t *testing.T) {
		reported := handled(t)
		o := newTelemetry(t)
		h := genaihttp.NewHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, answer) }),
			append(o.options(), genaihttp.WithPropagators(panicker{"extract"}))...)
		w := httptest.NewRecorder()
		require.NotPanics(t, func() {
			h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(chatRequest)))
		})
		assert.Equal(t, answer, w.Body.String())
		checkEnding(t, o.only(), "", "")
		require.Len(t, reported(), 1)
		assert.ErrorContains(t, reported()[0], "propagator")
	})
}

// The mark keeps the server from counting the usage again. Where the caller will
// not learn the usage, or tells it to nobody, the server must count.
func TestTheMarkIsSentOnlyWhereTheCallerTellsTheUsage(t *testing.T) {
	const target = "http://engine.internal"
	never := genaihttp.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample())))
	for _, tt := range []struct {
		name, body string
		marked     bool
	}{
		{"no stream", `{"model":"gpt-fx"}`, true},
		{"stream is false", `{"model":"gpt-fx","stream":false}`, true},
		{"a stream with usage", `{"model":"gpt-fx","stream":true,"stream_options":{"include_usage":true}}`, true},
		{"a stream without options", `{"model":"gpt-fx","stream":true}`, false},
		{"a stream without usage", `{"model":"gpt-fx","stream":true,"stream_options":{"include_usage":false}}`, false},
		{"a stream with other options", `{"model":"gpt-fx","stream":true,"stream_options":{"include_obfuscation":true}}`, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			want := []string(nil)
			if tt.marked {
				want = []string{"genai=c:1"}
			}
			o := newTelemetry(t)
			assert.Equal(t, want, sent(t, t.Context(), target, tt.body, nil, o.options()...)["Tracestate"])
			ctx, call := o.tracer().StartCall(t.Context(), genaitrace.Request{})
			assert.Equal(t, want, sent(t, ctx, target, tt.body, nil, o.options()...)["Tracestate"], "in a call of the application")
			call.End()

			assert.Nil(t, sent(t, t.Context(), target, tt.body, nil, append(o.options(), never)...)["Tracestate"], "not sampled")
			unsampled := genaitrace.New(
				genaitrace.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample()))), genaitrace.WithMeterProvider(o.mp))
			ctx, call = unsampled.StartCall(t.Context(), genaitrace.Request{})
			require.NotNil(t, call, "for its metrics")
			assert.Nil(t, sent(t, ctx, target, tt.body, nil, o.options()...)["Tracestate"], "in a call that is not sampled")
			call.End()
		})
	}
}

// Its usage stays unknown, and that is counted.
func TestAnAnswerTooLongToReadIsAFault(t *testing.T) {
	reported := handled(t)
	o := newTelemetry(t)
	long := strings.Replace(answer, `"content":"hi"`, `"content":"hi","pad":[`+strings.Repeat(`{"a":"b"},`, 1<<17)+`{}]`, 1)
	resp, err := post(t.Context(), &http.Client{Transport: genaihttp.NewTransport(answers(200, "application/json", long), o.options()...)})
	require.NoError(t, err)
	got, err := readAll(resp)
	require.NoError(t, err)
	resp.Body.Close()
	assert.Equal(t, long, got)
	checkEnding(t, o.only(), "", "")

	var rm metricdata.ResourceMetrics
	require.NoError(t, o.reader.Collect(t.Context(), &rm))
	faults := map[string]int64{}
	for _, scope := range rm.ScopeMetrics {
		for _, m := range scope.Metrics {
			if sum, ok := m.Data.(metricdata.Sum[int64]); ok && m.Name == semconv.GenAITelemetryFaultsName {
				for _, p := range sum.DataPoints {
					kind, _ := p.Attributes.Value(semconv.GenAIFaultKey)
					faults[kind.AsString()] += p.Value
				}
			}
		}
	}
	assert.Equal(t, map[string]int64{"parse": 1}, faults)
	require.Len(t, reported(), 1)
	assert.NotContains(t, reported()[0].Error(), "hi")
}
