package capture_test

import (
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/capture"
)

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func at(ms int) time.Time { return epoch.Add(time.Duration(ms) * time.Millisecond) }

func id(n int) (s trace.SpanID) {
	binary.BigEndian.PutUint64(s[:], uint64(n))
	return s
}

// span makes a span of trace 1; a parent of 0 is none.
func span(self, parent int, name string, from, to int) *capture.Span {
	return &capture.Span{
		TraceID: trace.TraceID{1}, SpanID: id(self), ParentID: id(parent), ParentOrigin: capture.OriginLocal,
		Name: name, Kind: trace.SpanKindInternal, Start: at(from), End: at(to),
	}
}

func names(spans []*capture.Span) string {
	var all []string
	for _, s := range spans {
		all = append(all, s.Name)
	}
	return strings.Join(all, " ")
}

func TestATraceIsATree(t *testing.T) {
	a, b, c, d, e := span(1, 0, "a", 0, 9), span(2, 1, "b", 1, 3), span(3, 1, "c", 3, 9), span(4, 3, "d", 4, 5), span(5, 3, "e", 5, 6)
	tr := capture.NewTrace([]*capture.Span{e, d, c, b, a})
	assert.Equal(t, trace.TraceID{1}, tr.ID)
	assert.Equal(t, "a b c d e", names(tr.Spans), "by start")
	assert.Equal(t, "a", names(tr.Roots()))
	assert.Equal(t, "b c", names(slices.Collect(tr.Children(a))))
	assert.Equal(t, "b c d e", names(slices.Collect(tr.Descendants(a))))
	assert.Equal(t, "d e", names(slices.Collect(tr.Descendants(c))))
	assert.Equal(t, "c a", names(slices.Collect(tr.Ancestors(e))))
	assert.Same(t, c, tr.Parent(d))
	assert.Nil(t, tr.Parent(a))
	assert.Same(t, d, tr.Span(id(4)))
	assert.Nil(t, tr.Span(id(9)))
	assert.True(t, tr.Within(e, a))
	assert.False(t, tr.Within(a, e))
	assert.False(t, tr.Within(a, a))
	assert.Equal(t, "a › c › d", tr.Path(d))
	for range tr.Descendants(a) {
		break // a walk may stop
	}
	for range tr.Children(a) {
		break
	}
	for range tr.Ancestors(e) {
		break
	}
}

func TestASpanOfAnotherTraceHasNoPlace(t *testing.T) {
	tr := capture.NewTrace([]*capture.Span{span(1, 0, "a", 0, 9), span(2, 1, "b", 1, 2)})
	for _, stranger := range []*capture.Span{span(1, 0, "a", 0, 9), span(7, 1, "x", 0, 1)} {
		assert.Nil(t, tr.Parent(stranger))
		assert.Empty(t, slices.Collect(tr.Children(stranger)))
		assert.Empty(t, slices.Collect(tr.Ancestors(stranger)))
		assert.Empty(t, slices.Collect(tr.Descendants(stranger)))
		assert.Equal(t, stranger.Name, tr.Path(stranger))
	}
}

func TestDamageDoesNoHarm(t *testing.T) {
	open := span(2, 1, "open", 0, 0)
	open.End = time.Time{}
	tests := []struct {
		name  string
		spans []*capture.Span
		want  string
	}{
		{"nothing", nil, ""},
		{"an orphan is a root", []*capture.Span{span(1, 0, "a", 0, 9), span(2, 7, "b", 1, 2), span(3, 2, "c", 1, 2)}, "a b(c)"},
		{"a span that is its own parent is a root", []*capture.Span{span(1, 1, "a", 0, 9), span(2, 1, "b", 1, 2)}, "a(b)"},
		{"of a cycle the earliest is the root", []*capture.Span{span(1, 3, "a", 2, 3), span(2, 1, "b", 1, 3), span(3, 2, "c", 3, 4)}, "b(c(a))"},
		{"also where an earlier span leads into it", []*capture.Span{
			span(1, 3, "a", 0, 9), span(2, 4, "b", 1, 9), span(3, 2, "c", 2, 9), span(4, 3, "d", 3, 9),
		}, "b(c(a d))"},
		{"two cycles", []*capture.Span{span(1, 2, "a", 0, 1), span(2, 1, "b", 1, 2), span(3, 4, "c", 2, 3), span(4, 3, "d", 3, 4)}, "a(b) c(d)"},
		{"of two spans with one identifier the first has the children", []*capture.Span{
			span(1, 0, "a", 0, 9), span(1, 0, "b", 1, 9), span(2, 1, "c", 2, 3),
		}, "a(c) b"},
		{"a span whose twin is its parent", []*capture.Span{span(1, 1, "a", 0, 9), span(1, 1, "b", 1, 9)}, "a(b)"},
		{"a parent of zeros is none", []*capture.Span{span(0, 0, "a", 0, 9), span(0, 0, "b", 1, 9)}, "a b"},
		{"a parent that never ended stands before its child", []*capture.Span{span(3, 2, "c", 0, 1), open, span(1, 0, "a", 0, 5)}, "a(open(c))"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tr := capture.NewTrace(tt.spans)
			assert.Equal(t, tt.want, nested(tr, tr.Roots()))
		})
	}
}

// nested writes a tree as a(b c).
func nested(tr *capture.Trace, spans []*capture.Span) string {
	var parts []string
	for _, s := range spans {
		part := s.Name
		if below := nested(tr, slices.Collect(tr.Children(s))); below != "" {
			part += "(" + below + ")"
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, " ")
}

func TestTracesComeInTheOrderInWhichTheyBegan(t *testing.T) {
	second, first, child := span(1, 0, "second", 5, 6), span(2, 0, "first", 1, 2), span(3, 1, "child", 6, 7)
	first.TraceID = trace.TraceID{2}
	c := &capture.Capture{Spans: []*capture.Span{child, second, first}}
	traces := c.Traces()
	require.Len(t, traces, 2)
	assert.Equal(t, "first", names(traces[0].Spans))
	assert.Equal(t, "second child", names(traces[1].Spans))
	assert.Equal(t, "child second first", names(c.Spans), "the capture stays as it is")
}

func TestLookUpsOfACapture(t *testing.T) {
	c := &capture.Capture{
		Spans:   []*capture.Span{span(1, 0, "a", 0, 1), span(2, 1, "b", 0, 1), span(3, 1, "b", 0, 2)},
		Metrics: []*capture.Metric{{Name: "m"}, {Name: "n"}, {Name: "m"}},
		Logs:    []*capture.Log{{EventName: "e"}},
		Dropped: 1,
	}
	assert.Len(t, c.Named("b"), 2)
	assert.Empty(t, c.Named("c"))
	assert.Equal(t, "a b", names(c.Select(func(s *capture.Span) bool { return s.Duration() == time.Millisecond })))
	assert.Len(t, c.Metric("m"), 2)
	assert.Empty(t, c.Metric("o"))

	var sum capture.Capture
	sum.Add(c)
	sum.Add(c)
	assert.Len(t, sum.Spans, 6)
	assert.Len(t, sum.Metrics, 6)
	assert.Len(t, sum.Logs, 2)
	assert.Equal(t, 2, sum.Dropped)
	assert.Empty(t, (&capture.Capture{}).Traces())
}

// The reference says for each span, by definition and slowly, which span is its
// parent in the tree.
func reference(sorted []*capture.Span) map[*capture.Span]*capture.Span {
	parent := map[*capture.Span]*capture.Span{}
	for _, s := range sorted {
		for _, p := range sorted {
			if s.ParentID.IsValid() && p.SpanID == s.ParentID {
				parent[s] = p
				break
			}
		}
	}
	cyclic := func(s *capture.Span) []*capture.Span { // the cycle that s is on
		cycle := []*capture.Span{s}
		for at := parent[s]; at != nil && len(cycle) <= len(sorted); at = parent[at] {
			if at == s {
				return cycle
			}
			cycle = append(cycle, at)
		}
		return nil
	}
	for _, s := range sorted {
		if cyclic(s) != nil {
			delete(parent, s) // s is the earliest of its cycle: an earlier one would have broken it
		}
	}
	return parent
}

func TestATreeIsWhatTheReferenceSays(t *testing.T) {
	const trees = 2000
	random := rand.New(rand.NewPCG(1, 2))
	for n := range trees {
		size := 1 + random.IntN(12)
		if n%4 == 0 {
			size += 20 // so that some traces have a map of their spans, and some have not
		}
		var spans []*capture.Span
		for i := range size {
			from := random.IntN(6)
			s := span(1+random.IntN(size+1), random.IntN(size+2), fmt.Sprint(i), from, from+random.IntN(4))
			if random.IntN(8) == 0 {
				s.End = time.Time{}
			}
			spans = append(spans, s)
		}
		tr := capture.NewTrace(spans)
		require.True(t, slices.IsSortedFunc(tr.Spans, func(a, b *capture.Span) int { return a.Start.Compare(b.Start) }))
		parent := reference(tr.Spans)

		var roots []*capture.Span
		for i, s := range tr.Spans {
			require.Same(t, parent[s], tr.Parent(s), "tree %d, span %s", n, s.Name)
			if p := parent[s]; p == nil {
				roots = append(roots, s)
				require.Equal(t, -1, tr.ParentIndex(i))
			} else {
				require.Same(t, p, tr.Spans[tr.ParentIndex(i)])
			}
			var children, ancestors []*capture.Span
			for _, c := range tr.Spans {
				if parent[c] == s {
					children = append(children, c)
				}
			}
			for p := parent[s]; p != nil; p = parent[p] {
				ancestors = append(ancestors, p)
			}
			require.Equal(t, children, slices.Collect(tr.Children(s)))
			require.Equal(t, ancestors, slices.Collect(tr.Ancestors(s)))
			var byIndex []*capture.Span
			for c := tr.FirstChild(i); c >= 0; c = tr.NextSibling(c) {
				byIndex = append(byIndex, tr.Spans[c])
			}
			require.Equal(t, children, byIndex)

			var below []*capture.Span
			var walk func(*capture.Span)
			walk = func(s *capture.Span) {
				for _, c := range tr.Spans {
					if parent[c] == s {
						below = append(below, c)
						walk(c)
					}
				}
			}
			walk(s)
			require.Equal(t, below, slices.Collect(tr.Descendants(s)))
			for _, other := range tr.Spans {
				require.Equal(t, slices.Contains(ancestors, other), tr.Within(s, other))
			}
		}
		require.Equal(t, roots, tr.Roots())
	}
}

// What takes quadratic time takes minutes here.
func TestLargeTracesAreQuick(t *testing.T) {
	const size = 100_000
	shapes := map[string]func(i int) *capture.Span{
		"a chain":           func(i int) *capture.Span { return span(i+1, i, "s", i, 2*size-i) },
		"a chain backwards": func(i int) *capture.Span { return span(i+1, i+2, "s", i, 2*size-i) },
		"one cycle":         func(i int) *capture.Span { return span(i+1, (i+1)%size+1, "s", i, 2*size-i) },
		"siblings":          func(i int) *capture.Span { return span(i+1, min(i, 1), "s", i, i+1) },
		"siblings at once":  func(i int) *capture.Span { return span(i+1, min(i, 1), "s", 0, 1) },
		"one identifier":    func(int) *capture.Span { return span(1, 1, "s", 0, 1) },
	}
	for name, shape := range shapes {
		t.Run(name, func(t *testing.T) {
			begin := time.Now()
			var spans []*capture.Span
			for i := range size {
				spans = append(spans, shape(i))
			}
			c := &capture.Capture{Spans: spans}
			traces := c.Traces()
			require.Len(t, traces, 1)
			n := 0
			for _, root := range traces[0].Roots() {
				n++
				for s := range traces[0].Descendants(root) {
					n++
					if traces[0].Parent(s) == nil {
						t.Fatal("a descendant has no parent")
					}
				}
			}
			assert.Equal(t, size, n)
			require.NoError(t, c.WriteTree(io.Discard, capture.TreeOptions{Times: true}))
			assert.Less(t, time.Since(begin), 20*time.Second)
		})
	}
}
