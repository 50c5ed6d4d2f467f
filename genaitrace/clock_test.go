package genaitrace

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A model is what the clock must know, kept without any economy.
type model struct {
	times   []int64
	kinds   []ChunkKind
	choices []int
}

func (m *model) tick(at int64, kind ChunkKind, choice int) {
	if n := len(m.times); n > 0 {
		at = max(at, m.times[n-1])
	}
	m.times = append(m.times, at)
	m.kinds = append(m.kinds, kind)
	m.choices = append(m.choices, choice)
}

// gaps are those between two ticks of the same choice, and of them those between
// the first output and the last.
func (m *model) gaps() (all []int64, between []pause) {
	last, ticks := map[int]int64{}, map[int]int{}
	first, end, outputs := m.span(Output)
	for i, at := range m.times {
		c := m.choices[i]
		if from, ok := last[c]; ok {
			all = append(all, at-from)
			if outputs > 0 && from >= first && at <= end {
				between = append(between, pause{at - from, at, ticks[c]})
			}
		}
		last[c] = at
		ticks[c]++
	}
	return all, between
}

// first returns the first and last time of a kind from at least, and how many.
func (m *model) span(least ChunkKind) (first, last int64, n int) {
	for i, k := range m.kinds {
		if k < least {
			continue
		}
		if n == 0 {
			first = m.times[i]
		}
		last = m.times[i]
		n++
	}
	return first, last, n
}

func TestTheClockAgreesWithASimpleModel(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	lengths := []int{1, 2, 63, 64, 65, 127, 128, 129, 512, 513, 1480, 1481, 1482, 2000, 2001, 5000}
	for round := range 200 {
		n := rng.IntN(300)
		if round < len(lengths) {
			n = lengths[round]
		}
		var c clock
		c.start(time.Now(), 0, defaultStalls)
		var m model
		at := rng.Int64N(1e9)
		for i, gap := range randomGaps(rng, n) {
			at += int64(gap) % int64(100*time.Second)
			said := at
			if rng.IntN(20) == 0 {
				said -= rng.Int64N(1e6) // runs backwards
			}
			kind, choice := ChunkKind(rng.IntN(3)), 0
			if round%4 == 3 && i > rng.IntN(n) { // several choices, from some tick on
				choice = min(rng.IntN(8)*rng.IntN(8)*rng.IntN(8), maxChoices-1)
			}
			c.stamp(max(said, 0)<<packBits | int64(choice)<<kindBits | int64(kind))
			m.tick(max(said, 0), kind, choice)
		}
		s, ok := c.close()
		require.True(t, ok)
		require.Equal(t, len(m.times), s.ticks)
		if n == 0 {
			continue
		}
		require.Equal(t, m.times[0], s.first)
		require.Equal(t, m.times[n-1], s.last)
		first, last, outputs := m.span(Output)
		require.Equal(t, outputs, s.outputs)
		require.Equal(t, first, s.firstOutput)
		require.Equal(t, last, s.lastOutput)
		visible, _, some := m.span(Visible)
		require.Equal(t, some, s.visible)
		require.Equal(t, visible, s.firstVisible)

		gaps, between := m.gaps()
		if s.choices == nil { // callers have no choices
			var recorded []int64
			s.eachGap(func(ns int64) { recorded = append(recorded, ns) })
			require.Len(t, recorded, len(gaps), "one value a gap")
			if s.stride == 1 {
				require.Equal(t, gaps, recorded)
			} else {
				requireSameSum(t, gaps, recorded)
			}
		}
		requireStalls(t, gaps, between, s)

		line := mustDecode(t, s.settle())
		requireQuantiles(t, gaps, s)
		require.Equal(t, n, line.Ticks)
		for tick, offset := range line.Offsets() {
			want := m.times[tick] - m.times[0]
			require.InDelta(t, want, float64(offset), tolerance(want), "offset of tick %d of %d", tick, n)
		}
	}
}

// requireStalls checks that what is counted are the pauses beyond some threshold
// near the one that the rule says, and that the longest are named.
func requireStalls(t *testing.T, gaps []int64, between []pause, s *clockStats) {
	t.Helper()
	n, longest := s.stalls(defaultStalls)
	of := gaps // the histogram of a long stream holds all
	if s.stride == 1 && s.choices == nil {
		of = nil
		for _, p := range between {
			of = append(of, p.ns)
		}
	}
	least, most := usual(of, 0.93e6), usual(of, 1.01e6) // somewhere in the step that holds 1 ms
	limit := func(usual float64) float64 {
		return min(max(float64(defaultStalls.atLeast), defaultStalls.times*usual), float64(gapMax))
	}
	above := func(limit float64) (over []pause) {
		for _, p := range between {
			if float64(p.ns) >= limit {
				over = append(over, p)
			}
		}
		return over
	}
	require.GreaterOrEqual(t, n, len(above(1.1*limit(most))))
	over := above(0.97 * limit(least))
	require.LessOrEqual(t, n, len(over))

	require.Len(t, longest, min(n, maxStallEvents))
	require.True(t, slices.IsSortedFunc(longest, func(a, b pause) int { return cmp.Compare(a.end, b.end) }))
	slices.SortFunc(over, func(a, b pause) int { return cmp.Compare(b.ns, a.ns) })
	for _, p := range longest {
		require.Contains(t, over, p)
		require.GreaterOrEqual(t, p.ns, over[len(longest)-1].ns, "one of the longest")
	}
}

// usual is the median of the gaps from some length on.
func usual(gaps []int64, from float64) float64 {
	var paced []int64
	for _, gap := range gaps {
		if float64(gap) >= from {
			paced = append(paced, gap)
		}
	}
	if len(paced) == 0 {
		return 0
	}
	slices.Sort(paced)
	return float64(paced[(len(paced)+1)/2-1])
}

func requireSameSum(t *testing.T, want, got []int64) {
	t.Helper()
	sum := func(ns []int64) (total float64) {
		for _, n := range ns {
			total += float64(n)
		}
		return total
	}
	require.InEpsilon(t, sum(want), sum(got), 0.03)
}

func requireQuantiles(t *testing.T, gaps []int64, s *clockStats) {
	t.Helper()
	if len(gaps) == 0 {
		_, ok := s.quantile(0.5)
		require.False(t, ok)
		return
	}
	sorted := slices.Sorted(slices.Values(gaps))
	require.Equal(t, sorted[len(sorted)-1], s.longest)
	for _, q := range []float64{0.01, 0.25, 0.5, 0.75, 0.95, 0.99, 1} {
		want := sorted[int(math.Ceil(q*float64(len(sorted))))-1] // nearest rank
		got, ok := s.quantile(q)
		require.True(t, ok)
		require.LessOrEqual(t, got, s.longest)
		switch {
		case want < int64(gapMin):
			require.Less(t, got, int64(gapMin), "quantile %g", q)
		case want >= int64(gapMax):
			require.GreaterOrEqual(t, got, int64(gapMax), "quantile %g", q)
		default:
			require.InEpsilon(t, want, got, 0.03, "quantile %g", q)
		}
	}
}

func TestTheClockMeasuresFromArrival(t *testing.T) {
	var c clock
	c.start(time.Now().Add(-time.Second), 5*time.Second, defaultStalls)
	c.tick(Output)
	s, ok := c.close()
	require.True(t, ok)
	assert.GreaterOrEqual(t, s.first, int64(6*time.Second))
	assert.Less(t, s.first, int64(time.Minute))
}

func TestAClosedClockStands(t *testing.T) {
	var c clock
	c.start(time.Now(), 0, defaultStalls)
	c.tickAt(5, Output)
	s, ok := c.close()
	require.True(t, ok)
	for i := range int64(1000) { // more than a window
		c.tickAt(100+i, Visible)
	}
	again, ok := c.close()
	assert.False(t, ok)
	assert.Same(t, s, again)
	assert.Equal(t, 1, s.ticks)
	assert.Equal(t, int64(5), s.last)
	assert.Zero(t, s.visible)
}

func TestATickAllocatesNothingOfItsOwn(t *testing.T) {
	var c clock
	c.start(time.Now(), 0, defaultStalls)
	for range 2 * timelineMaxGaps { // the timeline has grown to its bound
		c.tick(Output)
	}
	assert.Zero(t, testing.AllocsPerRun(1000, func() { c.tick(Output) }))
}
