package genaitrace_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// discard stands for an exporter: the SDK makes the snapshot of each span that
// it would export, and the span goes no further.
type discard struct{}

func (discard) OnStart(context.Context, sdktrace.ReadWriteSpan) {}
func (discard) OnEnd(sdktrace.ReadOnlySpan)                     {}
func (discard) Shutdown(context.Context) error                  { return nil }
func (discard) ForceFlush(context.Context) error                { return nil }

func benchProviders(sampler sdktrace.Sampler) (trace.TracerProvider, metric.MeterProvider) {
	return sdktrace.NewTracerProvider(sdktrace.WithSampler(sampler), sdktrace.WithSpanProcessor(discard{})),
		sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))
}

// streamLength is the length of the streams of BenchmarkToken, so that neither a
// token clock nor a queue of events grows beyond what a real stream makes of it.
// Where a stream ends and the next one starts, the timer stands still: what that
// costs (packing the timeline, copying the events) is in BenchmarkInference500.
const streamLength = 2000

// BenchmarkToken is the cost of one generated token: with a sampled span, with
// metrics alone, where nothing records, with an event a token, and as an event of
// the otel API with three attributes under the SDK's default limits.
func BenchmarkToken(b *testing.B) {
	decode := func(b *testing.B, tp trace.TracerProvider, mp metric.MeterProvider, opts ...genaitrace.Option) {
		tr := genaitrace.New(append(opts, genaitrace.WithTracerProvider(tp), genaitrace.WithMeterProvider(mp))...)
		ctx, inf := tr.StartInference(context.Background(), benchRequest())
		_, d := inf.StartDecode(ctx)
		b.ReportAllocs()
		for n := 0; b.Loop(); n++ {
			if n == streamLength {
				b.StopTimer()
				n = 0
				d.End()
				_, d = inf.StartDecode(ctx)
				b.StartTimer()
			}
			d.Token()
		}
		inf.End()
	}
	b.Run("recording", func(b *testing.B) {
		tp, mp := benchProviders(sdktrace.AlwaysSample())
		decode(b, tp, mp)
	})
	b.Run("metricsonly", func(b *testing.B) {
		tp, mp := benchProviders(sdktrace.NeverSample())
		decode(b, tp, mp)
	})
	b.Run("notrecording", func(b *testing.B) {
		tp, _ := benchProviders(sdktrace.NeverSample())
		tr := genaitrace.New(genaitrace.WithTracerProvider(tp), genaitrace.WithMeterProvider(metricnoop.NewMeterProvider()))
		ctx, inf := tr.StartInference(context.Background(), benchRequest())
		_, d := inf.StartDecode(ctx)
		b.ReportAllocs()
		for b.Loop() {
			d.Token() // a nil handle: nothing to restart
		}
	})
	b.Run("everytoken", func(b *testing.B) { // an event a token, each kept
		limits := sdktrace.NewSpanLimits()
		limits.EventCountLimit = streamLength + 100
		tp := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(discard{}), sdktrace.WithRawSpanLimits(limits))
		_, mp := benchProviders(sdktrace.AlwaysSample())
		decode(b, tp, mp, genaitrace.WithTokenEvents(streamLength))
	})
	b.Run("addevent", func(b *testing.B) {
		tp, _ := benchProviders(sdktrace.AlwaysSample())
		tracer := tp.Tracer("bench")
		_, span := tracer.Start(context.Background(), "decode")
		b.ReportAllocs()
		for n := 0; b.Loop(); n++ {
			if n == streamLength {
				b.StopTimer()
				n = 0
				span.End()
				_, span = tracer.Start(context.Background(), "decode")
				b.StartTimer()
			}
			addTokenEvent(span, n)
		}
		span.End()
	})
}

// addTokenEvent is what instrumentation does that writes an event a token.
func addTokenEvent(span trace.Span, n int) {
	span.AddEvent("token", trace.WithAttributes(
		attribute.Int("index", n), attribute.Int("length", 4), attribute.Bool("first", n == 0)))
}

// BenchmarkInference500 is one request in the engine: queue, tokenize, prefill,
// 500 tokens of decode, postprocess, usage and finish reason.
//
// handwritten and eventperchunk make the same spans with the same attributes
// and events, and record the same metrics, on the otel API, as well as one
// would write it by hand: constant attributes and metric options are prepared
// once, each span gets its attributes in one call. They leave out what the
// token clock alone knows (count, timeline, gaps); eventperchunk adds an event
// with three attributes a token instead.
func BenchmarkInference500(b *testing.B) {
	otelgenai := func(b *testing.B, tp trace.TracerProvider, mp metric.MeterProvider) {
		tr := genaitrace.New(genaitrace.WithTracerProvider(tp), genaitrace.WithMeterProvider(mp))
		req := benchRequest()
		b.ReportAllocs()
		for b.Loop() {
			benchInference(tr, req)
		}
	}
	byHand := func(b *testing.B, eventPerToken bool) {
		tp, mp := benchProviders(sdktrace.AlwaysSample())
		h := newHandwritten(tp, mp)
		req := benchRequest()
		b.ReportAllocs()
		for b.Loop() {
			h.inference(req, eventPerToken)
		}
	}
	b.Run("otelgenai", func(b *testing.B) {
		tp, mp := benchProviders(sdktrace.AlwaysSample())
		otelgenai(b, tp, mp)
	})
	b.Run("handwritten", func(b *testing.B) { byHand(b, false) })
	b.Run("eventperchunk", func(b *testing.B) { byHand(b, true) })
	b.Run("notrecording", func(b *testing.B) {
		tp, _ := benchProviders(sdktrace.NeverSample())
		otelgenai(b, tp, metricnoop.NewMeterProvider())
	})
}

const (
	benchTokens = 500
	benchPrompt = 2456
	benchCached = 1024
)

func benchRequest() genaitrace.Request {
	return genaitrace.Request{
		Provider: "vllm", Model: "qwen2.5-7b-instruct", ModelVersion: "v1.2", RequestID: "req-1",
		Stream: true, MaxTokens: 512, Temperature: new(0.7),
	}
}

func benchInference(tr *genaitrace.Tracer, req genaitrace.Request) {
	ctx, inf := tr.StartInference(context.Background(), req)
	_, queue := inf.StartQueue(ctx)
	queue.End()
	_, tokenize := inf.StartTokenize(ctx)
	tokenize.SetInputTokens(benchPrompt)
	tokenize.End()
	_, prefill := inf.StartPrefill(ctx, genaitrace.Prompt{Tokens: benchPrompt, Cached: new(benchCached)})
	prefill.End()
	_, decode := inf.StartDecode(ctx)
	for range benchTokens {
		decode.Token()
	}
	decode.End()
	_, post := inf.StartPostprocess(ctx)
	post.End()
	inf.SetUsage(genaitrace.Usage{
		InputTokens: new(benchPrompt), OutputTokens: new(benchTokens), CachedTokens: new(benchCached),
	})
	inf.SetFinish("stop")
	inf.End()
}

// handwritten is what a service does without this library.
type handwritten struct {
	tracer                   trace.Tracer
	duration, ttft, perToken metric.Float64Histogram
	dims                     metric.MeasurementOption // one model, one provider
	kind                     trace.SpanStartOption
	roles                    map[semconv.GenAISpanRoleAttr]trace.SpanStartOption
	transition               trace.EventOption
}

func newHandwritten(tp trace.TracerProvider, mp metric.MeterProvider) *handwritten {
	meter := mp.Meter("handwritten")
	h := &handwritten{
		tracer: tp.Tracer("handwritten"),
		dims: metric.WithAttributeSet(attribute.NewSet(
			genaiconv.OperationName(genaiconv.OperationNameChat),
			genaiconv.ProviderName("vllm"),
			genaiconv.RequestModel("qwen2.5-7b-instruct"))),
		kind:       trace.WithSpanKind(trace.SpanKindInternal),
		roles:      map[semconv.GenAISpanRoleAttr]trace.SpanStartOption{},
		transition: trace.WithAttributes(semconv.GenAIPhase("prefill->decode")),
	}
	duration, _ := genaiconv.NewServerRequestDuration(meter)
	ttft, _ := genaiconv.NewServerTimeToFirstToken(meter)
	perToken, _ := genaiconv.NewServerTimePerOutputToken(meter)
	h.duration, h.ttft, h.perToken = duration.Inst(), ttft.Inst(), perToken.Inst()
	for _, role := range []semconv.GenAISpanRoleAttr{
		semconv.GenAISpanRoleQueue, semconv.GenAISpanRoleTokenize, semconv.GenAISpanRolePrefill,
		semconv.GenAISpanRoleDecode, semconv.GenAISpanRolePostprocess,
	} {
		h.roles[role] = trace.WithAttributes(semconv.GenAISpanRole(role))
	}
	return h
}

func (h *handwritten) inference(req genaitrace.Request, eventPerToken bool) {
	ms := func(d time.Duration) float64 { return float64(d) / 1e6 }
	arrived := time.Now()
	ctx, inf := h.tracer.Start(context.Background(), semconv.SpanInferenceGenerate, h.kind, trace.WithAttributes(
		semconv.GenAISpanRole(semconv.GenAISpanRoleInference),
		genaiconv.OperationName(genaiconv.OperationNameChat),
		genaiconv.ProviderName(req.Provider),
		genaiconv.RequestModel(req.Model),
		semconv.AIModelVersion(req.ModelVersion),
		semconv.GenAIRequestID(req.RequestID),
		genaiconv.RequestStream(req.Stream),
		genaiconv.RequestMaxTokens(req.MaxTokens),
		genaiconv.RequestTemperature(*req.Temperature)))

	from := time.Since(arrived)
	_, queue := h.tracer.Start(ctx, semconv.SpanQueueWait, h.roles[semconv.GenAISpanRoleQueue])
	queued := time.Since(arrived) - from
	queue.SetAttributes(semconv.LLMQueueWaitMs(ms(queued)))
	queue.End()

	from = time.Since(arrived)
	_, tokenize := h.tracer.Start(ctx, semconv.SpanTokenizerEncode, h.roles[semconv.GenAISpanRoleTokenize])
	tokenized := time.Since(arrived) - from
	tokenize.SetAttributes(semconv.AITokensInput(benchPrompt))
	tokenize.End()

	prefillStart := time.Since(arrived)
	_, prefill := h.tracer.Start(ctx, semconv.SpanInferencePrefill, h.roles[semconv.GenAISpanRolePrefill])
	prefillEnd := time.Since(arrived)
	prefill.SetAttributes(
		semconv.AITokensInput(benchPrompt), semconv.AITokensCached(benchCached),
		semconv.AIKVCacheHit(true), semconv.AIKVCacheHitRatio(float64(benchCached)/benchPrompt),
		semconv.AIPrefillDurationMs(ms(prefillEnd-prefillStart)))
	prefill.End()

	decodeStart := time.Since(arrived)
	_, decode := h.tracer.Start(ctx, semconv.SpanInferenceDecode, h.roles[semconv.GenAISpanRoleDecode])
	decode.AddEvent(semconv.EventPhaseTransition, h.transition)
	ttft := time.Since(arrived)
	decode.AddEvent(semconv.EventFirstToken, trace.WithAttributes(semconv.LLMTTFTMs(ms(ttft))))
	if eventPerToken {
		for n := range benchTokens {
			addTokenEvent(decode, n)
		}
	}
	last := time.Since(arrived)
	decode.SetAttributes(semconv.AIDecodeDurationMs(ms(last - decodeStart)))
	decode.End()

	_, post := h.tracer.Start(ctx, semconv.SpanInferencePostprocess, h.roles[semconv.GenAISpanRolePostprocess])
	post.End()

	known := queued + tokenized + (ttft - prefillStart)
	inf.SetAttributes(
		semconv.LLMTTFTMs(ms(ttft)), semconv.GenAILastTokenMs(ms(last)),
		semconv.GenAITTFTQueueMs(ms(queued)), semconv.GenAITTFTTokenizeMs(ms(tokenized)),
		semconv.GenAITTFTPrefillMs(ms(prefillEnd-prefillStart)), semconv.GenAITTFTEmitMs(ms(ttft-prefillEnd)),
		semconv.GenAITTFTUnattributedMs(ms(ttft-known)), semconv.AIFirstTokenDurationMs(ms(ttft-prefillStart)),
		genaiconv.UsageInputTokens(benchPrompt), genaiconv.UsageOutputTokens(benchTokens),
		genaiconv.UsageCacheReadInputTokens(benchCached), genaiconv.ResponseFinishReasons("stop"))
	duration := time.Since(arrived)
	inf.End()
	h.duration.Record(ctx, duration.Seconds(), h.dims)
	h.ttft.Record(ctx, ttft.Seconds(), h.dims)
	h.perToken.Record(ctx, (last-ttft).Seconds()/(benchTokens-1), h.dims)
}

// What is compared must be the same spans, keys, events and metrics, but for
// what the token clock alone knows.
func TestBenchmarkInference500ComparesLikeWithLike(t *testing.T) {
	ours, byHand := record(t), record(t)
	benchInference(ours.Tracer, benchRequest())
	newHandwritten(byHand.provider, byHand.meters).inference(benchRequest(), false)

	var want strings.Builder
	for line := range strings.Lines(ours.tree()) {
		if !strings.Contains(line, "genai.token.") {
			want.WriteString(line)
		}
	}
	assert.Equal(t, want.String(), byHand.tree())
	for _, name := range []string{
		genaiconv.ServerRequestDurationName, genaiconv.ServerTimeToFirstTokenName, genaiconv.ServerTimePerOutputTokenName,
	} {
		want, got := ours.point(name), byHand.point(name)
		assert.Equal(t, dims(want.Attributes), dims(got.Attributes), name)
		assert.Equal(t, want.Count, got.Count, name)
		assert.Equal(t, want.Bounds, got.Bounds, name)
	}
}
