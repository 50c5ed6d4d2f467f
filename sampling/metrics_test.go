package sampling_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/sampling"
)

// exemplars returns the trace IDs that the exemplars of a histogram name.
func (s *service) exemplars(name string) []trace.TraceID {
	s.t.Helper()
	var ids []trace.TraceID
	data, ok := s.collect(name).(metricdata.Histogram[float64])
	require.True(s.t, ok, name)
	for _, p := range data.DataPoints {
		for _, e := range p.Exemplars {
			ids = append(ids, trace.TraceID(e.TraceID))
		}
	}
	return ids
}

// exportedTraces are the trace IDs of what was exported.
func (s *service) exportedTraces() map[trace.TraceID]bool {
	s.flush()
	ids := map[trace.TraceID]bool{}
	for _, span := range s.exporter.all() {
		ids[span.SpanContext.TraceID()] = true
	}
	return ids
}

func TestEveryRequestIsMeasuredAndExemplarsPointAtKeptTraces(t *testing.T) {
	const requests = 300
	s := serve(t, sampling.Any(sampling.Errors(), sampling.Slow(time.Second), sampling.Baseline(0.1)))
	for i := range requests {
		d := time.Duration(10+i) * time.Millisecond
		if i%50 == 0 {
			d = 2 * time.Second
		}
		at := time.Now()
		ctx, root := s.Start(context.Background(), "POST /chat", trace.WithSpanKind(trace.SpanKindServer), trace.WithTimestamp(at))
		_, call := s.Start(ctx, "call")
		call.SetAttributes(attribute.Float64("llm.ttft_ms", 1))
		call.End()
		root.SetAttributes(attribute.Float64("llm.ttft_ms", 250))
		if i%30 == 0 {
			root.SetStatus(codes.Error, "")
			root.SetAttributes(attribute.String("error.type", "timeout"))
		}
		root.End(trace.WithTimestamp(at.Add(d)))
	}
	kept := s.exportedTraces()
	assert.Greater(t, len(kept), 14, "errors and slow ones at least")
	assert.Less(t, len(kept), requests/2)

	for _, name := range []string{"genai.sampling.request.duration", "genai.sampling.request.time_to_first_token"} {
		data := s.collect(name).(metricdata.Histogram[float64])
		counts := map[string]uint64{}
		for _, p := range data.DataPoints {
			errType, _ := p.Attributes.Value("error.type")
			counts[errType.AsString()] += p.Count
			for key, want := range map[attribute.Key]string{"genai.sampling.root.name": "POST /chat", "genai.sampling.root.kind": "server"} {
				v, _ := p.Attributes.Value(key)
				assert.Equal(t, want, v.AsString())
			}
		}
		assert.Equal(t, map[string]uint64{"": requests - 10, "timeout": 10}, counts, name)
		exemplars := s.exemplars(name)
		assert.NotEmpty(t, exemplars)
		for _, id := range exemplars {
			assert.True(t, kept[id], "%s: an exemplar points at a trace that was dropped", name)
		}
	}
	ttft := s.collect("genai.sampling.request.time_to_first_token").(metricdata.Histogram[float64])
	maximum, _ := ttft.DataPoints[0].Max.Value()
	assert.InDelta(t, 0.25, maximum, 1e-9, "the outermost span says it, in seconds")
}

func TestATraceThatNobodyWasToldToSampleHasExemplars(t *testing.T) {
	s := serve(t, sampling.Errors())
	s.request("fine", time.Millisecond, false)
	id := s.request("failed", time.Millisecond, true)
	assert.Equal(t, []trace.TraceID{id}, s.exemplars("genai.sampling.request.duration"))
	assert.Equal(t, s.span("failed").SpanContext.TraceID(), id)
}

// An application measures inside a request, when nobody knows how it ends.
func TestExemplarsOfTheApplicationPointAtKeptTraces(t *testing.T) {
	for _, c := range []struct {
		head   sampling.Head
		filter bool // Tail.Kept instead of the SDK's own filter
		truth  bool
	}{
		{sampling.HeadCertain(), false, true},
		{sampling.HeadCertain(), true, true},
		{sampling.HeadRatio(0.2), false, true},
		{sampling.HeadAlways(), false, false}, // why HeadAlways needs Kept
		{sampling.HeadAlways(), true, true},
	} {
		t.Run(fmt.Sprint(c.head, c.filter), func(t *testing.T) {
			s := serve(t, sampling.Any(sampling.Errors(), sampling.Baseline(0.1)), sampling.WithHead(c.head))
			s.reader = sdkmetric.NewManualReader()
			options := []sdkmetric.Option{sdkmetric.WithReader(s.reader)}
			if c.filter {
				options = append(options, sdkmetric.WithExemplarFilter(s.tail.Kept))
			}
			histogram, err := sdkmetric.NewMeterProvider(options...).Meter("app").Float64Histogram("work",
				metric.WithExplicitBucketBoundaries(0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9))
			require.NoError(t, err)
			late := map[trace.TraceID]bool{}
			for i := range 400 {
				ctx, root := s.Start(context.Background(), "root")
				histogram.Record(ctx, float64(i%10)/10)
				if i%20 == 0 {
					_, failed := s.Start(ctx, "failed")
					failed.SetStatus(codes.Error, "")
					failed.End()
					histogram.Record(ctx, 5) // the trace is certain to be kept now
					late[root.SpanContext().TraceID()] = true
				}
				root.End()
			}
			kept := s.exportedTraces()
			exemplars := s.exemplars("work")
			assert.NotEmpty(t, exemplars)
			truth, lateOnes := true, 0
			for _, id := range exemplars {
				truth = truth && kept[id]
				if late[id] {
					lateOnes++
				}
			}
			assert.Equal(t, c.truth, truth)
			if c.filter {
				assert.Positive(t, lateOnes, "Kept also knows what was decided on the way")
			}
		})
	}
}

func TestKeptKnowsWhatIsCertain(t *testing.T) {
	s := serve(t, sampling.Any(sampling.Errors(), sampling.Baseline(0.1)))
	assert.False(t, s.tail.Kept(context.Background()))
	assert.False(t, s.tail.Kept(remote(0.5, true, "")), "the caller's flag is not ours")
	in, a := s.Start(remote(0.95, false, ""), "in")
	out, b := s.Start(remote(0.5, false, ""), "out")
	assert.True(t, s.tail.Kept(in))
	assert.False(t, s.tail.Kept(out))
	b.SetStatus(codes.Error, "")
	b.End()
	assert.True(t, s.tail.Kept(out))
	a.End()
}

func TestNamesOfRequestsAreBounded(t *testing.T) {
	s := serve(t, sampling.Errors())
	for i := range 300 {
		s.run(shape{name: fmt.Sprint("GET /users/", i), fails: i%2 == 0})
	}
	data := s.collect("genai.sampling.request.duration").(metricdata.Histogram[float64])
	assert.LessOrEqual(t, len(data.DataPoints), 2*101)
	var other uint64
	for _, p := range data.DataPoints {
		if v, _ := p.Attributes.Value("genai.sampling.root.name"); v.AsString() == "_OTHER" {
			other += p.Count
		}
	}
	assert.Equal(t, uint64(200), other)
}

func TestEverySpanHasOneOutcome(t *testing.T) {
	s := serve(t, sampling.Any(sampling.Errors(), sampling.Baseline(0.2), sampling.KeyPath(sampling.Baseline(0.5), entry)),
		sampling.WithLimits(sampling.Limits{Bytes: 20 << 10, TraceSpans: 30, Traces: 20}))
	var open []trace.Span
	spans := int64(0)
	for i := range 2000 {
		ctx, root := s.Start(context.Background(), "root", trace.WithSpanKind(trace.SpanKindServer))
		for range i % 50 {
			_, child := s.Start(ctx, "child")
			child.End()
			spans++
		}
		if i%7 == 0 {
			root.SetStatus(codes.Error, "")
		}
		if i%3 == 0 {
			open = append(open, root)
			continue
		}
		root.End()
		spans++
	}
	for _, root := range open {
		root.End()
		spans++
	}
	s.flush()
	var sum int64
	outcomes := s.outcomes()
	for _, n := range outcomes {
		sum += n
	}
	assert.Equal(t, spans, sum, "%v", outcomes)
	assert.Equal(t, int64(len(s.exporter.all())), outcomes["exported"])
	for _, outcome := range []string{"dropped", "truncated", "shed", "off_key_path"} {
		assert.Positive(t, outcomes[outcome], outcome)
	}
	assert.Zero(t, s.metric("genai.sampling.buffer.traces", "")[""])
	assert.Zero(t, s.metric("genai.sampling.buffer.bytes", "")[""])
	assert.Zero(t, s.metric("genai.sampling.queue.bytes", "")[""])
}
