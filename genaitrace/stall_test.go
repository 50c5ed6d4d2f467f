package genaitrace_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/semconv"
)

// decodeWith runs one decode phase with the given gaps between its tokens.
func decodeWith(t *testing.T, tr *genaitrace.Tracer, gaps ...time.Duration) {
	t.Helper()
	ctx, inf := tr.StartInference(t.Context(), genaitrace.Request{Provider: "vllm", Model: "m"})
	_, d := inf.StartDecode(ctx)
	time.Sleep(5 * time.Second) // the wait for the first token is no stall
	d.Token()
	for _, gap := range gaps {
		time.Sleep(gap)
		d.Token()
	}
	time.Sleep(5 * time.Second) // nor is what comes after the last
	inf.End()
}

// stream repeats a gap.
func stream(n int, gap time.Duration, more ...time.Duration) []time.Duration {
	return append(slices.Repeat([]time.Duration{gap}, n), more...)
}

func TestAStallIsAPauseThatIsLongForItsStream(t *testing.T) {
	const ms = time.Millisecond
	for name, tt := range map[string]struct {
		gaps   []time.Duration
		option genaitrace.Option
		want   []float64 // in ms
	}{
		"no gap":                                     {nil, nil, nil},
		"an even stream":                             {stream(100, 20*ms), nil, nil},
		"ten times the usual, but short":             {stream(100, 5*ms, 150*ms), nil, nil},
		"long, but usual":                            {stream(100, 300*ms, 600*ms), nil, nil},
		"ten times the usual and long":               {stream(100, 30*ms, 450*ms), nil, []float64{450}},
		"of two gaps the longer":                     {[]time.Duration{900 * ms, 10 * ms}, nil, []float64{900}},
		"one gap alone is the usual one":             {[]time.Duration{9 * time.Second}, nil, nil},
		"several, in the order of time":              {stream(50, 20*ms, 700*ms, 20*ms, 300*ms, 20*ms, 500*ms), nil, []float64{700, 300, 500}},
		"tokens of one step say nothing of the pace": {stream(300, 0, 100*ms, 100*ms, 100*ms, 500*ms), nil, nil},
		"nor do those of one packet":                 {slices.Repeat([]time.Duration{20 * time.Microsecond, 300 * ms}, 20), nil, nil},
		"all at once but one":                        {stream(300, 0, 500*ms), nil, nil},
		"a pause of 40 s in any stream":              {stream(3, 30*time.Second, 40*time.Second), nil, []float64{40_000}},
		"each pause of a minute":                     {stream(3, time.Minute), nil, []float64{60_000, 60_000, 60_000}},
		"no pause under 40 s in a slow one":          {stream(3, 30*time.Second, 39*time.Second), nil, nil},
		"by another factor":                          {stream(100, 300*ms, 650*ms), genaitrace.WithStallThreshold(2, 200*ms), []float64{650}},
		"by another floor":                           {stream(100, 2*ms, 30*ms), genaitrace.WithStallThreshold(10, ms), []float64{30}},
		"in a stream that is thinned out":            {slices.Concat(stream(900, 20*ms, 310*ms), stream(2000, 20*ms, 320*ms), stream(3000, 20*ms)), nil, []float64{310, 320}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := record(t)
				tr := r.Tracer
				if tt.option != nil {
					tr = genaitrace.New(genaitrace.WithTracerProvider(r.provider), genaitrace.WithMeterProvider(r.meters), tt.option)
				}
				decodeWith(t, tr, tt.gaps...)
				d := r.span(semconv.SpanInferenceDecode)
				var got []float64
				for _, e := range d.events(semconv.EventTokenStall) {
					got = append(got, e.Attributes[0].Value.AsFloat64())
				}
				assert.Equal(t, tt.want, got)
				assert.Equal(t, len(tt.want) > 0, d.has(semconv.GenAIStallCountKey))
				assert.Equal(t, len(tt.want), r.counted(semconv.GenAITokenStallsName))
			})
		})
	}
}

// counted returns the sum of a counter over all its points.
func (r *recording) counted(name string) (n int) {
	r.t.Helper()
	m, ok := r.metric(name)
	if !ok {
		return 0
	}
	sum, ok := m.Data.(metricdata.Sum[int64])
	require.True(r.t, ok, "%s is a %T", name, m.Data)
	for _, p := range sum.DataPoints {
		n += int(p.Value)
	}
	return n
}

func TestAStallEventSaysWhichTokenEndedItAndWhen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record(t)
		start := time.Now()
		decodeWith(t, r.Tracer, 20*time.Millisecond, 20*time.Millisecond, 450*time.Millisecond, 20*time.Millisecond)
		e := r.span(semconv.SpanInferenceDecode).event(semconv.EventTokenStall)
		assert.Equal(t, 5490*time.Millisecond, e.Time.Sub(start), "the end of the pause")
		assert.Equal(t, semconv.GenAIStallDurationMs(450), e.Attributes[0])
		assert.Equal(t, semconv.GenAITokenPosition(3), e.Attributes[1])

		m, _ := r.metric(semconv.GenAITokenStallsName)
		assert.Equal(t, map[string]any{
			"gen_ai.operation.name": "chat", "gen_ai.provider.name": "vllm", "gen_ai.request.model": "m",
		}, dims(m.Data.(metricdata.Sum[int64]).DataPoints[0].Attributes))
	})
}

// A position counts the tokens of earlier decode phases too.
func TestAStallAfterAPreemptionKnowsItsPlaceInTheSequence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record(t)
		ctx, inf := r.StartInference(t.Context(), genaitrace.Request{})
		_, d := inf.StartDecode(ctx)
		d.Tokens(7)
		inf.Preempt()
		_, d = inf.StartDecode(ctx)
		for _, gap := range stream(5, 10*time.Millisecond, time.Second) {
			time.Sleep(gap)
			d.Token()
		}
		inf.End()
		e := r.span2(semconv.SpanInferenceDecode).event(semconv.EventTokenStall)
		assert.Equal(t, semconv.GenAITokenPosition(7+5), e.Attributes[1])
	})
}

// The SDK keeps 128 events and drops the oldest, so few stalls have one, however
// many there are; all are counted.
func TestOfManyStallsTheLongestHaveAnEvent(t *testing.T) {
	for _, tokens := range []int{40, 4000} { // also where the timeline is thinned out
		t.Run(fmt.Sprint(tokens), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := record(t)
				var gaps []time.Duration
				for i := range tokens { // every fourth token stalls, each a little longer
					gaps = append(gaps, 10*time.Millisecond)
					if i%4 == 3 {
						gaps = append(gaps, time.Second+time.Duration(i)*time.Millisecond)
					}
				}
				decodeWith(t, r.Tracer, gaps...)
				d := r.span(semconv.SpanInferenceDecode)
				const shown = 16
				want := tokens / 4
				assert.Equal(t, int64(want), d.int(semconv.GenAIStallCountKey))
				assert.Equal(t, want, r.counted(semconv.GenAITokenStallsName))
				stalls := d.events(semconv.EventTokenStall)
				require.Len(t, stalls, min(want, shown))
				for i, e := range stalls {
					longest := tokens - 1 - 4*(len(stalls)-1-i)
					assert.Equal(t, semconv.GenAIStallDurationMs(float64(1000+longest)), e.Attributes[0])
				}
				assert.Len(t, d.events(semconv.EventFirstToken), 1)
			})
		})
	}
}

// The metric does not depend on whether the span is sampled.
func TestStallsAreCountedWhereTheSpanIsNotRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record(t, sdktrace.WithSampler(sdktrace.NeverSample()))
		decodeWith(t, r.Tracer, stream(20, 10*time.Millisecond, time.Second)...)
		decodeWith(t, r.Tracer, stream(3000, 10*time.Millisecond, time.Second)...)
		assert.Equal(t, 2, r.counted(semconv.GenAITokenStallsName))
		assert.Empty(t, r.recorder.Ended())
	})
}

func TestACallerSeesStallsBetweenChunksAfterTheFirstOutput(t *testing.T) {
	for name, chunks := range map[string]int{"short": 100, "thinned out": 4000} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := record(t)
				_, call := r.StartCall(t.Context(), genaitrace.Request{})
				call.Chunk(genaitrace.NoOutput)
				time.Sleep(3 * time.Second) // the wait for the first output
				for i := range chunks {
					call.Chunk(genaitrace.Visible)
					time.Sleep(20 * time.Millisecond)
					if i == chunks/2 {
						time.Sleep(700 * time.Millisecond)
					}
				}
				call.Chunk(genaitrace.NoOutput)
				call.End()
				s := r.span("chat")
				assert.Equal(t, int64(1), s.int(semconv.GenAIStallCountKey))
				e := s.event(semconv.EventTokenStall)
				require.Len(t, e.Attributes, 1, "a chunk has no position in the sequence of tokens")
				assert.Equal(t, semconv.GenAIStallDurationMs(720), e.Attributes[0])
				assert.Zero(t, r.counted(semconv.GenAITokenStallsName), "a chunk is not a token")
			})
		})
	}
}

// A slow engine, a short answer, and what follows it at once: nothing stalled.
func TestWhatFollowsTheLastOutputSaysNothingOfThePace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record(t)
		_, call := r.StartCall(t.Context(), genaitrace.Request{})
		for _, chunk := range []struct {
			after time.Duration
			kind  genaitrace.ChunkKind
		}{
			{35 * time.Millisecond, genaitrace.NoOutput}, {time.Millisecond, genaitrace.Visible},
			{664 * time.Millisecond, genaitrace.Visible},
			{time.Millisecond, genaitrace.NoOutput}, {2 * time.Millisecond, genaitrace.NoOutput},
			{9 * time.Second, genaitrace.NoOutput},
		} {
			time.Sleep(chunk.after)
			call.Chunk(chunk.kind)
		}
		call.End()
		assert.False(t, r.span("chat").has(semconv.GenAIStallCountKey))
	})
}

func TestAStallThresholdThatCannotBeIsRefused(t *testing.T) {
	for name, option := range map[string]genaitrace.Option{
		"less than usual":   genaitrace.WithStallThreshold(0.5, time.Second),
		"not a number":      genaitrace.WithStallThreshold(math.NaN(), time.Second),
		"too many times":    genaitrace.WithStallThreshold(1e6, time.Second),
		"no floor":          genaitrace.WithStallThreshold(10, 0),
		"too high a floor":  genaitrace.WithStallThreshold(10, time.Minute),
		"a negative factor": genaitrace.WithStallThreshold(-10, time.Second),
	} {
		t.Run(name, func(t *testing.T) {
			assert.ErrorContains(t, genaitrace.Validate(option), "WithStallThreshold")
			reported := handled(t)
			r := record(t)
			tr := genaitrace.New(genaitrace.WithTracerProvider(r.provider), genaitrace.WithMeterProvider(sdkmetric.NewMeterProvider()), option)
			assert.LessOrEqual(t, len(reported()), 1)
			synctest.Test(t, func(t *testing.T) {
				decodeWith(t, tr, stream(20, 30*time.Millisecond, 450*time.Millisecond)...)
			})
			assert.Len(t, r.span(semconv.SpanInferenceDecode).events(semconv.EventTokenStall), 1, "the default holds")
		})
	}
	assert.NoError(t, genaitrace.Validate(genaitrace.WithStallThreshold(1, 10*time.Microsecond), genaitrace.WithStallThreshold(1e4, 40*time.Second)))
}
