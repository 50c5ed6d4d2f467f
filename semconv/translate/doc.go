// Package translate turns telemetry of generative AI from one vocabulary into
// another: from what instrumentations write into what a dashboard reads.
//
//	tr, err := translate.New(translate.OpenInference, translate.Standard)
//	if err != nil {
//		return err
//	}
//	exporter = translate.NewSpanExporter(exporter, tr)
//	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter))
//	…
//	for _, f := range tr.Report().Findings {
//		log.Printf("%s: %s (%d times)", f.Key, f.Reason, f.Count)
//	}
//
// [Translator.Attributes], [Translator.Span] and [Translator.Metrics] do the
// same without an exporter.
//
// What is known of a vocabulary is data: a JSON file in the folder
// vocabularies, one row a key. [Named] gives any of them, such as "openllmetry",
// "langfuse" or "envoy-ai-gateway", and [Parse] reads a further one.
//
// The rules:
//
//   - Units are converted, types are converted if the new one holds exactly the
//     same, and members of an enumeration are renamed. A duration in whole
//     nanoseconds survives the way there and back bit by bit.
//   - Nothing is guessed. A key without an equivalent, a value that may mean
//     several things and a value that does not fit are kept as they are and
//     counted in the [Report].
//   - Nothing is lost. An attribute is dropped only if another one says the
//     same under the target's key; where the target says less, both are kept.
//   - One spelling may have several meanings. The prefill time that vLLM calls
//     gen_ai.latency.time_in_model_prefill starts when the request is scheduled;
//     SGLang's has the queue in it, so it has no equivalent and becomes
//     sglang.gen_ai.latency.time_in_model_prefill where vLLM's would be read.
//   - A count of input tokens is renamed and never recomputed. Standard's has
//     the tokens read from a cache in it; an older instrumentation that left
//     them out cannot be told from one that did not.
//   - Messages that OpenInference and OpenLLMetry flatten into one attribute a
//     field become gen_ai.input.messages and gen_ai.output.messages, as JSON, and
//     the other way round. A list with anything that the target has no place
//     for, such as a picture, is kept as a whole. The arguments of a tool come
//     back as the same JSON, without spaces.
//
// Spans (with their events and links) and metrics are translated; log records
// and resources are not. The package never drops a span or a point, never
// blocks, starts no goroutine and never sets a global.
package translate
