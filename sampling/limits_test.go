package sampling_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/sampling"
	"github.com/genaitrace/otelgenai/semconv"
)

// inBubble runs f with a clock of its own.
func inBubble(t *testing.T, p sampling.Policy, f func(*testing.T, *service), opts ...sampling.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, p, opts...)
		f(t, s)
		s.shutdown()
	})
}

func (s *service) outcomes() map[string]int64 {
	return s.metric("genai.sampling.spans", "genai.sampling.outcome")
}

func TestASilentStreamIsKeptAsSoonAsItIsSlow(t *testing.T) {
	inBubble(t, sampling.Default(), func(t *testing.T, s *service) {
		ctx, root := s.Start(remote(0, false, ""), "root")
		_, queue := s.Start(ctx, "queue")
		queue.End()
		_, decode := s.Start(ctx, "decode")
		time.Sleep(2900 * time.Millisecond)
		assert.Empty(t, s.exported())
		time.Sleep(1100 * time.Millisecond) // looked at once a second
		assert.Equal(t, []string{"queue"}, s.exported())
		_, tool := s.Start(ctx, "tool")
		assert.True(t, tool.SpanContext().IsSampled(), "callees are told from here on")
		tool.End()
		time.Sleep(time.Minute)
		decode.End()
		root.End()
		assert.Equal(t, []string{"queue", "tool", "decode", "root"}, s.exported())
		assert.Equal(t, "slow", attr(s.span("root"), semconv.GenAISamplingReasonKey))
	})
}

func TestALongStreamHoldsSecondsOfSpans(t *testing.T) {
	inBubble(t, sampling.Slow(0), func(t *testing.T, s *service) {
		ctx, root := s.Start(context.Background(), "root")
		var most int64
		for range 600 {
			_, chunk := s.Start(ctx, "chunk")
			time.Sleep(100 * time.Millisecond)
			chunk.End()
			most = max(most, s.metric("genai.sampling.buffer.bytes", "")[""])
		}
		root.End()
		assert.Len(t, s.exported(), 601)
		assert.LessOrEqual(t, most, int64(30*500), "three seconds of spans")
	})
}

func TestWhatOutlivesTheRootIsWaitedFor(t *testing.T) {
	for _, late := range []time.Duration{500 * time.Millisecond, 2500 * time.Millisecond} {
		inBubble(t, sampling.Errors(), func(t *testing.T, s *service) {
			ctx, root := s.Start(context.Background(), "root")
			_, async := s.Start(ctx, "async")
			root.End()
			time.Sleep(late)
			async.SetStatus(codes.Error, "")
			async.End()
			if late < time.Second {
				assert.ElementsMatch(t, []string{"root", "async"}, s.exported())
				return
			}
			assert.Empty(t, s.exported(), "decided after a second or two; stragglers follow")
			assert.Equal(t, map[string]int64{"dropped": 2}, s.outcomes())
		})
	}
}

func TestALaterCallIsJudgedAlthoughSpansOfADroppedOneAreOpen(t *testing.T) {
	inBubble(t, sampling.Any(sampling.Errors(), sampling.Slow(time.Minute)), func(t *testing.T, s *service) {
		caller := remote(0, false, "")
		ctx, root := s.Start(caller, "first")
		_, leaked := s.Start(ctx, "leaked")
		root.End()
		time.Sleep(2 * time.Minute)
		for _, fails := range []bool{false, true} {
			_, root = s.Start(caller, fmt.Sprint("fails ", fails))
			if fails {
				root.SetStatus(codes.Error, "")
			}
			root.End()
			time.Sleep(2 * time.Second)
		}
		assert.Equal(t, []string{"fails true"}, s.exported())
		leaked.End()
		assert.Equal(t, []string{"fails true", "leaked"}, s.exported())
	})
}

func TestWorkThatStartsAfterTheTraceIsJudgedApart(t *testing.T) {
	inBubble(t, sampling.Any(sampling.Errors(), sampling.Baseline(0.5)), func(t *testing.T, s *service) {
		ctx, root := s.Start(remote(0.1, false, ""), "root")
		root.End()
		inner, async := s.Start(ctx, "async")
		_, failed := s.Start(inner, "failed")
		failed.SetStatus(codes.Error, "")
		failed.End()
		async.End()
		assert.Equal(t, []string{"failed", "async"}, s.exported())
		assert.Equal(t, "true", attr(s.span("failed"), semconv.GenAISamplingPartialKey), "its parent is not here yet")
		_, fine := s.Start(ctx, "fine")
		fine.End()
		assert.Equal(t, []string{"failed", "async", "fine"}, s.exported(), "the trace is kept now")

		ctx, root = s.Start(remote(0.2, false, ""), "other root")
		root.End()
		_, async = s.Start(ctx, "other async")
		async.End()
		assert.Len(t, s.exported(), 3, "the same chance, the same answer")
	})
}

func TestFlushDecidesWhatLingersAndLeavesWhatRuns(t *testing.T) {
	inBubble(t, sampling.Baseline(0.5), func(t *testing.T, s *service) {
		ctx, root := s.Start(remote(0.9, false, ""), "root")
		_, open := s.Start(ctx, "open")
		_, done := s.Start(ctx, "done")
		done.End()
		assert.Empty(t, s.exported())
		root.End()
		assert.Equal(t, []string{"done", "root"}, s.exported())
		open.End()
		assert.Equal(t, []string{"done", "root", "open"}, s.exported())
	})
}

func TestRootsThatNeverEndAreForgotten(t *testing.T) {
	inBubble(t, sampling.Any(sampling.Errors(), sampling.Baseline(0.5)), func(t *testing.T, s *service) {
		var roots []trace.Span
		for _, r := range []float64{0.1, 0.9} {
			ctx, root := s.Start(remote(r, false, ""), fmt.Sprint("root ", r))
			_, child := s.Start(ctx, fmt.Sprint("child ", r))
			child.End()
			roots = append(roots, root)
		}
		time.Sleep(9 * time.Minute)
		assert.Empty(t, s.exported())
		time.Sleep(2 * time.Minute)
		assert.Equal(t, []string{"child 0.9"}, s.exported(), "judged as it is")
		assert.Equal(t, map[string]int64{"age": 2}, s.metric("genai.sampling.evicted", "genai.sampling.cause"))
		time.Sleep(10 * time.Minute)
		assert.Zero(t, s.metric("genai.sampling.buffer.traces", "")[""])

		roots[0].SetStatus(codes.Error, "")
		roots[0].End()
		roots[1].End()
		assert.Equal(t, []string{"child 0.9", "root 0.1", "root 0.9"}, s.exported(), "a late error is worth more than a whole trace")
		assert.Equal(t, "true", attr(s.span("root 0.1"), semconv.GenAISamplingPartialKey))
		assert.Empty(t, attr(s.span("root 0.9"), semconv.GenAISamplingPartialKey))
		assert.Equal(t, map[string]int64{"kept": 2}, s.metric("genai.sampling.late_spans", "genai.sampling.decision"))
	})
}

func TestAnOldProcessRemembersWhatRuns(t *testing.T) {
	inBubble(t, sampling.Baseline(1), func(t *testing.T, s *service) {
		time.Sleep(time.Hour)
		_, root := s.Start(context.Background(), "root")
		time.Sleep(9 * time.Minute)
		assert.Equal(t, int64(1), s.metric("genai.sampling.buffer.traces", "")[""])
		root.End()
		assert.Equal(t, []string{"root"}, s.exported())
		assert.Empty(t, s.metric("genai.sampling.late_spans", "genai.sampling.decision"))
	})
}

// fill ends n spans of a kilobyte each below ctx.
func (s *service) fill(ctx context.Context, n int) {
	for range n {
		_, span := s.Start(ctx, "filler")
		span.SetAttributes(attribute.String("text", strings.Repeat("x", 512)))
		span.End()
	}
}

func TestWithoutMemoryTracesGiveUpWhatTheyHoldAndGoOn(t *testing.T) {
	s := serve(t, sampling.Errors(), sampling.WithLimits(sampling.Limits{Bytes: 100 << 10}))
	ctx, root := s.Start(context.Background(), "root")
	s.fill(ctx, 8000)
	assert.LessOrEqual(t, s.metric("genai.sampling.buffer.bytes", "")[""], int64(100<<10))
	root.SetStatus(codes.Error, "")
	root.End()
	spans := s.exported()
	shed := s.outcomes()["shed"]
	assert.Positive(t, shed)
	assert.Len(t, spans, int(8001-shed))
	assert.Contains(t, spans, "root")
	assert.Equal(t, fmt.Sprint(shed), attr(s.span("root"), semconv.GenAISamplingTruncatedKey), "the root says what is missing")

	for range 100 { // what was given up can be used again
		ctx, root := s.Start(context.Background(), "small")
		s.fill(ctx, 50)
		root.End()
	}
	assert.Equal(t, shed, s.outcomes()["shed"])
}

func TestWithoutMemoryTheOldestGivesWayAndWhatIsCertainIsExported(t *testing.T) {
	s := serve(t, sampling.Any(sampling.Errors(), sampling.Baseline(0.5)), sampling.WithLimits(sampling.Limits{Bytes: 64 << 10}))
	certain, kept := s.Start(remote(0.9, false, ""), "certain")
	old, root := s.Start(remote(0.1, false, ""), "old")
	s.fill(certain, 30)
	s.fill(old, 30)
	young, _ := s.Start(remote(0.1000001, false, ""), "young")
	for range 100 {
		s.fill(young, 1)
	}
	kept.End()
	root.SetStatus(codes.Error, "")
	root.End()
	spans := strings.Join(s.exported(), " ")
	upToCertain, _, found := strings.Cut(spans, "certain")
	assert.True(t, found)
	assert.Equal(t, 30, strings.Count(upToCertain, "filler"), "no span of it is lost")
	assert.Contains(t, spans, "old")
}

func TestTooManyTracesForgetTheOldest(t *testing.T) {
	s := serve(t, sampling.Errors(), sampling.WithLimits(sampling.Limits{Traces: 100}))
	var roots []trace.Span
	for range 10_000 {
		_, root := s.Start(context.Background(), "root")
		roots = append(roots, root)
	}
	held := s.metric("genai.sampling.buffer.traces", "")[""]
	assert.LessOrEqual(t, held, int64(100+4*runtime.GOMAXPROCS(0)*2))
	assert.Equal(t, 10_000-held, s.metric("genai.sampling.evicted", "genai.sampling.cause")["traces"])
	roots[0].SetStatus(codes.Error, "")
	for _, root := range roots {
		root.End()
	}
	assert.Equal(t, []string{"root"}, s.exported(), "also the forgotten one that failed")
}

func TestATraceThatIsTooLargeLosesLeavesAndKeepsItsTree(t *testing.T) {
	for _, early := range []bool{true, false} {
		s := serve(t, sampling.Any(sampling.Errors(), sampling.Baseline(0.5)), sampling.WithLimits(sampling.Limits{TraceSpans: 100}))
		ctx, root := s.Start(remote(0.9, false, ""), "root")
		if early {
			s.tail.Keep(ctx, "test")
		}
		for range 12 {
			inner, span := s.Start(ctx, "inner")
			for range 20 {
				_, leaf := s.Start(inner, "leaf")
				leaf.End()
			}
			span.End()
		}
		root.End()
		count := map[string]int{}
		ids := map[trace.SpanID]bool{}
		s.flush()
		for _, span := range s.exporter.all() {
			count[span.Name]++
			ids[span.SpanContext.SpanID()] = true
		}
		assert.Equal(t, map[string]int{"root": 1, "inner": 12, "leaf": 96}, count)
		for _, span := range s.exporter.all() {
			assert.True(t, span.Name == "root" || ids[span.Parent.SpanID()], "no orphan")
		}
		assert.Equal(t, "144", attr(s.span("root"), semconv.GenAISamplingTruncatedKey))
		assert.Equal(t, map[string]int64{"exported": 109, "truncated": 144}, s.outcomes())
	}
}

func TestATraceIsBoundedWhateverItsShape(t *testing.T) {
	s := serve(t, sampling.Errors(), sampling.WithLimits(sampling.Limits{TraceSpans: 100}))
	ctx, root := s.Start(context.Background(), "root")
	for range 500 { // all failing, all with a child, all remote roots
		in := trace.ContextWithRemoteSpanContext(context.Background(), trace.SpanContextFromContext(ctx))
		inner, span := s.Start(in, "root")
		_, leaf := s.Start(inner, "leaf")
		leaf.SetStatus(codes.Error, "")
		leaf.End()
		span.End()
	}
	root.End()
	assert.LessOrEqual(t, len(s.exported()), 125)
}

// heap is how much memory is in use, in MiB.
func heap() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) / (1 << 20)
}

func TestSpansThatWereDroppedTakeNoRoomOfALaterCall(t *testing.T) {
	inBubble(t, sampling.Errors(), func(t *testing.T, s *service) {
		caller := remote(0, false, "")
		ctx, root := s.Start(caller, "first")
		_, leaked := s.Start(ctx, "leaked")
		s.fill(ctx, 100)
		root.End()
		time.Sleep(3 * time.Second)
		ctx, root = s.Start(caller, "second")
		s.fill(ctx, 50)
		root.SetStatus(codes.Error, "")
		root.End()
		time.Sleep(3 * time.Second)
		assert.Len(t, s.exported(), 51)
		assert.Empty(t, attr(s.span("second"), semconv.GenAISamplingTruncatedKey))
		leaked.End()
	}, sampling.WithLimits(sampling.Limits{TraceSpans: 100}))
}

// Each call of a trace is a local root. It is measured though nothing of it is held.
func TestRootsThatWereGivenUpAreMeasuredAndNotHeld(t *testing.T) {
	for name, limits := range map[string]sampling.Limits{
		"beyond the bound of the trace": {TraceBytes: 1 << 20},
		"beyond the bound of all":       {Bytes: 1 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, sampling.Errors(), sampling.WithLimits(limits))
			ctx, open := s.Start(context.Background(), "open")
			caller := trace.ContextWithRemoteSpanContext(ctx, trace.SpanContextFromContext(ctx))
			before := heap()
			for range 900 {
				_, span := s.Start(caller, "call")
				span.SetAttributes(attribute.String("text", strings.Repeat("x", 100<<10)))
				span.End()
			}
			assert.Less(t, heap()-before, 4.0, "MiB more than at the start")
			open.SetStatus(codes.Error, "")
			open.End()
			s.flush()
			assert.Equal(t, uint64(901), requests(t, s))
			for _, span := range s.exporter.all() {
				assert.Equal(t, "errors", attr(span, semconv.GenAISamplingReasonKey))
			}
		})
	}
}

// requests is how many requests were measured.
func requests(t *testing.T, s *service) (n uint64) {
	durations, ok := s.collect("genai.sampling.request.duration").(metricdata.Histogram[float64])
	require.True(t, ok)
	for _, p := range durations.DataPoints {
		n += p.Count
	}
	return n
}
