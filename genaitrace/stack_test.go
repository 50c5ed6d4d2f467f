package genaitrace_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/semconv"
)

// explode panics some functions deep, with a secret.
func explode(depth int, secret string) {
	if depth == 0 {
		panic(secret)
	}
	explode(depth-1, secret)
}

func TestAStackIsRecordedOnlyWhereAnOptionAsksForIt(t *testing.T) {
	work := func(r *recording, depth int) {
		defer func() { _ = recover() }()
		_, tool := r.StartTool(t.Context(), genaitrace.ToolCall{Name: "clock"})
		defer tool.EndErr(nil)
		explode(depth, "secret arguments")
	}
	r := record(t)
	work(r, 3)
	assert.Empty(t, r.span("execute_tool clock").Events())

	for _, depth := range []int{3, 1000} {
		r = recordWith(t, []genaitrace.Option{genaitrace.WithStackTraces()})
		work(r, depth)
		e := r.span("execute_tool clock").event("exception")
		require.Len(t, e.Attributes, 2)
		assert.Equal(t, "panic", e.Attributes[0].Value.AsString())
		stack := e.Attributes[1].Value.AsString()
		first, _, _ := strings.Cut(stack, "\n")
		assert.Regexp(t, `genaitrace_test\.explode stack_test\.go:\d+$`, first, "where it happened")
		assert.LessOrEqual(t, len(stack), 1000)
		assert.True(t, strings.HasSuffix(stack, "\n"), "whole lines")
		assert.NotContains(t, stack, "secret")
		assert.NotContains(t, stack, "genaitrace.(*Operation)")
	}
}

func TestTheStackOfAnErrorIsThatOfWhoFailsTheOperation(t *testing.T) {
	r := recordWith(t, []genaitrace.Option{genaitrace.WithStackTraces()})
	_, search := r.StartRetrieval(t.Context(), genaitrace.RetrievalRequest{})
	search.Fail(typedError("index_gone"))
	e := r.span("retrieval").event("exception")
	assert.Equal(t, "index_gone", e.Attributes[0].Value.AsString())
	assert.Regexp(t, `^github.com/genaitrace/otelgenai/genaitrace_test\.TestTheStack\w+ stack_test\.go:\d+\n`, e.Attributes[1].Value.AsString())

	_, well := r.StartRetrieval(t.Context(), genaitrace.RetrievalRequest{})
	well.End()
	_, cancelled := r.StartRetrieval(t.Context(), genaitrace.RetrievalRequest{})
	cancelled.Fail(t.Context().Err())
	assert.Len(t, r.recorder.Ended(), 3)
	for _, s := range r.recorder.Ended()[1:] {
		assert.Empty(t, s.Events(), "nothing failed")
	}
}

// No event lies outside its span, whenever the end is told.
func TestAnExceptionIsWhenTheOperationEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := recordWith(t, []genaitrace.Option{genaitrace.WithStackTraces()})
		begin := time.Now()
		_, tool := r.StartTool(t.Context(), genaitrace.ToolCall{Name: "clock"})
		tool.SetStatus(semconv.GenAIToolStatusError)
		time.Sleep(time.Second)
		tool.EndAt(begin.Add(10 * time.Millisecond))
		s := r.span("execute_tool clock")
		s.assertStatus("tool_error")
		assert.Equal(t, 10*time.Millisecond, s.EndTime().Sub(begin))
		assert.Equal(t, s.EndTime(), s.event("exception").Time)
	})
}
