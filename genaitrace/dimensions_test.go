package genaitrace_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

func everyDimension() genaitrace.Option {
	return genaitrace.WithMetricDimensions(semconv.AIModelVersionKey, semconv.GenAIQuantizationKey,
		semconv.GenAIUserTierKey, semconv.GenAIPromptLengthBucketKey, semconv.AIGPUNameKey)
}

// withDimensions is a recording of metrics alone, with dimensions on request.
func withDimensions(t *testing.T, opts ...genaitrace.Option) *recording {
	t.Helper()
	r := record(t, sdktrace.WithSampler(sdktrace.NeverSample()))
	r.Tracer = genaitrace.New(append(opts, genaitrace.WithTracerProvider(r.provider), genaitrace.WithMeterProvider(r.meters))...)
	return r
}

func TestDimensionsOnRequestAreAbsentUnlessAskedFor(t *testing.T) {
	req := genaitrace.Request{ModelVersion: "v1.2"}
	engine := genaitrace.Engine{Quantization: "fp8", DeviceName: "NVIDIA H100"}
	run := func(opts ...genaitrace.Option) map[string]any {
		r := withDimensions(t, opts...)
		_, inf := r.StartInference(genaitrace.ContextWith(t.Context(), genaitrace.UserTier("gold"), genaitrace.TenantID("acme")), req)
		inf.SetEngine(engine)
		inf.SetUsage(genaitrace.Usage{InputTokens: new(5000)})
		inf.End()
		assert.Equal(t, map[string]any{"gen_ai.operation.name": "chat"}, dims(r.point(genaiconv.ServerRequestDurationName).Attributes),
			"the conventions have no such dimension")
		points := r.sums(semconv.GenAITokensName)
		require.Len(t, points, 1)
		return dims(points[0].Attributes)
	}
	assert.Equal(t, map[string]any{"gen_ai.operation.name": "chat", "genai.token.direction": "input"}, run())
	assert.Equal(t, map[string]any{"gen_ai.operation.name": "chat", "genai.token.direction": "input", "genai.quantization": "fp8"},
		run(genaitrace.WithMetricDimensions(semconv.GenAIQuantizationKey)))
	assert.Equal(t, map[string]any{
		"gen_ai.operation.name": "chat", "genai.token.direction": "input",
		"ai.model.version": "v1.2", "genai.quantization": "fp8", "genai.user.tier": "gold", "genai.prompt.length_bucket": "4k-16k",
		"ai.gpu.name": "NVIDIA H100",
	}, run(everyDimension()))
	assert.Equal(t, map[string]any{
		"gen_ai.operation.name": "chat", "genai.token.direction": "input",
		"ai.model.version": "v1.2", "genai.quantization": "fp8",
	}, run(genaitrace.WithMetricDimensions(semconv.AIModelVersionKey), genaitrace.WithMetricDimensions(semconv.GenAIQuantizationKey)), "options add up")
}

func TestTheLengthOfAPromptFallsIntoARange(t *testing.T) {
	for tokens, want := range map[int]string{
		0: "0-256", 255: "0-256", 256: "256-1k", 1023: "256-1k", 1024: "1k-4k", 4095: "1k-4k", 4096: "4k-16k",
		16383: "4k-16k", 16384: "16k-64k", 65535: "16k-64k", 65536: "64k-256k", 262143: "64k-256k", 262144: "256k+", 1 << 40: "256k+",
	} {
		r := withDimensions(t, genaitrace.WithMetricDimensions(semconv.GenAIPromptLengthBucketKey))
		_, call := r.StartCall(t.Context(), genaitrace.Request{})
		call.Chunk(genaitrace.Visible)
		call.SetUsage(genaitrace.Usage{InputTokens: new(tokens)})
		call.End()
		assert.Equal(t, want, dims(r.point(semconv.GenAITimeToFirstTokenName).Attributes)["genai.prompt.length_bucket"], "%d tokens", tokens)
	}
	r := withDimensions(t, genaitrace.WithMetricDimensions(semconv.GenAIPromptLengthBucketKey))
	_, call := r.StartCall(t.Context(), genaitrace.Request{})
	call.Chunk(genaitrace.Visible)
	call.End()
	assert.NotContains(t, dims(r.point(semconv.GenAITimeToFirstTokenName).Attributes), "genai.prompt.length_bucket", "unknown")
}

func TestTheValuesOfADimensionOnRequestAreBounded(t *testing.T) {
	r := withDimensions(t, everyDimension())
	for i := range 150 {
		_, inf := r.StartInference(t.Context(), genaitrace.Request{ModelVersion: fmt.Sprint("v", i)})
		inf.SetEngine(genaitrace.Engine{Quantization: fmt.Sprint("q", i%7)})
		inf.SetUsage(genaitrace.Usage{OutputTokens: new(1)})
		inf.End()
	}
	versions := r.sumBy(semconv.GenAITokensName, semconv.AIModelVersionKey)
	assert.Len(t, versions, 101)
	assert.Equal(t, int64(50), versions["_OTHER"])
	assert.Equal(t, int64(1), versions["v99"])
	assert.Len(t, r.sumBy(semconv.GenAITokensName, semconv.GenAIQuantizationKey), 7)
}

// Values that nobody asked for as a dimension do not count as combinations either.
func TestADimensionNotAskedForTakesNoRoom(t *testing.T) {
	r := withDimensions(t)
	for i := range 2000 {
		_, inf := r.StartInference(t.Context(), genaitrace.Request{ModelVersion: fmt.Sprint("v", i)})
		inf.SetUsage(genaitrace.Usage{OutputTokens: new(1), InputTokens: new(1 << (i % 20))})
		inf.End()
	}
	_, inf := r.StartInference(t.Context(), genaitrace.Request{Model: "a new one"})
	inf.End()
	assert.Len(t, r.points(genaiconv.ServerRequestDurationName), 2)
}

// The attributes that the conventions require are there also for what is beyond.
func TestBeyondTheLastCombinationModelsAreOther(t *testing.T) {
	r := withDimensions(t)
	for i := range 2000 {
		_, inf := r.StartInference(t.Context(), genaitrace.Request{Provider: genaiconv.ProviderNameAttr(fmt.Sprint("p", i%97)), Model: fmt.Sprint("m", i%89)})
		inf.Fail(typedError("device_lost"))
	}
	other := map[string]any{
		"gen_ai.operation.name": "_OTHER", "gen_ai.provider.name": "_OTHER", "gen_ai.request.model": "_OTHER", "error.type": "device_lost",
	}
	var seen bool
	for _, p := range r.points(genaiconv.ServerRequestDurationName) {
		seen = seen || assert.ObjectsAreEqual(other, dims(p.Attributes))
	}
	assert.True(t, seen)
	for _, p := range r.sums(semconv.GenAIActiveRequestsName) {
		assert.Zero(t, p.Value, "%v", dims(p.Attributes))
	}
}

func TestAKeyThatIsNoDimensionIsRefused(t *testing.T) {
	opt := genaitrace.WithMetricDimensions(semconv.GenAIUserTierKey, semconv.GenAITenantIDKey)
	assert.EqualError(t, genaitrace.Validate(opt), `genaitrace: WithMetricDimensions: "genai.tenant.id" is no dimension on request: `+
		`want one of [ai.model.version genai.quantization genai.user.tier genai.prompt.length_bucket ai.gpu.name]`)
	assert.NoError(t, genaitrace.Validate(everyDimension(), genaitrace.WithMetricDimensions()))
}
