package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// fileView is what the templates see of a file: Go names and finished texts.
type fileView struct {
	Source  string
	Package string
	Groups  []groupView
	Metrics []metricView
	Names   []nameGroup
}

// groupView is a run of attributes under one namespace.
type groupView struct {
	Namespace  string
	Attributes []attributeView
}

type attributeView struct {
	Go, Key     string
	KeyDoc, Doc string
	Param, Expr string
	Members     []nameView
}

type metricView struct {
	Go, Name    string
	TypeDoc     string
	Doc         string
	BucketsDoc  string
	Instrument  string // Float64Histogram
	Number      string // float64
	Verb        string // Record or Add
	RecordDoc   string
	Description string
	Unit        string
	Buckets     string // 0.1, 0.5, 1; empty if there are none
	Required    []metricAttribute
	Optional    []metricAttribute
}

// metricAttribute is an attribute as a parameter or a helper of a metric.
type metricAttribute struct {
	Helper string // AttrRequestModel
	Arg    string // requestModel
	Type   string // string
	Value  string // RequestModel(requestModel), or the same without a constructor
	Doc    string
}

// nameGroup is a run of constants under one comment.
type nameGroup struct {
	Doc   string
	Names []nameView
}

// nameView is one constant.
type nameView struct {
	Go, Value, Doc string
}

func newView(f *File, files []*File) fileView {
	view := fileView{Source: f.name, Package: f.Package}
	groups := map[string]int{}
	for _, a := range f.Attributes {
		namespace := f.namespace(a.Key)
		i, ok := groups[namespace]
		if !ok {
			i = len(view.Groups)
			groups[namespace] = i
			view.Groups = append(view.Groups, groupView{Namespace: namespace})
		}
		view.Groups[i].Attributes = append(view.Groups[i].Attributes, newAttributeView(f, a))
	}
	for _, m := range f.Metrics {
		view.Metrics = append(view.Metrics, newMetricView(f, files, m))
	}
	view.Names = names(f)
	return view
}

// names are the constants for everything that has a name and no key.
func names(f *File) []nameGroup {
	var events, entities, spans, headers []nameView
	for _, e := range f.Events {
		name := f.eventName(e)
		text := paragraphs(sentence(name+": "+e.Brief), deprecation(e.Deprecated, e.Replacement))
		events = append(events, nameView{name, e.Name, text})
	}
	for _, e := range f.Entities {
		name := f.entityName(e)
		entities = append(entities, nameView{name, e.Type, sentence(name + ": " + e.Brief)})
	}
	for _, s := range f.Spans {
		name := f.spanName(s)
		text := name + ": " + s.Brief
		if s.Role != "" {
			text += fmt.Sprintf("; %s is %s", spanRoleKey, s.Role)
		}
		text = paragraphs(sentence(text), unseen(s.Unseen), deprecation(s.Deprecated, s.Replacement))
		spans = append(spans, nameView{name, s.Type, text})
	}
	for _, h := range f.Headers {
		name := f.headerName(h)
		text := name + ": " + h.Brief
		if h.Of != h.Name {
			text += "; stands for " + h.Of
		}
		headers = append(headers, nameView{name, h.Name, sentence(text)})
	}
	var groups []nameGroup
	for _, g := range []nameGroup{
		{"Names of events.", events},
		{"Types of entities.", entities},
		{"Types of spans; the type of a span of the house is its name.", spans},
		{"Names of headers.", headers},
	} {
		if len(g.Names) > 0 {
			groups = append(groups, g)
		}
	}
	return groups
}

// namespace is the first part of key that is the file's own.
func (f *File) namespace(key string) string {
	first, _, _ := strings.Cut(f.stripped(key), ".")
	if f.Strip == "" {
		return first
	}
	return f.Strip + "." + first
}

func newAttributeView(f *File, a Attribute) attributeView {
	name, t := f.attributeName(a), attributeTypes[a.Type]
	view := attributeView{
		Go:    name,
		Key:   a.Key,
		Param: strings.ReplaceAll(t.param, "%s", name),
		Expr:  strings.ReplaceAll(t.expr, "%s", name),
		KeyDoc: paragraphs(
			sentence(fmt.Sprintf("%sKey is %s: %s", name, a.Key, a.Brief)),
			attributeFacts(a),
			note(a.Note),
			deprecation(a.Deprecated, a.Replacement),
		),
		Doc: paragraphs(
			sentence(fmt.Sprintf("%s returns %s%s: %s", name, a.Key, in(a.Unit), a.Brief)),
			deprecation(a.Deprecated, a.Replacement),
		),
	}
	for _, m := range a.Members {
		member := f.memberName(a, m)
		text := paragraphs(sentence(member+": "+m.Brief), deprecation(m.Deprecated, ""))
		view.Members = append(view.Members, nameView{member, m.Value, text})
	}
	return view
}

func newMetricView(f *File, files []*File, m Metric) metricView {
	name := f.metricName(m)
	buckets := make([]string, len(m.Buckets))
	for i, b := range m.Buckets {
		buckets[i] = strconv.FormatFloat(b, 'f', -1, 64)
	}
	view := metricView{
		Go:          name,
		Name:        m.Name,
		Instrument:  metricTypes[m.Type] + instruments[m.Instrument],
		Number:      strings.ToLower(metricTypes[m.Type]),
		Verb:        "Record",
		Description: m.Brief,
		Unit:        m.Unit,
		Buckets:     strings.Join(buckets, ", "),
		BucketsDoc: fmt.Sprintf("%sBuckets returns the bucket boundaries of %s%s. The slice is the caller's own.",
			name, m.Name, in(m.Unit)),
		TypeDoc: paragraphs(
			sentence(fmt.Sprintf("%s is the instrument %s%s: %s", name, m.Name, in(m.Unit), m.Brief)),
			metricFacts(m),
			unseen(m.Unseen),
			"The zero value records nothing.",
			deprecation(m.Deprecated, m.Replacement),
		),
		Doc: paragraphs(
			fmt.Sprintf("New%s makes the instrument. Options in opts override the registry's. With a nil meter the instrument records nothing.", name),
			deprecation(m.Deprecated, m.Replacement),
		),
	}
	what := "records value"
	if strings.HasSuffix(m.Instrument, "counter") {
		view.Verb, what = "Add", "adds value"
	}
	for _, ref := range m.Attributes {
		a := newMetricAttribute(f, files, ref)
		if ref.Level == "required" {
			view.Required = append(view.Required, a)
		} else {
			view.Optional = append(view.Optional, a)
		}
	}
	view.RecordDoc = fmt.Sprintf("%s %s with the attributes given.", view.Verb, what)
	if len(view.Required) > 0 {
		view.RecordDoc = fmt.Sprintf("%s %s with the required attributes and attrs.", view.Verb, what)
	}
	return view
}

// newMetricAttribute uses the constructor where the key is of the package's
// own, and plain types where it is not.
func newMetricAttribute(f *File, files []*File, ref Ref) metricAttribute {
	home, a := find(files, ref.Key)
	name := camel(ref.Key)
	view := metricAttribute{Arg: "value"}
	if ref.Level == "required" {
		view.Arg = parameter(ref.Key)
	}
	t := attributeTypes[a.Type]
	if home == f {
		name = f.attributeName(a)
		_, view.Type, _ = strings.Cut(strings.ReplaceAll(t.param, "%s", name), " ")
		view.Value = fmt.Sprintf("%s(%s)", name, view.Arg)
	} else {
		_, view.Type, _ = strings.Cut(attributeTypes[t.kind].param, " ")
		expr := strings.ReplaceAll(attributeTypes[t.kind].expr, "%sKey", fmt.Sprintf("attribute.Key(%q)", ref.Key))
		view.Value = strings.ReplaceAll(expr, "(v)", "("+view.Arg+")")
	}
	view.Helper = "Attr" + name
	text := fmt.Sprintf("%s returns %s, an optional attribute: %s", view.Helper, ref.Key, a.Brief)
	if ref.If != "" {
		text = fmt.Sprintf("%s returns %s, wanted where %s: %s", view.Helper, ref.Key, ref.If, a.Brief)
	}
	view.Doc = sentence(text)
	return view
}

// parameter is the name of a function's parameter for a key: operationName for
// gen_ai.operation.name.
func parameter(key string) string {
	first, rest, _ := strings.Cut(key, ".")
	if slices.Contains([]string{"gen_ai", "genai", "mcp"}, first) {
		key = rest
	}
	words := strings.FieldsFunc(key, isSeparator)
	return words[0] + camel(strings.Join(words[1:], "_"))
}

// find returns the attribute of a key and the file that declares it.
func find(files []*File, key string) (*File, Attribute) {
	for _, f := range files {
		for _, a := range f.Attributes {
			if a.Key == key {
				return f, a
			}
		}
	}
	return nil, Attribute{}
}
