package genaitrace_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// Each row does something wrong to an inference that is otherwise right: the
// wrong input is dropped and counted, and everything else is as it was.
func TestBadInputOfAnInferenceIsDroppedAndCounted(t *testing.T) {
	type handles struct {
		ctx   context.Context
		begin time.Time
		inf   *genaitrace.Inference
		d     *genaitrace.Decode
	}
	for name, tt := range map[string]struct {
		spoil  func(handles)
		faults map[semconv.GenAIFaultAttr]int
	}{
		"Tokens(0)":              {func(h handles) { h.d.Tokens(0) }, faults(semconv.GenAIFaultCount, 1)},
		"Tokens(-1)":             {func(h handles) { h.d.Tokens(-1) }, faults(semconv.GenAIFaultCount, 1)},
		"Tokens(huge)":           {func(h handles) { h.d.Tokens(math.MaxInt) }, faults(semconv.GenAIFaultCount, 1)},
		"Tokens(most negative)":  {func(h handles) { h.d.Tokens(math.MinInt) }, faults(semconv.GenAIFaultCount, 1)},
		"TokenAt before arrival": {func(h handles) { h.d.TokenAt(h.begin.Add(-time.Nanosecond)) }, faults(semconv.GenAIFaultTime, 1)},
		"TokenAt the epoch":      {func(h handles) { h.d.TokenAt(time.Unix(0, 0)) }, faults(semconv.GenAIFaultTime, 1)},
		"TokenAt the year -9999": {func(h handles) { h.d.TokenAt(time.Date(-9999, 1, 1, 0, 0, 0, 0, time.UTC)) }, faults(semconv.GenAIFaultTime, 1)},
		"negative usage":         {func(h handles) { h.inf.SetUsage(genaitrace.Usage{InputTokens: new(-1)}) }, faults(semconv.GenAIFaultCount, 1)},
		"most negative usage":    {func(h handles) { h.inf.SetUsage(genaitrace.Usage{OutputTokens: new(math.MinInt)}) }, faults(semconv.GenAIFaultCount, 1)},
		"negative parts of usage": {func(h handles) {
			h.inf.SetUsage(genaitrace.Usage{CachedTokens: new(-1), CacheWriteTokens: new(-1), ReasoningTokens: new(-1)})
		}, faults(semconv.GenAIFaultCount, 1)},
		"two negative usages": {func(h handles) {
			h.inf.SetUsage(genaitrace.Usage{InputTokens: new(-1)})
			h.inf.SetUsage(genaitrace.Usage{InputTokens: new(-1)})
		}, faults(semconv.GenAIFaultCount, 2)},
		"SetInputTokens(0)":        {func(h handles) { h.d.SetInputTokens(0) }, faults()},
		"SetInputTokens(-1)":       {func(h handles) { h.d.SetInputTokens(-1) }, faults()},
		"empty finish reasons":     {func(h handles) { h.inf.SetFinish() }, faults()},
		"empty response":           {func(h handles) { h.inf.SetResponse("", "") }, faults()},
		"nil attributes":           {func(h handles) { h.inf.SetAttributes(); h.d.SetAttributes() }, faults()},
		"an attribute without key": {func(h handles) { h.inf.SetAttributes(attribute.KeyValue{}) }, faults()},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				reported := handled(t)
				r := record(t)
				begin := time.Now()
				ctx, inf := r.StartInference(t.Context(), genaitrace.Request{})
				_, d := inf.StartDecode(ctx)
				for i := range 3 {
					if i == 1 {
						tt.spoil(handles{ctx, begin, inf, d})
					}
					time.Sleep(10 * time.Millisecond)
					d.Token()
				}
				inf.End()

				s := r.span(semconv.SpanInferenceGenerate)
				assert.Equal(t, int64(10e6), s.nanos(semconv.LLMTTFTMsKey))
				assert.Equal(t, int64(30e6), s.nanos(semconv.GenAILastTokenMsKey))
				assert.Equal(t, map[string]int64{"gen_ai.usage.output_tokens": 3}, usageKeys(s), "what the clock counted")
				assert.Equal(t, int64(3), r.span(semconv.SpanInferenceDecode).int(semconv.GenAITokenCountKey))
				assert.Equal(t, 0.01, r.once(genaiconv.ServerTimePerOutputTokenName))
				assert.Equal(t, 0.03, r.once(genaiconv.ServerRequestDurationName))
				assert.Equal(t, tt.faults, r.faults())
				assert.LessOrEqual(t, len(reported()), 1, "each kind is reported once")
				assert.Equal(t, len(tt.faults), len(reported()))
			})
		})
	}
}

// faults is one kind of fault and how often, or none.
func faults(kindAndCount ...any) map[semconv.GenAIFaultAttr]int {
	m := map[semconv.GenAIFaultAttr]int{}
	if len(kindAndCount) == 2 {
		m[kindAndCount[0].(semconv.GenAIFaultAttr)] = kindAndCount[1].(int)
	}
	return m
}

func TestBadPromptsLeaveNoFalseNumber(t *testing.T) {
	for name, tt := range map[string]struct {
		prompt genaitrace.Prompt
		want   map[attribute.Key]any
		faults int
	}{
		"unknown":           {genaitrace.Prompt{}, map[attribute.Key]any{}, 0},
		"no cache":          {genaitrace.Prompt{Tokens: 100}, map[attribute.Key]any{semconv.AITokensInputKey: int64(100)}, 0},
		"negative tokens":   {genaitrace.Prompt{Tokens: -1}, map[attribute.Key]any{}, 1},
		"negative cache":    {genaitrace.Prompt{Tokens: 100, Cached: new(-1)}, map[attribute.Key]any{}, 1},
		"more than all":     {genaitrace.Prompt{Tokens: 100, Cached: new(101)}, map[attribute.Key]any{}, 1},
		"unknown, of which": {genaitrace.Prompt{Cached: new(10)}, map[attribute.Key]any{semconv.AITokensCachedKey: int64(10), semconv.AIKVCacheHitKey: true}, 0},
		"all": {genaitrace.Prompt{Tokens: 100, Cached: new(100)}, map[attribute.Key]any{
			semconv.AITokensInputKey: int64(100), semconv.AITokensCachedKey: int64(100), semconv.AIKVCacheHitKey: true, semconv.AIKVCacheHitRatioKey: 1.0,
		}, 0},
		"the largest": {genaitrace.Prompt{Tokens: math.MaxInt, Cached: new(math.MaxInt)}, map[attribute.Key]any{
			semconv.AITokensInputKey: int64(math.MaxInt), semconv.AITokensCachedKey: int64(math.MaxInt), semconv.AIKVCacheHitKey: true, semconv.AIKVCacheHitRatioKey: 1.0,
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			handled(t)
			r := record(t)
			ctx, inf := r.StartInference(t.Context(), genaitrace.Request{})
			_, p := inf.StartPrefill(ctx, tt.prompt)
			p.End()
			inf.End()
			got := map[attribute.Key]any{}
			for _, kv := range r.span(semconv.SpanInferencePrefill).Attributes() {
				if kv.Key != semconv.GenAISpanRoleKey && kv.Key != semconv.AIPrefillDurationMsKey {
					got[kv.Key] = kv.Value.AsInterface()
				}
			}
			assert.Equal(t, tt.want, got)
			assert.Equal(t, tt.faults, r.faults()[semconv.GenAIFaultCount])
		})
	}
}

func TestBadTimesOfAnEndMeanNow(t *testing.T) {
	for name, tt := range map[string]struct {
		at    func(begin time.Time) time.Time
		fault bool
	}{
		"before the start":   {ago(time.Nanosecond), true},
		"before the arrival": {ago(time.Hour), true},
		"the epoch":          {func(time.Time) time.Time { return time.Unix(0, 0) }, true},
		"the year 1000":      {func(time.Time) time.Time { return time.Date(1000, 1, 1, 0, 0, 0, 0, time.UTC) }, true},
		"the future":         {ago(-time.Hour), false},
		"the year 9999":      {func(time.Time) time.Time { return time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				handled(t)
				r := record(t)
				arrived := time.Now()
				time.Sleep(time.Minute) // arrival is not start: no span may end between them
				begin := time.Now()
				ctx, inf := r.StartInference(genaitrace.ContextWithArrival(t.Context(), arrived), genaitrace.Request{})
				_, q := inf.StartQueue(ctx)
				_, call := r.StartCall(t.Context(), genaitrace.Request{})
				time.Sleep(time.Second)
				q.EndAt(tt.at(begin))
				inf.EndAt(tt.at(begin))
				call.EndAt(tt.at(begin))

				for _, name := range []string{semconv.SpanQueueWait, semconv.SpanInferenceGenerate, "chat"} {
					s := r.span(name)
					assert.Equal(t, time.Second, s.EndTime().Sub(s.StartTime()), name)
				}
				assert.Equal(t, !tt.fault, r.span(semconv.SpanQueueWait).has(semconv.LLMQueueWaitMsKey), "a duration only where the end is known")
				assert.Equal(t, 61.0, r.once(genaiconv.ServerRequestDurationName))
				assert.Equal(t, 1.0, r.once(genaiconv.ClientInferenceDurationName))
				if tt.fault {
					assert.Equal(t, faults(semconv.GenAIFaultTime, 3), r.faults())
				} else {
					assert.Empty(t, r.faults())
				}
			})
		})
	}
}

func TestATokenClockThatRunsBackwardsStandsStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record(t)
		begin := time.Now()
		ctx, inf := r.StartInference(t.Context(), genaitrace.Request{})
		_, d := inf.StartDecode(ctx)
		_, call := r.StartCall(t.Context(), genaitrace.Request{})
		time.Sleep(time.Second)
		for _, ms := range []int{100, 50, 150, 149, 0, 200} {
			at := begin.Add(time.Duration(ms) * time.Millisecond)
			d.TokenAt(at)
			call.ChunkAt(genaitrace.Visible, at)
		}
		inf.End()
		call.End()

		s, span := r.span(semconv.SpanInferenceGenerate), r.span(semconv.SpanInferenceDecode)
		assert.Equal(t, int64(100e6), s.nanos(semconv.LLMTTFTMsKey))
		assert.Equal(t, int64(200e6), s.nanos(semconv.GenAILastTokenMsKey))
		assert.Equal(t, int64(6), span.int(semconv.GenAITokenCountKey))
		line, err := genaitrace.DecodeTimeline(span.text(semconv.GenAITokenTimelineKey))
		require.NoError(t, err)
		require.Len(t, line.Gaps, 5)
		for i, want := range []time.Duration{0, 50e6, 0, 0, 50e6} {
			assert.InDelta(t, want, line.Gaps[i], 0.03*float64(want))
		}
		assert.Equal(t, span.text(semconv.GenAITokenTimelineKey), r.span("chat").text(semconv.GenAIChunkTimelineKey))
		assert.Equal(t, 0.02, r.once(genaiconv.ServerTimePerOutputTokenName))
		assert.Equal(t, uint64(5), r.point(genaiconv.ClientInferenceTimePerOutputChunkName).Count)
	})
}

func TestBadInputOfACallIsDroppedAndCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reported := handled(t)
		r := record(t)
		begin := time.Now()
		_, call := r.StartCall(t.Context(), genaitrace.Request{})
		call.ChunkAt(genaitrace.Visible, begin.Add(-time.Nanosecond)) // dropped
		call.ChunkAt(genaitrace.Visible, time.Unix(0, 0))             // dropped
		time.Sleep(time.Millisecond)
		call.Chunk(genaitrace.ChunkKind(200))                                              // counts as Visible
		call.ChunkAt(genaitrace.Visible, time.Time{})                                      // now
		call.ChunkAt(genaitrace.Visible, begin.Add(time.Hour))                             // now
		call.ChunkAt(genaitrace.ChunkKind(3), time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)) // now
		call.SetUsage(genaitrace.Usage{InputTokens: new(-5), OutputTokens: new(4)})        // the good one stays
		call.SetUsage(genaitrace.Usage{OutputTokens: new(-4)})                             // does not replace it
		call.SetTerminal("")                                                               // says nothing
		call.SetErrorType("")                                                              // says nothing
		call.SetFinish()                                                                   // says nothing
		call.End()
		call.ChunkAt(genaitrace.Visible, begin)

		s := r.span("chat")
		assert.Equal(t, int64(4), s.int(semconv.GenAIChunkCountKey))
		assert.Equal(t, int64(1e6), s.nanos(semconv.LLMTTFTMsKey))
		assert.Equal(t, int64(1e6), s.nanos(semconv.GenAIFirstVisibleMsKey))
		assert.Equal(t, int64(1e6), s.nanos(semconv.GenAILastTokenMsKey))
		assert.Equal(t, int64(0), s.nanos(semconv.GenAIChunkGapMaxMsKey))
		assert.Equal(t, map[string]int64{"gen_ai.usage.output_tokens": 4}, usageKeys(s))
		assert.Equal(t, map[semconv.GenAIFaultAttr]int{semconv.GenAIFaultTime: 2, semconv.GenAIFaultCount: 2}, r.faults())
		assert.Len(t, reported(), 2, "each kind is reported once")
	})
}

func TestNoRequestFieldWritesAFalseNumber(t *testing.T) {
	r := record(t)
	_, call := r.StartCall(t.Context(), genaitrace.Request{
		MaxTokens: -1, ServerAddress: "h", ServerPort: -8000, Temperature: new(math.NaN()), TopP: new(math.Inf(1)),
	})
	call.End()
	s := r.span("chat")
	assert.False(t, s.has(genaiconv.RequestMaxTokensKey))
	assert.False(t, s.has("server.port"))
	assert.False(t, s.has(genaiconv.RequestModelKey))
	assert.False(t, s.has(genaiconv.ProviderNameKey))
	assert.False(t, s.has(genaiconv.RequestStreamKey))
	assert.False(t, s.has(genaiconv.RequestTemperatureKey), "not a number")
	assert.False(t, s.has(genaiconv.RequestTopPKey), "not finite")
}

// One invalid string makes OTLP drop a whole batch.
func TestEveryStringOfASpanAndAMetricIsValidAndBounded(t *testing.T) {
	for name, bad := range map[string]string{
		"invalid":              "\xff\xfe\xfd",
		"invalid in the midst": "a\xc3(b",
		"long":                 strings.Repeat("x", 1<<16),
		"long and wide":        strings.Repeat("日本", 1<<12),
		"long and invalid":     strings.Repeat("a\xff", 1<<12),
		"long, nothing valid":  strings.Repeat("\x80", 1<<12),
		"a rune cut at 64":     strings.Repeat("x", 63) + "日" + strings.Repeat("\xff", 200),
		"a rune cut at 256":    strings.Repeat("x", 255) + "日",
		"a nul":                "a\x00b",
	} {
		t.Run(name, func(t *testing.T) {
			r := record(t)
			req := genaitrace.Request{
				Operation: genaiconv.OperationNameAttr(bad), Provider: genaiconv.ProviderNameAttr(bad),
				Model: bad, ModelVersion: bad, RequestID: bad, ServerAddress: bad,
			}
			reasons := make([]string, 1000)
			for i := range reasons {
				reasons[i] = bad
			}
			_, inf := r.StartInference(t.Context(), req)
			inf.SetResponse(bad, bad)
			inf.SetFinish(reasons...)
			inf.Fail(typedError(bad))
			_, call := r.StartCall(t.Context(), req)
			call.SetResponse(bad, bad)
			call.SetFinish(reasons...)
			call.SetErrorType(bad)
			call.SetTerminal(semconv.GenAIStreamTerminalError)
			call.End()
			_, gateway := r.StartGateway(t.Context(), genaitrace.GatewayRequest{Name: bad, Operation: req.Operation})
			gateway.Chunk(genaitrace.Visible)
			gateway.SetTerminal(semconv.GenAIStreamTerminalAttr(bad))
			gateway.End()

			check := func(s, where string, limit int) {
				t.Helper()
				assert.True(t, utf8.ValidString(s), "%s is valid UTF-8", where)
				assert.LessOrEqual(t, len(s), limit, where)
			}
			require.Len(t, r.recorder.Ended(), 3)
			for _, s := range r.recorder.Ended() {
				check(s.Name(), "name", 2*256+1)
				check(s.Status().Description, "status", 256)
				assertBounded(t, s.Attributes())
			}
			for _, name := range []string{
				genaiconv.ServerRequestDurationName, genaiconv.ClientInferenceDurationName, semconv.GenAITimeToFirstTokenName,
			} {
				attrs := r.point(name).Attributes
				for _, kv := range attrs.ToSlice() {
					check(kv.Value.AsString(), string(kv.Key), 256)
				}
			}
		})
	}
}

// assertBounded checks that no attribute holds text that is invalid or too long.
func assertBounded(t *testing.T, attrs []attribute.KeyValue) {
	t.Helper()
	check := func(s string, key attribute.Key, limit int) {
		t.Helper()
		assert.True(t, utf8.ValidString(s), "%s is valid UTF-8", key)
		assert.LessOrEqual(t, len(s), limit, key)
	}
	for _, kv := range attrs {
		switch kv.Value.Type() {
		case attribute.STRING:
			check(kv.Value.AsString(), kv.Key, 256)
		case attribute.STRINGSLICE:
			assert.LessOrEqual(t, len(kv.Value.AsStringSlice()), 16, kv.Key)
			for _, v := range kv.Value.AsStringSlice() {
				check(v, kv.Key, 64)
			}
		}
	}
}

func TestAModelNameIsADimensionOnlyUntilThereAreTooMany(t *testing.T) {
	r := record(t)
	const models, named = 1000, 100
	for range 2 { // those named first stay named
		for i := range models {
			_, call := r.StartCall(t.Context(), genaitrace.Request{Model: fmt.Sprint("model-", i)})
			call.End()
		}
	}
	names := map[string]int{}
	for _, s := range r.recorder.Ended() {
		names[s.Name()]++
		assert.True(t, seen{s, t}.has(genaiconv.RequestModelKey), "the attribute keeps the name")
	}
	assert.Len(t, names, named+1)
	assert.Equal(t, 2*(models-named), names["chat"])
	assert.Equal(t, 2, names["chat model-0"])

	values := map[any]uint64{}
	for _, p := range r.points(genaiconv.ClientInferenceDurationName) {
		d := dims(p.Attributes)
		values[d["gen_ai.request.model"]] += p.Count
		assert.NotContains(t, d, "gen_ai.response.model", "what is unknown stays absent")
		assert.NotContains(t, d, "gen_ai.provider.name", "what is unknown stays absent")
	}
	assert.Len(t, values, named+1)
	assert.Equal(t, uint64(2*(models-named)), values["_OTHER"])
	assert.Equal(t, uint64(2), values["model-0"])
}

func TestWhatIsUnknownStaysAbsentWhenOtherValuesAreTooMany(t *testing.T) {
	r := record(t)
	for i := range 200 {
		_, call := r.StartCall(t.Context(), genaitrace.Request{})
		call.SetResponse("", fmt.Sprint("model-", i))
		call.End()
	}
	_, call := r.StartCall(t.Context(), genaitrace.Request{Operation: "last"})
	call.End()
	found := false
	for _, p := range r.points(genaiconv.ClientInferenceDurationName) {
		if d := dims(p.Attributes); d["gen_ai.operation.name"] == "last" {
			found = true
			assert.Equal(t, map[string]any{"gen_ai.operation.name": "last"}, d)
		}
	}
	assert.True(t, found)
}

func TestEveryDimensionThatACallerCanChooseIsBounded(t *testing.T) {
	r := record(t)
	for i := range 300 {
		v := fmt.Sprint("v", i)
		_, call := r.StartCall(t.Context(), genaitrace.Request{
			Operation: genaiconv.OperationNameAttr(v), Provider: genaiconv.ProviderNameAttr(v), Model: v, ServerAddress: v, ServerPort: 1 + i,
		})
		call.SetResponse("", "r"+v)
		call.Fail(typedError(v))
	}
	values := map[attribute.Key]map[any]bool{}
	for _, p := range r.points(genaiconv.ClientInferenceDurationName) {
		for _, kv := range p.Attributes.ToSlice() {
			if values[kv.Key] == nil {
				values[kv.Key] = map[any]bool{}
			}
			values[kv.Key][kv.Value.AsInterface()] = true
		}
	}
	for key, distinct := range values {
		assert.LessOrEqual(t, len(distinct), 101, key)
	}
	assert.Len(t, values, 7)
}
