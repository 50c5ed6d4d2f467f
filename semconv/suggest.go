package semconv

import (
	"cmp"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/attribute"
)

// maxSuggestions is how many keys Suggest returns at most.
const maxSuggestions = 3

// maxSuggestLength bounds the work for a key from outside; no key of the
// registry is as long.
const maxSuggestLength = 128

// Suggest returns the keys that somebody who wrote name most likely meant, the
// nearest first; none where nothing is near. Near is a key that differs in a few
// letters, whatever their case, or else one that has all words of name and few
// more. Aliases and deprecated keys are answered by what replaces them. It is
// made for error messages: the same name always gives the same answer, and the
// cost is about that of reading the registry twice.
func Suggest(name string) []attribute.Key {
	name = strings.ToLower(name)
	if len(name) == 0 || len(name) > maxSuggestLength {
		return nil
	}
	limit := max(1, min(4, len(name)/5))
	near := suggestions(1, func(key string) (int, bool) { return editDistance(name, key, limit) })
	if _, below, _ := strings.Cut(name, "."); len(near) == 0 && len(wordsOf(below)) > 0 {
		words := wordsOf(name)
		near = suggestions(0, func(key string) (int, bool) { return moreWords(words, wordsOf(key)) })
	}
	return near
}

// suggestions are the keys in use that the nearest keys of the registry stand
// for, with those that are up to slack farther away.
func suggestions(slack int, distance func(key string) (int, bool)) (keys []attribute.Key) {
	type candidate struct {
		key      attribute.Key
		distance int
	}
	var near []candidate
	for i := range attributes {
		a := &attributes[i]
		if !strings.ContainsAny(string(a.Key), "._") {
			continue // a plain word such as value is near to too much
		}
		d, ok := distance(string(a.Key))
		if !ok {
			continue
		}
		key := a.Key
		if a.AliasOf != "" || a.Replacement != "" {
			key, _ = a.Target()
		} else if a.Deprecated != "" {
			continue
		}
		near = append(near, candidate{key, d})
	}
	slices.SortFunc(near, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(a.key, b.key))
	})
	for _, c := range near {
		if c.distance > near[0].distance+slack || len(keys) == maxSuggestions {
			break
		}
		if !slices.Contains(keys, c.key) {
			keys = append(keys, c.key)
		}
	}
	return keys
}

func wordsOf(key string) []string {
	return strings.FieldsFunc(key, func(r rune) bool { return r == '.' || r == '_' || r == '-' })
}

// maxMoreWords is how many words a key may have that the name looked for lacks.
const maxMoreWords = 2

// moreWords counts the words of key that name lacks, and reports whether all
// words of name stand in key, in this order, and few more.
func moreWords(name, key []string) (int, bool) {
	more := len(key) - len(name)
	for _, word := range key {
		if len(name) > 0 && alike(name[0], word) {
			name = name[1:]
		}
	}
	return more, len(name) == 0 && more <= maxMoreWords
}

// alike takes cached for cache and tokens for token.
func alike(a, b string) bool {
	short, long := a, b
	if len(a) > len(b) {
		short, long = b, a
	}
	return short == long || len(short) > 3 && len(long)-len(short) <= 2 && strings.HasPrefix(long, short)
}

// editDistance counts the letters to put in, take out, change or swap with
// their neighbour to come from a to b, and reports whether limit is enough.
func editDistance(a, b string, limit int) (int, bool) {
	if len(a)-len(b) > limit || len(b)-len(a) > limit {
		return 0, false
	}
	var rows [3][maxSuggestLength + 1]int
	before, above, row := &rows[0], &rows[1], &rows[2]
	for j := range len(b) + 1 {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		before, above, row = above, row, before
		row[0] = i
		least := i
		for j := 1; j <= len(b); j++ {
			change := above[j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			d := min(change, above[j]+1, row[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d = min(d, before[j-2]+1)
			}
			row[j] = d
			least = min(least, d)
		}
		if least > limit {
			return 0, false
		}
	}
	return row[len(b)], row[len(b)] <= limit
}
