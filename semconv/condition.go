package semconv

import (
	"slices"
	"strings"

	"go.opentelemetry.io/otel/attribute"
)

// Condition says when a requirement applies: where all of its terms hold. The
// empty condition always holds.
type Condition []Term

// Term is one part of a condition.
type Term struct {
	Op     Op
	Key    attribute.Key // the attribute it is about; empty for the required one itself
	Values []string      // for Equal and NotEqual; one that ends in * stands for all that begin so
}

// Op is what a term asks.
type Op uint8

// What a term can ask.
const (
	Known    Op = iota + 1 // the fact exists and the instrumentation can see it: telemetry cannot tell
	Failed                 // the operation ended in an error
	Has                    // Key is set
	Missing                // Key is not set
	Equal                  // Key has one of Values
	NotEqual               // Key has none of Values; it may be missing
)

// Verdict is what telemetry says about a condition.
type Verdict uint8

// Verdicts.
const (
	Unknown Verdict = iota // telemetry cannot tell
	Holds
	Fails
)

// Check evaluates c over a finished span or a data point: whether it failed and
// what its attributes are. One term that fails decides, whatever the others
// say; a term about the required attribute itself can be decided only where
// that is set.
func (c Condition) Check(required attribute.Key, failed bool, get func(attribute.Key) (attribute.Value, bool)) Verdict {
	verdict := Holds
	for _, t := range c {
		switch t.check(required, failed, get) {
		case Fails:
			return Fails
		case Unknown:
			verdict = Unknown
		case Holds:
		}
	}
	return verdict
}

func (t Term) check(required attribute.Key, failed bool, get func(attribute.Key) (attribute.Value, bool)) Verdict {
	if t.Op == Known {
		return Unknown
	}
	if t.Op == Failed {
		return verdict(failed)
	}
	key := t.Key
	if key == "" {
		key = required
	}
	value, ok := get(key)
	switch t.Op {
	case Has:
		return verdict(ok)
	case Missing:
		return verdict(!ok)
	}
	if !ok {
		if t.Key == "" {
			return Unknown
		}
		return verdict(t.Op == NotEqual)
	}
	return verdict(t.matches(value.String()) == (t.Op == Equal))
}

func (t Term) matches(value string) bool {
	return slices.ContainsFunc(t.Values, func(want string) bool {
		if prefix, ok := strings.CutSuffix(want, "*"); ok {
			return strings.HasPrefix(value, prefix)
		}
		return value == want
	})
}

func verdict(holds bool) Verdict {
	if holds {
		return Holds
	}
	return Fails
}
