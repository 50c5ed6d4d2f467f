package wire

// responses reads OpenAI's Responses API: typed events, and the whole response,
// which the last event carries too. There is no [DONE].
type responses struct{}

func (responses) Read(a *Answer, e Event) {
	b := e.Data
	kind := text(valueIn(b, "type"))
	switch kind {
	case "":
		if text(valueIn(b, "object")) == "response" {
			readResponse(a, b)
		} else {
			a.readError(valueIn(b, "error"))
		}
		return
	case "response.created", "response.in_progress", "response.queued":
		a.note(KindRole)
		readResponse(a, valueIn(b, "response"))
		return
	case "response.completed", "response.incomplete", "response.failed", "response.cancelled":
		readResponse(a, valueIn(b, "response"))
		if kind == "response.failed" {
			a.SetError("")
		}
		a.Note(KindDone)
		return
	case "keepalive":
		a.note(KindPing)
		return
	case "error":
		if inner := valueIn(b, "error"); len(inner) > 0 && inner[0] == '{' {
			a.readError(inner)
		} else {
			a.SetError(text(valueIn(b, "code")))
		}
		return
	}
	a.known = true
	output := outputOf(kind)
	members(b, func(key, value []byte) {
		switch string(key) {
		case "sequence_number", "obfuscation":
			a.vary(value)
		case "delta":
			if output != 0 {
				a.out(output, value)
			}
		case "item":
			if kind == "response.output_item.added" {
				readItem(a, value)
			}
		}
	})
}

// outputOf is what the delta of an event is. The events that end in ".done" repeat
// it, and unknown ones are no output.
func outputOf(kind string) Kind {
	switch kind {
	case "response.output_text.delta",
		"response.output_audio.delta", "response.output_audio_transcript.delta",
		"response.audio.delta", "response.audio.transcript.delta":
		return KindContent
	case "response.refusal.delta":
		return KindRefusal
	case "response.reasoning_text.delta", "response.reasoning_summary_text.delta":
		return KindReasoning
	case "response.function_call_arguments.delta", "response.custom_tool_call_input.delta",
		"response.mcp_call_arguments.delta", "response.code_interpreter_call_code.delta":
		return KindTool
	}
	return 0
}

// readItem reads an item that begins. A function's name is output; its arguments
// follow.
func readItem(a *Answer, b []byte) {
	members(b, func(key, value []byte) {
		switch string(key) {
		case "name", "arguments", "input":
			a.out(KindTool, value)
		}
	})
}

// readResponse reads the response object. Its status is the finish reason, unless
// it is incomplete and says why.
func readResponse(a *Answer, b []byte) {
	status, incomplete := "", ""
	members(b, func(key, value []byte) {
		switch string(key) {
		case "id":
			a.setID(value)
		case "model":
			a.setModel(value)
		case "status":
			status = text(value)
		case "incomplete_details":
			incomplete = text(valueIn(value, "reason"))
		case "usage":
			readOpenAIUsage(a, value)
		case "error":
			a.readError(value)
		}
	})
	switch status {
	case "", "in_progress", "queued":
		return
	case "failed":
		a.SetError("") // unless it said why
	}
	a.SetFinish(0, firstOf(incomplete, status))
}
