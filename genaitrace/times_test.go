package genaitrace_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

func TestEveryTimeOfAnInferenceIsExact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record(t)
		arrived := time.Now()
		time.Sleep(5 * time.Millisecond) // reading the request, before the inference starts
		ctx, inf := r.StartInference(t.Context(), genaitrace.Request{Arrived: arrived})
		time.Sleep(1 * time.Millisecond)
		_, queue := inf.StartQueue(ctx)
		time.Sleep(20 * time.Millisecond)
		queue.End()
		_, tokenize := inf.StartTokenize(ctx)
		time.Sleep(2 * time.Millisecond)
		tokenize.End()
		_, schedule := inf.StartSchedule(ctx)
		time.Sleep(3 * time.Millisecond)
		schedule.End()
		time.Sleep(4 * time.Millisecond)
		_, prefill := inf.StartPrefill(ctx, genaitrace.Prompt{})
		time.Sleep(100*time.Millisecond + 1*time.Nanosecond)
		prefill.End()
		_, decode := inf.StartDecode(ctx)
		time.Sleep(7 * time.Millisecond)
		decode.Token()
		for range 4 {
			time.Sleep(10 * time.Millisecond)
			decode.Token()
		}
		time.Sleep(1 * time.Millisecond)
		decode.End()
		time.Sleep(8 * time.Millisecond)
		inf.End()

		const ttft = 142e6 + 1 // ns
		s := r.span(semconv.SpanInferenceGenerate)
		assert.Equal(t, int64(ttft), s.nanos(semconv.LLMTTFTMsKey))
		assert.Equal(t, int64(ttft+40e6), s.nanos(semconv.GenAILastTokenMsKey))
		assert.Equal(t, int64(107e6+1), s.nanos(semconv.AIFirstTokenDurationMsKey))
		assert.Equal(t, int64(20e6), s.nanos(semconv.GenAITTFTQueueMsKey))
		assert.Equal(t, int64(2e6), s.nanos(semconv.GenAITTFTTokenizeMsKey))
		assert.Equal(t, int64(3e6), s.nanos(semconv.GenAITTFTScheduleMsKey))
		assert.Equal(t, int64(100e6+1), s.nanos(semconv.GenAITTFTPrefillMsKey))
		assert.Equal(t, int64(7e6), s.nanos(semconv.GenAITTFTEmitMsKey))
		assert.Equal(t, int64(10e6), s.nanos(semconv.GenAITTFTUnattributedMsKey))

		assert.Equal(t, int64(20e6), r.span(semconv.SpanQueueWait).nanos(semconv.LLMQueueWaitMsKey))
		assert.Equal(t, int64(100e6+1), r.span(semconv.SpanInferencePrefill).nanos(semconv.AIPrefillDurationMsKey))

		d := r.span(semconv.SpanInferenceDecode)
		assert.Equal(t, int64(48e6), d.nanos(semconv.AIDecodeDurationMsKey))
		assert.Equal(t, int64(5), d.int(semconv.GenAITokenCountKey))
		assert.Equal(t, int64(10e6), d.nanos(semconv.GenAITokenGapMaxMsKey))
		assert.Equal(t, d.StartTime(), d.event(semconv.EventPhaseTransition).Time)

		assert.Equal(t, 191e6+1, 1e9*r.once(genaiconv.ServerRequestDurationName), "from arrival to the end")
		assert.Equal(t, 0.010, r.once(genaiconv.ServerTimePerOutputTokenName), "(last − first) / (tokens − 1)")
		assert.Empty(t, r.points(semconv.GenAITimeToFirstTokenName), "a host records the official name alone")
	})
}

// assertOneTTFT checks that the time to first token is one number everywhere.
func assertOneTTFT(t *testing.T, r *recording, want time.Duration, arrived time.Time) {
	t.Helper()
	inf, d := r.span(semconv.SpanInferenceGenerate), r.span(semconv.SpanInferenceDecode)
	event := d.event(semconv.EventFirstToken)
	require.Len(t, event.Attributes, 1)
	assert.Equal(t, int64(want), inf.nanos(semconv.LLMTTFTMsKey), "attribute")
	assert.Equal(t, semconv.LLMTTFTMs(inf.float(semconv.LLMTTFTMsKey)), event.Attributes[0], "attribute of the event")
	assert.Equal(t, want, event.Time.Sub(arrived), "time of the event")
	assert.Equal(t, want.Seconds(), r.once(genaiconv.ServerTimeToFirstTokenName), "histogram")
}

func TestTimeToFirstTokenIsOneNumberOnAttributeEventAndHistogram(t *testing.T) {
	for name, token := range map[string]func(d *genaitrace.Decode){
		"Token":              func(d *genaitrace.Decode) { d.Token() },
		"Tokens":             func(d *genaitrace.Decode) { d.Tokens(4) },
		"TokenAt now":        func(d *genaitrace.Decode) { d.TokenAt(time.Now()) },
		"TokenAt zero":       func(d *genaitrace.Decode) { d.TokenAt(time.Time{}) },
		"TokenAt the future": func(d *genaitrace.Decode) { d.TokenAt(time.Now().Add(time.Hour)) },
		"TokenAt the end of time": func(d *genaitrace.Decode) {
			d.TokenAt(time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC))
		},
		"TokenAt earlier": func(d *genaitrace.Decode) {
			at := time.Now()
			time.Sleep(time.Second)
			d.TokenAt(at)
		},
		"TokenAt by the wall clock": func(d *genaitrace.Decode) { d.TokenAt(time.Now().Round(0)) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := record(t)
				arrived := time.Now()
				time.Sleep(3 * time.Millisecond)
				ctx, inf := r.StartInference(t.Context(), genaitrace.Request{Arrived: arrived})
				time.Sleep(40*time.Millisecond + 123*time.Nanosecond)
				_, d := inf.StartDecode(ctx)
				time.Sleep(7 * time.Microsecond)
				token(d)
				time.Sleep(time.Millisecond)
				d.Token()
				time.Sleep(time.Millisecond)
				inf.End()
				assertOneTTFT(t, r, 43*time.Millisecond+7123*time.Nanosecond, arrived)
				assert.Empty(t, r.faults())
			})
		})
	}
}

func TestArrivalIsWhatTheCallerKnows(t *testing.T) {
	const served = 30 * time.Millisecond
	for name, tt := range map[string]struct {
		given, inContext func(now time.Time) time.Time
		want             time.Duration // from arrival to the first token
		faults           int
	}{
		"unknown: now":           {want: served},
		"given":                  {given: ago(5 * time.Second), want: 5*time.Second + served},
		"from the context":       {inContext: ago(2 * time.Second), want: 2*time.Second + served},
		"given beats context":    {given: ago(time.Second), inContext: ago(2 * time.Second), want: time.Second + served},
		"given without monotony": {given: func(now time.Time) time.Time { return now.Add(-time.Second).Round(0) }, want: time.Second + served},
		"zero in the context":    {inContext: func(time.Time) time.Time { return time.Time{} }, want: served},
		"a day ago":              {given: ago(24 * time.Hour), want: 24*time.Hour + served},
		"more than a day ago":    {given: ago(24*time.Hour + time.Nanosecond), want: served, faults: 2},
		"the epoch":              {given: func(time.Time) time.Time { return time.Unix(0, 0) }, want: served, faults: 2},
		"the future":             {given: ago(-time.Nanosecond), want: served, faults: 2},
		"the far future":         {given: func(time.Time) time.Time { return time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC) }, want: served, faults: 2},
		"context in the future":  {inContext: ago(-time.Minute), want: served, faults: 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				reported := handled(t)
				r := record(t)
				// Twice, because a fault is counted each time and reported once.
				for range 2 {
					ctx, req := t.Context(), genaitrace.Request{}
					if tt.inContext != nil {
						ctx = genaitrace.ContextWithArrival(ctx, tt.inContext(time.Now()))
					}
					if tt.given != nil {
						req.Arrived = tt.given(time.Now())
					}
					ctx, inf := r.StartInference(ctx, req)
					time.Sleep(served)
					_, d := inf.StartDecode(ctx)
					d.Token()
					inf.End()
				}
				for _, s := range r.spans(semconv.SpanInferenceGenerate) {
					assert.Equal(t, int64(tt.want), s.nanos(semconv.LLMTTFTMsKey))
				}
				assert.Equal(t, tt.want.Seconds(), r.point(genaiconv.ServerRequestDurationName).Sum/2)
				assert.Equal(t, tt.faults, r.faults()[semconv.GenAIFaultArrival])
				if tt.faults > 0 {
					require.Len(t, reported(), 1, "reported once")
					assert.ErrorContains(t, reported()[0], "arrival time")
				} else {
					assert.Empty(t, reported())
				}
			})
		})
	}
}

func ago(d time.Duration) func(time.Time) time.Time {
	return func(now time.Time) time.Time { return now.Add(-d) }
}

func TestArrivalFromContextReturnsWhatWasNoted(t *testing.T) {
	_, ok := genaitrace.ArrivalFromContext(context.Background())
	assert.False(t, ok)
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	got, ok := genaitrace.ArrivalFromContext(genaitrace.ContextWithArrival(context.Background(), at))
	assert.True(t, ok)
	assert.Equal(t, at, got)
}

// A gateway's context carries its arrival to an inference in the same process.
func TestAnInferenceBelowAGatewayCountsFromTheGatewaysArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record(t)
		ctx, gateway := r.StartGateway(t.Context(), genaitrace.GatewayRequest{Name: "POST /generate"})
		time.Sleep(15 * time.Millisecond)
		ctx, inf := r.StartInference(ctx, genaitrace.Request{})
		_, d := inf.StartDecode(ctx)
		d.Token()
		inf.End()
		gateway.End()
		assert.Equal(t, int64(15e6), r.span(semconv.SpanInferenceGenerate).nanos(semconv.LLMTTFTMsKey))
	})
}

func TestPartsOfTheTTFTThatWereNotObservedAreAbsent(t *testing.T) {
	parts := map[string]string{
		semconv.SpanQueueWait: string(semconv.GenAITTFTQueueMsKey), semconv.SpanTokenizerEncode: string(semconv.GenAITTFTTokenizeMsKey),
		semconv.SpanSchedulerDispatch: string(semconv.GenAITTFTScheduleMsKey), semconv.SpanInferencePrefill: string(semconv.GenAITTFTPrefillMsKey),
	}
	for name, tt := range map[string]struct {
		run  func(ctx context.Context, inf *genaitrace.Inference)
		want []string
	}{
		"no phase": {func(context.Context, *genaitrace.Inference) {}, nil},
		"queue": {func(ctx context.Context, inf *genaitrace.Inference) {
			_, p := inf.StartQueue(ctx)
			p.End()
		}, []string{parts[semconv.SpanQueueWait], "genai.ttft.unattributed_ms"}},
		"prefill brings emit": {func(ctx context.Context, inf *genaitrace.Inference) {
			_, p := inf.StartPrefill(ctx, genaitrace.Prompt{})
			p.End()
		}, []string{"genai.ttft.emit_ms", parts[semconv.SpanInferencePrefill], "genai.ttft.unattributed_ms"}},
		"postprocess is no part": {func(ctx context.Context, inf *genaitrace.Inference) {
			_, p := inf.StartPostprocess(ctx)
			p.End()
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := record(t)
				ctx, inf := r.StartInference(t.Context(), genaitrace.Request{})
				tt.run(ctx, inf)
				time.Sleep(time.Millisecond)
				_, d := inf.StartDecode(ctx)
				d.Token()
				inf.End()
				var got []string
				for _, key := range keys(r.span(semconv.SpanInferenceGenerate).Attributes()) {
					if len(key) > 11 && key[:11] == "genai.ttft." {
						got = append(got, key)
					}
				}
				assert.Equal(t, tt.want, got)
			})
		})
	}
}

func TestWithoutATokenThereIsNoTimeToFirstToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record(t)
		ctx, inf := r.StartInference(t.Context(), genaitrace.Request{})
		_, q := inf.StartQueue(ctx)
		time.Sleep(time.Millisecond)
		q.End()
		_, d := inf.StartDecode(ctx)
		d.End()
		inf.End()
		s := r.span(semconv.SpanInferenceGenerate)
		for _, key := range keys(s.Attributes()) {
			assert.NotContains(t, key, "ttft")
			assert.NotContains(t, key, "token")
		}
		d2 := r.span(semconv.SpanInferenceDecode)
		assert.Empty(t, d2.Events())
		assert.False(t, d2.has(semconv.GenAITokenCountKey))
		assert.Empty(t, r.points(genaiconv.ServerTimeToFirstTokenName))
		assert.Empty(t, r.points(genaiconv.ServerTimePerOutputTokenName))
		assert.Equal(t, 0.001, r.once(genaiconv.ServerRequestDurationName))
	})
}

func TestOneTokenHasNoTimePerOutputToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record(t)
		ctx, inf := r.StartInference(t.Context(), genaitrace.Request{})
		_, d := inf.StartDecode(ctx)
		d.Token()
		inf.End()
		span := r.span(semconv.SpanInferenceDecode)
		assert.Equal(t, int64(1), span.int(semconv.GenAITokenCountKey))
		assert.False(t, span.has(semconv.GenAITokenTimelineKey))
		assert.False(t, span.has(semconv.GenAITokenGapP50MsKey))
		assert.Equal(t, 0.0, r.once(genaiconv.ServerTimeToFirstTokenName), "a known 0 is 0")
		assert.Empty(t, r.points(genaiconv.ServerTimePerOutputTokenName))
	})
}

// A preempted request prefills and decodes again: one first token, all tokens.
func TestTokensOfSeveralDecodePhasesAddUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record(t)
		ctx, inf := r.StartInference(t.Context(), genaitrace.Request{})
		for range 2 {
			_, p := inf.StartPrefill(ctx, genaitrace.Prompt{})
			time.Sleep(10 * time.Millisecond)
			p.End()
			_, d := inf.StartDecode(ctx)
			for range 2 {
				time.Sleep(5 * time.Millisecond)
				d.Token()
			}
			d.End()
		}
		inf.End()

		s := r.span(semconv.SpanInferenceGenerate)
		assert.Equal(t, int64(15e6), s.nanos(semconv.LLMTTFTMsKey))
		assert.Equal(t, int64(40e6), s.nanos(semconv.GenAILastTokenMsKey))
		assert.Equal(t, int64(10e6), s.nanos(semconv.GenAITTFTPrefillMsKey), "the second prefill is no part of it")
		assert.Equal(t, int64(5e6), s.nanos(semconv.GenAITTFTEmitMsKey))
		assert.Equal(t, int64(0), s.nanos(semconv.GenAITTFTUnattributedMsKey))
		assert.Equal(t, 0.025/3, r.once(genaiconv.ServerTimePerOutputTokenName))

		decodes := r.spans(semconv.SpanInferenceDecode)
		require.Len(t, decodes, 2)
		assert.Len(t, decodes[0].events(semconv.EventFirstToken), 1)
		assert.Empty(t, decodes[1].events(semconv.EventFirstToken), "the first token is not in this phase")
	})
}

// Back-dated ends, as an engine that reports its own times gives them.
func TestEndAtSetsTheEndOfSpanAttributeAndMetric(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record(t)
		begin := time.Now()
		ctx, inf := r.StartInference(t.Context(), genaitrace.Request{})
		_, p := inf.StartPrefill(ctx, genaitrace.Prompt{})
		time.Sleep(time.Second)
		p.EndAt(begin.Add(200 * time.Millisecond))
		inf.EndAt(begin.Add(700 * time.Millisecond))
		_, call := r.StartCall(t.Context(), genaitrace.Request{})
		time.Sleep(time.Second)
		call.EndAt(begin.Add(1300 * time.Millisecond))

		span := r.span(semconv.SpanInferencePrefill)
		assert.Equal(t, int64(200e6), span.nanos(semconv.AIPrefillDurationMsKey))
		assert.Equal(t, begin.Add(200*time.Millisecond), span.EndTime())
		assert.Equal(t, begin.Add(700*time.Millisecond), r.span(semconv.SpanInferenceGenerate).EndTime())
		assert.Equal(t, 0.7, r.once(genaiconv.ServerRequestDurationName))
		assert.Equal(t, begin.Add(1300*time.Millisecond), r.span("chat").EndTime())
		assert.Equal(t, 0.3, r.once(genaiconv.ClientInferenceDurationName))
		assert.Empty(t, r.faults())
	})
}

// What is known to have happened inside is not left outside.
func TestAnEndBeforeWhatHappenedInsideIsTheEndOfThat(t *testing.T) {
	type moment = func(ms int) time.Time
	for name, tt := range map[string]struct {
		run    func(ctx context.Context, r *recording, at moment)
		span   string // of the one that ends too early
		ends   int    // ms
		faults int
	}{
		"decode, its last token": {func(ctx context.Context, r *recording, at moment) {
			ctx, inf := r.StartInference(ctx, genaitrace.Request{})
			_, d := inf.StartDecode(ctx)
			d.TokenAt(at(20))
			d.TokenAt(at(50))
			d.EndAt(at(30))
			inf.EndAt(at(70))
		}, semconv.SpanInferenceDecode, 50, 1},
		"inference, its last token": {func(ctx context.Context, r *recording, at moment) {
			ctx, inf := r.StartInference(ctx, genaitrace.Request{})
			_, d := inf.StartDecode(ctx)
			d.TokenAt(at(50))
			inf.EndAt(at(30))
		}, semconv.SpanInferenceGenerate, 50, 2}, // the phase ends with it
		"inference, the end of a phase": {func(ctx context.Context, r *recording, at moment) {
			ctx, inf := r.StartInference(ctx, genaitrace.Request{})
			_, p := inf.StartPrefill(ctx, genaitrace.Prompt{})
			p.EndAt(at(50))
			inf.EndAt(at(30))
		}, semconv.SpanInferenceGenerate, 50, 1},
		"prefill, the end of a pass": {func(ctx context.Context, r *recording, at moment) {
			ctx, inf := r.StartInference(ctx, genaitrace.Request{})
			ctx, p := inf.StartPrefill(ctx, genaitrace.Prompt{})
			_, f := p.StartForward(ctx, genaitrace.Forward{})
			f.EndAt(at(50))
			p.EndAt(at(30))
			inf.EndAt(at(70))
		}, semconv.SpanInferencePrefill, 50, 1},
		"call, its last chunk": {func(ctx context.Context, r *recording, at moment) {
			_, call := r.StartCall(ctx, genaitrace.Request{})
			call.ChunkAt(genaitrace.Visible, at(50))
			call.EndAt(at(30))
		}, "chat", 50, 1},
		"with it is not before it": {func(ctx context.Context, r *recording, at moment) {
			ctx, inf := r.StartInference(ctx, genaitrace.Request{})
			_, d := inf.StartDecode(ctx)
			d.TokenAt(at(50))
			d.EndAt(at(50))
			inf.EndAt(at(50))
		}, semconv.SpanInferenceGenerate, 50, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := record(t)
				began := time.Now()
				at := func(ms int) time.Time { return began.Add(time.Duration(ms) * time.Millisecond) }
				tt.run(t.Context(), r, func(ms int) time.Time {
					time.Sleep(time.Until(at(100))) // all of it is reported later
					return at(ms)
				})
				assert.Equal(t, at(tt.ends), r.span(tt.span).EndTime())
				assert.Equal(t, tt.faults, r.faults()[semconv.GenAIFaultTime])
				for _, s := range r.recorder.Ended() {
					for _, e := range s.Events() {
						assert.False(t, e.Time.After(s.EndTime()), "%s of %s is after its end", e.Name, s.Name())
					}
				}
			})
		})
	}
}

func TestAServersMetricsHaveTheSpecifiedBucketsAndDimensions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record(t)
		runInference(t, r)
		want := map[string]any{
			"gen_ai.operation.name": "chat", "gen_ai.provider.name": "vllm",
			"gen_ai.request.model": "qwen2.5-7b-instruct", "gen_ai.response.model": "qwen2.5-7b-instruct-awq",
			"server.address": "gpu-7.internal", "server.port": int64(8000),
		}
		for name, buckets := range map[string][]float64{
			"gen_ai.server.request.duration":      {0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92},
			"gen_ai.server.time_to_first_token":   {0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10},
			"gen_ai.server.time_per_output_token": {0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5},
		} {
			p := r.point(name)
			assert.Equal(t, buckets, p.Bounds, name)
			assert.Equal(t, want, dims(p.Attributes), name)
			assert.Equal(t, uint64(1), p.Count, name)
		}
	})
}

// The conventions define both token times for successful responses.
func TestAFailedInferenceRecordsItsDurationWithTheErrorAndNoTokenTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record(t)
		ctx, inf := r.StartInference(t.Context(), genaitrace.Request{Model: "m"})
		_, d := inf.StartDecode(ctx)
		d.Token()
		d.Token()
		inf.Fail(typedError("device_lost"))
		assert.Equal(t, map[string]any{
			"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "error.type": "device_lost",
		}, dims(r.point(genaiconv.ServerRequestDurationName).Attributes))
		assert.Empty(t, r.points(genaiconv.ServerTimeToFirstTokenName))
		assert.Empty(t, r.points(genaiconv.ServerTimePerOutputTokenName))
		assert.True(t, r.span(semconv.SpanInferenceGenerate).has(semconv.LLMTTFTMsKey), "the span keeps what was seen")
	})
}
