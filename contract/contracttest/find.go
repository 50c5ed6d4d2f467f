package contracttest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/genaitrace/otelgenai/capture"
)

// A Span is one span that was found, with assertions. They report to the test that
// looked it up.
type Span struct {
	t     TB
	o     *Observer
	got   *capture.Capture
	trace *capture.Trace
	span  *capture.Span
}

// Captured returns the span itself.
func (s *Span) Captured() *capture.Span { return s.span }

// Span returns the only span of a role of the contract or, where the contract has
// no such role, of a name. The test ends where there is none, or more than one.
func (o *Observer) Span(t TB, role string) *Span {
	t.Helper()
	found := o.find(t, role)
	if len(found.spans) != 1 {
		t.Fatalf("contracttest: want one span %s, found %d%s\n\n%s", found.what, len(found.spans), found.hint(), tree(found.got, nil))
		return &Span{}
	}
	return found.spans[0]
}

// Spans returns the spans of a role of the contract or, where the contract has no
// such role, of a name: by trace, and in each by start.
func (o *Observer) Spans(t TB, role string) []*Span {
	t.Helper()
	return o.find(t, role).spans
}

// NoSpan fails the test where there is a span of that role or name.
func (o *Observer) NoSpan(t TB, role string) {
	t.Helper()
	if found := o.find(t, role); len(found.spans) > 0 {
		t.Errorf("contracttest: want no span %s, found %d\n\n%s", found.what, len(found.spans), tree(found.got, nil))
	}
}

// Metric returns the only metric of that name. The test ends where there is none,
// or more than one, because several instrumentations record it.
func (o *Observer) Metric(t TB, name string) *capture.Metric {
	t.Helper()
	got := o.Capture(t)
	found := got.Metric(name)
	if len(found) == 1 {
		return found[0]
	}
	var names []string
	for _, m := range got.Metrics {
		names = append(names, m.Name)
	}
	t.Fatalf("contracttest: want one metric %s, found %d; %s\n\n%s", name, len(found), choice(name, distinct(names), "there are"), tree(got, nil))
	return &capture.Metric{}
}

// Log returns the only log record with that event name. The test ends where there
// is none, or more than one.
func (o *Observer) Log(t TB, event string) *capture.Log {
	t.Helper()
	got := o.Capture(t)
	var found []*capture.Log
	var names []string
	for _, l := range got.Logs {
		names = append(names, l.EventName)
		if l.EventName == event {
			found = append(found, l)
		}
	}
	if len(found) == 1 {
		return found[0]
	}
	t.Fatalf("contracttest: want one log record %s, found %d; %s\n\n%s", event, len(found), choice(event, distinct(names), "there are"), tree(got, nil))
	return &capture.Log{}
}

// search is the result of looking for spans.
type search struct {
	what  string // the role or the name that was looked for
	word  string
	got   *capture.Capture
	spans []*Span
	seen  []string // what could have been looked for
}

// find looks for a role of the contract or, where there is no such role, for a name.
func (o *Observer) find(t TB, word string) search {
	t.Helper()
	got := o.Capture(t)
	_, isRole := o.contract.Spec().Spans[word]
	found := search{what: fmt.Sprintf("named %q", word), word: word, got: got}
	if isRole {
		found.what = "of the role " + word
	}
	for _, tr := range got.Traces() {
		roles := o.contract.Roles(tr)
		for _, s := range tr.Spans {
			if isRole && slices.Contains(roles[s], word) || !isRole && s.Name == word {
				found.spans = append(found.spans, &Span{t, o, got, tr, s})
			}
			found.seen = append(found.seen, s.Name)
		}
	}
	if !isRole {
		found.seen = append(found.seen, slices.Collect(maps.Keys(o.contract.Spec().Spans))...)
	}
	return found
}

// hint names what was likely meant, where nothing was found.
func (s *search) hint() string {
	if len(s.spans) > 0 {
		return ""
	}
	return near(s.word, s.seen)
}

// Child returns the only child of a role of the contract or of a name. The test
// ends where there is none, or more than one.
func (s *Span) Child(role string) *Span {
	s.t.Helper()
	_, isRole := s.o.contract.Spec().Spans[role]
	roles := s.o.contract.Roles(s.trace)
	var found []*capture.Span
	var seen []string
	for c := range s.trace.Children(s.span) {
		seen = append(append(seen, c.Name), roles[c]...)
		if isRole && slices.Contains(roles[c], role) || !isRole && c.Name == role {
			found = append(found, c)
		}
	}
	if len(found) == 1 {
		return &Span{s.t, s.o, s.got, s.trace, found[0]}
	}
	s.t.Fatalf("contracttest: want one child %s of %s, found %d; %s\n\n%s",
		role, s.path(), len(found), choice(role, distinct(seen), "it has"), s.tree())
	return &Span{}
}

// Parent returns the parent. The test ends where it was not captured.
func (s *Span) Parent() *Span {
	s.t.Helper()
	if p := s.trace.Parent(s.span); p != nil {
		return &Span{s.t, s.o, s.got, s.trace, p}
	}
	s.t.Fatalf("contracttest: want a parent of %s, found none\n\n%s", s.path(), s.tree())
	return &Span{}
}

// path names the span and the line that started it.
func (s *Span) path() string {
	text := s.trace.Path(s.span)
	if line := s.span.Source.String(); line != "" {
		text += " (started at " + line + ")"
	}
	return text
}

// tree is the trace of the span, with everything that the span itself holds.
func (s *Span) tree() string {
	var b strings.Builder
	own := *s.span
	own.ParentID, own.Links = [8]byte{}, nil
	show := capture.TreeOptions{Attributes: []string{"*"}, Values: []string{"*"}, Events: true}
	_ = capture.NewTrace([]*capture.Span{&own}).WriteTree(&b, show) // a Builder does not fail
	return "The span:\n\n" + b.String() + "\n" + tree(&capture.Capture{Spans: s.trace.Spans}, nil)
}

func distinct(words []string) []string {
	words = slices.DeleteFunc(slices.Clone(words), func(w string) bool { return w == "" })
	slices.Sort(words)
	return slices.Compact(words)
}
