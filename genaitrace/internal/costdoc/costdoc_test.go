package main

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Two rounds of two packages, as go test prints them.
var twoRounds = []string{
	`goos: linux
goarch: amd64
pkg: github.com/genaitrace/otelgenai/genaitrace
cpu: A Processor @ 2.00GHz
BenchmarkToken/recording-2         	    2000	        50.0 ns/op	       8 B/op	       0 allocs/op
BenchmarkToken/addevent-2          	    2000	       800 ns/op	     434 B/op	       4 allocs/op
PASS
ok  	github.com/genaitrace/otelgenai/genaitrace	0.907s
goos: linux
pkg: github.com/genaitrace/otelgenai/middleware/wire
BenchmarkFraming/common-2         	    1	     60000 ns/op	       120.5 ns/chunk	       8 B/op	       0 allocs/op
ok
`,
	`pkg: github.com/genaitrace/otelgenai/genaitrace
BenchmarkToken/recording-2         	    2000	        70.0 ns/op	       8 B/op	       0 allocs/op
BenchmarkToken/addevent-2          	    2000	       900 ns/op	     434 B/op	       4 allocs/op
`,
}

func readRounds(t *testing.T) *results {
	t.Helper()
	r := newResults()
	for _, round := range twoRounds {
		require.NoError(t, r.read(strings.NewReader(round)))
	}
	return r
}

func TestAFigureIsTheMedianOfItsRounds(t *testing.T) {
	r := readRounds(t)
	assert.Equal(t, measure{60, 0}, r.measure(of("genaitrace Token/recording")))
	assert.Equal(t, measure{850, 4}, r.measure(of("genaitrace Token/addevent")))
	assert.Equal(t, measure{60000, 0}, r.measure(of("wire Framing/common")), "what a benchmark reports of its own is no time of an operation")
	assert.Equal(t, map[string]string{"goos": "linux", "goarch": "amd64", "cpu": "A Processor @ 2.00GHz"}, r.machine)
	assert.Equal(t, "2", r.cores)
	assert.InDelta(t, 20./60, r.spread("genaitrace Token/recording"), 1e-12)

	r.ns["three"] = []float64{9, 1, 2}
	assert.Equal(t, 2., r.median(r.ns, "three"))
	assert.Empty(t, r.missing)
	r.measure(of("another"))
	assert.Contains(t, r.missing, "another")
}

func TestATermIsASumOfBenchmarks(t *testing.T) {
	r := readRounds(t)
	whole := of("genaitrace Token/addevent")
	less := whole.plus("genaitrace Token/recording", -2)
	assert.Equal(t, measure{730, 4}, r.measure(less))
	assert.Equal(t, measure{73, 0.4}, r.measure(less.times(0.1)))
	assert.Equal(t, measure{850, 4}, r.measure(whole), "a term is not changed by those made of it")
	assert.Zero(t, r.measure(nil))
}

func TestTargets(t *testing.T) {
	for _, tt := range []struct {
		reached        func(figure, beside measure) bool
		figure, beside measure
		want           bool
	}{
		{atMost(3), measure{ns: 3}, measure{}, true},
		{atMost(3), measure{ns: 3.1}, measure{}, false},
		{times(2), measure{ns: 20}, measure{ns: 10}, true},
		{times(2), measure{ns: 21}, measure{ns: 10}, false},
		{cheaper(12), measure{ns: 10}, measure{ns: 120}, true},
		{cheaper(12), measure{ns: 10}, measure{ns: 119}, false},
		{allocatesNoMore, measure{ns: 9, allocs: 7}, measure{ns: 1, allocs: 7}, true},
		{allocatesNoMore, measure{ns: 1, allocs: 8}, measure{ns: 9, allocs: 7}, false},
	} {
		assert.Equal(t, tt.want, tt.reached(tt.figure, tt.beside), "%v beside %v", tt.figure, tt.beside)
	}
}

func TestNumbersAreRoundedForPeople(t *testing.T) {
	for v, want := range map[float64]string{
		1.2345: "1.23", 12.345: "12.3", 123.45: "123", 1234.5: "1230", 0.012345: "0.0123", -12.345: "-12.3", 999.9: "1000", 0: "0",
	} {
		assert.Equal(t, want, significant(v, 3))
	}
	assert.Equal(t, "NaN", significant(math.NaN(), 3))
	assert.Equal(t, "12.3 µs, 5 allocations", text(measure{12345, 5.2}))
	assert.Equal(t, "9990 ns, 0 allocations", text(measure{9990, 0.04}))
	assert.Equal(t, "1.3 ×", compared(13, 10))
	assert.Equal(t, "12 × cheaper", compared(10, 120))
	assert.Empty(t, compared(-1, 10), "less than nothing is noise")
}

func TestABadFigureIsAnError(t *testing.T) {
	err := newResults().read(strings.NewReader("BenchmarkToken/recording-2 2000 many ns/op\n"))
	assert.EqualError(t, err, ` Token/recording: "many" is no figure`)
}

func TestRowsWithoutTheirBenchmarksAreNamed(t *testing.T) {
	err := write(&bytes.Buffer{}, readRounds(t), made{})
	require.ErrorContains(t, err, "rows.go names benchmarks that did not run: genaihttp Stream500/handwritten, genaihttp Stream500/otelgenai,")
	assert.NotContains(t, err.Error(), "Token/recording")
}

// The benchmarks that rows names exist, and the page says what the run had.
func TestThePageIsMadeOfTheBenchmarks(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles three packages and runs their benchmarks once")
	}
	r := newResults()
	require.NoError(t, benchmark(t.Context(), r, "1x"))
	var page bytes.Buffer
	require.NoError(t, write(&page, r, made{1, "1x", "go run it", "go1.99"}))
	for _, how := range []string{"go1.99", "for 1x", "go run it"} {
		assert.Contains(t, page.String(), how)
	}
	assert.NotContains(t, page.String(), "%!", "a verb without its value")
	used := map[string]bool{}
	for _, row := range rows {
		assert.Contains(t, page.String(), ". "+row.what+" | ")
		for _, part := range slices.Concat(row.figure, row.beside) {
			used[part.bench] = true
		}
	}
	for name := range r.ns {
		if strings.HasPrefix(name, here+"Operation/") && (strings.HasSuffix(name, "/otelgenai") || strings.HasSuffix(name, "/handwritten")) {
			assert.True(t, used[name], "%s is in no row", name)
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, round := range twoRounds {
		f.Add(round)
	}
	f.Fuzz(func(t *testing.T, output string) {
		r := newResults()
		if r.read(strings.NewReader(output)) != nil {
			return
		}
		for name, values := range r.ns {
			m := r.median(r.ns, name)
			assert.False(t, m < minOf(values) || m > maxOf(values), "%v: %v", values, m)
		}
	})
}

func minOf(values []float64) float64 {
	least := math.Inf(1)
	for _, v := range values {
		least = math.Min(least, v)
	}
	return least
}

func maxOf(values []float64) float64 {
	most := math.Inf(-1)
	for _, v := range values {
		most = math.Max(most, v)
	}
	return most
}
