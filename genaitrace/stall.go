package genaitrace

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/semconv"
)

// A stall is a pause between two outputs that is long for its stream: longer than
// a multiple of the usual gap, and than a floor. The usual gap is the median of
// those from about 1 ms on: what comes closer together came in one step of the
// engine or in one packet, and says nothing about the pace. A median rather than a
// high quantile, because in a stream of 20 tokens the 95th percentile is the
// longest gap itself.
//
// A pause of 40 s is a stall in any stream.
type stallRule struct {
	times   float64
	atLeast time.Duration
}

var defaultStalls = stallRule{times: 10, atLeast: 200 * time.Millisecond}

// maxStallEvents is how many stalls of one span get an event: the longest.
const maxStallEvents = 16

// WithStallThreshold sets which pause between two tokens, or at a caller between
// two chunks with output, is a stall: one of at least times the usual gap of its
// stream, which is the median of those from 1 ms on, and of at least atLeast.
// Default: 10 times and 200 ms. The threshold is rounded up by 7 % at most, to
// where the histogram of the gaps can count exactly, and is 40 s at most.
//
// The span gets genai.stall.count and an event token_stall for the 16 longest; a
// host counts all of them in the metric genai.token.stalls.
func WithStallThreshold(times float64, atLeast time.Duration) Option {
	return optionFunc(func(c config) config {
		if !(times >= 1 && times <= maxStallTimes) || atLeast < gapMin || atLeast > gapMax {
			c.err = errors.Join(c.err, fmt.Errorf("WithStallThreshold: %v times and at least %v: want 1 to %d times and %v to %v",
				times, atLeast, maxStallTimes, gapMin, gapMax))
			return c
		}
		c.stalls = stallRule{times: times, atLeast: atLeast}
		return c
	})
}

const maxStallTimes = 10_000

// A pause is a gap that may turn out to be a stall.
type pause struct {
	ns, end int64
	tick    int // that ended it, in its choice
}

// pauses are the long gaps of a stream whose timeline does not say them all.
type pauses struct {
	floor int64   // what is shorter is no stall
	list  []pause // the longest between outputs, at most maxStallEvents
	least int64   // of a full list
	tail  []pause // since the last output: nobody knows yet whether one follows
	early []int64 // before the first output
}

// maxApart bounds the long gaps that are remembered before the first and after the
// last output.
const maxApart = 64

// mayStall remembers a long gap for when the usual one is known.
func (s *clockStats) mayStall(from, to int64, tick int) {
	p := &s.pauses
	switch {
	case !s.hasOutput || from < s.firstOutput:
		if len(p.early) < maxApart {
			p.early = append(p.early, to-from)
		}
	case len(p.tail) < maxApart:
		p.tail = append(p.tail, pause{to - from, to, tick})
	}
}

// settle takes over what turned out to lie before an output.
func (p *pauses) settle() {
	for _, one := range p.tail {
		p.add(one)
	}
	p.tail = p.tail[:0]
}

func (p *pauses) add(one pause) {
	if one.ns <= p.least {
		return
	}
	if len(p.list) < maxStallEvents {
		p.list = append(p.list, one)
	} else {
		*p.shortest() = one
	}
	if len(p.list) == maxStallEvents {
		p.least = p.shortest().ns
	}
}

func (p *pauses) shortest() *pause {
	least := &p.list[0]
	for i := range p.list {
		if p.list[i].ns < least.ns {
			least = &p.list[i]
		}
	}
	return least
}

// stalls counts the gaps that are stalls, and returns the longest in the order of
// time. The wait for the first output is none, nor is that for what follows the
// last one.
func (s *clockStats) stalls(rule stallRule) (n int, longest []pause) {
	if s.stride != 1 || s.choices != nil {
		return s.countedStalls(rule)
	}
	if !s.hasPauseOf(rule.atLeast) { // as in most streams
		return 0, nil
	}
	var gaps gapHistogram
	for i := 1; i < len(s.times); i++ {
		if gap, ok := s.pauseBefore(i); ok {
			gaps[gapCode(gap)]++
		}
	}
	limit := gaps.stallLimit(rule)
	var found pauses
	for i := 1; i < len(s.times); i++ {
		if gap, ok := s.pauseBefore(i); ok && gap >= limit {
			n++
			found.add(pause{gap, s.times[i], i})
		}
	}
	return n, inTime(found.list)
}

// pauseBefore is the gap before a tick; ok says that it is between outputs.
func (s *clockStats) pauseBefore(i int) (gap int64, ok bool) {
	from, to := s.times[i-1], s.times[i]
	return to - from, s.hasOutput && from >= s.firstOutput && to <= s.lastOutput
}

func (s *clockStats) hasPauseOf(d time.Duration) bool {
	for i := 1; i < len(s.times); i++ {
		if gap, ok := s.pauseBefore(i); ok && gap >= int64(d) {
			return true
		}
	}
	return false
}

// countedStalls is stalls, once, where the histogram knows more than the timeline.
func (s *clockStats) countedStalls(rule stallRule) (n int, longest []pause) {
	limit := s.gaps.stallLimit(rule)
	if s.longest < limit {
		return 0, nil
	}
	for code := int(gapCode(limit-1)) + 1; code < len(s.gaps); code++ {
		n += int(s.gaps[code])
	}
	for _, gap := range s.pauses.early {
		if gap >= limit {
			n--
		}
	}
	for _, p := range s.pauses.tail {
		switch {
		case p.end <= s.lastOutput:
			s.pauses.add(p)
		case p.ns >= limit:
			n--
		}
	}
	for _, p := range s.pauses.list {
		if p.ns >= limit {
			longest = append(longest, p)
		}
	}
	return n, inTime(longest)
}

// stallLimit is the shortest stall, in nanoseconds: the upper end of a code, so that
// what is not shorter can be counted.
func (h *gapHistogram) stallLimit(rule stallRule) int64 {
	limit := max(float64(rule.atLeast), rule.times*float64(h.usual()))
	if limit >= float64(gapMax) {
		return int64(gapMax)
	}
	return codeBound[gapCode(int64(limit))]
}

// usual is the median of the gaps from about 1 ms on, or 0 where there is none.
func (h *gapHistogram) usual() time.Duration {
	from := int(gapCode(int64(time.Millisecond)))
	total, seen := uint32(0), uint32(0)
	for _, n := range h[from:] {
		total += n
	}
	if total == 0 {
		return 0
	}
	for code := from; code < codeEscape; code++ {
		seen += h[code]
		if 2*seen >= total {
			return codeValue[code]
		}
	}
	return gapMax
}

func inTime(list []pause) []pause {
	slices.SortFunc(list, func(a, b pause) int { return cmp.Compare(a.end, b.end) })
	return list
}

// appendStalls writes an event for each of the longest stalls and appends how many
// there were.
func (d *Decode) appendStalls(attrs []attribute.KeyValue, n int, longest []pause) []attribute.KeyValue {
	for _, p := range longest {
		d.span.AddEvent(semconv.EventTokenStall, trace.WithTimestamp(d.inf.when(p.end)), trace.WithAttributes(
			semconv.GenAIStallDurationMs(ms(p.ns)), semconv.GenAITokenPosition(d.before+p.tick)))
	}
	if n == 0 {
		return attrs
	}
	return append(attrs, semconv.GenAIStallCount(n))
}

// appendStalls writes an event for each of the longest pauses after the first
// output and appends how many there were. Their metric counts tokens, so a caller
// has none.
func (c *Call) appendStalls(attrs []attribute.KeyValue, stats *clockStats) []attribute.KeyValue {
	n, longest := stats.stalls(c.t.stalls)
	if n == 0 {
		return attrs
	}
	for _, p := range longest {
		c.span.AddEvent(semconv.EventTokenStall, trace.WithTimestamp(c.when(p.end)),
			trace.WithAttributes(semconv.GenAIStallDurationMs(ms(p.ns))))
	}
	return append(attrs, semconv.GenAIStallCount(n))
}
