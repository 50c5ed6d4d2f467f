package genaitrace_test

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// preempted is for how long a busy machine takes the processor away.
const preempted = 3*time.Millisecond + 7

// A busyProvider is a busy machine: the goroutine loses the processor wherever a span
// starts, gets attributes or ends, before and after.
type busyProvider struct{ trace.TracerProvider }

func (p busyProvider) Tracer(name string, opts ...trace.TracerOption) trace.Tracer {
	return busyTracer{p.TracerProvider.Tracer(name, opts...)}
}

type busyTracer struct{ trace.Tracer }

func (t busyTracer) Start(ctx context.Context, name string, opts ...trace.SpanStartOption) (context.Context, trace.Span) {
	time.Sleep(preempted)
	ctx, span := t.Tracer.Start(ctx, name, opts...)
	time.Sleep(preempted)
	span = busySpan{span}
	return trace.ContextWithSpan(ctx, span), span
}

type busySpan struct{ trace.Span }

func (s busySpan) SetAttributes(attrs ...attribute.KeyValue) {
	s.Span.SetAttributes(attrs...)
	time.Sleep(preempted)
}

func (s busySpan) End(opts ...trace.SpanEndOption) {
	time.Sleep(preempted)
	s.Span.End(opts...)
	time.Sleep(preempted)
}

// onBusyMachines runs a test where the SDK's own work takes time (its sampler runs
// before it reads the clock), and where everything around it does.
func onBusyMachines(t *testing.T, test func(t *testing.T, r *recording)) {
	slow := sdktrace.WithSampler(samplerFunc(func(sdktrace.SamplingParameters) { time.Sleep(preempted) }))
	t.Run("a sampler takes time", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { test(t, record(t, slow)) })
	})
	t.Run("everything takes time", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := record(t, slow)
			r.Tracer = genaitrace.New(genaitrace.WithTracerProvider(busyProvider{r.provider}), genaitrace.WithMeterProvider(r.meters))
			test(t, r)
		})
	})
}

// lasted is how long the span lasted, in nanoseconds.
func (s seen) lasted() int64 { return s.EndTime().Sub(s.StartTime()).Nanoseconds() }

// measured is the one value of a histogram, in nanoseconds.
func (r *recording) measured(name string) int64 {
	r.t.Helper()
	return int64(math.Round(r.once(name) * 1e9))
}

// since is how long after the start of the span something happened, in nanoseconds.
func (s seen) since(at time.Time) int64 { return at.Sub(s.StartTime()).Nanoseconds() }

func TestACallIsTimedByOneReading(t *testing.T) {
	onBusyMachines(t, func(t *testing.T, r *recording) {
		_, call := r.StartCall(t.Context(), genaitrace.Request{Stream: true})
		call.Chunk(genaitrace.NoOutput)
		time.Sleep(10 * time.Millisecond)
		call.Chunk(genaitrace.Visible)
		time.Sleep(5 * time.Millisecond)
		call.Chunk(genaitrace.Visible)
		call.End() // at the very time of the last chunk

		s := r.span("chat")
		first := s.event(semconv.EventFirstToken)
		assert.Equal(t, s.nanos(semconv.LLMTTFTMsKey), s.since(first.Time))
		assert.Equal(t, s.nanos(semconv.LLMTTFTMsKey), r.measured(semconv.GenAITimeToFirstTokenName))
		assert.Equal(t, s.nanos(semconv.GenAILastTokenMsKey), s.lasted())
		assert.Equal(t, r.measured(genaiconv.ClientInferenceDurationName), s.lasted())
	})
}

func TestAnInferenceAndItsPhasesAreTimedByOneReading(t *testing.T) {
	onBusyMachines(t, func(t *testing.T, r *recording) {
		ctx, inf := r.StartInference(t.Context(), genaitrace.Request{Stream: true})
		for _, start := range []func(context.Context) (context.Context, *genaitrace.Phase){
			inf.StartQueue, inf.StartLoad, inf.StartTokenize, inf.StartSchedule,
		} {
			_, p := start(ctx)
			time.Sleep(2 * time.Millisecond)
			p.End()
		}
		_, prefill := inf.StartPrefill(ctx, genaitrace.Prompt{Tokens: 7})
		_, kernel := prefill.StartKernel(ctx, genaitrace.Kernel{Name: "gemm"})
		time.Sleep(20 * time.Millisecond)
		kernel.End()
		prefill.End()
		_, decode := inf.StartDecode(ctx)
		decode.Token()
		time.Sleep(10 * time.Millisecond)
		decode.Token()
		decode.End()
		inf.End()

		s, d := r.span(semconv.SpanInferenceGenerate), r.span(semconv.SpanInferenceDecode)
		first := d.event(semconv.EventFirstToken)
		ttft := s.since(first.Time)
		assert.Equal(t, s.nanos(semconv.LLMTTFTMsKey), ttft)
		assert.Equal(t, r.measured(genaiconv.ServerTimeToFirstTokenName), ttft)
		assert.Equal(t, r.measured(genaiconv.ServerRequestDurationName), s.lasted())
		assert.Equal(t, s.nanos(semconv.GenAILastTokenMsKey), s.since(d.EndTime()), "the last token and the end of its phase")

		unattributed := ttft
		for name, part := range map[string]attribute.Key{
			semconv.SpanQueueWait: semconv.GenAITTFTQueueMsKey, semconv.SpanModelLoad: semconv.GenAITTFTLoadMsKey,
			semconv.SpanTokenizerEncode: semconv.GenAITTFTTokenizeMsKey, semconv.SpanSchedulerDispatch: semconv.GenAITTFTScheduleMsKey,
			semconv.SpanInferencePrefill: semconv.GenAITTFTPrefillMsKey,
		} {
			assert.Equal(t, s.nanos(part), r.span(name).lasted(), name)
			unattributed -= r.span(name).lasted()
		}
		p := r.span(semconv.SpanInferencePrefill)
		emit := first.Time.Sub(p.EndTime()).Nanoseconds()
		assert.Equal(t, s.nanos(semconv.GenAITTFTEmitMsKey), emit)
		assert.Equal(t, s.nanos(semconv.GenAITTFTUnattributedMsKey), unattributed-emit)
		assert.Equal(t, s.nanos(semconv.AIFirstTokenDurationMsKey), p.since(first.Time))

		for name, key := range map[string]attribute.Key{
			semconv.SpanQueueWait: semconv.LLMQueueWaitMsKey, semconv.SpanModelLoad: semconv.AILoadDurationMsKey,
			semconv.SpanInferencePrefill: semconv.AIPrefillDurationMsKey, semconv.SpanInferenceDecode: semconv.AIDecodeDurationMsKey,
			semconv.SpanDeviceKernel: semconv.AIKernelDurationMsKey,
		} {
			assert.Equal(t, r.span(name).nanos(key), r.span(name).lasted(), name)
		}
		for name, metric := range map[string]string{
			semconv.SpanQueueWait: semconv.GenAIQueueWaitName, semconv.SpanInferencePrefill: semconv.GenAIPrefillDurationName,
			semconv.SpanInferenceDecode: semconv.GenAIDecodeDurationName,
		} {
			assert.Equal(t, r.measured(metric), r.span(name).lasted(), name)
		}
	})
}

func TestAGatewayIsTimedByOneReading(t *testing.T) {
	for name, wait := range map[string]time.Duration{"from now": 0, "from its arrival": 4 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			onBusyMachines(t, func(t *testing.T, r *recording) {
				req := genaitrace.GatewayRequest{Name: "POST /v1/chat/completions"}
				if wait > 0 {
					req.Arrived = time.Now()
					time.Sleep(wait)
				}
				ctx, gateway := r.StartGateway(t.Context(), req)
				_, limit := r.StartRateLimit(ctx)
				time.Sleep(2 * time.Millisecond)
				limit.End()
				gateway.Chunk(genaitrace.Visible)
				gateway.End()

				s := r.span(req.Name)
				assert.Equal(t, s.nanos(semconv.LLMTTFTMsKey), s.since(s.event(semconv.EventFirstToken).Time))
				assert.Equal(t, s.nanos(semconv.LLMTTFTMsKey), r.measured(semconv.GenAITimeToFirstTokenName))
				assert.Equal(t, s.nanos(semconv.GenAILastTokenMsKey), s.lasted())
				waited := r.span(semconv.SpanGatewayRatelimit)
				assert.Equal(t, waited.nanos(semconv.GenAIRateLimitWaitMsKey), waited.lasted())
				assert.Equal(t, s.nanos(semconv.GenAIRateLimitWaitMsKey), waited.lasted())
			})
		})
	}
}

func TestAnOperationIsTimedByOneReading(t *testing.T) {
	onBusyMachines(t, func(t *testing.T, r *recording) {
		ctx, run := r.StartAgent(t.Context(), genaitrace.Agent{Name: "planner"})
		_, tool := r.StartTool(ctx, genaitrace.ToolCall{Name: "weather"})
		time.Sleep(2 * time.Millisecond)
		tool.End()
		_, search := r.StartRetrieval(ctx, genaitrace.RetrievalRequest{DataSource: "docs"})
		search.Fail(typedError("unreachable"))
		run.End()

		assert.Equal(t, r.measured(genaiconv.ExecuteToolDurationName), r.span("execute_tool weather").lasted())
		assert.Equal(t, r.measured(genaiconv.RetrievalDurationName), r.span("retrieval docs").lasted())
		assert.Equal(t, r.measured(genaiconv.InvokeAgentDurationName), r.span("invoke_agent planner").lasted())
	})
}

// Nothing of a rate limit without a span above it is known but what the SDK tells.
func TestAnOperationThatIsARootIsTimedByOneReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record(t, sdktrace.WithSampler(samplerFunc(func(sdktrace.SamplingParameters) { time.Sleep(preempted) })))
		_, limit := r.StartRateLimit(t.Context())
		time.Sleep(2 * time.Millisecond)
		limit.End()
		s := r.span(semconv.SpanGatewayRatelimit)
		assert.Equal(t, s.nanos(semconv.GenAIRateLimitWaitMsKey), s.lasted())
	})
}

func TestABatchIsTimedByOneReading(t *testing.T) {
	onBusyMachines(t, func(t *testing.T, r *recording) {
		_, inf := r.StartInference(t.Context(), genaitrace.Request{})
		_, batch := r.StartBatch(t.Context(), genaitrace.BatchFacts{})
		joined := time.Now()
		batch.Join(inf)
		time.Sleep(2 * time.Millisecond)
		batch.End()
		inf.End()

		s := r.span(semconv.SpanInferenceBatch)
		assert.Equal(t, s.nanos(semconv.AIBatchAvgLatencyMsKey), s.EndTime().Sub(joined).Nanoseconds())
	})
}

// A transport may still read what had arrived when the context ended.
func TestACallWhoseContextEndsLastsUntilItsLastChunk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record(t)
		ctx, cancel := context.WithCancel(t.Context())
		_, call := r.StartCall(ctx, genaitrace.Request{Stream: true})
		call.Watch() // as a transport does
		_ = genaitrace.RangeChunks(call, func(func(string, error) bool) {}, nil)
		time.Sleep(10 * time.Millisecond)
		cancel()
		time.Sleep(1 * time.Millisecond)
		call.Chunk(genaitrace.Visible)
		time.Sleep(time.Second)

		s := r.span("chat")
		assert.Equal(t, int64(11e6), s.nanos(semconv.GenAILastTokenMsKey))
		assert.Equal(t, int64(11e6), s.lasted())
		assert.Equal(t, int64(11e6), r.measured(genaiconv.ClientInferenceDurationName))
	})
}
