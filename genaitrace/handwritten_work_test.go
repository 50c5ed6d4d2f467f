package genaitrace_test

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	otelsemconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// What a gateway does around a call, and what an engine tells of itself, each by us
// and by hand.

// benchGatewayWork is what a gateway does before it calls a model.
func benchGatewayWork(tr *genaitrace.Tracer, req genaitrace.Request) {
	ctx := context.Background()
	_, auth := tr.StartAuth(ctx)
	auth.End()
	_, limit := tr.StartRateLimit(ctx)
	limit.End()
	_, cache := tr.StartCache(ctx)
	cache.SetHit(false)
	cache.End()
	_, template := tr.StartTemplate(ctx, genaitrace.Template{Name: "answer", Version: "1.4.0"})
	template.End()
	_, route := tr.StartRoute(ctx, req.Model)
	route.SetBackend("vllm")
	route.End()
}

var gatewayWork = []struct {
	name string
	role trace.SpanStartOption
}{
	{semconv.SpanAuthValidateToken, trace.WithAttributes(semconv.GenAISpanRole(semconv.GenAISpanRoleAuth))},
	{semconv.SpanGatewayRatelimit, trace.WithAttributes(semconv.GenAISpanRole(semconv.GenAISpanRoleRateLimit))},
	{semconv.SpanGatewayCache, trace.WithAttributes(semconv.GenAISpanRole(semconv.GenAISpanRoleCache))},
	{semconv.SpanPromptRender, trace.WithAttributes(semconv.GenAISpanRole(semconv.GenAISpanRoleTemplate))},
	{semconv.SpanGatewayRoute, trace.WithAttributes(semconv.GenAISpanRole(semconv.GenAISpanRoleRoute))},
}

func startGatewayWork(tracer trace.Tracer, _ genaitrace.Request) {
	for _, work := range gatewayWork {
		_, _ = tracer.Start(context.Background(), work.name, work.role)
	}
}

// gatewayWork is benchGatewayWork by hand.
func (h *handwritten) gatewayWork(req genaitrace.Request) {
	ctx := context.Background()
	start := func(i int) trace.Span {
		_, span := h.tracer.Start(ctx, gatewayWork[i].name, gatewayWork[i].role)
		return span
	}
	start(0).End()
	began := time.Now()
	limit := start(1)
	limit.SetAttributes(semconv.GenAIRateLimitWaitMs(toMs(time.Since(began))))
	limit.End()
	cache := start(2)
	cache.SetAttributes(semconv.GenAICacheHit(false))
	cache.End()
	template := start(3)
	template.SetAttributes(genaiconv.PromptName("answer"), genaiconv.PromptVersion("1.4.0"))
	template.End()
	route := start(4)
	route.SetAttributes(genaiconv.RequestModel(req.Model), semconv.GenAIBackendType("vllm"))
	route.End()
}

const benchPasses = 4

// benchEngine is a prompt computed in pieces, with what the engine knows of itself.
func benchEngine(tr *genaitrace.Tracer, req genaitrace.Request) {
	ctx, inf := tr.StartInference(context.Background(), req)
	inf.SetEngine(genaitrace.Engine{Backend: "vllm", Quantization: "fp8", DecodingStrategy: "greedy", DeviceID: new(3), DeviceName: "NVIDIA H100"})
	_, pre := inf.StartPreprocess(ctx, "application/json")
	pre.End()
	within, prefill := inf.StartPrefill(ctx, genaitrace.Prompt{})
	for range benchPasses {
		_, forward := prefill.StartForward(within, genaitrace.Forward{Tokens: 512, BatchSize: 8, DeviceID: new(3)})
		forward.End()
	}
	prefill.SetResources(genaitrace.Resources{BatchSize: new(8), BlocksAllocated: new(154), DeviceAllocated: new(40 << 30)})
	prefill.End()
	_, post := inf.StartPostprocess(ctx)
	post.SetOutcome(genaitrace.Outcome{FormatValid: new(true)})
	post.End()
	inf.End()
}

// engine is benchEngine by hand.
func (h *handwritten) engine(req genaitrace.Request) {
	arrived := time.Now()
	ctx, inf := h.tracer.Start(context.Background(), semconv.SpanInferenceGenerate, h.internal, trace.WithAttributes(inferenceAttributes(req)...))
	h.activeRequests.Add(ctx, 1, h.running...)

	_, pre := h.tracer.Start(ctx, semconv.SpanInferencePreprocess, h.roles[semconv.GenAISpanRolePreprocess])
	pre.SetAttributes(semconv.GenAIContentType("application/json"))
	pre.End()

	began := time.Since(arrived)
	within, prefill := h.tracer.Start(ctx, semconv.SpanInferencePrefill, h.roles[semconv.GenAISpanRolePrefill])
	for range benchPasses {
		_, forward := h.tracer.Start(within, semconv.SpanModelForward, h.roles[semconv.GenAISpanRoleForward])
		forward.SetAttributes(semconv.AIGPUDeviceID(3), semconv.GenAIStepTokens(512), semconv.AIBatchSize(8))
		forward.End()
	}
	took := time.Since(arrived) - began
	prefill.SetAttributes(semconv.AIBatchSize(8), semconv.AIKVCacheBlocksAllocated(154),
		semconv.AIGPUMemoryAllocated(40<<30), semconv.AIPrefillDurationMs(toMs(took)))
	prefill.End()

	_, post := h.tracer.Start(ctx, semconv.SpanInferencePostprocess, h.roles[semconv.GenAISpanRolePostprocess])
	post.SetAttributes(semconv.GenAIPostprocessFormatValid(true))
	post.End()

	inf.SetAttributes(semconv.GenAIBackendType("vllm"), semconv.GenAIQuantization("fp8"), semconv.GenAIDecodingStrategy("greedy"),
		semconv.AIGPUDeviceID(3), otelsemconv.HwModelKey.String("NVIDIA H100"))
	duration := time.Since(arrived)
	inf.End()
	h.duration.Record(ctx, duration.Seconds(), h.model...)
	h.prefill.Record(ctx, took.Seconds(), h.model...)
	h.activeRequests.Add(ctx, -1, h.running...)
}

func inferenceAttributes(req genaitrace.Request) []attribute.KeyValue {
	return []attribute.KeyValue{
		semconv.GenAISpanRole(semconv.GenAISpanRoleInference),
		genaiconv.OperationName(genaiconv.OperationNameChat),
		genaiconv.ProviderName(req.Provider),
		genaiconv.RequestModel(req.Model),
		semconv.AIModelVersion(req.ModelVersion),
		semconv.GenAIRequestID(req.RequestID),
		genaiconv.RequestStream(req.Stream),
		genaiconv.RequestMaxTokens(req.MaxTokens),
		genaiconv.RequestTemperature(*req.Temperature),
	}
}
