package waterfall_test

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/genaitrace/otelgenai/capture/waterfall"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func at(ms float64) time.Time {
	return start.Add(time.Duration(ms * float64(time.Millisecond)))
}

func span(id, parent, name string, from, to float64) waterfall.Span {
	return waterfall.Span{TraceID: "t", SpanID: id, ParentID: parent, Name: name, Start: at(from), End: at(to)}
}

// request is one streamed chat request as the SDK records it.
func request() []waterfall.Span {
	firstToken := []waterfall.Event{{Name: "first_token", Time: at(181.5)}}
	return []waterfall.Span{
		{
			SpanID: "1", Name: "POST /v1/chat/completions", Kind: "SERVER", Role: "gateway",
			Start: at(0), End: at(601), Events: firstToken,
			Attributes: map[string]any{"llm.ttft_ms": 181.5},
		},
		{
			SpanID: "2", ParentID: "1", Name: "chat toy-1", Kind: "CLIENT", Role: "inference",
			Start: at(0.2), End: at(600.8), Events: firstToken,
			Attributes: map[string]any{
				"llm.ttft_ms": 181.3, "genai.last_token_ms": 600.1,
				"gen_ai.usage.input_tokens": int64(44), "gen_ai.usage.cache_read.input_tokens": int64(16), "gen_ai.usage.output_tokens": int64(43),
			},
		},
		{
			SpanID: "3", ParentID: "2", Name: "inference.v1.Inference/Generate", Kind: "SERVER", Role: "service",
			Start: at(0.6), End: at(600.6),
		},
		{
			SpanID: "4", ParentID: "3", Name: "inference.generate", Kind: "INTERNAL",
			Start: at(0.6), End: at(600.5),
			Attributes: map[string]any{
				"genai.span.role": "inference",
				"llm.ttft_ms":     180.9, "genai.last_token_ms": 599.9, "genai.token.count": 43,
				"ai.tokens.input": 44, "ai.tokens.cached": 16, "ai.tokens.output": 43,
				"genai.ttft.queue_ms": 60.25, "genai.ttft.tokenize_ms": 0.04, "genai.ttft.prefill_ms": 120.0,
				"genai.ttft.emit_ms": 0.0, "genai.ttft.unattributed_ms": 0.61,
			},
		},
		{SpanID: "5", ParentID: "4", Name: "queue.wait", Kind: "INTERNAL", Start: at(0.6), End: at(60.85)},
		{SpanID: "6", ParentID: "4", Name: "tokenizer.encode", Kind: "INTERNAL", Start: at(60.85), End: at(60.89)},
		{SpanID: "7", ParentID: "4", Name: "inference.prefill", Kind: "INTERNAL", Start: at(61), End: at(181)},
		{SpanID: "8", ParentID: "4", Name: "inference.decode", Kind: "INTERNAL", Start: at(181), End: at(600.4), Events: firstToken},
		{SpanID: "9", ParentID: "4", Name: "inference.postprocess", Kind: "INTERNAL", Start: at(600.4), End: at(600.5)},
	}
}

func siblings(n int) []waterfall.Span {
	spans := []waterfall.Span{span("root", "", "batch", 0, float64(n))}
	for i := range n {
		s := span(fmt.Sprint(i), "root", fmt.Sprintf("step %d", i), float64(i), float64(i+1))
		if i%1000 == 999 {
			s.Error = "out of memory"
		}
		spans = append(spans, s)
	}
	return spans
}

func chain(n int) []waterfall.Span {
	var spans []waterfall.Span
	for i := range n {
		spans = append(spans, span(fmt.Sprint(i+1), fmt.Sprint(i), fmt.Sprintf("level %d", i), float64(i), float64(2*n-i)))
	}
	return spans
}

func TestRenderMatchesTheGoldenText(t *testing.T) {
	failed := request()
	failed[0].Error = "backend: stream broke"
	failed[7].Error = "device lost\nafter 12 tokens"
	failed[7].End = time.Time{}

	refused := request()[:3]
	refused[0].Attributes = map[string]any{"http.response.status_code": int64(404)}
	refused[1].Attributes = map[string]any{"rpc.response.status_code": "NOT_FOUND"}
	refused[1].Error = "NOT_FOUND"
	refused[2].Attributes = map[string]any{"rpc.response.status_code": "NOT_FOUND"}
	answered := request()[:3]
	answered[0].Attributes["http.response.status_code"] = int64(200)
	answered[1].Attributes["rpc.response.status_code"] = "OK"

	tests := []struct {
		name  string
		spans []waterfall.Span
		opts  waterfall.Options
	}{
		{"request", request(), waterfall.Options{}},
		{"request_ascii", request(), waterfall.Options{ASCII: true}},
		{"request_narrow", request(), waterfall.Options{Width: 60}},
		{"request_tiny", request(), waterfall.Options{Width: 1}},
		{"request_wide", request(), waterfall.Options{Width: 140}},
		{"failed", failed, waterfall.Options{}},
		{"refused", refused, waterfall.Options{}},
		{"refused_tiny", refused, waterfall.Options{Width: 40}},
		{"answered", answered, waterfall.Options{}},
		{"empty", nil, waterfall.Options{}},
		{"two_traces", []waterfall.Span{
			{TraceID: "b", SpanID: "1", Name: "later", Start: at(5), End: at(9)},
			{TraceID: "a", SpanID: "1", Name: "earlier", Start: at(1), End: at(4)},
			{TraceID: "b", SpanID: "2", ParentID: "1", Name: "child", Start: at(6), End: at(7)},
		}, waterfall.Options{}},
		{"orphans", []waterfall.Span{
			span("1", "0000000000000000", "root", 0, 10),
			span("2", "gone", "its parent was dropped", 2, 6),
			span("3", "2", "child of it", 3, 5),
		}, waterfall.Options{}},
		{"cycles", []waterfall.Span{
			span("1", "3", "first of three", 1, 4),
			span("2", "1", "second of three", 2, 4),
			span("3", "2", "third of three", 3, 4),
			span("4", "4", "its own parent", 5, 6),
			span("5", "3", "below the cycle", 3, 4),
		}, waterfall.Options{}},
		{"same_id_twice", []waterfall.Span{
			span("1", "", "one", 0, 4), span("1", "", "two", 1, 4), span("2", "1", "child", 2, 3), span("", "", "without id", 3, 4),
		}, waterfall.Options{}},
		{"odd_times", []waterfall.Span{
			span("1", "", "root", 10, 110),
			span("2", "1", "zero length", 60, 60),
			span("3", "1", "zero length at the end", 110, 110),
			span("4", "1", "before its parent", 0, 20),
			span("5", "1", "after its parent", 100, 160),
			span("6", "1", "ends before it starts", 80, 70),
			{TraceID: "t", SpanID: "7", ParentID: "1", Name: "has not ended", Start: at(90)},
			{TraceID: "t", SpanID: "8", ParentID: "1", Name: "has no start", End: at(90)},
			span("9", "1", "one nanosecond", 30, 30.000001),
		}, waterfall.Options{}},
		{"one_instant", []waterfall.Span{span("1", "", "root", 0, 0), span("2", "1", "child", 0, 0)}, waterfall.Options{}},
		{"no_times", []waterfall.Span{{Name: "root"}}, waterfall.Options{}},
		{"siblings", siblings(5000), waterfall.Options{MaxSiblings: 3}},
		{"deep", chain(20), waterfall.Options{}},
		{"names", []waterfall.Span{
			span("1", "", "clear \x1b[2J and\nbreak\ttab", 0, 9),
			span("2", "1", "invalid \xff\xfe utf-8, real \ufffd", 1, 9),
			span("3", "1", "right to left \u202e override", 2, 9),
			span("4", "1", "模型 推理", 3, 9),
			span("5", "1", "cafe\u0301", 4, 9),
			span("6", "1", strings.Repeat("long ", 40), 5, 9),
			span("7", "1", "", 6, 9),
		}, waterfall.Options{}},
		{"names_ascii", []waterfall.Span{span("1", "", "模型 \xff", 0, 9)}, waterfall.Options{ASCII: true}},
		{"no_false_numbers", []waterfall.Span{{
			Name: "call", Role: "inference", Start: at(0), End: at(9),
			Attributes: map[string]any{
				"llm.ttft_ms": 5.0, "genai.last_token_ms": 4.0, "genai.token.count": 1, "gen_ai.usage.input_tokens": int64(-1),
				"gen_ai.usage.output_tokens": "7", "genai.ttft.queue_ms": math.NaN(), "genai.ttft.prefill_ms": math.Inf(1),
			},
		}}, waterfall.Options{}},
		{"no_ttft", []waterfall.Span{{
			Name: "call", Start: at(0), End: at(9), Attributes: map[string]any{"gen_ai.usage.input_tokens": 3},
		}}, waterfall.Options{}},
		{"call_without_ttft", []waterfall.Span{
			{
				SpanID: "1", Name: "POST /v1/chat/completions", Kind: "SERVER", Role: "gateway", Start: at(0), End: at(9),
			},
			{
				SpanID: "2", ParentID: "1", Name: "chat tiny", Kind: "CLIENT", Role: "inference", Start: at(1), End: at(9),
				Attributes: map[string]any{"gen_ai.usage.input_tokens": 3, "gen_ai.usage.output_tokens": 0},
			},
		}, waterfall.Options{}},
		{"zero_ttft", []waterfall.Span{{
			Name: "call", Start: at(0), End: at(9), Attributes: map[string]any{"llm.ttft_ms": 0.0, "genai.ttft.prefill_ms": 0.0},
		}}, waterfall.Options{}},
		{"long_trace", []waterfall.Span{
			span("1", "", "minutes", 0, 192000),
			span("2", "1", "seconds", 0, 12340),
			{
				TraceID: "t", SpanID: "3", ParentID: "1", Name: "inference.generate", Role: "inference", Start: at(0), End: at(192000),
				Attributes: map[string]any{"llm.ttft_ms": 123450.1, "genai.ttft.queue_ms": 123450.0, "genai.ttft.prefill_ms": 0.1},
			},
		}, waterfall.Options{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out strings.Builder
			if err := waterfall.Render(&out, tt.spans, tt.opts); err != nil {
				t.Fatal(err)
			}
			compareGolden(t, filepath.Join("testdata", tt.name+".golden"), out.String())
			if !utf8.ValidString(out.String()) {
				t.Error("the output is not valid UTF-8")
			}
		})
	}
}

func compareGolden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (go test -update rewrites it)\ngot:\n%s\nwant:\n%s", path, got, want)
	}
}

func TestRenderKeepsToTheWidth(t *testing.T) {
	refused := request()
	refused[2].Attributes = map[string]any{"rpc.response.status_code": "RESOURCE_EXHAUSTED"}
	for _, width := range []int{40, 60, 79, 80, 100, 200} {
		for name, spans := range map[string][]waterfall.Span{
			"request": request(), "refused": refused, "siblings": siblings(50), "deep": chain(40),
		} {
			var out strings.Builder
			if err := waterfall.Render(&out, spans, waterfall.Options{Width: width}); err != nil {
				t.Fatal(err)
			}
			tree, _, _ := strings.Cut(out.String(), "\n\n")
			for line := range strings.Lines(tree) {
				if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width {
					t.Errorf("%s at width %d: %d columns: %q", name, width, n, line)
				}
			}
		}
	}
}

func TestRenderDoesNotChangeItsInput(t *testing.T) {
	spans := request()
	if err := waterfall.Render(&strings.Builder{}, spans, waterfall.Options{}); err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(spans), fmt.Sprint(request()); got != want {
		t.Errorf("spans after Render:\n%s\nwant:\n%s", got, want)
	}
}

func TestRenderReportsTheErrorOfTheWriter(t *testing.T) {
	broken := errors.New("pipe closed")
	if err := waterfall.Render(failingWriter{broken}, siblings(500), waterfall.Options{MaxSiblings: 500}); !errors.Is(err, broken) {
		t.Errorf("Render = %v, want %v", err, broken)
	}
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }

// FuzzRender holds that no input panics, hangs or reaches the terminal raw.
func FuzzRender(f *testing.F) {
	f.Add("a", "", "b", "a", "name", "\x1b[0m", int64(0), int64(5), int64(3), int64(9), 0)
	f.Add("a", "b", "b", "a", "\xff", "", int64(9), int64(-5), int64(0), int64(1)<<62, 1)
	f.Fuzz(func(t *testing.T, id1, parent1, id2, parent2, name1, name2 string, s1, e1, s2, e2 int64, width int) {
		spans := []waterfall.Span{
			{SpanID: id1, ParentID: parent1, Name: name1, Kind: name2, Start: start.Add(time.Duration(s1)), End: start.Add(time.Duration(e1)), Error: name2},
			{SpanID: id2, ParentID: parent2, Name: name2, Role: name1, Start: start.Add(time.Duration(s2)), End: start.Add(time.Duration(e2)), Attributes: map[string]any{
				"http.response.status_code": s2, "rpc.response.status_code": name2,
				"llm.ttft_ms": float64(e2), "genai.ttft.queue_ms": float64(s1), "genai.ttft.emit_ms": float64(e1), "genai.last_token_ms": e1, "genai.token.count": s2,
			}},
			{SpanID: "", ParentID: id1, TraceID: name1},
		}
		for _, ascii := range []bool{false, true} {
			var out strings.Builder
			if err := waterfall.Render(&out, spans, waterfall.Options{Width: width % 300, ASCII: ascii, MaxSiblings: 1}); err != nil {
				t.Fatal(err)
			}
			for _, r := range out.String() {
				if r != '\n' && (r < ' ' || r == 0x7f || ascii && r >= utf8.RuneSelf) {
					t.Fatalf("%q reaches the terminal in %q", r, out.String())
				}
			}
		}
	})
}
