package contract

import (
	"fmt"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/capture"
	"github.com/genaitrace/otelgenai/contract/spec"
)

// condition is a compiled spec.Condition. A nil condition always holds.
type condition struct {
	kinds            uint8 // a bit for each allowed kind; 0 allows all
	statuses         uint8 // the same for codes
	names            globs
	facts            []factTest
	has, lacks       []keyID
	events           globs
	scopes, services globs
	parent, within   roleSet
	contains         roleSet
	orphan           *bool
	any, all         []*condition
	not              *condition
}

// factTest says which values a fact may have.
type factTest struct {
	id     keyID
	values []valueTest
}

func (c *condition) holds(v *view, i int) bool {
	if c == nil {
		return true
	}
	s := v.spans[i]
	switch {
	case c.kinds != 0 && c.kinds&kindBit(s.Kind) == 0,
		c.statuses != 0 && c.statuses&statusBit(s.Status) == 0:
		return false
	}
	for f := range c.facts {
		t := &c.facts[f]
		kv, info := v.fact(i, t.id)
		if kv == nil || !anyValue(t.values, info, kv.Value) {
			return false
		}
	}
	for _, id := range c.has {
		if !v.has(i, id) {
			return false
		}
	}
	for _, id := range c.lacks {
		if v.has(i, id) {
			return false
		}
	}
	switch {
	case c.names != nil && !c.names.match(s.Name),
		c.scopes != nil && (s.Scope == nil || !c.scopes.match(s.Scope.Name)),
		c.services != nil && !c.services.match(s.Resource.Service()),
		c.within != 0 && v.above[i]&c.within == 0,
		c.contains != 0 && v.below[i]&c.contains == 0,
		c.orphan != nil && *c.orphan != v.orphan[i]:
		return false
	}
	if c.parent != 0 {
		if p := v.trace.ParentIndex(i); p < 0 || v.roles[p]&c.parent == 0 {
			return false
		}
	}
	if c.events != nil && !c.hasEvent(s) || c.any != nil && !c.anyHolds(v, i) {
		return false
	}
	for _, one := range c.all {
		if !one.holds(v, i) {
			return false
		}
	}
	return c.not == nil || !c.not.holds(v, i)
}

func (c *condition) hasEvent(s *capture.Span) bool {
	for e := range s.Events {
		if c.events.match(s.Events[e].Name) {
			return true
		}
	}
	return false
}

func (c *condition) anyHolds(v *view, i int) bool {
	for _, one := range c.any {
		if one.holds(v, i) {
			return true
		}
	}
	return false
}

// valueTest is one allowed value.
type valueTest struct {
	text   glob // nil where the value is no text
	number float64
	truth  bool
	kind   attribute.Type // STRING, FLOAT64 for any number, BOOL
}

// valueTests compiles values of a key. They are written as that key has them, and
// compared as the canonical one does.
func (p *compiler) valueTests(key string, values spec.Values) []valueTest {
	info := p.keys.info(attribute.Key(key))
	var tests []valueTest
	for _, v := range values {
		switch v := v.(type) {
		case string:
			tests = append(tests, valueTest{text: newGlob(info.text(v)), kind: attribute.STRING})
		case bool:
			tests = append(tests, valueTest{truth: v, kind: attribute.BOOL})
		case int64:
			tests = append(tests, valueTest{number: float64(v) * info.factor, kind: attribute.FLOAT64})
		case float64:
			tests = append(tests, valueTest{number: v * info.factor, kind: attribute.FLOAT64})
		}
	}
	return tests
}

// anyValue reports whether v, or one of its items where it is a list, passes a test.
func anyValue(tests []valueTest, info *keyInfo, v attribute.Value) bool {
	if v.Type() == attribute.STRINGSLICE {
		return slices.ContainsFunc(v.AsStringSlice(), func(s string) bool { return oneValue(tests, info, attribute.StringValue(s)) })
	}
	return oneValue(tests, info, v)
}

// everyValue is anyValue for all items of a list.
func everyValue(tests []valueTest, info *keyInfo, v attribute.Value) bool {
	if v.Type() == attribute.STRINGSLICE {
		return !slices.ContainsFunc(v.AsStringSlice(), func(s string) bool { return !oneValue(tests, info, attribute.StringValue(s)) })
	}
	return oneValue(tests, info, v)
}

func oneValue(tests []valueTest, info *keyInfo, v attribute.Value) bool {
	for i := range tests {
		if tests[i].passes(info, v) {
			return true
		}
	}
	return false
}

func (t *valueTest) passes(info *keyInfo, v attribute.Value) bool {
	switch t.kind {
	case attribute.STRING:
		return v.Type() == attribute.STRING && t.text.match(info.text(v.AsString()))
	case attribute.BOOL:
		return v.Type() == attribute.BOOL && v.AsBool() == t.truth
	default:
		n, ok := number(v, info.factor)
		return ok && abs(n-t.number) <= 1e-9*abs(t.number)
	}
}

// kindBit returns the bit of a kind. The API has an unspecified one stand for
// internal.
func kindBit(kind trace.SpanKind) uint8 {
	switch {
	case kind == trace.SpanKindUnspecified:
		kind = trace.SpanKindInternal
	case kind < 0 || kind > trace.SpanKindConsumer:
		return 0
	}
	return 1 << kind
}

func statusBit(status codes.Code) uint8 { return 1 << min(status, 7) }

var kinds = map[string]trace.SpanKind{
	"internal": trace.SpanKindInternal, "server": trace.SpanKindServer, "client": trace.SpanKindClient,
	"producer": trace.SpanKindProducer, "consumer": trace.SpanKindConsumer,
}

var statuses = map[string]codes.Code{"unset": codes.Unset, "ok": codes.Ok, "error": codes.Error}

// condition compiles c. In a match the roles are not known yet.
func (p *compiler) condition(c *spec.Condition, inMatch bool) *condition {
	if c == nil {
		return nil
	}
	out := &condition{
		names: newGlobs(c.Name), events: newGlobs(c.Event),
		scopes: newGlobs(c.Scope), services: newGlobs(c.Service),
		not: p.condition(c.Not, inMatch),
	}
	for _, k := range c.Kind {
		out.kinds |= kindBit(oneOf(p, c.Position, "kind", k, kinds))
	}
	for _, s := range c.Status {
		out.statuses |= statusBit(oneOf(p, c.Position, "status", s, statuses))
	}
	if c.SpanRole != nil {
		out.facts = append(out.facts, p.factTest(c.Position, "genai.span.role", texts(c.SpanRole)))
	}
	if c.Operation != nil {
		out.facts = append(out.facts, p.factTest(c.Position, "gen_ai.operation.name", texts(c.Operation)))
	}
	out.facts = append(out.facts, p.factTests(c.Position, c.Attr)...)
	for _, key := range c.Has {
		out.has = append(out.has, p.key(c.Position, key))
	}
	for _, key := range c.Lacks {
		out.lacks = append(out.lacks, p.key(c.Position, key))
	}
	for _, part := range []struct {
		key   string
		roles spec.Strings
		into  *roleSet
	}{{"parent", c.Parent, &out.parent}, {"within", c.Within, &out.within}, {"contains", c.Contains, &out.contains}} {
		if inMatch && part.roles != nil {
			p.failf(c.Position, "%s cannot stand in match, because roles are not known yet: say it in parent, or in the condition of a rule", part.key)
		}
		if !inMatch {
			*part.into = p.roleSet(c.Position, part.roles)
		}
	}
	if out.orphan = c.Orphan; c.Orphan != nil && inMatch {
		p.failf(c.Position, "orphan cannot stand in match, because the tree is not known yet: say it in the condition of a rule")
	}
	for i := range c.Any {
		out.any = append(out.any, p.condition(&c.Any[i], inMatch))
	}
	for i := range c.All {
		out.all = append(out.all, p.condition(&c.All[i], inMatch))
	}
	return out
}

func (p *compiler) factTest(at spec.Position, key string, values spec.Values) factTest {
	return factTest{p.key(at, key), p.valueTests(key, values)}
}

func (p *compiler) factTests(at spec.Position, values map[string]spec.Values) []factTest {
	var tests []factTest
	for _, key := range sorted(values) {
		tests = append(tests, p.factTest(at, key, values[key]))
	}
	return tests
}

func texts(words []string) spec.Values {
	values := make(spec.Values, len(words))
	for i, w := range words {
		values[i] = w
	}
	return values
}

// oneOf returns what a word of a closed set stands for.
func oneOf[T any](p *compiler, at spec.Position, key, word string, words map[string]T) T {
	value, ok := words[word]
	if !ok {
		message := fmt.Sprintf("%s is %q, want one of %s", key, word, strings.Join(sorted(words), ", "))
		if near := spec.Nearest(word, sorted(words)); near != "" {
			message += fmt.Sprintf(": did you mean %q?", near)
		}
		p.failf(at, "%s", message)
	}
	return value
}
