package contract

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/capture"
)

// Every form of a match, so that each is found by what it asks for, or tried always.
const everyMatch = `contract: genai.observability/v1
name: every
spans:
  by_role: {match: {span_role: [prefill, decode]}, optional: true}
  by_operation: {match: {operation: chat}, optional: true}
  by_name: {match: {name: [a, b]}, optional: true}
  by_glob: {match: {name: [a, "execute_tool *"]}, optional: true}
  by_role_glob: {match: {span_role: "pre*"}, optional: true}
  by_kind: {match: {kind: client}, optional: true}
  by_other: {match: {attr: {gen_ai.request.model: m}}, optional: true}
  any_found: {match: {any: [{span_role: queue}, {operation: chat}, {name: a}]}, optional: true}
  any_not_found: {match: {any: [{span_role: queue}, {kind: server}]}, optional: true}
  all_found: {match: {all: [{kind: internal}, {name: b}]}, optional: true}
  both: {match: {span_role: queue, operation: chat, name: b}, optional: true}
  but: {match: {not: {span_role: queue}}, optional: true}
  inside: {match: {kind: internal, any: [{all: [{name: a}]}, {span_role: decode, lacks: gen_ai.operation.name}]}, optional: true}
`

// The index leaves out no role whose match holds: of any span, it finds what trying
// every match finds.
func TestTheIndexOfRolesFindsWhatEveryMatchFinds(t *testing.T) {
	every, err := Parse("every.yaml", []byte(everyMatch))
	require.NoError(t, err)
	contracts := []*Contract{every}
	for _, name := range Builtins() {
		c, err := Builtin(name)
		require.NoError(t, err)
		contracts = append(contracts, c)
	}
	for _, c := range contracts {
		p := c.program
		spans := spansOf(p)
		v := newView(p)
		v.load(capture.NewTrace(spans))
		met := roleSet(0)
		for i, s := range v.spans {
			want := roleSet(0)
			for r := range p.roles {
				if p.roles[r].match.holds(&v, i) {
					want |= 1 << r
				}
			}
			require.Equal(t, want, p.rolesOf(&v, i), "%s %s %v", s.Kind, s.Name, s.Attributes)
			met |= want
		}
		if c == every {
			assert.Equal(t, roleSet(1)<<len(p.roles)-1, met, "each role has a span")
			assert.Equal(t, "any_not_found but by_glob by_kind by_other by_role_glob", strings.Join(always(p), " "))
		}
	}
}

func always(p *program) (names []string) {
	for r := range p.roles {
		if p.byHint.always&(1<<r) != 0 {
			names = append(names, p.roles[r].name)
		}
	}
	return names
}

// spansOf are spans of each kind with each name, role and operation that the index
// knows, and some that it does not.
func spansOf(p *program) (spans []*capture.Span) {
	texts := func(known map[string]roleSet, more ...string) []string { return append(sorted(known), more...) }
	x := &p.byHint
	roles := []attribute.Value{{}, attribute.IntValue(1), attribute.StringSliceValue([]string{"other", "queue", "decode"})}
	for _, role := range texts(x.facts[hintRole].roles, "preempt", "other") {
		roles = append(roles, attribute.StringValue(role))
	}
	for _, name := range texts(x.names, "execute_tool x", "execute_tool", "plan x", "other") {
		for _, operation := range texts(x.facts[hintOperation].roles, "", "other") {
			for _, role := range roles {
				s := &capture.Span{
					TraceID: trace.TraceID{1}, SpanID: trace.SpanID{byte(len(spans)), byte(len(spans) >> 8), byte(len(spans) >> 16), 1},
					Name: name, Kind: trace.SpanKind(1 + len(spans)%3),
				}
				if operation != "" {
					s.Attributes = append(s.Attributes, attribute.String("gen_ai.operation.name", operation))
				}
				if role.Type() != attribute.EMPTY {
					s.Attributes = append(s.Attributes, attribute.KeyValue{Key: "genai.span.role", Value: role})
				}
				if len(spans)%5 == 0 {
					s.Attributes = append(s.Attributes, attribute.String("gen_ai.request.model", "m"))
				}
				spans = append(spans, s)
			}
		}
	}
	return spans
}
