package wire

import (
	"encoding/binary"
	"hash/crc32"
)

// eventStream is an incremental parser of AWS messages
// (application/vnd.amazon.eventstream): total length, length of the headers and
// their CRC-32 in twelve bytes, headers, payload, CRC-32 of all before.
//
// A message with a false checksum is dropped; where the lengths cannot be trusted
// there is no finding the next message, and the rest of the stream is not read.
type eventStream struct {
	kept    []byte // the message that is not complete yet, owned
	skip    int    // what is still to come of one that is too long
	broken  bool
	dropped int
}

const (
	preludeSize = 12
	// minMessage is the smallest message: prelude and checksum.
	minMessage = preludeSize + 4
)

func (*eventStream) only([]byte) (name, data []byte, ok bool) { return nil, nil, false }

func (s *eventStream) push(p []byte, dispatch func(Event)) {
	for len(p) > 0 && !s.broken {
		if s.skip > 0 {
			n := min(s.skip, len(p))
			s.skip, p = s.skip-n, p[n:]
			continue
		}
		if len(s.kept) == 0 {
			if size := s.size(p); size > 0 && size <= len(p) {
				s.message(p[:size], dispatch)
				p = p[size:]
				continue
			}
			if s.broken || s.skip > 0 {
				continue
			}
		}
		p = s.keep(p)
		if size := s.size(s.kept); size > 0 && size == len(s.kept) {
			s.message(s.kept, dispatch)
			s.kept = s.kept[:0]
		}
	}
}

// size returns the length of the message that b begins, 0 where that is not known
// yet. One that is too long is left to skip.
func (s *eventStream) size(b []byte) int {
	if len(b) < preludeSize {
		return 0
	}
	total, headers := binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:])
	if crc32.ChecksumIEEE(b[:8]) != binary.BigEndian.Uint32(b[8:]) || total < minMessage || headers > total-minMessage {
		s.broken = true
		s.dropped++
		return 0
	}
	if total > MaxEvent {
		s.dropped++
		s.skip, s.kept = int(total)-len(s.kept), s.kept[:0]
		return 0
	}
	return int(total)
}

// keep takes from p what the message still lacks.
func (s *eventStream) keep(p []byte) (rest []byte) {
	want := preludeSize
	if len(s.kept) >= preludeSize {
		want = int(binary.BigEndian.Uint32(s.kept))
	}
	n := min(want-len(s.kept), len(p))
	s.kept = append(s.kept, p[:n]...)
	return p[n:]
}

// message reads a whole message.
func (s *eventStream) message(b []byte, dispatch func(Event)) {
	end := len(b) - 4
	if crc32.ChecksumIEEE(b[:end]) != binary.BigEndian.Uint32(b[end:]) {
		s.dropped++
		return
	}
	payload := preludeSize + int(binary.BigEndian.Uint32(b[4:]))
	e := Event{Data: b[payload:end]}
	headers := b[preludeSize:payload]
	for len(headers) > 0 {
		var name, value []byte
		if name, value, headers = nextHeader(headers); name == nil {
			s.dropped++
			return
		}
		switch string(name) {
		case ":event-type":
			e.Name = value
		case ":exception-type", ":error-code":
			e.Name, e.failed = value, true
		}
	}
	dispatch(e)
}

// headerSizes are the lengths of the values of each type, but for byte arrays (6)
// and strings (7), which tell their own.
var headerSizes = [...]int{0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 6: -1, 7: -1, 8: 8, 9: 16}

// nextHeader reads one header; a nil name says that it is broken. Only strings
// have a value.
func nextHeader(b []byte) (name, value, rest []byte) {
	if n := int(b[0]); n == 0 || len(b) < n+2 {
		return nil, nil, nil
	} else {
		name, b = b[1:1+n], b[1+n:]
	}
	kind := int(b[0])
	if b = b[1:]; kind >= len(headerSizes) {
		return nil, nil, nil
	}
	size := headerSizes[kind]
	if size < 0 {
		if len(b) < 2 {
			return nil, nil, nil
		}
		size, b = int(binary.BigEndian.Uint16(b)), b[2:]
	}
	if size > len(b) {
		return nil, nil, nil
	}
	if kind == 7 {
		value = b[:size]
	}
	return name, value, b[size:]
}

func (s *eventStream) finish(func(Event)) (rest Event, ok bool) {
	return Event{}, len(s.kept) > 0 || s.skip > 0
}

func (s *eventStream) unread() int { return s.dropped }
