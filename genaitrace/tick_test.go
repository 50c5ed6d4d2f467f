package genaitrace_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// Three answers in lockstep, a token of each every 20 ms; the first answer is done
// early, the third has a pause of its own.
func TestAnswersOfOneRequestShareADecodePhase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record(t)
		ctx, inf := r.StartInference(t.Context(), genaitrace.Request{})
		_, d := inf.StartDecode(ctx)
		for step := range 10 {
			time.Sleep(20 * time.Millisecond)
			if step < 4 {
				d.Token()
			}
			d.Tick(genaitrace.Tick{Choice: 1})
			if step < 5 {
				d.Tick(genaitrace.Tick{Choice: 2})
			}
		}
		time.Sleep(480 * time.Millisecond)
		d.Tick(genaitrace.Tick{Choice: 2, Tokens: 2})
		inf.End()

		s := r.span(semconv.SpanInferenceGenerate)
		assert.Equal(t, int64(20e6), s.nanos(semconv.LLMTTFTMsKey), "of whichever came first")
		assert.Equal(t, int64(680e6), s.nanos(semconv.GenAILastTokenMsKey))
		decode := r.span(semconv.SpanInferenceDecode)
		assert.Equal(t, int64(4+10+7), decode.int(semconv.GenAITokenCountKey))

		// Within an answer: 3 + 9 + 4 gaps of 20 ms, one of 580 and one of 0.
		assert.InEpsilon(t, 20, decode.float(semconv.GenAITokenGapP50MsKey), 0.03)
		assert.InEpsilon(t, 580, decode.float(semconv.GenAITokenGapP95MsKey), 0.03, "the last of 18")
		assert.Equal(t, 580.0, decode.float(semconv.GenAITokenGapMaxMsKey))
		stall := decode.event(semconv.EventTokenStall)
		assert.Equal(t, semconv.GenAIStallDurationMs(580), stall.Attributes[0])
		assert.Equal(t, semconv.GenAITokenPosition(5), stall.Attributes[1], "in its own answer")
		assert.InDelta(t, (3*20+9*20+4*20+580)/18e3, r.once(genaiconv.ServerTimePerOutputTokenName), 1e-12)

		line, err := genaitrace.DecodeTimeline(decode.text(semconv.GenAITokenTimelineKey))
		require.NoError(t, err)
		assert.Equal(t, 21, line.Ticks, "the tokens of all, as they came")
		assert.Empty(t, r.faults())
	})
}

func TestATickStampsWhatTokenTokensAndTokenAtStamp(t *testing.T) {
	for name, tick := range map[string]func(d *genaitrace.Decode){
		"Token":        func(d *genaitrace.Decode) { d.Token() },
		"Tokens":       func(d *genaitrace.Decode) { d.Tokens(1) },
		"TokenAt":      func(d *genaitrace.Decode) { d.TokenAt(time.Now()) },
		"zero Tick":    func(d *genaitrace.Decode) { d.Tick(genaitrace.Tick{}) },
		"Tick in full": func(d *genaitrace.Decode) { d.Tick(genaitrace.Tick{Tokens: 1, At: time.Now()}) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := record(t)
				ctx, inf := r.StartInference(t.Context(), genaitrace.Request{})
				_, d := inf.StartDecode(ctx)
				for range 3 {
					time.Sleep(30 * time.Millisecond)
					tick(d)
				}
				inf.End()
				decode := r.span(semconv.SpanInferenceDecode)
				assert.Equal(t, int64(3), decode.int(semconv.GenAITokenCountKey))
				assert.Equal(t, 30.0, decode.float(semconv.GenAITokenGapMaxMsKey))
				assert.Equal(t, 30.0, r.span(semconv.SpanInferenceGenerate).float(semconv.LLMTTFTMsKey))
				assert.False(t, r.span(semconv.SpanInferenceGenerate).has(semconv.GenAIFirstVisibleMsKey),
					"nothing was told apart from the answer")
			})
		})
	}
}

func TestReasoningCountsForTheTimeToFirstTokenAndNotForTheAnswer(t *testing.T) {
	const step = 10 * time.Millisecond
	for name, tt := range map[string]struct {
		reasoning []bool  // of each token
		visible   float64 // in ms; 0 for absent
	}{
		"before the answer": {[]bool{true, true, false, false}, 30},
		"in between":        {[]bool{false, true, false}, 10},
		"alone":             {[]bool{true, true}, 0},
		"never":             {[]bool{false, false}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := record(t)
				ctx, inf := r.StartInference(t.Context(), genaitrace.Request{})
				_, d := inf.StartDecode(ctx)
				for _, reasoning := range tt.reasoning {
					time.Sleep(step)
					d.Tick(genaitrace.Tick{Reasoning: reasoning})
				}
				inf.End()
				s := r.span(semconv.SpanInferenceGenerate)
				assert.Equal(t, 10.0, s.float(semconv.LLMTTFTMsKey))
				assert.Equal(t, tt.visible > 0, s.has(semconv.GenAIFirstVisibleMsKey))
				if tt.visible > 0 {
					assert.Equal(t, tt.visible, s.float(semconv.GenAIFirstVisibleMsKey))
				}
				assert.Equal(t, int64(len(tt.reasoning)), r.span(semconv.SpanInferenceDecode).int(semconv.GenAITokenCountKey))
			})
		})
	}
}

// Reasoning in one decode phase, the answer in the next.
func TestTheAnswerMayComeInALaterPhase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record(t)
		ctx, inf := r.StartInference(t.Context(), genaitrace.Request{})
		for _, reasoning := range []bool{true, false} {
			_, d := inf.StartDecode(ctx)
			time.Sleep(10 * time.Millisecond)
			d.Tick(genaitrace.Tick{Reasoning: reasoning, Choice: 1})
			d.Tick(genaitrace.Tick{Reasoning: reasoning})
			d.End()
		}
		inf.End()
		s := r.span(semconv.SpanInferenceGenerate)
		assert.Equal(t, 10.0, s.float(semconv.LLMTTFTMsKey))
		assert.Equal(t, 20.0, s.float(semconv.GenAIFirstVisibleMsKey))
		assert.Equal(t, 0.010, r.once(genaiconv.ServerTimePerOutputTokenName), "of each answer over both phases")
	})
}

func TestATickThatCannotBeIsDroppedAndCounted(t *testing.T) {
	for name, tt := range map[string]struct {
		tick genaitrace.Tick
		kind semconv.GenAIFaultAttr
	}{
		"a negative number of tokens": {genaitrace.Tick{Tokens: -1}, semconv.GenAIFaultCount},
		"too many tokens":             {genaitrace.Tick{Tokens: 1<<16 + 1}, semconv.GenAIFaultCount},
		"a negative choice":           {genaitrace.Tick{Choice: -1}, semconv.GenAIFaultCount},
		"too high a choice":           {genaitrace.Tick{Choice: 128}, semconv.GenAIFaultCount},
		"a time before arrival":       {genaitrace.Tick{At: time.Unix(0, 0)}, semconv.GenAIFaultTime},
	} {
		t.Run(name, func(t *testing.T) {
			handled(t)
			r := record(t)
			ctx, inf := r.StartInference(t.Context(), genaitrace.Request{})
			_, d := inf.StartDecode(ctx)
			d.Tick(tt.tick)
			inf.End()
			assert.Equal(t, map[semconv.GenAIFaultAttr]int{tt.kind: 1}, r.faults())
			assert.False(t, r.span(semconv.SpanInferenceDecode).has(semconv.GenAITokenCountKey))
		})
	}
	var nothing *genaitrace.Decode
	nothing.Tick(genaitrace.Tick{})
	new(genaitrace.Decode).Tick(genaitrace.Tick{})
	new(genaitrace.Decode).Token()
}

func TestTheHighestChoiceIsAChoice(t *testing.T) {
	r := record(t)
	ctx, inf := r.StartInference(t.Context(), genaitrace.Request{})
	_, d := inf.StartDecode(ctx)
	d.Tick(genaitrace.Tick{Choice: 127, Tokens: 3})
	inf.End()
	assert.Equal(t, int64(3), r.span(semconv.SpanInferenceDecode).int(semconv.GenAITokenCountKey))
	assert.Equal(t, 0.0, r.once(genaiconv.ServerTimePerOutputTokenName))
	assert.Empty(t, r.faults())
}
