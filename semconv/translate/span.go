package translate

import (
	"context"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// NewSpanExporter returns an exporter that translates spans on their way to
// next. Errors of next pass unchanged. Without a Translator it only passes on.
func NewSpanExporter(next sdktrace.SpanExporter, tr *Translator) sdktrace.SpanExporter {
	return &spanExporter{next, tr}
}

type spanExporter struct {
	next sdktrace.SpanExporter
	tr   *Translator
}

// ExportSpans implements [sdktrace.SpanExporter].
func (e *spanExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	if e.next == nil {
		return nil
	}
	out := spans
	for i, s := range spans {
		translated, changed := e.tr.span(s)
		if !changed {
			continue
		}
		if &out[0] == &spans[0] {
			out = slices.Clone(spans)
		}
		out[i] = translated
	}
	return e.next.ExportSpans(ctx, out)
}

// Shutdown implements [sdktrace.SpanExporter].
func (e *spanExporter) Shutdown(ctx context.Context) error {
	if e.next == nil {
		return nil
	}
	return e.next.Shutdown(ctx)
}

// span shows another name and other attributes than the span it holds.
type span struct {
	sdktrace.ReadOnlySpan

	name   string
	attrs  []attribute.KeyValue
	events []sdktrace.Event
	links  []sdktrace.Link
}

func (s *span) Name() string                     { return s.name }
func (s *span) Attributes() []attribute.KeyValue { return s.attrs }
func (s *span) Events() []sdktrace.Event         { return s.events }
func (s *span) Links() []sdktrace.Link           { return s.links }

// Span translates the names of a finished span and of its events, and the
// attributes of the span, its events and its links. It returns the span itself where nothing changes.
// Resource, scope, kind, status and times stay as they are.
func (t *Translator) Span(s sdktrace.ReadOnlySpan) sdktrace.ReadOnlySpan {
	out, _ := t.span(s)
	return out
}

func (t *Translator) span(s sdktrace.ReadOnlySpan) (out sdktrace.ReadOnlySpan, changed bool) {
	if t == nil || s == nil || len(t.rules) == 0 {
		return s, false
	}
	before := s.Attributes()
	attrs := t.Attributes(before)
	name, renamed := t.spanName(s.Name(), attrs)
	events, newEvents := t.events(s.Events())
	links, newLinks := t.links(s.Links())
	if !renamed && !newEvents && !newLinks && sameList(before, attrs) {
		return s, false
	}
	return &span{s, name, attrs, events, links}, true
}

// sameList reports whether b is a itself.
func sameList(a, b []attribute.KeyValue) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

func (t *Translator) events(events []sdktrace.Event) (out []sdktrace.Event, changed bool) {
	out = events
	for i, e := range events {
		name, attrs := t.eventName(e), t.Attributes(e.Attributes)
		if name == e.Name && sameList(attrs, e.Attributes) {
			continue
		}
		if !changed {
			out, changed = slices.Clone(events), true
		}
		out[i].Name, out[i].Attributes = name, attrs
	}
	return out, changed
}

// eventRule says what becomes of the name of an event. The first rule whose
// condition holds applies.
type eventRule struct {
	when condition
	name string // empty where the target vocabulary has none
}

// compileEvents joins the names of events of the two vocabularies.
func (t *Translator) compileEvents() {
	t.eventNames = make(map[string][]eventRule)
	for _, src := range t.from.Events {
		at := slices.IndexFunc(t.to.Events, func(dst eventRow) bool {
			return src.Ours != "" && dst.Ours == src.Ours && dst.When == nil
		})
		r := eventRule{when: src.When}
		if at >= 0 {
			r.name = t.to.Events[at].Theirs
		}
		t.eventNames[src.Theirs] = append(t.eventNames[src.Theirs], r)
	}
}

// eventName returns the name in the target vocabulary. Where that has none the
// old one stays.
func (t *Translator) eventName(e sdktrace.Event) string {
	rules := t.eventNames[e.Name]
	if rules == nil && !t.from.owns(e.Name) {
		return e.Name
	}
	for _, r := range rules {
		if r.name != "" && r.when.holds(e.Attributes) {
			return r.name
		}
	}
	if !slices.ContainsFunc(t.to.Events, func(dst eventRow) bool { return dst.Theirs == e.Name }) {
		t.report.add(e.Name, NoTarget)
	}
	return e.Name
}

func (t *Translator) links(links []sdktrace.Link) (out []sdktrace.Link, changed bool) {
	out = links
	for i := range links {
		attrs := t.Attributes(links[i].Attributes)
		if sameList(attrs, links[i].Attributes) {
			continue
		}
		if !changed {
			out, changed = slices.Clone(links), true
		}
		out[i].Attributes = attrs
	}
	return out, changed
}

// namePart is text, or a key whose value stands in its place.
type namePart struct {
	text string
	key  bool
}

// parseName splits "{gen_ai.operation.name} {gen_ai.request.model}".
func parseName(name string) []namePart {
	var parts []namePart
	for name != "" {
		text, rest, open := strings.Cut(name, "{")
		key, after, closed := strings.Cut(rest, "}")
		if !open || !closed {
			return append(parts, namePart{text: name})
		}
		if text != "" {
			parts = append(parts, namePart{text: text})
		}
		parts = append(parts, namePart{text: key, key: true})
		name = after
	}
	return parts
}

// compileNames joins the span names of the two vocabularies.
func (t *Translator) compileNames() {
	t.names = make(map[string][]namePart)
	for _, src := range t.from.Spans {
		at := slices.IndexFunc(t.to.Spans, func(dst spanRow) bool { return dst.Ours == src.Ours })
		if at < 0 || t.to.Spans[at].Theirs == src.Theirs {
			continue
		}
		parts := parseName(t.to.Spans[at].Theirs)
		for i, p := range parts {
			if !p.key {
				continue
			}
			parts[i].text = "" // a key that the target cannot write is never found
			if rows := t.to.ours[p.text]; len(rows) > 0 {
				parts[i].text = rows[0].Theirs
			}
		}
		t.names[src.Theirs] = parts
	}
}

// spanName returns the name in the target vocabulary. Where an attribute that
// the new name needs is absent, the old one stays.
func (t *Translator) spanName(name string, attrs []attribute.KeyValue) (out string, renamed bool) {
	parts := t.names[name]
	if parts == nil {
		return name, false
	}
	var b strings.Builder
	for _, p := range parts {
		if !p.key {
			b.WriteString(p.text)
			continue
		}
		at := slices.IndexFunc(attrs, func(a attribute.KeyValue) bool { return string(a.Key) == p.text })
		if at < 0 {
			return name, false
		}
		b.WriteString(attrs[at].Value.String())
	}
	return b.String(), true
}
