package wire_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/middleware/wire"
)

func TestReadRequestReadsTheFactsOfARequest(t *testing.T) {
	for _, tt := range []struct {
		name, body string
		want       genaitrace.Request
	}{
		{
			"everything", `{"model":"m","stream":true,"max_tokens":512,"temperature":0.7,"top_p":0.9,"messages":[]}`,
			genaitrace.Request{Model: "m", Stream: true, MaxTokens: 512, Temperature: new(0.7), TopP: new(0.9)},
		},
		{"model after the messages", `{"messages":[{"role":"user","content":"the \"model\":\"x\""}],"model":"m"}`, genaitrace.Request{Model: "m"}},
		{"spaces", " {\n\t\"model\" : \"m\" ,\r\n \"stream\" : true }", genaitrace.Request{Model: "m", Stream: true}},
		{"new name of max_tokens", `{"max_completion_tokens":64}`, genaitrace.Request{MaxTokens: 64}},
		{"zero temperature", `{"temperature":0,"top_p":1}`, genaitrace.Request{Temperature: new(0.0), TopP: new(1.0)}},
		{"exponent", `{"temperature":7e-1}`, genaitrace.Request{Temperature: new(0.7)}},
		{"nulls", `{"model":null,"stream":null,"max_tokens":null,"temperature":null,"top_p":null}`, genaitrace.Request{}},
		{"other types", `{"model":5,"stream":"true","max_tokens":"512","temperature":"0.7","top_p":[]}`, genaitrace.Request{}},
		{"no numbers of JSON", `{"temperature":NaN,"top_p":Inf,"max_tokens":1e3}`, genaitrace.Request{}},
		{"number out of range", `{"temperature":1e999,"max_tokens":99999999999999999999}`, genaitrace.Request{}},
		{"zero and negative max_tokens", `{"max_tokens":0,"max_completion_tokens":-1}`, genaitrace.Request{}},
		{"members of inner objects", `{"metadata":{"model":"x","stream":true},"tools":[{"model":"y"}],"model":"m"}`, genaitrace.Request{Model: "m"}},
		{"escaped model", `{"model":"org\/m\u00e9"}`, genaitrace.Request{Model: "org/mé"}},
		{"cut in a number", `{"model":"m","max_tokens":51`, genaitrace.Request{Model: "m"}},
		{"cut in a string", `{"stream":true,"model":"qwen2.5-7b-ins`, genaitrace.Request{Stream: true}},
		{"cut in the messages", `{"model":"m","messages":[{"role":"user","content":"` + strings.Repeat("x", 1000), genaitrace.Request{Model: "m"}},
		{"model after a long image", `{"messages":[{"content":"` + strings.Repeat(`\n\\\"`, 100_000) + `"}],"model":"m"}`, genaitrace.Request{Model: "m"}},
		{"model too long to be one", `{"model":"` + strings.Repeat("x", 2000) + `","stream":true}`, genaitrace.Request{Stream: true}},
		{"no comma", `{"stream":true "model":"m"}`, genaitrace.Request{Stream: true}},
		{"empty", ``, genaitrace.Request{}},
		{"empty object", `{}`, genaitrace.Request{}},
		{"array", `[{"model":"m"}]`, genaitrace.Request{}},
		{"not JSON", `model=m`, genaitrace.Request{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			assert.Equal(t, tt.want, wire.ReadRequest("/v1/chat/completions", []byte(tt.body)))
			byByte := wire.NewRequestReader("/v1/chat/completions")
			for i := range tt.body {
				_, _ = byByte.Write([]byte(tt.body[i : i+1]))
			}
			assert.Equal(t, tt.want, byByte.Request(), "one byte a write")
			for i := range min(len(tt.body), 200) {
				split := wire.NewRequestReader("/v1/chat/completions")
				_, _ = split.Write([]byte(tt.body[:i]))
				_, _ = split.Write([]byte(tt.body[i:]))
				assert.Equal(t, tt.want, split.Request(), "split at byte %d", i)
			}
		})
	}
}

func TestEachAPIHasItsOwnWordsForARequest(t *testing.T) {
	sampling := genaitrace.Request{MaxTokens: 512, Temperature: new(0.7), TopP: new(0.9)}
	with := func(model string, stream bool) genaitrace.Request {
		r := sampling
		r.Model, r.Stream = model, stream
		return r
	}
	for _, tt := range []struct {
		name, path, body string
		want             genaitrace.Request
		usage            bool // the answer will tell it
		tools            int
	}{
		{"OpenAI", "/v1/chat/completions", `{"model":"m","stream":true,"max_completion_tokens":512,"temperature":0.7,"top_p":0.9,"tools":[{"type":"function","function":{"name":"f"}},{"type":"function"}]}`, with("m", true), false, 2},
		{"OpenAI with usage", "/v1/chat/completions", `{"model":"m","stream":true,"stream_options":{"include_usage":true,"x":{"include_usage":false}},"max_tokens":512,"temperature":0.7,"top_p":0.9}`, with("m", true), true, 0},
		{"OpenAI without usage", "/v1/chat/completions", `{"model":"m","stream":true,"stream_options":{"include_usage":false},"max_tokens":512,"temperature":0.7,"top_p":0.9}`, with("m", true), false, 0},
		{"OpenAI not streamed", "/v1/chat/completions", `{"model":"m","max_tokens":512,"temperature":0.7,"top_p":0.9}`, with("m", false), true, 0},
		{"the deprecated functions", "/v1/chat/completions", `{"model":"m","functions":[{"name":"f"}],"max_tokens":512,"temperature":0.7,"top_p":0.9}`, with("m", false), true, 1},
		{"Azure", "/openai/deployments/d/chat/completions", `{"max_tokens":512,"temperature":0.7,"top_p":0.9,"stream":true}`, with("d", true), false, 0},
		{"Responses", "/v1/responses", `{"model":"m","input":"secret","max_output_tokens":512,"temperature":0.7,"top_p":0.9,"stream":true,"tools":[]}`, with("m", true), true, 0},
		{"Anthropic", "/v1/messages", `{"model":"m","max_tokens":512,"messages":[],"temperature":0.7,"top_p":0.9,"stream":true,"tools":[{"name":"f","input_schema":{"type":"object"}}]}`, with("m", true), true, 1},
		{"Gemini", "/v1beta/models/g:streamGenerateContent", `{"contents":[{"parts":[{"text":"secret"}]}],"generationConfig":{"responseSchema":{"temperature":9},"maxOutputTokens":512,"temperature":0.7,"topP":0.9},"tools":[{"functionDeclarations":[]}]}`, with("g", true), true, 1},
		{"Gemini by snake", "/v1beta/models/g:generateContent", `{"generation_config":{"max_output_tokens":512,"temperature":0.7,"top_p":0.9}}`, with("g", false), true, 0},
		{"Converse", "/model/b/converse-stream", `{"inferenceConfig":{"maxTokens":512,"temperature":0.7,"topP":0.9},"toolConfig":{"toolChoice":{"auto":{}},"tools":[{"toolSpec":{}},{"toolSpec":{}}]}}`, with("b", true), true, 2},
		{"Claude on Bedrock", "/model/b/invoke-with-response-stream", `{"anthropic_version":"bedrock-2023-05-31","max_tokens":512,"temperature":0.7,"top_p":0.9}`, with("b", true), true, 0},
		{"Titan", "/model/b/invoke", `{"inputText":"secret","textGenerationConfig":{"maxTokenCount":512,"temperature":0.7,"topP":0.9}}`, with("b", false), true, 0},
		{"Llama on Bedrock", "/model/b/invoke", `{"prompt":"secret","max_gen_len":512,"temperature":0.7,"top_p":0.9}`, with("b", false), true, 0},
		{"Ollama streams by default", "/api/chat", `{"model":"m","messages":[],"options":{"num_predict":512,"temperature":0.7,"top_p":0.9}}`, with("m", true), true, 0},
		{"Ollama, told not to", "/api/generate", `{"model":"m","stream":false,"options":{"num_predict":512,"temperature":0.7,"top_p":0.9}}`, with("m", false), true, 0},
		{"Ollama without a bound", "/api/chat", `{"model":"m","options":{"num_predict":-1}}`, genaitrace.Request{Model: "m", Stream: true}, true, 0},
		{"llama.cpp", "/completion", `{"prompt":"secret","n_predict":512,"temperature":0.7,"top_p":0.9,"stream":true}`, with("", true), true, 0},
		{"Text Generation Inference", "/generate_stream", `{"inputs":"secret","parameters":{"max_new_tokens":512,"temperature":0.7,"top_p":0.9}}`, with("", true), true, 0},
		{"SGLang", "/generate", `{"text":"secret","sampling_params":{"max_new_tokens":512,"temperature":0.7,"top_p":0.9},"stream":true}`, with("", true), true, 0},
		{"Triton", "/v2/models/t/generate_stream", `{"text_input":"secret","max_tokens":512,"temperature":0.7,"top_p":0.9}`, with("t", true), false, 0},
		{"Triton's vLLM", "/v2/models/t/generate", `{"text_input":"secret","parameters":{"stream":false,"max_tokens":512,"temperature":0.7,"top_p":0.9}}`, with("t", false), false, 0},
		{"KServe", "/v2/models/t/infer", `{"id":"1","inputs":[{"name":"x","shape":[1],"datatype":"FP32","data":[1]}],"parameters":{"temperature":0.7}}`, genaitrace.Request{Model: "t", Temperature: new(0.7)}, false, 0},
		{"a path that is not known", "/x", `{"model":"m","stream":true,"max_tokens":512,"temperature":0.7,"top_p":0.9}`, with("m", true), false, 0},
		{"settings inside of settings are none", "/x", `{"model":"m","options":{"model":"x","parameters":{"temperature":9},"stream_options":{"include_usage":true}},"max_tokens":512,"temperature":0.7,"top_p":0.9}`, with("m", false), true, 0},
		{"settings that are no object", "/x", `{"model":"m","options":["temperature",9],"parameters":null,"max_tokens":512,"temperature":0.7,"top_p":0.9}`, with("m", false), true, 0},
		{"empty settings", "/x", `{"model":"m","options":{},"parameters":{ },"max_tokens":512,"temperature":0.7,"top_p":0.9}`, with("m", false), true, 0},
		{"tools that are no array", "/x", `{"model":"m","tools":"auto","toolConfig":{"tools":null},"max_tokens":512,"temperature":0.7,"top_p":0.9}`, with("m", false), true, 0},
		{"settings that are cut", "/x", `{"model":"m","options":{"temperature":0.7,"num_pre`, genaitrace.Request{Model: "m", Temperature: new(0.7)}, true, 0},
		{"tools that are cut", "/x", `{"model":"m","tools":[{},{`, genaitrace.Request{Model: "m"}, true, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for size := 1; size <= len(tt.body)+1; size += 1 + size/4 {
				r := wire.NewRequestReader(tt.path)
				for _, p := range chop([]byte(tt.body), size) {
					_, _ = r.Write(p)
				}
				assert.Equal(t, tt.want, r.Request(), "%d bytes a write", size)
				assert.Equal(t, tt.usage, r.ExpectsUsage(), "usage, %d bytes a write", size)
				assert.Equal(t, tt.tools, r.Tools(), "tools, %d bytes a write", size)
			}
		})
	}
}

// A body that was cut anywhere tells less, never something else.
func TestACutRequestTellsNothingFalse(t *testing.T) {
	const body = `{"model":"qwen2.5","temperature":0.75,"messages":[{"role":"user","content":"a\\\"b"}],"max_tokens":512,"top_p":0.95,"stream":true}`
	full := wire.ReadRequest("/v1/chat/completions", []byte(body))
	for i := range body {
		got := wire.ReadRequest("/v1/chat/completions", []byte(body[:i]))
		if got.Model != "" {
			assert.Equal(t, full.Model, got.Model, "cut at byte %d", i)
		}
		if got.MaxTokens != 0 {
			assert.Equal(t, full.MaxTokens, got.MaxTokens, "cut at byte %d", i)
		}
		if got.Temperature != nil {
			assert.Equal(t, full.Temperature, got.Temperature, "cut at byte %d", i)
		}
		if got.TopP != nil {
			assert.Equal(t, full.TopP, got.TopP, "cut at byte %d", i)
		}
	}
}
