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
			p.fail(s.Position, "timing %s: only one of at_most, equal and order can be said", s.ID)
		}
		r.relation, texts = relation.id, relation.terms
	}
	if len(texts) < 2 {
		p.fail(s.Position, "timing %s: want at_most, equal or order with two terms or more", s.ID)
		r.relation = "timing.equal"
	}
	for _, text := range texts {
		r.terms = append(r.terms, p.term(s.Position, text))
	}
	for i := range r.terms {
		t := &r.terms[i]
		switch {
		case t.dim != r.terms[0].dim:
			p.fail(s.Position, "timing %s: %q is %s and %q %s", s.ID, r.terms[0].text, r.terms[0].dim, t.text, t.dim)
		case r.relation == "timing.order" && t.dim != dimInstant:
			p.fail(s.Position, "timing %s: %q is %s, want a moment", s.ID, t.text, t.dim)
		}
	}
	r.rule = p.rule(r.relation, s.On, s.ID, s.Position)
	r.exercise, r.needs = !s.Optional, roleSet(1)<<r.on
	return r
}

func (k *Checker) checkTiming(r *timingRule, i int) {
	v := &k.view
	if !r.when.holds(v, i) || r.unless != nil && r.unless.holds(v, i) {
		return
	}
	values := make([]float64, 0, 8)
	for j := range r.terms {
		value, ok := r.terms[j].value(v, i)
		if !ok {
			return
		}
		values = append(values, value)
	}
	k.test(r.rule)
	for j := 1; j < len(values); j++ {
		a, b := values[j-1], values[j]
		slack := k.tolerance(r.tolerance, r.terms[0].dim, a, b)
		if r.relation == "timing.equal" && abs(a-b) > slack || r.relation != "timing.equal" && a > b+slack {
			k.find(r.rule, i, "", func(f *Finding) {
				sign := map[string]string{"timing.at_most": "≤", "timing.equal": "=", "timing.order": "before"}[r.relation]
				first, second := &r.terms[j-1], &r.terms[j]
				f.Message = fmt.Sprintf("%s: not %s %s %s", r.role(k), first.text, sign, second.text)
				f.Expected = fmt.Sprintf("%s %s %s", first.text, sign, second.text)
				if slack > 0 {
					f.Expected += ", give or take " + amount(slack, durationOf(first.dim))
				}
				f.Found = amount(a, first.dim) + " and " + amount(b, second.dim)
				f.Fix = r.why
			})
			return
		}
	}
}

func (r *timingRule) role(k *Checker) string { return k.contract.program.roles[r.on].name }

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
		r.ids = append(r.ids, p.keys.id(key))
	}
	r.exercise, r.needs = !s.Optional, r.across
	return r
}

func (k *Checker) checkAgree(r *agreeRule) {
	v := &k.view
	if r.per < 0 {
		k.agreeWithin(r, -1)
		return
	}
	for i := range v.spans {
		if v.roles[i]&(1<<r.per) != 0 {
			k.agreeWithin(r, i)
		}
	}
}

// agreeWithin compares the spans at or below top, or all.
func (k *Checker) agreeWithin(r *agreeRule, top int) {
	v := &k.view
	for n, id := range r.ids {
		first := -1
		for i := range v.spans {
			if r.across != 0 && v.roles[i]&r.across == 0 || top >= 0 && i != top && !v.inside(i, top) {
				continue
			}
			kv, _ := v.fact(i, id)
			if kv == nil {
				continue
			}
			if first < 0 {
				first = i
				continue
			}
			k.test(r.rule)
			before, _ := v.fact(first, id)
			if !k.same(r, first, i, id) {
				k.findOn(r.rule, i, "", r.keys[n], func(f *Finding) {
					f.Message = fmt.Sprintf("%s differs between %s and %s", r.keys[n], v.describe(first), v.describe(i))
					f.Expected, f.Found = string(before.Key)+" "+show(before.Value), string(kv.Key)+" "+show(kv.Value)
					f.Fix = r.why
				})
				break
			}
		}
	}
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
			p.fail(s.Position, "slo %s: %s is %q and %q is %s", s.ID, key, text, s.Value, r.value.dim)
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
		p.fail(s.Position, "slo %s: want p50, p95, p99, max or min", s.ID)
	}
	return r
}

// maxSamples bounds the values that an objective keeps.
const maxSamples = 1 << 20

func (k *Checker) sample(n int, r *sloRule, i int) {
	if !r.when.holds(&k.view, i) {
		return
	}
	if value, ok := r.value.value(&k.view, i); ok && len(k.samples[n]) < maxSamples {
		k.samples[n] = append(k.samples[n], value)
	}
}

// judgeSLO judges an objective by the nearest-rank percentile.
func (k *Checker) judgeSLO(n int, r *sloRule) {
	values := k.samples[n]
	if len(values) < r.samples {
		return
	}
	slices.Sort(values)
	k.test(r.rule)
	missed := func(name string, expected string, got float64) {
		k.findAt(r.rule, Finding{}, "", r.id+" "+name, func(f *Finding) {
			f.Message = fmt.Sprintf("%s of %s is %s over %d spans", name, r.value.text, amount(got, r.value.dim), len(values))
			f.Expected, f.Found = expected, amount(got, r.value.dim)
		})
	}
	for _, b := range r.bounds {
		got := values[max(0, int(math.Ceil(b.share*float64(len(values))))-1)]
		if got > b.most {
			missed(b.name, "at most "+amount(b.most, r.value.dim), got)
		}
	}
	if r.min != nil && values[0] < *r.min {
		missed("min", "at least "+amount(*r.min, r.value.dim), values[0])
	}
}
