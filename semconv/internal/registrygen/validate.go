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

// word is one part of a name: lower case, with single underscores inside.
const word = `[a-z][a-z0-9]*(_[a-z0-9]+)*`

var (
	keyForm     = regexp.MustCompile(`^` + word + `(\.` + word + `)+$`)
	nameForm    = regexp.MustCompile(`^` + word + `(\.` + word + `)*$`)
	packageForm = regexp.MustCompile(`^[a-z][a-z0-9]*$`)
)

// stabilities are the levels that the conventions use; a house key has none.
var stabilities = []string{"", "development", "alpha", "beta", "release_candidate", "stable"}

// checker collects what is wrong with a registry, so that one run shows all.
type checker struct {
	keys     map[string]declared // every attribute, by key
	external map[string]bool     // every external key
	seen     map[string]string   // kind and name → file and line of the first
	errs     []error
}

// declared is an attribute and the file that declares it.
type declared struct {
	Attribute
	file *File
}

func validate(files []*File) error {
	c := &checker{
		keys:     map[string]declared{},
		external: map[string]bool{},
		seen:     map[string]string{},
	}
	for _, f := range files {
		for i, a := range f.Attributes {
			c.once(f, fmt.Sprintf("attributes[%d].key", i), "key", a.Key)
			c.keys[a.Key] = declared{a, f}
		}
		for _, key := range f.External {
			c.external[key] = true
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
	if !packageForm.MatchString(f.Package) {
		c.failf(f, "package", "%q is not a Go package name", f.Package)
	}
	c.once(f, "package", "package", f.Package)
	for i, a := range f.Attributes {
		c.attribute(f, fmt.Sprintf("attributes[%d]", i), a)
	}
	for i, m := range f.Metrics {
		c.metric(f, fmt.Sprintf("metrics[%d]", i), m)
	}
	for i, e := range f.Events {
		path := fmt.Sprintf("events[%d]", i)
		c.name(f, path+".name", e.Name)
		c.once(f, path+".name", "event", e.Name)
		c.required(f, path+".brief", e.Brief)
	}
	for i, s := range f.Spans {
		path := fmt.Sprintf("spans[%d]", i)
		c.name(f, path+".name", s.Name)
		c.once(f, path+".name", "span", s.Name)
		c.required(f, path+".brief", s.Brief)
		if !c.keys[spanRoleKey].hasMember(s.Role) {
			c.failf(f, path+".role", "%q is not a member of %s", s.Role, spanRoleKey)
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
	case attributeTypes[a.Type].kind != attributeTypes[other.Type].kind:
		c.failf(f, path, "%s is of type %s, %s of type %s", a.Key, a.Type, other.Key, other.Type)
	}
}

func (c *checker) metric(f *File, path string, m Metric) {
	c.key(f, path+".name", m.Name)
	c.once(f, path+".name", "metric", m.Name)
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
	for i, key := range m.Attributes {
		if _, ok := c.keys[key]; !ok && !c.external[key] {
			c.failf(f, fmt.Sprintf("%s.attributes[%d]", path, i), "%s is neither a key of the registry nor external", key)
		}
	}
}

// list names the keys of a table, for an error message.
func list[V any](table map[string]V) string {
	return strings.Join(slices.Sorted(maps.Keys(table)), ", ")
}
