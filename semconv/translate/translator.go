package translate

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"go.opentelemetry.io/otel/attribute"
)

// A Translator turns what was written in one vocabulary into another. It is
// safe for concurrent use, and it counts what it could not simply rename. A nil
// Translator changes nothing.
type Translator struct {
	from, to *table
	rules    map[attribute.Key][]rule
	filter   filter // of the keys that may have rules or are owned
	prefixes []prefix
	names    map[string][]namePart
	routes   map[string][]route
	slots    map[attribute.Key]int // the target keys, numbered
	report   report
	scratch  sync.Pool // of *scratch
}

// rule says what becomes of one source key. Several rules for one key differ in
// the condition of src or dst; the first that holds applies, and the last one
// has no condition.
type rule struct {
	src, dst *row          // nil where the key is passed over or kept
	target   attribute.Key // empty: no target, the attribute is kept
	keep     attribute.Key // the key under which an attribute is kept
	slot     int           // number of the target key
	rank     int           // among the sources of one target the lowest wins
	same     bool          // nothing changes
	scale    scale
}

// prefix stands for all keys below it.
type prefix struct {
	text, name string
	known      bool // the target vocabulary has it too
}

// New returns a Translator from one vocabulary to another. The error says what
// is wrong with a vocabulary; those of this package have none.
func New(from, to *Vocabulary) (*Translator, error) {
	if from == nil || to == nil || from.load == nil || to.load == nil {
		return nil, errors.New("translate: New needs two vocabularies")
	}
	src, err := from.load()
	if err != nil {
		return nil, fmt.Errorf("translate: %w", err)
	}
	dst, err := to.load()
	if err != nil {
		return nil, fmt.Errorf("translate: %w", err)
	}
	t := &Translator{from: src, to: dst}
	t.scratch.New = func() any { return new(scratch) }
	if src != dst {
		t.compile()
	}
	return t, nil
}

// compile joins the rows of the two vocabularies into rules.
func (t *Translator) compile() {
	t.rules = make(map[attribute.Key][]rule)
	t.slots = make(map[attribute.Key]int)
	add := func(key string, r rule) {
		if r.target != "" {
			if _, known := t.slots[r.target]; !known {
				t.slots[r.target] = len(t.slots)
			}
			r.slot = t.slots[r.target]
		}
		if r.target == attribute.Key(key) {
			r.rank = 0
		}
		r.keep = attribute.Key(t.keepAs(key))
		t.rules[attribute.Key(key)] = append(t.rules[attribute.Key(key)], r)
	}
	for i := range t.from.Attributes {
		src := &t.from.Attributes[i]
		if text, all := strings.CutSuffix(src.Theirs, "*"); all {
			t.prefixes = append(t.prefixes, prefix{text, src.Theirs, t.to.theirs[src.Theirs] != nil})
			continue
		}
		targets := t.to.ours[src.Ours]
		if src.Ours == "" || len(targets) == 0 {
			add(src.Theirs, rule{src: src})
			continue
		}
		for _, dst := range targets {
			scale, _ := ratio(src.Unit, dst.Unit) // both convert to the unit of ours
			add(src.Theirs, rule{
				src: src, dst: dst, target: attribute.Key(dst.Theirs), rank: 1 + i, scale: scale,
				same: src.Theirs == dst.Theirs && src.When == nil && dst.When == nil && scale.none() &&
					src.Type == dst.Type && src.Values == nil && dst.Values == nil,
			})
			if dst.When == nil {
				break // what follows is only read
			}
		}
	}
	for i := range t.to.Attributes {
		key := t.to.Attributes[i].Theirs
		switch {
		case strings.HasSuffix(key, ".*"):
		case len(t.rules[attribute.Key(key)]) == 0:
			// The span has the target's own key already.
			add(key, rule{target: attribute.Key(key), same: true})
		case t.keepAs(key) != key:
			// A Translator of the other direction had to set this one aside.
			aside := t.to.Name + "." + key
			add(aside, rule{src: &row{}, dst: &row{Type: "any"}, target: attribute.Key(key), rank: 1 + len(t.from.Attributes)})
		}
	}
	for key, rules := range t.rules {
		if last := rules[len(rules)-1]; last.conditional() {
			add(string(key), rule{})
		}
	}
	for key := range t.rules {
		t.filter.add(string(key))
	}
	for _, namespace := range t.from.Namespaces {
		t.filter[namespace[0]] = ^uint64(0) // keys of any length
	}
	t.compileNames()
	t.compileMetrics()
}

// filter recognises most of the keys that a Translator has nothing to do with by
// their first byte and their length, which is quicker than to look them up.
type filter [256]uint64

func (f *filter) add(key string) { f[key[0]] |= 1 << (len(key) % 64) }

func (f *filter) mayHave(key string) bool {
	return key != "" && f[key[0]]&(1<<(len(key)%64)) != 0
}

func (r *rule) conditional() bool {
	return r.src != nil && r.src.When != nil || r.dst != nil && r.dst.When != nil
}

// keepAs is the key under which an attribute without a translation is kept. It
// is its own, unless that would say something else in the target vocabulary:
// the prefill time of SGLang is then sglang.gen_ai.latency.….
func (t *Translator) keepAs(key string) string {
	src, dst := t.from.theirs[key], t.to.theirs[key]
	if len(src) == 0 || len(dst) == 0 {
		return key
	}
	for _, s := range src {
		for _, d := range dst {
			if s.Ours == d.Ours && (s.Ours != "" || !t.from.Private && !t.to.Private) {
				return key
			}
		}
	}
	return t.from.Name + "." + key
}

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
	if t == nil || len(t.rules) == 0 || !t.concerns(attrs) {
		return attrs
	}
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
	for _, p := range t.prefixes {
		if strings.HasPrefix(key, p.text) {
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
		if at < 0 || !slices.Contains(values, attrs[at].Value.AsString()) {
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
		if !e.rename() {
			return
		}
		var exact bool
		if e.value, exact = convert(e.value, r.scale, r.dst.Type); !exact {
			e.state, e.reason = kept, NotExact
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
		e.state, e.reason = kept, Ambiguous
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
