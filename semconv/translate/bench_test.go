package translate_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/genaitrace/otelgenai/semconv/translate"
)

func httpAttributes() []attribute.KeyValue {
	return kv("http.request.method", "POST", "url.scheme", "https", "url.path", "/v1/orders", "http.route", "/v1/orders",
		"server.address", "shop.example", "server.port", 443, "client.address", "10.0.0.1", "network.protocol.version", "1.1",
		"user_agent.original", "curl", "http.response.status_code", 200, "network.peer.address", "10.0.0.2", "network.peer.port", 4711)
}

// chatAttributes are twelve attributes as instrumentations of 2025 write them;
// two of them changed their names.
func chatAttributes() []attribute.KeyValue {
	return kv("gen_ai.operation.name", "chat", "gen_ai.system", "openai", "gen_ai.request.model", "gpt-4o",
		"gen_ai.request.temperature", 0.7, "gen_ai.request.max_tokens", 512, "gen_ai.request.top_p", 0.9,
		"gen_ai.response.id", "chatcmpl-1", "gen_ai.response.model", "gpt-4o-2024-08-06",
		"gen_ai.response.finish_reasons", []string{"stop"}, "gen_ai.usage.prompt_tokens", 120,
		"gen_ai.usage.output_tokens", 40, "server.address", "api.openai.com")
}

func TestASpanWithoutAnythingToTranslateCostsNoAllocation(t *testing.T) {
	for _, v := range []*translate.Vocabulary{translate.Semconv136, translate.OpenInference, translate.House} {
		tr := translator(t, v, translate.Standard)
		s := tracetest.SpanStub{Name: "POST /v1/orders", Attributes: httpAttributes()}.Snapshot()
		assert.Zero(t, testing.AllocsPerRun(100, func() { tr.Span(s) }), v)
	}
}

func BenchmarkSpan(b *testing.B) {
	for _, bench := range []struct {
		name  string
		from  *translate.Vocabulary
		attrs []attribute.KeyValue
	}{
		{"nothing to translate", translate.Semconv136, httpAttributes()},
		{"two of twelve renamed", translate.Semconv136, chatAttributes()},
		{"twelve of twelve renamed", translate.OpenInference, kv(
			"openinference.span.kind", "TOOL", "llm.provider", "aws", "llm.request.model_name", "m", "llm.model_name", "m",
			"llm.token_count.prompt", 1, "llm.token_count.completion", 2, "llm.token_count.prompt_details.cache_read", 1,
			"llm.finish_reason", "stop", "session.id", "s", "agent.name", "a", "tool.name", "t", "input.value", "{}")},
	} {
		b.Run(bench.name, func(b *testing.B) {
			tr := translator(b, bench.from, translate.Standard)
			s := tracetest.SpanStub{Name: "chat gpt-4o", Attributes: bench.attrs}.Snapshot()
			b.ReportAllocs()
			for b.Loop() {
				tr.Span(s)
			}
			b.ReportMetric(float64(len(bench.attrs)*b.N)/b.Elapsed().Seconds(), "attributes/s")
		})
	}
}

func BenchmarkNew(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := translate.New(translate.OpenInference, translate.Standard); err != nil {
			b.Fatal(err)
		}
	}
}
