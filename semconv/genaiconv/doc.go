// Package genaiconv holds the official vocabulary as far as this library
// writes it: attributes and metrics of the OpenTelemetry GenAI conventions,
// release v0.1.0.
//
// Each key is a constant and a function that takes a value of the right type.
// Each metric has a function that makes its instrument with the unit and the
// bucket boundaries of the convention.
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
//
// The whole vocabulary is in development and may change with a later release;
// a key that leaves the text stays here as a deprecated constant.
//
// The package has no schema URL, because none is known for this release:
// nothing that uses these keys should claim one. Nor does it hold the keys of
// the general conventions, such as server.address and error.type; they are in
// go.opentelemetry.io/otel/semconv. It never invents a gen_ai key, and it is
// generated from semconv/registry/gen_ai.yaml.
package genaiconv
