package mutate

import (
	"regexp"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/attribute"

	"github.com/genaitrace/otelgenai/contract/spec"
	"github.com/genaitrace/otelgenai/semconv"
)

// named returns an attribute that the contract names, with all its spellings.
func (p *plan) named(key string, rule spec.Attribute) *named {
	return &named{key, rule, p.spellings(key, rule.Spellings)}
}

// spellings returns whether a key means the same as another one to the contract.
func (p *plan) spellings(name string, further []string) func(attribute.Key) bool {
	canonical := p.canonical(attribute.Key(name))
	return func(key attribute.Key) bool {
		return p.canonical(key) == canonical || slices.Contains(further, string(key))
	}
}

// canonical follows a spelling to the key that the vocabulary prefers, as the
// checker does: a bare word such as value may mean anything, and a spelling whose
// values cannot be converted says something else.
func (p *plan) canonical(key attribute.Key) attribute.Key {
	to, ok := p.canonicals[key]
	if ok {
		return to
	}
	to = key
	for range 4 { // the chains of the registry are shorter
		a, known := semconv.Lookup(to)
		target, ok := a.Target()
		bare := a.Origin == semconv.OriginAlias && !strings.Contains(string(a.Key), ".")
		if !known || !ok || a.Factor == 0 || bare {
			break
		}
		to = target
	}
	p.canonicals[key] = to
	return to
}

// namedKeys returns the attributes that the contract names for a role: those it
// describes, those that make the role or its name, and those of the rules that are
// about it.
func (p *plan) namedKeys(role string) []*named {
	s := p.spec.Spans[role]
	var all []*named
	add := func(key string, rule spec.Attribute) {
		if key != "" && !slices.ContainsFunc(all, func(n *named) bool { return n.is(attribute.Key(key)) }) {
			all = append(all, p.named(key, rule))
		}
	}
	for _, key := range sorted(s.Attributes) {
		add(key, s.Attributes[key])
	}
	matchKeys(s.Match, func(key string) { add(key, spec.Attribute{}) })
	for _, format := range s.Name {
		for _, m := range placeholder.FindAllStringSubmatch(format, -1) {
			add(m[1], spec.Attribute{})
		}
	}
	p.terms(role, func(event, key string) {
		if event == "" {
			add(key, spec.Attribute{})
		}
	})
	for _, a := range p.spec.Agree {
		if slices.Contains(a.Across, role) {
			for _, key := range a.Keys {
				add(key, spec.Attribute{})
			}
		}
	}
	return all
}

// matchKeys calls add with each attribute that a condition wants.
func matchKeys(c *spec.Condition, add func(key string)) {
	if c == nil {
		return
	}
	if c.SpanRole != nil {
		add(string(semconv.GenAISpanRoleKey))
	}
	if c.Operation != nil {
		add("gen_ai.operation.name")
	}
	for _, key := range sorted(c.Attr) {
		add(key)
	}
	for _, key := range c.Has {
		add(key)
	}
	for _, parts := range [][]spec.Condition{c.Any, c.All} {
		for i := range parts {
			matchKeys(&parts[i], add)
		}
	}
}

// namedEvents returns the events that the contract names for a role.
func (p *plan) namedEvents(role string) []string {
	var all []string
	add := func(names ...string) {
		for _, name := range names {
			if name != "" && !strings.Contains(name, "*") && !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
	}
	s := p.spec.Spans[role]
	if e := s.Events; e != nil {
		add(sorted(e.Require)...)
		for _, step := range e.Order {
			add(strings.Split(step, "|")...)
		}
		add(strings.Split(e.Last, "|")...)
		add(e.Once...)
		add(e.Allow...)
		add(sorted(e.Attributes)...)
	}
	if s.Match != nil {
		add(s.Match.Event...)
	}
	p.terms(role, func(event, _ string) { add(event) })
	return all
}

// namedKeysOf returns the attributes that the contract names for an event of a
// role.
func (p *plan) namedKeysOf(role, event string) []*named {
	var all []*named
	if e := p.spec.Spans[role].Events; e != nil {
		for _, key := range sorted(e.Attributes[event]) {
			all = append(all, p.named(key, e.Attributes[event][key]))
		}
	}
	p.terms(role, func(of, key string) {
		known := slices.ContainsFunc(all, func(n *named) bool { return n.is(attribute.Key(key)) })
		if of == event && key != "" && !known {
			all = append(all, p.named(key, spec.Attribute{}))
		}
	})
	return all
}

var (
	placeholder = regexp.MustCompile(`\{([^{}]+)\}`)
	factInTerm  = regexp.MustCompile(`(?:([a-z][a-z0-9_]*)\.)?\b(attr|event)\(([^()]+)\)`)
)

// terms calls f with what the terms of timing, objectives and metrics read of the
// spans of a role: an attribute, an event, or an attribute of an event.
func (p *plan) terms(role string, f func(event, key string)) {
	read := func(term string, on ...string) {
		for _, m := range factInTerm.FindAllStringSubmatch(term, -1) {
			switch {
			case m[1] != role && (m[1] != "" || !slices.Contains(on, role)):
			case m[2] == "attr":
				f("", m[3])
			default:
				event, key, _ := strings.Cut(m[3], ",")
				f(event, strings.TrimSpace(key))
			}
		}
	}
	for _, t := range p.spec.Timing {
		for _, term := range slices.Concat(t.AtMost, t.Equal, t.Order) {
			read(term, t.On)
		}
	}
	for _, s := range p.spec.SLO {
		read(s.Value, s.On)
	}
	for _, name := range sorted(p.spec.Metrics) {
		if of := p.spec.Metrics[name].Of; of != nil {
			read(of.Value, of.Role...)
			read(of.Per, of.Role...)
		}
	}
}
