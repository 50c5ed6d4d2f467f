package capture

import (
	"iter"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/trace"
)

// Trace is the spans of one trace as a tree. A capture may hold a part of the
// trace only, so it may have several roots. Damage does no harm: of spans that are
// their own ancestors the earliest counts as a root, and of two spans with one
// identifier the first is the parent of their children.
type Trace struct {
	ID    trace.TraceID
	Spans []*Span // by start

	nodes map[trace.SpanID]int32 // nil where there are so few that looking at each is faster
	twins map[*Span]int32        // spans whose identifier an earlier one has
	links []node                 // beside Spans
	roots []int32
}

// node holds the place of a span in the tree as indexes into Spans, −1 for none.
type node struct{ parent, child, last, next int32 }

// NewTrace makes the tree of spans, which belong to one trace. It sorts them, and
// keeps the slice.
func NewTrace(spans []*Span) *Trace {
	t := &Trace{Spans: spans}
	if len(spans) == 0 {
		return t
	}
	if !slices.IsSortedFunc(spans, byStart) {
		slices.SortStableFunc(spans, byStart)
	}
	t.ID = spans[0].TraceID
	if len(spans) > maxUnindexed {
		t.nodes = make(map[trace.SpanID]int32, len(spans))
	}
	t.links = make([]node, len(spans))
	for i, s := range spans {
		t.links[i] = node{-1, -1, -1, -1}
		if t.nodes == nil {
			if first, _ := t.find(s.SpanID); first == int32(i) {
				continue
			}
		} else if _, twice := t.nodes[s.SpanID]; !twice {
			t.nodes[s.SpanID] = int32(i)
			continue
		}
		if t.twins == nil {
			t.twins = make(map[*Span]int32)
		}
		t.twins[s] = int32(i)
	}
	for i, s := range spans {
		if !s.ParentID.IsValid() {
			continue
		}
		if parent, ok := t.find(s.ParentID); ok {
			t.links[i].parent = parent
		}
	}
	t.cutCycles()
	for i := range spans {
		parent := t.links[i].parent
		if parent < 0 {
			t.roots = append(t.roots, int32(i))
			continue
		}
		if last := t.links[parent].last; last >= 0 {
			t.links[last].next = int32(i)
		} else {
			t.links[parent].child = int32(i)
		}
		t.links[parent].last = int32(i)
	}
	return t
}

// cutCycles makes the earliest span of each cycle a root. It walks up from each
// span to what an earlier walk has seen, so each edge is followed once.
func (t *Trace) cutCycles() {
	walk := make([]int32, len(t.links)) // the walk that saw a span, from 1
	for i := range t.links {
		at := int32(i)
		for at >= 0 && walk[at] == 0 {
			walk[at] = int32(i) + 1
			at = t.links[at].parent
		}
		if at < 0 || walk[at] != int32(i)+1 {
			continue
		}
		earliest := at
		for next := t.links[at].parent; next != at; next = t.links[next].parent {
			earliest = min(earliest, next)
		}
		t.links[earliest].parent = -1
	}
}

// maxUnindexed is how many spans a trace has at most for which no map is made.
const maxUnindexed = 24

// find returns the place of the first span with that identifier.
func (t *Trace) find(id trace.SpanID) (int32, bool) {
	if t.nodes != nil {
		i, ok := t.nodes[id]
		return i, ok
	}
	for i, s := range t.Spans {
		if s.SpanID == id {
			return int32(i), true
		}
	}
	return -1, false
}

// index returns the place of s, −1 where it is not of t.
func (t *Trace) index(s *Span) int32 {
	if i, ok := t.find(s.SpanID); ok && t.Spans[i] == s {
		return i
	}
	if i, ok := t.twins[s]; ok {
		return i
	}
	return -1
}

// Span returns the span with that identifier, nil where it was not captured.
func (t *Trace) Span(id trace.SpanID) *Span {
	if i, ok := t.find(id); ok {
		return t.Spans[i]
	}
	return nil
}

// Roots returns the spans without a captured parent.
func (t *Trace) Roots() []*Span {
	roots := make([]*Span, len(t.roots))
	for i, r := range t.roots {
		roots[i] = t.Spans[r]
	}
	return roots
}

// Parent returns the captured parent of s, nil where there is none.
func (t *Trace) Parent(s *Span) *Span {
	if i := t.index(s); i >= 0 && t.links[i].parent >= 0 {
		return t.Spans[t.links[i].parent]
	}
	return nil
}

// Children returns the spans whose parent is s, by start.
func (t *Trace) Children(s *Span) iter.Seq[*Span] {
	return func(yield func(*Span) bool) {
		i := t.index(s)
		if i < 0 {
			return
		}
		for c := t.links[i].child; c >= 0; c = t.links[c].next {
			if !yield(t.Spans[c]) {
				return
			}
		}
	}
}

// Ancestors returns the parent of s, its parent and so on.
func (t *Trace) Ancestors(s *Span) iter.Seq[*Span] {
	return func(yield func(*Span) bool) {
		i := t.index(s)
		if i < 0 {
			return
		}
		for p := t.links[i].parent; p >= 0; p = t.links[p].parent {
			if !yield(t.Spans[p]) {
				return
			}
		}
	}
}

// Descendants returns everything below s, parents before their children.
func (t *Trace) Descendants(s *Span) iter.Seq[*Span] {
	return func(yield func(*Span) bool) {
		top := t.index(s)
		if top < 0 {
			return
		}
		for i := t.links[top].child; i >= 0; i = t.after(i, top) {
			if !yield(t.Spans[i]) {
				return
			}
		}
	}
}

// after returns what follows i in the order of a walk below top.
func (t *Trace) after(i, top int32) int32 {
	if c := t.links[i].child; c >= 0 {
		return c
	}
	for i != top && i >= 0 {
		if n := t.links[i].next; n >= 0 {
			return n
		}
		i = t.links[i].parent
	}
	return -1
}

// Within reports whether ancestor is above s.
func (t *Trace) Within(s, ancestor *Span) bool {
	for a := range t.Ancestors(s) {
		if a == ancestor {
			return true
		}
	}
	return false
}

// Path names s and what it is in, from the root on: "POST /chat › chat toy-1".
func (t *Trace) Path(s *Span) string {
	names := []string{s.Name}
	for a := range t.Ancestors(s) {
		names = append(names, a.Name)
	}
	slices.Reverse(names)
	return strings.Join(names, " › ")
}
