package sampling

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// A Selector selects spans. A span is selected if it meets all conditions that are
// given; at least one must be.
type Selector struct { //nolint:recvcheck // a value, but for reading JSON into it
	// Name of the span; a * at its end stands for anything.
	Name string
	// Kind of the span.
	Kind trace.SpanKind
	// Scope is the name of the instrumentation scope.
	Scope string
	// Key of an attribute that the span must have.
	Key attribute.Key
	// Values of that attribute, any of which will do; numbers and booleans as Go
	// writes them.
	Values []string
	// AtLeast is how much the attribute, a number, must be at least; it is more
	// than zero.
	AtLeast float64
	// Event is the name of an event that the span must have.
	Event string
	// MinDuration is how long the span must have lasted.
	MinDuration time.Duration
	// Failed asks for the status Error.
	Failed bool
}

// String writes the conditions as text.
func (s Selector) String() string {
	var parts []string
	add := func(given bool, format string, args ...any) {
		if given {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	add(s.Name != "", "name=%s", s.Name)
	add(s.Kind != 0, "kind=%s", s.Kind)
	add(s.Scope != "", "scope=%s", s.Scope)
	add(s.Key != "" && len(s.Values) == 0 && s.AtLeast == 0, "%s", s.Key)
	add(len(s.Values) > 0, "%s=%s", s.Key, strings.Join(s.Values, "|"))
	add(s.AtLeast != 0, "%s>=%s", s.Key, number(s.AtLeast))
	add(s.Event != "", "event=%s", s.Event)
	add(s.MinDuration != 0, "duration>=%s", s.MinDuration)
	add(s.Failed, "failed")
	return "{" + strings.Join(parts, " ") + "}"
}

// selectorJSON is how a Selector is written.
type selectorJSON struct {
	Name        string        `json:"name,omitempty"`
	Kind        string        `json:"kind,omitempty"`
	Scope       string        `json:"scope,omitempty"`
	Key         attribute.Key `json:"key,omitempty"`
	Values      []string      `json:"values,omitempty"`
	AtLeast     float64       `json:"at_least,omitempty"`
	Event       string        `json:"event,omitempty"`
	MinDuration text          `json:"min_duration,omitzero"`
	Failed      bool          `json:"failed,omitempty"`
}

// MarshalJSON writes the conditions that are given: name, kind, scope, key, values,
// at_least, event, min_duration, failed.
func (s Selector) MarshalJSON() ([]byte, error) {
	w := selectorJSON{
		Name: s.Name, Scope: s.Scope, Key: s.Key, Values: s.Values, AtLeast: s.AtLeast,
		Event: s.Event, MinDuration: text(s.MinDuration), Failed: s.Failed,
	}
	if s.Kind != 0 {
		w.Kind = s.Kind.String()
	}
	return json.Marshal(w)
}

// UnmarshalJSON reads what [Selector.MarshalJSON] writes.
func (s *Selector) UnmarshalJSON(data []byte) error {
	var r selectorJSON
	if err := unmarshalStrict(data, &r); err != nil {
		return err
	}
	*s = Selector{
		Name: r.Name, Scope: r.Scope, Key: r.Key, Values: r.Values, AtLeast: r.AtLeast,
		Event: r.Event, MinDuration: time.Duration(r.MinDuration), Failed: r.Failed,
	}
	if r.Kind == "" {
		return nil
	}
	for kind := trace.SpanKindInternal; kind <= trace.SpanKindConsumer; kind++ {
		if kind.String() == r.Kind {
			s.Kind = kind
			return nil
		}
	}
	return fmt.Errorf("kind: %q is none of internal, server, client, producer, consumer", r.Kind)
}

// check reports to c what is wrong with s. At the start of a span less is known.
func (s Selector) check(c *compiler, atStart bool) {
	given := s.Name != "" || s.Kind != 0 || s.Key != ""
	late := s.Scope != "" || s.Event != "" || s.MinDuration != 0 || s.Failed
	switch {
	case !given && !late:
		c.failf("the selector has no condition and would select every span")
	case atStart && late:
		c.failf("scope, event, min_duration and failed are not known when a span starts")
	}
	if strings.Contains(strings.TrimSuffix(s.Name, "*"), "*") {
		c.failf("name is %q; a * may only stand at its end", s.Name)
	}
	if s.Kind < 0 || s.Kind > trace.SpanKindConsumer {
		c.failf("kind %d does not exist", s.Kind)
	}
	if s.Key == "" && (len(s.Values) > 0 || s.AtLeast != 0) {
		c.failf("values and at_least need the key of an attribute")
	}
	if len(s.Values) > 0 && s.AtLeast != 0 {
		c.failf("values and at_least exclude each other")
	}
	if s.AtLeast < 0 || math.IsNaN(s.AtLeast) || math.IsInf(s.AtLeast, 0) {
		c.failf("at_least is %v and must be a number greater than 0", s.AtLeast)
	}
	if s.MinDuration < 0 {
		c.failf("min_duration is %s and must not be negative", s.MinDuration)
	}
}

// selects reports whether the ended span meets the conditions. The cheapest come
// first.
func (s *Selector) selects(span sdktrace.ReadOnlySpan) bool {
	return (s.Kind == 0 || span.SpanKind() == s.Kind) &&
		(s.Name == "" || matches(s.Name, span.Name())) &&
		(!s.Failed || span.Status().Code == codes.Error) &&
		(s.MinDuration == 0 || span.EndTime().Sub(span.StartTime()) >= s.MinDuration) &&
		(s.Scope == "" || span.InstrumentationScope().Name == s.Scope) &&
		(s.Key == "" || s.has(span.Attributes())) &&
		(s.Event == "" || slices.ContainsFunc(span.Events(), func(e sdktrace.Event) bool { return e.Name == s.Event }))
}

// selectsStart is selects for a span about to start.
func (s *Selector) selectsStart(p *sdktrace.SamplingParameters) bool {
	return (s.Kind == 0 || trace.ValidateSpanKind(p.Kind) == s.Kind) &&
		(s.Name == "" || matches(s.Name, p.Name)) &&
		(s.Key == "" || s.has(p.Attributes))
}

func matches(pattern, name string) bool {
	if prefix, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(name, prefix)
	}
	return pattern == name
}

// has reports whether an attribute meets the conditions of Key, Values and AtLeast.
// The SDK keeps one attribute a key.
func (s *Selector) has(attrs []attribute.KeyValue) bool {
	for i := range attrs {
		if attrs[i].Key != s.Key {
			continue
		}
		switch {
		case len(s.Values) > 0:
			return slices.Contains(s.Values, textOf(attrs[i].Value))
		case s.AtLeast != 0:
			n, ok := numberOf(attrs[i].Value)
			return ok && n >= s.AtLeast
		default:
			return true
		}
	}
	return false
}

// textOf returns what a value is compared by.
func textOf(v attribute.Value) string {
	switch v.Type() {
	case attribute.STRING:
		return v.AsString()
	case attribute.BOOL:
		return strconv.FormatBool(v.AsBool())
	case attribute.INT64:
		return strconv.FormatInt(v.AsInt64(), 10)
	case attribute.FLOAT64:
		return number(v.AsFloat64())
	default:
		return v.String()
	}
}

// numberOf returns the value of a number.
func numberOf(v attribute.Value) (float64, bool) {
	switch v.Type() {
	case attribute.INT64:
		return float64(v.AsInt64()), true
	case attribute.FLOAT64:
		return v.AsFloat64(), true
	default:
		return 0, false
	}
}
