package wire

// anthropic reads the Messages API: typed events, and whole messages.
type anthropic struct{}

func (anthropic) Read(a *Answer, e Event) {
	b := e.Data
	switch kind := text(valueIn(b, "type")); kind {
	case "ping":
		a.note(KindPing)
	case "message_start":
		a.note(KindRole)
		readMessage(a, valueIn(b, "message"))
	case "message": // not streamed
		readMessage(a, b)
	case "content_block_start", "content_block_delta":
		a.known = true
		members(b, func(key, value []byte) {
			switch string(key) {
			case "content_block":
				readBlock(a, value)
			case "delta":
				readBlockDelta(a, value)
			}
		})
	case "content_block_stop":
		a.known = true
	case "message_delta":
		a.known = true
		if reason := text(valueIn(valueIn(b, "delta"), "stop_reason")); reason != "" {
			a.SetFinish(0, reason)
		}
		readAnthropicUsage(a, valueIn(b, "usage"))
	case "message_stop":
		a.Note(KindDone)
	default: // also "error", {"type":"error","error":{"type":…}}
		a.readError(valueIn(b, "error"))
	}
}

func readMessage(a *Answer, b []byte) {
	members(b, func(key, value []byte) {
		switch string(key) {
		case "id":
			a.setID(value)
		case "model":
			a.setModel(value)
		case "stop_reason":
			if reason := text(value); reason != "" {
				a.SetFinish(0, reason)
			}
		case "usage":
			readAnthropicUsage(a, value)
		case "content":
			elements(value, func(value []byte) { readBlock(a, value) })
		}
	})
}

// readBlock reads a content block, or the start of one: a tool's name comes with
// it, and all that is ever told of reasoning that was redacted. The results of
// tools that the server runs are no output of the model.
func readBlock(a *Answer, b []byte) {
	kind := text(valueIn(b, "type"))
	members(b, func(key, value []byte) {
		switch {
		case string(key) == "text" && kind == "text":
			a.out(KindContent, value)
		case string(key) == "thinking" && kind == "thinking", string(key) == "data" && kind == "redacted_thinking":
			a.out(KindReasoning, value)
		case string(key) == "name":
			a.out(KindTool, value)
		case string(key) == "input": // {} where the arguments follow
			a.out(KindTool, value)
		}
	})
}

// readBlockDelta reads a piece of a block. Signatures, citations and deltas of
// kinds that are not known are no output.
func readBlockDelta(a *Answer, b []byte) {
	kind := text(valueIn(b, "type"))
	members(b, func(key, value []byte) {
		switch {
		case string(key) == "text" && kind == "text_delta":
			a.out(KindContent, value)
		case string(key) == "thinking" && kind == "thinking_delta":
			a.out(KindReasoning, value)
		case string(key) == "partial_json" && kind == "input_json_delta":
			a.out(KindTool, value)
		}
	})
}

// readAnthropicUsage reads a usage object. That of message_start tells the input,
// and one token of output; those of message_delta are cumulative. The input
// excludes what was read from or written to the cache (docs.anthropic.com,
// "Tracking cache performance").
func readAnthropicUsage(a *Answer, b []byte) {
	var t tokens
	members(b, func(key, value []byte) {
		switch string(key) {
		case "input_tokens":
			t.input.read(value)
		case "output_tokens":
			t.output.read(value)
		case "cache_read_input_tokens":
			t.cached.read(value)
		case "cache_creation_input_tokens":
			t.cacheWrite.read(value)
		case "output_tokens_details":
			t.reasoning.read(valueIn(value, "thinking_tokens"))
		}
	})
	a.cacheApart = true
	a.setUsage(t)
}
