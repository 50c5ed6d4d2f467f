package genaitrace

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"

	"github.com/genaitrace/otelgenai/semconv"
)

func TestPartitionTTFT(t *testing.T) {
	const ttft = 1000
	all := func(queue, tokenize, schedule, prefill, emit, rest int64) partition {
		return partition{parts: [partCount]int64{queue, tokenize, schedule, prefill, emit}, unattributed: rest}
	}
	for name, tt := range map[string]struct {
		intervals []interval
		want      partition
	}{
		"nothing":                      {nil, all(0, 0, 0, 0, 0, 1000)},
		"one after the other":          {[]interval{{partQueue, 0, 300}, {partTokenize, 300, 350}, {partSchedule, 350, 400}, {partPrefill, 400, 900}}, all(300, 50, 50, 500, 100, 0)},
		"with holes":                   {[]interval{{partQueue, 100, 300}, {partPrefill, 400, 900}}, all(200, 0, 0, 500, 100, 200)},
		"twice":                        {[]interval{{partQueue, 0, 100}, {partQueue, 500, 600}}, all(200, 0, 0, 0, 0, 800)},
		"beyond the first token":       {[]interval{{partQueue, 900, 2000}}, all(100, 0, 0, 0, 0, 900)},
		"after the first token":        {[]interval{{partQueue, 1000, 2000}}, all(0, 0, 0, 0, 0, 1000)},
		"before arrival":               {[]interval{{partQueue, -500, 100}}, all(100, 0, 0, 0, 0, 900)},
		"the later start wins":         {[]interval{{partQueue, 0, 600}, {partTokenize, 400, 800}}, all(400, 400, 0, 0, 0, 200)},
		"in whatever order they ended": {[]interval{{partTokenize, 400, 800}, {partQueue, 0, 600}}, all(400, 400, 0, 0, 0, 200)},
		"nested":                       {[]interval{{partTokenize, 400, 500}, {partQueue, 0, 1000}}, all(900, 100, 0, 0, 0, 0)},
		"three deep":                   {[]interval{{partQueue, 0, 1000}, {partSchedule, 200, 700}, {partTokenize, 300, 400}}, all(500, 100, 400, 0, 0, 0)},
		"empty":                        {[]interval{{partQueue, 300, 300}}, all(0, 0, 0, 0, 0, 1000)},
		"a prefill in chunks":          {[]interval{{partPrefill, 100, 200}, {partPrefill, 300, 400}}, all(0, 0, 0, 200, 600, 200)},
		"a prefill still running":      {[]interval{{partPrefill, 100, 5000}}, all(0, 0, 0, 900, 0, 100)},
		"a prefill after it":           {[]interval{{partPrefill, 100, 200}, {partPrefill, 3000, 4000}}, all(0, 0, 0, 100, 800, 100)},
		"a prefill after it alone":     {[]interval{{partPrefill, 3000, 4000}}, all(0, 0, 0, 0, 0, 1000)},
		"work while output is emitted": {[]interval{{partPrefill, 0, 500}, {partTokenize, 600, 700}}, all(0, 100, 0, 500, 400, 0)},
		"phases that are no part":      {[]interval{{partCount, 0, 1000}}, all(0, 0, 0, 0, 0, 1000)},
	} {
		t.Run(name, func(t *testing.T) {
			got := partitionTTFT(tt.intervals, nil, ttft)
			got.known = [partCount]bool{}
			assert.Equal(t, tt.want, got)
		})
	}
}

func TestWhatWasReportedTakesWhatNothingObservedCovers(t *testing.T) {
	const ttft = 1000
	for name, tt := range map[string]struct {
		seen, reported []interval
		want           map[part]int64 // without what is 0
		rest           int64
	}{
		"reported alone":                    {nil, []interval{{partQueue, 100, 300}, {partLoad, 300, 400}, {partPrefill, 400, 1000}}, map[part]int64{partQueue: 200, partLoad: 100, partPrefill: 600}, 100},
		"no emission follows from it":       {nil, []interval{{partPrefill, 0, 600}}, map[part]int64{partPrefill: 600}, 400},
		"its emission is reported too":      {nil, []interval{{partPrefill, 0, 600}, {partEmit, 600, 1000}}, map[part]int64{partPrefill: 600, partEmit: 400}, 0},
		"observed wins where it starts":     {[]interval{{partTokenize, 0, 500}}, []interval{{partQueue, 300, 600}}, map[part]int64{partTokenize: 500, partQueue: 100}, 400},
		"observed wins where both start":    {[]interval{{partTokenize, 300, 500}}, []interval{{partQueue, 300, 600}}, map[part]int64{partTokenize: 200, partQueue: 100}, 700},
		"observed emission wins":            {[]interval{{partPrefill, 0, 500}}, []interval{{partQueue, 400, 700}}, map[part]int64{partPrefill: 500, partEmit: 500}, 0},
		"of two reported the later":         {nil, []interval{{partQueue, 0, 500}, {partTokenize, 200, 300}}, map[part]int64{partQueue: 400, partTokenize: 100}, 500},
		"put aside":                         {[]interval{{partPrefill, 0, 200}, {partPreempted, 200, 700}, {partPrefill, 700, 900}}, nil, map[part]int64{partPrefill: 400, partPreempted: 500, partEmit: 100}, 0},
		"put aside, and queued for a while": {[]interval{{partPreempted, 200, 700}, {partQueue, 300, 400}}, nil, map[part]int64{partPreempted: 400, partQueue: 100}, 500},
		"decode is no part":                 {[]interval{{partDecode, 0, 1000}}, []interval{{partDecode, 0, 1000}}, map[part]int64{}, 1000},
	} {
		t.Run(name, func(t *testing.T) {
			got := partitionTTFT(tt.seen, tt.reported, ttft)
			parts := map[part]int64{}
			for i, ns := range got.parts {
				if ns > 0 {
					parts[part(i)] = ns
				}
			}
			assert.Equal(t, tt.want, parts)
			assert.Equal(t, tt.rest, got.unattributed)
		})
	}
}

func TestPartitionTTFTKnowsWhatWasObserved(t *testing.T) {
	known := func(intervals ...interval) [partCount]bool { return partitionTTFT(intervals, nil, 1000).known }
	assert.Equal(t, [partCount]bool{}, known())
	assert.Equal(t, [partCount]bool{}, known(interval{partCount, 0, 10}))
	assert.Equal(t, [partCount]bool{partQueue: true}, known(interval{partQueue, 0, 0}))
	assert.Equal(t, [partCount]bool{partPrefill: true, partEmit: true}, known(interval{partPrefill, 0, 10}))
	assert.False(t, known(interval{partPrefill, 2000, 3000})[partEmit], "nothing was emitted after a prefill that came later")
}

// owners is the definition of the partition, read literally: who owns each
// nanosecond. ok is false where two phases that started together overlap, of
// which the definition does not say who wins.
func owners(seen, reported []interval, ttft int64) (want partition, ok bool) {
	prefillEnd := int64(-1)
	for _, iv := range seen {
		if iv.part == partPrefill && iv.start <= ttft {
			prefillEnd = max(prefillEnd, iv.end)
		}
	}
	if prefillEnd >= 0 {
		seen = append(seen[:len(seen):len(seen)], interval{partEmit, prefillEnd, ttft})
	}
	for ns := range ttft {
		owner, ok := ownerOf(ns, seen)
		if ok && owner == nil {
			owner, ok = ownerOf(ns, reported)
		}
		if !ok {
			return want, false
		}
		if owner == nil {
			want.unattributed++
		} else {
			want.parts[owner.part]++
		}
	}
	return want, true
}

func ownerOf(ns int64, intervals []interval) (owner *interval, ok bool) {
	for i := range intervals {
		iv := &intervals[i]
		switch {
		case iv.part >= partCount || ns < iv.start || ns >= iv.end:
		case owner != nil && owner.start == iv.start && owner.part != iv.part:
			return nil, false
		case owner == nil || iv.start > owner.start:
			owner = iv
		}
	}
	return owner, true
}

func TestPartitionTTFTAgreesWithItsDefinitionNanosecondByNanosecond(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	compared := 0
	some := func(n int) []interval {
		intervals := make([]interval, rng.IntN(n))
		for i := range intervals {
			start := rng.Int64N(220)
			kinds := []part{partQueue, partLoad, partTokenize, partSchedule, partPrefill, partPreempted, partCount, partDecode}
			intervals[i] = interval{kinds[rng.IntN(len(kinds))], start, start + rng.Int64N(150)}
		}
		return intervals
	}
	for range 5000 {
		ttft := rng.Int64N(200)
		intervals, reported := some(8), some(4)
		got := partitionTTFT(intervals, reported, ttft)
		sum := got.unattributed
		for _, ns := range got.parts {
			sum += ns
			require.GreaterOrEqual(t, ns, int64(0), "%v of %d", intervals, ttft)
		}
		require.Equal(t, ttft, sum, "parts of %v", intervals)
		require.GreaterOrEqual(t, got.unattributed, int64(0), "%v of %d", intervals, ttft)

		want, ok := owners(intervals, reported, ttft)
		if !ok {
			continue
		}
		compared++
		require.Equal(t, want.parts, got.parts, "%v of %d", intervals, ttft)
		require.Equal(t, want.unattributed, got.unattributed, "%v of %d", intervals, ttft)
	}
	assert.Greater(t, compared, 3000, "enough cases without a tie")
}

// In attributes the parts are milliseconds; rounded to nanoseconds they sum up
// to the time to first token exactly, at any size.
func TestPartsInMillisecondsSumUpToTheTTFTExactly(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 5000 {
		ttft := rng.Int64N(int64(1) << rng.IntN(47)) // up to a day and a half
		intervals := make([]interval, 1+rng.IntN(8))
		for i := range intervals {
			start := rng.Int64N(ttft + 1)
			intervals[i] = interval{part(rng.IntN(int(partEmit))), start, start + rng.Int64N(ttft+1)}
		}
		sum := int64(0)
		p := partitionTTFT(intervals, nil, ttft)
		for _, kv := range p.appendTo(nil) {
			sum += int64(math.Round(kv.Value.AsFloat64() * 1e6))
		}
		require.Equal(t, ttft, sum, "%v", intervals)
		require.Equal(t, ttft, int64(math.Round(ms(ttft)*1e6)))
	}
}

func TestPartitionWithoutAnyPartWritesNothing(t *testing.T) {
	p := partitionTTFT(nil, nil, 1000)
	assert.Empty(t, p.appendTo(nil))
	p = partitionTTFT([]interval{{partQueue, 0, 250_000}}, nil, 1_000_000)
	assert.Equal(t, []attribute.KeyValue{semconv.GenAITTFTQueueMs(0.25), semconv.GenAITTFTUnattributedMs(0.75)}, p.appendTo(nil))
}

func TestFirstStartIsTheEarliestInWhateverOrderPhasesEnded(t *testing.T) {
	intervals := []interval{{partPrefill, 50, 60}, {partQueue, 0, 70}, {partPrefill, 20, 80}}
	start, ok := firstStart(intervals, partPrefill)
	assert.True(t, ok)
	assert.Equal(t, int64(20), start)
	_, ok = firstStart(intervals, partTokenize)
	assert.False(t, ok)
}
