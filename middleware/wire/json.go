package wire

import (
	"bytes"
	"encoding/json"
)

// The functions of this file walk through JSON without building anything:
// positions in b go in and come out, and -1 means that the text is broken. They
// accept more than JSON in places (numbers, literals); what they are used for,
// finding a few members, does not care. Nesting costs no stack.

// members calls visit with each member of the object at b[i:]; start and end
// bound the value. It stops where the text is broken.
func members(b []byte, i int, visit func(key []byte, start, end int)) {
	i = space(b, i)
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
		visit(key, start, end)
		i = space(b, end)
		if i >= len(b) || b[i] != ',' {
			return
		}
		i = space(b, i+1)
	}
}

// elements calls visit with the bounds of each element of the array at b[i:].
func elements(b []byte, i int, visit func(start, end int)) {
	i = space(b, i)
	if i >= len(b) || b[i] != '[' {
		return
	}
	i = space(b, i+1)
	for i < len(b) && b[i] != ']' {
		end := skipValue(b, i)
		if end < 0 {
			return
		}
		visit(i, end)
		i = space(b, end)
		if i < len(b) && b[i] == ',' {
			i = space(b, i+1)
		}
	}
}

func space(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\n' || b[i] == '\r') {
		i++
	}
	return i
}

// skipString returns the position after the string that starts at b[i].
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

// skipValue returns the position after the member or element that starts at
// b[i].
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
	for i < len(b) && b[i] != ',' && b[i] != '}' && b[i] != ']' && b[i] > ' ' {
		i++
	}
	if i == start || i == len(b) { // nothing, or cut: 12 may be the start of 128
		return -1
	}
	return i
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

// count is the number that value holds, if it is a whole number.
func count(value []byte) (n int, ok bool) {
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
