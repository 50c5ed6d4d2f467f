package genaitrace_test

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	otelsemconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// A pairing says how a span of the registry comes about here.
type pairing struct {
	by   string // the function that starts it
	name string // of the span that run records
	// run records the span with every fact known, and fails it where err is not
	// nil.
	run func(ctx context.Context, r *recording, err error)
	// facts are those of the context that it runs in.
	facts []genaitrace.Fact
	// without are the keys that run does not record, by the reason for it. One
	// that ends in * stands for all that begin so.
	without map[string][]attribute.Key
	// later says what the span is waiting for, where nothing records it yet.
	later string
}

// An eventPairing says how an event of the registry comes about here.
type eventPairing struct {
	by    string // the function that records it
	run   func(ctx context.Context, r *recording)
	later string // what it waits for, where nothing records it yet
	// without are the keys of a log event that run does not record.
	without []attribute.Key
}

// eventPairings pairs every event of the registry with what records it.
var eventPairings = map[string]eventPairing{
	semconv.EventFirstToken:      {by: "Decode.Token", run: func(ctx context.Context, r *recording) { everyPhase(ctx, r).End() }},
	semconv.EventPhaseTransition: {by: "Inference.StartDecode", run: func(ctx context.Context, r *recording) { everyPhase(ctx, r).End() }},
	semconv.EventEngineStep:      {by: "Phase.RecordStep", run: func(ctx context.Context, r *recording) { everyPhase(ctx, r).End() }},
	semconv.EventEarlyStop: {by: "Inference.EarlyStop", run: func(ctx context.Context, r *recording) {
		_, inf := r.StartInference(ctx, genaitrace.Request{})
		inf.EarlyStop(semconv.GenAIEarlyStopReasonUser)
		inf.End()
	}},
	semconv.EventTokenizerMismatch: {by: "Inference.CheckTokenizer", run: func(ctx context.Context, r *recording) {
		_, inf := r.StartInference(ctx, genaitrace.Request{})
		_ = inf.CheckTokenizer(genaitrace.TokenizerBinding{"m": "b7c4e19f02ad5310"}, "m", "9f2c41d07be3a685")
		inf.End()
	}},
	semconv.EventToken:          {later: "events of the token clock"},
	semconv.EventTokenStall:     {later: "events of the token clock"},
	semconv.EventPreempted:      {later: "events of the token clock"},
	semconv.EventContentBlocked: {later: "events of the token clock"},

	semconv.EventGenAISignal: {by: "Tracer.RecordSignal", run: func(ctx context.Context, r *recording) {
		r.RecordSignal(genaitrace.ContextWith(ctx, genaitrace.RequestID("req-1")), genaitrace.Signal{
			Answer: genaitrace.Answer{Model: "m", ResponseID: "chatcmpl-1"},
			Type:   semconv.GenAISignalTypeLogitEntropy, Value: 1.5, UpperBound: new(2.0), SourceModel: "reward-7b",
		})
	}},
	semconv.EventGenAICompletion: {by: "Tracer.StartCall", run: completeCall(nil), without: []attribute.Key{
		semconv.GenAITokenCountKey, // the engine counts tokens, its caller chunks
		otelsemconv.ErrorTypeKey,
		semconv.GenAIContextHashKey, semconv.GenAIPromptChainKey, // of a prompt chain
	}},
	semconv.EventGenAIException: {by: "Inference.Fail", run: func(ctx context.Context, r *recording) {
		_, inf := r.StartInference(ctx, genaitrace.Request{})
		inf.Fail(typedError("device_lost"))
	}},
	"gen_ai.client.inference.operation.details": {by: "Call.SetInput", run: completeCall(nil), without: []attribute.Key{otelsemconv.ErrorTypeKey}},
	"gen_ai.client.inference.exception": {by: "Call.Fail", run: completeCall(typedError("device_lost")), without: []attribute.Key{
		otelsemconv.ExceptionStacktraceKey,
	}},
	"gen_ai.execute_tool.exception": {by: "Tracer.StartTool", run: func(ctx context.Context, r *recording) {
		_, tool := r.StartTool(ctx, genaitrace.ToolCall{Name: "clock"})
		tool.Fail(typedError("device_lost"))
	}, without: []attribute.Key{otelsemconv.ExceptionStacktraceKey}},
	semconv.EventGenAIToolCall: {by: "Tracer.StartTool", run: func(ctx context.Context, r *recording) {
		ctx, run := r.StartAgent(ctx, genaitrace.Agent{Name: "weather"})
		_, tool := r.StartTool(ctx, genaitrace.ToolCall{Name: "clock", CallID: "call_1", Type: "function"})
		tool.SetArguments(`{"zone":"UTC"}`)
		tool.SetResult(map[string]any{"hour": 12})
		tool.End()
		run.End()
	}, without: []attribute.Key{otelsemconv.ErrorTypeKey}},
	"gen_ai.evaluation.result": {by: "Tracer.RecordEvaluation", run: func(ctx context.Context, r *recording) {
		r.RecordEvaluation(ctx, genaitrace.EvaluationResult{
			Answer: genaitrace.Answer{ResponseID: "chatcmpl-1"}, Name: "Relevance", Score: new(0.5), Label: "pass", Explanation: "to the point",
		})
	}, without: []attribute.Key{otelsemconv.ErrorTypeKey}},
}

// completeCall is a streamed call of which everything is known, content included.
func completeCall(err error) func(context.Context, *recording) {
	return func(ctx context.Context, r *recording) {
		ctx = genaitrace.ContextWith(ctx, genaitrace.ConversationID("c-1"), genaitrace.RequestID("req-1"))
		_, call := r.StartCall(ctx, everyFact())
		messages := everyInput().Messages
		facts := r.DescribePrompt(genaitrace.PromptText{Messages: messages, Tokens: 17})
		facts.Name, facts.Version = "support", "v3"
		call.SetPrompt(facts)
		call.SetInput(everyInput())
		for range 3 {
			time.Sleep(time.Millisecond)
			call.Chunk(genaitrace.Visible)
		}
		call.SetOutput(messages)
		call.SetUsage(fullUsage())
		call.SetFinish("stop")
		call.SetResponse("chatcmpl-1", "qwen2.5-7b-instruct-awq")
		call.EarlyStop(semconv.GenAIEarlyStopReasonUser)
		call.ContentBlocked("pii", "privacy")
		finish(call, err)
	}
}

// finish ends a handle with err, if any.
func finish(h ender, err error) {
	if err != nil {
		h.Fail(err)
		return
	}
	h.End()
}

// Reasons why a key is not recorded.
const (
	bySetAttributes = "rare: for SetAttributes of the handle"
	ofEngine        = "a time by the engine's own account"
	ofTemplate      = "what is filled into a template is never written"
	ofOther         = "stands on another span"
)

// pairings pairs every span of the registry, but for aliases and deprecated ones,
// with what records it.
var pairings = map[string]pairing{
	semconv.SpanGatewayRequest: {by: "Tracer.StartGateway", name: "POST /v1/chat/completions", run: func(ctx context.Context, r *recording, err error) {
		ctx, gateway := r.StartGateway(ctx, genaitrace.GatewayRequest{Name: "POST /v1/chat/completions"})
		_, wait := r.StartRateLimit(ctx)
		wait.End()
		gateway.Chunk(genaitrace.Visible)
		finish(gateway, err)
	}, facts: []genaitrace.Fact{genaitrace.RequestID("req-1")}},
	semconv.SpanAuthValidateToken: {by: "Tracer.StartAuth", name: "auth.validate_token", run: func(ctx context.Context, r *recording, err error) {
		_, auth := r.StartAuth(ctx)
		finish(auth, err)
	}},
	semconv.SpanGatewayRoute: {by: "Tracer.StartRoute", name: "gateway.route", run: func(ctx context.Context, r *recording, err error) {
		_, route := r.StartRoute(ctx, "qwen2.5-7b-instruct")
		route.SetBackend("vllm")
		finish(route, err)
	}},
	semconv.SpanGatewayRatelimit: {by: "Tracer.StartRateLimit", name: "gateway.ratelimit", run: func(ctx context.Context, r *recording, err error) {
		_, wait := r.StartRateLimit(ctx)
		finish(wait, err)
	}, facts: []genaitrace.Fact{genaitrace.TenantID("acme")}},
	semconv.SpanGatewayCache: {by: "Tracer.StartCache", name: "gateway.cache", run: func(ctx context.Context, r *recording, err error) {
		_, lookup := r.StartCache(ctx)
		lookup.SetHit(false)
		finish(lookup, err)
	}},
	semconv.SpanPromptRender: {by: "Tracer.StartTemplate", name: "prompt.render", run: func(ctx context.Context, r *recording, err error) {
		_, render := r.StartTemplate(ctx, genaitrace.Template{Name: "support", Version: "v3"})
		render.SetPrompt(everyPromptFact())
		finish(render, err)
	}},

	semconv.SpanInferenceGenerate: {by: "Tracer.StartInference", name: "inference.generate", run: func(ctx context.Context, r *recording, err error) {
		inf := everyPhase(ctx, r)
		inf.SetPrompt(everyPromptFact())
		inf.SetInput(everyInput())
		inf.SetOutput(everyInput().Messages)
		finish(inf, err)
	}, without: map[string][]attribute.Key{
		ofEngine: {
			semconv.LLMQueueWaitMsKey, semconv.AIPrefillDurationMsKey, semconv.AIDecodeDurationMsKey, semconv.AILoadDurationMsKey,
			semconv.GenAITTFTLoadMsKey, semconv.GenAITTFTPreemptedMsKey, "genai.preemption.*", "genai.timing.*", semconv.GenAIFirstVisibleMsKey,
		},
		"only of a request that its caller left": {semconv.GenAIStreamTerminalKey},
		"only of an embeddings request":          {genaiconv.EmbeddingsDimensionCountKey, genaiconv.RequestEncodingFormatsKey},
		"only of a prompt chain":                 {semconv.GenAIPromptChainKey, semconv.GenAIContextHashKey},
		"only where there were too many":         {semconv.GenAISpanDroppedCountKey},
		ofOther:                                  {semconv.GenAITokenizerHashKey},
	}},
	semconv.SpanInferencePreprocess:  phasePairing("Inference.StartPreprocess", semconv.SpanInferencePreprocess),
	semconv.SpanQueueWait:            inContext(phasePairing("Inference.StartQueue", semconv.SpanQueueWait), genaitrace.RequestID("req-1")),
	semconv.SpanSchedulerDispatch:    phasePairing("Inference.StartSchedule", semconv.SpanSchedulerDispatch, semconv.GenAIStepIDKey),
	semconv.SpanTokenizerEncode:      phasePairing("Inference.StartTokenize", semconv.SpanTokenizerEncode),
	semconv.SpanInferencePrefill:     phasePairing("Inference.StartPrefill", semconv.SpanInferencePrefill),
	semconv.SpanModelForward:         phasePairing("Phase.StartForward", semconv.SpanModelForward),
	semconv.SpanDeviceKernel:         phasePairing("Phase.StartKernel", semconv.SpanDeviceKernel),
	semconv.SpanInferenceDecode:      phasePairing("Inference.StartDecode", semconv.SpanInferenceDecode, semconv.GenAIStallCountKey),
	semconv.SpanInferencePostprocess: phasePairing("Inference.StartPostprocess", semconv.SpanInferencePostprocess),
	semconv.SpanModelLoad:            {later: "what the engine reports of its phases"},
	semconv.SpanInferenceBatch:       {later: "batches"},

	"gen_ai.client.inference": callPairing(genaiconv.OperationNameChat, "chat qwen2.5-7b-instruct"),
	"gen_ai.client.embeddings": {by: "Tracer.StartCall", name: "embeddings bge-m3", run: func(ctx context.Context, r *recording, err error) {
		_, call := r.StartCall(ctx, genaitrace.Request{
			Operation: genaiconv.OperationNameEmbeddings, Provider: "vllm", Model: "bge-m3", Dimensions: 1024, Inputs: 64,
			EncodingFormats: []string{"float", "base64"}, ServerAddress: "gpu-7.internal", ServerPort: 8000,
		})
		call.SetUsage(genaitrace.Usage{InputTokens: new(17)})
		call.SetResponse("", "bge-m3")
		finish(call, err)
	}},
	"gen_ai.fetch_response.client": {by: "Tracer.StartCall", name: "fetch_response", run: func(ctx context.Context, r *recording, err error) {
		_, call := r.StartCall(ctx, genaitrace.Request{
			Operation: genaiconv.OperationNameFetchResponse, Provider: "openai", Stream: true,
			ServerAddress: "api.openai.com", ServerPort: 443,
		})
		call.SetAttributes(genaiconv.RequestStreamCursor("17"), genaiconv.ResponseStatus(genaiconv.ResponseStatusCompleted))
		call.SetResponse("resp_1", "gpt-5")
		call.SetInput(genaitrace.Input{Instructions: everyInput().Instructions, Tools: everyInput().Tools})
		call.SetOutput(everyInput().Messages)
		call.SetFinish("stop")
		finish(call, err)
	}},

	"openai.gen_ai.client.inference":                   {later: "what a dialect adds to gen_ai.client.inference"},
	"openai.fetch_response.client":                     {later: "what a dialect adds to gen_ai.fetch_response.client"},
	"azure.ai.gen_ai.client.inference":                 {later: "what a dialect adds to gen_ai.client.inference"},
	"anthropic.gen_ai.client.inference":                {later: "what a dialect adds to gen_ai.client.inference"},
	"aws.bedrock.gen_ai.client.inference":              {later: "what a dialect adds to gen_ai.client.inference"},
	"gen_ai.retrieval":                                 retrievalPairing(),
	semconv.SpanRAGRerank:                              rerankPairing(),
	"gen_ai.memory.client":                             memoryPairing(),
	"gen_ai.create_agent.client":                       createAgentPairing(),
	"gen_ai.invoke_agent.client":                       remoteAgentPairing(),
	"gen_ai.invoke_agent.internal":                     agentPairing(),
	"gen_ai.plan.internal":                             planPairing(),
	"gen_ai.execute_tool":                              toolPairing(),
	"gen_ai.execute_tool.load_skill.internal":          {later: "what a tool adds to gen_ai.execute_tool"},
	"gen_ai.execute_tool.read_skill_resource.internal": {later: "what a tool adds to gen_ai.execute_tool"},
	"gen_ai.execute_tool.command.internal":             {later: "what a tool adds to gen_ai.execute_tool"},
	semconv.SpanGuardrailCheck:                         guardrailPairing(),
	semconv.SpanEvaluationRun:                          evaluationPairing(),
	"mcp.client":                                       {later: "adapters/mcp, a module of its own"},
	"mcp.server":                                       {later: "adapters/mcp, a module of its own"},
}

// callPairing is one model call as its caller sees it.
func callPairing(operation genaiconv.OperationNameAttr, name string) pairing {
	return pairing{by: "Tracer.StartCall", name: name, run: func(ctx context.Context, r *recording, err error) {
		req := everyFact()
		req.Operation = operation
		_, call := r.StartCall(ctx, req)
		call.Chunk(genaitrace.Visible)
		call.SetUsage(fullUsage())
		call.SetFinish("stop")
		call.SetResponse("chatcmpl-1", "qwen2.5-7b-instruct-awq")
		call.SetInput(everyInput())
		call.SetOutput(everyInput().Messages)
		finish(call, err)
	}, facts: []genaitrace.Fact{
		genaitrace.ConversationID("c-1"), genaitrace.PromptName("support"), genaitrace.PromptVersion("v3"),
	}, without: map[string][]attribute.Key{
		bySetAttributes: {
			genaiconv.ConversationCompactedKey, genaiconv.RequestStopSequencesKey,
			"gen_ai.usage.text.*", "gen_ai.usage.image.*", "gen_ai.usage.audio.*",
		},
		ofTemplate: {genaiconv.PromptVariableKey},
	}}
}

// phasePairing is a phase, of an inference with every phase.
func phasePairing(by, name string, unrecorded ...attribute.Key) pairing {
	return pairing{by: by, name: name, run: func(ctx context.Context, r *recording, err error) {
		inf := everyPhase(ctx, r, openPhase{name, err})
		inf.End()
	}, without: map[string][]attribute.Key{
		ofEngine:        {"genai.timing.*"},
		bySetAttributes: unrecorded,
	}}
}

// inContext adds facts of the context.
func inContext(p pairing, facts ...genaitrace.Fact) pairing {
	p.facts = facts
	return p
}

// everyFact is a request of which everything is known.
func everyFact() genaitrace.Request {
	req := fullRequest()
	req.TopK, req.Seed, req.Choices, req.OutputType = new(40), new(0), 2, genaiconv.OutputTypeText
	req.FrequencyPenalty, req.PresencePenalty = new(0.0), new(0.5)
	req.ReasoningLevel, req.PreviousResponseID = "low", "resp_0"
	return req
}

// everyInput is content of every kind.
func everyInput() genaitrace.Input {
	return genaitrace.Input{
		Instructions: genaiconv.Parts{genaiconv.TextPart{Content: "Be brief."}},
		Messages:     []genaiconv.Message{say(genaiconv.RoleUser, "hello")},
		Tools:        []genaiconv.ToolDefinition{{Name: "clock"}},
	}
}

func everyPromptFact() genaitrace.PromptFacts {
	return genaitrace.PromptFacts{
		Hash: "b7c4e19f02ad5310", Roles: []string{"system", "user"}, LengthBucket: "1k-4k", EntropyBucket: "4-5",
		TemplateDepth: 2, PlaceholderDensity: new(0.15), ReferenceSpan: new(0.6),
	}
}

type openPhase struct {
	name string
	err  error
}

// everyPhase is an inference with every phase, each with every fact; those that
// fail do so with their error.
func everyPhase(ctx context.Context, r *recording, failing ...openPhase) *genaitrace.Inference {
	end := func(h ender, name string) {
		time.Sleep(time.Millisecond)
		for _, f := range failing {
			if f.name == name {
				finish(h, f.err)
			}
		}
		h.End()
	}
	resources := genaitrace.Resources{
		BatchSize: new(16), BlocksAllocated: new(154), BlocksFreed: new(0), BlocksEvicted: new(12),
		DeviceAllocated: new(17 << 30), DeviceReserved: new(34 << 30), DeviceMaxReserved: new(64 << 30),
		HeapUsedRatio: new(0.7), NativeAllocRate: new(5e7),
	}
	forward := genaitrace.Forward{StepID: new(1042), Tokens: 512, BatchSize: 16, DeviceID: new(0), TensorShape: []int{512, 4096}}

	ctx, inf := r.StartInference(ctx, everyFact())
	inf.SetEngine(genaitrace.Engine{
		Backend: "vllm", Quantization: "fp8", DecodingStrategy: "greedy", DeviceID: new(0), DeviceName: "NVIDIA H100",
	})
	_, pre := inf.StartPreprocess(ctx, "application/json")
	end(pre, semconv.SpanInferencePreprocess)
	_, queue := inf.StartQueue(ctx)
	end(queue, semconv.SpanQueueWait)
	_, tokenize := inf.StartTokenize(ctx)
	tokenize.SetInputTokens(2456)
	_ = inf.CheckTokenizer(nil, "qwen2.5-7b-instruct", "9f2c41d07be3a685")
	end(tokenize, semconv.SpanTokenizerEncode)
	_, schedule := inf.StartSchedule(ctx)
	schedule.SetResources(genaitrace.Resources{BatchSize: new(16), BlocksAllocated: new(154), BlocksFreed: new(0), BlocksEvicted: new(12)})
	end(schedule, semconv.SpanSchedulerDispatch)

	ctx, prefill := inf.StartPrefill(ctx, genaitrace.Prompt{Tokens: 2456, Cached: new(0)})
	prefill.SetResources(resources)
	prefill.RecordStep(fullStep())
	_, pass := prefill.StartForward(ctx, forward)
	pass.SetResources(resources)
	_, kernel := pass.StartKernel(ctx, genaitrace.Kernel{Name: "paged_attention_v2", StepID: new(1042), DeviceID: new(0), StreamID: new(7)})
	end(kernel, semconv.SpanDeviceKernel)
	end(pass, semconv.SpanModelForward)
	end(prefill, semconv.SpanInferencePrefill)

	ctx, decode := inf.StartDecode(ctx)
	decode.SetResources(resources)
	for range 3 {
		time.Sleep(time.Millisecond)
		decode.Token()
		decode.RecordStep(fullStep())
	}
	end(decode, semconv.SpanInferenceDecode)
	_, post := inf.StartPostprocess(ctx)
	post.SetOutcome(genaitrace.Outcome{
		RulesHit: []string{"strip-markdown"}, SafetyLabel: "self-harm", FormatValid: new(true), RefusalReason: "policy",
	})
	end(post, semconv.SpanInferencePostprocess)
	inf.SetUsage(fullUsage())
	inf.SetFinish("stop")
	inf.SetResponse("chatcmpl-1", "qwen2.5-7b-instruct-awq")
	return inf
}

func fullStep() genaitrace.Step {
	return genaitrace.Step{
		ID: new(1042), StreamID: new(7), Position: new(0),
		Kernel: new(1800 * time.Microsecond), KVCache: new(600 * time.Microsecond), TokenizerWait: new(time.Duration(0)),
	}
}
