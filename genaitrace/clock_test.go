package genaitrace

import (
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
	times []int64
	kinds []ChunkKind
}

func (m *model) tick(at int64, kind ChunkKind) {
	if n := len(m.times); n > 0 {
		at = max(at, m.times[n-1])
	}
	m.times = append(m.times, at)
	m.kinds = append(m.kinds, kind)
}

func (m *model) gaps() []int64 {
	var gaps []int64
	for i := 1; i < len(m.times); i++ {
		gaps = append(gaps, m.times[i]-m.times[i-1])
	}
	return gaps
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
		c.start(time.Now(), 0)
		var m model
		at := rng.Int64N(1e9)
		for _, gap := range randomGaps(rng, n) {
			at += int64(gap) % int64(100*time.Second)
			said := at
			if rng.IntN(20) == 0 {
				said -= rng.Int64N(1e6) // runs backwards
			}
			kind := ChunkKind(rng.IntN(3))
			c.tickAt(max(said, 0), kind)
			m.tick(max(said, 0), kind)
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
		require.Equal(t, some > 0, s.hasVisible)
		require.Equal(t, visible, s.firstVisible)

		gaps := m.gaps()
		var recorded []int64
		s.eachGap(func(ns int64) { recorded = append(recorded, ns) })
		require.Len(t, recorded, len(gaps), "one value a gap")
		if s.stride == 1 {
			require.Equal(t, gaps, recorded)
		} else {
			requireSameSum(t, gaps, recorded)
		}

		line := mustDecode(t, s.settle())
		requireQuantiles(t, gaps, s)
		require.Equal(t, n, line.Ticks)
		for tick, offset := range line.Offsets() {
			want := m.times[tick] - m.times[0]
			require.InDelta(t, want, float64(offset), tolerance(want), "offset of tick %d of %d", tick, n)
		}
	}
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
	c.start(time.Now().Add(-time.Second), 5*time.Second)
	c.tick(Output)
	s, ok := c.close()
	require.True(t, ok)
	assert.GreaterOrEqual(t, s.first, int64(6*time.Second))
	assert.Less(t, s.first, int64(time.Minute))
}

func TestAClosedClockStands(t *testing.T) {
	var c clock
	c.start(time.Now(), 0)
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
	assert.False(t, s.hasVisible)
}

func TestATickAllocatesNothingOfItsOwn(t *testing.T) {
	var c clock
	c.start(time.Now(), 0)
	for range 2 * timelineMaxGaps { // the timeline has grown to its bound
		c.tick(Output)
	}
	assert.Zero(t, testing.AllocsPerRun(1000, func() { c.tick(Output) }))
}
