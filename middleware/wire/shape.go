package wire

import (
	"bytes"

	"github.com/genaitrace/otelgenai/genaitrace"
)

// A shape is the last plain chunk without its output: servers send the same
// JSON for each piece of text, with only the text changed. A chunk that begins
// and ends like it, with no quote in between, is of the same kind, and need not
// be parsed.
type shape struct {
	prefix, suffix []byte
	kind           genaitrace.ChunkKind
}

// maxShape keeps what a shape holds small; ordinary chunks are 200 to 400 bytes.
const maxShape = 4 << 10

// learn takes over the chunk b, whose output stands between the quotes at
// start-1 and end. A chunk of several lines is no ordinary one.
func (s *shape) learn(b []byte, start, end int, kind genaitrace.ChunkKind) {
	if len(b) > maxShape || bytes.IndexByte(b, '\n') >= 0 {
		return
	}
	s.prefix = append(s.prefix[:0], b[:start]...)
	s.suffix = append(s.suffix[:0], b[end:]...)
	s.kind = kind
}

// match reports whether b is such a chunk, and its kind. Then b is one line:
// JSON has no raw control characters in its strings.
func (s *shape) match(b []byte) (genaitrace.ChunkKind, bool) {
	n := len(b) - len(s.suffix)
	if len(s.suffix) == 0 || n <= len(s.prefix) {
		return 0, false
	}
	if !bytes.Equal(b[:len(s.prefix)], s.prefix) || !bytes.Equal(b[n:], s.suffix) {
		return 0, false
	}
	output := b[len(s.prefix):n]
	for _, c := range output {
		if c == '"' || c < ' ' {
			return 0, false
		}
	}
	return s.kind, output[len(output)-1] != '\\'
}
