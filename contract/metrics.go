package contract

import (
	"cmp"
	"fmt"
	"slices"

	"go.opentelemetry.io/otel/attribute"

	"github.com/genaitrace/otelgenai/capture"
	"github.com/genaitrace/otelgenai/contract/spec"
	"github.com/genaitrace/otelgenai/semconv"
)

// metricRule is what holds for one metric.
type metricRule struct {
	name       string
	missing    *rule
	with       roleSet // where one of these was seen, it must be there; 0 for always
	instrument capture.MetricKind
	unit       string
	buckets    []float64
	form       metricForm
	attributes []attributeRule
	series     *rule
	maxSeries  int
	measured   *measuredRule
}

// metricForm are the rules about what a metric is.
type metricForm struct{ instrument, unit, buckets *rule }

// measuredRule says which spans a metric measures.
type measuredRule struct {
	n          int // its place in program.measured
	count, sum *rule
	roles      roleSet
	when       *condition
	value      *term
	scale      float64 // what makes the sum of the metric nanoseconds, or 1
	tolerance  tolerance
}

// instruments are the words for kinds of metrics.
var instruments = map[string]capture.MetricKind{
	"counter": capture.KindCounter, "updowncounter": capture.KindUpDownCounter,
	"gauge": capture.KindGauge, "histogram": capture.KindHistogram,
}

func (p *compiler) metrics() {
	p.program.metrics = map[string]*metricRule{}
	for _, name := range sorted(p.spec.Metrics) {
		s := p.spec.Metrics[name]
		r := &metricRule{name: name, unit: s.Unit, buckets: s.Buckets, maxSeries: s.Series}
		p.notNegative(s.Position, "series", s.Series)
		if s.Required || s.RequiredWith != nil {
			r.missing, r.with = p.rule("metric.missing", name, "", s.Position), p.roleSet(s.Position, s.RequiredWith)
		}
		if s.Instrument != "" {
			r.instrument = oneOf(p, s.Position, "instrument", s.Instrument, instruments)
		}
		known, ok := semconv.LookupMetric(name)
		switch {
		case ok:
			r.fromVocabulary(known)
		case inOurs(attribute.Key(name)) && s.Instrument == "" && s.Unit == "":
			p.failf(s.Position, "the vocabulary has no metric %s; if it is your own, say its instrument and unit", name)
		}
		r.form = p.metricForm(name, s.Position)
		for _, key := range sorted(s.Attributes) {
			a := s.Attributes[key]
			if a.RequiredIf != nil || a.RequiredIff != nil {
				p.failf(a.Position, "%s: conditions are about spans, a point of a metric has none", key)
			}
			r.attributes = append(r.attributes, p.attribute(name, key, a))
		}
		if s.Series > 0 {
			r.series = p.rule("metric.series", name, "", s.Position)
		}
		if s.Of != nil {
			r.measured = p.measured(name, r.unit, s)
			p.program.measured = append(p.program.measured, r.measured)
		}
		p.program.metrics[name] = r
	}
	// What the vocabulary says of metrics that the contract does not name.
	p.program.anyMetric = p.metricForm("", spec.Position{})
	p.program.unknownMetric = p.rule("metric.unknown", "", "", spec.Position{})
}

func (p *compiler) metricForm(name string, at spec.Position) metricForm {
	return metricForm{p.rule("metric.instrument", name, "", at), p.rule("metric.unit", name, "", at), p.rule("metric.buckets", name, "", at)}
}

// fromVocabulary fills in what the contract does not say.
func (r *metricRule) fromVocabulary(m semconv.Metric) {
	if r.instrument == "" {
		r.instrument = instruments[m.Instrument]
	}
	r.unit = cmp.Or(r.unit, m.Unit)
	if r.buckets == nil {
		r.buckets = m.Buckets
	}
}

func (p *compiler) measured(name, unit string, s spec.Metric) *measuredRule {
	m := &measuredRule{
		n:     len(p.program.measured),
		count: p.rule("metric.measurements", name, "", s.Position), roles: p.roleSet(s.Position, s.Of.Role),
		when: p.condition(s.Of.When, false), scale: 1, tolerance: p.tolerance(s.Position, s.Of.Tolerance),
	}
	if s.Of.Value != "" {
		t := p.term(s.Position, s.Of.Value)
		m.value, m.sum = &t, p.rule("metric.sum", name, s.Of.Value, s.Position)
		ns, isTime := timeUnits[unit]
		if isTime != (t.dim == dimDuration) {
			p.failf(s.Position, "%s has the unit %q, and %q is %s", name, unit, s.Of.Value, t.dim)
		}
		if isTime {
			m.scale = ns
		}
	}
	return m
}

// checkMetrics checks all metrics, once everything is known.
func (k *Checker) checkMetrics() {
	byName := map[string][]*capture.Metric{}
	for _, m := range k.metrics {
		byName[m.Name] = append(byName[m.Name], m)
	}
	program := k.contract.program
	for _, name := range sorted(byName) {
		r, named := program.metrics[name]
		known, isKnown := semconv.LookupMetric(name)
		if !named {
			r = &metricRule{name: name, form: program.anyMetric}
			if isKnown {
				r.fromVocabulary(known)
			} else if inOurs(attribute.Key(name)) {
				k.test(program.unknownMetric)
				k.findAt(program.unknownMetric, place{}, name, "", func(f *Finding) {
					f.Message = fmt.Sprintf("the vocabulary has no metric %s", clip(name, maxKey))
					f.Expected, f.Found = "a metric of the vocabulary", clip(name, maxKey)
				})
			}
		}
		for _, m := range byName[name] {
			k.checkOrigin(m.Resource, m.Scope)
			k.checkForm(r, m)
			k.checkPoints(r, m)
		}
		k.checkSeries(r, byName[name])
		if r.measured != nil {
			k.checkMeasured(r, byName[name])
		}
	}
	for _, name := range sorted(program.metrics) {
		r := program.metrics[name]
		if r.missing == nil || r.with != 0 && (k.seenRoles&r.with == 0 || r.measured != nil && k.measured[r.measured.n].count == 0) {
			continue // there was nothing to measure
		}
		k.test(r.missing)
		if byName[name] == nil {
			k.findAt(r.missing, place{}, "", "", func(f *Finding) {
				f.Message = fmt.Sprintf("the metric %s was not recorded", name)
				f.Expected, f.Found = name, "nothing"
			})
		}
	}
}

func (k *Checker) checkForm(r *metricRule, m *capture.Metric) {
	if r.instrument != "" {
		k.test(r.form.instrument)
		exponential := m.Kind == capture.KindExponential && r.instrument == capture.KindHistogram
		if m.Kind != r.instrument && !exponential {
			k.findAt(r.form.instrument, place{}, m.Name, "", func(f *Finding) {
				f.Message = fmt.Sprintf("%s is of the kind %s", m.Name, cmp.Or(m.Kind, "unknown"))
				f.Expected, f.Found = string(r.instrument), string(cmp.Or(m.Kind, "unknown"))
			})
		}
	}
	if r.unit != "" {
		k.test(r.form.unit)
		if m.Unit != r.unit {
			k.findAt(r.form.unit, place{}, m.Name, "", func(f *Finding) {
				f.Message = fmt.Sprintf("%s has the unit %q", m.Name, m.Unit)
				f.Expected, f.Found = r.unit, cmp.Or(m.Unit, "none")
			})
		}
	}
	if r.buckets != nil && m.Kind == capture.KindHistogram {
		for i := range m.Points {
			k.test(r.form.buckets)
			if !slices.Equal(m.Points[i].Bounds, r.buckets) {
				k.findAt(r.form.buckets, place{}, m.Name, "", func(f *Finding) {
					f.Message = fmt.Sprintf("%s has other boundaries", m.Name)
					f.Expected, f.Found = clip(fmt.Sprint(r.buckets), 120), clip(fmt.Sprint(m.Points[i].Bounds), 120)
				})
			}
		}
	}
}

// checkPoints checks the attributes of every point, and what its examples repeat of
// single measurements.
func (k *Checker) checkPoints(r *metricRule, m *capture.Metric) {
	for i := range m.Points {
		k.checkAttributes(r.name, m.Points[i].Attributes, r.attributes)
		for j := range m.Points[i].Exemplars {
			k.checkAttributes(r.name, m.Points[i].Exemplars[j].Attributes, nil)
		}
	}
}

// checkAttributes checks attributes that stand on no span.
func (k *Checker) checkAttributes(on string, attributes capture.Attributes, rules []attributeRule) {
	for j := range attributes {
		info := k.view.cache.get(attributes[j].Key)
		k.checkWord(-1, on, &attributes[j], info)
		k.checkForbidden(-1, on, &attributes[j], info, ownAttribute)
	}
	for a := range rules {
		kv, info := k.view.among(attributes, rules[a].id)
		k.checkAttribute(&rules[a], -1, on, kv, info)
	}
}

func (k *Checker) checkSeries(r *metricRule, metrics []*capture.Metric) {
	if r.series == nil {
		return
	}
	k.test(r.series)
	series := map[attribute.Distinct]struct{}{}
	for _, m := range metrics {
		for i := range m.Points {
			set := attribute.NewSet(slices.Clone(m.Points[i].Attributes)...) // it sorts what it is given
			series[set.Equivalent()] = struct{}{}
		}
	}
	if len(series) > r.maxSeries {
		k.findAt(r.series, place{}, "", "", func(f *Finding) {
			f.Message = fmt.Sprintf("%s has %d series", r.name, len(series))
			f.Expected, f.Found = fmt.Sprintf("at most %d", r.maxSeries), fmt.Sprint(len(series))
		})
	}
}

// measurements adds up what spans say, while traces pass.
type measurements struct {
	count int
	sum   float64
}

func (k *Checker) measure(i int) {
	for n, m := range k.contract.program.measured {
		if k.view.roles[i]&m.roles == 0 || !m.when.holds(&k.view, i) {
			continue
		}
		value := 0.0
		if m.value != nil {
			var ok bool
			if value, ok = m.value.value(&k.view, i); !ok {
				continue
			}
		}
		k.measured[n].count++
		k.measured[n].sum += value
	}
}

// checkMeasured compares a metric with the spans that it measures.
func (k *Checker) checkMeasured(r *metricRule, metrics []*capture.Metric) {
	count, sum := 0, 0.0
	for _, m := range metrics {
		for i := range m.Points {
			p := &m.Points[i]
			if m.Kind == capture.KindHistogram || m.Kind == capture.KindExponential {
				count += int(p.Count)
				sum += p.Sum
			} else {
				sum += p.Value
			}
		}
	}
	m, spans := r.measured, k.measured[r.measured.n]
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
	each, all := k.tolerance(tolerance{abs: m.tolerance.abs}, m.value.dim, 0, 0), k.tolerance(tolerance{share: m.tolerance.share}, m.value.dim, got, spans.sum)
	if slack := max(each*float64(spans.count), all); !(abs(got-spans.sum) <= slack) { // so that NaN is off, too
		k.findAt(m.sum, place{}, "", "", func(f *Finding) {
			f.Message = fmt.Sprintf("%s adds up to %s, and %s of the spans to %s", r.name, amount(got, m.value.dim), m.value.text, amount(spans.sum, m.value.dim))
			f.Expected, f.Found = give(amount(spans.sum, m.value.dim), slack, m.value.dim), amount(got, m.value.dim)
		})
	}
}
