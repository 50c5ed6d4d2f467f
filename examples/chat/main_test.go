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

	"github.com/genaitrace/otelgenai/examples/internal/chatclient"
	"github.com/genaitrace/otelgenai/examples/internal/command"
	"github.com/genaitrace/otelgenai/examples/internal/exampletest"
)

// TestRun is the program itself, on real sockets.
func TestRun(t *testing.T) {
	exampletest.WithoutCollector(t)
	var stdout, stderr strings.Builder
	if err := run(t.Context(), []string{"-prompt", "What is 17 * 23?"}, &stdout, &stderr); err != nil {
		t.Fatal(err)
	}
	exampletest.InOrder(t, stdout.String(),
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
		"\ngateway ", "\nmodel call ", "\nengine ",
		"where the TTFT of inference.generate went",
		"\n  queue ", "\n  tokenize ", "\n  prefill ", "\n  emit ", "\n  unattributed ",
		"\nThe answer began after ", "reading a prompt of ", " tokens (prefill)", "\nFrom then on ", " tokens came a second.\n",
	)
	if stderr.Len() > 0 {
		t.Errorf("stderr: %s", stderr.String())
	}
}

func TestRunWithSeveralRequests(t *testing.T) {
	exampletest.WithoutCollector(t)
	var stdout, stderr strings.Builder
	args := []string{"-n", "4", "-concurrency", "4", "-max-tokens", "3"}
	if err := run(t.Context(), args, &stdout, &stderr); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(stderr.String(), "\n"); got != 4 {
		t.Errorf("progress in %d lines:\n%s", got, stderr.String())
	}
	exampletest.InOrder(t, stderr.String(), "(1 of 4)", "(2 of 4)", "(3 of 4)", "(4 of 4)")
	for i, question := range questions[:4] {
		if !strings.Contains(stderr.String(), fmt.Sprintf("request %d done ", i+1)) {
			t.Errorf("no progress of request %d:\n%s", i+1, stderr.String())
		}
		exampletest.InOrder(t, stdout.String(), fmt.Sprintf("\n         %d ", i+1), " "+question+"\n")
	}
	exampletest.InOrder(t, stdout.String(), "request", "queue", "TTFT", "tokens/s", "total", "question\n",
		" was the slowest:", "POST /v1/chat/completions", "where the TTFT")
	for _, hidden := range []string{"outcome", "trace  "} {
		if strings.Contains(stdout.String(), hidden) {
			t.Errorf("the table has a column %s:\n%s", hidden, stdout.String())
		}
	}
}

// A server that reveals nothing of its inside gets no phases.
func TestRunWithAnotherServer(t *testing.T) {
	exampletest.WithoutCollector(t)
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
					io.WriteString(body, `{"id":"c1","object":"chat.completion","model":"tiny","choices":[{"index":0,"message":{"role":"assistant","content":"Four."},"finish_reason":"stop"}],"usage":{"prompt_tokens":12,"completion_tokens":3,"total_tokens":15}}`)
					return
				}
				w.Header().Set("Content-Type", "text/event-stream")
				for _, choice := range []string{`"delta":{"role":"assistant"}`, `"delta":{"content":"Fo"}`, `"delta":{"content":"ur."}`, `"delta":{},"finish_reason":"stop"`} {
					io.WriteString(body, chunk(choice))
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
			exampletest.InOrder(t, stdout.String(), "A: Four.\n", "2 spans",
				"\nPOST /v1/chat/completions  SERVER ", "\n└─ chat tiny               CLIENT ")
			for _, invented := range []string{"queue", "prefill", "decode", "where the TTFT", "tokens/s", "is a toy"} {
				if strings.Contains(stdout.String(), invented) {
					t.Errorf("the output says %q:\n%s", invented, stdout.String())
				}
			}
			if got := strings.Contains(stdout.String(), "TTFT"); got != stream {
				t.Errorf("TTFT is printed: %t, want %t:\n%s", got, stream, stdout.String())
			}
			if !stream {
				exampletest.InOrder(t, stdout.String(), "\nseen by                in  out\nmodel call  chat tiny  12    3\n")
			}
		})
	}
}

// chunk is an event of a streamed answer.
func chunk(choice string) string {
	return `data: {"id":"c1","object":"chat.completion.chunk","model":"tiny","choices":[{"index":0,` + choice + "}]}\n\n"
}

// A server that closes its connection in time but not at the end of its answer
// looks well to HTTP.
func TestRunNoticesAnAnswerThatEndsEarly(t *testing.T) {
	exampletest.WithoutCollector(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, chunk(`"delta":{"content":"Fo"}`))
		if r.Header.Get(numberHeader) == "1" { // that one is well
			io.WriteString(w, chunk(`"delta":{"content":"ur."},"finish_reason":"stop"`)+"data: [DONE]\n\n")
		}
	}))
	defer server.Close()
	args := []string{"-base-url", server.URL, "-model", "tiny", "-prompt", "2 + 2?"}

	var stdout, stderr strings.Builder
	err := run(t.Context(), args, &stdout, &stderr)
	if !errors.Is(err, chatclient.ErrEndedEarly) || !errors.As(err, new(command.ShownError)) {
		t.Errorf("run: %v, want %v, which is shown", err, chatclient.ErrEndedEarly)
	}
	exampletest.InOrder(t, stdout.String(), "A: Fo\n   ✗ failed: the answer ended early", "2 spans")

	stdout.Reset()
	err = run(t.Context(), append(args, "-n", "3"), &stdout, &stderr)
	if !errors.Is(err, chatclient.ErrEndedEarly) || !strings.HasPrefix(err.Error(), "2 of 3 requests failed, request 2 with: the answer ended early") {
		t.Errorf("run: %v, want how many requests failed and %v", err, chatclient.ErrEndedEarly)
	}
	for _, part := range []string{"request 1 done (", "request 2 failed (", "request 3 failed (", "→ Four.\n", "→ the answer ended early"} {
		if !strings.Contains(stderr.String(), part) {
			t.Errorf("progress without %q:\n%s", part, stderr.String())
		}
	}
	exampletest.InOrder(t, stdout.String(), "outcome", "\n         1 ", "\n         2 ", "✗ failed   2 + 2?\n         3 ", "✗ failed   2 + 2?\n")
	if strings.Contains(stdout.String(), "queue") {
		t.Errorf("the table has a column for the queue:\n%s", stdout.String())
	}
}

func TestRunReportsAnAnswerWithoutAChoice(t *testing.T) {
	exampletest.WithoutCollector(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"id":"c1","object":"chat.completion","model":"tiny","choices":[]}`)
	}))
	defer server.Close()
	var stdout strings.Builder
	args := []string{"-base-url", server.URL, "-model", "tiny", "-stream=false"}
	if err := run(t.Context(), args, &stdout, io.Discard); !errors.Is(err, chatclient.ErrNoAnswer) {
		t.Errorf("run: %v, want %v", err, chatclient.ErrNoAnswer)
	}
	exampletest.InOrder(t, stdout.String(), "A: ✗ failed: the response has no answer in it\n")
}

func TestRunReportsAServerThatIsNotThere(t *testing.T) {
	exampletest.WithoutCollector(t)
	gone := httptest.NewServer(nil)
	gone.Close()
	var stdout strings.Builder
	err := run(t.Context(), []string{"-base-url", gone.URL, "-model", "m"}, &stdout, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "502") || !strings.Contains(err.Error(), "cannot be reached") {
		t.Errorf("run: %v, want 502 and why", err)
	}
	if !errors.As(err, new(command.ShownError)) {
		t.Errorf("run: the error would be printed twice: %v", err)
	}
	exampletest.InOrder(t, stdout.String(), "A: ✗ failed: ", "502", "cannot be reached", "POST /v1/chat/completions", "✗")
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
	traces, metrics, logs := "/v1/traces", "/v1/metrics", "/v1/logs"

	for _, tt := range []struct {
		name   string
		env    map[string]string
		paths  []string
		stderr string
	}{
		{"both", map[string]string{"ENDPOINT": collector.URL}, []string{metrics, traces}, "exported 9 spans and the metrics to " + collector.URL + "\n"},
		{"traces", map[string]string{"TRACES_ENDPOINT": collector.URL + traces}, []string{traces}, "exported 9 spans to " + collector.URL + "/v1/traces\n"},
		{"metrics", map[string]string{"METRICS_ENDPOINT": collector.URL + metrics}, []string{metrics}, "exported the metrics to " + collector.URL + "/v1/metrics\n"},
		{
			"an own endpoint wins", map[string]string{"ENDPOINT": "http://localhost:1", "TRACES_ENDPOINT": collector.URL + "/t", "METRICS_ENDPOINT": collector.URL + "/m"},
			[]string{"/m", "/t"}, "exported 9 spans to " + collector.URL + "/t and the metrics to " + collector.URL + "/m\n",
		},
		{
			"log records too", map[string]string{"ENDPOINT": collector.URL, "LOGS_EXPORTER": "otlp"},
			[]string{logs, metrics, traces}, "exported 9 spans, the metrics and the log records to " + collector.URL + "\n",
		},
		{"disabled", map[string]string{"ENDPOINT": collector.URL, "SDK_DISABLED": "True"}, nil, ""},
		{"not sampled", map[string]string{"ENDPOINT": collector.URL, "TRACES_SAMPLER": "always_off"}, []string{metrics}, "exported the metrics to " + collector.URL + "\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			exampletest.WithoutCollector(t)
			for name, value := range tt.env {
				prefix := "OTEL_EXPORTER_OTLP_"
				if !strings.HasSuffix(name, "ENDPOINT") {
					prefix = "OTEL_"
				}
				t.Setenv(prefix+name, value)
			}
			paths = nil
			var stdout, stderr strings.Builder
			if err := run(t.Context(), []string{"-prompt", "1 + 1"}, &stdout, &stderr); err != nil {
				t.Fatal(err)
			}
			slices.Sort(paths)
			if !slices.Equal(paths, tt.paths) || stderr.String() != tt.stderr {
				t.Errorf("exports to %q, stderr %q, want %q, %q", paths, stderr.String(), tt.paths, tt.stderr)
			}
			want := "where the TTFT"
			if tt.env["TRACES_SAMPLER"] != "" {
				want = "\n0 of 1 requests left a trace: OTEL_TRACES_SAMPLER=always_off\n"
			}
			exampletest.InOrder(t, stdout.String(), "1 + 1 = 2.", want)
		})
	}
}

func TestRunRefusesAnEndpointThatIsNoURL(t *testing.T) {
	for _, tt := range []struct{ name, value, fix string }{
		{"OTEL_EXPORTER_OTLP_ENDPOINT", "127.0.0.1:4318", "such as http://127.0.0.1:4318"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT", "localhost:4318", "such as http://localhost:4318"},
		{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "grpc://collector:4317", "such as http://collector:4317"},
		{"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "http://", "such as http://localhost:4318"},
	} {
		t.Run(tt.name+"="+tt.value, func(t *testing.T) {
			exampletest.WithoutCollector(t)
			t.Setenv(tt.name, tt.value)
			var stdout strings.Builder
			err := run(t.Context(), nil, &stdout, io.Discard)
			if err == nil || !strings.HasPrefix(err.Error(), tt.name+" is ") || !strings.HasSuffix(err.Error(), tt.fix) || stdout.Len() > 0 {
				t.Errorf("run: %v, stdout %q, want an error with %q", err, stdout.String(), tt.fix)
			}
		})
	}
}

func TestRunOnlyWarnsWithoutACollector(t *testing.T) {
	gone := httptest.NewServer(nil)
	gone.Close()
	exampletest.WithoutCollector(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", gone.URL)
	for _, protocol := range []string{"http/protobuf", "grpc"} {
		t.Run(protocol, func(t *testing.T) {
			t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
			var stdout, stderr strings.Builder
			if err := run(t.Context(), []string{"-prompt", "1 + 1"}, &stdout, &stderr); err != nil {
				t.Fatal(err)
			}
			exampletest.InOrder(t, stdout.String(), "1 + 1 = 2.", "where the TTFT")
			if !strings.Contains(stderr.String(), "warning: telemetry:") {
				t.Errorf("stderr: %q, want a warning", stderr.String())
			}
		})
	}
}

func TestRunRefusesAnUnknownProtocol(t *testing.T) {
	exampletest.WithoutCollector(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:4318")
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "carrier pigeon")
	if err := run(t.Context(), nil, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), "carrier pigeon") {
		t.Errorf("run: %v", err)
	}
}

func TestRunStopsWhenInterrupted(t *testing.T) {
	exampletest.WithoutCollector(t)
	for _, n := range []string{"1", "20"} {
		t.Run("n="+n, func(t *testing.T) {
			ctx, interrupt := context.WithCancel(t.Context())
			out := &interruptingWriter{after: "is the", interrupt: interrupt}
			if n != "1" {
				out.after = "(1 of 20)"
			}
			err := run(ctx, []string{"-n", n}, out, out)
			if !errors.Is(err, context.Canceled) {
				t.Errorf("run: %v, want %v", err, context.Canceled)
			}
			if n == "1" {
				exampletest.InOrder(t, out.text(), "is the", "\n   ✗ cancelled: ", "POST /v1/chat/completions")
			} else {
				exampletest.InOrder(t, out.text(), " cancelled (", "outcome", "✗ cancelled   ", "POST /v1/chat/completions")
			}
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
		if !errors.As(err, new(command.UsageError)) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want a usage error with %q", tt.args, err, tt.want)
		}
	}

	var help strings.Builder
	if _, err := parseFlags([]string{"-help"}, &help); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("-help: %v", err)
	}
	for _, name := range []string{"-prompt", "-n", "-concurrency", "-base-url", "-model", "-stream", "-max-tokens", "-record"} {
		if !strings.Contains(help.String(), "\n  "+name) {
			t.Errorf("-help does not explain %s:\n%s", name, help.String())
		}
	}

	cfg, err := parseFlags([]string{"-model", "toy-1"}, io.Discard)
	if err != nil || cfg.requests != 1 || cfg.concurrency != 4 || !cfg.stream || cfg.baseURL != nil {
		t.Errorf("defaults: %+v, %v", cfg, err)
	}
}
