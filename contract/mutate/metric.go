package mutate

import (
	"math"
	"slices"

	"go.opentelemetry.io/otel/attribute"

	"github.com/genaitrace/otelgenai/capture"
)

// A metricFault changes a metric, which is a copy down to the attributes of its
// points.
type metricFault func(m *capture.Metric) (why string)

// moreSeries is how many Series adds.
const moreSeries = 1000

var metricFaults = []struct {
	operator Operator
	put      metricFault
}{
	{Unit, func(m *capture.Metric) string {
		m.Unit = otherUnit(m.Unit)
		return ""
	}},
	{Instrument, func(m *capture.Metric) string {
		if m.Kind == capture.KindGauge {
			m.Kind, m.Temporality = capture.KindCounter, capture.TemporalityCumulative
			return ""
		}
		for i := range m.Points {
			asValue(&m.Points[i], m.Kind)
		}
		m.Kind, m.Temporality = capture.KindGauge, capture.TemporalityUnknown
		return ""
	}},
	{Buckets, func(m *capture.Metric) string {
		if m.Kind != capture.KindHistogram {
			return "the metric is no histogram with boundaries"
		}
		for i := range m.Points {
			p := &m.Points[i]
			if !slices.Equal(p.Bounds, defaultBounds) {
				p.BucketCounts = moveCounts(p, defaultBounds, 1)
				p.Bounds = defaultBounds
			}
		}
		return ""
	}},
	{Series, explodeSeries},
	{ScaleMetric, func(m *capture.Metric) string {
		for i := range m.Points {
			scalePoint(&m.Points[i], 1000)
		}
		return ""
	}},
	{Undercount, undercount},
	{Leak, func(m *capture.Metric) string {
		if m.Kind != capture.KindUpDownCounter {
			return "the metric counts nothing that is under way"
		}
		if len(m.Points) > 0 {
			m.Points[0].Value++
		}
		return ""
	}},
}

// defaultBounds are the boundaries that the specification of the SDK gives a
// histogram without any.
var defaultBounds = []float64{0, 5, 10, 25, 50, 75, 100, 250, 500, 750, 1000, 2500, 5000, 7500, 10000}

func otherUnit(unit string) string {
	switch unit {
	case "s":
		return "ms"
	case "By":
		return "kBy"
	default:
		return "s"
	}
}

// asValue makes a point of a histogram one of a gauge: the mean.
func asValue(p *capture.Point, kind capture.MetricKind) {
	if kind == capture.KindCounter || kind == capture.KindUpDownCounter {
		return
	}
	mean := 0.0
	if p.Count > 0 {
		mean = p.Sum / float64(p.Count)
	}
	*p = capture.Point{Attributes: p.Attributes, Start: p.Start, Time: p.Time, Value: mean, Exemplars: p.Exemplars}
}

// moveCounts returns the counts of a histogram's buckets as they would be within
// bounds, had every value been factor times as large. What a bucket holds counts as
// its upper boundary.
func moveCounts(p *capture.Point, bounds []float64, factor float64) []uint64 {
	counts := make([]uint64, len(bounds)+1)
	held := p.BucketCounts
	if held == nil { // it was recorded without buckets
		held = []uint64{p.Count}
	}
	for i, n := range held {
		value := math.Inf(1)
		if i < len(p.Bounds) {
			value = p.Bounds[i]
		}
		to, _ := slices.BinarySearch(bounds, value*factor)
		counts[to] += n
	}
	return counts
}

// scalePoint makes every measurement factor times as large.
func scalePoint(p *capture.Point, factor float64) {
	p.Value *= factor
	p.Sum *= factor
	p.Min, p.Max = scaled(p.Min, factor), scaled(p.Max, factor)
	if p.BucketCounts != nil {
		p.BucketCounts = moveCounts(p, p.Bounds, factor)
	}
	if e := p.Exponential; e != nil {
		e = new(*e)
		by := int32(math.Round(math.Log2(factor) * math.Exp2(float64(e.Scale))))
		e.PositiveOffset += by
		e.NegativeOffset += by
		p.Exponential = e
	}
	p.Quantiles = slices.Clone(p.Quantiles)
	for i := range p.Quantiles {
		p.Quantiles[i].Value *= factor
	}
	p.Exemplars = slices.Clone(p.Exemplars)
	for i := range p.Exemplars {
		p.Exemplars[i].Value *= factor
	}
}

func scaled(f *float64, factor float64) *float64 {
	if f == nil {
		return nil
	}
	return new(*f * factor)
}

// explodeSeries adds series in which nothing was measured, so that only their
// number is wrong.
func explodeSeries(m *capture.Metric) string {
	if len(m.Points) == 0 {
		return "the metric has no points"
	}
	first := m.Points[0]
	varied := slices.IndexFunc(first.Attributes, func(kv attribute.KeyValue) bool { return kv.Value.Type() == attribute.STRING })
	for i := range moreSeries {
		p := capture.Point{
			Attributes: slices.Clone(first.Attributes), Start: first.Start, Time: first.Time, Int: first.Int, HasSum: first.HasSum,
			Bounds: first.Bounds, BucketCounts: make([]uint64, len(first.BucketCounts)),
		}
		if first.Exponential != nil {
			p.Exponential = &capture.Exponential{Scale: first.Exponential.Scale}
		}
		if varied >= 0 {
			p.Attributes[varied].Value = numbered(first.Attributes[varied].Value, i+1)
		} else {
			p.Attributes = append(p.Attributes, attribute.String("genai.request_id", "r-"+itoa(i+1)))
		}
		m.Points = append(m.Points, p)
	}
	return ""
}

// undercount loses half of what was measured. What is a single measurement is lost
// whole.
func undercount(m *capture.Metric) string {
	if m.Kind == capture.KindGauge {
		return "a gauge counts nothing"
	}
	for i := range m.Points {
		halve(&m.Points[i])
	}
	return ""
}

func halve(p *capture.Point) {
	if p.Int {
		p.Value = math.Floor(p.Value / 2)
	} else {
		p.Value /= 2
	}
	if p.Count == 0 {
		return
	}
	was := p.Count
	p.Count = was / 2
	if p.BucketCounts != nil {
		p.BucketCounts, p.Count = halved(p.BucketCounts)
	}
	if e := p.Exponential; e != nil {
		e = new(*e)
		var positive, negative uint64
		e.PositiveCounts, positive = halved(e.PositiveCounts)
		e.NegativeCounts, negative = halved(e.NegativeCounts)
		e.ZeroCount /= 2
		p.Exponential, p.Count = e, positive+negative+e.ZeroCount
	}
	p.Sum *= float64(p.Count) / float64(was)
	if p.Count == 0 {
		p.Min, p.Max = nil, nil
	}
}

func halved(counts []uint64) (half []uint64, sum uint64) {
	half = make([]uint64, len(counts))
	for i, n := range counts {
		half[i] = n / 2
		sum += half[i]
	}
	return half, sum
}
