package genaitrace_test

import (
	"context"
	"runtime/pprof"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/semconv"
)

// runChunked is a prompt of 1,300 tokens, 300 of them cached, in pieces of 512 at
// most, each a pass of 10 ms with one kernel in it.
func runChunked(ctx context.Context, r *recording) {
	ctx, inf := r.StartInference(ctx, genaitrace.Request{Provider: "vllm", Model: "m"})
	defer inf.End()
	ctx, prefill := inf.StartPrefill(ctx, genaitrace.Prompt{Tokens: 1300, Cached: new(300)})
	for step, tokens := range []int{512, 488} {
		ctx, pass := prefill.StartForward(ctx, genaitrace.Forward{StepID: new(1042 + step), Tokens: tokens, BatchSize: 4})
		_, kernel := pass.StartKernel(ctx, genaitrace.Kernel{Name: "layers.0"})
		time.Sleep(10 * time.Millisecond)
		kernel.End()
		pass.End()
	}
	prefill.End()
	_, decode := inf.StartDecode(ctx)
	time.Sleep(5 * time.Millisecond)
	decode.Token()
	decode.End()
}

func TestAChunkedPrefillIsOnePhaseWithItsPasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record(t)
		runChunked(t.Context(), r)
		golden(t, "chunked", r.tree())

		prefill := r.span(semconv.SpanInferencePrefill)
		assert.Equal(t, int64(1300), prefill.int(semconv.AITokensInputKey))
		assert.Equal(t, int64(300), prefill.int(semconv.AITokensCachedKey))
		passes := r.spans(semconv.SpanModelForward)
		require.Len(t, passes, 2)
		var computed int64
		for _, s := range passes {
			assert.Equal(t, prefill.SpanContext().SpanID(), s.Parent().SpanID())
			computed += s.int(semconv.GenAIStepTokensKey)
		}
		assert.Equal(t, int64(1000), computed, "what was not cached")
		for _, s := range r.spans(semconv.SpanDeviceKernel) {
			assert.Equal(t, int64(10e6), s.nanos(semconv.AIKernelDurationMsKey))
		}
		inf := r.span(semconv.SpanInferenceGenerate)
		assert.Equal(t, int64(20e6), inf.nanos(semconv.GenAITTFTPrefillMsKey), "passes take no share of their own")
		assert.Equal(t, int64(5e6), inf.nanos(semconv.GenAITTFTEmitMsKey))
		assert.False(t, inf.has(semconv.GenAISpanDroppedCountKey))
	})
}

func TestAPassIsTheChildOfItsPhaseWhateverSpanTheContextCarries(t *testing.T) {
	r := record(t)
	otherTrace, foreign := r.startForeign(t.Context(), "foreign")
	ctx, inf := r.StartInference(t.Context(), genaitrace.Request{})
	ctx, prefill := inf.StartPrefill(ctx, genaitrace.Prompt{})
	_, decode := inf.StartDecode(ctx)
	for _, ctx := range []context.Context{ctx, otherTrace, t.Context()} {
		_, pass := decode.StartForward(ctx, genaitrace.Forward{})
		_, kernel := pass.StartKernel(ctx, genaitrace.Kernel{Name: "below a pass"})
		kernel.End()
		_, kernel = decode.StartKernel(ctx, genaitrace.Kernel{Name: "below the phase"})
		kernel.End()
		pass.End()
		_, lone := inf.StartForward(ctx, genaitrace.Forward{Tokens: 1})
		lone.End()
	}
	prefill.End()
	inf.End()
	foreign.End()

	for _, s := range r.spans(semconv.SpanModelForward) {
		parent := decode.Span()
		if s.has(semconv.GenAIStepTokensKey) {
			parent = inf.Span()
		}
		assert.Equal(t, parent.SpanContext().SpanID(), s.Parent().SpanID())
		assert.Equal(t, parent.SpanContext().TraceID(), s.SpanContext().TraceID())
	}
	for _, s := range r.spans(semconv.SpanDeviceKernel) {
		if s.text(semconv.AIKernelNameKey) == "below the phase" {
			assert.Equal(t, decode.Span().SpanContext().SpanID(), s.Parent().SpanID())
		} else {
			assert.NotEqual(t, decode.Span().SpanContext().SpanID(), s.Parent().SpanID())
		}
		assert.Equal(t, inf.Span().SpanContext().TraceID(), s.SpanContext().TraceID())
	}
	assert.Len(t, r.recorder.Ended(), 4+3*4)
}

// No span outlives the one around it, however the phases end.
func TestAPassEndsWithItsPhaseAtTheLatest(t *testing.T) {
	for name, end := range map[string]func(inf *genaitrace.Inference, prefill *genaitrace.Phase){
		"the phase ends":  func(_ *genaitrace.Inference, prefill *genaitrace.Phase) { prefill.End() },
		"the phase fails": func(_ *genaitrace.Inference, prefill *genaitrace.Phase) { prefill.Fail(typedError("device_lost")) },
		"the phase, earlier": func(_ *genaitrace.Inference, prefill *genaitrace.Phase) {
			prefill.EndAt(time.Now().Add(-time.Millisecond))
		},
		"the inference ends": func(inf *genaitrace.Inference, _ *genaitrace.Phase) { inf.End() },
		"the inference panics": func(inf *genaitrace.Inference, _ *genaitrace.Phase) {
			defer func() { _ = recover() }()
			defer inf.EndErr(nil)
			panic("boom")
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := record(t)
				ctx, inf := r.StartInference(t.Context(), genaitrace.Request{})
				ctx, prefill := inf.StartPrefill(ctx, genaitrace.Prompt{})
				_, pass := prefill.StartForward(ctx, genaitrace.Forward{})
				_, kernel := pass.StartKernel(ctx, genaitrace.Kernel{})
				time.Sleep(2 * time.Millisecond)
				end(inf, prefill)
				_, late := pass.StartKernel(ctx, genaitrace.Kernel{})
				assert.Nil(t, late, "nothing starts below what has ended")
				_, late = prefill.StartForward(ctx, genaitrace.Forward{})
				assert.Nil(t, late, "nothing starts below what has ended")
				kernel.End()
				pass.End()
				inf.End()

				var order []string
				for _, s := range r.recorder.Ended() {
					order = append(order, s.Name())
				}
				assert.Equal(t, []string{
					semconv.SpanDeviceKernel, semconv.SpanModelForward, semconv.SpanInferencePrefill, semconv.SpanInferenceGenerate,
				}, order)
				outer := r.span(semconv.SpanInferencePrefill)
				for _, name := range []string{semconv.SpanModelForward, semconv.SpanDeviceKernel} {
					inner := r.span(name)
					assert.False(t, inner.EndTime().After(outer.EndTime()), name)
					assert.Equal(t, outer.Status().Code, inner.Status().Code, name)
				}
			})
		})
	}
}

// onSpans calls functions when spans of a name start and end.
type onSpans struct {
	sdktrace.SpanProcessor

	name       string
	start, end func()
}

func (p onSpans) OnStart(_ context.Context, span sdktrace.ReadWriteSpan) {
	if span.Name() == p.name && p.start != nil {
		p.start()
	}
}

func (p onSpans) OnEnd(span sdktrace.ReadOnlySpan) {
	if span.Name() == p.name && p.end != nil {
		p.end()
	}
}

// Whichever comes first: a pass that starts while its phase ends is none of it.
func TestAPassThatStartsWhileItsPhaseEndsDoesNotOutliveIt(t *testing.T) {
	t.Run("the phase ends as the pass starts", func(t *testing.T) {
		var prefill *genaitrace.Phase
		r := record(t, sdktrace.WithSpanProcessor(onSpans{name: semconv.SpanModelForward, start: func() { prefill.End() }}))
		ctx, inf := r.StartInference(t.Context(), genaitrace.Request{})
		_, prefill = inf.StartPrefill(ctx, genaitrace.Prompt{})
		_, pass := prefill.StartForward(ctx, genaitrace.Forward{})
		assert.Nil(t, pass)
		assert.Len(t, r.spans(semconv.SpanModelForward), 1, "its span has ended")
		inf.End()
	})
	t.Run("a pass starts as the phase ends its passes", func(t *testing.T) {
		var again *genaitrace.Phase
		var prefill *genaitrace.Phase
		ctx := t.Context()
		r := record(t, sdktrace.WithSpanProcessor(onSpans{name: semconv.SpanDeviceKernel, end: func() {
			_, again = prefill.StartForward(ctx, genaitrace.Forward{})
		}}))
		ctx, inf := r.StartInference(ctx, genaitrace.Request{})
		_, prefill = inf.StartPrefill(ctx, genaitrace.Prompt{})
		_, kernel := prefill.StartKernel(ctx, genaitrace.Kernel{})
		require.NotNil(t, kernel)
		prefill.End()
		assert.Nil(t, again)
		assert.Empty(t, r.spans(semconv.SpanModelForward))
		inf.End()
	})
}

func TestPassesAreBoundedAndThoseTooManyCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record(t)
		ctx, inf := r.StartInference(t.Context(), genaitrace.Request{})
		ctx, prefill := inf.StartPrefill(ctx, genaitrace.Prompt{})
		for range 300 {
			below, pass := prefill.StartForward(ctx, genaitrace.Forward{})
			if pass == nil {
				assert.Equal(t, ctx, below, "the context stays as it was")
			}
			_, kernel := pass.StartKernel(ctx, genaitrace.Kernel{})
			time.Sleep(time.Millisecond)
			kernel.End()
			pass.End()
		}
		prefill.End()
		_, decode := inf.StartDecode(ctx)
		decode.Token()
		inf.End()

		assert.Len(t, r.spans(semconv.SpanModelForward), 50)
		assert.Len(t, r.spans(semconv.SpanDeviceKernel), 50)
		s := r.span(semconv.SpanInferenceGenerate)
		assert.Equal(t, int64(250), s.int(semconv.GenAISpanDroppedCountKey))
		assert.Equal(t, int64(300e6), s.nanos(semconv.GenAITTFTPrefillMsKey), "they crowd out no phase")
	})
}

// Passes have no metric: without a span there is nothing to record.
func TestAPassOfAnUnsampledInferenceIsNil(t *testing.T) {
	r := record(t, sdktrace.WithSampler(sdktrace.NeverSample()))
	ctx, inf := r.StartInference(t.Context(), genaitrace.Request{})
	_, prefill := inf.StartPrefill(ctx, genaitrace.Prompt{})
	require.NotNil(t, prefill)
	_, pass := prefill.StartForward(ctx, genaitrace.Forward{})
	assert.Nil(t, pass)
	_, kernel := prefill.StartKernel(ctx, genaitrace.Kernel{})
	assert.Nil(t, kernel)
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		inf.SetEngine(genaitrace.Engine{Backend: "vllm", DeviceID: new(0)})
		prefill.SetResources(genaitrace.Resources{BatchSize: new(16)})
		prefill.SetOutcome(genaitrace.Outcome{RulesHit: []string{"a"}})
		prefill.StartForward(ctx, genaitrace.Forward{TensorShape: []int{1, 2}})
	}))
	inf.End()
}

func TestPassesMayRunInSeveralGoroutines(t *testing.T) {
	r := record(t)
	for range 50 {
		ctx, inf := r.StartInference(t.Context(), genaitrace.Request{})
		_, prefill := inf.StartPrefill(ctx, genaitrace.Prompt{})
		work := func() {
			for range 20 {
				ctx, pass := prefill.StartForward(ctx, genaitrace.Forward{Tokens: 1})
				_, kernel := pass.StartKernel(ctx, genaitrace.Kernel{Name: "k"})
				pass.SetResources(genaitrace.Resources{BatchSize: new(1)})
				kernel.End()
				pass.End()
			}
		}
		together(work, work, work,
			func() { inf.SetEngine(genaitrace.Engine{Backend: "a"}) },
			func() { prefill.SetAttributes(attribute.Bool("a", true)); prefill.End() },
			func() { inf.End() },
		)
		inf.End()
	}
}

// A pass is the work of its phase: a profile of prefill must not lose it.
func TestAPassKeepsTheProfileLabelsOfItsPhase(t *testing.T) {
	defer pprof.SetGoroutineLabels(context.Background())
	r := labelling(t)
	ctx, inf := r.StartInference(t.Context(), genaitrace.Request{})
	ctx, prefill := inf.StartPrefill(ctx, genaitrace.Prompt{})
	_, pass := prefill.StartForward(ctx, genaitrace.Forward{})
	_, kernel := pass.StartKernel(ctx, genaitrace.Kernel{})
	assert.Equal(t, "prefill", phaseHere(t))
	kernel.End()
	pass.End()
	assert.Equal(t, "prefill", phaseHere(t))
	prefill.End()
	assert.Empty(t, phaseHere(t))
	inf.End()
}
