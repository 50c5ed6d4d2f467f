package wire

import "bytes"

// sse is an incremental parser of server-sent events (WHATWG HTML, section
// 9.2.6). Beyond the standard it hands on two things that servers send where
// they fail: the field "error" of llama.cpp, and the JSON without any field that
// Gemini breaks off with.
type sse struct {
	line    []byte // start of a line whose end has not come yet
	data    []byte // data of the event so far, owned
	name    []byte // value of its field "event"
	bare    values // JSON that stands in no field
	hasData bool
	failed  bool // the event came as the field "error"
	started bool // past the place of a byte order mark
	skipLF  bool // the last byte was CR
	tooLong bool // the current event is dropped
	dropped int
}

var (
	bom        = []byte("\xEF\xBB\xBF")
	dataField  = []byte("data")
	eventField = []byte("event")
	errorField = []byte("error")
	lineFeed   = []byte("\n")
)

// How servers write an event.
const (
	eventPrefix = "event: "
	dataPrefix  = "data:"
	eventEnd    = "\n\n"
)

// maxEventName bounds the name of an event, in bytes; a longer one is none.
const maxEventName = 128

// only returns the event that p is, if it is exactly one of the usual form:
// optional name, one line of data, blank line. It does not look for line ends
// inside, which no shape has.
func (s *sse) only(p []byte) (name, data []byte, ok bool) {
	if !s.started || s.skipLF || s.hasData || s.tooLong || len(s.line)+len(s.name) > 0 || s.bare.open() {
		return nil, nil, false
	}
	if len(p) > len(eventPrefix) && string(p[:len(eventPrefix)]) == eventPrefix {
		p = p[len(eventPrefix):]
		end := bytes.IndexByte(p, '\n')
		if end < 0 {
			return nil, nil, false
		}
		name, p = p[:end], p[end+1:]
	}
	end := len(p) - len(eventEnd)
	if end < len(dataPrefix) || string(p[:len(dataPrefix)]) != dataPrefix || string(p[end:]) != eventEnd {
		return nil, nil, false
	}
	return name, withoutSpace(p[len(dataPrefix):end]), true
}

// push parses what follows in the stream.
func (s *sse) push(p []byte, dispatch func(Event)) {
	// pending points into p: the data line of an event whose end may stand in
	// the same p, which is how servers write. It is copied only if not.
	var pending []byte
	inPlace := false
	lf := -1 // where the next LF of p stands, if at all: many CR may come before it
	for len(p) > 0 {
		if s.skipLF {
			s.skipLF = false
			if p[0] == '\n' {
				p, lf = p[1:], -1
				continue
			}
		}
		if lf < 0 {
			if lf = bytes.IndexByte(p, '\n'); lf < 0 {
				lf = len(p)
			}
		}
		end := lf
		if cr := bytes.IndexByte(p[:lf], '\r'); cr >= 0 {
			end, s.skipLF = cr, true
		}
		line := p[:end]
		if end == len(p) {
			s.keep(line)
			break
		}
		p, lf = p[end+1:], lf-end-1
		whole := len(s.line) == 0
		switch {
		case !whole:
			s.keep(line)
			line = s.line
		case len(line) > MaxEvent:
			s.tooLong = true
		}
		value, kind := s.field(line)
		switch kind {
		case blank:
			switch {
			case s.tooLong:
				s.dropped++
			case inPlace:
				dispatch(Event{Name: s.name, Data: pending, failed: s.failed})
			case s.hasData:
				dispatch(Event{Name: s.name, Data: s.data, failed: s.failed})
			}
			s.data, s.name = s.data[:0], s.name[:0]
			s.hasData, s.failed, s.tooLong, inPlace = false, false, false, false
		case data:
			if whole && !s.hasData && !inPlace {
				pending, inPlace = value, true
				break
			}
			if inPlace {
				s.append(pending)
				inPlace = false
			}
			s.append(value)
		case name:
			if s.name = s.name[:0]; len(value) <= maxEventName {
				s.name = append(s.name, value...)
			}
		case bare:
			if !inPlace && !s.hasData {
				s.pushBare(value, dispatch)
			}
		case ignored:
		}
		s.line = s.line[:0]
	}
	if inPlace {
		s.append(pending)
	}
}

type fieldKind uint8

const (
	ignored fieldKind = iota
	blank
	data
	name
	bare
)

// field reads one whole line.
func (s *sse) field(line []byte) ([]byte, fieldKind) {
	if !s.started {
		s.started = true
		line = bytes.TrimPrefix(line, bom)
	}
	if len(line) == 0 {
		return nil, blank
	}
	if value, ok := valueOf(line, dataField); ok {
		s.bare.reset()
		return value, data
	}
	if value, ok := valueOf(line, eventField); ok {
		s.bare.reset()
		return value, name
	}
	if value, ok := valueOf(line, errorField); ok && len(value) > 0 && value[0] == '{' {
		s.failed = true
		return value, data
	}
	if s.bare.open() || startsObject(line) {
		return line, bare
	}
	return nil, ignored // comment, id, retry or unknown
}

// valueOf is the value of the field in line, where it has that name.
func valueOf(line, field []byte) (value []byte, ok bool) {
	if !bytes.HasPrefix(line, field) {
		return nil, false
	}
	value = line[len(field):]
	switch {
	case len(value) == 0:
		return nil, true
	case value[0] != ':':
		return nil, false
	}
	return withoutSpace(value[1:]), true
}

func withoutSpace(value []byte) []byte {
	if len(value) > 0 && value[0] == ' ' {
		return value[1:]
	}
	return value
}

// startsObject reports whether a line begins an object, or an array of some.
func startsObject(line []byte) bool {
	for _, c := range line {
		switch c {
		case '{':
			return true
		case ' ', '\t', '[', ',':
		default:
			return false
		}
	}
	return false
}

// pushBare parses a line that is no field.
func (s *sse) pushBare(line []byte, dispatch func(Event)) {
	bare := func(e Event) {
		e.bare = true
		dispatch(e)
	}
	s.bare.push(line, bare)
	s.bare.push(lineFeed, bare)
}

// keep holds on to the start of a line.
func (s *sse) keep(part []byte) {
	if s.tooLong || len(s.line)+len(part) > MaxEvent {
		s.tooLong = true
		// Any byte keeps the line from looking blank.
		if len(s.line) == 0 && len(part) > 0 {
			s.line = append(s.line, part[0])
		}
		return
	}
	s.line = append(s.line, part...)
}

// append adds a line to the data of the event.
func (s *sse) append(value []byte) {
	if s.tooLong || len(s.data)+len(value) >= MaxEvent {
		s.tooLong = true
		s.data = s.data[:0]
		return
	}
	if s.hasData {
		s.data = append(s.data, '\n')
	}
	s.data = append(s.data, value...)
	s.hasData = true
}

// finish reads what the end of the stream left without its line end, and returns
// the event that it left without its blank line. The standard drops that one;
// whether it is complete is the dialect's to say.
func (s *sse) finish(dispatch func(Event)) (rest Event, ok bool) {
	if len(s.line) > 0 {
		switch value, kind := s.field(s.line); kind {
		case data:
			s.append(value)
		case bare:
			s.pushBare(value, dispatch)
		case ignored, blank, name:
		}
		s.line = nil
	}
	if s.tooLong {
		s.dropped++
		return Event{}, false
	}
	if s.hasData {
		return Event{Name: s.name, Data: s.data, failed: s.failed}, true
	}
	rest, ok = s.bare.finish(dispatch)
	rest.bare = true
	return rest, ok
}

func (s *sse) unread() int { return s.dropped + s.bare.dropped }
