package wire

import (
	"errors"
	"io"
	"sync"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/semconv"
)

// A Follower reports what a [Stream] reads to a second call, that of the gateway
// which passes the stream on: the stream is parsed once, and each side has its own
// times. A chunk counts for the gateway when it leaves: what was read is written,
// and then sent. Its methods are safe for concurrent use, with those of the Stream
// too, and do nothing on a nil Follower and after its end.
type Follower struct {
	mu      sync.Mutex
	call    *genaitrace.Call
	read    waiting // not written yet
	written waiting // not sent yet
	stream  *Stream // once it has ended
	clean   bool    // it ended by itself
	ended   bool
}

// Follow lets call, if there is one, follow the stream from here on. A stream has
// one follower, and only a stream of events has one: of a whole answer Follow
// returns nil.
func (s *Stream) Follow(call *genaitrace.Call) *Follower {
	if _, whole := s.framer.(*document); whole || s.ended {
		return nil
	}
	s.follower = &Follower{call: call}
	return s.follower
}

func (f *Follower) chunk(kind genaitrace.ChunkKind) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended || f.call == nil {
		return
	}
	f.read[kind]++
}

// Written says that what the stream has read is written.
func (f *Follower) Written() {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.written.take(&f.read)
}

// Sent stamps the chunks that were written since the last Sent.
func (f *Follower) Sent() {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sent()
}

func (f *Follower) sent() {
	if f.ended {
		return
	}
	f.written.stamp(f.call)
}

// conclude takes over how the stream ended.
func (f *Follower) conclude(s *Stream, clean bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stream, f.clean = s, clean
}

// End reports to the call what the stream told and how it ended: by itself where
// err is nil or io.EOF, else broken. It does not end the call.
func (f *Follower) End(err error) { f.end(err == nil || errors.Is(err, io.EOF), "") }

// Abandon is End for a client that went away before the stream's end; see
// [Stream.Abandon].
func (f *Follower) Abandon(terminal semconv.GenAIStreamTerminalAttr) { f.end(true, terminal) }

func (f *Follower) end(clean bool, abandoned semconv.GenAIStreamTerminalAttr) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended {
		return
	}
	if abandoned != semconv.GenAIStreamTerminalClientCancelled {
		f.sent() // what waits leaves with the end
	}
	f.ended = true
	switch s := f.stream; {
	case s != nil:
		s.tell(f.call, s.ending(clean && f.clean, abandoned))
	case abandoned != "":
		f.call.SetTerminal(abandoned)
	default: // passed on in part, by a gateway that stopped reading
		f.call.SetTerminal(semconv.GenAIStreamTerminalTruncated)
	}
}
