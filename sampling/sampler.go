package sampling

import (
	"context"
	"fmt"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// A Head says what services further down are told about a trace that starts here,
// by the sampled flag and the tracestate, before anybody knows how the trace ends. It
// does not change what is recorded here, which is everything. Whatever the head,
// spans that start once their trace is certain to be kept tell their callees so
// (sampled, with "genai=k:1").
type Head struct {
	ratio  float64
	always bool
	set    bool
}

// HeadCertain tells "sampled" where the policy is certain to keep the trace, such as
// for the traces of the [Baseline]. It is the default. What is told is true: those
// traces are kept here, and callees that follow their caller keep the same ones. They
// do not keep a trace for what happens later, unless they have a Tail with
// policies of their own.
func HeadCertain() Head { return Head{} }

// HeadRatio tells "sampled" for a share p of the traces, chosen by trace ID, and
// keeps these traces here whatever the policy says.
func HeadRatio(p float64) Head { return Head{ratio: p, set: true} }

// HeadAlways tells "sampled" for every trace. Callees that follow their caller then
// record and export everything, so that a Collector further on can decide, and
// pay for it; a trace dropped here lives on in pieces elsewhere. The SDK's
// default filter attaches exemplars of dropped traces, so pass [Tail.Kept] to
// metric.WithExemplarFilter.
func HeadAlways() Head { return Head{always: true, set: true} }

func (h Head) String() string {
	switch {
	case h.always:
		return "always"
	case h.set:
		return "ratio(" + number(h.ratio) + ")"
	default:
		return "certain"
	}
}

// Trust says which other processes may decide that a trace is kept here, callers by what
// comes with the request and callees by what comes with the response, and whose word on
// when a request began counts.
type Trust int

// Kinds of [Trust].
const (
	// TrustConsistent, the default, believes callers that sample consistently
	// (sampled, with an "ot=th:..." which the trace ID confirms), callers and callees
	// with a Tail that is certain (genai=k:1), and the start (genai=t:...). A plain
	// sampled flag says nothing: who samples everything sets it on everything.
	TrustConsistent Trust = iota
	// TrustSampled believes every sampled flag. One caller that samples everything
	// makes this process keep everything.
	TrustSampled
	// TrustNone believes nobody.
	TrustNone
)

// Sampler returns the sampler to use with t. It records every span, but for thinned
// out [Layers], and sets the sampled flag as the [Head] says. It is not
// wrapped in ParentBased: what a parent says is part of its decision.
//
// The first span of a request, which is the first one in its trace of kind server, client
// or consumer, tells the time in its tracestate ("genai=t:...", see propagation.Member).
// That reaches every process that the request comes to, and [Slow] and [SlowBy] count from
// then. Jobs and sessions, whose spans are internal, begin no request: each of their
// calls does. Nor does a producer; a message may wait, and the request begins with its
// consumer. A time is believed (see [Trust]) unless it is yet to come or more than an
// hour ago. The middleware of this module does not tell third
// parties; other middleware may.
func (t *Tail) Sampler() sdktrace.Sampler { return sampler{t} }

type sampler struct{ t *Tail }

func (s sampler) Description() string {
	return fmt.Sprintf("sampling.Tail{policy:%s,head:%s}", s.t.config.policy, s.t.config.head)
}

// ShouldSample implements [sdktrace.Sampler].
func (s sampler) ShouldSample(p sdktrace.SamplingParameters) sdktrace.SamplingResult {
	parent := trace.SpanContextFromContext(p.ParentContext)
	if !parent.IsValid() || parent.IsRemote() {
		return s.root(p, parent)
	}
	state := parent.TraceState()
	if parent.TraceID() == s.t.quiet {
		return sdktrace.SamplingResult{Decision: sdktrace.Drop, Tracestate: state}
	}
	if len(s.t.policy.layers) > 0 {
		var recorded bool
		if state, recorded = s.layer(&p, state); !recorded {
			return sdktrace.SamplingResult{Decision: sdktrace.Drop, Tracestate: state}
		}
	}
	if parent.IsSampled() {
		return sdktrace.SamplingResult{Decision: sdktrace.RecordAndSample, Tracestate: state}
	}
	if info, ok := s.t.table.shard(p.TraceID).cache.get(p.TraceID); ok {
		return sdktrace.SamplingResult{Decision: sdktrace.RecordAndSample, Tracestate: upgraded(state, info.t)}
	}
	return sdktrace.SamplingResult{Decision: sdktrace.RecordOnly, Tracestate: state}
}

// root decides about a local root.
func (s sampler) root(p sdktrace.SamplingParameters, parent trace.SpanContext) sdktrace.SamplingResult {
	h := s.t.head.Load()
	state := parent.TraceState()
	if parent.IsValid() {
		if info, ok := s.t.table.shard(p.TraceID).cache.get(p.TraceID); ok { // a call earlier in the trace
			state = setField(state, ourMember, layerField, "")
			return sdktrace.SamplingResult{Decision: sdktrace.RecordAndSample, Tracestate: upgraded(state, info.t)}
		}
	}
	if state.Len() == 0 && (!parent.IsSampled() || s.t.config.trust != TrustSampled) { // the common case
		if randomness(p.TraceID, "") >= h.told {
			return sdktrace.SamplingResult{Decision: sdktrace.RecordAndSample, Tracestate: withStart(h.state, p.Kind)}
		}
		return sdktrace.SamplingResult{Decision: sdktrace.RecordOnly, Tracestate: withStart(state, p.Kind)}
	}
	state = setField(state, ourMember, layerField, "")
	if s.t.config.trust == TrustNone || p.Kind == trace.SpanKindConsumer {
		state = setField(state, ourMember, startField, "")
	}
	r := randomness(p.TraceID, state.Get(otMember))
	told, certain := s.t.believe(parent, r)
	if r >= h.told {
		told = min(told, h.told)
	}
	mark, decision := "", sdktrace.RecordOnly
	if certain {
		mark = "1"
	}
	if certain || told != never {
		decision = sdktrace.RecordAndSample
	}
	state = withStart(setThreshold(setField(state, ourMember, keptField, mark), told), p.Kind)
	return sdktrace.SamplingResult{Decision: decision, Tracestate: state}
}

// believe returns the threshold by which a remote caller keeps the trace, never where
// it does not or is not believed, and whether the trace is certain to be kept
// all the same.
func (t *Tail) believe(caller trace.SpanContext, r uint64) (told threshold, certain bool) {
	if !caller.IsRemote() || !caller.IsSampled() || t.config.trust == TrustNone {
		return never, false
	}
	told, ok := parseThreshold(field(caller.TraceState().Get(otMember), "th"))
	if !ok || r < told {
		told = never
	}
	certain = t.config.trust == TrustSampled || field(caller.TraceState().Get(ourMember), keptField) == "1"
	if told == always && !certain {
		told = never // from a caller that samples everything
	}
	return told, certain
}

// upgraded is the tracestate of a span whose trace is certain to be kept.
func upgraded(state trace.TraceState, t threshold) trace.TraceState {
	return setThreshold(setField(state, ourMember, keptField, "1"), t)
}

// layer reports whether a span is recorded, given the layers that it and the spans
// above it belong to. The threshold of the finest one is in the tracestate.
func (s sampler) layer(p *sdktrace.SamplingParameters, state trace.TraceState) (trace.TraceState, bool) {
	t, _ := parseThreshold(field(state.Get(ourMember), layerField))
	own := t
	for i := range s.t.policy.layers {
		if l := &s.t.policy.layers[i]; l.threshold > own && l.selectsStart(p) {
			own = l.threshold
		}
	}
	if own > t {
		// A layer of share 0 has no digits of its own.
		state = setField(state, ourMember, layerField, string(appendThreshold(nil, min(own, never-1))))
	}
	return state, randomness(p.TraceID, state.Get(otMember)) >= own
}

// A headNow is the head at this moment; it moves with the policy.
type headNow struct {
	certain threshold        // by what a trace is kept whatever happens in it
	told    threshold        // by what it is told to be sampled
	state   trace.TraceState // of a sampled root without a parent
}

// updateHead brings the head up to date with the policy.
func (t *Tail) updateHead() {
	h := headNow{certain: t.policy.certain()}
	h.told = h.certain
	switch {
	case t.config.head.always:
		h.told = always
	case t.config.head.set:
		h.told = thresholdOf(t.config.head.ratio)
	}
	if now := t.head.Load(); now != nil && now.certain == h.certain && now.told == h.told {
		return
	}
	if h.told != never {
		h.state = setThreshold(trace.TraceState{}, h.told)
	}
	t.head.Store(&h)
}

// Kept reports whether the trace of ctx is known to be kept. It serves as an exemplar
// filter, so that the exemplars of any instrument point at traces that exist:
//
//	metric.NewMeterProvider(metric.WithExemplarFilter(tail.Kept), ...)
//
// A trace may still turn out to be kept after this says no. A nil Tail says what the
// SDK's own filter says: whether the span is sampled.
func (t *Tail) Kept(ctx context.Context) bool {
	sc := trace.SpanContextFromContext(ctx)
	if t == nil {
		return sc.IsSampled()
	}
	if !sc.IsValid() {
		return false
	}
	if sc.IsSampled() && !sc.IsRemote() && !t.config.head.always {
		return true // the sampler promised it
	}
	_, ok := t.table.shard(sc.TraceID()).cache.get(sc.TraceID())
	return ok
}
