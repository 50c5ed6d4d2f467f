package translate

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
)

//go:embed vocabularies/*.json
var files embed.FS

// The vocabularies that come with the package. The file of each, in the folder
// vocabularies, is its documentation. None is read before it is first used.
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
// know is a file and not code. The format is that of the files in the folder
// vocabularies, and the comments in the source below explain it. Parse refuses a file with an unknown field, with a key that
// Standard does not define, or with a unit that cannot be converted, and names
// the row.
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
	// Namespaces are the prefixes that the vocabulary owns: a key below one,
	// without a row, is reported. Keys outside are passed over in silence.
	Namespaces []string    `json:"namespaces,omitempty"`
	Attributes []row       `json:"attributes,omitempty"`
	Spans      []spanRow   `json:"spans,omitempty"`
	Metrics    []metricRow `json:"metrics,omitempty"`
}

// row says which key of Standard an attribute stands for. Where several rows
// share ours, the first one is written and all are read.
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
	// Closed says that values which the maps do not name are not translated.
	Closed bool `json:"closed,omitempty"`
}

// spanRow renames a span. A name is matched as a whole. In a name that is
// written, {key of Standard} stands for the value of that attribute.
type spanRow struct {
	Theirs string `json:"theirs,omitempty"`
	Ours   string `json:"ours"`
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
	// Derive makes ours from theirs without replacing it: "sum" is the counter
	// made of the sums of a histogram. Such a row is not written.
	Derive string `json:"derive,omitempty"`
}

// table is a vocabulary ready for use.
type table struct {
	file

	theirs  map[string][]*row // by their key
	ours    map[string][]*row // by our key, the written one first
	define  map[string]*row   // keys of Standard with type and unit
	metric  map[string][]*metricRow
	written map[string]*metricRow // by our metric
}

func parse(data []byte) (*table, error) {
	if len(data) > maxFile {
		return nil, fmt.Errorf("translate: the vocabulary has %d bytes, more than %d", len(data), maxFile)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	t := &table{}
	if err := dec.Decode(&t.file); err != nil {
		return nil, fmt.Errorf("translate: the vocabulary is not valid (line %d): %w", line(data, dec, err), err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("translate: the vocabulary goes on after its end (line %d)", line(data, dec, err))
	}
	if err := t.build(); err != nil {
		return nil, fmt.Errorf("translate: vocabulary %q: %w", t.Name, err)
	}
	return t, nil
}

// line tells where in the file an error lies.
func line(data []byte, dec *json.Decoder, err error) int {
	offset := dec.InputOffset()
	var syntax *json.SyntaxError
	var typ *json.UnmarshalTypeError
	if errors.As(err, &syntax) {
		offset = syntax.Offset
	} else if errors.As(err, &typ) {
		offset = typ.Offset
	}
	return 1 + bytes.Count(data[:min(int(offset), len(data))], []byte("\n"))
}

const standard = "standard"

// build checks the rows and indexes them.
func (t *table) build() error {
	if t.Name == "" || strings.ContainsAny(t.Name, " {}*") {
		return errors.New("name must be a word")
	}
	base := &table{}
	var err error
	switch {
	case t.Name == standard:
		if t.Extends != "" {
			return errors.New("the standard vocabulary extends nothing")
		}
		t.define = make(map[string]*row)
	case t.Extends != "":
		if base, err = load(t.Extends); err != nil {
			return err
		}
		t.define = base.define
	default:
		var std *table
		if std, err = load(standard); err != nil {
			return err
		}
		t.define = std.define
	}
	for _, n := range t.Namespaces {
		if len(n) < 2 || !strings.HasSuffix(n, ".") {
			return fmt.Errorf("namespace %q must end with a dot", n)
		}
	}
	return errors.Join(t.buildAttributes(base), t.buildSpans(base), t.buildMetrics(base))
}

func (t *table) buildAttributes(base *table) error {
	t.theirs, t.ours = make(map[string][]*row), make(map[string][]*row)
	for i := range t.Attributes {
		r := &t.Attributes[i]
		if err := t.checkRow(r); err != nil {
			return fmt.Errorf("attributes[%d] (%s): %w", i, r.Theirs, err)
		}
		t.theirs[r.Theirs] = append(t.theirs[r.Theirs], r)
	}
	for i := range base.Attributes {
		if r := &base.Attributes[i]; t.theirs[r.Theirs] == nil {
			t.Attributes = append(t.Attributes, *r)
		}
	}
	// Appending may have moved the rows.
	clear(t.theirs)
	for i := range t.Attributes {
		r := &t.Attributes[i]
		t.theirs[r.Theirs] = append(t.theirs[r.Theirs], r)
		if r.Ours != "" {
			t.ours[r.Ours] = append(t.ours[r.Ours], r)
		}
	}
	return nil
}

func (t *table) checkRow(r *row) error {
	if r.Theirs == "" {
		r.Theirs = r.Ours
	}
	switch {
	case r.Theirs == "":
		return errors.New("theirs and ours are both absent")
	case strings.HasSuffix(r.Theirs, ".*"):
		if r.Ours != "" || r.When != nil || !t.owns(r.Theirs) {
			return errors.New("a row for all keys below a prefix has neither ours nor when, and lies in a namespace")
		}
		return nil
	}
	for _, before := range t.theirs[r.Theirs] {
		if before.When == nil {
			return errors.New("an earlier row without a condition always applies")
		}
	}
	if err := r.When.check(); err != nil {
		return err
	}
	if r.Ours == "" {
		return nil
	}
	if t.Name == standard {
		if r.Ours != r.Theirs || r.Type == "" {
			return errors.New("a standard key is itself and has a type")
		}
		t.define[r.Ours] = r
	}
	def := t.define[r.Ours]
	if def == nil {
		return fmt.Errorf("ours %q is not a key of the standard vocabulary", r.Ours)
	}
	if r.Type == "" {
		r.Type = def.Type
	}
	if !slices.Contains([]string{"string", "boolean", "int", "double", "string[]", "int[]", "any"}, r.Type) {
		return fmt.Errorf("type %q is unknown", r.Type)
	}
	if r.Unit == "" {
		r.Unit = def.Unit
	}
	if _, ok := ratio(r.Unit, def.Unit); !ok {
		return fmt.Errorf("unit %q cannot be converted to %q, the unit of %s", r.Unit, def.Unit, r.Ours)
	}
	if r.Values != nil && (r.Type != "string" || def.Type != "string") {
		return errors.New("values are for strings")
	}
	return r.Values.invert()
}

func (c condition) check() error {
	if c != nil && len(c) == 0 {
		return errors.New("when has no attribute")
	}
	for key, values := range c {
		if key == "" || len(values) == 0 {
			return fmt.Errorf("when %q has no values", key)
		}
	}
	return nil
}

// invert completes Write with the inverse of Read.
func (v *values) invert() error {
	if v == nil {
		return nil
	}
	inverse := make(map[string]string, len(v.Read)+len(v.Write))
	for theirs, ours := range v.Read {
		if _, given := v.Write[ours]; given {
			continue
		}
		if other, twice := inverse[ours]; twice {
			return fmt.Errorf("values %q and %q both mean %q: write must say which one is written", min(theirs, other), max(theirs, other), ours)
		}
		inverse[ours] = theirs
	}
	for ours, theirs := range v.Write {
		inverse[ours] = theirs
	}
	v.Write = inverse
	return nil
}

func (t *table) buildSpans(base *table) error {
	seen := make(map[string]bool)
	for i := range t.Spans {
		r := &t.Spans[i]
		if r.Theirs == "" {
			r.Theirs = r.Ours
		}
		if r.Ours == "" || seen[r.Theirs] {
			return fmt.Errorf("spans[%d] (%s): ours is absent, or theirs has a row already", i, r.Theirs)
		}
		for _, name := range []string{r.Theirs, r.Ours} {
			for _, part := range parseName(name) {
				if part.key && t.define[part.text] == nil {
					return fmt.Errorf("spans[%d] (%s): %q is not a key of the standard vocabulary", i, r.Theirs, part.text)
				}
			}
		}
		seen[r.Theirs] = true
	}
	for _, r := range base.Spans {
		if !seen[r.Theirs] {
			t.Spans = append(t.Spans, r)
		}
	}
	return nil
}

func (t *table) buildMetrics(base *table) error {
	own := make(map[string]bool)
	for i := range t.Metrics {
		r := &t.Metrics[i]
		if r.Theirs == "" {
			r.Theirs = r.Ours
		}
		if err := r.check(t.Name == standard); err != nil {
			return fmt.Errorf("metrics[%d] (%s): %w", i, r.Theirs, err)
		}
		own[r.Theirs] = true
	}
	for _, r := range base.Metrics {
		if !own[r.Theirs] {
			t.Metrics = append(t.Metrics, r)
		}
	}
	units := t.Metrics
	if t.Name != standard {
		std, err := load(standard)
		if err != nil {
			return err
		}
		units = std.Metrics
	}
	t.metric, t.written = make(map[string][]*metricRow), make(map[string]*metricRow)
	for i := range t.Metrics {
		r := &t.Metrics[i]
		if r.Ours != "" {
			at := slices.IndexFunc(units, func(s metricRow) bool { return s.Ours == r.Ours })
			if at < 0 {
				return fmt.Errorf("metrics[%d] (%s): ours %q is not a metric of the standard vocabulary", i, r.Theirs, r.Ours)
			}
			if r.Unit == "" {
				r.Unit = units[at].Unit
			}
			if _, ok := ratio(r.Unit, units[at].Unit); !ok {
				return fmt.Errorf("metrics[%d] (%s): unit %q cannot be converted to %q", i, r.Theirs, r.Unit, units[at].Unit)
			}
		}
		t.metric[r.Theirs] = append(t.metric[r.Theirs], r)
		if r.Derive == "" && r.Ours != "" && t.written[r.Ours] == nil {
			t.written[r.Ours] = r
		}
	}
	return nil
}

func (r *metricRow) check(std bool) error {
	switch {
	case r.Theirs == "":
		return errors.New("theirs and ours are both absent")
	case std && (r.Ours != r.Theirs || r.Unit == ""):
		return errors.New("a standard metric is itself and has a unit")
	case r.Derive != "" && r.Derive != "sum":
		return fmt.Errorf("derive %q is not \"sum\"", r.Derive)
	case r.Derive == "" && r.OursOnly != nil:
		return errors.New("ours_only needs derive")
	}
	return r.When.check()
}

// owns reports whether the key lies in a namespace of the vocabulary.
func (t *table) owns(key string) bool {
	for _, n := range t.Namespaces {
		if strings.HasPrefix(key, n) {
			return true
		}
	}
	return false
}
