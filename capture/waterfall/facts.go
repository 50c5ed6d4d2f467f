package waterfall

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// maxMeasured bounds the model calls of one trace that are listed below it.
const maxMeasured = 12

// facts writes what the spans say about their tokens: a table with a line for
// each span that measured a time to first token and for each model call that
// counted its tokens, and where the time to first token went.
func (p *printer) facts(rows []row) {
	measured := measuredRows(rows)
	if len(measured) == 0 {
		return
	}
	more := max(0, len(measured)-maxMeasured)
	measured = measured[:len(measured)-more]

	p.table(measured)
	if more > 0 {
		p.line(fmt.Sprintf("%s %d more", p.ellipsis, more))
	}
	for _, r := range measured {
		p.split(r)
	}
}

// measuredRows are the rows of spans that measured something.
func measuredRows(rows []row) []row {
	var measured []row
	for _, r := range rows {
		if r.span == nil {
			continue
		}
		_, timed := r.span.number(keyTTFT...)
		if timed || r.span.role() == roleInference && strings.Join(facts(r.span), "") != "" {
			measured = append(measured, r)
		}
	}
	return measured
}

// factColumns are those of the table; the first two are text.
var factColumns = []string{"seen by", "", "TTFT", "per token", "tokens/s", "in", "cached", "out"}

// table has a column for every fact that at least one span knows. It shortens
// names to keep to the width, but never a number.
func (p *printer) table(measured []row) {
	lines := [][]string{factColumns}
	for _, r := range measured {
		lines = append(lines, factLine(r, p.glyphs))
	}
	const name, minName = 1, 10
	widths := make([]int, len(lines[0]))
	room := p.width
	for c := range widths {
		for _, line := range lines[1:] {
			if line[c] != "" {
				widths[c] = max(widths[c], columns(line[c]), columns(lines[0][c]))
			}
		}
		if widths[c] > 0 && c != name {
			room -= widths[c] + len(gap)
		}
	}
	widths[name] = min(widths[name], max(room, minName))

	p.line()
	for _, line := range lines {
		var parts []string
		for c, text := range line {
			switch {
			case widths[c] == 0:
			case c <= name:
				parts = append(parts, p.fit(text, widths[c]))
			default:
				parts = append(parts, padLeft(text, widths[c]))
			}
		}
		p.line(parts...)
	}
}

func factLine(r row, g *glyphs) []string {
	return append([]string{g.escape(observer(r.span)), r.label}, facts(r.span)...)
}

// observer says who measured: a call to a model has two ends, the span of the
// call itself and that of the engine, and their times differ by what lies between
// them.
func observer(s *Span) string {
	switch role := s.role(); {
	case role == roleInference && s.Kind == "CLIENT":
		return "model call"
	case role == roleInference:
		return "engine"
	default:
		return role
	}
}

// facts returns the cells of the table for one span, empty where unknown.
func facts(s *Span) []string {
	var ttft, token, rate string
	if ms, ok := s.number(keyTTFT...); ok {
		ttft = formatMs(ms)
	}
	if ms, ok := perToken(s); ok {
		token, rate = formatMs(ms), fmt.Sprintf("%.1f", 1000/ms)
	}
	count := func(keys []string) string {
		n, ok := s.number(keys...)
		if !ok {
			return ""
		}
		return fmt.Sprintf("%.0f", n)
	}
	return []string{ttft, token, rate, count(keyInput), count(keyCached), count(keyOutput)}
}

// perToken is the time per output token in milliseconds,
// (last token − first token) / (tokens − 1).
func perToken(s *Span) (float64, bool) {
	first, ok1 := s.number(keyTTFT...)
	last, ok2 := s.number(keyLastToken...)
	tokens, ok3 := s.number(keyTokenCount...)
	if !ok3 {
		tokens, ok3 = s.number(keyOutput...)
	}
	if !ok1 || !ok2 || !ok3 || tokens < 2 || last <= first {
		return 0, false
	}
	return (last - first) / (tokens - 1), true
}

// split writes the parts of the time to first token as steps of a bar.
func (p *printer) split(r row) {
	var sum float64
	known, msWidth := false, 10
	for _, part := range ttftParts {
		if ms, ok := r.span.number(part.key); ok {
			known = true
			sum += ms
			msWidth = max(msWidth, columns(formatMs(ms)))
		}
	}
	if !known {
		return
	}
	p.line()
	p.line(fmt.Sprintf("where the TTFT of %s went", r.label))
	const nameWidth, shareWidth = 12, 5
	barWidth := max(1, p.width-2-nameWidth-msWidth-shareWidth-3*len(gap))
	done := 0.0
	for _, part := range ttftParts {
		ms, ok := r.span.number(part.key)
		if !ok {
			continue
		}
		share := 0.0
		if sum > 0 {
			share = ms / sum
		}
		p.line("  "+p.fit(part.name, nameWidth), padLeft(formatMs(ms), msWidth),
			padLeft(formatShare(share), shareWidth), p.step(done, share, barWidth))
		done += share
	}
}

// step draws the part of a bar that lies between from and from+share, each a
// share of the whole.
func (p *printer) step(from, share float64, width int) string {
	start := int(math.Round(from * float64(width)))
	end := min(int(math.Round((from+share)*float64(width))), width)
	switch {
	case share <= 0:
		return ""
	case end <= start:
		return strings.Repeat(" ", min(start, width-1)) + p.thin
	default:
		return strings.Repeat(" ", start) + strings.Repeat(p.full, end-start)
	}
}

// formatShare writes a share in percent. A part that is there never reads as
// zero, and one that is not the whole never as all of it.
func formatShare(share float64) string {
	switch percent := share * 100; {
	case percent <= 0:
		return "0 %"
	case percent < 0.5:
		return "<1 %"
	case percent > 99.5 && percent < 100:
		return ">99 %"
	default:
		return fmt.Sprintf("%.0f %%", percent)
	}
}

// formatMs writes milliseconds as formatDuration does.
func formatMs(ms float64) string {
	return formatDuration(time.Duration(math.Round(min(ms*1e6, math.MaxInt64/2))))
}
