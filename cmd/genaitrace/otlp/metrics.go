package otlp

import (
	"fmt"
	"math"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/capture"
)

// Reasons for which metrics and points are not kept.
const (
	noMetricName = "metric without a name" // each point of it
	noMetricData = "metric without data"
	noPointValue = "data point without a value"
	badBuckets   = "histogram point whose buckets do not match its bounds"
	noExemplar   = "exemplar without a value"
)

func (d *decoder) metrics(to *capture.Capture, from pmetric.Metrics) {
	for _, rm := range from.ResourceMetrics().All() {
		resource := d.resource(rm.Resource(), rm.SchemaUrl())
		for _, sm := range rm.ScopeMetrics().All() {
			scope := d.scope(sm.Scope(), sm.SchemaUrl())
			for _, m := range sm.Metrics().All() {
				switch {
				case m.Name() == "":
					d.dropped[noMetricName] += max(1, pointsOf(m))
				case m.Type() == pmetric.MetricTypeEmpty:
					d.drop(noMetricData)
				default:
					to.Metrics = append(to.Metrics, d.metric(m, resource, scope))
				}
			}
		}
	}
}

func (d *decoder) metric(m pmetric.Metric, resource *capture.Resource, scope *capture.Scope) *capture.Metric {
	got := &capture.Metric{
		Name:        d.shared(m.Name()),
		Description: d.shared(m.Description()),
		Unit:        d.shared(m.Unit()),
		Resource:    resource,
		Scope:       scope,
	}
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		got.Kind = capture.KindGauge
		d.numbers(got, m.Gauge().DataPoints())
	case pmetric.MetricTypeSum:
		got.Kind = capture.KindUpDownCounter
		if m.Sum().IsMonotonic() {
			got.Kind = capture.KindCounter
		}
		got.Temporality = temporalityOf(m.Sum().AggregationTemporality())
		d.numbers(got, m.Sum().DataPoints())
	case pmetric.MetricTypeHistogram:
		got.Kind = capture.KindHistogram
		got.Temporality = temporalityOf(m.Histogram().AggregationTemporality())
		d.histograms(got, m.Histogram().DataPoints())
	case pmetric.MetricTypeExponentialHistogram:
		got.Kind = capture.KindExponential
		got.Temporality = temporalityOf(m.ExponentialHistogram().AggregationTemporality())
		d.exponentials(got, m.ExponentialHistogram().DataPoints())
	case pmetric.MetricTypeSummary:
		got.Kind = capture.KindSummary
		d.summaries(got, m.Summary().DataPoints())
	}
	return got
}

func pointsOf(m pmetric.Metric) int {
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		return m.Gauge().DataPoints().Len()
	case pmetric.MetricTypeSum:
		return m.Sum().DataPoints().Len()
	case pmetric.MetricTypeHistogram:
		return m.Histogram().DataPoints().Len()
	case pmetric.MetricTypeExponentialHistogram:
		return m.ExponentialHistogram().DataPoints().Len()
	case pmetric.MetricTypeSummary:
		return m.Summary().DataPoints().Len()
	}
	return 0
}

func temporalityOf(t pmetric.AggregationTemporality) capture.Temporality {
	switch t {
	case pmetric.AggregationTemporalityDelta:
		return capture.TemporalityDelta
	case pmetric.AggregationTemporalityCumulative:
		return capture.TemporalityCumulative
	}
	return capture.TemporalityUnknown
}

// point is what all points of pdata have.
type point interface {
	Attributes() pcommon.Map
	StartTimestamp() pcommon.Timestamp
	Timestamp() pcommon.Timestamp
	Flags() pmetric.DataPointFlags
}

// common returns what all points have. A point that says that nothing was recorded
// at its time is none.
func (d *decoder) common(p point) (got capture.Point, recorded bool) {
	if p.Flags().NoRecordedValue() {
		return capture.Point{}, false
	}
	return capture.Point{
		Attributes: d.attributes(p.Attributes()),
		Start:      timeOf(p.StartTimestamp()),
		Time:       timeOf(p.Timestamp()),
	}, true
}

func (d *decoder) numbers(to *capture.Metric, from pmetric.NumberDataPointSlice) {
	for _, p := range from.All() {
		got, ok := d.common(p)
		if !ok {
			continue
		}
		switch p.ValueType() {
		case pmetric.NumberDataPointValueTypeInt:
			got.Int, got.Value = true, float64(p.IntValue())
		case pmetric.NumberDataPointValueTypeDouble:
			got.Value = p.DoubleValue()
		default:
			d.drop(noPointValue)
			continue
		}
		got.Exemplars = d.exemplars(p.Exemplars())
		to.Points = append(to.Points, got)
	}
}

func (d *decoder) histograms(to *capture.Metric, from pmetric.HistogramDataPointSlice) {
	for _, p := range from.All() {
		got, ok := d.common(p)
		if !ok {
			continue
		}
		bounds, counts := p.ExplicitBounds().AsRaw(), p.BucketCounts().AsRaw()
		if len(counts) != len(bounds)+1 && len(counts)+len(bounds) > 0 {
			d.drop(badBuckets)
			continue
		}
		if len(counts) > 0 {
			got.Bounds, got.BucketCounts = bounds, counts
		}
		got.Count = p.Count()
		got.Sum, got.HasSum = p.Sum(), p.HasSum()
		got.Min, got.Max = optional(p.HasMin(), p.Min()), optional(p.HasMax(), p.Max())
		got.Exemplars = d.exemplars(p.Exemplars())
		to.Points = append(to.Points, got)
	}
}

func (d *decoder) exponentials(to *capture.Metric, from pmetric.ExponentialHistogramDataPointSlice) {
	for _, p := range from.All() {
		got, ok := d.common(p)
		if !ok {
			continue
		}
		got.Count = p.Count()
		got.Sum, got.HasSum = p.Sum(), p.HasSum()
		got.Min, got.Max = optional(p.HasMin(), p.Min()), optional(p.HasMax(), p.Max())
		got.Exponential = &capture.Exponential{
			Scale:          p.Scale(),
			ZeroCount:      p.ZeroCount(),
			ZeroThreshold:  p.ZeroThreshold(),
			PositiveOffset: p.Positive().Offset(),
			NegativeOffset: p.Negative().Offset(),
			PositiveCounts: p.Positive().BucketCounts().AsRaw(),
			NegativeCounts: p.Negative().BucketCounts().AsRaw(),
		}
		got.Exemplars = d.exemplars(p.Exemplars())
		to.Points = append(to.Points, got)
	}
}

func (d *decoder) summaries(to *capture.Metric, from pmetric.SummaryDataPointSlice) {
	for _, p := range from.All() {
		got, ok := d.common(p)
		if !ok {
			continue
		}
		got.Count, got.Sum, got.HasSum = p.Count(), p.Sum(), true
		for _, q := range p.QuantileValues().All() {
			got.Quantiles = append(got.Quantiles, capture.Quantile{Quantile: q.Quantile(), Value: q.Value()})
		}
		to.Points = append(to.Points, got)
	}
}

func (d *decoder) exemplars(from pmetric.ExemplarSlice) []capture.Exemplar {
	var exemplars []capture.Exemplar
	for _, e := range from.All() {
		got := capture.Exemplar{
			Attributes: d.attributes(e.FilteredAttributes()),
			Time:       timeOf(e.Timestamp()),
			TraceID:    trace.TraceID(e.TraceID()),
			SpanID:     trace.SpanID(e.SpanID()),
		}
		switch e.ValueType() {
		case pmetric.ExemplarValueTypeInt:
			got.Int, got.Value = true, float64(e.IntValue())
		case pmetric.ExemplarValueTypeDouble:
			got.Value = e.DoubleValue()
		default:
			d.drop(noExemplar)
			continue
		}
		exemplars = append(exemplars, got)
	}
	return exemplars
}

func optional(has bool, v float64) *float64 {
	if !has {
		return nil
	}
	return &v
}

// encodeMetrics writes metrics. The error names one whose kind is not known.
func encodeMetrics(all []*capture.Metric) (pmetric.Metrics, error) {
	out := pmetric.NewMetrics()
	groups := newGrouping(func(r *capture.Resource) pmetric.ResourceMetrics {
		rm := out.ResourceMetrics().AppendEmpty()
		putResource(rm.Resource(), rm.SetSchemaUrl, r)
		return rm
	}, func(rm pmetric.ResourceMetrics, s *capture.Scope) pmetric.ScopeMetrics {
		sm := rm.ScopeMetrics().AppendEmpty()
		putScope(sm.Scope(), sm.SetSchemaUrl, s)
		return sm
	})
	for _, m := range all {
		if err := putMetric(groups.scope(m.Resource, m.Scope).Metrics().AppendEmpty(), m); err != nil {
			return out, err
		}
	}
	return out, nil
}

func putMetric(to pmetric.Metric, m *capture.Metric) error {
	to.SetName(m.Name)
	to.SetDescription(m.Description)
	to.SetUnit(m.Unit)
	temporality := pmetric.AggregationTemporality(m.Temporality)
	switch m.Kind {
	case capture.KindGauge:
		putPoints(to.SetEmptyGauge().DataPoints(), m, putNumber)
	case capture.KindCounter, capture.KindUpDownCounter:
		sum := to.SetEmptySum()
		sum.SetAggregationTemporality(temporality)
		sum.SetIsMonotonic(m.Kind == capture.KindCounter)
		putPoints(sum.DataPoints(), m, putNumber)
	case capture.KindHistogram:
		histogram := to.SetEmptyHistogram()
		histogram.SetAggregationTemporality(temporality)
		putPoints(histogram.DataPoints(), m, putHistogram)
	case capture.KindExponential:
		histogram := to.SetEmptyExponentialHistogram()
		histogram.SetAggregationTemporality(temporality)
		putPoints(histogram.DataPoints(), m, putExponential)
	case capture.KindSummary:
		putPoints(to.SetEmptySummary().DataPoints(), m, putSummary)
	default:
		return fmt.Errorf("otlp: metric %q: Kind is %q; expected one of the kinds of package capture", m.Name, m.Kind)
	}
	return nil
}

// target is what all points of pdata let write.
type target interface {
	Attributes() pcommon.Map
	SetStartTimestamp(pcommon.Timestamp)
	SetTimestamp(pcommon.Timestamp)
}

func putPoints[P target](to interface{ AppendEmpty() P }, m *capture.Metric, put func(P, *capture.Point)) {
	for i := range m.Points {
		p := to.AppendEmpty()
		putAttributes(p.Attributes(), m.Points[i].Attributes)
		p.SetStartTimestamp(timestamp(m.Points[i].Start))
		p.SetTimestamp(timestamp(m.Points[i].Time))
		put(p, &m.Points[i])
	}
}

func putNumber(to pmetric.NumberDataPoint, p *capture.Point) {
	if p.Int {
		to.SetIntValue(int64Of(p.Value))
	} else {
		to.SetDoubleValue(p.Value)
	}
	putExemplars(to.Exemplars(), p.Exemplars)
}

func putHistogram(to pmetric.HistogramDataPoint, p *capture.Point) {
	putTotals(to, p)
	to.ExplicitBounds().FromRaw(p.Bounds)
	to.BucketCounts().FromRaw(p.BucketCounts)
	putExemplars(to.Exemplars(), p.Exemplars)
}

func putExponential(to pmetric.ExponentialHistogramDataPoint, p *capture.Point) {
	putTotals(to, p)
	if e := p.Exponential; e != nil {
		to.SetScale(e.Scale)
		to.SetZeroCount(e.ZeroCount)
		to.SetZeroThreshold(e.ZeroThreshold)
		to.Positive().SetOffset(e.PositiveOffset)
		to.Negative().SetOffset(e.NegativeOffset)
		to.Positive().BucketCounts().FromRaw(e.PositiveCounts)
		to.Negative().BucketCounts().FromRaw(e.NegativeCounts)
	}
	putExemplars(to.Exemplars(), p.Exemplars)
}

// putTotals writes what both kinds of histogram have.
func putTotals(to interface {
	SetCount(uint64)
	SetSum(float64)
	SetMin(float64)
	SetMax(float64)
}, p *capture.Point,
) {
	to.SetCount(p.Count)
	if p.HasSum {
		to.SetSum(p.Sum)
	}
	if p.Min != nil {
		to.SetMin(*p.Min)
	}
	if p.Max != nil {
		to.SetMax(*p.Max)
	}
}

func putSummary(to pmetric.SummaryDataPoint, p *capture.Point) {
	to.SetCount(p.Count)
	to.SetSum(p.Sum)
	for _, q := range p.Quantiles {
		one := to.QuantileValues().AppendEmpty()
		one.SetQuantile(q.Quantile)
		one.SetValue(q.Value)
	}
}

func putExemplars(to pmetric.ExemplarSlice, exemplars []capture.Exemplar) {
	for _, e := range exemplars {
		one := to.AppendEmpty()
		putAttributes(one.FilteredAttributes(), e.Attributes)
		one.SetTimestamp(timestamp(e.Time))
		one.SetTraceID(pcommon.TraceID(e.TraceID))
		one.SetSpanID(pcommon.SpanID(e.SpanID))
		if e.Int {
			one.SetIntValue(int64Of(e.Value))
		} else {
			one.SetDoubleValue(e.Value)
		}
	}
}

// int64Of bounds v to an int64; 1<<63 is the float64 of the largest one.
func int64Of(v float64) int64 {
	switch {
	case v >= 1<<63:
		return math.MaxInt64
	case v < math.MinInt64:
		return math.MinInt64
	case math.IsNaN(v):
		return 0
	}
	return int64(v)
}
