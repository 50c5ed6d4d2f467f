package otlp

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"

	"github.com/genaitrace/otelgenai/capture"
)

func at(second int) time.Time {
	if second == 0 {
		return time.Time{}
	}
	return time.Unix(1_800_000_000+int64(second), 0).UTC()
}

func exported(kind capture.MetricKind, temporality capture.Temporality, points ...capture.Point) *capture.Metric {
	return &capture.Metric{
		Name: "m", Unit: "s", Kind: kind, Temporality: temporality, Points: points,
		Resource: &capture.Resource{Attributes: capture.Attributes{attribute.String("a", "1"), attribute.String("b", "2")}},
		Scope:    &capture.Scope{Name: "s"},
	}
}

func pointAt(model string, start, time int, value float64) capture.Point {
	return capture.Point{Attributes: capture.Attributes{attribute.String("model", model)}, Start: at(start), Time: at(time), Value: value}
}

func TestOfCumulativePointsTheLatestIsKept(t *testing.T) {
	for _, kind := range []capture.MetricKind{capture.KindCounter, capture.KindUpDownCounter, capture.KindHistogram, capture.KindExponential} {
		c := &capture.Capture{Metrics: []*capture.Metric{
			exported(kind, capture.TemporalityCumulative, pointAt("x", 1, 10, 1), pointAt("y", 1, 10, 5)),
			exported(kind, capture.TemporalityCumulative, pointAt("x", 1, 20, 2)),
			exported(kind, capture.TemporalityCumulative, pointAt("x", 1, 20, 3)), // again: what came last counts
			exported(kind, capture.TemporalityCumulative, pointAt("x", 1, 15, 9)), // too late
		}}
		Compact(c)
		assert.Equal(t, []*capture.Metric{exported(kind, capture.TemporalityCumulative, pointAt("x", 1, 20, 3), pointAt("y", 1, 10, 5))}, c.Metrics)
	}
}

func TestAnotherStartIsAnotherRun(t *testing.T) {
	c := &capture.Capture{Metrics: []*capture.Metric{
		exported(capture.KindCounter, capture.TemporalityCumulative, pointAt("x", 1, 10, 7)),
		exported(capture.KindCounter, capture.TemporalityCumulative, pointAt("x", 11, 20, 2)),
		exported(capture.KindCounter, capture.TemporalityCumulative, pointAt("x", 11, 30, 3)),
	}}
	Compact(c)
	require.Len(t, c.Metrics, 1)
	assert.Equal(t, []capture.Point{pointAt("x", 1, 10, 7), pointAt("x", 11, 30, 3)}, c.Metrics[0].Points)
}

func TestDeltasAndGaugesAreAllKept(t *testing.T) {
	for _, m := range []*capture.Metric{
		exported(capture.KindCounter, capture.TemporalityDelta, pointAt("x", 1, 10, 1)),
		exported(capture.KindGauge, capture.TemporalityUnknown, pointAt("x", 0, 10, 1)),
		exported(capture.KindHistogram, capture.TemporalityUnknown, pointAt("x", 0, 0, 1)),
	} {
		c := &capture.Capture{Metrics: []*capture.Metric{m, m, m}}
		Compact(c)
		require.Len(t, c.Metrics, 1)
		assert.Equal(t, []capture.Point{m.Points[0], m.Points[0], m.Points[0]}, c.Metrics[0].Points)
	}
}

func TestSummariesCountAsCumulative(t *testing.T) {
	c := &capture.Capture{Metrics: []*capture.Metric{
		exported(capture.KindSummary, capture.TemporalityUnknown, pointAt("x", 1, 10, 0)),
		exported(capture.KindSummary, capture.TemporalityUnknown, pointAt("x", 1, 20, 0)),
	}}
	Compact(c)
	assert.Equal(t, []*capture.Metric{exported(capture.KindSummary, capture.TemporalityUnknown, pointAt("x", 1, 20, 0))}, c.Metrics)
}

func TestASeriesIsKnownByItsContent(t *testing.T) {
	base := func() *capture.Metric {
		return exported(capture.KindCounter, capture.TemporalityCumulative, pointAt("x", 1, 10, 1))
	}
	for name, c := range map[string]struct {
		change func(*capture.Metric)
		series int
	}{
		"nothing":               {func(*capture.Metric) {}, 1},
		"description":           {func(m *capture.Metric) { m.Description = "d" }, 1},
		"order of attributes":   {func(m *capture.Metric) { a := m.Resource.Attributes; a[0], a[1] = a[1], a[0] }, 1},
		"name":                  {func(m *capture.Metric) { m.Name = "n" }, 2},
		"unit":                  {func(m *capture.Metric) { m.Unit = "ms" }, 2},
		"kind":                  {func(m *capture.Metric) { m.Kind = capture.KindUpDownCounter }, 2},
		"temporality":           {func(m *capture.Metric) { m.Temporality = capture.TemporalityDelta }, 2},
		"resource":              {func(m *capture.Metric) { m.Resource.Attributes[0] = attribute.String("a", "2") }, 2},
		"no resource":           {func(m *capture.Metric) { m.Resource = nil }, 2},
		"schema of resource":    {func(m *capture.Metric) { m.Resource.SchemaURL = "u" }, 2},
		"scope":                 {func(m *capture.Metric) { m.Scope.Version = "2" }, 2},
		"no scope":              {func(m *capture.Metric) { m.Scope = nil }, 2},
		"attributes of a point": {func(m *capture.Metric) { m.Points[0].Attributes = nil }, 2},
	} {
		t.Run(name, func(t *testing.T) {
			other := base()
			c.change(other)
			got := &capture.Capture{Metrics: []*capture.Metric{base(), other}}
			Compact(got)
			points := 0
			for _, m := range got.Metrics {
				points += len(m.Points)
			}
			assert.Equal(t, c.series, points)
		})
	}
}

func TestMergingLeavesWhatItIsGivenAlone(t *testing.T) {
	first := exported(capture.KindCounter, capture.TemporalityCumulative, pointAt("x", 1, 10, 1))
	var m Merger
	m.Add([]*capture.Metric{first})
	snapshot := m.Metrics()
	m.Add([]*capture.Metric{exported(capture.KindCounter, capture.TemporalityCumulative, pointAt("x", 1, 20, 2), pointAt("y", 1, 20, 2))})
	assert.Equal(t, []capture.Point{pointAt("x", 1, 10, 1)}, first.Points)
	assert.Equal(t, []capture.Point{pointAt("x", 1, 10, 1)}, snapshot[0].Points)
	assert.Len(t, m.Metrics()[0].Points, 2)
}

func TestReadingAFileMergesItsExports(t *testing.T) {
	var lines strings.Builder
	for second := 1; second <= 50; second++ {
		fmt.Fprintf(&lines, `{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"name":"requests","sum":{"aggregationTemporality":2,"isMonotonic":true,"dataPoints":[{"startTimeUnixNano":"1","timeUnixNano":"%d","asInt":"%d"}]}}]}]}]}`+"\n", second, second)
	}
	got, err := Read("f", strings.NewReader(lines.String()))
	require.NoError(t, err)
	require.Len(t, got.Metrics, 1)
	assert.Equal(t, capture.KindCounter, got.Metrics[0].Kind)
	require.Len(t, got.Metrics[0].Points, 1)
	assert.InDelta(t, 50, got.Metrics[0].Points[0].Value, 0)
}
