package wire

import (
	"encoding/json"

	"github.com/genaitrace/otelgenai/genaitrace"
)

// ReadRequest reads the facts of a request from the start of its JSON body. A
// body that was cut tells what stands before the cut. Messages are skipped:
// nothing of a prompt is kept.
func ReadRequest(body []byte) genaitrace.Request {
	var r genaitrace.Request
	members(body, 0, func(key []byte, start, end int) {
		value := body[start:end]
		switch string(key) {
		case "model":
			r.Model = text(value)
		case "stream":
			r.Stream = string(value) == "true"
		case "max_tokens", "max_completion_tokens":
			if n, ok := count(value); ok && n > 0 {
				r.MaxTokens = n
			}
		case "temperature":
			r.Temperature = number(value)
		case "top_p":
			r.TopP = number(value)
		}
	})
	return r
}

// number is the number that value holds; NaN and the like are none in JSON.
func number(value []byte) (f *float64) {
	if json.Unmarshal(value, &f) != nil {
		return nil
	}
	return f
}
