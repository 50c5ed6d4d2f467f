package translate

import (
	"slices"

	"go.opentelemetry.io/otel/attribute"
)

// scratch is what the translation of one list needs.
type scratch struct {
	entries []entry
	winners []int // by slot: 1 + the index of the attribute that takes it
}

// entry is what becomes of one attribute.
type entry struct {
	rule   *rule
	value  attribute.Value // translated
	ours   string          // what a member of an enumeration is called in Standard
	state  state
	reason Reason // why it is kept, narrowed or dropped
}

type state uint8

const (
	pass     state = iota // no rule
	waiting               // the rule depends on what other attributes become
	moved                 // translated
	narrowed              // translated, and kept as well
	kept                  // not translated
	dropped               // another attribute says the same
)

// Attributes translates a list of attributes. It returns the list itself where
// nothing changes, and a new one otherwise; the list given is never written to.
//
// The order is kept. Where several attributes have the same target, the one
// whose key is the target already wins, then the one whose row stands first in
// the file of the source vocabulary. The others are dropped if they say the
// same, and otherwise kept under their own keys.
func (t *Translator) Attributes(attrs []attribute.KeyValue) []attribute.KeyValue {
	if t == nil || len(t.rules) == 0 {
		return attrs
	}
	out := attrs
	if t.concerns(attrs) {
		out = t.rename(attrs)
	}
	return t.messages(attrs, out)
}

// rename translates what is one attribute in both vocabularies.
func (t *Translator) rename(attrs []attribute.KeyValue) []attribute.KeyValue {
	s := t.scratch.Get().(*scratch)
	s.entries = slices.Grow(s.entries, len(attrs))[:len(attrs)]
	s.winners = slices.Grow(s.winners, len(t.slots))[:len(t.slots)]
	defer t.release(s)
	t.decide(attrs, s)
	changes := false
	for i := range s.entries {
		changes = t.settle(attrs[i], s, i) || changes
	}
	if !changes {
		return attrs
	}
	out := make([]attribute.KeyValue, 0, len(attrs))
	for i, e := range s.entries {
		switch e.state {
		case pass:
			out = append(out, attrs[i])
		case kept:
			out = append(out, attribute.KeyValue{Key: e.rule.keep, Value: attrs[i].Value})
		case narrowed:
			out = append(out, attribute.KeyValue{Key: e.rule.target, Value: e.value},
				attribute.KeyValue{Key: e.rule.keep, Value: attrs[i].Value})
		case moved:
			out = append(out, attribute.KeyValue{Key: e.rule.target, Value: e.value})
		}
	}
	return out
}

// concerns reports whether there is anything to translate or to report.
func (t *Translator) concerns(attrs []attribute.KeyValue) bool {
	for i := range attrs {
		if !t.filter.mayHave(string(attrs[i].Key)) {
			continue
		}
		rules := t.rules[attrs[i].Key]
		if len(rules) == 0 {
			if t.from.owns(string(attrs[i].Key)) {
				return true
			}
		} else if !rules[0].same {
			return true
		}
	}
	return false
}

// release keeps the memory for the next list, and nothing of this one.
func (t *Translator) release(s *scratch) {
	clear(s.entries)
	clear(s.winners)
	s.entries, s.winners = s.entries[:0], s.winners[:0]
	t.scratch.Put(s)
}

// decide translates each attribute by itself and finds the winner of each
// target key.
func (t *Translator) decide(attrs []attribute.KeyValue, s *scratch) {
	for i, a := range attrs {
		if !t.filter.mayHave(string(a.Key)) {
			continue
		}
		rules := t.rules[a.Key]
		if len(rules) == 0 {
			t.unknown(string(a.Key))
			continue
		}
		for j := range rules {
			r := &rules[j]
			if r.src != nil && !r.src.When.holds(attrs) {
				continue
			}
			if r.dst != nil && r.dst.When != nil {
				s.entries[i].state = waiting
			} else {
				s.translate(i, a.Value, r)
			}
			break
		}
	}
	for i, a := range attrs {
		if s.entries[i].state != waiting {
			continue
		}
		rules := t.rules[a.Key]
		for j := range rules {
			r := &rules[j]
			if (r.src == nil || r.src.When.holds(attrs)) && (r.dst == nil || t.becomes(r.dst.When, s)) {
				s.translate(i, a.Value, r)
				break
			}
		}
	}
}

// unknown reports a key without a rule that the source vocabulary owns.
func (t *Translator) unknown(key string) {
	for i := range t.prefixes {
		if p := &t.prefixes[i]; p.has(key) {
			if !p.known {
				t.report.add(p.name, NoTarget)
			}
			return
		}
	}
	if t.from.owns(key) {
		t.report.add(key, NoTarget)
	}
}

// holds reports whether the attributes meet the condition.
func (c condition) holds(attrs []attribute.KeyValue) bool {
	for key, values := range c {
		at := slices.IndexFunc(attrs, func(a attribute.KeyValue) bool { return string(a.Key) == key })
		if at < 0 || !slices.Contains(values, attrs[at].Value.String()) {
			return false
		}
	}
	return true
}

// becomes reports whether the translated attributes meet the condition.
func (t *Translator) becomes(c condition, s *scratch) bool {
	for key, values := range c {
		slot, known := t.slots[attribute.Key(key)]
		if !known || s.winners[slot] == 0 || !slices.Contains(values, s.entries[s.winners[slot]-1].value.AsString()) {
			return false
		}
	}
	return true
}

// translate applies a rule to one attribute.
func (s *scratch) translate(i int, v attribute.Value, r *rule) {
	e := &s.entries[i]
	e.rule, e.value, e.state = r, v, moved
	switch {
	case r.same:
	case r.target == "":
		e.state, e.reason = kept, NoTarget
		return
	default:
		if e.rename() {
			var exact bool
			if e.value, exact = convert(e.value, r.scale, r.dst.Type); !exact {
				e.state, e.reason = kept, NotExact
			}
		}
		if e.state == narrowed && r.rank == 0 {
			e.state = kept // one key cannot have both
		}
		if e.state == kept {
			if r.rank > 0 {
				return
			}
			e.value = v // it is in its place, if in another form
		}
	}
	if w := s.winners[r.slot]; w == 0 || s.entries[w-1].rule.rank > r.rank {
		s.winners[r.slot] = i + 1
	}
}

// rename translates a member of an enumeration, or a list of members. It
// reports false where there is nothing to translate one of them to.
func (e *entry) rename() bool {
	if e.rule.src.Values == nil && e.rule.dst.Values == nil {
		return true
	}
	switch e.value.Type() {
	case attribute.STRING:
		theirs, ok := e.renameOne(e.value.AsString())
		if ok {
			e.value = attribute.StringValue(theirs)
		}
		return ok
	case attribute.STRINGSLICE:
		list := e.value.AsStringSlice() // a copy
		for i := range list {
			var ok bool
			if list[i], ok = e.renameOne(list[i]); !ok {
				return false
			}
		}
		e.value = attribute.StringSliceValue(list)
	}
	return true
}

func (e *entry) renameOne(member string) (theirs string, ok bool) {
	src, dst := e.rule.src.Values, e.rule.dst.Values
	ours, ok := src.read(member)
	if !ok {
		e.state, e.reason = kept, NoTarget
		if src.several(member) {
			e.reason = Ambiguous
		}
		return "", false
	}
	if theirs, ok = dst.write(ours); !ok {
		e.state, e.reason = kept, NoTarget
		return "", false
	}
	back, ok := dst.read(theirs)
	if !ok || back != ours || src != nil && slices.Contains(src.Narrow, member) {
		e.state, e.reason = narrowed, Narrowed
	}
	e.ours = ours
	return theirs, true
}

func (v *values) read(theirs string) (ours string, ok bool) {
	if v == nil {
		return theirs, true
	}
	if ours, ok = v.Read[theirs]; ok {
		return ours, true
	}
	return theirs, !v.Closed && !slices.Contains(v.Ambiguous, theirs)
}

// several reports whether a member that is not read may stand for members of
// ours.
func (v *values) several(theirs string) bool {
	if slices.Contains(v.Ambiguous, theirs) {
		return true
	}
	for _, written := range v.Write {
		if written == theirs {
			return true
		}
	}
	return false
}

func (v *values) write(ours string) (theirs string, ok bool) {
	if v == nil {
		return ours, true
	}
	if theirs, ok = v.Write[ours]; ok {
		return theirs, true
	}
	return ours, !v.Closed
}

// settle decides what becomes of an attribute beside the winner of its target
// key, and reports whether that changes anything.
func (t *Translator) settle(a attribute.KeyValue, s *scratch, i int) (changes bool) {
	e := &s.entries[i]
	if e.state == pass || e.rule.same && s.winners[e.rule.slot] == i+1 {
		return false
	}
	if e.rule.target != "" && s.winners[e.rule.slot] != 0 && s.winners[e.rule.slot] != i+1 {
		winner := &s.entries[s.winners[e.rule.slot]-1]
		switch same := e.state != kept && e.value == winner.value; {
		case same && e.state == moved, e.fits(a.Value, winner):
			e.state, e.reason = dropped, Duplicate
		case !same && e.state != kept:
			e.state, e.reason = kept, Conflict
		default:
			e.state = kept
		}
	}
	if e.state != moved {
		t.report.add(string(a.Key), e.reason)
	}
	return e.state != kept || e.rule.keep != a.Key
}

// fits reports whether the value of an enumeration, which may stand for several
// members of another one, stands for the winner's.
func (e *entry) fits(v attribute.Value, winner *entry) bool {
	if e.rule.src == nil || e.rule.src.Values == nil || v.Type() != attribute.STRING {
		return false
	}
	ours := winner.ours
	if ours == "" {
		ours = winner.value.AsString()
	}
	theirs, ok := e.rule.src.Values.write(ours)
	return ok && theirs == v.AsString()
}
