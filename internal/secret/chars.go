package secret

import "strings"

// isDomain reports whether s is a name of the public Internet.
func isDomain(s string) bool {
	dot := strings.LastIndexByte(s, '.')
	if dot <= 0 || s[0] == '-' || s[0] == '.' || strings.Contains(s, "..") {
		return false
	}
	tld := s[dot+1:]
	if len(tld) < 2 || len(tld) > 24 {
		return false
	}
	for i := range len(tld) {
		if isDigit(tld[i]) || !isWord(tld[i]) {
			return false
		}
	}
	switch strings.ToLower(tld) {
	case "local", "internal", "localdomain", "lan", "png", "jpg", "jpeg", "svg", "webp": // hosts at home, and logo@2x.png
		return false
	}
	first, rest, _ := strings.Cut(s, ".")
	second, _, _ := strings.Cut(rest, ".")
	return !isNumber(strings.TrimPrefix(first, "v")) || !isNumber(second) // 1.2.3-beta.rc is a version, 163.com a domain
}

func isNumber(s string) bool {
	for i := range len(s) {
		if !isDigit(s[i]) {
			return false
		}
	}
	return s != ""
}

func isLocal(c byte) bool {
	return isWord(c) || strings.IndexByte("._%+-", c) >= 0
}

// isWord accepts letters of every script.
func isWord(c byte) bool { return isAlphanumeric(c) || c >= 0x80 }

// begins reports whether a word may begin at i: nothing of one stands before it, but for
// the end of an escape, such as \n in the JSON that a text holds, or %20 in an address.
// Scripts without spaces go on right before it.
func begins(s string, i int) bool {
	return i == 0 || !isAlphanumeric(s[i-1]) ||
		i >= 2 && s[i-2] == '\\' && strings.IndexByte("bfnrt", s[i-1]) >= 0 ||
		i >= 3 && s[i-3] == '%' && isHex(s[i-2:i]) ||
		i >= 6 && s[i-6] == '\\' && s[i-5] == 'u' && isHex(s[i-4:i])
}

func isHex(s string) bool {
	for i := range len(s) {
		if c := s[i]; !isDigit(c) && (c|0x20 < 'a' || c|0x20 > 'f') {
			return false
		}
	}
	return true
}

func isLower(c byte) bool { return c >= 'a' && c <= 'z' }

func isUpper(c byte) bool { return c >= 'A' && c <= 'Z' }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isAlphanumeric(c byte) bool { return isLower(c|0x20) || isDigit(c) }
