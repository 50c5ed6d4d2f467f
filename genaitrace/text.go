package genaitrace

import (
	"strings"
	"sync"
	"unicode/utf8"
)

// Longest attribute values, in bytes. Strings that come from the wire are cut
// there and made valid UTF-8: one invalid string makes OTLP drop a whole batch.
const (
	maxName   = 256
	maxReason = 64
	// maxReasons is how many finish reasons (one a choice) a span carries.
	maxReasons = 16
)

// clean returns s as valid UTF-8 of at most limit bytes.
func clean(s string, limit int) string {
	s = cut(s, limit)
	if utf8.ValidString(s) {
		return s
	}
	return cut(strings.ToValidUTF8(s, "\uFFFD"), limit) // a replacement is longer than a byte
}

// cut shortens s to at most limit bytes and splits no rune.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	end := limit
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end]
}

func cleanReasons(reasons []string) []string {
	kept := make([]string, 0, min(len(reasons), maxReasons))
	for _, r := range reasons {
		if len(kept) == maxReasons {
			break
		}
		kept = append(kept, clean(r, maxReason))
	}
	return kept
}

// other replaces a metric dimension's value once the cap is reached.
const other = "_OTHER"

// maxDistinct is how many distinct values a process may use for one metric
// dimension that a caller can choose, such as the model name.
const maxDistinct = 100

// A bounded set admits the first maxDistinct values that it sees.
type bounded struct {
	seen sync.Map // string → struct{}
	mu   sync.Mutex
	n    int
}

func (b *bounded) admits(value string) bool {
	if _, ok := b.seen.Load(value); ok {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.seen.Load(value); ok {
		return true
	}
	if b.n >= maxDistinct {
		return false
	}
	b.seen.Store(strings.Clone(value), struct{}{})
	b.n++
	return true
}

// dimension is the value itself, or _OTHER once too many others came before.
// An unknown value stays unknown.
func (b *bounded) dimension(value string) string {
	if value == "" || b.admits(value) {
		return value
	}
	return other
}

// ms converts nanoseconds to the float64 milliseconds of house keys.
func ms(ns int64) float64 { return float64(ns) / 1e6 }

// seconds converts nanoseconds to the float64 seconds of metrics.
func seconds(ns int64) float64 { return float64(ns) / 1e9 }
