// Package deferred has the sampler that acts on what callers say of sampling beyond
// the sampled flag, which package propagation reads and keeps in the context:
//
//	sampler := deferred.NewSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(0.05)))
//	provider := sdktrace.NewTracerProvider(sdktrace.WithSampler(sampler))
//
// Without it a trace context that has no sampled flag counts as one that is not
// sampled, and a b3 denial as the absence of a caller.
package deferred
