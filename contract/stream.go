package contract

import (
	"container/list"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/capture"
)

// openTraces holds the spans of traces that may yet go on, and tells when one has
// been quiet for long. Its clock is that of the telemetry.
type openTraces struct {
	byID  map[trace.TraceID]*list.Element
	quiet *list.List // of *openTrace, the longest quiet one first where some are closed before the end
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
	once  bool      // it was found quiet once
}

func newOpenTraces() openTraces {
	return openTraces{byID: map[trace.TraceID]*list.Element{}, quiet: list.New(), closed: map[trace.TraceID]struct{}{}}
}

const defaultMaxOpenBytes = 256 << 20

// tick moves the clock. One trace alone does not: its own clock may be far off.
func (o *openTraces) tick(s *capture.Span) {
	t := s.Start
	if s.End.After(t) {
		t = s.End
	}
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

func (k *Checker) addSpan(s *capture.Span) {
	k.spans++
	o := &k.open
	if _, closed := o.closed[s.TraceID]; closed {
		k.late++
		return
	}
	e, ok := o.byID[s.TraceID]
	if !ok {
		e = o.quiet.PushBack(&openTrace{id: s.TraceID})
		o.byID[s.TraceID] = e
	}
	t := e.Value.(*openTrace)
	t.spans = append(t.spans, s)
	if k.config.quiet == 0 {
		return
	}
	o.tick(s)
	n := footprint(s)
	t.bytes += n
	o.bytes += n
	t.seen, t.once = o.now, false
	o.quiet.MoveToBack(e)
}

// closeQuiet checks the traces that are complete, and the longest quiet where the
// open ones hold too much.
func (k *Checker) closeQuiet() {
	o := &k.open
	if k.config.quiet == 0 {
		return
	}
	for e := o.quiet.Front(); e != nil; e = o.quiet.Front() {
		t := e.Value.(*openTrace)
		quiet := o.now.Sub(t.seen) > k.config.quiet/2
		switch {
		case quiet && !t.once:
			// The clock may have jumped, so half of the time must go by twice. That it was
			// set for the first time does not count.
			t.once, t.seen = !t.seen.IsZero(), o.now
			o.quiet.MoveToBack(e)
			continue
		case quiet:
		case o.bytes > k.config.maxOpenBytes:
			k.evicted++
		default:
			return
		}
		k.close(e)
	}
}

// close checks one trace and remembers that it is done.
func (k *Checker) close(e *list.Element) {
	o, t := &k.open, e.Value.(*openTrace)
	o.quiet.Remove(e)
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
	for e := k.open.quiet.Front(); e != nil; e = e.Next() {
		k.checkTrace(capture.NewTrace(e.Value.(*openTrace).spans))
	}
	k.open = newOpenTraces()
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
