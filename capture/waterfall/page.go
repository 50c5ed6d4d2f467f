package waterfall

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// PageOptions says what a page shows. The zero value is the default.
type PageOptions struct {
	// Title stands above the traces. Empty means "Traces".
	Title string
	// MaxTraces is how many traces the page shows; it says how many more there were.
	// 0 or less means 50.
	MaxTraces int
	// MaxSiblings is how many spans below one parent are shown, those that failed or
	// took longest. 0 or less means 500. Of one trace no more than 2,000 spans are shown,
	// and of all together about 10,000.
	MaxSiblings int
}

const (
	defaultTraces       = 50
	defaultPageSiblings = 500

	maxTraceRows = 2_000
	maxPageRows  = 10_000
	leastRows    = 50 // that a trace has however many others there are

	maxEvents = 200  // of one span
	maxValue  = 4000 // characters of an attribute's value
)

//go:embed page.gohtml
var pageSource string

var page = template.Must(template.New("page").Parse(pageSource))

// RenderPage writes the spans as one HTML page that needs nothing else: no script,
// no network, light or dark as the reader's browser is set. Each trace shows its
// waterfall, where the time to first token went and when its tokens came, in the order
// of their first spans; a span
// opens to its attributes and events, which the page holds as the spans do: it is as
// confidential as they are. The error is that of w.
func RenderPage(w io.Writer, spans []Span, opts PageOptions) error {
	if opts.Title == "" {
		opts.Title = "Traces"
	}
	if opts.MaxTraces <= 0 {
		opts.MaxTraces = defaultTraces
	}
	if opts.MaxSiblings <= 0 {
		opts.MaxSiblings = defaultPageSiblings
	}
	all := traces(spans)
	shown := all[:min(len(all), opts.MaxTraces)]
	view := pageView{Title: opts.Title, More: len(all) - len(shown)}
	room := maxPageRows
	for _, spans := range shown {
		v := newTraceView(spans, opts.MaxSiblings, min(maxTraceRows, max(leastRows, room)))
		room -= len(v.Rows)
		view.Traces = append(view.Traces, v)
	}
	return page.Execute(w, view)
}

type pageView struct {
	Title  string
	Traces []traceView
	More   int // traces that are left out
}

type traceView struct {
	ID, Name, Duration string
	Count              int
	Failed             bool
	Rows               []rowView
	Columns            []string // of Facts
	Facts              [][]string
	Splits             []splitView
	Timelines          []timelineView
}

// rowView is one line of the waterfall, placed in percent of the trace.
type rowView struct {
	Depth             int
	Name, Kind, Color string
	Left, Width       string
	Token             string // where the first token came, empty for none
	Open              bool   // has not ended
	Duration, Mark    string
	Error             string
	Started           string // after the start of the trace
	Attributes        []fieldView
	Events            []fieldView
	MoreEvents        int
	Rest              bool // stands for spans that are left out
}

type fieldView struct{ Name, Value string }

type splitView struct {
	Of    string
	Parts []partView
}

type partView struct{ Name, Color, Share, Duration, Percent string }

type timelineView struct {
	Of, Unit, Path   string
	Count            int // gaps
	Stride           int
	First            string
	Median, P95, Max string
}

func newTraceView(spans []*Span, siblings, most int) traceView {
	a := newAxis(spans)
	rows := newTree(spans).rows(siblings, most, unicodeGlyphs)
	v := traceView{ID: spans[0].TraceID, Count: len(spans)}
	v.Failed = slices.ContainsFunc(spans, func(s *Span) bool { return s.Error != "" })
	if a.total > 0 {
		v.Duration = formatDuration(a.total)
	}
	if len(rows) > 0 {
		v.Name = rows[0].label
	}
	for _, r := range rows {
		v.Rows = append(v.Rows, newRowView(r, a))
		if r.span == nil {
			continue
		}
		if split, ok := newSplitView(r); ok {
			v.Splits = append(v.Splits, split)
		}
		if line, ok := newTimelineView(r, a); ok {
			v.Timelines = append(v.Timelines, line)
		}
	}
	v.Splits = v.Splits[:min(len(v.Splits), maxMeasured)]
	v.Timelines = v.Timelines[:min(len(v.Timelines), maxMeasured)]
	v.Columns, v.Facts = factTable(measuredRows(rows))
	return v
}

// factTable leaves out the columns of which nothing is known.
func factTable(measured []row) (columns []string, lines [][]string) {
	measured = measured[:min(len(measured), maxMeasured)]
	lines = make([][]string, len(measured))
	for c, name := range factColumns {
		known := false
		for _, r := range measured {
			known = known || factLine(r, unicodeGlyphs)[c] != ""
		}
		if !known {
			continue
		}
		columns = append(columns, name)
		for i, r := range measured {
			lines[i] = append(lines[i], factLine(r, unicodeGlyphs)[c])
		}
	}
	return columns, lines
}

func newRowView(r row, a axis) rowView {
	v := rowView{Depth: r.depth, Name: r.label, Rest: r.span == nil}
	s := r.span
	if s == nil {
		return v
	}
	v.Kind, v.Color, v.Error = strings.ToLower(s.Kind), colorOf(s), s.Error
	v.Duration, v.Mark = duration(s), s.refusal()
	if !s.Start.IsZero() {
		from, to := a.percent(s.Start), 100.0
		if v.Open = s.End.IsZero(); !v.Open {
			to = max(a.percent(s.End), from)
		}
		v.Left, v.Width = css(from), css(to-from)
		v.Started = a.since(s.Start)
	}
	if at, ok := s.firstToken(); ok {
		v.Token = css(a.percent(at))
	}
	for _, key := range slices.Sorted(maps.Keys(s.Attributes)) {
		v.Attributes = append(v.Attributes, fieldView{key, cutValue(s.Attributes[key])})
	}
	for _, e := range s.Events[:min(len(s.Events), maxEvents)] {
		v.Events = append(v.Events, fieldView{e.Name, a.since(e.Time)})
	}
	v.MoreEvents = len(s.Events) - len(v.Events)
	return v
}

func newSplitView(r row) (splitView, bool) {
	v := splitView{Of: r.label}
	sum := 0.0
	for _, part := range ttftParts {
		ms, _ := r.span.number(part.key)
		sum += ms
	}
	for _, part := range ttftParts {
		ms, ok := r.span.number(part.key)
		if !ok {
			continue
		}
		share := 0.0
		if sum > 0 {
			share = ms / sum
		}
		v.Parts = append(v.Parts, partView{part.name, part.name, css(100 * share), formatMs(ms), formatShare(share)})
	}
	return v, len(v.Parts) > 0
}

// The drawing of a timeline: a bar at each arrival, as high as the wait for it is
// long, on a logarithmic scale.
const (
	timelineWidth  = 1000
	timelineHeight = 60
)

func newTimelineView(r row, a axis) (timelineView, bool) {
	line := r.span.Timeline
	if line == nil || len(line.Gaps) == 0 || line.First.IsZero() {
		return timelineView{}, false
	}
	total := 1.0 // a float, so that no sum of gaps is too large
	for _, gap := range line.Gaps {
		total += float64(max(gap, 0))
	}
	sorted := slices.Clone(line.Gaps)
	slices.Sort(sorted)
	// Nearest rank: the smallest gap that at least that share does not exceed.
	quantile := func(q float64) time.Duration {
		return sorted[max(0, int(math.Ceil(q*float64(len(sorted))))-1)]
	}
	v := timelineView{
		Of: r.label, Unit: line.Unit, Count: len(line.Gaps), Stride: max(line.Stride, 1),
		First:  a.since(line.First),
		Median: formatDuration(quantile(0.5)), P95: formatDuration(quantile(0.95)), Max: formatDuration(sorted[len(sorted)-1]),
	}
	const floor = float64(10 * time.Microsecond)
	scale := math.Log(max(float64(sorted[len(sorted)-1]), 2*floor) / floor)
	var path strings.Builder
	at := 0.0
	for _, gap := range line.Gaps {
		at += float64(max(gap, 0))
		x := timelineWidth * at / total
		height := max(1, timelineHeight*math.Log(max(float64(gap), floor)/floor)/scale)
		fmt.Fprintf(&path, "M%.1f %dV%.1f", x, timelineHeight, timelineHeight-height)
	}
	v.Path = path.String()
	return v, true
}

// percent is the place of t on the axis.
func (a axis) percent(t time.Time) float64 {
	if a.total <= 0 {
		return 0
	}
	return 100 * min(max(float64(t.Sub(a.start))/float64(a.total), 0), 1)
}

// since says how long after the start of the trace t is, nothing where that is not known.
func (a axis) since(t time.Time) string {
	if t.IsZero() || a.start.IsZero() {
		return ""
	}
	return formatDuration(t.Sub(a.start))
}

// css writes a percentage.
func css(percent float64) string { return fmt.Sprintf("%.3f%%", percent) }

// colored are the roles that have a color of their own, which is also that of their
// part of the time to first token.
var colored = []string{"queue", "load", "tokenize", "schedule", "prefill", "decode", "postprocess", "retrieval", "tool"}

func colorOf(s *Span) string {
	if role := s.role(); slices.Contains(colored, role) {
		return role
	}
	return "other"
}

// cutValue is an attribute's value as text, cut where it is very long.
func cutValue(v any) string {
	text := strings.ToValidUTF8(fmt.Sprint(v), "\uFFFD")
	n := 0
	for i := range text {
		if n++; n > maxValue {
			return text[:i] + "…"
		}
	}
	return text
}
