package wire

import "github.com/genaitrace/otelgenai/semconv"

// ollama reads Ollama's chat, generate and embed: one JSON document a line, the
// last with "done": true, counts and durations.
type ollama struct{}

func (ollama) Read(a *Answer, e Event) {
	b := e.Data
	t := timesFrom(semconv.GenAITimingSourceOllama)
	var u tokens
	done, reason := false, ""
	members(b, func(key, value []byte) {
		switch string(key) {
		case "model":
			a.setModel(value)
		case "created_at":
			a.vary(value)
		case "message":
			readOllamaMessage(a, value)
		case "response": // generate
			a.out(KindContent, value)
		case "thinking":
			a.out(KindReasoning, value)
		case "embeddings":
			a.known = true
		case "done":
			a.known = true
			done = string(value) == "true"
		case "done_reason":
			reason = text(value)
		case "prompt_eval_count": // left out where the whole prompt was cached
			u.input.read(value)
		case "eval_count":
			u.output.read(value)
		case "load_duration":
			t.Load = duration(value, nanoseconds)
		case "prompt_eval_duration":
			t.Prefill = duration(value, nanoseconds)
		case "eval_duration":
			t.Decode = duration(value, nanoseconds)
		case "total_duration":
			t.Total = duration(value, nanoseconds)
		case "error":
			a.readError(value)
		}
	})
	if u != (tokens{}) {
		a.setUsage(u)
	}
	a.SetTimes(t)
	if done {
		a.SetFinish(0, reason)
		a.Note(KindDone)
	}
}

func readOllamaMessage(a *Answer, b []byte) {
	a.note(KindRole)
	members(b, func(key, value []byte) {
		switch string(key) {
		case "content":
			a.out(KindContent, value)
		case "thinking":
			a.out(KindReasoning, value)
		case "tool_calls":
			elements(value, func(value []byte) {
				members(value, func(key, value []byte) {
					if string(key) == "function" {
						readFunction(a, value)
					}
				})
			})
		}
	})
}
