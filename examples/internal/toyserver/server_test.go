package toyserver

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/genaitrace/otelgenai/examples/internal/chatapi"
	"github.com/genaitrace/otelgenai/examples/internal/toy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// One slot, 1 ms for a token of the prompt, 10 ms for one of the answer.
func testConfig() toy.Config {
	return toy.Config{Slots: 1, PassTime: time.Nanosecond, PrefillTime: time.Millisecond, DecodeTime: 10 * time.Millisecond}
}

func ask(ctx context.Context, h http.Handler, method, path, body string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, method, path, strings.NewReader(body)))
	return w
}

const sum = `{"model":"toy-1","messages":[{"role":"user","content":"1 + 1"}]}`

func TestTheServerTellsWhatARequestTook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := New(testConfig())
		var first, second chatapi.Response
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := json.Unmarshal(ask(t.Context(), h, http.MethodPost, chatapi.Path, sum).Body.Bytes(), &first); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait() // it has the slot
		if err := json.Unmarshal(ask(t.Context(), h, http.MethodPost, chatapi.Path, sum).Body.Bytes(), &second); err != nil {
			t.Fatal(err)
		}
		wg.Wait()
		m := first.Metrics
		if m == nil || m.QueueTimeMs != 0 || int32(m.TimeToFirstTokenMs) != first.Usage.PromptTokens || m.GenerationTimeMs != 50 {
			t.Errorf("the first took %+v, with %+v", m, first.Usage)
		}
		if got, want := second.Metrics.QueueTimeMs, m.TimeToFirstTokenMs+m.GenerationTimeMs; got != want {
			t.Errorf("the second waited %v ms, the first was served for %v", got, want)
		}
		if text := second.Choices[0].Message.Content; text != "1 + 1 = 2." {
			t.Errorf("answer: %q", text)
		}
	})
}

func TestAStreamTellsItBesideTheUsage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := New(testConfig())
		got := ask(t.Context(), h, http.MethodPost, chatapi.Path,
			strings.Replace(sum, "{", `{"stream":true,"stream_options":{"include_usage":true},`, 1)).Body.String()
		if !strings.Contains(got, `"choices":[],"usage":{"prompt_tokens":15,"completion_tokens":6,`) ||
			!strings.Contains(got, `"metrics":{"queue_time_ms":0,"time_to_first_token_ms":15.000001,"generation_time_ms":50}}`) ||
			!strings.HasSuffix(got, "data: [DONE]\n\n") {
			t.Errorf("stream:\n%s", got)
		}
		got = ask(t.Context(), h, http.MethodPost, chatapi.Path, strings.Replace(sum, "{", `{"stream":true,`, 1)).Body.String()
		if strings.Contains(got, "metrics") || strings.Contains(got, "usage") {
			t.Errorf("nobody asked for the usage:\n%s", got)
		}
	})
}

// The engine asks for a tool in its text, and the server says so in the API's words.
func TestTheServerCallsTools(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := New(testConfig())
		tools := `{"tools":[{"type":"function","function":{"name":"calculator","parameters":{}}}],`
		got := ask(t.Context(), h, http.MethodPost, chatapi.Path, strings.Replace(sum, "{", tools, 1)).Body.String()
		if !strings.Contains(got, `"function":{"name":"calculator","arguments":"{\"expression\":\"1 + 1\"}"}`) || !strings.Contains(got, `"finish_reason":"tool_calls"`) {
			t.Errorf("answer: %s", got)
		}
		answered := `[{"role":"user","content":"1 + 1"},{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"calculator","arguments":"{\"expression\":\"1 + 1\"}"}}]},{"role":"tool","tool_call_id":"c","content":"2"}]`
		got = ask(t.Context(), h, http.MethodPost, chatapi.Path, tools+`"model":"toy-1","messages":`+answered+"}").Body.String()
		if !strings.Contains(got, `"content":"1 + 1 = 2."`) || !strings.Contains(got, `"finish_reason":"stop"`) {
			t.Errorf("answer: %s", got)
		}
	})
}

func TestTheServerSaysWhatIsWrong(t *testing.T) {
	fail := testConfig()
	fail.Fault = func(int) error { return context.DeadlineExceeded }
	for _, tt := range []struct {
		name, method, path, body string
		cfg                      toy.Config
		status                   int
		want                     string
	}{
		{"models", "GET", "/v1/models", "", testConfig(), 200, `"id":"toy-1"`},
		{"health", "GET", "/health", "", testConfig(), 200, ``},
		{"unknown path", "GET", "/v1/files", "", testConfig(), 404, "there is no GET /v1/files here"},
		{"unknown model", "POST", chatapi.Path, strings.Replace(sum, "toy-1", "gpt-17", 1), testConfig(), 404, `the model \"gpt-17\" does not exist`},
		{"bad request", "POST", chatapi.Path, `{}`, testConfig(), 400, "model is missing"},
		{"engine fails", "POST", chatapi.Path, sum, fail, 500, "deadline exceeded"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got := ask(t.Context(), New(tt.cfg), tt.method, tt.path, tt.body)
				if got.Code != tt.status || !strings.Contains(got.Body.String(), tt.want) {
					t.Errorf("%d %s, want %d with %s", got.Code, got.Body, tt.status, tt.want)
				}
			})
		})
	}
}
