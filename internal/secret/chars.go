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

func isLower(c byte) bool { return c >= 'a' && c <= 'z' }

func isUpper(c byte) bool { return c >= 'A' && c <= 'Z' }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isAlphanumeric(c byte) bool { return isLower(c|0x20) || isDigit(c) }
