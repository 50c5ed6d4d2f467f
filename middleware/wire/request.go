package wire

import (
	"strconv"

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

func number(value []byte) *float64 {
	f, err := strconv.ParseFloat(string(value), 64)
	if err != nil {
		return nil
	}
	return &f
}
