package semconv

import (
	"fmt"
	"math"
	"strings"
	"sync"

	"go.opentelemetry.io/otel/attribute"
)

// A Vocabulary says in which words facts are written that have both an official
// and a house name. Facts with one name are written under that one in every
// vocabulary.
type Vocabulary uint8

const (
	// Standard writes the official key alone. It is the default.
	Standard Vocabulary = iota
	// Both writes the house key beside its official twin: ai.operation,
	// ai.model.name, ai.tokens.input, ai.response.delay_ms and their like.
	Both
	// House writes the house key in place of its official twin.
	House
	// Legacy writes what dashboards made for the conventions before their
	// v0.1.0 read: gen_ai.system beside gen_ai.provider.name, and the metrics
	// gen_ai.client.operation.duration (with .time_to_first_chunk and
	// .time_per_output_chunk) and gen_ai.client.token.usage.
	Legacy
	vocabularies
)

var vocabularyNames = [vocabularies]string{"standard", "both", "house", "legacy"}

// Valid reports whether v is one of the constants.
func (v Vocabulary) Valid() bool { return v < vocabularies }

func (v Vocabulary) String() string {
	if !v.Valid() {
		return fmt.Sprintf("Vocabulary(%d)", uint8(v))
	}
	return vocabularyNames[v]
}

// ParseVocabulary reads the name of a vocabulary, such as "both".
func ParseVocabulary(name string) (Vocabulary, error) {
	for v, known := range vocabularyNames {
		if strings.EqualFold(name, known) {
			return Vocabulary(v), nil
		}
	}
	return Standard, fmt.Errorf("semconv: no vocabulary %q: want one of %s", name, strings.Join(vocabularyNames[:], ", "))
}

// Rewrite puts attributes that are in Standard's words into v's. It changes the
// slice that it is given, and returns it.
func (v Vocabulary) Rewrite(attrs []attribute.KeyValue) []attribute.KeyValue {
	switch v {
	case Both:
		for _, kv := range attrs { // those before anything is appended
			if house, ok := houseTwin(kv); ok {
				attrs = append(attrs, house)
			}
		}
	case House:
		for i, kv := range attrs {
			if house, ok := houseTwin(kv); ok {
				attrs[i] = house
			}
		}
	case Legacy:
		for _, kv := range attrs {
			if kv.Key == "gen_ai.provider.name" {
				attrs = append(attrs, attribute.String("gen_ai.system", legacySystem(kv.Value.AsString())))
			}
		}
	case Standard, vocabularies:
	}
	return attrs
}

// legacySystem is the older spelling of a provider.
func legacySystem(provider string) string {
	if provider == "x_ai" {
		return "xai"
	}
	return provider
}

// A twin is a house key that says what an official key says.
type twin struct {
	key attribute.Key
	per float64 // house units in one official unit
}

// The map is made on first use: importing this package runs no code.
var (
	twinsOnce sync.Once
	twins     map[attribute.Key]twin
)

func makeTwins() {
	twins = make(map[attribute.Key]twin)
	for a := range All() {
		if a.Origin == OriginHouse && a.Official != "" && a.Deprecated == "" {
			twins[a.Official] = twin{a.Key, math.Round(1 / a.Factor)}
		}
	}
}

// houseTwin says the same in the house's words, if it has any.
func houseTwin(kv attribute.KeyValue) (attribute.KeyValue, bool) {
	twinsOnce.Do(makeTwins)
	t, ok := twins[kv.Key]
	if !ok {
		return attribute.KeyValue{}, false
	}
	if t.per != 1 {
		switch kv.Value.Type() {
		case attribute.FLOAT64:
			// Back to the nanosecond that both are made of.
			return t.key.Float64(math.Round(kv.Value.AsFloat64()*1e9) / (1e9 / t.per)), true
		case attribute.INT64:
			return t.key.Float64(float64(kv.Value.AsInt64()) * t.per), true
		}
	}
	return attribute.KeyValue{Key: t.key, Value: kv.Value}, true
}
