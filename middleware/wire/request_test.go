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
