package wire

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/semconv"
)

// MaxEvent bounds one event of a stream, in bytes. A longer one is dropped for
// telemetry, and counted; the caller's bytes are not touched.
const MaxEvent = 1 << 20

// A Stream observes the body of one answer for a call: a stream of events, or a
// whole JSON document. Push and End are for one goroutine.
type Stream struct {
	call    *genaitrace.Call
	framer  framer // nil until the first byte tells which
	answer  Answer
	status  int
	event   func(Event)
	ended   bool
	cut     bool // it ended amid an event
	held    bool // chunks wait for Sent
	waiting waiting

	follower *Follower // nil where nobody follows
	decoding *decoding // nil where the body has no content encoding
	lost     bool      // what follows in the body could not be decoded
}

// A framer splits a stream into events. What it hands on is valid only during the
// call of dispatch.
type framer interface {
	// only returns name and data of the event that p is, if p may be exactly one:
	// a cheap look that may take several for one.
	only(p []byte) (name, data []byte, ok bool)
	// push parses what follows in the stream.
	push(p []byte, dispatch func(Event))
	// finish returns an event that the end of the stream left incomplete.
	finish(dispatch func(Event)) (Event, bool)
	// unread is how many events were dropped.
	unread() int
}

// NewStream returns an observer that reports to call. The events of an answer
// that failed (x.Status) tell what failed, and are no chunks of the answer, which
// another attempt may bring. It keeps no reference to the headers of x.
func NewStream(call *genaitrace.Call, x Exchange) *Stream {
	return newStream(call, x, newFramer(x.framing()))
}

func newStream(call *genaitrace.Call, x Exchange, f framer) *Stream {
	s := &Stream{call: call, status: x.Status, framer: f}
	if s.answer.dialect, s.answer.sure = x.likely(); x.Dialect != nil {
		s.answer.dialect, s.answer.sure = x.Dialect, true
		s.answer.foreign = !slices.Contains(dialects, x.Dialect)
	}
	if _, whole := f.(*document); whole && s.answer.dialect == nil {
		s.answer.dialect = OpenAI // unless it looks like another
	}
	s.answer.readHeaders(x.Response, x.Status)
	if d, _ := x.decoder(); d != nil {
		s.decoding = newDecoding(d, s.push)
	}
	s.event = func(e Event) {
		if kind, ok := s.answer.read(e); ok {
			s.stamp(kind)
		}
	}
	return s
}

// NewHeldStream returns an observer for the side that writes a stream through a
// buffer: what is pushed has not left yet, so its chunks are stamped when
// [Stream.Sent] says that it has.
func NewHeldStream(call *genaitrace.Call, x Exchange) *Stream {
	s := NewStream(call, x)
	s.held = true
	return s
}

func newFramer(f framing) framer {
	switch f {
	case serverSent:
		return &sse{}
	case jsonLines:
		return &ndjson{}
	case jsonValues:
		return &values{}
	case awsMessages:
		return &eventStream{}
	case unknown:
		return nil
	}
	return &document{}
}

func (s *Stream) stamp(kind genaitrace.ChunkKind) {
	if s.status >= http.StatusBadRequest {
		return
	}
	if s.follower != nil {
		s.follower.chunk(kind)
	}
	if !s.held {
		s.call.Chunk(kind)
		return
	}
	s.waiting[kind]++
}

// Sent stamps the chunks that were pushed since the last Sent.
func (s *Stream) Sent() { s.waiting.stamp(s.call) }

// waiting counts the chunks of each kind that have not left yet. However many they are,
// they leave at the same time, so that their order tells nothing.
type waiting [genaitrace.Visible + 1]int

// stamp stamps them, what is no output first, as it precedes output.
func (w *waiting) stamp(call *genaitrace.Call) {
	for kind := range w {
		for ; w[kind] > 0; w[kind]-- {
			call.Chunk(genaitrace.ChunkKind(kind))
		}
	}
}

// take takes over those of other.
func (w *waiting) take(other *waiting) {
	for kind := range w {
		w[kind] += other[kind]
	}
	*other = waiting{}
}

// Push takes the bytes that follow in the stream, split anywhere. It keeps no
// reference to p.
func (s *Stream) Push(p []byte) {
	switch {
	case s.ended:
	case s.decoding != nil:
		s.decoding.push(p)
	default:
		s.push(p)
	}
}

// push takes what follows in the stream, decoded.
func (s *Stream) push(p []byte) {
	if s.framer == nil {
		if p = s.sniff(p); s.framer == nil {
			return
		}
	}
	// Nearly every read of a stream holds one whole event, of the shape of the one
	// before.
	if name, data, ok := s.framer.only(p); ok && !s.answer.done {
		if kinds, ok := s.answer.shape.fits(name, data); ok {
			s.stamp(kinds.chunk())
			return
		}
	}
	s.framer.push(p, s.event)
}

// sniff chooses the framing by the first byte that is no line end.
func (s *Stream) sniff(p []byte) []byte {
	for len(p) > 0 && (p[0] == '\r' || p[0] == '\n') {
		p = p[1:]
	}
	if len(p) == 0 {
		return nil
	}
	switch p[0] {
	case '{':
		s.framer = &ndjson{}
	case '[':
		s.framer = &values{}
	case 0:
		s.framer = &eventStream{}
		if s.answer.dialect == nil {
			s.answer.dialect, s.answer.sure = Bedrock, true
		}
	default:
		s.framer = &sse{}
	}
	return p
}

// Done reports whether the stream said that it is complete: its end mark came.
func (s *Stream) Done() bool { return s.answer.done }

// Failed reports whether the stream said that the call failed.
func (s *Stream) Failed() bool { return s.answer.failed }

// EngineTimes returns what the engine told of its own durations so far.
func (s *Stream) EngineTimes() EngineTimes { return s.answer.times }

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
	if s.decoding != nil {
		if err := s.decoding.finish(); err != nil {
			s.lost = true
			kind := semconv.GenAIFaultParse
			if errors.Is(err, errDecoder) {
				kind = semconv.GenAIFaultPanic
			}
			s.call.Fault(kind, fmt.Errorf("answer: content encoding: %w: rest of it not read", err))
		}
	}
	var terminal semconv.GenAIStreamTerminalAttr
	if d, ok := s.framer.(*document); ok {
		terminal = s.endDocument(d, clean, abandoned)
	} else {
		terminal = s.endEvents(clean, abandoned)
	}
	if !s.held { // a gateway's span leaves the engine's times to that of its call
		s.answer.times.record(s.call)
	}
	s.tell(s.call, terminal)
	if s.follower != nil {
		s.follower.conclude(s, clean)
	}
	if s.framer != nil && s.framer.unread() > 0 {
		s.call.Fault(semconv.GenAIFaultParse, errUnread)
	}
	if s.answer.panics > 0 {
		s.call.Fault(semconv.GenAIFaultPanic, errDialect)
	}
}

// tell reports what the stream told, and how it ended.
func (s *Stream) tell(call *genaitrace.Call, terminal semconv.GenAIStreamTerminalAttr) {
	a := &s.answer
	a.report(call)
	if a.failed && (a.errType != "" || s.status < http.StatusBadRequest) { // else the status is the better word
		call.SetErrorType(firstOf(a.errType, errTypeStream))
	}
	call.SetTerminal(terminal)
}

// endEvents says how a stream of events ended.
func (s *Stream) endEvents(clean bool, abandoned semconv.GenAIStreamTerminalAttr) semconv.GenAIStreamTerminalAttr {
	s.cut = s.framer != nil && s.flush(abandoned == "")
	if abandoned != semconv.GenAIStreamTerminalClientCancelled {
		s.Sent() // what waits leaves with the end
	}
	if s.status >= http.StatusBadRequest {
		return semconv.GenAIStreamTerminalHTTPError
	}
	return s.ending(clean, abandoned)
}

// ending says how a stream that has ended did so for one who may have left before.
func (s *Stream) ending(clean bool, abandoned semconv.GenAIStreamTerminalAttr) semconv.GenAIStreamTerminalAttr {
	terminal := s.answer.terminal(clean && (!s.cut || abandoned != ""))
	switch {
	case terminal != semconv.GenAIStreamTerminalTruncated && terminal != semconv.GenAIStreamTerminalEOF:
		return terminal
	case abandoned != "":
		return abandoned
	case s.lost && clean:
		return "" // its end may be in what was not read
	}
	return terminal
}

// endDocument reads a whole answer and says how it ended: nothing, if it ended
// well, since genai.stream.terminal is about streams. Closing one that was read in
// full without waiting for its io.EOF is how JSON decoders behave, not an
// abandonment.
func (s *Stream) endDocument(d *document, clean bool, abandoned semconv.GenAIStreamTerminalAttr) semconv.GenAIStreamTerminalAttr {
	if !d.tooLong && !s.lost {
		s.answer.readDocument(d.kept)
	}
	switch {
	case s.status >= http.StatusBadRequest:
		return semconv.GenAIStreamTerminalHTTPError
	case s.answer.failed:
		return semconv.GenAIStreamTerminalError
	case d.complete(), s.lost && clean:
		return ""
	case abandoned == "" && (!clean || d.cut()):
		return semconv.GenAIStreamTerminalTruncated
	}
	return abandoned
}

// flush reads an event that lacks its end, if it is whole and the stream ended by
// itself, and reports whether it is not.
func (s *Stream) flush(ended bool) (cut bool) {
	rest, ok := s.framer.finish(s.event)
	if !ok {
		return false
	}
	if !ended || !whole(rest) {
		return true
	}
	s.event(rest)
	return false
}

var errUnread = errors.New("answer: event or document longer than 1 MiB, or message with a false checksum: not read")

var errDialect = errors.New("answer: Dialect panicked: event not read")

// ReadBody reports what a whole JSON answer tells: response, usage, finish
// reasons, the type of an error. It returns what the engine told of its own
// durations.
func ReadBody(call *genaitrace.Call, x Exchange, body []byte) EngineTimes {
	s := newStream(call, x, &document{})
	s.Push(body)
	s.End(nil)
	return s.EngineTimes()
}
