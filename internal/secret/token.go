package secret

import (
	"bytes"
	"encoding/base64"
	"strings"
)

// bearers finds a token after the word Bearer or Basic, as Authorization headers
// have it, and a JSON web token without that word.
func bearers(s string, yield func(int, int) bool) {
	_ = afterWord(s, "earer ", isToken, yield) && afterWord(s, "EARER ", isToken, yield) &&
		afterWord(s, "asic ", isBasic, yield) && webTokens(s, yield)
}

// afterWord finds a word, given without its first letter, before something that is
// accepted, and what is accepted with it. It reports whether yield wants more.
func afterWord(s, rest string, accept func(string) (int, bool), yield func(int, int) bool) bool {
	for from := 0; ; {
		i := strings.Index(s[from:], rest)
		if i < 0 {
			return true
		}
		at := from + i - 1
		from += i + len(rest)
		if at < 0 || s[at]|0x20 != 'b' || !begins(s, at) {
			continue
		}
		n, ok := accept(s[from:])
		if !ok {
			continue // what follows may be the word again
		}
		if !yield(at, from+n) {
			return false
		}
		from += n
	}
}

// isToken reports how long the word is that s starts with, and whether that is what no
// words are: a long run that mixes letters, their case and digits, or such a thing in
// groups.
func isToken(s string) (n int, ok bool) {
	digit, letter := false, false
	for ; n < len(s) && (isAlphanumeric(s[n]) || strings.IndexByte("-._~+/=", s[n]) >= 0); n++ {
		digit = digit || isDigit(s[n])
		letter = letter || !isDigit(s[n]) && isAlphanumeric(s[n])
	}
	return n, scanSecret(s, 0).random >= 0 || n >= 2*minRandom && digit && letter
}

// isBasic does so for a name and a password in base64.
func isBasic(s string) (n int, ok bool) {
	for n < len(s) && (isAlphanumeric(s[n]) || strings.IndexByte("+/", s[n]) >= 0) {
		n++
	}
	for n < len(s) && s[n] == '=' { // its end
		n++
	}
	plain, err := base64.StdEncoding.DecodeString(s[:n])
	return n, err == nil && len(plain) >= 6 && bytes.IndexByte(plain, ':') > 0
}

// webTokens finds header.payload.signature, of which the first two are JSON in
// base64.
func webTokens(s string, yield func(int, int) bool) bool {
	for from := 0; ; {
		i := strings.Index(s[from:], "eyJ")
		if i < 0 {
			return true
		}
		at := from + i
		end := at
		for end < len(s) && (isAlphanumeric(s[end]) || strings.IndexByte("-_.", s[end]) >= 0) {
			end++
		}
		header, rest, _ := strings.Cut(s[at:end], ".")
		_, _, three := strings.Cut(rest, ".")
		if three && len(header) >= minRandom && strings.HasPrefix(rest, "eyJ") && begins(s, at) && !yield(at, end) {
			return false
		}
		from = max(at+1, end)
	}
}

// privateKeys finds private keys in PEM, from the first line to the last one, or to
// the end of the text where that is missing.
func privateKeys(s string, yield func(int, int) bool) {
	const begin, dashes = "-----BEGIN ", "-----"
	for from := 0; ; {
		i := strings.Index(s[from:], begin)
		if i < 0 {
			return
		}
		at := from + i
		from = at + len(begin)
		label, _, ok := strings.Cut(s[from:min(len(s), from+64)], dashes)
		if !ok || !strings.HasSuffix(label, "PRIVATE KEY") && !strings.HasSuffix(label, "PRIVATE KEY BLOCK") {
			continue
		}
		end := len(s)
		if i := strings.Index(s[from:], "-----END "); i >= 0 {
			last := from + i + len("-----END ")
			if _, rest, ok := strings.Cut(s[last:], dashes); ok {
				end = len(s) - len(rest)
			}
		}
		if !yield(at, end) {
			return
		}
		from = end
	}
}
