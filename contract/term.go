package contract

import (
	"strings"

	"github.com/genaitrace/otelgenai/capture"
	"github.com/genaitrace/otelgenai/contract/spec"
)

// dimension is what a term measures. Terms of different dimensions cannot be
// compared.
type dimension int8

const (
	dimNumber   dimension = iota
	dimDuration           // in nanoseconds
	dimInstant            // in nanoseconds from the start of the trace
)

func (d dimension) String() string {
	return [...]string{"a number", "a duration", "a moment"}[d]
}

// term is a sum of atoms.
type term struct {
	text  string
	atoms []atom
	dim   dimension
}

// atom is one part of a term.
type atom struct {
	minus    bool
	optional bool // it counts as zero where it is absent
	dim      dimension

	constant float64
	what     what
	id       keyID   // of attr
	scale    float64 // of attr: what makes it nanoseconds
	event    string  // of event
	eventKey bool    // of event: its attribute id is meant, and not its moment

	of   place
	role int // of ofRole
}

type what int8

const (
	isConstant what = iota
	isDuration
	isStart
	isEnd
	isAttr
	isEvent
)

// place says whose facts an atom reads.
type place int8

const (
	ofSelf place = iota
	ofParent
	ofRole
)

// term reads a term.
func (p *compiler) term(at spec.Position, text string) term {
	t := term{text: text}
	minus := false
	for rest := text; ; {
		part, sign, after := cutTerm(rest)
		a := p.atom(at, text, strings.TrimSpace(part))
		a.minus = minus
		t.atoms = append(t.atoms, a)
		if sign == 0 {
			break
		}
		minus, rest = sign == '-', after
	}
	t.dim = p.sumDimension(at, &t)
	return t
}

// cutTerm cuts a term at its first + or - outside parentheses.
func cutTerm(s string) (part string, sign byte, rest string) {
	depth := 0
	for i := range len(s) {
		switch s[i] {
		case '(':
			depth++
		case ')':
			depth--
		case '+', '-':
			if depth == 0 && strings.TrimSpace(s[:i]) != "" {
				return s[:i], s[i], s[i+1:]
			}
		}
	}
	return s, 0, ""
}

// sumDimension works out what a sum measures: moments can be subtracted, and a
// duration can be added to a moment.
func (p *compiler) sumDimension(at spec.Position, t *term) dimension {
	instants, numbers := 0, 0
	for _, a := range t.atoms {
		switch {
		case a.dim == dimInstant && a.minus:
			instants--
		case a.dim == dimInstant:
			instants++
		case a.dim == dimNumber && (a.what != isConstant || a.constant != 0):
			numbers++
		}
	}
	timed := len(t.atoms) > numbers
	switch {
	case numbers > 0 && timed && !onlyZeros(t, numbers):
		p.fail(at, "%q adds numbers and times", t.text)
		return dimNumber
	case numbers > 0:
		return dimNumber
	case instants == 0:
		return dimDuration
	case instants == 1:
		return dimInstant
	default:
		p.fail(at, "%q adds moments: only their difference means something", t.text)
		return dimInstant
	}
}

func onlyZeros(t *term, numbers int) bool {
	zeros := 0
	for _, a := range t.atoms {
		if a.what == isConstant && a.constant == 0 {
			zeros++
		}
	}
	return zeros+numbers == len(t.atoms)
}

func (p *compiler) atom(at spec.Position, text, s string) atom {
	a := atom{id: noKey, scale: 1}
	s, a.optional = strings.CutSuffix(s, "?")
	if s == "" {
		p.fail(at, "%q: a part is empty", text)
		return a
	}
	if c := s[0]; isDigit(c) || c == '.' || c == '-' {
		value, isTime := p.constant(at, "a part of "+text, s)
		a.constant = value
		if isTime {
			a.dim = dimDuration
		}
		return a
	}
	head, _, _ := strings.Cut(s, "(")
	if owner, _, ok := strings.Cut(head, "."); ok {
		s = s[len(owner)+1:]
		a.of = ofParent
		if owner != "parent" {
			a.of, a.role = ofRole, p.roleIndex(at, owner)
		}
	}
	name, argument, call := strings.Cut(s, "(")
	if call {
		var closed bool
		if argument, closed = strings.CutSuffix(argument, ")"); !closed || argument == "" {
			p.fail(at, "%q: want %s(…)", text, name)
			return a
		}
	}
	switch {
	case name == "duration" && !call:
		a.what, a.dim = isDuration, dimDuration
	case name == "start" && !call:
		a.what, a.dim = isStart, dimInstant
	case name == "end" && !call:
		a.what, a.dim = isEnd, dimInstant
	case name == "event" && call:
		a.what, a.dim = isEvent, dimInstant
		var key string
		if a.event, key, a.eventKey = strings.Cut(argument, ","); a.eventKey {
			p.attrAtom(&a, strings.TrimSpace(key))
		}
	case name == "attr" && call:
		a.what = isAttr
		p.attrAtom(&a, argument)
	default:
		words := []string{"duration", "start", "end", "attr(KEY)", "event(NAME)", "event(NAME, KEY)"}
		p.fail(at, "%q: %q is none of %s, with a role or parent and a dot before it, and no constant such as 5ms", text, s, strings.Join(words, ", "))
	}
	return a
}

// attrAtom makes an atom read an attribute, in nanoseconds where it is a time.
func (p *compiler) attrAtom(a *atom, key string) {
	a.id, a.dim = p.keys.id(key), dimNumber
	if ns, ok := timeUnits[p.keys.unitOf(a.id)]; ok {
		a.dim, a.scale = dimDuration, ns
	}
}

// value returns the value of a term for a span; false where a part is absent.
func (t *term) value(v *view, i int) (float64, bool) {
	sum := 0.0
	any := false
	for j := range t.atoms {
		a := &t.atoms[j]
		f, ok := a.value(v, i)
		if !ok && !a.optional || notFinite(f) {
			return 0, false
		}
		any = any || ok
		if a.minus {
			f = -f
		}
		sum += f
	}
	return sum, any
}

func (a *atom) value(v *view, i int) (float64, bool) {
	switch a.of {
	case ofParent:
		up := v.trace.ParentIndex(i)
		if up < 0 {
			return 0, false
		}
		return a.read(v, up)
	case ofRole:
		return a.readRole(v, i)
	default:
		return a.read(v, i)
	}
}

// read reads one span.
func (a *atom) read(v *view, i int) (float64, bool) {
	s := v.spans[i]
	switch a.what {
	case isConstant:
		return a.constant, true
	case isDuration:
		return float64(s.Duration()), s.Ended()
	case isStart:
		return v.since(s.Start), true
	case isEnd:
		return v.since(s.End), s.Ended()
	case isAttr:
		n, ok := v.number(i, a.id)
		return n * a.scale, ok
	default:
		e := firstEvent(s, a.event)
		if e == nil {
			return 0, false
		}
		if !a.eventKey {
			return v.since(e.Time), true
		}
		n, ok := v.eventNumber(e, a.id)
		return n * a.scale, ok
	}
}

// firstEvent returns the earliest event of a name.
func firstEvent(s *capture.Span, name string) *capture.Event {
	var first *capture.Event
	for j := range s.Events {
		if e := &s.Events[j]; e.Name == name && (first == nil || e.Time.Before(first.Time)) {
			first = e
		}
	}
	return first
}

// eventNumber returns an attribute of an event as a number of the canonical key.
func (v *view) eventNumber(e *capture.Event, id keyID) (float64, bool) {
	for j := range e.Attributes {
		if info := v.cache.get(e.Attributes[j].Key); info.id == id {
			return number(e.Attributes[j].Value, info.factor)
		}
	}
	return 0, false
}

// readRole reads the spans of a role below i: the sum of their durations, the
// first start, the last end, and of facts the first.
func (a *atom) readRole(v *view, i int) (float64, bool) {
	bit := roleSet(1) << a.role
	if v.below[i]&bit == 0 {
		return 0, false
	}
	sum, found := 0.0, false
	for j := range v.below {
		if v.roles[j]&bit == 0 || !v.inside(j, i) {
			continue
		}
		f, ok := a.read(v, j)
		switch {
		case !ok && a.what == isDuration, !ok && a.what == isEnd:
			return 0, false // one of them has not ended
		case !ok:
		case !found:
			sum, found = f, true
		case a.what == isDuration:
			sum += f
		case a.what == isStart:
			sum = min(sum, f)
		case a.what == isEnd:
			sum = max(sum, f)
		}
	}
	return sum, found
}

// inside reports whether j is below i.
func (v *view) inside(j, i int) bool {
	for up := v.trace.ParentIndex(j); up >= 0; up = v.trace.ParentIndex(up) {
		if up == i {
			return true
		}
	}
	return false
}
