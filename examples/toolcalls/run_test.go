package main

import (
	"errors"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/genaitrace/otelgenai/cmd/genaitrace/otlp"
	"github.com/genaitrace/otelgenai/examples/internal/command"
	"github.com/genaitrace/otelgenai/examples/internal/exampletest"
)

// The program itself, over this repository, and what it recorded.
func TestRun(t *testing.T) {
	exampletest.WithoutCollector(t)
	file := filepath.Join(t.TempDir(), "toolcalls.jsonl.gz")
	var stdout, stderr strings.Builder
	if err := run(t.Context(), []string{"-root", "../..", "-record", file}, &stdout, &stderr); err != nil {
		t.Fatal(err)
	}
	exampletest.InOrder(t, stdout.String(),
		"Q: How many seconds", "step 1: 4 tool calls (", " tokens in, ", "calculator {", "→ 391\n", "clock {", "search_files {", "→ genaitrace/tool.go:",
		"service_status {", "✗ the service answers 503 Service Unavailable, again:\n    → all is well",
		"step 2: 2 tool calls (", " cached)", "convert_time {", "→ 0.391\n", "✗ denied by the rule inside-root",
		"step 3: answers (", "\nA: 17 * 23 = 391. ",
		"toy-1 is a toy", "32 spans", "\ninvoke_agent assistant ", "├─ chat toy-1 ", "execute_tool ", "tools/call convert_time  SERVER", "└─ chat toy-1 ",
		"cached", "\nThe run took ", " in 3 model calls and ", " in 7 tool calls.", "The tools ran side by side", "Each step reads the conversation again: ",
		"service_status was tried again: its attempt 2 ended with ok.", "search_files was not allowed", "convert_time ran in another process, for ",
	)
	exampletest.InOrder(t, stderr.String(), "recorded 36 spans and ", file)
	recorded, err := otlp.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	holds(t, recorded, "agent", "asked", "remote")
}

// Any server that speaks OpenAI's API stands in the toy's place.
func TestRunWithAnotherServer(t *testing.T) {
	exampletest.WithoutCollector(t)
	t.Setenv("MY_KEY", "secret-key")
	model := says(calls("calculator", `{"expression":"2 + 2"}`), "Four.")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Authorization"); got != "Bearer secret-key" || r.URL.Path != "/api/v1/chat/completions" || r.Header.Get("Traceparent") == "" {
			t.Errorf("%s, Authorization %q, traceparent %q", r.URL.Path, got, r.Header.Get("Traceparent"))
		}
		model.ServeHTTP(w, r)
	}))
	defer server.Close()
	var stdout strings.Builder
	args := []string{"-base-url", server.URL + "/api/v1", "-model", "tiny", "-api-key-env", "MY_KEY", "-prompt", "2 + 2?"}
	if err := run(t.Context(), args, &stdout, io.Discard); err != nil {
		t.Fatal(err)
	}
	exampletest.InOrder(t, stdout.String(), "step 1: 1 tool call (10 tokens in, 5 out)", "→ 4", "A: Four.", "chat tiny")
	if strings.Contains(stdout.String(), "is a toy") {
		t.Errorf("the output speaks of a toy:\n%s", stdout.String())
	}
}

func TestRunWithoutAModel(t *testing.T) {
	exampletest.WithoutCollector(t)
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	var stdout strings.Builder
	err := run(t.Context(), []string{"-base-url", gone.URL, "-model", "m"}, &stdout, io.Discard)
	if !errors.As(err, new(command.ShownError)) {
		t.Errorf("run: %v, want an error that is shown", err)
	}
	exampletest.InOrder(t, stdout.String(), "✗ ", "invoke_agent assistant", "chat m")
}

func TestMistakesOnTheCommandLine(t *testing.T) {
	exampletest.WithoutCollector(t)
	for args, want := range map[string]string{
		"what is ttft":                 "goes behind -prompt",
		"-prompt=":                     "-prompt is empty",
		"-max-steps 0":                 "-max-steps is 0, want at least 1",
		"-timeout 0s":                  "-timeout is 0s",
		"-model llama":                 "-base-url URL uses a server that has",
		"-base-url http://localhost:1": "-base-url needs -model NAME",
		"-base-url ftp://u:hunter2@h/v1 -model m":          "-base-url is no URL",
		"-base-url http://h -model m -api-key-env NOWHERE": "NOWHERE, which is not set",
		"-root nowhere": "-root: ",
		"-nonsense":     "-nonsense",
	} {
		err := run(t.Context(), strings.Fields(args), io.Discard, io.Discard)
		if err == nil || !strings.Contains(err.Error(), want) || !errors.As(err, new(command.UsageError)) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v, want a usage error with %q", args, err, want)
		}
	}
	var help strings.Builder
	if err := run(t.Context(), []string{"-h"}, io.Discard, &help); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("-h: %v", err)
	}
	exampletest.InOrder(t, help.String(), "toolcalls lets an agent", "-api-key-env name", "-base-url URL", "-record file", "-root directory")
	if err := run(t.Context(), []string{unitsCommand}, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), "by itself") {
		t.Errorf("the child alone: %v", err)
	}
}
