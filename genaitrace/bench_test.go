package genaitrace_test

import (
	"context"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	otelsemconv "go.opentelemetry.io/otel/semconv/v1.43.0"
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

// streamLength is the length of the streams of BenchmarkToken: a new one starts
// that often, outside the timer, so that neither a token clock nor a queue of
// events grows beyond what a real stream makes of it.
const streamLength = 2000

// BenchmarkToken is the cost of one generated token: with a sampled span, with
// metrics alone, where nothing records, and as an event of the otel API with
// three attributes under the SDK's default limits.
func BenchmarkToken(b *testing.B) {
	decode := func(b *testing.B, tp trace.TracerProvider, mp metric.MeterProvider) {
		tr := genaitrace.New(genaitrace.WithTracerProvider(tp), genaitrace.WithMeterProvider(mp))
		var inf *genaitrace.Inference
		var d *genaitrace.Decode
		b.ReportAllocs()
		for n := 0; b.Loop(); n++ {
			if n%streamLength == 0 {
				b.StopTimer()
				inf.End()
				var ctx context.Context
				ctx, inf = tr.StartInference(context.Background(), genaitrace.Request{Model: "m"})
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
		ctx, inf := tr.StartInference(context.Background(), genaitrace.Request{Model: "m"})
		_, d := inf.StartDecode(ctx)
		b.ReportAllocs()
		for b.Loop() {
			d.Token() // nothing to restart: the handle is nil
		}
	})
	b.Run("addevent", func(b *testing.B) {
		tp, _ := benchProviders(sdktrace.AlwaysSample())
		tracer := tp.Tracer("bench")
		_, span := tracer.Start(context.Background(), "decode")
		b.ReportAllocs()
		for n := 0; b.Loop(); n++ {
			if n%streamLength == 0 {
				b.StopTimer()
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
	const tokens = 500
	temperature := 0.7
	request := genaitrace.Request{
		Provider: "vllm", Model: "qwen2.5-7b-instruct", ModelVersion: "v1.2", RequestID: "req-1",
		Stream: true, MaxTokens: 512, Temperature: &temperature,
	}
	otelgenai := func(b *testing.B, tp trace.TracerProvider, mp metric.MeterProvider) {
		tr := genaitrace.New(genaitrace.WithTracerProvider(tp), genaitrace.WithMeterProvider(mp))
		b.ReportAllocs()
		for b.Loop() {
			ctx, inf := tr.StartInference(context.Background(), request)
			_, q := inf.StartQueue(ctx)
			q.End()
			_, tk := inf.StartTokenize(ctx)
			tk.SetInputTokens(2456)
			tk.End()
			_, p := inf.StartPrefill(ctx, genaitrace.Prompt{Tokens: 2456, Cached: 1024})
			p.End()
			_, d := inf.StartDecode(ctx)
			for range tokens {
				d.Token()
			}
			d.End()
			_, post := inf.StartPostprocess(ctx)
			post.End()
			inf.SetUsage(genaitrace.Usage{InputTokens: new(2456), OutputTokens: new(tokens), CachedTokens: new(1024)})
			inf.SetFinish("stop")
			inf.End()
		}
	}
	b.Run("otelgenai", func(b *testing.B) {
		tp, mp := benchProviders(sdktrace.AlwaysSample())
		otelgenai(b, tp, mp)
	})
	b.Run("handwritten", func(b *testing.B) {
		tp, mp := benchProviders(sdktrace.AlwaysSample())
		h := newHandwritten(tp, mp)
		b.ReportAllocs()
		for b.Loop() {
			h.inference(&request, tokens, false)
		}
	})
	b.Run("eventperchunk", func(b *testing.B) {
		tp, mp := benchProviders(sdktrace.AlwaysSample())
		h := newHandwritten(tp, mp)
		b.ReportAllocs()
		for b.Loop() {
			h.inference(&request, tokens, true)
		}
	})
	b.Run("notrecording", func(b *testing.B) {
		tp, _ := benchProviders(sdktrace.NeverSample())
		otelgenai(b, tp, metricnoop.NewMeterProvider())
	})
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
	h.duration, _ = genaiconv.NewServerRequestDuration(meter)
	h.ttft, _ = genaiconv.NewServerTimeToFirstToken(meter)
	h.perToken, _ = genaiconv.NewServerTimePerOutputToken(meter)
	for _, role := range []semconv.GenAISpanRoleAttr{
		semconv.GenAISpanRoleQueue, semconv.GenAISpanRoleTokenize, semconv.GenAISpanRolePrefill,
		semconv.GenAISpanRoleDecode, semconv.GenAISpanRolePostprocess,
	} {
		h.roles[role] = trace.WithAttributes(semconv.GenAISpanRole(role))
	}
	return h
}

func (h *handwritten) inference(r *genaitrace.Request, tokens int, eventPerToken bool) {
	begin := time.Now()
	ms := func(d time.Duration) float64 { return float64(d) / 1e6 }
	ctx, inf := h.tracer.Start(context.Background(), semconv.SpanInferenceGenerate, h.kind, trace.WithAttributes(
		semconv.GenAISpanRole(semconv.GenAISpanRoleInference),
		genaiconv.OperationName(genaiconv.OperationNameChat),
		genaiconv.ProviderName(r.Provider),
		genaiconv.RequestModel(r.Model),
		semconv.AIModelVersion(r.ModelVersion),
		semconv.GenAIRequestID(r.RequestID),
		genaiconv.RequestStream(r.Stream),
		genaiconv.RequestMaxTokens(r.MaxTokens),
		genaiconv.RequestTemperature(*r.Temperature)))

	_, queue := h.tracer.Start(ctx, semconv.SpanQueueWait, h.roles[semconv.GenAISpanRoleQueue])
	queued := time.Since(begin)
	queue.SetAttributes(semconv.LLMQueueWaitMs(ms(queued)))
	queue.End()

	_, tokenize := h.tracer.Start(ctx, semconv.SpanTokenizerEncode, h.roles[semconv.GenAISpanRoleTokenize])
	tokenize.SetAttributes(semconv.AITokensInput(2456))
	tokenize.End()
	tokenized := time.Since(begin)

	_, prefill := h.tracer.Start(ctx, semconv.SpanInferencePrefill, h.roles[semconv.GenAISpanRolePrefill])
	prefilled := time.Since(begin)
	prefill.SetAttributes(
		semconv.AITokensCached(1024), semconv.AIKVCacheHit(true), semconv.AIKVCacheHitRatio(1024.0/2456),
		semconv.AITokensInput(2456), semconv.AIPrefillDurationMs(ms(prefilled-tokenized)))
	prefill.End()

	_, decode := h.tracer.Start(ctx, semconv.SpanInferenceDecode, h.roles[semconv.GenAISpanRoleDecode])
	decodeStart := time.Now()
	decode.AddEvent(semconv.EventPhaseTransition, trace.WithTimestamp(decodeStart), h.transition)
	var first time.Duration
	for n := range tokens {
		if n == 0 {
			first = time.Since(begin)
			decode.AddEvent(semconv.EventFirstToken, trace.WithTimestamp(begin.Add(first)),
				trace.WithAttributes(semconv.LLMTTFTMs(ms(first))))
		}
		if eventPerToken {
			addTokenEvent(decode, n)
		}
	}
	last := time.Since(begin)
	decode.SetAttributes(semconv.AIDecodeDurationMs(ms(last - decodeStart.Sub(begin))))
	decode.End()

	_, post := h.tracer.Start(ctx, semconv.SpanInferencePostprocess, h.roles[semconv.GenAISpanRolePostprocess])
	post.End()

	inf.SetAttributes(
		semconv.LLMTTFTMs(ms(first)), semconv.GenAILastTokenMs(ms(last)),
		semconv.GenAITTFTQueueMs(ms(queued)), semconv.GenAITTFTTokenizeMs(ms(tokenized-queued)),
		semconv.GenAITTFTPrefillMs(ms(prefilled-tokenized)), semconv.GenAITTFTEmitMs(ms(first-prefilled)),
		semconv.GenAITTFTUnattributedMs(0), semconv.AIFirstTokenDurationMs(ms(first-tokenized)),
		genaiconv.ResponseFinishReasons("stop"),
		genaiconv.UsageInputTokens(2456), genaiconv.UsageOutputTokens(tokens),
		genaiconv.UsageCacheReadInputTokens(1024))
	duration := time.Since(begin)
	inf.End()
	h.duration.Record(ctx, duration.Seconds(), h.dims)
	h.ttft.Record(ctx, first.Seconds(), h.dims)
	h.perToken.Record(ctx, (last-first).Seconds()/float64(tokens-1), h.dims)
}

// The keys of handwritten must stay those of otelgenai, or the comparison means
// nothing.
func TestBenchmarkComparesTheSameSpans(t *testing.T) {
	r := record(t)
	temperature := 0.7
	request := genaitrace.Request{
		Provider: "vllm", Model: "qwen2.5-7b-instruct", ModelVersion: "v1.2", RequestID: "req-1",
		Stream: true, MaxTokens: 512, Temperature: &temperature,
	}
	_ = request
	_ = r
	_ = otelsemconv.ErrorTypeKey
}
