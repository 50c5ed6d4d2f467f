package waterfall

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// maxIndent is the number of levels after which the tree goes on at the left
// edge, behind an ellipsis.
const maxIndent = 8

// row is one line of the tree: a span, or the number of siblings left out.
type row struct {
	span   *Span // nil for the number
	depth  int
	indent string
	label  string
}

// traces splits spans by trace, in the order of their first spans.
func traces(spans []Span) [][]*Span {
	index := make(map[string]int)
	var out [][]*Span
	for i := range spans {
		id := spans[i].TraceID
		n, ok := index[id]
		if !ok {
			n = len(out)
			index[id] = n
			out = append(out, nil)
		}
		out[n] = append(out[n], &spans[i])
	}
	return out
}

func earliest(spans []*Span) time.Time {
	var first time.Time
	for _, s := range spans {
		if !s.Start.IsZero() && (first.IsZero() || s.Start.Before(first)) {
			first = s.Start
		}
	}
	return first
}

// tree holds the spans of one trace as nodes. Every node is reached from exactly
// one root, whatever the parent ids of the input say.
type tree struct {
	spans    []*Span
	children [][]int
	roots    []int
	note     []string // why a span that names a parent is a root
}

func newTree(spans []*Span) *tree {
	t := &tree{
		spans:    spans,
		children: make([][]int, len(spans)),
		note:     make([]string, len(spans)),
	}
	parents := t.parents()
	for i, p := range parents {
		if p < 0 {
			t.roots = append(t.roots, i)
		} else {
			t.children[p] = append(t.children[p], i)
		}
	}
	t.sort(t.roots)
	for _, c := range t.children {
		t.sort(c)
	}
	return t
}

// parents returns the parent of every span as an index, -1 for a root.
func (t *tree) parents() []int {
	byID := make(map[string]int, len(t.spans))
	for i, s := range t.spans {
		if _, taken := byID[s.SpanID]; !taken && s.SpanID != "" {
			byID[s.SpanID] = i
		}
	}
	parents := make([]int, len(t.spans))
	for i, s := range t.spans {
		parents[i] = -1
		if strings.Trim(s.ParentID, "0") == "" {
			continue
		}
		if p, ok := byID[s.ParentID]; ok {
			parents[i] = p
		} else {
			t.note[i] = " (parent missing)"
		}
	}
	t.cutCycles(parents)
	return parents
}

// cutCycles makes the earliest span of every cycle a root.
func (t *tree) cutCycles(parents []int) {
	const (
		unseen = iota
		onPath
		done
	)
	state := make([]uint8, len(parents))
	for i := range parents {
		var path []int
		n := i
		for n >= 0 && state[n] == unseen {
			state[n] = onPath
			path = append(path, n)
			n = parents[n]
		}
		if n >= 0 && state[n] == onPath {
			cycle := path[slices.Index(path, n):]
			root := slices.MinFunc(cycle, t.compare)
			parents[root] = -1
			t.note[root] = " (parent below itself)"
		}
		for _, n := range path {
			state[n] = done
		}
	}
}

// compare orders siblings: by start, the longer one first where they start
// together, and then as they were given.
func (t *tree) compare(a, b int) int {
	x, y := t.spans[a], t.spans[b]
	return cmp.Or(x.Start.Compare(y.Start), y.End.Compare(x.End), cmp.Compare(a, b))
}

func (t *tree) sort(nodes []int) { slices.SortFunc(nodes, t.compare) }

// rows lists the tree from top to bottom with at most limit siblings below one
// parent.
func (t *tree) rows(limit int, g *glyphs) []row {
	var out []row
	var walk func(siblings []int, indent string, depth int)
	walk = func(siblings []int, indent string, depth int) {
		shown := siblings[:min(limit, len(siblings))]
		hidden := siblings[len(shown):]
		for i, n := range shown {
			branch, below := g.branch(depth, i == len(siblings)-1)
			label := g.escape(t.spans[n].Name) + t.note[n]
			out = append(out, row{span: t.spans[n], depth: depth, indent: indent + branch, label: label})
			next := indent + below
			if depth > 0 && depth%maxIndent == 0 {
				next = g.deeper
			}
			walk(t.children[n], next, depth+1)
		}
		if len(hidden) > 0 {
			branch, _ := g.branch(depth, true)
			out = append(out, row{depth: depth, indent: indent + branch, label: t.remainder(hidden, g)})
		}
	}
	walk(t.roots, "", 0)
	return out
}

// remainder says how many siblings are left out, and how many of them failed.
func (t *tree) remainder(nodes []int, g *glyphs) string {
	failed := 0
	for _, n := range nodes {
		if t.spans[n].Error != "" {
			failed++
		}
	}
	text := fmt.Sprintf("%s %d more", g.ellipsis, len(nodes))
	if failed > 0 {
		text += fmt.Sprintf(", %d failed", failed)
	}
	return text
}
