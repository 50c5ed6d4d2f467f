package genaitrace_test

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/semconv"
)

// The SDK keeps 128 events a span and drops the oldest: an event a token would
// lose the first one.
func TestALongStreamKeepsItsFirstToken(t *testing.T) {
	for name, userEvents := range map[string]int{"alone": 0, "among 200 events of the user": 200} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := record(t)
				arrived := time.Now()
				ctx, inf := r.StartInference(t.Context(), genaitrace.Request{Stream: true})
				_, p := inf.StartPrefill(ctx, genaitrace.Prompt{})
				time.Sleep(350 * time.Millisecond)
				p.End()
				_, d := inf.StartDecode(ctx)
				const tokens, gap = 5000, 20 * time.Millisecond
				for i := range tokens {
					d.Token()
					if i < userEvents {
						d.Span().AddEvent("user", trace.WithAttributes(attribute.Int("n", i)))
					}
					time.Sleep(gap)
				}
				inf.End()

				assertOneTTFT(t, r, 350*time.Millisecond, arrived)
				s := r.span(semconv.SpanInferenceDecode)
				s.event(semconv.EventPhaseTransition)
				assert.LessOrEqual(t, len(s.Events()), 128)
				assert.Equal(t, int64(tokens), s.int(semconv.GenAITokenCountKey))
				packed := s.text(semconv.GenAITokenTimelineKey)
				assert.LessOrEqual(t, len(packed), 2000)
				line, err := genaitrace.DecodeTimeline(packed)
				require.NoError(t, err)
				assert.Equal(t, tokens, line.Ticks)
				assert.Equal(t, 4, line.Stride)
				for tick, offset := range line.Offsets() {
					want := time.Duration(tick) * gap
					require.InDelta(t, want, offset, 0.03*float64(want), "token %d", tick)
				}
				for _, key := range []attribute.Key{semconv.GenAITokenGapP50MsKey, semconv.GenAITokenGapP95MsKey} {
					assert.InEpsilon(t, 20.0, s.float(key), 0.03, key)
				}
				assert.Equal(t, 20.0, s.float(semconv.GenAITokenGapMaxMsKey), "the longest gap is exact")
			})
		})
	}
}

func TestGapsOfOneStreamAreSummedUpWithin3Percent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record(t)
		ctx, inf := r.StartInference(t.Context(), genaitrace.Request{})
		_, d := inf.StartDecode(ctx)
		d.Token()
		for i := range 100 { // 10, 20 … 1000 ms
			time.Sleep(time.Duration(i+1) * 10 * time.Millisecond)
			d.Token()
		}
		inf.End()
		s := r.span(semconv.SpanInferenceDecode)
		assert.InEpsilon(t, 500.0, s.float(semconv.GenAITokenGapP50MsKey), 0.03)
		assert.InEpsilon(t, 950.0, s.float(semconv.GenAITokenGapP95MsKey), 0.03)
		assert.Equal(t, 1000.0, s.float(semconv.GenAITokenGapMaxMsKey))
	})
}

func TestTokensOfOneStepHaveOneTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record(t)
		ctx, inf := r.StartInference(t.Context(), genaitrace.Request{})
		_, d := inf.StartDecode(ctx)
		for range 25 {
			time.Sleep(40 * time.Millisecond)
			d.Tokens(4)
		}
		inf.End()
		s := r.span(semconv.SpanInferenceDecode)
		assert.Equal(t, int64(100), s.int(semconv.GenAITokenCountKey))
		assert.Equal(t, int64(0), s.nanos(semconv.GenAITokenGapP50MsKey))
		assert.Equal(t, 40.0, s.float(semconv.GenAITokenGapMaxMsKey))
		assert.Equal(t, 0.96/99, r.once("gen_ai.server.time_per_output_token"))
		line, err := genaitrace.DecodeTimeline(s.text(semconv.GenAITokenTimelineKey))
		require.NoError(t, err)
		assert.Equal(t, 100, line.Ticks)
		assert.Len(t, line.Gaps, 99)
	})
}

// A backend with a small limit cuts the timeline; what is left decodes.
func TestATimelineThatTheSDKCutsStillDecodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, limit := range []int{8, 9, 10, 11, 128} {
			limits := sdktrace.NewSpanLimits()
			limits.AttributeValueLengthLimit = limit
			r := record(t, sdktrace.WithRawSpanLimits(limits))
			ctx, inf := r.StartInference(t.Context(), genaitrace.Request{})
			_, d := inf.StartDecode(ctx)
			for range 500 {
				d.Token()
				time.Sleep(30 * time.Millisecond)
			}
			inf.End()
			packed := r.span(semconv.SpanInferenceDecode).text(semconv.GenAITokenTimelineKey)
			require.Len(t, packed, limit)
			line, err := genaitrace.DecodeTimeline(packed)
			require.NoError(t, err)
			assert.Equal(t, 500, line.Ticks)
			assert.Len(t, line.Gaps, limit*3/4-4)
		}
	})
}

// The whole record of 2,000 tokens is a few attributes.
func TestWhatATokenClockWritesIsBounded(t *testing.T) {
	for _, tokens := range []int{1, 2, 64, 65, 1481, 1482, 2000, 2001, 5000, 100_000} {
		t.Run(strconv.Itoa(tokens), func(t *testing.T) {
			r := record(t)
			ctx, inf := r.StartInference(t.Context(), genaitrace.Request{})
			_, d := inf.StartDecode(ctx)
			for range tokens {
				d.Token()
			}
			inf.End()
			s := r.span(semconv.SpanInferenceDecode)
			assert.Equal(t, int64(tokens), s.int(semconv.GenAITokenCountKey))
			assert.LessOrEqual(t, len(s.Events()), 2)
			for _, kv := range s.Attributes() {
				assert.LessOrEqual(t, len(kv.Value.String()), 2000, kv.Key)
			}
		})
	}
}
