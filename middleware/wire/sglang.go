package wire

import (
	"time"

	"github.com/genaitrace/otelgenai/semconv"
)

// sglang reads SGLang's own generate. The text of a stream is cumulative, unless
// the server runs with --stream-output.
type sglang struct{}

func (sglang) Read(a *Answer, e Event) {
	b := e.Data
	var output []byte
	index := 0
	members(b, func(key, value []byte) {
		switch string(key) {
		case "index":
			index, _ = wholeNumber(value)
		case "text":
			output = value
		case "error":
			a.readError(value)
		}
	})
	if generated := readMetaInfo(a, valueIn(b, "meta_info"), index); a.grew(index, generated) {
		a.out(KindContent, output)
	}
}

// grew notes how many tokens a choice has by now, and reports whether they became
// more: the last event repeats the text that is known already.
func (a *Answer) grew(choice int, generated count) (more bool) {
	if !generated.known || choice < 0 || choice >= maxChoices {
		return true
	}
	for len(a.generated) <= choice {
		a.generated = append(a.generated, 0)
	}
	more = generated.n > a.generated[choice]
	if more {
		a.generated[choice] = generated.n
	}
	if len(a.generated) > 1 { // each choice counts for itself
		sum := 0
		for _, n := range a.generated {
			sum += n
		}
		a.usage.output.n = sum
	}
	return more
}

func readMetaInfo(a *Answer, b []byte, index int) (generated count) {
	if len(b) == 0 || b[0] != '{' {
		return count{}
	}
	t := timesFrom(semconv.GenAITimingSourceSglangMetaInfo)
	var u tokens
	var entered, prefilled, finished *time.Duration // since 1970
	members(b, func(key, value []byte) {
		switch string(key) {
		case "id":
			a.setID(value)
		case "finish_reason": // {"type": "stop", "matched": 2}; a word in old servers
			reason := text(value)
			if value[0] == '{' {
				reason = text(valueIn(value, "type"))
			}
			if code := valueIn(value, "status_code"); code != nil && !isNull(code) {
				a.SetError(firstOf(text(valueIn(value, "err_type")), reason))
			}
			if reason != "" {
				a.SetFinish(index, reason)
			}
		case "prompt_tokens":
			u.input.read(value)
		case "completion_tokens":
			u.output.read(value)
		case "cached_tokens":
			u.cached.read(value)
		case "reasoning_tokens":
			u.reasoning.read(value)
		case "queue_time":
			t.Queue = duration(value, seconds)
		case "e2e_latency":
			t.Total = duration(value, seconds)
		case "forward_entry_time":
			entered = duration(value, seconds)
		case "prefill_finished_time":
			prefilled = duration(value, seconds)
		case "request_finished_ts":
			finished = duration(value, seconds)
		}
	})
	t.Prefill, t.Decode = between(entered, prefilled), between(prefilled, finished)
	a.setUsage(u)
	a.SetTimes(t)
	return u.output
}

// between is the time from one moment to another, where both are known.
func between(from, to *time.Duration) *time.Duration {
	if from == nil || to == nil {
		return nil
	}
	return new(*to - *from)
}
