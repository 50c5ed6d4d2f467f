package wire_test

import (
	"net/http"
	"testing"

	"github.com/genaitrace/otelgenai/middleware/wire"
)

func TestOllamaStreams(t *testing.T) {
	chat := func(message, rest string) string {
		return `{"model":"m","created_at":"2026-01-01T00:00:00.123456789Z","message":{"role":"assistant",` + message + `},"done":` + rest + `}`
	}
	hi := chat(`"content":"hi"`, "false")
	const done = `true,"done_reason":"stop","total_duration":60000000,"load_duration":1000000,"prompt_eval_count":5,"prompt_eval_duration":15000000,"eval_count":9,"eval_duration":40000000`
	const times = "load=1ms prefill=15ms decode=40ms total=60ms from=ollama"
	checkAnswers(t, wire.Exchange{}, jsonLinesType, []answerCase{
		{"chat", lines(hi, chat(`"content":""`, done)), "model=m chunks=2/1 visible in=5 out=9 finish=stop done " + times},
		{"no line end at the end", hi + "\n" + chat(`"content":""`, done), "model=m chunks=2/1 visible in=5 out=9 finish=stop done " + times},
		{"CRLF and blank lines", hi + "\r\n\r\n\n" + chat(`"content":""`, done) + "\r\n", "model=m chunks=2/1 visible in=5 out=9 finish=stop done " + times},
		{"generate", lines(`{"model":"m","created_at":"x","response":"Once","done":false}`, `{"model":"m","created_at":"y","response":"","done":true,"done_reason":"length","eval_count":1}`), "model=m chunks=2/1 visible out=1 finish=length done"},
		{"generate, thinking", lines(`{"model":"m","response":"","thinking":"hm","done":false}`, `{"model":"m","response":"so","done":false}`, `{"model":"m","response":"","done":true,"done_reason":"stop"}`), "model=m chunks=3/2 visible finish=stop done"},
		{"chat, thinking and a tool", lines(chat(`"content":"","thinking":"hm"`, "false"), chat(`"content":"","tool_calls":[{"function":{"name":"f","arguments":{"a":1}}}]`, "false"), chat(`"content":""`, `true,"done_reason":"stop"`)), "model=m chunks=3/2 finish=stop done"},
		{"the whole prompt was cached", lines(hi, chat(`"content":""`, `true,"done_reason":"stop","eval_count":3,"eval_duration":7`)), "model=m chunks=2/1 visible out=3 finish=stop done decode=7ns from=ollama"},
		{"a model that is loaded", lines(`{"model":"m","created_at":"x","response":"","done":true,"done_reason":"load"}`), "model=m chunks=1/0 finish=load done"},
		{"done without a reason", lines(hi, chat(`"content":""`, "true")), "model=m chunks=2/1 visible done"},
		{"polite cut", lines(hi, hi), "model=m chunks=2/2 visible truncated error=stream_truncated"},
		{"cut in a line", lines(hi) + hi[:50], "model=m chunks=1/1 visible truncated error=stream_truncated"},
		{"an error line", lines(hi, `{"error":"secret"}`), "model=m chunks=2/1 visible error error=stream_error"},
		{"an error line first", lines(`{"error":"secret"}`), "chunks=1/0 error error=stream_error"},
		{"a byte order mark", "\ufeff" + lines(hi, chat(`"content":""`, done)), "model=m chunks=2/1 visible in=5 out=9 finish=stop done " + times},
		{"garbage between", lines(hi, "garbage", hi, chat(`"content":""`, "true")), "model=m chunks=4/2 visible done"},
		{"garbage after the end", lines(hi, chat(`"content":""`, "true"), "garbage", hi), "model=m chunks=2/1 visible done"},
	})
	checkAnswers(t, wire.Exchange{}, jsonType, []answerCase{
		{"chat, not streamed", chat(`"content":"hi"`, done), "model=m in=5 out=9 finish=stop " + times},
		{"embeddings", `{"model":"m","embeddings":[[0.1,0.2]],"total_duration":14143917,"load_duration":1019500,"prompt_eval_count":8}`, "model=m in=8 load=1.0195ms total=14.143917ms from=ollama"},
	})
	checkAnswers(t, wire.Exchange{Status: 404, Path: "/api/chat"}, jsonType, []answerCase{{"no such model", `{"error":"model 'x' not found"}`, "http_error error=_OTHER"}})
}

func TestLlamaCPPStreams(t *testing.T) {
	checkAnswers(t, wire.Exchange{}, eventStreamType, []answerCase{
		{"cut: the counts so far", sse(`{"index":0,"content":"a","stop":false,"tokens_predicted":1,"tokens_evaluated":4}`, `{"index":0,"content":"b","stop":false,"tokens_predicted":2,"tokens_evaluated":4}`), "chunks=2/2 visible in=4 out=2 truncated error=stream_truncated"},
		{"progress of the prompt is no output", sse(`{"index":0,"content":"","stop":false,"prompt_progress":{"total":9,"processed":3}}`, `{"index":0,"content":"a","stop":false}`, `{"content":"","stop":true,"stop_type":"limit"}`), "chunks=3/1 visible finish=limit finish"},
		{"before stop_type", sse(`{"content":"a","stop":false}`, `{"content":"","stop":true,"model":"m","stopped_eos":false,"stopped_limit":true,"stopped_word":false,"tokens_predicted":1,"tokens_evaluated":3}`), "model=m chunks=2/1 visible in=3 out=1 finish=limit finish"},
		{"stop without a reason", sse(`{"content":"a","stop":false}`, `{"content":"","stop":true}`), "chunks=2/1 visible finish"},
		{"two prompts, one of them cut", sse(`{"index":0,"content":"a","stop":false}`, `{"index":1,"content":"b","stop":false}`, `{"index":0,"content":"","stop":true,"stop_type":"eos"}`), "chunks=3/2 visible finish=eos truncated error=stream_truncated"},
		{"an error", sse(`{"content":"a","stop":false}`) + "error: {\"error\":{\"code\":500,\"message\":\"secret\",\"type\":\"server_error\"}}\n\n", "chunks=2/1 visible error error=stream_error"},
	})
	checkAnswers(t, wire.Exchange{}, jsonType, []answerCase{
		{"not streamed", `{"index":0,"content":"hi","model":"m","stop":true,"stop_type":"word","tokens_predicted":2,"tokens_evaluated":40,"tokens_cached":41,"timings":{"cache_n":36,"prompt_n":4,"prompt_ms":12.5,"predicted_n":2,"predicted_ms":11}}`,
			"model=m in=40 out=2 cached=36 finish=word prefill=12.5ms decode=11ms from=llamacpp.timings"},
	})
}

func TestTGIStreams(t *testing.T) {
	token := func(text, special, rest string) string {
		return `{"index":1,"token":{"id":7,"text":"` + text + `","logprob":-0.25,"special":` + special + `},` + rest + `}`
	}
	hi := token("hi", "false", `"generated_text":null,"details":null`)
	checkAnswers(t, wire.Exchange{}, eventStreamType, []answerCase{
		{"length", sse(hi, token("!", "false", `"generated_text":"hi!","details":{"finish_reason":"length","generated_tokens":2,"input_length":4}`)), "chunks=2/2 visible in=4 out=2 finish=length finish"},
		{"a special token is output and no text", sse(token("</s>", "true", `"generated_text":"","details":{"finish_reason":"eos_token","generated_tokens":1,"input_length":4}`)), "chunks=1/1 in=4 out=1 finish=eos_token finish"},
		{"no details", sse(hi, token("!", "false", `"generated_text":"hi!"`)), "chunks=2/2 visible finish"},
		{"polite cut", sse(hi, hi), "chunks=2/2 visible truncated error=stream_truncated"},
		{"an error", sse(hi, `{"error":"secret","error_type":"generation"}`), "chunks=2/1 visible error error=generation"},
		{"an error without a type", sse(hi, `{"error":"secret"}`), "chunks=2/1 visible error error=stream_error"},
		{"an error first", sse(`{"error":"secret","error_type":"overloaded"}`), "chunks=1/0 error error=stream_error"},
	})
	checkAnswers(t, wire.Exchange{Path: "/generate_stream"}, eventStreamType, []answerCase{
		{"an error first, where the path tells", sse(`{"error":"secret","error_type":"overloaded"}`), "chunks=1/0 error error=overloaded"},
	})
	checkAnswers(t, wire.Exchange{}, jsonType, []answerCase{
		{"with details", `{"generated_text":"hi","details":{"finish_reason":"stop_sequence","generated_tokens":2,"prefill":[]}}`, "out=2 finish=stop_sequence"},
	})
	checkAnswers(t, wire.Exchange{Status: 422, Path: "/generate"}, jsonType, []answerCase{{"invalid", `{"error":"Input validation error","error_type":"validation"}`, "http_error error=validation"}})
	own := http.Header{}
	own.Set("X-Queue-Time", "99")
	checkAnswers(t, wire.Exchange{Response: own}, jsonType, []answerCase{{"a header of somebody else", `{"generated_text":"hi"}`, ""}})
}

func TestSGLangStreams(t *testing.T) {
	event := func(text string, n string, rest string) string {
		return `{"text":"` + text + `","meta_info":{"id":"r","finish_reason":null,"prompt_tokens":9,"completion_tokens":` + n + rest + `}}`
	}
	checkAnswers(t, wire.Exchange{}, eventStreamType, []answerCase{
		{"the last event repeats the text", sse(event("a", "1", ""), event("ab", "2", ""), `{"text":"ab","meta_info":{"id":"r","finish_reason":{"type":"length","length":2},"prompt_tokens":9,"completion_tokens":2}}`, "[DONE]"), "id=r chunks=3/2 visible in=9 out=2 finish=length done"},
		{"pieces of the same length (--stream-output)", sse(event("aa", "1", ""), event("bb", "2", ""), event("cc", "3", ""), "[DONE]"), "id=r chunks=3/3 visible in=9 out=3 done"},
		{"an old server's reason", sse(event("a", "1", ""), `{"text":"a","meta_info":{"id":"r","finish_reason":"stop","completion_tokens":1}}`, "[DONE]"), "id=r chunks=2/1 visible in=9 out=1 finish=stop done"},
		{"two choices", sse(
			`{"index":0,"text":"a","meta_info":{"id":"r","completion_tokens":1}}`, `{"index":1,"text":"b","meta_info":{"id":"r","completion_tokens":1}}`,
			`{"index":0,"text":"aa","meta_info":{"id":"r","completion_tokens":2,"finish_reason":{"type":"stop"}}}`, `{"index":1,"text":"bbb","meta_info":{"id":"r","completion_tokens":3,"finish_reason":{"type":"length"}}}`, "[DONE]"),
			"id=r chunks=4/4 visible out=5 finish=stop,length done"},
		{"two choices whose last events repeat the text", sse(
			`{"index":0,"text":"aa","meta_info":{"id":"r","completion_tokens":2}}`, `{"index":1,"text":"bbb","meta_info":{"id":"r","completion_tokens":3}}`,
			`{"index":0,"text":"aa","meta_info":{"id":"r","completion_tokens":2,"finish_reason":{"type":"stop"}}}`, `{"index":1,"text":"bbb","meta_info":{"id":"r","completion_tokens":3,"finish_reason":{"type":"stop"}}}`, "[DONE]"),
			"id=r chunks=4/2 visible out=5 finish=stop,stop done"},
		{"aborted by the server", sse(event("a", "1", ""), `{"text":"a","meta_info":{"id":"r","completion_tokens":1,"finish_reason":{"type":"abort","message":"secret","status_code":503,"err_type":"ServiceUnavailable"}}}`, "[DONE]"), "id=r chunks=2/1 visible in=9 out=1 finish=abort error error=ServiceUnavailable"},
		{"aborted", sse(event("a", "1", ""), `{"text":"a","meta_info":{"id":"r","completion_tokens":1,"finish_reason":{"type":"abort","message":"x","status_code":null}}}`, "[DONE]"), "id=r chunks=2/1 visible in=9 out=1 finish=abort done"},
		{"times that are not known", sse(event("a", "1", `,"queue_time":null,"forward_entry_time":1767000000.5,"prefill_finished_time":null`), "[DONE]"), "id=r chunks=1/1 visible in=9 out=1 done"},
		{"an error", sse(event("a", "1", ""), `{"error":{"message":"secret"}}`, "[DONE]"), "id=r chunks=2/1 visible in=9 out=1 error error=stream_error"},
	})
	checkAnswers(t, wire.Exchange{}, jsonType, []answerCase{
		{"not streamed", `{"text":"hi","meta_info":{"id":"r","finish_reason":{"type":"stop"},"prompt_tokens":9,"completion_tokens":2,"cached_tokens":3,"e2e_latency":0.082}}`, "id=r in=9 out=2 cached=3 finish=stop total=82ms from=sglang.meta_info"},
		{"a batch cannot be told apart", `[{"text":"a","meta_info":{"completion_tokens":1}},{"text":"b","meta_info":{"completion_tokens":1}}]`, ""},
	})
}

func TestTritonAndKServe(t *testing.T) {
	checkAnswers(t, wire.Exchange{}, eventStreamType, []answerCase{
		{"cut in an event", sse(`{"model_name":"m","text_output":"a"}`) + `data: {"model_name":"m","text_o`, "model=m chunks=1/1 visible truncated error=stream_truncated"},
		{"empty outputs are none", sse(`{"model_name":"m","text_output":""}`, `{"model_name":"m","text_output":["a"]}`, `{"model_name":"m","text_output":[""]}`), "model=m chunks=3/1 visible eof"},
		{"KServe says why it ends", sse(`{"id":"i","model_name":"m","text_output":"a","details":{"finish_reason":"length"}}`), "id=i model=m chunks=1/1 visible finish=length finish"},
		{"an error", sse(`{"model_name":"m","text_output":"a"}`, `{"error":"secret"}`), "model=m chunks=2/1 visible error error=stream_error"},
	})
	checkAnswers(t, wire.Exchange{}, jsonType, []answerCase{
		{"generate", `{"model_name":"m","model_version":"1","text_output":"hi"}`, "model=m"},
		{"infer", `{"model_name":"m","model_version":"1","id":"i","outputs":[{"name":"y","datatype":"FP32","shape":[1],"data":[0.5]}]}`, "id=i model=m"},
	})
	checkAnswers(t, wire.Exchange{Status: 400, Path: "/v2/models/m/infer"}, jsonType, []answerCase{{"an error", `{"error":"secret"}`, "http_error error=_OTHER"}})
}
