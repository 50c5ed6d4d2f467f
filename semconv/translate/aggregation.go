package translate

import (
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// The metric SDK has nine kinds of aggregation without a common interface. This
// file holds what must be written once for each of them.

type number interface{ int64 | float64 }

// part is an aggregation with some of the points of another one.
type part struct {
	data metricdata.Aggregation
	n    int // points
}

// selector decides whether a point is selected, and the attributes that it has
// then.
type selector func(attribute.Set) (attribute.Set, bool)

// split separates the selected points from the others.
func split(data metricdata.Aggregation, f selector) (selected, others part) {
	switch d := data.(type) {
	case metricdata.Gauge[int64]:
		return splitGauge(d, f)
	case metricdata.Gauge[float64]:
		return splitGauge(d, f)
	case metricdata.Sum[int64]:
		return splitSum(d, f)
	case metricdata.Sum[float64]:
		return splitSum(d, f)
	case metricdata.Histogram[int64]:
		return splitHistogram(d, f)
	case metricdata.Histogram[float64]:
		return splitHistogram(d, f)
	case metricdata.ExponentialHistogram[int64]:
		return splitExponential(d, f)
	case metricdata.ExponentialHistogram[float64]:
		return splitExponential(d, f)
	case metricdata.Summary:
		a, b := splitPoints(d.DataPoints, func(p *metricdata.SummaryDataPoint) *attribute.Set { return &p.Attributes }, f)
		return part{metricdata.Summary{DataPoints: a}, len(a)}, part{metricdata.Summary{DataPoints: b}, len(b)}
	}
	return part{}, part{data, 1}
}

func splitPoints[P any](points []P, set func(*P) *attribute.Set, f selector) (selected, others []P) {
	for _, p := range points {
		attrs, ok := f(*set(&p))
		if !ok {
			others = append(others, p)
			continue
		}
		*set(&p) = attrs
		selected = append(selected, p)
	}
	return selected, others
}

func pointSet[N number](p *metricdata.DataPoint[N]) *attribute.Set { return &p.Attributes }

func splitGauge[N number](d metricdata.Gauge[N], f selector) (selected, others part) {
	a, b := splitPoints(d.DataPoints, pointSet[N], f)
	return part{metricdata.Gauge[N]{DataPoints: a}, len(a)}, part{metricdata.Gauge[N]{DataPoints: b}, len(b)}
}

func splitSum[N number](d metricdata.Sum[N], f selector) (selected, others part) {
	a, b := splitPoints(d.DataPoints, pointSet[N], f)
	other := d
	d.DataPoints, other.DataPoints = a, b
	return part{d, len(a)}, part{other, len(b)}
}

func splitHistogram[N number](d metricdata.Histogram[N], f selector) (selected, others part) {
	set := func(p *metricdata.HistogramDataPoint[N]) *attribute.Set { return &p.Attributes }
	a, b := splitPoints(d.DataPoints, set, f)
	other := d
	d.DataPoints, other.DataPoints = a, b
	return part{d, len(a)}, part{other, len(b)}
}

func splitExponential[N number](d metricdata.ExponentialHistogram[N], f selector) (selected, others part) {
	set := func(p *metricdata.ExponentialHistogramDataPoint[N]) *attribute.Set { return &p.Attributes }
	a, b := splitPoints(d.DataPoints, set, f)
	other := d
	d.DataPoints, other.DataPoints = a, b
	return part{d, len(a)}, part{other, len(b)}
}

// join appends the points of b to those of a, which has the same shape.
func join(a, b metricdata.Aggregation) metricdata.Aggregation {
	switch a := a.(type) {
	case metricdata.Gauge[int64]:
		a.DataPoints = slices.Concat(a.DataPoints, b.(metricdata.Gauge[int64]).DataPoints)
		return a
	case metricdata.Gauge[float64]:
		a.DataPoints = slices.Concat(a.DataPoints, b.(metricdata.Gauge[float64]).DataPoints)
		return a
	case metricdata.Sum[int64]:
		a.DataPoints = slices.Concat(a.DataPoints, b.(metricdata.Sum[int64]).DataPoints)
		return a
	case metricdata.Sum[float64]:
		a.DataPoints = slices.Concat(a.DataPoints, b.(metricdata.Sum[float64]).DataPoints)
		return a
	case metricdata.Histogram[int64]:
		a.DataPoints = slices.Concat(a.DataPoints, b.(metricdata.Histogram[int64]).DataPoints)
		return a
	case metricdata.Histogram[float64]:
		a.DataPoints = slices.Concat(a.DataPoints, b.(metricdata.Histogram[float64]).DataPoints)
		return a
	case metricdata.ExponentialHistogram[int64]:
		a.DataPoints = slices.Concat(a.DataPoints, b.(metricdata.ExponentialHistogram[int64]).DataPoints)
		return a
	case metricdata.ExponentialHistogram[float64]:
		a.DataPoints = slices.Concat(a.DataPoints, b.(metricdata.ExponentialHistogram[float64]).DataPoints)
		return a
	case metricdata.Summary:
		a.DataPoints = slices.Concat(a.DataPoints, b.(metricdata.Summary).DataPoints)
		return a
	}
	return a
}

// rescale converts an aggregation of durations to another unit. Whole numbers
// become floating-point ones. It reports false for an exponential histogram,
// whose bounds are powers that no other unit shares.
func rescale(data metricdata.Aggregation, s scale) (metricdata.Aggregation, bool) {
	if s.none() {
		return data, true
	}
	switch d := data.(type) {
	case metricdata.Gauge[int64]:
		return metricdata.Gauge[float64]{DataPoints: rescalePoints(d.DataPoints, s)}, true
	case metricdata.Gauge[float64]:
		return metricdata.Gauge[float64]{DataPoints: rescalePoints(d.DataPoints, s)}, true
	case metricdata.Sum[int64]:
		return metricdata.Sum[float64]{DataPoints: rescalePoints(d.DataPoints, s), Temporality: d.Temporality, IsMonotonic: d.IsMonotonic}, true
	case metricdata.Sum[float64]:
		d.DataPoints = rescalePoints(d.DataPoints, s)
		return d, true
	case metricdata.Histogram[int64]:
		return rescaleHistogram(d, s), true
	case metricdata.Histogram[float64]:
		return rescaleHistogram(d, s), true
	case metricdata.Summary:
		points := slices.Clone(d.DataPoints)
		for i := range points {
			points[i].Sum = s.apply(points[i].Sum)
			points[i].QuantileValues = slices.Clone(points[i].QuantileValues)
			for j := range points[i].QuantileValues {
				points[i].QuantileValues[j].Value = s.apply(points[i].QuantileValues[j].Value)
			}
		}
		return metricdata.Summary{DataPoints: points}, true
	}
	return data, false
}

func rescalePoints[N number](in []metricdata.DataPoint[N], s scale) []metricdata.DataPoint[float64] {
	out := make([]metricdata.DataPoint[float64], len(in))
	for i, p := range in {
		out[i] = metricdata.DataPoint[float64]{
			Attributes: p.Attributes, StartTime: p.StartTime, Time: p.Time,
			Value: s.apply(float64(p.Value)), Exemplars: rescaleExemplars(p.Exemplars, s),
		}
	}
	return out
}

func rescaleHistogram[N number](in metricdata.Histogram[N], s scale) metricdata.Histogram[float64] {
	out := metricdata.Histogram[float64]{
		DataPoints:  make([]metricdata.HistogramDataPoint[float64], len(in.DataPoints)),
		Temporality: in.Temporality,
	}
	for i, p := range in.DataPoints {
		bounds := slices.Clone(p.Bounds)
		for j := range bounds {
			bounds[j] = s.apply(bounds[j])
		}
		out.DataPoints[i] = metricdata.HistogramDataPoint[float64]{
			Attributes: p.Attributes, StartTime: p.StartTime, Time: p.Time,
			Count: p.Count, Bounds: bounds, BucketCounts: p.BucketCounts,
			Min: rescaleExtrema(p.Min, s), Max: rescaleExtrema(p.Max, s), Sum: s.apply(float64(p.Sum)),
			Exemplars: rescaleExemplars(p.Exemplars, s),
		}
	}
	return out
}

func rescaleExtrema[N number](in metricdata.Extrema[N], s scale) metricdata.Extrema[float64] {
	v, defined := in.Value()
	if !defined {
		return metricdata.Extrema[float64]{}
	}
	return metricdata.NewExtrema(s.apply(float64(v)))
}

func rescaleExemplars[N number](in []metricdata.Exemplar[N], s scale) []metricdata.Exemplar[float64] {
	if in == nil {
		return nil
	}
	out := make([]metricdata.Exemplar[float64], len(in))
	for i, x := range in {
		out[i] = metricdata.Exemplar[float64]{
			FilteredAttributes: x.FilteredAttributes, Time: x.Time, Value: s.apply(float64(x.Value)),
			SpanID: x.SpanID, TraceID: x.TraceID,
		}
	}
	return out
}

// sums makes the counter of all that a histogram has seen, or nil.
func sums(data metricdata.Aggregation) metricdata.Aggregation {
	switch d := data.(type) {
	case metricdata.Histogram[int64]:
		return sumHistogram(d)
	case metricdata.Histogram[float64]:
		return sumHistogram(d)
	case metricdata.ExponentialHistogram[int64]:
		return sumExponential(d)
	case metricdata.ExponentialHistogram[float64]:
		return sumExponential(d)
	}
	return nil
}

func sumHistogram[N number](d metricdata.Histogram[N]) metricdata.Sum[N] {
	out := metricdata.Sum[N]{Temporality: d.Temporality, IsMonotonic: true}
	for _, p := range d.DataPoints {
		out.DataPoints = append(out.DataPoints, metricdata.DataPoint[N]{
			Attributes: p.Attributes, StartTime: p.StartTime, Time: p.Time, Value: p.Sum,
		})
	}
	return out
}

func sumExponential[N number](d metricdata.ExponentialHistogram[N]) metricdata.Sum[N] {
	out := metricdata.Sum[N]{Temporality: d.Temporality, IsMonotonic: true}
	for _, p := range d.DataPoints {
		out.DataPoints = append(out.DataPoints, metricdata.DataPoint[N]{
			Attributes: p.Attributes, StartTime: p.StartTime, Time: p.Time, Value: p.Sum,
		})
	}
	return out
}

// exemplars translates the attributes that the points' exemplars kept, and
// reports whether there were any to translate. The points belong to the caller;
// their lists of exemplars do not.
func (t *Translator) exemplars(data metricdata.Aggregation) (changed bool) {
	switch d := data.(type) {
	case metricdata.Gauge[int64]:
		return pointExemplars(t, d.DataPoints)
	case metricdata.Gauge[float64]:
		return pointExemplars(t, d.DataPoints)
	case metricdata.Sum[int64]:
		return pointExemplars(t, d.DataPoints)
	case metricdata.Sum[float64]:
		return pointExemplars(t, d.DataPoints)
	case metricdata.Histogram[int64]:
		return histogramExemplars(t, d.DataPoints)
	case metricdata.Histogram[float64]:
		return histogramExemplars(t, d.DataPoints)
	case metricdata.ExponentialHistogram[int64]:
		return exponentialExemplars(t, d.DataPoints)
	case metricdata.ExponentialHistogram[float64]:
		return exponentialExemplars(t, d.DataPoints)
	}
	return false
}

func pointExemplars[N number](t *Translator, points []metricdata.DataPoint[N]) (changed bool) {
	for i := range points {
		changed = translateExemplars(t, &points[i].Exemplars) || changed
	}
	return changed
}

func histogramExemplars[N number](t *Translator, points []metricdata.HistogramDataPoint[N]) (changed bool) {
	for i := range points {
		changed = translateExemplars(t, &points[i].Exemplars) || changed
	}
	return changed
}

func exponentialExemplars[N number](t *Translator, points []metricdata.ExponentialHistogramDataPoint[N]) (changed bool) {
	for i := range points {
		changed = translateExemplars(t, &points[i].Exemplars) || changed
	}
	return changed
}

func translateExemplars[N number](t *Translator, list *[]metricdata.Exemplar[N]) (changed bool) {
	for i, x := range *list {
		attrs := t.Attributes(x.FilteredAttributes)
		if sameList(attrs, x.FilteredAttributes) {
			continue
		}
		if !changed {
			*list, changed = slices.Clone(*list), true
		}
		(*list)[i].FilteredAttributes = attrs
	}
	return changed
}
