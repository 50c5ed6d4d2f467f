// Package semconv holds the house vocabulary: the words for what an inference
// service does that the official OpenTelemetry text has no name for, such as
// the time to the first token as the service sees it, the wait for the
// scheduler and the KV cache.
//
// Each key is a constant and a function that takes a value of the right type.
// The official keys are in package genaiconv.
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
//
// A name that ends in Ms takes milliseconds as float64; metrics of time are in
// seconds. Enums are open: where no constant fits, convert any string.
//
// The words are generated from registry/house.yaml; its format is described in
// internal/registrygen. The package never declares a key of the official
// gen_ai namespace, never records anything by itself and never needs the SDK.
package semconv

//go:generate go run ./internal/registrygen
