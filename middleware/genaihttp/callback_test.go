package genaihttp_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/middleware/genaihttp"
	"github.com/genaitrace/otelgenai/middleware/wire"
	"github.com/genaitrace/otelgenai/propagation"
	"github.com/genaitrace/otelgenai/semconv"
)

// faults returns how many faults of each kind were counted.
func (o *telemetry) faults() map[semconv.GenAIFaultAttr]int {
	o.t.Helper()
	var rm metricdata.ResourceMetrics
	require.NoError(o.t, o.reader.Collect(context.Background(), &rm))
	all := map[semconv.GenAIFaultAttr]int{}
	for _, sm := range rm.ScopeMetrics {
		for _, m := range sm.Metrics {
			if m.Name != semconv.GenAITelemetryFaultsName {
				continue
			}
			for _, p := range m.Data.(metricdata.Sum[int64]).DataPoints {
				kind, _ := p.Attributes.Value(semconv.GenAIFaultKey)
				all[semconv.GenAIFaultAttr(kind.AsString())] += int(p.Value)
			}
		}
	}
	return all
}

// A brokenTail is a tail sampler each method of which panics.
type brokenTail struct{}

func (brokenTail) Promise(context.Context, bool) trace.SpanContext    { panic("promise") }
func (brokenTail) CalleeResponded(context.Context, trace.SpanContext) { panic("callee") }

func TestATailSamplerThatPanicsNeverBreaksARequest(t *testing.T) {
	for name, serve := range map[string]http.HandlerFunc{
		"a stream":          func(w http.ResponseWriter, _ *http.Request) { say(w, textEvent, finishEvent, doneEvent) },
		"an answer":         func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, answer) },
		"nothing":           func(http.ResponseWriter, *http.Request) {},
		"a failure":         func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) },
		"a handler's panic": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"a trailer that was": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set(http.TrailerPrefix+"Server-Timing", "db")
			say(w, doneEvent)
		},
	} {
		for _, unread := range []bool{false, true} {
			for _, told := range []bool{false, true} {
				t.Run(name, func(t *testing.T) {
					handled(t)
					caller, callee := newTelemetry(t), newTelemetry(t)
					opts := append(callee.options(), genaihttp.WithTailSampler(brokenTail{}))
					if told {
						opts = append(opts, genaihttp.WithTraceResponse())
					}
					server := httptest.NewUnstartedServer(genaihttp.NewHandler(serve, opts...))
					server.Config.ErrorLog = quiet
					server.Start()
					defer server.Close()
					plain := httptest.NewUnstartedServer(serve)
					plain.Config.ErrorLog = quiet
					plain.Start()
					defer plain.Close()
					client := http.Client{Transport: genaihttp.NewTransport(&http.Transport{DisableKeepAlives: true},
						append(caller.options(), genaihttp.WithTailSampler(brokenTail{}))...)}

					status, body, err := fetch(&client, server.URL, unread)
					wantStatus, wantBody, wantErr := fetch(&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}, plain.URL, unread)
					assert.Equal(t, wantErr == nil, err == nil, "%v", err)
					assert.Equal(t, wantStatus, status)
					assert.Equal(t, wantBody, body)
					server.Close()
					callee.only()
					caller.only()
					if name != "a handler's panic" { // else there is no response
						assert.Positive(t, caller.faults()[semconv.GenAIFaultPanic])
						assert.Positive(t, callee.faults()[semconv.GenAIFaultPanic])
					}
				})
			}
		}
	}
}

// fetch makes a model call and reads its answer, or closes it unread.
func fetch(client *http.Client, url string, unread bool) (status int, body string, err error) {
	resp, err := client.Post(url+"/v1/chat/completions", "application/json", strings.NewReader(chatRequest))
	if err != nil {
		return 0, "", err
	}
	if !unread {
		read, err := io.ReadAll(resp.Body)
		if err != nil {
			return 0, "", err
		}
		body = string(read)
	}
	return resp.StatusCode, body, resp.Body.Close()
}

// What could not be promised is not told, but for what was asked for beside it; and the
// callee still learns of the trace.
func TestATailSamplerThatPanicsPromisesNothing(t *testing.T) {
	reported := handled(t)
	o := newTelemetry(t)
	broken := genaihttp.WithTailSampler(brokenTail{})
	serve := func(opts ...genaihttp.Option) http.Header {
		w := httptest.NewRecorder()
		genaihttp.NewHandler(http.NotFoundHandler(), append(o.options(), opts...)...).
			ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", http.NoBody))
		return w.Header()
	}
	assert.Empty(t, serve(broken)["Server-Timing"])
	assert.NotEmpty(t, serve(broken, genaihttp.WithTraceResponse())["Server-Timing"])

	// of a span that is not sampled the sampler is asked what is certain
	ctx := trace.ContextWithSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{1}}))
	got := sent(t, ctx, parties["own"], chatRequest, copied, broken, genaihttp.WithMeterProvider(o.mp))
	assert.Contains(t, got.Get("Traceparent"), trace.TraceID{1}.String())
	assert.Equal(t, map[semconv.GenAIFaultAttr]int{semconv.GenAIFaultPanic: 4}, o.faults(), "two promises, one to the callee, one answer of it")
	assert.Len(t, reported(), 4, "once for each handler and what it asked")
}

func TestAFilterThatPanicsLeavesTheRequestTraced(t *testing.T) {
	reported := handled(t)
	o := newTelemetry(t)
	h := genaihttp.NewHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "x") }),
		append(o.options(), genaihttp.WithFilter(func(*http.Request) bool { panic("filter") }))...)
	for range 2 {
		w := httptest.NewRecorder()
		require.NotPanics(t, func() { h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", http.NoBody)) })
		assert.Equal(t, "x", w.Body.String())
	}
	assert.EqualValues(t, 2, o.ended.Load())
	assert.Equal(t, map[semconv.GenAIFaultAttr]int{semconv.GenAIFaultPanic: 2}, o.faults())
	require.Len(t, reported(), 1)
	assert.ErrorContains(t, reported()[0], "WithFilter")
}

// A panicDialect panics at each event.
type panicDialect struct{}

func (panicDialect) Read(*wire.Answer, wire.Event) { panic("secret prompt") }

func TestADialectThatPanicsHasReadNothing(t *testing.T) {
	for contentType, body := range map[string]string{
		"text/event-stream": textEvent + finishEvent + doneEvent,
		"application/json":  answer,
	} {
		t.Run(contentType, func(t *testing.T) {
			reported := handled(t)
			o := newTelemetry(t)
			base := baseTransport(func(r *http.Request) (*http.Response, error) {
				return &http.Response{
					StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {contentType}},
					Body: io.NopCloser(strings.NewReader(body)), Request: r,
				}, nil
			})
			opts := append(o.options(), genaihttp.WithEndpoint(wire.Endpoint{Path: "/v1/chat/completions", Dialect: panicDialect{}}))
			resp, err := post(t.Context(), &http.Client{Transport: genaihttp.NewTransport(base, opts...)})
			require.NoError(t, err)
			got, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			assert.Equal(t, body, string(got))
			o.only()
			assert.Positive(t, o.faults()[semconv.GenAIFaultPanic])
			require.Len(t, reported(), 1)
			assert.NotContains(t, reported()[0].Error(), "secret", "what an event says is content")
		})
	}
}

// A propagator is asked once a request, so its panic must not flood the error handler.
func TestWhatPanicsWithEachRequestIsReportedOnceAndCounted(t *testing.T) {
	reported := handled(t)
	o := newTelemetry(t)
	h := genaihttp.NewHandler(http.NotFoundHandler(), append(o.options(),
		genaihttp.WithPropagators(panicker{"extract"}), genaihttp.WithTenant(func(*http.Request) string { panic("tenant") }))...)
	transport := genaihttp.NewTransport(baseTransport(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusNoContent, Body: http.NoBody, Request: r}, nil
	}), append(o.options(), genaihttp.WithMember(func(context.Context) propagation.Member { panic("member") }))...)
	for range 3 {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", http.NoBody))
		req := httptest.NewRequest(http.MethodGet, "http://engine.internal/", http.NoBody)
		_, err := transport.RoundTrip(req)
		require.NoError(t, err)
	}
	assert.Len(t, reported(), 3)
	assert.Equal(t, map[semconv.GenAIFaultAttr]int{semconv.GenAIFaultPanic: 9}, o.faults())
}

func TestARequestWithoutAURLIsLeftToTheTransportBelow(t *testing.T) {
	o := newTelemetry(t)
	req := &http.Request{Method: http.MethodPost, Body: http.NoBody}
	_, err := genaihttp.NewTransport(&http.Transport{}, o.options()...).RoundTrip(req)
	require.ErrorContains(t, err, "URL")
}

func TestADecoderThatPanicsIsCountedAndTellsNoContent(t *testing.T) {
	reported := handled(t)
	o := newTelemetry(t)
	client := &http.Client{Transport: genaihttp.NewTransport(answersWith("br", []byte("x")),
		append(o.options(), genaihttp.WithDecoder("br", func(io.Reader) io.Reader { panic("secret") }))...)}
	for range 3 {
		resp, err := post(t.Context(), client)
		require.NoError(t, err)
		_, err = readAll(resp)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
	}
	assert.Equal(t, map[semconv.GenAIFaultAttr]int{semconv.GenAIFaultPanic: 3}, o.faults())
	require.Len(t, reported(), 1)
	assert.NotContains(t, reported()[0].Error(), "secret")
}
