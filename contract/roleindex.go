package contract

import (
	"math/bits"

	"go.opentelemetry.io/otel/attribute"
)

// roleIndex tells which roles a span can have, by what nearly every match asks for:
// one of some names, roles or operations. To try each match on each span would take
// most of the time.
type roleIndex struct {
	always roleSet // whose match asks for something else
	names  map[string]roleSet
	facts  [2]factIndex
}

type factIndex struct {
	id    keyID
	roles map[string]roleSet
}

// Places in roleIndex.
const (
	hintRole = iota
	hintOperation
	hintName
)

// hint is a text, one of which a match asks for.
type hint struct {
	of   int
	text string
}

func newRoleIndex(roles []roleRule, known *knownKeys) roleIndex {
	x := roleIndex{names: map[string]roleSet{}}
	x.facts[hintRole] = factIndex{known.role, map[string]roleSet{}}
	x.facts[hintOperation] = factIndex{known.operation, map[string]roleSet{}}
	for r := range roles {
		hints, ok := x.hints(roles[r].match)
		if !ok {
			x.always |= 1 << r
		}
		for _, h := range hints {
			if h.of == hintName {
				x.names[h.text] |= 1 << r
			} else {
				x.facts[h.of].roles[h.text] |= 1 << r
			}
		}
	}
	return x
}

// hints are texts one of which a span must have for c to hold; false where there are
// none.
func (x *roleIndex) hints(c *condition) (hints []hint, ok bool) {
	if c == nil {
		return nil, false
	}
	for _, t := range c.facts {
		for of := range x.facts {
			if t.id != x.facts[of].id {
				continue
			}
			if hints, ok := exactValues(of, t.values); ok {
				return hints, true
			}
		}
	}
	if c.names != nil {
		if hints, ok := exactNames(c.names); ok {
			return hints, true
		}
	}
	for _, one := range c.all {
		if hints, ok := x.hints(one); ok {
			return hints, true
		}
	}
	for _, one := range c.any {
		more, ok := x.hints(one)
		if !ok {
			return nil, false
		}
		hints = append(hints, more...)
	}
	return hints, c.any != nil
}

func exactValues(of int, tests []valueTest) (hints []hint, ok bool) {
	for _, t := range tests {
		if t.kind != attribute.STRING || len(t.text) != 1 {
			return nil, false
		}
		hints = append(hints, hint{of, t.text[0]})
	}
	return hints, true
}

func exactNames(names globs) (hints []hint, ok bool) {
	for _, g := range names {
		if len(g) != 1 {
			return nil, false
		}
		hints = append(hints, hint{hintName, g[0]})
	}
	return hints, true
}

// candidates are the roles whose match can hold for a span.
func (x *roleIndex) candidates(v *view, i int) roleSet {
	set := x.always | x.names[v.spans[i].Name]
	for of := range x.facts {
		f := &x.facts[of]
		kv, info := v.fact(i, f.id)
		if kv == nil {
			continue
		}
		switch kv.Value.Type() {
		case attribute.STRING:
			set |= f.roles[info.text(kv.Value.AsString())]
		case attribute.STRINGSLICE: // each of its items may be what a match asks for
			for _, s := range kv.Value.AsStringSlice() {
				set |= f.roles[info.text(s)]
			}
		}
	}
	return set
}

// rolesOf are the roles of a span.
func (p *program) rolesOf(v *view, i int) (roles roleSet) {
	for set := p.byHint.candidates(v, i); set != 0; set &= set - 1 {
		r := bits.TrailingZeros64(uint64(set))
		if p.roles[r].match.holds(v, i) {
			roles |= 1 << r
		}
	}
	return roles
}
