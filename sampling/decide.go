package sampling

import (
	"slices"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// The functions in this file are called with the lock of the shard held, but for
// finish.

// decide judges a segment of which nothing more is waited for. It may leave the
// segment to the custom policies.
func (t *Tail) decide(s *shard, seg *segment, out *outcomes) {
	if t.judge != nil && t.mattersToCustom(s, seg) && t.judge.ask(seg) {
		seg.state, seg.changed = judging, t.sinceEpoch()
		return
	}
	t.decideNow(s, seg, 0, out)
}

// mattersToCustom reports whether the custom policies could change the verdict.
func (t *Tail) mattersToCustom(s *shard, seg *segment) bool {
	v := s.view(seg, seg.end)
	v.final = true
	d := t.policy.verdictOn(v)
	return v.r < d.high && v.r < seg.promise.t && (v.r >= d.low || len(t.policy.paths) > 0)
}

// decideNow is decide with the answers of the custom policies.
func (t *Tail) decideNow(s *shard, seg *segment, custom uint64, out *outcomes) {
	v, whole := t.finalVerdict(s, seg, custom)
	if seg.open > 0 && v.path < whole.t {
		// What is still open may be above or below the key path, so what that keeps is
		// kept whole: as likely as the key path is, where the whole trace is less so.
		whole = keptInfo{v.path, v.pathBy}
	}
	switch {
	case v.r >= whole.t:
		b := t.keep(s, seg, whole, out)
		if v.path < whole.t { // some spans were likelier to be kept than others
			b.paths = slices.Clone(v.paths[:len(t.policy.paths)])
		}
	case v.r < v.path:
		s.counts.dropped++
		s.counts.droppedSpans += uint64(len(seg.spans))
		s.dropSpans(seg)
		t.settle(s, seg, dropped)
		out.add(seg)
	default:
		s.counts.keyPath[v.pathBy]++
		seg.kept = keptInfo{never, v.pathBy}
		spans, bytes := s.takeSpans(seg)
		t.settle(s, seg, kept)
		b := out.add(seg).export(seg, spans, bytes)
		b.paths = slices.Clone(v.paths[:len(t.policy.paths)])
	}
}

// finalVerdict judges a segment as if nothing more came, lets policies learn from it,
// and says by what it is kept whole.
func (t *Tail) finalVerdict(s *shard, seg *segment, custom uint64) (*view, keptInfo) {
	v := s.view(seg, t.upTo(seg))
	v.final, v.asked, v.custom = true, true, custom
	v.counts, seg.counted = !seg.counted, true
	d := t.policy.verdictOn(v)
	whole := keptInfo{d.high, d.reason}
	if seg.promise.t < whole.t {
		whole = seg.promise
	}
	return v, whole
}

// upTo is until when a segment has lasted: its last end, or now while a root of it runs.
func (t *Tail) upTo(seg *segment) time.Time {
	if seg.running > 0 {
		if now := t.epoch.Add(t.sinceEpoch()); now.After(seg.end) {
			return now
		}
	}
	return seg.end
}

// keepEarly keeps a segment if its policies are certain at a time before its end.
func (t *Tail) keepEarly(s *shard, seg *segment, at time.Time, out *outcomes) {
	if d := t.policy.verdictOn(s.view(seg, at)); d.high == always {
		t.keep(s, seg, keptInfo{always, d.reason}, out)
	}
}

// keep lets go of the spans that are held, for export; later ones follow.
func (t *Tail) keep(s *shard, seg *segment, how keptInfo, out *outcomes) *batch {
	s.counts.kept[how.reason]++
	s.cache.put(seg.id, how)
	seg.kept = how
	spans, bytes := s.takeSpans(seg)
	t.settle(s, seg, kept)
	return out.add(seg).export(seg, spans, bytes)
}

// follow keeps a new segment because an earlier part of its trace was kept.
func (t *Tail) follow(s *shard, seg *segment, how keptInfo) {
	seg.kept, seg.late, seg.counted = how, false, true
	t.settle(s, seg, kept)
}

func (t *Tail) settle(s *shard, seg *segment, state state) {
	seg.state = state
	if seg.open > 0 {
		seg.changed = t.sinceEpoch()
	}
	s.decided.move(seg)
}

// forget removes a segment.
func (t *Tail) forget(s *shard, seg *segment) {
	if !seg.counted && len(t.policy.tickers) > 0 {
		t.finalVerdict(s, seg, 0)
	}
	s.countParts(seg)
	s.remove(seg)
}

// shed makes the segment that holds spans for longest give them up, and reports
// whether there was one. What would be kept as it is is kept.
func (t *Tail) shed(s *shard, out *outcomes) bool {
	seg := s.buffered.head
	if seg == nil {
		return false
	}
	v := s.view(seg, seg.end)
	v.final, v.asked = true, true
	if d := t.policy.verdictOn(v); v.r >= d.high {
		t.keep(s, seg, keptInfo{d.high, d.reason}, out)
	} else if v.r >= seg.promise.t {
		t.keep(s, seg, seg.promise, out)
	} else {
		s.counts.shedTraces++
		s.counts.shedSpans += uint64(len(seg.spans))
		seg.lost += len(seg.spans)
		s.dropSpans(seg)
		s.idle.move(seg)
		out.add(seg) // lest roots that ended are held for their metrics
		return true
	}
	if seg.open == 0 { // the custom policies were being asked
		t.forget(s, seg)
	}
	return true
}

// makeRoom forgets the segment that has been there for longest: one that is decided,
// if there is any, else one that is judged as it is.
func (t *Tail) makeRoom(s *shard, out *outcomes) {
	seg := s.decided.head
	if seg == nil {
		seg = s.idle.head
		if buffered := s.buffered.head; seg == nil || buffered != nil && buffered.born < seg.born {
			seg = buffered
		}
		t.decideNow(s, seg, 0, out)
	}
	s.counts.evicted++
	t.forget(s, seg)
}

// An outcome is what is left to do about a trace once the lock is released.
type outcome struct {
	id    trace.TraceID
	kept  bool
	first bool // nothing of the trace was exported before
	batch *batch
	// For the metrics:
	ttft  float64
	root  sdktrace.ReadOnlySpan   // a local root that ended, nil where none did
	roots []sdktrace.ReadOnlySpan // further ones
}

// outcomes are the outcomes of one step, most often of one trace.
type outcomes struct {
	n    int
	one  outcome
	more []outcome
}

// next makes an outcome of a segment. It is valid until the next call.
func (out *outcomes) next(seg *segment) *outcome {
	o := &out.one
	if out.n++; out.n > 1 {
		out.more = append(out.more, outcome{})
		o = &out.more[len(out.more)-1]
	}
	o.id, o.kept, o.ttft = seg.id, seg.state == kept, seg.ttft
	return o
}

// addRoot makes an outcome of a local root that ended and is not held, before its trace is
// decided.
func (out *outcomes) addRoot(seg *segment, e *endedSpan) {
	out.next(seg).root = e.ReadOnlySpan
	seg.roots = slices.DeleteFunc(seg.roots, func(r localRoot) bool { return r.id == e.spanID })
}

// add makes an outcome of a decided segment, with its local roots that ended. It is valid
// until the next call.
func (out *outcomes) add(seg *segment) *outcome {
	o := out.next(seg)
	open := seg.roots[:0]
	for _, root := range seg.roots {
		switch {
		case root.span == nil:
			open = append(open, root)
		case o.root == nil:
			o.root = root.span
		default:
			o.roots = append(o.roots, root.span)
		}
	}
	clear(seg.roots[len(open):])
	seg.roots = open
	return o
}

// export gives the outcome spans of a kept segment.
func (o *outcome) export(seg *segment, spans []sdktrace.ReadOnlySpan, bytes int) *batch {
	b := newBatch()
	b.spans, b.bytes, b.r, b.how, b.note, b.lost, b.late = spans, bytes, seg.r, seg.kept, seg.note, seg.lost, seg.late
	b.root, b.roots = o.root, o.roots
	o.batch, o.first = b, !seg.begun
	seg.begun = seg.begun || len(spans) > 0
	return b
}

// exportOne is export for one span.
func (o *outcome) exportOne(seg *segment, e *endedSpan) {
	b := o.export(seg, nil, e.bytes)
	b.one[0] = e.ReadOnlySpan
	b.spans = b.one[:]
	seg.begun = true
}

// finish does what remains after a step: it exports and measures. It takes locks
// and calls foreign code.
func (t *Tail) finish(out *outcomes) {
	if out.n == 0 {
		return
	}
	t.finishOne(&out.one)
	for i := range out.more {
		t.finishOne(&out.more[i])
	}
}

func (t *Tail) finishOne(o *outcome) {
	switch b := o.batch; {
	case b == nil:
	case len(b.spans) == 0:
		b.free()
	case !t.queue.push(b):
		b.free()
		o.kept = false
		t.lose(o)
	}
	if o.root != nil {
		t.metrics.request(o, o.root)
		for _, root := range o.roots {
			t.metrics.request(o, root)
		}
	}
}

// lose notes that a batch found no room in the queue. If it was the beginning
// of its trace, the rest is not exported either.
func (t *Tail) lose(o *outcome) {
	if !o.first {
		return
	}
	s := t.table.shard(o.id)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts.lostTraces++
	s.cache.remove(o.id)
	if seg := s.segments[o.id]; seg != nil && seg.state == kept {
		seg.state = dropped
	}
}
