package wire

import (
	"bytes"
	"encoding/json"
)

// The functions of this file walk through JSON without building anything: what
// they hand out are slices of what they are given. They accept more than JSON in
// places (numbers, literals); what they are used for, finding a few members, does
// not care. Nesting costs no stack.

// members calls visit with each member of the object that b begins with. It stops
// where the text is broken.
func members(b []byte, visit func(key, value []byte)) {
	i := space(b, 0)
	if i >= len(b) || b[i] != '{' {
		return
	}
	i = space(b, i+1)
	for i < len(b) && b[i] == '"' {
		keyEnd := skipString(b, i)
		if keyEnd < 0 {
			return
		}
		key := b[i+1 : keyEnd-1]
		i = space(b, keyEnd)
		if i >= len(b) || b[i] != ':' {
			return
		}
		start := space(b, i+1)
		end := skipValue(b, start)
		if end < 0 {
			return
		}
		visit(key, b[start:end])
		i = space(b, end)
		if i >= len(b) || b[i] != ',' {
			return
		}
		i = space(b, i+1)
	}
}

// elements calls visit with each element of the array that b begins with.
func elements(b []byte, visit func(value []byte)) {
	i := space(b, 0)
	if i >= len(b) || b[i] != '[' {
		return
	}
	i = space(b, i+1)
	for i < len(b) && b[i] != ']' {
		end := skipValue(b, i)
		if end < 0 {
			return
		}
		visit(b[i:end])
		i = space(b, end)
		if i < len(b) && b[i] == ',' {
			i = space(b, i+1)
		}
	}
}

// valueIn returns the value of a member of the object that b begins with, nil
// where there is none.
func valueIn(b []byte, key string) (value []byte) {
	members(b, func(k, v []byte) {
		if string(k) == key {
			value = v
		}
	})
	return value
}

func space(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\n' || b[i] == '\r') {
		i++
	}
	return i
}

// skipString returns the position after the string that starts at b[i], −1 where
// it does not end.
func skipString(b []byte, i int) int {
	for i++; ; i++ {
		q := bytes.IndexByte(b[i:], '"')
		if q < 0 {
			return -1
		}
		i += q
		slashes := 0
		for b[i-1-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return i + 1
		}
	}
}

// skipValue returns the position after the value that starts at b[i], −1 where it
// does not end.
func skipValue(b []byte, i int) int {
	if i >= len(b) {
		return -1
	}
	switch b[i] {
	case '"':
		return skipString(b, i)
	case '{', '[':
		depth := 0
		for i < len(b) {
			switch b[i] {
			case '"':
				if i = skipString(b, i); i < 0 {
					return -1
				}
				continue
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return i + 1
				}
			}
			i++
		}
		return -1
	}
	start := i
	for i < len(b) && !endsLiteral(b[i]) {
		i++
	}
	if i == start || i == len(b) { // nothing, or cut: 12 may be the start of 128
		return -1
	}
	return i
}

// endsLiteral reports whether c is no part of a number, true, false or null. The next
// value may follow without a comma where document left it out.
func endsLiteral(c byte) bool {
	switch c {
	case ',', '}', ']', '{', '[', '"':
		return true
	}
	return c <= ' '
}

func isNull(value []byte) bool { return string(value) == "null" }

// nonEmptyString reports whether value is a string with at least one byte.
func nonEmptyString(value []byte) bool { return len(value) > 2 && value[0] == '"' }

// maxText bounds the names and identifiers that are kept, in bytes. A longer one
// is none.
const maxText = 1 << 10

// text is the string that value holds; anything else is "".
func text(value []byte) string {
	if !nonEmptyString(value) || len(value) > maxText {
		return ""
	}
	inner := value[1 : len(value)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return string(inner)
	}
	var s string
	if json.Unmarshal(value, &s) != nil {
		return ""
	}
	return s
}

// wholeNumber is the number that value holds, if it is a whole one.
func wholeNumber(value []byte) (n int, ok bool) {
	if len(value) == 0 || len(value) > 15 {
		return 0, false
	}
	digits := value
	if digits[0] == '-' {
		digits = digits[1:]
	}
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	if len(digits) < len(value) {
		n = -n
	}
	return n, len(digits) > 0
}
