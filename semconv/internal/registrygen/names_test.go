package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestGoNameOfAKey(t *testing.T) {
	tests := []struct{ strip, key, want string }{
		{"", "ai.model.name", "AIModelName"},
		{"", "ai.kv_cache.hit_ratio", "AIKVCacheHitRatio"},
		{"", "ai.gpu.device_id", "AIGPUDeviceID"},
		{"", "llm.ttft_ms", "LLMTTFTMs"},
		{"", "genai.request_id", "GenAIRequestID"},
		{"", "genai.token.gap.p50_ms", "GenAITokenGapP50Ms"},
		{"", "genai.rag.chunk_id", "GenAIRAGChunkID"},
		{"gen_ai", "gen_ai.request.model", "RequestModel"},
		{"gen_ai", "gen_ai.usage.cache_read.input_tokens", "UsageCacheReadInputTokens"},
		{"gen_ai", "gen_ai.skill.source.uri", "SkillSourceURI"},
		{"mcp", "mcp.session.id", "SessionID"},
	}
	for _, tt := range tests {
		f := &File{Strip: tt.strip}
		require.Equal(t, tt.want, f.attributeName(Attribute{Key: tt.key}), tt.key)
		require.Equal(t, tt.want, f.metricName(Metric{Name: tt.key}), tt.key)
	}
}

func TestGoOverridesTheName(t *testing.T) {
	f := &File{Strip: "gen_ai"}
	a := Attribute{Key: "gen_ai.provider.name", Go: "Provider"}

	require.Equal(t, "Provider", f.attributeName(a))
	require.Equal(t, "ProviderGroq", f.memberName(a, Member{Value: "groq"}))
	require.Equal(t, "ProviderXAI", f.memberName(a, Member{Value: "x_ai", Go: "XAI"}))
	require.Equal(t, "Duration", f.metricName(Metric{Name: "gen_ai.a.b", Go: "Duration"}))
}

func TestGoNameOfAMemberSpanAndEvent(t *testing.T) {
	f := &File{}
	role := Attribute{Key: "genai.span.role"}

	require.Equal(t, "GenAISpanRoleHTTPError", f.memberName(role, Member{Value: "http-error"}))
	require.Equal(t, "SpanQueueWait", f.spanName(Span{Type: "queue.wait"}))
	require.Equal(t, "EventFirstToken", f.eventName(Event{Name: "first_token"}))
}
