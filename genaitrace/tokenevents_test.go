package genaitrace_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/semconv"
)

// every makes a Tracer that writes an event a token, and a decode phase of n tokens
// 10 ms apart, the last of which stalls.
func every(t *testing.T, r *recording, limit, n int) seen {
	t.Helper()
	tr := genaitrace.New(genaitrace.WithTracerProvider(r.provider), genaitrace.WithMeterProvider(r.meters),
		genaitrace.WithTokenEvents(limit))
	ctx, inf := tr.StartInference(t.Context(), genaitrace.Request{})
	_, d := inf.StartDecode(ctx)
	for range n - 1 {
		time.Sleep(10 * time.Millisecond)
		d.Token()
	}
	time.Sleep(time.Second)
	d.Token()
	inf.EarlyStop(semconv.GenAIEarlyStopReasonLength)
	inf.End()
	return r.span(semconv.SpanInferenceDecode)
}

func TestEachTokenHasAnEventWhereSomebodyAsksForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := sdktrace.NewSpanLimits()
		limits.EventCountLimit = 2000 + 100
		r := record(t, sdktrace.WithRawSpanLimits(limits))
		start := time.Now()
		d := every(t, r, 2000, 300)
		tokens := d.events(semconv.EventToken)
		require.Len(t, tokens, 300)
		for i, e := range tokens[:299] {
			require.Equal(t, semconv.GenAITokenPosition(i), e.Attributes[0])
			require.Equal(t, time.Duration(i+1)*10*time.Millisecond, e.Time.Sub(start))
		}
		assert.Len(t, d.events(semconv.EventFirstToken), 1)
		assert.Len(t, d.events(semconv.EventTokenStall), 1)
		assert.True(t, d.has(semconv.GenAITokenTimelineKey))
		assert.Zero(t, d.DroppedEvents())
	})
}

func TestTokensBeyondTheLimitHaveNoEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record(t)
		d := every(t, r, 50, 300)
		assert.Len(t, d.events(semconv.EventToken), 50, "the first ones")
		assert.Equal(t, int64(300), d.int(semconv.GenAITokenCountKey))
		assert.Zero(t, d.DroppedEvents())
	})
}

// Under the SDK's own limit the oldest go, and never what the span is about.
func TestTheSDKsLimitDropsTheFirstTokensAndKeepsWhatMatters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record(t)
		d := every(t, r, 2000, 300)
		tokens := d.events(semconv.EventToken)
		require.NotEmpty(t, tokens)
		assert.Equal(t, semconv.GenAITokenPosition(299), tokens[len(tokens)-1].Attributes[0])
		assert.Len(t, d.events(semconv.EventFirstToken), 1)
		assert.Len(t, d.events(semconv.EventTokenStall), 1)
		assert.Len(t, d.events(semconv.EventEarlyStop), 1)
		assert.Equal(t, 128, len(d.Events()))
		assert.Positive(t, d.DroppedEvents())
	})
}

func TestEveryWayToStampATokenHasItsEvent(t *testing.T) {
	r := record(t)
	tr := genaitrace.New(genaitrace.WithTracerProvider(r.provider), genaitrace.WithTokenEvents(100))
	ctx, inf := tr.StartInference(t.Context(), genaitrace.Request{})
	_, d := inf.StartDecode(ctx)
	d.Token()
	d.Tokens(3)
	d.TokenAt(time.Now())
	d.Tick(genaitrace.Tick{Choice: 2, Reasoning: true, Tokens: 2})
	d.Tokens(0) // dropped
	d.End()
	d.Token()
	inf.End()
	assert.Len(t, r.span(semconv.SpanInferenceDecode).events(semconv.EventToken), 7)
}

func TestTokenEventsNeedASpan(t *testing.T) {
	r := record(t, sdktrace.WithSampler(sdktrace.NeverSample()))
	tr := genaitrace.New(genaitrace.WithTracerProvider(r.provider), genaitrace.WithMeterProvider(r.meters), genaitrace.WithTokenEvents(100))
	ctx, inf := tr.StartInference(t.Context(), genaitrace.Request{})
	_, d := inf.StartDecode(ctx)
	assert.Zero(t, testing.AllocsPerRun(20, d.Token))
	inf.End()
}

func TestALimitOfTokenEventsThatCannotBeIsRefused(t *testing.T) {
	for _, limit := range []int{-1, 0, 10_001} {
		assert.ErrorContains(t, genaitrace.Validate(genaitrace.WithTokenEvents(limit)), "WithTokenEvents", "%d", limit)
	}
	assert.NoError(t, genaitrace.Validate(genaitrace.WithTokenEvents(1), genaitrace.WithTokenEvents(10_000)))
}

// An event a token, with the limit of the SDK that it needs.
func ExampleWithTokenEvents() {
	const tokens = 2000
	limits := sdktrace.NewSpanLimits()
	limits.EventCountLimit = tokens + 100
	spans := tracetest.NewInMemoryExporter()
	tr := genaitrace.New(
		genaitrace.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithRawSpanLimits(limits), sdktrace.WithSyncer(spans))),
		genaitrace.WithTokenEvents(tokens),
	)
	ctx, inf := tr.StartInference(context.Background(), genaitrace.Request{})
	_, decode := inf.StartDecode(ctx)
	for range 3 {
		decode.Token()
	}
	inf.End()
	for _, e := range spans.GetSpans()[0].Events {
		fmt.Println(e.Name, e.Attributes[0].Key)
	}
	// Output:
	// token genai.token.position
	// token genai.token.position
	// token genai.token.position
	// first_token llm.ttft_ms
}
