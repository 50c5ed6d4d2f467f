package wire

import (
	"errors"
	"io"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/semconv"
)

// A Stream observes the body of one streamed response for a call. Push and End
// are for one goroutine.
type Stream struct {
	call    *genaitrace.Call
	sse     sse
	chat    chat
	ended   bool
	event   func([]byte)
	mute    bool // the events are no output
	held    bool // chunks wait for Sent
	waiting []genaitrace.ChunkKind
}

// NewStream returns an observer that reports to call.
func NewStream(call *genaitrace.Call) *Stream {
	s := &Stream{call: call}
	s.event = func(data []byte) {
		if kind, ok := s.chat.event(data); ok {
			s.stamp(kind)
		}
	}
	return s
}

// NewHeldStream returns an observer for the side that writes a stream through a
// buffer: what is pushed has not left yet, so its chunks are stamped when
// [Stream.Sent] says that it has.
func NewHeldStream(call *genaitrace.Call) *Stream {
	s := NewStream(call)
	s.held = true
	return s
}

// NewErrorStream returns an observer of the events of a failure: they tell what
// failed, and are no chunks of the answer, which another attempt may bring.
func NewErrorStream(call *genaitrace.Call) *Stream {
	s := NewStream(call)
	s.mute = true
	return s
}

// maxWaiting bounds the chunks of a writer that never flushes.
const maxWaiting = 4096

func (s *Stream) stamp(kind genaitrace.ChunkKind) {
	if s.mute {
		return
	}
	if !s.held {
		s.call.Chunk(kind)
		return
	}
	if len(s.waiting) == maxWaiting {
		s.Sent()
	}
	s.waiting = append(s.waiting, kind)
}

// Sent stamps the chunks that were pushed since the last Sent.
func (s *Stream) Sent() {
	for _, kind := range s.waiting {
		s.call.Chunk(kind)
	}
	s.waiting = s.waiting[:0]
}

// Push takes the bytes that follow in the stream, split anywhere. It keeps no
// reference to p.
func (s *Stream) Push(p []byte) {
	if s.ended {
		return
	}
	if kind, ok := s.common(p); ok {
		s.stamp(kind)
		return
	}
	s.sse.push(p, s.event)
}

const (
	eventStart = "data: "
	eventEnd   = "\n\n"
)

// common recognises what nearly every read of a stream holds: one whole event,
// of the shape of the one before.
func (s *Stream) common(p []byte) (genaitrace.ChunkKind, bool) {
	end := len(p) - len(eventEnd)
	if end < len(eventStart) || string(p[:len(eventStart)]) != eventStart || string(p[end:]) != eventEnd || !s.sse.between() {
		return 0, false
	}
	return s.chat.shape.match(p[len(eventStart):end])
}

// Done reports whether the stream said that it is complete: its end mark came.
func (s *Stream) Done() bool { return s.chat.done }

// End reports to the call what the stream told: response, usage, finish
// reasons, how it ended. err is what ended the reading: nil or io.EOF where the
// body ended, else what broke it. It does not end the call, and only the first
// End counts.
func (s *Stream) End(err error) {
	s.end(err == nil || err == io.EOF, "") //nolint:errorlint // wrapped, it is the cause of something else
}

// Abandon is End for a reader that went away before the stream's end; terminal
// says why (client_cancelled, timeout). A stream that was complete, or whose
// last piece of output had come, is not abandoned.
func (s *Stream) Abandon(terminal semconv.GenAIStreamTerminalAttr) {
	s.end(true, terminal)
}

func (s *Stream) end(clean bool, abandoned semconv.GenAIStreamTerminalAttr) {
	if s.ended {
		return
	}
	s.ended = true
	if abandoned == "" {
		if rest, ok := s.sse.finish(); ok && whole(rest) {
			s.event(rest)
		}
	}
	if abandoned != semconv.GenAIStreamTerminalClientCancelled {
		s.Sent() // what waits leaves with the end
	}
	c := &s.chat
	c.report(s.call)
	terminal := c.terminal(clean)
	incomplete := terminal == semconv.GenAIStreamTerminalTruncated || terminal == semconv.GenAIStreamTerminalEOF
	if abandoned != "" && incomplete {
		terminal = abandoned
	}
	s.call.SetTerminal(terminal)
	if s.sse.dropped > 0 {
		s.call.Fault(semconv.GenAIFaultParse, errTooLong)
	}
}

var errTooLong = errors.New("stream: event longer than 1 MiB not read")

// report hands over what does not depend on how the stream ended.
func (c *chat) report(call *genaitrace.Call) {
	call.SetResponse(c.id, c.model)
	if c.usage.CachedTokens == nil {
		c.usage.CachedTokens = c.cacheRead
	}
	call.SetUsage(c.usage)
	if reasons := c.reasons(); len(reasons) > 0 {
		call.SetFinish(reasons...)
	}
	if c.failed {
		call.SetErrorType(c.errType)
	}
}

// ReadBody reports what a whole JSON answer tells: response, usage, finish
// reasons, the type of an error. status is the HTTP status.
func ReadBody(call *genaitrace.Call, body []byte, status int) {
	var c chat
	c.body(body)
	c.report(call)
	switch {
	case status >= 400:
		call.SetTerminal(semconv.GenAIStreamTerminalHTTPError)
	case c.failed:
		call.SetTerminal(semconv.GenAIStreamTerminalError)
	}
}
