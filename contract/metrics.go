package contract

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

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
	spellings  map[string][]factTest
	settles    *rule
	measured   *measuredRule
}

// metricForm are the rules about what a metric is.
type metricForm struct{ instrument, unit, buckets *rule }

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
		for _, other := range sorted(s.Spellings) {
			if r.spellings == nil {
				r.spellings = map[string][]factTest{}
			}
			r.spellings[other] = p.factTests(s.Position, s.Spellings[other])
		}
		if s.Settles {
			if r.instrument != capture.KindUpDownCounter {
				p.failf(s.Position, "settles: %s is a %s, and only an updowncounter counts what is under way", name, r.instrument)
			}
			r.settles = p.rule("metric.unsettled", name, "", s.Position)
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
			for i := range m.Points {
				k.checkPoint(r.name, &m.Points[i])
			}
		}
	}
	for _, name := range sorted(program.metrics) {
		r := program.metrics[name]
		k.checkNamed(r, k.spelled(r, byName))
	}
}

// spelled returns the metrics that a rule is about: those of its name, and of its
// other spellings the points that say the same.
func (k *Checker) spelled(r *metricRule, byName map[string][]*capture.Metric) []*capture.Metric {
	metrics := byName[r.name]
	for _, other := range sorted(r.spellings) {
		for _, m := range byName[other] {
			same := *m
			same.Points = k.pointsWhere(m.Points, r.spellings[other])
			if len(same.Points) > 0 {
				metrics = append(metrics[:len(metrics):len(metrics)], &same)
			}
		}
	}
	return metrics
}

// pointsWhere returns the points whose attributes pass all tests.
func (k *Checker) pointsWhere(points []capture.Point, tests []factTest) []capture.Point {
	if len(tests) == 0 {
		return points
	}
	return slices.DeleteFunc(slices.Clone(points), func(p capture.Point) bool {
		for _, t := range tests {
			kv, info := k.view.among(p.Attributes, t.id)
			if kv == nil || !anyValue(t.values, info, kv.Value) {
				return true
			}
		}
		return false
	})
}

// checkNamed checks a metric that the contract names, under any of its spellings.
func (k *Checker) checkNamed(r *metricRule, metrics []*capture.Metric) {
	if r.missing != nil && k.expects(r) {
		k.test(r.missing)
		if len(metrics) == 0 {
			k.findAt(r.missing, place{}, "", "", func(f *Finding) {
				f.Message = fmt.Sprintf("the metric %s was not recorded", r.name)
				f.Expected, f.Found = r.name, "nothing"
			})
		}
	}
	if len(metrics) == 0 {
		return
	}
	for _, m := range metrics {
		for i := range m.Points {
			k.checkRules(r.name, m.Points[i].Attributes, r.attributes)
		}
	}
	k.checkSeries(r, metrics)
	k.checkSettled(r, metrics)
	if r.measured != nil {
		k.checkMeasured(r, metrics)
	}
}

// expects reports whether there was something that the metric has to measure.
func (k *Checker) expects(r *metricRule) bool {
	if r.with == 0 {
		return true
	}
	if r.measured == nil {
		return k.seenRoles&r.with != 0
	}
	of := &k.measured[r.measured.n]
	return k.seenRoles&r.with != 0 && of.count > 0 && !of.unclear
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

// checkPoint checks the attributes of a point, and what its examples repeat of single
// measurements.
func (k *Checker) checkPoint(on string, p *capture.Point) {
	k.checkAttributes(on, p.Attributes)
	for j := range p.Exemplars {
		k.checkAttributes(on, p.Exemplars[j].Attributes)
	}
}

// checkAttributes checks attributes that stand on no span.
func (k *Checker) checkAttributes(on string, attributes capture.Attributes) {
	for j := range attributes {
		info := k.view.cache.get(attributes[j].Key)
		k.checkWord(-1, on, &attributes[j], info)
		k.checkForbidden(-1, on, &attributes[j], info, ownAttribute)
	}
}

// checkRules checks what the contract says of attributes that stand on no span.
func (k *Checker) checkRules(on string, attributes capture.Attributes, rules []attributeRule) {
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

// checkSettled checks that nothing is under way any more. A cumulative point says so
// by itself, the changes of a series together.
func (k *Checker) checkSettled(r *metricRule, metrics []*capture.Metric) {
	if r.settles == nil {
		return
	}
	k.test(r.settles)
	left := func(n float64, attributes capture.Attributes) {
		if n != 0 { // NaN is none, too
			k.findAt(r.settles, place{}, "", "", func(f *Finding) {
				f.Message = fmt.Sprintf("%s is %s in the end, of %s", r.name, amount(n, dimNumber), attributeText(attributes))
				f.Expected, f.Found = "0", amount(n, dimNumber)
			})
		}
	}
	type series struct {
		sum        float64
		attributes capture.Attributes
	}
	var changes []series
	at := map[attribute.Distinct]int{}
	for _, m := range metrics {
		for i := range m.Points {
			p := &m.Points[i]
			if m.Temporality != capture.TemporalityDelta {
				left(p.Value, p.Attributes)
				continue
			}
			set := attribute.NewSet(slices.Clone(p.Attributes)...)
			n, ok := at[set.Equivalent()]
			if !ok {
				n, at[set.Equivalent()] = len(changes), len(changes)
				changes = append(changes, series{attributes: p.Attributes})
			}
			changes[n].sum += p.Value
		}
	}
	for _, c := range changes {
		left(c.sum, c.attributes)
	}
}

// attributeText shows a few attributes.
func attributeText(attributes capture.Attributes) string {
	if len(attributes) == 0 {
		return "no attributes"
	}
	var parts []string
	for _, kv := range attributes[:min(len(attributes), 4)] {
		parts = append(parts, clip(string(kv.Key), maxKey)+"="+clip(kv.Value.String(), 40))
	}
	return strings.Join(parts, ", ")
}
