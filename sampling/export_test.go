package sampling_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/sampling"
	"github.com/genaitrace/otelgenai/semconv"
)

// bigTrace runs a trace of n leaves and a root that fails.
func (s *service) bigTrace(n int) {
	ctx, root := s.Start(context.Background(), "root")
	for range n {
		_, leaf := s.Start(ctx, "leaf")
		leaf.End()
	}
	root.SetStatus(codes.Error, "")
	root.End()
}

func TestNoSpanOfAKeptTraceIsLost(t *testing.T) {
	// A stock batch processor exports 2,048 of these.
	s := serve(t, sampling.Errors())
	largest := 0
	s.exporter.before = func(_ context.Context, spans []sdktrace.ReadOnlySpan) error {
		largest = max(largest, len(spans))
		return nil
	}
	s.bigTrace(5000)
	assert.Len(t, s.exported(), 5001)
	ids := map[trace.SpanID]bool{}
	for _, span := range s.exporter.all() {
		ids[span.SpanContext.SpanID()] = true
	}
	assert.Len(t, ids, 5001)
	assert.Equal(t, 512, largest)
	assert.Empty(t, attr(s.span("root"), semconv.GenAISamplingTruncatedKey))
}

func TestAnExportIsNotTooLarge(t *testing.T) {
	s := serve(t, sampling.Errors())
	var calls []int
	s.exporter.before = func(_ context.Context, spans []sdktrace.ReadOnlySpan) error {
		calls = append(calls, len(spans))
		return nil
	}
	_, root := s.Start(context.Background(), "root")
	ctx := trace.ContextWithSpan(context.Background(), root)
	for range 40 {
		_, span := s.Start(ctx, "large")
		span.SetAttributes(attribute.String("text", strings.Repeat("x", 100<<10)))
		span.End()
	}
	root.SetStatus(codes.Error, "")
	root.End()
	s.flush()
	assert.Equal(t, []int{20, 20, 1}, calls, "2 MiB")
}

func TestKeptSpansWaitASecondForCompany(t *testing.T) {
	inBubble(t, sampling.Errors(), func(t *testing.T, s *service) {
		time.Sleep(100 * time.Millisecond)
		s.request("a", time.Millisecond, true)
		s.request("b", time.Millisecond, true)
		synctest.Wait()
		assert.Empty(t, s.exporter.names())
		time.Sleep(time.Second)
		assert.Len(t, s.exporter.names(), 6)
		assert.Equal(t, 1, s.exporter.calls)
	})
}

// collectFaults collects what goes to otel.Handle during a test.
func collectFaults(t *testing.T) func() []string {
	var (
		mu     sync.Mutex
		faults []string
	)
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		mu.Lock()
		defer mu.Unlock()
		faults = append(faults, err.Error())
	}))
	t.Cleanup(func() { otel.SetErrorHandler(otel.ErrorHandlerFunc(func(error) {})) })
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return faults
	}
}

func TestAnExporterThatFailsOrPanicsCostsItsSpansOnly(t *testing.T) {
	faults := collectFaults(t)
	inBubble(t, sampling.Errors(), func(t *testing.T, s *service) {
		mode := "fail"
		s.exporter.before = func(context.Context, []sdktrace.ReadOnlySpan) error {
			switch mode {
			case "fail":
				return errors.New("no route")
			case "panic":
				panic("broken exporter")
			default:
				return nil
			}
		}
		s.request("a", time.Millisecond, true)
		assert.ErrorContains(t, s.tail.ForceFlush(context.Background()), "no route")
		mode = "panic"
		s.request("b", time.Millisecond, true)
		assert.ErrorContains(t, s.tail.ForceFlush(context.Background()), "broken exporter")
		mode = ""
		s.request("c", time.Millisecond, true)
		assert.Equal(t, []string{"c.a", "c.b", "c"}, s.exported())
		assert.Equal(t, map[string]int64{"exported": 3, "export_failed": 6}, s.outcomes())
		assert.Zero(t, s.metric("genai.sampling.queue.bytes", "")[""])
	})
	assert.Equal(t, []string{"sampling: 3 spans could not be exported: no route"}, faults(), "once a minute")
}

func TestAnExporterThatBlocksStopsNobodyAndLosesWholeTraces(t *testing.T) {
	faults := collectFaults(t)
	inBubble(t, sampling.Errors(), func(t *testing.T, s *service) {
		release := make(chan struct{})
		s.exporter.before = func(context.Context, []sdktrace.ReadOnlySpan) error {
			<-release
			return nil
		}
		s.request("first", time.Millisecond, true)
		time.Sleep(2 * time.Second) // the exporter blocks
		for range 100 {
			s.bigTrace(20)
		}
		waiting := s.metric("genai.sampling.queue.bytes", "")[""]
		assert.LessOrEqual(t, waiting, int64(64<<10))
		lost := s.outcomes()["queue_full"]
		assert.Positive(t, lost)
		assert.Zero(t, lost%21, "traces are lost whole")
		assert.Equal(t, lost/21, s.metric("genai.sampling.evicted", "genai.sampling.cause")["queue"])

		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		assert.ErrorIs(t, s.tail.ForceFlush(ctx), context.DeadlineExceeded)
		close(release)
		assert.Len(t, s.exported(), int(3+100*21-lost))
		s.bigTrace(20)
		assert.Len(t, s.exported(), int(3+101*21-lost), "and all is well again")
	}, sampling.WithLimits(sampling.Limits{QueueBytes: 64 << 10, TraceBytes: 32 << 10}))
	require.Len(t, faults(), 1)
	assert.Contains(t, faults()[0], "the export queue is full")
}

func TestWhatComesAfterALostBeginningIsLostToo(t *testing.T) {
	inBubble(t, sampling.Errors(), func(t *testing.T, s *service) {
		collectFaults(t)
		release := make(chan struct{})
		s.exporter.before = func(context.Context, []sdktrace.ReadOnlySpan) error {
			<-release
			return nil
		}
		s.bigTrace(70)
		s.bigTrace(70)
		time.Sleep(2 * time.Second)
		ctx, root := s.Start(context.Background(), "unlucky")
		s.fill(ctx, 20)
		_, failed := s.Start(ctx, "failed")
		failed.SetStatus(codes.Error, "")
		failed.End() // kept, but there is no room
		close(release)
		s.flush()
		_, next := s.Start(ctx, "next")
		assert.False(t, next.SpanContext().IsSampled())
		next.End()
		root.End()
		assert.Len(t, s.exported(), 142)
		assert.Equal(t, map[string]int64{"exported": 142, "queue_full": 21, "dropped": 2}, s.outcomes())
	}, sampling.WithLimits(sampling.Limits{QueueBytes: 64 << 10, TraceBytes: 32 << 10}))
}

func TestATraceThatIsPartlyExportedGoesOnAfterALoss(t *testing.T) {
	inBubble(t, sampling.Errors(), func(t *testing.T, s *service) {
		collectFaults(t)
		ctx, root := s.Start(context.Background(), "root")
		s.tail.Keep(ctx, "test")
		_, first := s.Start(ctx, "first")
		first.End()
		s.flush()
		release := make(chan struct{})
		s.exporter.before = func(context.Context, []sdktrace.ReadOnlySpan) error {
			<-release
			return nil
		}
		s.bigTrace(70)
		s.bigTrace(70)
		time.Sleep(2 * time.Second)
		s.fill(ctx, 20) // some do not fit
		close(release)
		s.flush()
		root.End()
		assert.Contains(t, s.exported(), "root")
		outcomes := s.outcomes()
		assert.Positive(t, outcomes["queue_full"])
		assert.Equal(t, 164-outcomes["queue_full"], outcomes["exported"])
	}, sampling.WithLimits(sampling.Limits{QueueBytes: 64 << 10, TraceBytes: 32 << 10}))
}

func TestAnExportHasItsTime(t *testing.T) {
	collectFaults(t)
	inBubble(t, sampling.Errors(), func(t *testing.T, s *service) {
		s.exporter.before = func(ctx context.Context, _ []sdktrace.ReadOnlySpan) error {
			<-ctx.Done()
			return context.Cause(ctx)
		}
		s.request("a", time.Millisecond, true)
		start := time.Now()
		assert.ErrorContains(t, s.tail.ForceFlush(context.Background()), "longer than Limits.ExportTimeout")
		assert.Equal(t, 5*time.Second, time.Since(start))
		s.exporter.before = nil
	}, sampling.WithLimits(sampling.Limits{ExportTimeout: 5 * time.Second}))
}

func TestShutdownJudgesWhatRunsAndExportsWhatIsKept(t *testing.T) {
	s := serve(t, sampling.Any(sampling.Errors(), sampling.Baseline(0.5)))
	var roots []trace.Span
	for _, r := range []float64{0.1, 0.9} {
		ctx, root := s.Start(remote(r, false, ""), "root")
		_, child := s.Start(ctx, "child")
		child.End()
		roots = append(roots, root)
	}
	s.request("failed", time.Millisecond, true)
	require.NoError(t, s.tail.Shutdown(context.Background()))
	assert.Equal(t, 1, s.exporter.shut)
	require.NoError(t, s.tail.Shutdown(context.Background()), "again")
	require.NoError(t, s.provider.Shutdown(context.Background()), "and by the provider")
	assert.Equal(t, 1, s.exporter.shut, "the exporter once")
	assert.ElementsMatch(t, []string{"child", "failed.a", "failed.b", "failed"}, s.exporter.names())

	for _, root := range roots {
		root.End()
	}
	s.tail.Keep(trace.ContextWithSpan(context.Background(), roots[0]), "too late")
	require.NoError(t, s.tail.ForceFlush(context.Background()))
	assert.Len(t, s.exporter.names(), 4)
	assert.Equal(t, map[string]int64{"exported": 4, "dropped": 1}, s.outcomes(), "counters stay, gauges do not")
	assert.Nil(t, s.collect("genai.sampling.buffer.traces"))
}

func TestSpansAfterShutdownAreDroppedAndCounted(t *testing.T) {
	s := serve(t, sampling.Baseline(1))
	ctx, root := s.Start(context.Background(), "root")
	require.NoError(t, s.tail.Shutdown(context.Background()))
	_, child := s.Start(ctx, "child")
	child.End()
	root.End()
	assert.Empty(t, s.exporter.names())
	assert.Equal(t, map[string]int64{"late": 2}, s.outcomes())
}

func TestADoneContextLosesNothing(t *testing.T) {
	done, cancel := context.WithCancel(context.Background())
	cancel()
	s := serve(t, sampling.Errors())
	s.request("failed", time.Millisecond, true)
	assert.ErrorIs(t, s.tail.ForceFlush(done), context.Canceled)
	// The provider never tells its processors, so the Tail must be told.
	assert.ErrorIs(t, s.provider.Shutdown(done), context.Canceled)
	assert.Zero(t, s.exporter.shut)
	if err := s.tail.Shutdown(done); err != nil {
		assert.ErrorIs(t, err, context.Canceled)
	}
	require.NoError(t, s.tail.Shutdown(context.Background()), "waits for what the first call began")
	assert.Len(t, s.exporter.names(), 3)
	assert.Equal(t, 1, s.exporter.shut)
}

func TestShutdownEndsThoughTheExporterDoesNot(t *testing.T) {
	collectFaults(t)
	for _, heeds := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			s := serve(t, sampling.Errors(), sampling.WithLimits(sampling.Limits{ExportTimeout: 10 * time.Second}))
			stuck := make(chan struct{})
			s.exporter.before = func(ctx context.Context, _ []sdktrace.ReadOnlySpan) error {
				if heeds {
					<-ctx.Done()
					return ctx.Err()
				}
				<-stuck
				return errors.New("at last")
			}
			s.bigTrace(2000)
			start := time.Now()
			assert.NoError(t, s.tail.Shutdown(context.Background()))
			assert.LessOrEqual(t, time.Since(start), 11*time.Second)
			assert.Equal(t, 1, s.exporter.shut)
			close(stuck)
			synctest.Wait()
			lost := s.outcomes()
			assert.Equal(t, int64(2001), lost["export_failed"]+lost["shutdown"], "%v", lost)
			require.NoError(t, s.provider.Shutdown(context.Background()))
		})
	}
}

func TestErrorsOfTheExportersShutdownAreReturned(t *testing.T) {
	for _, e := range []sdktrace.SpanExporter{badShutdown{}, badShutdown{panics: true}} {
		tail, err := sampling.NewTail(e, sampling.Errors())
		require.NoError(t, err)
		for range 2 {
			err = tail.Shutdown(context.Background())
			require.Error(t, err)
			assert.True(t, strings.Contains(err.Error(), "cannot close"), err)
		}
	}
}

type badShutdown struct{ panics bool }

func (badShutdown) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error { return nil }
func (b badShutdown) Shutdown(context.Context) error {
	if b.panics {
		panic("cannot close")
	}
	return errors.New("cannot close")
}

func TestAProviderCanBeJoinedLate(t *testing.T) {
	// A processor that is registered while spans run sees ends without starts.
	provider := sdktrace.NewTracerProvider()
	tracer := provider.Tracer("test")
	ctx, fine := tracer.Start(context.Background(), "fine")
	_, failed := tracer.Start(ctx, "failed")
	failed.SetStatus(codes.Error, "")

	s := serve(t, sampling.Errors())
	provider.RegisterSpanProcessor(s.tail)
	failed.End()
	fine.End()
	_, later := tracer.Start(context.Background(), "later")
	later.SetStatus(codes.Error, "")
	later.End()
	assert.Equal(t, []string{"failed", "fine", "later"}, s.exported())
	require.NoError(t, provider.Shutdown(context.Background()))
}
