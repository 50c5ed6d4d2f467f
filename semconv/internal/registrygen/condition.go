package main

import (
	"fmt"
	"strings"
)

// term is one part of a when; all parts of a when must hold.
type term struct {
	op     string // a key of termOps
	key    string // the attribute that the term is about, if any
	values []string
}

// termOps maps each kind of term to the Go constant that stands for it.
var termOps = map[string]string{
	"known":     "Known",
	"failed":    "Failed",
	"has":       "Has",
	"missing":   "Missing",
	"equal":     "Equal",
	"not equal": "NotEqual",
}

// parseWhen reads the machine-readable form of a condition.
func parseWhen(text string) ([]term, error) {
	if text == "" {
		return nil, nil
	}
	var terms []term
	for part := range strings.SplitSeq(text, " and ") {
		t, err := parseTerm(strings.Fields(part))
		if err != nil {
			return nil, fmt.Errorf("%q: %w", part, err)
		}
		terms = append(terms, t)
	}
	return terms, nil
}

func parseTerm(words []string) (term, error) {
	switch {
	case len(words) == 1 && (words[0] == "known" || words[0] == "failed"):
		return term{op: words[0]}, nil
	case len(words) == 2 && (words[0] == "has" || words[0] == "missing"):
		return term{op: words[0], key: words[1]}, nil
	case len(words) == 3 && (words[1] == "=" || words[1] == "!="):
		t := term{op: "equal", key: words[0], values: strings.Split(words[2], "|")}
		if words[1] == "!=" {
			t.op = "not equal"
		}
		if t.key == "value" { // the attribute that the condition is about
			t.key = ""
		}
		return t, nil
	}
	return term{}, fmt.Errorf("want known, failed, has KEY, missing KEY, KEY = VALUE|… or KEY != VALUE|…")
}
