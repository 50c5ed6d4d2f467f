package wire_test

import (
	"testing"

	"github.com/genaitrace/otelgenai/middleware/wire"
)

func TestResponsesStreams(t *testing.T) {
	created := `{"type":"response.created","sequence_number":0,"response":{"id":"resp","object":"response","status":"in_progress","model":"m","output":[],"error":null,"incomplete_details":null,"usage":null}}`
	text := `{"type":"response.output_text.delta","sequence_number":4,"item_id":"i","output_index":0,"content_index":0,"delta":"hi","obfuscation":"aXq"}`
	ended := func(kind, members string) string {
		return `{"type":"response.` + kind + `","sequence_number":9,"response":{"id":"resp","object":"response","model":"m","status":"` + kind + `",` + members + `}}`
	}
	const usage = `"usage":{"input_tokens":36,"input_tokens_details":{"cached_tokens":12},"output_tokens":50,"output_tokens_details":{"reasoning_tokens":40},"total_tokens":86}`
	event := func(kind, members string) string {
		return `{"type":"response.` + kind + `","sequence_number":5,` + members + `}`
	}
	checkAnswers(t, wire.Exchange{}, eventStreamType, []answerCase{
		{"completed", named("response.created", created, "response.output_text.delta", text, "response.completed", ended("completed", usage)), "id=resp model=m chunks=3/1 visible in=36 out=50 cached=12 reasoning=40 finish=completed done"},
		{"incomplete", sse(created, text, ended("incomplete", `"incomplete_details":{"reason":"max_output_tokens"},`+usage)), "id=resp model=m chunks=3/1 visible in=36 out=50 cached=12 reasoning=40 finish=max_output_tokens done"},
		{"incomplete, no reason", sse(created, ended("incomplete", `"incomplete_details":null`)), "id=resp model=m chunks=2/0 finish=incomplete done"},
		{"failed", sse(created, ended("failed", `"error":{"code":"rate_limit_exceeded","message":"secret"}`)), "id=resp model=m chunks=2/0 finish=failed error error=rate_limit_exceeded"},
		{"failed, no reason", sse(created, ended("failed", `"error":null`)), "id=resp model=m chunks=2/0 finish=failed error error=stream_error"},
		{"failed, no status", sse(created, `{"type":"response.failed","response":{"error":{"code":"server_error"}}}`), "id=resp model=m chunks=2/0 error error=server_error"},
		{"cancelled", sse(created, ended("cancelled", `"error":null`)), "id=resp model=m chunks=2/0 finish=cancelled done"},
		{"an error event", sse(created, `{"type":"error","sequence_number":1,"code":"rate_limit_exceeded","message":"secret"}`), "id=resp model=m chunks=2/0 error error=rate_limit_exceeded"},
		{"an error event with an object", sse(created, `{"type":"error","sequence_number":1,"error":{"type":"invalid_request_error","code":"context_length_exceeded"}}`), "id=resp model=m chunks=2/0 error error=context_length_exceeded"},
		{"an error event without a code", sse(created, `{"type":"error","code":null,"message":"secret"}`), "id=resp model=m chunks=2/0 error error=stream_error"},
		{"an error event first", sse(`{"type":"error","code":"server_error","message":"secret","sequence_number":0}`), "chunks=1/0 error error=server_error"},
		{"heartbeats before the first event are none of it", sse(`{"type":"keepalive","sequence_number":0}`, created, text, ended("completed", `"usage":null`)), "id=resp model=m chunks=3/1 visible finish=completed done"},
		{"a heartbeat between", sse(created, `{"type":"keepalive","sequence_number":3}`, text, ended("completed", `"usage":null`)), "id=resp model=m chunks=4/1 visible finish=completed done"},
		{"polite cut", sse(created, text), "id=resp model=m chunks=2/1 visible truncated error=stream_truncated"},
		{"a refusal", sse(created, event("refusal.delta", `"delta":"no"`), event("refusal.done", `"refusal":"no"`), ended("completed", usage)), "id=resp model=m chunks=4/1 visible in=36 out=50 cached=12 reasoning=40 finish=completed done"},
		{"reasoning text and summary", sse(created, event("reasoning_text.delta", `"delta":"a"`), event("reasoning_summary_text.delta", `"delta":"b"`), event("reasoning_summary_text.done", `"text":"b"`), ended("completed", `"usage":null`)), "id=resp model=m chunks=5/2 finish=completed done"},
		{"a function: its name comes with the item", sse(created, event("output_item.added", `"item":{"type":"function_call","name":"f","arguments":""}`), event("function_call_arguments.delta", `"delta":"{}"`), event("function_call_arguments.done", `"arguments":"{}"`), event("output_item.done", `"item":{"type":"function_call","name":"f","arguments":"{}"}`), ended("completed", `"usage":null`)),
			"id=resp model=m chunks=6/2 finish=completed done"},
		{"tools of the server", sse(created, event("output_item.added", `"item":{"type":"web_search_call","status":"in_progress"}`), event("web_search_call.searching", `"item_id":"i"`), event("code_interpreter_call_code.delta", `"delta":"x"`), ended("completed", `"usage":null`)), "id=resp model=m chunks=5/1 finish=completed done"},
		{"spoken", sse(created, event("output_audio_transcript.delta", `"delta":"hi"`), event("output_audio.delta", `"delta":"AAAA"`), ended("completed", `"usage":null`)), "id=resp model=m chunks=4/2 visible finish=completed done"},
		{"unknown deltas are no output", sse(created, event("new_thing.delta", `"delta":"x"`), text, ended("completed", `"usage":null`)), "id=resp model=m chunks=4/1 visible finish=completed done"},
		{"empty deltas are no output", sse(created, event("output_text.delta", `"delta":""`), ended("completed", `"usage":null`)), "id=resp model=m chunks=3/0 finish=completed done"},
		{"nothing cached and no reasoning", sse(created, ended("completed", `"usage":{"input_tokens":3,"input_tokens_details":{"cached_tokens":0},"output_tokens":2,"output_tokens_details":{"reasoning_tokens":0}}`)), "id=resp model=m chunks=2/0 in=3 out=2 finish=completed done"},
		{"a [DONE] that gateways add", sse(created, text, ended("completed", `"usage":null`), "[DONE]"), "id=resp model=m chunks=3/1 visible finish=completed done"},
	})
}

func TestResponsesWholeAnswers(t *testing.T) {
	checkAnswers(t, wire.Exchange{}, jsonType, []answerCase{
		{"completed", `{"id":"resp","object":"response","status":"completed","model":"m","error":null,"output":[{"type":"message","content":[{"type":"output_text","text":"hi"}]}],"usage":{"input_tokens":3,"output_tokens":2}}`, "id=resp model=m in=3 out=2 finish=completed"},
		{"incomplete", `{"id":"resp","object":"response","status":"incomplete","incomplete_details":{"reason":"content_filter"},"model":"m"}`, "id=resp model=m finish=content_filter"},
		{"failed", `{"id":"resp","object":"response","status":"failed","model":"m","error":{"code":"server_error"}}`, "id=resp model=m finish=failed error error=server_error"},
		{"in the background", `{"id":"resp","object":"response","status":"queued","model":"m","usage":null}`, "id=resp model=m"},
	})
}
