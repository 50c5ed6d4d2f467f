package translate

import (
	"embed"
	"fmt"
	"slices"
	"strings"
	"sync"
)

//go:embed vocabularies/*.json
var files embed.FS

// The vocabularies that are asked for most; [Named] has all of them. The file of
// each, in the folder vocabularies, is its documentation. None is read before it
// is first used.
var (
	// Standard is what this library writes by default: the current official
	// keys, and the house keys for facts that the official text does not name.
	Standard = embedded("standard")
	// Semconv141 is OpenTelemetry's semantic conventions 1.37 to 1.41, which
	// most instrumentations and dashboards use: gen_ai.provider.name,
	// gen_ai.client.operation.duration, gen_ai.client.token.usage.
	Semconv141 = embedded("semconv-1.41")
	// Semconv136 is the same up to 1.36: gen_ai.system.
	Semconv136 = embedded("semconv-1.36")
	// House is Standard with the house key for each fact that has one, such as
	// ai.model.name, and with the older spellings of those keys when it is read.
	House = embedded("house")
	// OpenInference is the vocabulary of Arize and Phoenix: llm.token_count.prompt.
	OpenInference = embedded("openinference")
	// VLLM is what vLLM writes. SGLang uses the same gen_ai.latency keys and
	// means other times by them, which is why the engine must be named.
	VLLM = embedded("vllm")
	// SGLang is what SGLang writes.
	SGLang = embedded("sglang")
)

// A Vocabulary is one way to name the facts of generative AI telemetry. It is
// one of the variables of this package or comes from [Parse]. It never changes
// and may be used by many goroutines.
type Vocabulary struct {
	name string
	load func() (*table, error)
}

// String returns the name of the vocabulary, such as "openinference".
func (v *Vocabulary) String() string {
	if v == nil {
		return "none"
	}
	return v.name
}

// Named returns a vocabulary of this package by the name of its file, such as
// "openllmetry" or "langfuse". The error lists the names there are.
func Named(name string) (*Vocabulary, error) {
	if names := Names(); !slices.Contains(names, name) {
		return nil, fmt.Errorf("translate: no vocabulary %q: want one of %s, or read one with Parse", name, strings.Join(names, ", "))
	}
	return embedded(name), nil
}

// Names returns the names of the vocabularies of this package, in order.
func Names() (names []string) {
	entries, err := files.ReadDir("vocabularies")
	if err != nil {
		return nil // never: the folder is part of the binary
	}
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".json"))
	}
	return names
}

func embedded(name string) *Vocabulary {
	return &Vocabulary{name: name, load: func() (*table, error) { return load(name) }}
}

// loaded holds the tables of the vocabularies of this package, by name.
var loaded sync.Map

// load reads a vocabulary of this package on its first use.
func load(name string) (*table, error) {
	if t, ok := loaded.Load(name); ok {
		return t.(*table), nil
	}
	data, err := files.ReadFile("vocabularies/" + name + ".json")
	if err != nil {
		return nil, fmt.Errorf("there is no vocabulary %q", name)
	}
	t, err := parse(data)
	if err != nil {
		return nil, err
	}
	first, _ := loaded.LoadOrStore(name, t)
	return first.(*table), nil
}

// maxFile is the size above which a vocabulary is refused.
const maxFile = 1 << 20

// Parse reads a vocabulary from JSON, so that one that this package does not
// know is a file and not code. The format is described in the README of the
// folder vocabularies. Parse refuses a file with an unknown field, with a key
// that [Standard] does not define or with a unit that cannot be converted, and
// names the row.
func Parse(data []byte) (*Vocabulary, error) {
	t, err := parse(data)
	if err != nil {
		return nil, err
	}
	if _, err := files.Open("vocabularies/" + t.Name + ".json"); err == nil {
		return nil, fmt.Errorf("translate: vocabulary %q: the name belongs to a vocabulary of this package", t.Name)
	}
	return &Vocabulary{name: t.Name, load: func() (*table, error) { return t, nil }}, nil
}

// file is a vocabulary as it is written down.
type file struct {
	Name  string `json:"name"`
	About string `json:"about,omitempty"`
	// Extends names a vocabulary of this package whose rows follow the file's
	// own, except for keys that the file itself has a row for.
	Extends string `json:"extends,omitempty"`
	// Private says that a key without a meaning here (no ours) must not be
	// mistaken for the same key of another vocabulary.
	Private bool `json:"private,omitempty"`
	// Namespaces are the prefixes that the vocabulary owns, which end with a dot
	// or a colon: a key below one, without a row, is reported. Keys outside are passed over in silence.
	Namespaces []string     `json:"namespaces,omitempty"`
	Attributes []row        `json:"attributes,omitempty"`
	Messages   []messageRow `json:"messages,omitempty"`
	Spans      []spanRow    `json:"spans,omitempty"`
	Events     []eventRow   `json:"events,omitempty"`
	Metrics    []metricRow  `json:"metrics,omitempty"`
}

// row says which key of Standard an attribute stands for. Where several rows
// share ours, all are read, and the first one that is not read-only is written.
type row struct {
	// Theirs is the key in this vocabulary; absent, it equals ours. With ".*"
	// at the end it stands for all keys below it and has no ours.
	Theirs string `json:"theirs,omitempty"`
	// Ours is the key of Standard; absent, the attribute has no equivalent.
	Ours string `json:"ours,omitempty"`
	// Type is one of string, boolean, int, double, string[], int[] and any; absent, it
	// is the type of ours.
	Type string `json:"type,omitempty"`
	// Unit is in UCUM: s, ms, us, ns, {token} …; absent, it is the unit of ours.
	Unit string `json:"unit,omitempty"`
	// ReadOnly says that the key is understood and never written.
	ReadOnly bool `json:"read_only,omitempty"`
	// When restricts the row to spans where each of these attributes, in this
	// vocabulary, has one of the values.
	When condition `json:"when,omitempty"`
	// Values renames the members of an enumeration.
	Values *values `json:"values,omitempty"`
	// Note says what the key means where its name misleads.
	Note string `json:"note,omitempty"`
}

// condition maps an attribute to the values of which it must have one.
type condition map[string][]string

// values renames the members of an enumeration. Those that no map names keep
// their name.
type values struct {
	// Read maps theirs to ours.
	Read map[string]string `json:"read,omitempty"`
	// Write maps ours to theirs, for what is not simply the inverse of Read.
	Write map[string]string `json:"write,omitempty"`
	// Ambiguous lists values of theirs that may stand for several of ours.
	Ambiguous []string `json:"ambiguous,omitempty"`
	// Narrow lists values of theirs that say more than the one of ours that they
	// are read as: they are kept as well.
	Narrow []string `json:"narrow,omitempty"`
	// Closed says that values which the maps do not name are not translated.
	Closed bool `json:"closed,omitempty"`
}

// messageRow says how a list of messages, which Standard has as one structured
// attribute, is flattened into an attribute a field. Where several rows share
// ours, the first one is written and all are read.
type messageRow struct {
	// Theirs is what each key begins with; the number of the message follows.
	Theirs string `json:"theirs"`
	Ours   string `json:"ours"`
	// Fields are the ends of the keys by field: role, name, content (the one
	// text), finish_reason, response.id (the call that the content answers),
	// part.type and part.text (several texts), call.id, call.name and
	// call.arguments (calls of tools). In those that repeat, * is the number.
	Fields map[string]string `json:"fields"`

	prefix string            // theirs with a dot
	names  map[string]string // field by end of the key
}

// spanRow renames a span. A name is matched as a whole. In a name that is
// written, {key of Standard} stands for the value of that attribute.
type spanRow struct {
	Theirs string `json:"theirs,omitempty"`
	Ours   string `json:"ours"`
}

// eventRow renames an event of a span.
type eventRow struct {
	Theirs string `json:"theirs,omitempty"`
	// Ours is the name in Standard; absent, the event has no equivalent.
	Ours string `json:"ours,omitempty"`
	// When restricts the row to events with these attributes of this
	// vocabulary. Such a row is only read.
	When condition `json:"when,omitempty"`
}

// metricRow says which metric of Standard the data points of a metric belong
// to. The first row that applies to a point decides; rows that derive a second
// metric apply beside it.
type metricRow struct {
	Theirs string `json:"theirs,omitempty"`
	Ours   string `json:"ours,omitempty"`
	Unit   string `json:"unit,omitempty"`
	// When restricts the row to points with these attributes of this vocabulary.
	When condition `json:"when,omitempty"`
	// TheirsOnly are attributes that tell theirs apart where ours has a name of
	// its own: they are required and removed on reading, added on writing.
	TheirsOnly map[string]string `json:"theirs_only,omitempty"`
	// OursOnly are attributes, of Standard, added on reading. Only with Derive.
	OursOnly map[string]string `json:"ours_only,omitempty"`
	// Note says what the metric means where its name misleads.
	Note string `json:"note,omitempty"`
	// Derive makes ours from theirs without replacing it: "sum" is the counter
	// made of the sums of a histogram. Such a row is not written.
	Derive string `json:"derive,omitempty"`
}
