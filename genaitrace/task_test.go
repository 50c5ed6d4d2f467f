package genaitrace_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/genaitrace/content"
)

func TestStartTask(t *testing.T) {
	r := record(t)
	ctx, outer := r.StartTask(genaitrace.ContextWith(t.Context(), genaitrace.TenantID("acme")), "split")
	_, inner := r.StartTask(ctx, "count")
	inner.Fail(assert.AnError)
	outer.End()
	assert.Equal(t, "acme", r.span("split").text("genai.tenant.id"))
	assert.Equal(t, r.span("split").SpanContext().SpanID(), r.span("count").Parent().SpanID())
	r.span("count").assertStatus("_OTHER")

	for i := range 200 {
		_, task := r.StartTask(t.Context(), fmt.Sprint("step ", i))
		task.End()
	}
	assert.NotEmpty(t, r.spans("task"), "names are few")

	ctx, none := (*genaitrace.Tracer)(nil).StartTask(t.Context(), "split")
	assert.Equal(t, t.Context(), ctx)
	assert.Nil(t, none)
}

func TestKeepsContent(t *testing.T) {
	for level, want := range map[content.Level]bool{content.Off: false, content.Full: true} {
		r := record(t)
		tr := genaitrace.New(genaitrace.WithTracerProvider(r.provider), genaitrace.WithContent(level), genaitrace.WithContentPlace(content.OnSpans))
		_, call := tr.StartCall(t.Context(), genaitrace.Request{Model: "m"})
		_, tool := tr.StartTool(t.Context(), genaitrace.ToolCall{Name: "t"})
		assert.Equal(t, want, call.KeepsContent())
		assert.Equal(t, want, tool.KeepsContent())
		call.End()
		tool.End()
		assert.False(t, call.KeepsContent(), "it has ended")
	}
	assert.False(t, (*genaitrace.Call)(nil).KeepsContent())
	assert.False(t, genaitrace.Tool{}.KeepsContent())
}
