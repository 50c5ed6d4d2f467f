package main

import (
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/perf/benchmath"

	"github.com/genaitrace/otelgenai/benchmarks/internal/column"
)

// A page is what RESULTS.md says.
type page struct {
	rounds   int
	chats    int
	command  string
	truth    string
	load     []string // at the start and at the end
	exported *results
	costs    []*results // by round
}

// cpu is the unit of what benchmarks report as cpu-ns/op: benchfmt reads seconds.
const cpu = "cpu-sec/op"

// measure is the column that the ratios are over.
const measure = "handwritten"

func (p *page) write(w io.Writer) error {
	if len(p.costs) == 0 || len(p.costs[0].by) == 0 {
		return fmt.Errorf("no benchmark ran")
	}
	fmt.Fprintf(w, head, p.command, p.rounds, p.chats, p.chats/10, p.costs[0].machine, runtime.NumCPU(), runtime.Version(), strings.Join(p.load, " and "))
	fmt.Fprint(w, truthText, p.truth, costText)
	for _, c := range column.All() {
		if c.Bare == "" {
			continue
		}
		fmt.Fprintf(w, "| %s | %s | %s | %s | %s | %s | %s |\n", c.Name,
			p.ratio(c, "spans", "500"), p.ratio(c, "spans", "2000"), p.ratio(c, "nothing", "500"),
			p.memory(c, "B/op", 0), p.memory(c, "allocs/op", 2), p.bytes(c))
		if c.Metrics {
			fmt.Fprintf(w, "| %s, with its metrics | %s | | %s | | | |\n", c.Name, p.ratio(c, "spans+metrics", "500"), p.ratio(c, "metrics", "500"))
		}
	}
	_, err := fmt.Fprint(w, tail)
	return err
}

// cost is what a column adds a chunk in one round, above its bare column.
func cost(r *results, c column.Column, record, chunks, unit string) (float64, bool) {
	with, ok := r.value(key{record, chunks, c.Name}, unit)
	under := record
	if under == "spans+metrics" || under == "metrics" {
		under = "nothing" // a bare column records nothing, whatever there is to record with
	}
	without, ok2 := r.value(key{under, chunks, c.Bare}, unit)
	n, err := strconv.Atoi(chunks)
	return (with - without) / float64(n), ok && ok2 && err == nil
}

// ratio is the median of a column's cost in CPU time over that of the measure, recorded,
// in the same round and over as many chunks.
func (p *page) ratio(c column.Column, record, chunks string) string {
	by := column.All()
	m := by[slices.IndexFunc(by, func(c column.Column) bool { return c.Name == measure })]
	var ratios []float64
	for _, r := range p.costs {
		is, ok := cost(r, c, record, chunks, cpu)
		over, ok2 := cost(r, m, "spans", chunks, cpu)
		if ok && ok2 && over > 0 {
			ratios = append(ratios, is/over)
		}
	}
	if len(ratios) == 0 {
		return ""
	}
	s := benchmath.AssumeNothing.Summary(benchmath.NewSample(ratios, &benchmath.DefaultThresholds), 0.95)
	if math.IsInf(s.Lo, 0) || math.IsInf(s.Hi, 0) || len(ratios) < 2 {
		return round(s.Center)
	}
	center := round(s.Center)
	if s.Lo < 0 && s.Hi > 0 {
		center = "~"
	}
	return fmt.Sprintf("%s (%s … %s)", center, round(s.Lo), round(s.Hi))
}

// round has two digits that mean something.
func round(v float64) string {
	switch a := math.Abs(v); {
	case a >= 10:
		return fmt.Sprintf("%.0f", v)
	case a >= 1:
		return fmt.Sprintf("%.1f", v)
	default:
		return fmt.Sprintf("%.2f", v)
	}
}

// memory is the median of what a chunk allocates above the bare column.
func (p *page) memory(c column.Column, unit string, digits int) string {
	var values []float64
	for _, r := range p.costs {
		if v, ok := cost(r, c, "spans", "500", unit); ok {
			values = append(values, v)
		}
	}
	if len(values) == 0 {
		return ""
	}
	s := benchmath.AssumeNothing.Summary(benchmath.NewSample(values, &benchmath.DefaultThresholds), 0.95)
	return strconv.FormatFloat(s.Center, 'f', digits, 64)
}

func (p *page) bytes(c column.Column) string {
	v, ok := p.exported.value(key{column: c.Name}, "otlp-B/op")
	if !ok {
		return ""
	}
	return strconv.FormatFloat(v, 'f', 0, 64)
}
