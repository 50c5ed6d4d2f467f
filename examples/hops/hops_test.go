package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"

	"github.com/genaitrace/otelgenai/capture"
	"github.com/genaitrace/otelgenai/cmd/genaitrace/otlp"
	"github.com/genaitrace/otelgenai/contract"
	"github.com/genaitrace/otelgenai/examples/internal/command"
	"github.com/genaitrace/otelgenai/examples/internal/exampletest"
	"github.com/genaitrace/otelgenai/propagation"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// way is the tree that every request makes.
const way = `ask
  POST /v1/chat/completions
    inference.v1.Inference/Generate
      GET /v1/realtime
      response.create
        realtime response
          send tool.calls
            process tool.calls
              tools/call
                tools/call lookup
`

func TestOneRequestOverSixTransportsIsOneTrace(t *testing.T) {
	for name, ctx := range map[string]context.Context{
		"without baggage":         context.Background(),
		"with baggage":            withBaggage(t, 100),
		"with more than gRPC has": withBaggage(t, 8000),
	} {
		t.Run(name, func(t *testing.T) {
			spans := capture.NewRecorder()
			h := &hops{
				tracer: spans.TracerProvider().Tracer("test"),
				bridge: propagation.New(propagation.WithPromptChain(), propagation.WithFormats(propagation.TraceBin)),
			}
			if err := h.start(); err != nil {
				t.Fatal(err)
			}
			err := h.ask(ctx, "ü?")
			if stopped := h.stop(); err != nil || stopped != nil {
				t.Fatal(err, stopped)
			}
			captured, err := spans.Capture(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			traces := captured.Traces()
			if len(traces) != 1 {
				t.Fatalf("there are %d traces", len(traces))
			}
			if got := tree(traces[0]); got != way {
				t.Errorf("the trace is\n%s\nnot\n%s", got, way)
			}
			if got := fmt.Sprint(names(h.chain.Hops)); got != "[gateway engine worker]" {
				t.Errorf("the prompt came by %s", got)
			}
			session := captured.Named("GET /v1/realtime")[0]
			for _, s := range captured.Named("realtime response") {
				if len(s.Links) != 1 || s.Links[0].SpanID != session.SpanID {
					t.Errorf("the message does not link to its session: %v", s.Links)
				}
			}
			if shed := h.bridge.Stats().ShedBaggageMembers > 0; shed != (name == "with more than gRPC has") {
				t.Errorf("baggage was left out: %v", shed)
			}
		})
	}
}

// The program itself, and what it recorded.
func TestRun(t *testing.T) {
	exampletest.WithoutCollector(t)
	file := filepath.Join(t.TempDir(), "hops.jsonl")
	var out, log strings.Builder
	if err := run(t.Context(), []string{"-record", file}, &out, &log); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		"tools/call lookup", "\n10 spans of six transports are 1 trace: ",
		"\nThe prompt came by gateway → engine → worker; worker was caused by engine and gateway.\n",
	} {
		if !strings.Contains(out.String(), text) {
			t.Errorf("nothing says %q:\n%s", text, out.String())
		}
	}
	if want := "recorded 10 spans and 0 metrics in " + file; !strings.HasPrefix(log.String(), want) {
		t.Errorf("it says %q, want %q", log.String(), want)
	}
	recorded, err := otlp.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if report := loadContract(t).Check(recorded); len(report.Findings) > 0 {
		t.Errorf("the recording breaks the contract: %+v", report.Findings)
	}
}

func TestFlags(t *testing.T) {
	for arg, want := range map[string]string{"hello": `unexpected argument "hello"`, "-colour": "-colour"} {
		if err := run(t.Context(), []string{arg}, io.Discard, io.Discard); !errors.As(err, new(command.UsageError)) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", arg, err)
		}
	}
	var help strings.Builder
	if err := run(t.Context(), []string{"-h"}, io.Discard, &help); !errors.Is(err, flag.ErrHelp) || !strings.Contains(help.String(), "-record file") {
		t.Errorf("-h: %v\n%s", err, help.String())
	}
}

func loadContract(t *testing.T) *contract.Contract {
	t.Helper()
	c, err := contract.Load("contract.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Where a hop loses its context, what comes behind it is in another trace. The contract
// names the hop.
func TestTheContractNamesTheHopThatBroke(t *testing.T) {
	spans := capture.NewRecorder()
	h := &hops{tracer: spans.TracerProvider().Tracer("test"), bridge: propagation.New()}
	if err := h.start(); err != nil {
		t.Fatal(err)
	}
	err := h.ask(t.Context(), "?")
	if stopped := h.stop(); err != nil || stopped != nil {
		t.Fatal(err, stopped)
	}
	for _, tt := range []struct{ lost, hop string }{
		{"POST /v1/chat/completions", "ask → gateway"},
		{"inference.v1.Inference/Generate", "gateway → engine"},
		{"realtime response", "message → response"},
		{"process tool.calls", "produce → consume"},
		{"tools/call lookup", "call → tool"},
	} {
		captured, err := spans.Capture(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		lose(captured, tt.lost)
		found := false
		for _, f := range loadContract(t).Check(captured).Findings {
			found = found || f.Rule == "propagation.broken" && f.Key == tt.hop
		}
		if !found {
			t.Errorf("%s begins a trace, and no finding names the hop %s", tt.lost, tt.hop)
		}
	}
}

// lose puts a span and what is below it into a trace of its own, as if its context had
// not arrived.
func lose(c *capture.Capture, name string) {
	t := c.Traces()[0]
	root := c.Named(name)[0]
	below := []*capture.Span{root}
	for s := range t.Descendants(root) {
		below = append(below, s)
	}
	for _, s := range below {
		s.TraceID[0] ^= 0xff
	}
	root.ParentID = trace.SpanID{}
}

func withBaggage(t *testing.T, size int) context.Context {
	t.Helper()
	m, err := baggage.NewMember("big", strings.Repeat("x", size))
	if err != nil {
		t.Fatal(err)
	}
	bag, err := baggage.New(m)
	if err != nil {
		t.Fatal(err)
	}
	return baggage.ContextWithBaggage(context.Background(), bag)
}

func tree(t *capture.Trace) string {
	var b strings.Builder
	var walk func(parent trace.SpanID, depth int)
	walk = func(parent trace.SpanID, depth int) {
		for _, s := range t.Spans {
			if s.ParentID == parent {
				fmt.Fprintf(&b, "%s%s\n", strings.Repeat("  ", depth), s.Name)
				walk(s.SpanID, depth+1)
			}
		}
	}
	walk(trace.SpanID{}, 0)
	return b.String()
}

func names(hops []propagation.Hop) []string {
	list := make([]string, 0, len(hops))
	for _, hop := range hops {
		list = append(list, hop.Name)
	}
	return list
}
