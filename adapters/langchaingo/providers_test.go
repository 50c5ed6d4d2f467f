package genailangchain_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/llms/anthropic"
	"github.com/tmc/langchaingo/llms/cache"
	"github.com/tmc/langchaingo/llms/cache/inmemory"
	"github.com/tmc/langchaingo/llms/ollama"

	genailangchain "github.com/genaitrace/otelgenai/adapters/langchaingo"
	"github.com/genaitrace/otelgenai/genaitrace"
)

// file is a recorded answer.
func file(t *testing.T, name, contentType string) http.HandlerFunc {
	t.Helper()
	body, err := os.ReadFile("testdata/" + name)
	require.NoError(t, err)
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		for line := range strings.Lines(string(body)) {
			_, _ = fmt.Fprint(w, line)
			w.(http.Flusher).Flush()
		}
	}
}

const usageKeys = "gen_ai.usage.input_tokens gen_ai.usage.output_tokens gen_ai.usage.cache_read.input_tokens gen_ai.usage.cache_write.input_tokens gen_ai.usage.reasoning.output_tokens gen_ai.response.finish_reasons"

// Anthropic's client gives each part of an answer as a choice, counts its cache apart,
// and tells reasoning to its own function alone.
func TestAnthropic(t *testing.T) {
	for _, with := range []bool{false, true} {
		t.Run(fmt.Sprintf("transport %v", with), func(t *testing.T) {
			r := record()
			client := plainClient()
			if with {
				client = r.transport()
			}
			server := serve(t, file(t, "anthropic.sse", "text/event-stream"))
			llm, err := anthropic.New(anthropic.WithToken("k"), anthropic.WithBaseURL(server.URL+"/v1"), anthropic.WithModel("claude"), anthropic.WithHTTPClient(client))
			require.NoError(t, err)
			model := genailangchain.WrapModel(llm, r.Tracer, genaitrace.Request{Provider: "anthropic", Model: "claude"})
			got, err := model.GenerateContent(t.Context(), human("Hi"), streaming(ignore))
			require.NoError(t, err)
			assert.Len(t, got.Choices, 2, "reasoning and text")
			s := r.one(t)
			assert.Equal(t, "chat claude (client) gen_ai.usage.input_tokens=130 gen_ai.usage.output_tokens=9 gen_ai.usage.cache_read.input_tokens=100 gen_ai.usage.cache_write.input_tokens=20 gen_ai.response.finish_reasons=[end_turn]", line(s, strings.Fields(usageKeys)))
			assert.Equal(t, int64(3), attributeOf(s, "genai.chunk.output_count"), "reasoning is output, though nobody asked to hear it")
		})
	}
}

// Ollama's client calls the function of text alone, and tells no reason.
func TestOllama(t *testing.T) {
	r := record()
	server := serve(t, file(t, "ollama.ndjson", "application/x-ndjson"))
	llm, err := ollama.New(ollama.WithServerURL(server.URL), ollama.WithModel("qwen"), ollama.WithHTTPClient(plainClient()))
	require.NoError(t, err)
	model := genailangchain.WrapModel(llm, r.Tracer, genaitrace.Request{Provider: "ollama", Model: "qwen"})
	var heard []string
	got, err := model.GenerateContent(t.Context(), human("Hi"), streaming(func(text string) error { heard = append(heard, text); return nil }))
	require.NoError(t, err)
	assert.Equal(t, "Hello world", got.Choices[0].Content)
	assert.Equal(t, []string{"Hello", " world", ""}, heard)
	assert.Equal(t, "chat qwen (client) gen_ai.usage.input_tokens=26 gen_ai.usage.output_tokens=2 genai.chunk.count=3 genai.chunk.output_count=2 genai.stream.terminal=eof",
		line(r.one(t), append(strings.Fields(usageKeys), "genai.chunk.count", "genai.chunk.output_count", "genai.stream.terminal")))
}

// A cache around the client brings its answers at once; the wrapper around that sees the
// same facts, and below it the model is not called.
func TestACacheInBetween(t *testing.T) {
	r := record()
	server := serve(t, stream(nil, complete...))
	backend, err := inmemory.New(t.Context())
	require.NoError(t, err)
	model := genailangchain.WrapModel(cache.New(server.openai(t, r.transport()), backend), r.Tracer, request)
	for range 2 {
		_, err := model.GenerateContent(t.Context(), human("Hi"), streaming(ignore))
		require.NoError(t, err)
	}
	assert.Len(t, server.requests, 1)
	ended := r.spans.Ended()
	require.Len(t, ended, 2)
	assert.Equal(t, int64(6), attributeOf(ended[0], "genai.chunk.count"))
	assert.Equal(t, int64(1), attributeOf(ended[1], "genai.chunk.count"))
}

// A second client that answers where the first refused makes the call a success, over
// HTTP and not.
func TestAFallback(t *testing.T) {
	for _, options := range [][]llms.CallOption{nil, {streaming(ignore)}} {
		r := record()
		refusal := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }
		first := serve(t, refusal).openai(t, r.transport())
		model := genailangchain.WrapModel(fake(func(ctx context.Context, o llms.CallOptions) (*llms.ContentResponse, error) {
			_, err := first.GenerateContent(ctx, human("Hi"), llms.WithOptions(o))
			require.Error(t, err)
			if o.StreamingFunc != nil {
				require.NoError(t, o.StreamingFunc(ctx, []byte("Hi")))
			}
			return answer("Hi"), nil
		}), r.Tracer, request)
		_, err := model.GenerateContent(t.Context(), human("Hi"), options...)
		require.NoError(t, err)
		assert.Equal(t, "chat gpt-4.1 (client)", line(r.one(t), []string{"error.type"}))
	}
}

// What the clients of LangChainGo v0.1.14 write into an answer, by their sources.
func TestUsageOfEachClient(t *testing.T) {
	type usageInfo struct{ PromptTokens, TotalTokens, CompletionTokens int }
	several := []llms.CallOption{llms.WithN(2)}
	for _, tt := range []struct {
		name    string
		options []llms.CallOption
		info    []map[string]any
		want    string
	}{
		{"openai, nothing told", nil, []map[string]any{{"PromptTokens": 0, "CompletionTokens": 0, "ReasoningTokens": 0, "PromptCachedTokens": 0}}, ""},
		{"openai, several answers", several, []map[string]any{{"PromptTokens": 5, "CompletionTokens": 9}, {"PromptTokens": 5, "CompletionTokens": 9}}, " gen_ai.usage.input_tokens=5 gen_ai.usage.output_tokens=9"},
		{"anthropic", nil, []map[string]any{{"InputTokens": 5, "OutputTokens": 9, "CacheReadInputTokens": 3, "CacheCreationInputTokens": 0}}, " gen_ai.usage.input_tokens=8 gen_ai.usage.output_tokens=9 gen_ai.usage.cache_read.input_tokens=3"},
		{"googleai", nil, []map[string]any{{"input_tokens": int32(5), "output_tokens": int32(9), "PromptTokens": int32(5), "CompletionTokens": int32(9), "CachedTokens": int32(3), "CacheReadInputTokens": int32(3), "ThinkingTokens": 0}}, " gen_ai.usage.input_tokens=5 gen_ai.usage.output_tokens=9 gen_ai.usage.cache_read.input_tokens=3"},
		{"bedrock", nil, []map[string]any{{"input_tokens": 5, "output_tokens": 9}}, " gen_ai.usage.input_tokens=5 gen_ai.usage.output_tokens=9"},
		{"bedrock, parts of one answer", nil, []map[string]any{{"input_tokens": 5, "output_tokens": 9}, {"input_tokens": 5, "output_tokens": 9}}, " gen_ai.usage.input_tokens=5 gen_ai.usage.output_tokens=9"},
		{"bedrock, several answers", several, []map[string]any{{"input_tokens": 5, "output_tokens": 9}, {"input_tokens": 5, "output_tokens": 1}}, " gen_ai.usage.input_tokens=5 gen_ai.usage.output_tokens=10"},
		{"mistral", nil, []map[string]any{{"usage": usageInfo{PromptTokens: 5, CompletionTokens: 9}}}, " gen_ai.usage.input_tokens=5 gen_ai.usage.output_tokens=9"},
		{"ollama's own guess", nil, []map[string]any{{"PromptTokens": 5, "CompletionTokens": 9, "CachedTokens": 4, "CacheHit": true}}, " gen_ai.usage.input_tokens=5 gen_ai.usage.output_tokens=9"},
		{"out of a cache, as JSON", nil, []map[string]any{{"PromptTokens": 5.0, "CompletionTokens": 9.0}}, " gen_ai.usage.input_tokens=5 gen_ai.usage.output_tokens=9"},
		{"no sense", nil, []map[string]any{{"PromptTokens": "5", "CompletionTokens": -1, "usage": []int{1}}}, ""},
		{"nothing", nil, []map[string]any{nil}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := record()
			model := genailangchain.WrapModel(fake(func(context.Context, llms.CallOptions) (*llms.ContentResponse, error) {
				answer := &llms.ContentResponse{}
				for _, info := range tt.info {
					answer.Choices = append(answer.Choices, &llms.ContentChoice{GenerationInfo: info})
				}
				return answer, nil
			}), r.Tracer, request)
			_, err := model.GenerateContent(t.Context(), human("Hi"), tt.options...)
			require.NoError(t, err)
			assert.Equal(t, "chat gpt-4.1 (client)"+tt.want, line(r.one(t), strings.Fields(usageKeys)))
		})
	}
}

func TestFinishReasonsAreThoseOfTheAPI(t *testing.T) {
	for _, tt := range []struct {
		options []llms.CallOption
		given   []string
		want    any
	}{
		{nil, []string{"end_turn", "end_turn"}, []string{"end_turn"}},
		{[]llms.CallOption{llms.WithN(2)}, []string{"stop", "length"}, []string{"stop", "length"}},
		{nil, []string{"FinishReasonMaxTokens"}, []string{"MAX_TOKENS"}},
		{nil, []string{""}, nil},
	} {
		r := record()
		model := genailangchain.WrapModel(fake(func(context.Context, llms.CallOptions) (*llms.ContentResponse, error) {
			answer := &llms.ContentResponse{}
			for _, reason := range tt.given {
				answer.Choices = append(answer.Choices, &llms.ContentChoice{StopReason: reason})
			}
			return answer, nil
		}), r.Tracer, request)
		_, err := model.GenerateContent(t.Context(), human("Hi"), tt.options...)
		require.NoError(t, err)
		assert.Equal(t, tt.want, attributeOf(r.one(t), "gen_ai.response.finish_reasons"))
	}
}
