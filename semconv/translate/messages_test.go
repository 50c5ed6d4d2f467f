package translate_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"

	"github.com/genaitrace/otelgenai/semconv/genaiconv"
	"github.com/genaitrace/otelgenai/semconv/translate"
)

func named(t testing.TB, name string) *translate.Vocabulary {
	t.Helper()
	v, err := translate.Named(name)
	require.NoError(t, err)
	return v
}

const (
	inMessages  = "gen_ai.input.messages"
	outMessages = "gen_ai.output.messages"
)

func TestMessages(t *testing.T) {
	openllmetry := named(t, "openllmetry")
	for _, test := range []struct {
		name      string
		from, to  *translate.Vocabulary
		in, want  []attribute.KeyValue
		wantFound findings
	}{
		{
			name: "a question of OpenInference", from: translate.OpenInference, to: translate.Standard,
			in: kv("llm.input_messages.0.message.role", "system", "llm.input_messages.0.message.content", "Be brief & <b>bold</b>.",
				"a", "b", "llm.input_messages.1.message.role", "user", "llm.input_messages.1.message.content", "Weather in Paris?"),
			want: kv(inMessages, `[{"role":"system","parts":[{"type":"text","content":"Be brief & <b>bold</b>."}]},{"role":"user","parts":[{"type":"text","content":"Weather in Paris?"}]}]`,
				"a", "b"),
		},
		{
			name: "a call of a tool and its response", from: translate.OpenInference, to: translate.Semconv141,
			in: kv("llm.input_messages.0.message.role", "assistant",
				"llm.input_messages.0.message.tool_calls.0.tool_call.id", "call_1",
				"llm.input_messages.0.message.tool_calls.0.tool_call.function.name", "weather",
				"llm.input_messages.0.message.tool_calls.0.tool_call.function.arguments", `{"city": "Paris", "id": 12345678901234567890}`,
				"llm.input_messages.1.message.role", "tool", "llm.input_messages.1.message.tool_call_id", "call_1", "llm.input_messages.1.message.content", "rainy"),
			want: kv(inMessages, `[{"role":"assistant","parts":[{"type":"tool_call","id":"call_1","name":"weather","arguments":{"city":"Paris","id":12345678901234567890}}]},`+
				`{"role":"tool","parts":[{"type":"tool_call_response","id":"call_1","response":"rainy"}]}]`),
		},
		{
			name: "a response that JSON can write in several ways", from: translate.Standard, to: translate.OpenInference,
			in: kv(inMessages, `[{"role":"tool","parts":[{"type":"tool_call_response","id":"1","response":"a < b & \u00e9\/\u2028"}]},`+
				`{"role":"assistant","parts":[{"type":"tool_call","name":"f","arguments":"x > 1"}]}]`),
			want: kv("llm.input_messages.0.message.role", "tool", "llm.input_messages.0.message.tool_call_id", "1", "llm.input_messages.0.message.content", "a < b & é/\u2028",
				"llm.input_messages.1.message.role", "assistant", "llm.input_messages.1.message.tool_calls.0.tool_call.function.name", "f",
				"llm.input_messages.1.message.tool_calls.0.tool_call.function.arguments", "x > 1"),
		},
		{
			name: "and a span that has it in two of them", from: translate.OpenInference, to: translate.Standard,
			in: kv(inMessages, `[{"role":"tool","parts":[{"type":"tool_call_response","id":"1","response":"a < b"}]}]`,
				"llm.input_messages.0.message.role", "tool", "llm.input_messages.0.message.tool_call_id", "1", "llm.input_messages.0.message.content", "a < b"),
			want:      kv(inMessages, `[{"role":"tool","parts":[{"type":"tool_call_response","id":"1","response":"a < b"}]}]`),
			wantFound: findings{{"llm.input_messages.*", translate.Duplicate, 1}},
		},
		{
			name: "several texts", from: translate.OpenInference, to: translate.House,
			in: kv("llm.input_messages.0.message.role", "user",
				"llm.input_messages.0.message.contents.0.message_content.type", "text", "llm.input_messages.0.message.contents.0.message_content.text", "a",
				"llm.input_messages.0.message.contents.1.message_content.type", "text", "llm.input_messages.0.message.contents.1.message_content.text", "b"),
			want: kv(inMessages, `[{"role":"user","parts":[{"type":"text","content":"a"},{"type":"text","content":"b"}]}]`),
		},
		{
			name: "a picture has no place, so the whole list is kept", from: translate.OpenInference, to: translate.Standard,
			in: kv("llm.input_messages.0.message.role", "user",
				"llm.input_messages.0.message.contents.0.message_content.type", "image",
				"llm.input_messages.0.message.contents.0.message_content.image.image.url", "https://pictures.example/1.png"),
			want: kv("llm.input_messages.0.message.role", "user",
				"llm.input_messages.0.message.contents.0.message_content.type", "image",
				"llm.input_messages.0.message.contents.0.message_content.image.image.url", "https://pictures.example/1.png"),
			wantFound: findings{{"llm.input_messages.*", translate.NotExact, 1}},
		},
		{
			name: "a message is missing", from: translate.OpenInference, to: translate.Standard,
			in:        kv("llm.input_messages.1.message.role", "user", "llm.input_messages.1.message.content", "a"),
			want:      kv("llm.input_messages.1.message.role", "user", "llm.input_messages.1.message.content", "a"),
			wantFound: findings{{"llm.input_messages.*", translate.NotExact, 1}},
		},
		{
			name: "a role is missing", from: openllmetry, to: translate.Standard,
			in:        kv("gen_ai.prompt.0.content", "a"),
			want:      kv("gen_ai.prompt.0.content", "a"),
			wantFound: findings{{"gen_ai.prompt.*", translate.NotExact, 1}},
		},
		{
			name: "an answer of OpenLLMetry", from: openllmetry, to: translate.Standard,
			in:   kv("gen_ai.completion.0.finish_reason", "stop", "gen_ai.completion.0.role", "assistant", "gen_ai.completion.0.content", "4"),
			want: kv(outMessages, `[{"role":"assistant","parts":[{"type":"text","content":"4"}],"finish_reason":"stop"}]`),
		},
		{
			name: "and of its Go module", from: openllmetry, to: translate.Standard,
			in:   kv("llm.completions.0.role", "assistant", "llm.completions.0.content", "4", "llm.vendor", "openai"),
			want: kv(outMessages, `[{"role":"assistant","parts":[{"type":"text","content":"4"}]}]`, "gen_ai.provider.name", "openai"),
		},
		{
			name: "from one flattened form to the other", from: translate.OpenInference, to: openllmetry,
			in:   kv("llm.output_messages.0.message.role", "assistant", "llm.output_messages.0.message.content", "4"),
			want: kv("gen_ai.completion.0.role", "assistant", "gen_ai.completion.0.content", "4"),
		},
		{
			name: "a finish reason that another attribute says", from: translate.Semconv141, to: translate.OpenInference,
			in: kv("gen_ai.response.finish_reasons", []string{"stop"}, outMessages, `[{"role":"assistant","parts":[{"type":"text","content":"4"}],"finish_reason":"stop"}]`),
			want: kv("llm.finish_reason", "stop",
				"llm.output_messages.0.message.role", "assistant", "llm.output_messages.0.message.content", "4"),
		},
		{
			name: "and one that none does", from: translate.Semconv141, to: translate.OpenInference,
			in:        kv(outMessages, `[{"role":"assistant","parts":[],"finish_reason":"stop"}]`),
			want:      kv(outMessages, `[{"role":"assistant","parts":[],"finish_reason":"stop"}]`),
			wantFound: findings{{outMessages, translate.NotExact, 1}},
		},
		{
			name: "parts that cannot be flattened", from: translate.Standard, to: translate.OpenInference,
			in:        kv(inMessages, `[{"role":"user","parts":[{"type":"uri","modality":"image","uri":"https://pictures.example/1.png"}]}]`),
			want:      kv(inMessages, `[{"role":"user","parts":[{"type":"uri","modality":"image","uri":"https://pictures.example/1.png"}]}]`),
			wantFound: findings{{inMessages, translate.NotExact, 1}},
		},
		{
			name: "an order that cannot be flattened", from: translate.Standard, to: translate.OpenInference,
			in:        kv(inMessages, `[{"role":"assistant","parts":[{"type":"tool_call","name":"f"},{"type":"text","content":"a"}]}]`),
			want:      kv(inMessages, `[{"role":"assistant","parts":[{"type":"tool_call","name":"f"},{"type":"text","content":"a"}]}]`),
			wantFound: findings{{inMessages, translate.NotExact, 1}},
		},
		{
			name: "what is no list of messages", from: translate.Standard, to: translate.OpenInference,
			in: kv(inMessages, "hi", outMessages, "[]"), want: kv(inMessages, "hi", outMessages, "[]"),
			wantFound: findings{{inMessages, translate.NotExact, 1}, {outMessages, translate.NotExact, 1}},
		},
		{
			name: "a span that has both forms", from: translate.OpenInference, to: translate.Standard,
			in: kv(inMessages, `[ {"role": "user", "parts": [{"type": "text", "content": "a"}]} ]`,
				"llm.input_messages.0.message.role", "user", "llm.input_messages.0.message.content", "a"),
			want:      kv(inMessages, `[ {"role": "user", "parts": [{"type": "text", "content": "a"}]} ]`),
			wantFound: findings{{"llm.input_messages.*", translate.Duplicate, 1}},
		},
		{
			name: "which say different things", from: translate.OpenInference, to: translate.Standard,
			in: kv(inMessages, `[{"role":"user","parts":[]}]`,
				"llm.input_messages.0.message.role", "user", "llm.input_messages.0.message.content", "a"),
			want: kv(inMessages, `[{"role":"user","parts":[]}]`,
				"llm.input_messages.0.message.role", "user", "llm.input_messages.0.message.content", "a"),
			wantFound: findings{{"llm.input_messages.*", translate.Conflict, 1}},
		},
		{
			name: "a vocabulary without messages", from: translate.OpenInference, to: translate.VLLM,
			in:        kv("llm.input_messages.0.message.role", "user", "llm.input_messages.0.message.content", "a"),
			want:      kv("llm.input_messages.0.message.role", "user", "llm.input_messages.0.message.content", "a"),
			wantFound: findings{{"llm.input_messages.*", translate.NoTarget, 2}},
		},
		{
			name: "a key that only begins alike", from: translate.Standard, to: openllmetry,
			in:   kv(inMessages, `[{"role":"user","parts":[]}]`, "gen_ai.prompt.name", "p", "gen_ai.request.model", "m"),
			want: kv("gen_ai.prompt.0.role", "user", "traceloop.prompt.key", "p", "gen_ai.request.model", "m"),
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			tr := translator(t, test.from, test.to)
			assert.Equal(t, test.want, tr.Attributes(test.in))
			assert.Equal(t, test.wantFound, tr.Report().Findings)
		})
	}
}

// A structured value is the same list as its JSON.
func TestStructuredMessagesAreFlattened(t *testing.T) {
	v, err := genaiconv.StructuredValue([]genaiconv.Message{
		{Role: genaiconv.RoleUser, Parts: genaiconv.Parts{genaiconv.TextPart{Content: "\"1 < 2\"\n\u2028 é \x01"}}},
		{Role: genaiconv.RoleAssistant, Parts: genaiconv.Parts{genaiconv.ToolCallPart{ID: "c", Name: "f", Arguments: map[string]any{"n": 1.5, "s": []any{"x", nil, true}}}}},
	})
	require.NoError(t, err)
	got := translator(t, translate.Standard, translate.OpenInference).Attributes([]attribute.KeyValue{genaiconv.InputMessages(v)})
	assert.Equal(t, kv(
		"llm.input_messages.0.message.role", "user", "llm.input_messages.0.message.content", "\"1 < 2\"\n\u2028 é \x01",
		"llm.input_messages.1.message.role", "assistant", "llm.input_messages.1.message.tool_calls.0.tool_call.id", "c",
		"llm.input_messages.1.message.tool_calls.0.tool_call.function.name", "f",
		"llm.input_messages.1.message.tool_calls.0.tool_call.function.arguments", `{"n":1.5,"s":["x",null,true]}`), got)
}

// randomMessages makes a conversation as JSON, with or without parts that a
// flattened form has no place for.
func randomMessages(r *rand.Rand) string {
	text := func() string {
		return []string{"", "a", "{}", "[1]", "{not json", `"quoted"`, "line\nbreak", "7", "null"}[r.IntN(9)]
	}
	var list []genaiconv.Message
	for range 1 + r.IntN(3) {
		m := genaiconv.Message{Role: genaiconv.Role([]string{"user", "assistant", "tool"}[r.IntN(3)])}
		for range r.IntN(4) {
			m.Parts = append(m.Parts, []genaiconv.Part{
				genaiconv.TextPart{Content: text()},
				genaiconv.ToolCallPart{ID: []string{"", "c1"}[r.IntN(2)], Name: "f", Arguments: []any{nil, text(), 3, map[string]any{"a": text()}}[r.IntN(4)]},
				genaiconv.ToolCallResponsePart{ID: []string{"", "c1"}[r.IntN(2)], Response: []any{text(), map[string]any{"b": []any{1, text()}}, 0.5}[r.IntN(3)]},
				genaiconv.ReasoningPart{Content: text()},
			}[r.IntN(4)])
		}
		list = append(list, m)
	}
	v, err := genaiconv.JSONValue(list)
	if err != nil {
		panic(err)
	}
	return v.AsString()
}

func TestMessagesSurviveTheWayThroughAFlattenedForm(t *testing.T) {
	for _, v := range []*translate.Vocabulary{translate.OpenInference, named(t, "openllmetry")} {
		there, back := translator(t, translate.Standard, v), translator(t, v, translate.Standard)
		flattened := 0
		for seed := range uint64(500) {
			want := kv(inMessages, randomMessages(rand.New(rand.NewPCG(4, seed))), "x", "y")
			flat := there.Attributes(want)
			if len(flat) > 2 || string(flat[0].Key) != inMessages {
				flattened++
			}
			require.Equal(t, want, back.Attributes(flat), "seed %d by way of %v", seed, flat)
		}
		assert.Greater(t, flattened, 100, v)
	}
}

func FuzzFlattenedMessages(f *testing.F) {
	f.Add("0.message.role=user\n0.message.content=hi")
	f.Add("0.message.role=assistant\n0.message.tool_calls.0.tool_call.function.name=f\n0.message.tool_calls.0.tool_call.function.arguments={\"a\": 1}")
	f.Add("1.message.role=x\n00.message.role=y\n9999999999999999999.message.role=z\n0.=")
	f.Fuzz(func(t *testing.T, text string) {
		var in []attribute.KeyValue
		seen := make(map[string]bool)
		for line := range strings.SplitSeq(text, "\n") {
			key, value, _ := strings.Cut(line, "=")
			if !seen[key] {
				in = append(in, attribute.String("llm.input_messages."+key, value))
			}
			seen[key] = true
		}
		there, back := translator(t, translate.OpenInference, translate.Standard), translator(t, translate.Standard, translate.OpenInference)
		out := there.Attributes(in)
		at := slices.IndexFunc(out, func(a attribute.KeyValue) bool { return string(a.Key) == inMessages })
		if at < 0 {
			assert.Equal(t, in, out, "what is not translated is kept")
			return
		}
		var list []genaiconv.Message
		require.NoError(t, json.Unmarshal([]byte(out[at].Value.AsString()), &list))
		again := there.Attributes(back.Attributes(out))
		assert.Equal(t, out, again)
	})
}

func FuzzMessages(f *testing.F) {
	f.Add(`[{"role":"user","parts":[{"type":"text","content":"hi"}]}]`)
	f.Add(`[{"role":"tool","name":"n","parts":[{"type":"tool_call_response","id":"c","response":{"a":[1]}}]}]`)
	f.Add(`[{"role":"a","parts":null}] []`)
	f.Fuzz(func(t *testing.T, text string) {
		in := kv(inMessages, text)
		flat := translator(t, translate.Standard, translate.OpenInference).Attributes(in)
		out := translator(t, translate.OpenInference, translate.Standard).Attributes(flat)
		require.Len(t, out, 1)
		require.Equal(t, in[0].Key, out[0].Key)
		if out[0].Value.AsString() != text {
			require.JSONEq(t, text, out[0].Value.AsString())
		}
	})
}

func TestMessagesAreNotSortedByTheirText(t *testing.T) {
	var in []attribute.KeyValue
	for i := range 12 {
		in = append(in, kv(fmt.Sprintf("gen_ai.prompt.%d.role", i), "user", fmt.Sprintf("gen_ai.prompt.%d.content", i), strconv.Itoa(i))...)
	}
	out := translator(t, named(t, "openllmetry"), translate.Standard).Attributes(in)
	var list []genaiconv.Message
	require.NoError(t, json.Unmarshal([]byte(out[0].Value.AsString()), &list))
	require.Len(t, list, 12)
	assert.Equal(t, genaiconv.Parts{genaiconv.TextPart{Content: "10"}}, list[10].Parts)
}
