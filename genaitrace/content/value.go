package content

import (
	"strconv"

	"go.opentelemetry.io/otel/attribute"
)

// A Value is content that telemetry may carry. The zero value is none.
type Value struct {
	root    node
	present bool
	// Truncated says that something was left out for its size.
	Truncated bool
}

// Present reports whether there is a value.
func (v Value) Present() bool { return v.present }

// JSON returns the value as JSON, empty where there is none.
func (v Value) JSON() string {
	if !v.present {
		return ""
	}
	return string(v.root.appendJSON(nil))
}

// Structured returns the value as maps and lists.
func (v Value) Structured() attribute.Value {
	if !v.present {
		return attribute.Value{}
	}
	return v.root.structured()
}

func (n *node) structured() attribute.Value {
	switch n.kind {
	case textNode:
		return attribute.StringValue(n.text)
	case wordNode:
		return wordValue(n.text)
	case listNode:
		values := make([]attribute.Value, len(n.items))
		for i := range n.items {
			values[i] = n.items[i].structured()
		}
		return attribute.SliceValue(values...)
	case objectNode:
		fields := make([]attribute.KeyValue, len(n.items))
		for i := range n.items {
			fields[i] = attribute.KeyValue{Key: attribute.Key(n.names[i]), Value: n.items[i].structured()}
		}
		return attribute.MapValue(fields...)
	}
	return attribute.Value{}
}

func wordValue(s string) attribute.Value {
	if s == "true" || s == "false" {
		return attribute.BoolValue(s == "true")
	}
	if i, err := strconv.ParseInt(s, 10, 64); err == nil {
		return attribute.Int64Value(i)
	}
	if f, err := strconv.ParseFloat(s, 64); err == nil {
		return attribute.Float64Value(f)
	}
	return attribute.StringValue(s) // beyond the range of numbers
}

func (n *node) appendJSON(b []byte) []byte {
	switch n.kind {
	case textNode:
		return appendText(b, n.text)
	case wordNode:
		return append(b, n.text...)
	case listNode, objectNode:
		open, shut := byte('['), byte(']')
		if n.kind == objectNode {
			open, shut = '{', '}'
		}
		b = append(b, open)
		for i := range n.items {
			if i > 0 {
				b = append(b, ',')
			}
			if n.kind == objectNode {
				b = append(appendText(b, n.names[i]), ':')
			}
			b = n.items[i].appendJSON(b)
		}
		return append(b, shut)
	}
	return append(b, "null"...)
}

// appendText appends s, which is valid UTF-8, as a JSON string, without the escapes
// that only HTML needs.
func appendText(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	start := 0
	for i := range len(s) {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		b = append(b, s[start:i]...)
		start = i + 1
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		case '\t':
			b = append(b, '\\', 't')
		case '\r':
			b = append(b, '\\', 'r')
		default:
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	return append(append(b, s[start:]...), '"')
}

// size is how long the JSON would be with every text cut to so many bytes.
func (n *node) size(most int) int {
	switch n.kind {
	case textNode:
		if n.fixed {
			return textSize(n.text)
		}
		if len(n.text) > most {
			return textSize(n.text[:most]) + len(ellipsis)
		}
		return textSize(n.text)
	case wordNode:
		return len(n.text)
	case listNode, objectNode:
		total := 2 + max(len(n.items)-1, 0)
		for i := range n.items {
			total += n.items[i].size(most)
			if n.kind == objectNode {
				total += textSize(n.names[i]) + 1
			}
		}
		return total
	}
	return len("null")
}

func textSize(s string) int {
	total := 2 + len(s)
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"', c == '\\', c == '\n', c == '\t', c == '\r':
			total++
		case c < ' ':
			total += 5
		}
	}
	return total
}

// shed leaves out a quarter of a list of several items, else one item of whatever is
// longest inside. It reports whether there was one.
func (n *node) shed() bool {
	if n.kind == listNode && len(n.items) > 1 {
		quarter := (len(n.items) + 3) / 4
		if n.newest {
			n.items = n.items[quarter:]
		} else {
			n.items = n.items[:len(n.items)-quarter]
		}
		return true
	}
	longest, size := -1, 0
	for i := range n.items {
		if s := n.items[i].size(minText); s > size {
			longest, size = i, s
		}
	}
	if longest >= 0 && n.items[longest].shed() {
		return true
	}
	if len(n.items) == 0 {
		return false
	}
	n.items = n.items[:len(n.items)-1]
	if n.kind == objectNode {
		n.names = n.names[:len(n.items)]
	}
	return true
}
