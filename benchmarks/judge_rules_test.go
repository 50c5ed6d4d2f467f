package benchmarks

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/benchmarks/internal/column"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// What judge makes of what a span says, where the first token came 100 to 105 ms after
// the start of a whole answer.
func TestJudge(t *testing.T) {
	start := time.Now()
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	came := writeLog{began: at(100)}
	says := func(ms int) func(sdktrace.ReadOnlySpan, time.Time) (time.Time, bool) {
		return func(sdktrace.ReadOnlySpan, time.Time) (time.Time, bool) { return at(ms), ms > 0 }
	}
	told := []attribute.KeyValue{genaiconv.UsageInputTokens(19), genaiconv.UsageOutputTokens(5), genaiconv.ResponseFinishReasons("stop")}
	for _, tt := range []struct {
		name     string
		said     func(sdktrace.ReadOnlySpan, time.Time) (time.Time, bool)
		attrs    []attribute.KeyValue
		status   codes.Code
		truth    truth
		log      writeLog
		want     cell
		allRight bool
	}{
		{name: "all right", said: says(102), attrs: told, truth: done(wordsOf(column.OpenAI)), log: came,
			want: cell{ttft: right, usage: right, finish: right}, allRight: true},
		{name: "the role for a token", said: says(20), attrs: told, truth: done(wordsOf(column.OpenAI)), log: came,
			want: cell{ttft: wrong, usage: right, finish: right}},
		{name: "the end for a token", said: says(300), attrs: told, truth: done(wordsOf(column.OpenAI)), log: came,
			want: cell{ttft: wrong, usage: right, finish: right}},
		{name: "nothing", said: says(0), truth: done(wordsOf(column.OpenAI)), log: came,
			want: cell{ttft: silent, usage: silent, finish: silent}},
		{name: "a token that never came", said: says(20), log: writeLog{}, want: cell{ttft: wrong}},
		{name: "usage that nobody told", said: says(0), attrs: told[:2], want: cell{usage: wrong}},
		{name: "half of the usage", attrs: told[:1], truth: truth{usage: usage{19, 5}}, want: cell{usage: wrong}},
		{name: "another reason", attrs: told[2:], truth: truth{finish: []string{"length"}}, want: cell{finish: wrong}},
		{name: "a failure that is marked", status: codes.Error, truth: truth{failed: true}, want: cell{failed: true, marked: true}, allRight: true},
		{name: "a failure that is not", truth: truth{failed: true}, want: cell{failed: true}},
		{name: "a client that left, marked", status: codes.Error, want: cell{marked: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			log := new(spanLog)
			log.OnStart(t.Context(), nil)
			log.OnEnd(tracetest.SpanStub{
				SpanKind: trace.SpanKindClient, StartTime: start, Attributes: tt.attrs, Status: sdktrace.Status{Code: tt.status},
			}.Snapshot())
			got := judge(column.Column{FirstToken: tt.said}, "", tt.truth, tt.log, start, at(105), log)
			assert.Equal(t, tt.allRight, got.ok(), "%+v", got)
			got.notes = nil
			assert.Equal(t, tt.want, got)
		})
	}
	t.Run("a span that never ends", func(t *testing.T) {
		log := new(spanLog)
		log.OnStart(t.Context(), nil)
		got := judge(column.Column{}, "", done(wordsOf(column.OpenAI)), came, start, at(105), log)
		assert.True(t, got.unended)
		assert.Equal(t, [3]verdict{silent, silent, silent}, [3]verdict{got.ttft, got.usage, got.finish})
	})
}
