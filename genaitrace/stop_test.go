package genaitrace_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/otel/attribute"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/semconv"
)

func TestEachReasonOfAnEarlyStopIsOneEvent(t *testing.T) {
	for _, reason := range []semconv.GenAIEarlyStopReasonAttr{
		semconv.GenAIEarlyStopReasonUser, semconv.GenAIEarlyStopReasonTimeout,
		semconv.GenAIEarlyStopReasonLength, semconv.GenAIEarlyStopReasonDisconnect, "own",
	} {
		t.Run(string(reason), func(t *testing.T) {
			r := record(t)
			ctx, inf := r.StartInference(t.Context(), genaitrace.Request{})
			_, call := r.StartCall(ctx, genaitrace.Request{})
			_, d := inf.StartDecode(ctx)
			for _, stop := range []func(semconv.GenAIEarlyStopReasonAttr){inf.EarlyStop, call.EarlyStop} {
				stop("")
				stop(reason)
				stop(semconv.GenAIEarlyStopReasonUser) // only the first counts
			}
			d.End()
			call.End()
			inf.End()
			inf.EarlyStop(reason)
			call.EarlyStop(reason)
			for _, name := range []string{semconv.SpanInferenceDecode, "chat"} {
				assert.Equal(t, []attribute.KeyValue{semconv.GenAIEarlyStopReason(reason)},
					r.span(name).event(semconv.EventEarlyStop).Attributes, name)
			}
			assert.Empty(t, r.span(semconv.SpanInferenceGenerate).Events())
		})
	}
}

func TestBlockedContentIsAnEventWithItsRule(t *testing.T) {
	r := record(t)
	ctx, inf := r.StartInference(t.Context(), genaitrace.Request{})
	_, call := r.StartCall(ctx, genaitrace.Request{})
	inf.ContentBlocked("pii-card", "privacy") // no decode phase is open
	_, d := inf.StartDecode(ctx)
	for _, block := range []func(rule, label string){inf.ContentBlocked, call.ContentBlocked} {
		block("pii-email", "privacy")
		block("self-harm", "")
		block("", "\xffviolence"+strings.Repeat("!", 100))
	}
	d.End()
	call.End()
	inf.End()
	inf.ContentBlocked("late", "")
	call.ContentBlocked("late", "")

	want := [][]attribute.KeyValue{
		{semconv.GenAIGuardrailRuleID("pii-email"), semconv.GenAIGuardrailLabel("privacy")},
		{semconv.GenAIGuardrailRuleID("self-harm")},
		{semconv.GenAIGuardrailRuleID("_OTHER"), semconv.GenAIGuardrailLabel("\uFFFDviolence" + strings.Repeat("!", 53))},
	}
	for _, name := range []string{semconv.SpanInferenceDecode, "chat"} {
		var got [][]attribute.KeyValue
		for _, e := range r.span(name).events(semconv.EventContentBlocked) {
			got = append(got, e.Attributes)
		}
		assert.Equal(t, want, got, name)
	}
	assert.Len(t, r.span(semconv.SpanInferenceGenerate).events(semconv.EventContentBlocked), 1)
}

func TestARequestBlockedAgainAndAgainHasFewEvents(t *testing.T) {
	r := record(t)
	_, inf := r.StartInference(t.Context(), genaitrace.Request{})
	_, call := r.StartCall(t.Context(), genaitrace.Request{})
	for range 1000 {
		inf.ContentBlocked("r", "l")
		call.ContentBlocked("r", "l")
	}
	inf.End()
	call.End()
	assert.Len(t, r.span(semconv.SpanInferenceGenerate).Events(), 16)
	assert.Len(t, r.span("chat").Events(), 16)
}

func TestNothingStopsWhereNothingRecords(*testing.T) {
	var inf *genaitrace.Inference
	var call *genaitrace.Call
	for range 2 {
		inf.EarlyStop(semconv.GenAIEarlyStopReasonUser)
		inf.ContentBlocked("r", "l")
		call.EarlyStop(semconv.GenAIEarlyStopReasonUser)
		call.ContentBlocked("r", "l")
		inf, call = new(genaitrace.Inference), new(genaitrace.Call)
	}
}

// The loop may need a while after the error that ended the tokens.
func TestAnEarlyStopIsWhenThePhaseEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record(t)
		begin := time.Now()
		ctx, inf := r.StartInference(t.Context(), genaitrace.Request{})
		_, d := inf.StartDecode(ctx)
		source := func(yield func(string, error) bool) {
			time.Sleep(10 * time.Millisecond)
			yield("", context.Canceled)
		}
		for range genaitrace.RangeTokens(d, source, nil) {
			time.Sleep(time.Second)
		}
		inf.End()
		s := r.span(semconv.SpanInferenceDecode)
		assert.Equal(t, 10*time.Millisecond, s.EndTime().Sub(begin))
		assert.Equal(t, s.EndTime(), s.event(semconv.EventEarlyStop).Time)
	})
}

// An early stop belongs to the phase that stopped, where several run side by side.
func TestAnEarlyStopIsOnThePhaseThatStopped(t *testing.T) {
	r := record(t)
	ctx, inf := r.StartInference(t.Context(), genaitrace.Request{})
	_, stopped := inf.StartDecode(ctx)
	_, other := inf.StartDecode(ctx)
	stopped.Fail(context.Canceled)
	other.End()
	inf.End()
	decodes := r.spans(semconv.SpanInferenceDecode)
	assert.Len(t, decodes[0].events(semconv.EventEarlyStop), 1)
	assert.Empty(t, decodes[1].events(semconv.EventEarlyStop))
}
