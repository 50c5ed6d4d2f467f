package contracttest

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/attribute"

	"github.com/genaitrace/otelgenai/capture"
	"github.com/genaitrace/otelgenai/contract/spec"
)

// An Attribute is one attribute of a span, there or not. Its assertions fail the
// test and let it go on.
type Attribute struct {
	span  *Span
	key   attribute.Key
	value attribute.Value
	is    bool
}

// Attr returns an attribute of the span under exactly this key.
func (s *Span) Attr(key attribute.Key) *Attribute {
	v, ok := s.span.Attributes.Get(key)
	return &Attribute{s, key, v, ok}
}

// Present fails the test where the attribute is not there.
func (a *Attribute) Present() *Attribute {
	a.span.t.Helper()
	if !a.is {
		a.failf("is not there%s", near(string(a.key), keys(a.span.span.Attributes)))
	}
	return a
}

// Absent fails the test where the attribute is there.
func (a *Attribute) Absent() *Attribute {
	a.span.t.Helper()
	if a.is {
		a.failf("is %s, want none", describe(a.value))
	}
	return a
}

// Equal fails the test where the attribute is not there, or has another value or
// type. An int is what attribute.Int records, a float64 what attribute.Float64 does,
// and a type made of text counts as text.
func (a *Attribute) Equal(want any) *Attribute {
	a.span.t.Helper()
	v, ok := valueOf(want)
	switch {
	case !ok:
		a.span.t.Fatalf("contracttest: no attribute has a value of the type %T", want)
	case !a.is:
		a.Present()
	case a.value != v:
		a.failf("is %s, want %s", describe(a.value), describe(v))
	}
	return a
}

// Between fails the test where the attribute is not there, is no number, or lies
// outside the bounds, which are included.
func (a *Attribute) Between(low, high float64) *Attribute {
	a.span.t.Helper()
	n, ok := number(a.value)
	switch {
	case !a.is:
		a.Present()
	case !ok:
		a.failf("is %s, want a number", describe(a.value))
	case !(n >= low && n <= high): // so that NaN fails
		a.failf("is %s, want %v to %v", describe(a.value), low, high)
	}
	return a
}

func (a *Attribute) failf(format string, args ...any) {
	a.span.t.Helper()
	a.span.failf("the attribute "+string(a.key), format, args...)
}

// failf reports what is wrong with a part of the span.
func (s *Span) failf(part, format string, args ...any) {
	s.t.Helper()
	s.t.Errorf("contracttest: %s of %s %s\n\n%s", part, s.path(), fmt.Sprintf(format, args...), s.tree())
}

// Events are events of a span, by name. The assertions fail the test and let it go
// on.
type Events struct {
	span  *Span
	names []string
}

// Events returns the events of the span that have one of these names.
func (s *Span) Events(names ...string) *Events { return &Events{s, names} }

// Present fails the test where one of the names has no event.
func (e *Events) Present() *Events {
	e.span.t.Helper()
	var missing []string
	for _, name := range e.names {
		if !slices.ContainsFunc(e.span.span.Events, func(ev capture.Event) bool { return ev.Name == name }) {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		e.failf("are not all there: no %s", strings.Join(missing, ", "))
	}
	return e
}

// Absent fails the test where one of the names has an event.
func (e *Events) Absent() *Events {
	e.span.t.Helper()
	if found := e.found(); len(found) > 0 {
		e.failf("are there: %s", e.list(found))
	}
	return e
}

// InOrder fails the test where one of the names has no event, or where the events
// did not happen in the order of the names. A name may have several.
func (e *Events) InOrder() *Events {
	e.span.t.Helper()
	if slices.ContainsFunc(e.names, func(name string) bool {
		return !slices.ContainsFunc(e.span.span.Events, func(ev capture.Event) bool { return ev.Name == name })
	}) {
		return e.Present()
	}
	found := e.found()
	if !slices.IsSortedFunc(found, func(a, b capture.Event) int {
		return slices.Index(e.names, a.Name) - slices.Index(e.names, b.Name)
	}) {
		e.failf("happened in the order %s", e.list(found))
	}
	return e
}

// found returns the events by time; those of one time stay as they were added.
func (e *Events) found() []capture.Event {
	var found []capture.Event
	for _, ev := range e.span.span.Events {
		if slices.Contains(e.names, ev.Name) {
			found = append(found, ev)
		}
	}
	slices.SortStableFunc(found, func(a, b capture.Event) int { return a.Time.Compare(b.Time) })
	return found
}

func (e *Events) list(found []capture.Event) string {
	var texts []string
	for _, ev := range found {
		texts = append(texts, fmt.Sprintf("%s at %v", ev.Name, ev.Time.Sub(e.span.span.Start)))
	}
	return strings.Join(texts, ", ")
}

func (e *Events) failf(format string, args ...any) {
	e.span.t.Helper()
	e.span.failf("the events "+strings.Join(e.names, ", "), format, args...)
}

// valueOf returns what an attribute holds that was recorded from v.
func valueOf(v any) (attribute.Value, bool) {
	if value, ok := v.(attribute.Value); ok {
		return value, true
	}
	r := reflect.ValueOf(v)
	switch {
	case !r.IsValid():
		return attribute.Value{}, false
	case r.Kind() == reflect.Bool:
		return attribute.BoolValue(r.Bool()), true
	case r.Kind() == reflect.String:
		return attribute.StringValue(r.String()), true
	case r.CanInt():
		return attribute.Int64Value(r.Int()), true
	case r.CanFloat():
		return attribute.Float64Value(r.Float()), true
	case r.Kind() == reflect.Slice:
		return sliceOf(r)
	default:
		return attribute.Value{}, false
	}
}

func sliceOf(r reflect.Value) (attribute.Value, bool) {
	items := make([]attribute.Value, r.Len())
	for i := range items {
		items[i], _ = valueOf(r.Index(i).Interface())
	}
	switch r.Type().Elem().Kind() {
	case reflect.Bool:
		return attribute.BoolSliceValue(each(items, attribute.Value.AsBool)), true
	case reflect.String:
		return attribute.StringSliceValue(each(items, attribute.Value.AsString)), true
	case reflect.Int, reflect.Int64, reflect.Int32, reflect.Int16, reflect.Int8:
		return attribute.Int64SliceValue(each(items, attribute.Value.AsInt64)), true
	case reflect.Float64, reflect.Float32:
		return attribute.Float64SliceValue(each(items, attribute.Value.AsFloat64)), true
	default:
		return attribute.Value{}, false
	}
}

func each[T any](items []attribute.Value, as func(attribute.Value) T) []T {
	all := make([]T, len(items))
	for i, v := range items {
		all[i] = as(v)
	}
	return all
}

func number(v attribute.Value) (float64, bool) {
	switch v.Type() {
	case attribute.INT64:
		return float64(v.AsInt64()), true
	case attribute.FLOAT64:
		return v.AsFloat64(), true
	default:
		return 0, false
	}
}

func describe(v attribute.Value) string {
	kind := strings.ToLower(v.Type().String())
	if v.Type() == attribute.STRING {
		return fmt.Sprintf("%q (%s)", v.AsString(), kind)
	}
	return fmt.Sprintf("%s (%s)", v.String(), kind)
}

func keys(attributes capture.Attributes) []string {
	all := make([]string, 0, len(attributes))
	for _, kv := range attributes {
		all = append(all, string(kv.Key))
	}
	return all
}

// near names what was likely meant.
func near(word string, of []string) string {
	if meant := spec.Nearest(word, of); meant != "" {
		return fmt.Sprintf("; did you mean %s?", meant)
	}
	return ""
}
