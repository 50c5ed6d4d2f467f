package sampling_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/sampling"
	"github.com/genaitrace/otelgenai/semconv"
)

// chat runs a chat request: gateway (server) → call → [queue, inference → [prefill, decode]].
func (s *service) chat(ctx context.Context, inference time.Duration, fail bool) {
	at := time.Now()
	span := func(ctx context.Context, name string, from, to time.Duration, opts ...trace.SpanStartOption) (context.Context, func()) {
		ctx, span := s.Start(ctx, name, append(opts, trace.WithTimestamp(at.Add(from)))...)
		if fail && name == "decode" {
			span.SetStatus(codes.Error, "")
		}
		return ctx, func() { span.End(trace.WithTimestamp(at.Add(to))) }
	}
	ctx, endGateway := span(ctx, "gateway", 0, inference+2*time.Millisecond, trace.WithSpanKind(trace.SpanKindServer))
	ctx, endCall := span(ctx, "call", 0, inference+2*time.Millisecond)
	_, endQueue := span(ctx, "queue", 0, time.Millisecond)
	endQueue()
	ctx, endInference := span(ctx, "inference", time.Millisecond, inference+time.Millisecond)
	_, endPrefill := span(ctx, "prefill", time.Millisecond, 2*time.Millisecond)
	endPrefill()
	_, endDecode := span(ctx, "decode", 2*time.Millisecond, 3*time.Millisecond)
	endDecode()
	endInference()
	endCall()
	endGateway()
}

func TestAKeyPathHasTheSelectedSpansAndTheirAncestors(t *testing.T) {
	path := []sampling.Selector{
		{Kind: trace.SpanKindServer},
		{Name: "inference", MinDuration: 50 * time.Millisecond},
		{Failed: true},
	}
	for _, c := range []struct {
		name      string
		inference time.Duration
		fail      bool
		want      []string
	}{
		{"the entry alone", 20 * time.Millisecond, false, []string{"gateway"}},
		{"and a slow inference", 50 * time.Millisecond, false, []string{"inference", "call", "gateway"}},
		{"and the chain of an error", 20 * time.Millisecond, true, []string{"decode", "inference", "call", "gateway"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := serve(t, sampling.KeyPath(sampling.Baseline(0.5), path...))
			s.chat(remote(0.6, false, ""), c.inference, c.fail)
			assert.Equal(t, c.want, s.exported())
			assert.Equal(t, "th:8", s.span("gateway").SpanContext.TraceState().Get("ot"))
			assert.Equal(t, "baseline", attr(s.span("gateway"), semconv.GenAISamplingReasonKey))
			assert.Equal(t, map[string]int64{"key_path": 1}, s.metric("genai.sampling.traces", "genai.sampling.decision"))
			assert.Equal(t, map[string]int64{"exported": int64(len(c.want)), "off_key_path": int64(6 - len(c.want))},
				s.metric("genai.sampling.spans", "genai.sampling.outcome"))

			s = serve(t, sampling.KeyPath(sampling.Baseline(0.5), path...))
			s.chat(remote(0.4, false, ""), c.inference, c.fail)
			assert.Empty(t, s.exported())
		})
	}
}

func TestWithoutASelectedSpanThereIsNoKeyPath(t *testing.T) {
	s := serve(t, sampling.KeyPath(sampling.Baseline(1), sampling.Selector{Failed: true}))
	s.chat(context.Background(), time.Second, false)
	assert.Empty(t, s.exported())
	assert.Equal(t, map[string]int64{"dropped": 1}, s.metric("genai.sampling.traces", "genai.sampling.decision"))
}

// Layers of detail: the entry of every trace, inferences of every second, all of every
// tenth. Each span says how likely it was to be kept, its ancestors at least as likely.
func TestLayersOfDetailNestAndCountRight(t *testing.T) {
	p := sampling.Any(
		sampling.Slow(time.Minute),
		sampling.KeyPath(sampling.Baseline(1), sampling.Selector{Kind: trace.SpanKindServer}),
		sampling.KeyPath(sampling.Baseline(0.5), sampling.Selector{Name: "inference"}, sampling.Selector{Name: "gate*"}),
		sampling.Baseline(0.125),
	)
	for _, c := range []struct {
		r    float64
		want map[string]string
	}{
		{0.3, map[string]string{"gateway": "0"}},
		{0.6, map[string]string{"gateway": "0", "call": "8", "inference": "8"}},
		{0.9, map[string]string{"gateway": "0", "call": "8", "inference": "8", "queue": "e", "prefill": "e", "decode": "e"}},
	} {
		s := serve(t, p)
		s.chat(remote(c.r, false, ""), time.Second, false)
		s.flush()
		got := map[string]string{}
		for _, span := range s.exporter.all() {
			got[span.Name] = span.SpanContext.TraceState().Get("ot")[len("th:"):]
		}
		assert.Equal(t, c.want, got)
	}
	s := serve(t, p)
	s.chat(remote(0.3, false, ""), time.Minute, false)
	assert.Len(t, s.exported(), 6, "a slow trace is whole")
}

func TestATraceWithOpenSpansIsKeptWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, sampling.KeyPath(sampling.Baseline(1), sampling.Selector{Failed: true}))
		ctx, root := s.Start(context.Background(), "root")
		ctx, middle := s.Start(ctx, "middle")
		ctx, parent := s.Start(ctx, "parent")
		_, failed := s.Start(ctx, "failed")
		failed.SetStatus(codes.Error, "")
		failed.End()
		root.End()
		time.Sleep(2 * time.Second) // lingers
		assert.Equal(t, []string{"failed", "root"}, s.exported())
		parent.End()
		middle.End()
		assert.Equal(t, []string{"failed", "root", "parent", "middle"}, s.exported(), "no span lacks its parent")
		s.shutdown()
	})
}

// A trace that a key path keeps whole is kept whole with the share of the key path, and so
// it is where the whole trace would have been kept as well: else what both keep would count
// more than once.
func TestWhatAKeyPathKeepsWholeCountsOnce(t *testing.T) {
	p := sampling.Any(
		sampling.KeyPath(sampling.Baseline(0.5), sampling.Selector{Kind: trace.SpanKindServer}),
		sampling.Baseline(0.25),
	)
	th := func(s *service) map[string]string {
		got := map[string]string{}
		for _, span := range s.exporter.all() {
			got[span.Name] = span.SpanContext.TraceState().Get("ot")
		}
		return got
	}
	for _, r := range []float64{0.6, 0.8} {
		inBubble(t, p, func(t *testing.T, s *service) {
			ctx, root := s.Start(remote(r, false, ""), "root", trace.WithSpanKind(trace.SpanKindServer))
			_, leaf := s.Start(ctx, "leaf")
			leaf.End()
			_, open := s.Start(ctx, "open")
			root.End()
			time.Sleep(3 * time.Second) // lingers
			open.End()
			s.flush()
			assert.Equal(t, map[string]string{"leaf": "th:8", "root": "th:8", "open": "th:8"}, th(s), "R is %v", r)
		})
	}
}

// The same holds for a span whose trace was forgotten while it ran.
func TestALateSpanOfAKeyPathCountsOnce(t *testing.T) {
	p := sampling.Any(
		sampling.KeyPath(sampling.Baseline(0.5), sampling.Selector{Kind: trace.SpanKindServer}),
		sampling.Baseline(0.25),
	)
	for _, r := range []float64{0.6, 0.8} {
		e := &exporter{}
		tail, err := sampling.NewTail(e, p)
		require.NoError(t, err)
		provider := sdktrace.NewTracerProvider(sdktrace.WithSampler(tail.Sampler()))
		_, span := provider.Tracer("test").Start(remote(r, false, ""), "late", trace.WithSpanKind(trace.SpanKindServer))
		tail.OnEnd(span.(sdktrace.ReadOnlySpan)) // its start was not seen
		require.NoError(t, tail.Shutdown(context.Background()))
		require.Len(t, e.all(), 1)
		assert.Equal(t, "th:8", e.all()[0].SpanContext.TraceState().Get("ot"), "R is %v", r)
	}
}
