package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/genaitrace/otelgenai/contract/contracttest"
	"github.com/genaitrace/otelgenai/examples/internal/chatapi"
	"github.com/genaitrace/otelgenai/examples/internal/exampletest"
)

// What is no question is refused by the gateway, in its words, and nothing is searched.
func TestRequestsWithoutAQuestion(t *testing.T) {
	obs := contracttest.New(t, contracttest.File("testdata/busy.yaml"))
	s := startStack(t, obs, fast(), nil)
	for body, want := range map[string]struct {
		status int
		text   string
	}{
		`{`:                              {400, "invalid_request_error"},
		``:                               {400, "invalid_request_error"},
		`[]`:                             {400, "invalid_request_error"},
		`{"model":"toy-1"}`:              {400, "messages are missing"},
		`{"model":"toy-1","messages":7}`: {400, "invalid_request_error"},
		`{"model":"toy-1","messages":[{"role":"user","content":7}]}`: {400, "content is neither"},
		strings.Repeat(" ", chatapi.MaxBody+1):                       {413, "too large"},
	} {
		resp, err := http.Post(s.address+chatapi.Path, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		got, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != want.status || !strings.Contains(string(got), want.text) || resp.Header.Get(sourceHeader) != "" {
			t.Errorf("%.60s: %d %s, want %d and %q", body, resp.StatusCode, got, want.status, want.text)
		}
	}
	http.DefaultClient.CloseIdleConnections()
	s.stop()
	obs.Holds(t)
	obs.NoSpan(t, "retrieval")
}

// Another server is asked with the sources before the last question, and with all else
// that the client said as it was.
func TestAnotherServerAnswers(t *testing.T) {
	exampletest.WithoutCollector(t)
	t.Setenv("OPENAI_API_KEY", "a-key")
	asked := make(chan []byte, 1)
	vectors := embeddingServer(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/embeddings" {
			vectors.Config.Handler.ServeHTTP(w, r)
			return
		}
		if r.URL.Path != "/v1/chat/completions" || r.Header.Get("Authorization") != "Bearer a-key" || r.Header.Get("Traceparent") == "" {
			t.Errorf("%s with Authorization %q and traceparent %q", r.URL, r.Header.Get("Authorization"), r.Header.Get("Traceparent"))
		}
		body, _ := io.ReadAll(r.Body)
		asked <- body
		w.Header().Set("Content-Type", "text/event-stream")
		for _, choice := range []string{`"delta":{"role":"assistant"}`, `"delta":{"content":"By the book [1]."}`, `"delta":{},"finish_reason":"stop"`} {
			_, _ = io.WriteString(w, `data: {"id":"c1","object":"chat.completion.chunk","model":"m","choices":[{"index":0,`+choice+"}]}\n\n")
		}
		_, _ = io.WriteString(w, "data: [DONE]\n\n")
	}))
	defer server.Close()
	t.Chdir("../..")
	var stdout strings.Builder
	args := []string{"-base-url", server.URL + "/v1", "-model", "m", "-embedding-model", "e"}
	if err := run(t.Context(), args, &stdout, io.Discard); err != nil {
		t.Fatal(err)
	}
	exampletest.InOrder(t, stdout.String(), "A: By the book [1].\n", "[1] ", "embeddings e ", "chat m ", "The answer began after ")
	for _, invented := range []string{"is a toy", "hashing", "prefill)"} {
		if strings.Contains(stdout.String(), invented) {
			t.Errorf("the output says %q:\n%s", invented, stdout.String())
		}
	}
	var got struct {
		Model         string            `json:"model"`
		Messages      []chatapi.Message `json:"messages"`
		StreamOptions map[string]bool   `json:"stream_options"`
	}
	if err := json.Unmarshal(<-asked, &got); err != nil {
		t.Fatal(err)
	}
	if got.Model != "m" || !got.StreamOptions["include_usage"] || len(got.Messages) != 3 {
		t.Fatalf("asked %+v", got)
	}
	sources, question := got.Messages[1], got.Messages[2]
	if sources.Role != "system" || !strings.Contains(string(sources.Content), "\nSources:\n[1] ") || !strings.Contains(string(sources.Content), "\n[3] ") ||
		question.Role != "user" || question.Content != "What is TTFT?" {
		t.Errorf("asked with %+v and %+v", sources, question)
	}
}
