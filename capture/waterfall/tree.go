package waterfall

import (
	"cmp"
	"fmt"
	"math"
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

// rows lists the tree from top to bottom, with at most limit siblings below one parent
// and at most most spans. What is left out is counted. Roots stay first, then what has
// failed, then what took long, each with the spans above it.
func (t *tree) rows(limit, most int, g *glyphs) []row {
	children := make([][]int, len(t.children))
	worst := t.worst()
	for n, c := range t.children {
		children[n] = t.crop(c, limit, worst)
	}
	roots := t.crop(t.roots, limit, worst)
	shown, left := t.choose(roots, children, most)

	var out []row
	var walk func(all, some []int, indent string, depth int)
	walk = func(all, some []int, indent string, depth int) {
		some = slices.DeleteFunc(some, func(n int) bool { return !shown[n] })
		for i, n := range some {
			branch, below := g.branch(depth, i == len(all)-1)
			label := g.escape(t.spans[n].Name) + t.note[n]
			out = append(out, row{span: t.spans[n], depth: depth, indent: indent + branch, label: label})
			next := indent + below
			if depth > 0 && depth%maxIndent == 0 {
				next = g.deeper
			}
			walk(t.children[n], children[n], next, depth+1)
		}
		if len(some) < len(all) {
			branch, _ := g.branch(depth, true)
			out = append(out, row{depth: depth, indent: indent + branch, label: t.remainder(all, some, g)})
		}
	}
	walk(t.roots, roots, "", 0)
	if left > 0 {
		out = append(out, row{label: fmt.Sprintf("%s %d of %d spans are left out: no more than %d are shown", g.ellipsis, left, len(t.spans), most)})
	}
	return out
}

// gravity says whether a span or one below it has failed, and how long the longest took.
type gravity struct {
	failed  bool
	longest time.Duration
}

func (t *tree) worst() []gravity {
	worst := make([]gravity, len(t.spans))
	t.visit(t.roots, t.children, nil, func(n int) {
		worst[n] = gravity{t.spans[n].Error != "", t.length(n)}
		for _, c := range t.children[n] {
			worst[n] = gravity{worst[n].failed || worst[c].failed, max(worst[n].longest, worst[c].longest)}
		}
	})
	return worst
}

// visit calls before on each span before and after on it after those below it.
func (t *tree) visit(nodes []int, children [][]int, before, after func(n int)) {
	for _, n := range nodes {
		if before != nil {
			before(n)
		}
		t.visit(children[n], children, before, after)
		if after != nil {
			after(n)
		}
	}
}

// crop returns up to limit siblings in their order: those with a failure first, then
// those that took longest.
func (t *tree) crop(nodes []int, limit int, worst []gravity) []int {
	if len(nodes) <= limit {
		return slices.Clone(nodes)
	}
	ranked := slices.Clone(nodes)
	slices.SortStableFunc(ranked, func(a, b int) int {
		return cmp.Or(later(worst[a].failed, worst[b].failed), cmp.Compare(worst[b].longest, worst[a].longest))
	})
	ranked = ranked[:limit]
	t.sort(ranked)
	return ranked
}

// choose returns which spans are shown, at most most of them, and how many more of the
// tree there were.
func (t *tree) choose(roots []int, children [][]int, most int) (shown []bool, left int) {
	shown = make([]bool, len(t.spans))
	parents := make([]int, len(t.spans))
	var all []int
	for _, n := range roots {
		parents[n] = -1
	}
	t.visit(roots, children, func(n int) {
		all = append(all, n)
		for _, c := range children[n] {
			parents[c] = n
		}
	}, nil)
	if len(all) > most {
		slices.SortStableFunc(all, func(a, b int) int {
			return cmp.Or(later(parents[a] < 0, parents[b] < 0), later(t.spans[a].Error != "", t.spans[b].Error != ""),
				cmp.Compare(t.length(b), t.length(a)))
		})
	}
	room := most
	for _, n := range all {
		path := 0
		for up := n; up >= 0 && !shown[up] && path <= room; up = parents[up] {
			path++
		}
		if path > room {
			continue
		}
		room -= path
		for up := n; up >= 0 && !shown[up]; up = parents[up] {
			shown[up] = true
		}
		if room == 0 {
			break
		}
	}
	if len(all) <= most {
		return shown, 0
	}
	return shown, len(t.spans) - most + room
}

// later puts what is true before what is not.
func later(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	default:
		return 1
	}
}

// length is how long a span took; one that has not ended is the longest.
func (t *tree) length(n int) time.Duration {
	s := t.spans[n]
	switch {
	case s.Start.IsZero():
		return 0
	case s.End.IsZero():
		return math.MaxInt64
	default:
		return s.End.Sub(s.Start)
	}
}

// remainder says how many siblings are left out, and how many of them failed.
func (t *tree) remainder(all, shown []int, g *glyphs) string {
	failed := 0
	for _, n := range all {
		if t.spans[n].Error != "" {
			failed++
		}
	}
	for _, n := range shown {
		if t.spans[n].Error != "" {
			failed--
		}
	}
	text := fmt.Sprintf("%s %d more", g.ellipsis, len(all)-len(shown))
	if failed > 0 {
		text += fmt.Sprintf(", %d failed", failed)
	}
	return text
}
