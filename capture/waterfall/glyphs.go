package waterfall

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// glyphs is what a waterfall is drawn with.
type glyphs struct {
	full, left, right string // a cell covered wholly, in its left half, in its right half
	thin              string // a span shorter than half a cell
	open              string // a span that has not ended
	token             string // the first token
	failed            string
	ellipsis, dot     string
	tee, corner, pipe string // branches, three columns each
	deeper            string // stands for the branches above a level that is too deep
	ascii             bool   // escape what is not ASCII
}

var (
	unicodeGlyphs = &glyphs{
		full: "█", left: "▌", right: "▐", thin: "▏", open: "░", token: "◆", failed: "✗",
		ellipsis: "…", dot: "·", tee: "├─ ", corner: "└─ ", pipe: "│  ", deeper: "…  ",
	}
	asciiGlyphs = &glyphs{
		full: "#", left: "#", right: "#", thin: "|", open: ".", token: "*", failed: "!",
		ellipsis: "...", dot: "-", tee: "|- ", corner: "`- ", pipe: "|  ", deeper: "...", ascii: true,
	}
)

// branch returns what stands before the name of a node and below it.
func (g *glyphs) branch(depth int, last bool) (branch, below string) {
	switch {
	case depth == 0:
		return "", ""
	case last:
		return g.corner, "   "
	default:
		return g.tee, g.pipe
	}
}

// escape makes s harmless for a terminal: control and format characters and
// bytes that are not UTF-8 become Go escapes.
func (g *glyphs) escape(s string) string {
	clean := func(r rune) bool { return unicode.IsPrint(r) && (!g.ascii || r < utf8.RuneSelf) }
	if utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !clean(r) }) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		if clean(r) && (r != utf8.RuneError || size > 1) {
			b.WriteRune(r)
		} else {
			quoted := strconv.QuoteToASCII(s[:size])
			b.WriteString(quoted[1 : len(quoted)-1])
		}
		s = s[size:]
	}
	return b.String()
}

// fit cuts s to at most width columns, ending it with an ellipsis, and fills it
// up to width.
func (g *glyphs) fit(s string, width int) string {
	n := columns(s)
	if n > width {
		s = cut(s, width-columns(g.ellipsis)) + g.ellipsis
		n = columns(s)
	}
	return s + strings.Repeat(" ", max(0, width-n))
}

// cut returns the longest start of s that takes at most width columns.
func cut(s string, width int) string {
	used := 0
	for i, r := range s {
		used += runeColumns(r)
		if used > width {
			return s[:i]
		}
	}
	return s
}

func padLeft(s string, width int) string {
	return strings.Repeat(" ", max(0, width-columns(s))) + s
}

// columns is the width of s in a terminal.
func columns(s string) int {
	n := 0
	for _, r := range s {
		n += runeColumns(r)
	}
	return n
}

// runeColumns knows the scripts that terminals draw two columns wide and the
// marks that take none. It is no full East Asian width table: a rare character
// can shift its line by a column.
func runeColumns(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me):
		return 0
	case unicode.In(r, unicode.Han, unicode.Hangul, unicode.Hiragana, unicode.Katakana),
		r >= 0x3000 && r <= 0x303E,   // CJK punctuation
		r >= 0xFF01 && r <= 0xFF60,   // full-width forms
		r >= 0x1F300 && r <= 0x1FAFF: // pictographs
		return 2
	default:
		return 1
	}
}
