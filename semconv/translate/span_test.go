package translate_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/semconv/translate"
)

// record sends spans through a real provider and a translating exporter.
func record(t *testing.T, tr *translate.Translator, start func(trace.Tracer)) tracetest.SpanStubs {
	t.Helper()
	memory := tracetest.NewInMemoryExporter()
	tp := sdktrace.NewTracerProvider(sdktrace.WithSyncer(translate.NewSpanExporter(memory, tr)),
		sdktrace.WithResource(resource.NewSchemaless(attribute.String("gen_ai.system", "of the resource"))))
	start(tp.Tracer("test"))
	spans := memory.GetSpans()
	require.NoError(t, tp.Shutdown(t.Context()))
	return spans
}

func TestSpanExporterTranslatesNameAttributesEventsAndLinks(t *testing.T) {
	tr := translator(t, translate.House, translate.Standard)
	spans := record(t, tr, func(tracer trace.Tracer) {
		other := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{1}})
		_, s := tracer.Start(t.Context(), "llm.generate", trace.WithSpanKind(trace.SpanKindClient),
			trace.WithAttributes(kv("ai.operation", "chat", "ai.model.name", "qwen2.5-7b-instruct")...),
			trace.WithLinks(trace.Link{SpanContext: other, Attributes: kv("request.id", "r1")}))
		s.AddEvent("token_emitted", trace.WithAttributes(kv("index", 0)...))
		s.AddEvent("first_token", trace.WithAttributes(kv("ai.response.delay_ms", 40.5)...))
		s.End()
	})
	require.Len(t, spans, 1)
	s := spans[0]
	assert.Equal(t, "chat qwen2.5-7b-instruct", s.Name)
	assert.Equal(t, trace.SpanKindClient, s.SpanKind)
	assert.ElementsMatch(t, kv("gen_ai.operation.name", "chat", "gen_ai.request.model", "qwen2.5-7b-instruct"), s.Attributes)
	assert.Equal(t, "first_token", s.Events[0].Name)
	assert.Equal(t, kv("gen_ai.response.time_to_first_chunk", 0.0405), s.Events[1].Attributes)
	assert.Equal(t, kv("genai.request_id", "r1"), s.Links[0].Attributes)
	assert.Contains(t, s.Resource.Attributes(), attribute.String("gen_ai.system", "of the resource"), "a resource is not translated")
	assert.Empty(t, tr.Report().Findings)
}

func TestSpanNames(t *testing.T) {
	for _, test := range []struct {
		name     string
		from, to *translate.Vocabulary
		attrs    []attribute.KeyValue
		want     string
	}{
		{"llm_request", translate.VLLM, translate.Standard, nil, "inference.generate"},
		{"inference.generate", translate.House, translate.VLLM, nil, "llm_request"},
		{"gpu.decode", translate.House, translate.Standard, nil, "inference.decode"},
		{"inference.decode", translate.Standard, translate.House, nil, "inference.decode"},
		{"llm.generate", translate.House, translate.Semconv141, kv("ai.operation", "chat", "model.name", "m"), "chat m"},
		{"llm.generate", translate.House, translate.Standard, kv("ai.operation", "chat"), "llm.generate"}, // the model is missing
		{"gen_ai.system", translate.Semconv136, translate.Standard, nil, "gen_ai.system"},
	} {
		t.Run(test.name+" to "+test.to.String(), func(t *testing.T) {
			s := tracetest.SpanStub{Name: test.name, Attributes: test.attrs}.Snapshot()
			assert.Equal(t, test.want, translator(t, test.from, test.to).Span(s).Name())
		})
	}
}

func TestEventNames(t *testing.T) {
	for _, test := range []struct {
		name      string
		from, to  *translate.Vocabulary
		attrs     []attribute.KeyValue
		want      string
		wantFound findings
	}{
		{"token_emitted", translate.House, translate.Standard, kv("index", 0, "count", 1), "first_token", nil},
		{"token_emitted", translate.House, translate.Standard, kv("index", 7), "token_emitted", findings{{"token_emitted", translate.NoTarget, 1}}},
		{"first_token", translate.House, translate.Standard, kv("llm.ttft_ms", 350.5), "first_token", nil},
		{"first_token", translate.Standard, translate.House, nil, "first_token", nil},
		{"first_token", translate.Standard, translate.OpenInference, nil, "first_token", findings{{"first_token", translate.NoTarget, 1}}},
		{"gen_ai.client.operation.exception", translate.Semconv141, translate.Standard, nil, "gen_ai.client.inference.exception", nil},
		{"gen_ai.client.inference.exception", translate.House, translate.Semconv141, nil, "gen_ai.client.operation.exception", nil},
		{"gen_ai.choice", translate.Semconv136, translate.Standard, nil, "gen_ai.choice", findings{{"gen_ai.choice", translate.NoTarget, 1}}},
		{"gen_ai.choice", translate.Semconv136, translate.Semconv136, nil, "gen_ai.choice", nil},
		{"exception", translate.Semconv141, translate.Standard, kv("exception.type", "x"), "exception", nil},
	} {
		t.Run(test.name+" from "+test.from.String()+" to "+test.to.String(), func(t *testing.T) {
			tr := translator(t, test.from, test.to)
			s := tracetest.SpanStub{Name: "chat", Events: []sdktrace.Event{{Name: test.name, Attributes: test.attrs, DroppedAttributeCount: 3}}}.Snapshot()
			got := tr.Span(s).Events()[0]
			assert.Equal(t, test.want, got.Name)
			assert.Equal(t, 3, got.DroppedAttributeCount)
			assert.Equal(t, test.name, s.Events()[0].Name, "the span of the caller is not written to")
			assert.Equal(t, test.wantFound, tr.Report().Findings)
		})
	}
}

func TestSpanWithoutAnythingToTranslateIsPassedOn(t *testing.T) {
	tr := translator(t, translate.Semconv136, translate.Standard)
	s := tracetest.SpanStub{Name: "GET /x", Attributes: httpAttributes(), Events: []sdktrace.Event{{Name: "e"}}}.Snapshot()
	assert.IsType(t, s, tr.Span(s))

	old := tracetest.SpanStub{Name: "chat m", Attributes: kv("gen_ai.system", "openai")}.Snapshot()
	spans := []sdktrace.ReadOnlySpan{s, old}
	seen := &exporter{}
	require.NoError(t, translate.NewSpanExporter(seen, tr).ExportSpans(t.Context(), spans))
	assert.IsType(t, s, seen.spans[0])
	assert.Equal(t, kv("gen_ai.provider.name", "openai"), seen.spans[1].Attributes())
	assert.Equal(t, kv("gen_ai.system", "openai"), spans[1].Attributes(), "the list of the caller is not written to")

	require.NoError(t, translate.NewSpanExporter(seen, tr).ExportSpans(t.Context(), spans[:1]))
	assert.Same(t, &spans[0], &seen.spans[0], "a list without changes is not copied")
}

type exporter struct {
	spans []sdktrace.ReadOnlySpan
	err   error
}

func (e *exporter) ExportSpans(_ context.Context, spans []sdktrace.ReadOnlySpan) error {
	e.spans = spans
	return e.err
}

func (e *exporter) Shutdown(context.Context) error { return e.err }

func TestErrorsOfTheNextExporterPassUnchanged(t *testing.T) {
	failure := errors.New("backend is down")
	e := translate.NewSpanExporter(&exporter{err: failure}, translator(t, translate.House, translate.Standard))
	assert.Same(t, failure, e.ExportSpans(t.Context(), nil))
	assert.Same(t, failure, e.Shutdown(t.Context()))
}

func TestNilIsHarmless(t *testing.T) {
	var none *translate.Translator
	attrs := kv("gen_ai.system", "openai")
	assert.Equal(t, attrs, none.Attributes(attrs))
	assert.Nil(t, none.Span(nil))
	assert.Nil(t, none.Metrics(nil))
	assert.Empty(t, none.Report())
	assert.Nil(t, translate.NewMetricExporter(nil, none))
	assert.NoError(t, translate.NewSpanExporter(nil, none).ExportSpans(t.Context(), nil))
	assert.NoError(t, translate.NewSpanExporter(nil, none).Shutdown(t.Context()))
	assert.NoError(t, translate.NewSpanExporter(&exporter{}, none).ExportSpans(t.Context(), []sdktrace.ReadOnlySpan{nil}))

	tr := translator(t, translate.House, translate.Standard)
	assert.Nil(t, tr.Attributes(nil))
	assert.Nil(t, tr.Span(nil))
	assert.Nil(t, tr.Metrics(nil))

	_, err := translate.New(nil, translate.Standard)
	require.Error(t, err)
	_, err = translate.New(&translate.Vocabulary{}, translate.Standard)
	require.Error(t, err)
	assert.Equal(t, "none", (*translate.Vocabulary)(nil).String())
	assert.Equal(t, "unknown", translate.Reason(99).String())
}
