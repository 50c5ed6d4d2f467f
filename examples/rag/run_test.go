package main

import (
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/genaitrace/otelgenai/cmd/genaitrace/otlp"
	"github.com/genaitrace/otelgenai/contract"
	"github.com/genaitrace/otelgenai/examples/internal/command"
	"github.com/genaitrace/otelgenai/examples/internal/exampletest"
)

// The program itself, over this project's own documents, and what it recorded.
func TestRun(t *testing.T) {
	exampletest.WithoutCollector(t)
	t.Chdir("../..")
	file := filepath.Join(t.TempDir(), "rag.jsonl.gz")
	var stdout, stderr strings.Builder
	if err := run(t.Context(), []string{"-record", file}, &stdout, &stderr); err != nil {
		t.Fatal(err)
	}
	exampletest.InOrder(t, stdout.String(),
		"Q: What is TTFT?\nA: ", " says: “", "TTFT", "” [", "\n[1] ", "\n[2] ", "\n[3] ",
		"hashing-512 makes vectors of words and not of meaning",
		"toy-1 is a toy",
		"18 spans", "\nPOST /v1/chat/completions ", "query.rewrite ", "retrieval docs ", "rag.rerank ", "prompt.render ",
		"chat toy-1 ", "inference.v1.Inference/Generate ", "inference.prefill ", "inference.decode ",
		"where the TTFT of inference.generate went",
		"\nThe answer began after ", "reading a prompt of ", " tokens (prefill)", "The searches ran side by side: ",
	)
	exampletest.InOrder(t, stderr.String(), "indexed ", " pieces of text in ", "recorded ", " spans and ", file)

	recorded, err := otlp.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	c, err := contract.Load("examples/rag/testdata/busy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if report := c.Check(recorded); report.Failed(false) {
		t.Errorf("the recording breaks the contract: %+v", report.Findings)
	}
	if text := recorded.String(); !strings.Contains(text, "retrieval docs.words") {
		t.Errorf("the recording is not of this run:\n%s", text)
	}
}

func TestRunWithOtherDocuments(t *testing.T) {
	exampletest.WithoutCollector(t)
	dir := t.TempDir()
	for name, text := range map[string]string{
		"deep/er/zebra.md":  "# Zebras\n\nA zebra sleeps standing up in the shade.\n",
		".git/hidden.md":    "# Zebras\n\nA hidden zebra never sleeps at all.\n",
		"notes.txt":         "A zebra in a text file never sleeps.\n",
		"deep/other.md":     "Giraffes eat leaves from tall trees.\n",
		"deep/invalid.md":   "# Bytes \xff\xfe\n\nInvalid \xff bytes are replaced.\n",
		"deep/er/empty.md":  "",
		"deep/er/heads.md":  "# One\n## Two\n### Three\n",
		"deep/er/fenced.md": "```\n# no heading\n```\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var stdout, stderr strings.Builder
	if err := run(t.Context(), []string{"-docs", dir, "-n", "2", "-prompt", "How does a zebra sleep?"}, &stdout, &stderr); err != nil {
		t.Fatal(err)
	}
	const answer = "A: deep/er/zebra.md § Zebras says: “A zebra sleeps standing up in the shade.” [1]\n"
	exampletest.InOrder(t, stdout.String(), answer, "[1] deep/er/zebra.md § Zebras (deep/er/zebra.md#1)", answer)
	for _, not := range []string{"hidden", "notes.txt"} {
		if strings.Contains(stdout.String(), not) {
			t.Errorf("the output says %q:\n%s", not, stdout.String())
		}
	}
}

func TestMistakesOnTheCommandLine(t *testing.T) {
	exampletest.WithoutCollector(t)
	for args, want := range map[string]string{
		"what is ttft":                   "goes behind -prompt",
		"-n 0":                           "-n is 0, want 1 to 100",
		"-n 101":                         "-n is 101",
		"-model llama":                   "need -base-url URL",
		"-embedding-model nomic":         "need -base-url URL",
		"-base-url http://localhost:1":   "needs -embedding-model NAME, -model NAME or both",
		"-base-url localhost:1 -model m": "-base-url is no URL",
		"-base-url ftp://u:hunter2@h/v1 -model m": "-base-url is no URL",
		"-nonsense":      "-nonsense",
		"-n 1":           "not the root of the repository", // tests run in their own directory
		"-docs testdata": "has no Markdown files",
	} {
		err := run(t.Context(), strings.Fields(args), io.Discard, io.Discard)
		if err == nil || !strings.Contains(err.Error(), want) || !errors.As(err, new(command.UsageError)) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v, want a usage error with %q", args, err, want)
		}
	}
	if err := run(t.Context(), []string{"-docs", "nowhere"}, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), "-docs: ") {
		t.Errorf("-docs nowhere: %v", err)
	}
	var help strings.Builder
	if err := run(t.Context(), []string{"-h"}, io.Discard, &help); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("-h: %v", err)
	}
	exampletest.InOrder(t, help.String(), "rag answers", "-base-url URL", "-docs directory", "-record file")
}

// A server that makes vectors can be used without one that answers, and both together.
func TestWhichServerIsAsked(t *testing.T) {
	for args, want := range map[string]struct{ chat, vectors bool }{
		"":                                      {},
		"-base-url http://h/v1 -model m":        {chat: true},
		"-base-url http://h -embedding-model e": {vectors: true},
		"-base-url http://h/v1 -embedding-model e -model m": {true, true},
	} {
		cfg, err := parseFlags(strings.Fields(args), io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		if got := cfg.chatURL() != nil; got != want.chat {
			t.Errorf("%s: another server answers: %t", args, got)
		}
		if got := cfg.embeddingModel != ""; got != want.vectors {
			t.Errorf("%s: another server makes vectors: %t", args, got)
		}
	}
}
