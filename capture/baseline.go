package capture

import (
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
)

// baseline is what the counters and histograms of a reader had reached at a
// moment. The zero value is nothing.
type baseline struct {
	at     time.Time
	points map[seriesKey]Point
}

// seriesKey is the identity of one series within a reader.
type seriesKey struct {
	scope      *Scope
	name       string
	kind       MetricKind
	attributes attribute.Distinct
}

func newSeriesKey(m *Metric, p Point) seriesKey {
	set := attribute.NewSet(p.Attributes...)
	return seriesKey{m.Scope, m.Name, m.Kind, set.Equivalent()}
}

func newBaseline(metrics []*Metric) baseline {
	b := baseline{at: time.Now(), points: map[seriesKey]Point{}}
	for _, m := range metrics {
		for _, p := range m.Points {
			b.points[newSeriesKey(m, p)] = p
		}
	}
	return b
}

// from turns metrics into what was measured since the baseline. It changes them.
func (b baseline) from(metrics []*Metric) []*Metric {
	if b.points == nil {
		return metrics
	}
	return slices.DeleteFunc(metrics, func(m *Metric) bool {
		if m.Kind == KindGauge || m.Kind == KindUpDownCounter {
			return false
		}
		m.Points = slices.DeleteFunc(m.Points, func(p Point) bool {
			before, ok := b.points[newSeriesKey(m, p)]
			return ok && before.Value == p.Value && before.Count == p.Count
		})
		for i := range m.Points {
			p := &m.Points[i]
			if before, ok := b.points[newSeriesKey(m, *p)]; ok {
				p.minus(before)
				p.Min, p.Max = nil, nil
			}
			p.Start = b.at
			p.Exemplars = slices.DeleteFunc(p.Exemplars, func(e Exemplar) bool { return e.Time.Before(b.at) })
		}
		return len(m.Points) == 0
	})
}

// minus takes away what an earlier point of the same series had reached.
func (p *Point) minus(before Point) {
	p.Value -= before.Value
	p.Count -= before.Count
	p.Sum -= before.Sum
	if slices.Equal(p.Bounds, before.Bounds) {
		for i, n := range before.BucketCounts {
			p.BucketCounts[i] -= n
		}
	}
	if p.Exponential != nil && before.Exponential != nil {
		p.Exponential.minus(before.Exponential)
	}
}

// minus takes away earlier buckets. They may be finer, because a scale only falls.
func (e *Exponential) minus(before *Exponential) {
	e.ZeroCount -= before.ZeroCount
	shift := before.Scale - e.Scale
	take := func(counts []uint64, offset int32, from []uint64, fromOffset int32) {
		for i, n := range from {
			if at := (fromOffset+int32(i))>>shift - offset; at >= 0 && int(at) < len(counts) {
				counts[at] -= n
			}
		}
	}
	take(e.PositiveCounts, e.PositiveOffset, before.PositiveCounts, before.PositiveOffset)
	take(e.NegativeCounts, e.NegativeOffset, before.NegativeCounts, before.NegativeOffset)
}
