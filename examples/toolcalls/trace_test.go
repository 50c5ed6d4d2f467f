package main

import (
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/codes"

	"github.com/genaitrace/otelgenai/capture"
	"github.com/genaitrace/otelgenai/contract"
	"github.com/genaitrace/otelgenai/examples/internal/exampletest"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func golden(t *testing.T, name string, got *capture.Capture) {
	t.Helper()
	text := exampletest.Tree(got, "tool.", "genai.attempt", "genai.tool.status", "gen_ai.tool.name", "gen_ai.tool.type",
		"genai.guardrail.outcome", "genai.guardrail.rule_id", "error.type", "gen_ai.response.finish_reasons")
	file := filepath.Join("testdata", name+".tree.txt")
	if *update {
		writeFile(t, file, text)
	}
	want, err := os.ReadFile(file)
	if err != nil || text != string(want) {
		t.Errorf("the tree differs from %s (%v), got:\n%s", file, err, text)
	}
}

// What a run shows, over real HTTP and a real process: each step at its place.
func TestTheTreeOfARun(t *testing.T) {
	exampletest.WithoutCollector(t)
	s := start(t, nil)
	answer, err := s.run(t.Context(), question)
	if err != nil {
		t.Fatal(err)
	}
	exampletest.InOrder(t, answer, "17 * 23 = 391. ", "That is 0.391 s. ", "In UTC it is ", "StartTool is defined in genaitrace/tool.go:4. ",
		"The service says: all is well. ", "I could not use search_files: denied by the rule inside-root")
	got := s.captured(t)
	holds(t, got, "agent", "asked", "remote")
	golden(t, "run", got)

	run, received := one(t, got, "invoke_agent assistant"), named(got, "tools/call convert_time")
	if len(received) != 2 || received[1].TraceID != run.TraceID || received[1].ParentID != received[0].SpanID {
		t.Errorf("the call of the MCP server is not in the trace of the run:\n%s", got)
	} else if service := received[1].Resource.Service(); service != "otelgenai-units" {
		t.Errorf("it was handled by %q", service)
	}
	var input, output int64
	for _, call := range named(got, "chat toy-1") {
		in, _ := call.Attributes.Get("gen_ai.usage.input_tokens")
		out, _ := call.Attributes.Get("gen_ai.usage.output_tokens")
		input, output = input+in.AsInt64(), output+out.AsInt64()
	}
	in, _ := run.Attributes.Get("ai.tokens.input")
	out, _ := run.Attributes.Get("ai.tokens.output")
	if input == 0 || in.AsInt64() != input || out.AsInt64() != output {
		t.Errorf("the run used %v and %v tokens, its steps %d and %d", in, out, input, output)
	}
}

// A tool that goes wrong is told to the model, and fails nothing but its own span.
func TestAToolGoesWrong(t *testing.T) {
	waits := func(ctx context.Context) (string, error) { <-ctx.Done(); return "", ctx.Err() }
	for name, tt := range map[string]struct {
		call           string
		prepare        func(s *stack)
		span           string
		status, errTyp string
		spans          int
	}{
		"unknown":                  {call: calls("rm_"+secret, `{}`), span: "execute_tool", status: "error", errTyp: "unknown_tool"},
		"arguments are no JSON":    {call: calls("calculator", secret), span: "execute_tool calculator", status: "error", errTyp: "invalid_arguments"},
		"arguments do not fit":     {call: calls("calculator", `{"sum":"`+secret+`"}`), span: "execute_tool calculator", status: "error", errTyp: "invalid_arguments"},
		"no expression":            {call: calls("calculator", `{"expression":"`+secret+`"}`), span: "execute_tool calculator", status: "error", errTyp: "invalid_arguments"},
		"divides by zero":          {call: calls("calculator", `{"expression":"1 / 0"}`), span: "execute_tool calculator", status: "error", errTyp: "tool_error"},
		"no such zone":             {call: calls("clock", `{"zone":"../`+secret+`"}`), span: "execute_tool clock", status: "error", errTyp: "tool_error"},
		"is not allowed":           {call: calls("search_files", `{"query":"`+secret+`","under":"/etc"}`), span: "execute_tool search_files", status: "denied"},
		"finds nothing":            {call: calls("search_files", `{"query":"nothing `+secret+`"}`), span: "execute_tool search_files", status: "error", errTyp: "tool_error"},
		"MCP tool has an error":    {call: calls("convert_time", `{"value":1,"from":"`+secret+`","to":"s"}`), span: "execute_tool convert_time", status: "error", errTyp: "tool_error"},
		"MCP arguments do not fit": {call: calls("convert_time", `{"value":"`+secret+`"}`), span: "execute_tool convert_time", status: "error", errTyp: "tool_error"},
		"MCP arguments no JSON":    {call: calls("convert_time", secret), span: "execute_tool convert_time", status: "error", errTyp: "invalid_arguments"},
		"panics": {call: calls("clock", `{}`), prepare: func(s *stack) {
			s.tools["clock"].run = func(context.Context, jsonText) (string, error) { panic(secret) }
		}, span: "execute_tool clock", status: "error", errTyp: "panic"},
		"takes too long": {call: calls("clock", `{}`), prepare: func(s *stack) {
			s.toolTimeout = time.Millisecond
			s.tools["clock"].run = func(ctx context.Context, _ jsonText) (string, error) { return waits(ctx) }
		}, span: "execute_tool clock", status: "timeout", errTyp: "timeout"},
		"stays down": {call: calls("service_status", `{}`), prepare: func(s *stack) {
			s.tools["service_status"].run = func(context.Context, jsonText) (string, error) { return "", &statusError{503} }
		}, span: "execute_tool service_status", status: "error", errTyp: "503", spans: 2},
	} {
		t.Run(name, func(t *testing.T) {
			exampletest.WithoutCollector(t)
			s := start(t, says(tt.call, "Done."))
			if tt.prepare != nil {
				tt.prepare(s)
			}
			if answer, err := s.run(t.Context(), "Please "+secret); answer != "Done." || err != nil {
				t.Fatalf("answer %q, %v", answer, err)
			}
			got := s.captured(t)
			holds(t, got)
			spans := named(got, tt.span)
			if len(spans) != max(tt.spans, 1) {
				t.Fatalf("%d spans %s in\n%s", len(spans), tt.span, got)
			}
			for i, span := range spans {
				attempt, _ := span.Attributes.Get("genai.attempt")
				if status, errTyp := span.Attributes.String("genai.tool.status"), span.Attributes.String("error.type"); status != tt.status || errTyp != tt.errTyp || attempt.AsInt64() != int64(i+1) {
					t.Errorf("attempt %d: status %q, error.type %q; want %d, %q, %q", attempt.AsInt64(), status, errTyp, i+1, tt.status, tt.errTyp)
				}
			}
			if run := one(t, got, "invoke_agent assistant"); run.Status != codes.Unset {
				t.Errorf("the run failed: %s", run.Attributes.String("error.type"))
			}
			if strings.Contains(written(t, got), secret) {
				t.Error("the telemetry holds the secret")
			}
		})
	}
}

// Nothing of what was asked, given to tools or found by them is in the telemetry.
func TestTelemetryHoldsNoContent(t *testing.T) {
	exampletest.WithoutCollector(t)
	s := start(t, nil)
	var out strings.Builder
	s.out = &out
	answer, err := s.run(t.Context(), "Where is StartTool defined, and is there a "+secret+" in ../..?")
	if err != nil || !strings.Contains(out.String(), secret) {
		t.Fatalf("answer %q, %v, but the tools had no secret:\n%s", answer, err, out.String())
	}
	text := written(t, s.captured(t))
	for _, content := range []string{secret, "../..", "genaitrace/tool.go", "outside of the root"} {
		if strings.Contains(text, content) {
			t.Errorf("the telemetry holds %q", content)
		}
	}
	if !strings.Contains(text, "execute_tool search_files") || !strings.Contains(text, "gen_ai.execute_tool.duration") {
		t.Error("the telemetry is not what was searched")
	}
}

// blocked is a stack whose clock waits until nobody waits for it. begun tells of it.
func blocked(t *testing.T) (s *stack, begun chan struct{}) {
	t.Helper()
	s, begun = start(t, says(calls("clock", `{}`)+calls("calculator", `{"expression":"1 + 1"}`), "Done.")), make(chan struct{})
	s.tools["clock"].run = func(ctx context.Context, _ jsonText) (string, error) {
		close(begun)
		<-ctx.Done()
		return "", ctx.Err()
	}
	return s, begun
}

// A run that is cancelled in the middle of a tool has not failed, nor has the tool.
func TestTheRunIsCancelledInATool(t *testing.T) {
	exampletest.WithoutCollector(t)
	s, begun := blocked(t)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-begun
		cancel()
	}()
	if _, err := s.run(ctx, "?"); !errors.Is(err, context.Canceled) {
		t.Errorf("run: %v, want %v", err, context.Canceled)
	}
	got := s.captured(t)
	holds(t, got)
	for _, span := range got.Spans {
		if span.Status == codes.Error {
			t.Errorf("%s failed", span.Name)
		}
	}
	if status := one(t, got, "execute_tool clock").Attributes.String("genai.tool.status"); status != "cancelled" {
		t.Errorf("the status of the tool is %q", status)
	}
}

// due is a context whose deadline the test brings about.
type due struct {
	context.Context

	reached chan struct{}
}

func (d due) Done() <-chan struct{} { return d.reached }

func (d due) Err() error {
	select {
	case <-d.reached:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// A run that reaches its deadline in the middle of a tool has failed for that.
func TestTheRunHasADeadline(t *testing.T) {
	exampletest.WithoutCollector(t)
	s, begun := blocked(t)
	if _, err := s.run(due{t.Context(), begun}, "?"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("run: %v, want %v", err, context.DeadlineExceeded)
	}
	got := s.captured(t)
	holds(t, got)
	for _, name := range []string{"invoke_agent assistant", "execute_tool clock"} {
		if errTyp := one(t, got, name).Attributes.String("error.type"); errTyp != "timeout" {
			t.Errorf("%s: error.type %q", name, errTyp)
		}
	}
}

// A model that never answers ends the run after some steps.
func TestTheModelGoesOnAndOn(t *testing.T) {
	exampletest.WithoutCollector(t)
	s := start(t, says(calls("calculator", `{"expression":"1 + 1"}`)))
	s.maxSteps = 3
	if _, err := s.run(t.Context(), "?"); err == nil || !strings.Contains(err.Error(), "after 3 steps") {
		t.Errorf("run: %v", err)
	}
	got := s.captured(t)
	holds(t, got)
	if run := one(t, got, "invoke_agent assistant"); run.Attributes.String("error.type") != "max_steps" || len(named(got, "chat toy-1")) != 3 {
		t.Errorf("the run:\n%s", got)
	}
}

// The MCP server dies: the call fails, and the run goes on.
func TestTheMCPServerDies(t *testing.T) {
	exampletest.WithoutCollector(t)
	s := start(t, says(calls("convert_time", `{"value":1,"from":"s","to":"ms"}`)+calls("calculator", `{"expression":"1 + 1"}`), "Done."))
	if err := s.units.process.Kill(); err != nil {
		t.Fatal(err)
	}
	answer, err := s.run(t.Context(), "?")
	if answer != "Done." || err != nil {
		t.Errorf("answer %q, %v", answer, err)
	}
	got := s.captured(t)
	holds(t, got)
	for name, want := range map[string]string{"execute_tool convert_time": "error", "execute_tool calculator": "ok"} {
		if status := one(t, got, name).Attributes.String("genai.tool.status"); status != want {
			t.Errorf("%s: %q, want %q", name, status, want)
		}
	}
	if sent := one(t, got, "tools/call convert_time"); sent.Status != codes.Error {
		t.Error("the call of the dead server has not failed")
	}
}

// The contract finds a tool that left the trace of its run.
func TestTheContractCatchesACallThatLostItsContext(t *testing.T) {
	exampletest.WithoutCollector(t)
	s := start(t, says(calls("convert_time", `{"value":1,"from":"s","to":"ms"}`), "Done."))
	run := s.tools["convert_time"].run
	s.tools["convert_time"].run = func(_ context.Context, arguments jsonText) (string, error) {
		return run(context.Background(), arguments)
	}
	if _, err := s.run(t.Context(), "?"); err != nil {
		t.Fatal(err)
	}
	c, err := contract.Load("contract.yaml")
	if err != nil {
		t.Fatal(err)
	}
	report := c.Check(s.captured(t))
	for _, f := range report.Findings {
		if f.On == "sent" {
			t.Log(f.Text())
			return
		}
	}
	t.Errorf("no finding is about the call: %+v", report.Findings)
}
