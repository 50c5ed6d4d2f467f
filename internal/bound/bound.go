// Package bound keeps what strangers choose small: the length of attribute
// values and the number of distinct ones.
//
//	name := bound.String(header, 256)
//
// It never fails and never logs: what is too much is cut or replaced.
package bound

import (
	"strings"
	"sync"
	"unicode/utf8"
)

// String returns s as valid UTF-8 of at most limit bytes, cut between runes. One
// invalid string in a batch makes OTLP drop all of it.
func String(s string, limit int) string {
	if len(s) > limit {
		end := limit
		for end > 0 && !utf8.RuneStart(s[end]) {
			end--
		}
		s = s[:end]
	}
	if utf8.ValidString(s) {
		return s
	}
	clean := strings.ToValidUTF8(s, "\uFFFD")
	if len(clean) > limit { // a replacement is longer than a broken byte
		return String(clean, limit)
	}
	return clean
}

// Other stands for every value that a [Set] did not admit. It is the
// conventions' word.
const Other = "_OTHER"

// A Set admits the first values that it sees, up to a number. The zero value
// admits none. It is safe for concurrent use.
type Set struct {
	// Limit is how many distinct values are admitted.
	Limit int

	seen sync.Map // string → struct{}
	mu   sync.Mutex
	n    int
}

// Admits reports whether value is one of the first, and makes it one while
// there is room.
func (s *Set) Admits(value string) bool {
	if _, ok := s.seen.Load(value); ok {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.seen.Load(value); ok {
		return true
	}
	if s.n >= s.Limit {
		return false
	}
	s.seen.Store(strings.Clone(value), struct{}{})
	s.n++
	return true
}

// Has reports whether value is one of the first, and does not make it one.
func (s *Set) Has(value string) bool {
	_, ok := s.seen.Load(value)
	return ok
}

// Value is value itself where it is admitted or empty, else [Other].
func (s *Set) Value(value string) string {
	if value == "" || s.Admits(value) {
		return value
	}
	return Other
}
