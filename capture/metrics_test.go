package capture_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/genaitrace/otelgenai/capture"
)

func metricCallback(f func() error) metric.Int64ObservableGaugeOption {
	return metric.WithInt64Callback(func(context.Context, metric.Int64Observer) error { return f() })
}

// instruments is one instrument of each kind.
type instruments struct {
	counter   metric.Int64Counter
	active    metric.Float64UpDownCounter
	gauge     metric.Int64Gauge
	histogram metric.Float64Histogram
	tokens    metric.Int64Histogram // exponential
}

func newInstruments(t *testing.T, mp metric.MeterProvider) instruments {
	t.Helper()
	var i instruments
	var errs [5]error
	m := mp.Meter("tests")
	i.counter, errs[0] = m.Int64Counter("counter", metric.WithUnit("{request}"), metric.WithDescription("requests"))
	i.active, errs[1] = m.Float64UpDownCounter("active")
	i.gauge, errs[2] = m.Int64Gauge("gauge")
	i.histogram, errs[3] = m.Float64Histogram("histogram", metric.WithExplicitBucketBoundaries(1, 10))
	i.tokens, errs[4] = m.Int64Histogram("tokens")
	for _, err := range errs {
		require.NoError(t, err)
	}
	return i
}

func exponential() capture.Option {
	return capture.WithView(sdkmetric.NewView(sdkmetric.Instrument{Name: "tokens"},
		sdkmetric.Stream{Aggregation: sdkmetric.AggregationBase2ExponentialHistogram{MaxSize: 4, MaxScale: 20}}))
}

func metricNamed(t *testing.T, c *capture.Capture, name string) *capture.Metric {
	t.Helper()
	found := c.Metric(name)
	require.Len(t, found, 1, "metrics named %q", name)
	return found[0]
}

func TestEveryKindOfMetricIsCaptured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		r := capture.NewRecorder(exponential())
		i := newInstruments(t, r.MeterProvider())
		ctx, span := r.TracerProvider().Tracer("").Start(t.Context(), "s")
		toy := metric.WithAttributes(attribute.String("model", "toy"))
		time.Sleep(time.Second)
		i.counter.Add(ctx, 2, toy)
		i.active.Add(ctx, 1.5)
		i.active.Add(ctx, -1)
		i.gauge.Record(ctx, 7)
		i.histogram.Record(ctx, 0.5)
		i.histogram.Record(ctx, 20)
		i.tokens.Record(ctx, 3)
		i.tokens.Record(ctx, 0)
		span.End()
		c := captured(t, r)

		counter := metricNamed(t, c, "counter")
		assert.Equal(t, []string{"requests", "{request}"}, []string{counter.Description, counter.Unit})
		assert.Equal(t, capture.KindCounter, counter.Kind)
		assert.Equal(t, capture.TemporalityCumulative, counter.Temporality)
		assert.Equal(t, "tests", counter.Scope.Name)
		require.Len(t, counter.Points, 1)
		p := counter.Points[0]
		assert.Equal(t, capture.Attributes{attribute.String("model", "toy")}, p.Attributes)
		assert.Equal(t, []time.Time{start, start.Add(time.Second)}, []time.Time{p.Start, p.Time})
		assert.True(t, p.Int)
		assert.InDelta(t, 2, p.Value, 0)
		require.Len(t, p.Exemplars, 1)
		assert.Equal(t, capture.Exemplar{
			Time: start.Add(time.Second), Int: true, Value: 2, TraceID: c.Spans[0].TraceID, SpanID: c.Spans[0].SpanID,
		}, p.Exemplars[0])

		active := metricNamed(t, c, "active")
		assert.Equal(t, capture.KindUpDownCounter, active.Kind)
		assert.InDelta(t, 0.5, active.Points[0].Value, 0)
		assert.False(t, active.Points[0].Int)

		gauge := metricNamed(t, c, "gauge")
		assert.Equal(t, capture.KindGauge, gauge.Kind)
		assert.Equal(t, capture.TemporalityUnknown, gauge.Temporality)
		assert.InDelta(t, 7, gauge.Points[0].Value, 0)

		histogram := metricNamed(t, c, "histogram")
		assert.Equal(t, capture.KindHistogram, histogram.Kind)
		h := histogram.Points[0]
		assert.Equal(t, []float64{1, 10}, h.Bounds)
		assert.Equal(t, []uint64{1, 0, 1}, h.BucketCounts)
		assert.EqualValues(t, 2, h.Count)
		assert.True(t, h.HasSum)
		assert.InDelta(t, 20.5, h.Sum, 0)
		assert.InDelta(t, 0.5, *h.Min, 0)
		assert.InDelta(t, 20, *h.Max, 0)

		tokens := metricNamed(t, c, "tokens")
		assert.Equal(t, capture.KindExponential, tokens.Kind)
		assert.True(t, tokens.Points[0].Int)
		assert.EqualValues(t, 1, tokens.Points[0].Exponential.ZeroCount)
		assert.Equal(t, []uint64{1}, tokens.Points[0].Exponential.PositiveCounts)
	})
}

func TestMetricsHoldIntegersOrFractions(t *testing.T) {
	r := capture.NewRecorder(exponential(), capture.WithView(
		sdkmetric.NewView(sdkmetric.Instrument{Name: "rates"}, sdkmetric.Stream{Aggregation: sdkmetric.AggregationBase2ExponentialHistogram{MaxSize: 4, MaxScale: 20}}),
		sdkmetric.NewView(sdkmetric.Instrument{Name: "plain"}, sdkmetric.Stream{Aggregation: sdkmetric.AggregationExplicitBucketHistogram{NoMinMax: true}}),
	))
	m := r.MeterProvider().Meter("")
	counter, _ := m.Float64Counter("counter")
	counter.Add(t.Context(), 2)
	active, _ := m.Int64UpDownCounter("active")
	active.Add(t.Context(), 2)
	gauge, _ := m.Float64Gauge("gauge")
	gauge.Record(t.Context(), 2)
	histogram, _ := m.Int64Histogram("histogram")
	histogram.Record(t.Context(), 2)
	rates, _ := m.Float64Histogram("rates")
	rates.Record(t.Context(), 2)
	plain, _ := m.Float64Histogram("plain")
	plain.Record(t.Context(), 2)

	c := captured(t, r)
	for name, want := range map[string]capture.Metric{
		"counter":   {Kind: capture.KindCounter, Points: []capture.Point{{Value: 2}}},
		"active":    {Kind: capture.KindUpDownCounter, Points: []capture.Point{{Value: 2, Int: true}}},
		"gauge":     {Kind: capture.KindGauge, Points: []capture.Point{{Value: 2}}},
		"histogram": {Kind: capture.KindHistogram, Points: []capture.Point{{Sum: 2, Int: true}}},
		"rates":     {Kind: capture.KindExponential, Points: []capture.Point{{Sum: 2}}},
		"plain":     {Kind: capture.KindHistogram, Points: []capture.Point{{Sum: 2}}},
	} {
		got := metricNamed(t, c, name)
		assert.Equal(t, want.Kind, got.Kind, name)
		require.Len(t, got.Points, 1, name)
		p := got.Points[0]
		assert.Equal(t, want.Points[0].Int, p.Int, name)
		assert.InDelta(t, want.Points[0].Value, p.Value, 0, name)
		assert.InDelta(t, want.Points[0].Sum, p.Sum, 0, name)
		assert.Equal(t, name == "histogram" || name == "rates", p.Min != nil, name)
	}
}

func TestMetricsAndPointsComeInOrder(t *testing.T) {
	for range 5 {
		r := capture.NewRecorder()
		for _, scope := range []string{"b", "a"} {
			for _, name := range []string{"z", "y"} {
				counter, err := r.MeterProvider().Meter(scope).Int64Counter(name)
				require.NoError(t, err)
				for _, model := range []string{"m3", "m1", "m2"} {
					counter.Add(t.Context(), 1, metric.WithAttributes(attribute.String("model", model)))
				}
			}
		}
		var got []string
		for _, m := range captured(t, r).Metrics {
			for _, p := range m.Points {
				got = append(got, m.Scope.Name+m.Name+p.Attributes.String("model"))
			}
		}
		assert.Equal(t, []string{"aym1", "aym2", "aym3", "azm1", "azm2", "azm3", "bym1", "bym2", "bym3", "bzm1", "bzm2", "bzm3"}, got)
	}
}

// A Recorder that was reset captures the same as one that is new.
func TestAfterAResetMetricsCountAnew(t *testing.T) {
	record := func(t *testing.T, i instruments, values ...float64) {
		t.Helper()
		for _, v := range values {
			i.counter.Add(t.Context(), int64(v))
			i.histogram.Record(t.Context(), v)
			i.tokens.Record(t.Context(), int64(v))
			i.tokens.Record(t.Context(), -int64(v))
			i.gauge.Record(t.Context(), int64(v))
		}
	}
	reset := capture.NewRecorder(exponential())
	i := newInstruments(t, reset.MeterProvider())
	i.active.Add(t.Context(), 3)
	i.counter.Add(t.Context(), 5, metric.WithAttributes(attribute.String("only", "before")))
	record(t, i, 1, 2, 0)
	reset.Reset()
	at := time.Now()
	record(t, i, 300, 1, 0)

	fresh := capture.NewRecorder(exponential())
	j := newInstruments(t, fresh.MeterProvider())
	j.active.Add(t.Context(), 3)
	record(t, j, 2, 1, 0) // opens the same scale, and is taken away below
	record(t, j, 300, 1, 0)

	got, want := captured(t, reset), captured(t, fresh)
	require.Len(t, got.Metrics, 5)
	assert.InDelta(t, 301, metricNamed(t, got, "counter").Points[0].Value, 0)
	assert.Len(t, metricNamed(t, got, "counter").Points, 1, "a series that does not go on is gone")
	assert.False(t, metricNamed(t, got, "counter").Points[0].Start.After(at))
	assert.InDelta(t, 3, metricNamed(t, got, "active").Points[0].Value, 0, "what is now stands")
	assert.InDelta(t, 0, metricNamed(t, got, "gauge").Points[0].Value, 0)

	h := metricNamed(t, got, "histogram").Points[0]
	assert.EqualValues(t, 3, h.Count)
	assert.Equal(t, []uint64{2, 0, 1}, h.BucketCounts)
	assert.InDelta(t, 301, h.Sum, 0)
	assert.Nil(t, h.Min)
	assert.Nil(t, h.Max)

	e, all := metricNamed(t, got, "tokens").Points[0], metricNamed(t, want, "tokens").Points[0]
	assert.EqualValues(t, 6, e.Count)
	assert.EqualValues(t, 2, e.Exponential.ZeroCount)
	assert.Equal(t, all.Exponential.Scale, e.Exponential.Scale)
	var total, everything uint64
	for k, n := range e.Exponential.PositiveCounts {
		assert.Equal(t, e.Exponential.NegativeCounts[k], n, "both sides hold the same")
		assert.LessOrEqual(t, n, all.Exponential.PositiveCounts[k])
		total, everything = total+n, everything+all.Exponential.PositiveCounts[k]
	}
	assert.EqualValues(t, 2, total)
	assert.EqualValues(t, 4, everything)
	assert.EqualValues(t, 1, e.Exponential.PositiveCounts[len(e.Exponential.PositiveCounts)-1], "300 is in the last bucket")
}

func TestAfterAResetAndSilenceThereIsNothing(t *testing.T) {
	r := capture.NewRecorder()
	i := newInstruments(t, r.MeterProvider())
	i.counter.Add(t.Context(), 1)
	i.histogram.Record(t.Context(), 1)
	r.Reset()
	assert.Empty(t, captured(t, r).Metrics)
}

func TestAReaderWithoutAProviderHasNoMetrics(t *testing.T) {
	r := capture.NewRecorder()
	r.MetricReader()
	assert.Empty(t, captured(t, r).Metrics)
}
