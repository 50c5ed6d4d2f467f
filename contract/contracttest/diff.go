package contracttest

import (
	"fmt"
	"strings"
)

const (
	around   = 3         // equal lines shown before and after a difference
	maxCells = 4_000_000 // of the table that aligns two texts
)

// diff shows how two texts differ, line by line: lines of want alone begin with -,
// lines of got alone with +.
func diff(want, got string) string {
	a, b := split(want), split(got)
	lines := align(a, b)
	var out strings.Builder
	shown := 0 // lines before this one are shown or left out
	for i, l := range lines {
		if l.mark == ' ' {
			continue
		}
		from := max(shown, i-around)
		if from > shown || from > 0 && shown == 0 {
			fmt.Fprintf(&out, "@@ line %d @@\n", lines[from].number)
		}
		to := min(len(lines), i+around+1)
		for ; from < to && (from <= i || lines[from].mark == ' '); from++ {
			fmt.Fprintf(&out, "%c %s\n", lines[from].mark, lines[from].text)
		}
		shown = max(shown, from)
	}
	return out.String()
}

func split(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(s, "\n"), "\n")
}

// line is one line of a diff.
type line struct {
	mark   byte // ' ' in both, '-' in the first alone, '+' in the second alone
	text   string
	number int // in the first, from 1
}

// align finds the longest common part of two texts. What differs over more lines
// than a table can hold is shown whole.
func align(a, b []string) []line {
	var lines []line
	i, j := 0, 0
	equal := func() {
		lines = append(lines, line{' ', a[i], i + 1})
		i, j = i+1, j+1
	}
	remove := func() { lines = append(lines, line{'-', a[i], i + 1}); i++ }
	add := func() { lines = append(lines, line{'+', b[j], i + 1}); j++ }

	for i < len(a) && j < len(b) && a[i] == b[j] {
		equal()
	}
	endA, endB := len(a), len(b)
	for endA > i && endB > j && a[endA-1] == b[endB-1] {
		endA, endB = endA-1, endB-1
	}
	if (endA-i)*(endB-j) <= maxCells {
		common := commonLengths(a[i:endA], b[j:endB])
		fromA, fromB := i, j
		for i < endA && j < endB {
			switch {
			case a[i] == b[j]:
				equal()
			case common[i-fromA+1][j-fromB] >= common[i-fromA][j-fromB+1]:
				remove()
			default:
				add()
			}
		}
	}
	for i < endA {
		remove()
	}
	for j < endB {
		add()
	}
	for i < len(a) {
		equal()
	}
	return lines
}

// commonLengths returns, for each pair of places, how many lines the rests of both
// have in common.
func commonLengths(a, b []string) [][]int32 {
	table := make([][]int32, len(a)+1)
	for i := range table {
		table[i] = make([]int32, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				table[i][j] = table[i+1][j+1] + 1
			} else {
				table[i][j] = max(table[i+1][j], table[i][j+1])
			}
		}
	}
	return table
}
