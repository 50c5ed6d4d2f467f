// Package sampling decides which traces are worth exporting after they have
// happened: every failed, slow or strange request whole, a fair share of the rest.
//
//	tail, err := sampling.NewTail(exporter, sampling.Any(
//		sampling.Errors(),
//		sampling.Slow(3*time.Second),
//		sampling.Baseline(0.05),
//	))
//	if err != nil {
//		return err
//	}
//	tp := sdktrace.NewTracerProvider(tail.ProviderOptions()...)
//	defer tp.Shutdown(ctx)
//	defer tail.Shutdown(ctx) // before the provider, see Tail.Shutdown
//	otel.SetTracerProvider(tp)
//
// A [Tail] is the sampler and the span processor of a provider of the
// OpenTelemetry SDK. It lets every span be recorded, holds the ended spans of each
// trace, asks a [Policy] once the spans of this process are complete, and exports
// the trace or forgets it. It works for any service, whatever makes its spans.
//
// # What is kept together
//
// The unit is the local trace: the spans that this process has of one trace. It is
// exported whole or not at all. As soon as its fate is certain (a span failed, or
// the trace has lasted longer than the limit), what is held goes out and later spans
// follow as they end, so a stream of one minute holds a few seconds of spans. When
// all of its spans have ended, the trace is judged at once; when its local roots have
// ended and others have not, after [Limits].Linger. Spans that come later follow
// the decision while any span of the trace is open. A part of a trace that starts
// after that is judged as a trace of its own, unless the earlier part was kept.
//
// # Several processes
//
// Each process decides for itself. It tells its callees when the request began, from
// which their [Slow] counts, and that a trace is certain to be kept, once it is (see
// [Head] and [Tail.Sampler]). Callees tell what they keep in their answers, and the
// caller follows, where middleware calls [Tail.Promise] and [Tail.CalleeResponded]: that
// of this module does by its option WithTailSampler. What happens in a caller after its
// callee has answered cannot keep the callee's part.
//
// Where traces must be judged by what all services saw of them, [CollectorConfig] writes
// the configuration of Collectors from the same policy.
//
// # Counts stay true
//
// Chance is decided by the trace ID alone, as OpenTelemetry's consistent probability
// sampling has it: with R the 56 lowest bits of the trace ID (or the rv of the
// tracestate) and T = (1-p)*2^56, a trace is kept if R >= T. Services that use the
// same rule keep the same traces. Every policy yields such a T, 0 where nothing is
// left to chance, and the T by which a span was kept is exported with it as
// tracestate "ot=th:...": a span stands for 2^56/(2^56-T) spans. Traces kept by [Tail.Keep]
// have no known probability and carry no th.
//
// # Bounds
//
// Memory is bounded in bytes ([Limits]); what is given up is counted (metrics
// genai.sampling.*) and, where a trace is exported all the same, its local
// roots say how many spans are missing (genai.sampling.truncated). Nothing ever
// blocks the code that ends a span. There are two goroutines a Tail, one that
// exports and one that ages traces, and one for the functions of
// [WithCustom] and [WithMemoryPressure] each; [Tail.Shutdown] ends them.
//
// # Metrics of all requests
//
// With a meter provider, the duration and the time to first token of every local
// root are recorded, kept or not. Exemplars of these point at kept traces only:
// they are recorded once the decision is known. For instruments of your own,
// pass [Tail.Kept] to the SDK's metric.WithExemplarFilter.
package sampling
