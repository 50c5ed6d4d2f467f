package sampling

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/genaitrace/otelgenai/internal/bound"
)

// The Collector's processor keeps a trace that one of its policies keeps. A policy is a
// test of the trace, or "and" of tests, or "not" of a test; these do not nest
// further. So a Policy is written as a sum of products.

// An atom is a test of a trace that the Collector has.
type atom struct {
	name     string
	kind     string // the type of the Collector's policy
	settings node
	rank     int           // cheaper tests come first
	waits    time.Duration // how long a trace must last to pass
}

// A literal is an atom, or the opposite of it.
type literal struct {
	atom int
	not  bool
}

// A product holds if all its literals do. They are sorted, each atom is there once.
type product []literal

// A sum holds if one of its products does. No product contains another one. Nothing
// is never, an empty product always.
type sum []product

// maxProducts bounds what a policy becomes; conditions of conditions multiply.
const maxProducts = 64

var errTooManyProducts = fmt.Errorf("becomes more than %d policies of the Collector, which cannot nest them: "+
	"let the service mark its traces by an attribute, and match that", maxProducts)

// A translator writes a policy that compiles as sums of atoms.
type translator struct {
	atoms []atom
	byKey map[string]int
	path  []string
	errs  []error
}

// translate returns p as a sum of the atoms that are returned with it.
func translate(p Policy) (sum, []atom, error) {
	if err := p.Validate(); err != nil {
		return nil, nil, err
	}
	t := &translator{byKey: map[string]int{}}
	s := t.policy("policy", p)
	return s, t.atoms, errors.Join(t.errs...)
}

func (t *translator) fail(err error) sum {
	t.errs = append(t.errs, fmt.Errorf("sampling: %s: %w", strings.Join(t.path, "."), err))
	return nil
}

// without says that the Collector has nothing like a policy, and what to do.
func (t *translator) without(reason string) sum {
	return t.fail(errors.New("the Collector cannot do that: " + reason))
}

// is returns the sum of one atom. Equal atoms are one.
func (t *translator) is(a atom) sum {
	var b strings.Builder
	a.settings.write(&b, 0)
	key := a.kind + "\n" + b.String()
	i, ok := t.byKey[key]
	if !ok {
		i = len(t.atoms)
		t.byKey[key] = i
		t.atoms = append(t.atoms, a)
	}
	return sum{{literal{atom: i}}}
}

func (t *translator) policy(place string, p Policy) sum {
	depth := len(t.path)
	t.path = append(t.path, place+"."+p.rule.name())
	defer func() { t.path = t.path[:depth] }()
	switch r := p.rule.(type) {
	case errorsRule:
		return t.is(atom{name: "errors", kind: "status_code", settings: node{{"status_codes", []string{"ERROR"}}}, rank: 1})
	case slowRule:
		return t.slow(time.Duration(r.Over))
	case slowByRule:
		return t.slowBy(r)
	case matchRule:
		return t.match(r)
	case baselineRule:
		return t.baseline(r.Ratio)
	case anyRule:
		var s sum
		for i, part := range r {
			s = t.or(s, t.policy(fmt.Sprint(i), part))
		}
		return s
	case allRule:
		s := sum{{}}
		for i, part := range r {
			s = t.and(s, t.policy(fmt.Sprint(i), part))
		}
		return s
	case notRule:
		return t.not(t.policy("of", r.Of))
	case firstRule:
		return t.first(r)
	case customRule:
		return t.without("it cannot call a function of yours: let the service note the answer in an attribute, and Match that")
	case quantileRule:
		return t.without("it does not learn limits: use Slow or SlowBy, with the limits that the metric genai.sampling.slow_threshold shows")
	case targetRateRule, adaptiveRule:
		return t.without("its shares do not move: use Baseline, with the share that the metric genai.sampling.probability shows")
	case limitRule:
		return t.without("it limits spans a second, and whatever comes first, so that counts would be wrong: leave Limit out, " +
			"or thin out with All(…, Baseline(p))")
	case keyPathRule:
		return t.without("it keeps traces whole: leave KeyPath to the Tail of the services")
	case layersRule:
		return t.without("spans are recorded before it sees them: leave Layers to the Tail of the services, and give here the policy inside it")
	default:
		return t.without("it does not know this policy")
	}
}

// slow tests for a trace that lasts limit or longer. The Collector counts whole
// milliseconds and wants more than its threshold.
func (t *translator) slow(limit time.Duration) sum {
	if limit%time.Millisecond != 0 {
		return t.fail(fmt.Errorf("the Collector counts whole milliseconds, and %s is none: round it", limit))
	}
	return t.is(atom{
		name: "slow " + limit.String(), kind: "latency", rank: 2, waits: limit,
		settings: node{{"threshold_ms", limit.Milliseconds() - 1}},
	})
}

// slowBy gives each value its limit, and the others theirs. Where a trace has several
// of the values, each counts.
func (t *translator) slowBy(r slowByRule) sum {
	if len(r.Limits) == 0 {
		return t.slow(time.Duration(r.Other))
	}
	values := sortedKeys(r.Limits)
	if values[0] == "" {
		return t.fail(errors.New("has a limit for the empty value: what has no value has the other limit"))
	}
	has := func(name string, values ...string) sum {
		c, err := Selector{Key: r.Key, Values: values}.condition()
		if err != nil {
			return t.fail(err)
		}
		return t.is(c.atom(name, 0))
	}
	s := t.and(t.not(has(string(r.Key)+" with a limit", values...)), t.slow(time.Duration(r.Other)))
	for _, value := range values {
		s = t.or(s, t.and(has(string(r.Key)+"="+value, value), t.slow(time.Duration(r.Limits[value]))))
	}
	return s
}

func (t *translator) match(r matchRule) sum {
	c, err := r.Select.condition()
	if err != nil {
		return t.fail(err)
	}
	return t.is(c.atom(r.Name, r.Select.MinDuration))
}

func (t *translator) baseline(ratio float64) sum {
	switch ratio {
	case 0:
		return nil
	case 1:
		return sum{{}}
	default:
		return t.is(atom{name: "baseline " + number(ratio), kind: "probabilistic", settings: node{{"sampling_percentage", 100 * ratio}}})
	}
}

// first lets each case decide where no condition before it holds.
func (t *translator) first(cases firstRule) sum {
	var s sum
	rest := sum{{}}
	for i, c := range cases {
		when := sum{{}}
		if !c.When.IsZero() {
			when = t.policy(fmt.Sprintf("%d.when", i), c.When)
		}
		then := t.policy(fmt.Sprintf("%d.then", i), c.Then)
		s = t.or(s, t.and(t.and(rest, when), then))
		rest = t.and(rest, t.not(when))
	}
	return s
}

// add adds a product to a sum, unless there is one that holds whenever it does, and
// removes those that hold only when it does.
func (t *translator) add(s sum, p product) sum {
	if slices.ContainsFunc(s, func(q product) bool { return q.within(p) }) {
		return s
	}
	s = slices.DeleteFunc(s, func(q product) bool { return p.within(q) })
	if len(s) >= maxProducts {
		if len(t.errs) == 0 { // what follows from it is not worth telling
			t.fail(errTooManyProducts)
		}
		return s
	}
	return append(s, p)
}

func (t *translator) or(a, b sum) sum {
	s := slices.Clone(a)
	for _, p := range b {
		s = t.add(s, p)
	}
	return s
}

func (t *translator) and(a, b sum) sum {
	var s sum
	for _, p := range a {
		for _, q := range b {
			if both, possible := p.and(q); possible {
				s = t.add(s, both)
			}
		}
	}
	return s
}

func (t *translator) not(a sum) sum {
	s := sum{{}}
	for _, p := range a {
		var opposite sum
		for _, l := range p {
			opposite = append(opposite, product{{l.atom, !l.not}})
		}
		s = t.and(s, opposite)
	}
	return s
}

// within reports whether every literal of p is in q, so that p holds when q does.
func (p product) within(q product) bool {
	for _, l := range p {
		if !slices.Contains(q, l) {
			return false
		}
	}
	return true
}

// and returns p and q together, and whether both can hold.
func (p product) and(q product) (product, bool) {
	both := slices.Clone(p)
	for _, l := range q {
		switch {
		case slices.Contains(p, l):
		case slices.Contains(p, literal{l.atom, !l.not}):
			return nil, false
		default:
			both = append(both, l)
		}
	}
	return both, true
}

// policies writes a sum as the policies of the processor.
func (s sum) policies(atoms []atom) []node {
	if len(s) == 0 {
		return []node{{{"name", "nothing"}, {"type", "probabilistic"}, {"probabilistic", node{{"sampling_percentage", 0}}}}}
	}
	var policies []node
	names := map[string]bool{}
	dropped, s := s.withoutDropped()
	for _, l := range dropped {
		part, words := literal{atom: l.atom}.node(atoms)
		policies = append(policies, node{
			{"name", unique(names, "drop "+words)},
			{"type", "drop"},
			{"drop", node{{"drop_sub_policy", []node{part}}}},
		})
	}
	for _, p := range s {
		policies = append(policies, p.node(names, atoms))
	}
	return policies
}

// withoutDropped takes out what each of several products asks to be absent: traces that
// have it are dropped before any other test.
func (s sum) withoutDropped() (dropped product, rest sum) {
	if len(s) == 1 {
		return nil, s
	}
	for _, l := range s[0] {
		if l.not && !slices.ContainsFunc(s, func(p product) bool { return !slices.Contains(p, l) }) {
			dropped = append(dropped, l)
		}
	}
	for _, p := range s {
		rest = append(rest, slices.DeleteFunc(slices.Clone(p), func(l literal) bool { return slices.Contains(dropped, l) }))
	}
	return dropped, rest
}

// node writes a product as a policy.
func (p product) node(names map[string]bool, atoms []atom) node {
	p = slices.Clone(p)
	slices.SortStableFunc(p, func(a, b literal) int { return atoms[a.atom].rank - atoms[b.atom].rank })
	parts, words := make([]node, len(p)), make([]string, len(p))
	for i, l := range p {
		parts[i], words[i] = l.node(atoms)
	}
	name := unique(names, strings.Join(words, " and "))
	switch len(p) {
	case 0:
		return node{{"name", unique(names, "all")}, {"type", "always_sample"}}
	case 1:
		return append(node{{"name", name}}, parts[0][1:]...)
	default:
		return node{{"name", name}, {"type", "and"}, {"and", node{{"and_sub_policy", parts}}}}
	}
}

// unique makes a name that fits into a metric and is not taken.
func unique(taken map[string]bool, name string) string {
	const maxName = 200
	base := verbatim(bound.String(name, maxName))
	name = base
	for n := 2; taken[name]; n++ {
		name = fmt.Sprintf("%s (%d)", base, n)
	}
	taken[name] = true
	return name
}

// node writes a literal as a policy, and says it in words.
func (l literal) node(atoms []atom) (policy node, words string) {
	a := atoms[l.atom]
	words = bound.String(a.name, 100)
	policy = node{{"name", verbatim(words)}, {"type", a.kind}, {a.kind, a.settings}}
	if l.not {
		words = "not " + words
		policy = node{{"name", verbatim(words)}, {"type", "not"}, {"not", node{{"not_sub_policy", policy}}}}
	}
	return policy, words
}
