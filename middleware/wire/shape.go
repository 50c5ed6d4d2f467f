package wire

import "slices"

// A shape is the last plain event with holes: servers send the same JSON for
// each piece of text, with little but the text changed. An event that fits the
// shape tells the same and need not be parsed.
//
// What may stand in a hole is one string or one number, so an event that fits has
// the members of the one that was learned, and what is outside the holes is equal
// to it byte for byte. The first thing that makes an event more than a piece of
// output (usage, a finish reason, an error) keeps it from being learned.
type shape struct {
	name  []byte // of the event
	parts []part // a literal and the hole after it
	tail  []byte // the literal after the last hole
	kinds Kind
}

type part struct {
	literal []byte
	hole    holeKind
}

type holeKind uint8

const (
	output   holeKind = iota // a string with something in it
	anyText                  // a string that does not matter
	anyCount                 // a number that does not matter
)

// A hole is where a value of an event differs from one to the next, without its
// quotes.
type hole struct {
	start, end int
	kind       holeKind
}

const (
	// maxShape keeps what a shape holds small; ordinary events are 200 to 400
	// bytes.
	maxShape = 4 << 10
	// maxHoles is more than any dialect has.
	maxHoles = 6
)

// learn takes over an event that has the given holes, in order.
func (s *shape) learn(e Event, holes []hole, kinds Kind) {
	s.parts = s.parts[:0]
	at := 0
	for i, h := range holes {
		s.parts = slices.Grow(s.parts, 1)[:i+1]
		p := &s.parts[i]
		p.literal, p.hole = append(p.literal[:0], e.Data[at:h.start]...), h.kind
		at = h.end
	}
	s.tail = append(s.tail[:0], e.Data[at:]...)
	s.name = append(s.name[:0], e.Name...)
	s.kinds = kinds
}

// fits reports whether an event has the shape, and what it carries. Then its data
// is one line: learned literals have no line ends, and JSON has no raw control
// characters in its strings.
func (s *shape) fits(name, b []byte) (Kind, bool) {
	if len(s.parts) == 0 || string(name) != string(s.name) {
		return 0, false
	}
	for i := range s.parts {
		p := &s.parts[i]
		if len(b) < len(p.literal) || string(b[:len(p.literal)]) != string(p.literal) {
			return 0, false
		}
		b = b[len(p.literal):]
		var n int
		if p.hole == anyCount {
			n = lenNumber(b)
		} else {
			n = lenText(b)
		}
		if n < 0 || n == 0 && p.hole != anyText {
			return 0, false
		}
		b = b[n:]
	}
	return s.kinds, string(b) == string(s.tail)
}

// lenText is the length of a string up to its closing quote, −1 where that is
// not plain to see.
func lenText(b []byte) int {
	for i, c := range b {
		if c == '"' {
			if i > 0 && b[i-1] == '\\' {
				return -1 // escaped, or after an escaped backslash
			}
			return i
		}
		if c < ' ' {
			return -1
		}
	}
	return -1
}

func lenNumber(b []byte) int {
	for i, c := range b {
		if (c < '0' || c > '9') && c != '.' && c != '-' && c != '+' && c != 'e' && c != 'E' {
			return i
		}
	}
	return -1
}
