package content

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// The length of the longest value, in bytes of JSON: where nobody says, and what can
// be said.
const (
	DefaultLimit = 8192
	MinLimit     = 256
	MaxLimit     = 1 << 20
)

var (
	errNoJSON  = errors.New("there is no JSON for it: the content is dropped")
	errTooLong = errors.New("content cannot be made short enough: it is dropped")
)

// A Sanitizer makes content fit for telemetry. The zero value redacts by the
// built-in redactors and knows no hashes. It is safe for concurrent use; do not
// change it once it is used.
type Sanitizer struct {
	// Hasher makes the hashes of [Hash]; without one, Hash gives nothing.
	Hasher *Hasher
	// Redactors come before the built-in ones.
	Redactors []Redactor
	// Limit is the length of the longest value in bytes of JSON, from [MinLimit] to
	// [MaxLimit]; 0 is [DefaultLimit], and what lies outside is brought inside.
	Limit int
}

func (s *Sanitizer) limit() int {
	if s.Limit == 0 {
		return DefaultLimit
	}
	return min(max(s.Limit, MinLimit), MaxLimit)
}

// Messages makes messages fit. Where they are too many the newest stay.
func (s *Sanitizer) Messages(level Level, messages []genaiconv.Message) (Value, error) {
	return s.make(level, func(b *builder) (node, error) { return b.messages(messages) })
}

// Instructions makes system instructions fit.
func (s *Sanitizer) Instructions(level Level, parts genaiconv.Parts) (Value, error) {
	return s.make(level, func(b *builder) (node, error) { return b.parts(parts) })
}

// Tools makes definitions of tools fit.
func (s *Sanitizer) Tools(level Level, tools []genaiconv.ToolDefinition) (Value, error) {
	return s.make(level, func(b *builder) (node, error) { return b.definitions(tools) })
}

// Any makes a value fit that encoding/json can write, such as the arguments or the
// result of a tool. A string that holds a JSON object or list counts as that.
func (s *Sanitizer) Any(level Level, v any) (Value, error) {
	return s.make(level, func(b *builder) (node, error) {
		n, err := b.any(v, 0)
		n.opaque = true
		return n, err
	})
}

// Text makes a text fit; it is empty where the level gives nothing.
func (s *Sanitizer) Text(level Level, text string) (string, error) {
	v, err := s.make(level, func(b *builder) (node, error) { return b.text(text), nil })
	return v.root.text, err
}

// maxHashedInAll is how much text of one value is hashed, and a text more.
const maxHashedInAll = 8 << 20

func (s *Sanitizer) make(level Level, build func(*builder) (node, error)) (v Value, err error) {
	if level == Off || !level.Valid() || level == Hash && s.Hasher == nil {
		return Value{}, nil
	}
	defer func() {
		if recover() != nil {
			v, err = Value{}, fmt.Errorf("content: %w", errPanicked)
		}
	}()
	limit := s.limit()
	b := &builder{left: 2 * limit, window: limit + margin}
	if level == Hash {
		b.whole, b.left = true, maxHashedInAll
	}
	root, err := build(b)
	if err != nil {
		return Value{}, err
	}
	v = Value{root: root, present: true, Truncated: b.cut}
	if err := s.apply(level, &v.root); err != nil {
		return Value{}, err
	}
	if err := s.fit(level, &v, limit); err != nil {
		return Value{}, err
	}
	return v, nil
}

// apply does to each text what the level says.
func (s *Sanitizer) apply(level Level, n *node) error {
	switch {
	case level == Full || n.fixed:
		return nil
	case level == Hash && n.identifier:
		clean, err := s.redact(n.text, maxIdentifier)
		n.text, n.fixed = clean, true
		return err
	case level == Hash && (n.opaque || n.kind == textNode):
		text := n.text
		if n.kind != textNode {
			text = string(n.appendJSON(nil))
		}
		*n = node{kind: textNode, text: hashMark + s.Hasher.Text(text), fixed: true}
		return nil
	}
	if level == Redacted {
		if err := s.redactNode(n); err != nil {
			return err
		}
	}
	for i := range n.items {
		if err := s.apply(level, &n.items[i]); err != nil {
			return err
		}
	}
	return nil
}

// hashMark stands before a hash, so that nobody takes it for the text.
const hashMark = "hmac-sha256:"

// redactNode redacts the text of a node, its number, and the names of its items.
func (s *Sanitizer) redactNode(n *node) error {
	switch {
	case n.binary:
		n.text = marker("bytes")
	case n.kind == textNode, n.kind == wordNode:
		clean, err := s.redact(n.text, 0)
		if err == nil && n.windowed {
			// A secret that goes on beyond the window may not have been known as one.
			clean, err = s.redact(clean, max(len(clean)-margin/2, minText))
		}
		if err != nil {
			return err
		}
		if clean != n.text {
			n.kind, n.text = textNode, clean
		}
	case n.kind == objectNode:
		used := make(map[string]bool, len(n.names))
		for i, name := range n.names {
			clean, err := s.redact(name, 0)
			if err != nil {
				return err
			}
			if used[clean] { // two secrets have one marker
				clean += "#" + strconv.Itoa(i)
			}
			n.names[i], used[clean] = clean, true
		}
	}
	return nil
}

// minText is what a text keeps at least when a value is cut.
const minText = 16

// fit makes a value as short as the limit says: it cuts the longest texts, and
// where that is not enough leaves items out, of messages the oldest.
func (s *Sanitizer) fit(level Level, v *Value, limit int) error {
	if v.root.size(limit) <= limit {
		return nil
	}
	v.Truncated = true
	for v.root.size(minText) > limit {
		if !v.root.shed() {
			return fmt.Errorf("content: %w", errTooLong)
		}
	}
	low, high := minText, limit
	for low+8 < high {
		if middle := (low + high) / 2; v.root.size(middle) <= limit {
			low = middle
		} else {
			high = middle
		}
	}
	for ; low > 0; low /= 2 {
		if err := s.cutTexts(level, &v.root, low); err != nil {
			return err
		}
		if v.root.size(limit) <= limit {
			return nil
		}
	}
	return fmt.Errorf("content: %w", errTooLong)
}

// cutTexts cuts each text to so many bytes. What is redacted is searched again.
func (s *Sanitizer) cutTexts(level Level, n *node, most int) (err error) {
	if n.kind == textNode && !n.fixed && len(n.text) > most {
		if level == Redacted {
			n.text, err = s.redact(n.text, most)
			return err
		}
		n.text = cut(n.text, most)
	}
	for i := range n.items {
		if err := s.cutTexts(level, &n.items[i], most); err != nil {
			return err
		}
	}
	return nil
}
