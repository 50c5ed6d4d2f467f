package wire

import "bytes"

// MaxEvent bounds one event of a stream, in bytes. A longer one is dropped for
// telemetry, and counted; the caller's bytes are not touched.
const MaxEvent = 1 << 20

// sse is an incremental parser of server-sent events (WHATWG HTML, section
// 9.2.6). It calls dispatch with the data of each event; the slice is valid
// only during the call.
type sse struct {
	line    []byte // start of a line whose end has not come yet
	data    []byte // data of the event so far, owned
	hasData bool
	started bool // past the place of a byte order mark
	skipLF  bool // the last byte was CR
	tooLong bool // the current event is dropped
	dropped int  // events dropped because they were too long
}

var (
	bom       = []byte("\xEF\xBB\xBF")
	dataField = []byte("data")
)

// between reports whether the parser stands between two events.
func (s *sse) between() bool {
	return s.started && !s.skipLF && !s.hasData && !s.tooLong && len(s.line) == 0
}

// push parses what follows in the stream.
func (s *sse) push(p []byte, dispatch func(data []byte)) {
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
				dispatch(pending)
			case s.hasData:
				dispatch(s.data)
			}
			s.data, s.hasData, s.tooLong, inPlace = s.data[:0], false, false, false
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
	if !bytes.HasPrefix(line, dataField) {
		return nil, ignored // comment, event, id, retry or unknown
	}
	value := line[len(dataField):]
	switch {
	case len(value) == 0:
		return nil, data
	case value[0] != ':':
		return nil, ignored
	}
	value = value[1:]
	if len(value) > 0 && value[0] == ' ' {
		value = value[1:]
	}
	return value, data
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

// finish returns the data of an event that the end of the stream left without
// its blank line. The standard drops it; whether it is complete is the
// dialect's to say.
func (s *sse) finish() ([]byte, bool) {
	if len(s.line) > 0 {
		if value, kind := s.field(s.line); kind == data {
			s.append(value)
		}
		s.line = nil
	}
	if s.tooLong {
		s.dropped++
		return nil, false
	}
	return s.data, s.hasData
}
