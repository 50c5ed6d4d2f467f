package genaihttp_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
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
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/middleware/genaihttp"
	"github.com/genaitrace/otelgenai/middleware/wire"
	"github.com/genaitrace/otelgenai/propagation"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

func TestTheSpanIsNamedAfterTheRouteAndNeverAfterThePath(t *testing.T) {
	nothing := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	mux := http.NewServeMux()
	for _, pattern := range []string{
		"POST /v1/chat/completions", "/v1/models/{model}", "GET api.example.com/files/{path...}", "/exact/{$}",
	} {
		mux.Handle(pattern, nothing)
	}
	withRoot := http.NewServeMux()
	withRoot.Handle("/", nothing)
	withRoot.Handle("/api/", http.StripPrefix("/api", mux))
	for _, tt := range []struct {
		name          string
		handler       http.Handler
		method, url   string
		want, wantURL string
	}{
		{"method and path", mux, "POST", "/v1/chat/completions", "POST /v1/chat/completions", "/v1/chat/completions"},
		{"wildcard", mux, "GET", "/v1/models/gpt-4711", "GET /v1/models/{model}", "/v1/models/gpt-4711"},
		{"host and rest of the path", mux, "GET", "http://api.example.com/files/a/b/c", "GET /files/{path...}", "/files/a/b/c"},
		{"end of path", mux, "GET", "/exact/", "GET /exact/{$}", "/exact/"},
		{"nothing matches", mux, "GET", "/customers/4711", "GET", "/customers/4711"},
		{"nothing matches the method", mux, "DELETE", "/v1/chat/completions", "DELETE /v1/chat/completions", "/v1/chat/completions"},
		{"catch-all", withRoot, "GET", "/customers/4711", "GET /", "/customers/4711"},
		{"mux in a mux", withRoot, "GET", "/api/v1/models/m", "GET /api/", "/api/v1/models/m"},
		{"no mux, path of an endpoint", nothing, "POST", "/ask", "POST /ask", "/ask"},
		{"no mux, well-known path", nothing, "POST", "/v1/chat/completions", "POST /v1/chat/completions", "/v1/chat/completions"},
		{"no mux, other path", nothing, "POST", "/customers/4711", "POST", "/customers/4711"},
		{"method that was made up", nothing, "BREW4711", "/v1/models", "HTTP /v1/models", "/v1/models"},
		{"made up, other path", nothing, "BREW4711", "/pot", "HTTP", "/pot"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := newTelemetry(t)
			options := append(o.options(), genaihttp.WithEndpoint(wire.Endpoint{Path: "/ask"}))
			genaihttp.NewHandler(tt.handler, options...).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(tt.method, tt.url, nil))
			span := o.only()
			assert.Equal(t, tt.want, span.Name())
			got := attributes(span)
			assert.Equal(t, tt.wantURL, got["url.path"])
			if _, route, ok := strings.Cut(tt.want, " "); ok {
				assert.Equal(t, route, got["http.route"])
			} else {
				assert.NotContains(t, got, attribute.Key("http.route"))
			}
		})
	}
}

// Inside a mux the pattern is known from the start, and samplers see it.
func TestAHandlerInsideAMuxKnowsItsRouteAtTheStart(t *testing.T) {
	sampler := &attributesSampler{}
	tp := sdktrace.NewTracerProvider(sdktrace.WithSampler(sampler))
	mux := http.NewServeMux()
	mux.Handle("POST /v1/models/{model}/generate", genaihttp.NewHandler(http.NotFoundHandler(), genaihttp.WithTracerProvider(tp)))
	mux.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/v1/models/m/generate", nil))
	assert.Equal(t, "POST /v1/models/{model}/generate", sampler.name)
	assert.Contains(t, sampler.attributes, attribute.String("http.route", "/v1/models/{model}/generate"))
}

// An attributesSampler notes what it was shown.
type attributesSampler struct {
	name       string
	attributes []attribute.KeyValue
}

func (s *attributesSampler) ShouldSample(p sdktrace.SamplingParameters) sdktrace.SamplingResult {
	s.name, s.attributes = p.Name, p.Attributes
	return sdktrace.SamplingResult{Decision: sdktrace.Drop}
}

func (*attributesSampler) Description() string { return "attributes" }

func TestTheSpanDescribesTheRequest(t *testing.T) {
	o := newTelemetry(t)
	req := httptest.NewRequest("BREW4711", "https://gateway.example.com:8443/pot?secret=1", nil)
	req.URL.Path = "/pot/" + strings.Repeat("x", 1000) + "\xff"
	req.Header.Set("User-Agent", "tea\xffpot/1.0")
	genaihttp.NewHandler(http.NotFoundHandler(), o.options()...).ServeHTTP(httptest.NewRecorder(), req)
	span := o.only()
	assert.Equal(t, trace.SpanKindServer, span.SpanKind())
	got := attributes(span)
	for key, want := range map[attribute.Key]any{
		"genai.span.role":              "gateway",
		"http.request.method":          "_OTHER",
		"http.request.method_original": "BREW4711",
		"http.response.status_code":    int64(404),
		"url.scheme":                   "https",
		"url.path":                     "/pot/" + strings.Repeat("x", 251),
		"server.address":               "gateway.example.com",
		"server.port":                  int64(8443),
		"user_agent.original":          "tea\uFFFDpot/1.0",
	} {
		assert.Equal(t, want, got[key], string(key))
	}
	assert.NotContains(t, o.seen(), "secret")
	checkEnding(t, span, "", "")
}

func TestTheCallerIsTheParentUnlessTheEndpointIsPublic(t *testing.T) {
	notSampled := callerSpan.WithTraceFlags(0)
	call := func(caller trace.SpanContext, opts ...genaihttp.Option) (o *telemetry, tenant string) {
		o = newTelemetry(t)
		req := httptest.NewRequest(http.MethodPost, "/v1/chat/completions", nil)
		req.Header.Set("Traceparent", traceparent(caller))
		req.Header.Set("Tracestate", "vendor=1")
		req.Header.Set("Baggage", "tenant=t1")
		handler := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			tenant = baggage.FromContext(r.Context()).Member("tenant").Value()
		})
		genaihttp.NewHandler(handler, append(o.options(), opts...)...).ServeHTTP(httptest.NewRecorder(), req)
		return o, tenant
	}
	t.Run("trusted", func(t *testing.T) {
		o, tenant := call(callerSpan)
		span := o.only()
		assert.Equal(t, callerSpan.TraceID(), span.SpanContext().TraceID())
		assert.Equal(t, callerSpan.SpanID(), span.Parent().SpanID())
		assert.True(t, span.Parent().IsRemote())
		assert.Equal(t, "vendor=1", span.SpanContext().TraceState().String())
		assert.Equal(t, "t1", tenant)
	})
	t.Run("trusted, and it does not sample", func(t *testing.T) {
		o, tenant := call(notSampled)
		assert.Zero(t, o.started.Load())
		assert.Equal(t, "t1", tenant)
	})
	t.Run("trusted by nil propagators", func(t *testing.T) {
		o, _ := call(callerSpan, genaihttp.WithPropagators(nil))
		assert.Equal(t, callerSpan.SpanID(), o.only().Parent().SpanID())
	})
	t.Run("given propagators", func(t *testing.T) {
		o, tenant := call(callerSpan, genaihttp.WithPropagators(propagation.W3C))
		assert.Equal(t, callerSpan.SpanID(), o.only().Parent().SpanID())
		assert.Empty(t, tenant)
	})
	t.Run("public", func(t *testing.T) {
		o, tenant := call(callerSpan, genaihttp.WithPublicEndpoint())
		span := o.only()
		assert.NotEqual(t, callerSpan.TraceID(), span.SpanContext().TraceID())
		assert.False(t, span.Parent().IsValid())
		assert.Empty(t, span.SpanContext().TraceState().String())
		require.Len(t, span.Links(), 1)
		assert.Equal(t, callerSpan.SpanID(), span.Links()[0].SpanContext.SpanID())
		assert.Empty(t, tenant)
	})
	t.Run("public, and the caller does not sample", func(t *testing.T) {
		o, _ := call(notSampled, genaihttp.WithPublicEndpoint())
		require.Len(t, o.only().Links(), 1)
	})
	t.Run("public, and there is no caller", func(t *testing.T) {
		o, _ := call(trace.SpanContext{}, genaihttp.WithPublicEndpoint())
		assert.Empty(t, o.only().Links())
	})
}

// A bridge may read several formats, of which one is the parent, or take nobody as
// the parent.
func TestWhatABridgeDoesNotTakeAsTheParentIsALink(t *testing.T) {
	for name, tt := range map[string]struct {
		bridge propagation.Option
		opts   []genaihttp.Option
		links  int
		parent bool
	}{
		"contradictory formats":              {propagation.WithFormats(propagation.B3), nil, 1, true},
		"contradictory formats of strangers": {propagation.WithFormats(propagation.B3), []genaihttp.Option{genaihttp.WithPublicEndpoint()}, 2, false},
		"a public bridge":                    {propagation.WithPublicEndpoint(), nil, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			o := newTelemetry(t)
			opts := append(o.options(), genaihttp.WithPropagators(propagation.New(tt.bridge)))
			h := genaihttp.NewHandler(http.NotFoundHandler(), append(opts, tt.opts...)...)
			r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
			r.Header.Set("Traceparent", traceparent(callerSpan))
			r.Header.Set("B3", "11111111111111111111111111111111-2222222222222222-1")
			h.ServeHTTP(httptest.NewRecorder(), r)
			span := o.only()
			assert.Len(t, span.Links(), tt.links)
			assert.Equal(t, tt.parent, span.Parent().SpanID() == callerSpan.SpanID())
		})
	}
}

// Inside another instrumentation, whose span knows the caller already.
func TestALocalSpanIsTheParent(t *testing.T) {
	for name, opts := range map[string][]genaihttp.Option{"": nil, "public": {genaihttp.WithPublicEndpoint()}} {
		o := newTelemetry(t)
		inner := genaihttp.NewHandler(http.NotFoundHandler(), append(o.options(), opts...)...)
		outer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			ctx, span := o.tp.Tracer("outer").Start(r.Context(), "outer", trace.WithSpanKind(trace.SpanKindServer))
			defer span.End()
			inner.ServeHTTP(w, r.WithContext(ctx))
		})
		req := httptest.NewRequest(http.MethodPost, "/v1/chat/completions", nil)
		req.Header.Set("Traceparent", traceparent(callerSpan))
		outer.ServeHTTP(httptest.NewRecorder(), req)
		assert.Equal(t, o.named("outer").SpanContext().SpanID(), o.named("POST /v1/chat/completions").Parent().SpanID(), name)
	}
}

func TestTheArrivalIsInTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newTelemetry(t)
		arrived := time.Now()
		handler := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			time.Sleep(time.Second)
			at, ok := genaitrace.ArrivalFromContext(r.Context())
			assert.True(t, ok)
			assert.True(t, at.Equal(arrived))
			assert.Nil(t, genaitrace.CallFromContext(r.Context()), "the gateway's span is no model call")
		})
		genaihttp.NewHandler(handler, o.options()...).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/v1/chat/completions", nil))
		o.only()
	})
}

// How a handler can end, and what its span says then.
func TestEveryEndOfAHandlerEndsTheSpanOnce(t *testing.T) {
	for _, tt := range []struct {
		name     string
		handler  http.HandlerFunc
		leave    bool // the client leaves after a second
		status   int  // 0: none was sent, or nobody knows
		terminal semconv.GenAIStreamTerminalAttr
		errType  string
	}{
		{"it streams an answer", func(w http.ResponseWriter, _ *http.Request) { say(w, roleEvent, textEvent, finishEvent, doneEvent) }, false, 200, "done", ""},
		{"its stream lacks the end mark", func(w http.ResponseWriter, _ *http.Request) { say(w, textEvent, finishEvent) }, false, 200, "finish", ""},
		{"its stream lacks its end", func(w http.ResponseWriter, _ *http.Request) { say(w, textEvent) }, false, 200, "truncated", "stream_truncated"},
		{"its stream tells an error", func(w http.ResponseWriter, _ *http.Request) { say(w, textEvent, errorEvent, doneEvent) }, false, 200, "error", "server_error"},
		{"it answers", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, answer) }, false, 200, "", ""},
		{"it writes nothing", func(http.ResponseWriter, *http.Request) {}, false, 200, "", ""},
		{"404", func(w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) }, false, 404, "", ""},
		{"429", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "secret", http.StatusTooManyRequests) }, false, 429, "", ""},
		{"500", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "secret", http.StatusInternalServerError) }, false, 500, "http_error", "500"},
		{"503 as a stream", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			w.WriteHeader(http.StatusServiceUnavailable)
			say(w, errorEvent)
		}, false, 503, "http_error", "503"},
		{"it writes two headers", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusAccepted)
			w.WriteHeader(http.StatusBadGateway)
		}, false, 202, "", ""},
		{"it writes a header too late", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(nil)
			w.WriteHeader(http.StatusBadGateway)
		}, false, 200, "", ""},
		{"it hints first", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusEarlyHints)
			w.WriteHeader(http.StatusProcessing)
			w.WriteHeader(http.StatusCreated)
		}, false, 201, "", ""},
		{"it panics", func(http.ResponseWriter, *http.Request) { panic("secret") }, false, 0, "error", "panic"},
		{"it panics in the stream", func(w http.ResponseWriter, _ *http.Request) { say(w, textEvent); panic("secret") }, false, 200, "error", "panic"},
		{"it aborts", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, false, 0, "truncated", "stream_truncated"},
		{"it aborts its stream", func(w http.ResponseWriter, _ *http.Request) { say(w, textEvent); panic(http.ErrAbortHandler) }, false, 200, "truncated", "stream_truncated"},
		{"it aborts its stream after the end mark", func(w http.ResponseWriter, _ *http.Request) {
			say(w, textEvent, doneEvent)
			panic(http.ErrAbortHandler)
		}, false, 200, "done", ""},
		{"the client leaves the stream", func(w http.ResponseWriter, r *http.Request) { say(w, textEvent); <-r.Context().Done() }, true, 200, "client_cancelled", ""},
		{"the client leaves the stream, and it aborts", func(w http.ResponseWriter, r *http.Request) {
			say(w, textEvent)
			<-r.Context().Done()
			panic(http.ErrAbortHandler)
		}, true, 200, "client_cancelled", ""},
		{"the client leaves after the end mark", func(w http.ResponseWriter, r *http.Request) { say(w, textEvent, doneEvent); <-r.Context().Done() }, true, 200, "done", ""},
		{"the client leaves before the answer", func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // net/http does not see it leave before
			<-r.Context().Done()
		}, true, 0, "client_cancelled", ""},
		{"the client leaves, and it writes on", func(w http.ResponseWriter, r *http.Request) {
			say(w, textEvent)
			<-r.Context().Done()
			say(w, textEvent, finishEvent, doneEvent)
		}, true, 200, "client_cancelled", ""},
		{"its own deadline passes", func(w http.ResponseWriter, r *http.Request) {
			say(w, textEvent)
			<-r.Context().Done()
		}, false, 200, "timeout", "timeout"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newTelemetry(t)
				handler := genaihttp.NewHandler(tt.handler, o.options()...)
				if tt.terminal == "timeout" {
					inner := handler
					handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						ctx, cancel := context.WithTimeout(r.Context(), time.Second)
						defer cancel()
						inner.ServeHTTP(w, r.WithContext(ctx))
					})
				}
				base, stop := serve(handler)
				defer stop()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if tt.leave {
					time.AfterFunc(time.Second, cancel)
				}
				resp, err := post(ctx, &http.Client{Transport: base})
				if err == nil {
					_, _ = readAll(resp)
					resp.Body.Close()
				}
				synctest.Wait()

				span := o.only()
				checkEnding(t, span, tt.terminal, tt.errType)
				if tt.status == 0 {
					assert.NotContains(t, attributes(span), attribute.Key("http.response.status_code"))
				} else {
					assert.EqualValues(t, tt.status, attributes(span)["http.response.status_code"])
				}
				assert.NotContains(t, o.seen(), "secret")
			})
		})
	}
}

// The very value goes on, to whoever recovers outside.
func TestPanicsGoOn(t *testing.T) {
	boom := errors.New("boom")
	for _, value := range []any{"boom", boom, http.ErrAbortHandler, 7} {
		o := newTelemetry(t)
		handler := genaihttp.NewHandler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(value) }), o.options()...)
		assert.PanicsWithValue(t, value, func() {
			handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
		})
		o.only()
	}
}

// A client gets each flush when the handler makes it, and the time to first
// token is one number: attribute, event and histogram.
func TestTheFirstTokenOfAGateway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newTelemetry(t)
		start := time.Now()
		events := []string{": ping\n\n", roleEvent, textEvent, textEvent, finishEvent + doneEvent}
		base, stop := serve(genaihttp.NewHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			for _, e := range events {
				time.Sleep(11 * time.Millisecond)
				say(w, e)
			}
		}), o.options()...))
		defer stop()
		resp, err := post(t.Context(), &http.Client{Transport: base})
		require.NoError(t, err)
		p := make([]byte, 4096)
		for i, e := range events {
			n, err := resp.Body.Read(p)
			require.NoError(t, err)
			assert.Equal(t, e, string(p[:n]))
			assert.Equal(t, time.Duration(i+1)*11*time.Millisecond, time.Since(start), "event %d", i)
		}
		_, _ = readAll(resp)
		resp.Body.Close()
		synctest.Wait()

		span := o.only()
		got := attributes(span)
		assert.Equal(t, 22.0, got[semconv.AIResponseDelayMsKey], "the chunk with the role")
		assert.Equal(t, 33.0, got[semconv.LLMTTFTMsKey])
		assert.EqualValues(t, 4, got[semconv.GenAIChunkCountKey])
		assert.NotContains(t, got, attribute.Key("gen_ai.usage.input_tokens"), "usage belongs to the span of the call")
		require.Len(t, span.Events(), 1)
		assert.Equal(t, semconv.EventFirstToken, span.Events()[0].Name)
		assert.Equal(t, 33*time.Millisecond, span.Events()[0].Time.Sub(span.StartTime()))
		assert.Equal(t, 33.0, span.Events()[0].Attributes[0].Value.AsFloat64())
		assert.Equal(t, []point{{1, 0.033, map[string]any{"genai.span.role": "gateway", "gen_ai.operation.name": "chat", "gen_ai.response.model": "gpt-fx-1"}}},
			o.points(semconv.GenAITimeToFirstTokenName))
	})
}

// Where nothing records, the handler gets the server's own writer, and the
// trace goes on through it.
func TestTheHandlerWrapsNothingWhereNothingRecords(t *testing.T) {
	var got http.ResponseWriter
	var sc trace.SpanContext
	handler := genaihttp.NewHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got, sc = w, trace.SpanContextFromContext(r.Context())
	}), genaihttp.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample()))))
	rec := httptest.NewRecorder()
	req := httptest.NewRequest(http.MethodPost, "/v1/chat/completions", nil)
	req.Header.Set("Traceparent", traceparent(callerSpan))
	handler.ServeHTTP(rec, req)
	assert.Same(t, rec, got)
	assert.Equal(t, callerSpan.TraceID(), sc.TraceID())
}

// Where a response has no body, there is no stream that could end.
func TestAResponseWithoutABodyIsNoStream(t *testing.T) {
	for method, status := range map[string]int{
		http.MethodHead: http.StatusOK, http.MethodGet: http.StatusNotModified, http.MethodPost: http.StatusNoContent,
	} {
		t.Run(method, func(t *testing.T) {
			o := newTelemetry(t)
			server := httptest.NewServer(genaihttp.NewHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				w.WriteHeader(status)
				_, _ = io.WriteString(w, textEvent) // which HEAD takes and sends to nobody
			}), o.options()...))
			req, err := http.NewRequestWithContext(t.Context(), method, server.URL, http.NoBody)
			require.NoError(t, err)
			resp, err := server.Client().Do(req)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			server.Close()
			checkEnding(t, o.only(), "", "")
			assert.NotContains(t, attributes(o.only()), semconv.LLMTTFTMsKey)
			assert.EqualValues(t, status, attributes(o.only())["http.response.status_code"])
		})
	}
}

// Whoever asked is to blame for a 4xx, in whatever form he is told so.
func TestARefusalThatIsStreamedIsNoFailureOfTheServer(t *testing.T) {
	refuse := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(http.StatusTooManyRequests)
		say(w, errorEvent)
	}
	for _, proxied := range []bool{false, true} {
		t.Run(fmt.Sprint("proxied ", proxied), func(t *testing.T) {
			o := newTelemetry(t)
			h := genaihttp.NewHandler(http.HandlerFunc(refuse), o.options()...)
			if proxied {
				base, stop := serve(http.HandlerFunc(refuse))
				defer stop()
				h = genaihttp.NewReverseProxy(toEngine(base), o.options()...)
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(chatRequest)))
			assert.Equal(t, errorEvent, w.Body.String())
			span := o.named("POST /v1/chat/completions")
			checkEnding(t, span, "", "")
			assert.NotContains(t, attributes(span), semconv.GenAIChunkCountKey)
			assert.EqualValues(t, http.StatusTooManyRequests, attributes(span)["http.response.status_code"])
			if proxied {
				checkEnding(t, o.named("chat gpt-fx"), semconv.GenAIStreamTerminalHTTPError, "server_error")
			}
		})
	}
}

// What a gateway is asked for besides models (health, files, a list of models) is under
// way there too, and is no chat.
func TestWhatAsksNoModelIsNoChat(t *testing.T) {
	for request, want := range map[string]string{
		"GET /healthz": "_OTHER", "HEAD /index.html": "_OTHER", "GET /v1/chat/completions": "_OTHER",
		"POST /v1/chat/completions": "chat", "POST /v1/embeddings": "embeddings", "POST /v1/ask": "chat",
	} {
		t.Run(request, func(t *testing.T) {
			o := newTelemetry(t)
			var operations []string
			h := genaihttp.NewHandler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
				var rm metricdata.ResourceMetrics
				assert.NoError(t, o.reader.Collect(t.Context(), &rm))
				for _, sm := range rm.ScopeMetrics {
					for _, m := range sm.Metrics {
						if m.Name != semconv.GenAIActiveRequestsName {
							continue
						}
						for _, p := range m.Data.(metricdata.Sum[int64]).DataPoints {
							operation, _ := p.Attributes.Value(genaiconv.OperationNameKey)
							operations = append(operations, operation.AsString())
						}
					}
				}
			}), o.options()...)
			method, path, _ := strings.Cut(request, " ")
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(method, path, http.NoBody))
			assert.Equal(t, []string{want}, operations)
		})
	}
}

// A handler that takes over the connection, as web sockets do: what it sends is
// its own, and the span says nothing of it that nobody knows.
func TestAHijackedConnectionIsTheHandlersOwn(t *testing.T) {
	for name, hijack := range map[string]func(http.ResponseWriter) (net.Conn, *bufio.ReadWriter, error){
		"by type assertion": func(w http.ResponseWriter) (net.Conn, *bufio.ReadWriter, error) { return w.(http.Hijacker).Hijack() },
		"by ResponseController": func(w http.ResponseWriter) (net.Conn, *bufio.ReadWriter, error) {
			return http.NewResponseController(w).Hijack()
		},
		"behind another middleware": func(w http.ResponseWriter) (net.Conn, *bufio.ReadWriter, error) {
			_, ok := w.(http.Hijacker)
			assert.False(t, ok, "there was none")
			return http.NewResponseController(w).Hijack()
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := newTelemetry(t)
			done := make(chan struct{})
			around := func(h http.Handler) http.Handler { return h }
			if strings.HasPrefix(name, "behind another") {
				around = behindAnother
			}
			server := httptest.NewUnstartedServer(around(genaihttp.NewHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				defer close(done)
				conn, buf, err := hijack(w)
				if !assert.NoError(t, err) {
					return
				}
				defer conn.Close()
				_, err = w.Write([]byte("too late"))
				assert.ErrorIs(t, err, http.ErrHijacked)
				_, _ = buf.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
				_ = buf.Flush()
				line, _ := buf.ReadString('\n')
				_, _ = buf.WriteString(line)
				_ = buf.Flush()
			}), o.options()...)))
			server.Config.ErrorLog = quiet
			server.Start()
			defer server.Close()
			base := &http.Transport{}
			defer base.CloseIdleConnections()
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/v1/realtime", nil)
			require.NoError(t, err)
			req.Header.Set("Connection", "Upgrade")
			req.Header.Set("Upgrade", "echo")
			resp, err := base.RoundTrip(req)
			require.NoError(t, err)
			require.Equal(t, http.StatusSwitchingProtocols, resp.StatusCode)
			conn := resp.Body.(io.ReadWriteCloser)
			_, err = io.WriteString(conn, "hello\n")
			require.NoError(t, err)
			line, err := bufio.NewReader(conn).ReadString('\n')
			require.NoError(t, err)
			assert.Equal(t, "hello\n", line)
			require.NoError(t, conn.Close())
			<-done
			server.Close() // waits for the handler's end
			require.Eventually(t, func() bool { return o.ended.Load() == 1 }, 5*time.Second, time.Millisecond)
			span := o.only()
			assert.NotContains(t, attributes(span), attribute.Key("http.response.status_code"))
			checkEnding(t, span, "", "")
		})
	}
}
