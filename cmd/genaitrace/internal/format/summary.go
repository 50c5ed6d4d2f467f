package format

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/genaitrace/otelgenai/contract"
)

// GitHub refuses a summary of more than 1 MiB. maxRows × maxCell × the columns
// stays far below.
const (
	maxRows = 100
	maxCell = 400 // in bytes, before escaping
)

// Summary writes r as Markdown, for the summary of a step.
func Summary(w io.Writer, r *contract.Report) error {
	var out strings.Builder
	fmt.Fprintf(&out, "### Contract %s: %s\n\n%s\n", cell(r.Contract), Count(r), cell(r.Summary()))
	if len(r.Findings) > 0 {
		out.WriteString("\n| | Rule | On | What is wrong | Where | Times |\n|---|---|---|---|---|---:|\n")
		for i := range r.Findings[:min(len(r.Findings), maxRows)] {
			f := &r.Findings[i]
			fmt.Fprintf(&out, "| %s | %s | %s | %s | %s | %d |\n", f.Severity, cell(f.Rule), cell(f.On), cell(f.Message), where(f), f.Count)
		}
		if n := len(r.Findings) - maxRows; n > 0 {
			fmt.Fprintf(&out, "\nAnd %s.\n", count(n, "more finding"))
		}
	}
	if len(r.Accepted) > 0 {
		out.WriteString("\n| Accepted | On | What is wrong | Why it is accepted | Times |\n|---|---|---|---|---:|\n")
		for i := range r.Accepted[:min(len(r.Accepted), maxRows)] {
			f := &r.Accepted[i]
			fmt.Fprintf(&out, "| %s | %s | %s | %s | %d |\n", cell(f.Rule), cell(f.On), cell(f.Message), cell(f.Reason), f.Count)
		}
		if n := len(r.Accepted) - maxRows; n > 0 {
			fmt.Fprintf(&out, "\nAnd %s.\n", count(n, "more accepted finding"))
		}
	}
	out.WriteByte('\n') // other steps may append
	_, err := io.WriteString(w, out.String())
	return err
}

func where(f *contract.Finding) string {
	switch {
	case f.Source.Known():
		return cell(f.Source.File + ":" + strconv.Itoa(f.Source.Line))
	case f.Path != "":
		return cell(f.Path)
	default:
		return cell(f.Contract.String())
	}
}

var cellEscapes = strings.NewReplacer(
	"\n", " ", "\r", " ", "|", "\\|", "\\", "\\\\", "`", "\\`", "*", "\\*", "_", "\\_", "~", "\\~",
	"[", "\\[", "]", "\\]", "<", "&lt;", ">", "&gt;", "&", "&amp;",
)

// cell makes text plain in a cell of a table.
func cell(text string) string {
	if len(text) > maxCell {
		end := maxCell
		for !utf8.RuneStart(text[end]) {
			end--
		}
		text = text[:end] + "…"
	}
	return cellEscapes.Replace(text)
}
