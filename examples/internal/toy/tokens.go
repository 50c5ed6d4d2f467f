package toy

import (
	"unicode"
	"unicode/utf8"
)

// maxLetters is the length of the longest piece of a word.
const maxLetters = 6

// tokenize splits text without losing a byte: a blank belongs to what follows
// it, a long word falls into pieces, and every other character stands alone.
func tokenize(text string) []string {
	var tokens []string
	for len(text) > 0 {
		n := firstToken(text)
		tokens = append(tokens, text[:n])
		text = text[n:]
	}
	return tokens
}

// firstToken returns the length of the first token of text in bytes.
func firstToken(text string) int {
	n, letters := 0, 0
	if text[0] == ' ' && len(text) > 1 {
		n = 1
	}
	for n < len(text) {
		r, size := utf8.DecodeRuneInString(text[n:])
		switch {
		case !unicode.IsLetter(r) && letters == 0:
			return n + size
		case !unicode.IsLetter(r) || letters == maxLetters:
			return n
		}
		n += size
		letters++
	}
	return n
}
