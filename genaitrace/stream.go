package genaitrace

import (
	"context"
	"errors"
	"io"
	"iter"
	"time"

	"github.com/genaitrace/otelgenai/semconv"
)

// RangeChunks records a streamed answer that is ranged over, as [Call.Chunk] and
// the end of the call would. The items pass unchanged, one reading of the clock
// and no allocation each. It starts no goroutine. Where call is nil it returns
// seq itself.
//
// observe says what an item carried, and notes on the call what else it tells:
// [Call.SetUsage], [Call.SetFinish], [Call.SetResponse], [Call.SetTerminal]. nil
// means that every item is answer text ([Visible]). It runs after the item was
// stamped and before it is passed on, so it should be quick; where it panics, the
// panic is counted in genai.telemetry.faults and the item counts as [NoOutput].
//
// The call ends once, when the iteration does:
//
//	the source has no more items        well: genai.stream.terminal finish after SetFinish, else eof
//	it yields an error, and no item     failed (error, or truncated for io.ErrUnexpectedEOF); io.EOF is a
//	after it                            good end. The span ends when the error came.
//	the loop breaks                     client_cancelled, no failure
//	the loop or the source panics       failed; the panic goes on
//	the call's context ends             client_cancelled, or timeout and failed for a deadline, also while
//	                                    nobody iterates
//
// What comes first counts. Once SetFinish or SetTerminal said that the answer is
// complete, leaving the loop or ending the context is a good end. An iteration that is dropped without
// a word, as through an [iter.Pull2] whose stop nobody calls, ends with the
// context alone, so give the call a context that ends.
//
// Where the HTTP transport of this module feeds the call, it has stamped what
// the items are made of, and stamps more exactly: the items add no chunks then.
// The first iteration is the one that is recorded.
func RangeChunks[T any](call *Call, seq iter.Seq2[T, error], observe func(*Call, T) ChunkKind) iter.Seq2[T, error] {
	if call == nil || call.t == nil {
		return seq
	}
	call.endWithContext()
	return func(yield func(T, error) bool) {
		s := chunks[T]{call: call, observe: observe}
		var last iteration
		defer last.endCall(call)
		for item, err := range seq {
			if last.took(err) {
				s.stamp(item)
			}
			if !yield(item, err) {
				return
			}
		}
		last.complete = true
	}
}

// ReceiveChunks is [RangeChunks] for a function that returns the next item of a
// streamed answer, such as Recv of a gRPC stream. Its first error ends the call;
// io.EOF ends it well. A caller that stops receiving before that calls stop,
// which ends the call as the break of a loop would, and does nothing after its
// end. Deferred, it sees a panic of the receiver, which ends the call as failed
// and goes on:
//
//	recv, stop := genaitrace.ReceiveChunks(call, stream.Recv, observe)
//	defer stop()
//
// recv is for one goroutine, stop for any.
func ReceiveChunks[T any](call *Call, recv func() (T, error), observe func(*Call, T) ChunkKind) (next func() (T, error), stop func()) {
	if call == nil || call.t == nil {
		return recv, func() {}
	}
	call.endWithContext()
	s := chunks[T]{call: call, observe: observe}
	next = func() (T, error) {
		defer call.endOnPanic()
		item, err := recv()
		if err != nil {
			call.endStream(err, time.Time{})
			return item, err
		}
		s.stamp(item)
		return item, nil
	}
	return next, call.stop
}

// chunks stamps the items of one stream for its call.
type chunks[T any] struct {
	call    *Call
	observe func(*Call, T) ChunkKind
	begun   bool
	fed     bool // a transport stamps what the items are made of
}

func (s *chunks[T]) stamp(item T) {
	c := s.call
	if c.done.Load() {
		return
	}
	at := int64(time.Since(c.base) + c.after)
	if !s.begun {
		s.begun, s.fed = true, c.fedByTransport()
	}
	kind := Visible
	if s.observe != nil {
		kind = s.ask(item)
	}
	if kind != NoChunk && !s.fed {
		c.clock.tickAt(at, min(kind, Visible))
	}
}

var errObserver = errors.New("observer of a stream panicked: its item counts as no output")

// ask lets no panic of the observer reach the stream.
func (s *chunks[T]) ask(item T) (kind ChunkKind) {
	defer func() {
		if recover() != nil {
			s.call.Fault(semconv.GenAIFaultPanic, errObserver)
			kind = NoOutput
		}
	}()
	return s.observe(s.call, item)
}

// fedByTransport reports, before the first item of a wrapped stream is stamped,
// whether somebody else stamped the stream: a transport sees the bytes of an item
// before its reader sees the item.
func (c *Call) fedByTransport() bool {
	if c.itemized.Load() {
		return false // it was the stream before this one
	}
	_, ticked := c.clock.firstTick()
	c.itemized.Store(!ticked)
	return ticked
}

// An iteration is how far a range over a stream came.
type iteration struct {
	complete bool      // the source returned of itself
	err      error     // of the last item
	at       time.Time // when it came
}

// took notes what the source yielded, and reports whether it is an item.
func (i *iteration) took(err error) bool {
	i.err = err
	if err == nil {
		return true
	}
	i.at = time.Now()
	return false
}

// endCall is for defer.
func (i *iteration) endCall(c *Call) {
	if r := recover(); r != nil {
		c.end(nil, panicked, time.Time{})
		panic(r)
	}
	switch {
	case i.err != nil:
		c.endStream(i.err, i.at)
	case i.complete:
		c.endStream(io.EOF, time.Time{})
	default: // a break, or the goroutine exits
		c.abandon()
	}
}

// endOnPanic is for defer.
func (c *Call) endOnPanic() {
	if r := recover(); r != nil {
		c.end(nil, panicked, time.Time{})
		panic(r)
	}
}

// endStream ends the call with the error that ended its stream, io.EOF where it
// ended well. A source that just stops when the context ends has not ended well.
func (c *Call) endStream(err error, at time.Time) {
	if err == io.EOF { //nolint:errorlint // wrapped, it is the cause of something else
		err = c.ctx.Err()
	}
	switch how, _ := classify(c.ctx, err); {
	case how != failed && c.complete():
		err = nil
	case how == failed && isError(err, io.ErrUnexpectedEOF):
		c.SetTerminal(semconv.GenAIStreamTerminalTruncated)
	}
	c.end(err, 0, at)
}

// stop is for defer.
func (c *Call) stop() {
	if r := recover(); r != nil {
		c.end(nil, panicked, time.Time{})
		panic(r)
	}
	c.abandon()
}

// abandon ends a call whose reader went away.
func (c *Call) abandon() {
	err := c.ctx.Err()
	if err == nil {
		err = context.Canceled
	}
	c.endStream(err, time.Time{})
}

// complete reports whether the answer said that it is.
func (c *Call) complete() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.finish) > 0 || c.terminal != ""
}

// endWithContext makes the end of the context the end of the call, so that a
// reader that is dropped without a word leaves no open span.
func (c *Call) endWithContext() {
	if c.ctx.Done() == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.unwatch == nil && !c.done.Load() {
		c.unwatch = context.AfterFunc(c.ctx, c.contextEnded)
	}
}

// reportTime is how long a transport that feeds a call has to notice the end of
// the context too, and to report what it read until then.
const reportTime = 100 * time.Millisecond

func (c *Call) contextEnded() {
	if !c.watched.Load() {
		c.abandon()
		return
	}
	err, at := c.ctx.Err(), time.Now()
	time.AfterFunc(reportTime, func() {
		stats, _ := c.clock.close()
		if last := c.when(stats.last); stats.ticks > 0 && last.After(at) {
			at = last // read until now, when it had arrived already
		}
		c.endStream(err, at)
	})
}
