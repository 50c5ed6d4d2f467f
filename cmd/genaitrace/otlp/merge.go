package otlp

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/otel/attribute"

	"github.com/genaitrace/otelgenai/capture"
)

// Compact merges the metrics of c as a [Merger] does.
func Compact(c *capture.Capture) {
	var m Merger
	m.Add(c.Metrics)
	c.Metrics = m.Metrics()
}

// Merger makes one metric of what a service exported many times. An SDK exports its
// metrics again and again, by default every 60 seconds:
//
//   - A point that is cumulative says all since its start, so of each series and start
//     the latest point is kept. A start that changes is another run of the process, or
//     another process, whose count begins anew; it stays beside the first one. Points
//     of summaries count as cumulative.
//   - Of everything else, which is deltas and gauges, every point is kept.
//
// A series is a resource, a scope, a metric with its unit and kind, and the attributes
// of the point. The zero value is ready for use. It must not be used concurrently.
type Merger struct {
	order   []*series
	metrics map[metricKey]*series
}

// metricKey identifies a metric by content.
type metricKey struct {
	resource, scope group
	name, unit      string
	kind            capture.MetricKind
	temporality     capture.Temporality
}

// series is a metric with the place of its latest points.
type series struct {
	metric capture.Metric
	latest map[pointKey]int
}

type pointKey struct {
	attributes attribute.Distinct
	start      pcommon.Timestamp
}

// Add takes another export. It changes nothing of it, and shares the content of the
// points.
func (m *Merger) Add(metrics []*capture.Metric) { m.add(metrics) }

// add returns by how many points m has grown.
func (m *Merger) add(metrics []*capture.Metric) (grown int) {
	if m.metrics == nil {
		m.metrics = make(map[metricKey]*series)
	}
	for _, metric := range metrics {
		s := m.series(metric)
		before := len(s.metric.Points)
		for i := range metric.Points {
			s.add(&metric.Points[i])
		}
		grown += len(s.metric.Points) - before
	}
	return grown
}

func (m *Merger) series(metric *capture.Metric) *series {
	key := metricKey{name: metric.Name, unit: metric.Unit, kind: metric.Kind, temporality: metric.Temporality}
	if r := metric.Resource; r != nil {
		key.resource = group{attributes: distinct(r.Attributes), urls: r.SchemaURL}
	}
	if s := metric.Scope; s != nil {
		key.scope = group{attributes: distinct(s.Attributes), name: s.Name, version: s.Version, urls: s.SchemaURL}
	}
	if s, ok := m.metrics[key]; ok {
		return s
	}
	s := &series{metric: *metric, latest: make(map[pointKey]int)}
	s.metric.Points = nil
	m.metrics[key] = s
	m.order = append(m.order, s)
	return s
}

func (s *series) add(p *capture.Point) {
	if s.metric.Temporality != capture.TemporalityCumulative && s.metric.Kind != capture.KindSummary {
		s.metric.Points = append(s.metric.Points, *p)
		return
	}
	key := pointKey{distinct(p.Attributes), timestamp(p.Start)}
	at, seen := s.latest[key]
	switch {
	case !seen:
		s.latest[key] = len(s.metric.Points)
		s.metric.Points = append(s.metric.Points, *p)
	case !p.Time.Before(s.metric.Points[at].Time):
		s.metric.Points[at] = *p
	}
}

// Metrics returns the metrics in the order in which they were seen first. Later calls
// of Add do not change them.
func (m *Merger) Metrics() []*capture.Metric {
	if len(m.order) == 0 {
		return nil
	}
	all := make([]*capture.Metric, len(m.order))
	for i, s := range m.order {
		metric := s.metric
		metric.Points = slices.Clone(metric.Points)
		all[i] = &metric
	}
	return all
}
