package contract

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/genaitrace/otelgenai/contract/spec"
)

// timingRule is a relation between terms of one span.
type timingRule struct {
	*rule
	on           int
	when, unless *condition
	relation     string // timing.at_most, timing.equal or timing.order
	terms        []term
	tolerance    tolerance
	why          string
}

func (p *compiler) timing(s *spec.Timing) timingRule {
	r := timingRule{
		on: p.roleIndex(s.Position, s.On), when: p.condition(s.When, false), unless: p.condition(s.Unless, false),
		tolerance: p.tolerance(s.Position, s.Tolerance), why: s.Why,
	}
	var texts []string
	for _, relation := range []struct {
		id    string
		terms []string
	}{{"timing.at_most", s.AtMost}, {"timing.equal", s.Equal}, {"timing.order", s.Order}} {
		if relation.terms == nil {
			continue
		}
		if r.relation != "" {
			p.failf(s.Position, "timing %s: only one of at_most, equal and order can be said", s.ID)
		}
		r.relation, texts = relation.id, relation.terms
	}
	if len(texts) < 2 {
		p.failf(s.Position, "timing %s: want at_most, equal or order with two terms or more", s.ID)
		r.relation = "timing.equal"
	}
	for _, text := range texts {
		r.terms = append(r.terms, p.term(s.Position, text))
	}
	p.sameDimension(s, &r)
	r.rule = p.rule(r.relation, s.On, s.ID, s.Position)
	r.exercise, r.needs = !s.Optional, roleSet(1)<<r.on
	for _, t := range r.terms {
		for _, a := range t.atoms {
			if a.of == ofRole && !a.optional {
				r.needs |= 1 << a.role
			}
		}
	}
	return r
}

// sameDimension checks that the terms can be compared, and takes a 0 for what the
// others are.
func (p *compiler) sameDimension(s *spec.Timing, r *timingRule) {
	i := max(0, slices.IndexFunc(r.terms, func(t term) bool { return !t.zero }))
	for j := range r.terms {
		t, first := &r.terms[j], &r.terms[i]
		switch {
		case t.zero:
			t.dim = first.dim
		case t.dim != first.dim:
			p.failf(s.Position, "timing %s: %q is %s and %q %s", s.ID, first.text, first.dim, t.text, t.dim)
		case r.relation == "timing.order" && t.dim != dimInstant:
			p.failf(s.Position, "timing %s: %q is %s, want a moment", s.ID, t.text, t.dim)
		}
	}
}

func (k *Checker) checkTiming(r *timingRule, i int) {
	v := &k.view
	if !r.when.holds(v, i) || r.unless != nil && r.unless.holds(v, i) {
		return
	}
	values := k.values[:0]
	for j := range r.terms {
		value, ok := r.terms[j].value(v, i)
		if !ok {
			return
		}
		values = append(values, value)
	}
	k.values = values
	k.test(r.rule)
	for j := 1; j < len(values); j++ {
		a, b := values[j-1], values[j]
		slack := k.tolerance(r.tolerance, r.terms[0].dim, a, b)
		if r.relation == "timing.equal" && abs(a-b) > slack || r.relation != "timing.equal" && a > b+slack {
			k.find(r.rule, i, "", func(f *Finding) { r.tell(f, k, i, j, a, b, slack) })
			return
		}
	}
}

// tell says that the value a of the j-th term and b of the next do not fit.
func (r *timingRule) tell(f *Finding, k *Checker, i, j int, a, b, slack float64) {
	first, second := &r.terms[j-1], &r.terms[j]
	if first.dim == dimInstant { // a reader knows the start of the span, and not that of the trace
		start, _ := k.view.since(k.view.spans[i].Start)
		a, b = a-start, b-start
	}
	var wrong, right string
	switch r.relation {
	case "timing.equal":
		wrong, right = "%s and %s differ", "%s = %s"
	case "timing.order":
		wrong, right = "%s comes after %s", "%s, then %s"
	default:
		wrong, right = "%s is more than %s", "%s ≤ %s"
	}
	f.Message = k.contract.program.roles[r.on].name + ": " + fmt.Sprintf(wrong, first.text, second.text)
	f.Expected = give(fmt.Sprintf(right, first.text, second.text), slack, first.dim)
	f.Found = amount(a, first.dim) + " and " + amount(b, second.dim)
	f.Fix = r.why
}

// give adds a tolerance to what is expected.
func give(expected string, slack float64, dim dimension) string {
	if dim == dimNumber && slack < 1e-6 || dim != dimNumber && slack <= 2*rounding {
		return expected
	}
	if dim != dimNumber && slack > 1e4 {
		slack = math.Round(slack/1e3) * 1e3 // without what is for rounding
	}
	return expected + ", give or take " + amount(slack, durationOf(dim))
}

// rounding is what a time in a double or in whole nanoseconds may be off by.
const rounding = 1.5

// tolerance returns how far a and b may be apart.
func (k *Checker) tolerance(t tolerance, dim dimension, a, b float64) float64 {
	slack := t.of(a, b)
	if dim == dimInstant {
		slack = t.abs // a share of a moment means nothing
	}
	if k.config.exact {
		slack = 0
	}
	if dim == dimNumber {
		return slack + 1e-9*max(abs(a), abs(b))
	}
	return slack + rounding + 1e-12*max(abs(a), abs(b))
}

func durationOf(d dimension) dimension {
	if d == dimInstant {
		return dimDuration
	}
	return d
}

// amount writes a value for people.
func amount(f float64, dim dimension) string {
	switch {
	case dim == dimNumber:
		return strconv.FormatFloat(f, 'g', -1, 64)
	case abs(f) > math.MaxInt64/2:
		return strconv.FormatFloat(f/1e9, 'g', 4, 64) + "s"
	case dim == dimInstant:
		return "start" + sign(f) + time.Duration(abs(f)).String()
	default:
		return time.Duration(f).String()
	}
}

func sign(f float64) string {
	if f < 0 {
		return "−"
	}
	return "+"
}

// agreeRule says that facts are the same on spans of one trace.
type agreeRule struct {
	*rule
	ids       []keyID
	keys      []string
	across    roleSet // 0 for all spans
	per       int     // −1 for the trace
	tolerance tolerance
	why       string
}

func (p *compiler) agree(s *spec.Agree) agreeRule {
	r := agreeRule{
		rule: p.rule("agree.mismatch", strings.Join(s.Across, ", "), strings.Join(s.Keys, ", "), s.Position),
		keys: s.Keys, across: p.roleSet(s.Position, s.Across), per: -1,
		tolerance: p.tolerance(s.Position, s.Tolerance), why: s.Why,
	}
	if s.Per != "" && s.Per != "trace" {
		r.per = p.roleIndex(s.Position, s.Per)
	}
	for _, key := range s.Keys {
		r.ids = append(r.ids, p.key(s.Position, key))
	}
	r.exercise, r.needs = !s.Optional, r.across
	return r
}

// checkAgree compares each span with the earliest one of the trace, or of the span
// that is compared within. Values that agree with the same one agree, so a span in
// several of those is compared with the earliest of the innermost, and that one
// with the earliest of the next.
func (k *Checker) checkAgree(r *agreeRule) {
	v := &k.view
	if r.across != 0 && v.any&r.across == 0 || r.per >= 0 && v.any&(1<<r.per) == 0 {
		return
	}
	var over []int32
	if r.per >= 0 {
		over = v.nearest(r.per)
	}
	for n, id := range r.ids {
		k.first = resize(k.first, len(v.spans)+1)
		for i := range v.spans {
			if v.outside[i] || r.across != 0 && v.roles[i]&r.across == 0 || !v.has(i, id) {
				continue
			}
			top := -1
			if r.per >= 0 && v.roles[i]&(1<<r.per) != 0 {
				top = i
			} else if r.per >= 0 {
				top = int(over[i])
			}
			for top >= 0 || r.per < 0 {
				first := &k.first[top+1]
				if *first != 0 {
					k.compare(r, n, first, i)
					break
				}
				*first = int32(i) + 1
				if top < 0 {
					break
				}
				top = int(over[top])
			}
		}
	}
}

// disagreed stands for the earliest span of those that do not agree: one finding is
// enough for them.
const disagreed = -1

// compare compares the span i with the earliest one, which first names from 1 on.
func (k *Checker) compare(r *agreeRule, n int, first *int32, i int) {
	v, id := &k.view, r.ids[n]
	if *first == disagreed {
		return
	}
	k.test(r.rule)
	before := int(*first) - 1
	if k.same(r, before, i, id) {
		return
	}
	*first = disagreed
	k.find(r.rule, i, r.keys[n], func(f *Finding) {
		a, aInfo := v.fact(before, id)
		b, bInfo := v.fact(i, id)
		f.Message = fmt.Sprintf("%s differs between %s and %s", r.keys[n], k.describe(before), k.describe(i))
		f.Expected, f.Found = string(a.Key)+" "+k.show(a, aInfo), string(b.Key)+" "+k.show(b, bInfo)
		f.Fix = r.why
	})
}

func (k *Checker) same(r *agreeRule, i, j int, id keyID) bool {
	v := &k.view
	a, aOK := v.number(i, id)
	b, bOK := v.number(j, id)
	if aOK && bOK {
		return abs(a-b) <= k.tolerance(r.tolerance, dimNumber, a, b)
	}
	x, xInfo := v.fact(i, id)
	y, yInfo := v.fact(j, id)
	return xInfo.text(x.Value.String()) == yInfo.text(y.Value.String())
}

// sloRule bounds percentiles over all spans of a role.
type sloRule struct {
	*rule
	id      string
	on      int
	when    *condition
	value   term
	bounds  []sloBound
	min     *float64
	samples int
}

type sloBound struct {
	name  string
	share float64
	most  float64
}

func (p *compiler) slo(s *spec.SLO) sloRule {
	r := sloRule{
		rule: p.rule("slo.missed", s.On, s.ID, s.Position), id: s.ID, on: p.roleIndex(s.Position, s.On),
		when: p.condition(s.When, false), value: p.term(s.Position, s.Value), samples: cmp.Or(s.Samples, 1),
	}
	constant := func(key, text string) float64 {
		value, isTime := p.constant(s.Position, key, text)
		if isTime != (r.value.dim == dimDuration) && value != 0 {
			p.failf(s.Position, "slo %s: %s is %q and %q is %s", s.ID, key, text, s.Value, r.value.dim)
		}
		return value
	}
	for _, b := range []struct {
		name  string
		share float64
		text  string
	}{{"p50", 0.5, s.P50}, {"p95", 0.95, s.P95}, {"p99", 0.99, s.P99}, {"max", 1, s.Max}} {
		if b.text != "" {
			r.bounds = append(r.bounds, sloBound{b.name, b.share, constant(b.name, b.text)})
		}
	}
	if s.Min != "" {
		lowest := constant("min", s.Min)
		r.min = &lowest
	}
	if r.bounds == nil && r.min == nil {
		p.failf(s.Position, "slo %s: want p50, p95, p99, max or min", s.ID)
	}
	return r
}

// samples are the values of an objective, and where the worst ones were.
type samples struct {
	values          []float64
	most, least     float64
	highest, lowest place // of the highest and the lowest value
}

// maxSamples bounds the values that an objective keeps.
const maxSamples = 1 << 20

func (k *Checker) sample(n int, r *sloRule, i int) {
	if !r.when.holds(&k.view, i) {
		return
	}
	value, ok := r.value.value(&k.view, i)
	s := &k.samples[n]
	if !ok || len(s.values) >= maxSamples {
		return
	}
	at, first := k.spot(i), len(s.values) == 0
	s.values = append(s.values, value)
	if first || value > s.most || value == s.most && at.before(&s.highest) {
		at.path = k.path(i)
		s.most, s.highest = value, at
	}
	if first || value < s.least || value == s.least && at.before(&s.lowest) {
		at.path = k.path(i)
		s.least, s.lowest = value, at
	}
}

// judgeSLO judges an objective by the nearest-rank percentile.
func (k *Checker) judgeSLO(n int, r *sloRule) {
	s := &k.samples[n]
	if len(s.values) < r.samples || len(s.values) == 0 {
		return
	}
	slices.Sort(s.values)
	k.test(r.rule)
	missed := func(name string, at place, expected string, got float64) {
		k.findAt(r.rule, at, "", r.id+" "+name, func(f *Finding) {
			f.Message = fmt.Sprintf("%s of %s is %s over %s", name, r.value.text, amount(got, r.value.dim), count(len(s.values), "span"))
			f.Expected, f.Found = expected, amount(got, r.value.dim)
		})
	}
	for _, b := range r.bounds {
		got := s.values[max(0, int(math.Ceil(b.share*float64(len(s.values))))-1)]
		if got > b.most {
			missed(b.name, s.highest, "at most "+amount(b.most, r.value.dim), got)
		}
	}
	if r.min != nil && s.least < *r.min {
		missed("min", s.lowest, "at least "+amount(*r.min, r.value.dim), s.least)
	}
}
