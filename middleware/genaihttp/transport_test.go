package genaihttp_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/middleware/genaihttp"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// A baseTransport stands for the transport below.
type baseTransport func(*http.Request) (*http.Response, error)

func (f baseTransport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// answers is a transport that gives the same answer to every request.
func answers(status int, contentType, body string) baseTransport {
	return func(r *http.Request) (*http.Response, error) {
		if r.Body != nil {
			_, _ = io.Copy(io.Discard, r.Body)
			r.Body.Close()
		}
		return &http.Response{
			StatusCode: status, Header: http.Header{"Content-Type": {contentType}},
			Body: io.NopCloser(strings.NewReader(body)), Request: r,
		}, nil
	}
}

func TestAnswersThatAreNotStreams(t *testing.T) {
	long := strings.Replace(answer, `"content":"hi"`, `"content":"`+strings.Repeat("x", 1<<20)+`"`, 1)
	for _, tt := range []struct {
		name              string
		status            int
		contentType, body string
		terminal          semconv.GenAIStreamTerminalAttr
		errType           string
		usage             bool
	}{
		{"JSON", 200, "application/json", answer, "", "", true},
		{"JSON with parameters", 200, "application/json; charset=utf-8", answer, "", "", true},
		{"JSON longer than 1 MiB", 200, "application/json", long, "", "", true},
		{"JSON that is cut", 200, "application/json", answer[:50], "truncated", "stream_truncated", false},
		{"JSON longer than 1 MiB that is cut", 200, "application/json", long[:1<<20], "truncated", "stream_truncated", false},
		{"JSON that an engine writes, with NaN", 200, "application/json", strings.Replace(answer, "{", `{"logprob":NaN,`, 1), "", "", true},
		{"text that calls itself JSON", 200, "application/json", "secret", "", "", false},
		{"error in a 200 answer", 200, "application/json", `{"error":{"type":"server_error"}}`, "error", "server_error", false},
		{"429 with JSON", 429, "application/json", `{"error":{"type":"requests","code":"rate_limit_exceeded"}}`, "http_error", "rate_limit_exceeded", false},
		{"400 with a number for a code", 400, "application/json", `{"error":{"type":"BadRequestError","code":400}}`, "http_error", "BadRequestError", false},
		{"500 with JSON that tells nothing", 500, "application/json", `{"detail":"secret"}`, "http_error", "500", false},
		{"502 with text", 502, "text/plain", "secret", "http_error", "502", false},
		{"500 with an error event", 500, "text/event-stream", errorEvent, "http_error", "server_error", false},
		{"503 with nothing", 503, "", "", "http_error", "503", false},
		{"204", 204, "", "", "", "", false},
		{"HTML", 200, "text/html", "<html>secret</html>", "", "", false},
		{"a stream in another dialect", 200, "text/event-stream", "event: ping\ndata: {}\n\n", "eof", "", false},
		{"an empty stream", 200, "text/event-stream", "", "eof", "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := newTelemetry(t)
			resp, err := post(t.Context(), &http.Client{Transport: genaihttp.NewTransport(answers(tt.status, tt.contentType, tt.body), o.options()...)})
			require.NoError(t, err)
			got, err := readAll(resp)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			assert.Equal(t, tt.body, got)

			span := o.only()
			assert.Equal(t, "chat gpt-fx", span.Name())
			checkEnding(t, span, tt.terminal, tt.errType)
			attrs := attributes(span)
			assert.EqualValues(t, tt.status, attrs["http.response.status_code"])
			assert.Equal(t, tt.usage, attrs[genaiconv.UsageInputTokensKey] == int64(19), "usage")
			assert.NotContains(t, attrs, semconv.LLMTTFTMsKey, "no stream, no first token")
			count, _ := o.histogram(semconv.GenAITimeToFirstTokenName)
			assert.Zero(t, count)
			assert.NotContains(t, o.seen(), "secret")
		})
	}
}

// JSON decoders stop at the end of the document and never see io.EOF.
func TestADocumentReadByADecoderIsNotAbandoned(t *testing.T) {
	o := newTelemetry(t)
	resp, err := post(t.Context(), &http.Client{Transport: genaihttp.NewTransport(answers(200, "application/json", answer), o.options()...)})
	require.NoError(t, err)
	_, err = io.ReadFull(resp.Body, make([]byte, len(answer)))
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	span := o.only()
	checkEnding(t, span, "", "")
	assert.EqualValues(t, 19, attributes(span)[genaiconv.UsageInputTokensKey])
}

type readWriteCloser struct{ io.ReadWriter }

func (readWriteCloser) Close() error { return nil }

// After 101 the body is a connection, which stays what it is.
func TestSwitchingProtocolsEndsTheSpanAndKeepsTheConnection(t *testing.T) {
	o := newTelemetry(t)
	conn := readWriteCloser{new(bytes.Buffer)}
	base := baseTransport(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusSwitchingProtocols, Body: conn, Request: r}, nil
	})
	resp, err := post(t.Context(), &http.Client{Transport: genaihttp.NewTransport(base, o.options()...)})
	require.NoError(t, err)
	assert.Same(t, conn.ReadWriter, resp.Body.(readWriteCloser).ReadWriter)
	checkEnding(t, o.only(), "", "")
}

func TestAResponseWithoutABodyEndsTheSpan(t *testing.T) {
	for name, body := range map[string]io.ReadCloser{"nil": nil, "empty": http.NoBody} {
		t.Run(name, func(t *testing.T) {
			o := newTelemetry(t)
			base := baseTransport(func(r *http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: body, Request: r}, nil
			})
			req := httptest.NewRequest(http.MethodPost, "http://engine/v1/chat/completions", strings.NewReader(chatRequest))
			resp, err := genaihttp.NewTransport(base, o.options()...).RoundTrip(req)
			require.NoError(t, err)
			if body != nil {
				require.NoError(t, resp.Body.Close())
			}
			checkEnding(t, o.only(), "", "")
		})
	}
}

func TestFailuresBeforeAnAnswer(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	closed := listener.Addr().String()
	listener.Close()
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	network := &http.Transport{}
	for _, tt := range []struct {
		name     string
		ctx      context.Context
		base     http.RoundTripper
		terminal semconv.GenAIStreamTerminalAttr
		errType  string
	}{
		{"connection refused", t.Context(), network, "", "*net.OpError"},
		{"cancelled", cancelled, network, "client_cancelled", ""},
		{"out of time", late, network, "timeout", "timeout"},
		{"an error of another middleware", t.Context(), baseTransport(func(*http.Request) (*http.Response, error) { return nil, errors.New("secret") }), "", "_OTHER"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := newTelemetry(t)
			req, err := http.NewRequestWithContext(tt.ctx, http.MethodPost, "http://"+closed+"/v1/chat/completions", strings.NewReader(chatRequest))
			require.NoError(t, err)
			_, err = genaihttp.NewTransport(tt.base, o.options()...).RoundTrip(req)
			require.Error(t, err)
			checkEnding(t, o.only(), tt.terminal, tt.errType)
			assert.NotContains(t, o.seen(), "secret")
			count, _ := o.histogram(genaiconv.ClientInferenceDurationName)
			assert.EqualValues(t, 1, count)
		})
	}
}

// What a request sends is read from a copy where the client can make one, else
// as it is sent. The server gets every byte either way.
func TestTheModelIsReadFromAnyKindOfBody(t *testing.T) {
	large := strings.Replace(chatRequest, "{", `{"model":"gpt-fx","pad":"`+strings.Repeat("x", 200<<10)+`",`, 1)
	for _, tt := range []struct {
		name, text string
		body       func(string) io.Reader
	}{
		{"strings.Reader, which can be read twice", chatRequest, func(s string) io.Reader { return strings.NewReader(s) }},
		{"bytes.Buffer, which can be read twice", chatRequest, func(s string) io.Reader { return bytes.NewBufferString(s) }},
		{"a pipe, which cannot", chatRequest, func(s string) io.Reader { return io.NopCloser(strings.NewReader(s)) }},
		{"longer than what is looked at", large, func(s string) io.Reader { return strings.NewReader(s) }},
		{"longer than what is looked at, from a pipe", large, func(s string) io.Reader { return io.NopCloser(strings.NewReader(s)) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := newTelemetry(t)
			received := make(chan string, 1)
			base, stop := serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				b, _ := io.ReadAll(r.Body)
				received <- string(b)
				say(w, textEvent, finishEvent, doneEvent)
			}))
			defer stop()
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://engine/v1/chat/completions", tt.body(tt.text))
			require.NoError(t, err)
			req.Header.Set("X-Own", "kept")
			before, body, length := req.Header.Clone(), req.Body, req.ContentLength
			resp, err := genaihttp.NewTransport(base, o.options()...).RoundTrip(req)
			require.NoError(t, err)
			_, err = readAll(resp)
			require.NoError(t, err)
			resp.Body.Close()
			assert.Equal(t, tt.text, <-received)
			assert.Equal(t, before, req.Header, "the caller's headers")
			assert.Equal(t, body, req.Body, "the caller's body")
			assert.Equal(t, length, req.ContentLength)
			assert.Equal(t, "chat gpt-fx", o.only().Name())
			assert.Equal(t, "gpt-fx", attributes(o.only())[genaiconv.RequestModelKey])
		})
	}
}

func TestTheRequestIsDescribed(t *testing.T) {
	o := newTelemetry(t)
	req := httptest.NewRequest(http.MethodPost, "https://api.example.com/v1/chat/completions", io.NopCloser(strings.NewReader(
		`{"model":"gpt-fx","temperature":0.5,"top_p":0.9,"max_tokens":64,"stream":true,"tools":[{"a":1},{"b":2}]}`)))
	opts := append(o.options(), genaihttp.WithProvider(genaiconv.ProviderNameGroq))
	resp, err := genaihttp.NewTransport(answers(200, "text/event-stream", textEvent+finishEvent+usageEvent+doneEvent), opts...).RoundTrip(req)
	require.NoError(t, err)
	_, _ = readAll(resp)
	span := o.only()
	assert.Equal(t, trace.SpanKindClient, span.SpanKind())
	assert.Equal(t, "chat gpt-fx", span.Name())
	got := attributes(span)
	for key, want := range map[attribute.Key]any{
		"gen_ai.operation.name":          "chat",
		"gen_ai.provider.name":           "groq",
		"gen_ai.request.model":           "gpt-fx",
		"gen_ai.request.stream":          true,
		"gen_ai.request.temperature":     0.5,
		"gen_ai.request.top_p":           0.9,
		"gen_ai.request.max_tokens":      int64(64),
		"gen_ai.response.id":             "c1",
		"gen_ai.response.model":          "gpt-fx-1",
		"gen_ai.response.finish_reasons": []string{"stop"},
		"gen_ai.usage.input_tokens":      int64(19),
		"gen_ai.usage.output_tokens":     int64(2),
		"genai.span.role":                "inference",
		"genai.request.tool_count":       int64(2),
		"http.request.method":            "POST",
		"http.response.status_code":      int64(200),
		"server.address":                 "api.example.com",
		"server.port":                    int64(443),
	} {
		assert.Equal(t, want, got[key], string(key))
	}
}

func TestPathsOfModelCalls(t *testing.T) {
	for _, tt := range []struct {
		method, path string
		name         string // none: not a model call
	}{
		{http.MethodPost, "/v1/chat/completions", "chat gpt-fx"},
		{http.MethodPost, "/openai/deployments/gpt-fx/chat/completions", "chat gpt-fx"},
		{http.MethodPost, "/v1/completions", "text_completion gpt-fx"},
		{http.MethodPost, "/v1/embeddings", "embeddings gpt-fx"},
		{http.MethodGet, "/v1/chat/completions", ""},
		{http.MethodPost, "/v1/chat/completions/c1", ""},
		{http.MethodGet, "/v1/models", ""},
		{http.MethodPost, "/", ""},
	} {
		t.Run(tt.method+" "+tt.path, func(t *testing.T) {
			o := newTelemetry(t)
			var sent http.Header
			base := baseTransport(func(r *http.Request) (*http.Response, error) {
				sent = r.Header
				return answers(200, "application/json", answer)(r)
			})
			ctx := trace.ContextWithRemoteSpanContext(t.Context(), callerSpan)
			req, err := http.NewRequestWithContext(ctx, tt.method, "http://engine"+tt.path, strings.NewReader(chatRequest))
			require.NoError(t, err)
			resp, err := genaihttp.NewTransport(base, o.options()...).RoundTrip(req)
			require.NoError(t, err)
			resp.Body.Close()
			if tt.name == "" {
				assert.Zero(t, o.started.Load())
				assert.Equal(t, traceparent(callerSpan), sent.Get("Traceparent"))
				assert.Empty(t, sent.Get("Tracestate"), "no mark where no span is made")
				return
			}
			span := o.only()
			assert.Equal(t, tt.name, span.Name())
			assert.Equal(t, callerSpan.SpanID(), span.Parent().SpanID())
			assert.Equal(t, traceparent(span.SpanContext()), sent.Get("Traceparent"))
		})
	}
}

// callerSpan is a span of some other process.
var callerSpan = trace.NewSpanContext(trace.SpanContextConfig{
	TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled, Remote: true,
})

func traceparent(sc trace.SpanContext) string {
	return "00-" + sc.TraceID().String() + "-" + sc.SpanID().String() + "-" + sc.TraceFlags().String()
}

// A live Call in the context is fed, and no span is made beside it; it is its
// owner who ends it. The next attempt of the same call is a span below it, and
// leaves the official usage keys to it.
func TestACallInTheContextIsFedAndNotDoubled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newTelemetry(t)
		tracer := genaitrace.New(genaitrace.WithTracerProvider(o.tp), genaitrace.WithMeterProvider(o.mp))
		base, stop := serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			time.Sleep(20 * time.Millisecond)
			say(w, textEvent, finishEvent, usageEvent, doneEvent)
		}))
		defer stop()
		client := &http.Client{Transport: genaihttp.NewTransport(base, o.options()...)}
		ctx, call := tracer.StartCall(t.Context(), genaitrace.Request{Model: "given"})
		attempt := func() {
			resp, err := post(ctx, client)
			require.NoError(t, err)
			_, err = readAll(resp)
			require.NoError(t, err)
			resp.Body.Close()
		}
		attempt()
		assert.EqualValues(t, 1, o.started.Load())
		assert.Zero(t, o.ended.Load(), "the owner has not ended it")
		attempt()
		assert.EqualValues(t, 2, o.started.Load())
		call.End()

		own, again := o.named("chat given"), o.named("chat gpt-fx")
		assert.Equal(t, own.SpanContext().SpanID(), again.Parent().SpanID())
		checkEnding(t, own, "done", "")
		checkEnding(t, again, "done", "")
		assert.InDelta(t, 20.0, attributes(own)[semconv.LLMTTFTMsKey], 1e-9)
		assert.EqualValues(t, 19, attributes(own)[genaiconv.UsageInputTokensKey])
		assert.NotContains(t, attributes(again), genaiconv.UsageInputTokensKey, "counted twice otherwise")
		assert.EqualValues(t, 19, attributes(again)[semconv.AITokensInputKey])
	})
}

func TestACallInTheContextIsLeftToItsOwnerWhenTheRequestFails(t *testing.T) {
	o := newTelemetry(t)
	tracer := genaitrace.New(genaitrace.WithTracerProvider(o.tp), genaitrace.WithMeterProvider(o.mp))
	ctx, call := tracer.StartCall(t.Context(), genaitrace.Request{Model: "given"})
	base := baseTransport(func(*http.Request) (*http.Response, error) { return nil, io.ErrUnexpectedEOF })
	_, err := post(ctx, &http.Client{Transport: genaihttp.NewTransport(base, o.options()...)})
	require.Error(t, err)
	assert.Zero(t, o.ended.Load())
	call.Fail(err)
	assert.Equal(t, "chat given", o.only().Name())
}

// Where nothing records, the response is the base transport's own.
func TestNothingIsWrappedWhereNothingRecords(t *testing.T) {
	body := io.NopCloser(strings.NewReader(textEvent))
	base := baseTransport(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: body, Request: r}, nil
	})
	never := sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample()))
	o := newTelemetry(t)
	for _, tt := range []struct {
		name    string
		opts    []genaihttp.Option
		wrapped bool
	}{
		{"no sampling, no meter", []genaihttp.Option{genaihttp.WithTracerProvider(never), genaihttp.WithMeterProvider(metricnoop.NewMeterProvider())}, false},
		{"no sampling, but metrics", []genaihttp.Option{genaihttp.WithTracerProvider(never), genaihttp.WithMeterProvider(o.mp)}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			req := httptest.NewRequest(http.MethodPost, "http://engine/v1/chat/completions", strings.NewReader(chatRequest))
			resp, err := genaihttp.NewTransport(base, tt.opts...).RoundTrip(req)
			require.NoError(t, err)
			assert.Equal(t, tt.wrapped, resp.Body != body)
			resp.Body.Close()
		})
	}
	count, _ := o.histogram(genaiconv.ClientInferenceDurationName)
	assert.EqualValues(t, 1, count, "metrics are recorded though the span is not")
}

func TestTheMetricsOfACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newTelemetry(t)
		base, stop := serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			if r.Header.Get("X-Fail") != "" {
				w.WriteHeader(http.StatusBadGateway)
				return
			}
			time.Sleep(10 * time.Millisecond)
			say(w, roleEvent)
			for range 3 {
				time.Sleep(20 * time.Millisecond)
				say(w, textEvent)
			}
			time.Sleep(30 * time.Millisecond)
			say(w, finishEvent, doneEvent)
		}))
		defer stop()
		rt := genaihttp.NewTransport(base, o.options()...)
		for _, fail := range []string{"", "yes"} {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://engine.internal:8000/v1/chat/completions", strings.NewReader(chatRequest))
			require.NoError(t, err)
			req.Header.Set("X-Fail", fail)
			resp, err := rt.RoundTrip(req)
			require.NoError(t, err)
			_, _ = readAll(resp)
			resp.Body.Close()
		}
		good := map[string]any{
			"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "gpt-fx",
			"gen_ai.response.model": "gpt-fx-1", "server.address": "engine.internal", "server.port": int64(8000),
		}
		bad := maps.Clone(good)
		delete(bad, "gen_ai.response.model")
		bad["error.type"] = "502"
		withRole := maps.Clone(good)
		withRole["genai.span.role"] = "inference"

		required := map[string]any{ // one value a chunk: what the conventions require, no more
			"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "gpt-fx",
		}

		assert.ElementsMatch(t, []point{{1, 0.1, good}, {1, 0, bad}}, o.points(genaiconv.ClientInferenceDurationName))
		assert.Equal(t, []point{{1, 0.01, good}}, o.points(genaiconv.ClientInferenceTimeToFirstChunkName))
		assert.Equal(t, []point{{4, 0.09, required}}, o.points(genaiconv.ClientInferenceTimePerOutputChunkName))
		assert.Equal(t, []point{{1, 0.03, withRole}}, o.points(semconv.GenAITimeToFirstTokenName))
	})
}

// A point of a histogram, with its sum rounded to a nanosecond.
type point struct {
	count uint64
	sum   float64
	dims  map[string]any
}

func (o *telemetry) points(name string) (points []point) {
	o.t.Helper()
	var rm metricdata.ResourceMetrics
	require.NoError(o.t, o.reader.Collect(o.t.Context(), &rm))
	for _, sm := range rm.ScopeMetrics {
		for _, m := range sm.Metrics {
			h, ok := m.Data.(metricdata.Histogram[float64])
			if !ok || m.Name != name {
				continue
			}
			for _, p := range h.DataPoints {
				dims := map[string]any{}
				for _, a := range p.Attributes.ToSlice() {
					dims[string(a.Key)] = a.Value.AsInterface()
				}
				points = append(points, point{p.Count, time.Duration(p.Sum*1e9 + 0.5).Seconds(), dims})
			}
		}
	}
	return points
}
