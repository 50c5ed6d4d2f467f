package main

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

const head = `# What it costs

<!-- Written by go run ./genaitrace/internal/costdoc; DO NOT EDIT. -->

Medians of %d rounds on %s (%s/%s, %s cores), %s.
%s
A round runs each benchmark once, for %s, and the ratios are those of the medians of
this one run; absolute figures vary with the machine. Again:

` + "```sh\n%s\n```" + `

A twin does by hand, on the API of OpenTelemetry, what is measured: a test holds that
both make the same spans with the same attributes and events and record the same
metrics, but for what the token clock alone knows. The targets are those of
[ARCHITECTURE.md](../ARCHITECTURE.md), upper bounds where they do not say otherwise.

| what | figure | beside it | | ratio | target | |
|---|---|---|---|---|---|---|
`

// made says how a page was made.
type made struct {
	rounds                        int
	benchtime, command, goVersion string
}

// write writes the page.
func write(page io.Writer, r *results, how made) error {
	var table, floors bytes.Buffer
	for i, row := range rows {
		figure, beside := r.measure(row.figure), r.measure(row.beside)
		ratio, besideText, verdict := "", "", ""
		if row.beside != nil {
			besideText = text(beside)
			ratio = compared(figure.ns, beside.ns)
		}
		if row.reached != nil {
			verdict = "reached"
			if !row.reached(figure, beside) {
				verdict = "not reached"
				if row.floor != "" {
					fmt.Fprintf(&floors, "- Row %d, %s: %s.\n", i+1, row.what, row.floor)
				}
			}
		}
		fmt.Fprintf(&table, "| %d. %s | %s | %s | %s | %s | %s | %s |\n", i+1, row.what, text(figure), row.besideIs, besideText, ratio, row.target, verdict)
	}
	if len(r.missing) > 0 {
		slices.Sort(r.missing)
		return fmt.Errorf("rows.go names benchmarks that did not run: %s", strings.Join(slices.Compact(r.missing), ", "))
	}
	fmt.Fprintf(page, head, how.rounds, r.machine["cpu"], r.machine["goos"], r.machine["goarch"], r.cores, how.goVersion,
		r.steadiness(), how.benchtime, how.command)
	_, err := table.WriteTo(page)
	if err != nil || floors.Len() == 0 {
		return err
	}
	if _, err := io.WriteString(page, "\nWhat keeps a figure from its target:\n\n"); err != nil {
		return err
	}
	_, err = floors.WriteTo(page)
	return err
}

// measure is a term in this run.
func (r *results) measure(t term) measure { return measure{r.nanos(t), r.allocations(t)} }

// steadiness says how much the rounds differ.
func (r *results) steadiness() string {
	var spreads []float64
	for name := range r.ns {
		spreads = append(spreads, r.spread(name))
	}
	slices.Sort(spreads)
	if len(spreads) == 0 {
		return ""
	}
	return fmt.Sprintf("The rounds of a benchmark differ by %.0f %% of their median, at worst by %.0f %%.",
		100*spreads[len(spreads)/2], 100*spreads[len(spreads)-1])
}

// text is a measure for people. A share of an allocation is what a stream allocates by
// itself, shared among its chunks.
func text(m measure) string {
	value, unit := m.ns, "ns"
	if math.Abs(value) >= 1e4 {
		value, unit = value/1e3, "µs"
	}
	allocs := math.Round(m.allocs)
	if allocs <= 0 {
		return fmt.Sprintf("%s %s, 0 allocations", significant(value, 3), unit)
	}
	return fmt.Sprintf("%s %s, %.0f allocations", significant(value, 3), unit, allocs)
}

// compared is a ratio, from tenfold on with the larger as the figure.
func compared(figure, beside float64) string {
	switch {
	case figure <= 0 || beside <= 0:
		return "" // two terms that the machine could not tell apart
	case figure*10 <= beside:
		return significant(beside/figure, 2) + " × cheaper"
	}
	return significant(figure/beside, 2) + " ×"
}

// significant writes a number with so many digits, without an exponent.
func significant(v float64, digits int) string {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return fmt.Sprint(v)
	}
	magnitude := int(math.Floor(math.Log10(math.Abs(v))))
	places := max(0, digits-1-magnitude)
	scale := math.Pow10(digits - 1 - magnitude)
	return fmt.Sprintf("%.*f", places, math.Round(v*scale)/scale)
}
