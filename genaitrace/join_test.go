package genaitrace_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// The span of a client library goes on after an attempt that brought nothing; what is
// still read of that one is none of the next one's.
func TestAJoinedCallThatHasEndedTellsNothingOfLateChunks(t *testing.T) {
	r := record(t)
	ctx, owner := r.provider.Tracer("client").Start(t.Context(), "chat", trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(genaiconv.OperationName(genaiconv.OperationNameChat)))
	_, call := r.JoinCall(ctx, genaitrace.Request{})
	assert.True(t, call.Joined())
	call.Fail(typedError("overloaded"))
	call.Chunk(genaitrace.Visible)
	owner.End()
	s := r.span("chat")
	assert.False(t, s.has(semconv.LLMTTFTMsKey))
	assert.False(t, s.has(semconv.GenAIStreamTerminalKey))
}
