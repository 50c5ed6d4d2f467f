package genaitrace_test

import (
	"context"
	"fmt"
	"io"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/semconv"
)

// tokenWrappers are all ways to record the tokens of a decode phase. each passes
// them on until they end or the consumer returns false.
var tokenWrappers = map[string]func(d *genaitrace.Decode, s *source, each func(string, error) bool){
	"RangeTokens": func(d *genaitrace.Decode, s *source, each func(string, error) bool) {
		for item, err := range genaitrace.RangeTokens(d, s.seq(), nil) {
			if !each(item, err) {
				break
			}
		}
	},
	"ReceiveTokens": func(d *genaitrace.Decode, s *source, each func(string, error) bool) {
		defer d.EndErr(nil)
		recv := genaitrace.ReceiveTokens(d, s.next, nil)
		for {
			item, err := recv()
			if err == io.EOF || !each(item, err) || err != nil {
				return
			}
		}
	},
}

func TestEveryDeathOfWrappedTokensEndsTheirPhaseOnce(t *testing.T) {
	fails := func(err error) func() (string, error) { return func() (string, error) { return "", err } }
	const ms = time.Millisecond
	for name, d := range map[string]struct {
		end             func() (string, error)
		cancel, timeout time.Duration
		consume         func(string) bool
		panics          any
		mute            bool // the source ends well when the context ends
		items           int  // 0: three; −1: none

		wantType string
		stop     semconv.GenAIEarlyStopReasonAttr
		tokens   int64
		took     time.Duration
	}{
		"the end":                              {tokens: 3, took: 40 * ms},
		"the end of nothing":                   {items: -1, took: 10 * ms},
		"an error":                             {end: fails(errReset), wantType: "reset", tokens: 3, took: 40 * ms},
		"an error at once":                     {end: fails(errReset), items: -1, wantType: "reset", took: 10 * ms},
		"an error that cancels":                {end: fails(context.Canceled), stop: semconv.GenAIEarlyStopReasonDisconnect, tokens: 3, took: 40 * ms},
		"a wrapped io.EOF":                     {end: fails(fmt.Errorf("engine: %w", io.EOF)), wantType: "_OTHER", tokens: 3, took: 40 * ms},
		"a stop sequence":                      {consume: until("item2"), tokens: 2, took: 20 * ms},
		"cancelled before a token":             {cancel: 5 * ms, stop: semconv.GenAIEarlyStopReasonDisconnect, took: 5 * ms},
		"cancelled after its end":              {cancel: 45 * ms, tokens: 3, took: 40 * ms},
		"a deadline before a token":            {timeout: 5 * ms, wantType: "timeout", stop: semconv.GenAIEarlyStopReasonTimeout, took: 5 * ms},
		"the source panics at once":            {end: func() (string, error) { panic("source") }, items: -1, panics: "source", wantType: "panic", took: 10 * ms},
		"cancelled":                            {cancel: 25 * ms, stop: semconv.GenAIEarlyStopReasonDisconnect, tokens: 2, took: 25 * ms},
		"a deadline":                           {timeout: 25 * ms, wantType: "timeout", stop: semconv.GenAIEarlyStopReasonTimeout, tokens: 2, took: 25 * ms},
		"cancelled, and the engine just stops": {cancel: 25 * ms, mute: true, stop: semconv.GenAIEarlyStopReasonDisconnect, tokens: 2, took: 25 * ms},
		"the source panics":                    {end: func() (string, error) { panic("source") }, panics: "source", wantType: "panic", tokens: 3, took: 40 * ms},
		"the service panics":                   {consume: func(string) bool { panic("service") }, panics: "service", wantType: "panic", tokens: 1, took: 10 * ms},
	} {
		for with, wrap := range tokenWrappers {
			t.Run(name+"/"+with, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := record(t)
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					if d.timeout > 0 {
						ctx, cancel = context.WithTimeout(ctx, d.timeout)
						defer cancel()
					}
					if d.cancel > 0 {
						time.AfterFunc(d.cancel, cancel)
					}
					ctx, inf := r.StartInference(ctx, genaitrace.Request{Stream: true})
					_, decode := inf.StartDecode(ctx)
					s := &source{ctx: ctx, items: 3, mute: d.mute, end: func() (string, error) { return "", io.EOF }}
					if d.items != 0 {
						s.items = max(d.items, 0)
					}
					if d.end != nil {
						s.end = d.end
					}
					var items int
					var failure error
					run := func() {
						wrap(decode, s, func(item string, err error) bool {
							if failure = err; err == nil {
								items++
								assert.Equal(t, fmt.Sprint("item", items), item)
							}
							return d.consume == nil || d.consume(item)
						})
					}
					if d.panics != nil {
						require.PanicsWithValue(t, d.panics, run)
					} else {
						run()
					}
					time.Sleep(100 * ms)
					inf.Fail(failure)

					phase := r.span(semconv.SpanInferenceDecode)
					phase.assertStatus(d.wantType)
					assert.Equal(t, d.took, phase.EndTime().Sub(phase.StartTime()))
					engine := r.span(semconv.SpanInferenceGenerate)
					if d.tokens == 0 {
						assert.False(t, engine.has(semconv.LLMTTFTMsKey), "no token, no first one")
					} else {
						assert.Equal(t, d.tokens, phase.int(semconv.GenAITokenCountKey))
						assert.Equal(t, sourceGap.Nanoseconds(), engine.nanos(semconv.LLMTTFTMsKey))
					}
					if d.stop != "" {
						assert.Equal(t, semconv.GenAIEarlyStopReason(d.stop), phase.event(semconv.EventEarlyStop).Attributes[0])
					} else {
						assert.Empty(t, phase.events(semconv.EventEarlyStop))
					}
				})
			})
		}
	}
}

// A break is how a stop sequence ends generation, unless the client has left.
func TestALoopOverTokensThatIsLeftAsksTheContextWhy(t *testing.T) {
	r := record(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ctx, inf := r.StartInference(ctx, genaitrace.Request{})
	_, d := inf.StartDecode(ctx)
	for range genaitrace.RangeTokens(d, yields("a", "b"), nil) {
		cancel()
		break
	}
	inf.End()
	phase := r.span(semconv.SpanInferenceDecode)
	phase.assertStatus("")
	assert.Equal(t, semconv.GenAIEarlyStopReason(semconv.GenAIEarlyStopReasonDisconnect), phase.event(semconv.EventEarlyStop).Attributes[0])
}

func TestTokensThatNobodyEndsEndWithTheirInference(t *testing.T) {
	r := record(t)
	ctx, inf := r.StartInference(t.Context(), genaitrace.Request{})
	_, d := inf.StartDecode(ctx)
	next, stop := iter.Pull2(genaitrace.RangeTokens(d, yields("a", "b"), nil))
	next()
	inf.End()
	stop()
	assert.Equal(t, int64(1), r.span(semconv.SpanInferenceDecode).int(semconv.GenAITokenCountKey))
}

func TestItemsHoldAsManyTokensAsTheirCounterSays(t *testing.T) {
	handled(t)
	r := record(t)
	count := func(item string) int {
		if item == "bad" {
			panic(item)
		}
		return len(strings.Fields(item)) - strings.Count(item, "!")
	}
	run := func(wrap func(*genaitrace.Decode)) int64 {
		r.recorder.Reset()
		ctx, inf := r.StartInference(t.Context(), genaitrace.Request{})
		_, d := inf.StartDecode(ctx)
		wrap(d)
		inf.End()
		return r.span(semconv.SpanInferenceDecode).int(semconv.GenAITokenCountKey)
	}
	items := []string{"one", "", "two three", "bad", "!!", "four"}
	assert.Equal(t, int64(4), run(func(d *genaitrace.Decode) {
		got, err := drain(genaitrace.RangeTokens(d, yields(items...), count))
		require.NoError(t, err)
		assert.Equal(t, items, got)
	}))
	assert.Equal(t, int64(4), run(func(d *genaitrace.Decode) {
		rest := items
		recv := genaitrace.ReceiveTokens(d, func() (string, error) {
			if len(rest) == 0 {
				return "", io.EOF
			}
			item := rest[0]
			rest = rest[1:]
			return item, nil
		}, count)
		for range len(items) + 1 {
			recv()
		}
	}))
	assert.Equal(t, map[semconv.GenAIFaultAttr]int{semconv.GenAIFaultPanic: 2, semconv.GenAIFaultCount: 2}, r.faults())
}
