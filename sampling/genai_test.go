package sampling_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/sampling"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// generate runs an inference of the engine: prefill, and a decode of ten tokens.
func (s *service) generate(model string, prefill, perToken time.Duration, during func(*genaitrace.Inference)) {
	tr := genaitrace.New(genaitrace.WithTracerProvider(s.provider), genaitrace.WithMeterProvider(s.meters))
	ctx, inf := tr.StartInference(context.Background(), genaitrace.Request{Operation: genaiconv.OperationNameChat, Model: model, Stream: true})
	_, p := inf.StartPrefill(ctx, genaitrace.Prompt{Tokens: 100})
	time.Sleep(prefill)
	p.End()
	_, d := inf.StartDecode(ctx)
	for range 10 {
		d.Token()
		time.Sleep(perToken)
	}
	if during != nil {
		during(inf)
	}
	d.End()
	inf.End()
}

func TestGenAIServicesKeepWhatIsSlowForTheirModelOrStrange(t *testing.T) {
	p := sampling.Any(
		sampling.SlowTTFT(2*time.Second),
		sampling.SlowBy(genaiconv.RequestModelKey, map[string]time.Duration{"large": 30 * time.Second}, 5*time.Second),
		sampling.Match("early_stop", sampling.Selector{Event: semconv.EventEarlyStop}),
	)
	for _, c := range []struct {
		name, model       string
		prefill, perToken time.Duration
		during            func(*genaitrace.Inference)
		reason            string
	}{
		{"an ordinary one", "small", time.Second, 100 * time.Millisecond, nil, ""},
		{"a late first token", "small", 2 * time.Second, 10 * time.Millisecond, nil, "slow_ttft"},
		{"a small model that is slow", "small", time.Second, 500 * time.Millisecond, nil, "slow_by"},
		{"a large one that is not", "large", time.Second, 500 * time.Millisecond, nil, ""},
		{"a stop", "large", time.Second, time.Millisecond, func(inf *genaitrace.Inference) {
			inf.EarlyStop(semconv.GenAIEarlyStopReasonUser)
		}, "early_stop"},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, p, func(t *testing.T, s *service) {
				s.generate(c.model, c.prefill, c.perToken, c.during)
				if c.reason == "" {
					assert.Empty(t, s.exported())
					return
				}
				assert.ElementsMatch(t, []string{semconv.SpanInferenceGenerate, semconv.SpanInferencePrefill, semconv.SpanInferenceDecode}, s.exported())
				assert.Equal(t, c.reason, attr(s.span(semconv.SpanInferenceGenerate), semconv.GenAISamplingReasonKey))
			})
		})
	}
}

func TestALongDecodeIsExportedWhileItRuns(t *testing.T) {
	p := sampling.SlowBy(genaiconv.RequestModelKey, map[string]time.Duration{"small": 5 * time.Second}, time.Hour)
	inBubble(t, p, func(t *testing.T, s *service) {
		s.generate("small", time.Second, time.Second, func(*genaitrace.Inference) {
			assert.Equal(t, []string{semconv.SpanInferencePrefill}, s.exported(), "the model was known from the start")
		})
		assert.Len(t, s.exported(), 3)
	})
}
