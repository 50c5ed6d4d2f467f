package genaihttp_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/genaitrace/otelgenai/middleware/genaihttp"
	"github.com/genaitrace/otelgenai/semconv"
)

// A gateway made of the standard library's proxy: the transport inside the
// handler. The tree is SERVER > CLIENT, each ends once however the stream does,
// and each has its own time to first token.
func TestAReverseProxyBetweenBothSides(t *testing.T) {
	for _, tt := range []struct {
		name                 string
		upstream             http.HandlerFunc
		refuse               bool // upstream takes the request and breaks
		leave                bool // the client leaves after the first token
		server, client       semconv.GenAIStreamTerminalAttr
		serverErr, clientErr string
		ttft                 bool
	}{
		{
			name: "the stream is complete",
			upstream: func(w http.ResponseWriter, _ *http.Request) {
				time.Sleep(30 * time.Millisecond)
				say(w, textEvent)
				time.Sleep(time.Millisecond)
				say(w, finishEvent, usageEvent, doneEvent)
			},
			server: "done", client: "done", ttft: true,
		},
		{
			name: "upstream dies",
			upstream: func(w http.ResponseWriter, _ *http.Request) {
				time.Sleep(30 * time.Millisecond)
				say(w, textEvent)
				time.Sleep(time.Millisecond)
				panic(http.ErrAbortHandler)
			},
			server: "truncated", client: "truncated", serverErr: "stream_truncated", clientErr: "stream_truncated", ttft: true,
		},
		{
			name: "upstream ends early and politely",
			upstream: func(w http.ResponseWriter, _ *http.Request) {
				time.Sleep(30 * time.Millisecond)
				say(w, textEvent)
			},
			server: "truncated", client: "truncated", serverErr: "stream_truncated", clientErr: "stream_truncated", ttft: true,
		},
		{
			name: "the client leaves",
			upstream: func(w http.ResponseWriter, r *http.Request) {
				time.Sleep(30 * time.Millisecond)
				say(w, textEvent)
				<-r.Context().Done()
			},
			leave:  true,
			server: "client_cancelled", client: "client_cancelled", ttft: true,
		},
		{
			name:     "upstream is too busy",
			upstream: func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "secret", http.StatusTooManyRequests) },
			client:   "http_error", clientErr: "429",
		},
		{
			name:   "upstream breaks before it answers",
			refuse: true,
			server: "http_error", serverErr: "502", clientErr: "_OTHER",
		},
	} {
		for wiring, hooked := range map[string]bool{"by hand": false, "NewReverseProxy": true} {
			t.Run(tt.name+", "+wiring, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					o := newTelemetry(t)
					var seen http.Header
					upstream, stopUpstream := serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						seen = r.Header
						_, _ = io.Copy(io.Discard, r.Body)
						tt.upstream(w, r)
					}))
					defer stopUpstream()
					var base http.RoundTripper = upstream
					if tt.refuse {
						base = baseTransport(func(r *http.Request) (*http.Response, error) {
							_, _ = io.Copy(io.Discard, r.Body)
							return nil, errors.New("refused")
						})
					}
					proxy := &httputil.ReverseProxy{
						Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: "engine.internal"}) },
						Transport: base,
						ErrorLog:  quiet,
					}
					var next http.Handler = proxy
					if hooked {
						next = genaihttp.NewReverseProxy(proxy, o.options()...)
					} else {
						proxy.Transport = genaihttp.NewTransport(base, o.options()...)
					}
					gateway, stopGateway := serve(genaihttp.NewHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						time.Sleep(10 * time.Millisecond) // what comes before the proxy
						next.ServeHTTP(w, r)
					}), o.options()...))
					defer stopGateway()

					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					start := time.Now()
					resp, err := post(ctx, &http.Client{Transport: gateway})
					require.NoError(t, err)
					if tt.leave {
						readUntil(t, resp, textEvent)
						assert.Equal(t, 40*time.Millisecond, time.Since(start), "the proxy holds nothing back")
						cancel()
					}
					_, _ = readAll(resp)
					resp.Body.Close()
					synctest.Wait()

					require.EqualValues(t, 2, o.started.Load())
					require.EqualValues(t, 2, o.ended.Load())
					server, client := o.named("POST /v1/chat/completions"), o.named("chat gpt-fx")
					assert.Equal(t, server.SpanContext().SpanID(), client.Parent().SpanID())
					checkEnding(t, server, tt.server, tt.serverErr)
					checkEnding(t, client, tt.client, tt.clientErr)
					if !tt.refuse {
						assert.Equal(t, []string{traceparent(client.SpanContext())}, seen["Traceparent"])
						assert.Equal(t, []string{"genai=c:1"}, seen["Tracestate"])
					}
					if tt.ttft {
						assert.Equal(t, 40.0, attributes(server)[semconv.LLMTTFTMsKey], "from arrival at the gateway")
						assert.Equal(t, 30.0, attributes(client)[semconv.LLMTTFTMsKey], "from sending")
					} else {
						assert.NotContains(t, attributes(server), semconv.LLMTTFTMsKey)
					}
					assert.NotContains(t, o.seen(), "secret")
				})
			})
		}
	}
}
