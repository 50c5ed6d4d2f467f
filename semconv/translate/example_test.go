package translate_test

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/genaitrace/otelgenai/semconv/translate"
)

func ExampleNewSpanExporter() {
	tr, err := translate.New(translate.OpenInference, translate.Standard)
	if err != nil {
		fmt.Println(err)
		return
	}
	backend := tracetest.NewInMemoryExporter() // in a service: the OTLP exporter
	tp := sdktrace.NewTracerProvider(sdktrace.WithSyncer(translate.NewSpanExporter(backend, tr)))

	_, span := tp.Tracer("example").Start(context.Background(), "ChatCompletion")
	span.SetAttributes(
		attribute.String("llm.provider", "azure"),
		attribute.Int("llm.token_count.prompt", 2456),
		attribute.Int("llm.token_count.total", 2968),
	)
	span.End()

	for _, a := range backend.GetSpans()[0].Attributes {
		fmt.Println(a.Key, a.Value.String())
	}
	for _, f := range tr.Report().Findings {
		fmt.Printf("%s: %s (%d)\n", f.Key, f.Reason, f.Count)
	}
	// Output:
	// gen_ai.provider.name azure.ai.openai
	// gen_ai.usage.input_tokens 2456
	// llm.token_count.total 2968
	// llm.token_count.total: no target (1)
}

// Messages are one attribute a field in OpenInference, and one structured
// attribute in the conventions.
func ExampleTranslator_Attributes() {
	tr, err := translate.New(translate.OpenInference, translate.Standard)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, a := range tr.Attributes([]attribute.KeyValue{
		attribute.String("llm.input_messages.0.message.role", "user"),
		attribute.String("llm.input_messages.0.message.content", "Weather in Paris?"),
		attribute.Int("llm.token_count.prompt", 12),
	}) {
		fmt.Println(a.Key, a.Value.String())
	}
	// Output:
	// gen_ai.input.messages [{"role":"user","parts":[{"type":"text","content":"Weather in Paris?"}]}]
	// gen_ai.usage.input_tokens 12
}

func ExampleNamed() {
	engine, err := translate.Named("loongsuite")
	if err != nil {
		fmt.Println(err)
		return
	}
	tr, err := translate.New(engine, translate.Standard)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(tr.Attributes([]attribute.KeyValue{attribute.Int("gen_ai.response.ttft_ms", 350)}))
	_, err = translate.Named("longsuite")
	fmt.Println(err != nil)
	// Output:
	// [{"gen_ai.response.time_to_first_chunk":0.35}]
	// true
}

// Dashboards that were made for the conventions up to 1.41 keep working.
func ExampleTranslator_Metrics() {
	tr, err := translate.New(translate.Standard, translate.Semconv141)
	if err != nil {
		fmt.Println(err)
		return
	}
	reader := sdkmetric.NewManualReader()
	meter := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter("example")
	for operation, name := range map[string]string{
		"chat":       "gen_ai.client.inference.duration",
		"embeddings": "gen_ai.client.embeddings.duration",
	} {
		h, err := meter.Float64Histogram(name, metric.WithUnit("s"))
		if err != nil {
			fmt.Println(err)
			return
		}
		h.Record(context.Background(), 0.35, metric.WithAttributes(attribute.String("gen_ai.operation.name", operation)))
	}
	var collected metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &collected); err != nil {
		fmt.Println(err)
		return
	}
	for _, m := range tr.Metrics(&collected).ScopeMetrics[0].Metrics {
		fmt.Println(m.Name, "with", len(m.Data.(metricdata.Histogram[float64]).DataPoints), "series")
	}
	// Output: gen_ai.client.operation.duration with 2 series
}

func ExampleParse() {
	engine, err := translate.Parse([]byte(`{
		"name": "engine",
		"attributes": [
			{"theirs": "gen_ai.latency.time_in_model_prefill", "ours": "ai.prefill.duration_ms", "type": "int", "unit": "ns"}
		]
	}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	tr, err := translate.New(engine, translate.Standard)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(tr.Attributes([]attribute.KeyValue{attribute.Int("gen_ai.latency.time_in_model_prefill", 120_250_000)}))
	// Output: [{"ai.prefill.duration_ms":120.25}]
}
