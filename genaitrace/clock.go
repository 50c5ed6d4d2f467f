package genaitrace

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// A clock stamps the ticks of one stream: tokens on a host, chunks elsewhere.
// One goroutine ticks; any goroutine may close the clock. A tick costs one
// reading of the monotonic clock and two stores: it goes into a small window, and
// each full window is folded into the statistics. What the gaps say is worked
// out once, at the end.
//
// Times are nanoseconds since arrival.
type clock struct {
	base   time.Time // carries the monotonic reading
	offset int64     // base − arrival

	n      atomic.Int32 // ticks in window that other goroutines may read
	window [windowSize]int64

	mu     sync.Mutex
	closed atomic.Bool
	stats  clockStats
}

// windowSize is a power of two.
const windowSize = 64

// A tick is packed into one word, time<<packBits | choice<<kindBits | kind, which
// leaves 54 bits, half a year, for its time.
const (
	kindBits   = 2
	packBits   = 9
	kindMask   = 1<<kindBits - 1
	choiceMask = 1<<packBits - 1 - kindMask
	packMask   = 1<<packBits - 1
	maxChoices = 1 << (packBits - kindBits)
)

// clockStats is what folding accumulates. The gaps are counted one by one only
// once times does not say them all, because the stream is long or has several
// choices; settle does it for the others.
type clockStats struct {
	ticks, outputs, visible          int
	first, firstOutput, firstVisible int64 // valid where ticks, outputs and visible say so
	last, lastOutput                 int64
	hasOutput                        bool          // known while a window is folded
	times                            []int64       // every stride-th tick
	lent                             *timesBuffer  // that times stands in, if one does
	stride                           int           // a power of two
	choices                          []choiceStats // nil while all ticks are of choice 0

	counted          bool // the gaps are
	gaps             gapHistogram
	longest          int64
	tinySum, hugeSum int64 // of the gaps under 10 µs, and from 40 s on
	pauses           pauses
}

// A gapHistogram says how many gaps have each code.
type gapHistogram [codeEscape + 1]uint32

// choiceStats is what is known of one answer where a request asked for several.
type choiceStats struct {
	ticks       int
	first, last int64
}

func (c *clock) start(base time.Time, offset time.Duration, stalls stallRule) {
	c.base, c.offset = base, int64(offset)
	c.stats.pauses.floor = int64(stalls.atLeast)
}

// now is nanoseconds since arrival.
func (c *clock) now() int64 { return int64(time.Since(c.base)) + c.offset }

// tick stamps now.
func (c *clock) tick(kind ChunkKind) { c.tickAt(c.now(), kind) }

// tickAt stamps a time since arrival. Times that run backwards are held at the
// last one when the window is folded.
func (c *clock) tickAt(at int64, kind ChunkKind) { c.stamp(at<<packBits | int64(kind)) }

func (c *clock) stamp(packed int64) {
	n := c.n.Load()
	if n == windowSize {
		c.flush()
		n = 0
	}
	c.window[n&(windowSize-1)] = packed // the mask spares a check
	c.n.Store(n + 1)
}

// flush empties a full window. After close it drops what it holds.
func (c *clock) flush() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed.Load() {
		c.fold()
	}
	c.n.Store(0)
}

// close folds what is left and returns the statistics; later ticks change
// nothing. ok is false where the clock was closed before.
func (c *clock) close() (stats *clockStats, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed.Load() {
		return &c.stats, false
	}
	c.fold()
	c.closed.Store(true)
	return &c.stats, true
}

// firstTick is the time of the first tick of a clock that still runs.
func (c *clock) firstTick() (at int64, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stats.ticks > 0 {
		return c.stats.first, true
	}
	if c.n.Load() > 0 {
		return c.window[0] >> packBits, true
	}
	return 0, false
}

func (c *clock) fold() { c.stats.fold(c.window[:c.n.Load()]) }

// fold takes over the ticks of a window. A time that runs backwards is held at
// the one before.
func (s *clockStats) fold(window []int64) {
	if len(window) == 0 {
		return
	}
	if s.ticks == 0 {
		s.first = window[0] >> packBits
		s.last, s.stride = s.first, 1
	}
	window = window[s.foldPlain(window):]
	ticks, last, outputs, visible := s.ticks, s.last, s.outputs, s.visible
	for _, packed := range window {
		at, kind := max(packed>>packBits, last), ChunkKind(packed&kindMask)
		if kind >= Output {
			if outputs == 0 {
				s.firstOutput, s.hasOutput = at, true
			}
			if kind == Visible {
				if visible == 0 {
					s.firstVisible = at
				}
				visible++
			}
			outputs++
			s.lastOutput = at
		}
		switch {
		case packed&choiceMask != 0 || s.choices != nil:
			s.foldChoice(int(packed&choiceMask)>>kindBits, at, last, ticks)
		case s.counted:
			s.tally(last, at, ticks)
		}
		if ticks&(s.stride-1) == 0 {
			s.keep(at, last, ticks)
		}
		last = at
		ticks++
	}
	s.ticks, s.last, s.outputs, s.visible = ticks, last, outputs, visible
}

// foldPlain takes over the ticks that a window begins with as long as they are answer
// text of the one choice and the timeline has room for each, which is most of them.
func (s *clockStats) foldPlain(window []int64) (n int) {
	if s.counted || s.stride != 1 || window[0]&packMask != int64(Visible) {
		return 0
	}
	if len(s.times) == cap(s.times) && len(s.times) <= timelineMaxGaps {
		s.grow(len(window))
	}
	held, last := len(s.times), s.last
	room := s.times[held:min(held+len(window), cap(s.times))]
	for n < len(room) && window[n]&packMask == int64(Visible) {
		last = max(window[n]>>packBits, last)
		room[n] = last
		n++
	}
	if n == 0 {
		return 0
	}
	if s.outputs == 0 {
		s.firstOutput, s.hasOutput = room[0], true
	}
	if s.visible == 0 {
		s.firstVisible = room[0]
	}
	s.ticks, s.outputs, s.visible = s.ticks+n, s.outputs+n, s.visible+n
	s.times, s.last, s.lastOutput = s.times[:held+n], last, last
	return n
}

// foldChoice takes over a tick of a stream with several choices: a gap lies
// between two ticks of one of them. Until the first tick of another, all were of
// choice 0.
func (s *clockStats) foldChoice(choice int, at, last int64, ticks int) {
	if s.choices == nil {
		s.countKept()
		s.choices = append(make([]choiceStats, 0, 4), choiceStats{ticks: ticks, first: s.first, last: last})
	}
	for len(s.choices) <= choice {
		s.choices = append(s.choices, choiceStats{})
	}
	c := &s.choices[choice]
	if c.ticks == 0 {
		c.first = at
	} else {
		s.tally(c.last, at, c.ticks)
	}
	c.last = at
	c.ticks++
}

// keep adds the time of a tick to the timeline.
func (s *clockStats) keep(at, last int64, ticks int) {
	if len(s.times) == cap(s.times) {
		if len(s.times) > timelineMaxGaps {
			if !s.counted {
				s.countKept()
				s.tally(last, at, ticks)
			}
			s.thin()
			if ticks&(s.stride-1) != 0 {
				return
			}
		} else {
			s.grow(1)
		}
	}
	s.times = append(s.times, at)
}

// thin drops every second time of a timeline that is full.
func (s *clockStats) thin() {
	kept := s.times[:0]
	for i := 0; i < len(s.times); i += 2 {
		kept = append(kept, s.times[i])
	}
	s.times = kept
	s.stride *= 2
}

// grow makes room for more times; more is how many are known to come.
func (s *clockStats) grow(more int) {
	held, was := s.times, s.lent
	switch {
	case len(held) >= len(timesBuffer{}):
		s.times, s.lent = make([]int64, 0, timelineMaxGaps+1), nil
	case len(held) >= windowSize || more >= windowSize: // a short stream needs no more than a window
		s.lent = timesBuffers.Get().(*timesBuffer)
		s.times = s.lent[:0]
	default:
		s.times = make([]int64, 0, windowSize)
	}
	s.times = append(s.times, held...)
	if was != nil {
		timesBuffers.Put(was)
	}
}

// A timesBuffer holds the timeline of most streams. It is lent to one that fills a
// window until its end.
type timesBuffer [512]int64

var timesBuffers = sync.Pool{New: func() any { return new(timesBuffer) }}

// release gives back what was lent, once nobody asks for times any more.
func (s *clockStats) release() {
	if s.lent != nil {
		s.times = nil
		timesBuffers.Put(s.lent)
		s.lent = nil
	}
}

// countKept counts the gaps of a timeline that holds every tick; from then on
// they are counted one by one.
func (s *clockStats) countKept() {
	if s.counted {
		return
	}
	s.counted = true
	for i := 1; i < len(s.times); i++ {
		s.tally(s.times[i-1], s.times[i], i)
	}
}

// tally counts the gap between two ticks, and remembers one that may be a stall.
func (s *clockStats) tally(from, to int64, tick int) {
	s.count(to - from)
	if to-from >= s.pauses.floor {
		s.mayStall(from, to, tick)
	}
	if len(s.pauses.tail) > 0 && to <= s.lastOutput {
		s.pauses.settle()
	}
}

// count notes one gap, and returns its code.
func (s *clockStats) count(gap int64) uint8 {
	code := gapCode(gap)
	s.gaps[code]++
	s.longest = max(s.longest, gap)
	switch code {
	case codeTiny:
		s.tinySum += gap
	case codeEscape:
		s.hugeSum += gap
	}
	return code
}

// settle works out what the gaps say, once, and packs the timeline. Nothing but
// the span needs either.
func (s *clockStats) settle() (timeline string) {
	if !s.counted {
		s.counted = true
		return encodeTimeline(s.times, s.ticks, s.stride, s.count)
	}
	times := s.times
	if (s.ticks-1)&(s.stride-1) != 0 {
		times = append(times[:len(times):len(times)], s.last)
	}
	return encodeTimeline(times, s.ticks, s.stride, nil)
}

// eachGap calls record with every gap: exactly while the timeline has each
// tick, else with the value and count of each step of the histogram.
func (s *clockStats) eachGap(record func(ns int64)) {
	if s.stride == 1 {
		for i := 1; i < len(s.times); i++ {
			record(s.times[i] - s.times[i-1])
		}
		return
	}
	for code, n := range s.gaps {
		value := s.codeNanos(code)
		for range n {
			record(value)
		}
	}
}

// gapCount is how many gaps there are between ticks of the same choice.
func (s *clockStats) gapCount() int {
	if s.choices == nil {
		return s.ticks - 1
	}
	n := s.ticks
	for _, c := range s.choices {
		n -= min(c.ticks, 1)
	}
	return n
}

// quantile is the nearest-rank quantile of the settled gaps, right within 3 %
// from 10 µs up. ok is false where there is no gap.
func (s *clockStats) quantile(q float64) (ns int64, ok bool) {
	total := s.gapCount()
	if total < 1 {
		return 0, false
	}
	rank := uint32(math.Ceil(q * float64(total)))
	seen := uint32(0)
	for code, n := range s.gaps {
		seen += n
		if n > 0 && seen >= rank {
			return s.codeNanos(code), true
		}
	}
	return s.longest, true
}

// codeNanos is the time that a code of the histogram stands for, never more
// than the longest gap seen; at the open ends the mean of the gaps there.
func (s *clockStats) codeNanos(code int) int64 {
	switch n := int64(s.gaps[code]); {
	case n == 0:
		return 0
	case code == codeTiny:
		return s.tinySum / n
	case code == codeEscape:
		return s.hugeSum / n
	}
	return min(int64(codeValue[code]), s.longest)
}
