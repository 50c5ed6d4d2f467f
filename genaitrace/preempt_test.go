package genaitrace_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/semconv"
)

// A request is put aside after two tokens; its prompt and those tokens are computed
// again before it goes on.
func TestAPreemptedRequestKeepsItsFirstTokenAndEachStretchOfWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record(t)
		arrived := time.Now()
		ctx, inf := r.StartInference(t.Context(), genaitrace.Request{})
		for round := range 2 {
			_, prefill := inf.StartPrefill(ctx, genaitrace.Prompt{})
			time.Sleep(100 * millisecond)
			prefill.End()
			_, decode := inf.StartDecode(ctx)
			for range 2 {
				time.Sleep(10 * millisecond)
				decode.Token()
			}
			if round == 0 {
				time.Sleep(5 * millisecond)
				inf.Preempt()
				inf.Preempt() // as long as it is put aside, once
				decode.Token()
				time.Sleep(500 * millisecond)
			}
		}
		inf.End()

		s := r.span(semconv.SpanInferenceGenerate)
		assert.Equal(t, []at{
			{"inference.prefill", 0, 100, false}, {"inference.decode", 100, 125, false},
			{"inference.prefill", 625, 725, false}, {"inference.decode", 725, 745, false},
		}, r.drawn(s, arrived))
		assert.Equal(t, map[string]int64{"prefill_ms": 100e6, "emit_ms": 10e6, "preempted_ms": 0, "unattributed_ms": 0}, s.parts())
		assert.Equal(t, int64(745e6), s.nanos(semconv.GenAILastTokenMsKey))
		assert.Equal(t, int64(1), s.int(semconv.GenAIPreemptionCountKey))
		assert.Equal(t, 500.0, s.float(semconv.GenAIPreemptionDurationMsKey))
		e := s.event(semconv.EventPreempted)
		assert.Equal(t, 125*millisecond, e.Time.Sub(arrived))
		assert.Equal(t, []attribute.KeyValue{semconv.GenAIPreemptionDurationMs(500), semconv.GenAITokenCount(2)}, e.Attributes)
		assert.Empty(t, r.span2(semconv.SpanInferenceDecode).events(semconv.EventTokenStall), "the pause is no stall")
	})
}

// span2 returns the second span of that name.
func (r *recording) span2(name string) seen {
	r.t.Helper()
	found := r.spans(name)
	require.Len(r.t, found, 2, name)
	return found[1]
}

func TestAPreemptionBeforeTheFirstTokenIsAPartOfItsTime(t *testing.T) {
	for name, tt := range map[string]struct {
		queueAgain bool
		want       map[string]int64
	}{
		"put aside": {false, map[string]int64{
			"queue_ms": 10e6, "prefill_ms": 30e6 + 50e6, "preempted_ms": 205e6, "emit_ms": 7e6, "unattributed_ms": 0}},
		"a queue phase meanwhile takes its own": {true, map[string]int64{
			"queue_ms": 10e6 + 200e6, "prefill_ms": 30e6 + 50e6, "preempted_ms": 5e6, "emit_ms": 7e6, "unattributed_ms": 0}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := record(t)
				ctx, inf := r.StartInference(t.Context(), genaitrace.Request{})
				_, queue := inf.StartQueue(ctx)
				time.Sleep(10 * millisecond)
				queue.End()
				_, _ = inf.StartPrefill(ctx, genaitrace.Prompt{})
				time.Sleep(30 * millisecond)
				inf.Preempt() // ends the prefill
				time.Sleep(5 * millisecond)
				if tt.queueAgain {
					_, queue = inf.StartQueue(ctx)
				}
				time.Sleep(200 * millisecond)
				queue.End()
				_, prefill := inf.StartPrefill(ctx, genaitrace.Prompt{})
				time.Sleep(50 * millisecond)
				prefill.End()
				_, decode := inf.StartDecode(ctx)
				time.Sleep(7 * millisecond)
				decode.Token()
				inf.End()
				s := r.span(semconv.SpanInferenceGenerate)
				assert.Equal(t, tt.want, s.parts())
				assert.Equal(t, 205.0, s.float(semconv.GenAIPreemptionDurationMsKey), "in either case")
			})
		})
	}
}

// Swapped out and back in: nothing is computed again.
func TestADecodePhaseAloneEndsAPreemption(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record(t)
		ctx, inf := r.StartInference(t.Context(), genaitrace.Request{})
		for range 3 {
			_, d := inf.StartDecode(ctx)
			d.Token()
			inf.Preempt()
			time.Sleep(20 * millisecond)
			_, tokenize := inf.StartTokenize(ctx) // does not
			tokenize.End()
			time.Sleep(20 * millisecond)
		}
		inf.End() // the last one lasts until here
		s := r.span(semconv.SpanInferenceGenerate)
		assert.Equal(t, int64(3), s.int(semconv.GenAIPreemptionCountKey))
		assert.Equal(t, 120.0, s.float(semconv.GenAIPreemptionDurationMsKey))
		assert.Len(t, s.events(semconv.EventPreempted), 3)
		assert.Equal(t, 0.0, s.float(semconv.LLMTTFTMsKey))
	})
}

// What goes on after it was put aside, or in another stretch, does not come from prefill.
func TestOnlyADecodePhaseAfterAPrefillTellsOfTheTransition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record(t)
		ctx, inf := r.StartInference(t.Context(), genaitrace.Request{})
		decode := func() {
			_, d := inf.StartDecode(ctx)
			time.Sleep(millisecond)
			d.Token()
			time.Sleep(millisecond)
			inf.Preempt()
			time.Sleep(millisecond)
		}
		prefill := func() {
			_, p := inf.StartPrefill(ctx, genaitrace.Prompt{})
			time.Sleep(millisecond)
			p.End()
		}
		prefill()
		decode()
		decode() // swapped in
		prefill()
		decode()
		inf.End()
		var told []int
		for _, s := range r.spans(semconv.SpanInferenceDecode) {
			told = append(told, len(s.events(semconv.EventPhaseTransition)))
		}
		assert.Equal(t, []int{1, 0, 1}, told)
	})
}

// A swap begins at the reading that prefill ended at, where the clock is coarse.
func TestAPreemptionThatBeginsWithTheEmissionTakesItsPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record(t)
		ctx, inf := r.StartInference(t.Context(), genaitrace.Request{})
		_, _ = inf.StartPrefill(ctx, genaitrace.Prompt{})
		time.Sleep(10 * millisecond)
		inf.Preempt() // ends the prefill
		time.Sleep(50 * millisecond)
		_, d := inf.StartDecode(ctx) // swapped in
		time.Sleep(5 * millisecond)
		d.Token()
		inf.End()
		assert.Equal(t, map[string]int64{"prefill_ms": 10e6, "preempted_ms": 50e6, "emit_ms": 5e6, "unattributed_ms": 0},
			r.span(semconv.SpanInferenceGenerate).parts())
	})
}

func TestAPreemptionEndsWithAnInferenceThatIsEndedInThePast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record(t)
		start := time.Now()
		_, inf := r.StartInference(t.Context(), genaitrace.Request{})
		time.Sleep(50 * millisecond)
		inf.Preempt()
		time.Sleep(50 * millisecond)
		inf.EndAt(start.Add(20 * millisecond))
		s := r.span(semconv.SpanInferenceGenerate)
		assert.Equal(t, 0.0, s.float(semconv.GenAIPreemptionDurationMsKey))
	})
}

func TestARequestPreemptedWithoutEndHasFewEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record(t)
		ctx, inf := r.StartInference(t.Context(), genaitrace.Request{})
		for range 500 {
			_, d := inf.StartDecode(ctx)
			time.Sleep(millisecond)
			d.Token()
			inf.Preempt()
			time.Sleep(millisecond)
		}
		inf.End()
		inf.Preempt()
		s := r.span(semconv.SpanInferenceGenerate)
		assert.Equal(t, int64(500), s.int(semconv.GenAIPreemptionCountKey))
		assert.Equal(t, 500.0, s.float(semconv.GenAIPreemptionDurationMsKey))
		assert.Len(t, s.Events(), 16)
		assert.Equal(t, int64(1e6), s.nanos(semconv.LLMTTFTMsKey))
	})
}

func TestNothingIsPreemptedWhereNothingRecords(*testing.T) {
	var inf *genaitrace.Inference
	inf.Preempt()
	new(genaitrace.Inference).Preempt()
}
