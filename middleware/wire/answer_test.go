package wire

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/semconv"
)

func TestEachEventIsClassified(t *testing.T) {
	for _, tt := range []struct {
		event string
		want  Kind
		chunk genaitrace.ChunkKind
	}{
		{`{"choices":[{"delta":{"role":"assistant","content":""}}]}`, KindRole, genaitrace.NoOutput},
		{`{"choices":[{"delta":{"role":"assistant","content":"a"}}]}`, KindRole | KindContent, genaitrace.Visible},
		{`{"choices":[{"delta":{"content":"a"}}]}`, KindContent, genaitrace.Visible},
		{`{"choices":[{"delta":{"refusal":"a"}}]}`, KindRefusal, genaitrace.Visible},
		{`{"choices":[{"delta":{"reasoning":"a"}}]}`, KindReasoning, genaitrace.Output},
		{`{"choices":[{"delta":{"content":"a","reasoning":"b"}}]}`, KindReasoning | KindContent, genaitrace.Visible},
		{`{"choices":[{"delta":{"tool_calls":[{"function":{"name":"f"}}]}}]}`, KindTool, genaitrace.Output},
		{`{"choices":[],"usage":{"prompt_tokens":1}}`, KindUsage, genaitrace.NoOutput},
		{`{"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1}}`, KindContent | KindUsage, genaitrace.Visible},
		{`{"error":{"type":"x"}}`, KindError, genaitrace.NoOutput},
		{`{"type":"ping"}`, KindPing, genaitrace.NoOutput},
		{`{"type":"message_start","message":{"usage":{"input_tokens":1}}}`, KindRole | KindUsage, genaitrace.NoOutput},
		{`{"type":"content_block_delta","delta":{"type":"thinking_delta","thinking":"a"}}`, KindReasoning, genaitrace.Output},
		{`{"type":"message_stop"}`, KindDone, genaitrace.NoOutput},
		{`{"type":"error","error":{"type":"x"}}`, KindError, genaitrace.NoOutput},
		{`{"type":"response.created","response":{"id":"r"}}`, KindRole, genaitrace.NoOutput},
		{`{"type":"response.refusal.delta","delta":"a"}`, KindRefusal, genaitrace.Visible},
		{`{"type":"response.completed","response":{"status":"completed","usage":{"input_tokens":1}}}`, KindUsage | KindDone, genaitrace.NoOutput},
		{`{"candidates":[{"content":{"parts":[{"text":"a","thought":true},{"functionCall":{"name":"f"}}]}}],"usageMetadata":{"promptTokenCount":1}}`, KindReasoning | KindTool | KindUsage, genaitrace.Output},
		{`{"model":"m","message":{"role":"assistant","content":"","thinking":"a"},"done":false}`, KindRole | KindReasoning, genaitrace.Output},
		{`{"model":"m","response":"","done":true,"eval_count":1}`, KindUsage | KindDone, genaitrace.NoOutput},
		{`{"token":{"text":"</s>","special":true}}`, KindToken, genaitrace.Output},
		{`{"x":1}`, 0, genaitrace.NoOutput},
		{`nonsense`, 0, genaitrace.NoOutput},
	} {
		a := Answer{begun: true}
		chunk, ok := a.read(Event{Data: []byte(tt.event)})
		assert.True(t, ok, tt.event)
		assert.Equal(t, tt.want, a.kinds, tt.event)
		assert.Equal(t, tt.chunk, chunk, tt.event)
	}
}

func TestTimesKeepEveryDigit(t *testing.T) {
	for _, tt := range []struct {
		value string
		unit  unit
		want  time.Duration // −1: none
	}{
		{"0", seconds, 0},
		{"12", milliseconds, 12 * time.Millisecond},
		{"30.958", milliseconds, 30958 * time.Microsecond},
		{"6338219291", nanoseconds, 6338219291},
		{"1767000000.0580001", seconds, 1767000000058000100},
		{"1767000000.058", seconds, 1767000000058000000},
		{"6e-4", seconds, 600 * time.Microsecond},
		{"1.5E+1", seconds, 15 * time.Second},
		{"0.0000000004", seconds, 0},
		{"0.0000000006", seconds, 1},
		{"0.00000000051234567890123456789", seconds, 1},
		{"-0.25", seconds, -250 * time.Millisecond},
		{"00.5", seconds, 500 * time.Millisecond},
		{"1e999", seconds, -1},
		{"9999999999", seconds, -1},
		{"123456789012345678901234567890", nanoseconds, -1},
		{"", seconds, -1},
		{"-", seconds, -1},
		{".", seconds, -1},
		{"null", seconds, -1},
		{`"1"`, seconds, -1},
		{"1.2.3", seconds, -1},
		{"1e", seconds, -1},
		{"1ex", seconds, -1},
		{"1 ", seconds, -1},
	} {
		got := duration([]byte(tt.value), tt.unit)
		if tt.want == -1 {
			assert.Nil(t, got, tt.value)
		} else if assert.NotNil(t, got, tt.value) {
			assert.Equal(t, tt.want, *got, tt.value)
		}
	}
}

func TestLaterCountsReplaceEarlierOnesAndZerosDoNot(t *testing.T) {
	var a Answer
	a.SetUsage(genaitrace.Usage{InputTokens: new(0)})
	assert.Equal(t, 0, *a.usage.total(false).InputTokens, "a zero alone is a count")
	a.SetUsage(genaitrace.Usage{InputTokens: new(7), OutputTokens: new(1), CachedTokens: new(4)})
	a.SetUsage(genaitrace.Usage{InputTokens: new(0), OutputTokens: new(2)})
	assert.Equal(t, genaitrace.Usage{InputTokens: new(7), OutputTokens: new(2), CachedTokens: new(4)}, a.usage.total(false))
	assert.Equal(t, 11, *a.usage.total(true).InputTokens)
}

func TestWhatADialectTellsIsKept(t *testing.T) {
	var a Answer
	a.SetResponse("", "m")
	a.SetResponse("i", "other")
	a.SetFinish(maxChoices, "beyond")
	a.SetFinish(-1, "before")
	assert.False(t, a.finished)
	a.SetFinish(1, "b")
	a.SetFinish(0, "")
	a.SetError("")
	a.SetError("late")
	a.SetTimes(times("x", func(t *EngineTimes) { t.Queue = new(time.Second) }))
	a.SetTimes(timesFrom("nothing"))
	a.SetTimes(times("y", func(t *EngineTimes) { t.Decode = new(time.Minute) }))
	assert.Equal(t, "i", a.id)
	assert.Equal(t, "m", a.model)
	assert.Equal(t, []string{"b"}, a.reasons())
	assert.True(t, a.failed)
	assert.Empty(t, a.errType)
	assert.Equal(t, times("y", func(t *EngineTimes) { t.Queue, t.Decode = new(time.Second), new(time.Minute) }), a.times)
}

func times(source semconv.GenAITimingSourceAttr, set func(*EngineTimes)) EngineTimes {
	t := timesFrom(source)
	set(&t)
	return t
}
