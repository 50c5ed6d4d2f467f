package wire

import "github.com/genaitrace/otelgenai/semconv"

// llamaCPP reads llama.cpp's own completion: the last event has "stop": true.
type llamaCPP struct{}

func (llamaCPP) Read(a *Answer, e Event) {
	b := e.Data
	var u tokens
	index, stopped, reason := 0, false, ""
	members(b, func(key, value []byte) {
		switch string(key) {
		case "model":
			a.setModel(value)
		case "index":
			index, _ = wholeNumber(value)
		case "content":
			a.out(KindContent, value)
		case "stop":
			a.known = true
			stopped = string(value) == "true"
		case "stop_type":
			reason = text(value)
		case "stopped_eos", "stopped_limit", "stopped_word": // before stop_type
			if string(value) == "true" {
				reason = string(key[len("stopped_"):])
			}
		case "tokens_evaluated": // the prompt, cached or not; tokens_cached is the slot
			u.input.read(value)
		case "tokens_predicted":
			u.output.read(value)
		case "timings":
			readTimings(a, value)
		case "error":
			a.readError(value)
		}
	})
	if u != (tokens{}) {
		a.setUsage(u)
	}
	a.open(index)
	if stopped {
		a.SetFinish(index, reason)
	}
}

// readTimings reads what llama.cpp tells of its work, in chat completions too,
// where it may be the only place of the counts: the prompt is what the cache held
// (cache_n) and what was computed (prompt_n). A cache that held nothing is not
// told apart from none.
func readTimings(a *Answer, b []byte) {
	t := timesFrom(semconv.GenAITimingSourceLlamacppTimings)
	var cached, computed, predicted count
	members(b, func(key, value []byte) {
		switch string(key) {
		case "cache_n":
			cached.read(value)
		case "prompt_n":
			computed.read(value)
		case "predicted_n":
			predicted.read(value)
		case "prompt_ms":
			t.Prefill = duration(value, milliseconds)
		case "predicted_ms":
			t.Decode = duration(value, milliseconds)
		}
	})
	told := tokens{output: predicted}
	if cached.known && computed.known {
		told.input = count{cached.n + computed.n, true}
	}
	if cached.n > 0 {
		told.cached = cached
	}
	a.imply(told)
	a.SetTimes(t)
}
