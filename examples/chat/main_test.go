package main

import (
	"compress/gzip"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// TestRun is the program itself, on real sockets.
func TestRun(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "")
	var stdout, stderr strings.Builder
	if err := run(t.Context(), []string{"-prompt", "What is 17 * 23?"}, &stdout, &stderr); err != nil {
		t.Fatal(err)
	}
	inOrder(t, stdout.String(),
		"Q: What is 17 * 23?\nA: 17 * 23 = 391.\n",
		"toy-1 is a toy",
		"9 spans",
		"\nPOST /v1/chat/completions              SERVER ",
		"\n└─ chat toy-1                          CLIENT ",
		"\n   └─ inference.v1.Inference/Generate  SERVER ",
		"\n      └─ inference.generate            INTERNAL ",
		"\n         ├─ queue.wait                 INTERNAL ",
		"\n         ├─ tokenizer.encode           INTERNAL ",
		"\n         ├─ inference.prefill          INTERNAL ",
		"\n         ├─ inference.decode           INTERNAL ",
		"\n         └─ inference.postprocess      INTERNAL ",
		"seen by", "TTFT", "per token", "tokens/s",
		"\ngateway ", "\ncaller ", "\nengine ",
		"where the TTFT of inference.generate went",
		"\n  queue ", "\n  tokenize ", "\n  prefill ", "\n  emit ", "\n  unattributed ",
	)
	if stderr.Len() > 0 {
		t.Errorf("stderr: %s", stderr.String())
	}
}

func TestRunWithSeveralRequests(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "")
	var stdout, stderr strings.Builder
	args := []string{"-n", "4", "-concurrency", "4", "-max-tokens", "3"}
	if err := run(t.Context(), args, &stdout, &stderr); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(stderr.String(), "\n"); got != 4 || !strings.Contains(stderr.String(), "4/4") {
		t.Errorf("progress: %s", stderr.String())
	}
	inOrder(t, stdout.String(), "request", "queue", "TTFT", "tokens/s", "total", "\n", " 1 ", "\n", " 4 ",
		"the slowest request:", "POST /v1/chat/completions", "where the TTFT")
}

// A server that reveals nothing of its inside gets no phases.
func TestRunWithAnotherServer(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "")
	t.Setenv("OPENAI_API_KEY", "secret")
	for _, stream := range []bool{true, false} {
		t.Run(fmt.Sprintf("stream=%t", stream), func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method != http.MethodPost || r.URL.Path != "/api/v1/chat/completions" || r.Header.Get("Authorization") != "Bearer secret" {
					t.Errorf("%s %s, Authorization %q", r.Method, r.URL, r.Header.Get("Authorization"))
				}
				if r.Header.Get("Traceparent") == "" {
					t.Error("no traceparent")
				}
				body := io.Writer(w)
				if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") { // as large providers do
					w.Header().Set("Content-Encoding", "gzip")
					zip := gzip.NewWriter(w)
					defer zip.Close()
					body = zip
				}
				if !stream {
					w.Header().Set("Content-Type", "application/json")
					io.WriteString(body, `{"id":"c1","object":"chat.completion","model":"tiny","choices":[{"index":0,"message":{"role":"assistant","content":"Four."},"finish_reason":"stop"}]}`)
					return
				}
				w.Header().Set("Content-Type", "text/event-stream")
				for _, delta := range []string{`{"role":"assistant"}`, `{"content":"Fo"}`, `{"content":"ur."}`} {
					fmt.Fprintf(body, "data: {\"id\":\"c1\",\"object\":\"chat.completion.chunk\",\"model\":\"tiny\",\"choices\":[{\"index\":0,\"delta\":%s}]}\n\n", delta)
					http.NewResponseController(w).Flush()
				}
				io.WriteString(body, "data: [DONE]\n\n")
			}))
			defer server.Close()

			var stdout strings.Builder
			args := []string{"-base-url", server.URL + "/api/v1/", "-model", "tiny", "-prompt", "2 + 2?", fmt.Sprintf("-stream=%t", stream)}
			if err := run(t.Context(), args, &stdout, io.Discard); err != nil {
				t.Fatal(err)
			}
			inOrder(t, stdout.String(), "A: Four.\n", "2 spans",
				"\nPOST /v1/chat/completions  SERVER ", "\n└─ chat tiny               CLIENT ")
			for _, invented := range []string{"queue", "prefill", "decode", "where the TTFT", "tokens/s", "is a toy"} {
				if strings.Contains(stdout.String(), invented) {
					t.Errorf("the output says %q:\n%s", invented, stdout.String())
				}
			}
			if got := strings.Contains(stdout.String(), "TTFT"); got != stream {
				t.Errorf("TTFT is printed: %t, want %t:\n%s", got, stream, stdout.String())
			}
		})
	}
}

func TestRunReportsAServerThatIsNotThere(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "")
	gone := httptest.NewServer(nil)
	gone.Close()
	var stdout strings.Builder
	err := run(t.Context(), []string{"-base-url", gone.URL, "-model", "m"}, &stdout, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "502") || !strings.Contains(err.Error(), "cannot be reached") {
		t.Errorf("run: %v, want 502 and why", err)
	}
	inOrder(t, stdout.String(), "POST /v1/chat/completions", "✗")
}

func TestRunExports(t *testing.T) {
	var (
		mu    sync.Mutex
		paths []string
	)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		if strings.Contains(string(body), "otelgenai-chat") {
			paths = append(paths, r.URL.Path)
		}
	}))
	defer collector.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)

	var stderr strings.Builder
	if err := run(t.Context(), []string{"-prompt", "1 + 1"}, io.Discard, &stderr); err != nil {
		t.Fatal(err)
	}
	slices.Sort(paths)
	if want := []string{"/v1/metrics", "/v1/traces"}; !slices.Equal(paths, want) || stderr.Len() > 0 {
		t.Errorf("exports to %q, stderr %q, want one each to %q", paths, stderr.String(), want)
	}
}

func TestRunOnlyWarnsWithoutACollector(t *testing.T) {
	gone := httptest.NewServer(nil)
	gone.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", gone.URL)
	for _, protocol := range []string{"http/protobuf", "grpc"} {
		t.Run(protocol, func(t *testing.T) {
			t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
			var stdout, stderr strings.Builder
			if err := run(t.Context(), []string{"-prompt", "1 + 1"}, &stdout, &stderr); err != nil {
				t.Fatal(err)
			}
			inOrder(t, stdout.String(), "1 + 1 = 2.", "where the TTFT")
			if !strings.Contains(stderr.String(), "warning: telemetry:") {
				t.Errorf("stderr: %q, want a warning", stderr.String())
			}
		})
	}
}

func TestRunRefusesAnUnknownProtocol(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:4318")
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "carrier pigeon")
	if err := run(t.Context(), nil, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), "carrier pigeon") {
		t.Errorf("run: %v", err)
	}
}

func TestRunStopsWhenInterrupted(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "")
	for _, n := range []string{"1", "20"} {
		t.Run("n="+n, func(t *testing.T) {
			ctx, interrupt := context.WithCancel(t.Context())
			out := &interruptingWriter{after: "is the", interrupt: interrupt}
			if n != "1" {
				out.after = "1/20"
			}
			err := run(ctx, []string{"-n", n}, out, out)
			if !errors.Is(err, context.Canceled) {
				t.Errorf("run: %v, want %v", err, context.Canceled)
			}
			inOrder(t, out.text(), "POST /v1/chat/completions")
		})
	}
}

// interruptingWriter presses Ctrl-C when it reads a text.
type interruptingWriter struct {
	mu        sync.Mutex
	buf       strings.Builder
	after     string
	interrupt func()
}

func (w *interruptingWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.buf.Write(p)
	if strings.Contains(w.buf.String(), w.after) {
		w.interrupt()
	}
	return len(p), nil
}

func (w *interruptingWriter) text() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buf.String()
}

func TestFlags(t *testing.T) {
	for _, tt := range []struct{ args, want string }{
		{"-n 0", "-n is 0"},
		{"-n 1001", "-n is 1001, want 1 to 1000"},
		{"-n many", `invalid value "many" for flag -n`},
		{"-concurrency 0", "-concurrency is 0"},
		{"-max-tokens -1", "-max-tokens is -1"},
		{"-model gpt-17", "only the model toy-1"},
		{"-base-url localhost:11434 -model m", "want something like http://localhost:11434/v1"},
		{"-base-url ftp://localhost -model m", "want something like"},
		{"-base-url http://localhost:11434/v1", "-base-url needs -model"},
		{"hello", `unexpected argument "hello"`},
		{"-colour", "flag provided but not defined: -colour"},
	} {
		_, err := parseFlags(strings.Fields(tt.args), io.Discard)
		if !errors.As(err, new(usageError)) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want a usage error with %q", tt.args, err, tt.want)
		}
	}

	var help strings.Builder
	if _, err := parseFlags([]string{"-help"}, &help); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("-help: %v", err)
	}
	for _, name := range []string{"-prompt", "-n", "-concurrency", "-base-url", "-model", "-stream", "-max-tokens"} {
		if !strings.Contains(help.String(), "\n  "+name) {
			t.Errorf("-help does not explain %s:\n%s", name, help.String())
		}
	}

	cfg, err := parseFlags([]string{"-model", "toy-1"}, io.Discard)
	if err != nil || cfg.requests != 1 || cfg.concurrency != 4 || !cfg.stream || cfg.baseURL != nil {
		t.Errorf("defaults: %+v, %v", cfg, err)
	}
}

// inOrder checks that parts stand in text one after the other.
func inOrder(t *testing.T, text string, parts ...string) {
	t.Helper()
	rest := text
	for _, part := range parts {
		_, after, ok := strings.Cut(rest, part)
		if !ok {
			t.Fatalf("%q is missing, or not in its place, in:\n%s", part, text)
		}
		rest = after
	}
}
