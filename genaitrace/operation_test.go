package genaitrace_test

import (
	"context"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// runGateway is one request of a gateway with all that comes before its call.
func runGateway(t *testing.T, r *recording) {
	t.Helper()
	ctx, gateway := r.StartGateway(t.Context(), genaitrace.GatewayRequest{Name: "POST /v1/chat/completions"})
	defer gateway.End()
	_, auth := r.StartAuth(ctx)
	auth.End()
	_, limit := r.StartRateLimit(ctx)
	time.Sleep(20 * time.Millisecond)
	limit.End()
	_, render := r.StartTemplate(ctx, genaitrace.Template{Name: "support", Version: "v3"})
	render.End()
	_, lookup := r.StartCache(ctx)
	lookup.SetHit(false)
	lookup.End()
	_, route := r.StartRoute(ctx, "qwen2.5-7b-instruct")
	route.SetBackend("vllm")
	route.End()
	_, call := r.StartCall(ctx, genaitrace.Request{Provider: "vllm", Model: "qwen2.5-7b-instruct"})
	call.End()
}

// runOperations is one call and one inference of each operation on a model, and
// what they have in the engine.
func runOperations(t *testing.T, r *recording) {
	t.Helper()
	for _, operation := range []genaiconv.OperationNameAttr{
		genaiconv.OperationNameChat, genaiconv.OperationNameTextCompletion, genaiconv.OperationNameGenerateContent,
		genaiconv.OperationNameEmbeddings, genaiconv.OperationNameFetchResponse,
	} {
		req := genaitrace.Request{Operation: operation, Provider: "vllm", Model: "m1"}
		ctx, call := r.StartCall(t.Context(), req)
		if operation != genaiconv.OperationNameFetchResponse { // no work for an engine
			ctx, inf := r.StartInference(ctx, req)
			_, pass := inf.StartForward(ctx, genaitrace.Forward{Tokens: 17})
			pass.End()
			inf.End()
		}
		call.End()
	}
}

func TestTreesOfOperations(t *testing.T) {
	for name, run := range map[string]func(*testing.T, *recording){
		"gateway":    runGateway,
		"operations": runOperations,
		"everything": func(t *testing.T, r *recording) { everyPhase(t.Context(), r).End() },
		"rag":        runRAG,
		"agent":      runAgent,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := recordWith(t, []genaitrace.Option{genaitrace.WithStepEvents(8)})
				run(t, r)
				golden(t, name, r.tree())
				assert.Empty(t, r.faults())
			})
		})
	}
}

func TestTheWaitForARateLimitIsTheLengthOfItsSpan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record(t)
		_, limit := r.StartRateLimit(t.Context())
		time.Sleep(20*time.Millisecond + time.Nanosecond)
		limit.End()
		time.Sleep(time.Second)
		limit.End()
		s := r.span(semconv.SpanGatewayRatelimit)
		assert.Equal(t, int64(20e6+1), s.nanos(semconv.GenAIRateLimitWaitMsKey))
		assert.Equal(t, 20*time.Millisecond+time.Nanosecond, s.EndTime().Sub(s.StartTime()))
	})
}

// A gateway that is asked why it was slow answers by itself.
func TestTheGatewayTellsHowLongItHeldARequestBack(t *testing.T) {
	wait := func(r *recording, ctx context.Context, d time.Duration) {
		_, limit := r.StartRateLimit(ctx)
		time.Sleep(d)
		limit.End()
	}
	for name, tt := range map[string]struct {
		work func(r *recording, ctx context.Context)
		want int64 // nanoseconds; -1 for none
	}{
		"no limit": {func(*recording, context.Context) {}, -1},
		"one":      {func(r *recording, ctx context.Context) { wait(r, ctx, 20*time.Millisecond) }, 20e6},
		"no wait":  {func(r *recording, ctx context.Context) { wait(r, ctx, 0) }, 0},
		"two": {func(r *recording, ctx context.Context) {
			wait(r, ctx, 20*time.Millisecond)
			ctx, auth := r.StartAuth(ctx)
			wait(r, ctx, time.Nanosecond)
			auth.End()
		}, 20e6 + 1},
		"turned away": {func(r *recording, ctx context.Context) {
			_, limit := r.StartRateLimit(ctx)
			time.Sleep(time.Millisecond)
			limit.Fail(typedError("rate_limited"))
			limit.Fail(typedError("rate_limited"))
		}, 1e6},
		"one that has not ended": {func(r *recording, ctx context.Context) {
			wait(r, ctx, time.Millisecond)
			_, limit := r.StartRateLimit(ctx)
			time.AfterFunc(time.Second, limit.End)
		}, -1},
		"one whose end cannot be true": {func(r *recording, ctx context.Context) {
			wait(r, ctx, time.Millisecond)
			_, limit := r.StartRateLimit(ctx)
			limit.EndAt(time.Now().Add(-time.Second))
		}, -1},
		"of a service behind it": {func(r *recording, ctx context.Context) {
			wait(r, genaitrace.ContextWithArrival(ctx, time.Now()), time.Millisecond)
		}, -1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				handled(t)
				r := record(t)
				ctx, gateway := r.StartGateway(t.Context(), genaitrace.GatewayRequest{Name: "POST /v1/chat/completions"})
				tt.work(r, ctx)
				gateway.End()
				wait(r, ctx, time.Minute) // too late
				s := r.span("POST /v1/chat/completions")
				require.Equal(t, tt.want >= 0, s.has(semconv.GenAIRateLimitWaitMsKey))
				if tt.want >= 0 {
					assert.Equal(t, tt.want, s.nanos(semconv.GenAIRateLimitWaitMsKey))
				}
			})
		})
	}
}

func TestAnOperationEndsWhenItIsTold(t *testing.T) {
	for name, tt := range map[string]struct {
		at    func(begin time.Time) time.Time
		took  time.Duration
		fault bool
	}{
		"in the past":      {ago(-time.Second), time.Second, false},
		"before the start": {ago(time.Nanosecond), 3 * time.Second, true},
		"in the future":    {ago(-time.Hour), 3 * time.Second, false},
		"at no time":       {func(time.Time) time.Time { return time.Time{} }, 3 * time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				handled(t)
				r := record(t)
				begin := time.Now()
				_, limit := r.StartRateLimit(t.Context())
				time.Sleep(3 * time.Second)
				limit.EndAt(tt.at(begin))
				s := r.span(semconv.SpanGatewayRatelimit)
				assert.Equal(t, tt.took, s.EndTime().Sub(s.StartTime()))
				assert.Equal(t, !tt.fault, s.has(semconv.GenAIRateLimitWaitMsKey), "a length only where the end is known")
				assert.Equal(t, tt.fault, r.faults()[semconv.GenAIFaultTime] == 1)
			})
		})
	}
}

func TestAnOperationIsAChildOfItsContextAndWhatRunsInItIsItsOwn(t *testing.T) {
	r := record(t)
	ctx, foreign := r.startForeign(t.Context(), "foreign")
	ctx, route := r.StartRoute(ctx, "")
	assert.Equal(t, route.Span(), trace.SpanFromContext(ctx))
	_, lookup := r.StartCache(ctx)
	lookup.End()
	route.SetAttributes(attribute.String("mine", "yes"))
	route.End()
	foreign.End()

	s := r.span(semconv.SpanGatewayRoute)
	assert.Equal(t, foreign.SpanContext().SpanID(), s.Parent().SpanID())
	assert.Equal(t, s.SpanContext().SpanID(), r.span(semconv.SpanGatewayCache).Parent().SpanID())
	assert.Equal(t, "yes", s.text("mine"))
	assert.False(t, s.has(semconv.GenAIBackendTypeKey), "unknown stays absent")
	assert.False(t, s.hasAny(semconv.AIModelNameKey), "unknown stays absent")
	assert.False(t, r.span(semconv.SpanGatewayCache).has(semconv.GenAICacheHitKey), "unknown stays absent")
}

func TestTheLastOutcomeCountsAndNoneComesAfterTheEnd(t *testing.T) {
	r := record(t)
	_, lookup := r.StartCache(t.Context())
	lookup.SetHit(true)
	lookup.SetHit(false)
	lookup.End()
	lookup.SetHit(true)
	lookup.SetAttributes(attribute.Bool("late", true))
	s := r.span(semconv.SpanGatewayCache)
	assert.False(t, s.value(semconv.GenAICacheHitKey).AsBool())
	assert.Len(t, s.Attributes(), 2)
}

func TestOperationsSpeakTheChosenVocabulary(t *testing.T) {
	for words, want := range map[semconv.Vocabulary][]attribute.Key{
		semconv.Standard: {"gen_ai.prompt.name", "gen_ai.prompt.version", "gen_ai.request.model", "hw.model"},
		semconv.Both: {
			"gen_ai.prompt.name", "gen_ai.prompt.version", "genai.prompt.version", "gen_ai.request.model", "ai.model.name",
			"hw.model", "ai.gpu.name",
		},
		semconv.House: {"gen_ai.prompt.name", "genai.prompt.version", "ai.model.name", "ai.gpu.name"},
	} {
		t.Run(words.String(), func(t *testing.T) {
			r := recordWith(t, []genaitrace.Option{genaitrace.WithVocabulary(words)})
			_, render := r.StartTemplate(t.Context(), genaitrace.Template{Name: "support", Version: "v3"})
			render.End()
			_, route := r.StartRoute(t.Context(), "m")
			route.End()
			_, inf := r.StartInference(t.Context(), genaitrace.Request{})
			inf.SetEngine(genaitrace.Engine{DeviceName: "NVIDIA H100"})
			inf.End()
			var got []attribute.Key
			for _, s := range r.recorder.Ended() {
				for _, kv := range s.Attributes() {
					if kv.Key != semconv.GenAISpanRoleKey && kv.Key != genaiconv.OperationNameKey && kv.Key != semconv.AIOperationKey {
						got = append(got, kv.Key)
					}
				}
			}
			assert.ElementsMatch(t, want, got)
		})
	}
}

func TestAMismatchSpeaksTheChosenVocabulary(t *testing.T) {
	for words, want := range map[semconv.Vocabulary]attribute.Key{
		semconv.Standard: genaiconv.RequestModelKey, semconv.House: semconv.AIModelNameKey,
	} {
		r := recordWith(t, []genaitrace.Option{genaitrace.WithVocabulary(words)})
		_, inf := r.StartInference(t.Context(), genaitrace.Request{})
		assert.Error(t, inf.CheckTokenizer(binding, "qwen2.5-7b-instruct", "9f2c41d07be3a685"))
		inf.End()
		e := r.span(semconv.SpanInferenceGenerate).event(semconv.EventTokenizerMismatch)
		assert.ElementsMatch(t, []string{string(want), "genai.tokenizer.expected_hash", "genai.tokenizer.hash"}, keys(e.Attributes))
	}
}

func TestWhereNothingRecordsAnOperationCostsNothing(t *testing.T) {
	unsampled := genaitrace.New(
		genaitrace.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample()))),
		genaitrace.WithMeterProvider(metricnoop.NewMeterProvider()))
	var nilTracer *genaitrace.Tracer
	for name, tr := range map[string]*genaitrace.Tracer{"unsampled": unsampled, "nil Tracer": nilTracer, "zero Tracer": {}} {
		t.Run(name, func(t *testing.T) {
			ctx, auth := tr.StartAuth(t.Context())
			assert.Nil(t, auth)
			assert.Equal(t, tr == unsampled, trace.SpanContextFromContext(ctx).IsValid(), "the trace context goes on")
			_, limit := tr.StartRateLimit(ctx)
			assert.Nil(t, limit)
			_, render := tr.StartTemplate(ctx, genaitrace.Template{Name: "n", Version: "v"})
			assert.Nil(t, render)
			_, route := tr.StartRoute(ctx, "m")
			assert.Nil(t, route.Operation)
			_, lookup := tr.StartCache(ctx)
			assert.Nil(t, lookup.Operation)
			_, inf := tr.StartInference(ctx, genaitrace.Request{})
			assert.Nil(t, inf)
			assert.Zero(t, testing.AllocsPerRun(100, func() {
				ctx := ctx
				route.SetBackend("vllm")
				lookup.SetHit(true)
				auth.Fail(context.Canceled)
				render.EndErr(nil)
				limit.End()
				route.End()
				lookup.EndAt(time.Time{})
				useEngineFacts(ctx, inf)
			}))
			assert.False(t, route.Span().IsRecording())
		})
	}
}

// useEngineFacts calls what tells of the engine.
func useEngineFacts(ctx context.Context, inf *genaitrace.Inference) {
	inf.SetEngine(genaitrace.Engine{Backend: "late", DeviceID: new(1)})
	_, pre := inf.StartPreprocess(ctx, "application/json")
	pre.SetOutcome(genaitrace.Outcome{RulesHit: []string{"late"}, FormatValid: new(true)})
	pre.End()
	_, prefill := inf.StartPrefill(ctx, genaitrace.Prompt{Tokens: 3, Cached: new(0)})
	_, d := inf.StartDecode(ctx)
	_, pass := inf.StartForward(ctx, genaitrace.Forward{StepID: new(1), TensorShape: []int{1, 2}})
	for _, p := range []*genaitrace.Phase{prefill, pass} {
		_, below := p.StartForward(ctx, genaitrace.Forward{TensorShape: []int{1, 2}})
		_, kernel := below.StartKernel(ctx, genaitrace.Kernel{Name: "late", StreamID: new(7)})
		kernel.End()
		below.End()
		p.SetResources(genaitrace.Resources{BatchSize: new(1), HeapUsedRatio: new(0.5)})
		p.RecordStep(genaitrace.Step{ID: new(1), Kernel: new(time.Second)})
	}
	_, below := d.StartForward(ctx, genaitrace.Forward{})
	below.End()
	_, kernel := d.StartKernel(ctx, genaitrace.Kernel{})
	kernel.End()
	d.SetResources(genaitrace.Resources{BatchSize: new(1)})
	d.RecordStep(genaitrace.Step{})
	_ = inf.CheckTokenizer(nil, "m", "late")
}

func TestWhatAnOperationIsToldIsValidAndBounded(t *testing.T) {
	bad := strings.Repeat("a\xff", 1<<12)
	handled(t)
	r := record(t)
	_, render := r.StartTemplate(t.Context(), genaitrace.Template{Name: bad, Version: bad})
	render.Fail(typedError(bad))
	_, route := r.StartRoute(t.Context(), bad)
	route.SetBackend(bad)
	route.End()
	ctx, inf := r.StartInference(t.Context(), genaitrace.Request{OutputType: genaiconv.OutputTypeAttr(bad)})
	inf.SetEngine(genaitrace.Engine{Backend: bad, Quantization: bad, DecodingStrategy: bad, DeviceName: bad})
	_ = inf.CheckTokenizer(genaitrace.TokenizerBinding{bad: "x" + bad}, bad, bad)
	_, pre := inf.StartPreprocess(ctx, bad)
	_, pass := pre.StartForward(ctx, genaitrace.Forward{TensorShape: make([]int, 1000)})
	pass.StartKernel(ctx, genaitrace.Kernel{Name: bad})
	_, post := inf.StartPostprocess(ctx)
	post.SetOutcome(genaitrace.Outcome{RulesHit: slicesRepeat(bad, 1000), SafetyLabel: bad, RefusalReason: bad})
	inf.End()
	require.Len(t, r.recorder.Ended(), 7)
	for _, s := range r.recorder.Ended() {
		assertBounded(t, s.Attributes())
		for _, e := range s.Events() {
			assertBounded(t, e.Attributes)
		}
	}
	assert.Equal(t, 1, r.faults()[semconv.GenAIFaultCount], "the tensor")
}

func slicesRepeat(s string, n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = s
	}
	return list
}

func TestBadNumbersOfTheEngineAreDroppedAndCounted(t *testing.T) {
	type phase = *genaitrace.Phase
	for name, tt := range map[string]struct {
		tell   func(ctx context.Context, inf *genaitrace.Inference, p phase)
		span   string
		want   map[attribute.Key]any
		faults int
	}{
		"known zeros": {func(_ context.Context, _ *genaitrace.Inference, p phase) {
			p.SetResources(genaitrace.Resources{BatchSize: new(0), BlocksFreed: new(0), HeapUsedRatio: new(0.0), NativeAllocRate: new(0.0)})
		}, semconv.SpanInferencePrefill, map[attribute.Key]any{
			semconv.AIBatchSizeKey: int64(0), semconv.AIKVCacheBlocksFreedKey: int64(0),
			semconv.AIMemoryHeapUsedRatioKey: 0.0, semconv.AIMemoryNativeAllocRateKey: 0.0,
		}, 0},
		"the later of two": {func(_ context.Context, _ *genaitrace.Inference, p phase) {
			p.SetResources(genaitrace.Resources{BatchSize: new(3), BlocksFreed: new(5)})
			p.SetResources(genaitrace.Resources{BatchSize: new(4)})
		}, semconv.SpanInferencePrefill, map[attribute.Key]any{
			semconv.AIBatchSizeKey: int64(4), semconv.AIKVCacheBlocksFreedKey: int64(5),
		}, 0},
		"negative and beyond": {func(_ context.Context, _ *genaitrace.Inference, p phase) {
			p.SetResources(genaitrace.Resources{BatchSize: new(-1), BlocksEvicted: new(2), HeapUsedRatio: new(1.01), NativeAllocRate: new(-1.0)})
		}, semconv.SpanInferencePrefill, map[attribute.Key]any{semconv.AIKVCacheBlocksEvictedKey: int64(2)}, 1},
		"no numbers": {func(_ context.Context, _ *genaitrace.Inference, p phase) {
			p.SetResources(genaitrace.Resources{HeapUsedRatio: new(math.NaN()), NativeAllocRate: new(math.Inf(1))})
		}, semconv.SpanInferencePrefill, map[attribute.Key]any{}, 1},
		"a pass": {func(ctx context.Context, _ *genaitrace.Inference, p phase) {
			p.StartForward(ctx, genaitrace.Forward{StepID: new(0), DeviceID: new(0), Tokens: -1, BatchSize: -1, TensorShape: []int{3, -1}})
		}, semconv.SpanModelForward, map[attribute.Key]any{
			semconv.GenAIStepIDKey: int64(0), semconv.AIGPUDeviceIDKey: int64(0),
		}, 1},
		"no rule hit": {func(_ context.Context, _ *genaitrace.Inference, p phase) {
			p.SetOutcome(genaitrace.Outcome{RulesHit: []string{}, FormatValid: new(false)})
		}, semconv.SpanInferencePrefill, map[attribute.Key]any{
			semconv.GenAIPostprocessRulesHitKey: []string{}, semconv.GenAIPostprocessFormatValidKey: false,
		}, 0},
		"nothing known": {func(ctx context.Context, inf *genaitrace.Inference, p phase) {
			p.SetOutcome(genaitrace.Outcome{})
			p.SetResources(genaitrace.Resources{})
			inf.SetEngine(genaitrace.Engine{})
			p.StartForward(ctx, genaitrace.Forward{})
		}, semconv.SpanModelForward, map[attribute.Key]any{}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			handled(t)
			r := record(t)
			ctx, inf := r.StartInference(t.Context(), genaitrace.Request{})
			_, prefill := inf.StartPrefill(ctx, genaitrace.Prompt{})
			tt.tell(ctx, inf, prefill)
			inf.End()
			got := map[attribute.Key]any{}
			for _, kv := range r.span(tt.span).Attributes() {
				if kv.Key != semconv.GenAISpanRoleKey && kv.Key != semconv.AIPrefillDurationMsKey {
					got[kv.Key] = kv.Value.AsInterface()
				}
			}
			assert.Equal(t, tt.want, got)
			assert.Equal(t, tt.faults, r.faults()[semconv.GenAIFaultCount])
		})
	}
}

func TestAKnownMissOfTheKVCacheIsNoUnknownOne(t *testing.T) {
	r := record(t)
	ctx, inf := r.StartInference(t.Context(), genaitrace.Request{})
	_, prefill := inf.StartPrefill(ctx, genaitrace.Prompt{Tokens: 100, Cached: new(0)})
	prefill.End()
	inf.End()
	s := r.span(semconv.SpanInferencePrefill)
	assert.Equal(t, int64(0), s.int(semconv.AITokensCachedKey))
	assert.False(t, s.value(semconv.AIKVCacheHitKey).AsBool())
	assert.Equal(t, 0.0, s.float(semconv.AIKVCacheHitRatioKey))
}

// An operation may be told and ended from anywhere.
func TestAnOperationIsSafeForConcurrentUse(t *testing.T) {
	r := record(t)
	for range 100 {
		_, lookup := r.StartCache(t.Context())
		together(
			func() { lookup.SetHit(true) },
			func() { lookup.SetHit(false) },
			func() { lookup.SetAttributes(attribute.Bool("a", true)) },
			func() { lookup.End() },
			func() { lookup.Fail(context.DeadlineExceeded) },
		)
	}
	assert.Len(t, r.recorder.Ended(), 100)
}
