package wire_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/middleware/wire"
	"github.com/genaitrace/otelgenai/semconv"
)

// usual are the chunks that make up most of a stream, as each server writes them:
// the i-th with its text and all else that changes.
var usual = []struct {
	name        string
	contentType string
	plain       bool // it fits the shape of the one before
	chunk       func(i int) string
}{
	{"vllm", eventStreamType, true, func(i int) string {
		return sse(fmt.Sprintf(`{"id":"chatcmpl-0123456789abcdef","object":"chat.completion.chunk","created":1767000000,"model":"qwen2.5-7b-instruct","choices":[{"index":0,"delta":{"content":" w%d"},"logprobs":null,"finish_reason":null}]}`, i))
	}},
	{"openai", eventStreamType, true, func(i int) string {
		return sse(fmt.Sprintf(`{"id":"chatcmpl-0123456789abcdef","object":"chat.completion.chunk","created":1767000000,"model":"gpt-fx-2026-01-01","service_tier":"default","system_fingerprint":"fp_0","choices":[{"index":0,"delta":{"content":" w%d"},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"%s"}`, i, strings.Repeat("x", i%9)))
	}},
	{"deepseek", eventStreamType, true, func(i int) string {
		return sse(fmt.Sprintf(`{"id":"0123","object":"chat.completion.chunk","created":1767000000,"model":"deepseek-reasoner","system_fingerprint":"fp_0","choices":[{"index":0,"delta":{"content":null,"reasoning_content":" w%d"},"logprobs":null,"finish_reason":null}]}`, i))
	}},
	{"tool", eventStreamType, true, func(i int) string {
		return sse(fmt.Sprintf(`{"id":"chatcmpl-0","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"w%d"}}]},"finish_reason":null}]}`, i))
	}},
	{"responses", eventStreamType, true, func(i int) string {
		return named("response.output_text.delta", fmt.Sprintf(`{"type":"response.output_text.delta","sequence_number":%d,"item_id":"msg_0123456789","output_index":0,"content_index":0,"delta":" w%d","logprobs":[],"obfuscation":"%s"}`, i, i, strings.Repeat("x", i%9)))
	}},
	{"anthropic", eventStreamType, true, func(i int) string {
		return named("content_block_delta", fmt.Sprintf(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" w%d"}}`, i))
	}},
	{"gemini", eventStreamType, false, func(i int) string { // its usage grows with each chunk
		return strings.ReplaceAll(sse(fmt.Sprintf(`{"candidates":[{"content":{"parts":[{"text":" w%d"}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":4,"candidatesTokenCount":%d,"totalTokenCount":%d},"modelVersion":"gemini-fx","responseId":"r"}`, i, i+1, i+5)), "\n", "\r\n")
	}},
	{"converse", awsType, true, func(i int) string {
		return awsEvent("contentBlockDelta", fmt.Sprintf(`{"contentBlockIndex":0,"delta":{"text":" w%d"},"p":"%s"}`, i, strings.Repeat("x", i%9)))
	}},
	{"invoke", awsType, true, func(i int) string {
		return awsEvent("chunk", `{"bytes":"`+base64.StdEncoding.EncodeToString(fmt.Appendf(nil, `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" w%d"}}`, i))+`","p":"`+strings.Repeat("x", i%9)+`"}`)
	}},
	{"ollama", jsonLinesType, true, func(i int) string {
		return fmt.Sprintf(`{"model":"llama3.2","created_at":"2026-01-01T00:00:00.%09dZ","message":{"role":"assistant","content":" w%d"},"done":false}`+"\n", i*1117, i)
	}},
	{"generate", jsonLinesType, true, func(i int) string {
		return fmt.Sprintf(`{"model":"llama3.2","created_at":"2026-01-01T00:00:00.%09dZ","response":" w%d","done":false}`+"\n", i*1117, i)
	}},
	{"llama.cpp", eventStreamType, false, func(i int) string { // its counts grow with each chunk
		return sse(fmt.Sprintf(`{"index":0,"content":" w%d","tokens":[%d],"stop":false,"id_slot":0,"tokens_predicted":%d,"tokens_evaluated":4}`, i, i, i+1))
	}},
	{"tgi", eventStreamType, true, func(i int) string {
		return strings.Replace(sse(fmt.Sprintf(`{"index":%d,"token":{"id":%d,"text":" w%d","logprob":-0.%d,"special":false},"generated_text":null,"details":null}`, i, i*7, i, i+1)), "data: ", "data:", 1)
	}},
	{"sglang", eventStreamType, false, func(i int) string { // its text and counts grow with each chunk
		return sse(fmt.Sprintf(`{"text":"%s","meta_info":{"id":"r","finish_reason":null,"prompt_tokens":9,"completion_tokens":%d,"cached_tokens":0}}`, strings.Repeat("w", i%50+1), i+1))
	}},
	{"triton", eventStreamType, true, func(i int) string {
		return sse(fmt.Sprintf(`{"model_name":"ensemble","model_version":"1","sequence_end":false,"sequence_id":0,"text_output":" w%d"}`, i))
	}},
}

// A chunk of the shape of the one before is not parsed again, and allocates
// nothing.
func TestTheUsualChunkOfEachServerAllocatesNothing(t *testing.T) {
	for _, u := range usual {
		t.Run(u.name, func(t *testing.T) {
			var chunks [100][]byte
			for i := range chunks {
				chunks[i] = []byte(u.chunk(i))
			}
			x := wire.Exchange{Response: http.Header{"Content-Type": {u.contentType}}}
			pushes := 0
			span := newObserver().call(func(call *genaitrace.Call) {
				s := wire.NewStream(call, x)
				push := func() {
					s.Push(chunks[pushes%len(chunks)])
					pushes++
				}
				for range 3000 { // the timeline has reached its size
					push()
				}
				assert.Zero(t, testing.AllocsPerRun(1000, push))
				assert.Equal(t, u.plain, wire.FitsShape(s, chunks[7]), "fits the shape of another")
				s.End(io.EOF)
			})
			assert.EqualValues(t, pushes, attributes(span)[semconv.GenAIChunkCountKey])
			if u.plain {
				assert.EqualValues(t, pushes, attributes(span)[semconv.GenAIChunkOutputCountKey])
			}
		})
	}
}

// BenchmarkDialects is the usual chunk of each server, one a push, and its stamp.
func BenchmarkDialects(b *testing.B) {
	const chunks = 500
	for _, u := range usual {
		b.Run(u.name, func(b *testing.B) {
			var all [chunks][]byte
			for i := range all {
				all[i] = []byte(u.chunk(i))
			}
			_, call := newObserver().tracer.StartCall(context.Background(), genaitrace.Request{Stream: true})
			s := wire.NewStream(call, wire.Exchange{Response: http.Header{"Content-Type": {u.contentType}}})
			b.ReportAllocs()
			for b.Loop() {
				for _, c := range all {
					s.Push(c)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/chunks, "ns/chunk")
			s.End(io.EOF)
			call.End()
		})
	}
}
