package semconv

import (
	"iter"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// Type is the type of an attribute's values.
type Type string

// Types of values.
const (
	TypeString   Type = "string"
	TypeInt      Type = "int"
	TypeDouble   Type = "double"
	TypeBoolean  Type = "boolean"
	TypeStrings  Type = "string[]"
	TypeInts     Type = "int[]"
	TypeEnum     Type = "enum"             // a string; the known values are Members, others are allowed
	TypeAny      Type = "any"              // a map, a slice or a JSON string
	TypeTemplate Type = "template[string]" // a family of keys: the key, a dot and a name of one's own
)

// Stability says how far a convention promises to keep a name.
type Stability string

// Levels of stability. A house name has none: the module's version promises it.
const (
	StabilityDevelopment      Stability = "development"
	StabilityReleaseCandidate Stability = "release_candidate"
	StabilityStable           Stability = "stable"
)

// Origin says whose word a name is.
type Origin string

// Origins of names.
const (
	OriginGenAI   Origin = "genai"   // the GenAI conventions of OpenTelemetry, MCP included
	OriginGeneral Origin = "general" // the general conventions of OpenTelemetry
	OriginHouse   Origin = "house"   // this module
	OriginAlias   Origin = "alias"   // somebody else's spelling of one of the above
)

// Level says how firmly a convention asks for an attribute.
type Level string

// Levels of requirement.
const (
	LevelRequired    Level = "required"
	LevelConditional Level = "conditional" // required where the condition holds
	LevelRecommended Level = "recommended"
	LevelOptIn       Level = "opt_in" // only where somebody asks for it
)

// Attribute is what the registry knows of one key. Its slices are shared: do
// not change them.
type Attribute struct {
	Key       attribute.Key
	Type      Type
	Unit      string // UCUM; empty where values are no quantity
	Brief     string
	Note      string // what is easily misunderstood
	Origin    Origin
	Stability Stability
	Members   []Member // known values of an enum, or of an alias that has others

	Official    attribute.Key // official key that says exactly the same
	AliasOf     attribute.Key // key that this one is another spelling of
	Deprecated  string        // why the key is no longer used; empty where it is
	Replacement attribute.Key // key to use instead of a deprecated one
	// Factor is what a number is multiplied with to become one of Target, and 1
	// where the target has the same unit or values are no numbers. It is 0 where
	// nothing is carried over: there is no target, or the target only says what
	// to write instead, because values under this key need not mean the same
	// (Note says why). semconv/translate then keeps the key.
	Factor float64

	Content  bool // values may hold text of a user
	Sampling bool // samplers read it: to be given when a span starts
}

// Target returns the key that stands for a, if any: the one that it is another
// spelling of, its replacement, or its official twin. Factor says whether a's
// values are that key's too.
func (a Attribute) Target() (attribute.Key, bool) {
	for _, key := range [...]attribute.Key{a.AliasOf, a.Replacement, a.Official} {
		if key != "" {
			return key, true
		}
	}
	return "", false
}

// Member is one known value of an enum.
type Member struct {
	Value      string
	Brief      string
	Deprecated string // why the value is no longer used; empty where it is
	Now        string // value of the target, where that is spelled differently
}

// Requirement says that a span, a metric or an event carries an attribute.
type Requirement struct {
	Key      attribute.Key
	Level    Level
	If       string    // the condition in words; empty where there is none
	When     Condition // the same for a program
	Sampling bool      // to be given when the span starts
}

// Span is a type of span. Its slices are shared: do not change them.
type Span struct {
	Type       string // official type, such as gen_ai.client.inference, or the name of a house span
	Kind       trace.SpanKind
	InProcess  bool     // may also be internal, where the work is done in this process
	Names      []string // formats of the name with {key} for a value; a later one where a value of an earlier one is missing
	Operations []string // values of gen_ai.operation.name; empty where that does not matter
	Role       GenAISpanRoleAttr
	Entities   []string
	Refines    string // type whose attributes this one adds to; they are included here
	Brief      string
	Stability  Stability
	Attributes []Requirement
	Unseen     []string // parts that were not seen in the pinned release

	AliasOf     string // type that this name is another spelling of
	Deprecated  string
	Replacement string
}

// Metric is a metric. Its slices are shared: do not change them.
type Metric struct {
	Name       string
	Instrument string // histogram, counter, updowncounter, gauge
	Type       Type   // TypeInt or TypeDouble
	Unit       string // UCUM
	Brief      string
	Stability  Stability
	Buckets    []float64 // boundaries, for a histogram
	Streaming  bool      // only for streamed responses
	Attributes []Requirement
	Unseen     []string // parts that were not seen in the pinned release

	AliasOf     string  // metric that this name is another spelling of
	Factor      float64 // what a value is multiplied with to become one of AliasOf or Replacement; 0 where there is neither
	Deprecated  string
	Replacement string
}

// Event is an event of a span or a log record. Its slices are shared: do not
// change them.
type Event struct {
	Name       string
	Log        bool // a log record; otherwise an event of a span
	Level      Level
	Severity   int // number of the log severity; 0 where the convention names none
	Brief      string
	Stability  Stability
	Attributes []Requirement
	Unseen     []string // parts that were not seen in the pinned release

	AliasOf     string // event that this name is another spelling of
	Deprecated  string
	Replacement string
}

// Lookup returns what the registry knows of key: an official key, a general one
// that GenAI telemetry carries, a house key, an alias or a deprecated key. A
// member of a family such as gen_ai.prompt.variable.city is found by the
// family. Lookup does not allocate.
func Lookup(key attribute.Key) (Attribute, bool) {
	i := find(string(key)) // apart, so that Lookup is inlined and copies once
	if i < 0 {
		return Attribute{}, false
	}
	return attributes[i], true
}

// family finds the family that a key is a member of.
func family(key string) int {
	for _, i := range templates {
		family := string(attributes[i].Key)
		if len(key) > len(family)+1 && key[len(family)] == '.' && key[:len(family)] == family {
			return i
		}
	}
	return -1
}

// Instead says what stands for a word that people write and that is no key,
// span, event or metric here, such as model.latency_ms. In an error message the
// advice goes on from "here that is". A word that has a name here, such as an
// alias, is answered by the look-ups.
func Instead(word string) (advice string, ok bool) {
	advice = settled(word)
	return advice, advice != ""
}

// All returns every attribute in order of its key.
func All() iter.Seq[Attribute] { return slices.Values(attributes[:]) }

// LookupSpan returns a span by its type. For a span of the house that is its
// name, and another spelling of the name will do.
func LookupSpan(name string) (Span, bool) {
	i, ok := slices.BinarySearchFunc(spans[:], name, func(s Span, name string) int { return strings.Compare(s.Type, name) })
	if !ok {
		return Span{}, false
	}
	return spans[i], true
}

// RecognizeSpan returns the type of a finished span: by its name where that is
// one of the house, by its MCP method, by its operation and kind, or by its
// role. A refinement for one provider is never returned; its own type tells it.
func RecognizeSpan(name string, kind trace.SpanKind, get func(attribute.Key) (attribute.Value, bool)) (Span, bool) {
	if s, ok := LookupSpan(name); ok {
		return s, true
	}
	if _, ok := get("mcp.method.name"); ok {
		if kind == trace.SpanKindServer {
			return LookupSpan("mcp.server")
		}
		return LookupSpan("mcp.client")
	}
	for _, key := range [...]attribute.Key{"gen_ai.operation.name", AIOperationKey} {
		if operation, ok := get(key); ok {
			if s, ok := spanOfOperation(operation.AsString(), kind); ok {
				return s, true
			}
		}
	}
	if role, ok := get(GenAISpanRoleKey); ok {
		for s := range SpansOf(GenAISpanRoleAttr(role.AsString())) {
			if s.Kind == kind && s.Refines == "" {
				return s, true
			}
		}
	}
	return Span{}, false
}

// spanOfOperation prefers a span of exactly this kind to one that may have it.
func spanOfOperation(operation string, kind trace.SpanKind) (Span, bool) {
	found := -1
	for i := range spans {
		s := &spans[i]
		if s.Refines != "" || s.AliasOf != "" || s.Deprecated != "" || !slices.Contains(s.Operations, operation) {
			continue
		}
		if s.Kind == kind {
			return *s, true
		}
		if s.InProcess && kind == trace.SpanKindInternal {
			found = i
		}
	}
	if found < 0 {
		return Span{}, false
	}
	return spans[found], true
}

// Spans returns every span in order of its type.
func Spans() iter.Seq[Span] { return slices.Values(spans[:]) }

// SpansOf returns the spans of a role, without aliases and deprecated ones.
func SpansOf(role GenAISpanRoleAttr) iter.Seq[Span] {
	return func(yield func(Span) bool) {
		for _, s := range spans {
			if s.Role == role && s.AliasOf == "" && s.Deprecated == "" && !yield(s) {
				return
			}
		}
	}
}

// LookupMetric returns a metric by its name.
func LookupMetric(name string) (Metric, bool) {
	i, ok := slices.BinarySearchFunc(metrics[:], name, func(m Metric, name string) int { return strings.Compare(m.Name, name) })
	if !ok {
		return Metric{}, false
	}
	return metrics[i], true
}

// Metrics returns every metric in order of its name.
func Metrics() iter.Seq[Metric] { return slices.Values(metrics[:]) }

// LookupEvent returns an event by its name.
func LookupEvent(name string) (Event, bool) {
	i, ok := slices.BinarySearchFunc(events[:], name, func(e Event, name string) int { return strings.Compare(e.Name, name) })
	if !ok {
		return Event{}, false
	}
	return events[i], true
}

// Events returns every event in order of its name.
func Events() iter.Seq[Event] { return slices.Values(events[:]) }
