package main

import (
	"fmt"
	"go/token"
	"slices"
	"strings"
)

// owns reports whether name may be declared in f as far as its namespaces say.
func (f *File) owns(name string) bool {
	return f.Strip == "" || slices.ContainsFunc(append(f.Owns, f.Strip), func(namespace string) bool {
		return strings.HasPrefix(name, namespace+".")
	})
}

// owners checks that each key and metric of f stands in the file of its
// namespace.
func (c *checker) owners(f *File, files []*File) {
	check := func(path, name string) {
		if !f.owns(name) {
			c.failf(f, path, "%s is outside the file's namespace %s", name, f.Strip)
			return
		}
		for _, other := range files {
			if other != f && other.Strip != "" && other.owns(name) {
				c.failf(f, path, "%s belongs to %s", name, other.name)
			}
		}
	}
	for i, a := range f.Attributes {
		check(fmt.Sprintf("attributes[%d].key", i), a.Key)
	}
	for i, m := range f.Metrics {
		check(fmt.Sprintf("metrics[%d].name", i), m.Name)
	}
}

// goNames checks the exported identifiers that come from f.
func (c *checker) goNames(f *File) {
	if f.Package == "" {
		return
	}
	for i, a := range f.Attributes {
		path, name := fmt.Sprintf("attributes[%d]", i), f.attributeName(a)
		names := []string{name, name + "Key"}
		if a.Type == "enum" {
			names = append(names, name+"Attr")
		}
		c.declare(f, path, names...)
		for j, m := range a.Members {
			c.declare(f, fmt.Sprintf("%s.members[%d]", path, j), f.memberName(a, m))
		}
	}
	for i, m := range f.Metrics {
		name := f.metricName(m)
		c.declare(f, fmt.Sprintf("metrics[%d]", i), name, "New"+name, name+"Name", name+"Buckets")
	}
	for i, e := range f.Events {
		c.declare(f, fmt.Sprintf("events[%d]", i), f.eventName(e))
	}
	for i, e := range f.Entities {
		c.declare(f, fmt.Sprintf("entities[%d]", i), f.entityName(e))
	}
	for i, s := range f.Spans {
		c.declare(f, fmt.Sprintf("spans[%d]", i), f.spanName(s))
	}
	for i, h := range f.Headers {
		c.declare(f, fmt.Sprintf("headers[%d]", i), f.headerName(h))
	}
}

// declare checks that the names of one entry are exported and not taken. It
// stops at the first that is wrong, since the others are wrong with it.
func (c *checker) declare(f *File, path string, names ...string) {
	for _, name := range names {
		if !token.IsIdentifier(name) || !token.IsExported(name) {
			c.failf(f, path, "%q is not an exported Go name, give one with go", name)
			return
		}
		if !c.once(f, path, "Go name", f.Package+"."+name) {
			return
		}
	}
}
