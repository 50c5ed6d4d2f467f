package contract_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"

	"github.com/genaitrace/otelgenai/capture"
	"github.com/genaitrace/otelgenai/contract"
)

// vocabulary spells the facts that the requirements name.
type vocabulary struct {
	operation, model, input, output string
	delay                           func(ms float64) attribute.KeyValue
}

var vocabularies = map[string]vocabulary{
	"house": {"ai.operation", "ai.model.name", "ai.tokens.input", "ai.tokens.output", func(ms float64) attribute.KeyValue {
		return number("ai.response.delay_ms", ms)
	}},
	"official": {"gen_ai.operation.name", "gen_ai.request.model", "gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens", func(ms float64) attribute.KeyValue {
		return number("gen_ai.response.time_to_first_chunk", ms/1000)
	}},
}

// The attributes that the requirements ask for, one row a sentence of theirs.
func TestTheRequirementsHoldInEitherVocabulary(t *testing.T) {
	c, err := contract.Builtin("requirements")
	require.NoError(t, err)
	for name, v := range vocabularies {
		model := func(value string) attribute.KeyValue { return text(v.model, value) }
		does := func(operation string) attribute.KeyValue { return text(v.operation, operation) }
		provider := text("gen_ai.provider.name", "vllm")
		call := func(parts ...any) *node {
			return span("chat toy-1", 0, 100, append([]any{client, provider}, parts...)...)
		}
		streamed := truth("gen_ai.request.stream", true)
		engine := func(parts ...any) *node {
			return span("inference.generate", 0, 100, append([]any{text("genai.span.role", "inference"), provider}, parts...)...)
		}
		for _, tt := range []struct {
			name string
			span *node
			want []string // the keys that are missing, in the spelling of the contract
		}{
			// ai.operation on inference, embedding, retrieval, rerank, tool and agent spans.
			{"inference", call(does("chat"), model("toy-1"), whole(v.input, 12), whole(v.output, 3)), nil},
			{"inference in the engine", engine(does("chat"), model("toy-1"), whole(v.input, 12)), nil},
			{"inference in the engine without an operation", engine(model("toy-1"), whole(v.input, 12)), []string{"ai.operation"}},
			{"an embedding", span("embeddings bge", 0, 9, client, provider, does("embeddings"), model("bge"), whole(v.input, 12)), nil},
			{"an embedding without an operation", span("embeddings bge", 0, 9, client, provider, model("bge"), whole(v.input, 12)), []string{"ai.operation"}},
			{"a retrieval", span("retrieval handbook", 0, 9, client, does("retrieval")), nil},
			{"a retrieval without an operation", span("retrieval handbook", 0, 9, client), []string{"ai.operation"}},
			{"a rerank", span("rag.rerank", 0, 9, text("genai.span.role", "rerank"), does("rerank")), nil},
			{"a rerank without an operation", span("rag.rerank", 0, 9, text("genai.span.role", "rerank")), []string{"ai.operation"}},
			{"a tool", span("execute_tool clock", 0, 9, does("execute_tool"), text("gen_ai.tool.name", "clock")), nil},
			{"a tool without an operation", span("execute_tool clock", 0, 9, text("gen_ai.tool.name", "clock")), []string{"ai.operation"}},
			{"an agent", span("invoke_agent a", 0, 9, does("invoke_agent"), text("gen_ai.agent.name", "a")), nil},
			{"an agent without an operation", span("invoke_agent a", 0, 9, text("gen_ai.agent.name", "a")), []string{"ai.operation"}},

			// ai.model.name on model calls.
			{"a call without a model", span("chat", 0, 100, client, provider, does("chat"), whole(v.input, 12)), []string{"ai.model.name"}},
			{"an embedding without a model", span("embeddings", 0, 9, client, provider, does("embeddings"), whole(v.input, 12)), []string{"ai.model.name"}},

			// ai.tokens.input there unless the server sent none.
			{"a call without usage", call(does("chat"), model("toy-1")), []string{"ai.tokens.input"}},
			{"a call with half of the usage", call(does("chat"), model("toy-1"), whole(v.output, 3)), []string{"ai.tokens.input"}},
			{"a stream without usage, as servers send it unless asked", call(does("chat"), model("toy-1"), streamed), nil},
			{"a stream with half of the usage", call(does("chat"), model("toy-1"), streamed, whole(v.output, 3)), []string{"ai.tokens.input"}},
			{"a call that failed", call(does("chat"), model("toy-1"), failed, text("error.type", "timeout")), nil},

			// ai.response.delay_ms on CLIENT streams that delivered a chunk.
			{"a stream with a chunk", call(does("chat"), model("toy-1"), streamed, whole("genai.chunk.count", 9), v.delay(40)), nil},
			{"a stream with a chunk and no delay", call(does("chat"), model("toy-1"), streamed, whole("genai.chunk.count", 9)), []string{"ai.response.delay_ms"}},
			{"a stream with a token and no delay", call(does("chat"), model("toy-1"), streamed, event("first_token", 5)), []string{"ai.response.delay_ms"}},
			{"a stream with an end and no delay", call(does("chat"), model("toy-1"), streamed, attribute.StringSlice("gen_ai.response.finish_reasons", []string{"stop"})), []string{"ai.response.delay_ms"}},
			{"a stream that delivered nothing", call(does("chat"), model("toy-1"), streamed), nil},
			{"a stream inside this process", call(internal, does("chat"), model("toy-1"), streamed, whole("genai.chunk.count", 9)), nil},
			{"a call that was not streamed", call(does("chat"), model("toy-1"), whole(v.input, 12), whole("genai.chunk.count", 9)), nil},
		} {
			t.Run(name+" "+tt.name, func(t *testing.T) {
				var missing []string
				for _, f := range c.Check(traces(tt.span)).Findings {
					switch f.Rule {
					case "attribute.missing":
						missing = append(missing, f.Key)
					case "convention.missing", "span.name": // the vocabulary and the name miss the same
						assert.NotEmpty(t, tt.want, f.Text())
					default:
						assert.Fail(t, "a finding that no row expects", f.Text())
					}
				}
				assert.Equal(t, tt.want, missing)
			})
		}
	}
}

func TestTheRequirementsKnowWrongValues(t *testing.T) {
	c, err := contract.Builtin("requirements")
	require.NoError(t, err)
	for name, v := range vocabularies {
		call := func(parts ...any) *capture.Capture {
			return traces(span("chat toy-1", 0, 100, append([]any{client, text("gen_ai.provider.name", "vllm"), text(v.operation, "chat"), text(v.model, "toy-1")}, parts...)...))
		}
		for rule, got := range map[string]*capture.Capture{
			"attribute.range": call(whole(v.input, 3_000_000)),
			"attribute.type":  call(text(v.input, "12")),
			"timing.at_most":  call(whole(v.input, 12), truth("gen_ai.request.stream", true), v.delay(40_000)),
		} {
			assert.Equal(t, []string{rule}, rulesOf(c.Check(got)), "%s: %s", name, rule)
		}
	}
}
