package genaihttp_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/genaitrace/otelgenai/middleware/genaihttp"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// Every way in which a request can die, seen by a client and by a gateway which
// passes it on, in one run: each span that started has ended, once, and says how;
// no goroutine is left (see TestMain).
func TestEveryDeathEndsEverySpanOnce(t *testing.T) {
	const left, cut = semconv.GenAIStreamTerminalClientCancelled, semconv.GenAIStreamTerminalTruncated
	const timeout = semconv.GenAIStreamTerminalTimeout
	stay := func(gone <-chan struct{}) { <-gone }
	for _, tt := range []struct {
		name     string
		upstream func(w http.ResponseWriter, gone <-chan struct{})
		use      func(t *testing.T, cancel context.CancelFunc, resp *http.Response)
		timeout  time.Duration
		wait     time.Duration // until all is over
		stuck    bool          // the gateway's handler does not return
		client   semconv.GenAIStreamTerminalAttr
		server   semconv.GenAIStreamTerminalAttr // of the gateway's spans
	}{
		{name: "EOF", client: "done", server: "done",
			upstream: func(w http.ResponseWriter, _ <-chan struct{}) { say(w, textEvent, finishEvent, doneEvent) }},
		{name: "Close", client: left, server: left, upstream: func(_ http.ResponseWriter, gone <-chan struct{}) { stay(gone) },
			use: func(_ *testing.T, _ context.CancelFunc, resp *http.Response) { resp.Body.Close() }},
		{name: "cancel", client: left, server: left, upstream: func(_ http.ResponseWriter, gone <-chan struct{}) { stay(gone) },
			use: func(_ *testing.T, cancel context.CancelFunc, resp *http.Response) { cancel() }},
		{name: "deadline", client: timeout, server: left, timeout: time.Second, upstream: func(_ http.ResponseWriter, gone <-chan struct{}) { stay(gone) }},
		{name: "the server resets", client: cut, server: cut, upstream: func(w http.ResponseWriter, _ <-chan struct{}) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				conn.Close()
			}
		}},
		{name: "the server panics", client: cut, server: cut, upstream: func(http.ResponseWriter, <-chan struct{}) { panic("boom") }},
		{name: "the server aborts", client: cut, server: cut, upstream: func(http.ResponseWriter, <-chan struct{}) { panic(http.ErrAbortHandler) }},
		{name: "the server ends early", client: cut, server: cut, upstream: func(http.ResponseWriter, <-chan struct{}) {}},
		{name: "abandoned, and the context ends", client: left, server: left, wait: time.Minute,
			upstream: func(_ http.ResponseWriter, gone <-chan struct{}) { stay(gone) },
			use: func(_ *testing.T, cancel context.CancelFunc, _ *http.Response) {
				time.Sleep(time.Second)
				cancel()
			}},
		{name: "abandoned for ever", client: timeout, server: timeout, wait: time.Hour,
			upstream: func(_ http.ResponseWriter, gone <-chan struct{}) { stay(gone) },
			use:      func(*testing.T, context.CancelFunc, *http.Response) {}},
		{name: "idle", client: timeout, server: timeout, wait: time.Hour, upstream: func(_ http.ResponseWriter, gone <-chan struct{}) { stay(gone) },
			use: func(_ *testing.T, _ context.CancelFunc, resp *http.Response) { go io.Copy(io.Discard, resp.Body) }},
		{name: "the gateway never returns, its client leaves", stuck: true, client: left, server: left, wait: time.Minute,
			upstream: func(_ http.ResponseWriter, gone <-chan struct{}) { stay(gone) },
			use:      func(_ *testing.T, _ context.CancelFunc, resp *http.Response) { resp.Body.Close() }},
		{name: "the gateway never returns, its client waits", stuck: true, client: timeout, server: timeout, wait: time.Hour,
			upstream: func(w http.ResponseWriter, _ <-chan struct{}) { say(w, finishEvent) },
			use:      func(_ *testing.T, _ context.CancelFunc, resp *http.Response) { go io.Copy(io.Discard, resp.Body) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newTelemetry(t)
				release := make(chan struct{})
				upstream, stopUpstream := serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.Copy(io.Discard, r.Body)
					time.Sleep(time.Millisecond) // a ReverseProxy breaks where the answer outruns the request
					say(w, roleEvent, textEvent)
					tt.upstream(w, r.Context().Done())
				}))
				proxy := genaihttp.NewReverseProxy(toEngine(upstream), o.options()...)
				gateway, stopGateway := serve(genaihttp.NewHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if tt.stuck {
						say(w, roleEvent, textEvent)
						<-release
						return
					}
					proxy.ServeHTTP(w, r)
				}), o.options()...))

				ctx, cancel := context.WithCancel(t.Context())
				if tt.timeout > 0 {
					ctx, cancel = context.WithTimeout(t.Context(), tt.timeout)
				}
				defer cancel()
				client := &http.Client{Transport: genaihttp.NewTransport(gateway, o.options()...)}
				resp, err := post(ctx, client)
				require.NoError(t, err)
				if tt.use == nil {
					_, _ = readAll(resp)
					resp.Body.Close()
				} else {
					readUntil(t, resp, textEvent)
					tt.use(t, cancel, resp)
				}
				time.Sleep(tt.wait)
				synctest.Wait()

				spans := 3
				if tt.stuck {
					spans = 2
				}
				require.EqualValues(t, spans, o.started.Load())
				require.EqualValues(t, spans, o.ended.Load(), "before anything is cleaned up")
				for _, span := range o.spans.Ended() {
					got := attributes(span)
					want := tt.client
					if span.Parent().IsValid() { // it is the gateway's
						want = tt.server
					}
					assert.EqualValues(t, want, got[semconv.GenAIStreamTerminalKey], "%s %s", span.SpanKind(), span.Name())
					assert.Contains(t, got, semconv.LLMTTFTMsKey)
				}

				close(release)
				cancel()
				resp.Body.Close()
				stopGateway()
				stopUpstream()
				synctest.Wait()
				assert.EqualValues(t, spans, o.ended.Load(), "and never twice")
				durations, _ := o.histogram(genaiconv.ClientInferenceDurationName)
				assert.EqualValues(t, spans-1, durations)
			})
		})
	}
}

// A handler that does not return, in the ways that have no stream.
func TestAHandlerThatNeverReturns(t *testing.T) {
	for _, tt := range []struct {
		name     string
		begin    func(w http.ResponseWriter)
		leaves   bool
		ended    time.Duration // 0: never
		terminal semconv.GenAIStreamTerminalAttr
	}{
		{"its client leaves", func(http.ResponseWriter) {}, true, 10 * time.Second, "client_cancelled"},
		{"its client waits for an answer", func(http.ResponseWriter) {}, false, time.Hour, "timeout"},
		{"its client waits for more", func(w http.ResponseWriter) { w.WriteHeader(http.StatusOK) }, false, 30 * time.Minute, "timeout"},
		{"the connection is its own", func(w http.ResponseWriter) {
			conn, _, _ := http.NewResponseController(w).Hijack()
			conn.Close()
		}, true, 0, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newTelemetry(t)
				release, returned := make(chan struct{}), make(chan struct{})
				l := newPipeListener()
				server := &http.Server{ErrorLog: quiet, Handler: genaihttp.NewHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					defer close(returned)
					_, _ = io.Copy(io.Discard, r.Body)
					tt.begin(w)
					<-release
				}), o.options()...)}
				go server.Serve(l)
				conn, err := l.dial(t.Context(), "", "")
				require.NoError(t, err)
				go io.Copy(io.Discard, conn)
				_, err = io.WriteString(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}")
				require.NoError(t, err)
				synctest.Wait()
				if tt.leaves {
					conn.Close()
				}
				if tt.ended == 0 {
					time.Sleep(48 * time.Hour)
					assert.Zero(t, o.ended.Load())
				} else {
					time.Sleep(tt.ended - time.Nanosecond)
					assert.Zero(t, o.ended.Load())
					time.Sleep(time.Nanosecond)
					synctest.Wait()
					errType := ""
					if tt.terminal == semconv.GenAIStreamTerminalTimeout {
						errType = "timeout"
					}
					checkEnding(t, o.only(), tt.terminal, errType)
					durations, _ := o.histogram("http.server.request.duration")
					assert.EqualValues(t, 1, durations)
				}
				close(release)
				<-returned
				conn.Close()
				_ = server.Close()
				synctest.Wait()
				o.only()
				durations, _ := o.histogram("http.server.request.duration")
				assert.EqualValues(t, 1, durations, "recorded once")
				if tt.ended > 0 {
					assert.Equal(t, "/v1/chat/completions", o.routeOf("http.server.request.duration"))
				}
			})
		})
	}
}

// A handler that is slow and alive is none of those.
func TestAHandlerThatWritesNowAndThenIsAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newTelemetry(t)
		gateway, stop := serve(genaihttp.NewHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			time.Sleep(50 * time.Minute) // it thinks
			for range 10 {
				say(w, textEvent)
				time.Sleep(14 * time.Minute)
			}
			say(w, finishEvent, doneEvent)
		}), o.options()...))
		defer stop()
		resp, err := post(t.Context(), &http.Client{Transport: gateway})
		require.NoError(t, err)
		got, err := readAll(resp)
		require.NoError(t, err)
		resp.Body.Close()
		synctest.Wait()
		assert.Equal(t, strings.Repeat(textEvent, 10)+finishEvent+doneEvent, got)
		checkEnding(t, o.only(), "done", "")
	})
}
