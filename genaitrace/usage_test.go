package genaitrace_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/propagation"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

func TestTheTokensOfAnInference(t *testing.T) {
	const prompt, cached = 100, 25
	prefill := func(p genaitrace.Prompt) func(context.Context, *genaitrace.Inference) {
		return func(ctx context.Context, inf *genaitrace.Inference) {
			_, phase := inf.StartPrefill(ctx, p)
			phase.End()
		}
	}
	usage := func(u genaitrace.Usage) func(context.Context, *genaitrace.Inference) {
		return func(_ context.Context, inf *genaitrace.Inference) { inf.SetUsage(u) }
	}
	for name, tt := range map[string]struct {
		do    []func(context.Context, *genaitrace.Inference)
		want  map[string]int64
		ratio float64 // -1: none
	}{
		"of the usage": {
			[]func(context.Context, *genaitrace.Inference){usage(genaitrace.Usage{InputTokens: new(prompt), OutputTokens: new(7), CachedTokens: new(cached)})},
			map[string]int64{"input": prompt, "output": 7}, 0.25,
		},
		"a known 0": {
			[]func(context.Context, *genaitrace.Inference){usage(genaitrace.Usage{InputTokens: new(prompt), OutputTokens: new(0), CachedTokens: new(0)})},
			map[string]int64{"input": prompt, "output": 0}, 0,
		},
		"a prompt of 0 tokens has no ratio": {
			[]func(context.Context, *genaitrace.Inference){usage(genaitrace.Usage{InputTokens: new(0), CachedTokens: new(0)})},
			map[string]int64{"input": 0}, -1,
		},
		"more cached than there are": {
			[]func(context.Context, *genaitrace.Inference){usage(genaitrace.Usage{InputTokens: new(prompt), CachedTokens: new(prompt + 1)})},
			map[string]int64{"input": prompt}, -1,
		},
		"cached tokens of an unknown prompt": {
			[]func(context.Context, *genaitrace.Inference){usage(genaitrace.Usage{CachedTokens: new(cached)})},
			map[string]int64{}, -1,
		},
		"of prefill": {
			[]func(context.Context, *genaitrace.Inference){prefill(genaitrace.Prompt{Tokens: prompt, Cached: new(cached)})},
			map[string]int64{"input": prompt}, 0.25,
		},
		"of prefill, nothing known of the cache": {
			[]func(context.Context, *genaitrace.Inference){prefill(genaitrace.Prompt{Tokens: prompt})},
			map[string]int64{"input": prompt}, -1,
		},
		"of prefill, nothing cached": {
			[]func(context.Context, *genaitrace.Inference){prefill(genaitrace.Prompt{Tokens: prompt, Cached: new(0)})},
			map[string]int64{"input": prompt}, 0,
		},
		"of prefill, computed again after a preemption": {
			[]func(context.Context, *genaitrace.Inference){
				prefill(genaitrace.Prompt{Tokens: prompt, Cached: new(cached)}), prefill(genaitrace.Prompt{Tokens: 2 * prompt, Cached: new(prompt)}),
			},
			map[string]int64{"input": prompt}, 0.25,
		},
		"of a negative prompt": {
			[]func(context.Context, *genaitrace.Inference){prefill(genaitrace.Prompt{Tokens: -prompt, Cached: new(-cached)})},
			map[string]int64{}, -1,
		},
		"of the tokenizer": {
			[]func(context.Context, *genaitrace.Inference){func(ctx context.Context, inf *genaitrace.Inference) {
				_, phase := inf.StartTokenize(ctx)
				phase.SetInputTokens(prompt)
				phase.End()
				phase.SetInputTokens(1)
			}},
			map[string]int64{"input": prompt}, -1,
		},
		"of the token clock": {
			[]func(context.Context, *genaitrace.Inference){func(ctx context.Context, inf *genaitrace.Inference) {
				_, d := inf.StartDecode(ctx)
				d.Tokens(4)
				d.Token()
			}},
			map[string]int64{"output": 5}, -1,
		},
		"of the usage rather than the clock": {
			[]func(context.Context, *genaitrace.Inference){
				func(ctx context.Context, inf *genaitrace.Inference) {
					_, d := inf.StartDecode(ctx)
					d.Tokens(4)
				}, prefill(genaitrace.Prompt{Tokens: 1}), usage(genaitrace.Usage{InputTokens: new(2), OutputTokens: new(3)}),
			},
			map[string]int64{"input": 2, "output": 3}, -1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			for how, end := range map[string]func(*genaitrace.Inference){
				"well":   (*genaitrace.Inference).End,
				"failed": func(inf *genaitrace.Inference) { inf.Fail(typedError("device_lost")) },
			} {
				r := record(t)
				ctx, inf := r.StartInference(t.Context(), genaitrace.Request{})
				for _, do := range tt.do {
					do(ctx, inf)
				}
				end(inf)
				assert.Equal(t, tt.want, r.sumBy(semconv.GenAITokensName, semconv.GenAITokenDirectionKey), how)
				s := r.span(semconv.SpanInferenceGenerate)
				for direction, key := range map[string]attribute.Key{"input": genaiconv.UsageInputTokensKey, "output": genaiconv.UsageOutputTokensKey} {
					n, known := tt.want[direction]
					if assert.Equal(t, known, s.has(key), "%s: the span says what the counter does of the %s", how, direction) && known {
						assert.Equal(t, n, s.int(key), how)
					}
				}
				if tt.ratio < 0 {
					assert.Empty(t, r.points(semconv.GenAIKVCacheHitRatioName), how)
					continue
				}
				assert.Equal(t, tt.ratio, float64(s.int(genaiconv.UsageCacheReadInputTokensKey))/float64(s.int(genaiconv.UsageInputTokensKey)), how)
				assert.Equal(t, tt.ratio, r.once(semconv.GenAIKVCacheHitRatioName), how)
			}
		})
	}
}

func TestTheTokensOfACall(t *testing.T) {
	const (
		input     = genaiconv.ClientInferenceUsageInputTokensName
		output    = genaiconv.ClientInferenceUsageOutputTokensName
		read      = genaiconv.ClientInferenceUsageCacheReadInputTokensName
		write     = genaiconv.ClientInferenceUsageCacheWriteInputTokensName
		reasoning = genaiconv.ClientInferenceUsageReasoningOutputTokensName
	)
	for name, tt := range map[string]struct {
		request  genaitrace.Request
		usage    genaitrace.Usage
		inner    bool
		counters map[string]int64
		lengths  map[string]int64 // input and output of the histograms
	}{
		"all known": {
			usage:    fullUsage(),
			counters: map[string]int64{input: 2456, output: 3, read: 1024, write: 512, reasoning: 0},
			lengths:  map[string]int64{"input": 2456, "output": 3},
		},
		"no usage is a 0 of the counters, and no length": {
			counters: map[string]int64{input: 0, output: 0},
		},
		"output unknown": {
			usage:    genaitrace.Usage{InputTokens: new(19)},
			counters: map[string]int64{input: 19, output: 0},
			lengths:  map[string]int64{"input": 19},
		},
		"a known 0 is a length": {
			usage:    genaitrace.Usage{InputTokens: new(19), OutputTokens: new(0)},
			counters: map[string]int64{input: 19, output: 0},
			lengths:  map[string]int64{"input": 19, "output": 0},
		},
		"an outer call counts them": {usage: fullUsage(), inner: true},
		"fetching an answer generates none": {
			request: genaitrace.Request{Operation: genaiconv.OperationNameFetchResponse}, usage: fullUsage(),
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := record(t)
			ctx := t.Context()
			if tt.inner {
				outer, caller := r.startForeign(ctx, "caller")
				defer caller.End()
				ctx = propagation.ContextWithCallerMark(outer)
			}
			_, call := r.StartCall(ctx, tt.request)
			call.SetUsage(tt.usage)
			call.Fail(typedError("overloaded"))

			counters, lengths := map[string]int64{}, map[string]int64{}
			for name, m := range r.allMetrics() {
				switch data := m.Data.(type) {
				case metricdata.Sum[int64]:
					if strings.HasPrefix(name, "gen_ai.client.inference.usage.") {
						require.Len(t, data.DataPoints, 1, name)
						counters[name] = data.DataPoints[0].Value
						assert.Equal(t, map[string]any{"gen_ai.operation.name": "chat", "gen_ai.token.modality": "unknown"},
							dims(data.DataPoints[0].Attributes), name)
					}
				case metricdata.Histogram[int64]:
					require.Len(t, data.DataPoints, 1, name)
					direction := strings.TrimSuffix(strings.TrimPrefix(name, "gen_ai.client.inference.operation."), "_tokens")
					lengths[direction] = data.DataPoints[0].Sum
					assert.Equal(t, map[string]any{"gen_ai.operation.name": "chat", "error.type": "overloaded"},
						dims(data.DataPoints[0].Attributes), name)
				}
			}
			if tt.counters == nil {
				tt.counters = map[string]int64{}
			}
			if tt.lengths == nil {
				tt.lengths = map[string]int64{}
			}
			assert.Equal(t, tt.counters, counters)
			assert.Equal(t, tt.lengths, lengths)
		})
	}
}

// What came in is the only length that embeddings have.
func TestTheTokensOfEmbeddings(t *testing.T) {
	for name, tt := range map[string]struct {
		words semconv.Vocabulary
		inner bool
		usage genaitrace.Usage
		want  string // the metric that holds them, if any
	}{
		"known":                        {usage: genaitrace.Usage{InputTokens: new(17)}, want: genaiconv.ClientEmbeddingsOperationInputTokensName},
		"unknown":                      {},
		"an outer call counts them":    {usage: genaitrace.Usage{InputTokens: new(17)}, inner: true},
		"in the words of older boards": {words: semconv.Legacy, usage: genaitrace.Usage{InputTokens: new(17)}, want: genaiconv.ClientTokenUsageName},
		"unknown to older boards":      {words: semconv.Legacy},
	} {
		t.Run(name, func(t *testing.T) {
			r := recordWith(t, []genaitrace.Option{genaitrace.WithVocabulary(tt.words)})
			ctx := t.Context()
			if tt.inner {
				outer, caller := r.startForeign(ctx, "caller")
				defer caller.End()
				ctx = propagation.ContextWithCallerMark(outer)
			}
			_, call := r.StartCall(ctx, genaitrace.Request{Operation: genaiconv.OperationNameEmbeddings, Provider: "vllm", Model: "bge-m3"})
			call.SetUsage(tt.usage)
			call.Fail(typedError("overloaded"))

			lengths := map[string]metricdata.HistogramDataPoint[int64]{}
			for name, m := range r.allMetrics() {
				assert.NotContains(t, name, "gen_ai.client.inference")
				if data, ok := m.Data.(metricdata.Histogram[int64]); ok {
					require.Len(t, data.DataPoints, 1, name)
					lengths[name] = data.DataPoints[0]
				}
			}
			if tt.want == "" {
				assert.Empty(t, lengths)
				return
			}
			require.Len(t, lengths, 1)
			point := lengths[tt.want]
			assert.Equal(t, int64(17), point.Sum)
			want := map[string]any{"gen_ai.operation.name": "embeddings", "gen_ai.provider.name": "vllm", "gen_ai.request.model": "bge-m3"}
			if tt.words == semconv.Legacy {
				want["gen_ai.system"], want["gen_ai.token.type"] = "vllm", "input"
			}
			assert.Equal(t, want, dims(point.Attributes), "no error.type")
		})
	}
}

// What is wrong is the end of the phase, not what it says of the prompt.
func TestThePromptOfAPhaseWithAWrongEndCounts(t *testing.T) {
	handled(t)
	r := record(t)
	ctx, inf := r.StartInference(t.Context(), genaitrace.Request{})
	_, prefill := inf.StartPrefill(ctx, genaitrace.Prompt{Tokens: 100, Cached: new(25)})
	prefill.EndAt(time.Now().Add(-time.Hour))
	inf.End()
	assert.Equal(t, map[string]int64{"input": 100}, r.sumBy(semconv.GenAITokensName, semconv.GenAITokenDirectionKey))
	assert.Equal(t, 0.25, r.once(semconv.GenAIKVCacheHitRatioName))
	assert.Equal(t, int64(100), r.span(semconv.SpanInferenceGenerate).int(genaiconv.UsageInputTokensKey))
	assert.Empty(t, r.points(semconv.GenAIPrefillDurationName))
}

// Whether the trace is sampled or not.
func TestTheTokensOfACallInsideACallAreCountedOnce(t *testing.T) {
	for name, sampler := range map[string]sdktrace.Sampler{"sampled": sdktrace.AlwaysSample(), "not sampled": sdktrace.NeverSample()} {
		t.Run(name, func(t *testing.T) {
			r := record(t, sdktrace.WithSampler(sampler))
			ctx, outer := r.StartCall(t.Context(), genaitrace.Request{})
			_, inner := r.StartCall(ctx, genaitrace.Request{})
			inner.SetUsage(genaitrace.Usage{InputTokens: new(10), OutputTokens: new(5)})
			inner.End()
			outer.SetUsage(genaitrace.Usage{InputTokens: new(10), OutputTokens: new(5)})
			outer.End()
			assert.Equal(t, map[string]int64{"chat": 10}, r.sumBy(genaiconv.ClientInferenceUsageInputTokensName, genaiconv.OperationNameKey))
			assert.Equal(t, map[string]int64{"chat": 5}, r.sumBy(genaiconv.ClientInferenceUsageOutputTokensName, genaiconv.OperationNameKey))
			assert.Equal(t, 2, r.total(genaiconv.ClientInferenceDurationName), "both took their time")
		})
	}
}
