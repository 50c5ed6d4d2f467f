package genaihttp_test

import (
	"context"
	"errors"
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

	"github.com/genaitrace/otelgenai/middleware/genaihttp"
	"github.com/genaitrace/otelgenai/semconv"
)

// readAll reads to the end, whatever it is.
func readAll(resp *http.Response) (string, error) {
	b, err := io.ReadAll(resp.Body)
	return string(b), err
}

// readUntil reads until an event was seen.
func readUntil(t *testing.T, resp *http.Response, event string) {
	t.Helper()
	var got strings.Builder
	p := make([]byte, 512)
	for !strings.Contains(got.String(), event) {
		n, err := resp.Body.Read(p)
		got.Write(p[:n])
		require.NoError(t, err, "before %q", event)
	}
}

// Every way in which a stream can end: the span ends, exactly once, and says
// how. The server's part of a row runs until its client has left.
func TestEveryEndOfAStreamEndsTheSpanOnce(t *testing.T) {
	leave := func(_ *testing.T, _ context.CancelFunc, resp *http.Response) { resp.Body.Close() }
	drain := func(t *testing.T, _ context.CancelFunc, resp *http.Response) {
		_, err := readAll(resp)
		assert.NoError(t, err)
		leave(t, nil, resp)
	}
	for _, tt := range []struct {
		name     string
		serve    func(w http.ResponseWriter, gone <-chan struct{})
		timeout  time.Duration // of the request's context
		read     func(t *testing.T, cancel context.CancelFunc, resp *http.Response)
		terminal semconv.GenAIStreamTerminalAttr
		errType  string
		lasts    time.Duration // of the span
	}{
		{
			name: "it is complete",
			serve: func(w http.ResponseWriter, _ <-chan struct{}) {
				say(w, roleEvent, textEvent)
				time.Sleep(time.Second)
				say(w, finishEvent, usageEvent, doneEvent)
			},
			read: drain, terminal: "done", lasts: time.Second,
		},
		{
			name:  "it lacks its end mark",
			serve: func(w http.ResponseWriter, _ <-chan struct{}) { say(w, textEvent, finishEvent) },
			read:  drain, terminal: "finish",
		},
		{
			name:  "it lacks its end and the server is polite about it",
			serve: func(w http.ResponseWriter, _ <-chan struct{}) { say(w, roleEvent, textEvent) },
			read:  drain, terminal: "truncated", errType: "stream_truncated",
		},
		{
			name: "the server dies",
			serve: func(w http.ResponseWriter, _ <-chan struct{}) {
				say(w, roleEvent, textEvent)
				panic(http.ErrAbortHandler)
			},
			read: func(t *testing.T, _ context.CancelFunc, resp *http.Response) {
				_, err := readAll(resp)
				assert.ErrorIs(t, err, io.ErrUnexpectedEOF)
				assert.NoError(t, resp.Body.Close())
			},
			terminal: "truncated", errType: "stream_truncated",
		},
		{
			name: "the server dies after the end mark",
			serve: func(w http.ResponseWriter, _ <-chan struct{}) {
				say(w, textEvent, finishEvent, doneEvent)
				panic(http.ErrAbortHandler)
			},
			read: func(_ *testing.T, _ context.CancelFunc, resp *http.Response) {
				_, _ = readAll(resp)
				resp.Body.Close()
			},
			terminal: "done",
		},
		{
			name:  "the server sends an error",
			serve: func(w http.ResponseWriter, _ <-chan struct{}) { say(w, textEvent, errorEvent) },
			read:  drain, terminal: "error", errType: "server_error",
		},
		{
			name:  "the server sends an error and the end mark",
			serve: func(w http.ResponseWriter, _ <-chan struct{}) { say(w, textEvent, errorEvent, doneEvent) },
			read:  drain, terminal: "error", errType: "server_error",
		},
		{
			name: "the reader closes it early",
			serve: func(w http.ResponseWriter, gone <-chan struct{}) {
				say(w, roleEvent, textEvent)
				<-gone
			},
			read: func(t *testing.T, _ context.CancelFunc, resp *http.Response) {
				readUntil(t, resp, textEvent)
				time.Sleep(2 * time.Second)
				leave(t, nil, resp)
			},
			terminal: "client_cancelled", lasts: 2 * time.Second,
		},
		{
			name: "the reader closes it unread",
			serve: func(w http.ResponseWriter, gone <-chan struct{}) {
				say(w)
				<-gone
			},
			read: leave, terminal: "client_cancelled",
		},
		{
			name: "the reader closes it after the end mark, before EOF",
			serve: func(w http.ResponseWriter, gone <-chan struct{}) {
				say(w, textEvent, finishEvent, doneEvent)
				<-gone
			},
			read: func(t *testing.T, _ context.CancelFunc, resp *http.Response) {
				readUntil(t, resp, doneEvent)
				leave(t, nil, resp)
			},
			terminal: "done",
		},
		{
			name: "the reader closes it twice",
			serve: func(w http.ResponseWriter, gone <-chan struct{}) {
				say(w, textEvent)
				<-gone
			},
			read: func(t *testing.T, _ context.CancelFunc, resp *http.Response) {
				readUntil(t, resp, textEvent)
				leave(t, nil, resp)
				leave(t, nil, resp)
			},
			terminal: "client_cancelled",
		},
		{
			name: "the context is cancelled while the reader waits",
			serve: func(w http.ResponseWriter, gone <-chan struct{}) {
				say(w, textEvent)
				<-gone
			},
			read: func(t *testing.T, cancel context.CancelFunc, resp *http.Response) {
				time.AfterFunc(3*time.Second, cancel)
				_, err := readAll(resp)
				assert.ErrorIs(t, err, context.Canceled)
				leave(t, nil, resp)
			},
			terminal: "client_cancelled", lasts: 3 * time.Second,
		},
		{
			name: "the context is cancelled while nobody reads or closes",
			serve: func(w http.ResponseWriter, gone <-chan struct{}) {
				say(w, textEvent)
				<-gone
			},
			read: func(t *testing.T, cancel context.CancelFunc, resp *http.Response) {
				readUntil(t, resp, textEvent)
				time.Sleep(4 * time.Second)
				cancel()
				time.Sleep(time.Hour)
			},
			terminal: "client_cancelled", lasts: 4 * time.Second,
		},
		{
			name: "the context is cancelled after the finish reason",
			serve: func(w http.ResponseWriter, gone <-chan struct{}) {
				say(w, textEvent, finishEvent)
				<-gone
			},
			read: func(t *testing.T, cancel context.CancelFunc, resp *http.Response) {
				readUntil(t, resp, finishEvent)
				cancel()
				time.Sleep(time.Hour)
			},
			terminal: "finish",
		},
		{
			name:    "the deadline passes while the reader waits",
			timeout: 5 * time.Second,
			serve: func(w http.ResponseWriter, gone <-chan struct{}) {
				say(w, textEvent)
				<-gone
			},
			read: func(t *testing.T, _ context.CancelFunc, resp *http.Response) {
				_, err := readAll(resp)
				assert.ErrorIs(t, err, context.DeadlineExceeded)
				leave(t, nil, resp)
			},
			terminal: "timeout", errType: "timeout", lasts: 5 * time.Second,
		},
		{
			name:    "the deadline passes and the reader closes at that moment",
			timeout: 5 * time.Second,
			serve: func(w http.ResponseWriter, gone <-chan struct{}) {
				say(w, textEvent)
				<-gone
			},
			read: func(t *testing.T, _ context.CancelFunc, resp *http.Response) {
				readUntil(t, resp, textEvent)
				<-resp.Request.Context().Done()
				leave(t, nil, resp)
			},
			terminal: "timeout", errType: "timeout", lasts: 5 * time.Second,
		},
		{
			name: "nobody reads or closes, ever",
			serve: func(w http.ResponseWriter, gone <-chan struct{}) {
				say(w, textEvent)
				<-gone
			},
			read: func(t *testing.T, cancel context.CancelFunc, resp *http.Response) {
				readUntil(t, resp, textEvent)
				time.Sleep(31 * time.Minute)
				cancel() // too late to matter
				synctest.Wait()
			},
			terminal: "timeout", errType: "timeout", lasts: 30 * time.Minute,
		},
		{
			name: "nobody reads until it is closed an hour later",
			serve: func(w http.ResponseWriter, gone <-chan struct{}) {
				say(w, textEvent)
				<-gone
			},
			read: func(t *testing.T, _ context.CancelFunc, resp *http.Response) {
				time.Sleep(time.Hour)
				leave(t, nil, resp)
			},
			terminal: "timeout", errType: "timeout", lasts: 15 * time.Minute,
		},
		{
			name: "the reader rests for an hour and gets the rest of it",
			serve: func(w http.ResponseWriter, _ <-chan struct{}) {
				say(w, textEvent)
				say(w, textEvent, finishEvent, doneEvent)
			},
			read: func(t *testing.T, _ context.CancelFunc, resp *http.Response) {
				readUntil(t, resp, textEvent)
				time.Sleep(time.Hour)
				rest, err := readAll(resp)
				assert.NoError(t, err)
				assert.Equal(t, textEvent+finishEvent+doneEvent, rest)
				leave(t, nil, resp)
			},
			terminal: "timeout", errType: "timeout", lasts: 30 * time.Minute,
		},
		{
			name: "it is slow but alive for hours",
			serve: func(w http.ResponseWriter, _ <-chan struct{}) {
				for range 20 {
					say(w, textEvent)
					time.Sleep(14 * time.Minute)
				}
				say(w, finishEvent, doneEvent)
			},
			read: drain, terminal: "done", lasts: 20 * 14 * time.Minute,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newTelemetry(t)
				base, stop := serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.Copy(io.Discard, r.Body)
					tt.serve(w, r.Context().Done())
				}))
				defer stop()
				ctx, cancel := context.WithCancel(t.Context())
				if tt.timeout > 0 {
					ctx, cancel = context.WithTimeout(t.Context(), tt.timeout)
				}
				defer cancel()
				resp, err := post(ctx, &http.Client{Transport: genaihttp.NewTransport(base, o.options()...)})
				require.NoError(t, err)
				tt.read(t, cancel, resp)

				span := o.only()
				checkEnding(t, span, tt.terminal, tt.errType)
				assert.Equal(t, tt.lasts, span.EndTime().Sub(span.StartTime()), "duration of the span")
				resp.Body.Close()
				cancel()
				synctest.Wait()
				o.only()
			})
		})
	}
}

// The timeout of http.Client is a deadline like another, although the client
// cancels the request by two ways then, and either may come first.
func TestTheTimeoutOfTheClientIsATimeout(t *testing.T) {
	for name, events := range map[string][]string{"before the answer": nil, "in the stream": {textEvent}} {
		t.Run(name, func(t *testing.T) {
			for range 50 {
				synctest.Test(t, func(t *testing.T) {
					o := newTelemetry(t)
					base, stop := serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						_, _ = io.Copy(io.Discard, r.Body)
						if events != nil {
							say(w, events...)
						}
						<-r.Context().Done()
					}))
					defer stop()
					resp, err := post(t.Context(), &http.Client{Transport: genaihttp.NewTransport(base, o.options()...), Timeout: time.Second})
					if events != nil {
						require.NoError(t, err)
						_, err = readAll(resp)
						resp.Body.Close()
					}
					assert.ErrorIs(t, err, context.DeadlineExceeded)
					checkEnding(t, o.only(), "timeout", "timeout")
				})
			}
		})
	}
}

// A reset connection, which only a real socket can show.
func TestAResetConnectionIsATruncatedStream(t *testing.T) {
	o := newTelemetry(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		say(w, textEvent)
		conn, _, err := http.NewResponseController(w).Hijack()
		if assert.NoError(t, err) {
			_ = conn.(*net.TCPConn).SetLinger(0)
			conn.Close()
		}
	}))
	defer server.Close()
	base := &http.Transport{}
	defer base.CloseIdleConnections()
	client := &http.Client{Transport: genaihttp.NewTransport(base, o.options()...)}
	resp, err := client.Post(server.URL+"/v1/chat/completions", "application/json", strings.NewReader(chatRequest))
	require.NoError(t, err)
	_, err = readAll(resp)
	require.Error(t, err)
	resp.Body.Close()
	checkEnding(t, o.only(), "truncated", "stream_truncated")
}

// Each event reaches its reader at the very time at which the server wrote it,
// and the bytes are the server's.
func TestTheReaderGetsEachEventWhenItWasWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newTelemetry(t)
		start := time.Now()
		events := []string{roleEvent, textEvent, textEvent, ": ping\n\n", textEvent, finishEvent, doneEvent}
		base, stop := serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			for _, e := range events {
				time.Sleep(7 * time.Millisecond)
				say(w, e)
			}
		}))
		defer stop()
		resp, err := post(t.Context(), &http.Client{Transport: genaihttp.NewTransport(base, o.options()...)})
		require.NoError(t, err)
		p := make([]byte, 4096)
		for i, e := range events {
			n, err := resp.Body.Read(p)
			require.NoError(t, err)
			assert.Equal(t, e, string(p[:n]))
			assert.Equal(t, time.Duration(i+1)*7*time.Millisecond, time.Since(start), "event %d", i)
		}
		_, err = resp.Body.Read(p)
		assert.True(t, errors.Is(err, io.EOF))
		resp.Body.Close()

		got := attributes(o.only())
		assert.InDelta(t, 0.007, got["gen_ai.response.time_to_first_chunk"], 1e-12)
		assert.InDelta(t, 14.0, got[semconv.LLMTTFTMsKey], 1e-9)
		assert.EqualValues(t, 5, got[semconv.GenAIChunkCountKey])
		assert.EqualValues(t, 3, got[semconv.GenAIChunkOutputCountKey])
	})
}
