package sampling

import (
	"encoding/binary"
	"math/bits"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// A segment is what this process knows of a trace while spans of it are open or
// its fate is.
type segment struct {
	id      trace.TraceID
	state   state
	late    bool // an earlier part of the trace was here
	counted bool // policies have learnt from it
	begun   bool // spans of it were exported
	open    int  // spans that have started and not ended
	roots   []localRoot
	running int  // roots that have not ended
	lingers bool // the roots have ended, and other spans have not

	r       uint64
	promise keptInfo // by what the trace was told to be kept; never if it was not
	facts   uint64
	keys    [maxKeys]string
	start   time.Time // of its first span
	began   time.Time // when the request began: start, or earlier if a caller says so
	end     time.Time // the last end
	ttft    float64   // ms, as the outermost span has it; 0 where none has

	spans  []sdktrace.ReadOnlySpan // ended and undecided
	shared bool                    // a custom policy may be looking at them
	bytes  int                     // of spans, estimated
	total  int                     // spans that were taken, also those that are no longer here
	size   int                     // their bytes
	lost   int                     // spans that were not taken, or given up

	parts parts // of the trace in other processes

	kept keptInfo // valid where state is kept
	note string   // the reason given to Keep

	list       *list
	prev, next *segment
	born       time.Duration
	changed    time.Duration // when it began to linger, to be judged, or was decided
}

// A localRoot is a span without a parent in this process.
type localRoot struct {
	id   trace.SpanID
	span sdktrace.ReadOnlySpan // ended, but not yet recorded in the metrics
}

type state uint8

const (
	undecided state = iota
	judging         // undecided, and the custom policies are being asked
	kept
	dropped
)

// keptInfo is how a trace was kept: its threshold, never where unknown, and why.
type keptInfo struct {
	t      threshold
	reason reason
}

// table holds the segments, in shards so that goroutines rarely meet.
type table struct {
	shards []shard
	budget budget
}

type shard struct {
	mu       sync.Mutex
	closed   bool
	segments map[trace.TraceID]*segment
	// Every segment is in one of these lists: undecided without spans, undecided
	// with spans, and decided.
	idle, buffered, decided list

	used     int // bytes of buffered spans
	reserved int // of the budget
	free     []*segment
	cache    keepCache
	counts   counts
	scratch  view     // of the segment that is judged
	_        [64]byte // no two shards share a cache line
}

const (
	maxShards = 256
	// maxFree is how many segments a shard keeps for reuse, and maxFreeSpans how
	// many spans one of them may have room for.
	maxFree      = 256
	maxFreeSpans = 256
	// keepCacheEntries is how many kept traces are remembered, by all shards.
	keepCacheEntries = 1 << 16
)

func newTable(limit int) *table {
	n := min(maxShards, 1<<bits.Len(uint(4*runtime.GOMAXPROCS(0)-1)))
	t := &table{shards: make([]shard, n)}
	t.budget.limit = int64(limit)
	t.budget.chunk = max(1, limit/(8*n))
	for i := range t.shards {
		s := &t.shards[i]
		s.segments = map[trace.TraceID]*segment{}
		s.cache.init(keepCacheEntries / n)
	}
	return t
}

// shard returns the shard of a trace. Not all trace IDs are random, hence the mixing.
func (t *table) shard(id trace.TraceID) *shard {
	return &t.shards[mix(id)>>32&uint64(len(t.shards)-1)]
}

// mix is the finaliser of splitmix64 over both halves.
func mix(id trace.TraceID) uint64 {
	x := binary.BigEndian.Uint64(id[:8])*0x9e3779b97f4a7c15 ^ binary.BigEndian.Uint64(id[8:])
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// add makes a segment. The caller holds the lock.
func (s *shard) add(id trace.TraceID, now time.Duration) *segment {
	var seg *segment
	if n := len(s.free); n > 0 {
		seg, s.free = s.free[n-1], s.free[:n-1]
	} else {
		seg = &segment{}
	}
	seg.id, seg.born = id, now
	seg.promise.t, seg.kept.t = never, never
	s.segments[id] = seg
	s.idle.push(seg)
	return seg
}

// revive makes a dropped segment, of which spans are open still, one that is judged
// afresh.
func (s *shard) revive(seg *segment, start time.Time) {
	seg.state, seg.counted = undecided, false
	seg.start, seg.began, seg.facts, seg.keys, seg.ttft = start, start, 0, [maxKeys]string{}, 0
	seg.total, seg.size, seg.lost = 0, 0, 0 // nothing is left of what was dropped
	s.idle.move(seg)
}

// remove forgets a segment.
func (s *shard) remove(seg *segment) {
	delete(s.segments, seg.id)
	seg.list.remove(seg)
	s.dropSpans(seg)
	spans, roots := seg.spans[:0], seg.roots[:0]
	clear(seg.roots)
	*seg = segment{spans: spans, roots: roots}
	if len(s.free) < maxFree {
		s.free = append(s.free, seg)
	}
}

// dropSpans lets go of the buffered spans.
func (s *shard) dropSpans(seg *segment) {
	if seg.shared || cap(seg.spans) > maxFreeSpans {
		seg.spans = nil
	}
	clear(seg.spans)
	seg.spans = seg.spans[:0]
	s.used -= seg.bytes
	seg.bytes = 0
}

// takeSpans is dropSpans for a caller who goes on with the spans.
func (s *shard) takeSpans(seg *segment) (spans []sdktrace.ReadOnlySpan, bytes int) {
	spans, bytes = seg.spans, seg.bytes
	if seg.shared {
		spans = slices.Clone(spans)
	}
	s.used -= bytes
	seg.spans, seg.bytes = nil, 0
	return spans, bytes
}

// A list is a doubly linked list of segments; what was put in first is at its head.
type list struct {
	head, tail *segment
}

func (l *list) push(seg *segment) {
	seg.list, seg.prev, seg.next = l, l.tail, nil
	if l.tail == nil {
		l.head = seg
	} else {
		l.tail.next = seg
	}
	l.tail = seg
}

func (l *list) remove(seg *segment) {
	if seg.prev == nil {
		l.head = seg.next
	} else {
		seg.prev.next = seg.next
	}
	if seg.next == nil {
		l.tail = seg.prev
	} else {
		seg.next.prev = seg.prev
	}
	seg.list, seg.prev, seg.next = nil, nil, nil
}

// move puts a segment at the end of another list, or of its own.
func (l *list) move(seg *segment) {
	seg.list.remove(seg)
	l.push(seg)
}

// A budget of bytes is shared by the shards, which take a chunk at a time, so that
// the counter is rarely touched.
type budget struct {
	taken atomic.Int64
	limit int64
	chunk int
}

// cover reserves what the shard uses and reports whether the budget has it.
func (b *budget) cover(s *shard) bool {
	if s.used <= s.reserved {
		return true
	}
	need := int64(max(b.chunk, s.used-s.reserved))
	if b.taken.Add(need) > b.limit {
		b.taken.Add(-need)
		return false
	}
	s.reserved += int(need)
	return true
}

// giveBack returns what the shard has no use for.
func (b *budget) giveBack(s *shard) {
	if spare := s.reserved - s.used - b.chunk; spare >= b.chunk {
		s.reserved -= spare
		b.taken.Add(-int64(spare))
	}
}

// A keepCache remembers traces that are kept: 4 entries a set, the oldest of
// which gives way. Whoever writes holds the shard's lock; reading takes none.
type keepCache struct {
	entries []keepEntry
	sets    uint64
	next    uint8
}

type keepEntry struct {
	key  atomic.Uint64 // hash of the trace ID; 0: empty
	info atomic.Uint64 // threshold, and the reason above it
}

const cacheWays = 4

func (c *keepCache) init(entries int) {
	c.sets = uint64(max(1, entries/cacheWays))
	c.entries = make([]keepEntry, c.sets*cacheWays)
}

// set returns the entries where a trace may be, and its key.
func (c *keepCache) set(id trace.TraceID) (set []keepEntry, key uint64) {
	key = mix(id)
	i := key & (c.sets - 1) * cacheWays
	return c.entries[i : i+cacheWays], max(key, 1)
}

func (c *keepCache) put(id trace.TraceID, k keptInfo) {
	set, key := c.set(id)
	entry := &set[c.next%cacheWays]
	c.next++
	for i := range set {
		if set[i].key.Load() == key {
			entry = &set[i]
		}
	}
	entry.key.Store(0)
	entry.info.Store(min(k.t, never) | uint64(k.reason)<<57)
	entry.key.Store(key)
}

func (c *keepCache) remove(id trace.TraceID) {
	set, key := c.set(id)
	for i := range set {
		if set[i].key.Load() == key {
			set[i].key.Store(0)
		}
	}
}

func (c *keepCache) get(id trace.TraceID) (k keptInfo, ok bool) {
	set, key := c.set(id)
	for i := range set {
		if set[i].key.Load() != key {
			continue
		}
		info := set[i].info.Load()
		if set[i].key.Load() == key { // else another trace took the place
			return keptInfo{info & (1<<57 - 1), reason(info >> 57)}, true
		}
	}
	return keptInfo{}, false
}
