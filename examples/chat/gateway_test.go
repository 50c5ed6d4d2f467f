package main

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/genaitrace/otelgenai/examples/internal/chatapi"
	"github.com/genaitrace/otelgenai/examples/internal/toy"
)

// post sends a body to the gateway as any HTTP client would.
func post(t *testing.T, h *hops, body string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://gateway"+chatapi.Path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := h.transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

func TestTheGatewayRefusesBadRequests(t *testing.T) {
	const hello = `"messages":[{"role":"user","content":"hello"}]`
	tests := []struct {
		name, body string
		status     int
		kind, code string
		message    string
	}{
		{"no JSON", `hello`, 400, "invalid_request_error", "", "not a chat request"},
		{"empty body", ``, 400, "invalid_request_error", "", "not a chat request"},
		{"wrong type", `{"model":7}`, 400, "invalid_request_error", "", "not a chat request"},
		{"no model", `{` + hello + `}`, 400, "invalid_request_error", "", "model is missing"},
		{"no messages", `{"model":"toy-1"}`, 400, "invalid_request_error", "", "messages are missing"},
		{"empty messages", `{"model":"toy-1","messages":[]}`, 400, "invalid_request_error", "", "messages are missing"},
		{"unknown role", `{"model":"toy-1","messages":[{"role":"tool","content":"x"}]}`, 400, "invalid_request_error", "", `messages[0].role is "tool"`},
		{"tools", `{"model":"toy-1","tools":[{"type":"function","function":{"name":"clock"}}],` + hello + `}`, 400, "invalid_request_error", "", "tools are given"},
		{"content of a wrong type", `{"model":"toy-1","messages":[{"role":"user","content":7}]}`, 400, "invalid_request_error", "", "content is neither"},
		{"several choices", `{"model":"toy-1","n":2,` + hello + `}`, 400, "invalid_request_error", "", "n is 2"},
		{"no tokens", `{"model":"toy-1","max_tokens":0,` + hello + `}`, 400, "invalid_request_error", "", "max_tokens is 0"},
		{"unknown model", `{"model":"gpt-17",` + hello + `}`, 404, "invalid_request_error", "model_not_found", `"gpt-17" does not exist`},
		{"unknown model, streaming", `{"model":"gpt-17","stream":true,` + hello + `}`, 404, "invalid_request_error", "model_not_found", `"gpt-17" does not exist`},
		{"too large", `{"model":"` + strings.Repeat("x", chatapi.MaxBody) + `"}`, 413, "invalid_request_error", "", "larger than 1048576 bytes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := startHops(t, testEngine())
				resp := post(t, h, tt.body)
				defer resp.Body.Close()
				var got struct {
					Error struct{ Message, Type, Code string }
				}
				if err := json.NewDecoder(resp.Body).Decode(&got); err != nil {
					t.Fatal(err)
				}
				if resp.StatusCode != tt.status || resp.Header.Get("Content-Type") != "application/json" {
					t.Errorf("status %d, %s, want %d, application/json", resp.StatusCode, resp.Header.Get("Content-Type"), tt.status)
				}
				if e := got.Error; e.Type != tt.kind || e.Code != tt.code || !strings.Contains(e.Message, tt.message) {
					t.Errorf("error = %+v, want type %q, code %q and a message with %q", e, tt.kind, tt.code, tt.message)
				}
			})
		})
	}
}

func TestTheGatewayRefusesWhatTheQueueCannotTake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := testEngine()
		cfg.Slots, cfg.Queued = 1, 1
		h := startHops(t, cfg)
		questions := streaming()
		questions.requests, questions.concurrency = 3, 3
		_, err := askMany(t.Context(), h.client(questions), questions, io.Discard)
		if err == nil || !strings.Contains(err.Error(), "1 of 3 requests failed") || !strings.Contains(err.Error(), "429") {
			t.Errorf("askMany: %v, want one request refused with 429", err)
		}
	})
}

func TestTheGatewayStreamsLikeOpenAI(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := startHops(t, testEngine())
		resp := post(t, h, `{"model":"toy-1","stream":true,"stream_options":{"include_usage":true},"max_completion_tokens":2,
			"messages":[{"role":"user","content":[{"type":"text","text":"What is "},{"type":"text","text":"1 + 1?"}]}]}`)
		defer resp.Body.Close()
		if got := resp.Header.Get("Content-Type"); got != "text/event-stream" {
			t.Errorf("Content-Type = %q", got)
		}
		var got []string
		for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
			data, ok := strings.CutPrefix(lines.Text(), "data: ")
			if !ok {
				continue
			}
			var chunk chatapi.Response
			if data != "[DONE]" {
				if err := json.Unmarshal([]byte(data), &chunk); err != nil {
					t.Fatalf("%s: %v", data, err)
				}
				if chunk.Object != "chat.completion.chunk" || chunk.Model != toy.Model || !strings.HasPrefix(chunk.ID, "chatcmpl-") {
					t.Errorf("chunk %s", data)
				}
			}
			switch {
			case data == "[DONE]":
				got = append(got, "done")
			case len(chunk.Choices) == 0 && chunk.Usage.CompletionTokens == 2 && chunk.Usage.TotalTokens == chunk.Usage.PromptTokens+2:
				got = append(got, "usage")
			case chunk.Choices[0].FinishReason != nil:
				got = append(got, "finish "+*chunk.Choices[0].FinishReason)
			case chunk.Choices[0].Delta.Role != "":
				got = append(got, "role "+chunk.Choices[0].Delta.Role)
			default:
				got = append(got, "text "+chunk.Choices[0].Delta.Content)
			}
		}
		if want := []string{"role assistant", "text 1", "text  +", "finish length", "usage", "done"}; !slices.Equal(got, want) {
			t.Errorf("events: %q, want %q", got, want)
		}
	})
}

func TestTheGatewayAnswersAsAWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := startHops(t, testEngine())
		for _, cached := range []int32{0, 16} {
			resp := post(t, h, `{"model":"toy-1","messages":[{"role":"system","content":"one two three four five six seven"},{"role":"user","content":"1 + 1"}]}`)
			var got chatapi.Response
			if err := json.NewDecoder(resp.Body).Decode(&got); err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			choice := got.Choices[0]
			if got.Object != "chat.completion" || choice.Message.Role != "assistant" || choice.Message.Content != "1 + 1 = 2." || *choice.FinishReason != "stop" {
				t.Errorf("response: %+v, %+v", got, choice.Message)
			}
			if got.Usage.CompletionTokens != 6 || got.Usage.Details.CachedTokens != cached {
				t.Errorf("usage: %+v, want 6 tokens out and %d cached", got.Usage, cached)
			}
		}
	})
}
