package contracttest

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDiffShowsWhatDiffers(t *testing.T) {
	numbers := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintln(&b, i+1)
		}
		return b.String()
	}
	tests := []struct{ name, want, got, diff string }{
		{"nothing", "a\n", "a\n", ""},
		{"from nothing", "", "a\nb\n", "+ a\n+ b\n"},
		{"to nothing", "a\n", "", "- a\n"},
		{"one line", "a\nb\nc\n", "a\nx\nc\n", "  a\n- b\n+ x\n  c\n"},
		{"an insertion", "a\nc\n", "a\nb\nc\n", "  a\n+ b\n  c\n"},
		{"no line end", "a", "a\nb", "  a\n+ b\n"},
		{"far apart", numbers(20), strings.NewReplacer("5\n", "x\n", "16\n", "16\ny\n").Replace(numbers(14)) + "15\n16\ny\n17\n18\n19\n20\n",
			"@@ line 2 @@\n  2\n  3\n  4\n- 5\n+ x\n  6\n  7\n  8\n@@ line 14 @@\n  14\n  15\n  16\n+ y\n  17\n  18\n  19\n"},
		{"near each other", numbers(9), strings.NewReplacer("3\n", "x\n", "6\n", "y\n").Replace(numbers(9)),
			"  1\n  2\n- 3\n+ x\n  4\n  5\n- 6\n+ y\n  7\n  8\n  9\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { assert.Equal(t, tt.diff, diff(tt.want, tt.got)) })
	}
}

// Whatever the texts are, the lines of a diff make up both.
func TestAnAlignmentHoldsBothTexts(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	text := func(most int) []string {
		lines := make([]string, random.IntN(most))
		for i := range lines {
			lines[i] = string(rune('a' + random.IntN(4)))
		}
		return lines
	}
	for range 2000 {
		a, b := text(12), text(12)
		var left, right []string
		for _, l := range align(a, b) {
			if l.mark != '+' {
				left = append(left, l.text)
			}
			if l.mark != '-' {
				right = append(right, l.text)
			}
		}
		require.Equal(t, strings.Join(a, ""), strings.Join(left, ""))
		require.Equal(t, strings.Join(b, ""), strings.Join(right, ""))
	}
}

func TestLargeTextsAreNotAligned(t *testing.T) {
	var a, b strings.Builder
	for i := range 3000 {
		fmt.Fprintln(&a, "a", i)
		fmt.Fprintln(&b, "b", i)
	}
	text := diff("same\n"+a.String()+"end\n", "same\n"+b.String()+"end\n")
	assert.True(t, strings.HasPrefix(text, "  same\n- a 0\n"))
	assert.True(t, strings.HasSuffix(text, "+ b 2999\n  end\n"))
	assert.Equal(t, 6002, strings.Count(text, "\n"))
}
