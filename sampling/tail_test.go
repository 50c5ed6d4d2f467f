package sampling_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/sampling"
	"github.com/genaitrace/otelgenai/semconv"
)

func TestFailedAndSlowTracesAreKeptWholeAndOthersNot(t *testing.T) {
	s := serve(t, sampling.Any(sampling.Errors(), sampling.Slow(0)))
	s.request("fast", 50*time.Millisecond, false)
	s.request("failed", 50*time.Millisecond, true)
	s.request("slow", 3*time.Second, false)
	s.request("almost", 2999*time.Millisecond, false)

	assert.ElementsMatch(t, []string{"failed", "failed.a", "failed.b", "slow", "slow.a", "slow.b"}, s.exported())
	assert.Equal(t, "errors", attr(s.span("failed"), semconv.GenAISamplingReasonKey))
	assert.Equal(t, "slow", attr(s.span("slow"), semconv.GenAISamplingReasonKey))
	assert.Empty(t, attr(s.span("slow.a"), semconv.GenAISamplingReasonKey), "only local roots say why")
	for _, span := range s.exporter.all() {
		assert.True(t, span.SpanContext.IsSampled(), "what is exported is sampled")
		assert.Equal(t, "th:0", span.SpanContext.TraceState().Get("ot"), "and was certain to be")
	}
	assert.Equal(t, map[string]int64{"exported": 6, "dropped": 6}, s.metric("genai.sampling.spans", "genai.sampling.outcome"))
	assert.Equal(t, map[string]int64{"kept": 2, "dropped": 2}, s.metric("genai.sampling.traces", "genai.sampling.decision"))
	assert.Zero(t, s.metric("genai.sampling.buffer.bytes", "")[""])
	assert.Zero(t, s.metric("genai.sampling.buffer.traces", "")[""])
	assert.Zero(t, s.metric("genai.sampling.queue.bytes", "")[""])
}

func TestTheBaselineIsChosenByTraceIDAndPromisedFromTheStart(t *testing.T) {
	s := serve(t, sampling.Any(sampling.Errors(), sampling.Baseline(0.25)))
	_, in := s.Start(remote(0.75, false, ""), "in")
	_, out := s.Start(remote(0.7499, false, ""), "out")
	assert.True(t, in.SpanContext().IsSampled(), "callees are told")
	assert.False(t, out.SpanContext().IsSampled())
	assert.True(t, out.IsRecording())
	in.End()
	out.End()

	assert.Equal(t, []string{"in"}, s.exported())
	assert.Equal(t, "th:c", s.span("in").SpanContext.TraceState().Get("ot"))
	assert.Equal(t, "baseline", attr(s.span("in"), semconv.GenAISamplingReasonKey))
}

func TestChildrenThatStartOnceTheTraceIsKeptTellTheirCallees(t *testing.T) {
	s := serve(t, sampling.Errors())
	ctx, root := s.Start(context.Background(), "root")
	_, before := s.Start(ctx, "before")
	_, failed := s.Start(ctx, "failed")
	failed.SetStatus(codes.Error, "")
	failed.End()
	inner, after := s.Start(ctx, "after")
	_, below := s.Start(inner, "below")

	assert.False(t, before.SpanContext().IsSampled())
	assert.True(t, after.SpanContext().IsSampled())
	assertState(t, "genai=k:1,ot=th:0", after.SpanContext().TraceState())
	assert.Equal(t, after.SpanContext().TraceState(), below.SpanContext().TraceState())
	assert.Equal(t, []string{"failed"}, s.exported(), "what is certain is exported at once")
	for _, span := range []trace.Span{before, below, after, root} {
		span.End()
	}
	assert.Equal(t, []string{"failed", "before", "below", "after", "root"}, s.exported())
}
