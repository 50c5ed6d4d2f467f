package sampling

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/internal/bound"
)

// OnStart implements [sdktrace.SpanProcessor]. Applications do not call it.
func (t *Tail) OnStart(ctx context.Context, span sdktrace.ReadWriteSpan) {
	sc := span.SpanContext()
	id := sc.TraceID()
	parent := trace.SpanContextFromContext(ctx)
	root := parent.TraceID() != id || parent.IsRemote()
	var attrs []attribute.KeyValue
	if len(t.policy.keys) > 0 {
		attrs = span.Attributes() // makes the span copy them, if it gets more
	}

	s := t.table.shard(id)
	s.mu.Lock()
	seg := s.segments[id]
	if seg == nil || root {
		t.startRoot(ctx, s, seg, span, attrs)
		return
	}
	seg.open++
	seg.noteKeys(t.policy.keys, attrs)
	s.mu.Unlock()
}

// startRoot notes the start of a local root, or of the first span of a segment. It
// releases the lock of the shard.
func (t *Tail) startRoot(ctx context.Context, s *shard, seg *segment, span sdktrace.ReadWriteSpan, attrs []attribute.KeyValue) {
	if s.closed {
		s.mu.Unlock()
		return
	}
	var out outcomes
	sc, up := span.SpanContext(), trace.SpanFromContext(ctx)
	parent := up.SpanContext()
	root := parent.TraceID() != sc.TraceID() || parent.IsRemote()
	if seg == nil {
		if !root {
			// A span of another library, or of none, is no part of the trace here.
			_, ours := up.(sdktrace.ReadWriteSpan)
			root = !ours
		}
		seg = t.newSegment(s, sc, span.StartTime(), !root, &out)
	} else {
		seg.open++
	}
	if root && seg.state == dropped { // this call may fare worse than the one before it
		s.revive(seg, span.StartTime())
	}
	seg.noteKeys(t.policy.keys, attrs)
	if root {
		t.hear(seg, span, parent)
		t.addRoot(s, seg, sc, parent, &out)
	}
	s.mu.Unlock()
	t.finish(&out)
}

// newSegment makes a segment for its first span.
func (t *Tail) newSegment(s *shard, sc trace.SpanContext, start time.Time, late bool, out *outcomes) *segment {
	if len(s.segments) >= t.perShard {
		t.makeRoom(s, out)
	}
	seg := s.add(sc.TraceID(), time.Duration(t.now.Load()))
	seg.open, seg.late, seg.start, seg.began = 1, late, start, start
	seg.r = randomness(seg.id, sc.TraceState().Get(otMember))
	if info, ok := s.cache.get(seg.id); ok {
		t.follow(s, seg, info)
	} else if t.head.Load().certain == always {
		t.keep(s, seg, keptInfo{always, t.policy.verdictOn(s.view(seg, start)).reason}, out)
	}
	return seg
}

// hear notes when the request of a local root began, if its caller said so. A message
// does not count: it may have waited for as long as it liked.
func (t *Tail) hear(seg *segment, span sdktrace.ReadOnlySpan, caller trace.SpanContext) {
	if !caller.IsRemote() || t.config.trust == TrustNone || span.SpanKind() == trace.SpanKindConsumer {
		return
	}
	if told := startedAt(caller.TraceState(), span.StartTime()); told.Before(seg.began) {
		seg.began = told
	}
}

// maxRoots is how many local roots of one trace are told from other spans.
const maxRoots = 1000

// addRoot notes a local root and what was promised about it.
func (t *Tail) addRoot(s *shard, seg *segment, sc, parent trace.SpanContext, out *outcomes) {
	if len(seg.roots) < maxRoots {
		seg.roots = append(seg.roots, localRoot{id: sc.SpanID()})
		seg.running++
		seg.lingers = false
	}
	if !sc.IsSampled() && !parent.IsSampled() {
		return
	}
	told, certain := t.believe(parent, seg.r)
	if certain {
		if seg.state != kept {
			t.keep(s, seg, keptInfo{told, reasonRemote}, out)
		}
		return
	}
	if told < seg.promise.t {
		seg.promise = keptInfo{told, reasonRemote}
	}
	if t.config.head.always || !sc.IsSampled() {
		return
	}
	// What the sampler told is in the span, for the head may have moved since. A "th:0"
	// that is not ours came through a sampler other than ours.
	told, ok := parseThreshold(field(sc.TraceState().Get(otMember), "th"))
	if ok && seg.r >= told && told < seg.promise.t && (told != always || t.head.Load().told == always) {
		seg.promise = keptInfo{told, reasonHead}
	}
}

// An endedSpan is what is read of a span that has ended, once.
type endedSpan struct {
	sdktrace.ReadOnlySpan
	id     trace.TraceID
	spanID trace.SpanID
	end    time.Time
	facts  uint64
	bytes  int
	ttft   float64 // ms; 0 where absent
	attrs  []attribute.KeyValue
}

// read reads span. Each method of an ended span copies all of it, so they are called
// once, and outside of locks.
func (t *Tail) read(span sdktrace.ReadOnlySpan) (e endedSpan) {
	sc := span.SpanContext()
	e = endedSpan{
		ReadOnlySpan: span, id: sc.TraceID(), spanID: sc.SpanID(),
		end: span.EndTime(), attrs: span.Attributes(),
	}
	e.bytes, e.ttft = measure(span, e.attrs)
	if span.Status().Code == codes.Error {
		e.facts = failedFact
	}
	for i := range t.policy.selectors {
		if s := &t.policy.selectors[i]; s.selects(span) {
			e.facts |= s.bit
		}
	}
	return e
}

// OnEnd implements [sdktrace.SpanProcessor]. Applications do not call it.
func (t *Tail) OnEnd(span sdktrace.ReadOnlySpan) {
	e := t.read(span)
	var out outcomes
	s := t.table.shard(e.id)
	s.mu.Lock()
	seg := s.segments[e.id]
	switch {
	case s.closed:
		s.counts.lateDropped++
	case seg == nil:
		t.endAlone(s, &e, &out)
	default:
		t.end(s, seg, &e, &out)
	}
	s.mu.Unlock()
	t.finish(&out)
}

// end notes the end of a span of a segment.
func (t *Tail) end(s *shard, seg *segment, e *endedSpan, out *outcomes) {
	root := seg.endRoot(e)
	news := seg.learn(e)
	seg.noteKeys(t.policy.keys, e.attrs)
	switch seg.state {
	case kept:
		taken := t.take(s, seg, e, root)
		if o := out.add(seg); taken {
			o.exportOne(seg, e)
		}
	case dropped:
		s.counts.droppedSpans++
		if root {
			out.add(seg)
		}
	case undecided, judging:
		if t.take(s, seg, e, root) {
			s.buffer(seg, e)
		} else if root {
			out.addRoot(seg, e) // lest it is held for its metrics
		}
		if root && seg.running == 0 && seg.open > 0 {
			seg.lingers, seg.changed = true, t.sinceEpoch()
		}
		switch {
		case seg.open == 0 && seg.state == undecided:
			t.decide(s, seg, out)
		case news || t.policy.patience > 0 && seg.end.Sub(seg.began) >= t.policy.patience:
			t.keepEarly(s, seg, seg.end, out)
		}
	}
	if seg.open == 0 && seg.state >= kept {
		t.forget(s, seg)
	}
	for !t.table.budget.cover(s) && t.shed(s, out) {
	}
	t.table.budget.giveBack(s)
}

// endAlone judges a span without a segment: its start was not seen, or its
// trace was forgotten while it ran.
func (t *Tail) endAlone(s *shard, e *endedSpan, out *outcomes) {
	sc := e.SpanContext()
	alone := segment{id: e.id, state: kept, start: e.StartTime(), r: randomness(e.id, sc.TraceState().Get(otMember))}
	if parent := e.Parent(); !parent.IsValid() || parent.IsRemote() {
		alone.roots = []localRoot{{id: e.spanID}}
	}
	alone.began = alone.start
	t.hear(&alone, e.ReadOnlySpan, e.Parent())
	alone.learn(e)
	alone.endRoot(e)
	alone.noteKeys(t.policy.keys, e.attrs)
	var cached bool
	if alone.kept, cached = s.cache.get(e.id); !cached {
		v := s.view(&alone, alone.end)
		v.final, v.asked = true, true
		d := t.policy.verdictOn(v)
		alone.kept = keptInfo{d.high, d.reason}
		if v.r >= d.high {
			s.cache.put(e.id, alone.kept)
		}
		if v.path < d.high {
			alone.kept = keptInfo{v.path, v.pathBy}
		}
		if v.r < alone.kept.t {
			alone.state = dropped
		}
	}
	o := out.add(&alone)
	if alone.state == dropped {
		s.counts.lateDropped++
		return
	}
	s.counts.lateKept++
	alone.late = !cached
	o.exportOne(&alone, e)
}

// take counts a span of a trace that is not dropped, and reports whether there is room
// for it in the trace.
func (t *Tail) take(s *shard, seg *segment, e *endedSpan, root bool) bool {
	limit := &t.config.limits
	over := seg.total >= limit.TraceSpans || seg.size+e.bytes > limit.TraceBytes
	if over {
		// Children end before their parents, so what comes now may be the parent of
		// what is here.
		eighths := 8
		switch {
		case root:
			eighths = 10
		case e.facts != 0 || e.ChildSpanCount() > 0:
			eighths = 9
		}
		over = seg.total >= limit.TraceSpans*eighths/8 || seg.size+e.bytes > limit.TraceBytes/8*eighths
	}
	if over {
		seg.lost++
		s.counts.truncatedSpans++
		return false
	}
	seg.total++
	seg.size += e.bytes
	return true
}

func (s *shard) buffer(seg *segment, e *endedSpan) {
	seg.spans = append(seg.spans, e.ReadOnlySpan)
	seg.bytes += e.bytes
	s.used += e.bytes
	if seg.list == &s.idle {
		s.buffered.move(seg)
	}
}

// endRoot notes the end of a local root and reports whether the span is one.
func (seg *segment) endRoot(e *endedSpan) bool {
	seg.open--
	for i := range seg.roots {
		if root := &seg.roots[i]; root.id == e.spanID && root.span == nil {
			root.span = e.ReadOnlySpan
			seg.running--
			return true
		}
	}
	return false
}

// learn adds what a span says of its trace, and reports whether that is a new fact.
func (seg *segment) learn(e *endedSpan) (news bool) {
	if e.end.After(seg.end) {
		seg.end = e.end
	}
	if e.ttft != 0 {
		seg.ttft = e.ttft // outer spans end later
	}
	news = e.facts&^seg.facts != 0
	seg.facts |= e.facts
	return news
}

// maxKeyLen bounds the values that are held for policies which tell traces apart by
// them.
const maxKeyLen = 256

// noteKeys keeps the first value of each key.
func (seg *segment) noteKeys(keys []attribute.Key, attrs []attribute.KeyValue) {
	for k, key := range keys {
		if seg.keys[k] != "" {
			continue
		}
		for i := range attrs {
			if attrs[i].Key == key {
				seg.keys[k] = bound.String(textOf(attrs[i].Value), maxKeyLen)
			}
		}
	}
}

// view is what policies see of a segment at a time. It is valid until the next call.
func (s *shard) view(seg *segment, at time.Time) *view {
	v := &s.scratch
	v.r, v.elapsed, v.total, v.facts, v.keys = seg.r, at.Sub(seg.start), at.Sub(seg.began), seg.facts, seg.keys
	v.final, v.asked, v.counts, v.custom = false, false, false, 0
	return v
}
