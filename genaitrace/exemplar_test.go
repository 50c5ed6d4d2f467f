package genaitrace_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// An exemplar leads from a bar of a histogram to a trace: it must name the span that
// the value was measured on. The SDK offers a value by the span context that Record
// gets.
func TestEachValueOffersItsSpanAsExemplar(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record(t)
		runInference(t, r)
		runCall(t, r)

		engine := r.span(semconv.SpanInferenceGenerate)
		caller := r.span("chat qwen2.5-7b-instruct")
		gateway := r.span("POST /v1/chat/completions")
		spans := map[string]seen{
			genaiconv.ServerRequestDurationName:             engine,
			genaiconv.ServerTimeToFirstTokenName:            engine,
			genaiconv.ServerTimePerOutputTokenName:          engine,
			semconv.GenAIQueueWaitName:                      engine,
			semconv.GenAIPrefillDurationName:                engine,
			semconv.GenAIDecodeDurationName:                 engine,
			semconv.GenAITokenRateName:                      engine,
			semconv.GenAIKVCacheHitRatioName:                engine,
			genaiconv.ClientInferenceDurationName:           caller,
			genaiconv.ClientInferenceTimeToFirstChunkName:   caller,
			genaiconv.ClientInferenceTimePerOutputChunkName: caller,
		}
		for name, span := range spans {
			p := r.point(name)
			require.NotEmpty(t, p.Exemplars, name)
			for _, e := range p.Exemplars {
				assertExemplarOf(t, span, e, name)
			}
		}
		for _, p := range r.points(semconv.GenAITimeToFirstTokenName) {
			span := caller
			if dims(p.Attributes)["genai.span.role"] == "gateway" {
				span = gateway
			}
			require.Len(t, p.Exemplars, 1)
			assertExemplarOf(t, span, p.Exemplars[0], "genai.time_to_first_token")
		}
	})
}

func assertExemplarOf(t *testing.T, span seen, e metricdata.Exemplar[float64], name string) {
	t.Helper()
	traceID, spanID := span.SpanContext().TraceID(), span.SpanContext().SpanID()
	assert.Equal(t, traceID[:], e.TraceID, name)
	assert.Equal(t, spanID[:], e.SpanID, name)
}

func TestARequestThatIsNotSampledIsNoExemplar(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record(t, sdktrace.WithSampler(sdktrace.NeverSample()))
		runInference(t, r)
		runCall(t, r)
		histograms := 0
		for name, m := range r.allMetrics() {
			if h, ok := m.Data.(metricdata.Histogram[float64]); ok {
				histograms++
				for _, p := range h.DataPoints {
					assert.Empty(t, p.Exemplars, name)
				}
			}
		}
		assert.Equal(t, 12, histograms)
	})
}

// Both may happen in one process: the value of the sampled request is the exemplar.
func TestTheSampledOfTwoRequestsIsTheExemplar(t *testing.T) {
	r := record(t)
	unsampled := genaitrace.New(genaitrace.WithMeterProvider(r.meters),
		genaitrace.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample()))))
	for _, tr := range []*genaitrace.Tracer{unsampled, r.Tracer, unsampled} {
		ctx, inf := tr.StartInference(t.Context(), genaitrace.Request{})
		_, d := inf.StartDecode(ctx)
		d.Token()
		inf.End()
	}
	for _, name := range []string{genaiconv.ServerTimeToFirstTokenName, genaiconv.ServerRequestDurationName} {
		p := r.point(name)
		assert.Equal(t, uint64(3), p.Count)
		require.Len(t, p.Exemplars, 1, name)
		assertExemplarOf(t, r.span(semconv.SpanInferenceGenerate), p.Exemplars[0], name)
	}
}
