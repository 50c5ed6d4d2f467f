package genaitrace_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/otel/attribute"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	otelsemconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

const (
	benchTokens  = 500
	benchChunks  = 500
	benchPrompt  = 2456
	benchCached  = 1024
	benchRoute   = "POST /v1/chat/completions"
	benchServer  = "gpu-7.internal"
	benchPort    = 8000
	benchAnswers = "qwen2.5-7b-instruct-awq"
)

func benchRequest() genaitrace.Request {
	return genaitrace.Request{
		Provider: "vllm", Model: "qwen2.5-7b-instruct", ModelVersion: "v1.2", RequestID: "req-1",
		Stream: true, MaxTokens: 512, Temperature: new(0.7),
	}
}

func benchUsage() genaitrace.Usage {
	return genaitrace.Usage{InputTokens: new(benchPrompt), OutputTokens: new(benchTokens), CachedTokens: new(benchCached)}
}

func callRequest() genaitrace.Request {
	req := benchRequest()
	req.ServerAddress, req.ServerPort = benchServer, benchPort
	return req
}

func benchInference(tr *genaitrace.Tracer, req genaitrace.Request, tokens int) {
	ctx, inf := tr.StartInference(context.Background(), req)
	_, queue := inf.StartQueue(ctx)
	queue.End()
	_, tokenize := inf.StartTokenize(ctx)
	tokenize.SetInputTokens(benchPrompt)
	tokenize.End()
	_, prefill := inf.StartPrefill(ctx, genaitrace.Prompt{Tokens: benchPrompt, Cached: new(benchCached)})
	prefill.End()
	_, decode := inf.StartDecode(ctx)
	for range tokens {
		decode.Token()
	}
	decode.End()
	_, post := inf.StartPostprocess(ctx)
	post.End()
	inf.SetUsage(benchUsage())
	inf.SetFinish("stop")
	inf.End()
}

func benchCall(tr *genaitrace.Tracer, req genaitrace.Request) {
	_, call := tr.StartCall(context.Background(), req)
	call.SetResponse("chatcmpl-1", benchAnswers)
	call.SetUsage(benchUsage())
	call.SetFinish("stop")
	call.End()
}

func benchStream(tr *genaitrace.Tracer, req genaitrace.Request) {
	_, call := tr.StartCall(context.Background(), req)
	call.Chunk(genaitrace.NoOutput)
	for range benchChunks {
		call.Chunk(genaitrace.Visible)
	}
	call.SetResponse("chatcmpl-1", benchAnswers)
	call.SetUsage(benchUsage())
	call.SetFinish("stop")
	call.SetTerminal(semconv.GenAIStreamTerminalDone)
	call.End()
}

var benchRouteAttributes = []attribute.KeyValue{otelsemconv.HTTPRoute("/v1/chat/completions")}

func benchGateway(tr *genaitrace.Tracer) {
	_, gateway := tr.StartGateway(context.Background(), genaitrace.GatewayRequest{Name: benchRoute, Attributes: benchRouteAttributes})
	gateway.Chunk(genaitrace.NoOutput)
	for range benchChunks {
		gateway.Chunk(genaitrace.Visible)
	}
	gateway.SetTerminal(semconv.GenAIStreamTerminalDone)
	gateway.End()
}

func startInference(tracer trace.Tracer, req genaitrace.Request) {
	_, _ = tracer.Start(context.Background(), semconv.SpanInferenceGenerate,
		trace.WithSpanKind(trace.SpanKindInternal), trace.WithAttributes(inferenceAttributes(req)...))
}

func startCall(tracer trace.Tracer, req genaitrace.Request) {
	_, _ = tracer.Start(context.Background(), "chat "+req.Model, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		semconv.GenAISpanRole(semconv.GenAISpanRoleInference), genaiconv.OperationName(genaiconv.OperationNameChat),
		genaiconv.ProviderName(req.Provider), genaiconv.RequestModel(req.Model), otelsemconv.ServerAddress(req.ServerAddress),
		otelsemconv.ServerPort(req.ServerPort), semconv.AIModelVersion(req.ModelVersion),
		semconv.GenAIRequestID(req.RequestID), genaiconv.RequestStream(true), genaiconv.RequestMaxTokens(req.MaxTokens),
		genaiconv.RequestTemperature(*req.Temperature)))
}

func startGateway(tracer trace.Tracer, _ genaitrace.Request) {
	ctx, _ := tracer.Start(context.Background(), benchRoute, trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(
		semconv.GenAISpanRole(semconv.GenAISpanRoleGateway), otelsemconv.HTTPRoute("/v1/chat/completions")))
	_ = genaitrace.ContextWithArrival(ctx, time.Now()) // what runs below counts from there
}

// run measures an operation: by us, by hand, by us where metrics alone or nothing
// records, and the start of its spans where nothing records.
func (o benchOperation) run(b *testing.B) {
	b.Run("otelgenai", func(b *testing.B) { o.runOurs(b, sdktrace.AlwaysSample(), true) })
	b.Run("handwritten", func(b *testing.B) {
		tp, mp := benchProviders(sdktrace.AlwaysSample())
		h := newHandwritten(tp, mp)
		b.ReportAllocs()
		for b.Loop() {
			o.byHand(h, o.request)
		}
	})
	b.Run("metricsonly", func(b *testing.B) { o.runOurs(b, sdktrace.NeverSample(), true) })
	b.Run("notrecording", func(b *testing.B) { o.runOurs(b, sdktrace.NeverSample(), false) })
	b.Run("notrecordingstart", func(b *testing.B) {
		tp, _ := benchProviders(sdktrace.NeverSample())
		tracer := tp.Tracer("bench")
		b.ReportAllocs()
		for b.Loop() {
			o.start(tracer, o.request)
		}
	})
}

func (o benchOperation) tracer(options ...genaitrace.Option) *genaitrace.Tracer {
	return genaitrace.New(append(options, o.options...)...)
}

func (o benchOperation) runOurs(b *testing.B, sampler sdktrace.Sampler, metrics bool) {
	tp, mp := benchProviders(sampler)
	if !metrics {
		mp = metricnoop.NewMeterProvider()
	}
	tr := o.tracer(genaitrace.WithTracerProvider(tp), genaitrace.WithMeterProvider(mp))
	b.ReportAllocs()
	for b.Loop() {
		o.ours(tr, o.request)
	}
}

// BenchmarkOperation is each operation beside its hand-written twin: the same spans,
// attributes, events and metrics, but for what the token clock alone knows.
func BenchmarkOperation(b *testing.B) {
	for _, o := range benchOperations {
		b.Run(o.name, o.run)
	}
}

// BenchmarkInference500 is one request in the engine: queue, tokenize, prefill,
// 500 tokens of decode, postprocess, usage and finish reason. handwritten has no
// tokens; eventperchunk is the same with an event of three attributes for each.
func BenchmarkInference500(b *testing.B) {
	inference500.run(b)
	b.Run("eventperchunk", func(b *testing.B) {
		tp, mp := benchProviders(sdktrace.AlwaysSample())
		h := newHandwritten(tp, mp)
		b.ReportAllocs()
		for b.Loop() {
			h.inference(inference500.request, true)
		}
	})
}

func TestBenchmarkInference500ComparesLikeWithLike(t *testing.T) { inference500.compare(t) }

func TestBenchmarkOperationComparesLikeWithLike(t *testing.T) {
	for _, o := range benchOperations {
		t.Run(o.name, o.compare)
	}
}

// compare holds that what is compared is the same spans, keys, events and metrics, but
// for what the token clock alone knows.
func (o benchOperation) compare(t *testing.T) {
	ours, byHand := recordWith(t, o.options), record(t)
	o.ours(ours.Tracer, o.request)
	o.byHand(newHandwritten(byHand.provider, byHand.meters), o.request)

	var want strings.Builder
	for line := range strings.Lines(ours.tree()) {
		switch key := strings.TrimSpace(line); {
		case strings.HasPrefix(key, "genai.token."), strings.HasPrefix(key, "genai.chunk.gap."), key == "genai.chunk.timeline":
		default:
			want.WriteString(line)
		}
	}
	assert.Equal(t, want.String(), byHand.tree())
	assert.Equal(t, shape(t, ours.allMetrics()), shape(t, byHand.allMetrics()))
}

// shape is what two recordings of the same request have in common: all but the times.
func shape(t *testing.T, metrics map[string]metricdata.Metrics) []string {
	t.Helper()
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(metrics)) {
		switch data := metrics[name].Data.(type) {
		case metricdata.Histogram[float64]:
			for _, p := range data.DataPoints {
				lines = append(lines, fmt.Sprint(name, dims(p.Attributes), p.Count, p.Bounds))
			}
		case metricdata.Histogram[int64]:
			for _, p := range data.DataPoints {
				lines = append(lines, fmt.Sprint(name, dims(p.Attributes), p.Count, p.Bounds, p.Sum))
			}
		case metricdata.Sum[int64]:
			for _, p := range data.DataPoints {
				lines = append(lines, fmt.Sprint(name, dims(p.Attributes), p.Value))
			}
		default:
			assert.Fail(t, "unknown data", "%s is a %T", name, data)
		}
	}
	slices.Sort(lines)
	return lines
}

// Where nothing records, an operation allocates what otel takes to start its span,
// with the attributes that a sampler must see, and nothing more.
func TestNothingOfOursIsAllocatedWhereNothingRecords(t *testing.T) {
	for name, tp := range map[string]trace.TracerProvider{
		"not sampled": sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample())),
		"no tracing":  tracenoop.NewTracerProvider(),
	} {
		for _, o := range append(benchOperations, inference500) {
			t.Run(name+"/"+o.name, func(t *testing.T) {
				tracer := tp.Tracer("bench")
				tr := o.tracer(genaitrace.WithTracerProvider(tp), genaitrace.WithMeterProvider(metricnoop.NewMeterProvider()))
				start := testing.AllocsPerRun(100, func() { o.start(tracer, o.request) })
				ours := testing.AllocsPerRun(100, func() { o.ours(tr, o.request) })
				assert.LessOrEqual(t, ours, start)
			})
		}
	}
}

// The attributes of a metric that was recorded before are at hand: a request whose
// metrics are all recorded allocates no more than one with a single metric.
func TestMetricsOfARequestAllocateNothingTheSecondTime(t *testing.T) {
	tp := sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample()))
	allocs := func(o benchOperation, views ...sdkmetric.View) float64 {
		mp := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()), sdkmetric.WithView(views...))
		tr := o.tracer(genaitrace.WithTracerProvider(tp), genaitrace.WithMeterProvider(mp), everyDimension())
		return testing.AllocsPerRun(100, func() { o.ours(tr, o.request) })
	}
	for _, o := range append(benchOperations, inference500) {
		t.Run(o.name, func(t *testing.T) {
			one := allocs(o, sdkmetric.NewView(sdkmetric.Instrument{Name: "*.duration"}, sdkmetric.Stream{}),
				sdkmetric.NewView(sdkmetric.Instrument{Name: semconv.GenAITimeToFirstTokenName}, sdkmetric.Stream{}),
				sdkmetric.NewView(sdkmetric.Instrument{Name: semconv.GenAIGuardrailDecisionsName}, sdkmetric.Stream{}), // all that a check has
				sdkmetric.NewView(sdkmetric.Instrument{Name: semconv.GenAIEvaluationsName}, sdkmetric.Stream{}),
				sdkmetric.NewView(sdkmetric.Instrument{Name: semconv.GenAIBatchSizeName}, sdkmetric.Stream{}),
				sdkmetric.NewView(sdkmetric.Instrument{Name: "*"}, sdkmetric.Stream{Aggregation: sdkmetric.AggregationDrop{}}))
			assert.Equal(t, one, allocs(o))
		})
	}
}
