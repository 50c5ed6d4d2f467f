package translate_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"

	"github.com/genaitrace/otelgenai/semconv/translate"
)

type (
	metrics = []metricdata.Metrics
	point   = metricdata.HistogramDataPoint[float64]
)

func durations(points ...point) metricdata.Aggregation {
	return metricdata.Histogram[float64]{DataPoints: points, Temporality: metricdata.CumulativeTemporality}
}

// seconds is a point with one value in the bucket from 1 s to 10 s.
func seconds(pairs ...any) point {
	return point{
		Attributes: attribute.NewSet(kv(pairs...)...), Count: 1, Bounds: []float64{1, 10}, BucketCounts: []uint64{0, 1, 0},
		Min: metricdata.NewExtrema(2.5), Max: metricdata.NewExtrema(2.5), Sum: 2.5,
	}
}

func tokens(sum int64, pairs ...any) metricdata.HistogramDataPoint[int64] {
	return metricdata.HistogramDataPoint[int64]{
		Attributes: attribute.NewSet(kv(pairs...)...), Count: 1, Bounds: []float64{64, 256}, BucketCounts: []uint64{0, 1, 0}, Sum: sum,
	}
}

func tokenHistogram(points ...metricdata.HistogramDataPoint[int64]) metricdata.Aggregation {
	return metricdata.Histogram[int64]{DataPoints: points, Temporality: metricdata.DeltaTemporality}
}

func counter(value int64, pairs ...any) metricdata.Aggregation {
	return metricdata.Sum[int64]{
		DataPoints:  []metricdata.DataPoint[int64]{{Attributes: attribute.NewSet(kv(pairs...)...), Value: value}},
		Temporality: metricdata.DeltaTemporality, IsMonotonic: true,
	}
}

const (
	op    = "gen_ai.operation.name"
	typ   = "gen_ai.token.type"
	mod   = "gen_ai.token.modality"
	sys   = "gen_ai.system"
	prov  = "gen_ai.provider.name"
	legD  = "gen_ai.client.operation.duration"
	legT  = "gen_ai.client.token.usage"
	newD  = "gen_ai.client.inference.duration"
	newE  = "gen_ai.client.embeddings.duration"
	newEm = "gen_ai.client.embeddings.operation.input_tokens"
	newIn = "gen_ai.client.inference.operation.input_tokens"
	newOu = "gen_ai.client.inference.operation.output_tokens"
	srvT  = "gen_ai.server.time_to_first_token"
	cntIn = "gen_ai.client.inference.usage.input_tokens"
	cntOu = "gen_ai.client.inference.usage.output_tokens"
)

func TestMetrics(t *testing.T) {
	exponential := func(name, unit string) metricdata.Metrics {
		return metricdata.Metrics{Name: name, Unit: unit, Data: metricdata.ExponentialHistogram[float64]{
			DataPoints: []metricdata.ExponentialHistogramDataPoint[float64]{{Attributes: attribute.NewSet(attribute.String(op, "chat")), Count: 1, Sum: 2}},
		}}
	}
	for _, test := range []struct {
		name      string
		from, to  *translate.Vocabulary
		in, want  metrics
		wantFound findings
	}{
		{
			name: "one duration becomes one for each operation", from: translate.Semconv136, to: translate.Standard,
			in: metrics{{Name: legD, Unit: "s", Data: durations(
				seconds(op, "chat", sys, "xai"), seconds(op, "embeddings", sys, "openai"), seconds(op, "invoke_agent", sys, "openai"))}},
			want: metrics{
				{Name: newD, Unit: "s", Data: durations(seconds(op, "chat", prov, "x_ai"))},
				{Name: newE, Unit: "s", Data: durations(seconds(op, "embeddings", prov, "openai"))},
				{Name: legD, Unit: "s", Data: durations(seconds(op, "invoke_agent", prov, "openai"))},
			},
		},
		{
			name: "and the other way round", from: translate.Standard, to: translate.Semconv141,
			in: metrics{
				{Name: newD, Unit: "s", Data: durations(seconds(op, "chat"))},
				{Name: newE, Unit: "s", Data: durations(seconds(op, "embeddings"))},
				{Name: legD, Unit: "s", Data: durations(seconds(op, "invoke_agent"))},
			},
			want: metrics{{Name: legD, Unit: "s", Data: durations(seconds(op, "invoke_agent"), seconds(op, "chat"), seconds(op, "embeddings"))}},
		},
		{
			name: "the type of a token becomes part of the name, its sum a counter", from: translate.Semconv141, to: translate.Standard,
			in: metrics{{Name: legT, Unit: "{token}", Data: tokenHistogram(
				tokens(100, op, "chat", typ, "input"), tokens(70, op, "chat", typ, "output"), tokens(80, op, "embeddings", typ, "input"), tokens(5, op, "retrieval", typ, "input"))}},
			want: metrics{
				{Name: newEm, Unit: "{token}", Data: tokenHistogram(tokens(80, op, "embeddings"))},
				{Name: newIn, Unit: "{token}", Data: tokenHistogram(tokens(100, op, "chat"))},
				{Name: newOu, Unit: "{token}", Data: tokenHistogram(tokens(70, op, "chat"))},
				{Name: cntIn, Unit: "{token}", Data: counter(100, op, "chat", mod, "unknown")},
				{Name: cntOu, Unit: "{token}", Data: counter(70, op, "chat", mod, "unknown")},
				{Name: legT, Unit: "{token}", Data: tokenHistogram(tokens(5, op, "retrieval", typ, "input"))},
			},
			wantFound: findings{{legT, translate.NoTarget, 1}, {typ, translate.NoTarget, 1}},
		},
		{
			name: "and the other way round; a counter makes no histogram", from: translate.Standard, to: translate.Semconv141,
			in: metrics{
				{Name: newEm, Unit: "{token}", Data: tokenHistogram(tokens(80, op, "embeddings"))},
				{Name: newIn, Unit: "{token}", Data: tokenHistogram(tokens(100, op, "chat"))},
				{Name: newOu, Unit: "{token}", Data: tokenHistogram(tokens(70, op, "chat"))},
				{Name: cntIn, Unit: "{token}", Data: counter(100, op, "chat")},
			},
			want: metrics{
				{Name: legT, Unit: "{token}", Data: tokenHistogram(tokens(80, op, "embeddings", typ, "input"), tokens(100, op, "chat", typ, "input"), tokens(70, op, "chat", typ, "output"))},
				{Name: cntIn, Unit: "{token}", Data: counter(100, op, "chat")},
			},
			wantFound: findings{{cntIn, translate.NoTarget, 1}},
		},
		{
			name: "microseconds become seconds, bounds and all", from: translate.House, to: translate.Standard,
			in: metrics{{Name: "aiLatency", Data: metricdata.Histogram[int64]{DataPoints: []metricdata.HistogramDataPoint[int64]{{
				Attributes: attribute.NewSet(kv("model.name", "m")...), Count: 1, Bounds: []float64{1e6, 1e7}, BucketCounts: []uint64{0, 1, 0},
				Min: metricdata.NewExtrema[int64](2_500_000), Max: metricdata.NewExtrema[int64](2_500_000), Sum: 2_500_000,
			}}, Temporality: metricdata.CumulativeTemporality}}},
			want: metrics{{Name: newD, Unit: "s", Data: durations(seconds("gen_ai.request.model", "m"))}},
		},
		{
			name: "the unit that the metric states counts", from: translate.Semconv141, to: translate.Standard,
			in: metrics{{Name: legD, Unit: "ms", Data: durations(point{
				Attributes: attribute.NewSet(kv(op, "chat")...), Count: 1, Bounds: []float64{1000, 10000}, BucketCounts: []uint64{0, 1, 0},
				Min: metricdata.NewExtrema(2500.0), Max: metricdata.NewExtrema(2500.0), Sum: 2500,
			})}},
			want: metrics{{Name: newD, Unit: "s", Data: durations(seconds(op, "chat"))}},
		},
		{
			name: "where the name stays, too", from: translate.Semconv141, to: translate.Standard,
			in: metrics{
				{Name: srvT, Unit: "ms", Data: durations(point{
					Attributes: attribute.NewSet(kv(op, "chat")...), Count: 1, Bounds: []float64{1000, 10000}, BucketCounts: []uint64{0, 1, 0},
					Min: metricdata.NewExtrema(2500.0), Max: metricdata.NewExtrema(2500.0), Sum: 2500,
				})},
				{Name: legD, Unit: "ms", Data: durations(point{
					Attributes: attribute.NewSet(kv(op, "invoke_agent")...), Count: 1, Bounds: []float64{1000, 10000}, BucketCounts: []uint64{0, 1, 0},
					Min: metricdata.NewExtrema(2500.0), Max: metricdata.NewExtrema(2500.0), Sum: 2500,
				})},
				exponential("gen_ai.server.request.duration", "ms"),
			},
			want: metrics{
				{Name: srvT, Unit: "s", Data: durations(seconds(op, "chat"))},
				{Name: legD, Unit: "s", Data: durations(seconds(op, "invoke_agent"))},
				exponential("gen_ai.server.request.duration", "ms"),
			},
			wantFound: findings{{"gen_ai.server.request.duration", translate.NotExact, 1}},
		},
		{
			name: "one that is no unit of time is not guessed", from: translate.Semconv141, to: translate.Standard,
			in:        metrics{{Name: legD, Unit: "ticks", Data: durations(seconds(op, "chat"))}},
			want:      metrics{{Name: legD, Unit: "ticks", Data: durations(seconds(op, "chat"))}},
			wantFound: findings{{legD, translate.NotExact, 1}},
		},
		{
			name: "an exponential histogram changes its name", from: translate.Semconv141, to: translate.Standard,
			in:   metrics{exponential(legD, "s")},
			want: metrics{exponential(newD, "s")},
		},
		{
			name: "but not its unit", from: translate.Semconv141, to: translate.Standard,
			in:        metrics{exponential(legD, "ms")},
			want:      metrics{exponential(legD, "ms")},
			wantFound: findings{{legD, translate.NotExact, 1}},
		},
		{
			name: "a series that is there already keeps its place", from: translate.Semconv141, to: translate.Standard,
			in: metrics{
				{Name: legD, Unit: "s", Data: durations(seconds(op, "chat"), seconds(op, "text_completion"))},
				{Name: newD, Unit: "s", Data: durations(seconds(op, "chat"))},
			},
			want: metrics{
				{Name: legD, Unit: "s", Data: durations(seconds(op, "chat"))},
				{Name: newD, Unit: "s", Data: durations(seconds(op, "chat"), seconds(op, "text_completion"))},
			},
			wantFound: findings{{legD, translate.Conflict, 1}},
		},
		{
			name: "two series that would become one stay two", from: translate.House, to: translate.Standard,
			in:        metrics{{Name: "app.queue", Unit: "1", Data: durations(seconds("model.name", "m"), seconds("ai.model.name", "m"))}},
			want:      metrics{{Name: "app.queue", Unit: "1", Data: durations(seconds("gen_ai.request.model", "m"), seconds("ai.model.name", "m"))}},
			wantFound: findings{{"app.queue", translate.Conflict, 1}},
		},
		{
			name: "whichever of them comes first, the one that is there already keeps its place", from: translate.House, to: translate.Standard,
			in:        metrics{{Name: "app.queue", Unit: "1", Data: durations(seconds("model.name", "m"), seconds("gen_ai.request.model", "m"))}},
			want:      metrics{{Name: "app.queue", Unit: "1", Data: durations(seconds("model.name", "m"), seconds("gen_ai.request.model", "m"))}},
			wantFound: findings{{"app.queue", translate.Conflict, 1}},
		},
		{
			name: "latency of an engine, in a unit that its name says", from: translate.VLLM, to: translate.Standard,
			in: metrics{
				{Name: "vllm:time_to_first_token_seconds", Data: durations(seconds("model_name", "m", "engine", "0"))},
				{Name: "vllm:request_queue_time_seconds", Data: durations(seconds("model_name", "m"))},
				{Name: "vllm:inter_token_latency_seconds", Data: durations(seconds())},
				{Name: "vllm:num_requests_running", Data: durations(seconds())},
			},
			want: metrics{
				{Name: "gen_ai.server.time_to_first_token", Unit: "s", Data: durations(seconds("gen_ai.request.model", "m", "engine", "0"))},
				{Name: "genai.queue.wait", Unit: "s", Data: durations(seconds("gen_ai.request.model", "m"))},
				{Name: "vllm:inter_token_latency_seconds", Data: durations(seconds())},
				{Name: "vllm:num_requests_running", Data: durations(seconds())},
			},
			wantFound: findings{{"vllm:inter_token_latency_seconds", translate.NoTarget, 1}, {"vllm:num_requests_running", translate.NoTarget, 1}},
		},
		{
			name: "for a dashboard of another engine", from: translate.VLLM, to: translate.SGLang,
			in:   metrics{{Name: "vllm:request_queue_time_seconds", Data: durations(seconds("model_name", "m"))}},
			want: metrics{{Name: "sglang:queue_time_seconds", Unit: "s", Data: durations(seconds("model_name", "m"))}},
		},
		{
			name: "a gateway's unit of tokens, and counts that have no histogram", from: named(t, "envoy-ai-gateway"), to: translate.Standard,
			in: metrics{{Name: legT, Unit: "token", Data: tokenHistogram(tokens(100, op, "chat", typ, "input", prov, "azure.openai"), tokens(30, op, "chat", typ, "cached_input"))}},
			want: metrics{
				{Name: newIn, Unit: "{token}", Data: tokenHistogram(tokens(100, op, "chat", prov, "azure.ai.openai"))},
				{Name: cntIn, Unit: "{token}", Data: counter(100, op, "chat", prov, "azure.ai.openai", mod, "unknown")},
				{Name: "gen_ai.client.inference.usage.cache_read.input_tokens", Unit: "{token}", Data: counter(30, op, "chat", mod, "unknown")},
				{Name: legT, Unit: "token", Data: tokenHistogram(tokens(30, op, "chat", typ, "cached_input"))},
			},
			wantFound: findings{{legT, translate.NoTarget, 1}, {typ, translate.NoTarget, 1}},
		},
		{
			name: "the tokens of its embeddings", from: named(t, "envoy-ai-gateway"), to: translate.Standard,
			in:   metrics{{Name: legT, Unit: "token", Data: tokenHistogram(tokens(80, op, "embeddings", typ, "input"))}},
			want: metrics{{Name: newEm, Unit: "{token}", Data: tokenHistogram(tokens(80, op, "embeddings"))}},
		},
		{
			name: "a metric of its namespace without a target", from: translate.Semconv141, to: translate.Standard,
			in:        metrics{{Name: "gen_ai.client.generation.choices", Data: counter(1)}},
			want:      metrics{{Name: "gen_ai.client.generation.choices", Data: counter(1)}},
			wantFound: findings{{"gen_ai.client.generation.choices", translate.NoTarget, 1}},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			tr := translator(t, test.from, test.to)
			got := tr.Metrics(&metricdata.ResourceMetrics{ScopeMetrics: []metricdata.ScopeMetrics{{Metrics: test.in}}})
			metricdatatest.AssertEqual(t, metricdata.ScopeMetrics{Metrics: test.want}, got.ScopeMetrics[0])
			names := func(list metrics) (out []string) {
				for _, m := range list {
					out = append(out, m.Name)
				}
				return out
			}
			assert.Equal(t, names(test.want), names(got.ScopeMetrics[0].Metrics), "order")
			assert.Equal(t, test.wantFound, tr.Report().Findings)
		})
	}
}

func TestMetricsOfEveryKindAreTranslated(t *testing.T) {
	tr := translator(t, translate.House, translate.Standard)
	set, want := attribute.NewSet(kv("ai.model.name", "m")...), attribute.NewSet(kv("gen_ai.request.model", "m")...)
	in := func(set attribute.Set, model string) metrics {
		exemplar := []metricdata.Exemplar[float64]{{FilteredAttributes: kv(model, "m"), Value: 1}}
		return metrics{
			{Name: "a", Data: metricdata.Gauge[int64]{DataPoints: []metricdata.DataPoint[int64]{{Attributes: set}}}},
			{Name: "b", Data: metricdata.Gauge[float64]{DataPoints: []metricdata.DataPoint[float64]{{Exemplars: exemplar}}}},
			{Name: "c", Data: metricdata.Sum[int64]{DataPoints: []metricdata.DataPoint[int64]{{Attributes: set}}}},
			{Name: "d", Data: metricdata.Sum[float64]{DataPoints: []metricdata.DataPoint[float64]{{Attributes: set}}}},
			{Name: "e", Data: metricdata.Histogram[int64]{DataPoints: []metricdata.HistogramDataPoint[int64]{{Attributes: set}}}},
			{Name: "f", Data: metricdata.Histogram[float64]{DataPoints: []metricdata.HistogramDataPoint[float64]{{Attributes: set, Exemplars: exemplar}}}},
			{Name: "g", Data: metricdata.ExponentialHistogram[int64]{DataPoints: []metricdata.ExponentialHistogramDataPoint[int64]{{Attributes: set}}}},
			{Name: "h", Data: metricdata.ExponentialHistogram[float64]{DataPoints: []metricdata.ExponentialHistogramDataPoint[float64]{{Exemplars: exemplar}}}},
			{Name: "i", Data: metricdata.Summary{DataPoints: []metricdata.SummaryDataPoint{{Attributes: set}}}},
			{Name: "none"},
		}
	}
	given := in(set, "ai.model.name")
	got := tr.Metrics(&metricdata.ResourceMetrics{ScopeMetrics: []metricdata.ScopeMetrics{{Metrics: given}}})
	assert.Equal(t, in(want, "gen_ai.request.model"), got.ScopeMetrics[0].Metrics)
	assert.Equal(t, in(set, "ai.model.name"), given, "what is given is not written to")
}

func TestMetricsWithoutAnythingToTranslateArePassedOn(t *testing.T) {
	rm := &metricdata.ResourceMetrics{ScopeMetrics: []metricdata.ScopeMetrics{{Metrics: metrics{{Name: "http.server.request.duration", Unit: "s", Data: durations(seconds("http.route", "/x"))}}}}}
	assert.Same(t, rm, translator(t, translate.Semconv136, translate.Standard).Metrics(rm))
}

func TestMetricsSurviveTheWayThere(t *testing.T) {
	for _, v := range []*translate.Vocabulary{translate.Semconv136, translate.Semconv141} {
		in := metrics{
			{Name: newD, Unit: "s", Data: durations(seconds(op, "chat", prov, "openai"), seconds(op, "text_completion", prov, "x_ai"))},
			{Name: newE, Unit: "s", Data: durations(seconds(op, "embeddings", prov, "openai"))},
			{Name: "gen_ai.server.time_to_first_token", Unit: "s", Data: durations(seconds(op, "chat", prov, "openai"))},
		}
		rm := &metricdata.ResourceMetrics{ScopeMetrics: []metricdata.ScopeMetrics{{Metrics: in}}}
		there := translator(t, translate.Standard, v).Metrics(rm)
		back := translator(t, v, translate.Standard).Metrics(there)
		assert.Equal(t, in, back.ScopeMetrics[0].Metrics, v)
	}
}

// metricExporter keeps what it is given.
type metricExporter struct {
	sdkmetric.Exporter

	got *metricdata.ResourceMetrics
	err error
}

func (e *metricExporter) Export(_ context.Context, rm *metricdata.ResourceMetrics) error {
	e.got = rm
	return e.err
}

func (e *metricExporter) Temporality(sdkmetric.InstrumentKind) metricdata.Temporality {
	return metricdata.DeltaTemporality
}

func (e *metricExporter) Aggregation(k sdkmetric.InstrumentKind) sdkmetric.Aggregation {
	return sdkmetric.DefaultAggregationSelector(k)
}

func (e *metricExporter) ForceFlush(context.Context) error { return e.err }
func (e *metricExporter) Shutdown(context.Context) error   { return nil }

func TestMetricExporter(t *testing.T) {
	next := &metricExporter{}
	e := translate.NewMetricExporter(next, translator(t, translate.Semconv141, translate.Standard))
	mp := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewPeriodicReader(e)))
	usage, err := mp.Meter("test").Int64Histogram(legT)
	require.NoError(t, err)
	usage.Record(t.Context(), 100, metric.WithAttributes(kv(op, "chat", typ, "input")...))
	require.NoError(t, mp.ForceFlush(t.Context()))
	require.Len(t, next.got.ScopeMetrics, 1)
	require.Len(t, next.got.ScopeMetrics[0].Metrics, 2)
	assert.Equal(t, newIn, next.got.ScopeMetrics[0].Metrics[0].Name)
	assert.Equal(t, cntIn, next.got.ScopeMetrics[0].Metrics[1].Name)
	assert.Equal(t, metricdata.DeltaTemporality, e.Temporality(sdkmetric.InstrumentKindCounter))
	require.NoError(t, mp.Shutdown(t.Context()))

	next.err = errors.New("backend is down")
	assert.Same(t, next.err, e.Export(t.Context(), nil))
	assert.Same(t, next.err, e.ForceFlush(t.Context()))
	assert.Equal(t, sdkmetric.Exporter(next), translate.NewMetricExporter(next, nil))
}
