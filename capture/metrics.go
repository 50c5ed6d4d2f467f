package capture

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// reader collects on demand. The SDK forgets all metrics with the shutdown of a
// provider, so it collects a last time there.
type reader struct {
	*sdkmetric.ManualReader

	mu    sync.Mutex
	final *metricdata.ResourceMetrics // as of the shutdown
	since baseline
}

func (r *reader) Shutdown(ctx context.Context) error {
	rm, err := r.collect(context.WithoutCancel(ctx))
	r.mu.Lock()
	r.final = rm
	r.mu.Unlock()
	return errors.Join(err, r.ManualReader.Shutdown(ctx))
}

// collect returns nil where the reader has no provider.
func (r *reader) collect(ctx context.Context) (*metricdata.ResourceMetrics, error) {
	r.mu.Lock()
	final := r.final
	r.mu.Unlock()
	if final != nil {
		return final, nil
	}
	rm := new(metricdata.ResourceMetrics)
	err := r.Collect(ctx, rm)
	if errors.Is(err, sdkmetric.ErrReaderNotRegistered) {
		return nil, nil //nolint:nilnil // no provider, no metrics
	}
	return rm, err
}

type convertFunc func(*metricdata.ResourceMetrics) []*Metric

func (r *reader) capture(ctx context.Context, convert convertFunc) ([]*Metric, error) {
	rm, err := r.collect(ctx)
	metrics := convert(rm)
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.since.from(metrics), err
}

// reset makes later captures count from now. Where a callback fails, what there is
// counts; the next Capture reports the error.
func (r *reader) reset(ctx context.Context, convert convertFunc) {
	rm, _ := r.collect(ctx)
	metrics := convert(rm)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.since = newBaseline(metrics)
}

// convert copies metrics in the order of scope and name, and their points in the
// order of their attributes: the SDK has them in random order.
func (r *Recorder) convert(rm *metricdata.ResourceMetrics) []*Metric {
	if rm == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var metrics []*Metric
	about := r.shared.resource(rm.Resource)
	for _, in := range rm.ScopeMetrics {
		scope := r.shared.scope(in.Scope)
		for _, from := range in.Metrics {
			m := &Metric{
				Name: from.Name, Description: from.Description, Unit: from.Unit,
				Resource: about, Scope: scope,
			}
			m.fill(from.Data)
			slices.SortFunc(m.Points, func(a, b Point) int { return a.Attributes.compare(b.Attributes) })
			metrics = append(metrics, m)
		}
	}
	slices.SortFunc(metrics, func(a, b *Metric) int {
		return cmp.Or(cmp.Compare(a.Scope.Name, b.Scope.Name), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kind, b.Kind))
	})
	return metrics
}

// fill takes the data of a metric. All is cumulative, which is what a ManualReader
// asks for, and no summaries come from the SDK.
func (m *Metric) fill(data metricdata.Aggregation) {
	m.Temporality = TemporalityCumulative
	switch d := data.(type) {
	case metricdata.Sum[int64]:
		m.Kind, m.Points = sumKind(d.IsMonotonic), numbers(d.DataPoints)
	case metricdata.Sum[float64]:
		m.Kind, m.Points = sumKind(d.IsMonotonic), numbers(d.DataPoints)
	case metricdata.Gauge[int64]:
		m.Kind, m.Temporality, m.Points = KindGauge, TemporalityUnknown, numbers(d.DataPoints)
	case metricdata.Gauge[float64]:
		m.Kind, m.Temporality, m.Points = KindGauge, TemporalityUnknown, numbers(d.DataPoints)
	case metricdata.Histogram[int64]:
		m.Kind, m.Points = KindHistogram, histograms(d.DataPoints)
	case metricdata.Histogram[float64]:
		m.Kind, m.Points = KindHistogram, histograms(d.DataPoints)
	case metricdata.ExponentialHistogram[int64]:
		m.Kind, m.Points = KindExponential, exponentials(d.DataPoints)
	case metricdata.ExponentialHistogram[float64]:
		m.Kind, m.Points = KindExponential, exponentials(d.DataPoints)
	}
}

func sumKind(monotonic bool) MetricKind {
	if monotonic {
		return KindCounter
	}
	return KindUpDownCounter
}

func numbers[N int64 | float64](from []metricdata.DataPoint[N]) []Point {
	points := make([]Point, 0, len(from))
	for _, p := range from {
		points = append(points, Point{
			Attributes: p.Attributes.ToSlice(), Start: p.StartTime, Time: p.Time,
			Int: isInt[N](), Value: float64(p.Value), Exemplars: exemplars(p.Exemplars),
		})
	}
	return points
}

func histograms[N int64 | float64](from []metricdata.HistogramDataPoint[N]) []Point {
	points := make([]Point, 0, len(from))
	for _, p := range from {
		points = append(points, Point{
			Attributes: p.Attributes.ToSlice(), Start: p.StartTime, Time: p.Time, Int: isInt[N](),
			Count: p.Count, Sum: float64(p.Sum), HasSum: true, Min: extremum(p.Min), Max: extremum(p.Max),
			Bounds: slices.Clone(p.Bounds), BucketCounts: slices.Clone(p.BucketCounts),
			Exemplars: exemplars(p.Exemplars),
		})
	}
	return points
}

func exponentials[N int64 | float64](from []metricdata.ExponentialHistogramDataPoint[N]) []Point {
	points := make([]Point, 0, len(from))
	for _, p := range from {
		points = append(points, Point{
			Attributes: p.Attributes.ToSlice(), Start: p.StartTime, Time: p.Time, Int: isInt[N](),
			Count: p.Count, Sum: float64(p.Sum), HasSum: true, Min: extremum(p.Min), Max: extremum(p.Max),
			Exponential: &Exponential{
				Scale: p.Scale, ZeroCount: p.ZeroCount, ZeroThreshold: p.ZeroThreshold,
				PositiveOffset: p.PositiveBucket.Offset, PositiveCounts: slices.Clone(p.PositiveBucket.Counts),
				NegativeOffset: p.NegativeBucket.Offset, NegativeCounts: slices.Clone(p.NegativeBucket.Counts),
			},
			Exemplars: exemplars(p.Exemplars),
		})
	}
	return points
}

func exemplars[N int64 | float64](from []metricdata.Exemplar[N]) []Exemplar {
	var all []Exemplar
	for _, e := range from {
		to := Exemplar{Attributes: cloned(e.FilteredAttributes), Time: e.Time, Int: isInt[N](), Value: float64(e.Value)}
		copy(to.TraceID[:], e.TraceID)
		copy(to.SpanID[:], e.SpanID)
		all = append(all, to)
	}
	return all
}

func extremum[N int64 | float64](e metricdata.Extrema[N]) *float64 {
	v, ok := e.Value()
	if !ok {
		return nil
	}
	f := float64(v)
	return &f
}

func isInt[N int64 | float64]() bool {
	_, is := any(*new(N)).(int64)
	return is
}

// compare orders attribute sets, whose keys are sorted.
func (a Attributes) compare(b Attributes) int {
	return slices.CompareFunc(a, b, func(x, y attribute.KeyValue) int {
		return cmp.Or(cmp.Compare(x.Key, y.Key), cmp.Compare(x.Value.String(), y.Value.String()))
	})
}
