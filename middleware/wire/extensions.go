package wire

import (
	"net/http"

	"github.com/genaitrace/otelgenai/semconv"
)

// readExtension reads what servers add at the top of a chat chunk or completion.
func readExtension(a *Answer, name, value []byte) {
	switch string(name) {
	case "x_groq": // {"id": …, "usage": …, "error": …}
		members(value, func(key, value []byte) {
			switch string(key) {
			case "usage":
				readOpenAIUsage(a, value)
			case "error":
				a.readError(value)
			}
		})
	case "timings":
		readTimings(a, value)
	case "metrics":
		readVLLMMetrics(a, value)
	case "perf_metrics":
		readFireworks(a, value)
	case "time_info":
		readCerebras(a, value)
	}
}

// readVLLMMetrics reads the metrics of a request that vLLM adds to the usage chunk
// where the server is told to. Its time to first token counts from the scheduler,
// so it is prefill.
func readVLLMMetrics(a *Answer, b []byte) {
	t := timesFrom(semconv.GenAITimingSourceVllmMetrics)
	members(b, func(key, value []byte) {
		switch string(key) {
		case "queue_time_ms":
			t.Queue = duration(value, milliseconds)
		case "time_to_first_token_ms":
			t.Prefill = duration(value, milliseconds)
		case "generation_time_ms":
			t.Decode = duration(value, milliseconds)
		}
	})
	a.SetTimes(t)
}

// readGroq reads one of the times that Groq adds to its usage, in seconds.
func (t *EngineTimes) readGroq(name, value []byte) {
	switch string(name) {
	case "queue_time":
		t.Queue = duration(value, seconds)
	case "prompt_time":
		t.Prefill = duration(value, seconds)
	case "completion_time":
		t.Decode = duration(value, seconds)
	case "total_time":
		t.Total = duration(value, seconds)
	}
}

// readCerebras reads time_info, whose members have Groq's names.
func readCerebras(a *Answer, b []byte) {
	t := timesFrom(semconv.GenAITimingSourceCerebrasTimeInfo)
	members(b, func(key, value []byte) { t.readGroq(key, value) })
	a.SetTimes(t)
}

// readFireworks reads perf_metrics: the headers of Fireworks without their prefix,
// in the last chunk of a stream that asked for them. Values are numbers, or
// numbers in strings.
func readFireworks(a *Answer, b []byte) {
	t := timesFrom(semconv.GenAITimingSourceFireworksPerfMetrics)
	var u tokens
	members(b, func(key, value []byte) {
		if nonEmptyString(value) {
			value = value[1 : len(value)-1]
		}
		switch string(key) {
		case "server-time-to-first-token":
			t.FirstToken = duration(value, seconds)
		case "server-processing-time":
			t.Total = duration(value, seconds)
		case "tokenizer-duration":
			t.Tokenize = duration(value, seconds)
		case "prefill-queue-duration":
			t.Queue = duration(value, seconds)
		case "prefill-duration":
			t.Prefill = duration(value, seconds)
		case "prompt-tokens":
			u.input.read(value)
		case "cached-prompt-tokens":
			u.cached.read(value)
		}
	})
	a.imply(u)
	a.SetTimes(t)
}

// fireworksHeaders reads the headers of Fireworks. A stream has the time to first
// token alone; the phases are told by deployments of one's own.
func fireworksHeaders(h http.Header) (t EngineTimes, u tokens) {
	t = timesFrom(semconv.GenAITimingSourceFireworksHeaders)
	t.FirstToken = duration(header(h, "Fireworks-Server-Time-To-First-Token"), seconds)
	t.Total = duration(header(h, "Fireworks-Server-Processing-Time"), seconds)
	t.Tokenize = duration(header(h, "Fireworks-Tokenizer-Duration"), seconds)
	t.Queue = duration(header(h, "Fireworks-Prefill-Queue-Duration"), seconds)
	t.Prefill = duration(header(h, "Fireworks-Prefill-Duration"), seconds)
	u.input.read(header(h, "Fireworks-Prompt-Tokens"))
	u.cached.read(header(h, "Fireworks-Cached-Prompt-Tokens"))
	return t, u
}
