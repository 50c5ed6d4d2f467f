package sampling_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/sampling"
	"github.com/genaitrace/otelgenai/semconv"
)

func TestAResponseTellsWhetherTheTraceIsKept(t *testing.T) {
	slow := sampling.Any(sampling.Errors(), sampling.Slow(3*time.Second), sampling.Baseline(0.25))
	nothing := func(context.Context, *service) {}
	for _, c := range []struct {
		name   string
		policy sampling.Policy
		head   sampling.Head
		r      float64
		work   func(context.Context, *service)
		failed bool
		told   bool
		state  string
		reason string // of what is exported in the end; empty where nothing is
	}{
		{name: "fine so far", policy: slow, work: nothing},
		{name: "the response is a failure", policy: slow, work: nothing, failed: true, told: true, state: "genai=k:1,ot=th:0", reason: "errors"},
		{name: "a failure that nobody asks for", policy: sampling.Slow(0), work: nothing, failed: true},
		{name: "a step failed", policy: slow, work: func(ctx context.Context, s *service) {
			_, step := s.Start(ctx, "step")
			step.SetStatus(codes.Error, "")
			step.End()
		}, told: true, state: "genai=k:1,ot=th:0", reason: "errors"},
		{name: "slow by now", policy: slow, work: func(context.Context, *service) { time.Sleep(3 * time.Second) }, told: true, state: "genai=k:1,ot=th:0", reason: "slow"},
		{name: "not slow yet", policy: slow, work: func(context.Context, *service) { time.Sleep(2999 * time.Millisecond) }},
		{name: "by chance, which the caller has as well", policy: slow, r: 0.75, work: nothing, told: true, state: "ot=th:c", reason: "baseline"},
		{name: "by what was told", policy: sampling.Errors(), head: sampling.HeadRatio(0.25), r: 0.75, work: nothing, told: true, state: "ot=th:c", reason: "head"},
		{name: "everything", policy: sampling.Baseline(1), work: nothing, told: true, state: "ot=th:0", reason: "baseline"},
		{name: "forced", policy: slow, work: func(ctx context.Context, s *service) { s.tail.Keep(ctx, "debug") }, told: true, state: "genai=k:1", reason: "debug"},
		{name: "told is not kept", policy: sampling.Errors(), head: sampling.HeadAlways(), work: nothing},
		{name: "a custom policy may say anything", policy: sampling.Custom("no"), work: nothing},
	} {
		t.Run(c.name, func(t *testing.T) {
			opts := []sampling.Option{sampling.WithHead(c.head)}
			if c.policy.String() == "custom(no)" {
				opts = append(opts, sampling.WithCustom("no", func(sampling.Trace) bool { return false }))
			}
			inBubble(t, c.policy, func(t *testing.T, s *service) {
				ctx, root := s.Start(remote(c.r, false, ""), "root")
				c.work(ctx, s)
				got := s.tail.Promise(ctx, c.failed)
				assert.Equal(t, root.SpanContext().SpanID(), got.SpanID())
				assert.Equal(t, c.told, got.IsSampled())
				assertState(t, c.state, got.TraceState())
				root.End() // without an error: what was promised holds all the same
				time.Sleep(2 * time.Second)
				after := s.tail.Promise(ctx, false)
				assert.Equal(t, c.told, after.IsSampled(), "once all is over")
				s.flush()
				if c.reason == "" {
					assert.Empty(t, s.exporter.names())
					return
				}
				assert.Equal(t, c.reason, attr(s.span("root"), semconv.GenAISamplingReasonKey))
			}, opts...)
		})
	}
}

// The share falls between the answer and the end of the trace.
func TestAPromiseHoldsThoughThePolicyMoves(t *testing.T) {
	var pressure atomic.Bool
	p := sampling.All(sampling.Errors(), sampling.Adaptive(sampling.AdaptiveOptions{Memory: 0.5}))
	inBubble(t, p, func(t *testing.T, s *service) {
		for r, name := range map[float64]string{0.5: "promised", 0.6: "not"} {
			pressure.Store(false)
			time.Sleep(time.Minute)
			ctx, root := s.Start(remote(r, false, ""), name)
			_, step := s.Start(ctx, "step")
			step.SetStatus(codes.Error, "")
			step.End()
			if name == "promised" {
				got := s.tail.Promise(ctx, false)
				assert.True(t, got.IsSampled())
				assertState(t, "ot=th:0cccccccccccd", got.TraceState())
			}
			pressure.Store(true)
			time.Sleep(time.Minute)
			root.End()
			time.Sleep(time.Minute)
		}
		assert.Equal(t, []string{"step", "promised"}, s.exported())
		assert.Equal(t, "th:0cccccccccccd", s.span("promised").SpanContext.TraceState().Get("ot"))
	}, sampling.WithMemoryPressure(func() float64 {
		if pressure.Load() {
			return 0.9
		}
		return 0.1
	}))
}

func TestAResponseOfNoSpanTellsNothing(t *testing.T) {
	s := serve(t, sampling.Errors())
	assert.False(t, s.tail.Promise(context.Background(), true).IsValid())
	assert.False(t, s.tail.Promise(remote(0, true, "genai=k:1"), true).IsValid(), "a caller's span is none of this process")
}

// answer is what the callee of ctx says.
func answer(ctx context.Context, sampled bool, tracestate string) trace.SpanContext {
	state, err := trace.ParseTraceState(tracestate)
	if err != nil {
		panic(err)
	}
	return trace.SpanContextFromContext(ctx).WithSpanID(trace.SpanID{9}).
		WithTraceFlags(trace.TraceFlags(0).WithSampled(sampled)).WithTraceState(state).WithRemote(true)
}

func TestACalleeThatKeepsMakesItsCallerKeep(t *testing.T) {
	for _, c := range []struct {
		name    string
		trust   sampling.Trust
		sampled bool
		state   string
		th      string
		kept    bool
	}{
		{name: "for a reason", sampled: true, state: "genai=k:1,ot=th:0", kept: true, th: "th:0"},
		{name: "nobody knows how likely", sampled: true, state: "genai=k:1", kept: true},
		{name: "not by what it says", sampled: true, state: "genai=k:1,ot=th:fffffffffffff", kept: true},
		{name: "by chance", sampled: true, state: "ot=th:8"},
		{name: "it does not", state: "genai=k:1,ot=th:0"},
		{name: "every flag is believed", trust: sampling.TrustSampled, sampled: true, kept: true},
		{name: "nobody is", trust: sampling.TrustNone, sampled: true, state: "genai=k:1,ot=th:0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := serve(t, sampling.Errors(), sampling.WithTrust(c.trust))
			ctx, root := s.Start(context.Background(), "root")
			_, before := s.Start(ctx, "before")
			before.End()
			s.tail.CalleeResponded(ctx, answer(ctx, c.sampled, c.state))
			_, next := s.Start(ctx, "next")
			assert.Equal(t, c.kept, next.SpanContext().IsSampled(), "the next callee is told")
			next.End()
			root.End()
			if !c.kept {
				assert.Empty(t, s.exported())
				return
			}
			assert.ElementsMatch(t, []string{"before", "next", "root"}, s.exported())
			assert.Equal(t, "callee", attr(s.span("root"), semconv.GenAISamplingReasonKey))
			assert.Equal(t, c.th, s.span("root").SpanContext.TraceState().Get("ot"))
			assert.Equal(t, map[string]int64{"callee": 1}, s.metric("genai.sampling.traces", semconv.GenAISamplingReasonKey))
		})
	}
}

func TestWhatIsKeptAfterItWasDroppedIsPartial(t *testing.T) {
	inBubble(t, sampling.Errors(), func(t *testing.T, s *service) {
		ctx, root := s.Start(context.Background(), "root")
		_, call := s.Start(ctx, "call")
		root.End()
		time.Sleep(3 * time.Second) // nobody waits for longer
		s.tail.CalleeResponded(ctx, answer(ctx, true, "genai=k:1,ot=th:0"))
		call.End()
		assert.Equal(t, []string{"call"}, s.exported())
		assert.Equal(t, "true", attr(s.span("call"), semconv.GenAISamplingPartialKey))
		assert.Equal(t, "callee", attr(s.span("call"), semconv.GenAISamplingReasonKey))
	})
}

func TestAnAnswerOfAnotherTraceIsNone(t *testing.T) {
	s := serve(t, sampling.Errors())
	ctx, root := s.Start(context.Background(), "root")
	s.tail.CalleeResponded(ctx, trace.SpanContext{})
	s.tail.CalleeResponded(ctx, answer(remote(0.5, false, ""), true, "genai=k:1"))
	s.tail.CalleeResponded(context.Background(), answer(ctx, true, "genai=k:1"))
	root.End()
	assert.Empty(t, s.exported())
}

func TestWhatIsMissingElsewhereIsCounted(t *testing.T) {
	s := serve(t, sampling.Errors())
	call := func(fails bool, answers ...bool) context.Context {
		ctx, root := s.Start(context.Background(), "root")
		for _, kept := range answers {
			s.tail.CalleeResponded(ctx, answer(ctx, kept, ""))
		}
		if fails {
			root.SetStatus(codes.Error, "")
		}
		root.End()
		return ctx
	}
	call(true, true, true)
	call(true, true, false)
	late := call(true)
	call(false, false, true) // what is dropped here is missing nowhere
	s.tail.CalleeResponded(late, answer(late, false, ""))
	assert.Equal(t, map[string]int64{"kept": 3, "dropped": 2}, s.metric("genai.sampling.parts", "genai.sampling.decision"))
	complete := map[bool]int64{}
	for _, p := range s.points("genai.sampling.answered_traces") {
		v, _ := p.Attributes.Value("genai.sampling.complete")
		complete[v.AsBool()] = p.Value
	}
	assert.Equal(t, map[bool]int64{true: 1, false: 1}, complete)
}

func TestAnswersAfterShutdownDoNoHarm(t *testing.T) {
	s := serve(t, sampling.Errors())
	ctx, root := s.Start(context.Background(), "root")
	s.shutdown()
	s.tail.CalleeResponded(ctx, answer(ctx, true, "genai=k:1"))
	assert.False(t, s.tail.Promise(ctx, true).IsSampled())
	root.End()
}
