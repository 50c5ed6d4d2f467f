package wire_test

import (
	"testing"

	"github.com/genaitrace/otelgenai/middleware/wire"
)

const (
	messageStart = `{"type":"message_start","message":{"id":"msg","type":"message","role":"assistant","content":[],"model":"m","stop_reason":null,"usage":{"input_tokens":25,"output_tokens":1}}}`
	textStart    = `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`
	textDelta    = `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hi"}}`
	blockStop    = `{"type":"content_block_stop","index":0}`
	messageDelta = `{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":15}}`
	messageStop  = `{"type":"message_stop"}`
	anthropicNil = `{"type":"ping"}`
)

func TestAnthropicStreams(t *testing.T) {
	blockDelta := func(delta string) string {
		return `{"type":"content_block_delta","index":0,"delta":` + delta + `}`
	}
	checkAnswers(t, wire.Exchange{}, eventStreamType, []answerCase{
		{"as documented", named("message_start", messageStart, "content_block_start", textStart, "ping", anthropicNil, "content_block_delta", textDelta, "content_block_stop", blockStop, "message_delta", messageDelta, "message_stop", messageStop),
			"id=msg model=m chunks=7/1 visible in=25 out=15 finish=end_turn done"},
		{"without names", sse(messageStart, textDelta, messageDelta, messageStop), "id=msg model=m chunks=4/1 visible in=25 out=15 finish=end_turn done"},
		{"heartbeats before the first event are none of it", named("ping", anthropicNil, "ping", anthropicNil, "message_start", messageStart, "message_stop", messageStop), "id=msg model=m chunks=2/0 in=25 out=1 done"},
		{"the input excludes the cache", sse(`{"type":"message_start","message":{"id":"msg","model":"m","usage":{"input_tokens":3,"cache_read_input_tokens":100,"cache_creation_input_tokens":20,"output_tokens":1}}}`, textDelta, messageDelta, messageStop),
			"id=msg model=m chunks=4/1 visible in=123 out=15 cached=100 written=20 finish=end_turn done"},
		{"the cache was not used", sse(`{"type":"message_start","message":{"id":"msg","model":"m","usage":{"input_tokens":3,"cache_read_input_tokens":0,"cache_creation_input_tokens":null,"output_tokens":1}}}`, messageStop),
			"id=msg model=m chunks=2/0 in=3 out=1 cached=0 done"},
		{"all usage at the end", sse(`{"type":"message_start","message":{"id":"msg","model":"m","usage":{"input_tokens":0,"output_tokens":0}}}`, textDelta, `{"type":"message_delta","delta":{"stop_reason":"max_tokens"},"usage":{"input_tokens":7,"cache_read_input_tokens":5,"output_tokens":2}}`, messageStop),
			"id=msg model=m chunks=4/1 visible in=12 out=2 cached=5 finish=max_tokens done"},
		{"no usage", sse(`{"type":"message_start","message":{"id":"msg","model":"m"}}`, textDelta, `{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`, messageStop), "id=msg model=m chunks=4/1 visible finish=end_turn done"},
		{"thinking", sse(messageStart, blockDelta(`{"type":"thinking_delta","thinking":"hm"}`), blockDelta(`{"type":"signature_delta","signature":"Eq"}`), textDelta, messageStop), "id=msg model=m chunks=5/2 visible in=25 out=1 done"},
		{"redacted thinking", sse(messageStart, `{"type":"content_block_start","index":0,"content_block":{"type":"redacted_thinking","data":"Eq"}}`, messageStop), "id=msg model=m chunks=3/1 in=25 out=1 done"},
		{"a tool alone", sse(messageStart, `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"f","input":{}}}`, blockDelta(`{"type":"input_json_delta","partial_json":""}`), blockDelta(`{"type":"input_json_delta","partial_json":"{}"}`), `{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":9}}`, messageStop),
			"id=msg model=m chunks=6/2 in=25 out=9 finish=tool_use done"},
		{"a tool of the server, and its result", sse(messageStart, `{"type":"content_block_start","index":0,"content_block":{"type":"server_tool_use","id":"t","name":"web_search","input":{}}}`, `{"type":"content_block_start","index":1,"content_block":{"type":"web_search_tool_result","tool_use_id":"t","content":[{"type":"web_search_result","title":"x"}]}}`, messageStop),
			"id=msg model=m chunks=4/1 in=25 out=1 done"},
		{"deltas of unknown kinds are no output", sse(messageStart, blockDelta(`{"type":"citations_delta","citation":{"cited_text":"x"}}`), blockDelta(`{"type":"new_delta","text":"x"}`), textDelta, messageStop), "id=msg model=m chunks=5/1 visible in=25 out=1 done"},
		{"unknown events", sse(messageStart, `{"type":"message_checkpoint","x":1}`, messageStop), "id=msg model=m chunks=3/0 in=25 out=1 done"},
		{"overloaded", sse(messageStart, textDelta, `{"type":"error","error":{"type":"overloaded_error","message":"secret"}}`), "id=msg model=m chunks=3/1 visible in=25 out=1 error error=overloaded_error"},
		{"overloaded at once", named("error", `{"type":"error","error":{"type":"overloaded_error","message":"secret"},"request_id":"r"}`), "chunks=1/0 error error=overloaded_error"},
		{"cut after its stop reason", sse(messageStart, textDelta, messageDelta), "id=msg model=m chunks=3/1 visible in=25 out=15 finish=end_turn finish"},
		{"cut before", sse(messageStart, textDelta), "id=msg model=m chunks=2/1 visible in=25 out=1 truncated error=stream_truncated"},
		{"nothing but heartbeats, which others send too", sse(anthropicNil, anthropicNil), "eof"},
		{"reasoning counted", sse(messageStart, `{"type":"message_delta","delta":{},"usage":{"output_tokens":40,"output_tokens_details":{"thinking_tokens":11}}}`, messageStop), "id=msg model=m chunks=3/0 in=25 out=40 reasoning=11 done"},
	})
}

func TestAnthropicStreamsOfNothingButHeartbeats(t *testing.T) {
	checkAnswers(t, wire.Exchange{Path: "/v1/messages"}, eventStreamType, []answerCase{
		{"cut", sse(anthropicNil, anthropicNil), "truncated error=stream_truncated"},
	})
}

func TestAnthropicWholeAnswers(t *testing.T) {
	checkAnswers(t, wire.Exchange{}, jsonType, []answerCase{
		{"a message", `{"id":"msg","type":"message","role":"assistant","model":"m","content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"hi"},{"type":"tool_use","name":"f","input":{"a":1}}],"stop_reason":"tool_use","usage":{"input_tokens":10,"cache_read_input_tokens":5,"output_tokens":7}}`,
			"id=msg model=m in=15 out=7 cached=5 finish=tool_use"},
		{"a refusal", `{"id":"msg","type":"message","role":"assistant","model":"m","content":[],"stop_reason":"refusal","usage":{"input_tokens":10,"output_tokens":0}}`, "id=msg model=m in=10 out=0 finish=refusal"},
	})
	checkAnswers(t, wire.Exchange{Status: 529}, jsonType, []answerCase{
		{"overloaded", `{"type":"error","error":{"type":"overloaded_error","message":"secret"},"request_id":"r"}`, "http_error error=overloaded_error"},
	})
}
