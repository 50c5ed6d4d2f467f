package capture_test

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/capture"
)

// request is one failed request with all that a tree can show.
func request() []*capture.Span {
	gateway := span(1, 77, "POST /v1/chat/completions", 0, 470)
	gateway.Kind, gateway.ParentOrigin = trace.SpanKindServer, capture.OriginRemote
	gateway.Attributes = capture.Attributes{
		attribute.String("genai.span.role", "gateway"), attribute.Int("http.response.status_code", 502),
		attribute.String("url.full", "http://127.0.0.1:43121/v1/chat/completions"), attribute.Int("server.port", 43121),
	}
	chat := span(2, 1, "chat toy-1", 5, 460)
	chat.Kind = trace.SpanKindClient
	chat.Status, chat.StatusMessage = codes.Error, "dial tcp 127.0.0.1:43122: \"refused\""
	chat.Attributes = capture.Attributes{
		attribute.String("genai.span.role", "inference"),
		attribute.String("gen_ai.request.model", "toy-1"), attribute.Float64("gen_ai.request.temperature", 1),
		attribute.Float64("llm.ttft_ms", 120.5), attribute.String("gen_ai.response.id", "cmpl-7"),
		attribute.StringSlice("gen_ai.response.finish_reasons", []string{"stop"}),
		attribute.Int("gen_ai.usage.input_tokens", 44), attribute.Bool("gen_ai.request.stream", true),
		attribute.String("text", "two\nlines"), attribute.String("note", "4bf92f3577b34da6a3ce929d0e0e4736"),
		attribute.Float64("unknown", 2.5), attribute.Float64("ai.kv_cache.hit_ratio", 0.5),
	}
	chat.Events = []capture.Event{
		{Name: "first_token", Time: at(125), Attributes: capture.Attributes{attribute.Float64("llm.ttft_ms", 120.5)}},
		{Name: "early_stop", Time: at(455)},
	}
	chat.Links = []capture.Link{
		{TraceID: trace.TraceID{1}, SpanID: id(4), Attributes: capture.Attributes{attribute.String("why", "retry")}},
		{TraceID: trace.TraceID{9}, SpanID: id(9)},
	}
	open := span(3, 2, "queue.wait", 10, 0)
	open.End = time.Time{}
	lost := span(4, 88, "batch\x1b[31m", 20, 21)
	lost.Status = codes.Ok
	return []*capture.Span{lost, open, chat, gateway}
}

func TestATreeAsText(t *testing.T) {
	tests := []struct {
		name string
		opts capture.TreeOptions
		want string
	}{
		{"names, kinds, roles and statuses", capture.TreeOptions{}, `
POST /v1/chat/completions [server, gateway, remote parent]
  chat toy-1 [client, inference, error "dial tcp 127.0.0.1:<port>: \"refused\""]
    queue.wait [internal, never ended]
"batch\x1b[31m" [internal, parent missing, ok]
`},
		{"attributes and links", capture.TreeOptions{Attributes: []string{"*"}, Links: true}, `
POST /v1/chat/completions [server, gateway, remote parent]
    genai.span.role: "gateway"
    http.response.status_code: 502
    server.port: <int>
    url.full: "http://127.0.0.1:<port>/v1/chat/completions"
  chat toy-1 [client, inference, error "dial tcp 127.0.0.1:<port>: \"refused\""]
      ai.kv_cache.hit_ratio: <double>
      gen_ai.request.model: "toy-1"
      gen_ai.request.stream: true
      gen_ai.request.temperature: 1.0
      gen_ai.response.finish_reasons: ["stop"]
      gen_ai.response.id: <string>
      gen_ai.usage.input_tokens: 44
      genai.span.role: "inference"
      llm.ttft_ms: <double>
      note: <string>
      text: "two\nlines"
      unknown: <double>
      -> "batch\x1b[31m"
          why: "retry"
      -> a span that was not captured
    queue.wait [internal, never ended]
"batch\x1b[31m" [internal, parent missing, ok]
`},
		{"some attributes, with some values, events and times", capture.TreeOptions{
			Attributes: []string{"llm.*", "gen_ai.*.id"}, Values: []string{"llm.ttft_ms"}, Events: true, Times: true,
		}, `
POST /v1/chat/completions [server, gateway, remote parent] at 0s for 470ms
  chat toy-1 [client, inference, error "dial tcp 127.0.0.1:<port>: \"refused\""] at 5ms for 455ms
      gen_ai.response.id: <string>
      llm.ttft_ms: 120.5
      * first_token at 125ms
          llm.ttft_ms: 120.5
      * early_stop at 455ms
    queue.wait [internal, never ended] at 10ms
"batch\x1b[31m" [internal, parent missing, ok] at 20ms for 1ms
`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var b strings.Builder
			require.NoError(t, capture.NewTrace(request()).WriteTree(&b, tt.opts))
			assert.Equal(t, strings.TrimPrefix(tt.want, "\n"), b.String())

			var all strings.Builder
			require.NoError(t, (&capture.Capture{Spans: request()}).WriteTree(&all, tt.opts))
			assert.Equal(t, b.String(), all.String())
		})
	}
	assert.Equal(t, strings.TrimPrefix(tests[0].want, "\n"), capture.NewTrace(request()).String())
}

func TestDamageShowsInTheText(t *testing.T) {
	noStart := span(3, 1, "no start", 0, 0)
	noStart.Start = time.Time{}
	tr := capture.NewTrace([]*capture.Span{span(1, 2, "a", 0, 9), span(2, 1, "b", 1, 2), noStart})
	var b strings.Builder
	require.NoError(t, tr.WriteTree(&b, capture.TreeOptions{Times: true}))
	assert.Equal(t, `a [internal, its own ancestor] at 0s for 9ms
  no start [internal] at an unknown time
  b [internal] at 1ms for 1ms
`, b.String())
	assert.Empty(t, capture.NewTrace(nil).String())
	assert.Empty(t, (&capture.Capture{}).String())
}

func TestDeepTreesStayReadable(t *testing.T) {
	var spans []*capture.Span
	for i := range 44 {
		spans = append(spans, span(i+1, i, "s", i, 100-i))
	}
	lines := strings.Split(capture.NewTrace(spans).String(), "\n")
	assert.Equal(t, strings.Repeat("  ", 40)+"s [internal]", lines[40])
	assert.Equal(t, strings.Repeat("  ", 40)+"(depth 43) s [internal]", lines[43])
}

// Under a fake clock many things happen at once, and identifiers are random.
func TestTheTextIsTheSameWhateverTheOrderAndTheIdentifiers(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	build := func() *capture.Capture {
		ids := random.Perm(1000)
		next := func() int { ids = ids[1:]; return ids[0] + 1 }
		var spans []*capture.Span
		for request := range 3 {
			traceID := trace.TraceID{byte(next()), byte(next())}
			root, one, two := next(), next(), next()
			made := []*capture.Span{
				span(root, 0, "root", 0, 9), span(one, root, "call", 1, 5), span(two, root, "call", 1, 5),
				span(next(), one, "queue", 1, 2), span(next(), two, "prefill", 1, 2+request%2), span(next(), two, "prefill", 1, 2),
			}
			made[4].Attributes = capture.Attributes{attribute.Int("tokens", 7)}
			for _, s := range made {
				s.TraceID = traceID
			}
			spans = append(spans, made...)
		}
		random.Shuffle(len(spans), func(i, j int) { spans[i], spans[j] = spans[j], spans[i] })
		return &capture.Capture{Spans: spans}
	}
	text := func(c *capture.Capture) string {
		var b strings.Builder
		require.NoError(t, c.WriteTree(&b, capture.TreeOptions{Attributes: []string{"*"}, Times: true}))
		return b.String()
	}
	want := text(build())
	assert.Equal(t, 2, strings.Count(want, "\n\n"))
	for range 50 {
		require.Equal(t, want, text(build()))
	}
}

type brokenWriter struct{}

var errDisk = errors.New("disk full")

func (brokenWriter) Write([]byte) (int, error) { return 0, errDisk }

func TestTheErrorOfTheWriterIsReturned(t *testing.T) {
	require.ErrorIs(t, capture.NewTrace(request()).WriteTree(brokenWriter{}, capture.TreeOptions{}), errDisk)
	require.ErrorIs(t, (&capture.Capture{Spans: request()}).WriteTree(brokenWriter{}, capture.TreeOptions{}), errDisk)
}

func TestGlobsSelectAttributes(t *testing.T) {
	tests := []struct {
		glob, key string
		want      bool
	}{
		{"*", "anything/at.all", true},
		{"gen_ai.*", "gen_ai.request.model", true},
		{"gen_ai.*", "genai.request_id", false},
		{"*.id", "gen_ai.response.id", true},
		{"*.id", "gen_ai.response.ids", false},
		{"gen_ai.*.id", "gen_ai.id", false},
		{"a*a", "a", false},
		{"a*b*c", "a.b.c", true},
		{"a*b*c", "a.c.b", false},
		{"llm.ttft_ms", "llm.ttft_ms", true},
		{"llm.ttft", "llm.ttft_ms", false},
		{"", "a", false},
	}
	for _, tt := range tests {
		s := span(1, 0, "s", 0, 1)
		s.Attributes = capture.Attributes{attribute.Bool(tt.key, true)}
		var b strings.Builder
		require.NoError(t, capture.NewTrace([]*capture.Span{s}).WriteTree(&b, capture.TreeOptions{Attributes: []string{tt.glob}}))
		assert.Equal(t, tt.want, strings.Contains(b.String(), "    "+tt.key+": "), "%s on %s", tt.glob, tt.key)
	}
}

func TestValuesThatChangeFromRunToRunBecomeTheirType(t *testing.T) {
	tests := []struct {
		kv   attribute.KeyValue
		want string
	}{
		{attribute.Float64("gen_ai.response.time_to_first_chunk", 0.1), "<double>"},
		{attribute.String("genai.token.timeline", "AAEC"), "<string>"},
		{attribute.String("genai.request_id", "r1"), "<string>"},
		{attribute.String("genai.prompt.hash", "r1"), "<string>"},
		{attribute.String("x", "6ba7b810-9dad-11d1-80b4-00c04fd430c8"), "<string>"},
		{attribute.Float64Slice("x", []float64{1}), "<double[]>"},
		{attribute.Int64Slice("x.ms", []int64{1}), "<int[]>"},
		{attribute.StringSlice("x.id", []string{"a"}), "<string[]>"},
		{attribute.BoolSlice("x.id", []bool{true}), "<boolean[]>"},
		{attribute.Bool("x.id", true), "<boolean>"},
		{attribute.Map("x.id", attribute.Int("a", 1)), "<map>"},
		{attribute.KeyValue{Key: "x"}, "<empty>"},
		{attribute.Float64("gen_ai.request.top_p", 0.9), "0.9"},
		{attribute.Float64("gen_ai.request.top_p", 1e30), "1e+30"},
		{attribute.Map("x", attribute.String("a", "b")), `{"a":"b"}`},
		{attribute.Int64Slice("x", []int64{1, 2}), "[1,2]"},
		{attribute.String("x", "deadbeef"), `"deadbeef"`},
		{attribute.String("x", "localhost:8080 and [::1]:9"), `"localhost:<port> and [::1]:<port>"`},
	}
	for _, tt := range tests {
		s := span(1, 0, "s", 0, 1)
		s.Attributes = capture.Attributes{tt.kv}
		var b strings.Builder
		require.NoError(t, capture.NewTrace([]*capture.Span{s}).WriteTree(&b, capture.TreeOptions{Attributes: []string{"*"}}))
		assert.Equal(t, "s [internal]\n    "+string(tt.kv.Key)+": "+tt.want+"\n", b.String())
	}
}

func TestUnderAFakeClockMeasurementsAreShown(t *testing.T) {
	s := span(1, 0, "s", 0, 1)
	s.Attributes = capture.Attributes{
		attribute.Float64("llm.ttft_ms", 120), attribute.Float64("unknown", 2.5), attribute.String("genai.request_id", "r1"),
	}
	var b strings.Builder
	require.NoError(t, capture.NewTrace([]*capture.Span{s}).WriteTree(&b, capture.TreeOptions{Attributes: []string{"*"}, Times: true}))
	assert.Equal(t, `s [internal] at 0s for 1ms
    genai.request_id: <string>
    llm.ttft_ms: 120.0
    unknown: 2.5
`, b.String())
}
