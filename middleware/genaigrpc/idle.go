package genaigrpc

import (
	"sync"
	"sync/atomic"
	"time"
)

const (
	// defaultIdleTimeout is how often a handler looks at its open streams.
	defaultIdleTimeout = 15 * time.Minute
	// minIdleTimeout keeps the looks from becoming work of their own.
	minIdleTimeout = time.Second
	// unansweredLooks is how many looks in a row find nothing before a server's RPC
	// is given up that has not begun to answer.
	unansweredLooks = 4
	// lookBatch is how many RPCs are taken from the ring at a time, so that no RPC
	// that begins or ends waits for a look at all others.
	lookBatch = 256
)

// endedLate is the fault of an RPC that ended after its span.
const endedLate = "an RPC ended after its idle time-out had ended its span; WithIdleTimeout sets a longer one"

// An idleWatch finds RPCs of a handler that no message passes any more. One timer
// serves all of them and runs only while there are any. Messages are noted, not timed,
// so an RPC is found one to two time-outs after its last message.
type idleWatch struct {
	timeout time.Duration // 0: it never looks

	mu    sync.Mutex
	ring  life // the open RPCs come after it, the newest first
	timer *time.Timer
	runs  bool // the timer does
}

// A life is the time of an RPC from its begin to its end.
type life struct {
	rpc   idler
	state atomic.Uint32
	moved atomic.Bool // a message passed since the last look
	quiet int         // looks in a row that found none; the watch's alone

	next, prev *life // in the ring of the watch, which locks them; nil outside
}

// An idler is an RPC that can be found idle.
type idler interface {
	// look is told how many looks in a row found that no message had passed, and
	// says whether to look again.
	look(quiet int) bool
}

// The states of a life.
const (
	running = iota
	expired // the time-out ended its span
	over
)

// move notes that a message passed.
func (l *life) move() {
	if !l.moved.Load() { // a store would take the cache line from the other direction
		l.moved.Store(true)
	}
}

// end reports whether the span has still to end, and whether it is too late for that
// because the time-out came first. A second end is neither.
func (l *life) end() (first, late bool) {
	before := l.state.Swap(over)
	return before == running, before == expired
}

// expire reports whether the span has still to end, by the time-out.
func (l *life) expire() bool { return l.state.CompareAndSwap(running, expired) }

func (l *life) runs() bool { return l.state.Load() == running }

// add begins to look at an RPC.
func (w *idleWatch) add(l *life, rpc idler) {
	if w.timeout == 0 {
		return
	}
	l.rpc = rpc
	l.moved.Store(true)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ring.next == nil {
		w.ring.next, w.ring.prev = &w.ring, &w.ring
	}
	l.insertAfter(&w.ring)
	switch {
	case w.runs:
	case w.timer == nil:
		w.timer = time.AfterFunc(w.timeout, w.look)
	default:
		w.timer.Reset(w.timeout)
	}
	w.runs = true
}

// remove looks at an RPC no more, if it ever did.
func (w *idleWatch) remove(l *life) {
	if l.rpc == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	l.unlink()
}

// look runs once a time-out.
func (w *idleWatch) look() {
	var mark life // stands before those that are still to be looked at
	w.mu.Lock()
	mark.insertAfter(&w.ring)
	w.mu.Unlock()

	var batch [lookBatch]*life
	for n := w.take(&mark, &batch); n > 0; n = w.take(&mark, &batch) {
		for _, l := range batch[:n] {
			if l.quiet++; l.moved.Swap(false) {
				l.quiet = 0
			}
			if !l.rpc.look(l.quiet) {
				w.remove(l)
			}
		}
	}

	w.mu.Lock()
	defer w.mu.Unlock()
	mark.unlink()
	if w.runs = w.ring.next != &w.ring; w.runs {
		w.timer.Reset(w.timeout)
	}
}

// take moves the mark past the next RPCs, and returns how many there were.
func (w *idleWatch) take(mark *life, batch *[lookBatch]*life) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := mark.next
	for ; n < len(batch) && at != &w.ring; at = at.next {
		batch[n] = at
		n++
	}
	mark.unlink()
	mark.insertAfter(at.prev)
	return n
}

func (l *life) insertAfter(at *life) {
	l.prev, l.next = at, at.next
	l.prev.next, l.next.prev = l, l
}

func (l *life) unlink() {
	if l.next == nil {
		return
	}
	l.prev.next, l.next.prev = l.next, l.prev
	l.prev, l.next = nil, nil
}
