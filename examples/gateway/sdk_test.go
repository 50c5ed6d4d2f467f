package main

import (
	"cmp"
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/genaitrace/otelgenai/capture"
	"github.com/genaitrace/otelgenai/contract/contracttest"
)

// calls are questions of client libraries, each with the answer that the upstream
// gives.
var calls = []struct {
	library, fixture string
	ask              asker
	route, span      string
	stretch          float64 // so that what the engine tells fits
}{
	{"openai-go", "openai_chat_usage", openaiStream, "/v1/chat/completions", "chat gpt-fx", 1},
	{"openai-go", "openai_chat_tool_fragments", openaiStream, "/v1/chat/completions", "chat gpt-fx", 1},
	{"openai-go", "openai_chat_error_midstream", openaiStream, "/v1/chat/completions", "chat gpt-fx", 1},
	{"openai-go", "vllm_request_metrics", openaiStream, "/v1/chat/completions", "chat gpt-fx", 3},
	{"openai-go", "openai_chat_nonstream", openaiWhole, "/v1/chat/completions", "chat gpt-fx", 1},
	{"openai-go", "http_429_json", openaiWhole, "/v1/chat/completions", "chat gpt-fx", 1},
	{"openai-go", "responses_reasoning_text", openaiResponses, "/v1/responses", "chat gpt-fx", 1},
	{"anthropic-sdk-go", "anthropic_basic", anthropicStream, "/v1/messages", "chat claude-fx", 1},
	{"anthropic-sdk-go", "anthropic_thinking_tool", anthropicStream, "/v1/messages", "chat claude-fx", 1},
	{"anthropic-sdk-go", "anthropic_error_overloaded", anthropicStream, "/v1/messages", "chat claude-fx", 1},
	{"anthropic-sdk-go", "http_429_json", anthropicStream, "/v1/messages", "chat claude-fx", 1},
	{"go-openai", "openai_chat_usage", goOpenAIStream, "/v1/chat/completions", "chat gpt-fx", 1},
	{"go-openai", "openai_chat_deepseek_reasoning", goOpenAIStream, "/v1/chat/completions", "chat gpt-fx", 1},
	{"go-openai", "llamacpp_timings", goOpenAIStream, "/v1/chat/completions", "chat gpt-fx", 2},
	{"ollama", "ollama_thinking_tool", ollamaChat, "/api/chat", "chat llama-fx", 3},
	{"ollama", "ollama_chat", ollamaChat, "/api/chat", "chat llama-fx", 1},
	{"ollama", "ollama_error_midstream", ollamaChat, "/api/chat", "chat llama-fx", 1},
}

// Through the gateway every library gets what it gets without it, byte for byte, the
// server is asked the same, and the spans say what there was.
func TestClientsThroughTheGateway(t *testing.T) {
	for _, tt := range calls {
		t.Run(tt.library+"/"+tt.fixture, func(t *testing.T) {
			t.Parallel()
			f := loadFixture(t, tt.fixture)
			obs, spans := observe(t)
			up := startUpstream(t, f, tt.stretch, sendsAll)
			gateway, stop := startGateway(t, up.URL, obs)

			want := up.askAt(t, up.URL, tt.ask, false)
			sameAsked(t, up.askAt(t, gateway, tt.ask, false), want)
			stop()

			spans.ended(t)
			failed := f.Expect.Terminal == "error" || f.Expect.Terminal == "http_error"
			if failed {
				obs.Holds(t)
			} else {
				obs.Require(t, "gateway")
			}
			server, call := obs.Span(t, "POST "+tt.route), obs.Span(t, tt.span)
			checkCall(t, call, f)
			checkTTFT(t, call, f, tt.stretch)
			checkTTFT(t, server, f, tt.stretch)
			checkStatus(t, call, failed, cmp.Or(f.Expect.ErrorType, "429"))
			if failed && f.Status == http.StatusOK { // the gateway answers a 429 as it should
				checkStatus(t, server, true, f.Expect.ErrorType)
			}
			obs.GoldenTree(t, "testdata/"+tt.library+"/"+tt.fixture+".trace.txt", shown)
		})
	}
}

// A client that leaves in mid-stream ends everything once, and is nobody's failure.
func TestAClientThatLeaves(t *testing.T) {
	eachLibrary(t, func(t *testing.T, f *fixture, ask asker) {
		obs, spans := observe(t)
		up := startUpstream(t, f, 1, holds)
		gateway, stop := startGateway(t, up.URL, obs)
		got := up.askAt(t, gateway, ask, true)
		// ollama's library keeps its error to itself.
		if got.Err != "" && !strings.Contains(got.Err, context.Canceled.Error()) {
			t.Errorf("the library says %q, want that its context was cancelled", got.Err)
		}
		stop()
		spans.ended(t)
		obs.Holds(t)
		for _, role := range []string{"gateway", "call"} {
			s := obs.Span(t, role)
			s.Attr("genai.stream.terminal").Equal("client_cancelled")
			s.Attr("llm.ttft_ms").Present()
			checkStatus(t, s, false, "")
		}
		up.Close() // waits for its requests
		if !up.left.Load() {
			t.Error("the upstream did not learn that the client left")
		}
	})
}

// A server that dies in mid-stream is a failure of both, and the client sees it die.
func TestAServerThatDies(t *testing.T) {
	eachLibrary(t, func(t *testing.T, f *fixture, ask asker) {
		obs, spans := observe(t)
		up := startUpstream(t, f, 1, cuts)
		gateway, stop := startGateway(t, up.URL, obs)
		want := up.askAt(t, up.URL, ask, false)
		sameAsked(t, up.askAt(t, gateway, ask, false), want)
		stop()
		spans.ended(t)
		obs.Holds(t)
		for _, role := range []string{"gateway", "call"} {
			s := obs.Span(t, role)
			s.Attr("genai.stream.terminal").Equal("truncated")
			s.Attr("llm.ttft_ms").Present()
			checkStatus(t, s, true, "stream_truncated")
		}
	})
}

// eachLibrary runs a test with each client library.
func eachLibrary(t *testing.T, run func(t *testing.T, f *fixture, ask asker)) {
	t.Helper()
	for _, tt := range []struct {
		library, fixture string
		ask              asker
	}{
		{"openai-go", "openai_chat_usage", openaiStream},
		{"openai-go responses", "responses_reasoning_text", openaiResponses},
		{"anthropic-sdk-go", "anthropic_basic", anthropicStream},
		{"go-openai", "openai_chat_usage", goOpenAIStream},
		{"ollama", "ollama_chat", ollamaChat},
	} {
		t.Run(tt.library, func(t *testing.T) {
			t.Parallel()
			run(t, loadFixture(t, tt.fixture), tt.ask)
		})
	}
}

// shown is what a golden file says of a span: all but what depends on the time.
var shown = capture.TreeOptions{
	Attributes: []string{
		"gen_ai.*", "genai.chunk.count", "genai.chunk.output_count", "genai.first_visible_ms", "genai.stream.terminal",
		"genai.timing.source", "genai.ttft.*", "llm.*", "ai.*", "http.*", "error.type", "url.path",
	},
	Values: []string{"gen_ai.usage.*", "ai.tokens.*", "llm.queue_wait_ms", "ai.*.duration_ms"},
}

// A counter counts the spans that start and end.
type counter struct{ starts, ends atomic.Int32 }

func (c *counter) OnStart(context.Context, sdktrace.ReadWriteSpan) { c.starts.Add(1) }
func (c *counter) OnEnd(sdktrace.ReadOnlySpan)                     { c.ends.Add(1) }
func (c *counter) Shutdown(context.Context) error                  { return nil }
func (c *counter) ForceFlush(context.Context) error                { return nil }

// ended checks that every span that started has ended, once.
func (c *counter) ended(t *testing.T) {
	t.Helper()
	if starts, ends := c.starts.Load(), c.ends.Load(); starts < 2 || starts != ends {
		t.Errorf("%d spans started, %d ended", starts, ends)
	}
}

func observe(t *testing.T) (*contracttest.Observer, *counter) {
	t.Helper()
	obs, spans := contracttest.New(t, contracttest.File("testdata/busy.yaml")), &counter{}
	obs.TracerProvider().RegisterSpanProcessor(spans)
	return obs, spans
}

func sameAsked(t *testing.T, got, want asked) {
	t.Helper()
	for _, part := range []struct{ name, got, want string }{
		{"the library's answer", got.Answer, want.Answer},
		{"its error", got.Err, want.Err},
		{"the response", got.Response, want.Response},
		{"the request", got.Request, want.Request},
	} {
		if part.got != part.want {
			t.Errorf("%s through the gateway:\n%s\nwithout it:\n%s", part.name, part.got, part.want)
		}
	}
	if want.Answer == "" && want.Err == "" {
		t.Error("the library says nothing at all")
	}
}

// checkCall checks what the answer tells.
func checkCall(t *testing.T, call *contracttest.Span, f *fixture) {
	t.Helper()
	e := f.Expect
	optional(call, "gen_ai.usage.input_tokens", e.InputTokens)
	optional(call, "gen_ai.usage.output_tokens", e.OutputTokens)
	optional(call, "gen_ai.usage.cache_read.input_tokens", e.CachedTokens)
	optional(call, "gen_ai.usage.reasoning.output_tokens", e.ReasoningTokens)
	optional(call, "llm.queue_wait_ms", e.Engine.QueueMs)
	optional(call, "ai.load.duration_ms", e.Engine.LoadMs)
	optional(call, "ai.prefill.duration_ms", e.Engine.PrefillMs)
	optional(call, "ai.decode.duration_ms", e.Engine.DecodeMs)
	if len(e.Finish) > 0 {
		call.Attr("gen_ai.response.finish_reasons").Equal(e.Finish)
	} else {
		call.Attr("gen_ai.response.finish_reasons").Absent()
	}
	if e.FirstTokenMs != nil {
		call.Attr("genai.stream.terminal").Equal(e.Terminal)
	}
}

func optional[T int | float64](s *contracttest.Span, key attribute.Key, want *T) {
	if want == nil {
		s.Attr(key).Absent()
		return
	}
	s.Attr(key).Equal(*want)
}

// checkTTFT checks that a stream has one, of at least what its server took.
func checkTTFT(t *testing.T, s *contracttest.Span, f *fixture, stretch float64) {
	t.Helper()
	if f.Expect.FirstTokenMs == nil {
		s.Attr("llm.ttft_ms").Absent()
		return
	}
	s.Attr("llm.ttft_ms").Between(*f.Expect.FirstTokenMs*stretch, 60_000)
}

func checkStatus(t *testing.T, s *contracttest.Span, failed bool, errorType string) {
	t.Helper()
	if got := s.Captured().Status == codes.Error; got != failed {
		t.Errorf("%s failed: %t, want %t", s.Captured().Name, got, failed)
	}
	if failed {
		s.Attr("error.type").Equal(errorType)
	} else {
		s.Attr("error.type").Absent()
	}
}
