package capture

import (
	"bufio"
	"cmp"
	"crypto/sha256"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"

	"github.com/genaitrace/otelgenai/semconv"
)

// TreeOptions says what the text of a tree shows besides the name, the kind, the
// role (genai.span.role) and the status of each span. The zero value shows nothing
// more, and nothing that changes from run to run.
type TreeOptions struct {
	// Attributes are globs over the keys of attributes to show, those of events and
	// links included; * is all. A value that is likely to change from run to run is
	// shown as its type, such as <double>: durations and other measurements,
	// identifiers, hashes, ports.
	Attributes []string
	// Values are globs over the keys of attributes whose values are shown as they are.
	Values []string
	// Events shows the events.
	Events bool
	// Links shows the links, with the name of a span that the capture holds.
	Links bool
	// Times shows when each span starts and how long it takes, and when each event is,
	// counted from the start of the trace, and the values of measurements. It is for
	// tests under testing/synctest, where all these are the same in every run.
	Times bool
}

// String returns the tree as text, one line a span:
//
//	POST /v1/chat/completions [server, gateway]
//	  chat toy-1 [client, inference, error "device lost"]
func (t *Trace) String() string {
	var b strings.Builder
	_ = t.WriteTree(&b, TreeOptions{}) // a Builder does not fail
	return b.String()
}

// WriteTree writes the tree as text, one line a span and below it what opts asks
// for. The text is the same for the same tree, whatever its identifiers are:
// siblings stand in the order of their start, then of their name and content. The
// error is that of w.
func (t *Trace) WriteTree(w io.Writer, opts TreeOptions) error {
	out := bufio.NewWriter(w)
	text := newTreeText(opts)
	text.add(t)
	text.write(out, t)
	return out.Flush()
}

// String returns the trees of all traces as text, with an empty line between them.
func (c *Capture) String() string {
	var b strings.Builder
	_ = c.WriteTree(&b, TreeOptions{}) // a Builder does not fail
	return b.String()
}

// WriteTree writes the trees of all traces in the order of their start, then of
// their text, with an empty line between them. See [Trace.WriteTree].
func (c *Capture) WriteTree(w io.Writer, opts TreeOptions) error {
	traces := c.Traces()
	text := newTreeText(opts)
	for _, t := range traces {
		text.add(t)
	}
	texts := make([]string, len(traces))
	order := make([]int, len(traces))
	for i, t := range traces {
		var b strings.Builder
		text.write(&b, t)
		texts[i], order[i] = b.String(), i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(traces[a].Spans[0].Start.Compare(traces[b].Spans[0].Start), cmp.Compare(texts[a], texts[b]))
	})
	out := bufio.NewWriter(w)
	for n, i := range order {
		if n > 0 {
			fmt.Fprintln(out)
		}
		fmt.Fprint(out, texts[i])
	}
	return out.Flush()
}

// maxIndent is the depth from which lines are no longer indented further; they say
// their depth instead.
const maxIndent = 40

// treeText writes trees.
type treeText struct {
	TreeOptions

	attributes, values globs
	names              map[spanKey]string // of spans that links may lead to
}

func newTreeText(opts TreeOptions) *treeText {
	return &treeText{opts, newGlobs(opts.Attributes), newGlobs(opts.Values), map[spanKey]string{}}
}

func (x *treeText) add(t *Trace) {
	if !x.Links {
		return
	}
	for _, s := range t.Spans {
		x.names[spanKey{s.TraceID, s.SpanID}] = s.Name
	}
}

// write writes one tree. It keeps its own stack, for a trace may be deep.
func (x *treeText) write(out io.Writer, t *Trace) {
	o := newOrdered(x, t)
	type visit struct {
		span  int32
		depth int
	}
	var stack []visit
	push := func(siblings []int32, depth int) {
		o.sort(siblings)
		for _, i := range slices.Backward(siblings) {
			stack = append(stack, visit{i, depth})
		}
	}
	push(slices.Clone(t.roots), 0)
	for len(stack) > 0 {
		v := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		indent := strings.Repeat("  ", min(v.depth, maxIndent))
		for n, line := range o.own(v.span) {
			switch {
			case n > 0:
				line = "    " + line
			case v.depth > maxIndent:
				line = fmt.Sprintf("(depth %d) %s", v.depth, line)
			}
			fmt.Fprintln(out, indent+line)
		}
		push(o.children(v.span), v.depth+1)
	}
}

// lines returns the lines of one span without what is below it.
func (x *treeText) lines(t *Trace, i int32) []string {
	s := t.Spans[i]
	lines := []string{x.head(t, i)}
	lines = append(lines, x.attributeLines("", s.Attributes)...)
	if x.Links {
		for _, l := range s.Links {
			line := "-> a span that was not captured"
			if name, ok := x.names[spanKey{l.TraceID, l.SpanID}]; ok {
				line = "-> " + printable(name)
			}
			lines = append(lines, line)
			lines = append(lines, x.attributeLines("    ", l.Attributes)...)
		}
	}
	if x.Events {
		for _, e := range s.Events {
			line := "* " + printable(e.Name)
			if x.Times {
				line += " at " + since(t, e.Time)
			}
			lines = append(lines, line)
			lines = append(lines, x.attributeLines("    ", e.Attributes)...)
		}
	}
	return lines
}

// head is the first line of a span.
func (x *treeText) head(t *Trace, i int32) string {
	s := t.Spans[i]
	facts := []string{s.Kind.String()}
	if role := s.Attributes.String(semconv.GenAISpanRoleKey); role != "" {
		facts = append(facts, printable(role))
	}
	if s.ParentID.IsValid() && t.links[i].parent < 0 {
		switch {
		case t.Span(s.ParentID) != nil:
			facts = append(facts, "its own ancestor")
		case s.ParentOrigin == OriginRemote:
			facts = append(facts, "remote parent")
		default:
			facts = append(facts, "parent missing")
		}
	}
	if s.Status != codes.Unset {
		status := strings.ToLower(s.Status.String())
		if s.StatusMessage != "" {
			status += " " + withoutPorts(strconv.Quote(s.StatusMessage))
		}
		facts = append(facts, status)
	}
	if !s.Ended() {
		facts = append(facts, "never ended")
	}
	line := printable(s.Name) + " [" + strings.Join(facts, ", ") + "]"
	if x.Times {
		line += " at " + since(t, s.Start)
		if s.Ended() && !s.Start.IsZero() {
			line += " for " + s.Duration().String()
		}
	}
	return line
}

func (x *treeText) attributeLines(indent string, attributes Attributes) []string {
	var lines []string
	for _, kv := range attributes {
		if x.attributes.match(string(kv.Key)) {
			lines = append(lines, indent+printable(string(kv.Key))+": "+x.value(kv))
		}
	}
	slices.Sort(lines)
	return lines
}

func (x *treeText) value(kv attribute.KeyValue) string {
	if x.values.match(string(kv.Key)) {
		return literal(kv.Value)
	}
	if !repeats(kv, x.Times) {
		return "<" + typeName(kv.Value.Type()) + ">"
	}
	return withoutPorts(literal(kv.Value))
}

// since returns a moment as it is counted in the text of a tree.
func since(t *Trace, moment time.Time) string {
	for _, s := range t.Spans {
		if !s.Start.IsZero() && !moment.IsZero() {
			return moment.Sub(s.Start).String()
		}
	}
	return "an unknown time"
}

// ordered sorts the siblings of one tree.
type ordered struct {
	*treeText

	trace *Trace
	texts [][]string // lines of each span, nil until asked for
	sums  map[int32][sha256.Size]byte
}

func newOrdered(x *treeText, t *Trace) *ordered {
	return &ordered{x, t, make([][]string, len(t.Spans)), make(map[int32][sha256.Size]byte)}
}

// own returns the lines of one span.
func (o *ordered) own(i int32) []string {
	if o.texts[i] == nil {
		o.texts[i] = o.lines(o.trace, i)
	}
	return o.texts[i]
}

func (o *ordered) children(i int32) []int32 {
	var all []int32
	for c := o.trace.links[i].child; c >= 0; c = o.trace.links[c].next {
		all = append(all, c)
	}
	return all
}

// sort puts siblings in order. Only what starts at the same time under the same
// name is compared by its lines, and by what is below it: concurrent work under a
// fake clock.
func (o *ordered) sort(siblings []int32) {
	spans := o.trace.Spans
	slices.SortStableFunc(siblings, func(a, b int32) int {
		if c := cmp.Or(spans[a].Start.Compare(spans[b].Start), cmp.Compare(spans[a].Name, spans[b].Name)); c != 0 {
			return c
		}
		if c := slices.Compare(o.own(a), o.own(b)); c != 0 {
			return c
		}
		x, y := o.sum(a), o.sum(b)
		return slices.Compare(x[:], y[:])
	})
}

// sum tells subtrees apart by their text.
func (o *ordered) sum(i int32) [sha256.Size]byte {
	if known, ok := o.sums[i]; ok {
		return known
	}
	h := sha256.New()
	for _, line := range o.own(i) {
		fmt.Fprintln(h, line)
	}
	below := o.children(i)
	o.sort(below)
	for _, c := range below {
		sum := o.sum(c)
		h.Write(sum[:])
	}
	o.sums[i] = [sha256.Size]byte(h.Sum(nil))
	return o.sums[i]
}
