package genaitrace_test

import (
	"crypto/rand"
	"fmt"
	mathrand "math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

func providers(r *recording) []genaitrace.Option {
	return []genaitrace.Option{genaitrace.WithTracerProvider(r.provider), genaitrace.WithMeterProvider(r.meters)}
}

// recordIn records one call in a vocabulary and returns its attributes.
func recordIn(t *testing.T, r *recording, opts ...genaitrace.Option) map[attribute.Key]any {
	t.Helper()
	tracer := genaitrace.New(append(providers(r), opts...)...)
	_, call := tracer.StartCall(t.Context(), genaitrace.Request{Provider: genaiconv.ProviderNameXAI, Model: "grok", Stream: true})
	time.Sleep(350 * time.Millisecond)
	call.Chunk(genaitrace.Visible)
	call.SetUsage(genaitrace.Usage{InputTokens: new(19), OutputTokens: new(2)})
	call.End()
	got := map[attribute.Key]any{}
	for _, kv := range r.span("chat grok").Attributes() {
		got[kv.Key] = kv.Value.AsInterface()
	}
	return got
}

func TestTheVocabularyDecidesTheKeysOfASpan(t *testing.T) {
	official := map[attribute.Key]any{
		"gen_ai.operation.name": "chat", "gen_ai.request.model": "grok",
		"gen_ai.usage.input_tokens": int64(19), "gen_ai.usage.output_tokens": int64(2),
		"gen_ai.response.time_to_first_chunk": 0.35,
	}
	house := map[attribute.Key]any{
		"ai.operation": "chat", "ai.model.name": "grok",
		"ai.tokens.input": int64(19), "ai.tokens.output": int64(2), "ai.response.delay_ms": 350.0,
	}
	for _, tt := range []struct {
		words           semconv.Vocabulary
		official, house bool
		system          any
	}{
		{semconv.Standard, true, false, nil},
		{semconv.Both, true, true, nil},
		{semconv.House, false, true, nil},
		{semconv.Legacy, true, false, "xai"},
	} {
		t.Run(tt.words.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got := recordIn(t, record(t), genaitrace.WithVocabulary(tt.words))
				for _, side := range []struct {
					keys    map[attribute.Key]any
					written bool
				}{{official, tt.official}, {house, tt.house}} {
					for key, value := range side.keys {
						if side.written {
							assert.Equal(t, value, got[key], key)
						} else {
							assert.NotContains(t, got, key)
						}
					}
				}
				assert.Equal(t, tt.system, got["gen_ai.system"])
				assert.Equal(t, "x_ai", got["gen_ai.provider.name"])
				assert.Equal(t, 350.0, got["llm.ttft_ms"], "facts with one name have it everywhere")
			})
		})
	}
}

// Under a caller that reports the usage, no vocabulary writes the official keys.
func TestUsageIsWrittenOnceInEveryVocabulary(t *testing.T) {
	for _, words := range []semconv.Vocabulary{semconv.Standard, semconv.Both, semconv.House, semconv.Legacy} {
		t.Run(words.String(), func(t *testing.T) {
			r := record(t)
			tracer := genaitrace.New(append(providers(r), genaitrace.WithVocabulary(words))...)
			ctx, call := tracer.StartCall(t.Context(), genaitrace.Request{Model: "m"})
			_, inf := tracer.StartInference(ctx, genaitrace.Request{Model: "m"})
			inf.SetUsage(genaitrace.Usage{InputTokens: new(19)})
			inf.End()
			call.End()
			host := r.span(semconv.SpanInferenceGenerate)
			assert.True(t, host.has(semconv.AITokensInputKey))
			assert.False(t, host.has(genaiconv.UsageInputTokensKey))
		})
	}
}

func TestLegacyRecordsTheMetricsOfOlderDashboards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record(t)
		recordIn(t, r, genaitrace.WithVocabulary(semconv.Legacy))
		assert.Equal(t, 0.35, r.once(genaiconv.ClientOperationDurationName))
		assert.Equal(t, 0.35, r.once(genaiconv.ClientOperationTimeToFirstChunkName))
		assert.Equal(t, "xai", dims(r.point(genaiconv.ClientOperationDurationName).Attributes)["gen_ai.system"])
		usage, ok := r.metric(genaiconv.ClientTokenUsageName)
		require.True(t, ok)
		byType := map[any]int64{}
		for _, p := range usage.Data.(metricdata.Histogram[int64]).DataPoints {
			byType[dims(p.Attributes)["gen_ai.token.type"]] = p.Sum
		}
		assert.Equal(t, map[any]int64{"input": 19, "output": 2}, byType)
		_, ok = r.metric(genaiconv.ClientInferenceDurationName)
		assert.False(t, ok, "the same fact under two names would count twice")
	})
}

func TestTheEnvironmentChoosesTheVocabularyUnlessAnOptionDoes(t *testing.T) {
	// A wrong value is reported once a process, so each run needs its own.
	wrong, number := rand.Text(), semconv.Vocabulary(100+mathrand.IntN(150))
	for _, tt := range []struct {
		value string
		opts  []genaitrace.Option
		both  bool
		err   string
	}{
		{value: "", both: false},
		{value: "otelgenai/both", both: true},
		{value: "http, gen_ai_latest_experimental , otelgenai/BOTH", both: true},
		{value: "both,otelgenai", both: false}, // not ours
		{value: "otelgenai/both", opts: []genaitrace.Option{genaitrace.WithVocabulary(semconv.Standard)}, both: false},
		{value: "otelgenai/" + wrong, both: false, err: `OTEL_SEMCONV_STABILITY_OPT_IN: semconv: no vocabulary "` + wrong + `": want one of standard, both, house, legacy`},
		{opts: []genaitrace.Option{genaitrace.WithVocabulary(number)}, both: false, err: "WithVocabulary: " + number.String() + " is not a vocabulary"},
	} {
		t.Run(fmt.Sprint(tt.value, len(tt.opts)), func(t *testing.T) {
			t.Setenv("OTEL_SEMCONV_STABILITY_OPT_IN", tt.value)
			errs := handled(t)
			got := recordIn(t, record(t), tt.opts...)
			assert.Equal(t, tt.both, got["ai.model.name"] != nil)
			err := genaitrace.Validate(tt.opts...)
			if tt.err == "" {
				require.NoError(t, err)
				assert.Empty(t, errs())
				return
			}
			require.ErrorContains(t, err, tt.err)
			genaitrace.New(tt.opts...)
			require.Len(t, errs(), 1, "reported once")
			assert.ErrorContains(t, errs()[0], tt.err)
		})
	}
}
