package mutate

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"

	"github.com/genaitrace/otelgenai/capture"
)

const ttft = "genai.time_to_first_token"

func metricFaultOf(t *testing.T, o Operator) metricFault {
	t.Helper()
	for _, f := range metricFaults {
		if f.operator == o {
			return f.put
		}
	}
	require.Fail(t, "no such fault", o)
	return nil
}

// faulty puts a fault at a copy of m.
func faulty(t *testing.T, o Operator, m capture.Metric) *capture.Metric {
	t.Helper()
	d := (&plan{}).draft()
	c := d.metric(&m)
	require.Empty(t, metricFaultOf(t, o)(c))
	return c
}

func sum(counts []uint64) (n uint64) {
	for _, c := range counts {
		n += c
	}
	return n
}

func histogram() capture.Metric {
	return capture.Metric{Name: "m", Unit: "s", Kind: capture.KindHistogram, Temporality: capture.TemporalityDelta, Points: []capture.Point{{
		Attributes: capture.Attributes{attribute.Int("n", 1)}, Count: 9, Sum: 18, HasSum: true, Min: new(0.5), Max: new(20.0),
		Bounds: []float64{1, 2, 4}, BucketCounts: []uint64{2, 4, 1, 2},
	}}}
}

func TestFaultsOfMetricsKeepTheRestConsistent(t *testing.T) {
	was := histogram().Points[0]

	p := faulty(t, Buckets, histogram()).Points[0]
	assert.Equal(t, defaultBounds, p.Bounds)
	assert.Equal(t, []uint64{0, 7}, p.BucketCounts[:2], "what was at most 4 is at most 5")
	assert.Equal(t, uint64(2), p.BucketCounts[len(defaultBounds)], "what had no bound has none")
	assert.Equal(t, was.Count, sum(p.BucketCounts))
	assert.InDelta(t, was.Sum, p.Sum, 0)

	p = faulty(t, ScaleMetric, histogram()).Points[0]
	assert.Equal(t, was.Bounds, p.Bounds)
	assert.Equal(t, []uint64{0, 0, 0, 9}, p.BucketCounts)
	assert.InDelta(t, 18_000, p.Sum, 0)
	assert.InDelta(t, 500, *p.Min, 0)
	assert.InDelta(t, 20_000, *p.Max, 0)
	assert.Equal(t, was.Count, p.Count)

	p = faulty(t, Undercount, histogram()).Points[0]
	assert.Equal(t, []uint64{1, 2, 0, 1}, p.BucketCounts)
	assert.Equal(t, uint64(4), p.Count, "as many as the buckets hold")
	assert.InDelta(t, 8, p.Sum, 1e-9)

	m := faulty(t, Instrument, histogram())
	assert.Equal(t, capture.KindGauge, m.Kind)
	assert.Equal(t, capture.TemporalityUnknown, m.Temporality)
	assert.Equal(t, capture.Point{Attributes: was.Attributes, Value: 2}, m.Points[0], "the mean")

	m = faulty(t, Series, histogram())
	require.Len(t, m.Points, 1+moreSeries)
	assert.Equal(t, was, m.Points[0])
	seen := map[attribute.Distinct]bool{}
	for _, p := range m.Points {
		set := attribute.NewSet(p.Attributes...)
		seen[set.Equivalent()] = true
	}
	assert.Len(t, seen, 1+moreSeries)
	for _, p := range m.Points[1:] {
		assert.Zero(t, p.Count+sum(p.BucketCounts), "nothing was measured in them")
		assert.Equal(t, was.Bounds, p.Bounds)
	}
}

func TestFaultsFitEveryKindOfMetric(t *testing.T) {
	counter := capture.Metric{Kind: capture.KindCounter, Unit: "By", Temporality: capture.TemporalityCumulative, Points: []capture.Point{{Value: 5, Int: true}}}
	assert.InDelta(t, 2, faulty(t, Undercount, counter).Points[0].Value, 0, "whole numbers stay whole")
	assert.InDelta(t, 5000, faulty(t, ScaleMetric, counter).Points[0].Value, 0)
	assert.Equal(t, "kBy", faulty(t, Unit, counter).Unit)
	m := faulty(t, Instrument, counter)
	assert.Equal(t, capture.KindGauge, m.Kind)
	assert.InDelta(t, 5, m.Points[0].Value, 0)

	assert.NotEmpty(t, metricFaultOf(t, Leak)(&counter))
	underWay := capture.Metric{Kind: capture.KindUpDownCounter, Points: []capture.Point{{Value: 0, Int: true}}}
	assert.InDelta(t, 1, faulty(t, Leak, underWay).Points[0].Value, 0)

	gauge := capture.Metric{Kind: capture.KindGauge, Unit: "1", Points: []capture.Point{{Value: 5}}}
	m = faulty(t, Instrument, gauge)
	assert.Equal(t, capture.KindCounter, m.Kind)
	assert.Equal(t, capture.TemporalityCumulative, m.Temporality)
	assert.Equal(t, "s", faulty(t, Unit, gauge).Unit)
	assert.NotEmpty(t, metricFaultOf(t, Undercount)(&gauge))

	exponential := capture.Metric{Kind: capture.KindExponential, Points: []capture.Point{{
		Count: 5, Sum: 10, Exponential: &capture.Exponential{Scale: 1, ZeroCount: 1, PositiveOffset: 2, PositiveCounts: []uint64{2, 2}},
	}}}
	assert.Equal(t, int32(2+20), faulty(t, ScaleMetric, exponential).Points[0].Exponential.PositiveOffset, "log2(1000) buckets of half a power of two")
	p := faulty(t, Undercount, exponential).Points[0]
	assert.Equal(t, []uint64{1, 1}, p.Exponential.PositiveCounts)
	assert.Equal(t, uint64(2), p.Count)
	assert.InDelta(t, 4, p.Sum, 0)
	assert.Equal(t, []uint64{2, 2}, exponential.Points[0].Exponential.PositiveCounts, "the original stays")
	assert.Equal(t, int32(1), faulty(t, Series, exponential).Points[1].Exponential.Scale)
	assert.NotEmpty(t, metricFaultOf(t, Buckets)(&exponential))

	summary := capture.Metric{Kind: capture.KindSummary, Points: []capture.Point{{Count: 2, Sum: 4, Quantiles: []capture.Quantile{{Quantile: 0.5, Value: 2}}}}}
	assert.InDelta(t, 2000, faulty(t, ScaleMetric, summary).Points[0].Quantiles[0].Value, 0)
	assert.InDelta(t, 2, summary.Points[0].Quantiles[0].Value, 0)

	bare := capture.Metric{Kind: capture.KindHistogram, Points: []capture.Point{{Count: 3, Sum: 6}}}
	assert.Equal(t, uint64(3), faulty(t, Buckets, bare).Points[0].BucketCounts[len(defaultBounds)], "recorded without buckets")
}

func TestAMetricThatIsMissingIsMissingEverywhere(t *testing.T) {
	good := request()
	other := *good.Metrics[0]
	other.Resource = nil
	good.Metrics = []*capture.Metric{good.Metrics[0], &other}
	c := parse(t, chat)

	mutated, _ := put(t, c, good, DropMetric, ttft, "")
	assert.Empty(t, mutated.Metrics)
	mutated, _ = put(t, c, good, Unit, ttft, "")
	assert.Equal(t, "ms", mutated.Metrics[0].Unit)
	assert.Equal(t, "s", mutated.Metrics[1].Unit, "one process has the fault")
}

func TestAnAttributeOfAMetricIsWrongAtEveryPoint(t *testing.T) {
	good := request()
	point := good.Metrics[0].Points[0]
	point.Attributes = capture.Attributes{attribute.String("gen_ai.request.model", "toy-2")}
	good.Metrics[0].Points = append(good.Metrics[0].Points, point)

	mutated, _ := put(t, parse(t, chat), good, Drop, ttft, "gen_ai.request.model")
	for _, p := range mutated.Metrics[0].Points {
		assert.Empty(t, p.Attributes)
	}
	mutated, _ = put(t, parse(t, chat), good, PersonalData, ttft, "gen_ai.request.model")
	for _, p := range mutated.Metrics[0].Points {
		assert.Contains(t, p.Attributes.String("gen_ai.request.model"), "jane.doe@example.com")
	}
}

func TestHighCardinalityChangesTheValuesAlone(t *testing.T) {
	good := request()
	good.Spans[1].Name = "generate toy-1"
	good.Spans[1].Attributes = append(good.Spans[1].Attributes, attribute.String("gen_ai.provider.name", "vllm"))
	c := parse(t, strings.ReplaceAll(strings.Replace(chat, "value: [toy-1, toy-2]", "members: open", 1), "name: inference.generate", `name: "generate {gen_ai.request.model}"`))
	require.Empty(t, c.Check(good).Findings)

	mutated, why := put(t, c, good, HighCardinality, "", "gen_ai.request.model")
	require.NotNil(t, mutated, why)
	report := c.Check(mutated)
	require.Len(t, report.Findings, 1, "metrics, logs, names and trees are right: %v", report.Findings)
	assert.Equal(t, "limit.cardinality", report.Findings[0].Rule)

	const times = 21 // one more than the limit, with one trace that has the attribute
	assert.Len(t, mutated.Spans, times*len(good.Spans))
	assert.Len(t, mutated.Logs, times*len(good.Logs))
	assert.Equal(t, uint64(times), mutated.Metrics[0].Points[0].Count)
	traces := mutated.Traces()
	assert.Len(t, traces, 2*times)
	for _, tr := range traces {
		if len(tr.Spans) > 1 {
			assert.Equal(t, []string{"POST /chat", "generate " + tr.Spans[1].Attributes.String("gen_ai.request.model"), "inference.prefill", "inference.decode"}, names(tr.Spans))
			continue
		}
		link := tr.Spans[0].Links[0]
		linked := slices.IndexFunc(traces, func(other *capture.Trace) bool { return other.ID == link.TraceID })
		require.GreaterOrEqual(t, linked, 0)
		assert.NotNil(t, traces[linked].Span(link.SpanID), "a link leads to the copy")
	}
}

func TestALimitOutOfReachIsSkipped(t *testing.T) {
	c := parse(t, strings.Replace(chat, "gen_ai.request.model: 20", "gen_ai.request.model: 1000000", 1))
	mutated, why := put(t, c, request(), HighCardinality, "", "gen_ai.request.model")
	assert.Nil(t, mutated)
	assert.Contains(t, why, "repeated 1000001 times")
}

func names(spans []*capture.Span) []string {
	var out []string
	for _, s := range spans {
		out = append(out, s.Name)
	}
	return out
}
