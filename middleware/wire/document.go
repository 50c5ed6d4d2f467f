package wire

import (
	"bytes"
	"encoding/json"
)

// document keeps an answer that is not streamed until it is whole. Of a long one
// it leaves out what nobody reads: numbers in arrays, such as embeddings, and the
// rest of strings that are too long to be a name.
type document struct {
	kept    []byte
	long    bool // parts are left out
	tooLong bool // even so

	depth    int
	arrays   uint64 // whether each of the innermost containers is an array
	quoted   bool   // inside a string
	escaped  bool   // after a backslash
	length   int    // of the string so far
	dropping bool   // the string is too long
}

// maxWhole is the length up to which a document is kept as it came, in bytes.
const maxWhole = 64 << 10

func (*document) only([]byte) (name, data []byte, ok bool) { return nil, nil, false }

func (d *document) push(p []byte, _ func(Event)) {
	switch {
	case d.tooLong:
	case !d.long && len(d.kept)+len(p) <= maxWhole:
		d.kept = append(d.kept, p...)
	case !d.long:
		whole := d.kept
		d.long, d.kept = true, d.kept[:0] // which is written more slowly than it is read
		d.shorten(whole)
		d.shorten(p)
	default:
		d.shorten(p)
	}
}

// shorten keeps what may be read of p. Separators in arrays go with the numbers;
// the walkers do not need them.
func (d *document) shorten(p []byte) {
	for _, c := range p {
		switch {
		case d.escaped: // it goes where its backslash went
			d.escaped = false
			if d.dropping {
				continue
			}
		case d.quoted:
			d.escaped, d.quoted = c == '\\', c != '"'
			if d.dropping = d.quoted && d.length > maxText; d.dropping {
				continue
			}
		case c == '"':
			d.quoted, d.length = true, 0
		case c == '{' || c == '[':
			d.depth++
			d.arrays <<= 1
			if c == '[' {
				d.arrays |= 1
			}
		case c == '}' || c == ']':
			d.depth--
			d.arrays >>= 1
		case d.arrays&1 == 1 && isNumeric(c):
			continue
		}
		if d.length++; len(d.kept) == MaxEvent {
			d.kept, d.tooLong = nil, true
			return
		}
		d.kept = append(d.kept, c)
	}
}

// isNumeric reports whether c is part of a number or stands between two.
func isNumeric(c byte) bool {
	switch c {
	case ' ', '\t', '\r', '\n', ',', '.', '+', '-', 'e', 'E':
		return true
	}
	return '0' <= c && c <= '9'
}

// complete reports whether all of the document came.
func (d *document) complete() bool {
	if d.long {
		return d.depth == 0 && !d.quoted
	}
	return json.Valid(bytes.TrimPrefix(d.kept, bom))
}

// cut reports whether the end of a container or a string did not come. A document that
// is no JSON for another reason, such as the NaN of some engines, may be whole.
func (d *document) cut() bool {
	if d.tooLong {
		return false
	}
	if !d.long {
		kept := d.kept
		d = &document{}
		d.shorten(kept)
	}
	return d.depth > 0 || d.quoted
}

func (d *document) finish(func(Event)) (rest Event, ok bool) {
	return Event{Data: d.kept}, len(d.kept) > 0
}

func (d *document) unread() int {
	if d.tooLong {
		return 1
	}
	return 0
}
