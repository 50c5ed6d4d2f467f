package benchmarks

import (
	"fmt"
	"strings"

	"github.com/genaitrace/otelgenai/benchmarks/internal/column"
)

// words are what a model server says in one API. The first output of each stream is
// "hi", whatever it is of.
type words struct {
	role, text, long, tool, reasoning, heartbeat string

	finish  []string // with the usage and the end mark
	toolEnd []string // the same after a tool call
	broken  string   // an error inside the stream
	tooMany string   // the body of a 429
	input   int
	reasons [2]string // of finish and toolEnd
}

// output is the count of tokens that finish and toolEnd tell.
const output = 5

const chatChunk = `data: {"id":"c1","object":"chat.completion.chunk","created":1767000000,"model":"gpt-fx-1","choices":[{"index":0,"delta":{%s},"finish_reason":%s}]%s}` + "\n\n"

// chatDelta is a chunk of chat completions.
func chatDelta(delta, finish string) string { return fmt.Sprintf(chatChunk, delta, finish, "") }

// chatUsage is the chunk that tells the usage.
func chatUsage(input, output, cached int) string {
	return fmt.Sprintf(`data: {"id":"c1","object":"chat.completion.chunk","created":1767000000,"model":"gpt-fx-1","choices":[],"usage":`+
		`{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d,"prompt_tokens_details":{"cached_tokens":%d}}}`+"\n\n", input, output, input+output, cached)
}

const doneMark = "data: [DONE]\n\n"

// message is an event of the Messages API.
func message(kind, fields string) string {
	return fmt.Sprintf("event: %s\ndata: {\"type\":%q%s}\n\n", kind, kind, fields)
}

func blockDelta(delta string) string {
	return message("content_block_delta", `,"index":0,"delta":{`+delta+`}`)
}

func messageEnd(reason string) []string {
	return []string{
		message("content_block_stop", `,"index":0`),
		message("message_delta", fmt.Sprintf(`,"delta":{"stop_reason":%q,"stop_sequence":null},"usage":{"output_tokens":%d}`, reason, output)),
		message("message_stop", ""),
	}
}

var (
	padding  = strings.Repeat("x", 200_000)
	textOpen = message("content_block_start", `,"index":0,"content_block":{"type":"text","text":""}`)
)

func wordsOf(api column.API) words {
	if api == column.Anthropic {
		return words{
			role: message("message_start", `,"message":{"id":"msg_1","type":"message","role":"assistant","content":[],"model":"claude-fx",`+
				`"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":19,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":1}}`) + textOpen,
			text: blockDelta(`"type":"text_delta","text":"hi"`),
			long: blockDelta(`"type":"text_delta","pad":"` + padding + `","text":"hi"`),
			tool: message("content_block_start", `,"index":1,"content_block":{"type":"tool_use","id":"toolu_1","name":"hi","input":{}}`) +
				message("content_block_delta", `,"index":1,"delta":{"type":"input_json_delta","partial_json":"{}"}`),
			reasoning: blockDelta(`"type":"thinking_delta","thinking":"hi"`),
			heartbeat: message("ping", ""),
			finish:    messageEnd("end_turn"), toolEnd: messageEnd("tool_use"),
			broken:  message("error", `,"error":{"type":"overloaded_error","message":"Overloaded"}`),
			tooMany: `{"type":"error","error":{"type":"rate_limit_error","message":"Too many requests"}}`,
			input:   19, reasons: [2]string{"end_turn", "tool_use"},
		}
	}
	return words{
		role:      chatDelta(`"role":"assistant","content":""`, "null"),
		text:      chatDelta(`"content":"hi"`, "null"),
		long:      chatDelta(`"pad":"`+padding+`","content":"hi"`, "null"),
		tool:      chatDelta(`"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"hi","arguments":"{}"}}]`, "null"),
		reasoning: chatDelta(`"reasoning_content":"hi"`, "null"),
		heartbeat: ": ping\n\n",
		finish:    []string{chatDelta("", `"stop"`), chatUsage(19, output, 0), doneMark},
		toolEnd:   []string{chatDelta("", `"tool_calls"`), chatUsage(19, output, 0), doneMark},
		broken:    `data: {"error":{"message":"The server had an error","type":"server_error","code":null}}` + "\n\n",
		tooMany:   `{"error":{"message":"Too many requests","type":"rate_limit_exceeded","code":"rate_limit_exceeded"}}`,
		input:     19, reasons: [2]string{"stop", "tool_calls"},
	}
}
