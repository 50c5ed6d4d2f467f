package wire

import (
	"net/http"

	"github.com/genaitrace/otelgenai/semconv"
)

// tgi reads Text Generation Inference's generate and generate_stream: a token an
// event, the last with the whole text and details.
type tgi struct{}

func (tgi) Read(a *Answer, e Event) {
	b := e.Data
	var whole []byte
	failed, failure, token := false, "", false
	members(b, func(key, value []byte) {
		switch string(key) {
		case "index":
			a.vary(value)
		case "token":
			token = true
			a.known = true
			readTGIToken(a, value)
		case "generated_text":
			a.known, whole = true, value
		case "details":
			readTGIDetails(a, value)
		case "error": // a sentence
			failed = !isNull(value)
		case "error_type":
			failure = text(value)
		}
	})
	if len(whole) > 0 && whole[0] == '"' {
		a.SetFinish(0, "")
		if !token { // else the tokens before it were the output
			a.out(KindContent, whole)
		}
	}
	if failed {
		a.SetError(failure)
	}
}

// readTGIToken reads a token. A special one, such as the end of the sequence, was
// generated and is no text.
func readTGIToken(a *Answer, b []byte) {
	kind := KindContent
	if string(valueIn(b, "special")) == "true" {
		kind = KindToken
	}
	members(b, func(key, value []byte) {
		switch string(key) {
		case "text":
			a.out(kind, value)
		case "id", "logprob":
			a.vary(value)
		}
	})
}

func readTGIDetails(a *Answer, b []byte) {
	if isNull(b) {
		return
	}
	var u tokens
	members(b, func(key, value []byte) {
		switch string(key) {
		case "finish_reason":
			a.SetFinish(0, text(value))
		case "input_length":
			u.input.read(value)
		case "generated_tokens":
			u.output.read(value)
		}
	})
	a.setUsage(u)
}

// tgiHeaders reads the headers of answers that are not streamed. The times are
// whole milliseconds; x-compute-time, which is seconds, repeats one of them.
func tgiHeaders(h http.Header) (t EngineTimes, u tokens) {
	if header(h, "X-Inference-Time") == nil {
		return t, u // its other headers have names that anybody may use
	}
	t = timesFrom(semconv.GenAITimingSourceTgiHeaders)
	t.Queue = duration(header(h, "X-Queue-Time"), milliseconds)
	t.Validation = duration(header(h, "X-Validation-Time"), milliseconds)
	t.Inference = duration(header(h, "X-Inference-Time"), milliseconds)
	t.PerToken = duration(header(h, "X-Time-Per-Token"), milliseconds)
	t.Total = duration(header(h, "X-Total-Time"), milliseconds)
	u.input.read(header(h, "X-Prompt-Tokens"))
	u.output.read(header(h, "X-Generated-Tokens"))
	return t, u
}
