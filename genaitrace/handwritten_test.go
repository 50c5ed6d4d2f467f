package genaitrace_test

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	otelsemconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// handwritten is what a service does without this library, as well as one would write
// it by hand on the otel API: constant attributes and the options of its metrics are
// prepared once, for one model of one provider, and each span gets its attributes in
// one call.
type handwritten struct {
	tracer trace.Tracer

	duration, ttft, perToken, queueWait, prefill, decode, rate, hitRatio metric.Float64Histogram
	callDuration, firstChunk, perChunk, seenTTFT                         metric.Float64Histogram
	inputLength, outputLength, batchSize                                 metric.Int64Histogram
	tokens, input, output, cached                                        metric.Int64Counter
	activeRequests, activeCalls                                          metric.Int64UpDownCounter

	model, server, seen, atGateway, batch                            []metric.RecordOption
	unnamed, seenUnnamed                                             []metric.RecordOption // of a call that nothing is known of
	read, generated, usage, unknownUsage, running, calling, atTheTop []metric.AddOption

	internal, client, entry trace.SpanStartOption
	roles                   map[semconv.GenAISpanRoleAttr]trace.SpanStartOption
	transition              trace.EventOption

	work handwrittenWork
	rag  handwrittenRAG
}

func newHandwritten(tp trace.TracerProvider, mp metric.MeterProvider) *handwritten {
	m := mp.Meter("handwritten")
	model := []attribute.KeyValue{
		genaiconv.OperationName(genaiconv.OperationNameChat),
		genaiconv.ProviderName("vllm"),
		genaiconv.RequestModel("qwen2.5-7b-instruct"),
	}
	role := semconv.GenAISpanRole
	set := func(base []attribute.KeyValue, more ...attribute.KeyValue) metric.MeasurementOption {
		return metric.WithAttributeSet(attribute.NewSet(append(append([]attribute.KeyValue(nil), base...), more...)...))
	}
	h := &handwritten{
		tracer:   tp.Tracer("handwritten"),
		duration: must(genaiconv.NewServerRequestDuration(m)), ttft: must(genaiconv.NewServerTimeToFirstToken(m)),
		perToken: must(genaiconv.NewServerTimePerOutputToken(m)), queueWait: must(semconv.NewGenAIQueueWait(m)),
		prefill: must(semconv.NewGenAIPrefillDuration(m)), decode: must(semconv.NewGenAIDecodeDuration(m)),
		rate: must(semconv.NewGenAITokenRate(m)), hitRatio: must(semconv.NewGenAIKVCacheHitRatio(m)),
		callDuration: must(genaiconv.NewClientInferenceDuration(m)), firstChunk: must(genaiconv.NewClientInferenceTimeToFirstChunk(m)),
		perChunk: must(genaiconv.NewClientInferenceTimePerOutputChunk(m)), seenTTFT: must(semconv.NewGenAITimeToFirstToken(m)),
		inputLength:  must(genaiconv.NewClientInferenceOperationInputTokens(m)),
		outputLength: must(genaiconv.NewClientInferenceOperationOutputTokens(m)),
		batchSize:    must(semconv.NewGenAIBatchSize(m)),
		tokens:       must(semconv.NewGenAITokens(m)), input: must(genaiconv.NewClientInferenceUsageInputTokens(m)),
		output:         must(genaiconv.NewClientInferenceUsageOutputTokens(m)),
		cached:         must(genaiconv.NewClientInferenceUsageCacheReadInputTokens(m)),
		activeRequests: must(semconv.NewGenAIActiveRequests(m)), activeCalls: must(semconv.NewGenAIActiveCalls(m)),

		model: []metric.RecordOption{set(model)},
		server: []metric.RecordOption{set(model, genaiconv.ResponseModel(benchAnswers),
			otelsemconv.ServerAddress(benchServer), otelsemconv.ServerPort(benchPort))},
		seen: []metric.RecordOption{set(model, genaiconv.ResponseModel(benchAnswers),
			otelsemconv.ServerAddress(benchServer), otelsemconv.ServerPort(benchPort), role(semconv.GenAISpanRoleInference))},
		unnamed: []metric.RecordOption{set(model, otelsemconv.ServerAddress(benchServer), otelsemconv.ServerPort(benchPort))},
		seenUnnamed: []metric.RecordOption{set(model, otelsemconv.ServerAddress(benchServer), otelsemconv.ServerPort(benchPort),
			role(semconv.GenAISpanRoleInference))},
		batch:     []metric.RecordOption{set(model[2:])},
		atGateway: []metric.RecordOption{set(model[:1], role(semconv.GenAISpanRoleGateway))},
		read:      []metric.AddOption{set(model, semconv.GenAITokenDirection(semconv.GenAITokenDirectionInput))},
		generated: []metric.AddOption{set(model, semconv.GenAITokenDirection(semconv.GenAITokenDirectionOutput))},
		usage: []metric.AddOption{set(model, genaiconv.ResponseModel(benchAnswers), otelsemconv.ServerAddress(benchServer),
			otelsemconv.ServerPort(benchPort), genaiconv.TokenModality(genaiconv.TokenModalityUnknown))},
		unknownUsage: []metric.AddOption{set(model, otelsemconv.ServerAddress(benchServer), otelsemconv.ServerPort(benchPort),
			genaiconv.TokenModality(genaiconv.TokenModalityUnknown))},
		running:  []metric.AddOption{set(model, role(semconv.GenAISpanRoleInference))},
		calling:  []metric.AddOption{set(model)},
		atTheTop: []metric.AddOption{set(model[:1], role(semconv.GenAISpanRoleGateway))},

		internal:   trace.WithSpanKind(trace.SpanKindInternal),
		client:     trace.WithSpanKind(trace.SpanKindClient),
		entry:      trace.WithSpanKind(trace.SpanKindServer),
		roles:      map[semconv.GenAISpanRoleAttr]trace.SpanStartOption{},
		transition: trace.WithAttributes(semconv.GenAIPhase("prefill->decode")),

		work: newHandwrittenWork(m),
		rag:  newHandwrittenRAG(m),
	}
	for _, r := range []semconv.GenAISpanRoleAttr{
		semconv.GenAISpanRoleQueue, semconv.GenAISpanRoleTokenize, semconv.GenAISpanRolePrefill,
		semconv.GenAISpanRoleDecode, semconv.GenAISpanRolePostprocess, semconv.GenAISpanRolePreprocess, semconv.GenAISpanRoleForward,
		semconv.GenAISpanRoleLoad, semconv.GenAISpanRoleSchedule, semconv.GenAISpanRoleKernel,
	} {
		h.roles[r] = trace.WithAttributes(role(r))
	}
	return h
}

func must[T any, I interface{ Inst() T }](i I, err error) T {
	if err != nil {
		panic(err)
	}
	return i.Inst()
}

func toMs(d time.Duration) float64 { return float64(d) / 1e6 }

// inference is benchInference by hand, without the tokens themselves, or with an event
// each.
func (h *handwritten) inference(req genaitrace.Request, eventPerToken bool) {
	arrived := time.Now()
	ctx, inf := h.tracer.Start(context.Background(), semconv.SpanInferenceGenerate, h.internal, trace.WithAttributes(inferenceAttributes(req)...))
	h.activeRequests.Add(ctx, 1, h.running...)

	from := time.Since(arrived)
	_, queue := h.tracer.Start(ctx, semconv.SpanQueueWait, h.roles[semconv.GenAISpanRoleQueue])
	queued := time.Since(arrived) - from
	queue.SetAttributes(semconv.LLMQueueWaitMs(toMs(queued)))
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
		semconv.AIPrefillDurationMs(toMs(prefillEnd-prefillStart)))
	prefill.End()

	decodeStart := time.Since(arrived)
	_, decode := h.tracer.Start(ctx, semconv.SpanInferenceDecode, h.roles[semconv.GenAISpanRoleDecode])
	decode.AddEvent(semconv.EventPhaseTransition, h.transition)
	ttft := time.Since(arrived)
	decode.AddEvent(semconv.EventFirstToken, trace.WithAttributes(semconv.LLMTTFTMs(toMs(ttft))))
	if eventPerToken {
		for n := range benchTokens {
			addTokenEvent(decode, n)
		}
	}
	last := time.Since(arrived)
	decode.SetAttributes(semconv.AIDecodeDurationMs(toMs(last - decodeStart)))
	decode.End()

	_, post := h.tracer.Start(ctx, semconv.SpanInferencePostprocess, h.roles[semconv.GenAISpanRolePostprocess])
	post.End()

	known := queued + tokenized + (ttft - prefillStart)
	inf.SetAttributes(
		semconv.LLMTTFTMs(toMs(ttft)), semconv.GenAILastTokenMs(toMs(last)),
		semconv.GenAITTFTQueueMs(toMs(queued)), semconv.GenAITTFTTokenizeMs(toMs(tokenized)),
		semconv.GenAITTFTPrefillMs(toMs(prefillEnd-prefillStart)), semconv.GenAITTFTEmitMs(toMs(ttft-prefillEnd)),
		semconv.GenAITTFTUnattributedMs(toMs(ttft-known)), semconv.AIFirstTokenDurationMs(toMs(ttft-prefillStart)),
		genaiconv.UsageInputTokens(benchPrompt), genaiconv.UsageOutputTokens(benchTokens),
		genaiconv.UsageCacheReadInputTokens(benchCached), genaiconv.ResponseFinishReasons("stop"))
	duration := time.Since(arrived)
	inf.End()
	h.duration.Record(ctx, duration.Seconds(), h.model...)
	h.queueWait.Record(ctx, queued.Seconds(), h.model...)
	h.prefill.Record(ctx, (prefillEnd - prefillStart).Seconds(), h.model...)
	h.decode.Record(ctx, (last - decodeStart).Seconds(), h.model...)
	h.tokens.Add(ctx, benchPrompt, h.read...)
	h.tokens.Add(ctx, benchTokens, h.generated...)
	h.hitRatio.Record(ctx, float64(benchCached)/benchPrompt, h.model...)
	h.ttft.Record(ctx, ttft.Seconds(), h.model...)
	h.perToken.Record(ctx, (last-ttft).Seconds()/(benchTokens-1), h.model...)
	h.rate.Record(ctx, (benchTokens-1)/(last-ttft).Seconds(), h.model...)
	h.activeRequests.Add(ctx, -1, h.running...)
}

// startCall starts the span of benchCall and benchStream.
func (h *handwritten) startCall(req genaitrace.Request) (context.Context, trace.Span) {
	ctx, span := h.tracer.Start(context.Background(), "chat qwen2.5-7b-instruct", h.client, trace.WithAttributes(
		semconv.GenAISpanRole(semconv.GenAISpanRoleInference),
		genaiconv.OperationName(genaiconv.OperationNameChat),
		genaiconv.ProviderName(req.Provider),
		genaiconv.RequestModel(req.Model),
		otelsemconv.ServerAddress(req.ServerAddress),
		otelsemconv.ServerPort(req.ServerPort),
		semconv.AIModelVersion(req.ModelVersion),
		semconv.GenAIRequestID(req.RequestID),
		genaiconv.RequestStream(req.Stream),
		genaiconv.RequestMaxTokens(req.MaxTokens),
		genaiconv.RequestTemperature(*req.Temperature)))
	h.activeCalls.Add(ctx, 1, h.calling...)
	return ctx, span
}

func (h *handwritten) recordCall(ctx context.Context, duration time.Duration) {
	h.callDuration.Record(ctx, duration.Seconds(), h.server...)
	h.input.Add(ctx, benchPrompt, h.usage...)
	h.output.Add(ctx, benchTokens, h.usage...)
	h.cached.Add(ctx, benchCached, h.usage...)
	h.inputLength.Record(ctx, benchPrompt, h.server...)
	h.outputLength.Record(ctx, benchTokens, h.server...)
	h.activeCalls.Add(ctx, -1, h.calling...)
}

// call is benchCall by hand.
func (h *handwritten) call(req genaitrace.Request) {
	start := time.Now()
	ctx, span := h.startCall(req)
	span.SetAttributes(genaiconv.ResponseID("chatcmpl-1"), genaiconv.ResponseModel(benchAnswers),
		genaiconv.ResponseFinishReasons("stop"), genaiconv.UsageInputTokens(benchPrompt),
		genaiconv.UsageOutputTokens(benchTokens), genaiconv.UsageCacheReadInputTokens(benchCached))
	duration := time.Since(start)
	span.End()
	h.recordCall(ctx, duration)
}

// stream is benchStream by hand.
func (h *handwritten) stream(req genaitrace.Request) {
	start := time.Now()
	ctx, span := h.startCall(req)
	first := time.Since(start)
	var firstOutput, last time.Duration
	for n := range benchChunks {
		last = time.Since(start)
		if n == 0 {
			firstOutput = last
			span.AddEvent(semconv.EventFirstToken, trace.WithAttributes(semconv.LLMTTFTMs(toMs(firstOutput))))
		}
		h.perChunk.Record(ctx, last.Seconds(), h.model...)
	}
	span.SetAttributes(genaiconv.ResponseID("chatcmpl-1"), genaiconv.ResponseModel(benchAnswers),
		genaiconv.ResponseFinishReasons("stop"), genaiconv.UsageInputTokens(benchPrompt),
		genaiconv.UsageOutputTokens(benchTokens), genaiconv.UsageCacheReadInputTokens(benchCached),
		genaiconv.ResponseTimeToFirstChunk(first.Seconds()), semconv.LLMTTFTMs(toMs(firstOutput)),
		semconv.GenAIFirstVisibleMs(toMs(firstOutput)), semconv.GenAILastTokenMs(toMs(last)),
		semconv.GenAIChunkCount(benchChunks+1), semconv.GenAIChunkOutputCount(benchChunks),
		semconv.GenAIStreamTerminal(semconv.GenAIStreamTerminalDone))
	duration := time.Since(start)
	span.End()
	h.seenTTFT.Record(ctx, firstOutput.Seconds(), h.seen...)
	h.firstChunk.Record(ctx, first.Seconds(), h.server...)
	h.recordCall(ctx, duration)
}

// gateway is benchGateway by hand.
func (h *handwritten) gateway() {
	arrived := time.Now()
	ctx, span := h.tracer.Start(context.Background(), benchRoute, h.entry, trace.WithAttributes(
		semconv.GenAISpanRole(semconv.GenAISpanRoleGateway), otelsemconv.HTTPRoute("/v1/chat/completions")))
	h.activeRequests.Add(ctx, 1, h.atTheTop...)
	first := time.Since(arrived)
	var firstOutput, last time.Duration
	for n := range benchChunks {
		last = time.Since(arrived)
		if n == 0 {
			firstOutput = last
			span.AddEvent(semconv.EventFirstToken, trace.WithAttributes(semconv.LLMTTFTMs(toMs(firstOutput))))
		}
	}
	span.SetAttributes(
		semconv.AIResponseDelayMs(toMs(first)), semconv.LLMTTFTMs(toMs(firstOutput)),
		semconv.GenAIFirstVisibleMs(toMs(firstOutput)), semconv.GenAILastTokenMs(toMs(last)),
		semconv.GenAIChunkCount(benchChunks+1), semconv.GenAIChunkOutputCount(benchChunks),
		semconv.GenAIStreamTerminal(semconv.GenAIStreamTerminalDone))
	span.End()
	h.seenTTFT.Record(ctx, firstOutput.Seconds(), h.atGateway...)
	h.activeRequests.Add(ctx, -1, h.atTheTop...)
}
