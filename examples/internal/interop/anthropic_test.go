package interop

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"

	"github.com/genaitrace/otelgenai/middleware/genaihttp"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

var messageEvents = []string{
	`{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-fx","content":[],"stop_reason":null,"usage":{"input_tokens":19,"output_tokens":1}}}`,
	`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
	`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hi"}}`,
	`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" you"}}`,
	`{"type":"content_block_stop","index":0}`,
	`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}}`,
	`{"type":"message_stop"}`,
}

// anthropic-sdk-go makes the span of a call itself: it stays the only one, and has
// our times beside its own words.
func TestTheSpanOfAnthropicsSDKIsEnriched(t *testing.T) {
	for _, tt := range []struct {
		name     string
		fails    int // attempts that are refused first
		events   int
		leave    bool // after the first token
		terminal string
		status   codes.Code
	}{
		{name: "read to its end", events: 7, terminal: "done", status: codes.Ok},
		{name: "tried again", fails: 1, events: 7, terminal: "done", status: codes.Ok},
		{name: "cut", events: 4, terminal: "truncated", status: codes.Error},
		{name: "closed early", events: 7, leave: true, terminal: "client_cancelled"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRecording()
			attempts := 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				_, _ = io.Copy(io.Discard, req.Body)
				if attempts++; attempts <= tt.fails {
					w.Header().Set("Retry-After-Ms", "1")
					w.WriteHeader(http.StatusServiceUnavailable)
					return
				}
				w.Header().Set("Content-Type", "text/event-stream")
				for i, e := range messageEvents[:tt.events] {
					if tt.leave && i == 4 {
						<-req.Context().Done()
						return
					}
					fmt.Fprintf(w, "event: %s\ndata: %s\n\n", between(e, `"type":"`, `"`), e)
					_ = http.NewResponseController(w).Flush()
				}
			}))
			defer server.Close()
			base := &http.Transport{}
			defer base.CloseIdleConnections()
			client := anthropic.NewClient(
				option.WithAPIKey("k"), option.WithBaseURL(server.URL), option.WithTracerProvider(r.tp),
				option.WithHTTPClient(&http.Client{Transport: genaihttp.NewTransport(base, r.ours()...)}),
			)
			events := client.Messages.NewStreaming(t.Context(), anthropic.MessageNewParams{
				Model: "claude-fx", MaxTokens: 64,
				Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("hello"))},
			})
			for events.Next() {
				if tt.leave && events.Current().Type == "content_block_delta" {
					break
				}
			}
			require.NoError(t, events.Close())

			var got map[string]any
			for name, span := range r.ended(t, 1) {
				assert.Equal(t, "client anthropic.messages.create", name[:len("client anthropic.messages.create")])
				assert.Equal(t, tt.status, span.Status().Code)
				got = make(map[string]any)
				for k, v := range attributes(span) {
					got[string(k)] = v
				}
			}
			assert.Equal(t, tt.terminal, got[string(semconv.GenAIStreamTerminalKey)])
			assert.Contains(t, got, string(semconv.LLMTTFTMsKey))
			assert.Equal(t, "inference", got[string(semconv.GenAISpanRoleKey)])
			assert.EqualValues(t, "claude-fx", got[string(genaiconv.RequestModelKey)])
			assert.EqualValues(t, 19, got[string(genaiconv.UsageInputTokensKey)])
			counts := r.counts(t)
			assert.EqualValues(t, tt.fails+1, counts[genaiconv.ClientInferenceDurationName])
			assert.EqualValues(t, 1, counts[semconv.GenAITimeToFirstTokenName])
			if tt.terminal == "done" {
				assert.EqualValues(t, 2, got[string(genaiconv.UsageOutputTokensKey)])
				assert.Contains(t, got, string(semconv.GenAIChunkTimelineKey))
				assert.Contains(t, got, string(genaiconv.ResponseFinishReasonsKey))
			}
		})
	}
}

func between(s, before, after string) string {
	_, s, _ = strings.Cut(s, before)
	s, _, _ = strings.Cut(s, after)
	return s
}
