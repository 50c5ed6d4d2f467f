package content

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
	"strconv"
	"sync"

	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

const (
	// MinKey is the length of the shortest key, in bytes.
	MinKey = 16
	// maxHashed is how much of one text is hashed.
	maxHashed = 1 << 20
	hashLen   = 8 // bytes that are written, as hex
)

// A Hasher makes keyed hashes. The methods of a nil Hasher return "". It is safe
// for concurrent use.
type Hasher struct {
	key  []byte
	pool sync.Pool // of hash.Hash
}

var errKey = errors.New("key is too short")

// NewHasher returns a Hasher. The key is at least [MinKey] bytes from a source of
// randomness: where it can be guessed, so can what is hashed. Services with the
// same key write the same hashes.
func NewHasher(key []byte) (*Hasher, error) {
	if len(key) < MinKey {
		return nil, fmt.Errorf("content: %w: %d bytes, want at least %d random ones", errKey, len(key), MinKey)
	}
	key = slices.Clone(key)
	h := &Hasher{key: key}
	h.pool.New = func() any { return hmac.New(sha256.New, key) }
	return h, nil
}

// Text returns the hash of a text: the first 16 hex digits of HMAC-SHA-256 over its
// bytes. Of a text over 1 MiB these are its length in decimal digits, a colon, and
// its first MiB.
func (h *Hasher) Text(text string) string {
	if h == nil {
		return ""
	}
	return h.sum(func(w io.Writer) {
		if len(text) > maxHashed {
			_, _ = io.WriteString(w, strconv.Itoa(len(text))+":")
			text = text[:maxHashed]
		}
		_, _ = io.WriteString(w, text)
	})
}

// Messages returns the hash of a prompt, as genai.prompt.hash has it. It covers, of
// each message in order, its role, the number of its parts, and of each part two
// fields: the word text and the text, reasoning and the text, blob and the bytes, or
// for any other part json and what encoding/json makes of it. Every field goes in as
// its length in decimal digits, a colon, and its bytes, of which the first MiB
// counts. The hash is empty where a part has no JSON.
func (h *Hasher) Messages(messages []genaiconv.Message) string {
	if h == nil {
		return ""
	}
	sane := true
	sum := h.sum(func(w io.Writer) {
		for i := range messages {
			m := &messages[i]
			field(w, string(m.Role))
			field(w, strconv.Itoa(len(m.Parts)))
			for _, p := range m.Parts {
				kind, payload, ok := payloadOf(p)
				sane = sane && ok
				field(w, kind)
				field(w, payload)
			}
		}
	})
	if !sane {
		return ""
	}
	return sum
}

func payloadOf(part genaiconv.Part) (kind, payload string, ok bool) {
	defer func() {
		if recover() != nil {
			ok = false // a value of the user's panics when it is marshalled
		}
	}()
	switch p := part.(type) {
	case genaiconv.TextPart:
		return "text", p.Content, true
	case genaiconv.ReasoningPart:
		return "reasoning", p.Content, true
	case genaiconv.BlobPart:
		return "blob", string(p.Content), true
	}
	text, err := json.Marshal(part)
	return "json", string(text), err == nil
}

func field(w io.Writer, text string) {
	_, _ = io.WriteString(w, strconv.Itoa(len(text))+":")
	_, _ = io.WriteString(w, text[:min(len(text), maxHashed)])
}

func (h *Hasher) sum(write func(io.Writer)) string {
	mac, _ := h.pool.Get().(hash.Hash)
	defer h.pool.Put(mac)
	mac.Reset()
	write(mac)
	var sum [sha256.Size]byte
	return hex.EncodeToString(mac.Sum(sum[:0])[:hashLen])
}
