package main

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// spanRoleKey is the enum whose members a span's role is one of.
const spanRoleKey = "genai.span.role"

// operationKey is the enum whose members a span's operations are.
const operationKey = "gen_ai.operation.name"

// word is one part of a name: lower case, with single underscores inside.
const word = `[a-z][a-z0-9]*(_[a-z0-9]+)*`

var (
	keyForm     = regexp.MustCompile(`^` + word + `(\.` + word + `)+$`)
	nameForm    = regexp.MustCompile(`^` + word + `(\.` + word + `)*$`)
	packageForm = regexp.MustCompile(`^[a-z][a-z0-9]*$`)
)

// levels are how firmly a convention asks for something.
var levels = []string{"required", "conditional", "recommended", "opt_in"}

// spanKinds maps the kind of a span to the constant of package trace.
var spanKinds = map[string]string{
	"client":   "trace.SpanKindClient",
	"server":   "trace.SpanKindServer",
	"internal": "trace.SpanKindInternal",
	"producer": "trace.SpanKindProducer",
	"consumer": "trace.SpanKindConsumer",
}

// unseenParts are what may be unknown of the pinned release.
var unseenParts = []string{"type", "name", "attributes", "buckets", "level", "severity"}

// stabilities are the levels that the conventions use; a house key has none.
var stabilities = []string{"", "development", "alpha", "beta", "release_candidate", "stable"}

// checker collects what is wrong with a registry, so that one run shows all.
type checker struct {
	keys    map[string]declared // every attribute, by key
	spans   map[string]Span     // every span, by type
	metrics map[string]Metric   // every metric, by name
	events  map[string]Event    // every event, by name
	seen    map[string]string   // kind and name → file and line of the first
	errs    []error
}

// declared is an attribute and the file that declares it.
type declared struct {
	Attribute
	file *File
}

func validate(files []*File) error {
	c := &checker{
		keys:    map[string]declared{},
		spans:   map[string]Span{},
		metrics: map[string]Metric{},
		events:  map[string]Event{},
		seen:    map[string]string{},
	}
	for _, f := range files {
		for i, a := range f.Attributes {
			c.once(f, fmt.Sprintf("attributes[%d].key", i), "key", a.Key)
			c.keys[a.Key] = declared{a, f}
		}
		for i, s := range f.Spans {
			c.once(f, fmt.Sprintf("spans[%d].type", i), "span", s.Type)
			c.spans[s.Type] = s
		}
		for i, m := range f.Metrics {
			c.once(f, fmt.Sprintf("metrics[%d].name", i), "metric", m.Name)
			c.metrics[m.Name] = m
		}
		for i, e := range f.Events {
			c.once(f, fmt.Sprintf("events[%d].name", i), "event", e.Name)
			c.events[e.Name] = e
		}
	}
	for _, f := range files {
		c.file(f)
		c.owners(f, files)
	}
	if len(c.errs) == 0 { // one thing said twice is not also a clash of Go names
		for _, f := range files {
			c.goNames(f)
		}
	}
	return errors.Join(c.errs...)
}

// fail notes that the value at path is wrong.
func (c *checker) failf(f *File, path, format string, args ...any) {
	c.errs = append(c.errs, fmt.Errorf("%s:%d: %s: %s",
		f.name, f.line(path), path, fmt.Sprintf(format, args...)))
}

// once reports whether nothing of this kind and name was declared before, and
// notes an error if something was.
func (c *checker) once(f *File, path, kind, name string) bool {
	id := kind + " " + name
	if before, ok := c.seen[id]; ok {
		c.failf(f, path, "%s is already declared at %s", id, before)
		return false
	}
	c.seen[id] = fmt.Sprintf("%s:%d", f.name, f.line(path))
	return true
}

// key checks the spelling of an attribute or a metric.
func (c *checker) key(f *File, path, key string) {
	if !keyForm.MatchString(key) {
		c.failf(f, path, "%q is not a namespace and lower case words, joined by dots", key)
	}
}

// name checks the spelling of an event or a span.
func (c *checker) name(f *File, path, name string) {
	if !nameForm.MatchString(name) {
		c.failf(f, path, "%q is not lower case words joined by dots", name)
	}
}

func (c *checker) stability(f *File, path, level string) {
	if !slices.Contains(stabilities, level) {
		c.failf(f, path, "unknown stability %q", level)
	}
}

func (c *checker) required(f *File, path, value string) {
	if strings.TrimSpace(value) == "" {
		c.failf(f, path, "is missing")
	}
}

func (c *checker) file(f *File) {
	if f.Package != "" {
		if !packageForm.MatchString(f.Package) {
			c.failf(f, "package", "%q is not a Go package name", f.Package)
		}
		c.once(f, "package", "package", f.Package)
	}
	for i, a := range f.Attributes {
		c.attribute(f, fmt.Sprintf("attributes[%d]", i), a)
	}
	for i, a := range f.Aliases {
		c.alias(f, fmt.Sprintf("aliases[%d]", i), a)
	}
	for i, m := range f.Metrics {
		c.metric(f, fmt.Sprintf("metrics[%d]", i), m)
	}
	for i, e := range f.Events {
		c.event(f, fmt.Sprintf("events[%d]", i), e)
	}
	for i, e := range f.Entities {
		c.entity(f, fmt.Sprintf("entities[%d]", i), e)
	}
	for i, s := range f.Spans {
		c.span(f, fmt.Sprintf("spans[%d]", i), s)
	}
	for i, h := range f.Headers {
		path := fmt.Sprintf("headers[%d]", i)
		c.required(f, path+".name", h.Name)
		c.required(f, path+".of", h.Of)
		c.required(f, path+".brief", h.Brief)
		c.once(f, path+".name", "header", h.Name)
	}
	for i, s := range f.Settled {
		path := fmt.Sprintf("settled[%d]", i)
		c.required(f, path+".name", s.Name)
		c.required(f, path+".kind", s.Kind)
		c.required(f, path+".as", s.As)
		c.once(f, path+".name", "settled word", s.Name)
		for _, kind := range []string{"key", "span", "metric", "event", "header"} {
			if at, named := c.seen[kind+" "+s.Name]; named {
				c.failf(f, path+".name", "%s is a %s, declared at %s", s.Name, kind, at)
			}
		}
	}
}

func (c *checker) attribute(f *File, path string, a Attribute) {
	c.key(f, path+".key", a.Key)
	c.required(f, path+".brief", a.Brief)
	c.stability(f, path+".stability", a.Stability)
	t, ok := attributeTypes[a.Type]
	if !ok {
		c.failf(f, path+".type", "unknown type %q, want one of %s", a.Type, list(attributeTypes))
		return
	}
	if a.Unit != "" && !t.number {
		c.failf(f, path+".unit", "a unit needs a number, %s is of type %s", a.Key, a.Type)
	}
	for i, example := range a.Examples {
		if !t.accepts(example) {
			c.failf(f, fmt.Sprintf("%s.examples[%d]", path, i), "%v is not of type %s", example, a.Type)
		}
	}
	c.members(f, path, a)
	if a.Official != "" {
		c.twin(f, path+".official", a)
	}
	if a.Replacement != "" {
		if _, ok := c.keys[a.Replacement]; !ok {
			c.failf(f, path+".replacement", "%s is not a key of the registry", a.Replacement)
		}
	}
	c.deprecated(f, path, a.Deprecated, a.Replacement)
}

// deprecated checks that a replacement comes with its reason.
func (c *checker) deprecated(f *File, path, reason, replacement string) {
	if replacement != "" {
		c.required(f, path+".deprecated", reason)
	}
}

func (c *checker) alias(f *File, path string, a Alias) {
	c.required(f, path+".name", a.Name)
	var (
		unit   string
		exists bool
	)
	kind := a.kind()
	switch kind {
	case "attribute":
		var target declared
		target, exists = c.keys[a.Of]
		unit = target.Unit
		c.once(f, path+".name", "key", a.Name)
		if _, ok := attributeTypes[a.Type]; a.Type != "" && !ok {
			c.failf(f, path+".type", "unknown type %q, want one of %s", a.Type, list(attributeTypes))
		}
	case "metric":
		var target Metric
		target, exists = c.metrics[a.Of]
		unit = target.Unit
		c.once(f, path+".name", kind, a.Name)
	case "span":
		_, exists = c.spans[a.Of]
		c.once(f, path+".name", kind, a.Name)
	case "event":
		_, exists = c.events[a.Of]
		c.once(f, path+".name", kind, a.Name)
	default:
		c.failf(f, path+".kind", "unknown kind %q, want one of attribute, event, metric, span", a.Kind)
		return
	}
	switch {
	case !exists:
		c.failf(f, path+".of", "%s is not declared", a.Of)
	case a.Keep && (kind != "attribute" || a.Factor != 0 || len(a.Values) > 0 || a.Note == ""):
		c.failf(f, path+".keep", "is for an attribute without factor and values, whose note says why")
	case a.Keep:
	case a.Unit != "" && a.Unit != unit && a.Factor == 0:
		c.failf(f, path+".factor", "is missing: %s is in %s, %s in %s", a.Name, a.Unit, a.Of, unit)
	case a.Factor != 0 && (a.Unit == "" || a.Unit == unit):
		c.failf(f, path+".factor", "%s and %s have one unit", a.Name, a.Of)
	}
}

func (c *checker) members(f *File, path string, a Attribute) {
	if a.Type != "enum" {
		if len(a.Members) > 0 {
			c.failf(f, path+".members", "only an enum has members, %s is of type %s", a.Key, a.Type)
		}
		return
	}
	if len(a.Members) == 0 {
		c.failf(f, path+".members", "enum %s has no members", a.Key)
	}
	for i, m := range a.Members {
		at := fmt.Sprintf("%s.members[%d]", path, i)
		c.required(f, at+".value", m.Value)
		c.required(f, at+".brief", m.Brief)
		c.once(f, at+".value", "member", a.Key+"="+m.Value)
	}
}

// twin checks that an official twin exists and can hold the same values.
func (c *checker) twin(f *File, path string, a Attribute) {
	other, ok := c.keys[a.Official]
	switch {
	case !ok || other.file == f:
		c.failf(f, path, "%s is not a key of another file", a.Official)
	case a.Unit != other.Unit && (a.Unit != "ms" || other.Unit != "s"):
		c.failf(f, path, "%s is in %q, %s in %q, and nothing converts between them", a.Key, a.Unit, other.Key, other.Unit)
	case attributeTypes[a.Type].kind != attributeTypes[other.Type].kind:
		c.failf(f, path, "%s is of type %s, %s of type %s", a.Key, a.Type, other.Key, other.Type)
	}
}

func (c *checker) metric(f *File, path string, m Metric) {
	c.key(f, path+".name", m.Name)
	c.stability(f, path+".stability", m.Stability)
	c.required(f, path+".brief", m.Brief)
	c.required(f, path+".unit", m.Unit)
	if _, ok := instruments[m.Instrument]; !ok {
		c.failf(f, path+".instrument", "unknown instrument %q, want one of %s", m.Instrument, list(instruments))
	}
	if _, ok := metricTypes[m.Type]; !ok {
		c.failf(f, path+".type", "unknown type %q, want one of %s", m.Type, list(metricTypes))
	}
	if len(m.Buckets) > 0 && m.Instrument != "histogram" {
		c.failf(f, path+".buckets", "only a histogram has buckets, %s is a %s", m.Name, m.Instrument)
	}
	for i := 1; i < len(m.Buckets); i++ {
		if m.Buckets[i] <= m.Buckets[i-1] {
			c.failf(f, path+".buckets", "boundary %v does not rise above %v", m.Buckets[i], m.Buckets[i-1])
		}
	}
	c.refs(f, path, m.Attributes)
	c.unseen(f, path, m.Unseen)
	if _, ok := c.metrics[m.Replacement]; m.Replacement != "" && !ok {
		c.failf(f, path+".replacement", "%s is not a metric of the registry", m.Replacement)
	}
	c.deprecated(f, path, m.Deprecated, m.Replacement)
}

func (c *checker) event(f *File, path string, e Event) {
	c.name(f, path+".name", e.Name)
	c.required(f, path+".brief", e.Brief)
	c.stability(f, path+".stability", e.Stability)
	if e.Level != "" && !slices.Contains(levels, e.Level) {
		c.failf(f, path+".level", "unknown level %q, want one of %s", e.Level, strings.Join(levels, ", "))
	}
	if _, ok := c.spans[e.Like]; e.Like != "" && !ok {
		c.failf(f, path+".like", "%s is not a span of the registry", e.Like)
	}
	c.refs(f, path, e.Attributes)
	c.unseen(f, path, e.Unseen)
	if _, ok := c.events[e.Replacement]; e.Replacement != "" && !ok {
		c.failf(f, path+".replacement", "%s is not an event of the registry", e.Replacement)
	}
	c.deprecated(f, path, e.Deprecated, e.Replacement)
}

func (c *checker) entity(f *File, path string, e Entity) {
	c.key(f, path+".type", e.Type)
	c.once(f, path+".type", "entity", e.Type)
	c.required(f, path+".brief", e.Brief)
	for list, keys := range map[string][]string{"identity": e.Identity, "description": e.Description} {
		for i, key := range keys {
			c.declared(f, fmt.Sprintf("%s.%s[%d]", path, list, i), key)
		}
	}
}

func (c *checker) span(f *File, path string, s Span) {
	c.name(f, path+".type", s.Type)
	c.required(f, path+".brief", s.Brief)
	c.stability(f, path+".stability", s.Stability)
	c.refs(f, path, s.Attributes)
	c.unseen(f, path, s.Unseen)
	if _, ok := c.spans[s.Replacement]; s.Replacement != "" && !ok {
		c.failf(f, path+".replacement", "%s is not a span of the registry", s.Replacement)
	}
	c.deprecated(f, path, s.Deprecated, s.Replacement)
	switch {
	case s.Refines != "":
		if base, ok := c.spans[s.Refines]; !ok || base.Refines != "" {
			c.failf(f, path+".refines", "%s is not a span of the registry that stands by itself", s.Refines)
		}
	case s.Deprecated == "":
		if _, ok := spanKinds[s.Kind]; !ok {
			c.failf(f, path+".kind", "unknown kind %q, want one of %s", s.Kind, list(spanKinds))
		}
		if !c.keys[spanRoleKey].hasMember(s.Role) {
			c.failf(f, path+".role", "%q is not a member of %s", s.Role, spanRoleKey)
		}
	}
	for i, operation := range s.Operations {
		if !c.keys[operationKey].hasMember(operation) {
			c.failf(f, fmt.Sprintf("%s.operations[%d]", path, i), "%q is not a member of %s", operation, operationKey)
		}
	}
}

// refs checks the attributes that a span, a metric or an event carries.
func (c *checker) refs(f *File, path string, refs []Ref) {
	seen := map[string]bool{}
	for i, r := range refs {
		at := fmt.Sprintf("%s.attributes[%d]", path, i)
		c.declared(f, at+".key", r.Key)
		if seen[r.Key] {
			c.failf(f, at+".key", "%s stands here twice", r.Key)
		}
		seen[r.Key] = true
		if !slices.Contains(levels, r.Level) {
			c.failf(f, at+".level", "unknown level %q, want one of %s", r.Level, strings.Join(levels, ", "))
		}
		if (r.If == "") != (r.When == "") {
			c.failf(f, at, "if and when belong together: one for people, one for checkers")
		}
		if r.Level == "conditional" && r.When == "" {
			c.failf(f, at+".when", "is missing: %s is conditional", r.Key)
		}
		terms, err := parseWhen(r.When)
		if err != nil {
			c.failf(f, at+".when", "%v", err)
		}
		for _, t := range terms {
			if t.key != "" {
				c.declared(f, at+".when", t.key)
			}
		}
	}
}

// declared checks that key is an attribute of the registry.
func (c *checker) declared(f *File, path, key string) {
	if _, ok := c.keys[key]; !ok {
		c.failf(f, path, "%s is not a key of the registry", key)
	}
}

func (c *checker) unseen(f *File, path string, parts []string) {
	for i, part := range parts {
		if !slices.Contains(unseenParts, part) {
			c.failf(f, fmt.Sprintf("%s.unseen[%d]", path, i), "unknown part %q, want one of %s", part, strings.Join(unseenParts, ", "))
		}
	}
}

// list names the keys of a table, for an error message.
func list[V any](table map[string]V) string {
	return strings.Join(sortedKeys(table), ", ")
}

func sortedKeys[V any](table map[string]V) []string {
	return slices.Sorted(maps.Keys(table))
}
