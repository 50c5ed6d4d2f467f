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
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// A phase that starts while its inference ends either belongs to it, or is nil.
func TestAnInferenceMayEndWhileAnotherGoroutineStartsAPhase(t *testing.T) {
	r := record(t)
	for range 1000 {
		ctx, inf := r.StartInference(t.Context(), genaitrace.Request{Model: "m"})
		together(
			func() {
				_, p := inf.StartPrefill(ctx, genaitrace.Prompt{Tokens: 5, Cached: new(3)})
				p.SetInputTokens(5)
				p.End()
			},
			func() {
				_, d := inf.StartDecode(ctx)
				d.Token()
				d.Tokens(2)
				d.SetAttributes(semconv.GenAIRequestID("r"))
				d.End()
			},
			func() { _, p := inf.StartQueue(ctx); p.Span().AddEvent("x") },
			func() { _, p := inf.StartTokenize(ctx); p.Fail(typedError("x")) },
			inf.End,
		)
	}
	assert.Len(t, r.spans(semconv.SpanInferenceGenerate), 1000)
	assert.Equal(t, 1000, r.total(genaiconv.ServerRequestDurationName))
}

// Several candidates are decoded side by side: the earliest token is the first
// one, whatever the order in which phases started, and wherever they end.
func TestDecodePhasesSideBySideHaveOneFirstToken(t *testing.T) {
	for _, tt := range []struct {
		name  string
		first int                               // the phase that holds the first token
		end   func(phases []*genaitrace.Decode) // before the inference ends
	}{
		{"the first has it, all are open", 0, nil},
		{"the second has it, all are open", 1, nil},
		{"the third has it, all are open", 2, nil},
		{"another one ends first", 1, func(phases []*genaitrace.Decode) { phases[0].End() }},
		{"it ends first", 1, func(phases []*genaitrace.Decode) { phases[1].End() }},
		{"it ends last", 1, func(phases []*genaitrace.Decode) { phases[2].End(); phases[0].End(); phases[1].End() }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := record(t)
				arrived := time.Now()
				ctx, inf := r.StartInference(t.Context(), genaitrace.Request{})
				phases := make([]*genaitrace.Decode, 3)
				for i := range phases {
					_, phases[i] = inf.StartDecode(ctx)
					phases[i].SetAttributes(attribute.Int("choice", i))
				}
				time.Sleep(7 * time.Millisecond)
				phases[tt.first].Token()
				for i := range phases {
					time.Sleep(5 * time.Millisecond)
					phases[i].Token()
				}
				if tt.end != nil {
					tt.end(phases)
				}
				time.Sleep(time.Millisecond)
				inf.End()

				const want = 7 * time.Millisecond
				found := 0
				for _, s := range r.spans(semconv.SpanInferenceDecode) {
					for _, e := range s.events(semconv.EventFirstToken) {
						found++
						assert.Equal(t, int64(tt.first), s.int("choice"))
						assert.Equal(t, want, e.Time.Sub(arrived))
						assert.Equal(t, []attribute.KeyValue{semconv.LLMTTFTMs(7)}, e.Attributes)
					}
				}
				assert.Equal(t, 1, found, "first tokens")
				assert.Equal(t, int64(want), r.span(semconv.SpanInferenceGenerate).nanos(semconv.LLMTTFTMsKey))
				assert.Equal(t, want.Seconds(), r.once(genaiconv.ServerTimeToFirstTokenName))
				require.Len(t, r.spans(semconv.SpanInferenceDecode), 3)
			})
		})
	}
}

// Both at the same instant: still one.
func TestTwoFirstTokensAtOneInstantAreOneEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record(t)
		ctx, inf := r.StartInference(t.Context(), genaitrace.Request{})
		for range 2 {
			_, d := inf.StartDecode(ctx)
			d.Token()
		}
		inf.End()
		found := 0
		for _, s := range r.spans(semconv.SpanInferenceDecode) {
			found += len(s.events(semconv.EventFirstToken))
		}
		assert.Equal(t, 1, found)
	})
}
