package otlp

import (
	"fmt"
	"slices"
	"strings"
)

// maxKeys is how many keys of a document are looked at; an export has one to three.
const maxKeys = 16

// jsonScan finds the end of a JSON document, which comes in pieces, and the keys at
// its top. It counts brackets and looks at no grammar: pdata does that. What pdata
// would let pass or recurse into without a bound, it refuses.
type jsonScan struct {
	size    int // of what was seen of the document
	depth   int
	inText  bool
	escaped bool
	last    region // the last text
	keys    []region
}

// region is a part of the document, without quotes.
type region struct{ from, to int }

// feed looks at more bytes. It returns how many belong to the document, and whether
// that ends there.
func (s *jsonScan) feed(data []byte) (n int, done bool, d *damage) {
	for i := 0; i < len(data); i++ {
		if s.inText {
			i = s.text(data, i)
			if i < len(data) && data[i] < ' ' {
				return i, false, &damage{offset: s.size + i, text: fmt.Sprintf("a text is not closed: it holds the character %q", data[i])}
			}
			continue
		}
		switch data[i] {
		case '"':
			s.inText = true
			s.last.from = s.size + i + 1
		case ':':
			if d := s.key(s.size + i); d != nil {
				return i, false, d
			}
		case '{', '[':
			if s.depth++; s.depth > maxDepth {
				return i, false, &damage{offset: s.size + i, text: fmt.Sprintf("more than %d brackets lie in each other", maxDepth)}
			}
		case '}', ']':
			if s.depth--; s.depth == 0 {
				s.size += i + 1
				return i + 1, true, nil
			}
		}
	}
	s.size += len(data)
	return len(data), false, nil
}

// text moves on in a text to its closing quote, to a character that cannot be in one,
// or to the end of data.
func (s *jsonScan) text(data []byte, i int) int {
	if s.escaped {
		s.escaped = false
		i++
	}
	for ; i < len(data); i++ {
		switch c := data[i]; {
		case c == '"':
			s.inText = false
			s.last.to = s.size + i
			return i
		case c == '\\':
			if i++; i == len(data) {
				s.escaped = true
			}
		case c < ' ':
			return i
		}
	}
	return len(data)
}

// key notes the text before a colon. An empty one would make pdata take the object
// for ended.
func (s *jsonScan) key(at int) *damage {
	if s.last.from == s.last.to {
		return &damage{offset: at, text: "a key is empty"}
	}
	if s.depth != 1 {
		return nil
	}
	if len(s.keys) == maxKeys {
		return &damage{offset: at, text: fmt.Sprintf("the document has more than %d keys; %s", maxKeys, expectedKeys)}
	}
	s.keys = append(s.keys, s.last)
	return nil
}

const expectedKeys = "expected resourceSpans, resourceMetrics or resourceLogs"

// signals returns what a whole document carries. A document without keys is an empty
// export.
func (s *jsonScan) signals(doc []byte) ([]signal, *damage) {
	var found []signal
	var others []string
	for _, k := range s.keys {
		key := string(doc[k.from:k.to])
		switch sig, ok := signalNamed(key); {
		case !ok:
			others = append(others, key)
		case !slices.Contains(found, sig): // a key that is there twice is decoded once
			found = append(found, sig)
		}
	}
	if len(found) == 0 && len(others) > 0 {
		return nil, &damage{text: fmt.Sprintf("this is no OTLP: the document has the keys %.100q; %s", strings.Join(others, ", "), expectedKeys)}
	}
	return found, nil
}

func signalNamed(key string) (signal, bool) {
	for s := range signal(signals) {
		if s.envelope().field(1).named(key) {
			return s, true
		}
	}
	return 0, false
}

// named reports whether key is the JSON name of the field; the name of the protobuf
// field, with underscores, is accepted too.
func (f field) named(key string) bool {
	return f.name != "" && (key == f.name || strings.Contains(key, "_") && strings.EqualFold(strings.ReplaceAll(key, "_", ""), f.name))
}
