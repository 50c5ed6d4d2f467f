package content

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/genaitrace/otelgenai/internal/bound"
	"github.com/genaitrace/otelgenai/internal/secret"
)

// A Redactor takes out of a text what must not be written.
type Redactor struct {
	// Name says what it looks for, for those who read of its failure.
	Name string
	// Redact returns the text without that. It gets at most some kilobytes of valid
	// UTF-8 at a time, and may see a text twice. It must be safe for concurrent
	// use, and should be quick: it runs in the caller's goroutine.
	Redact func(text string) (string, error)
}

// Pattern is a Redactor that puts [REDACTED:name] in the place of what matches.
// Patterns of package regexp take linear time, whatever the text.
func Pattern(name string, pattern *regexp.Regexp) Redactor {
	mark := marker(name)
	return Redactor{name, func(text string) (string, error) {
		return pattern.ReplaceAllLiteralString(text, mark), nil
	}}
}

// Redact returns text with [REDACTED:kind] in the place of what the built-in
// redactors find, and as valid UTF-8. To redact what is redacted changes nothing.
func Redact(text string) string {
	return redactBuiltin(bound.String(text, 3*len(text)), 0)
}

func marker(name string) string { return "[REDACTED:" + name + "]" }

// everything stands in for a text that cannot be made safe in a few steps.
const everything = "[REDACTED]"

// maxRedactions is how often a text is searched: what is put in the place of a
// secret, and the cut, can make another one of what stands around it.
const maxRedactions = 4

// redactBuiltin returns s, at most limit bytes long unless that is 0, with nothing
// in it that the built-in redactors find.
func redactBuiltin(s string, limit int) string {
	for range maxRedactions {
		plain, found := findAll(s)
		if len(found) > 0 {
			s = replace(plain, found)
		}
		short := cut(s, limit)
		if len(found) == 0 && len(short) == len(s) {
			return s
		}
		s = short
	}
	if _, found := findAll(s); len(found) == 0 {
		return s
	}
	return cut(everything, limit)
}

// findAll returns the secrets of s, or where escapes hide some, s without those.
func findAll(s string) (string, []span) {
	if plain := unescape(s); len(plain) != len(s) {
		if found := spansOf(plain); len(found) > 0 {
			return plain, found
		}
	}
	return s, spansOf(s)
}

// unescape undoes what JSON within a text and the addresses of the Web make of printable
// ASCII: a \u0040 or a %40 in the place of an @. Quotes stay, so that JSON stays JSON.
func unescape(s string) string {
	if !strings.Contains(s, `\u00`) && !strings.Contains(s, "%40") {
		return s
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if strings.HasPrefix(s[i:], "%40") {
			b = append(b, '@')
			i += len("%40") - 1
			continue
		}
		if strings.HasPrefix(s[i:], `\u00`) && len(s) >= i+6 {
			if c, err := strconv.ParseUint(s[i+4:i+6], 16, 8); err == nil && c > ' ' && c < 0x7f && c != '"' && c != '\\' {
				b = append(b, byte(c))
				i += 5
				continue
			}
		}
		b = append(b, s[i])
	}
	return string(b)
}

// A span is where a secret stands.
type span struct {
	start, end int
	kind       string
}

var kinds = secret.All()

// spansOf are the secrets of s, in order and apart from one another.
func spansOf(s string) []span {
	var found []span
	var name string
	keep := func(start, end int) bool {
		found = append(found, span{start, end, name})
		return true
	}
	for i := range kinds {
		name = kinds[i].Name
		kinds[i].Each(s, keep)
	}
	if len(found) < 2 {
		return found
	}
	slices.SortStableFunc(found, func(a, b span) int { return cmp.Compare(a.start, b.start) })
	merged := found[:1]
	for _, f := range found[1:] {
		if last := &merged[len(merged)-1]; f.start < last.end {
			last.end = max(last.end, f.end)
			continue
		}
		merged = append(merged, f)
	}
	return merged
}

func replace(s string, found []span) string {
	b := make([]byte, 0, len(s))
	end := 0
	for _, f := range found {
		b = append(b, s[end:f.start]...)
		b = append(b, marker(f.kind)...)
		end = f.end
	}
	return string(append(b, s[end:]...))
}

// ellipsis ends a text that was cut.
const ellipsis = "…"

// cut returns s in at most limit bytes, with an ellipsis where it was cut. 0 is no
// limit.
func cut(s string, limit int) string {
	switch {
	case limit == 0 || len(s) <= limit:
		return s
	case limit < len(ellipsis):
		return ""
	}
	return bound.String(s, limit-len(ellipsis)) + ellipsis
}

var (
	errRedactor = errors.New("redactor failed: the content is dropped")
	errPanicked = errors.New("panic while content was read: it is dropped")
)

// redact runs the custom redactors and then the built-in ones. Texts are cut last,
// so that no secret hides in a cut, and searched again.
func (s *Sanitizer) redact(text string, limit int) (string, error) {
	for range 2 {
		for _, r := range s.Redactors {
			if r.Redact == nil {
				continue
			}
			out, err := r.Redact(text)
			if err != nil {
				return "", fmt.Errorf("content: %w: %q", errRedactor, bound.String(r.Name, 64)) // its message may quote the text
			}
			text = bound.String(out, maxGrowth*max(len(text), limit))
		}
		if len(s.Redactors) == 0 || limit == 0 || len(text) <= limit {
			break
		}
		text = cut(text, limit)
	}
	return redactBuiltin(text, limit), nil
}

// maxGrowth bounds how much longer a redactor can make a text.
const maxGrowth = 4
