package contract

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
)

// WriteText writes the report for people: a paragraph a finding, and a summary. Of
// an empty capture it says only that it is one, because all else follows from that.
func (r *Report) WriteText(w io.Writer) error {
	b := bufio.NewWriter(w)
	if !r.Empty() {
		for i := range r.Findings {
			fmt.Fprintf(b, "%s\n", r.Findings[i].Text())
		}
	}
	for i := range r.Accepted {
		f := &r.Accepted[i]
		fmt.Fprintf(b, "accepted  %s  %s%s: %s\n", f.Rule, oneLine(f.Message), times(f.Count), oneLine(f.Reason))
	}
	if len(r.Accepted) > 0 {
		fmt.Fprintln(b)
	}
	fmt.Fprintln(b, r.Summary())
	if kinds := r.requests(); kinds != "" {
		fmt.Fprintln(b, kinds)
	}
	return b.Flush()
}

// requests says how many requests of each kind there were.
func (r *Report) requests() string {
	var kinds []string
	for _, name := range sorted(r.Requests) {
		kinds = append(kinds, fmt.Sprintf("%s %d", name, r.Requests[name]))
	}
	if kinds == nil || r.Empty() {
		return ""
	}
	return "requests: " + strings.Join(kinds, ", ")
}

// Text is the finding as a paragraph of plain text, with a line break at its end:
//
//	error  attribute.missing  call has no gen_ai.response.finish_reasons
//	       span      POST /v1/chat/completions › chat qwen2.5-7b-instruct
//	       started   gateway/handler.go:42
//	       expected  gen_ai.response.finish_reasons
//	       found     nothing
//	       trace     4bf92f3577b34da6a3ce929d0e0e4736 span 00f067aa0ba902b7
//	       fix       set it before the span ends
//	       contract  observability.yaml:12:7
//	       seen      3 times
func (f *Finding) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-5s  %s  %s\n", f.Severity, f.Rule, oneLine(f.Message))
	line := func(label, text string) {
		if text != "" {
			fmt.Fprintf(&b, "       %-9s %s\n", label, oneLine(text))
		}
	}
	if f.Path == "" && !strings.Contains(f.Message, f.On) {
		line("on", f.On) // a metric or a log event, which the message does not name
	}
	line("span", f.Path)
	line("started", f.Source.String())
	line("expected", f.Expected)
	line("found", f.Found)
	if f.TraceID.IsValid() {
		line("trace", f.TraceID.String()+" span "+f.SpanID.String())
	}
	line("fix", f.Fix)
	line("contract", f.Contract.String())
	if f.Count > 1 {
		line("seen", fmt.Sprintf("%d times", f.Count))
	}
	return b.String()
}

// Summary says in one line what was checked and found.
func (r *Report) Summary() string {
	tested := 0
	for _, c := range r.Rules {
		if c.Tested > 0 {
			tested++
		}
	}
	text := fmt.Sprintf("%s: %s, %s in %s, %s, %s; %d of %d rules tested",
		cmp.Or(r.Contract, "contract"), result(r), count(r.Spans, "span"), count(r.Traces, "trace"),
		count(r.Metrics, "metric"), count(r.Logs, "log record"), tested, len(r.Rules))
	if len(r.Accepted) > 0 {
		text += fmt.Sprintf(", %d accepted", len(r.Accepted))
	}
	for _, lost := range []struct {
		n          int
		what, fate string
	}{
		{r.Late, "late span", "not checked"}, {r.Evicted, "trace", "checked early"},
		{r.Dropped, "record", "dropped by the capture"}, {r.Omitted, "violation", "not listed"},
	} {
		if lost.n > 0 {
			text += ", " + count(lost.n, lost.what) + " " + lost.fate
		}
	}
	return text
}

func result(r *Report) string {
	switch errors, warnings := r.Count(Error), r.Count(Warn); {
	case r.Empty():
		return "nothing to check"
	case errors+warnings == 0:
		return "ok"
	case warnings == 0:
		return count(errors, "error")
	default:
		return count(errors, "error") + ", " + count(warnings, "warning")
	}
}

func times(n int) string {
	if n < 2 {
		return ""
	}
	return fmt.Sprintf(" (%d times)", n)
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// oneLine keeps what telemetry says from ending a line or driving a terminal.
func oneLine(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }) {
		return s
	}
	var b strings.Builder
	for _, r := range strings.ToValidUTF8(s, "?") {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
		} else {
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		}
	}
	return b.String()
}
