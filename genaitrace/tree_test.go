package genaitrace_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/semconv"
)

func fullRequest() genaitrace.Request {
	return genaitrace.Request{
		Provider: "vllm", Model: "qwen2.5-7b-instruct", ModelVersion: "v1.2", RequestID: "req-1",
		Stream: true, MaxTokens: 512, Temperature: new(0.7), TopP: new(0.95),
		ServerAddress: "gpu-7.internal", ServerPort: 8000,
	}
}

func fullUsage() genaitrace.Usage {
	return genaitrace.Usage{
		InputTokens: new(2456), OutputTokens: new(3), CachedTokens: new(1024),
		CacheWriteTokens: new(512), ReasoningTokens: new(0),
	}
}

// runInference is one request with every phase, each of 10 ms, and three
// tokens, the first 10 ms after decode starts. Each phase gets the context of
// the one before.
func runInference(t *testing.T, r *recording) {
	t.Helper()
	const step = 10 * time.Millisecond
	ctx, inf := r.StartInference(t.Context(), fullRequest())
	defer inf.End()

	ctx, queue := inf.StartQueue(ctx)
	time.Sleep(step)
	queue.End()
	ctx, tokenize := inf.StartTokenize(ctx)
	time.Sleep(step)
	tokenize.SetInputTokens(2456)
	tokenize.End()
	ctx, schedule := inf.StartSchedule(ctx)
	time.Sleep(step)
	schedule.End()
	ctx, prefill := inf.StartPrefill(ctx, genaitrace.Prompt{Tokens: 2456, Cached: new(1024)})
	time.Sleep(step)
	prefill.End()
	ctx, decode := inf.StartDecode(ctx)
	for range 3 {
		time.Sleep(step)
		decode.Token()
	}
	decode.End()
	_, post := inf.StartPostprocess(ctx)
	time.Sleep(step)
	post.End()

	inf.SetResponse("chatcmpl-1", "qwen2.5-7b-instruct-awq")
	inf.SetUsage(fullUsage())
	inf.SetFinish("stop")
}

// runCall is one streamed call: a role, reasoning, text, usage.
func runCall(t *testing.T, r *recording) {
	t.Helper()
	ctx, gateway := r.StartGateway(t.Context(), genaitrace.GatewayRequest{Name: "POST /v1/chat/completions"})
	defer gateway.End()
	_, call := r.StartCall(ctx, fullRequest())
	defer call.End()
	for _, kind := range []genaitrace.ChunkKind{
		genaitrace.NoOutput, genaitrace.Output, genaitrace.Visible, genaitrace.NoOutput,
	} {
		time.Sleep(10 * time.Millisecond)
		call.Chunk(kind)
		gateway.Chunk(kind)
	}
	call.SetResponse("chatcmpl-1", "qwen2.5-7b-instruct-awq")
	call.SetUsage(fullUsage())
	call.SetFinish("stop")
	call.SetTerminal(semconv.GenAIStreamTerminalDone)
}

func TestTreeOfOneRequest(t *testing.T) {
	for name, run := range map[string]func(*testing.T, *recording){
		"inference": runInference,
		"call":      runCall,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := record(t)
				run(t, r)
				golden(t, name, r.tree())
				assert.Empty(t, r.faults())
			})
		})
	}
}

func TestAFailedInferenceMarksWhatWasOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record(t)
		ctx, inf := r.StartInference(t.Context(), genaitrace.Request{Model: "m"})
		_, prefill := inf.StartPrefill(ctx, genaitrace.Prompt{})
		prefill.End()
		_, decode := inf.StartDecode(ctx)
		decode.Token()
		inf.Fail(assert.AnError)
		golden(t, "failed", r.tree())
	})
}

// Whoever threads one ctx through the phases must not nest decode under
// prefill.
func TestThreadingOneContextThroughThePhasesDoesNotNestThem(t *testing.T) {
	r := record(t)
	ctx, inf := r.StartInference(t.Context(), genaitrace.Request{})
	ctx, prefill := inf.StartPrefill(ctx, genaitrace.Prompt{})
	assert.Equal(t, prefill.Span(), trace.SpanFromContext(ctx), "what runs below a phase belongs to it")
	ctx, decode := inf.StartDecode(ctx)
	assert.Equal(t, decode.Span(), trace.SpanFromContext(ctx), "what runs below a phase belongs to it")
	decode.End()
	prefill.End()
	inf.End()

	parent := r.span(semconv.SpanInferenceGenerate).SpanContext().SpanID()
	assert.Equal(t, parent, r.span(semconv.SpanInferencePrefill).Parent().SpanID())
	assert.Equal(t, parent, r.span(semconv.SpanInferenceDecode).Parent().SpanID())
}

func TestAPhaseIsTheChildOfItsInferenceWhateverSpanTheContextCarries(t *testing.T) {
	r := record(t)
	type key struct{}
	starts := map[string]func(context.Context, *genaitrace.Inference) (context.Context, interface{ End() }){
		semconv.SpanQueueWait: func(ctx context.Context, inf *genaitrace.Inference) (context.Context, interface{ End() }) {
			return inf.StartQueue(ctx)
		},
		semconv.SpanTokenizerEncode: func(ctx context.Context, inf *genaitrace.Inference) (context.Context, interface{ End() }) {
			return inf.StartTokenize(ctx)
		},
		semconv.SpanSchedulerDispatch: func(ctx context.Context, inf *genaitrace.Inference) (context.Context, interface{ End() }) {
			return inf.StartSchedule(ctx)
		},
		semconv.SpanInferencePrefill: func(ctx context.Context, inf *genaitrace.Inference) (context.Context, interface{ End() }) {
			return inf.StartPrefill(ctx, genaitrace.Prompt{})
		},
		semconv.SpanInferenceDecode: func(ctx context.Context, inf *genaitrace.Inference) (context.Context, interface{ End() }) {
			return inf.StartDecode(ctx)
		},
		semconv.SpanInferencePostprocess: func(ctx context.Context, inf *genaitrace.Inference) (context.Context, interface{ End() }) {
			return inf.StartPostprocess(ctx)
		},
	}
	ctx, inf := r.StartInference(t.Context(), genaitrace.Request{})
	otherTrace, foreign := r.startForeign(context.WithValue(t.Context(), key{}, "kept"), "foreign")
	for name, start := range starts {
		for around, ctx := range map[string]context.Context{
			"the context of the inference": ctx,
			"a span of another trace":      otherTrace,
			"no span at all":               context.WithValue(t.Context(), key{}, "kept"),
		} {
			before := len(r.spans(name))
			below, phase := start(ctx, inf)
			phase.End()
			spans := r.spans(name)
			require.Len(t, spans, before+1)
			s := spans[before]
			assert.Equal(t, inf.Span().SpanContext().SpanID(), s.Parent().SpanID(), "%s below %s", name, around)
			assert.Equal(t, inf.Span().SpanContext().TraceID(), s.SpanContext().TraceID(), "%s below %s", name, around)
			assert.Equal(t, ctx.Value(key{}), below.Value(key{}), "values of the context stay")
		}
	}
	foreign.End()
	inf.End()
}

func TestPhasesMayEndInAnyOrder(t *testing.T) {
	for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 0, 2}, {1, 2}, {2}, {}} {
		synctest.Test(t, func(t *testing.T) {
			r := record(t)
			ctx, inf := r.StartInference(t.Context(), genaitrace.Request{})
			_, queue := inf.StartQueue(ctx)
			time.Sleep(time.Millisecond)
			_, prefill := inf.StartPrefill(ctx, genaitrace.Prompt{})
			time.Sleep(time.Millisecond)
			_, decode := inf.StartDecode(ctx)
			time.Sleep(time.Millisecond)
			decode.Token()
			ends := []func(){queue.End, prefill.End, decode.End}
			for _, i := range order {
				ends[i]()
			}
			inf.End()

			assert.Len(t, r.recorder.Ended(), 4, "order %v", order)
			s := r.span(semconv.SpanInferenceGenerate)
			assert.Equal(t, int64(3e6), s.nanos(semconv.LLMTTFTMsKey))
			// Whatever ended first, the later start wins where phases overlap.
			assert.Equal(t, int64(1e6), s.nanos(semconv.GenAITTFTQueueMsKey), "order %v", order)
			assert.Equal(t, int64(2e6), s.nanos(semconv.GenAITTFTPrefillMsKey), "order %v", order)
		})
	}
}

func TestPhasesBeyondThoseThatAreTimedStillGetTheirSpans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record(t)
		ctx, inf := r.StartInference(t.Context(), genaitrace.Request{})
		for range 100 {
			_, q := inf.StartQueue(ctx)
			time.Sleep(time.Millisecond)
			q.End()
		}
		_, d := inf.StartDecode(ctx)
		d.Token()
		inf.End()

		assert.Len(t, r.spans(semconv.SpanQueueWait), 100)
		s := r.span(semconv.SpanInferenceGenerate)
		assert.Equal(t, int64(100e6), s.nanos(semconv.LLMTTFTMsKey))
		assert.Equal(t, int64(100e6), s.nanos(semconv.GenAITTFTQueueMsKey)+s.nanos(semconv.GenAITTFTUnattributedMsKey))
	})
}

func TestSpansAndMetricsCarryTheScopeOfThisPackage(t *testing.T) {
	r := record(t)
	ctx, inf := r.StartInference(t.Context(), genaitrace.Request{})
	_, d := inf.StartDecode(ctx)
	d.End()
	inf.End()
	for _, s := range r.recorder.Ended() {
		assert.Equal(t, genaitrace.ScopeName, s.InstrumentationScope().Name)
		assert.Equal(t, genaitrace.Version, s.InstrumentationScope().Version)
	}
	var all metricdata.ResourceMetrics
	require.NoError(t, r.reader.Collect(t.Context(), &all))
	require.Len(t, all.ScopeMetrics, 1)
	assert.Equal(t, genaitrace.ScopeName, all.ScopeMetrics[0].Scope.Name)
	assert.Equal(t, genaitrace.Version, all.ScopeMetrics[0].Scope.Version)
}
