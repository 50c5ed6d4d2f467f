package mutate

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// WriteText writes the score, how many faults of each operator were caught, and
// each survivor with what in a contract would catch it.
func (r *Result) WriteText(w io.Writer) error {
	out := bufio.NewWriter(w)
	survivors := r.Survivors()
	fmt.Fprintf(out, "%s catches %d of %d faults (%s %%)\n", r.Contract, len(r.Mutants)-len(survivors), len(r.Mutants), percent(r.Score()))
	if n := len(r.Skipped); n > 0 {
		fmt.Fprintf(out, "%d more do not apply to this capture\n", n)
	}
	if len(r.Absent) > 0 {
		fmt.Fprintf(out, "nothing was tried at what the capture does not show:\n%s", wrap(r.Absent))
	}

	caught, total := map[Operator]int{}, map[Operator]int{}
	for i := range r.Mutants {
		total[r.Mutants[i].Operator]++
		if r.Mutants[i].Caught {
			caught[r.Mutants[i].Operator]++
		}
	}
	fmt.Fprintln(out)
	for _, o := range Operators() {
		if total[o] > 0 {
			fmt.Fprintf(out, "  %-26s%4d of %d\n", o, caught[o], total[o])
		}
	}
	if len(survivors) > 0 {
		fmt.Fprintf(out, "\n%d survived, and what would catch them:\n\n", len(survivors))
	}
	for i := range survivors {
		m := &survivors[i]
		hint := hintFor(m)
		if len(m.Warned) > 0 {
			hint = "only a warning: severity of " + strings.Join(m.Warned, ", ")
		}
		fmt.Fprintf(out, "  %s\n      → %s\n", m, hint)
	}
	return out.Flush()
}

// String names the fault: "scale-up llm.ttft_ms of inference".
func (m Mutant) String() string {
	text := string(m.Operator)
	if m.Key != "" {
		text += " " + m.Key
	}
	if m.On != "" {
		text += " of " + m.On
	}
	return text
}

// wrap returns items as indented lines of up to 100 characters.
func wrap(items []string) string {
	var b strings.Builder
	width := 0
	for i, item := range items {
		if i < len(items)-1 {
			item += ","
		}
		if width += 1 + len(item); i == 0 || width > 100 {
			if i > 0 {
				b.WriteByte('\n')
			}
			b.WriteByte(' ')
			width = 2 + len(item)
		}
		b.WriteString(" " + item)
	}
	return b.String() + "\n"
}

// percent never rounds up to 100.
func percent(share float64) string {
	return fmt.Sprintf("%.1f", float64(int(share*1000))/10)
}
