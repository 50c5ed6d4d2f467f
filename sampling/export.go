package sampling

import (
	"slices"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/semconv"
)

// exportable returns the spans of a batch that are exported, as they are exported:
// sampled, with the probability by which they were kept, and with the reason on
// local roots. Only the worker of the queue calls it.
func (t *Tail) exportable(b *batch) []sdktrace.ReadOnlySpan {
	thresholds := t.keyPath(b)
	roots := make([]trace.SpanID, 0, 1+len(b.roots))
	for _, root := range append([]sdktrace.ReadOnlySpan{b.root}, b.roots...) {
		if root != nil {
			roots = append(roots, root.SpanContext().SpanID())
		}
	}
	var inBatch map[trace.SpanID]bool
	if b.late {
		inBatch = make(map[trace.SpanID]bool, len(b.spans))
		for _, span := range b.spans {
			inBatch[span.SpanContext().SpanID()] = true
		}
	}
	ready := b.spans[:0]
	for i, span := range b.spans {
		limit := b.how.t
		if thresholds != nil {
			if limit = thresholds[i]; b.r < limit {
				t.queue.offPath.Add(1)
				continue
			}
		}
		sc := span.SpanContext()
		root := slices.Contains(roots, sc.SpanID())
		late := b.late && !inBatch[span.Parent().SpanID()]
		state, changed := t.queue.states.restate(sc.TraceState(), limit)
		if root || late || changed || !sc.IsSampled() {
			span = &keptSpan{span, sc.WithTraceFlags(sc.TraceFlags() | trace.FlagsSampled).WithTraceState(state)}
		}
		if root || late {
			span = &keptRoot{span, t.stamp(b, late)}
		}
		ready = append(ready, span)
	}
	return ready
}

// stamp returns what the local roots of a batch say about its sampling.
func (t *Tail) stamp(b *batch, late bool) []attribute.KeyValue {
	why := b.note
	if why == "" {
		why = t.policy.reasons[b.how.reason]
	}
	attrs := []attribute.KeyValue{semconv.GenAISamplingReason(why)}
	if b.lost > 0 {
		attrs = append(attrs, semconv.GenAISamplingTruncated(b.lost))
	}
	if late {
		attrs = append(attrs, semconv.GenAISamplingPartial(true))
	}
	return attrs
}

// keptSpan is a span as it is exported.
type keptSpan struct {
	sdktrace.ReadOnlySpan
	sc trace.SpanContext
}

func (s *keptSpan) SpanContext() trace.SpanContext { return s.sc }

// keptRoot adds attributes.
type keptRoot struct {
	sdktrace.ReadOnlySpan
	stamp []attribute.KeyValue
}

func (s *keptRoot) Attributes() []attribute.KeyValue {
	return slices.Concat(s.ReadOnlySpan.Attributes(), s.stamp)
}

// A restater writes thresholds into tracestates. Most spans have the same as the one
// before, so it remembers the last one.
type restater struct {
	valid   bool
	in, out trace.TraceState
	t       threshold
	changed bool
}

func (r *restater) restate(in trace.TraceState, t threshold) (out trace.TraceState, changed bool) {
	if layer, ok := parseThreshold(field(in.Get(ourMember), layerField)); ok && t != never {
		t = max(t, layer) // the span was less likely to be recorded
	}
	if r.valid && r.t == t && sameState(r.in, in) {
		return r.out, r.changed
	}
	before := field(in.Get(otMember), "th")
	r.valid, r.in, r.t, r.out = true, in, t, setThreshold(in, t)
	r.changed = field(r.out.Get(otMember), "th") != before
	return r.out, r.changed
}

func sameState(a, b trace.TraceState) bool {
	if a.Len() != b.Len() {
		return false
	}
	same := true
	a.Walk(func(key, value string) bool {
		same = b.Get(key) == value // members have different keys
		return same
	})
	return same
}

// keyPath returns by what threshold each span of b is kept: by that of the
// whole trace, of a selector that selects it, or of a span below it, whichever is
// least. It returns nil where the first holds for all.
func (t *Tail) keyPath(b *batch) []threshold {
	if b.paths == nil {
		return nil
	}
	type node struct {
		parent trace.SpanID
		index  int
	}
	nodes := make(map[trace.SpanID]node, len(b.spans))
	for i, span := range b.spans {
		nodes[span.SpanContext().SpanID()] = node{span.Parent().SpanID(), i}
	}
	thresholds := slices.Repeat([]threshold{b.how.t}, len(b.spans))
	for _, span := range b.spans {
		own := never
		for i, selectors := range t.policy.paths {
			if b.paths[i] < own && slices.ContainsFunc(selectors, func(s Selector) bool { return s.selects(span) }) {
				own = b.paths[i]
			}
		}
		// Each step lowers a threshold, which has few values, so the walks are short
		// in sum, whatever the shape of the tree.
		id := span.SpanContext().SpanID()
		for n, ok := nodes[id]; ok && own < thresholds[n.index]; n, ok = nodes[id] {
			thresholds[n.index] = own
			id = n.parent
		}
	}
	return thresholds
}
