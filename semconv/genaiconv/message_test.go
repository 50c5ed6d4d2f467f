package genaiconv_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"

	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

func TestEachPartIsTheJSONOfTheConvention(t *testing.T) {
	tests := []struct {
		part genaiconv.Part
		want string
	}{
		{genaiconv.TextPart{Content: "1 < 2"}, `{"type":"text","content":"1 < 2"}`},
		{genaiconv.TextPart{}, `{"type":"text","content":""}`},
		{genaiconv.ReasoningPart{Content: "hm"}, `{"type":"reasoning","content":"hm"}`},
		{
			genaiconv.ToolCallPart{ID: "call_1", Name: "get_weather", Arguments: map[string]any{"city": "Paris"}},
			`{"type":"tool_call","id":"call_1","name":"get_weather","arguments":{"city":"Paris"}}`,
		},
		{genaiconv.ToolCallPart{Name: "now"}, `{"type":"tool_call","name":"now"}`},
		{genaiconv.ToolCallResponsePart{ID: "call_1", Response: "rain"}, `{"type":"tool_call_response","id":"call_1","response":"rain"}`},
		{genaiconv.ToolCallResponsePart{}, `{"type":"tool_call_response","response":null}`},
		{
			genaiconv.ServerToolCallPart{ID: "s1", Name: "web_search", Call: map[string]any{"type": "web_search"}},
			`{"type":"server_tool_call","id":"s1","name":"web_search","server_tool_call":{"type":"web_search"}}`,
		},
		{
			genaiconv.ServerToolCallResponsePart{ID: "s1", Response: map[string]any{"type": "web_search"}},
			`{"type":"server_tool_call_response","id":"s1","server_tool_call_response":{"type":"web_search"}}`,
		},
		{
			genaiconv.BlobPart{Modality: genaiconv.ModalityImage, MIMEType: "image/png", Content: []byte{1, 2, 3}},
			`{"type":"blob","modality":"image","mime_type":"image/png","content":"AQID"}`,
		},
		{
			genaiconv.FilePart{Modality: genaiconv.ModalityDocument, FileID: "file_1"},
			`{"type":"file","modality":"document","file_id":"file_1"}`,
		},
		{
			genaiconv.URIPart{Modality: genaiconv.ModalityVideo, URI: "https://example.com/a.mp4"},
			`{"type":"uri","modality":"video","uri":"https://example.com/a.mp4"}`,
		},
		{genaiconv.CompactionPart{}, `{"type":"compaction"}`},
		{genaiconv.CompactionPart{ID: "c1", Content: "we greeted"}, `{"type":"compaction","id":"c1","content":"we greeted"}`},
		{genaiconv.GenericPart{}, `{"type":"generic"}`},
		{
			genaiconv.GenericPart{GenericType: "citation", Fields: map[string]any{"page": 3.0}},
			`{"type":"generic","generic_type":"citation","page":3}`,
		},
	}
	for _, tt := range tests {
		text, err := json.Marshal(tt.part)
		require.NoError(t, err)
		require.JSONEq(t, tt.want, string(text))

		var back genaiconv.Parts
		require.NoError(t, json.Unmarshal([]byte("["+string(text)+"]"), &back))
		require.Equal(t, genaiconv.Parts{tt.part}, back)
	}
}

func TestAMessageIsTheJSONOfTheConvention(t *testing.T) {
	score := 0.91
	tests := []struct {
		value any
		want  string
	}{
		{
			[]genaiconv.Message{
				{Role: genaiconv.RoleUser, Name: "ann", Parts: genaiconv.Parts{genaiconv.TextPart{Content: "hi"}}},
				{Role: genaiconv.RoleAssistant},
			},
			`[{"role":"user","parts":[{"type":"text","content":"hi"}],"name":"ann"},{"role":"assistant","parts":[]}]`,
		},
		{genaiconv.Parts{genaiconv.TextPart{Content: "be kind"}}, `[{"type":"text","content":"be kind"}]`},
		{
			[]genaiconv.ToolDefinition{
				{Name: "now"},
				{Type: "custom", Name: "grep", Description: "search", Parameters: map[string]any{"type": "object"}},
			},
			`[{"type":"function","name":"now"},{"type":"custom","name":"grep","description":"search","parameters":{"type":"object"}}]`,
		},
		{[]genaiconv.RetrievalDocument{{ID: "docs/cost.md#3", Score: &score}, {ID: "b"}}, `[{"id":"docs/cost.md#3","score":0.91},{"id":"b"}]`},
	}
	for _, tt := range tests {
		value, err := genaiconv.JSONValue(tt.value)
		require.NoError(t, err)
		require.JSONEq(t, tt.want, value.AsString())
	}
}

func TestMessagesSurviveTheWayThereAndBack(t *testing.T) {
	text := `[{"role":"tool","parts":[{"type":"tool_call_response","id":"1","response":{"a":[1,null,"x"]}}],"finish_reason":"stop"}]`
	var messages []genaiconv.Message
	require.NoError(t, json.Unmarshal([]byte(text), &messages))
	value, err := genaiconv.JSONValue(messages)
	require.NoError(t, err)
	require.JSONEq(t, text, value.AsString())
}

func TestAPartOfUnknownTypeIsKept(t *testing.T) {
	var parts genaiconv.Parts
	require.NoError(t, json.Unmarshal([]byte(`[{"type":"citation","page":3}]`), &parts))
	require.Equal(t, genaiconv.Parts{genaiconv.GenericPart{GenericType: "citation", Fields: map[string]any{"page": 3.0}}}, parts)
}

func TestAStructuredValueHasMapsAndLists(t *testing.T) {
	value, err := genaiconv.StructuredValue([]genaiconv.Message{{
		Role:  genaiconv.RoleAssistant,
		Parts: genaiconv.Parts{genaiconv.ToolCallPart{Name: "f", Arguments: map[string]any{"n": 3, "x": 0.5, "on": true, "none": nil}}},
	}})
	require.NoError(t, err)
	require.Equal(t, attribute.SliceValue(attribute.MapValue(
		attribute.KeyValue{Key: "parts", Value: attribute.SliceValue(attribute.MapValue(
			attribute.KeyValue{Key: "arguments", Value: attribute.MapValue(
				attribute.Int("n", 3),
				attribute.KeyValue{Key: "none"},
				attribute.Bool("on", true),
				attribute.Float64("x", 0.5),
			)},
			attribute.String("name", "f"),
			attribute.String("type", "tool_call"),
		))},
		attribute.String("role", "assistant"),
	)), value)
}

func TestAValueWithoutJSONIsAnError(t *testing.T) {
	_, err := genaiconv.JSONValue(func() {})
	require.ErrorContains(t, err, "genaiconv: value of type func()")
	_, err = genaiconv.StructuredValue(genaiconv.Parts{genaiconv.ToolCallPart{Arguments: make(chan int)}})
	require.ErrorContains(t, err, "part of type tool_call")
}

func TestInvalidUTF8IsReplaced(t *testing.T) {
	value, err := genaiconv.JSONValue(genaiconv.Parts{genaiconv.TextPart{Content: "a\xffb"}})
	require.NoError(t, err)
	require.JSONEq(t, `[{"type":"text","content":"a�b"}]`, value.AsString())
}

func FuzzMessages(f *testing.F) {
	f.Add(`[{"role":"user","parts":[{"type":"text","content":"hi"},{"type":"blob","modality":"image","content":"AQID"}]}]`)
	f.Add(`[{"role":"user","parts":[{"type":"citation","page":3},{"type":"generic","generic_type":7}]}]`)
	f.Fuzz(func(t *testing.T, text string) {
		var messages, again []genaiconv.Message
		if json.Unmarshal([]byte(text), &messages) != nil {
			return
		}
		value, err := genaiconv.JSONValue(messages)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal([]byte(value.AsString()), &again))
		second, err := genaiconv.JSONValue(again)
		require.NoError(t, err)
		require.Equal(t, value.AsString(), second.AsString())
	})
}
