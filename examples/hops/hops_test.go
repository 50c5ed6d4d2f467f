package main

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"

	"github.com/genaitrace/otelgenai/capture"
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

func TestTheProgramPrintsTheTraceAndTheChain(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"tools/call lookup", "the prompt came by gateway → engine → worker", "worker was caused by engine and gateway"} {
		if !strings.Contains(out.String(), text) {
			t.Errorf("nothing says %q:\n%s", text, out.String())
		}
	}
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
