package integration_test

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"

	"github.com/genaitrace/otelgenai/capture"
	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/integration/gguf"
	"github.com/genaitrace/otelgenai/integration/llama"
	"github.com/genaitrace/otelgenai/semconv"
)

// random25M has 25 million parameters, so that a step takes milliseconds. Its text
// means nothing.
var random25M = gguf.Model{Name: "random25M", Dim: 512, Hidden: 1376, Layers: 8, Heads: 8, Context: 4096, Seed: 1}

// prompt has a token for each byte of each letter (a blank is three) and one for its
// beginning: 733.
var prompt = strings.Repeat("Once upon a time ", 29)

// modelFile writes the random model, once for all tests. TestMain removes it.
var modelFile = sync.OnceValues(func() (string, error) {
	path := filepath.Join(scratch, random25M.Name+".gguf")
	f, err := os.Create(path)
	if err != nil {
		return "", err
	}
	return path, errors.Join(gguf.Write(f, random25M), f.Close())
})

// startEngine runs the random model, recording into the Recorder.
func startEngine(t *testing.T, slots int) (*llama.Engine, *capture.Recorder) {
	t.Helper()
	library := part(t, "llama", "libllama.so")
	model, err := modelFile()
	require.NoError(t, err)
	rec := capture.NewRecorder()
	engine, err := llama.Open(llama.Config{
		Library: filepath.Dir(library), Model: model, Name: random25M.Name,
		Slots: slots, Context: 1024,
		Tracer: genaitrace.New(genaitrace.WithTracerProvider(rec.TracerProvider()), genaitrace.WithMeterProvider(rec.MeterProvider())),
	})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, engine.Close()) })
	return engine, rec
}

func discard(string) error { return nil }

func captured(t *testing.T, rec *capture.Recorder) *capture.Capture {
	t.Helper()
	got, err := rec.Capture(context.Background())
	require.NoError(t, err)
	for _, s := range got.Spans {
		assert.True(t, s.Ended(), "%s has not ended", s.Name)
	}
	return got
}

// compare returns the difference of two times in milliseconds, where 1 is 5 % or 1 ms,
// whichever is more.
func compare(t *testing.T, theirs, ours float64, what string) float64 {
	t.Helper()
	t.Logf("%s: llama.cpp %.3f ms, the trace %.3f ms (%+.2f %%)", what, theirs, ours, 100*(ours-theirs)/theirs)
	return math.Abs(ours-theirs) / math.Max(1, 0.05*theirs)
}

// agree holds them to be the same within that.
func agree(t *testing.T, theirs, ours float64, what string) {
	t.Helper()
	assert.LessOrEqual(t, compare(t, theirs, ours, what), 1.0, what)
}

func number(t *testing.T, s *capture.Span, key attribute.Key) float64 {
	t.Helper()
	v, ok := s.Attributes.Get(key)
	require.True(t, ok, "%s lacks %s", s.Name, key)
	return v.AsFloat64()
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func TestTheTraceAgreesWithTheEnginesOwnTimings(t *testing.T) {
	engine, rec := startEngine(t, 1)
	require.GreaterOrEqual(t, engine.Parameters(), uint64(25_000_000))
	require.Equal(t, uint64(random25M.Parameters()), engine.Parameters())
	least := math.Inf(1) // difference of decode: a busy machine adds to what is between the steps
	for round := 0; round < 3 || round < 8 && least > 1; round++ {
		require.NoError(t, engine.ResetTimings())
		before := len(captured(t, rec).Spans)
		text := strings.Repeat("x", before%7) + prompt // no prefix in common
		answer, err := engine.Generate(t.Context(), llama.Request{Prompt: text, MaxTokens: 40}, discard)
		require.NoError(t, err)
		require.GreaterOrEqual(t, answer.Input, 600)
		theirs := engine.Timings()

		spans := captured(t, rec).Spans[before:]
		byName := make(map[string]*capture.Span)
		for _, s := range spans {
			byName[s.Name] = s
		}
		prefill, decode, inf := byName[semconv.SpanInferencePrefill], byName[semconv.SpanInferenceDecode], byName[semconv.SpanInferenceGenerate]
		require.NotNil(t, prefill)
		require.NotNil(t, decode)
		require.NotNil(t, inf)

		agree(t, theirs.TPromptEvalMs, ms(prefill.Duration()), "prefill")
		least = min(least, compare(t, theirs.TEvalMs, ms(decode.Duration()), "decode"))
		assert.EqualValues(t, answer.Input-answer.Cached, theirs.NPEval, "tokens of the prompt that were computed")
		assert.EqualValues(t, answer.Output-1, theirs.NEval, "steps after the first token")

		agree(t, theirs.TPromptEvalMs, number(t, inf, semconv.LLMTTFTMsKey), "time to first token, where nothing queues")
	}
	assert.LessOrEqual(t, least, 1.0, "decode, in the best round")
}

func TestTheSecondOfAPromptIsCached(t *testing.T) {
	engine, rec := startEngine(t, 1)
	first, err := engine.Generate(t.Context(), llama.Request{Prompt: prompt, MaxTokens: 2}, discard)
	require.NoError(t, err)
	second, err := engine.Generate(t.Context(), llama.Request{Prompt: prompt, MaxTokens: 2}, discard)
	require.NoError(t, err)
	assert.Zero(t, first.Cached)
	assert.Equal(t, first.Input-1, second.Cached, "all but the token whose logits are needed")

	prefills := captured(t, rec).Named(semconv.SpanInferencePrefill)
	require.Len(t, prefills, 2)
	assert.Less(t, 5*prefills[1].Duration(), prefills[0].Duration())
}

func TestRequestsQueueForASlot(t *testing.T) {
	engine, rec := startEngine(t, 2)
	var wg sync.WaitGroup
	for _, start := range []string{"a", "b", "c"} {
		wg.Go(func() {
			_, err := engine.Generate(t.Context(), llama.Request{Prompt: start + prompt, MaxTokens: 20}, discard)
			assert.NoError(t, err)
		})
	}
	wg.Wait()
	got := captured(t, rec)
	require.Len(t, got.Traces(), 3)

	// Two ran together, and the third began when the first of them had ended.
	var queued *capture.Trace
	for _, trace := range got.Traces() {
		if queued == nil || wait(trace) > wait(queued) {
			queued = trace
		}
	}
	var firstEnd time.Time
	var longest time.Duration // step, which is a prefill
	for _, trace := range got.Traces() {
		decode := find(trace, semconv.SpanInferenceDecode)
		longest = max(longest, find(trace, semconv.SpanInferencePrefill).Duration())
		if trace != queued && (firstEnd.IsZero() || decode.End.Before(firstEnd)) {
			firstEnd = decode.End
		}
	}
	queueEnd := find(queued, semconv.SpanQueueWait).End
	assert.GreaterOrEqual(t, queueEnd.Sub(firstEnd), -time.Millisecond, "a slot was free")
	assert.Less(t, queueEnd.Sub(firstEnd), time.Second+longest, "and was taken at the next step")

	inf := find(queued, semconv.SpanInferenceGenerate)
	sum, parts := 0.0, 0
	for _, kv := range inf.Attributes {
		if strings.HasPrefix(string(kv.Key), "genai.ttft.") {
			sum += kv.Value.AsFloat64()
			parts++
		}
	}
	require.GreaterOrEqual(t, parts, 4)
	ttft := number(t, inf, semconv.LLMTTFTMsKey)
	assert.InDelta(t, ttft, sum, 1e-5, "the parts add up")
}

func wait(trace *capture.Trace) time.Duration { return find(trace, semconv.SpanQueueWait).Duration() }

func find(trace *capture.Trace, name string) *capture.Span {
	for _, s := range trace.Spans {
		if s.Name == name {
			return s
		}
	}
	return nil
}

func TestACancelledRequestFreesItsSlot(t *testing.T) {
	engine, rec := startEngine(t, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	tokens := 0
	_, err := engine.Generate(ctx, llama.Request{Prompt: prompt, MaxTokens: 250}, func(string) error {
		if tokens++; tokens == 5 {
			cancel()
		}
		return nil
	})
	require.ErrorIs(t, err, context.Canceled)
	answer, err := engine.Generate(t.Context(), llama.Request{Prompt: "Again.", MaxTokens: 3}, discard)
	require.NoError(t, err)
	assert.Equal(t, 3, answer.Output)

	inf := captured(t, rec).Named(semconv.SpanInferenceGenerate)[0]
	assert.Equal(t, "client_cancelled", inf.Attributes.String(semconv.GenAIStreamTerminalKey))
	assert.Equal(t, codes.Unset, inf.Status)
}

func TestALeavingReaderAndAClosedEngine(t *testing.T) {
	engine, rec := startEngine(t, 1)
	broken := errors.New("connection reset")
	_, err := engine.Generate(t.Context(), llama.Request{Prompt: prompt, MaxTokens: 50}, func(string) error { return broken })
	require.ErrorIs(t, err, broken)

	_, err = engine.Generate(t.Context(), llama.Request{Prompt: strings.Repeat(prompt, 2), MaxTokens: 50}, discard)
	require.ErrorContains(t, err, "are more than the 1024 of a slot")

	ended := make(chan error)
	go func() {
		_, err := engine.Generate(context.Background(), llama.Request{Prompt: prompt, MaxTokens: 250}, func(string) error { return nil })
		ended <- err
	}()
	time.Sleep(50 * time.Millisecond) // a real engine has no fake clock
	require.NoError(t, engine.Close())
	require.ErrorIs(t, <-ended, llama.ErrClosed)
	assert.Len(t, captured(t, rec).Named(semconv.SpanInferenceGenerate), 3)
}
