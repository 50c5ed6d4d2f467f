package genaitrace_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// generateOne is an inference whose first token comes 10 ms after its start.
func generateOne(t *testing.T, r *recording, ctx context.Context, req genaitrace.Request) {
	t.Helper()
	_, inf := r.StartInference(ctx, req)
	_, d := inf.StartDecode(ctx)
	time.Sleep(10 * time.Millisecond)
	d.Token()
	d.End()
	inf.End()
}

// A long-lived stream serves many inferences. It arrived once, for the first.
func TestOnlyTheFirstInferenceOfARequestCountsFromItsArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record(t)
		ctx := genaitrace.ContextWithArrival(t.Context(), time.Now())
		var started []time.Time
		for range 3 {
			time.Sleep(time.Minute) // until the next message
			started = append(started, time.Now())
			generateOne(t, r, ctx, genaitrace.Request{})
		}
		spans := r.spans(semconv.SpanInferenceGenerate)
		require.Len(t, spans, 3)
		for i, want := range []int64{60_010e6, 10e6, 10e6} {
			assert.Equal(t, want, spans[i].nanos(semconv.LLMTTFTMsKey), "inference %d", i+1)
			assert.Equal(t, started[i], spans[i].StartTime(), "the wait is in the server's span")
		}
		p := r.point(genaiconv.ServerTimeToFirstTokenName)
		assert.Equal(t, uint64(3), p.Count)
		assert.InDelta(t, 60.03, p.Sum, 1e-9)
		at, ok := genaitrace.ArrivalFromContext(ctx)
		assert.True(t, ok, "it stays readable")
		assert.Equal(t, started[0].Add(-time.Minute), at)
	})
}

func TestInferencesThatStartTogetherShareNoArrival(t *testing.T) {
	r := record(t)
	for range 50 {
		ctx := genaitrace.ContextWithArrival(t.Context(), time.Now().Add(-time.Hour))
		one := func() {
			_, inf := r.StartInference(ctx, genaitrace.Request{})
			_, d := inf.StartDecode(ctx)
			d.Token()
			inf.End()
		}
		together(one, one, one)
	}
	late := 0
	for _, s := range r.spans(semconv.SpanInferenceGenerate) {
		if s.float(semconv.LLMTTFTMsKey) >= time.Hour.Seconds()*1000 {
			late++
		}
	}
	assert.Equal(t, 50, late, "one of each three")
}

// What the application says of one inference is about that one.
func TestAnArrivalThatIsGivenAlwaysWinsAndStartsTheSpan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record(t)
		ctx := genaitrace.ContextWithArrival(t.Context(), time.Now())
		var arrived []time.Time
		for range 3 {
			time.Sleep(time.Minute)
			arrived = append(arrived, time.Now())
			time.Sleep(5 * time.Millisecond) // in a queue of the application
			generateOne(t, r, ctx, genaitrace.Request{Arrived: arrived[len(arrived)-1]})
		}
		generateOne(t, r, ctx, genaitrace.Request{}) // the first that takes the context's
		spans := r.spans(semconv.SpanInferenceGenerate)
		require.Len(t, spans, 4)
		for i, at := range arrived {
			assert.Equal(t, int64(15e6), spans[i].nanos(semconv.LLMTTFTMsKey), "inference %d", i+1)
			assert.Equal(t, at, spans[i].StartTime())
		}
		assert.Equal(t, (3*time.Minute + 55*time.Millisecond).Nanoseconds(), spans[3].nanos(semconv.LLMTTFTMsKey))
	})
}
