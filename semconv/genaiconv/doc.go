// Package genaiconv holds the official vocabulary: attributes, enums, metric
// instruments and the names of spans, events and entities of the OpenTelemetry
// GenAI conventions, release v0.1.0, with the keys of OpenAI and Amazon Bedrock
// that belong to them.
//
// Each key is a constant and a function that takes a value of the right type.
// Each metric is a type with a function that makes it, with the unit and the
// bucket boundaries of the convention; what the convention requires is a
// parameter when a value is recorded.
//
//	span.SetAttributes(
//		genaiconv.OperationName(genaiconv.OperationNameChat),
//		genaiconv.ProviderName("vllm"), // no constant: any string will do
//		genaiconv.RequestModel("qwen2.5-7b-instruct"),
//		genaiconv.UsageInputTokens(19),
//		genaiconv.UsageOutputTokens(42),
//	)
//
//	duration, err := genaiconv.NewClientInferenceDuration(meter)
//	duration.Record(ctx, 1.25, genaiconv.OperationNameChat, "vllm",
//		duration.AttrRequestModel("qwen2.5-7b-instruct"))
//
// Messages, tool definitions and documents have types of their own, such as
// [Message], which marshal to the JSON of the convention.
//
// The whole vocabulary is in development and may change with a later release;
// a key that leaves the text stays here as a deprecated constant.
//
// # What is not known of v0.1.0
//
// The full text of the release could not be had. Its changelog, its tables of
// contents and the text before it could, and every difference that they tell is
// applied here. These are taken over from the text before, and may differ:
//
//   - the types of the client spans of create_agent and invoke_agent, and of the
//     spans of memory, plan and fetch_response, with all refinements for one
//     provider or tool; a metric for client-side invoke_agent is left out
//   - the attributes of the spans gen_ai.retrieval and gen_ai.execute_tool, of
//     the metrics gen_ai.retrieval.duration and gen_ai.invoke_agent.duration,
//     and of the events gen_ai.client.inference.exception and
//     gen_ai.execute_tool.exception; level and attributes of the event
//     gen_ai.evaluation.result; exception events of other operations are left
//     out, as none was seen
//   - the bucket boundaries of gen_ai.retrieval.duration
//
// Comments say "not seen" where this applies, and the look-up tables of package
// semconv have it in Unseen.
//
// The package has no schema URL, because none is known for this release:
// nothing that uses these keys should claim one. Nor does it hold the keys of
// the general conventions, such as server.address and error.type; they are in
// go.opentelemetry.io/otel/semconv. It never invents a gen_ai key, and it is
// generated from semconv/registry/gen_ai.yaml.
package genaiconv
