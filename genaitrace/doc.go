// Package genaitrace records what one request to a generative model does, as
// spans, metrics and log records of OpenTelemetry: in the process that runs the model each
// phase from the queue to the last token, at its caller and in a gateway the
// stream as it arrives.
//
//	tr := genaitrace.New() // or WithTracerProvider, WithMeterProvider, WithLoggerProvider
//
//	func (s *Server) Generate(ctx context.Context, prompt []int) (err error) {
//		ctx, inf := tr.StartInference(ctx, genaitrace.Request{Model: "qwen2.5-7b-instruct", Stream: true})
//		defer inf.EndErr(&err) // ends open phases too, and lets a panic pass
//		_, prefill := inf.StartPrefill(ctx, genaitrace.Prompt{Tokens: len(prompt)})
//		tokens := s.model.Prefill(prompt)
//		prefill.End()
//		_, decode := inf.StartDecode(ctx)
//		for range tokens {
//			decode.Token() // the first one fixes the time to first token
//		}
//		return nil
//	}
//
// [Tracer.StartInference] is for the process that runs the model. Its phases
// (preprocess, queue, load, tokenize, schedule, prefill, decode, postprocess) are
// children of its span whatever span their context carries, and forward passes
// and kernels ([Phase.StartForward], [Phase.StartKernel]) those of their phase.
// [Tracer.StartCall] is for whoever calls a model, [Tracer.StartGateway] for the
// entry of a service that does; what that does before its call is an [Operation]:
// [Tracer.StartAuth], [Tracer.StartRateLimit], [Tracer.StartTemplate],
// [Tracer.StartCache], [Tracer.StartRoute]. So are searches, tools and agents:
// [Tracer.StartRetrieval], [Tracer.StartRerank], [Tracer.StartTool], [Tracer.StartAgent],
// [Tracer.StartWorkflow], [Tracer.StartPlan], [Tracer.StartMemory],
// [Tracer.StartGuardrail], [Tracer.StartEvaluation]. A [Group] runs such work on
// goroutines and keeps it in the trace. Every handle ends once, the first end
// wins, and all methods of a nil handle do nothing: that is what Start returns
// where neither span, metric nor log record would come of it.
//
// What only the engine knows is set in structs whose nil fields are unknown, so
// that a known 0 can be said: [Prompt], [Usage], [Engine], [Resources], [Outcome],
// [Step]. [Inference.CheckTokenizer] finds a tokenizer that belongs to another
// model.
//
// Streams need no loop of their own: [RangeChunks], [ReceiveChunks] and
// [ReadChunks] wrap a caller's, [RangeTokens] and [ReceiveTokens] an engine's, and
// end what they record however the stream dies; [Do] wraps a call with one answer.
// [ContextWith] says once what is true of all spans below: tenant, conversation,
// prompt version. [WithProfileLabels] splits a CPU profile by phase.
//
// Phases that only the engine saw come from its own account, after the fact
// ([Inference.RecordPhases], [Call.RecordPhases]). [Inference.Preempt] keeps apart
// what an engine does that puts requests aside, [Tracer.StartBatch] records
// requests that run together.
//
// # The times
//
// Each time has one definition, is measured by the process that writes it, and
// is the same number on attribute, event and histogram. An unknown time is
// absent, never 0.
//
//	arrival           the request reached this process, or what Request.Arrived says
//	queue wait        StartQueue → its end                           llm.queue_wait_ms
//	prefill           StartPrefill → its end                         ai.prefill.duration_ms
//	TTFT              arrival → first generated output               llm.ttft_ms
//	  its parts       queue, load, tokenize, schedule, prefill,      genai.ttft.*_ms
//	                  emit, preempted and what no phase covers;
//	                  they sum up to it
//	from the start    first prefill starts → first output            ai.first_token.duration_ms
//	last token        arrival → last generated output                genai.last_token_ms
//	first chunk       request sent → first data event                gen_ai.response.time_to_first_chunk
//	                  (at a gateway from its arrival)                ai.response.delay_ms
//	first visible     arrival → first answer text, where reasoning   genai.first_visible_ms
//	                  was told apart from it
//	per output token  (last token − first token) / (tokens − 1),     gen_ai.server.time_per_output_token
//	                  of each answer where there are several
//
// House keys are float64 milliseconds, metrics are seconds, and inside all is
// integer nanoseconds of the monotonic clock. A span starts and ends at the very
// readings of that clock that its attributes and histograms come from, so that what
// can be computed from spans and events alone is the same number too. (Phases and
// operations take the start that the SDK tells of their span.) A chunk is not a token:
// nothing derives one from the other.
//
// A token costs one reading of the clock and no event. When its phase ends, the
// times of all tokens go into one attribute of at most 2,000 characters, which
// [DecodeTimeline] reads, and pauses that are long for their stream become events
// ([WithStallThreshold]). [WithTokenEvents] asks for an event a token all the same.
// Without it no span of this package has more than 100 events.
//
// # The metrics
//
// They are recorded also where the span is not sampled, with the span's context, so
// that a histogram's exemplar leads to the trace. Nothing records what is unknown.
//
//	in the process that runs the model   gen_ai.server.request.duration, .time_to_first_token, .time_per_output_token
//	                                     genai.queue.wait, genai.prefill.duration, genai.decode.duration: one value a phase
//	                                     genai.tokens, genai.token.rate, genai.token.stalls, genai.kv_cache.hit_ratio
//	                                     genai.batch.size
//	at its caller                        gen_ai.client.inference.duration, .time_to_first_chunk, .time_per_output_chunk
//	                                     gen_ai.client.inference.usage.*, .operation.input_tokens, .operation.output_tokens
//	                                     genai.time_to_first_token, genai.active_calls
//	in a gateway                         genai.time_to_first_token
//	where requests are served            genai.active_requests
//	where tools and agents run           gen_ai.execute_tool.duration, gen_ai.retrieval.duration
//	                                     gen_ai.invoke_agent.duration, .inference_calls, .tool_calls
//	                                     gen_ai.client.operation.duration of what runs elsewhere
//	                                     genai.guardrail.decisions, genai.evaluations
//	about answers                        genai.signal.values, genai.signal.checks, genai.signal.hits
//
// The token rate is (tokens − 1) / (last token − first token), of all answers together.
// [WithMetricDimensions] adds dimensions.
//
// # The log records
//
// Each belongs to its span, and comes where the LoggerProvider takes it; else it costs
// nothing. They are written when what they tell of is over.
//
//	genai.completion                             one answer: which prompt, how it streamed, why it stopped, what held it back
//	gen_ai.client.inference.operation.details    a call with its content, where the policy puts that on events
//	genai.tool_call                              the same of a tool
//	gen_ai.client.inference.exception            a call that failed: the type, by policy message and stack
//	gen_ai.execute_tool.exception                the same of a tool
//	genai.exception                              the same of an inference, and of any other operation
//	gen_ai.evaluation.result                     a judgement ([Tracer.RecordEvaluation], [Tracer.RecordVerdict], [Evaluation])
//	genai.signal                                 a measurement ([Tracer.RecordSignal], [Tracer.RecordLogprobs])
//
// # Prompts and content
//
// [Tracer.DescribePrompt] tells of a prompt what those may know who may not read it:
// the template, roles, ranges of length and entropy, shares of what was filled in, and,
// with [WithHashKey], a keyed hash. A prompt chain of package propagation goes on
// through StartCall and StartInference: the span links to what caused it, and is the
// next hop.
//
// Content is written only where somebody turned it on, [WithContent], and gave it to a
// handle: [Call.SetInput], [Call.SetOutput], [Tool.SetArguments]. Package content has
// the levels and the redactors. What was said closest to the request counts:
// [ContextWithContent], then the Tracer's option, then the environment variable
// OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT.
//
// # What it never does
//
// It sets no global and starts no goroutine but for the tasks of a [Group]. By default
// it reads no prompt and no output, no content and no message of an error is written,
// and a stack only by [WithStackTraces]. Strings from the wire are
// cut and made valid UTF-8, and values that a caller can choose become a metric
// dimension only until there are 100 of them. Wrong input (negative counts, times
// before their start) is dropped, counted in genai.telemetry.faults and reported
// once a kind through [otel.Handle].
package genaitrace
