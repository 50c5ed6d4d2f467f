package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/genaitrace/otelgenai/capture"
	"github.com/genaitrace/otelgenai/cmd/genaitrace/otlp"
	"github.com/genaitrace/otelgenai/contract"
	"github.com/genaitrace/otelgenai/examples/internal/chatapi"
	"github.com/genaitrace/otelgenai/examples/internal/chatclient"
	"github.com/genaitrace/otelgenai/examples/internal/serving"
	"github.com/genaitrace/otelgenai/examples/internal/telemetry"
	"github.com/genaitrace/otelgenai/examples/internal/toy"
	"github.com/genaitrace/otelgenai/examples/internal/toyserver"
	"github.com/genaitrace/otelgenai/middleware/genaihttp"
)

// The tests' own binary is the MCP server that it starts.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == unitsCommand {
		main()
	}
	goleak.VerifyTestMain(m)
}

// secret stands in what the tests ask, what tools are given and what they find.
const secret = "xyzzyplover7741"

// A stack is the whole example on loopback, with the MCP server in its process.
type stack struct {
	*agent

	recorder *capture.Recorder
	tel      *telemetry.Telemetry
	units    *unitsServer
	stop     func()
}

// start runs it. A nil model is the toy.
func start(t *testing.T, model http.Handler) *stack {
	t.Helper()
	if model == nil {
		model = toyserver.New(toy.Config{PassTime: time.Microsecond, PrefillTime: time.Microsecond, DecodeTime: time.Microsecond, MaxTokens: 1024})
	}
	dir := t.TempDir()
	// The name is cut, so that a search in the repository does not find it here.
	for name, content := range map[string]string{
		"genaitrace/tool.go": "package genaitrace\n\n// " + secret + "\nfunc (t *Tracer) Start" + "Tool() {} // " + secret + "\n",
		".git/hidden.go":     "func (t *Tracer) Start" + "Tool()",
	} {
		writeFile(t, filepath.Join(dir, name), content)
	}
	s := &stack{recorder: capture.NewRecorder()}
	s.tel = telemetry.On(s.recorder.TracerProvider(), s.recorder.MeterProvider())
	var stops []func()
	s.stop = sync.OnceFunc(func() {
		for _, stop := range slices.Backward(stops) {
			stop()
		}
	})
	t.Cleanup(func() {
		s.stop()
		s.tel.Close(io.Discard)
	})
	serve := func(handler http.Handler) string {
		address, stop, err := serving.Listen(handler)
		if err != nil {
			t.Fatal(err)
		}
		stops = append(stops, stop)
		return address
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	base := &http.Transport{}
	traced := genaihttp.NewTransport(base, genaihttp.WithTracerProvider(s.tel.Traces), genaihttp.WithMeterProvider(s.tel.Metrics))
	address, status := serve(model), serve(serving.Traced(newStatusService(), s.tel))
	stops = append(stops, base.CloseIdleConnections, func() { _ = root.Close() })
	units, stopUnits, err := startUnits(t.Context(), s.tel, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	stops = append(stops, stopUnits)
	tools, err := newTools(t.Context(), root, &http.Client{Transport: traced}, status, units)
	if err != nil {
		t.Fatal(err)
	}
	client := chatclient.New(chatclient.Options{BaseURL: address + "/v1", Transport: traced, APIKey: "none", Model: toy.Model})
	s.units, s.agent = units, newAgent(s.tel.Tracer, client, toy.Model, tools)
	s.retryDelay = time.Millisecond
	return s
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o644)); err != nil {
		t.Fatal(err)
	}
}

// captured ends everything, and returns what both processes recorded. Every span has
// ended, and the child process has too.
func (s *stack) captured(t *testing.T) *capture.Capture {
	t.Helper()
	s.stop()
	if err := s.units.process.Signal(os.Interrupt); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("the MCP server has not ended: %v", err)
	}
	got, err := s.recorder.Capture(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	children := s.tel.Children()
	got.Spans = append(got.Spans, children.Spans...)
	got.Metrics = append(got.Metrics, children.Metrics...)
	for _, span := range got.Spans {
		if span.End.IsZero() {
			t.Errorf("%s has not ended", span.Name)
		}
	}
	return got
}

// holds checks a capture. Requests of these kinds must have happened.
func holds(t *testing.T, got *capture.Capture, kinds ...string) {
	t.Helper()
	c, err := contract.Load("contract.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range c.Check(got, contract.WithRequests(kinds...)).Findings {
		if f.Severity == contract.Error {
			t.Errorf("%s\n%s", f.Text(), got)
		}
	}
}

// one returns the only span of that name.
func one(t *testing.T, got *capture.Capture, name string) *capture.Span {
	t.Helper()
	all := named(got, name)
	if len(all) != 1 {
		t.Fatalf("%d spans %q in\n%s", len(all), name, got)
	}
	return all[0]
}

func named(got *capture.Capture, name string) (all []*capture.Span) {
	for _, s := range got.Spans {
		if s.Name == name {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b *capture.Span) int { return a.Start.Compare(b.Start) })
	return all
}

func written(t *testing.T, got *capture.Capture) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "all.jsonl")
	if err := otlp.WriteFile(file, got); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// says is a server of a model that says these texts, one a request, the last one again
// and again.
func says(texts ...string) http.Handler {
	var asked atomic.Int64
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		req, err := chatapi.ReadRequest(w, r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		out := chatapi.NewWriter(w, req)
		text := texts[min(int(asked.Add(1)), len(texts))-1]
		for _, piece := range strings.SplitAfter(text, " ") {
			_ = out.Text(piece) // the client may be gone
		}
		_ = out.Finish(chatapi.End{Reason: "stop", Usage: chatapi.NewUsage(10, 0, 5)})
	})
}

func calls(tool, arguments string) string {
	return chatapi.CallStart + `{"name":"` + tool + `","arguments":` + arguments + `}` + chatapi.CallEnd
}
