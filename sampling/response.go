package sampling

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/trace"
)

// Promise returns the span context of ctx as other processes may be told it now: sampled
// if the trace is going to be kept here, as far as is known, and with "genai=k:1" in the
// tracestate if that is for what happened in it rather than by chance, so that they
// keep their parts as well; by chance, it says how likely that was. failed says that this process fails, which no span may
// say yet. From then on the trace is kept. Without a span of this process in ctx the
// result is not valid.
//
// Middleware calls it just before the header or trailer of a response is sent, for the
// caller, and before a request goes out without a span of its own; those of this module
// do by their option WithTailSampler.
func (t *Tail) Promise(ctx context.Context, failed bool) trace.SpanContext {
	sc := trace.SpanContextFromContext(ctx)
	if t == nil || !sc.IsValid() || sc.IsRemote() {
		return trace.SpanContext{}
	}
	now := time.Now()
	var out outcomes
	s := t.table.shard(sc.TraceID())
	s.mu.Lock()
	how, sampled := s.cache.get(sc.TraceID())
	seg := s.segments[sc.TraceID()]
	switch {
	case sampled || seg == nil:
	case seg.state == kept: // the cache had no room
		how, sampled = seg.kept, true
	case seg.state == undecided && !s.closed:
		v := s.view(seg, now)
		if failed {
			v.facts |= failedFact
		}
		how = seg.promise
		if d := t.policy.verdictOn(v); d.high < how.t {
			how = keptInfo{d.high, d.reason}
		}
		switch sampled = seg.r >= how.t; {
		case how.t == always:
			t.keep(s, seg, how, &out)
		case sampled:
			seg.promise = how // shares move, promises do not
		}
	}
	s.mu.Unlock()
	t.finish(&out)

	// Whoever keeps everything anyway has nothing to tell.
	certain := (how.t == always || how.t == never) && t.head.Load().certain != always
	mark := ""
	switch {
	case !sampled:
		how.t = never
	case certain:
		mark = "1"
	}
	state := setThreshold(setField(sc.TraceState(), ourMember, keptField, mark), how.t)
	return sc.WithTraceFlags(sc.TraceFlags().WithSampled(sampled)).WithTraceState(state)
}

// CalleeResponded tells t what a response says of the span that served a request which
// was made with ctx, see propagation.ReadResponse. If the callee keeps its part for what
// happened there ("genai=k:1"), such as a failure that it handled, this process
// keeps its own, unless it believes nobody ([TrustNone]); under [TrustSampled]
// the sampled flag is enough. For traces that are kept, the metrics genai.sampling.parts and
// genai.sampling.answered_traces tell what of them is missing elsewhere. A span context of
// another trace, or none, says nothing.
//
// Middleware calls it once a response; those of this module do by their option
// WithTailSampler.
func (t *Tail) CalleeResponded(ctx context.Context, callee trace.SpanContext) {
	sc := trace.SpanContextFromContext(ctx)
	if t == nil || !sc.IsValid() || callee.TraceID() != sc.TraceID() {
		return
	}
	kept := callee.IsSampled()
	certain := kept && (t.config.trust == TrustSampled ||
		t.config.trust == TrustConsistent && field(callee.TraceState().Get(ourMember), keptField) == "1")
	how := keptInfo{never, reasonCallee}
	told, ok := parseThreshold(field(callee.TraceState().Get(otMember), "th"))
	if ok && randomness(sc.TraceID(), sc.TraceState().Get(otMember)) >= told { // else it does not keep by that
		how.t = told
	}

	var out outcomes
	s := t.table.shard(sc.TraceID())
	s.mu.Lock()
	if !s.closed {
		seg := s.segments[sc.TraceID()]
		if seg != nil {
			seg.parts.add(kept)
		}
		if certain {
			t.keepFor(s, sc.TraceID(), seg, how, &out)
		}
		if _, known := s.cache.get(sc.TraceID()); seg == nil && known { // the rest of the trace has ended
			s.counts.parts.add(kept)
		}
	}
	s.mu.Unlock()
	t.finish(&out)
}

// keepFor keeps a trace for what no policy saw. seg is nil where nothing is held of it, and
// is not valid afterwards.
func (t *Tail) keepFor(s *shard, id trace.TraceID, seg *segment, how keptInfo, out *outcomes) {
	if seg != nil {
		if seg.state != kept {
			seg.late = seg.late || seg.state == dropped // what has ended is gone
			t.keep(s, seg, how, out)
		}
		if seg.open == 0 { // the custom policies were being asked
			t.forget(s, seg)
		}
	} else if _, known := s.cache.get(id); !known {
		s.counts.kept[how.reason]++
		s.cache.put(id, how)
	}
}

// parts are the parts of a trace that callees answered for.
type parts struct{ kept, dropped uint64 }

func (p *parts) add(kept bool) {
	if kept {
		p.kept++
	} else {
		p.dropped++
	}
}

// countParts counts what callees said of a trace that was kept here.
func (s *shard) countParts(seg *segment) {
	if seg.state != kept || seg.parts == (parts{}) {
		return
	}
	s.counts.parts.kept += seg.parts.kept
	s.counts.parts.dropped += seg.parts.dropped
	s.counts.answered.add(seg.parts.dropped == 0)
}
