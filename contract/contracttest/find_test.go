package contracttest_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/log"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/contract/contracttest"
)

// chatted runs a test on what one chat recorded.
func chatted(test func(r *recordingT, obs *contracttest.Observer), change ...func(*shop)) *recordingT {
	return run(func(r *recordingT) {
		obs := contracttest.New(r, contracttest.File(contractFile))
		s := newShop(obs)
		for _, c := range change {
			c(s)
		}
		s.chat()
		test(r, obs)
		obs.Require(r, "chat")
	})
}

func TestSpansAreFoundByRoleAndByName(t *testing.T) {
	passes(t, chatted(func(r *recordingT, obs *contracttest.Observer) {
		infer := obs.Span(r, "infer")
		assert.Equal(t, "inference.generate", infer.Captured().Name)
		assert.Equal(t, infer.Captured().SpanID, obs.Span(r, "inference.generate").Captured().SpanID)
		assert.Equal(t, "inference.decode", infer.Child("decode").Captured().Name)
		assert.Equal(t, "inference.decode", infer.Child("inference.decode").Captured().Name)
		assert.Equal(t, "POST /v1/chat/completions", infer.Parent().Captured().Name)
		assert.Len(t, obs.Spans(r, "decode"), 1)
		assert.Empty(t, obs.Spans(r, "retrieve"))
		obs.NoSpan(r, "retrieve")
		obs.NoSpan(r, "no such name")
		assert.Equal(t, "s", obs.Metric(r, "gen_ai.server.time_to_first_token").Unit)
		var record log.Record
		record.SetEventName("genai.stop")
		obs.LoggerProvider().Logger("").Emit(t.Context(), record)
		assert.Equal(t, "genai.stop", obs.Log(r, "genai.stop").EventName)
	}))
}

func TestWhatIsNotThereOnceEndsTheTestWithTheTree(t *testing.T) {
	twice := func(s *shop) { s.twoDecoders = true }
	tests := []struct {
		name   string
		change func(*shop)
		find   func(r *recordingT, obs *contracttest.Observer)
		want   string
	}{
		{"a role", nil, func(r *recordingT, obs *contracttest.Observer) { obs.Span(r, "retrieve") },
			"want one span of the role retrieve, found 0\n"},
		{"a name", nil, func(r *recordingT, obs *contracttest.Observer) { obs.Span(r, "inference.decod") },
			`want one span named "inference.decod", found 0; did you mean inference.decode?` + "\n"},
		{"a misspelt role", nil, func(r *recordingT, obs *contracttest.Observer) { obs.Span(r, "decod") },
			`want one span named "decod", found 0; did you mean decode?` + "\n"},
		{"two spans", twice, func(r *recordingT, obs *contracttest.Observer) { obs.Span(r, "inference.decode") },
			`want one span named "inference.decode", found 2` + "\n"},
		{"a child", nil, func(r *recordingT, obs *contracttest.Observer) { obs.Span(r, "gateway").Child("decode") },
			"want one child decode of POST /v1/chat/completions (started at harness_test.go:"},
		{"two children", twice, func(r *recordingT, obs *contracttest.Observer) { obs.Span(r, "infer").Child("inference.decode") },
			"found 2; it has decode, inference.decode; did you mean inference.decode?"},
		{"a parent", nil, func(r *recordingT, obs *contracttest.Observer) { obs.Span(r, "gateway").Parent() },
			"want a parent of POST /v1/chat/completions (started at harness_test.go:"},
		{"a metric", nil, func(r *recordingT, obs *contracttest.Observer) { obs.Metric(r, "gen_ai.server.time_to_first_tokn") },
			"did you mean gen_ai.server.time_to_first_token?"},
		{"a log record", nil, func(r *recordingT, obs *contracttest.Observer) { obs.Log(r, "genai.stop") },
			"want one log record genai.stop, found 0; there are none\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			change := tt.change
			if change == nil {
				change = func(*shop) {}
			}
			r := chatted(func(r *recordingT, obs *contracttest.Observer) {
				tt.find(r, obs)
				t.Error("the test goes on")
			}, change)
			assert.True(t, r.fatal)
			text := failure(t, r)
			assert.Contains(t, text, tt.want)
			assert.Contains(t, text, "\nPOST /v1/chat/completions [server, gateway]\n  inference.generate [internal, inference]\n")
		})
	}
}

func TestNoSpanFailsWhereThereIsOne(t *testing.T) {
	r := chatted(func(r *recordingT, obs *contracttest.Observer) { obs.NoSpan(r, "decode") })
	assert.Contains(t, failure(t, r), "want no span of the role decode, found 1\n\nThe spans:\n")
	assert.False(t, r.fatal)
}

type word string

func TestAttributesAreAsserted(t *testing.T) {
	attributes := trace.WithAttributes(
		attribute.Float64("llm.ttft_ms", 12.5), attribute.Int("n", 3), attribute.String("s", "x"), attribute.Bool("b", true),
		attribute.StringSlice("ss", []string{"x", "y"}), attribute.IntSlice("ns", []int{1}),
		attribute.Float64Slice("fs", []float64{1}), attribute.BoolSlice("bs", []bool{true}),
	)
	tests := []struct {
		name   string
		assert func(s *contracttest.Span)
		want   string // of the failure; empty where there is none
	}{
		{"present", func(s *contracttest.Span) { s.Attr("n").Present().Equal(3).Between(3, 3) }, ""},
		{"absent", func(s *contracttest.Span) { s.Attr("missing").Absent() }, ""},
		{"int", func(s *contracttest.Span) { s.Attr("n").Equal(int32(3)).Equal(int64(3)) }, ""},
		{"double", func(s *contracttest.Span) { s.Attr("llm.ttft_ms").Equal(12.5).Between(12, 13) }, ""},
		{"text", func(s *contracttest.Span) { s.Attr("s").Equal("x").Equal(word("x")) }, ""},
		{"bool", func(s *contracttest.Span) { s.Attr("b").Equal(true) }, ""},
		{"value", func(s *contracttest.Span) { s.Attr("b").Equal(attribute.BoolValue(true)) }, ""},
		{"slices", func(s *contracttest.Span) {
			s.Attr("ss").Equal([]string{"x", "y"}).Equal([]word{"x", "y"})
			s.Attr("ns").Equal([]int{1})
			s.Attr("fs").Equal([]float64{1})
			s.Attr("bs").Equal([]bool{true})
		}, ""},
		{"not present", func(s *contracttest.Span) { s.Attr("llm.ttft_m").Present() }, "is not there; did you mean llm.ttft_ms?"},
		{"not absent", func(s *contracttest.Span) { s.Attr("n").Absent() }, "the attribute n of job (started at find_test.go:"},
		{"not absent, its value", func(s *contracttest.Span) { s.Attr("n").Absent() }, "is 3 (int64), want none"},
		{"equal to nothing", func(s *contracttest.Span) { s.Attr("missing").Equal(1) }, "is not there"},
		{"other value", func(s *contracttest.Span) { s.Attr("s").Equal("y") }, `is "x" (string), want "y" (string)`},
		{"other type", func(s *contracttest.Span) { s.Attr("n").Equal(3.0) }, "is 3 (int64), want 3 (float64)"},
		{"below", func(s *contracttest.Span) { s.Attr("llm.ttft_ms").Between(13, 14) }, "is 12.5 (float64), want 13 to 14"},
		{"above", func(s *contracttest.Span) { s.Attr("n").Between(1, 2) }, "is 3 (int64), want 1 to 2"},
		{"no number", func(s *contracttest.Span) { s.Attr("s").Between(1, 2) }, `is "x" (string), want a number`},
		{"between nothing", func(s *contracttest.Span) { s.Attr("missing").Between(1, 2) }, "is not there"},
		{"no value", func(s *contracttest.Span) { s.Attr("n").Equal(nil) }, "no attribute has a value of the type <nil>"},
		{"no kind of value", func(s *contracttest.Span) { s.Attr("n").Equal(struct{}{}) }, "no attribute has a value of the type struct {}"},
		{"no kind of slice", func(s *contracttest.Span) { s.Attr("n").Equal([]struct{}{}) }, "no attribute has a value of the type []struct {}"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := run(func(r *recordingT) {
				obs := contracttest.New(r, parsed(t, ""))
				_, span := obs.TracerProvider().Tracer("").Start(t.Context(), "job", attributes)
				span.End()
				tt.assert(obs.Span(r, "job"))
			})
			if tt.want == "" {
				passes(t, r)
				return
			}
			assert.Contains(t, failure(t, r), tt.want)
			if !r.fatal {
				assert.Contains(t, r.errors[0], "The span:\n\njob [internal]\n    b: true\n", "everything that the span holds")
				assert.Contains(t, r.errors[0], "The spans:\n\njob [internal]")
			}
		})
	}
}

func TestEventsAreAsserted(t *testing.T) {
	tests := []struct {
		name   string
		assert func(s *contracttest.Span)
		want   string
	}{
		{"in order", func(s *contracttest.Span) { s.Events("first_token", "token_stall", "early_stop").InOrder() }, ""},
		{"present", func(s *contracttest.Span) { s.Events("early_stop", "first_token").Present() }, ""},
		{"absent", func(s *contracttest.Span) { s.Events("content_blocked").Absent() }, ""},
		{"out of order", func(s *contracttest.Span) { s.Events("early_stop", "first_token").InOrder() },
			"happened in the order first_token at 1s, early_stop at 4s"},
		{"one that repeats, out of order", func(s *contracttest.Span) { s.Events("token_stall", "first_token").InOrder() },
			"happened in the order first_token at 1s, token_stall at 2s, token_stall at 3s"},
		{"in order but missing", func(s *contracttest.Span) { s.Events("first_token", "done").InOrder() }, "are not all there: no done"},
		{"not present", func(s *contracttest.Span) { s.Events("a", "first_token", "b").Present() }, "are not all there: no a, b"},
		{"not absent", func(s *contracttest.Span) { s.Events("token_stall", "x").Absent() }, "are there: token_stall at 2s, token_stall at 3s"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := run(func(r *recordingT) {
				obs := contracttest.New(r, parsed(t, ""))
				begin := time.Now()
				at := func(seconds int) trace.EventOption {
					return trace.WithTimestamp(begin.Add(time.Duration(seconds) * time.Second))
				}
				_, span := obs.TracerProvider().Tracer("").Start(t.Context(), "job", trace.WithTimestamp(begin))
				span.AddEvent("early_stop", at(4)) // added first, and last in time
				span.AddEvent("first_token", at(1))
				span.AddEvent("token_stall", at(2))
				span.AddEvent("token_stall", at(3))
				span.End(trace.WithTimestamp(begin.Add(5 * time.Second)))
				tt.assert(obs.Span(r, "job"))
			})
			if tt.want == "" {
				passes(t, r)
				return
			}
			assert.Contains(t, failure(t, r), tt.want)
			assert.Contains(t, r.errors[0], "    * first_token\n")
		})
	}
}

func TestAnObserverIsUsedBySubtestsAtOnce(t *testing.T) {
	obs := contracttest.New(t, parsed(t, ""))
	for range 4 {
		t.Run("sub", func(t *testing.T) {
			t.Parallel()
			_, span := obs.TracerProvider().Tracer("").Start(t.Context(), "job")
			span.End()
			require.NotEmpty(t, obs.Spans(t, "job"))
			obs.NoSpan(t, "other")
		})
	}
}
