package wire_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/genaitrace/otelgenai/middleware/wire"
)

// delta is a chat chunk with one choice.
func delta(members string) string {
	return `{"id":"c","model":"m","choices":[{"index":0,"delta":{` + members + `},"finish_reason":null}]}`
}

func finished(reason string) string {
	return `{"id":"c","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"` + reason + `"}]}`
}

func TestOpenAIStreams(t *testing.T) {
	role, hi, stop := delta(`"role":"assistant","content":""`), delta(`"content":"hi"`), finished("stop")
	usage := func(u string) string { return `{"id":"c","model":"m","choices":[],"usage":` + u + `}` }
	checkAnswers(t, wire.Exchange{}, eventStreamType, []answerCase{
		{"no end mark", sse(role, hi, stop), "id=c model=m chunks=3/1 visible finish=stop finish"},
		{"no finish reason but an end mark", sse(role, hi, "[DONE]"), "id=c model=m chunks=2/1 visible done"},
		{"polite cut", sse(role, hi), "id=c model=m chunks=2/1 visible truncated error=stream_truncated"},
		{"cut in the usage chunk", sse(hi, stop) + `data: {"id":"c","choices":[],"usage":{"prompt_to`, "id=c model=m chunks=2/1 visible finish=stop truncated error=stream_truncated"},
		{"usage in every chunk", sse(
			`{"choices":[{"delta":{"content":"a"}}],"usage":{"prompt_tokens":5,"completion_tokens":1}}`,
			`{"choices":[{"delta":{"content":"b"}}],"usage":{"prompt_tokens":5,"completion_tokens":2}}`,
			`{"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":2}}`, "[DONE]"),
			"chunks=3/2 visible in=5 out=2 finish=stop done"},
		{"zeros after usage", sse(hi, stop, usage(`{"prompt_tokens":7,"completion_tokens":1}`), usage(`{"prompt_tokens":0,"completion_tokens":0}`), "[DONE]"),
			"id=c model=m chunks=4/1 visible in=7 out=1 finish=stop done"},
		{"usage null", sse(`{"choices":[{"delta":{"content":"a"}}],"usage":null}`, stop, usage("null"), "[DONE]"), "id=c model=m chunks=3/1 visible finish=stop done"},
		{"usage without details", sse(hi, stop, usage(`{"prompt_tokens":7,"completion_tokens":3,"prompt_tokens_details":null}`), "[DONE]"), "id=c model=m chunks=3/1 visible in=7 out=3 finish=stop done"},
		{"cached and reasoning tokens are parts", sse(hi, usage(`{"prompt_tokens":20,"completion_tokens":9,"total_tokens":29,"prompt_tokens_details":{"cached_tokens":16},"completion_tokens_details":{"reasoning_tokens":4}}`), "[DONE]"),
			"id=c model=m chunks=2/1 visible in=20 out=9 cached=16 reasoning=4 done"},
		{"xAI counts reasoning beside the completion", sse(hi, usage(`{"prompt_tokens":20,"completion_tokens":9,"total_tokens":33,"completion_tokens_details":{"reasoning_tokens":4}}`), "[DONE]"),
			"id=c model=m chunks=2/1 visible in=20 out=13 reasoning=4 done"},
		{"Perplexity counts the reasoning of research beside the completion, and not in its total", sse(hi, usage(`{"prompt_tokens":20,"completion_tokens":9,"total_tokens":29,"citation_tokens":300,"reasoning_tokens":400}`), "[DONE]"),
			"id=c model=m chunks=2/1 visible in=20 out=409 reasoning=400 done"},
		{"DeepSeek's cache", sse(hi, usage(`{"prompt_tokens":20,"completion_tokens":9,"prompt_cache_hit_tokens":12,"prompt_cache_miss_tokens":8}`), "[DONE]"),
			"id=c model=m chunks=2/1 visible in=20 out=9 cached=12 done"},
		{"SGLang's reasoning", sse(hi, usage(`{"prompt_tokens":20,"completion_tokens":9,"reasoning_tokens":5}`), "[DONE]"), "id=c model=m chunks=2/1 visible in=20 out=9 reasoning=5 done"},
		{"Moonshot's usage in the choice", sse(hi, `{"choices":[{"index":0,"delta":{},"finish_reason":"stop","usage":{"prompt_tokens":3,"completion_tokens":1,"cached_tokens":2}}]}`, "[DONE]"),
			"id=c model=m chunks=2/1 visible in=3 out=1 cached=2 finish=stop done"},
		{"two choices, out of order", sse(
			`{"choices":[{"index":1,"delta":{"content":"b"}}]}`, `{"choices":[{"index":0,"delta":{"content":"a"}}]}`,
			`{"choices":[{"index":1,"delta":{},"finish_reason":"length"}]}`, `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`, "[DONE]"),
			"chunks=4/2 visible finish=stop,length done"},
		{"two choices without an end mark", sse(
			`{"choices":[{"index":0,"delta":{"content":"a"}}]}`, `{"choices":[{"index":1,"delta":{"content":"b"}}]}`,
			`{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`, `{"choices":[{"index":1,"delta":{},"finish_reason":"stop"}]}`),
			"chunks=4/2 visible finish=stop,stop finish"},
		{"two choices, one of them cut", sse(
			`{"choices":[{"index":0,"delta":{"content":"a"}}]}`, `{"choices":[{"index":1,"delta":{"content":"b"}}]}`,
			`{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`, `{"choices":[{"index":1,"delta":{"content":"b"}}]}`),
			"chunks=4/3 visible finish=stop truncated error=stream_truncated"},
		{"choices empty, as Azure begins", sse(`{"choices":[],"prompt_filter_results":[{"prompt_index":0}]}`, role, hi, stop, "[DONE]"), "id=c model=m chunks=4/1 visible finish=stop done"},
		{"tools alone", sse(role, delta(`"tool_calls":[{"index":0,"id":"t","function":{"name":"f","arguments":""}}]`), delta(`"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]`), finished("tool_calls"), "[DONE]"),
			"id=c model=m chunks=4/2 finish=tool_calls done"},
		{"the deprecated function", sse(delta(`"function_call":{"name":"f","arguments":""}`), finished("function_call"), "[DONE]"), "id=c model=m chunks=2/1 finish=function_call done"},
		{"a custom tool", sse(delta(`"tool_calls":[{"index":0,"type":"custom","custom":{"name":"f","input":"x"}}]`), "[DONE]"), "id=c model=m chunks=1/1 done"},
		{"empty tool calls", sse(delta(`"tool_calls":[]`), delta(`"tool_calls":null,"content":null`), "[DONE]"), "id=c model=m chunks=2/0 done"},
		{"reasoning by OpenRouter's name", sse(delta(`"content":"","reasoning":"hm"`), hi, "[DONE]"), "id=c model=m chunks=2/2 visible done"},
		{"Mistral's thinking in parts", sse(delta(`"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]}]`), delta(`"content":[{"type":"text","text":"hi"}]`), "[DONE]"), "id=c model=m chunks=2/2 visible done"},
		{"spoken", sse(delta(`"audio":{"id":"a"}`), delta(`"audio":{"transcript":"hi"}`), delta(`"audio":{"data":"AAAA"}`), "[DONE]"), "id=c model=m chunks=3/2 visible done"},
		{"completions", sse(`{"id":"c","choices":[{"index":0,"text":"Once","finish_reason":null}]}`, `{"id":"c","choices":[{"index":0,"text":"","finish_reason":"length"}]}`, "[DONE]"), "id=c chunks=2/1 visible finish=length done"},
		{"heartbeats of OpenRouter", ": OPENROUTER PROCESSING\n\n: OPENROUTER PROCESSING\n\n" + sse(hi, stop, "[DONE]"), "id=c model=m chunks=2/1 visible finish=stop done"},
		{"CR alone", strings.ReplaceAll(sse(role, hi, stop, "[DONE]"), "\n", "\r"), "id=c model=m chunks=3/1 visible finish=stop done"},
		{"CRLF and a byte order mark", "\ufeff" + strings.ReplaceAll(sse(hi, stop, "[DONE]"), "\n", "\r\n"), "id=c model=m chunks=2/1 visible finish=stop done"},
		{"data over several lines", "data: {\"choices\":\ndata: [{\"delta\":\ndata: {\"content\":\"x\"}}]}\n\n" + sse("[DONE]"), "chunks=1/1 visible done"},
		{"events with names", "event: completion\nid: 1\n" + sse(hi) + "event: done\n" + sse("[DONE]"), "id=c model=m chunks=1/1 visible done"},
		{"nothing after the end mark counts", sse(hi, "[DONE]", hi, `{"error":{"type":"late"}}`, "[DONE]"), "id=c model=m chunks=1/1 visible done"},
		{"garbage after the end mark", sse(hi, stop, "[DONE]") + "garbage\n\x00\xff{{{", "id=c model=m chunks=2/1 visible finish=stop done"},
		{"garbage in an event", sse(hi, "garbage", "\xff\xfe", stop, "[DONE]"), "id=c model=m chunks=4/1 visible finish=stop done"},
		{"no choices at all", sse(`{"object":"x"}`), "chunks=1/0 eof"},
		{"an absurd index", sse(`{"choices":[{"index":99999999,"delta":{"content":"x"},"finish_reason":"stop"}]}`, "[DONE]"), "chunks=1/1 visible done"},
		{"escaped text that looks like members", sse(delta(`"content":"\"usage\":{\"prompt_tokens\":9},\"finish_reason\":\"stop\""`), "[DONE]"), "id=c model=m chunks=1/1 visible done"},
		{"invalid UTF-8", sse("{\"id\":\"\xff\",\"model\":\"m\",\"choices\":[{\"delta\":{\"content\":\"\xc3\"}}]}", "[DONE]"), "id=\uFFFD model=m chunks=1/1 visible done"},
	})
}

func TestOpenAIErrorsInsideAStream(t *testing.T) {
	hi := delta(`"content":"hi"`)
	checkAnswers(t, wire.Exchange{}, eventStreamType, []answerCase{
		{"a code and a type", sse(hi, `{"error":{"message":"secret","type":"tokens","code":"rate_limit_exceeded"}}`), "id=c model=m chunks=2/1 visible error error=rate_limit_exceeded"},
		{"a type alone", sse(hi, `{"error":{"type":"server_error","code":null}}`), "id=c model=m chunks=2/1 visible error error=server_error"},
		{"vLLM, with its end mark", sse(hi, `{"error":{"object":"error","message":"secret","type":"InternalServerError","param":null,"code":500}}`, "[DONE]"), "id=c model=m chunks=2/1 visible error error=InternalServerError"},
		{"vLLM before 0.10", sse(hi, `{"object":"error","message":"secret","type":"BadRequestError","param":null,"code":400}`, "[DONE]"), "id=c model=m chunks=2/1 visible error error=BadRequestError"},
		{"OpenRouter, with a number and a choice", sse(hi, `{"id":"c","error":{"code":502,"message":"secret"},"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}`), "id=c model=m chunks=2/1 visible finish=error error error=502"},
		{"OpenRouter, in the choice", sse(hi, `{"id":"c","choices":[{"index":0,"delta":{"content":""},"finish_reason":"error","error":{"code":502,"message":"secret"}}]}`, "[DONE]"), "id=c model=m chunks=2/1 visible finish=error error error=502"},
		{"no error in the choice", sse(`{"choices":[{"index":0,"delta":{"content":"a"},"error":null}]}`, "[DONE]"), "chunks=1/1 visible done"},
		{"a sentence", sse(hi, `{"error":"secret of the server"}`), "id=c model=m chunks=2/1 visible error error=stream_error"},
		{"Groq", sse(hi, `{"id":"c","choices":[],"x_groq":{"id":"r","error":"over_capacity"}}`, "[DONE]"), "id=c model=m chunks=2/1 visible error error=stream_error"},
		{"llama.cpp's field", sse(hi) + "error: {\"code\":500,\"message\":\"secret\",\"type\":\"server_error\"}\n\n", "id=c model=m chunks=2/1 visible error error=server_error"},
		{"an event of that name", sse(hi) + named("error", `{"message":"secret","type":"overloaded"}`), "id=c model=m chunks=2/1 visible error error=overloaded"},
		{"an event of that name that is no JSON", sse(hi) + named("error", "secret"), "id=c model=m chunks=2/1 visible error error=stream_error"},
		{"the first event", sse(`{"error":{"type":"invalid_request_error"}}`), "chunks=1/0 error error=invalid_request_error"},
		{"no error: null, false, empty", sse(`{"error":null,"choices":[]}`, `{"error":false,"choices":[]}`, `{"error":"","choices":[]}`, "[DONE]"), "chunks=3/0 done"},
		{"the first of two", sse(`{"error":{"type":"first"}}`, `{"error":{"type":"second"}}`), "chunks=2/0 error error=first"},
		{"JSON without a field", sse(hi) + "{\"error\":{\"type\":\"server_error\"}}\n", "id=c model=m chunks=2/1 visible error error=server_error"},
		{"JSON without a field or an end of line", sse(hi) + `{"error":{"type":"server_error"}}`, "id=c model=m chunks=2/1 visible error error=server_error"},
		{"a word too long to be one", sse(`{"error":{"type":"` + strings.Repeat("x", 2000) + `"}}`), "chunks=1/0 error error=stream_error"},
	})
}

func TestOpenAIEngineTimes(t *testing.T) {
	hi := delta(`"content":"hi"`)
	checkAnswers(t, wire.Exchange{}, eventStreamType, []answerCase{
		{"vLLM", sse(hi, `{"choices":[],"metrics":{"queue_time_ms":1.5,"time_to_first_token_ms":60.25,"generation_time_ms":2e3}}`, "[DONE]"),
			"id=c model=m chunks=2/1 visible done queue=1.5ms prefill=60.25ms decode=2s from=vllm.metrics"},
		{"vLLM, nothing known", sse(hi, `{"choices":[],"metrics":{"queue_time_ms":null,"time_to_first_token_ms":null}}`, "[DONE]"), "id=c model=m chunks=2/1 visible done"},
		{"vLLM, no metrics", sse(`{"choices":[],"metrics":null}`, "[DONE]"), "chunks=1/0 done"},
		{"llama.cpp without usage", sse(hi, `{"choices":[{"delta":{},"finish_reason":"stop"}],"timings":{"cache_n":236,"prompt_n":1,"prompt_ms":30.958,"predicted_n":35,"predicted_ms":661.064}}`, "[DONE]"),
			"id=c model=m chunks=2/1 visible in=237 out=35 cached=236 finish=stop done prefill=30.958ms decode=661.064ms from=llamacpp.timings"},
		{"llama.cpp, usage goes first", sse(hi, `{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":8},"timings":{"cache_n":0,"prompt_n":1,"predicted_n":2,"prompt_ms":1,"predicted_ms":2}}`, "[DONE]"),
			"id=c model=m chunks=2/1 visible in=9 out=8 done prefill=1ms decode=2ms from=llamacpp.timings"},
		{"llama.cpp, timings in each chunk", sse(
			`{"choices":[{"delta":{"content":"a"}}],"timings":{"cache_n":2,"prompt_n":3,"prompt_ms":10,"predicted_n":1,"predicted_ms":5}}`,
			`{"choices":[{"delta":{"content":"b"}}],"timings":{"cache_n":2,"prompt_n":3,"prompt_ms":10,"predicted_n":2,"predicted_ms":9}}`, "[DONE]"),
			"chunks=2/2 visible in=5 out=2 cached=2 done prefill=10ms decode=9ms from=llamacpp.timings"},
		{"Groq", sse(hi, `{"choices":[],"x_groq":{"id":"r","usage":{"prompt_tokens":1,"completion_tokens":2,"queue_time":0.0042,"prompt_time":6e-4,"completion_time":0.46,"total_time":0.4606}}}`, "[DONE]"),
			"id=c model=m chunks=2/1 visible in=1 out=2 done queue=4.2ms prefill=600µs decode=460ms total=460.6ms from=groq.usage"},
		{"Cerebras", sse(hi, `{"choices":[],"time_info":{"queue_time":0.001,"prompt_time":0.002,"completion_time":0.003,"total_time":0.006,"created":1}}`, "[DONE]"),
			"id=c model=m chunks=2/1 visible done queue=1ms prefill=2ms decode=3ms total=6ms from=cerebras.time_info"},
		{"Fireworks", sse(hi, `{"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":1},"perf_metrics":{"prompt-tokens":"10","cached-prompt-tokens":6,"server-time-to-first-token":0.021,"server-processing-time":"0.088","tokenizer-duration":0.001,"prefill-queue-duration":0.002,"prefill-duration":0.015}}`, "[DONE]"),
			"id=c model=m chunks=2/1 visible in=10 out=1 cached=6 finish=stop done queue=2ms tokenize=1ms prefill=15ms first=21ms total=88ms from=fireworks.perf_metrics"},
		{"no times: words, negative, infinite", sse(`{"choices":[],"metrics":{"queue_time_ms":"soon","time_to_first_token_ms":1e999,"generation_time_ms":true}}`, "[DONE]"), "chunks=1/0 done"},
	})
	header := func(pairs ...string) wire.Exchange {
		h := http.Header{}
		for i := 0; i < len(pairs); i += 2 {
			h.Set(pairs[i], pairs[i+1])
		}
		return wire.Exchange{Response: h}
	}
	body := `{"id":"c","choices":[{"index":0,"message":{"content":"x"},"finish_reason":"stop"}]}`
	checkAnswers(t, header("openai-processing-ms", "352"), jsonType, []answerCase{{"OpenAI's header", body, "id=c finish=stop processing=352ms from=openai.headers"}})
	checkAnswers(t, header("fireworks-server-time-to-first-token", "0.021", "fireworks-prefill-queue-duration", "0.5", "fireworks-prompt-tokens", "7", "fireworks-cached-prompt-tokens", "0"), jsonType, []answerCase{
		{"Fireworks' headers", body, "id=c in=7 cached=0 finish=stop queue=500ms first=21ms from=fireworks.headers"},
	})
	checkAnswers(t, header("openai-processing-ms", "nonsense"), jsonType, []answerCase{{"a header that is no number", body, "id=c finish=stop"}})
}

func TestOpenAIWholeAnswers(t *testing.T) {
	checkAnswers(t, wire.Exchange{}, jsonType, []answerCase{
		{"chat", `{"id":"c","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"x"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":1}}`, "id=c model=m in=3 out=1 finish=stop"},
		{"two choices", `{"id":"c","choices":[{"index":0,"message":{"content":"x"},"finish_reason":"stop"},{"index":1,"message":{"content":"y"},"finish_reason":"length"}]}`, "id=c finish=stop,length"},
		{"completions", `{"id":"c","object":"text_completion","choices":[{"index":0,"text":"x","finish_reason":"length"}],"usage":{"prompt_tokens":3,"completion_tokens":1}}`, "id=c in=3 out=1 finish=length"},
		{"embeddings", `{"object":"list","model":"m","data":[{"object":"embedding","index":0,"embedding":[0.1,-2e-3]}],"usage":{"prompt_tokens":8,"total_tokens":8}}`, "model=m in=8"},
		{"Groq's times in the usage", `{"id":"c","choices":[],"usage":{"queue_time":0.01,"prompt_tokens":1,"prompt_time":0.02,"completion_tokens":2,"completion_time":0.03,"total_time":0.05}}`, "id=c in=1 out=2 queue=10ms prefill=20ms decode=30ms total=50ms from=groq.usage"},
		{"an error in the choice", `{"id":"c","choices":[{"index":0,"message":{"content":""},"finish_reason":"error","error":{"code":502,"message":"secret"}}]}`, "id=c finish=error error error=502"},
		{"a byte order mark", "\ufeff" + `{"id":"c","choices":[{"index":0,"message":{"content":"x"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":1}}`, "id=c in=3 out=1 finish=stop"},
		{"an error and status 200", `{"error":{"message":"secret","type":"server_error"}}`, "error error=server_error"},
	})
	checkAnswers(t, wire.Exchange{Status: 400}, jsonType, []answerCase{
		{"a bad request", `{"error":{"message":"secret","type":"invalid_request_error","code":"model_not_found"}}`, "http_error error=model_not_found"},
		{"a sentence, for which the status speaks", `{"error":"secret"}`, "http_error error=_OTHER"},
		{"nothing", ``, "http_error error=_OTHER"},
	})
}
