package propagation

import (
	"encoding/json"
	"unicode/utf16"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

const (
	promptTraceKey = "x-prompt-trace"

	// maxChainLen bounds what is decoded, in bytes, and what is written.
	maxChainLen = 8192
)

// wireChain is the JSON of X-Prompt-Trace. The names and the causes of the last
// hop are what every reader knows; "hops" has the rest, in the same order, where
// there is any.
type wireChain struct {
	TraceID     string    `json:"trace_id"`
	SpanID      string    `json:"span_id"`
	PromptChain []string  `json:"prompt_chain"`
	ContextHash string    `json:"context_hash"`
	CausalDeps  []string  `json:"causal_deps"`
	Hops        []wireHop `json:"hops"`
}

type wireHop struct {
	SpanID     string   `json:"span_id"`
	CausalDeps []string `json:"causal_deps"`
}

// readChain returns the chain of carrier, and whether there is a valid one. It is
// of any trace.
func readChain(carrier propagation.TextMapCarrier) (c PromptChain, ok bool) {
	value := single(carrier, promptTraceKey)
	var w wireChain
	if value == "" || len(value) > maxChainLen || json.Unmarshal([]byte(value), &w) != nil ||
		len(w.TraceID) != 32 || !parseID(c.TraceID[:], w.TraceID) || len(w.PromptChain) == 0 {
		return PromptChain{}, false
	}
	c.ContextHash = w.ContextHash
	c.Hops = make([]Hop, len(w.PromptChain))
	for i, name := range w.PromptChain {
		c.Hops[i] = wireHop{}.hop(name)
		if len(w.Hops) == len(w.PromptChain) {
			c.Hops[i] = w.Hops[i].hop(name)
		}
	}
	last := len(c.Hops) - 1
	c.Hops[last] = wireHop{w.SpanID, w.CausalDeps}.hop(c.Hops[last].Name)
	return c.valid(), true
}

// hop returns w under a name. IDs that are none are left out.
func (w wireHop) hop(name string) Hop {
	h := Hop{Name: name}
	if len(w.SpanID) == 16 {
		parseID(h.SpanID[:], w.SpanID)
	}
	for _, digits := range w.CausalDeps[:min(len(w.CausalDeps), maxCauses)] {
		var id trace.SpanID
		if len(digits) == 16 && parseID(id[:], digits) {
			h.Causes = append(h.Causes, id)
		}
	}
	return h
}

// formatChain returns c as JSON of ASCII characters, which every transport takes.
func formatChain(c *PromptChain) string {
	last := c.Hops[len(c.Hops)-1]
	buf := make([]byte, 0, 512)
	buf = append(buf, `{"trace_id":"`...)
	buf = appendHex(buf, c.TraceID[:]...)
	buf = append(buf, `",`...)
	buf = last.appendIDs(buf)
	buf = append(buf, `,"prompt_chain":[`...)
	detailed := false
	for i, hop := range c.Hops {
		if i > 0 {
			buf = append(buf, ',')
		}
		buf = appendASCII(buf, hop.Name)
		detailed = detailed || i < len(c.Hops)-1 && (hop.SpanID.IsValid() || len(hop.Causes) > 0)
	}
	buf = append(buf, ']')
	if c.ContextHash != "" {
		buf = append(buf, `,"context_hash":`...)
		buf = appendASCII(buf, c.ContextHash)
	}
	if detailed {
		buf = append(buf, `,"hops":[`...)
		for i, hop := range c.Hops {
			if i > 0 {
				buf = append(buf, ',')
			}
			buf = append(buf, '{')
			buf = hop.appendIDs(buf)
			buf = append(buf, '}')
		}
		buf = append(buf, ']')
	}
	return string(append(buf, '}'))
}

// appendIDs appends the span and the causes of a hop as members of an object.
func (h Hop) appendIDs(buf []byte) []byte {
	buf = append(buf, `"span_id":"`...)
	if h.SpanID.IsValid() {
		buf = appendHex(buf, h.SpanID[:]...)
	}
	buf = append(buf, `","causal_deps":[`...)
	for i, id := range h.Causes {
		if i > 0 {
			buf = append(buf, ',')
		}
		buf = append(buf, '"')
		buf = appendHex(buf, id[:]...)
		buf = append(buf, '"')
	}
	return append(buf, ']')
}

// appendASCII appends s, which is valid UTF-8, as a JSON string with everything
// escaped that is not printable ASCII.
func appendASCII(buf []byte, s string) []byte {
	buf = append(buf, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			buf = append(buf, '\\', byte(r))
		case ' ' <= r && r <= '~':
			buf = append(buf, byte(r))
		case r < 0x10000:
			buf = appendEscape(buf, r)
		default:
			high, low := utf16.EncodeRune(r)
			buf = appendEscape(appendEscape(buf, high), low)
		}
	}
	return append(buf, '"')
}

func appendEscape(buf []byte, r rune) []byte {
	return appendHex(append(buf, '\\', 'u'), byte(r>>8), byte(r))
}
