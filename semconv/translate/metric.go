package translate

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// NewMetricExporter returns an exporter that translates metrics on their way to
// next, which also keeps deciding temporality and aggregation. Errors of next
// pass unchanged. Without a next exporter it returns nil, which a reader does
// not accept; without a Translator it returns next.
func NewMetricExporter(next sdkmetric.Exporter, tr *Translator) sdkmetric.Exporter {
	if next == nil || tr == nil {
		return next
	}
	return &metricExporter{next, tr}
}

type metricExporter struct {
	sdkmetric.Exporter

	tr *Translator
}

// Export implements [sdkmetric.Exporter].
func (e *metricExporter) Export(ctx context.Context, rm *metricdata.ResourceMetrics) error {
	return e.Exporter.Export(ctx, e.tr.Metrics(rm))
}

// route leads data points of one metric to a metric of the target vocabulary.
type route struct {
	src  *metricRow
	name string
	unit string
	add  []attribute.KeyValue
}

// compileMetrics joins the metrics of the two vocabularies. What keeps its name,
// its unit and its attributes needs no route.
func (t *Translator) compileMetrics() {
	t.routes, t.units = make(map[string][]route), make(map[string]string)
	for i := range t.from.Metrics {
		src := &t.from.Metrics[i]
		dst := t.to.written[src.Ours]
		if dst == nil || src.Derive != "" && dst.TheirsOnly != nil {
			continue
		}
		if src.Theirs == dst.Theirs && src.Unit == dst.Unit && maps.Equal(src.TheirsOnly, dst.TheirsOnly) {
			t.units[dst.Theirs] = dst.Unit
			continue
		}
		r := route{src: src, name: dst.Theirs, unit: dst.Unit}
		for _, key := range slices.Sorted(maps.Keys(dst.TheirsOnly)) {
			r.add = append(r.add, attribute.String(key, dst.TheirsOnly[key]))
		}
		for _, key := range slices.Sorted(maps.Keys(src.OursOnly)) {
			if rows := t.to.ours[key]; len(rows) > 0 {
				r.add = append(r.add, attribute.String(rows[0].Theirs, src.OursOnly[key]))
			}
		}
		t.routes[src.Theirs] = append(t.routes[src.Theirs], r)
	}
}

// Metrics translates names, units and attributes of collected metrics. It
// returns rm itself where nothing changes; rm is never written to.
//
// Histograms keep their buckets, with the bounds in the new unit. An
// exponential histogram whose unit would change cannot be converted and is
// kept. A point that would have the name and the attributes of another one is
// kept too.
func (t *Translator) Metrics(rm *metricdata.ResourceMetrics) *metricdata.ResourceMetrics {
	if t == nil || rm == nil || len(t.rules) == 0 {
		return rm
	}
	out := rm
	for i := range rm.ScopeMetrics {
		metrics, changed := t.scopeMetrics(rm.ScopeMetrics[i].Metrics)
		if !changed {
			continue
		}
		if out == rm {
			out = &metricdata.ResourceMetrics{Resource: rm.Resource, ScopeMetrics: slices.Clone(rm.ScopeMetrics)}
		}
		out.ScopeMetrics[i].Metrics = metrics
	}
	return out
}

// scopeMetrics translates the metrics of one scope.
func (t *Translator) scopeMetrics(in []metricdata.Metrics) ([]metricdata.Metrics, bool) {
	b := builder{tr: t, byName: make(map[string]*metricdata.Metrics), taken: make(map[series]bool)}
	groups := make([][]*metricdata.Metrics, len(in))
	// What keeps its name has the first claim to it.
	for _, routed := range []bool{false, true} {
		for i, m := range in {
			if (len(t.routes[m.Name]) > 0) == routed {
				groups[i] = b.metric(m)
			}
		}
	}
	if !b.changed {
		return in, false
	}
	var out []metricdata.Metrics
	for _, g := range groups {
		for _, m := range g {
			out = append(out, *m)
		}
	}
	return out, true
}

// builder collects the metrics of one scope under their new names.
type builder struct {
	tr      *Translator
	byName  map[string]*metricdata.Metrics
	taken   map[series]bool
	changed bool
}

// series is what identifies a series of data points within a scope.
type series struct {
	metric string
	set    attribute.Distinct
}

// metric translates one metric and returns those that came to be of it. Points
// that join a metric which exists already are added to that one.
func (b *builder) metric(m metricdata.Metrics) (made []*metricdata.Metrics) {
	t := b.tr
	rest, left := m.Data, 1
	for i := range t.routes[m.Name] {
		r := &t.routes[m.Name][i]
		source := rest
		if r.src.Derive != "" {
			source = sums(m.Data)
		}
		moved, remains := b.follow(r, m, source)
		if moved.n == 0 {
			continue
		}
		if r.src.Derive == "" {
			rest, left = remains.data, remains.n
		}
		b.changed = true
		if known := b.byName[r.name]; known != nil {
			known.Data = join(known.Data, moved.data)
			continue
		}
		target := &metricdata.Metrics{Name: r.name, Description: m.Description, Unit: r.unit, Data: moved.data}
		b.byName[r.name] = target
		made = append(made, target)
	}
	if left == 0 {
		return made
	}
	if t.to.metric[m.Name] == nil && (t.from.metric[m.Name] != nil || t.from.owns(m.Name)) {
		t.report.add(m.Name, NoTarget)
	}
	kept := b.stay(m, rest)
	if b.byName[m.Name] == nil {
		b.byName[m.Name] = kept
	}
	return append(made, kept)
}

// follow takes the points of data that the route applies to.
func (b *builder) follow(r *route, m metricdata.Metrics, data metricdata.Aggregation) (moved, remains part) {
	unit := m.Unit
	if unit == "" {
		unit = r.src.Unit
	}
	scale, ok := ratio(unit, r.unit)
	var scaled metricdata.Aggregation
	if ok {
		scaled, ok = rescale(data, scale)
	}
	problem := NotExact
	if known := b.byName[r.name]; ok && known != nil {
		problem, ok = Conflict, joins(known, r.unit, scaled)
	}
	moved, remains = split(data, func(set attribute.Set) (attribute.Set, bool) {
		if !r.applies(&set) {
			return set, false
		}
		if !ok {
			b.tr.report.add(m.Name, problem)
			return set, false
		}
		translated, unique := b.tr.set(set, r.src.TheirsOnly, r.add)
		if !unique || !b.claim(r.name, &translated) {
			b.tr.report.add(m.Name, Conflict)
			return set, false
		}
		return translated, true
	})
	if moved.n > 0 {
		moved.data, _ = rescale(moved.data, scale)
		b.tr.exemplars(moved.data)
	}
	return moved, remains
}

// stay translates the attributes of points that keep the name of their metric.
// Those that need no translation have the first claim, wherever they stand.
func (b *builder) stay(m metricdata.Metrics, data metricdata.Aggregation) *metricdata.Metrics {
	type target struct {
		set             attribute.Set
		changed, unique bool
	}
	var targets []target
	all, _ := split(data, func(set attribute.Set) (attribute.Set, bool) {
		translated, unique := b.tr.set(set, nil, nil)
		changed := !translated.Equals(&set)
		if !changed {
			b.claim(m.Name, &set)
		}
		targets = append(targets, target{translated, changed, unique})
		return set, true
	})
	changed := false
	if slices.ContainsFunc(targets, func(t target) bool { return t.changed }) {
		i := -1
		all, _ = split(data, func(set attribute.Set) (attribute.Set, bool) {
			i++
			t := &targets[i]
			if !t.changed {
				return set, true
			}
			if !t.unique || !b.claim(m.Name, &t.set) {
				b.tr.report.add(m.Name, Conflict)
				return set, true
			}
			changed = true
			return t.set, true
		})
	}
	m.Data = data
	if b.tr.exemplars(all.data) || changed {
		b.changed = true
		m.Data = all.data
	}
	b.unit(&m)
	return &m
}

// unit converts a metric that keeps its name and states another unit than the
// target vocabulary.
func (b *builder) unit(m *metricdata.Metrics) {
	unit := b.tr.units[m.Name]
	if unit == "" || m.Unit == "" || m.Unit == unit {
		return
	}
	scale, ok := ratio(m.Unit, unit)
	data := m.Data
	if ok {
		data, ok = rescale(data, scale)
	}
	if !ok {
		if len(b.tr.routes[m.Name]) == 0 { // else it is reported already
			b.tr.report.add(m.Name, NotExact)
		}
		return
	}
	m.Data, m.Unit, b.changed = data, unit, true
}

func (b *builder) claim(metric string, set *attribute.Set) bool {
	s := series{metric, set.Equivalent()}
	if b.taken[s] {
		return false
	}
	b.taken[s] = true
	return true
}

// applies reports whether a point with these attributes takes the route.
func (r *route) applies(set *attribute.Set) bool {
	for key, value := range r.src.TheirsOnly {
		if got, ok := set.Value(attribute.Key(key)); !ok || got.AsString() != value {
			return false
		}
	}
	for key, values := range r.src.When {
		if got, ok := set.Value(attribute.Key(key)); !ok || !slices.Contains(values, got.AsString()) {
			return false
		}
	}
	return true
}

// set translates the attributes of a point, after drop was removed and before
// add is added. It reports false where add is there already.
func (t *Translator) set(set attribute.Set, drop map[string]string, add []attribute.KeyValue) (attribute.Set, bool) {
	attrs := make([]attribute.KeyValue, 0, set.Len()+len(add))
	for i := range set.Len() {
		a, _ := set.Get(i)
		if _, dropped := drop[string(a.Key)]; !dropped {
			attrs = append(attrs, a)
		}
	}
	translated := t.Attributes(attrs)
	if len(drop) == 0 && len(add) == 0 && sameList(attrs, translated) {
		return set, true
	}
	out := attribute.NewSet(append(slices.Clone(translated), add...)...)
	return out, out.Len() == len(translated)+len(add)
}

// joins reports whether data may become part of a metric that exists.
func joins(m *metricdata.Metrics, unit string, data metricdata.Aggregation) bool {
	return m.Unit == unit && shape(m.Data) == shape(data)
}

// shape is what two aggregations of one metric have in common.
func shape(data metricdata.Aggregation) string {
	temporality, monotonic := metricdata.Temporality(0), false
	switch d := data.(type) {
	case metricdata.Sum[int64]:
		temporality, monotonic = d.Temporality, d.IsMonotonic
	case metricdata.Sum[float64]:
		temporality, monotonic = d.Temporality, d.IsMonotonic
	case metricdata.Histogram[int64]:
		temporality = d.Temporality
	case metricdata.Histogram[float64]:
		temporality = d.Temporality
	case metricdata.ExponentialHistogram[int64]:
		temporality = d.Temporality
	case metricdata.ExponentialHistogram[float64]:
		temporality = d.Temporality
	}
	return fmt.Sprintf("%T %v %v", data, temporality, monotonic)
}
