package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/genaitrace/otelgenai/benchmarks/internal/column"
)

// rounds are as many rounds of three columns, in which the machine is slower each time.
func rounds(t *testing.T, n int) []*results {
	t.Helper()
	var all []*results
	for slow := 1; slow <= n; slow++ {
		var text strings.Builder
		text.WriteString("goos: linux\ngoarch: amd64\ncpu: Some\n")
		for name, ns := range map[string]int{"bare": 1000, "handwritten": 51_000, "otelgenai": 126_000} {
			fmt.Fprintf(&text, "BenchmarkStream/record=spans/chunks=500/column=%s-2 10 %d ns/op %d cpu-ns/op %d B/op 7 allocs/op\n",
				name, 9*slow*ns, slow*ns, ns/100)
		}
		fmt.Fprintf(&text, "BenchmarkStream/record=spans+metrics/chunks=500/column=otelgenai-2 10 1 ns/op %d cpu-ns/op\n", slow*201_000)
		fmt.Fprintf(&text, "BenchmarkStream/record=nothing/chunks=500/column=bare-2 10 1 ns/op %d cpu-ns/op\n", slow*1000)
		r := newResults()
		require.NoError(t, r.read(strings.NewReader(text.String())))
		all = append(all, r)
	}
	return all
}

func named(t *testing.T, name string) column.Column {
	t.Helper()
	for _, c := range column.All() {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("no column %q", name)
	return column.Column{}
}

// A ratio is of costs above the bare column within one round, so that how fast the
// machine was in it does not matter.
func TestRatiosAreTakenWithinARound(t *testing.T) {
	p := page{costs: rounds(t, 8)}
	ours := named(t, "otelgenai")
	assert.Equal(t, "2.5 (2.5 … 2.5)", p.ratio(ours, "spans", "500"))
	assert.Equal(t, "4.0 (4.0 … 4.0)", p.ratio(ours, "spans+metrics", "500"))
	assert.Equal(t, "1.0 (1.0 … 1.0)", p.ratio(named(t, "handwritten"), "spans", "500"))
	assert.Equal(t, "2.5", p.memory(ours, "B/op", 1))
	assert.Empty(t, p.ratio(ours, "spans", "2000"), "not measured")
	assert.Empty(t, p.ratio(named(t, "otelhttp"), "spans", "500"), "not measured")
}

// What is drowned by the work of a library is not told as a number.
func TestAnIntervalAroundZeroHasNoCenter(t *testing.T) {
	all := rounds(t, 8)
	for i, r := range all {
		if i%2 == 0 { // the bare client was slower
			require.NoError(t, r.read(strings.NewReader("BenchmarkStream/record=spans/chunks=500/column=openai-go-2 10 900000 cpu-ns/op\n")))
		} else {
			require.NoError(t, r.read(strings.NewReader("BenchmarkStream/record=spans/chunks=500/column=openai-go-2 10 100000 cpu-ns/op\n")))
		}
		require.NoError(t, r.read(strings.NewReader("BenchmarkStream/record=spans/chunks=500/column=openai-go+otelgenai-2 10 500000 cpu-ns/op\n")))
	}
	p := page{costs: all}
	assert.Regexp(t, `^~ \(-.+ … \d`, p.ratio(named(t, "openai-go+otelgenai"), "spans", "500"))
}

// Too few rounds have a median and no interval.
func TestFewRoundsHaveNoInterval(t *testing.T) {
	p := page{costs: rounds(t, 2)}
	assert.Equal(t, "2.5", p.ratio(named(t, "otelgenai"), "spans", "500"))
}

func TestThePageHasEveryInstrumentedColumn(t *testing.T) {
	p := page{rounds: 8, command: "go run ./table", costs: rounds(t, 8), exported: &results{}, load: []string{"0.1", "0.2"}, truth: "TRUTH\n"}
	var text strings.Builder
	require.NoError(t, p.write(&text))
	for _, c := range column.All() {
		if c.Bare != "" {
			assert.Contains(t, text.String(), "| "+c.Name+" |")
		}
	}
	assert.Contains(t, text.String(), "TRUTH")
	assert.Contains(t, text.String(), "linux/amd64, Some")
	assert.NotContains(t, text.String(), "%!")
}

func TestARunWithoutBenchmarksIsAnError(t *testing.T) {
	require.ErrorContains(t, (&page{costs: []*results{{}}}).write(&strings.Builder{}), "no benchmark ran")
}
