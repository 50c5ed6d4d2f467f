package contract

import (
	"slices"
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
	dimRate               // a number a nanosecond; no term is one, but a quotient of two can be
)

func (d dimension) String() string {
	return [...]string{"a number", "a duration", "a moment", "a rate"}[d]
}

// term is a sum of atoms.
type term struct {
	text  string
	atoms []atom
	dim   dimension
	zero  bool // 0, which is of every dimension
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

	of    owner
	role  int // of ofRole
	total int // of ofRole: its number in program.atoms
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

// owner says whose facts an atom reads.
type owner int8

const (
	ofSelf owner = iota
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
		if a.optional && a.dim == dimInstant {
			p.failf(at, "%q: a moment cannot be optional, because no moment is zero", text)
		}
		a.total = p.total(a)
		a.minus = minus
		t.atoms = append(t.atoms, a)
		if sign == 0 {
			break
		}
		minus, rest = sign == '-', after
	}
	t.dim = p.sumDimension(at, &t)
	t.zero = len(t.atoms) == 1 && t.atoms[0].what == isConstant && t.atoms[0].constant == 0
	return t
}

// total returns the number of an atom that reads a role. Rules that name the same
// one share it.
func (p *compiler) total(a atom) int {
	if a.of != ofRole {
		return 0
	}
	a.optional = false
	n := slices.Index(p.program.atoms, a)
	if n < 0 {
		n = len(p.program.atoms)
		p.program.atoms = append(p.program.atoms, a)
	}
	return n
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
		p.failf(at, "%q adds numbers and times", t.text)
		return dimNumber
	case numbers > 0:
		return dimNumber
	case instants == 0:
		return dimDuration
	case instants == 1:
		return dimInstant
	default:
		p.failf(at, "%q adds moments: only their difference means something", t.text)
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
		p.failf(at, "%q: a part is empty", text)
		return a
	}
	if c := s[0]; '0' <= c && c <= '9' || c == '.' || c == '-' {
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
			p.failf(at, "%q: want %s(…)", text, name)
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
			p.attrAtom(at, &a, strings.TrimSpace(key))
		}
	case name == "attr" && call:
		a.what = isAttr
		p.attrAtom(at, &a, strings.TrimSpace(argument))
	default:
		words := []string{"duration", "start", "end", "attr(KEY)", "event(NAME)", "event(NAME, KEY)"}
		p.failf(at, "%q: %q is none of %s, with a role or parent and a dot before it, and no constant such as 5ms", text, s, strings.Join(words, ", "))
	}
	return a
}

// attrAtom makes an atom read an attribute, in nanoseconds where it is a time.
func (p *compiler) attrAtom(at spec.Position, a *atom, key string) {
	a.id, a.dim = p.key(at, key), dimNumber
	if ns, ok := timeUnits[p.keys.unitOf(a.id)]; ok {
		a.dim, a.scale = dimDuration, ns
	}
}

// value returns the value of a term for a span; false where a part is absent.
func (t *term) value(v *view, i int) (float64, bool) {
	sum, found := 0.0, false
	for j := range t.atoms {
		a := &t.atoms[j]
		f, ok := a.value(v, i)
		switch {
		case ok && notFinite(f), !ok && !a.optional:
			return 0, false
		case !ok:
			continue
		case a.minus:
			f = -f
		}
		found = true
		sum += f
	}
	return sum, found
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

// read reads one span. What it returns beside false means nothing.
func (a *atom) read(v *view, i int) (float64, bool) {
	s := v.spans[i]
	switch a.what {
	case isConstant:
		return a.constant, true
	case isDuration:
		return float64(s.Duration()), s.Ended() && !s.Start.IsZero()
	case isStart:
		return v.since(s.Start)
	case isEnd:
		return v.since(s.End)
	case isAttr:
		n, ok := v.number(i, a.id)
		return n * a.scale, ok
	default:
		e := firstEvent(s, a.event)
		if e == nil {
			return 0, false
		}
		if !a.eventKey {
			return v.since(e.Time)
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
	kv, info := v.among(e.Attributes, id)
	if kv == nil {
		return 0, false
	}
	return number(kv.Value, info.factor)
}

// total is what an atom says of the spans of its role below one span.
type total struct {
	value float64
	at    int32 // the span that value is of
	state totalState
}

type totalState int8

const (
	noTotal   totalState = iota // there is no such span, or none has the fact
	someTotal                   // value
	openTotal                   // one of them has not ended, so nobody knows
)

// readRole reads the spans of a role below i: the sum of their durations, the
// first start, the last end, and of facts that of the earliest span.
func (a *atom) readRole(v *view, i int) (float64, bool) {
	if v.below[i]&(1<<a.role) == 0 {
		return 0, false
	}
	if !v.totalled[a.total] {
		v.totals[a.total], v.totalled[a.total] = a.readAll(v, v.totals[a.total]), true
	}
	t := &v.totals[a.total][i]
	return t.value, t.state == someTotal
}

// readAll works out the totals of all spans at once, from the leaves on: to look
// below each span again would be quadratic.
func (a *atom) readAll(v *view, totals []total) []total {
	totals = resize(totals, len(v.spans))
	for _, i := range slices.Backward(v.order) {
		p := v.trace.ParentIndex(int(i))
		if p < 0 {
			continue
		}
		a.add(&totals[p], totals[i])
		if v.roles[i]&(1<<a.role) == 0 {
			continue
		}
		own := total{at: i}
		if f, ok := a.read(v, int(i)); ok {
			own.value, own.state = f, someTotal
		} else if a.what == isDuration || a.what == isEnd {
			own.state = openTotal
		}
		a.add(&totals[p], own)
	}
	return totals
}

func (a *atom) add(to *total, t total) {
	switch {
	case t.state == noTotal || to.state == openTotal:
		return
	case to.state == noTotal || t.state == openTotal:
		*to = t
		return
	}
	switch a.what {
	case isDuration:
		to.value += t.value
	case isStart:
		to.value = min(to.value, t.value)
	case isEnd:
		to.value = max(to.value, t.value)
	default:
		if t.at < to.at {
			*to = t
		}
	}
}
