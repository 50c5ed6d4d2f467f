package translate_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"

	"github.com/genaitrace/otelgenai/semconv/translate"
)

func translator(t testing.TB, from, to *translate.Vocabulary) *translate.Translator {
	t.Helper()
	tr, err := translate.New(from, to)
	require.NoError(t, err)
	return tr
}

// kv makes attributes from pairs of key and value.
func kv(pairs ...any) []attribute.KeyValue {
	var out []attribute.KeyValue
	for i := 0; i < len(pairs); i += 2 {
		key := pairs[i].(string)
		switch v := pairs[i+1].(type) {
		case string:
			out = append(out, attribute.String(key, v))
		case bool:
			out = append(out, attribute.Bool(key, v))
		case int:
			out = append(out, attribute.Int(key, v))
		case float64:
			out = append(out, attribute.Float64(key, v))
		case []string:
			out = append(out, attribute.StringSlice(key, v))
		}
	}
	return out
}

func parsed(t testing.TB, file string) *translate.Vocabulary {
	t.Helper()
	v, err := translate.Parse([]byte(file))
	require.NoError(t, err)
	return v
}

type findings = []translate.Finding

func TestAttributes(t *testing.T) {
	for _, test := range []struct {
		name      string
		from, to  *translate.Vocabulary
		in, want  []attribute.KeyValue
		wantFound findings
	}{
		// Semantic conventions up to 1.36.
		{
			name: "the system becomes the provider", from: translate.Semconv136, to: translate.Standard,
			in:   kv("gen_ai.system", "openai", "gen_ai.operation.name", "chat"),
			want: kv("gen_ai.provider.name", "openai", "gen_ai.operation.name", "chat"),
		},
		{
			name: "and its members get their new names", from: translate.Semconv136, to: translate.Semconv141,
			in:   kv("gen_ai.system", "xai"),
			want: kv("gen_ai.provider.name", "x_ai"),
		},
		{
			name: "the older of two spellings is read", from: translate.Semconv136, to: translate.Standard,
			in:   kv("gen_ai.system", "az.ai.openai"),
			want: kv("gen_ai.provider.name", "azure.ai.openai"),
		},
		{
			name: "and the newer is written", from: translate.Standard, to: translate.Semconv136,
			in:   kv("gen_ai.provider.name", "azure.ai.openai"),
			want: kv("gen_ai.system", "azure.ai.openai"),
		},
		{
			name: "a provider that no list names keeps its name", from: translate.Semconv136, to: translate.Standard,
			in:   kv("gen_ai.system", "vllm"),
			want: kv("gen_ai.provider.name", "vllm"),
		},
		{
			name: "a response format that says more than the output type is kept beside it", from: translate.Semconv136, to: translate.Standard,
			in:        kv("gen_ai.openai.request.response_format", "json_schema"),
			want:      kv("gen_ai.output.type", "json", "gen_ai.openai.request.response_format", "json_schema"),
			wantFound: findings{{"gen_ai.openai.request.response_format", translate.Narrowed, 1}},
		},
		{
			name: "and is dropped where the output type stands already", from: translate.Semconv136, to: translate.Standard,
			in:        kv("gen_ai.openai.request.response_format", "json_object", "gen_ai.output.type", "json"),
			want:      kv("gen_ai.output.type", "json"),
			wantFound: findings{{"gen_ai.openai.request.response_format", translate.Duplicate, 1}},
		},
		{
			name: "content has no target", from: translate.Semconv136, to: translate.Standard,
			in:        kv("gen_ai.prompt", "hi", "gen_ai.prompt.0.role", "user", "gen_ai.prompt.0.content", "hi"),
			want:      kv("gen_ai.prompt", "hi", "gen_ai.prompt.0.role", "user", "gen_ai.prompt.0.content", "hi"),
			wantFound: findings{{"gen_ai.prompt", translate.NoTarget, 1}, {"gen_ai.prompt.*", translate.NoTarget, 2}},
		},
		// 1.37 to 1.41.
		{
			name: "tokens written to a cache", from: translate.Semconv141, to: translate.Standard,
			in:   kv("gen_ai.usage.input_tokens", 100, "gen_ai.usage.cache_creation.input_tokens", 20, "gen_ai.usage.cache_read.input_tokens", 30),
			want: kv("gen_ai.usage.input_tokens", 100, "gen_ai.usage.cache_write.input_tokens", 20, "gen_ai.usage.cache_read.input_tokens", 30),
		},
		{
			name: "top_k was a double", from: translate.Semconv141, to: translate.Standard,
			in:   kv("gen_ai.operation.name", "chat", "gen_ai.request.top_k", 40.0),
			want: kv("gen_ai.operation.name", "chat", "gen_ai.request.top_k", 40),
		},
		{
			name: "and stays one if it is no whole number", from: translate.Semconv141, to: translate.Standard,
			in:        kv("gen_ai.request.top_k", 40.5),
			want:      kv("gen_ai.request.top_k", 40.5),
			wantFound: findings{{"gen_ai.request.top_k", translate.NotExact, 1}},
		},
		{
			name: "of a retrieval it has a key of its own now", from: translate.Semconv141, to: translate.Standard,
			in:   kv("gen_ai.request.top_k", 5.0, "gen_ai.operation.name", "retrieval"),
			want: kv("gen_ai.retrieval.top_k", 5, "gen_ai.operation.name", "retrieval"),
		},
		{
			name: "which is written only on a retrieval", from: translate.Standard, to: translate.Semconv141,
			in:        kv("gen_ai.retrieval.top_k", 5, "gen_ai.operation.name", "chat"),
			want:      kv("gen_ai.retrieval.top_k", 5, "gen_ai.operation.name", "chat"),
			wantFound: findings{{"gen_ai.retrieval.top_k", translate.NoTarget, 1}},
		},
		{
			name: "a workflow is an agent now", from: translate.Semconv141, to: translate.Standard,
			in:   kv("gen_ai.workflow.name", "support"),
			want: kv("gen_ai.agent.name", "support"),
		},
		{
			name: "and comes back as a workflow", from: translate.Standard, to: translate.Semconv141,
			in:   kv("gen_ai.operation.name", "invoke_workflow", "gen_ai.agent.name", "support"),
			want: kv("gen_ai.operation.name", "invoke_workflow", "gen_ai.workflow.name", "support"),
		},
		{
			name: "an agent stays an agent", from: translate.Standard, to: translate.Semconv141,
			in:   kv("gen_ai.operation.name", "invoke_agent", "gen_ai.agent.name", "triage"),
			want: kv("gen_ai.operation.name", "invoke_agent", "gen_ai.agent.name", "triage"),
		},
		{
			name: "but not the agent within it", from: translate.Semconv141, to: translate.Standard,
			in:        kv("gen_ai.workflow.name", "support", "gen_ai.agent.name", "triage"),
			want:      kv("gen_ai.workflow.name", "support", "gen_ai.agent.name", "triage"),
			wantFound: findings{{"gen_ai.workflow.name", translate.Conflict, 1}},
		},
		// House.
		{
			name: "milliseconds become seconds", from: translate.House, to: translate.Standard,
			in:   kv("ai.response.delay_ms", 350.2, "llm.ttft_ms", 360.7),
			want: kv("gen_ai.response.time_to_first_chunk", 0.3502, "llm.ttft_ms", 360.7),
		},
		{
			name: "whole ones too", from: translate.House, to: translate.Standard,
			in:   kv("ai.response.delay_ms", 350),
			want: kv("gen_ai.response.time_to_first_chunk", 0.35),
		},
		{
			name: "seconds become milliseconds", from: translate.Standard, to: translate.House,
			in:   kv("gen_ai.response.time_to_first_chunk", 0.3502, "gen_ai.request.model", "m"),
			want: kv("ai.response.delay_ms", 350.2, "ai.model.name", "m"),
		},
		{
			name: "all spellings of the model", from: translate.House, to: translate.Standard,
			in:        kv("llm.model.name", "m", "model.name", "m"),
			want:      kv("gen_ai.request.model", "m"),
			wantFound: findings{{"model.name", translate.Duplicate, 1}},
		},
		{
			name: "the official key wins", from: translate.House, to: translate.Standard,
			in:        kv("ai.model.name", "asked", "gen_ai.request.model", "official"),
			want:      kv("ai.model.name", "asked", "gen_ai.request.model", "official"),
			wantFound: findings{{"ai.model.name", translate.Conflict, 1}},
		},
		{
			name: "a twin that says the same goes", from: translate.House, to: translate.Standard,
			in:   kv("ai.response.delay_ms", 40.5, "gen_ai.response.time_to_first_chunk", 0.0405, "ai.tokens.input", 5, "gen_ai.usage.input_tokens", 5),
			want: kv("gen_ai.response.time_to_first_chunk", 0.0405, "gen_ai.usage.input_tokens", 5),
			wantFound: findings{
				{"ai.response.delay_ms", translate.Duplicate, 1}, {"ai.tokens.input", translate.Duplicate, 1},
			},
		},
		{
			name: "then the row that stands first", from: translate.House, to: translate.Standard,
			in:        kv("model.name", "b", "ai.model.name", "a"),
			want:      kv("model.name", "b", "gen_ai.request.model", "a"),
			wantFound: findings{{"model.name", translate.Conflict, 1}},
		},
		{
			name: "characters are not tokens", from: translate.House, to: translate.Standard,
			in:        kv("ai.input_tokens", 500, "ai.tokens.count", 120),
			want:      kv("ai.input_tokens", 500, "gen_ai.usage.input_tokens", 120),
			wantFound: findings{{"ai.input_tokens", translate.NoTarget, 1}},
		},
		{
			name: "the rate limiter is not the queue", from: translate.House, to: translate.Standard,
			in:   kv("ai.queue.wait_ms", 3),
			want: kv("genai.ratelimit.wait_ms", 3.0),
		},
		{
			name: "an operation that may be any of three", from: translate.House, to: translate.Standard,
			in:        kv("ai.operation", "llm.generate"),
			want:      kv("ai.operation", "llm.generate"),
			wantFound: findings{{"ai.operation", translate.Ambiguous, 1}},
		},
		// Where both vocabularies have the key, it stands once.
		{
			name: "a member that the target reads as another one", from: translate.Semconv141, to: named(t, "envoy-ai-gateway"),
			in:        kv("gen_ai.provider.name", "azure.openai"),
			want:      kv("gen_ai.provider.name", "azure.openai"),
			wantFound: findings{{"gen_ai.provider.name", translate.Narrowed, 1}},
		},
		{
			name: "a member without a target keeps its place", from: parsed(t, `{"name": "fork", "extends": "openinference", "attributes": [{"theirs": "fork.kind", "ours": "gen_ai.operation.name"}]}`), to: translate.OpenInference,
			in:        kv("openinference.span.kind", "GUARDRAIL", "fork.kind", "execute_tool"),
			want:      kv("openinference.span.kind", "GUARDRAIL", "fork.kind", "execute_tool"),
			wantFound: findings{{"fork.kind", translate.Conflict, 1}, {"openinference.span.kind", translate.NoTarget, 1}},
		},
		// OpenInference.
		{
			name: "a call of a model", from: translate.OpenInference, to: translate.Standard,
			in: kv("openinference.span.kind", "LLM", "llm.model_name", "gpt-4o", "llm.provider", "azure", "llm.system", "openai",
				"llm.token_count.prompt", 100, "llm.token_count.completion", 20, "llm.token_count.total", 120,
				"llm.token_count.prompt_details.cache_read", 40, "llm.finish_reason", "stop",
				"llm.input_messages.0.message.role", "user", "llm.input_messages.0.message.content", "hi",
				"llm.invocation_parameters", "{}", "http.route", "/x"),
			want: kv("openinference.span.kind", "LLM", "gen_ai.response.model", "gpt-4o", "gen_ai.provider.name", "azure.ai.openai", "llm.system", "openai",
				"gen_ai.usage.input_tokens", 100, "gen_ai.usage.output_tokens", 20, "llm.token_count.total", 120,
				"gen_ai.usage.cache_read.input_tokens", 40, "gen_ai.response.finish_reasons", []string{"stop"},
				"gen_ai.input.messages", `[{"role":"user","parts":[{"type":"text","content":"hi"}]}]`,
				"llm.invocation_parameters", "{}", "http.route", "/x"),
			wantFound: findings{
				{"llm.invocation_parameters", translate.NoTarget, 1},
				{"llm.system", translate.Conflict, 1}, {"llm.token_count.total", translate.NoTarget, 1},
				{"openinference.span.kind", translate.Ambiguous, 1},
			},
		},
		{
			name: "the operation tells which kind of call", from: translate.OpenInference, to: translate.Standard,
			in:        kv("openinference.span.kind", "LLM", "gen_ai.operation.name", "chat"),
			want:      kv("gen_ai.operation.name", "chat"),
			wantFound: findings{{"openinference.span.kind", translate.Duplicate, 1}},
		},
		{
			name: "and is kept where the kind says less", from: translate.Standard, to: translate.OpenInference,
			in:        kv("gen_ai.operation.name", "chat"),
			want:      kv("openinference.span.kind", "LLM", "gen_ai.operation.name", "chat"),
			wantFound: findings{{"gen_ai.operation.name", translate.Narrowed, 1}},
		},
		{
			name: "an operation without a kind", from: translate.Standard, to: translate.OpenInference,
			in:        kv("gen_ai.operation.name", "search_memory"),
			want:      kv("gen_ai.operation.name", "search_memory"),
			wantFound: findings{{"gen_ai.operation.name", translate.NoTarget, 1}},
		},
		{
			name: "the input of a tool", from: translate.OpenInference, to: translate.Standard,
			in:   kv("input.value", `{"q":1}`, "openinference.span.kind", "TOOL", "output.value", "2"),
			want: kv("gen_ai.tool.call.arguments", `{"q":1}`, "gen_ai.operation.name", "execute_tool", "gen_ai.tool.call.result", "2"),
		},
		{
			name: "of a retriever", from: translate.OpenInference, to: translate.Standard,
			in:   kv("input.value", "why", "openinference.span.kind", "RETRIEVER"),
			want: kv("gen_ai.retrieval.query.text", "why", "gen_ai.operation.name", "retrieval"),
		},
		{
			name: "and of anything else", from: translate.OpenInference, to: translate.Standard,
			in:        kv("input.value", "why", "openinference.span.kind", "CHAIN"),
			want:      kv("input.value", "why", "gen_ai.operation.name", "invoke_workflow"),
			wantFound: findings{{"input.value", translate.NoTarget, 1}},
		},
		{
			name: "the tool's kind is looked for among what was translated", from: translate.Standard, to: translate.OpenInference,
			in:   kv("gen_ai.tool.call.result", "2", "gen_ai.operation.name", "execute_tool"),
			want: kv("output.value", "2", "openinference.span.kind", "TOOL"),
		},
		{
			name: "two finish reasons are not one", from: translate.Standard, to: translate.OpenInference,
			in:        kv("gen_ai.response.finish_reasons", []string{"stop", "length"}),
			want:      kv("gen_ai.response.finish_reasons", []string{"stop", "length"}),
			wantFound: findings{{"gen_ai.response.finish_reasons", translate.NotExact, 1}},
		},
		// Engines.
		{
			name: "times of vLLM", from: translate.VLLM, to: translate.Standard,
			in: kv("gen_ai.latency.time_in_queue", 0.035, "gen_ai.latency.time_to_first_token", 0.5,
				"gen_ai.latency.time_in_model_prefill", 0.12, "gen_ai.latency.time_in_model_decode", 1.8,
				"gen_ai.latency.time_in_model_inference", 1.92, "gen_ai.usage.prompt_tokens", 2456, "gen_ai.request.n", 1),
			want: kv("llm.queue_wait_ms", 35.0, "llm.ttft_ms", 500.0,
				"ai.prefill.duration_ms", 120.0, "ai.decode.duration_ms", 1800.0,
				"gen_ai.latency.time_in_model_inference", 1.92, "gen_ai.usage.input_tokens", 2456, "gen_ai.request.choice.count", 1),
			wantFound: findings{{"gen_ai.latency.time_in_model_inference", translate.NoTarget, 1}},
		},
		{
			name: "the prefill time of SGLang is another one", from: translate.SGLang, to: translate.Standard,
			in:        kv("gen_ai.latency.time_in_queue", 0.035, "gen_ai.latency.time_in_model_prefill", 0.155),
			want:      kv("llm.queue_wait_ms", 35.0, "gen_ai.latency.time_in_model_prefill", 0.155),
			wantFound: findings{{"gen_ai.latency.time_in_model_prefill", translate.NoTarget, 1}},
		},
		{
			name: "and must not be taken for vLLM's", from: translate.SGLang, to: translate.VLLM,
			in:        kv("gen_ai.latency.time_in_queue", 0.035, "gen_ai.latency.time_in_model_prefill", 0.155, "gen_ai.latency.time_in_model_decode", 1.5),
			want:      kv("gen_ai.latency.time_in_queue", 0.035, "sglang.gen_ai.latency.time_in_model_prefill", 0.155, "gen_ai.latency.time_in_model_decode", 1.5),
			wantFound: findings{{"gen_ai.latency.time_in_model_prefill", translate.NoTarget, 1}},
		},
		{
			name: "until it comes home", from: translate.VLLM, to: translate.SGLang,
			in:   kv("sglang.gen_ai.latency.time_in_model_prefill", 0.155),
			want: kv("gen_ai.latency.time_in_model_prefill", 0.155),
		},
		{
			name: "a text is no time", from: translate.VLLM, to: translate.Standard,
			in:        kv("gen_ai.latency.time_in_queue", "35ms"),
			want:      kv("gen_ai.latency.time_in_queue", "35ms"),
			wantFound: findings{{"gen_ai.latency.time_in_queue", translate.NotExact, 1}},
		},
		{
			name: "an engine's times for a dashboard of OpenInference have no place", from: translate.VLLM, to: translate.OpenInference,
			in:        kv("gen_ai.latency.time_in_queue", 0.035, "gen_ai.usage.completion_tokens", 5),
			want:      kv("gen_ai.latency.time_in_queue", 0.035, "llm.token_count.completion", 5),
			wantFound: findings{{"gen_ai.latency.time_in_queue", translate.NoTarget, 1}},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			tr := translator(t, test.from, test.to)
			assert.Equal(t, test.want, tr.Attributes(test.in))
			assert.Equal(t, test.wantFound, tr.Report().Findings)
		})
	}
}
