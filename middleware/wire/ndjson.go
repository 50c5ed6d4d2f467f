package wire

import "bytes"

// ndjson is an incremental parser of JSON documents that stand on a line each.
type ndjson struct {
	line    []byte // start of a line whose end has not come yet, owned
	tooLong bool   // the current line is dropped
	dropped int
}

// only returns the line that p is, if it is one, without looking for line ends
// inside, which no shape has.
func (n *ndjson) only(p []byte) (name, data []byte, ok bool) {
	if len(n.line) > 0 || n.tooLong || len(p) == 0 || p[len(p)-1] != '\n' {
		return nil, nil, false
	}
	return nil, p[:len(p)-1], true
}

func (n *ndjson) push(p []byte, dispatch func(Event)) {
	for len(p) > 0 {
		end := bytes.IndexByte(p, '\n')
		if end < 0 {
			n.keep(p)
			return
		}
		line := p[:end]
		if len(n.line) > 0 || n.tooLong {
			n.keep(line)
			line = n.line
		}
		switch {
		case n.tooLong || len(line) > MaxEvent:
			n.dropped++
		default:
			dispatch(Event{Data: line})
		}
		n.line, n.tooLong = n.line[:0], false
		p = p[end+1:]
	}
}

func (n *ndjson) keep(part []byte) {
	if n.tooLong || len(n.line)+len(part) > MaxEvent {
		n.line, n.tooLong = n.line[:0], true
		return
	}
	n.line = append(n.line, part...)
}

// finish returns the line that the end of the stream left without its line end.
func (n *ndjson) finish(func(Event)) (rest Event, ok bool) {
	if n.tooLong {
		n.dropped++
		return Event{}, false
	}
	return Event{Data: n.line}, len(n.line) > 0
}

func (n *ndjson) unread() int { return n.dropped }
