package genaitrace_test

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/capture"
	"github.com/genaitrace/otelgenai/contract"
	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/semconv"
)

const millisecond = time.Millisecond

// at is where a reported phase must lie, in milliseconds since the request was
// sent. cut says that it did not fit.
type at struct {
	name       string
	start, end float64
	cut        bool
}

// drawn returns the spans below parent as at values, in the order they were made.
func (r *recording) drawn(parent seen, sent time.Time) (found []at) {
	for _, s := range r.recorder.Ended() {
		if s.Parent().SpanID() != parent.SpanContext().SpanID() {
			continue
		}
		s := seen{s, r.t}
		found = append(found, at{
			s.Name(), float64(s.StartTime().Sub(sent)) / 1e6, float64(s.EndTime().Sub(sent)) / 1e6,
			s.has(semconv.GenAITimingClampedKey),
		})
	}
	return found
}

// parts returns the parts of the time to first token, in nanoseconds, and checks
// that they sum up to it.
func (s seen) parts() map[string]int64 {
	s.t.Helper()
	found, sum := map[string]int64{}, int64(0)
	for _, kv := range s.Attributes() {
		if name := string(kv.Key); len(name) > 11 && name[:11] == "genai.ttft." {
			ns := int64(math.Round(kv.Value.AsFloat64() * 1e6))
			require.GreaterOrEqual(s.t, ns, int64(0), name)
			found[name[11:]] = ns
			sum += ns
		}
	}
	if len(found) > 0 {
		assert.Equal(s.t, s.nanos(semconv.LLMTTFTMsKey), sum, "sum of %v", found)
	}
	return found
}

// What engines report on the wire, and where it lies in a stream that was sent at
// 0, brought its first output at 100 ms and its last at 300 ms, and ended at 310.
func TestReportedPhasesLieWhereTheyFitTheObservedStream(t *testing.T) {
	ms := func(d float64) *time.Duration { return new(time.Duration(d * 1e6)) }
	for name, tt := range map[string]struct {
		reported genaitrace.PhaseTimes
		want     []at
		parts    map[string]int64 // of the time to first token, in ns
		clamped  bool
	}{
		"queue, prefill and decode": {
			reported: genaitrace.PhaseTimes{Queue: ms(25.75), Prefill: ms(60.5), Decode: ms(199)},
			want: []at{
				{"queue.wait", 13.75, 39.5, false}, {"inference.prefill", 39.5, 100, false}, {"inference.decode", 100, 299, false},
			},
			parts: map[string]int64{"queue_ms": 25_750_000, "prefill_ms": 60_500_000, "unattributed_ms": 13_750_000},
		},
		"everything": {
			reported: genaitrace.PhaseTimes{Queue: ms(10), Load: ms(20), Tokenize: ms(3), Schedule: ms(2), Prefill: ms(50), Decode: ms(200)},
			want: []at{
				{"queue.wait", 15, 25, false}, {"model.load", 25, 45, false}, {"tokenizer.encode", 45, 48, false},
				{"scheduler.dispatch", 48, 50, false}, {"inference.prefill", 50, 100, false}, {"inference.decode", 100, 300, false},
			},
			parts: map[string]int64{
				"queue_ms": 10e6, "load_ms": 20e6, "tokenize_ms": 3e6, "schedule_ms": 2e6, "prefill_ms": 50e6, "unattributed_ms": 15e6,
			},
		},
		"prefill and decode alone": {
			reported: genaitrace.PhaseTimes{Prefill: ms(30.958), Decode: ms(161.064)},
			want:     []at{{"inference.prefill", 69.042, 100, false}, {"inference.decode", 100, 261.064, false}},
			parts:    map[string]int64{"prefill_ms": 30_958_000, "unattributed_ms": 69_042_000},
		},
		"the wait alone starts with the request": {
			reported: genaitrace.PhaseTimes{Queue: ms(12), Load: ms(5)},
			want:     []at{{"queue.wait", 0, 12, false}, {"model.load", 12, 17, false}},
			parts:    map[string]int64{"queue_ms": 12e6, "load_ms": 5e6, "unattributed_ms": 83e6},
		},
		"a known wait of nothing": {
			reported: genaitrace.PhaseTimes{Queue: ms(0), Prefill: ms(40)},
			want:     []at{{"queue.wait", 60, 60, false}, {"inference.prefill", 60, 100, false}},
			parts:    map[string]int64{"queue_ms": 0, "prefill_ms": 40e6, "unattributed_ms": 60e6},
		},
		"a load that began before the request": {
			reported: genaitrace.PhaseTimes{Load: ms(6338.219291), Prefill: ms(60)},
			want:     []at{{"model.load", 0, 40, true}, {"inference.prefill", 40, 100, false}},
			parts:    map[string]int64{"load_ms": 40e6, "prefill_ms": 60e6, "unattributed_ms": 0},
			clamped:  true,
		},
		"a prefill longer than the time to first token leaves no room": {
			reported: genaitrace.PhaseTimes{Queue: ms(5), Prefill: ms(130.079)},
			want:     []at{{"queue.wait", 0, 0, true}, {"inference.prefill", 0, 100, true}},
			parts:    map[string]int64{"queue_ms": 0, "prefill_ms": 100e6, "unattributed_ms": 0},
			clamped:  true,
		},
		"a wait longer than the time to first token": {
			reported: genaitrace.PhaseTimes{Queue: ms(140)},
			want:     []at{{"queue.wait", 0, 100, true}},
			parts:    map[string]int64{"queue_ms": 100e6, "unattributed_ms": 0},
			clamped:  true,
		},
		"a decode longer than the request": {
			reported: genaitrace.PhaseTimes{Decode: ms(4232.71)},
			want:     []at{{"inference.decode", 100, 310, true}},
			clamped:  true, // it is no part of the time to first token
		},
		"nothing": {},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := record(t)
				sent := time.Now()
				_, call := r.StartCall(t.Context(), genaitrace.Request{Model: "m", Stream: true})
				time.Sleep(90 * millisecond)
				call.Chunk(genaitrace.NoOutput)
				time.Sleep(10 * millisecond)
				call.Chunk(genaitrace.Output)
				time.Sleep(200 * millisecond)
				call.Chunk(genaitrace.Visible)
				call.RecordPhases(tt.reported)
				time.Sleep(10 * millisecond)
				call.End()

				s := r.span("chat m")
				assert.Equal(t, tt.want, r.drawn(s, sent))
				assert.Equal(t, orEmpty(tt.parts), s.parts())
				assert.Equal(t, tt.clamped, s.has(semconv.GenAITimingClampedKey))
				assertUnaltered(t, s, tt.reported)
				assert.Empty(t, r.faults())
			})
		})
	}
}

func orEmpty(m map[string]int64) map[string]int64 {
	if m == nil {
		return map[string]int64{}
	}
	return m
}

// assertUnaltered checks that the span has what was reported, cut or not, and
// nothing else.
func assertUnaltered(t *testing.T, s seen, reported genaitrace.PhaseTimes) {
	t.Helper()
	for key, want := range map[attribute.Key]*time.Duration{
		semconv.LLMQueueWaitMsKey: reported.Queue, semconv.AILoadDurationMsKey: reported.Load,
		semconv.AIPrefillDurationMsKey: reported.Prefill, semconv.AIDecodeDurationMsKey: reported.Decode,
	} {
		if want == nil {
			assert.False(t, s.has(key), "%s", key)
		} else {
			assert.Equal(t, int64(*want), s.nanos(key), "%s", key)
		}
	}
	if reported == (genaitrace.PhaseTimes{}) {
		assert.False(t, s.has(semconv.GenAITimingSourceKey))
	} else {
		assert.Equal(t, "engine", s.text(semconv.GenAITimingSourceKey))
	}
}

// Without a stream the first output was not seen: what was reported ends with the
// request, and there is no time to first token to split.
func TestReportedPhasesOfAnAnswerInOnePieceEndWithIt(t *testing.T) {
	for name, tt := range map[string]struct {
		reported genaitrace.PhaseTimes
		want     []at
	}{
		"with decode": {
			genaitrace.PhaseTimes{Queue: new(12 * millisecond), Prefill: new(40 * millisecond), Decode: new(100 * millisecond)},
			[]at{{"queue.wait", 8, 20, false}, {"inference.prefill", 20, 60, false}, {"inference.decode", 60, 160, false}},
		},
		"without decode nothing says where prefill was": {
			genaitrace.PhaseTimes{Queue: new(12 * millisecond), Prefill: new(40 * millisecond)},
			[]at{{"queue.wait", 0, 12, false}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := record(t)
				sent := time.Now()
				_, call := r.StartCall(t.Context(), genaitrace.Request{Model: "m"})
				time.Sleep(160 * millisecond)
				call.RecordPhases(tt.reported)
				call.End()
				s := r.span("chat m")
				assert.Equal(t, tt.want, r.drawn(s, sent))
				assert.Empty(t, s.parts())
				assertUnaltered(t, s, tt.reported)
			})
		})
	}
}

// A host that learns the times of its engine afterwards, and one that saw some of
// the phases itself.
func TestWhatAHostObservedStaysAsItWasObserved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record(t)
		arrived := time.Now()
		ctx, inf := r.StartInference(t.Context(), genaitrace.Request{})
		inf.RecordPhases(genaitrace.PhaseTimes{Prefill: new(3 * millisecond)}) // before it was observed
		time.Sleep(30 * millisecond)
		_, prefill := inf.StartPrefill(ctx, genaitrace.Prompt{})
		time.Sleep(60 * millisecond)
		prefill.End()
		_, decode := inf.StartDecode(ctx)
		time.Sleep(10 * millisecond)
		decode.Token()
		decode.End()
		inf.RecordPhases(genaitrace.PhaseTimes{
			Queue: new(15 * millisecond), Tokenize: new(8 * millisecond),
			Prefill: new(50 * millisecond), Decode: new(500 * millisecond),
		})
		inf.End()

		s := r.span(semconv.SpanInferenceGenerate)
		assert.ElementsMatch(t, []at{
			{"inference.prefill", 30, 90, false}, {"inference.decode", 90, 100, false},
			{"queue.wait", 7, 22, false}, {"tokenizer.encode", 22, 30, false},
		}, r.drawn(s, arrived))
		assert.Equal(t, map[string]int64{
			"queue_ms": 15e6, "tokenize_ms": 8e6, "prefill_ms": 60e6, "emit_ms": 10e6, "unattributed_ms": 7e6,
		}, s.parts())
		assert.Equal(t, int64(70e6), s.nanos(semconv.AIFirstTokenDurationMsKey))
		assert.Equal(t, int64(15e6), s.nanos(semconv.LLMQueueWaitMsKey))
		assert.False(t, s.has(semconv.AIPrefillDurationMsKey), "the prefill that was observed has a span of its own")
		assert.False(t, s.has(semconv.AIDecodeDurationMsKey))
		assert.False(t, s.has(semconv.GenAITimingClampedKey))
		assert.Equal(t, "engine", r.span(semconv.SpanQueueWait).text(semconv.GenAITimingSourceKey))
		assert.False(t, r.span(semconv.SpanInferencePrefill).has(semconv.GenAITimingSourceKey))
	})
}

// What was observed owns its time, whatever was reported beside it.
func TestReportedPhasesTakeNoTimeFromObservedOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record(t)
		ctx, inf := r.StartInference(t.Context(), genaitrace.Request{})
		_, tokenize := inf.StartTokenize(ctx)
		time.Sleep(80 * millisecond)
		tokenize.End()
		time.Sleep(20 * millisecond)
		_, decode := inf.StartDecode(ctx)
		decode.Token()
		inf.RecordPhases(genaitrace.PhaseTimes{Prefill: new(50 * millisecond)}) // from 50 to 100
		inf.End()
		assert.Equal(t, map[string]int64{"tokenize_ms": 80e6, "prefill_ms": 20e6, "unattributed_ms": 0},
			r.span(semconv.SpanInferenceGenerate).parts())
	})
}

func TestTheReportedEndOfPrefillMakesRoomForTheEmission(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record(t)
		arrived := time.Now()
		ctx, inf := r.StartInference(t.Context(), genaitrace.Request{})
		time.Sleep(100 * millisecond)
		_, decode := inf.StartDecode(ctx)
		decode.Token()
		inf.RecordPhases(genaitrace.PhaseTimes{
			Queue: new(10 * millisecond), Prefill: new(50 * millisecond), PrefillEnd: arrived.Add(90 * millisecond),
		})
		inf.SetUsage(genaitrace.Usage{InputTokens: new(100), CachedTokens: new(25)})
		inf.End()
		s := r.span(semconv.SpanInferenceGenerate)
		assert.ElementsMatch(t, []at{
			{"inference.decode", 100, 100, false}, {"queue.wait", 30, 40, false}, {"inference.prefill", 40, 90, false},
		}, r.drawn(s, arrived))
		assert.Equal(t, map[string]int64{"queue_ms": 10e6, "prefill_ms": 50e6, "emit_ms": 10e6, "unattributed_ms": 30e6}, s.parts())
		assert.Equal(t, int64(60e6), s.nanos(semconv.AIFirstTokenDurationMsKey))
		prefill := r.span(semconv.SpanInferencePrefill)
		assert.Equal(t, int64(100), prefill.int(semconv.AITokensInputKey))
		assert.Equal(t, 0.25, prefill.float(semconv.AIKVCacheHitRatioKey))
	})
}

// An inference whose request had arrived before it started keeps its children
// inside itself.
func TestReportedPhasesLieInsideTheirSpan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record(t)
		arrived := time.Now()
		time.Sleep(40 * millisecond)
		ctx := genaitrace.ContextWithArrival(t.Context(), arrived)
		ctx, inf := r.StartInference(ctx, genaitrace.Request{})
		time.Sleep(60 * millisecond)
		_, decode := inf.StartDecode(ctx)
		decode.Token()
		inf.RecordPhases(genaitrace.PhaseTimes{Queue: new(50 * millisecond), Prefill: new(30 * millisecond)})
		inf.End()
		s := r.span(semconv.SpanInferenceGenerate)
		assert.Contains(t, r.drawn(s, arrived), at{"queue.wait", 40, 70, true})
		assert.Equal(t, map[string]int64{"queue_ms": 30e6, "prefill_ms": 30e6, "unattributed_ms": 40e6}, s.parts())
	})
}

func TestADurationThatCannotBeIsDroppedAndCounted(t *testing.T) {
	for name, tt := range map[string]struct {
		bad    genaitrace.PhaseTimes
		faults int
	}{
		"negative":           {genaitrace.PhaseTimes{Queue: new(-1 * time.Nanosecond)}, 1},
		"longer than a day":  {genaitrace.PhaseTimes{Decode: new(24*time.Hour + 1)}, 1},
		"not a number":       {genaitrace.PhaseTimes{Prefill: genaitrace.ReportedSeconds(math.NaN())}, 1},
		"infinite":           {genaitrace.PhaseTimes{Load: genaitrace.ReportedSeconds(math.Inf(1))}, 1},
		"negative seconds":   {genaitrace.PhaseTimes{Load: genaitrace.ReportedSeconds(-0.001)}, 1},
		"beyond all ages":    {genaitrace.PhaseTimes{Load: genaitrace.ReportedSeconds(1e300)}, 1},
		"a century":          {genaitrace.PhaseTimes{Load: genaitrace.ReportedSeconds(3.2e9)}, 1},
		"several":            {genaitrace.PhaseTimes{Queue: new(time.Duration(-1)), Tokenize: new(time.Duration(-1)), Schedule: new(time.Duration(-1))}, 3},
		"an end to come":     {genaitrace.PhaseTimes{PrefillEnd: time.Now().Add(1e6 * time.Hour)}, 1},
		"an end long ago":    {genaitrace.PhaseTimes{PrefillEnd: time.Unix(0, 0)}, 1},
		"an end before time": {genaitrace.PhaseTimes{PrefillEnd: time.Date(1, 1, 1, 0, 0, 1, 0, time.UTC)}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			reported := handled(t)
			r := record(t)
			ctx, inf := r.StartInference(t.Context(), genaitrace.Request{})
			_, call := r.StartCall(ctx, genaitrace.Request{})
			for range 2 {
				inf.RecordPhases(tt.bad)
				call.RecordPhases(tt.bad)
			}
			call.End()
			inf.End()
			assert.Equal(t, map[semconv.GenAIFaultAttr]int{semconv.GenAIFaultTime: 4 * tt.faults}, r.faults())
			require.Len(t, reported(), 1, "reported once")
			assert.ErrorContains(t, reported()[0], "reported duration")
			assert.Len(t, r.recorder.Ended(), 2, "no span")
			assert.False(t, r.span("chat").has(semconv.GenAITimingSourceKey))
		})
	}
}

func TestLaterReportsReplaceWhatTheyKnow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record(t)
		_, call := r.StartCall(t.Context(), genaitrace.Request{})
		time.Sleep(100 * millisecond)
		call.Chunk(genaitrace.Visible)
		call.RecordPhases(genaitrace.PhaseTimes{Queue: genaitrace.ReportedSeconds(0.0155), Prefill: genaitrace.ReportedSeconds(0.05)})
		call.RecordPhases(genaitrace.PhaseTimes{Prefill: genaitrace.ReportedSeconds(0.038), Source: semconv.GenAITimingSourceDerived})
		call.RecordPhases(genaitrace.PhaseTimes{Prefill: new(time.Duration(-5)), Source: semconv.GenAITimingSourceDerived})
		call.End()
		call.RecordPhases(genaitrace.PhaseTimes{Queue: new(time.Hour)})
		s := r.span("chat")
		assert.Equal(t, int64(15_500_000), s.nanos(semconv.LLMQueueWaitMsKey))
		assert.Equal(t, int64(38_000_000), s.nanos(semconv.AIPrefillDurationMsKey))
		assert.Equal(t, "derived", s.text(semconv.GenAITimingSourceKey))
	})
}

// The last attempt decides what the engine said, as it decides how the call ended.
func TestAnotherAttemptForgetsTheEnginesTimesOfTheOneBefore(t *testing.T) {
	r := record(t)
	_, call := r.StartCall(t.Context(), genaitrace.Request{})
	require.Equal(t, 1, call.Watch())
	call.RecordPhases(genaitrace.PhaseTimes{Queue: new(time.Second)})
	call.Release()
	require.Equal(t, 2, call.Watch())
	call.End()
	assert.False(t, r.span("chat").has(semconv.LLMQueueWaitMsKey))
}

// A gateway that reads the stream itself has the same facts on its own span.
func TestAGatewayTooCanReportWhatItRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record(t)
		arrived := time.Now()
		_, gateway := r.StartGateway(t.Context(), genaitrace.GatewayRequest{Name: "POST /v1/chat/completions"})
		time.Sleep(100 * millisecond)
		gateway.Chunk(genaitrace.Visible)
		gateway.RecordPhases(genaitrace.PhaseTimes{Queue: new(20 * millisecond), Prefill: new(50 * millisecond)})
		gateway.End()
		s := r.span("POST /v1/chat/completions")
		assert.Equal(t, []at{{"queue.wait", 30, 50, false}, {"inference.prefill", 50, 100, false}}, r.drawn(s, arrived))
		assert.Equal(t, map[string]int64{"queue_ms": 20e6, "prefill_ms": 50e6, "unattributed_ms": 30e6}, s.parts())
	})
}

func TestReportedPhasesHaveTheKindAndRoleOfObservedOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record(t)
		_, call := r.StartCall(t.Context(), genaitrace.Request{Model: "m"})
		time.Sleep(100 * millisecond)
		call.Chunk(genaitrace.Visible)
		call.SetUsage(genaitrace.Usage{InputTokens: new(26), CachedTokens: new(12)})
		call.RecordPhases(genaitrace.PhaseTimes{
			Queue: new(millisecond), Load: new(millisecond), Tokenize: new(millisecond),
			Schedule: new(millisecond), Prefill: new(millisecond), Decode: new(time.Hour),
		})
		call.End()
		for name, role := range map[string]semconv.GenAISpanRoleAttr{
			semconv.SpanQueueWait: semconv.GenAISpanRoleQueue, semconv.SpanModelLoad: semconv.GenAISpanRoleLoad,
			semconv.SpanTokenizerEncode: semconv.GenAISpanRoleTokenize, semconv.SpanSchedulerDispatch: semconv.GenAISpanRoleSchedule,
			semconv.SpanInferencePrefill: semconv.GenAISpanRolePrefill, semconv.SpanInferenceDecode: semconv.GenAISpanRoleDecode,
		} {
			s := r.span(name)
			assert.Equal(t, trace.SpanKindInternal, s.SpanKind(), name)
			assert.Equal(t, string(role), s.text(semconv.GenAISpanRoleKey), name)
		}
		golden(t, "reported", r.tree())
	})
}

// A host that sees only the tokens, and learns the rest from its engine.
func TestWhatAnEngineReportedMeetsTheContractOfOne(t *testing.T) {
	profile, err := contract.Builtin("engine")
	require.NoError(t, err)
	synctest.Test(t, func(t *testing.T) {
		rec := capture.NewRecorder()
		tr := genaitrace.New(genaitrace.WithTracerProvider(rec.TracerProvider()), genaitrace.WithMeterProvider(rec.MeterProvider()))
		ctx, inf := tr.StartInference(t.Context(), genaitrace.Request{Provider: "vllm", Model: "m", Stream: true})
		time.Sleep(500 * millisecond)
		_, decode := inf.StartDecode(ctx)
		for range 20 {
			decode.Token()
			time.Sleep(10 * millisecond)
		}
		inf.SetUsage(genaitrace.Usage{InputTokens: new(2456), OutputTokens: new(20), CachedTokens: new(1024)})
		inf.SetFinish("stop")
		inf.RecordPhases(genaitrace.PhaseTimes{
			Queue: new(350 * millisecond), Load: new(10 * millisecond), Tokenize: new(2 * millisecond),
			Schedule: new(millisecond), Prefill: new(120 * millisecond), Decode: new(190 * millisecond),
		})
		decode.End()
		inf.End()
		got, err := rec.Capture(t.Context())
		require.NoError(t, err)
		require.NoError(t, rec.Shutdown(t.Context()))
		report := profile.Check(got)
		assert.False(t, report.Failed(true), "%+v", report.Findings)
	})
}

func TestNothingIsReportedWhereNothingRecords(*testing.T) {
	var inf *genaitrace.Inference
	var call *genaitrace.Call
	inf.RecordPhases(genaitrace.PhaseTimes{Queue: new(time.Second)})
	call.RecordPhases(genaitrace.PhaseTimes{Queue: new(time.Second)})
	new(genaitrace.Inference).RecordPhases(genaitrace.PhaseTimes{Queue: new(time.Second)})
	new(genaitrace.Call).RecordPhases(genaitrace.PhaseTimes{Queue: new(time.Second)})
}
