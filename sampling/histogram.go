package sampling

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// A histogram counts numbers in buckets 1/32 of their size wide, so that a quantile
// is right within 3 %. It is safe for concurrent use; add takes one atomic
// operation.
type histogram struct {
	total   atomic.Uint64
	buckets [histogramSize]atomic.Uint32
}

const (
	subBuckets    = 32
	subBits       = 5
	histogramBits = 42 // numbers from there on count as the largest one
	histogramSize = (histogramBits - subBits + 1) * subBuckets
)

func (h *histogram) add(n uint64) {
	h.buckets[bucketOf(n)].Add(1)
	h.total.Add(1)
}

func (h *histogram) reset() {
	h.total.Store(0)
	for i := range h.buckets {
		h.buckets[i].Store(0)
	}
}

// bucketOf gives the numbers below 32 a bucket each, and those of each power of two
// above 32 buckets.
func bucketOf(n uint64) int {
	n = min(n, 1<<histogramBits-1)
	if n < subBuckets {
		return int(n)
	}
	shift := bits.Len64(n) - 1 - subBits
	return (shift+1)*subBuckets + int(n>>shift) - subBuckets
}

// lowOf is the smallest number of a bucket.
func lowOf(bucket int) uint64 {
	if bucket < subBuckets {
		return uint64(bucket)
	}
	return uint64(bucket%subBuckets+subBuckets) << (bucket/subBuckets - 1)
}

// A window is a histogram of the recent past, between one and two turns long.
type window struct {
	halves  [2]histogram
	current atomic.Uint32 // which half is written to
	turned  [2]time.Duration
}

func (w *window) add(n uint64) { w.halves[w.current.Load()&1].add(n) }

// tick forgets the older half where the newer one is as old as turn.
func (w *window) tick(now, turn time.Duration) {
	current := w.current.Load() & 1
	if now-w.turned[current] < turn {
		return
	}
	next := 1 - current
	w.halves[next].reset()
	w.turned[next] = now
	w.current.Store(next)
}

// covers is how far back the window reaches.
func (w *window) covers(now time.Duration) time.Duration { return now - min(w.turned[0], w.turned[1]) }

func (w *window) total() uint64 { return w.halves[0].total.Load() + w.halves[1].total.Load() }

// at returns the bucket of the number that rank of the numbers do not exceed.
func (w *window) at(rank float64) int {
	var seen float64
	last := 0
	for i := range w.halves[0].buckets {
		n := w.halves[0].buckets[i].Load() + w.halves[1].buckets[i].Load()
		if n == 0 {
			continue
		}
		last = i
		if seen += float64(n); seen >= rank {
			break
		}
	}
	return last
}
