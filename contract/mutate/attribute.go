package mutate

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"go.opentelemetry.io/otel/attribute"

	"github.com/genaitrace/otelgenai/capture"
	"github.com/genaitrace/otelgenai/contract/spec"
	"github.com/genaitrace/otelgenai/semconv"
)

// named is an attribute that the contract names somewhere.
type named struct {
	key  string
	rule spec.Attribute
	is   func(attribute.Key) bool // whether a key is a spelling of it
}

// An attributeFault changes attributes, which are a copy, and returns them. The
// fact is there in every spelling that has a value, so all of them change.
type attributeFault func(attributes capture.Attributes, n *named) (capture.Attributes, string)

var attributeFaults = []struct {
	operator Operator
	put      attributeFault
}{
	{Drop, func(attributes capture.Attributes, n *named) (capture.Attributes, string) {
		return slices.DeleteFunc(attributes, func(kv attribute.KeyValue) bool { return n.is(kv.Key) }), ""
	}},
	{Retype, values(retype, "the value is empty")},
	{ScaleUp, values(numbers(timesThousand, func(f float64) float64 { return f * 1000 }), notANumber)},
	{ScaleDown, values(numbers(func(i int64) int64 { return i / 1000 }, func(f float64) float64 { return f / 1000 }), notANumber)},
	{Negate, values(numbers(func(i int64) int64 { return -i }, func(f float64) float64 { return 0 - f }), notANumber)},
	{Misspell, misspell},
	{UnknownMember, unknownMember},
	{PersonalData, values(texts(withPersonalData), notText)},
	{Huge, values(texts(func(s string) string { return s + strings.Repeat("x", max(0, 100_000-len(s))) }), notText)},
	{Empty, values(texts(func(string) string { return "" }), notText)},
}

const (
	notText    = "the value is no text"
	notANumber = "the value is no number"
)

// values makes a fault of a change of values.
func values(change func(attribute.Value) (attribute.Value, bool), why string) attributeFault {
	return func(attributes capture.Attributes, n *named) (capture.Attributes, string) {
		changed := false
		for i := range attributes {
			if !n.is(attributes[i].Key) {
				continue
			}
			if v, ok := change(attributes[i].Value); ok {
				attributes[i].Value, changed = v, true
			}
		}
		if !changed {
			return nil, why
		}
		return attributes, ""
	}
}

func texts(change func(string) string) func(attribute.Value) (attribute.Value, bool) {
	return func(v attribute.Value) (attribute.Value, bool) {
		return attribute.StringValue(change(v.AsString())), v.Type() == attribute.STRING
	}
}

func withPersonalData(text string) string { return text + " jane.doe@example.com" }

// numbers changes a number, or each of a list.
func numbers(whole func(int64) int64, broken func(float64) float64) func(attribute.Value) (attribute.Value, bool) {
	return func(v attribute.Value) (attribute.Value, bool) {
		switch v.Type() {
		case attribute.INT64:
			return attribute.Int64Value(whole(v.AsInt64())), true
		case attribute.FLOAT64:
			return attribute.Float64Value(broken(v.AsFloat64())), true
		case attribute.INT64SLICE:
			return attribute.Int64SliceValue(mapped(v.AsInt64Slice(), whole)), true
		case attribute.FLOAT64SLICE:
			return attribute.Float64SliceValue(mapped(v.AsFloat64Slice(), broken)), true
		default:
			return v, false
		}
	}
}

func mapped[T any](items []T, f func(T) T) []T {
	out := make([]T, len(items))
	for i, item := range items {
		out[i] = f(item)
	}
	return out
}

// timesThousand leaves a number alone that would not fit.
func timesThousand(i int64) int64 {
	if i > math.MaxInt64/1000 || i < math.MinInt64/1000 {
		return i
	}
	return i * 1000
}

func retype(v attribute.Value) (attribute.Value, bool) {
	switch v.Type() {
	case attribute.EMPTY:
		return v, false
	case attribute.STRING, attribute.MAP:
		return attribute.Int64Value(1), true
	default:
		return attribute.StringValue(v.String()), true
	}
}

// misspell leaves out a letter, as near to the middle of the last word as gives a
// key that means nothing.
func misspell(attributes capture.Attributes, n *named) (capture.Attributes, string) {
	why := "every key that lacks a letter has a meaning"
	for i := range attributes {
		if !n.is(attributes[i].Key) {
			continue
		}
		if key, ok := misspelt(string(attributes[i].Key), func(key attribute.Key) bool {
			_, known := semconv.Lookup(key)
			return known || n.is(key) || attributes.Has(key)
		}); ok {
			attributes[i].Key, why = attribute.Key(key), ""
		}
	}
	return attributes, why
}

func misspelt(key string, means func(attribute.Key) bool) (string, bool) {
	word := strings.LastIndexByte(key, '.') + 1
	middle := word + (len(key)-word)/2
	for distance := range len(key) {
		for _, at := range [...]int{middle + distance, middle - distance} {
			if at < word || at >= len(key) || !unicode.IsLetter(rune(key[at])) {
				continue
			}
			if short := key[:at] + key[at+1:]; !means(attribute.Key(short)) {
				return short, true
			}
		}
	}
	return "", false
}

func unknownMember(attributes capture.Attributes, n *named) (capture.Attributes, string) {
	if len(n.rule.Value) == 0 && n.rule.Members != "closed" {
		return nil, "the contract allows every text"
	}
	return values(texts(func(string) string { return "no_such_member" }), notText)(attributes, n)
}

func itoa(n int) string { return strconv.Itoa(n) }
