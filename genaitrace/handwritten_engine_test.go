package genaitrace_test

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// What an engine does beside the plain way of a request, each by us and by hand.

const (
	benchBatch     = 8
	benchQueued    = 2 * time.Nanosecond
	benchPrefilled = 3 * time.Nanosecond
)

// benchPreempted is an inference that waits for its model, is put aside once, and
// tells of its steps; of its tokens two.
func benchPreempted(tr *genaitrace.Tracer, req genaitrace.Request) {
	ctx, inf := tr.StartInference(context.Background(), req)
	_, load := inf.StartLoad(ctx)
	load.End()
	_, schedule := inf.StartSchedule(ctx)
	schedule.End()
	_, prefill := inf.StartPrefill(ctx, genaitrace.Prompt{Tokens: benchPrompt})
	prefill.RecordStep(benchStep())
	inf.Preempt()
	within, again := inf.StartPrefill(ctx, genaitrace.Prompt{Tokens: benchPrompt})
	_, kernel := again.StartKernel(within, genaitrace.Kernel{Name: "paged_attention_v2", DeviceID: new(3)})
	kernel.End()
	again.End()
	_, decode := inf.StartDecode(ctx)
	decode.Token()
	decode.RecordStep(benchStep())
	decode.Token()
	decode.End()
	inf.End()
}

// preempted is benchPreempted by hand.
func (h *handwritten) preempted(req genaitrace.Request) {
	arrived := time.Now()
	ctx, inf := h.tracer.Start(context.Background(), semconv.SpanInferenceGenerate, h.internal, trace.WithAttributes(inferenceAttributes(req)...))
	h.activeRequests.Add(ctx, 1, h.running...)

	from := time.Since(arrived)
	_, load := h.tracer.Start(ctx, semconv.SpanModelLoad, h.roles[semconv.GenAISpanRoleLoad])
	loaded := time.Since(arrived) - from
	load.SetAttributes(semconv.AILoadDurationMs(toMs(loaded)))
	load.End()

	from = time.Since(arrived)
	_, schedule := h.tracer.Start(ctx, semconv.SpanSchedulerDispatch, h.roles[semconv.GenAISpanRoleSchedule])
	scheduled := time.Since(arrived) - from
	schedule.End()

	from = time.Since(arrived)
	_, prefill := h.tracer.Start(ctx, semconv.SpanInferencePrefill, h.roles[semconv.GenAISpanRolePrefill])
	stepped := time.Now()
	preempted := time.Since(arrived)
	lost := preempted - from
	addStep(prefill, stepped)
	prefill.SetAttributes(semconv.AITokensInput(benchPrompt), semconv.AIPrefillDurationMs(toMs(lost)), semconv.GenAIStepCount(1))
	prefill.End()
	h.prefill.Record(ctx, lost.Seconds(), h.model...)

	resumed := time.Since(arrived)
	within, again := h.tracer.Start(ctx, semconv.SpanInferencePrefill, h.roles[semconv.GenAISpanRolePrefill])
	begun := time.Since(arrived)
	_, kernel := h.tracer.Start(within, semconv.SpanDeviceKernel, h.roles[semconv.GenAISpanRoleKernel])
	ran := time.Since(arrived) - begun
	kernel.SetAttributes(semconv.AIKernelName("paged_attention_v2"), semconv.AIGPUDeviceID(3), semconv.AIKernelDurationMs(toMs(ran)))
	kernel.End()
	prefillEnd := time.Since(arrived)
	took := prefillEnd - resumed
	again.SetAttributes(semconv.AITokensInput(benchPrompt), semconv.AIPrefillDurationMs(toMs(took)))
	again.End()
	h.prefill.Record(ctx, took.Seconds(), h.model...)

	decodeStart := time.Since(arrived)
	_, decode := h.tracer.Start(ctx, semconv.SpanInferenceDecode, h.roles[semconv.GenAISpanRoleDecode])
	ttft := time.Since(arrived)
	stepped = time.Now()
	last := time.Since(arrived)
	addStep(decode, stepped)
	decode.AddEvent(semconv.EventPhaseTransition, h.transition)
	decode.AddEvent(semconv.EventFirstToken, trace.WithAttributes(semconv.LLMTTFTMs(toMs(ttft))))
	decodeEnd := time.Since(arrived)
	decode.SetAttributes(semconv.AIDecodeDurationMs(toMs(decodeEnd-decodeStart)), semconv.GenAIStepCount(1))
	decode.End()

	inf.AddEvent(semconv.EventPreempted, trace.WithTimestamp(arrived.Add(preempted)), trace.WithAttributes(
		semconv.GenAIPreemptionDurationMs(toMs(resumed-preempted)), semconv.GenAITokenCount(0)))
	known := loaded + scheduled + lost + (resumed - preempted) + (ttft - resumed)
	inf.SetAttributes(
		semconv.LLMTTFTMs(toMs(ttft)), semconv.GenAILastTokenMs(toMs(last)), semconv.GenAITTFTLoadMs(toMs(loaded)),
		semconv.GenAITTFTScheduleMs(toMs(scheduled)), semconv.GenAITTFTPrefillMs(toMs(lost+took)),
		semconv.GenAITTFTPreemptedMs(toMs(resumed-preempted)), semconv.GenAITTFTEmitMs(toMs(ttft-prefillEnd)),
		semconv.GenAITTFTUnattributedMs(toMs(ttft-known)), semconv.AIFirstTokenDurationMs(toMs(ttft-from)),
		semconv.GenAIPreemptionCount(1), semconv.GenAIPreemptionDurationMs(toMs(resumed-preempted)),
		genaiconv.UsageInputTokens(benchPrompt), genaiconv.UsageOutputTokens(2))
	duration := time.Since(arrived)
	inf.End()
	h.duration.Record(ctx, duration.Seconds(), h.model...)
	h.decode.Record(ctx, (decodeEnd - decodeStart).Seconds(), h.model...)
	h.tokens.Add(ctx, benchPrompt, h.read...)
	h.tokens.Add(ctx, 2, h.generated...)
	h.ttft.Record(ctx, ttft.Seconds(), h.model...)
	h.perToken.Record(ctx, (last - ttft).Seconds(), h.model...)
	h.rate.Record(ctx, 1/(last-ttft).Seconds(), h.model...)
	h.activeRequests.Add(ctx, -1, h.running...)
}

func addStep(span trace.Span, at time.Time) {
	span.AddEvent(semconv.EventEngineStep, trace.WithTimestamp(at), trace.WithAttributes(
		semconv.GenAIStepID(1042), semconv.GenAITokenPosition(0), semconv.AIKernelDurationMs(1.8)))
}

func benchStep() genaitrace.Step {
	return genaitrace.Step{ID: new(1042), Position: new(0), Kernel: new(1800 * time.Microsecond)}
}

// benchReported is an inference whose engine tells afterwards how long its phases took.
func benchReported(tr *genaitrace.Tracer, req genaitrace.Request) {
	_, inf := tr.StartInference(context.Background(), req)
	inf.RecordPhases(benchPhases(time.Now()))
	inf.End()
}

// reported is benchReported by hand.
func (h *handwritten) reported(req genaitrace.Request) {
	arrived := time.Now()
	ctx, inf := h.tracer.Start(context.Background(), semconv.SpanInferenceGenerate, h.internal, trace.WithAttributes(inferenceAttributes(req)...))
	h.activeRequests.Add(ctx, 1, h.running...)
	h.addPhases(ctx, time.Now())
	inf.SetAttributes(reportedAttributes()...)
	duration := time.Since(arrived)
	inf.End()
	h.duration.Record(ctx, duration.Seconds(), h.model...)
	h.queueWait.Record(ctx, benchQueued.Seconds(), h.model...)
	h.prefill.Record(ctx, benchPrefilled.Seconds(), h.model...)
	h.activeRequests.Add(ctx, -1, h.running...)
}

// addPhases adds the spans of what was reported, before the end of prefill.
func (h *handwritten) addPhases(ctx context.Context, prefillEnd time.Time) {
	prefillStart := prefillEnd.Add(-benchPrefilled)
	_, queue := h.tracer.Start(ctx, semconv.SpanQueueWait, h.roles[semconv.GenAISpanRoleQueue], trace.WithTimestamp(prefillStart.Add(-benchQueued)))
	queue.SetAttributes(semconv.LLMQueueWaitMs(toMs(benchQueued)), semconv.GenAITimingSource(semconv.GenAITimingSourceEngine))
	queue.End(trace.WithTimestamp(prefillStart))
	_, prefill := h.tracer.Start(ctx, semconv.SpanInferencePrefill, h.roles[semconv.GenAISpanRolePrefill], trace.WithTimestamp(prefillStart))
	prefill.SetAttributes(semconv.AIPrefillDurationMs(toMs(benchPrefilled)), semconv.GenAITimingSource(semconv.GenAITimingSourceEngine))
	prefill.End(trace.WithTimestamp(prefillEnd))
}

func reportedAttributes() []attribute.KeyValue {
	return []attribute.KeyValue{
		semconv.LLMQueueWaitMs(toMs(benchQueued)), semconv.AIPrefillDurationMs(toMs(benchPrefilled)),
		semconv.GenAITimingSource(semconv.GenAITimingSourceEngine),
	}
}

// benchReportedCall is the same as the caller of the engine learns it, from an answer
// of one chunk.
func benchReportedCall(tr *genaitrace.Tracer, req genaitrace.Request) {
	_, call := tr.StartCall(context.Background(), req)
	call.Chunk(genaitrace.Visible)
	call.RecordPhases(benchPhases(time.Time{}))
	call.End()
}

// reportedCall is benchReportedCall by hand.
func (h *handwritten) reportedCall(req genaitrace.Request) {
	start := time.Now()
	ctx, span := h.startCall(req)
	first := time.Since(start)
	span.AddEvent(semconv.EventFirstToken, trace.WithAttributes(semconv.LLMTTFTMs(toMs(first))))
	h.addPhases(ctx, start.Add(first))
	span.SetAttributes(reportedAttributes()...)
	span.SetAttributes(
		genaiconv.ResponseTimeToFirstChunk(first.Seconds()), semconv.LLMTTFTMs(toMs(first)),
		semconv.GenAIFirstVisibleMs(toMs(first)), semconv.GenAILastTokenMs(toMs(first)),
		semconv.GenAIChunkCount(1), semconv.GenAIChunkOutputCount(1), semconv.GenAIStreamTerminal(semconv.GenAIStreamTerminalTruncated),
		semconv.GenAITTFTQueueMs(toMs(benchQueued)), semconv.GenAITTFTPrefillMs(toMs(benchPrefilled)),
		semconv.GenAITTFTUnattributedMs(toMs(first-benchQueued-benchPrefilled)))
	duration := time.Since(start)
	span.End()
	h.callDuration.Record(ctx, duration.Seconds(), h.unnamed...)
	h.firstChunk.Record(ctx, first.Seconds(), h.unnamed...)
	h.seenTTFT.Record(ctx, first.Seconds(), h.seenUnnamed...)
	h.input.Add(ctx, 0, h.unknownUsage...)
	h.output.Add(ctx, 0, h.unknownUsage...)
	h.activeCalls.Add(ctx, -1, h.calling...)
}

var benchTimes = [...]time.Duration{benchQueued, benchPrefilled}

// benchPhases fit into any request.
func benchPhases(prefillEnd time.Time) genaitrace.PhaseTimes {
	return genaitrace.PhaseTimes{Queue: &benchTimes[0], Prefill: &benchTimes[1], PrefillEnd: prefillEnd}
}

// benchBatched is a batch of requests.
func benchBatched(tr *genaitrace.Tracer, req genaitrace.Request) {
	var requests [benchBatch]*genaitrace.Inference
	for i := range requests {
		_, requests[i] = tr.StartInference(context.Background(), req)
	}
	_, batch := tr.StartBatch(context.Background(), genaitrace.BatchFacts{Model: req.Model, Size: benchBatch})
	for _, inf := range requests {
		batch.Join(inf)
	}
	for _, inf := range requests {
		inf.End()
	}
	batch.End()
}

// batched is benchBatched by hand.
func (h *handwritten) batched(req genaitrace.Request) {
	var requests [benchBatch]struct {
		ctx             context.Context
		span            trace.Span
		arrived, joined time.Time
	}
	for i := range requests {
		r := &requests[i]
		r.arrived = time.Now()
		r.ctx, r.span = h.tracer.Start(context.Background(), semconv.SpanInferenceGenerate, h.internal, trace.WithAttributes(inferenceAttributes(req)...))
		h.activeRequests.Add(r.ctx, 1, h.running...)
	}
	ctx, batch := h.tracer.Start(context.Background(), semconv.SpanInferenceBatch, trace.WithNewRoot(),
		trace.WithAttributes(semconv.GenAISpanRole(semconv.GenAISpanRoleBatch), genaiconv.RequestModel(req.Model)))
	for i := range requests {
		r := &requests[i]
		r.joined = time.Now()
		r.span.AddLink(trace.Link{SpanContext: batch.SpanContext()})
		batch.AddLink(trace.Link{SpanContext: r.span.SpanContext()})
	}
	var spent time.Duration
	for i := range requests {
		r := &requests[i]
		ended := time.Now()
		spent += ended.Sub(r.joined)
		r.span.End()
		h.duration.Record(r.ctx, ended.Sub(r.arrived).Seconds(), h.model...)
		h.activeRequests.Add(r.ctx, -1, h.running...)
	}
	batch.SetAttributes(semconv.AIBatchSize(benchBatch), semconv.AIBatchAvgLatencyMs(toMs(spent/benchBatch)))
	batch.End()
	h.batchSize.Record(ctx, benchBatch, h.batch...)
}

func startBatched(tracer trace.Tracer, req genaitrace.Request) {
	for range benchBatch {
		startInference(tracer, req)
	}
	_, _ = tracer.Start(context.Background(), semconv.SpanInferenceBatch, trace.WithNewRoot(),
		trace.WithAttributes(semconv.GenAISpanRole(semconv.GenAISpanRoleBatch), genaiconv.RequestModel(req.Model)))
}
