package waterfall

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"
)

const (
	defaultWidth    = 100
	minWidth        = 40
	defaultSiblings = 40
	maxRows         = 500 // spans of one trace

	minBar   = 10 // columns that a bar keeps however long the names are
	kindFrom = 80 // width from which the kinds are shown
	gap      = "  "
)

// Options says how a waterfall is drawn. The zero value is the default.
type Options struct {
	// Width is the number of columns that the tree takes. 0 means 100; less than
	// 40 counts as 40.
	Width int
	// ASCII draws with ASCII characters only.
	ASCII bool
	// MaxSiblings is how many spans below one parent are shown, those that failed or
	// took longest; the rest become one line with their number. 0 or less means 40. Of
	// one trace no more than 500 spans are shown.
	MaxSiblings int
}

// Render writes the spans as a waterfall, one after the other, by their start, where
// they belong to several traces. Without spans it writes one line that says so. The error is
// that of w.
func Render(w io.Writer, spans []Span, opts Options) error {
	p := newPrinter(w, opts)
	if len(spans) == 0 {
		p.printf("no spans\n")
	}
	all := traces(spans)
	slices.SortStableFunc(all, func(a, b []*Span) int { return earliest(a).Compare(earliest(b)) })
	for i, trace := range all {
		if i > 0 {
			p.printf("\n")
		}
		p.trace(trace)
	}
	return p.out.Flush()
}

// printer draws traces. Errors of the writer stay in out, which reports them
// from Flush.
type printer struct {
	out      *bufio.Writer
	width    int
	siblings int
	*glyphs
}

func newPrinter(w io.Writer, opts Options) *printer {
	p := &printer{out: bufio.NewWriter(w), width: defaultWidth, siblings: defaultSiblings, glyphs: unicodeGlyphs}
	if opts.Width > 0 {
		p.width = max(opts.Width, minWidth)
	}
	if opts.MaxSiblings > 0 {
		p.siblings = opts.MaxSiblings
	}
	if opts.ASCII {
		p.glyphs = asciiGlyphs
	}
	return p
}

func (p *printer) printf(format string, args ...any) {
	fmt.Fprintf(p.out, format, args...)
}

// line writes one line without the blanks at its end.
func (p *printer) line(parts ...string) {
	p.printf("%s\n", strings.TrimRight(strings.Join(parts, gap), " "))
}

func (p *printer) trace(spans []*Span) {
	a := newAxis(spans)
	rows := newTree(spans).rows(p.siblings, maxRows, p.glyphs)

	p.header(spans, a)
	p.bars(rows, a)
	p.failures(rows)
	p.facts(rows)
}

func (p *printer) header(spans []*Span, a axis) {
	var parts []string
	if id := spans[0].TraceID; id != "" {
		parts = append(parts, "trace "+p.escape(id))
	}
	if len(spans) == 1 {
		parts = append(parts, "1 span")
	} else {
		parts = append(parts, fmt.Sprintf("%d spans", len(spans)))
	}
	if a.total > 0 {
		parts = append(parts, formatDuration(a.total))
	}
	if slices.ContainsFunc(spans, func(s *Span) bool { _, ok := s.firstToken(); return ok }) {
		parts = append(parts, p.token+" first token")
	}
	p.line(strings.Join(parts, " "+p.dot+" "))
}

// bars writes the tree. The names get the room that they need, up to 45 % of the
// line; the bars get what is left.
func (p *printer) bars(rows []row, a axis) {
	var nameWidth, kindWidth, durationWidth int
	durations, marks := make([]string, len(rows)), make([]string, len(rows))
	markWidth := columns(p.failed)
	for i, r := range rows {
		nameWidth = max(nameWidth, columns(r.indent)+columns(r.label))
		if r.span == nil {
			continue
		}
		durations[i] = duration(r.span)
		durationWidth = max(durationWidth, columns(durations[i]))
		marks[i] = p.mark(r.span)
		markWidth = max(markWidth, min(columns(marks[i]), p.width/5))
		if p.width >= kindFrom {
			kindWidth = max(kindWidth, min(len("INTERNAL"), columns(p.escape(r.span.Kind))))
		}
	}
	rest := p.width - len(gap) - durationWidth - len(gap) - 1 - markWidth
	if kindWidth > 0 {
		rest -= len(gap) + kindWidth
	}
	barWidth := max(minBar, rest-min(nameWidth, p.width*45/100))
	nameWidth = min(nameWidth, rest-barWidth)

	for i, r := range rows {
		parts := []string{p.fit(r.indent+r.label, nameWidth)}
		if r.span == nil {
			p.line(parts...)
			continue
		}
		if kindWidth > 0 {
			parts = append(parts, p.fit(p.escape(r.span.Kind), kindWidth))
		}
		parts = append(parts, p.bar(r.span, a, barWidth),
			padLeft(durations[i], durationWidth)+" "+p.fit(marks[i], markWidth))
		p.line(parts...)
	}
}

// mark says behind a span that it failed, or how the call that it served ended
// where that is no failure of the span. What failed is listed below the tree.
func (p *printer) mark(s *Span) string {
	if s.Error != "" {
		return p.failed
	}
	return p.escape(s.refusal())
}

// bar draws the time of one span on the axis, in half columns.
func (p *printer) bar(s *Span, a axis, width int) string {
	cells := make([]string, width)
	for i := range cells {
		cells[i] = " "
	}
	if s.Start.IsZero() {
		return strings.Join(cells, "")
	}
	ended := !s.End.IsZero()
	from, to := a.position(s.Start, 2*width), 2*width
	if ended {
		to = a.position(s.End, 2*width)
	}
	if to <= from {
		cells[min(from/2, width-1)] = p.thin
	}
	for half := from; half < to; half++ {
		cell := &cells[half/2]
		switch {
		case !ended:
			*cell = p.open
		case half%2 == 0:
			*cell = p.left
		case *cell == p.left:
			*cell = p.full
		default:
			*cell = p.right
		}
	}
	if at, ok := s.firstToken(); ok {
		cells[min(a.position(at, 2*width)/2, width-1)] = p.token
	}
	return strings.Join(cells, "")
}

// failures lists what went wrong below the tree.
func (p *printer) failures(rows []row) {
	const limit = 10
	var failed []row
	for _, r := range rows {
		if r.span != nil && r.span.Error != "" {
			failed = append(failed, r)
		}
	}
	if len(failed) == 0 {
		return
	}
	p.line()
	for _, r := range failed[:min(limit, len(failed))] {
		text := fmt.Sprintf("%s %s: %s", p.failed, r.label, p.escape(r.span.Error))
		p.line(p.fit(text, p.width))
	}
	if more := len(failed) - limit; more > 0 {
		p.line(fmt.Sprintf("%s %d more failed", p.ellipsis, more))
	}
}

// axis maps times to columns.
type axis struct {
	start time.Time
	total time.Duration
}

// newAxis spans everything that is known about the spans, events included.
func newAxis(spans []*Span) axis {
	a := axis{start: earliest(spans)}
	if a.start.IsZero() {
		return a
	}
	for _, s := range spans {
		for _, t := range []time.Time{s.Start, s.End} {
			if !t.IsZero() {
				a.total = max(a.total, t.Sub(a.start))
			}
		}
		if t, ok := s.firstToken(); ok {
			a.total = max(a.total, t.Sub(a.start))
		}
	}
	return a
}

// position returns the step of t on an axis of the given number of steps. Times
// off the axis are moved to its nearer end.
func (a axis) position(t time.Time, steps int) int {
	if a.total <= 0 {
		return 0
	}
	share := float64(t.Sub(a.start)) / float64(a.total)
	return int(math.Round(min(max(share, 0), 1) * float64(steps)))
}

// duration is the text for the length of a span: empty where it is not known and
// a question mark where the end lies before the start.
func duration(s *Span) string {
	switch {
	case s.Start.IsZero() || s.End.IsZero():
		return ""
	case s.End.Before(s.Start):
		return "?"
	default:
		return formatDuration(s.End.Sub(s.Start))
	}
}

// formatDuration writes d in milliseconds, however long it is, so that durations
// compare at a glance. What is shorter than the last digit shows is named as such:
// a measured time never reads as zero.
func formatDuration(d time.Duration) string {
	switch {
	case d < 0:
		return "-" + formatDuration(-max(d, -math.MaxInt64))
	case d == 0:
		return "0.0 ms"
	case d < 50*time.Microsecond:
		return "<0.1 ms"
	default:
		return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
	}
}
