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
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/middleware/genaihttp"
	"github.com/genaitrace/otelgenai/middleware/wire"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// toEngine is the least of a proxy: it sends everything to the engine by base.
func toEngine(base http.RoundTripper) *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: "engine.internal"}) },
		Transport: base,
		ErrorLog:  quiet,
	}
}

// A counting dialect counts the events that it reads.
type counting struct {
	wire.Dialect

	events atomic.Int32
}

func (c *counting) Read(a *wire.Answer, e wire.Event) {
	c.events.Add(1)
	c.Dialect.Read(a, e)
}

// The whole of a stream through the proxy: what each side measures, what reaches
// the client, and how often the stream is parsed.
func TestAProxiedStreamIsParsedOnce(t *testing.T) {
	events := []string{roleEvent, textEvent, textEvent, finishEvent, usageEvent, doneEvent}
	for _, tt := range []struct {
		name   string
		modify func(*http.Response) error
		parsed int32
	}{
		{"as it comes", nil, 5},
		{"with other headers", func(r *http.Response) error { r.Header.Set("X-Served-By", "gateway"); return nil }, 5},
		{"with a body in the place of its own", func(r *http.Response) error {
			r.Body = struct {
				io.Reader
				io.Closer
			}{r.Body, r.Body}
			return nil
		}, 10},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newTelemetry(t)
				upstream, stopUpstream := serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.Copy(io.Discard, r.Body)
					for _, e := range events {
						time.Sleep(10 * time.Millisecond)
						say(w, e)
					}
				}))
				defer stopUpstream()
				dialect := &counting{Dialect: wire.OpenAI}
				opts := append(o.options(), genaihttp.WithEndpoint(wire.Endpoint{Path: "/chat/completions", Provider: "vllm", Dialect: dialect}))
				proxy := toEngine(upstream)
				proxy.ModifyResponse = tt.modify
				gateway, stopGateway := serve(genaihttp.NewReverseProxy(proxy, opts...))
				defer stopGateway()

				start := time.Now()
				resp, err := post(t.Context(), &http.Client{Transport: gateway})
				require.NoError(t, err)
				lines := bufio.NewReader(resp.Body)
				for i, e := range events { // each at its time
					got := make([]byte, len(e))
					_, err := io.ReadFull(lines, got)
					require.NoError(t, err)
					assert.Equal(t, e, string(got))
					assert.Equal(t, time.Duration(i+1)*10*time.Millisecond, time.Since(start))
				}
				resp.Body.Close()
				synctest.Wait()

				require.EqualValues(t, 2, o.started.Load())
				server, client := o.named("POST /v1/chat/completions"), o.named("chat gpt-fx")
				assert.Equal(t, server.SpanContext().SpanID(), client.Parent().SpanID())
				for _, span := range []map[string]any{flat(attributes(server)), flat(attributes(client))} {
					assert.Equal(t, 20.0, span[string(semconv.LLMTTFTMsKey)])
					assert.EqualValues(t, 5, span[string(semconv.GenAIChunkCountKey)])
					assert.EqualValues(t, 2, span[string(semconv.GenAIChunkOutputCountKey)])
					assert.Equal(t, []string{"stop"}, span[string(genaiconv.ResponseFinishReasonsKey)])
					assert.EqualValues(t, "done", span[string(semconv.GenAIStreamTerminalKey)])
				}
				assert.EqualValues(t, 19, attributes(client)[genaiconv.UsageInputTokensKey])
				assert.NotContains(t, attributes(server), genaiconv.UsageInputTokensKey, "told once, by the call")
				assert.Equal(t, tt.parsed, dialect.events.Load())
				for name, kind := range map[string]int{semconv.GenAITimeToFirstTokenName: 2, genaiconv.ClientInferenceDurationName: 1} {
					count, _ := o.histogram(name)
					assert.EqualValues(t, kind, count, name)
				}
			})
		})
	}
}

func flat[K ~string](m map[K]any) map[string]any {
	out := make(map[string]any, len(m))
	for k, v := range m {
		out[string(k)] = v
	}
	return out
}

// The SERVER span counts from arrival to the flush, the CLIENT span from sending to
// reading.
func TestTheFirstTokenOfAProxyCountsWhenItIsFlushed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newTelemetry(t)
		upstream, stopUpstream := serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			say(w)
			time.Sleep(30 * time.Millisecond)
			say(w, textEvent)
			time.Sleep(time.Second)
			say(w, finishEvent, doneEvent)
		}))
		defer stopUpstream()
		proxy := genaihttp.NewReverseProxy(toEngine(upstream), o.options()...)
		gateway, stopGateway := serve(genaihttp.NewHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(10 * time.Millisecond)
			proxy.ServeHTTP(&slowFlusher{w}, r)
		}), o.options()...))
		defer stopGateway()
		resp, err := post(t.Context(), &http.Client{Transport: gateway})
		require.NoError(t, err)
		_, _ = readAll(resp)
		resp.Body.Close()
		synctest.Wait()
		assert.Equal(t, 30.0, attributes(o.named("chat gpt-fx"))[semconv.LLMTTFTMsKey])
		assert.Equal(t, 10.0+30+5, attributes(o.named("POST /v1/chat/completions"))[semconv.LLMTTFTMsKey])
	})
}

// A slowFlusher is a middleware that takes its time for each flush.
type slowFlusher struct{ http.ResponseWriter }

func (s *slowFlusher) Unwrap() http.ResponseWriter { return s.ResponseWriter }
func (s *slowFlusher) Flush() {
	time.Sleep(5 * time.Millisecond)
	_ = http.NewResponseController(s.ResponseWriter).Flush()
}

// What the client reads where the model server cannot be reached is the proxy's, and
// the span still names the model.
func TestAServerThatCannotBeReached(t *testing.T) {
	refused := errors.New("dial tcp: refused")
	dialer := func() *http.Transport {
		return &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return nil, refused }}
	}
	for _, tt := range []struct {
		name  string
		hook  func(*httputil.ReverseProxy)
		write func(*http.Request)
		span  string
		code  int
	}{
		{name: "by the proxy's own words", span: "chat gpt-fx", code: 502},
		{name: "by an ErrorHandler", span: "chat gpt-fx", code: 418, hook: func(p *httputil.ReverseProxy) {
			p.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, err error) {
				assert.ErrorIs(t, err, refused)
				w.WriteHeader(http.StatusTeapot)
			}
		}},
		{name: "chunked", span: "chat gpt-fx", code: 502, write: func(r *http.Request) { r.ContentLength = -1 }},
		{name: "of a request that waits to be asked for its body", span: "chat", code: 502, write: func(r *http.Request) { r.Header.Set("Expect", "100-continue") }},
		{name: "of a request too long to be read", span: "chat", code: 502, write: func(r *http.Request) {
			r.Body = io.NopCloser(strings.NewReader(padded(257 << 10)))
			r.ContentLength = 257 << 10
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := newTelemetry(t)
			proxy := toEngine(dialer())
			if tt.hook != nil {
				tt.hook(proxy)
			}
			gateway := httptest.NewServer(genaihttp.NewReverseProxy(proxy, o.options()...))
			defer gateway.Close()
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, gateway.URL+"/v1/chat/completions", strings.NewReader(chatRequest))
			require.NoError(t, err)
			if tt.write != nil {
				tt.write(req)
			}
			resp, err := gateway.Client().Do(req)
			require.NoError(t, err)
			resp.Body.Close()
			gateway.Close()
			assert.Equal(t, tt.code, resp.StatusCode)
			span := o.named(tt.span)
			assert.Equal(t, trace.SpanKindClient, span.SpanKind())
			checkEnding(t, span, "", "_OTHER")
			assert.EqualValues(t, tt.code, attributes(o.named("POST /v1/chat/completions"))["http.response.status_code"])
		})
	}
}

// A client that only slowly tells what it wants gets the proxy's answer as soon as
// from a plain one.
func TestADrainedBodyDelaysNoAnswer(t *testing.T) {
	wait := func(t *testing.T, wrap func(*httputil.ReverseProxy) http.Handler) time.Duration {
		t.Helper()
		var took time.Duration
		synctest.Test(t, func(t *testing.T) {
			proxy := toEngine(baseTransport(func(r *http.Request) (*http.Response, error) {
				r.Body.Close()
				return nil, errors.New("refused")
			}))
			gateway, stop := serve(wrap(proxy))
			defer stop()
			start := time.Now()
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://gateway/v1/chat/completions", nil)
			require.NoError(t, err)
			body, say := io.Pipe()
			req.Body = body
			go func() {
				for range 4 {
					time.Sleep(time.Second)
					_, _ = io.WriteString(say, " ")
				}
				_, _ = io.WriteString(say, chatRequest)
				say.Close()
			}()
			resp, err := (&http.Client{Transport: gateway}).Do(req)
			require.NoError(t, err)
			took = time.Since(start)
			resp.Body.Close()
			synctest.Wait()
		})
		return took
	}
	o := newTelemetry(t)
	plain := wait(t, func(p *httputil.ReverseProxy) http.Handler { return p })
	ours := wait(t, func(p *httputil.ReverseProxy) http.Handler { return genaihttp.NewReverseProxy(p, o.options()...) })
	assert.Equal(t, plain, ours)
	assert.Equal(t, 4*time.Second, plain, "net/http reads before it answers")
	assert.Equal(t, "chat gpt-fx", o.spans.Ended()[0].Name())
}

// An upgraded connection is the proxy's: it must be able to take both ends.
func TestAProxyCanStillUpgrade(t *testing.T) {
	o := newTelemetry(t)
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if !assert.NoError(t, err) {
			return
		}
		defer conn.Close()
		fmt.Fprint(rw, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		_ = rw.Flush()
		line, _ := rw.ReadString('\n')
		fmt.Fprint(rw, "echo "+line)
		_ = rw.Flush()
	}))
	defer upstream.Close()
	target, err := url.Parse(upstream.URL)
	require.NoError(t, err)
	base := &http.Transport{}
	defer base.CloseIdleConnections()
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, Transport: base, ErrorLog: quiet}
	gateway := httptest.NewServer(genaihttp.NewReverseProxy(proxy, o.options()...))
	defer gateway.Close()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, gateway.URL+"/v1/realtime", nil)
	require.NoError(t, err)
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", "echo")
	resp, err := gateway.Client().Do(req)
	require.NoError(t, err)
	require.Equal(t, http.StatusSwitchingProtocols, resp.StatusCode)
	conn := resp.Body.(io.ReadWriteCloser)
	_, err = io.WriteString(conn, "hello\n")
	require.NoError(t, err)
	line, err := bufio.NewReader(conn).ReadString('\n')
	require.NoError(t, err)
	assert.Equal(t, "echo hello\n", line)
	conn.Close()
	require.Eventually(t, func() bool { return o.ended.Load() == 1 }, 10*time.Second, time.Millisecond)
	checkEnding(t, o.only(), "", "")
}

// Whoever wraps their transport already has each call once all the same.
func TestAWrappedTransportIsNotWrappedTwice(t *testing.T) {
	o := newTelemetry(t)
	upstream, stop := serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		say(w, textEvent, finishEvent, doneEvent)
	}))
	defer stop()
	proxy := toEngine(genaihttp.NewTransport(upstream, o.options()...))
	given := *proxy
	gateway, stopGateway := serve(genaihttp.NewReverseProxy(proxy, o.options()...))
	defer stopGateway()
	assert.Equal(t, given.Transport, proxy.Transport)
	assert.Nil(t, proxy.ModifyResponse, "the caller's own proxy is not touched")
	resp, err := post(t.Context(), &http.Client{Transport: gateway})
	require.NoError(t, err)
	_, _ = readAll(resp)
	resp.Body.Close()
	require.Eventually(t, func() bool { return o.ended.Load() == 2 }, 10*time.Second, time.Millisecond)
}
