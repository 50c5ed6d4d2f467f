// Package semconv holds the house vocabulary: the words for what an inference
// service does that the official OpenTelemetry text has no name for, such as
// the time to the first token as the service sees it, the wait for the
// scheduler and the KV cache.
//
// Each key is a constant and a function that takes a value of the right type.
// The official keys are in packages genaiconv and mcpconv. Keys of the general
// conventions, such as error.type and server.address, are known to look-ups and
// have no constants here: go.opentelemetry.io/otel/semconv has those.
//
//	span.SetAttributes(
//		semconv.GenAISpanRole(semconv.GenAISpanRolePrefill),
//		semconv.AIPrefillDurationMs(120.25),
//		semconv.AIKVCacheHitRatio(0.42),
//	)
//	span.AddEvent(semconv.EventFirstToken, trace.WithAttributes(
//		semconv.LLMTTFTMs(350),
//	))
//
//	ttft, err := semconv.NewGenAITimeToFirstToken(meter)
//	ttft.Record(ctx, 0.35, ttft.AttrGenAIRequestModel("qwen2.5-7b-instruct"))
//
// The package also answers questions about any name, official, general, house,
// another spelling or deprecated: its type and unit, what it stands for and
// which attributes a span, a metric or an event should carry.
//
//	a, ok := semconv.Lookup("llm.prompt.tokens") // a.AliasOf is ai.tokens.input
//	span, ok := semconv.LookupSpan("gen_ai.client.inference")
//	keys := semconv.Suggest("gen_ai.usage.inputtokens")
//	advice, ok := semconv.Instead("model.latency_ms") // no key: the duration of its span
//
// A name that ends in Ms takes milliseconds as float64; metrics of time are in
// seconds. Enums are open: where no constant fits, convert any string.
//
// The words are generated from the files in registry; their format is described
// in internal/registrygen, and docs/vocabulary.md lists them. The package never
// declares a key of the official gen_ai namespace, never records anything by
// itself and never needs the SDK. Its tables are data of the binary: nothing
// runs when it is imported.
package semconv

//go:generate go run ./internal/registrygen
