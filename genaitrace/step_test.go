package genaitrace_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/semconv"
)

// positions are the token positions that the step events of a span tell of.
func positions(s seen) (found []int64) {
	for _, e := range s.events(semconv.EventEngineStep) {
		for _, kv := range e.Attributes {
			if kv.Key == semconv.GenAITokenPositionKey {
				found = append(found, kv.Value.AsInt64())
			}
		}
	}
	return found
}

func TestStepsAreOffUnlessAskedFor(t *testing.T) {
	r := record(t)
	ctx, inf := r.StartInference(t.Context(), genaitrace.Request{})
	_, d := inf.StartDecode(ctx)
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		d.RecordStep(genaitrace.Step{ID: new(1), Position: new(2), Kernel: new(time.Second)})
	}))
	inf.End()
	s := r.span(semconv.SpanInferenceDecode)
	assert.Empty(t, s.events(semconv.EventEngineStep))
	assert.False(t, s.has(semconv.GenAIStepCountKey))
}

func TestAStepHasItsTimesAndTheKeysToJoinItBy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := recordWith(t, []genaitrace.Option{genaitrace.WithStepEvents(8)})
		begin := time.Now()
		ctx, inf := r.StartInference(t.Context(), genaitrace.Request{})
		_, d := inf.StartDecode(ctx)
		time.Sleep(7 * time.Millisecond)
		d.RecordStep(fullStep())
		time.Sleep(time.Second)
		d.RecordStep(genaitrace.Step{}) // of which nothing is known
		d.End()
		d.RecordStep(fullStep())
		inf.End()

		s := r.span(semconv.SpanInferenceDecode)
		assert.Equal(t, int64(2), s.int(semconv.GenAIStepCountKey))
		events := s.events(semconv.EventEngineStep)
		require.Len(t, events, 2)
		assert.Equal(t, 7*time.Millisecond, events[0].Time.Sub(begin))
		assert.ElementsMatch(t, []attribute.KeyValue{
			semconv.GenAIStepID(1042), semconv.AIGPUStreamID(7), semconv.GenAITokenPosition(0),
			semconv.AIKernelDurationMs(1.8), semconv.AIKVCacheLatencyMs(0.6), semconv.AITokenizerWaitMs(0),
		}, events[0].Attributes)
		assert.Empty(t, events[1].Attributes, "unknown stays absent")
	})
}

// Whatever the steps cost and in whatever order they come, the costliest are kept,
// of two that cost the same the earlier, and all are counted.
func TestTheCostliestStepsAreKeptAndTheOthersCounted(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		limit, n := 1+rng.IntN(64), rng.IntN(300)
		t.Run(fmt.Sprint(limit, " of ", n), func(t *testing.T) {
			r := recordWith(t, []genaitrace.Option{genaitrace.WithStepEvents(limit)})
			ctx, inf := r.StartInference(t.Context(), genaitrace.Request{})
			_, d := inf.StartDecode(ctx)
			type step struct {
				position int64
				cost     time.Duration
			}
			var want []step
			for i := range n {
				kernel, kv := time.Duration(rng.IntN(20)), time.Duration(rng.IntN(20))
				d.RecordStep(genaitrace.Step{Position: &i, Kernel: &kernel, KVCache: &kv})
				want = append(want, step{int64(i), kernel + kv})
			}
			inf.End()

			slices.SortStableFunc(want, func(a, b step) int { return cmp.Compare(b.cost, a.cost) })
			var kept []int64
			for _, s := range want[:min(limit, n)] {
				kept = append(kept, s.position)
			}
			slices.Sort(kept)
			s := r.span(semconv.SpanInferenceDecode)
			assert.Equal(t, kept, positions(s), "in the order of time")
			if n > 0 {
				assert.Equal(t, int64(n), s.int(semconv.GenAIStepCountKey))
			}
		})
	}
}

// The SDK keeps 128 events of a span and drops the oldest.
func TestStepsLeaveRoomForTheOtherEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := recordWith(t, []genaitrace.Option{genaitrace.WithStepEvents(64)})
		ctx, inf := r.StartInference(t.Context(), genaitrace.Request{})
		ctx, prefill := inf.StartPrefill(ctx, genaitrace.Prompt{})
		prefill.RecordStep(fullStep())
		prefill.End()
		_, d := inf.StartDecode(ctx)
		for i := range 10_000 {
			gap := time.Millisecond
			if i%100 == 99 {
				gap = time.Second // a stall
			}
			time.Sleep(gap)
			d.Token()
			d.RecordStep(genaitrace.Step{Position: &i, Kernel: &gap})
		}
		inf.EarlyStop(semconv.GenAIEarlyStopReasonLength)
		inf.End()

		s := r.span(semconv.SpanInferenceDecode)
		assert.LessOrEqual(t, len(s.Events()), 100)
		assert.Zero(t, s.DroppedEvents())
		assert.Len(t, s.events(semconv.EventEngineStep), 64)
		assert.Equal(t, int64(10_000), s.int(semconv.GenAIStepCountKey))
		for _, name := range []string{semconv.EventFirstToken, semconv.EventPhaseTransition, semconv.EventEarlyStop} {
			s.event(name)
		}
		assert.Equal(t, int64(1), r.span(semconv.SpanInferencePrefill).int(semconv.GenAIStepCountKey))
	})
}

func TestBadTimesOfAStepAreDroppedAndCounted(t *testing.T) {
	handled(t)
	r := recordWith(t, []genaitrace.Option{genaitrace.WithStepEvents(1)})
	ctx, inf := r.StartInference(t.Context(), genaitrace.Request{})
	_, d := inf.StartDecode(ctx)
	d.RecordStep(genaitrace.Step{ID: new(-1), Kernel: new(-time.Second), KVCache: new(25 * time.Hour), TokenizerWait: new(time.Millisecond)})
	inf.End()
	e := r.span(semconv.SpanInferenceDecode).event(semconv.EventEngineStep)
	assert.ElementsMatch(t, []attribute.KeyValue{semconv.GenAIStepID(-1), semconv.AITokenizerWaitMs(1)}, e.Attributes)
	assert.Equal(t, faults(semconv.GenAIFaultTime, 1), r.faults())
}

func TestTheNumberOfStepEventsHasItsLimits(t *testing.T) {
	for limit, want := range map[int]string{
		-1: "genaitrace: WithStepEvents: limit is -1: want 1 to 64",
		0:  "genaitrace: WithStepEvents: limit is 0: want 1 to 64",
		1:  "", 64: "",
		65: "genaitrace: WithStepEvents: limit is 65: want 1 to 64",
	} {
		err := genaitrace.Validate(genaitrace.WithStepEvents(limit))
		if want == "" {
			assert.NoError(t, err)
			continue
		}
		assert.EqualError(t, err, want)
	}
}

func TestStepsMayBeRecordedWhileTheInferenceEnds(t *testing.T) {
	r := recordWith(t, []genaitrace.Option{genaitrace.WithStepEvents(4)})
	for range 100 {
		ctx, inf := r.StartInference(t.Context(), genaitrace.Request{})
		_, d := inf.StartDecode(ctx)
		work := func() {
			for i := range 20 {
				d.RecordStep(genaitrace.Step{Position: &i, Kernel: new(time.Duration(i))})
			}
		}
		together(work, work, inf.End, d.End)
	}
}
