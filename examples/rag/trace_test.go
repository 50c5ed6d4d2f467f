package main

import (
	"context"
	"errors"
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/openai/openai-go/v3/option"

	"github.com/genaitrace/otelgenai/capture"
	"github.com/genaitrace/otelgenai/contract"
	"github.com/genaitrace/otelgenai/contract/contracttest"
	"github.com/genaitrace/otelgenai/examples/internal/exampletest"
	"github.com/genaitrace/otelgenai/examples/internal/telemetry"
)

var update = flag.Bool("update", false, "rewrite the golden file")

const question = "What is prefill " + secret + "?"

// What a question shows, over real HTTP and gRPC: each step at its place.
func TestTheTreeOfAQuestion(t *testing.T) {
	obs := contracttest.New(t, contracttest.File("testdata/busy.yaml"))
	s := startStack(t, obs, fast(), nil)
	var answer *http.Response
	pieces := 0
	text, err := s.client.Ask(t.Context(), question, func(string) { pieces++ }, option.WithResponseInto(&answer))
	if err != nil {
		t.Fatal(err)
	}
	want := "times.md § Prefill " + secret + " says: “Prefill " + secret + " is the pass over the whole prompt before the first token.” [1]"
	if text != want || pieces < 10 {
		t.Errorf("answer %q in %d pieces, want %q", text, pieces, want)
	}
	if got := answer.Header.Values(sourceHeader); len(got) != 3 || got[0] != "times.md#2" {
		t.Errorf("sources %q, want three, times.md#2 first", got)
	}
	s.stop()
	obs.Require(t, "chat", "rag")
	got := exampletest.Tree(obs.Capture(t), "search.")
	if *update {
		if err := os.WriteFile("testdata/question.tree.txt", []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	golden, err := os.ReadFile("testdata/question.tree.txt")
	if err != nil || got != string(golden) {
		t.Errorf("the tree differs from testdata/question.tree.txt (%v), got:\n%s", err, got)
	}
}

// One search that fails is seen as failed, and does not stop the other.
func TestTheOtherSearchAnswersWhereOneFails(t *testing.T) {
	for name, broken := range map[string]func(t *testing.T, s *stack){
		"lexical": func(_ *testing.T, s *stack) { s.unindex() },
		"dense":   func(t *testing.T, s *stack) { s.dense.embed = brokenServer(t, s) },
	} {
		t.Run(name, func(t *testing.T) {
			obs := contracttest.New(t, contracttest.File("testdata/busy.yaml"))
			s := startStack(t, obs, fast(), nil)
			broken(t, s)
			var answer *http.Response
			text, err := s.client.Ask(t.Context(), question, func(string) {}, option.WithResponseInto(&answer))
			if err != nil || !strings.Contains(text, "is the pass over the whole prompt") {
				t.Fatalf("answer %q, %v", text, err)
			}
			if got := answer.Header.Values(failedHeader); len(got) != 1 || got[0] != name {
				t.Errorf("failed: %q, want %s", got, name)
			}
			s.stop()
			obs.Holds(t)
			obs.Span(t, name).Attr("error.type").Present()
			obs.Span(t, "hybrid").Attr("error.type").Absent()
			obs.Span(t, "rerank").Attr("genai.retriever.hit_count").Between(1, 3)
		})
	}
}

// brokenServer is an embedder whose server fails.
func brokenServer(t *testing.T, s *stack) embedder {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, `{"error":{"message":"out of memory"}}`, http.StatusBadRequest)
	}))
	t.Cleanup(server.Close)
	return remoteAt(t, server, s.tel)
}

// Where nothing can be searched the answer says so, and no model is asked.
func TestNothingCanBeSearched(t *testing.T) {
	obs := contracttest.New(t, contracttest.File("testdata/busy.yaml"))
	s := startStack(t, obs, fast(), nil)
	s.unindex()
	s.dense.embed = brokenServer(t, s)
	_, err := s.client.Ask(t.Context(), question, func(string) {})
	if err == nil || !strings.Contains(err.Error(), "503") || !strings.Contains(err.Error(), "the documents cannot be searched") {
		t.Errorf("ask: %v, want 503 and why", err)
	}
	s.stop()
	obs.Holds(t)
	obs.NoSpan(t, "call")
	obs.Span(t, "hybrid").Attr("error.type").Present()
}

// A client that leaves in the middle of its answer ends every span, and none failed.
func TestTheClientLeaves(t *testing.T) {
	obs := contracttest.New(t, contracttest.File("testdata/busy.yaml"))
	engine := fast()
	engine.DecodeTime = 10 * time.Millisecond
	s := startStack(t, obs, engine, nil)
	ctx, leave := context.WithCancel(t.Context())
	pieces := 0
	_, err := s.client.Ask(ctx, question, func(string) {
		if pieces++; pieces == 5 {
			leave()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("ask: %v, want %v", err, context.Canceled)
	}
	s.stop()
	obs.Holds(t)
	obs.Span(t, "gateway").Attr("genai.stream.terminal").Equal("client_cancelled")
	obs.Span(t, "call").Attr("error.type").Absent()
	obs.Span(t, "hybrid").Attr("genai.retriever.hit_count").Between(1, 16)
}

// The engine fails in the middle of an answer.
func TestTheEngineFails(t *testing.T) {
	obs := contracttest.New(t, contracttest.File("testdata/busy.yaml"))
	engine := fast()
	engine.Fault = func(n int) error {
		if n == 5 {
			return errors.New("device lost near " + secret)
		}
		return nil
	}
	s := startStack(t, obs, engine, nil)
	text, err := s.client.Ask(t.Context(), question, func(string) {})
	if err == nil || text == "" {
		t.Errorf("ask = %q, %v, want the start of the answer and an error", text, err)
	}
	s.stop()
	obs.Holds(t)
	obs.Span(t, "engine").Attr("error.type").Present()
	leaksNothing(t, obs)
}

// What is in documents, questions and answers is nowhere in what was recorded.
func TestTelemetryHoldsNoText(t *testing.T) {
	obs := contracttest.New(t, contracttest.File("testdata/busy.yaml"))
	s := startStack(t, obs, fast(), nil)
	if _, err := s.client.Ask(t.Context(), question, func(string) {}); err != nil {
		t.Fatal(err)
	}
	s.stop()
	leaksNothing(t, obs)
}

func leaksNothing(t *testing.T, obs *contracttest.Observer) {
	t.Helper()
	var out strings.Builder
	writeAll(t, &out, obs.Capture(t))
	for _, text := range []string{secret, "whole prompt", "nobody uses", "scheduler takes"} {
		if strings.Contains(out.String(), text) {
			t.Errorf("the telemetry holds %q", text)
		}
	}
	if !strings.Contains(out.String(), "times.md#2") || !strings.Contains(out.String(), "gen_ai.retrieval.duration") {
		t.Error("the telemetry is not what was searched")
	}
}

// lost searches without the context of its question, as workers behind a channel do.
type lost struct{ retriever }

func (l lost) search(_ context.Context, q query, topK int) ([]hit, error) {
	return l.retriever.search(context.Background(), q, topK)
}

// The contract finds a search that left the trace of its question.
func TestTheContractCatchesASearchThatLostItsContext(t *testing.T) {
	c, err := contract.Load("contract.yaml")
	if err != nil {
		t.Fatal(err)
	}
	rec := capture.NewRecorder()
	s := startStackOn(t, telemetry.On(rec.TracerProvider(), rec.MeterProvider()), fast(), nil)
	s.pipeline.retrievers[0] = lost{s.pipeline.retrievers[0]}
	if _, err := s.client.Ask(t.Context(), question, func(string) {}); err != nil {
		t.Fatal(err)
	}
	s.stop()
	recorded, err := rec.Capture(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	report := c.Check(recorded)
	for _, f := range report.Findings {
		if f.Rule == "request.incomplete" && f.Key == "dense" {
			return
		}
	}
	t.Errorf("no finding misses the search: %+v", report.Findings)
}
