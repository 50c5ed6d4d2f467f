package genaitrace

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// timesOf turns gaps into the times that a stream's ticks have.
func timesOf(gaps []time.Duration) []int64 {
	times := make([]int64, 1, len(gaps)+1)
	for _, g := range gaps {
		times = append(times, times[len(times)-1]+int64(g))
	}
	return times
}

// tolerance is how far an offset from the first tick may be off: 3 %, and at a
// tick less than 10 µs after the one before what that leaves to the next.
func tolerance(offset int64) float64 { return 0.03*float64(offset) + float64(gapMin) }

func mustDecode(t testing.TB, packed string) Timeline {
	t.Helper()
	require.LessOrEqual(t, len(packed), timelineMaxChars)
	line, err := DecodeTimeline(packed)
	require.NoError(t, err)
	return line
}

func TestEveryGapFrom10MicrosecondsTo40SecondsIsRightWithin3Percent(t *testing.T) {
	const steps = 1 << 20
	worst := 0.0
	check := func(ns int64) {
		code := gapCode(ns)
		require.True(t, code > codeTiny && code < codeEscape, "code %d of %d ns", code, ns)
		err := math.Abs(float64(codeValue[code])-float64(ns)) / float64(ns)
		worst = max(worst, err)
	}
	ratio := float64(gapMax) / float64(gapMin)
	for i := range steps {
		check(int64(float64(gapMin) * math.Pow(ratio, float64(i)/steps)))
	}
	for code := 0; code < codeSteps; code++ { // both sides of each boundary
		check(codeBound[code])
		if code > 0 {
			check(codeBound[code] - 1)
		}
	}
	check(int64(gapMax) - 1)
	assert.LessOrEqual(t, worst, 0.03)
	t.Logf("worst relative error: %.3f %%", 100*worst)
}

func TestACodeStandsForATimeThatHasThisCode(t *testing.T) {
	for code := 1; code <= codeSteps; code++ {
		assert.Equal(t, uint8(code), gapCode(int64(codeValue[code])))
	}
	assert.Equal(t, uint8(codeTiny), gapCode(0))
	assert.Equal(t, uint8(codeTiny), gapCode(int64(gapMin)-1))
	assert.Equal(t, uint8(codeEscape), gapCode(int64(gapMax)))
	assert.Equal(t, uint8(codeEscape), gapCode(math.MaxInt64))
}

// Whoever reads a timeline without this package has the documentation alone.
func TestACodeStandsForWhatTheDocumentationSays(t *testing.T) {
	ratio := math.Pow(4e6, 1.0/254)
	for i := 1; i <= 254; i++ {
		low, high := math.Round(1e4*math.Pow(ratio, float64(i-1))), math.Round(1e4*math.Pow(ratio, float64(i)))
		require.InDelta(t, 2*low*high/(low+high), float64(codeValue[i]), 1, "code %d", i)
	}
}

// Constants of the format: what is written today must be readable for ever.
func TestTheFormatOfATimelineIsFixed(t *testing.T) {
	times := timesOf([]time.Duration{
		10 * time.Microsecond, 5 * time.Microsecond, 5 * time.Microsecond,
		20 * time.Millisecond, 39 * time.Second, 40 * time.Second, time.Hour,
	})
	packed := encodeTimeline(times, len(times), 1, nil)
	assert.Equal(t, "AQgBAQABgP7/gLSJE/+AyM60DQ", packed)
	line := mustDecode(t, packed)
	assert.Equal(t, 8, line.Ticks)
	assert.Equal(t, 1, line.Stride)
	assert.Equal(t, []time.Duration{10299, 0, 10299, 20598318, 38803364659, 40 * time.Second, time.Hour}, line.Gaps)
}

func TestATimelineOfAnyLengthFitsAndKeepsFirstAndLastTick(t *testing.T) {
	for _, tt := range []struct{ ticks, stride int }{
		{1, 1}, {2, 1}, {3, 1}, {63, 1}, {64, 1}, {65, 1}, {1480, 1}, {1481, 1},
		{1482, 2}, {1483, 2}, {2000, 2}, {2001, 2}, {2961, 2}, {2962, 2}, {2963, 4}, {5000, 4}, {1e6, 1024},
	} {
		t.Run(fmt.Sprint(tt.ticks), func(t *testing.T) {
			var s clockStats
			const gap = 20_000_123
			for i := range tt.ticks {
				s.fold([]int64{int64(i)*gap<<packBits | int64(Output)})
			}
			line := mustDecode(t, s.settle())
			assert.Equal(t, tt.ticks, line.Ticks)
			assert.Equal(t, tt.stride, line.Stride)
			last, count := -1, 0
			for tick, offset := range line.Offsets() {
				require.Greater(t, tick, last)
				require.InDelta(t, float64(tick)*gap, float64(offset), 0.03*float64(tick)*gap+1)
				last = tick
				count++
			}
			assert.Equal(t, tt.ticks-1, last, "the last tick is there")
			assert.Len(t, line.Gaps, count-1)
		})
	}
}

func TestATimelineOfTheSlowestStreamFits(t *testing.T) {
	for _, gap := range []time.Duration{40 * time.Second, time.Hour, 24 * time.Hour, 5 * 365 * 24 * time.Hour} {
		gaps := slices.Repeat([]time.Duration{gap}, timelineMaxGaps)
		line := mustDecode(t, encodeTimeline(timesOf(gaps), len(gaps)+1, 1, nil))
		assert.Equal(t, len(gaps)+1, line.Ticks)
		assert.Greater(t, line.Stride, 1, "an escape takes more than a byte")
		last, end := 0, time.Duration(0)
		for tick, offset := range line.Offsets() {
			last, end = tick, offset
		}
		assert.Equal(t, len(gaps), last)
		assert.Equal(t, time.Duration(len(gaps))*gap, end, "from 40 s on, a gap is right to the microsecond")
	}
}

// randomGaps mixes all sizes, those under 10 µs and over 40 s included.
func randomGaps(rng *rand.Rand, n int) []time.Duration {
	gaps := make([]time.Duration, n)
	for i := range gaps {
		switch rng.IntN(5) {
		case 0:
			gaps[i] = time.Duration(rng.Int64N(int64(gapMin)))
		case 1:
			gaps[i] = time.Duration(rng.Int64N(int64(time.Hour)))
		default:
			gaps[i] = time.Duration(math.Exp(rng.Float64() * math.Log(float64(time.Minute))))
		}
	}
	return gaps
}

func TestATimelineComesBackWithin3Percent(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 500 {
		times := timesOf(randomGaps(rng, rng.IntN(400)))
		line := mustDecode(t, encodeTimeline(times, len(times), 1, nil))
		require.Equal(t, len(times), line.Ticks)
		require.Equal(t, 1, line.Stride)
		for tick, offset := range line.Offsets() {
			require.InDelta(t, times[tick], float64(offset), tolerance(times[tick]), "offset of tick %d", tick)
		}
		// A gap is measured from the last one that was written, so that short
		// ones do not get lost.
		from := int64(0)
		for i, gap := range line.Gaps {
			want := times[i+1] - from
			if want < int64(gapMin) {
				require.Zero(t, gap)
				continue
			}
			require.InEpsilon(t, want, gap, 0.03, "gap %d", i)
			from = times[i+1]
		}
	}
}

func TestGapsUnder10MicrosecondsAreCarriedOn(t *testing.T) {
	times := timesOf(slices.Repeat([]time.Duration{3 * time.Microsecond}, 1000))
	line := mustDecode(t, encodeTimeline(times, len(times), 1, nil))
	for tick, offset := range line.Offsets() {
		require.InDelta(t, times[tick], float64(offset), tolerance(times[tick]), "offset of tick %d", tick)
	}
}

func TestATimelineThatWasCutDecodesUpToTheCut(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	gaps := randomGaps(rng, 300)
	packed := encodeTimeline(timesOf(gaps), len(gaps)+1, 1, nil)
	whole := mustDecode(t, packed)
	header := base64.RawStdEncoding.EncodedLen(4) // version, two bytes of ticks, stride
	for cut := range len(packed) {
		line, err := DecodeTimeline(packed[:cut])
		if cut < header {
			require.ErrorIs(t, err, ErrTimeline, "cut at %d", cut)
			continue
		}
		require.NoError(t, err, "cut at %d", cut)
		require.Equal(t, whole.Ticks, line.Ticks, "the number of ticks stays known")
		require.LessOrEqual(t, len(line.Gaps), len(whole.Gaps))
		require.True(t, slices.Equal(line.Gaps, whole.Gaps[:len(line.Gaps)]), "cut at %d", cut)
		if bytes := cut * 3 / 4; bytes > 1000 {
			require.NotEmpty(t, line.Gaps)
		}
	}
}

func TestWhatIsNoTimelineIsAnError(t *testing.T) {
	pack := func(b ...byte) string { return base64.RawStdEncoding.EncodeToString(b) }
	huge := binary.AppendUvarint(nil, math.MaxUint64)
	for name, packed := range map[string]string{
		"empty":                  "",
		"one character":          "A",
		"no base64":              "!!!!",
		"padding":                "AQgBAQ==",
		"another version":        pack(2, 1, 1),
		"no ticks":               pack(1),
		"no stride":              pack(1, 5),
		"stride 0":               pack(1, 5, 0),
		"too many ticks":         pack(append(append([]byte{1}, huge...), 1)...),
		"too large a stride":     pack(append([]byte{1, 5}, huge...)...),
		"an endless number":      pack(1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff),
		"more gaps than ticks":   pack(1, 2, 1, 7, 7),
		"a gap of one tick":      pack(1, 1, 1, 7),
		"a gap of no tick":       pack(1, 0, 1, 7),
		"a gap beyond all times": pack(append([]byte{1, 2, 1, codeEscape}, huge...)...),
	} {
		t.Run(name, func(t *testing.T) {
			line, err := DecodeTimeline(packed)
			assert.ErrorIs(t, err, ErrTimeline)
			assert.Zero(t, line)
		})
	}
}

func TestOffsetsStopWhenAsked(t *testing.T) {
	line := Timeline{Ticks: 4, Stride: 2, Gaps: []time.Duration{5, 7}}
	var ticks []int
	var offsets []time.Duration
	for tick, offset := range line.Offsets() {
		ticks, offsets = append(ticks, tick), append(offsets, offset)
	}
	assert.Equal(t, []int{0, 2, 3}, ticks, "the last group is smaller")
	assert.Equal(t, []time.Duration{0, 5, 12}, offsets)

	for limit := range 3 {
		n := 0
		for range line.Offsets() {
			if n == limit {
				break
			}
			n++
		}
		assert.Equal(t, limit, n)
	}
	for range (Timeline{}).Offsets() {
		t.Error("a stream without ticks has no offsets")
	}
}

// FuzzDecodeTimeline feeds what any writer could have put into the attribute.
// Whatever decodes holds what the type promises, and packing it again gives the
// same times.
func FuzzDecodeTimeline(f *testing.F) {
	rng := rand.New(rand.NewPCG(9, 10))
	for _, n := range []int{0, 1, 2, 5, 100} {
		times := timesOf(randomGaps(rng, n))
		f.Add(encodeTimeline(times, len(times), 1, nil))
	}
	for _, stride := range []int{2, 1024} { // a long stream: only some ticks
		times := timesOf(randomGaps(rng, 40))
		f.Add(encodeTimeline(times, 40*stride+1, stride, nil))
	}
	long := encodeTimeline(timesOf(randomGaps(rng, 1480)), 1481, 1, nil)
	f.Add(long)
	f.Add(long[:len(long)/2]) // cut by a backend
	f.Add("AQgBAQABgP7/gLSJE/+AyM60DQ")
	f.Add("")
	f.Add("AQgBAQ==")
	f.Fuzz(func(t *testing.T, packed string) {
		line, err := DecodeTimeline(packed)
		if err != nil {
			require.ErrorIs(t, err, ErrTimeline)
			require.Zero(t, line)
			return
		}
		require.Positive(t, line.Stride)
		groups := 0
		if line.Ticks > 1 {
			groups = (line.Ticks-2)/line.Stride + 1
		}
		require.LessOrEqual(t, len(line.Gaps), groups)
		times := []int64{0}
		for _, gap := range line.Gaps {
			require.GreaterOrEqual(t, gap, time.Duration(0))
			at := times[len(times)-1]
			if int64(gap) > math.MaxInt64-at {
				return // a stream of more than 292 years
			}
			times = append(times, at+int64(gap))
		}
		last := -1
		for tick := range line.Offsets() {
			require.True(t, tick > last && tick < line.Ticks, "tick %d after %d of %d", tick, last, line.Ticks)
			last = tick
		}
		if len(line.Gaps) < groups || line.Ticks == 0 || len(packed) > timelineMaxChars {
			return // cut, or longer than this package writes
		}
		// What another writer escaped needlessly may change once.
		again := mustDecode(t, encodeTimeline(times, line.Ticks, line.Stride, nil))
		if again.Stride != line.Stride {
			return
		}
		third := mustDecode(t, encodeTimeline(timesOf(again.Gaps), again.Ticks, again.Stride, nil))
		require.Equal(t, again, third)
	})
}
