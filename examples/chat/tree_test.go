package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/examples/internal/toy"
)

// The engine of the tests takes 1 ms for a token of the prompt and 10 ms for one
// of the answer.
func testEngine() toy.Config {
	return toy.Config{PassTime: time.Microsecond, PrefillTime: time.Millisecond, DecodeTime: 10 * time.Millisecond}
}

func streaming() *config { return &config{requests: 1, model: toy.Model, stream: true} }

func TestTheTreeOfARequest(t *testing.T) {
	const question = "What is prefill?"
	ignore := func(string) {}

	tests := []struct {
		name   string
		engine func(*toy.Config)
		ask    func(t *testing.T, h *hops)
	}{
		{"streaming", nil, func(t *testing.T, h *hops) {
			pieces := 0
			text, err := h.client(streaming()).Ask(t.Context(), question, func(string) { pieces++ })
			if err != nil || !strings.HasPrefix(text, "Prefill is the pass") || pieces < 30 {
				t.Errorf("ask = %q in %d pieces, %v", text, pieces, err)
			}
		}},
		{"whole", nil, func(t *testing.T, h *hops) {
			cfg := streaming()
			cfg.stream = false
			text, err := h.client(cfg).Ask(t.Context(), question, ignore)
			if err != nil || !strings.HasPrefix(text, "Prefill is the pass") {
				t.Errorf("ask = %q, %v", text, err)
			}
		}},
		{"token_limit", nil, func(t *testing.T, h *hops) {
			cfg := streaming()
			cfg.maxTokens = 3
			text, err := h.client(cfg).Ask(t.Context(), question, ignore)
			if err != nil || text != "Prefill is" {
				t.Errorf("ask = %q, %v", text, err)
			}
		}},
		{"one_slot", func(c *toy.Config) { c.Slots = 1 }, func(t *testing.T, h *hops) {
			cfg := streaming()
			cfg.requests, cfg.concurrency, cfg.prompt = 2, 2, question
			if _, err := askMany(t.Context(), h.client(cfg), cfg, io.Discard); err != nil {
				t.Error(err)
			}
		}},
		{"client_leaves", nil, func(t *testing.T, h *hops) {
			ctx, leave := context.WithCancel(t.Context())
			pieces := 0
			_, err := h.client(streaming()).Ask(ctx, question, func(string) {
				if pieces++; pieces == 5 {
					leave()
				}
			})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("ask: %v, want %v", err, context.Canceled)
			}
		}},
		{"client_leaves_whole", nil, func(t *testing.T, h *hops) {
			ctx, leave := context.WithTimeout(t.Context(), 95*time.Millisecond)
			defer leave()
			cfg := streaming()
			cfg.stream = false
			if _, err := h.client(cfg).Ask(ctx, question, ignore); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("ask: %v, want %v", err, context.DeadlineExceeded)
			}
		}},
		{"engine_fails", failAt(5), func(t *testing.T, h *hops) {
			text, err := h.client(streaming()).Ask(t.Context(), question, ignore)
			if err == nil || !strings.Contains(err.Error(), "device lost") || text != "Prefill is the pass" {
				t.Errorf("ask = %q, %v, want the start of the answer and the error of the engine", text, err)
			}
		}},
		{"engine_fails_whole", failAt(5), func(t *testing.T, h *hops) {
			cfg := streaming()
			cfg.stream = false
			if _, err := h.client(cfg).Ask(t.Context(), question, ignore); err == nil || !strings.Contains(err.Error(), "500") {
				t.Errorf("ask: %v, want status 500", err)
			}
		}},
		{"unknown_model", nil, func(t *testing.T, h *hops) {
			cfg := streaming()
			cfg.model = "gpt-17"
			if _, err := h.client(cfg).Ask(t.Context(), question, ignore); err == nil || !strings.Contains(err.Error(), "404") {
				t.Errorf("ask: %v, want status 404", err)
			}
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg := testEngine()
				if tt.engine != nil {
					tt.engine(&cfg)
				}
				h := startHops(t, cfg)
				begin := time.Now()
				tt.ask(t, h)
				spans := h.ended()
				compareGolden(t, tt.name, describe(spans, begin))
				everySpanEndsOnce(t, h)
			})
		})
	}
}

func failAt(token int) func(*toy.Config) {
	return func(c *toy.Config) {
		c.Fault = func(n int) error {
			if n == token {
				return errors.New("device lost")
			}
			return nil
		}
	}
}

func everySpanEndsOnce(t *testing.T, h *hops) {
	t.Helper()
	ended := make(map[trace.SpanID]int)
	for _, s := range h.spans.Ended() {
		ended[s.SpanContext().SpanID()]++
	}
	for _, s := range h.spans.Started() {
		if n := ended[s.SpanContext().SpanID()]; n != 1 {
			t.Errorf("%s ended %d times", s.Name(), n)
		}
	}
}

// describe writes spans as a tree: name, kind, time since begin, status, and
// below it the role, the keys of the attributes and the events.
func describe(spans []sdktrace.ReadOnlySpan, begin time.Time) string {
	children := make(map[trace.SpanID][]sdktrace.ReadOnlySpan)
	for _, s := range spans {
		children[s.Parent().SpanID()] = append(children[s.Parent().SpanID()], s)
	}
	var out strings.Builder
	var walk func(parent trace.SpanID, indent string)
	walk = func(parent trace.SpanID, indent string) {
		slices.SortStableFunc(children[parent], func(a, b sdktrace.ReadOnlySpan) int {
			return cmp.Or(a.StartTime().Compare(b.StartTime()), a.EndTime().Compare(b.EndTime()))
		})
		for _, s := range children[parent] {
			fmt.Fprintf(&out, "%s%s %s, %s, %v → %v\n", indent, strings.ToUpper(s.SpanKind().String()), s.Name(),
				strings.ToLower(s.Status().Code.String()), s.StartTime().Sub(begin), s.EndTime().Sub(begin))
			writeKeys(&out, indent+"    ", s.Attributes())
			for _, e := range s.Events() {
				fmt.Fprintf(&out, "%s    event %s at %v\n", indent, e.Name, e.Time.Sub(begin))
				writeKeys(&out, indent+"        ", e.Attributes)
			}
			walk(s.SpanContext().SpanID(), indent+"  ")
		}
	}
	walk(trace.SpanID{}, "")
	return out.String()
}

// writeKeys writes a line for each attribute, with its value where that is a
// word of the vocabulary and not a measurement.
func writeKeys(out io.Writer, indent string, attrs []attribute.KeyValue) {
	lines := make([]string, 0, len(attrs))
	for _, kv := range attrs {
		switch kv.Key {
		case "genai.span.role", "genai.stream.terminal", "genai.early_stop.reason", "genai.phase", "error.type",
			"gen_ai.response.finish_reasons", "http.response.status_code", "rpc.response.status_code":
			lines = append(lines, fmt.Sprintf("%s%s=%s\n", indent, kv.Key, kv.Value.String()))
		default:
			lines = append(lines, fmt.Sprintf("%s%s\n", indent, kv.Key))
		}
	}
	slices.Sort(lines)
	io.WriteString(out, strings.Join(lines, ""))
}

// find returns the spans of a name in the order of their start.
func find(t *testing.T, spans []sdktrace.ReadOnlySpan, name string) []sdktrace.ReadOnlySpan {
	t.Helper()
	var out []sdktrace.ReadOnlySpan
	for _, s := range spans {
		if s.Name() == name {
			out = append(out, s)
		}
	}
	if len(out) == 0 {
		t.Fatalf("no span %q", name)
	}
	return out
}

func value(t *testing.T, attrs []attribute.KeyValue, key attribute.Key) float64 {
	t.Helper()
	for _, kv := range attrs {
		if kv.Key == key {
			return kv.Value.AsFloat64()
		}
	}
	t.Fatalf("no attribute %s", key)
	return 0
}

// The time to first token is one number wherever it is written, counted from
// where each hop starts to count.
func TestTTFTIsTheSameOnAttributeEventAndHistogram(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := startHops(t, testEngine())
		if _, err := h.client(streaming()).Ask(t.Context(), "What is prefill?", func(string) {}); err != nil {
			t.Fatal(err)
		}
		spans := h.ended()
		prefill := find(t, spans, "inference.prefill")[0]
		want := prefill.EndTime().Sub(prefill.StartTime())

		for _, tt := range []struct {
			attribute, event string // names of spans
			histogram, role  string
		}{
			{"inference.generate", "inference.decode", "gen_ai.server.time_to_first_token", "toy"},
			{"chat toy-1", "chat toy-1", "genai.time_to_first_token", "inference"},
			{"POST /v1/chat/completions", "POST /v1/chat/completions", "genai.time_to_first_token", "gateway"},
		} {
			span := find(t, spans, tt.attribute)[0]
			if got := value(t, span.Attributes(), "llm.ttft_ms"); got != ms(want) {
				t.Errorf("%s: llm.ttft_ms = %v, want %v", tt.attribute, got, ms(want))
			}
			events := 0
			for _, e := range find(t, spans, tt.event)[0].Events() {
				if e.Name != "first_token" {
					continue
				}
				events++
				if got := value(t, e.Attributes, "llm.ttft_ms"); got != ms(want) {
					t.Errorf("%s: event first_token says %v, want %v", tt.event, got, ms(want))
				}
				if got := e.Time.Sub(span.StartTime()); got != want {
					t.Errorf("%s: event first_token stands at %v, want %v", tt.event, got, want)
				}
			}
			if events != 1 {
				t.Errorf("%s: %d events first_token, want one", tt.event, events)
			}
			if sum, count := h.histogram(t, tt.histogram, tt.role); count != 1 || sum != want.Seconds() {
				t.Errorf("%s of %s = %v s in %d points, want %v s in one", tt.histogram, tt.role, sum, count, want.Seconds())
			}
		}
	})
}

func TestThePartsOfTheTTFTAddUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := testEngine()
		cfg.Slots = 1
		h := startHops(t, cfg)
		questions := streaming()
		questions.requests, questions.concurrency = 3, 3
		if _, err := askMany(t.Context(), h.client(questions), questions, io.Discard); err != nil {
			t.Fatal(err)
		}
		for _, s := range find(t, h.ended(), "inference.generate") {
			var sum int64
			for _, part := range []attribute.Key{"queue", "tokenize", "prefill", "emit", "unattributed"} {
				sum += nanoseconds(value(t, s.Attributes(), "genai.ttft."+part+"_ms"))
			}
			if ttft := nanoseconds(value(t, s.Attributes(), "llm.ttft_ms")); sum != ttft {
				t.Errorf("the parts add up to %d ns, llm.ttft_ms is %d ns", sum, ttft)
			}
		}
	})
}

// With one slot, the second request waits exactly as long as the first one is
// served.
func TestTheQueueOfOneSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := testEngine()
		cfg.Slots = 1
		h := startHops(t, cfg)
		questions := streaming()
		questions.requests, questions.concurrency = 2, 2
		if _, err := askMany(t.Context(), h.client(questions), questions, io.Discard); err != nil {
			t.Fatal(err)
		}
		spans := h.ended()
		waits := find(t, spans, "queue.wait")
		served := find(t, spans, "inference.generate")
		first, second := served[0], served[1]
		if first.EndTime().After(second.EndTime()) {
			first, second = second, first
		}
		wait := slices.MaxFunc(waits, func(a, b sdktrace.ReadOnlySpan) int {
			return cmp.Compare(a.EndTime().Sub(a.StartTime()), b.EndTime().Sub(b.StartTime()))
		})
		if wait.Parent().SpanID() != second.SpanContext().SpanID() {
			t.Error("the request that was served first waited longer")
		}
		service := first.EndTime().Sub(first.StartTime())
		if got := wait.EndTime().Sub(wait.StartTime()); got != service || got == 0 {
			t.Errorf("the second request waited %v, the first was served for %v", got, service)
		}
		if got := value(t, second.Attributes(), "genai.ttft.queue_ms"); got != ms(service) {
			t.Errorf("genai.ttft.queue_ms = %v, want %v", got, ms(service))
		}
	})
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func nanoseconds(ms float64) int64 { return int64(math.Round(ms * 1e6)) }
