package genaitrace_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/capture"
	"github.com/genaitrace/otelgenai/contract"
	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/semconv"
)

// linked returns the spans that a span links to.
func (s seen) linked() (ids []trace.SpanID) {
	for _, l := range s.Links() {
		ids = append(ids, l.SpanContext.SpanID())
	}
	return ids
}

// batchSizes returns the points of the metric.
func (r *recording) batchSizes() []metricdata.HistogramDataPoint[int64] {
	r.t.Helper()
	m, ok := r.metric(semconv.GenAIBatchSizeName)
	if !ok {
		return nil
	}
	return m.Data.(metricdata.Histogram[int64]).DataPoints
}

func TestABatchOf500RequestsAddsOneSpan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record(t)
		engine, loop := r.startForeign(t.Context(), "engine loop") // is no parent of anything
		var requests [500]*genaitrace.Inference
		var entries [500]trace.Span
		for i := range requests {
			ctx, entry := r.startForeign(t.Context(), "entry")
			_, requests[i] = r.StartInference(ctx, genaitrace.Request{Model: "m"})
			entries[i] = entry
		}
		_, batch := r.StartBatch(engine, genaitrace.BatchFacts{Model: "m"})
		for _, inf := range requests {
			batch.Join(inf)
			batch.Join(inf)
		}
		time.Sleep(200 * time.Millisecond)
		for i, inf := range requests {
			time.Sleep(time.Millisecond)
			inf.End()
			entries[i].End()
		}
		batch.End()
		batch.End()
		loop.End()

		assert.Len(t, r.recorder.Ended(), 500+500+1+1)
		b := r.span(semconv.SpanInferenceBatch)
		assert.False(t, b.Parent().IsValid())
		assert.Equal(t, int64(500), b.int(semconv.AIBatchSizeKey))
		assert.Equal(t, 200+501/2.0, b.float(semconv.AIBatchAvgLatencyMsKey))
		assert.Equal(t, "m", b.text("gen_ai.request.model"))
		b.assertStatus("")

		var first []trace.SpanID
		for i, s := range r.spans(semconv.SpanInferenceGenerate) {
			assert.Equal(t, entries[i].SpanContext().SpanID(), s.Parent().SpanID(), "its own parent")
			assert.Equal(t, entries[i].SpanContext().TraceID(), s.SpanContext().TraceID(), "its own trace")
			assert.Equal(t, []trace.SpanID{b.SpanContext().SpanID()}, s.linked())
			if i < 100 {
				first = append(first, s.SpanContext().SpanID())
			}
		}
		assert.Equal(t, first, b.linked(), "the first 100")

		points := r.batchSizes()
		require.Len(t, points, 1)
		assert.Equal(t, int64(500), points[0].Sum)
		assert.Equal(t, map[string]any{"gen_ai.request.model": "m"}, dims(points[0].Attributes))
	})
}

// Continuous batching: requests come and go while the batch runs.
func TestRequestsJoinAndLeaveARunningBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record(t)
		step := func() { time.Sleep(10 * time.Millisecond) }
		start := func() *genaitrace.Inference {
			_, inf := r.StartInference(t.Context(), genaitrace.Request{})
			return inf
		}
		a, b, c := start(), start(), start()
		_, batch := r.StartBatch(t.Context(), genaitrace.BatchFacts{})
		batch.Leave(a) // was not there
		batch.Join(a)
		step()
		batch.Join(b)
		step()
		batch.Leave(a)
		batch.Leave(a)
		step()
		batch.Join(c)
		step()
		batch.Join(a) // once more, after a preemption
		step()
		b.End() // leaves by itself
		step()
		a.End()
		step()
		batch.End() // c is still there, and stays so
		step()
		batch.Join(c)
		batch.Leave(c)
		c.End()

		s := r.span(semconv.SpanInferenceBatch)
		assert.Equal(t, int64(3), s.int(semconv.AIBatchSizeKey), "at one time")
		assert.Equal(t, (20+20+40+40)/3.0, s.float(semconv.AIBatchAvgLatencyMsKey))
		assert.Len(t, s.linked(), 3, "each once")
		for _, inf := range r.spans(semconv.SpanInferenceGenerate) {
			assert.Len(t, inf.linked(), 1, "once")
		}
	})
}

func TestTheSizeThatTheEngineKnowsCountsRequestsThatRecordNothing(t *testing.T) {
	for name, tt := range map[string]struct {
		given, joined int
		want          int64 // 0 for absent
		faults        int
	}{
		"given":                   {16, 2, 16, 0},
		"more came than it said":  {2, 3, 3, 0},
		"counted":                 {0, 3, 3, 0},
		"nobody came":             {0, 0, 0, 0},
		"nobody who was recorded": {8, 0, 8, 0},
		"a negative one":          {-3, 2, 2, 1},
	} {
		t.Run(name, func(t *testing.T) {
			handled(t)
			r := record(t)
			_, batch := r.StartBatch(t.Context(), genaitrace.BatchFacts{Size: tt.given})
			batch.Join(nil)
			for range tt.joined {
				_, inf := r.StartInference(t.Context(), genaitrace.Request{})
				batch.Join(inf)
				defer inf.End()
			}
			batch.End()
			s := r.span(semconv.SpanInferenceBatch)
			assert.Equal(t, tt.want > 0, s.has(semconv.AIBatchSizeKey))
			assert.Equal(t, tt.joined > 0, s.has(semconv.AIBatchAvgLatencyMsKey))
			if tt.want > 0 {
				assert.Equal(t, tt.want, s.int(semconv.AIBatchSizeKey))
				assert.Equal(t, tt.want, r.batchSizes()[0].Sum)
			} else {
				assert.Empty(t, r.batchSizes())
			}
			assert.Equal(t, tt.faults, r.faults()[semconv.GenAIFaultCount])
		})
	}
}

func TestABatchEndsAsItIsToldTo(t *testing.T) {
	for name, tt := range map[string]struct {
		end  func(b *genaitrace.Batch)
		want string // error.type
	}{
		"End":      {func(b *genaitrace.Batch) { b.End() }, ""},
		"Fail":     {func(b *genaitrace.Batch) { b.Fail(typedError("device_lost")) }, "device_lost"},
		"Fail nil": {func(b *genaitrace.Batch) { b.Fail(nil) }, ""},
		"EndErr":   {func(b *genaitrace.Batch) { err := error(typedError("oom")); b.EndErr(&err) }, "oom"},
		"EndErr without one": {func(b *genaitrace.Batch) {
			b.EndErr(nil)
		}, ""},
		"a panic": {func(b *genaitrace.Batch) {
			defer func() { _ = recover() }()
			defer b.EndErr(nil)
			panic("x")
		}, "panic"},
		"cancelled": {func(b *genaitrace.Batch) { b.Fail(context.Canceled) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := record(t)
			_, inf := r.StartInference(t.Context(), genaitrace.Request{})
			_, batch := r.StartBatch(t.Context(), genaitrace.BatchFacts{})
			batch.Join(inf)
			tt.end(batch)
			batch.Fail(errors.New("late"))
			inf.End()
			r.span(semconv.SpanInferenceBatch).assertStatus(tt.want)
			r.span(semconv.SpanInferenceGenerate).assertStatus("")
		})
	}
}

func TestABatchThatIsEndedInThePastCountsUntilThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record(t)
		start := time.Now()
		_, inf := r.StartInference(t.Context(), genaitrace.Request{})
		_, batch := r.StartBatch(t.Context(), genaitrace.BatchFacts{})
		batch.Join(inf)
		time.Sleep(time.Second)
		batch.EndAt(start.Add(300 * time.Millisecond))
		inf.End()
		s := r.span(semconv.SpanInferenceBatch)
		assert.Equal(t, start.Add(300*time.Millisecond), s.EndTime())
		assert.Equal(t, 300.0, s.float(semconv.AIBatchAvgLatencyMsKey))

		_, batch = r.StartBatch(t.Context(), genaitrace.BatchFacts{})
		handled(t)
		batch.EndAt(start)
		assert.Equal(t, 1, r.faults()[semconv.GenAIFaultTime])
	})
}

// Links lead to spans that are kept, or nowhere.
func TestABatchLinksOnlyToWhatIsSampled(t *testing.T) {
	r, unsampled := record(t), record(t, sdktrace.WithSampler(sdktrace.NeverSample()))
	_, kept := r.StartInference(t.Context(), genaitrace.Request{})
	_, dropped := unsampled.StartInference(t.Context(), genaitrace.Request{})
	_, batch := r.StartBatch(t.Context(), genaitrace.BatchFacts{})
	_, droppedBatch := unsampled.StartBatch(t.Context(), genaitrace.BatchFacts{})
	for _, b := range []*genaitrace.Batch{batch, droppedBatch} {
		b.Join(dropped)
		b.Join(kept)
		b.End()
	}
	kept.End()
	dropped.End()
	assert.Equal(t, []trace.SpanID{kept.Span().SpanContext().SpanID()}, r.span(semconv.SpanInferenceBatch).linked())
	assert.Equal(t, []trace.SpanID{batch.Span().SpanContext().SpanID()}, r.span(semconv.SpanInferenceGenerate).linked())
	assert.Equal(t, int64(2), r.span(semconv.SpanInferenceBatch).int(semconv.AIBatchSizeKey), "both were in it")
	assert.Equal(t, int64(2), unsampled.batchSizes()[0].Sum)
}

// A long request sees many batches go by.
func TestARequestLinksToAtMost100Batches(t *testing.T) {
	r := record(t)
	_, inf := r.StartInference(t.Context(), genaitrace.Request{})
	var open []*genaitrace.Batch
	for i := range 400 {
		_, batch := r.StartBatch(t.Context(), genaitrace.BatchFacts{Size: 1})
		batch.Join(inf)
		if i < 150 {
			batch.End()
		} else {
			open = append(open, batch)
		}
	}
	for _, batch := range open {
		batch.End()
	}
	inf.End()
	assert.Len(t, r.span(semconv.SpanInferenceGenerate).linked(), 100)
	joined := 0
	for _, b := range r.spans(semconv.SpanInferenceBatch) {
		joined += len(b.linked())
	}
	assert.Equal(t, 150+100, joined, "those that it could remember")
}

func TestABatchCostsNothingWhereNothingRecords(t *testing.T) {
	r := record(t, sdktrace.WithSampler(sdktrace.NeverSample()))
	tr := genaitrace.New(genaitrace.WithTracerProvider(r.provider), genaitrace.WithMeterProvider(metricnoop.NewMeterProvider()))
	ctx, batch := tr.StartBatch(t.Context(), genaitrace.BatchFacts{Model: "m", Size: 3})
	assert.Nil(t, batch)
	assert.False(t, trace.SpanContextFromContext(ctx).IsSampled())

	var none *genaitrace.Tracer
	_, batch = none.StartBatch(t.Context(), genaitrace.BatchFacts{})
	for _, b := range []*genaitrace.Batch{batch, new(genaitrace.Batch)} {
		b.Join(nil)
		b.Join(new(genaitrace.Inference))
		b.Leave(nil)
		b.Leave(new(genaitrace.Inference))
		b.SetAttributes(semconv.AIGPUDeviceID(0))
		assert.False(t, b.Span().IsRecording())
		b.EndErr(nil)
		b.EndAt(time.Now())
		b.Fail(nil)
		b.End()
	}
}

func TestManyGoroutinesUseABatch(t *testing.T) {
	r := record(t)
	const goroutines, requests = 8, 40
	_, batch := r.StartBatch(t.Context(), genaitrace.BatchFacts{Model: "m"})
	_, shared := r.StartInference(t.Context(), genaitrace.Request{})
	fs := make([]func(), goroutines)
	for g := range fs {
		fs[g] = func() {
			for range requests {
				_, inf := r.StartInference(t.Context(), genaitrace.Request{})
				together(
					func() { batch.Join(inf); batch.Leave(inf) },
					func() { batch.Join(inf) },
					func() { batch.Join(shared); batch.Leave(shared) },
					func() { batch.SetAttributes(semconv.AIGPUDeviceID(g)) },
					func() { inf.End() },
				)
			}
			batch.End()
		}
	}
	together(fs...)
	shared.End()
	s := r.span(semconv.SpanInferenceBatch)
	assert.LessOrEqual(t, s.int(semconv.AIBatchSizeKey), int64(goroutines+1))
	assert.LessOrEqual(t, len(s.linked()), 100)
	assert.LessOrEqual(t, s.float(semconv.AIBatchAvgLatencyMsKey), float64(s.EndTime().Sub(s.StartTime()))/1e6)
	for _, inf := range r.spans(semconv.SpanInferenceGenerate) {
		assert.LessOrEqual(t, len(inf.linked()), 1)
	}
}

// The contract that ships with this module.
func TestBatchesMeetTheirContract(t *testing.T) {
	profile, err := contract.Builtin("batch")
	require.NoError(t, err)
	for name, work := range map[string]func(tr *genaitrace.Tracer){
		"static": func(tr *genaitrace.Tracer) {
			_, batch := tr.StartBatch(context.Background(), genaitrace.BatchFacts{Model: "m"})
			defer batch.End()
			for range 3 {
				_, inf := tr.StartInference(context.Background(), genaitrace.Request{Model: "m"})
				batch.Join(inf)
				time.Sleep(20 * time.Millisecond)
				defer inf.End()
			}
		},
		"continuous": func(tr *genaitrace.Tracer) {
			_, batch := tr.StartBatch(context.Background(), genaitrace.BatchFacts{Model: "m"})
			for range 500 {
				_, inf := tr.StartInference(context.Background(), genaitrace.Request{Model: "m"})
				time.Sleep(time.Millisecond)
				batch.Join(inf)
				time.Sleep(time.Millisecond)
				inf.End()
			}
			batch.End()
		},
		"failed": func(tr *genaitrace.Tracer) {
			_, batch := tr.StartBatch(context.Background(), genaitrace.BatchFacts{Size: 2})
			_, inf := tr.StartInference(context.Background(), genaitrace.Request{Model: "m"})
			batch.Join(inf)
			batch.Fail(typedError("device_lost"))
			inf.Fail(typedError("device_lost"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rec := capture.NewRecorder()
				work(genaitrace.New(genaitrace.WithTracerProvider(rec.TracerProvider()), genaitrace.WithMeterProvider(rec.MeterProvider())))
				got, err := rec.Capture(t.Context())
				require.NoError(t, err)
				require.NoError(t, rec.Shutdown(t.Context()))
				report := profile.Check(got)
				assert.False(t, report.Failed(true), "%+v", report.Findings)
			})
		})
	}
}
