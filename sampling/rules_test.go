package sampling_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/sampling"
	"github.com/genaitrace/otelgenai/semconv"
)

// A shape is a trace of one span below a caller, and what it has.
type shape struct {
	r        float64 // randomness, from 0 to 1
	name     string
	kind     trace.SpanKind
	lasts    time.Duration
	attrs    []attribute.KeyValue
	event    string
	fails    bool
	sampled  bool
	incoming string // tracestate
}

func (s *service) run(shape shape) {
	start := time.Now()
	if shape.name == "" {
		shape.name = "span"
	}
	_, span := s.Start(remote(shape.r, shape.sampled, shape.incoming), shape.name,
		trace.WithSpanKind(shape.kind), trace.WithTimestamp(start))
	span.SetAttributes(shape.attrs...)
	if shape.event != "" {
		span.AddEvent(shape.event)
	}
	if shape.fails {
		span.SetStatus(codes.Error, "")
	}
	span.End(trace.WithTimestamp(start.Add(shape.lasts)))
}

func TestWhatEachPolicyKeeps(t *testing.T) {
	const model = attribute.Key("gen_ai.request.model")
	by := sampling.SlowBy(model, map[string]time.Duration{"small": time.Second, "large": time.Minute}, 3*time.Second)
	first := sampling.First(
		sampling.Case{When: sampling.Match("health", health), Then: sampling.Baseline(0.1)},
		sampling.Case{When: sampling.Errors(), Then: sampling.Baseline(1)},
		sampling.Case{When: sampling.Slow(time.Second), Then: sampling.Baseline(0.5)},
	)
	attrs := func(kv ...attribute.KeyValue) []attribute.KeyValue { return kv }
	match := func(sel sampling.Selector) sampling.Policy { return sampling.Match("match", sel) }

	for _, c := range []struct {
		policy sampling.Policy
		shape  shape
		reason string // empty where the trace is dropped
		th     string
	}{
		{sampling.Errors(), shape{}, "", ""},
		{sampling.Errors(), shape{fails: true}, "errors", "0"},
		{sampling.Slow(time.Second), shape{lasts: time.Second - 1}, "", ""},
		{sampling.Slow(time.Second), shape{lasts: time.Second}, "slow", "0"},
		{by, shape{lasts: time.Second, attrs: attrs(model.String("small"))}, "slow_by", "0"},
		{by, shape{lasts: 59 * time.Second, attrs: attrs(model.String("large"))}, "", ""},
		{by, shape{lasts: 60 * time.Second, attrs: attrs(model.String("large"))}, "slow_by", "0"},
		{by, shape{lasts: 2999 * time.Millisecond, attrs: attrs(model.String("other"))}, "", ""},
		{by, shape{lasts: 3 * time.Second, attrs: attrs(model.String("other"))}, "slow_by", "0"},
		{by, shape{lasts: 3 * time.Second}, "slow_by", "0"},

		{sampling.SlowTTFT(time.Second), shape{attrs: attrs(attribute.Float64("llm.ttft_ms", 999.9))}, "", ""},
		{sampling.SlowTTFT(time.Second), shape{attrs: attrs(attribute.Float64("llm.ttft_ms", 1000))}, "slow_ttft", "0"},
		{sampling.SlowTTFT(time.Second), shape{attrs: attrs(attribute.Int("llm.ttft_ms", 1000))}, "slow_ttft", "0"},
		{sampling.SlowTTFT(time.Second), shape{attrs: attrs(attribute.String("llm.ttft_ms", "1000"))}, "", ""},
		{match(sampling.Selector{Name: "chat"}), shape{name: "chat x"}, "", ""},
		{match(sampling.Selector{Name: "chat*"}), shape{name: "chat x"}, "match", "0"},
		{match(sampling.Selector{Kind: trace.SpanKindServer}), shape{kind: trace.SpanKindServer}, "match", "0"},
		{match(sampling.Selector{Kind: trace.SpanKindInternal}), shape{}, "match", "0"}, // of no kind is internal
		{match(sampling.Selector{Kind: trace.SpanKindClient}), shape{}, "", ""},
		{match(sampling.Selector{Scope: "test"}), shape{}, "match", "0"},
		{match(sampling.Selector{Scope: "best"}), shape{}, "", ""},
		{match(sampling.Selector{Key: "k"}), shape{attrs: attrs(attribute.Bool("k", false))}, "match", "0"},
		{match(sampling.Selector{Key: "k", Values: []string{"true"}}), shape{attrs: attrs(attribute.Bool("k", true))}, "match", "0"},
		{match(sampling.Selector{Key: "k", Values: []string{"7"}}), shape{attrs: attrs(attribute.Int("k", 7))}, "match", "0"},
		{match(sampling.Selector{Key: "k", Values: []string{"0.5"}}), shape{attrs: attrs(attribute.Float64("k", 0.5))}, "match", "0"},
		{match(sampling.Selector{Key: "k", Values: []string{"a", "b"}}), shape{attrs: attrs(attribute.String("k", "b"))}, "match", "0"},
		{match(sampling.Selector{Key: "k", Values: []string{"a"}}), shape{attrs: attrs(attribute.String("k", "b"))}, "", ""},
		{match(sampling.Selector{Key: "k", Values: []string{`["a"]`}}), shape{attrs: attrs(attribute.StringSlice("k", []string{"a"}))}, "match", "0"},
		{match(sampling.Selector{Event: "early_stop"}), shape{event: "early_stop"}, "match", "0"},
		{match(sampling.Selector{Event: "early_stop"}), shape{event: "first_token"}, "", ""},
		{match(sampling.Selector{MinDuration: time.Second}), shape{lasts: time.Second}, "match", "0"},
		{match(sampling.Selector{MinDuration: time.Second, Failed: true}), shape{lasts: time.Second}, "", ""}, // all conditions

		{sampling.Baseline(0.25), shape{r: 0.75}, "baseline", "c"},
		{sampling.Baseline(0.25), shape{r: 0.74}, "", ""},
		{sampling.Baseline(1), shape{r: 0}, "baseline", "0"},
		{sampling.Baseline(0), shape{r: 0.99999}, "", ""},
		{sampling.Baseline(0.25), shape{incoming: "ot=rv:c0000000000000"}, "baseline", "c"}, // randomness beside the trace ID
		{sampling.Baseline(0.25), shape{r: 0.9, incoming: "ot=rv:bfffffffffffff"}, "", ""},
		{sampling.Baseline(0.25), shape{r: 0.9, incoming: "ot=rv:123"}, "baseline", "c"}, // not valid

		{sampling.Any(sampling.Errors(), sampling.Baseline(0.5)), shape{r: 0.6, fails: true}, "errors", "0"},
		{sampling.Any(sampling.Baseline(0.1), sampling.Baseline(0.5)), shape{r: 0.95}, "baseline", "8"},
		{sampling.All(sampling.Errors(), sampling.Baseline(0.5)), shape{r: 0.6, fails: true}, "baseline", "8"},
		{sampling.All(sampling.Errors(), sampling.Baseline(0.5)), shape{r: 0.6}, "", ""},
		{sampling.All(sampling.Errors(), sampling.Baseline(0.5)), shape{r: 0.4, fails: true}, "", ""},
		{sampling.Not(sampling.Errors()), shape{}, "not", "0"},
		{sampling.Not(sampling.Errors()), shape{fails: true}, "", ""},
		{sampling.Not(sampling.Any(sampling.Errors(), sampling.Slow(1))), shape{}, "not", "0"},

		{first, shape{name: "GET /healthz", fails: true, r: 0.5}, "", ""}, // the first case decides
		{first, shape{name: "GET /healthz", fails: true, r: 0.91}, "baseline", "e6666666666668"},
		{first, shape{fails: true}, "baseline", "0"},
		{first, shape{lasts: time.Second, r: 0.6}, "baseline", "8"},
		{first, shape{lasts: time.Second, r: 0.4}, "", ""},
		{first, shape{r: 0.99}, "", ""}, // no case holds

		{sampling.Limit(sampling.Errors(), 1), shape{fails: true}, "errors", "0"},
		{sampling.TargetRate(1, 0.1, 1), shape{}, "target_rate", "0"},
		{sampling.Adaptive(sampling.AdaptiveOptions{P95: time.Second, Start: 0.5}), shape{r: 0.6}, "adaptive", "8"},
		{sampling.Adaptive(sampling.AdaptiveOptions{P95: time.Second, Start: 0.5}), shape{r: 0.4}, "", ""},
		{sampling.AboveQuantile(0.99, sampling.QuantileOptions{}), shape{lasts: time.Hour}, "", ""}, // nothing learned yet
		{sampling.AboveQuantile(0.99, sampling.QuantileOptions{Ceiling: time.Second}), shape{lasts: time.Second}, "above_quantile", "0"},
	} {
		t.Run(c.policy.String(), func(t *testing.T) {
			s := serve(t, c.policy)
			s.run(c.shape)
			s.flush()
			spans := s.exporter.all()
			if c.reason == "" {
				assert.Empty(t, spans, "%+v", c.shape)
				return
			}
			if assert.Len(t, spans, 1, "%+v", c.shape) {
				assert.Equal(t, c.reason, attr(spans[0], semconv.GenAISamplingReasonKey))
				assert.Contains(t, spans[0].SpanContext.TraceState().Get("ot"), "th:"+c.th)
			}
		})
	}
}

func TestAnErrorAnywhereKeepsTheTraceAndLaterSpansFollow(t *testing.T) {
	s := serve(t, sampling.Errors())
	ctx, root := s.Start(context.Background(), "root")
	for _, name := range []string{"a", "b"} {
		_, span := s.Start(ctx, name)
		span.End()
	}
	assert.Empty(t, s.exported())
	_, failed := s.Start(ctx, "failed")
	failed.SetStatus(codes.Error, "")
	failed.End()
	assert.Equal(t, []string{"a", "b", "failed"}, s.exported(), "early")
	_, later := s.Start(ctx, "later")
	later.End()
	root.End()
	_, late := s.Start(ctx, "late") // nothing of the trace is open any more
	late.End()
	assert.Equal(t, []string{"a", "b", "failed", "later", "root", "late"}, s.exported())
	assert.Equal(t, map[string]int64{"kept": 1}, s.metric("genai.sampling.traces", "genai.sampling.decision"), "the late part is no trace of its own")
}

func TestATraceIsNotKeptEarlyWhileAnotherCaseMayStillDecide(t *testing.T) {
	// A health check is never kept, but only its root says that it is one.
	s := serve(t, sampling.First(
		sampling.Case{When: sampling.Match("health", health), Then: sampling.Baseline(0)},
		sampling.Case{Then: sampling.Errors()},
	))
	for _, name := range []string{"GET /healthz", "GET /chat"} {
		ctx, root := s.Start(context.Background(), name)
		_, child := s.Start(ctx, name+" child")
		child.SetStatus(codes.Error, "")
		child.End()
		assert.NotContains(t, s.exported(), name+" child")
		root.End()
	}
	assert.Equal(t, []string{"GET /chat child", "GET /chat"}, s.exported())
}

func TestTheFirstValueOfAKeyCountsAlsoFromSpansThatAreOpen(t *testing.T) {
	const model = attribute.Key("gen_ai.request.model")
	s := serve(t, sampling.SlowBy(model, map[string]time.Duration{"small": time.Second}, time.Hour))
	start := time.Now()
	ctx, root := s.Start(context.Background(), "root", trace.WithTimestamp(start))
	inner, call := s.Start(ctx, "call", trace.WithAttributes(model.String("small")))
	_, other := s.Start(inner, "other", trace.WithAttributes(model.String("large")))
	other.End(trace.WithTimestamp(start.Add(time.Second)))
	assert.Equal(t, []string{"other"}, s.exported(), "the call runs still")
	call.End()
	root.End()
	assert.Equal(t, []string{"other", "call", "root"}, s.exported())
}

func TestWhileAKeyIsUnknownTheLongestLimitHolds(t *testing.T) {
	const model = attribute.Key("gen_ai.request.model")
	s := serve(t, sampling.SlowBy(model, map[string]time.Duration{"large": time.Minute}, time.Second))
	start := time.Now()
	ctx, root := s.Start(context.Background(), "root", trace.WithTimestamp(start))
	_, queue := s.Start(ctx, "queue")
	queue.End(trace.WithTimestamp(start.Add(10 * time.Second)))
	_, call := s.Start(ctx, "call", trace.WithAttributes(model.String("large")))
	call.End(trace.WithTimestamp(start.Add(20 * time.Second)))
	root.End(trace.WithTimestamp(start.Add(20 * time.Second)))
	assert.Empty(t, s.exported())
}

func TestNewRootsAndLocalRootsAreTracesOfTheirOwn(t *testing.T) {
	s := serve(t, sampling.Errors())
	ctx, root := s.Start(context.Background(), "root")
	_, detached := s.Start(ctx, "detached", trace.WithNewRoot())
	detached.SetStatus(codes.Error, "")
	detached.End()
	root.End()
	assert.Equal(t, []string{"detached"}, s.exported())
	assert.Equal(t, "errors", attr(s.span("detached"), semconv.GenAISamplingReasonKey))
}

func TestASpanBelowAContextOfUnknownOriginIsALocalRoot(t *testing.T) {
	s := serve(t, sampling.Errors())
	foreign := trace.ContextWithSpanContext(context.Background(), // not marked as remote
		trace.SpanContextFromContext(remote(0, false, "")).WithRemote(false))
	_, span := s.Start(foreign, "root")
	span.SetStatus(codes.Error, "")
	span.End()
	assert.Equal(t, "errors", attr(s.span("root"), semconv.GenAISamplingReasonKey))
	assert.Empty(t, attr(s.span("root"), semconv.GenAISamplingPartialKey))
}
