package genaitrace_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

func TestTheMetricsOfAnInferenceAreExact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record(t)
		runInference(t, r)
		for name, want := range map[string]float64{
			semconv.GenAIQueueWaitName:            0.01,
			semconv.GenAIPrefillDurationName:      0.01,
			semconv.GenAIDecodeDurationName:       0.03,
			semconv.GenAITokenRateName:            2 / 0.02,
			semconv.GenAIKVCacheHitRatioName:      1024. / 2456,
			"gen_ai.server.time_per_output_token": 0.01,
		} {
			assert.InDelta(t, want, r.once(name), 1e-12, name)
		}
		assert.Equal(t, map[string]int64{"input": 2456, "output": 3}, r.sumBy(semconv.GenAITokensName, semconv.GenAITokenDirectionKey))
		assert.Equal(t, int64(1e7), r.span(semconv.SpanQueueWait).nanos(semconv.LLMQueueWaitMsKey), "the attribute says the same")

		model := map[string]any{"gen_ai.operation.name": "chat", "gen_ai.provider.name": "vllm", "gen_ai.request.model": "qwen2.5-7b-instruct"}
		assert.Equal(t, model, dims(r.point(semconv.GenAIQueueWaitName).Attributes))
		server := maps.Clone(model)
		maps.Copy(server, map[string]any{
			"gen_ai.response.model": "qwen2.5-7b-instruct-awq", "server.address": "gpu-7.internal", "server.port": int64(8000),
		})
		assert.Equal(t, server, dims(r.point(genaiconv.ServerTimeToFirstTokenName).Attributes))
	})
}

// Several phases of a kind are several values, as they are several spans.
func TestEachPhaseIsOneValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record(t)
		ctx, inf := r.StartInference(t.Context(), genaitrace.Request{})
		for range 2 {
			_, queue := inf.StartQueue(ctx)
			time.Sleep(time.Millisecond)
			queue.End()
			_, prefill := inf.StartPrefill(ctx, genaitrace.Prompt{})
			time.Sleep(2 * time.Millisecond)
			prefill.End()
			_, decode := inf.StartDecode(ctx)
			time.Sleep(4 * time.Millisecond)
			decode.Token()
			decode.EndAt(time.Now().Add(-time.Hour)) // before its start: no time to record
		}
		_, open := inf.StartDecode(ctx)
		time.Sleep(8 * time.Millisecond)
		inf.Fail(errors.New("device lost"))
		open.End()

		for name, want := range map[string]struct {
			count uint64
			sum   float64
		}{
			semconv.GenAIQueueWaitName:       {2, 0.002},
			semconv.GenAIPrefillDurationName: {2, 0.004},
			semconv.GenAIDecodeDurationName:  {1, 0.008},
		} {
			assert.Equal(t, want.count, r.point(name).Count, name)
			assert.InDelta(t, want.sum, r.point(name).Sum, 1e-12, name)
		}
	})
}

// A request that is put aside again and again has more phases than are remembered.
func TestEachPhaseOfManyIsOneValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := withDimensions(t, everyDimension())
		ctx, inf := r.StartInference(t.Context(), genaitrace.Request{Model: "m"})
		inf.SetEngine(genaitrace.Engine{Quantization: "fp8"})
		const rounds = 50
		for range rounds {
			_, queue := inf.StartQueue(ctx)
			queue.End()
			_, prefill := inf.StartPrefill(ctx, genaitrace.Prompt{Tokens: 300})
			time.Sleep(2 * time.Millisecond)
			prefill.End()
			_, decode := inf.StartDecode(ctx)
			time.Sleep(4 * time.Millisecond)
			decode.Token()
			inf.Preempt()
		}
		inf.End()
		for name, sum := range map[string]float64{
			semconv.GenAIQueueWaitName: 0, semconv.GenAIPrefillDurationName: rounds * 0.002, semconv.GenAIDecodeDurationName: rounds * 0.004,
		} {
			p := r.point(name)
			assert.Equal(t, uint64(rounds), p.Count, name)
			assert.InDelta(t, sum, p.Sum, 1e-9, name)
			assert.Equal(t, map[string]any{
				"gen_ai.operation.name": "chat", "gen_ai.request.model": "m",
				"genai.quantization": "fp8", "genai.prompt.length_bucket": "256-1k",
			}, dims(p.Attributes), name)
		}
	})
}

// What the engine reports is measured as it was reported, and not where it was
// observed.
func TestReportedPhasesAreMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record(t)
		ctx, inf := r.StartInference(t.Context(), genaitrace.Request{})
		inf.RecordPhases(genaitrace.PhaseTimes{
			Queue: new(3 * time.Second), Load: new(time.Second), Prefill: new(time.Hour), Decode: new(20 * time.Millisecond),
		})
		_, queue := inf.StartQueue(ctx)
		time.Sleep(2 * time.Second)
		queue.End()
		inf.End()
		assert.Equal(t, 2., r.once(semconv.GenAIQueueWaitName), "it was observed")
		assert.Equal(t, 3600., r.once(semconv.GenAIPrefillDurationName), "longer than the request, and unaltered")
		assert.Equal(t, 0.02, r.once(semconv.GenAIDecodeDurationName))
	})
}

// The rate is that of the request, the time per token that of an answer.
func TestTheRateIsOfAllAnswersTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record(t)
		ctx, inf := r.StartInference(t.Context(), genaitrace.Request{})
		_, d := inf.StartDecode(ctx)
		for range 3 {
			for choice := range 2 {
				d.Tick(genaitrace.Tick{Choice: choice})
			}
			time.Sleep(time.Second)
		}
		inf.End()
		assert.Equal(t, 1., r.once(genaiconv.ServerTimePerOutputTokenName))
		assert.Equal(t, 2.5, r.once(semconv.GenAITokenRateName), "5 tokens after the first in 2 s")
	})
}

func TestStallsHaveTheDimensionsOfTheirRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := withDimensions(t, everyDimension())
		ctx, inf := r.StartInference(t.Context(), genaitrace.Request{Model: "m"})
		inf.SetEngine(genaitrace.Engine{Quantization: "fp8"})
		_, prefill := inf.StartPrefill(ctx, genaitrace.Prompt{Tokens: 300})
		prefill.End()
		_, d := inf.StartDecode(ctx)
		for range 3 {
			d.Token()
			time.Sleep(time.Minute)
		}
		d.End()
		inf.End()
		points := r.sums(semconv.GenAITokenStallsName)
		require.Len(t, points, 1)
		assert.Equal(t, int64(2), points[0].Value)
		assert.Equal(t, map[string]any{
			"gen_ai.operation.name": "chat", "gen_ai.request.model": "m",
			"genai.quantization": "fp8", "genai.prompt.length_bucket": "256-1k",
		}, dims(points[0].Attributes))
	})
}

func TestWhatIsUnknownIsInNoMetricOfAnInference(t *testing.T) {
	r := record(t)
	_, inf := r.StartInference(t.Context(), genaitrace.Request{})
	inf.End()
	assert.ElementsMatch(t, []string{genaiconv.ServerRequestDurationName, semconv.GenAIActiveRequestsName},
		slices.Collect(maps.Keys(r.allMetrics())))
	assert.Equal(t, map[string]any{"gen_ai.operation.name": "chat"}, dims(r.point(genaiconv.ServerRequestDurationName).Attributes))
}

// A rate needs a time between two tokens, and a request that went well.
func TestTheRateOfTokens(t *testing.T) {
	for name, tt := range map[string]struct {
		run  func(*genaitrace.Decode)
		err  error
		want float64 // 0: none
	}{
		"no token":                  {func(*genaitrace.Decode) {}, nil, 0},
		"one token":                 {func(d *genaitrace.Decode) { d.Token() }, nil, 0},
		"one step":                  {func(d *genaitrace.Decode) { d.Tokens(8) }, nil, 0},
		"two tokens":                {func(d *genaitrace.Decode) { d.Token(); time.Sleep(time.Second / 4); d.Token() }, nil, 4},
		"a step, then one":          {func(d *genaitrace.Decode) { d.Tokens(3); time.Sleep(time.Second); d.Token() }, nil, 3},
		"two, and the client left":  {func(d *genaitrace.Decode) { d.Token(); time.Sleep(time.Second); d.Token() }, context.Canceled, 1},
		"two, and the device broke": {func(d *genaitrace.Decode) { d.Token(); time.Sleep(time.Second); d.Token() }, typedError("device_lost"), 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := record(t)
				ctx, inf := r.StartInference(t.Context(), genaitrace.Request{})
				_, d := inf.StartDecode(ctx)
				tt.run(d)
				inf.Fail(tt.err)
				if tt.want == 0 {
					assert.Empty(t, r.points(semconv.GenAITokenRateName))
					return
				}
				assert.InDelta(t, tt.want, r.once(semconv.GenAITokenRateName), 1e-9)
			})
		})
	}
}

func TestEachKindOfCallHasItsDuration(t *testing.T) {
	inference, ok := semconv.LookupSpan("gen_ai.client.inference")
	require.True(t, ok)
	operation, ok := semconv.Lookup(genaiconv.OperationNameKey)
	require.True(t, ok)
	want := map[genaiconv.OperationNameAttr]string{
		"": genaiconv.ClientInferenceDurationName, "chat_of_our_own": genaiconv.ClientInferenceDurationName,
	}
	for _, m := range operation.Members {
		name := genaiconv.ClientOperationDurationName
		switch {
		case slices.Contains(inference.Operations, m.Value):
			name = genaiconv.ClientInferenceDurationName
		case m.Value == string(genaiconv.OperationNameEmbeddings):
			name = genaiconv.ClientEmbeddingsDurationName
		}
		want[genaiconv.OperationNameAttr(m.Value)] = name
	}
	require.Equal(t, genaiconv.ClientInferenceDurationName, want[genaiconv.OperationNameGenerateContent])
	for operation, name := range want {
		for _, words := range []semconv.Vocabulary{semconv.Standard, semconv.Legacy} {
			r := record(t)
			r.Tracer = genaitrace.New(genaitrace.WithTracerProvider(r.provider), genaitrace.WithMeterProvider(r.meters), genaitrace.WithVocabulary(words))
			_, call := r.StartCall(t.Context(), genaitrace.Request{Operation: operation})
			call.End()
			if words == semconv.Legacy {
				name = genaiconv.ClientOperationDurationName
			}
			var durations []string
			for metric := range r.allMetrics() {
				if strings.HasSuffix(metric, ".duration") {
					durations = append(durations, metric)
				}
			}
			assert.Equal(t, []string{name}, durations, "%s %s", operation, words)
		}
	}
}

// Where views drop all metrics but one, that one is recorded.
func TestOneMetricIsEnoughForARequestToBeRecorded(t *testing.T) {
	for _, words := range []semconv.Vocabulary{semconv.Standard, semconv.Legacy} {
		all := recordTimed(t, words)
		require.Contains(t, all, semconv.GenAITimeToFirstTokenName)
		require.Contains(t, all, semconv.GenAITokenRateName)
		require.Contains(t, all, semconv.GenAITokenStallsName)
		require.Contains(t, all, semconv.GenAIBatchSizeName)
		for _, name := range workMetrics {
			require.Contains(t, all, name)
		}
		for name := range all {
			only := recordTimed(t, words, sdkmetric.NewView(sdkmetric.Instrument{Name: name}, sdkmetric.Stream{}),
				sdkmetric.NewView(sdkmetric.Instrument{Name: "*"}, sdkmetric.Stream{Aggregation: sdkmetric.AggregationDrop{}}))
			assert.Equal(t, map[string]bool{name: true}, only, "%s", words)
		}
	}
}

// recordTimed returns the names of the metrics of one request of each kind.
func recordTimed(t *testing.T, words semconv.Vocabulary, views ...sdkmetric.View) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	synctest.Test(t, func(t *testing.T) {
		r := record(t)
		r.reader = sdkmetric.NewManualReader()
		r.meters = sdkmetric.NewMeterProvider(sdkmetric.WithReader(r.reader), sdkmetric.WithView(views...))
		r.Tracer = genaitrace.New(genaitrace.WithTracerProvider(tracenoop.NewTracerProvider()), genaitrace.WithMeterProvider(r.meters), genaitrace.WithVocabulary(words))
		runEverything(t, r)
		for name := range r.allMetrics() {
			names[name] = true
		}
	})
	return names
}

// runEverything is a request of each kind, with all that can be known, one after
// the other.
func runEverything(t *testing.T, r *recording) {
	t.Helper()
	runInference(t, r)
	runCall(t, r)

	ctx := genaitrace.ContextWith(t.Context(), genaitrace.UserTier("gold"))
	ctx, gateway := r.StartGateway(ctx, genaitrace.GatewayRequest{Name: benchRoute})
	gateway.SetRequest(fullRequest())
	gateway.SetResponse("chatcmpl-1", "qwen2.5-7b-instruct-awq")
	gateway.SetUsage(fullUsage())
	ctx, call := r.StartCall(ctx, fullRequest())
	ctx, inf := r.StartInference(ctx, fullRequest())
	inf.SetEngine(genaitrace.Engine{Quantization: "fp8", DeviceName: "NVIDIA H100"})
	_, queue := inf.StartQueue(ctx)
	queue.End()
	_, prefill := inf.StartPrefill(ctx, genaitrace.Prompt{})
	prefill.End()
	batchCtx, batch := r.StartBatch(ctx, genaitrace.BatchFacts{Model: "qwen2.5-7b-instruct", Size: 1})
	batch.Join(inf)
	_, decode := inf.StartDecode(batchCtx)
	for range 2 {
		time.Sleep(time.Minute) // a stall in any stream
		decode.Token()
		call.Chunk(genaitrace.Visible)
		gateway.Chunk(genaitrace.Visible)
	}
	inf.SetUsage(fullUsage())
	inf.End()
	batch.End()
	call.End()
	gateway.End()

	runRAG(t, r)
	runAgent(t, r)

	for _, operation := range []genaiconv.OperationNameAttr{genaiconv.OperationNameEmbeddings, genaiconv.OperationNameFetchResponse} {
		req := fullRequest()
		req.Operation = operation
		_, call := r.StartCall(t.Context(), req)
		call.SetUsage(fullUsage())
		call.SetResponse("", "qwen2.5-7b-instruct-awq")
		call.Fail(typedError("overloaded"))
	}
}

// Each dimension of the registry is a dimension of its metric, where all is known and
// all is asked for, and there is no other one.
func TestEachMetricHasTheDimensionsOfTheRegistry(t *testing.T) {
	elsewhere := map[attribute.Key]bool{ // known where we are not
		"openai.response.service_tier": true, "openai.response.system_fingerprint": true,
	}
	ofOneRequest := map[attribute.Key]bool{ // which a batch is not
		semconv.AIModelVersionKey: true, semconv.GenAIQuantizationKey: true, semconv.AIGPUNameKey: true,
	}
	synctest.Test(t, func(t *testing.T) {
		r := withDimensions(t, everyDimension())
		runEverything(t, r)
		for name, m := range r.allMetrics() {
			registered, ok := semconv.LookupMetric(name)
			require.True(t, ok, name)
			assert.Equal(t, registered.Unit, m.Unit, name)
			seen := map[attribute.Key]bool{}
			for _, point := range attributesOf(t, m) {
				for _, kv := range point.ToSlice() {
					seen[kv.Key] = true
				}
				for _, wanted := range registered.Attributes {
					if wanted.Level == semconv.LevelRequired {
						assert.True(t, point.HasValue(wanted.Key), "%s needs %s", name, wanted.Key)
					}
				}
			}
			want := map[attribute.Key]bool{}
			for _, a := range registered.Attributes {
				// One value a chunk: only what is required, for the sake of its cost.
				short := name == genaiconv.ClientInferenceTimePerOutputChunkName && !seen[a.Key]
				if name == semconv.GenAIBatchSizeName && ofOneRequest[a.Key] {
					continue
				}
				if !elsewhere[a.Key] && !short && (a.Key != "error.type" || seen[a.Key]) {
					want[a.Key] = true
				}
			}
			assert.Equal(t, want, seen, name)
		}
	})
}

func attributesOf(t *testing.T, m metricdata.Metrics) (sets []attribute.Set) {
	t.Helper()
	switch data := m.Data.(type) {
	case metricdata.Histogram[float64]:
		for _, p := range data.DataPoints {
			sets = append(sets, p.Attributes)
		}
	case metricdata.Histogram[int64]:
		for _, p := range data.DataPoints {
			sets = append(sets, p.Attributes)
		}
	case metricdata.Sum[int64]:
		for _, p := range data.DataPoints {
			sets = append(sets, p.Attributes)
		}
	default:
		require.Fail(t, "unknown data", "%s is a %T", m.Name, data)
	}
	return sets
}
