package genaihttp_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/middleware/genaihttp"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

func (o *telemetry) tracer() *genaitrace.Tracer {
	return genaitrace.New(genaitrace.WithTracerProvider(o.tp), genaitrace.WithMeterProvider(o.mp))
}

// drop takes a request and closes its connection without a word.
func drop(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	panic(http.ErrAbortHandler)
}

// A connection that closes before any header reads as io.EOF, which is the good
// end of a body, and of nothing else.
func TestAConnectionThatClosesBeforeItsAnswerIsAFailure(t *testing.T) {
	base, stop := serve(http.HandlerFunc(drop))
	defer stop()
	check := func(t *testing.T, o *telemetry, name string) {
		t.Helper()
		span := o.named(name)
		assert.Equal(t, trace.SpanKindClient, span.SpanKind())
		checkEnding(t, span, "", "_OTHER")
		points := o.points(genaiconv.ClientInferenceDurationName)
		require.Len(t, points, 1)
		assert.EqualValues(t, 1, points[0].count)
		assert.Equal(t, "_OTHER", points[0].dims["error.type"])
	}
	t.Run("of the transport's own call", func(t *testing.T) {
		o := newTelemetry(t)
		_, err := post(t.Context(), &http.Client{Transport: genaihttp.NewTransport(base, o.options()...)})
		require.ErrorIs(t, err, io.EOF)
		check(t, o, "chat gpt-fx")
	})
	t.Run("of a call of the application", func(t *testing.T) {
		o := newTelemetry(t)
		ctx, call := o.tracer().StartCall(t.Context(), genaitrace.Request{Model: "given"})
		_, err := post(ctx, &http.Client{Transport: genaihttp.NewTransport(base, o.options()...)})
		require.ErrorIs(t, err, io.EOF)
		call.EndErr(&err)
		check(t, o, "chat given")
	})
	t.Run("through a proxy", func(t *testing.T) {
		o := newTelemetry(t)
		proxy := &httputil.ReverseProxy{
			Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: "engine.internal"}) },
			Transport: genaihttp.NewTransport(base, o.options()...),
			ErrorLog:  quiet,
		}
		gateway, stop := serve(genaihttp.NewHandler(proxy, o.options()...))
		defer stop()
		resp, err := post(t.Context(), &http.Client{Transport: gateway})
		require.NoError(t, err)
		_, _ = readAll(resp)
		resp.Body.Close()
		require.Eventually(t, func() bool { return o.ended.Load() == 2 }, 10*time.Second, time.Millisecond)
		assert.Equal(t, http.StatusBadGateway, resp.StatusCode)
		checkEnding(t, o.named("POST /v1/chat/completions"), "http_error", "502")
		check(t, o, "chat gpt-fx")
	})
}

// What a server can answer to one attempt.
var (
	tooMany = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = io.WriteString(w, `{"error":{"type":"requests","code":"rate_limit_exceeded","message":"secret"}}`)
	}
	unavailable  = func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "secret", http.StatusServiceUnavailable) }
	brokenStream = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(http.StatusServiceUnavailable)
		say(w, errorEvent)
	}
	moved = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "/v2/chat/completions")
		w.WriteHeader(http.StatusTemporaryRedirect)
	}
	streamed = func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(20 * time.Millisecond)
		say(w, roleEvent, textEvent, finishEvent, usageEvent, doneEvent)
	}
)

// A client that retries makes several round trips of one call: one span, which
// tells of the last one.
func TestTheLastAttemptDecidesHowACallEnds(t *testing.T) {
	for _, tt := range []struct {
		name      string
		answers   []http.HandlerFunc // each takes 5 ms at least
		followed  bool               // by http.Client, not by the application
		readFirst bool               // the application reads failures before it tries again
		status    int64              // 0: of no answer
		terminal  semconv.GenAIStreamTerminalAttr
		errType   string
	}{
		{"429, then a stream", []http.HandlerFunc{tooMany, streamed}, false, false, 200, "done", ""},
		{"429 that is read, then a stream", []http.HandlerFunc{tooMany, streamed}, false, true, 200, "done", ""},
		{"429 and 503, then a stream", []http.HandlerFunc{tooMany, unavailable, streamed}, false, true, 200, "done", ""},
		{"503 as a stream, then a stream", []http.HandlerFunc{brokenStream, streamed}, false, true, 200, "done", ""},
		{"a dropped connection, then a stream", []http.HandlerFunc{drop, streamed}, false, false, 200, "done", ""},
		{"a redirect, then a stream", []http.HandlerFunc{moved, streamed}, true, false, 200, "done", ""},
		{"429, then 503", []http.HandlerFunc{tooMany, unavailable}, false, false, 503, "http_error", "503"},
		{"503, then 429", []http.HandlerFunc{unavailable, tooMany}, false, true, 429, "http_error", "rate_limit_exceeded"},
		{"a dropped connection, then 503", []http.HandlerFunc{drop, unavailable}, false, false, 503, "http_error", "503"},
		{"503, then a dropped connection", []http.HandlerFunc{unavailable, drop}, false, false, 0, "", "_OTHER"},
		{"a redirect, then 429", []http.HandlerFunc{moved, tooMany}, true, false, 429, "http_error", "rate_limit_exceeded"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newTelemetry(t)
				var states, parents []string
				base, stop := serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.Copy(io.Discard, r.Body)
					states = append(states, r.Header.Get("Tracestate"))
					parents = append(parents, r.Header.Get("Traceparent"))
					time.Sleep(5 * time.Millisecond)
					tt.answers[len(states)-1](w, r)
				}))
				defer stop()
				client := &http.Client{Transport: genaihttp.NewTransport(base, o.options()...)}
				start := time.Now()
				ctx, call := o.tracer().StartCall(t.Context(), genaitrace.Request{Model: "given", Stream: true})
				var last error
				for i := range tt.answers {
					resp, err := post(ctx, client)
					switch {
					case err != nil:
						last = err
					case i+1 < len(tt.answers) && !tt.followed && !tt.readFirst:
						resp.Body.Close()
					default:
						if last = nil; resp.StatusCode >= http.StatusBadRequest {
							last = errors.New(resp.Status)
						}
						_, _ = readAll(resp)
						resp.Body.Close()
					}
					if tt.followed {
						break
					}
				}
				wantTTFT := time.Since(start)
				call.Fail(last)

				require.Len(t, states, len(tt.answers))
				span := o.only()
				checkEnding(t, span, tt.terminal, tt.errType)
				got := attributes(span)
				assert.EqualValues(t, len(tt.answers)-1, got["http.request.resend_count"])
				for i := range states {
					assert.Equal(t, "genai=c:1", states[i], "attempt %d", i+1)
					assert.Equal(t, traceparent(span.SpanContext()), parents[i], "attempt %d", i+1)
				}
				if tt.status > 0 {
					assert.Equal(t, tt.status, got["http.response.status_code"])
				}
				points := o.points(genaiconv.ClientInferenceDurationName)
				require.Len(t, points, 1)
				assert.EqualValues(t, 1, points[0].count)
				ttfts, _ := o.histogram(semconv.GenAITimeToFirstTokenName)
				if tt.errType != "" {
					assert.Equal(t, tt.errType, points[0].dims["error.type"])
					assert.Zero(t, ttfts)
					assert.NotContains(t, o.seen(), "secret")
					return
				}
				assert.NotContains(t, points[0].dims, "error.type")
				assert.EqualValues(t, 19, got[genaiconv.UsageInputTokensKey])
				assert.EqualValues(t, 2, got[genaiconv.UsageOutputTokensKey])
				assert.EqualValues(t, 4, got[semconv.GenAIChunkCountKey], "of the answer alone")
				assert.Equal(t, wantTTFT.Seconds(), got[genaiconv.ResponseTimeToFirstChunkKey])
				assert.Equal(t, wantTTFT.Seconds()*1000, got[semconv.LLMTTFTMsKey], "as the application waits, all attempts included")
				assert.EqualValues(t, 1, ttfts)
			})
		})
	}
}

// The first attempt of a call is no resend.
func TestOneAttemptHasNoResendCount(t *testing.T) {
	o := newTelemetry(t)
	resp, err := post(t.Context(), &http.Client{Transport: genaihttp.NewTransport(answers(200, "application/json", answer), o.options()...)})
	require.NoError(t, err)
	_, _ = readAll(resp)
	resp.Body.Close()
	assert.NotContains(t, attributes(o.only()), attribute.Key("http.request.resend_count"))
}

func TestATransportThatPanicsEndsTheSpanAndPanicsOn(t *testing.T) {
	boom := errors.New("secret")
	for _, value := range []any{"secret", boom, http.ErrAbortHandler, 7} {
		base := baseTransport(func(*http.Request) (*http.Response, error) { panic(value) })
		t.Run("of its own call", func(t *testing.T) {
			o := newTelemetry(t)
			assert.PanicsWithValue(t, value, func() {
				_, _ = post(t.Context(), &http.Client{Transport: genaihttp.NewTransport(base, o.options()...)})
			})
			checkEnding(t, o.only(), "", "panic")
			assert.NotContains(t, o.seen(), "secret")
		})
		t.Run("of a call of the application", func(t *testing.T) {
			o := newTelemetry(t)
			ctx, call := o.tracer().StartCall(t.Context(), genaitrace.Request{})
			assert.PanicsWithValue(t, value, func() {
				defer call.EndErr(nil)
				_, _ = post(ctx, &http.Client{Transport: genaihttp.NewTransport(base, o.options()...)})
			})
			checkEnding(t, o.only(), "", "panic")
		})
	}
}

// net/http has words for a transport that returns neither; we leave them to it.
func TestATransportThatReturnsNothingEndsTheSpan(t *testing.T) {
	base := baseTransport(func(*http.Request) (*http.Response, error) { return nil, nil })
	o := newTelemetry(t)
	req := httptest.NewRequest(http.MethodPost, "http://engine/v1/chat/completions", strings.NewReader(chatRequest))
	resp, err := genaihttp.NewTransport(base, o.options()...).RoundTrip(req)
	assert.Nil(t, resp)
	require.NoError(t, err)
	checkEnding(t, o.only(), "", "_OTHER")

	o = newTelemetry(t)
	_, err = post(t.Context(), &http.Client{Transport: genaihttp.NewTransport(base, o.options()...)})
	require.Error(t, err)
	assert.Equal(t, codes.Error, o.only().Status().Code)
}

// Each transport has a span of its own, and each span has each chunk once.
func TestATransportAroundATransportCountsNoChunkTwice(t *testing.T) {
	const stream = roleEvent + textEvent + textEvent + finishEvent + usageEvent + doneEvent
	for name, started := range map[string]bool{"on their own": false, "in a call of the application": true} {
		t.Run(name, func(t *testing.T) {
			o := newTelemetry(t)
			inner := genaihttp.NewTransport(answers(200, "text/event-stream", stream), o.options()...)
			outer := genaihttp.NewTransport(inner, o.options()...)
			ctx, call := t.Context(), (*genaitrace.Call)(nil)
			if started {
				ctx, call = o.tracer().StartCall(ctx, genaitrace.Request{Model: "gpt-fx", Provider: genaiconv.ProviderNameOpenAI})
			}
			resp, err := post(ctx, &http.Client{Transport: outer})
			require.NoError(t, err)
			got, err := readAll(resp)
			require.NoError(t, err)
			resp.Body.Close()
			call.End()
			assert.Equal(t, stream, got)

			require.Equal(t, o.started.Load(), o.ended.Load())
			usage := 0
			for _, span := range o.spans.Ended() {
				attrs := attributes(span)
				checkEnding(t, span, "done", "")
				assert.EqualValues(t, 5, attrs[semconv.GenAIChunkCountKey])
				assert.EqualValues(t, 2, attrs[semconv.GenAIChunkOutputCountKey])
				assert.Len(t, span.Events(), 1, "the first token")
				if _, ok := attrs[genaiconv.UsageInputTokensKey]; ok {
					usage++
				}
			}
			assert.Equal(t, 1, usage, "the usage is told once a call")
			durations, _ := o.histogram(genaiconv.ClientInferenceDurationName)
			assert.EqualValues(t, o.ended.Load(), durations)
			perChunk, _ := o.histogram(genaiconv.ClientInferenceTimePerOutputChunkName)
			assert.EqualValues(t, 4*o.ended.Load(), perChunk)
		})
	}
}

// An idler counts how often its idle connections were closed.
type idler struct {
	baseTransport

	closed *int
}

func (i idler) CloseIdleConnections() { *i.closed++ }

func TestIdleConnectionsOfTheTransportBelowAreClosed(t *testing.T) {
	closed := 0
	base := idler{answers(200, "application/json", answer), &closed}
	outer := genaihttp.NewTransport(genaihttp.NewTransport(base))
	(&http.Client{Transport: outer}).CloseIdleConnections()
	assert.Equal(t, 1, closed)

	without := genaihttp.NewTransport(answers(200, "application/json", answer))
	assert.NotPanics(t, (&http.Client{Transport: without}).CloseIdleConnections)
}

func TestClosingIdleConnectionsClosesThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newTelemetry(t)
		l := newPipeListener()
		var states []http.ConnState
		server := &http.Server{
			Handler:   http.NotFoundHandler(),
			ConnState: func(_ net.Conn, s http.ConnState) { states = append(states, s) },
		}
		go server.Serve(l)
		defer server.Close()
		client := &http.Client{Transport: genaihttp.NewTransport(&http.Transport{DialContext: l.dial}, o.options()...)}
		resp, err := client.Get("http://engine/v1/models")
		require.NoError(t, err)
		_, _ = readAll(resp)
		resp.Body.Close()
		synctest.Wait()
		require.Equal(t, http.StateIdle, states[len(states)-1])
		client.CloseIdleConnections()
		synctest.Wait()
		assert.Equal(t, http.StateClosed, states[len(states)-1])
	})
}

// An attempt whose context is cancelled says so, and the application's call is
// the next attempt's all the same.
func TestACancelledAttemptLeavesTheCallToTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newTelemetry(t)
		var attempts atomic.Int32
		base, stop := serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			if attempts.Add(1) == 1 {
				<-r.Context().Done()
				return
			}
			streamed(w, r)
		}))
		defer stop()
		client := &http.Client{Transport: genaihttp.NewTransport(base, o.options()...)}
		ctx, call := o.tracer().StartCall(t.Context(), genaitrace.Request{Model: "given"})
		attempt, cancel := context.WithTimeout(ctx, time.Second)
		_, err := post(attempt, client)
		cancel()
		require.ErrorIs(t, err, context.DeadlineExceeded)
		resp, err := post(ctx, client)
		require.NoError(t, err)
		_, _ = readAll(resp)
		resp.Body.Close()
		call.End()
		synctest.Wait()
		checkEnding(t, o.only(), "done", "")
		assert.EqualValues(t, 1, attributes(o.only())["http.request.resend_count"])
	})
}
