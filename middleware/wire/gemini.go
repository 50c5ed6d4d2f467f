package wire

// gemini reads generateContent: each event is a response with what is new in its
// candidates. A finish reason is all that tells the end.
type gemini struct{}

func (gemini) Read(a *Answer, e Event) {
	b := e.Data
	blocked := ""
	candidates := false
	members(b, func(key, value []byte) {
		switch string(key) {
		case "responseId":
			a.setID(value)
		case "modelVersion":
			a.setModel(value)
		case "candidates":
			a.known = true
			elements(value, func(value []byte) {
				candidates = true
				readCandidate(a, value)
			})
		case "promptFeedback":
			a.known = true
			blocked = text(valueIn(value, "blockReason"))
		case "usageMetadata":
			readGeminiUsage(a, value)
		case "error":
			a.readError(value)
		}
	})
	if blocked != "" && !candidates {
		a.SetFinish(0, blocked)
	}
}

func readCandidate(a *Answer, b []byte) {
	index, reason := 0, ""
	members(b, func(key, value []byte) {
		switch string(key) {
		case "index":
			index, _ = wholeNumber(value)
		case "finishReason":
			reason = text(value)
		case "content":
			members(value, func(key, value []byte) {
				if string(key) == "parts" {
					elements(value, func(value []byte) { readPart(a, value) })
				}
			})
		}
	})
	a.open(index)
	if reason != "" {
		a.SetFinish(index, reason)
	}
}

// readPart reads a part of the content. The results of code that the server ran
// are no output of the model.
func readPart(a *Answer, b []byte) {
	kind := KindContent
	if string(valueIn(b, "thought")) == "true" {
		kind = KindReasoning
	}
	members(b, func(key, value []byte) {
		switch string(key) {
		case "text":
			a.out(kind, value)
		case "inlineData", "executableCode":
			members(value, func(key, value []byte) {
				switch string(key) {
				case "data", "code":
					a.out(kind, value)
				}
			})
		case "functionCall":
			members(value, func(key, value []byte) {
				switch string(key) {
				case "name", "args", "partialArgs":
					a.out(KindTool, value)
				}
			})
		}
	})
}

// readGeminiUsage reads usageMetadata, which is cumulative. The prompt includes
// what is cached but not what tools brought; the candidates exclude thoughts
// (ai.google.dev, "UsageMetadata").
func readGeminiUsage(a *Answer, b []byte) {
	var t tokens
	members(b, func(key, value []byte) {
		switch string(key) {
		case "promptTokenCount", "toolUsePromptTokenCount":
			t.input.add(value)
		case "candidatesTokenCount":
			t.output.add(value)
		case "thoughtsTokenCount":
			t.output.add(value)
			t.reasoning.read(value)
		case "cachedContentTokenCount":
			t.cached.read(value)
		}
	})
	a.setUsage(t)
}
