package contract

import "strings"

// glob is text in which * stands for anything, an empty text too.
type glob []string // the parts between the stars

func newGlob(pattern string) glob { return strings.Split(pattern, "*") }

func (g glob) match(s string) bool {
	if len(g) == 1 {
		return s == g[0]
	}
	if !strings.HasPrefix(s, g[0]) {
		return false
	}
	s = s[len(g[0]):]
	last := g[len(g)-1]
	for _, part := range g[1 : len(g)-1] {
		i := strings.Index(s, part)
		if i < 0 {
			return false
		}
		s = s[i+len(part):]
	}
	return strings.HasSuffix(s, last)
}

// globs are alternatives.
type globs []glob

func newGlobs(patterns []string) globs {
	var all globs
	for _, p := range patterns {
		all = append(all, newGlob(p))
	}
	return all
}

func (g globs) match(s string) bool {
	for _, one := range g {
		if one.match(s) {
			return true
		}
	}
	return false
}
