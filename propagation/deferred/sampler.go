package deferred

import (
	"sync"
	"sync/atomic"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/propagation"
)

// Sampler wraps another one, which decides whatever the caller left open:
//
//   - Denied: the request is dropped.
//   - Deferred: the wrapped sampler decides as for a root span, with the caller's
//     trace ID and tracestate.
//   - Sampled by a caller, but beyond [WithSampledLimit]: the same.
//   - Else the wrapped sampler decides as it would alone.
//
// It may be used by any number of goroutines.
type Sampler struct {
	base  sdktrace.Sampler
	limit *bucket // nil: callers may have as much recorded as they want

	limited atomic.Int64
}

var _ sdktrace.Sampler = (*Sampler)(nil)

// An Option configures a [Sampler].
type Option interface{ apply(*Sampler) }

type optionFunc func(*Sampler)

func (f optionFunc) apply(s *Sampler) { f(s) }

// WithSampledLimit bounds how many requests a second are recorded because the
// caller set the sampled flag. A burst of one second's worth passes. What is beyond is left to
// the wrapped sampler, as if the caller had deferred the decision. Default, and
// where perSecond is not positive: no limit. For callers that are strangers use
// [propagation.WithPublicEndpoint], which gives them no say at all.
func WithSampledLimit(perSecond int) Option {
	return optionFunc(func(s *Sampler) {
		s.limit = nil
		if perSecond > 0 {
			s.limit = &bucket{perSecond: float64(perSecond), tokens: float64(perSecond)}
		}
	})
}

// NewSampler returns a Sampler that wraps base. Where base is nil it is
// ParentBased(AlwaysSample), the default of the SDK.
func NewSampler(base sdktrace.Sampler, opts ...Option) *Sampler {
	if base == nil {
		base = sdktrace.ParentBased(sdktrace.AlwaysSample())
	}
	s := &Sampler{base: base}
	for _, o := range opts {
		if o != nil {
			o.apply(s)
		}
	}
	return s
}

// ShouldSample decides on a span.
func (s *Sampler) ShouldSample(p sdktrace.SamplingParameters) sdktrace.SamplingResult {
	parent := trace.SpanContextFromContext(p.ParentContext)
	said := propagation.SamplingFromContext(p.ParentContext)
	switch {
	case said == propagation.SamplingDenied:
		return sdktrace.SamplingResult{Decision: sdktrace.Drop, Tracestate: parent.TraceState()}
	case !parent.IsRemote() || !parent.IsValid():
		return s.base.ShouldSample(p)
	case said == propagation.SamplingDeferred:
		return s.asRoot(p, parent)
	case s.limit != nil && parent.IsSampled() && !s.limit.take(time.Now()):
		s.limited.Add(1)
		return s.asRoot(p, parent)
	default:
		return s.base.ShouldSample(p)
	}
}

// asRoot asks the wrapped sampler about a span without parent. Samplers take the
// tracestate from there, and hand it on.
func (s *Sampler) asRoot(p sdktrace.SamplingParameters, parent trace.SpanContext) sdktrace.SamplingResult {
	p.ParentContext = trace.ContextWithSpanContext(p.ParentContext,
		trace.NewSpanContext(trace.SpanContextConfig{TraceState: parent.TraceState()}))
	return s.base.ShouldSample(p)
}

// Limited returns how many sampled flags [WithSampledLimit] set aside so far.
func (s *Sampler) Limited() int64 { return s.limited.Load() }

// Description names the sampler.
func (s *Sampler) Description() string {
	return "Deferred{" + s.base.Description() + "}"
}

// A bucket gives out so many tokens a second, and up to that many at once.
type bucket struct {
	perSecond float64

	mu     sync.Mutex
	tokens float64
	filled time.Time
}

func (b *bucket) take(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.filled.IsZero() {
		b.tokens = min(b.perSecond, b.tokens+now.Sub(b.filled).Seconds()*b.perSecond)
	}
	b.filled = now
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}
