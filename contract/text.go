package contract

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/genaitrace/otelgenai/capture"
)

// WriteText writes the report for people: a paragraph a finding, and a summary.
func (r *Report) WriteText(w io.Writer) error {
	b := bufio.NewWriter(w)
	for i := range r.Findings {
		fmt.Fprintf(b, "%s\n", r.Findings[i].Text())
	}
	for i := range r.Accepted {
		f := &r.Accepted[i]
		fmt.Fprintf(b, "accepted  %s  %s (%s)\n", f.Rule, f.Message, f.Reason)
	}
	if len(r.Accepted) > 0 {
		fmt.Fprintln(b)
	}
	fmt.Fprintln(b, r.Summary())
	return b.Flush()
}

// Text is the finding as a paragraph, with a line break at its end.
func (f *Finding) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-5s  %s  %s\n", f.Severity, f.Rule, f.Message)
	line := func(label, text string) {
		if text != "" {
			fmt.Fprintf(&b, "       %-9s %s\n", label, text)
		}
	}
	line("span", f.Path)
	line("started", sourceLine(f.Source))
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
		n    int
		what string
	}{{r.Late, "late spans not checked"}, {r.Evicted, "traces checked early"}, {r.Dropped, "records dropped by the capture"}} {
		if lost.n > 0 {
			text += fmt.Sprintf(", %d %s", lost.n, lost.what)
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

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// sourceLine names a line of code, from the working directory on where it is below.
func sourceLine(s capture.Source) string {
	if !s.Known() {
		return ""
	}
	file := s.File
	if dir, err := os.Getwd(); err == nil {
		if rel, err := filepath.Rel(dir, file); err == nil && !strings.HasPrefix(rel, "..") {
			file = rel
		}
	}
	return fmt.Sprintf("%s:%d", file, s.Line)
}
