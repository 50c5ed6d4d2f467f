package main

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// results are the figures of every round, by package and benchmark, such as
// "wire Framing/common".
type results struct {
	machine map[string]string // goos, goarch and cpu, as go test prints them
	cores   string
	ns      map[string][]float64
	allocs  map[string][]float64
	missing []string // what was asked for and is not there
}

func newResults() *results {
	return &results{machine: map[string]string{}, ns: map[string][]float64{}, allocs: map[string][]float64{}}
}

var (
	settingLine   = regexp.MustCompile(`^(goos|goarch|cpu|pkg): (.*)$`)
	benchmarkLine = regexp.MustCompile(`^Benchmark(\S+?)(?:-(\d+))?\s+\d+\s+(.*)$`)
)

// read adds the output of one go test -bench -benchmem.
func (r *results) read(output io.Reader) error {
	room := ""
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		if m := settingLine.FindStringSubmatch(lines.Text()); m != nil {
			if m[1] == "pkg" {
				room = path.Base(m[2])
			} else {
				r.machine[m[1]] = m[2]
			}
			continue
		}
		m := benchmarkLine.FindStringSubmatch(lines.Text())
		if m == nil {
			continue
		}
		name := room + " " + m[1]
		r.cores = max(r.cores, m[2])
		fields := strings.Fields(m[3])
		for i := 0; i+1 < len(fields); i += 2 {
			value, err := strconv.ParseFloat(fields[i], 64)
			if err != nil || !(value >= 0 && value <= math.MaxFloat64/4) {
				return fmt.Errorf("%s: %q is no figure", name, fields[i])
			}
			switch fields[i+1] {
			case "ns/op":
				r.ns[name] = append(r.ns[name], value)
			case "allocs/op":
				r.allocs[name] = append(r.allocs[name], value)
			}
		}
	}
	return lines.Err()
}

// median is that of a benchmark's rounds; of an even number the mean of the two in the
// middle.
func (r *results) median(of map[string][]float64, name string) float64 {
	values := slices.Sorted(slices.Values(of[name]))
	n := len(values)
	if n == 0 {
		r.missing = append(r.missing, name)
		return 0
	}
	return (values[(n-1)/2] + values[n/2]) / 2
}

// spread is by how much the rounds of a benchmark differ, as a share of the median.
func (r *results) spread(name string) float64 {
	if m := r.median(r.ns, name); m > 0 {
		return (slices.Max(r.ns[name]) - slices.Min(r.ns[name])) / m
	}
	return 0
}

// A term is a sum of benchmarks.
type term []part

type part struct {
	bench  string
	factor float64
}

func of(bench string) term { return term{{bench, 1}} }

func (t term) plus(bench string, factor float64) term {
	return append(slices.Clip(t), part{bench, factor})
}

// times is a share or a multiple of a term.
func (t term) times(factor float64) term {
	scaled := slices.Clone(t)
	for i := range scaled {
		scaled[i].factor *= factor
	}
	return scaled
}

// nanos and allocations are the median of a term.
func (r *results) nanos(t term) (sum float64) {
	for _, p := range t {
		sum += p.factor * r.median(r.ns, p.bench)
	}
	return sum
}

func (r *results) allocations(t term) (sum float64) {
	for _, p := range t {
		sum += p.factor * r.median(r.allocs, p.bench)
	}
	return sum
}
