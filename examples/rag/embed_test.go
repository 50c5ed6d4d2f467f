package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/genaitrace/otelgenai/capture"
	"github.com/genaitrace/otelgenai/cmd/genaitrace/otlp"
	"github.com/genaitrace/otelgenai/contract/contracttest"
	"github.com/genaitrace/otelgenai/examples/internal/telemetry"
)

// writeAll writes all of a capture as OTLP.
func writeAll(t *testing.T, out io.Writer, c *capture.Capture) {
	t.Helper()
	if err := otlp.Write(out, c, otlp.JSON); err != nil {
		t.Fatal(err)
	}
}

// silent records nothing that is kept.
func silent() *telemetry.Telemetry {
	return telemetry.On(sdktrace.NewTracerProvider(), sdkmetric.NewMeterProvider())
}

// remoteAt asks a server.
func remoteAt(t *testing.T, server *httptest.Server, tel *telemetry.Telemetry) *remote {
	t.Helper()
	t.Setenv("OPENAI_API_KEY", "none")
	base, err := url.Parse(server.URL + "/v1")
	if err != nil {
		t.Fatal(err)
	}
	return newRemote(&config{baseURL: base, embeddingModel: "nomic-embed-text"}, tel, server.Client().Transport)
}

// embeddingServer speaks OpenAI's API: its vectors are those of the hashing embedder.
func embeddingServer(t *testing.T) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var req struct {
			Model string   `json:"model"`
			Input []string `json:"input"`
		}
		if err := json.NewDecoder(r.Body).Decode(&req); err != nil || r.URL.Path != "/v1/embeddings" || r.Header.Get("Traceparent") == "" {
			t.Errorf("%s: %v, traceparent %q", r.URL, err, r.Header.Get("Traceparent"))
		}
		var data []map[string]any
		tokens := 0
		for i, text := range req.Input {
			words := wordsOf(text)
			tokens += len(words)
			data = append([]map[string]any{{"object": "embedding", "index": i, "embedding": hashWords(words)}}, data...) // in no order
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{
			"object": "list", "model": req.Model, "data": data,
			"usage": map[string]int{"prompt_tokens": tokens, "total_tokens": tokens},
		})
	}))
	t.Cleanup(server.Close)
	return server
}

// Vectors of a server are used like those made here, and the contract holds for them.
func TestVectorsOfAServer(t *testing.T) {
	server := embeddingServer(t)
	obs := contracttest.New(t, contracttest.File("testdata/busy.yaml"))
	embed := remoteAt(t, server, telemetry.On(obs.TracerProvider(), obs.MeterProvider()))
	s := startStack(t, obs, fast(), embed)
	text, err := s.client.Ask(t.Context(), question, func(string) {})
	if err != nil || !strings.Contains(text, "is the pass over the whole prompt") {
		t.Fatalf("answer %q, %v", text, err)
	}
	s.stop()
	obs.Require(t, "chat", "rag")
	for _, span := range obs.Spans(t, "embedding") {
		span.Attr("gen_ai.usage.input_tokens").Between(4, 100)
	}
	leaksNothing(t, obs)
}

// A server whose answer cannot be used is an error and no panic.
func TestVectorsThatCannotBeUsed(t *testing.T) {
	tel := silent()
	for name, data := range map[string]string{
		"too few":          `[{"index":0,"embedding":[1,2]}]`,
		"none":             `[]`,
		"index too large":  `[{"index":0,"embedding":[1,2]},{"index":7,"embedding":[1,2]}]`,
		"negative index":   `[{"index":-1,"embedding":[1,2]},{"index":1,"embedding":[1,2]}]`,
		"the same twice":   `[{"index":0,"embedding":[1,2]},{"index":0,"embedding":[1,2]}]`,
		"empty":            `[{"index":0,"embedding":[]},{"index":1,"embedding":[]}]`,
		"different length": `[{"index":0,"embedding":[1,2]},{"index":1,"embedding":[1]}]`,
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				fmt.Fprintf(w, `{"object":"list","model":"m","data":%s}`, data)
			}))
			defer server.Close()
			if got, err := remoteAt(t, server, tel).embed(t.Context(), []string{"a", "b"}); err == nil {
				t.Errorf("vectors %v, want an error", got)
			}
		})
	}
}

// Texts that share words are nearer to each other than to one that shares none.
func TestHashedVectors(t *testing.T) {
	near := func(a, b string) (dot float64) {
		x, y := hashWords(wordsOf(a)), hashWords(wordsOf(b))
		for i := range x {
			dot += float64(x[i]) * float64(y[i])
		}
		return dot
	}
	if shared, other := near("time of prefill", "how long prefill took"), near("time of prefill", "capital cities"); shared <= other {
		t.Errorf("shared words %v, none %v", shared, other)
	}
	for _, text := range []string{"", "the of and", "a word", "日本語 のテキスト"} {
		if got := near(text, text); math.Abs(got-1) > 1e-5 {
			t.Errorf("%q: length %v, want 1", text, got)
		}
	}
}
