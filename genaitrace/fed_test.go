package genaitrace_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/middleware/genaihttp"
	"github.com/genaitrace/otelgenai/semconv"
)

// events are the data of an event stream, as a client library gives them.
func events(body io.ReadCloser) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		defer body.Close()
		lines := bufio.NewScanner(body)
		for lines.Scan() {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok && data != "[DONE]" && !yield(data, nil) {
				return
			}
		}
		if err := lines.Err(); err != nil {
			yield("", err)
		}
	}
}

// A real client on a real transport: one call, and each chunk once.
func TestAStreamThatTheTransportStampedIsNotStampedTwice(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		for _, data := range []string{
			`{"id":"resp-1","model":"m","choices":[{"index":0,"delta":{"role":"assistant"}}]}`,
			`{"id":"resp-1","model":"m","choices":[{"index":0,"delta":{"content":"Hel"}}]}`,
			`{"id":"resp-1","model":"m","choices":[{"index":0,"delta":{"content":"lo"},"finish_reason":"stop"}]}`,
			`[DONE]`,
		} {
			fmt.Fprintf(w, "data: %s\n\n", data)
			_ = http.NewResponseController(w).Flush()
		}
	}))
	defer server.Close()
	for name, leave := range map[string]bool{"read to its end": false, "left after an item": true} {
		t.Run(name, func(t *testing.T) {
			r := record(t)
			transport := genaihttp.NewTransport(nil, genaihttp.WithTracerProvider(r.provider), genaihttp.WithMeterProvider(r.meters))
			defer transport.(interface{ CloseIdleConnections() }).CloseIdleConnections()
			ctx, call := r.StartCall(t.Context(), genaitrace.Request{Model: "m", Stream: true})
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+"/v1/chat/completions", strings.NewReader(`{}`))
			require.NoError(t, err)
			resp, err := transport.RoundTrip(req)
			require.NoError(t, err)
			for _, err := range genaitrace.RangeChunks(call, events(resp.Body), nil) {
				require.NoError(t, err)
				if leave {
					break
				}
			}
			s := r.span("chat m")
			s.assertStatus("")
			assert.Equal(t, "resp-1", s.text("gen_ai.response.id"), "the transport told what it read before the call ended")
			if !leave {
				assert.Equal(t, int64(3), s.int(semconv.GenAIChunkCountKey))
				assert.Equal(t, int64(2), s.int(semconv.GenAIChunkOutputCountKey), "the transport knows a role from text")
				assert.Equal(t, "done", s.text(semconv.GenAIStreamTerminalKey))
			}
		})
	}
}

// The transport and the call notice the end of a context in any order.
func TestWhatATransportReportsAtTheEndOfTheContextIsRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record(t)
		ctx, cancel := context.WithCancel(t.Context())
		ctx, call := r.StartCall(ctx, genaitrace.Request{Stream: true})
		require.Equal(t, 1, call.Watch())
		context.AfterFunc(ctx, func() {
			time.Sleep(time.Millisecond)
			call.SetResponse("resp-1", "")
		})
		genaitrace.RangeChunks(call, yields("a"), nil) // nobody reads it
		time.Sleep(10 * time.Millisecond)
		cancel()
		time.Sleep(time.Second)
		s := r.span("chat")
		assert.Equal(t, "resp-1", s.text("gen_ai.response.id"))
		assert.Equal(t, "client_cancelled", s.text(semconv.GenAIStreamTerminalKey))
		assert.Equal(t, 10*time.Millisecond, s.EndTime().Sub(s.StartTime()))
	})
}
