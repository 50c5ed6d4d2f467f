package contract

import (
	"fmt"
	"strings"

	"github.com/genaitrace/otelgenai/capture"
	"github.com/genaitrace/otelgenai/contract/spec"
)

// measuredRule says which spans a metric measures.
type measuredRule struct {
	n            int // its place in program.measured
	count, sum   *rule
	roles        roleSet
	when, unless *condition
	where        []factTest // of points
	value, per   *term
	dim          dimension // of what is measured
	span, scale  float64   // what makes the value of a span, and the sum of the metric, of that dimension
	tolerance    tolerance
}

func (p *compiler) measured(name, unit string, s spec.Metric) *measuredRule {
	of, at := s.Of, s.Position
	m := &measuredRule{
		n:     len(p.program.measured),
		count: p.rule("metric.measurements", name, "", at), roles: p.roleSet(at, of.Role),
		when: p.condition(of.When, false), unless: p.condition(of.Unless, false), where: p.factTests(at, of.Where),
		span: 1, scale: 1, tolerance: p.tolerance(at, of.Tolerance),
	}
	if of.Value == "" {
		if of.Per != "" {
			p.failf(at, "per divides a value, and there is none")
		}
		return m
	}
	value := p.term(at, of.Value)
	text, is := of.Value, value.dim
	if of.Per != "" {
		per := p.term(at, of.Per)
		m.per, text = &per, of.Value+" / "+of.Per
		is = p.ratio(at, value, per)
	}
	m.value, m.sum = &value, p.rule("metric.sum", name, text, at)
	want, ns := measures(unit)
	if is != want {
		p.failf(at, "%s has the unit %q, and %q is %s", name, unit, text, is)
	}
	switch want {
	case dimDuration:
		m.dim, m.scale = dimDuration, ns
	case dimRate:
		m.span = ns
	case dimNumber, dimInstant:
	}
	return m
}

// ratio is what a quotient measures.
func (p *compiler) ratio(at spec.Position, value, per term) dimension {
	switch {
	case value.dim == dimInstant || per.dim == dimInstant:
		p.failf(at, "%q / %q: a moment cannot be divided", value.text, per.text)
		return dimNumber
	case value.dim == per.dim:
		return dimNumber
	case value.dim == dimDuration:
		return dimDuration
	default:
		return dimRate
	}
}

// measures says what a metric with a unit measures, and how many nanoseconds its unit
// of time has.
func measures(unit string) (dimension, float64) {
	if ns, ok := timeUnits[unit]; ok {
		return dimDuration, ns
	}
	if i := strings.LastIndexByte(unit, '/'); i >= 0 {
		if ns, ok := timeUnits[unit[i+1:]]; ok {
			return dimRate, ns
		}
	}
	return dimNumber, 1
}

// measurements adds up what spans say, while traces pass.
type measurements struct {
	count   int
	sum     float64
	unclear bool // nobody can tell what else was measured
}

func (k *Checker) measure(i int) {
	for n, m := range k.contract.program.measured {
		if k.view.roles[i]&m.roles == 0 || !m.when.holds(&k.view, i) {
			continue
		}
		if m.unless != nil && m.unless.holds(&k.view, i) {
			k.measured[n].unclear = true
			continue
		}
		if value, ok := m.of(&k.view, i); ok {
			k.measured[n].count++
			k.measured[n].sum += value
		}
	}
}

// of is what the metric measures of a span; false where there is nothing.
func (m *measuredRule) of(v *view, i int) (float64, bool) {
	if m.value == nil {
		return 0, true
	}
	value, ok := m.value.value(v, i)
	if !ok || m.per == nil {
		return value, ok
	}
	per, ok := m.per.value(v, i)
	return value / per * m.span, ok && per != 0
}

// checkMeasured compares a metric with the spans that it measures.
func (k *Checker) checkMeasured(r *metricRule, metrics []*capture.Metric) {
	m, spans := r.measured, k.measured[r.measured.n]
	if spans.unclear || k.late+k.dropped > 0 { // who knows what was measured there
		return
	}
	count, sum := 0, 0.0
	for _, metric := range metrics {
		histogram := metric.Kind == capture.KindHistogram || metric.Kind == capture.KindExponential
		for _, p := range k.pointsWhere(metric.Points, m.where) {
			if histogram {
				count += int(p.Count)
				sum += p.Sum
			} else {
				sum += p.Value
			}
		}
	}
	if r.instrument == capture.KindHistogram {
		k.test(m.count)
		if count != spans.count {
			k.findAt(m.count, place{}, "", "", func(f *Finding) {
				f.Message = fmt.Sprintf("%s has %d measurements, and %d spans have something to measure", r.name, count, spans.count)
				f.Expected, f.Found = fmt.Sprint(spans.count), fmt.Sprint(count)
			})
		}
	}
	if m.value == nil {
		return
	}
	k.test(m.sum)
	got := sum * m.scale
	// Each measurement may be off by the absolute tolerance, and all together by the
	// share.
	each, all := k.tolerance(tolerance{abs: m.tolerance.abs}, m.dim, 0, 0), k.tolerance(tolerance{share: m.tolerance.share}, m.dim, got, spans.sum)
	if slack := max(each*float64(spans.count), all); !(abs(got-spans.sum) <= slack) { // so that NaN is off, too
		k.findAt(m.sum, place{}, "", "", func(f *Finding) {
			f.Message = fmt.Sprintf("%s adds up to %s, and %s of the spans to %s", r.name, amount(got, m.dim), m.sum.key, amount(spans.sum, m.dim))
			f.Expected, f.Found = give(amount(spans.sum, m.dim), slack, m.dim), amount(got, m.dim)
		})
	}
}
