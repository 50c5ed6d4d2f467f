package propagation

import (
	"context"

	"go.opentelemetry.io/otel/trace"
)

// Sampling is what a caller said of recording, beyond the sampled flag.
type Sampling uint8

const (
	// SamplingDecided means that the sampled flag of the span context counts.
	SamplingDecided Sampling = iota
	// SamplingDeferred means that the caller left the decision to the callee: its
	// format has no sampled flag, or it left the flag out.
	SamplingDeferred
	// SamplingDenied means that the caller forbade recording (b3: 0).
	SamplingDenied
	// SamplingDebug means that the caller wants this very trace (b3: d). The
	// sampled flag is set.
	SamplingDebug
)

// String returns "decided", "deferred", "denied" or "debug".
func (s Sampling) String() string {
	switch s {
	case SamplingDeferred:
		return "deferred"
	case SamplingDenied:
		return "denied"
	case SamplingDebug:
		return "debug"
	default:
		return "decided"
	}
}

// state is what a context carries beside the span context and the baggage,
// because those types have no place for it. Most contexts have none.
type state struct {
	traceID trace.TraceID // of what was extracted; the next fields belong to it

	sampling     Sampling
	parentSpanID trace.SpanID  // the caller's own parent
	traceName    string        // what the trace ID is a hash of
	hidden       []stateMember // the tracestate, where trace.TraceState cannot hold it
	links        []trace.Link  // contexts that are no parent of the next span
	tag          string        // proof of the tenant that the context was made for, "" if it had none
	tagKey       []byte        // with which to check it; nil if nobody asked for proof

	tenant string // on whose behalf this process works
	chain  *PromptChain
}

type stateKey struct{}

// stateOf returns the state of ctx, which may be nil and is never changed.
func stateOf(ctx context.Context) *state {
	st, _ := ctx.Value(stateKey{}).(*state)
	return st
}

func withState(ctx context.Context, st state) context.Context {
	return context.WithValue(ctx, stateKey{}, &st)
}

// of returns the state if it belongs to the trace of sc.
func (st *state) of(sc trace.SpanContext) *state {
	if st == nil || st.traceID != sc.TraceID() {
		return nil
	}
	return st
}

// SamplingFromContext returns what the caller said of recording the trace that
// ctx belongs to. It is SamplingDecided where ctx says nothing else, and under
// a new root. A denial that named no trace is of all that is started with ctx.
func SamplingFromContext(ctx context.Context) Sampling {
	st := stateOf(ctx)
	if st == nil || st.traceID.IsValid() && st.of(trace.SpanContextFromContext(ctx)) == nil {
		return SamplingDecided
	}
	return st.sampling
}

// Links returns the contexts that the next span must link to because they are
// not its parent: those that lost against a format of higher precedence, that
// came from a stranger to a public endpoint, or that belong to another tenant.
//
//	ctx = bridge.FromHTTP(r)
//	ctx, span := tracer.Start(ctx, "chat", trace.WithLinks(propagation.Links(ctx)...))
//
// Below a span of this process there are none any more. Do not change the slice.
func Links(ctx context.Context) []trace.Link {
	st := stateOf(ctx)
	if st == nil || len(st.links) == 0 {
		return nil
	}
	if sc := trace.SpanContextFromContext(ctx); sc.IsValid() && !sc.IsRemote() {
		return nil
	}
	return st.links
}

// remote is what a format reads from a carrier.
type remote struct {
	sc           trace.SpanContext // marked as remote; may have a trace ID alone
	sampling     Sampling
	parentSpanID trace.SpanID
	traceName    string
	hidden       []stateMember
}

// plain reports whether a span context says all that there is.
func (r *remote) plain() bool {
	return r.sampling == SamplingDecided && !r.parentSpanID.IsValid() && r.traceName == "" && r.hidden == nil
}

// into returns ctx with r as the parent of the next span, or under a tenant, which
// nothing proves that r belongs to, with a link.
func (r *remote) into(ctx context.Context) context.Context {
	before := stateOf(ctx)
	if before != nil && before.tenant != "" {
		return apart(ctx, before, r.links())
	}
	if before != nil || !r.plain() {
		ctx = withState(ctx, r.over(before))
	}
	if r.sc.HasTraceID() {
		ctx = trace.ContextWithSpanContext(ctx, r.sc)
	}
	return ctx
}

// over returns the state of a context with r as the parent, where before is the
// state that the context had, of which only what this process knows stays.
func (r *remote) over(before *state) state {
	st := state{
		traceID:      r.sc.TraceID(),
		sampling:     r.sampling,
		parentSpanID: r.parentSpanID,
		traceName:    r.traceName,
		hidden:       r.hidden,
	}
	if before != nil {
		st.tenant = before.tenant
	}
	return st
}

// links returns a link to r, if it has a span.
func (r *remote) links() []trace.Link {
	if !r.sc.IsValid() {
		return nil
	}
	return []trace.Link{{SpanContext: r.sc}}
}
