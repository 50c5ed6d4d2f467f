package sampling_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/propagation"
	"github.com/genaitrace/otelgenai/sampling"
)

// began is the tracestate of a caller whose request began at a time.
func began(at time.Time) string { return "genai=c:1;t:" + strconv.FormatInt(at.UnixMilli(), 16) }

func TestSlowCountsFromTheStartOfTheRequest(t *testing.T) {
	by := sampling.SlowBy("model", nil, 3*time.Second)
	for _, c := range []struct {
		name    string
		policy  sampling.Policy
		ago     time.Duration // when the request began, before the span
		state   string        // in place of ago
		kind    trace.SpanKind
		opts    []sampling.Option
		unsaid  bool
		dropped bool
	}{
		{name: "a caller was slow", ago: 2 * time.Second},
		{name: "by model too", policy: by, ago: 2 * time.Second},
		{name: "not slow enough", ago: 1999 * time.Millisecond, dropped: true},
		{name: "nobody said", unsaid: true, dropped: true},
		{name: "an hour ago", ago: time.Hour},
		{name: "longer ago", ago: time.Hour + time.Millisecond, dropped: true},
		{name: "yet to come", ago: -time.Hour, dropped: true},
		{name: "no time", state: "genai=t:xyz", dropped: true},
		{name: "another no time", state: "genai=t:-1", dropped: true},
		{name: "more than a number holds", state: "genai=t:fffffffffffffffff", dropped: true},
		{name: "nobody is believed", ago: 2 * time.Second, opts: []sampling.Option{sampling.WithTrust(sampling.TrustNone)}, dropped: true},
		{name: "a message may wait", ago: 2 * time.Second, kind: trace.SpanKindConsumer, dropped: true},
		{name: "learned limits are of this process", policy: sampling.AboveQuantile(0.99, sampling.QuantileOptions{Ceiling: 3 * time.Second}), ago: 2 * time.Second, dropped: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if c.policy.IsZero() {
					c.policy = sampling.Slow(3 * time.Second)
				}
				s := serve(t, c.policy, c.opts...)
				if c.state == "" && !c.unsaid {
					c.state = began(time.Now().Add(-c.ago))
				}
				s.run(shape{incoming: c.state, lasts: time.Second, kind: c.kind})
				if c.dropped {
					assert.Empty(t, s.exported())
				} else {
					assert.Equal(t, []string{"span"}, s.exported())
				}
				s.shutdown()
			})
		})
	}
}

func TestASilentStreamIsSlowFromTheStartOfTheRequest(t *testing.T) {
	inBubble(t, sampling.Slow(3*time.Second), func(t *testing.T, s *service) {
		ctx, root := s.Start(remote(0, false, began(time.Now().Add(-2*time.Second))), "root")
		_, prefill := s.Start(ctx, "prefill")
		prefill.End()
		assert.Empty(t, s.exported())
		time.Sleep(2 * time.Second)
		assert.Equal(t, []string{"prefill"}, s.exported())
		root.End()
	})
}

func TestTheFirstSpanTellsWhenTheRequestBegan(t *testing.T) {
	inBubble(t, sampling.Errors(), func(t *testing.T, s *service) {
		first := time.Now()
		time.Sleep(time.Minute)
		for _, c := range []struct {
			name   string
			caller context.Context
			told   time.Time
			kind   trace.SpanKind
		}{
			{name: "no caller", caller: context.Background(), kind: trace.SpanKindServer, told: time.Now()},
			{name: "a caller that says nothing", caller: remote(0, false, "other=1"), kind: trace.SpanKindServer, told: time.Now()},
			{name: "nor has a tracestate", caller: remote(0, true, ""), kind: trace.SpanKindServer, told: time.Now()},
			{name: "a caller that says it", caller: remote(0, false, began(first)), kind: trace.SpanKindServer, told: first},
			{name: "a call of nobody's", caller: context.Background(), kind: trace.SpanKindClient, told: time.Now()},
			{name: "a message", caller: context.Background(), kind: trace.SpanKindConsumer, told: time.Now()},
			{name: "a message that waited", caller: remote(0, false, began(first)), kind: trace.SpanKindConsumer, told: time.Now()},
			{name: "a message to be sent", caller: context.Background(), kind: trace.SpanKindProducer},
			{name: "a job", caller: context.Background()},
			{name: "a job of a request", caller: remote(0, false, began(first)), told: first},
		} {
			ctx, root := s.Start(c.caller, "root", trace.WithSpanKind(c.kind))
			_, child := s.Start(ctx, "child")
			for _, span := range []trace.Span{root, child} {
				assert.True(t, c.told.Equal(propagation.MemberOf(span.SpanContext()).Start), c.name)
			}
			child.End()
			root.End()
		}
	})
	inBubble(t, sampling.Errors(), func(t *testing.T, s *service) {
		_, root := s.Start(remote(0, false, began(time.Now().Add(-time.Minute))), "root", trace.WithSpanKind(trace.SpanKindServer))
		assert.True(t, time.Now().Equal(propagation.MemberOf(root.SpanContext()).Start), "who believes nobody tells its own")
		root.End()
	}, sampling.WithTrust(sampling.TrustNone))
}

func TestAFullTracestateStaysAsItIs(t *testing.T) {
	s := serve(t, sampling.Errors())
	members := make([]string, 32)
	for i := range members {
		members[i] = fmt.Sprintf("v%d=x", i)
	}
	full := strings.Join(members, ",")
	_, root := s.Start(remote(0, false, full), "root", trace.WithSpanKind(trace.SpanKindServer))
	assert.Equal(t, full, root.SpanContext().TraceState().String())
	root.End()
	long := "genai=x:" + strings.Repeat("y", 250)
	_, root = s.Start(remote(0, false, long), "root", trace.WithSpanKind(trace.SpanKindServer))
	assert.Equal(t, long, root.SpanContext().TraceState().String())
	root.End()
}

// A gateway whose queue holds a request for longer than the limit, and whose engine is
// then fast: the engine's part is kept for the time before it.
func TestAQueueElsewhereMakesTheEngineKeep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := sampling.Slow(3 * time.Second)
		gateway, engine := serve(t, p), serve(t, p)
		for _, queue := range []time.Duration{time.Second, 2500 * time.Millisecond} {
			ctx, root := gateway.Start(context.Background(), "gateway", trace.WithSpanKind(trace.SpanKindServer))
			time.Sleep(queue)
			_, span := engine.Start(overTheWire(t, ctx), fmt.Sprint("engine after ", queue))
			time.Sleep(time.Second)
			span.End()
			root.End()
		}
		assert.Equal(t, []string{"engine after 2.5s"}, engine.exported())
		assert.Equal(t, []string{"gateway"}, gateway.exported())
		gateway.shutdown()
		engine.shutdown()
	})
}

// overTheWire is the context that another process has of ctx.
func overTheWire(t *testing.T, ctx context.Context) context.Context {
	t.Helper()
	carrier := propagation.Map{}
	bridge := propagation.New()
	bridge.Inject(ctx, carrier)
	there := bridge.Extract(context.Background(), carrier)
	require.True(t, trace.SpanContextFromContext(there).IsRemote())
	return there
}
