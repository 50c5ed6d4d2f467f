package main

import (
	"fmt"
	"strconv"
	"strings"
)

// fileView is what the templates see of a file: Go names and finished texts.
type fileView struct {
	Source  string
	Package string
	Groups  []groupView
	Metrics []metricView
	Events  []nameView
	Spans   []nameView
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
	Doc         string
	BucketsDoc  string
	Instrument  string // Float64Histogram
	Description string
	Unit        string
	Buckets     string // 0.1, 0.5, 1; empty if there are none
}

// nameView is one constant.
type nameView struct {
	Go, Value, Doc string
}

func newView(f *File) fileView {
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
		view.Metrics = append(view.Metrics, newMetricView(f, m))
	}
	for _, e := range f.Events {
		name := f.eventName(e)
		view.Events = append(view.Events, nameView{name, e.Name, sentence(name + ": " + e.Brief)})
	}
	for _, s := range f.Spans {
		name := f.spanName(s)
		text := fmt.Sprintf("%s: %s; %s is %s", name, s.Brief, spanRoleKey, s.Role)
		view.Spans = append(view.Spans, nameView{name, s.Name, sentence(text)})
	}
	return view
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
			deprecation(a.Deprecated),
		),
		Doc: paragraphs(
			sentence(fmt.Sprintf("%s returns %s%s: %s", name, a.Key, in(a.Unit), a.Brief)),
			deprecation(a.Deprecated),
		),
	}
	for _, m := range a.Members {
		member := f.memberName(a, m)
		text := paragraphs(sentence(member+": "+m.Brief), deprecation(m.Deprecated))
		view.Members = append(view.Members, nameView{member, m.Value, text})
	}
	return view
}

func newMetricView(f *File, m Metric) metricView {
	name := f.metricName(m)
	buckets := make([]string, len(m.Buckets))
	for i, b := range m.Buckets {
		buckets[i] = strconv.FormatFloat(b, 'f', -1, 64)
	}
	return metricView{
		Go:          name,
		Name:        m.Name,
		Instrument:  metricTypes[m.Type] + instruments[m.Instrument],
		Description: m.Brief,
		Unit:        m.Unit,
		Buckets:     strings.Join(buckets, ", "),
		BucketsDoc: fmt.Sprintf("%sBuckets returns the bucket boundaries of %s%s. The slice is the caller's own.",
			name, m.Name, in(m.Unit)),
		Doc: paragraphs(
			sentence(fmt.Sprintf("New%s returns the instrument %s%s: %s", name, m.Name, in(m.Unit), m.Brief)),
			metricFacts(m),
			"Options in opts override the registry's. With a nil meter the instrument records nothing.",
			deprecation(m.Deprecated),
		),
	}
}
