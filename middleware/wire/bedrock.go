package wire

import (
	"encoding/base64"
	"net/http"

	"github.com/genaitrace/otelgenai/semconv"
)

// bedrock reads Amazon Bedrock's Converse (typed events, and whole answers) and
// InvokeModel, whose events hold the JSON of the model's own API in base64.
type bedrock struct{}

func (bedrock) Read(a *Answer, e Event) {
	switch encoded := valueIn(e.Data, "bytes"); {
	case len(encoded) > 0:
		a.readInvoked(e.Name, encoded)
	case len(e.Name) == 0:
		readBedrockDocument(a, e.Data)
	default:
		a.known = true
		readConverse(a, e.Data)
		if string(e.Name) == "metadata" {
			a.Note(KindDone)
		}
	}
}

// readConverse reads the members of Converse's events and answers, whose names do
// not collide.
func readConverse(a *Answer, b []byte) {
	members(b, func(key, value []byte) {
		switch string(key) {
		case "role":
			a.note(KindRole)
		case "start":
			readConverseBlock(a, value)
		case "delta":
			readConverseBlock(a, value)
		case "output": // of an answer that is not streamed
			a.known = true
			elements(valueIn(valueIn(value, "message"), "content"), func(value []byte) { readConverseBlock(a, value) })
		case "stopReason":
			if reason := text(value); reason != "" {
				a.SetFinish(0, reason)
			}
		case "usage":
			readBedrockUsage(a, value)
		case "metrics":
			t := timesFrom(semconv.GenAITimingSourceBedrockMetrics)
			t.Total = duration(valueIn(value, "latencyMs"), milliseconds)
			a.SetTimes(t)
		case "p": // padding against the reading of lengths
			a.vary(value)
		}
	})
}

func readConverseBlock(a *Answer, b []byte) {
	members(b, func(key, value []byte) {
		switch string(key) {
		case "text":
			a.out(KindContent, value)
		case "toolUse":
			readFunction(a, value)
		case "reasoningContent": // the signature in it is no output
			a.out(KindReasoning, valueIn(value, "text"))
			a.out(KindReasoning, valueIn(value, "redactedContent"))
			a.out(KindReasoning, valueIn(valueIn(value, "reasoningText"), "text"))
		}
	})
}

// readBedrockUsage reads Converse's usage and the metrics of an invocation. The
// input excludes what was read from or written to the cache (docs.aws.amazon.com,
// "Prompt caching").
func readBedrockUsage(a *Answer, b []byte) {
	var t tokens
	members(b, func(key, value []byte) {
		switch string(key) {
		case "inputTokens", "inputTokenCount":
			t.input.read(value)
		case "outputTokens", "outputTokenCount":
			t.output.read(value)
		case "cacheReadInputTokens", "cacheReadInputTokenCount":
			t.cached.read(value)
		case "cacheWriteInputTokens", "cacheWriteInputTokenCount":
			t.cacheWrite.read(value)
		}
	})
	if t.cached.known || t.cacheWrite.known { // else what the model's own API told of its cache stands
		a.cacheApart = true
	}
	a.setUsage(t)
}

// readInvoked reads an event of InvokeModel: the JSON of another dialect, or of
// one of the models that have only this API. The last one has the metrics.
func (a *Answer) readInvoked(name, encoded []byte) {
	if !nonEmptyString(encoded) {
		return
	}
	var err error
	a.decoded, err = base64.StdEncoding.AppendDecode(a.decoded[:0], encoded[1:len(encoded)-1])
	if err != nil {
		return
	}
	b := a.decoded
	if kinds, ok := a.shape.fits(name, b); ok {
		a.kinds, a.plain = kinds, false
		return
	}
	a.begin(b)
	if d := recognise(b); d != nil && d != Bedrock {
		d.Read(a, Event{Data: b})
	} else {
		readBedrockDocument(a, b)
	}
	metrics := valueIn(b, "amazon-bedrock-invocationMetrics")
	if metrics == nil {
		return
	}
	readBedrockUsage(a, metrics)
	t := timesFrom(semconv.GenAITimingSourceBedrockInvocationMetrics)
	t.FirstToken = duration(valueIn(metrics, "firstByteLatency"), milliseconds)
	t.Total = duration(valueIn(metrics, "invocationLatency"), milliseconds)
	a.SetTimes(t)
	a.Note(KindDone)
}

// readBedrockDocument reads an event or answer that has no name of its own:
// Converse's, or what the models of InvokeModel say in words that nobody else
// uses.
func readBedrockDocument(a *Answer, b []byte) {
	readConverse(a, b)
	readInvokedOutput(a, b)
	var u tokens
	members(b, func(key, value []byte) {
		switch string(key) {
		// Nova wraps Converse's events.
		case "messageStart", "contentBlockStart", "contentBlockDelta", "contentBlockStop", "messageStop", "metadata":
			a.known = true
			readConverse(a, value)
		case "outputs", "results", "generations": // Mistral, Titan, Cohere
			elements(value, func(value []byte) { readInvokedOutput(a, value) })
		case "inputTextTokenCount", "prompt_token_count": // Titan, Llama
			u.input.read(value)
		case "totalOutputTextTokenCount", "generation_token_count":
			u.output.read(value)
		case "error":
			a.readError(value)
		}
	})
	a.imply(u)
}

// readInvokedOutput reads the output of a model of InvokeModel.
func readInvokedOutput(a *Answer, b []byte) {
	members(b, func(key, value []byte) {
		switch string(key) {
		case "outputText", "generation", "text": // Titan; Llama; Mistral and Cohere
			a.known = true
			a.out(KindContent, value)
		case "completionReason", "stop_reason", "finish_reason":
			if reason := text(value); reason != "" {
				a.SetFinish(0, reason)
			}
		}
	})
}

// bedrockHeaders reads the headers of InvokeModel.
func bedrockHeaders(h http.Header) (t EngineTimes, u tokens) {
	t = timesFrom(semconv.GenAITimingSourceBedrockHeaders)
	t.Total = duration(header(h, "X-Amzn-Bedrock-Invocation-Latency"), milliseconds)
	u.input.read(header(h, "X-Amzn-Bedrock-Input-Token-Count"))
	u.output.read(header(h, "X-Amzn-Bedrock-Output-Token-Count"))
	return t, u
}
