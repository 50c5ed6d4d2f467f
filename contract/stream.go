package contract

import (
	"container/heap"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/capture"
)

// openTraces holds the spans of traces that may yet go on, and tells when one has
// been quiet for long. Its clock is that of the telemetry.
type openTraces struct {
	byID  map[trace.TraceID]*openTrace
	quiet traceHeap // a heap, the longest quiet one on top, where some are closed before the end
	bytes int

	now   time.Time     // what two traces have reached
	ahead time.Time     // what one of them has
	by    trace.TraceID // the one

	closed map[trace.TraceID]struct{}
	forget []trace.TraceID // closed, the oldest first
}

// openTrace is one of them.
type openTrace struct {
	id    trace.TraceID
	spans []*capture.Span
	bytes int
	seen  time.Time // by the clock, when its last span came
	due   time.Time // seen, as of its place in the heap
	once  bool      // it was found quiet once
}

const defaultMaxOpenBytes = 256 << 20

// tick moves the clock. One trace alone does not: its own clock may be far off.
func (o *openTraces) tick(s *capture.Span) {
	t := latest(s)
	switch {
	case !t.After(o.now):
	case s.TraceID == o.by:
		if t.After(o.ahead) {
			o.ahead = t
		}
	case t.After(o.ahead):
		o.now, o.ahead, o.by = o.ahead, t, s.TraceID
	default:
		o.now = t
	}
}

func latest(s *capture.Span) time.Time {
	if s.Ended() && s.End.After(s.Start) {
		return s.End
	}
	return s.Start
}

func (k *Checker) addSpan(s *capture.Span) {
	k.spans++
	o := &k.open
	if _, closed := o.closed[s.TraceID]; closed {
		k.late++
		return
	}
	t, ok := o.byID[s.TraceID]
	if !ok {
		t = &openTrace{id: s.TraceID}
		o.byID[s.TraceID] = t
		o.quiet = append(o.quiet, t)
	}
	t.spans = append(t.spans, s)
	if k.config.quiet == 0 {
		return
	}
	o.tick(s)
	n := footprint(s)
	t.bytes += n
	o.bytes += n
	t.seen, t.once = o.now, false
	if own := latest(s); own.After(o.now) {
		t.seen = own
	}
	if !ok {
		t.due = t.seen
		heap.Fix(&o.quiet, len(o.quiet)-1)
	}
}

// closeQuiet checks the traces that are complete, and the longest quiet where the
// open ones hold too much.
func (k *Checker) closeQuiet() {
	o := &k.open
	if k.config.quiet == 0 {
		return
	}
	for len(o.quiet) > 0 {
		t := o.quiet[0]
		switch {
		case t.seen.After(t.due): // it went on since its place was found
			t.due = t.seen
			heap.Fix(&o.quiet, 0)
			continue
		case o.now.Sub(t.seen) > k.config.quiet/2 && !t.once:
			// The clock may have jumped. Half of the time must go by twice.
			t.seen, t.once = o.now, true
			continue
		case o.now.Sub(t.seen) > k.config.quiet/2:
		case o.bytes > k.config.maxOpenBytes:
			k.evicted++
		default:
			return
		}
		heap.Pop(&o.quiet)
		k.close(t)
	}
}

// close checks one trace and remembers that it is done.
func (k *Checker) close(t *openTrace) {
	o := &k.open
	delete(o.byID, t.id)
	o.bytes -= t.bytes
	if len(o.forget) >= maxRemembered {
		delete(o.closed, o.forget[0])
		o.forget = o.forget[1:]
	}
	o.closed[t.id] = struct{}{}
	o.forget = append(o.forget, t.id)
	k.checkTrace(capture.NewTrace(t.spans))
}

// closeAll checks all that is open.
func (k *Checker) closeAll() {
	for _, t := range k.open.quiet {
		k.checkTrace(capture.NewTrace(t.spans))
	}
	k.open = openTraces{}
}

// traceHeap implements heap.Interface.
type traceHeap []*openTrace

func (h *traceHeap) Len() int           { return len(*h) }
func (h *traceHeap) Less(i, j int) bool { return (*h)[i].due.Before((*h)[j].due) }
func (h *traceHeap) Swap(i, j int)      { (*h)[i], (*h)[j] = (*h)[j], (*h)[i] }
func (h *traceHeap) Push(t any)         { *h = append(*h, t.(*openTrace)) }

func (h *traceHeap) Pop() any {
	last := len(*h) - 1
	t := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return t
}

// What the parts of a span take in memory beside their text, on 64 bits.
const (
	spanOverhead      = 400
	attributeOverhead = 64
	innerOverhead     = 80
)

// footprint is roughly what a span takes in memory.
func footprint(s *capture.Span) int {
	n := size(s) + spanOverhead + attributeOverhead*len(s.Attributes)
	for i := range s.Events {
		n += innerOverhead + attributeOverhead*len(s.Events[i].Attributes)
	}
	for i := range s.Links {
		n += innerOverhead + attributeOverhead*len(s.Links[i].Attributes)
	}
	return n
}
