package translate

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"go.opentelemetry.io/otel/attribute"
)

// A Translator turns what was written in one vocabulary into another. It is
// safe for concurrent use, and it counts what it could not simply rename. A nil
// Translator changes nothing.
type Translator struct {
	from, to   *table
	rules      map[attribute.Key][]rule
	filter     filter // of the keys that may have rules or are owned
	prefixes   []prefix
	lists      []messageList
	names      map[string][]namePart
	eventNames map[string][]eventRule
	routes     map[string][]route
	units      map[string]string     // of the metrics that keep their name and unit
	slots      map[attribute.Key]int // the target keys, numbered
	report     report
	scratch    sync.Pool // of *scratch
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
	numbered   bool // only for keys with a number behind it
}

func (p *prefix) has(key string) bool {
	rest, below := strings.CutPrefix(key, p.text)
	if !below || !p.numbered {
		return below
	}
	number, _, _ := strings.Cut(rest, ".")
	_, ok := index(number)
	return ok
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
			r.slot = t.slot(r.target)
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
			t.prefixes = append(t.prefixes, prefix{text: text, name: src.Theirs, known: t.to.theirs[src.Theirs] != nil})
			continue
		}
		targets := t.to.ours[src.Ours]
		if src.Ours == "" || len(targets) == 0 {
			r := rule{src: src}
			if dst := t.to.theirs[src.Theirs]; src.Ours != "" && len(dst) == 1 &&
				dst[0].Ours == src.Ours && dst[0].Type == src.Type && dst[0].Unit == src.Unit && dst[0].Values == nil && src.Values == nil {
				r = rule{target: attribute.Key(src.Theirs), same: true} // the target reads it, and would not write it
			}
			add(src.Theirs, r)
			continue
		}
		rank := 1 + i
		if src.ReadOnly {
			rank += len(t.from.Attributes)
		}
		for _, dst := range targets {
			scale, _ := ratio(src.Unit, dst.Unit) // both convert to the unit of ours
			add(src.Theirs, rule{
				src: src, dst: dst, target: attribute.Key(dst.Theirs), rank: rank, scale: scale,
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
			add(aside, rule{src: &row{}, dst: &row{Type: "any"}, target: attribute.Key(key), rank: 1 + 2*len(t.from.Attributes)})
		}
	}
	for key, rules := range t.rules {
		if last := rules[len(rules)-1]; last.conditional() {
			add(string(key), rule{})
		}
	}
	t.compileMessages()
	for key := range t.rules {
		t.filter.add(string(key))
	}
	for _, namespace := range t.from.Namespaces {
		t.filter[namespace[0]] = ^uint64(0) // keys of any length
	}
	t.compileNames()
	t.compileEvents()
	t.compileMetrics()
}

// slot numbers a target key.
func (t *Translator) slot(target attribute.Key) int {
	if _, known := t.slots[target]; !known {
		t.slots[target] = len(t.slots)
	}
	return t.slots[target]
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
