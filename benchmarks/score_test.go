package benchmarks

import (
	"fmt"
	"strings"
)

// A score adds up the cells of a column.
type score struct {
	column              string
	ttft, usage, finish [wrong + 1]int // by verdict
	failures, marked    int
	benign, mismarked   int
	unended             int
}

func (s *score) add(c cell) {
	s.unended += number(c.unended)
	if c.unread {
		return
	}
	s.ttft[c.ttft]++
	s.usage[c.usage]++
	s.finish[c.finish]++
	switch {
	case c.failed:
		s.failures++
		s.marked += number(c.marked)
	default:
		s.benign++
		s.mismarked += number(c.marked)
	}
}

func number(b bool) int {
	if b {
		return 1
	}
	return 0
}

// table renders scores as Markdown.
func table(scores []score) string {
	var b strings.Builder
	b.WriteString("| column | TTFT right / none / wrong | usage right / none / wrong | finish right / none / wrong | failures marked | benign marked | never ended |\n")
	b.WriteString("|---|---|---|---|---|---|---|\n")
	for _, s := range scores {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %d of %d | %d of %d | %d |\n", s.column,
			counts(s.ttft), counts(s.usage), counts(s.finish), s.marked, s.failures, s.mismarked, s.benign, s.unended)
	}
	return b.String()
}

func counts(by [wrong + 1]int) string {
	return fmt.Sprintf("%d / %d / %d", by[right], by[silent], by[wrong])
}
