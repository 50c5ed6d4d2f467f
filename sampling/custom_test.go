package sampling_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/otel/codes"

	"github.com/genaitrace/otelgenai/sampling"
	"github.com/genaitrace/otelgenai/semconv"
)

func TestACustomPolicySeesTheWholeTraceOnce(t *testing.T) {
	inBubble(t, sampling.Any(sampling.Errors(), sampling.Custom("odd")), func(t *testing.T, s *service) {
		s.request("odd", time.Second, false)
		s.request("even", time.Second, false)
		s.request("failed", time.Second, true)
		synctest.Wait()
		assert.ElementsMatch(t, []string{"odd.a", "odd.b", "odd", "failed.a", "failed.b", "failed"}, s.exported())
		assert.Equal(t, "custom:odd", attr(s.span("odd"), semconv.GenAISamplingReasonKey))
		assert.Zero(t, s.metric("genai.sampling.buffer.traces", "")[""])
	}, sampling.WithCustom("odd", func(seen sampling.Trace) bool {
		root := seen.Spans[len(seen.Spans)-1]
		assert.Len(t, seen.Spans, 3)
		assert.Equal(t, root.SpanContext().TraceID(), seen.ID)
		assert.Equal(t, time.Second, seen.Duration)
		assert.False(t, seen.Failed, "what fails is kept without it")
		return root.Name() == "odd"
	}))
}

func TestACustomPolicyIsAPartLikeOthers(t *testing.T) {
	var asked atomic.Int64
	ask := sampling.WithCustom("ask", func(sampling.Trace) bool { asked.Add(1); return true })
	for _, c := range []struct {
		policy sampling.Policy
		kept   int
		asked  int64
	}{
		{sampling.All(sampling.Errors(), sampling.Custom("ask")), 0, 0}, // no error: the answer is known
		{sampling.All(sampling.Baseline(1), sampling.Custom("ask")), 3, 1},
		{sampling.Any(sampling.Baseline(1), sampling.Custom("ask")), 3, 0},
		{sampling.Not(sampling.Custom("ask")), 0, 1},
		{sampling.First(sampling.Case{When: sampling.Custom("ask"), Then: sampling.Baseline(0)}, sampling.Case{Then: sampling.Baseline(1)}), 0, 1},
		{sampling.KeyPath(sampling.Custom("ask"), entry), 1, 1},
	} {
		asked.Store(0)
		inBubble(t, c.policy, func(t *testing.T, s *service) {
			s.request("a", time.Millisecond, false)
			synctest.Wait()
			assert.Len(t, s.exported(), c.kept, c.policy.String())
			assert.Equal(t, c.asked, asked.Load(), c.policy.String())
		}, ask)
	}
}

func TestACustomPolicyThatPanicsSaysNo(t *testing.T) {
	faults := collectFaults(t)
	inBubble(t, sampling.Any(sampling.Custom("bad"), sampling.Custom("good")), func(t *testing.T, s *service) {
		s.request("a", time.Millisecond, false)
		synctest.Wait()
		assert.Len(t, s.exported(), 3)
		assert.Equal(t, "custom:good", attr(s.span("a"), semconv.GenAISamplingReasonKey))
		assert.Equal(t, map[string]int64{"": 1}, s.metric("genai.sampling.faults", ""))
	}, sampling.WithCustom("bad", func(sampling.Trace) bool { panic("oops") }),
		sampling.WithCustom("good", func(sampling.Trace) bool { return true }))
	assert.Equal(t, []string{"sampling: custom(bad) panicked: oops"}, faults())
}

func TestACustomPolicyThatBlocksStopsNobody(t *testing.T) {
	release := make(chan struct{})
	inBubble(t, sampling.Any(sampling.Baseline(0.5), sampling.Custom("stuck")), func(t *testing.T, s *service) {
		release = make(chan struct{})
		for range 3000 { // more than may wait
			s.request("a", time.Millisecond, false)
		}
		start := time.Now()
		time.Sleep(3 * time.Second)
		assert.Zero(t, s.metric("genai.sampling.buffer.traces", "")[""], "all are decided without it")
		total := s.outcomes()["dropped"] + int64(len(s.exported()))
		assert.Equal(t, int64(9000), total)
		assert.InDelta(t, 4500, len(s.exported()), 450)
		assert.Equal(t, 3*time.Second, time.Since(start))
		s.request("b", time.Millisecond, false)
		assert.NoError(t, s.tail.Shutdown(context.Background()))
		assert.LessOrEqual(t, time.Since(start), 5*time.Second)
		close(release)
		synctest.Wait()
	}, sampling.WithCustom("stuck", func(seen sampling.Trace) bool {
		<-release
		assert.Len(t, seen.Spans, 3, "its spans stay what they are")
		for _, span := range seen.Spans {
			assert.NotNil(t, span)
		}
		return true
	}))
}

func TestShutdownDecidesWithoutACustomPolicyThatBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		s := serve(t, sampling.Any(sampling.Baseline(0.5), sampling.Custom("stuck")),
			sampling.WithCustom("stuck", func(sampling.Trace) bool { <-release; return true }))
		s.run(shape{r: 0.1})
		done, cancel := context.WithCancel(context.Background())
		cancel()
		start := time.Now()
		if err := s.tail.Shutdown(done); err != nil {
			assert.ErrorIs(t, err, context.Canceled)
		}
		assert.NoError(t, s.tail.Shutdown(context.Background()))
		assert.Equal(t, start, time.Now())
		assert.Equal(t, map[string]int64{"dropped": 1}, s.outcomes())
		close(release)
		s.shutdown()
	})
}

func TestASlowCustomPolicyAnswersAtShutdown(t *testing.T) {
	inBubble(t, sampling.Custom("slow"), func(t *testing.T, s *service) {
		s.request("a", time.Millisecond, false)
		_, root := s.Start(context.Background(), "running")
		assert.NoError(t, s.tail.Shutdown(context.Background()))
		assert.Len(t, s.exporter.names(), 3)
		root.End()
	}, sampling.WithCustom("slow", func(sampling.Trace) bool { time.Sleep(100 * time.Millisecond); return true }))
}

func TestWhileTheCustomPolicyThinksTheTraceMayGoOn(t *testing.T) {
	inBubble(t, sampling.Any(sampling.Errors(), sampling.Custom("slow")), func(t *testing.T, s *service) {
		ctx, root := s.Start(context.Background(), "root")
		root.End()
		synctest.Wait()
		_, more := s.Start(ctx, "more")
		more.SetStatus(codes.Error, "")
		more.End()
		assert.ElementsMatch(t, []string{"root", "more"}, s.exported(), "an error decides")
		time.Sleep(time.Second)
		assert.Len(t, s.exported(), 2)
	}, sampling.WithCustom("slow", func(sampling.Trace) bool { time.Sleep(500 * time.Millisecond); return false }))
}

func TestATraceThatIsKeptWhileTheCustomPolicyThinksIsForgotten(t *testing.T) {
	answered := make(chan struct{})
	inBubble(t, sampling.Custom("slow"), func(t *testing.T, s *service) {
		ctx, root := s.Start(context.Background(), "root")
		root.End()
		s.tail.CalleeResponded(ctx, answer(ctx, true, "genai=k:1"))
		close(answered)
		assert.Equal(t, []string{"root"}, s.exported())
		assert.Zero(t, s.metric("genai.sampling.buffer.traces", "")[""])
		assert.Equal(t, map[string]int64{"kept": 1}, s.metric("genai.sampling.parts", "genai.sampling.decision"))
	}, sampling.WithCustom("slow", func(sampling.Trace) bool { <-answered; return false }))
}
