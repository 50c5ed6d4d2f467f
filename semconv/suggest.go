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
// nearest first; none where nothing is near. Aliases and deprecated keys are
// answered by what replaces them. It is made for error messages: the same name
// always gives the same answer, and the cost is about that of reading the
// registry once.
func Suggest(name string) []attribute.Key {
	if len(name) == 0 || len(name) > maxSuggestLength {
		return nil
	}
	type candidate struct {
		key      attribute.Key
		distance int
	}
	var near []candidate
	limit := max(1, min(4, len(name)/5))
	for i := range attributes {
		a := &attributes[i]
		if !strings.ContainsAny(string(a.Key), "._") {
			continue // a plain word such as value is near to too much
		}
		distance, ok := editDistance(name, string(a.Key), limit)
		if !ok {
			continue
		}
		key := a.Key
		if a.AliasOf != "" || a.Replacement != "" {
			key, _ = a.Target()
		} else if a.Deprecated != "" {
			continue
		}
		near = append(near, candidate{key, distance})
	}
	slices.SortFunc(near, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(a.key, b.key))
	})
	var keys []attribute.Key
	for _, c := range near {
		if c.distance > near[0].distance+1 || len(keys) == maxSuggestions {
			break
		}
		if !slices.Contains(keys, c.key) {
			keys = append(keys, c.key)
		}
	}
	return keys
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
