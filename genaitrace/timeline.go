package genaitrace

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/bits"
	"time"
)

// The packed timeline; [Timeline] describes its format.
const (
	timelineVersion  = 1
	timelineMaxChars = 2000
	timelineMaxBytes = timelineMaxChars / 4 * 3
	// timelineMaxGaps leaves room for the header: 1,480 codes of one byte.
	timelineMaxGaps = 1480

	codeTiny   = 0
	codeEscape = 255
	codeSteps  = 254

	gapMin = 10 * time.Microsecond
	gapMax = 40 * time.Second
)

var timelineEncoding = base64.RawStdEncoding

// codeBound[i] is the upper end, in nanoseconds, of code i; codeValue[i] the
// time that code i stands for: the harmonic mean of its ends, which makes the
// largest relative error equal at both and 2.992 % at most.
var (
	codeBound [codeSteps + 1]int64
	codeValue [codeSteps + 1]time.Duration
	// codeHint gives the lowest code that a number with these leading bits
	// can have: 32 parts an octave, from 2^13 ns to 2^36 ns.
	codeHint [(hintMaxBit - hintMinBit + 1) << hintBits]uint8
)

const (
	hintBits   = 5
	hintMinBit = 13
	hintMaxBit = 36
)

func init() {
	ratio := float64(gapMax) / float64(gapMin)
	codeBound[0] = int64(gapMin)
	for i := 1; i <= codeSteps; i++ {
		low := codeBound[i-1]
		high := int64(math.Round(float64(gapMin) * math.Pow(ratio, float64(i)/codeSteps)))
		codeBound[i] = high
		codeValue[i] = time.Duration(math.Round(2 * float64(low) * float64(high) / float64(low+high)))
	}
	for h := range codeHint {
		low := int64(1<<hintBits|h&(1<<hintBits-1)) << (h>>hintBits + hintMinBit - hintBits)
		code := 0
		for code < codeSteps && low >= codeBound[code] {
			code++
		}
		codeHint[h] = uint8(code)
	}
}

// gapCode is the code of a gap in nanoseconds; codeEscape from 40 s on.
func gapCode(ns int64) uint8 {
	if ns < int64(gapMin) {
		return codeTiny
	}
	if ns >= int64(gapMax) {
		return codeEscape
	}
	top := bits.Len64(uint64(ns)) - 1
	hint := (top-hintMinBit)<<hintBits | int(ns>>(top-hintBits))&(1<<hintBits-1)
	code := codeHint[hint]
	for ns >= codeBound[code] {
		code++
	}
	return code
}

// encodeTimeline packs the times of a stream. times holds every stride-th tick
// and, where it is not among them, the last one; ticks counts all of them. It
// halves the resolution until the text fits. A count that is not nil is told each
// gap between two times, once, and gives its code.
func encodeTimeline(times []int64, ticks, stride int, count func(gap int64) uint8) string {
	if count == nil {
		count = gapCode
	}
	for {
		var space [timelineMaxBytes + 16]byte
		if packed := packTimeline(space[:0], times, ticks, stride, count); len(packed) <= timelineMaxBytes {
			var text [timelineMaxChars]byte
			return string(timelineEncoding.AppendEncode(text[:0], packed))
		}
		kept := times[:0:0]
		for i := 0; i < len(times); i += 2 {
			kept = append(kept, times[i])
		}
		if len(times)%2 == 0 {
			kept = append(kept, times[len(times)-1])
		}
		times, stride, count = kept, stride*2, gapCode
	}
}

func packTimeline(packed []byte, times []int64, ticks, stride int, count func(gap int64) uint8) []byte {
	packed = append(packed, timelineVersion)
	packed = binary.AppendUvarint(packed, uint64(ticks))
	packed = binary.AppendUvarint(packed, uint64(stride))
	if len(times) == 0 {
		return packed
	}
	from, last := times[0], times[0]
	for _, t := range times[1:] {
		code := count(t - last)
		if from != last { // tiny gaps before this one are part of it
			code = gapCode(t - from)
		}
		last = t
		packed = append(packed, code)
		if code == codeEscape {
			packed = binary.AppendUvarint(packed, uint64(t-from)/1000)
		}
		if code != codeTiny {
			from = t
		}
	}
	return packed
}

// A Timeline holds the times of a stream's ticks: tokens on a host, chunks at a
// caller. [DecodeTimeline] reads it from genai.token.timeline or
// genai.chunk.timeline, one string of at most 2,000 characters, because backends
// cut longer values.
//
// The string is base64 (standard alphabet, no padding) of
//
//	byte     1                       version of the format
//	uvarint  ticks                   how many ticks the stream had
//	uvarint  stride                  how many ticks one code covers
//	codes    ceil((ticks-1)/stride)  one for each group of stride ticks
//
// where a uvarint is that of [encoding/binary.PutUvarint]. A code is the time from
// the last tick of the group before to the last tick of this one. The first tick
// has no code: its time is an attribute of its own (llm.ttft_ms, or that of the
// first chunk). The last group may be smaller than stride.
//
//	0      under 10 µs; what it leaves out is added to the next gap
//	1–254  code i stands for the harmonic mean of 10 µs × r^(i-1) and 10 µs × r^i,
//	       where r = 4,000,000^(1/254), each end rounded to a nanosecond: right
//	       within 3 %
//	255    40 s or more: a uvarint of microseconds follows
//
// A string that was cut decodes up to the cut.
type Timeline struct {
	// Ticks counts the tokens (or chunks) of the stream, the first included.
	Ticks int
	// Stride is how many ticks one gap covers: 1 up to 1,481 ticks, then 2, 4 …
	Stride int
	// Gaps holds the time from one group's last tick to the next one's, each
	// right within 3 % from 10 µs up; shorter ones read as 0 and are part of
	// the gap that follows. It is shorter than the stream where the text was cut.
	Gaps []time.Duration
}

// Offsets yields the number of a tick, from 0, and its time after the first
// tick: every tick where Stride is 1, else the last tick of each group.
func (t Timeline) Offsets() iter.Seq2[int, time.Duration] {
	return func(yield func(int, time.Duration) bool) {
		if t.Ticks == 0 || !yield(0, 0) {
			return
		}
		var offset time.Duration
		for i, gap := range t.Gaps {
			offset += gap
			if !yield(min((i+1)*t.Stride, t.Ticks-1), offset) {
				return
			}
		}
	}
}

// ErrTimeline is wrapped by every error of [DecodeTimeline].
var ErrTimeline = errors.New("genaitrace: not a packed timeline")

// DecodeTimeline reads the packed timeline of a span. A text that a backend
// cut at its end decodes up to the cut.
func DecodeTimeline(packed string) (Timeline, error) {
	// A cut may leave one character that holds no whole byte.
	if len(packed)%4 == 1 {
		packed = packed[:len(packed)-1]
	}
	data, err := timelineEncoding.DecodeString(packed)
	if err != nil {
		return Timeline{}, fmt.Errorf("%w: %w", ErrTimeline, err)
	}
	if len(data) == 0 || data[0] != timelineVersion {
		return Timeline{}, fmt.Errorf("%w: want version %d first", ErrTimeline, timelineVersion)
	}
	data = data[1:]
	ticks, n := binary.Uvarint(data)
	if n <= 0 || ticks > math.MaxInt32 {
		return Timeline{}, fmt.Errorf("%w: bad number of ticks", ErrTimeline)
	}
	data = data[n:]
	stride, n := binary.Uvarint(data)
	if n <= 0 || stride == 0 || stride > math.MaxInt32 {
		return Timeline{}, fmt.Errorf("%w: bad stride", ErrTimeline)
	}
	data = data[n:]

	line := Timeline{Ticks: int(ticks), Stride: int(stride)}
	groups := 0
	if ticks > 1 {
		groups = int((ticks-2)/stride) + 1
	}
	if len(data) > 0 {
		line.Gaps = make([]time.Duration, 0, min(groups, len(data)))
	}
	for len(data) > 0 {
		if len(line.Gaps) == groups {
			return Timeline{}, fmt.Errorf("%w: more than the %d gaps that %d ticks have", ErrTimeline, groups, ticks)
		}
		code := data[0]
		data = data[1:]
		gap := time.Duration(0)
		switch code {
		case codeTiny:
		case codeEscape:
			us, n := binary.Uvarint(data)
			if n == 0 {
				return line, nil // cut inside the number
			}
			if n < 0 || us > math.MaxInt64/1000 {
				return Timeline{}, fmt.Errorf("%w: gap out of range", ErrTimeline)
			}
			data = data[n:]
			gap = time.Duration(us) * time.Microsecond
		default:
			gap = codeValue[code]
		}
		line.Gaps = append(line.Gaps, gap)
	}
	return line, nil
}
