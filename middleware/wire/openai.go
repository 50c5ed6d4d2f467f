package wire

import (
	"net/http"

	"github.com/genaitrace/otelgenai/semconv"
)

// openAI reads chat completions, completions and embeddings: chunks, and whole
// answers, which differ in one name ("message" for "delta").
type openAI struct{}

func (openAI) Read(a *Answer, e Event) {
	b := e.Data
	members(b, func(key, value []byte) {
		switch string(key) {
		case "id":
			a.setID(value)
		case "model":
			a.setModel(value)
		case "choices":
			a.known = true
			elements(value, func(value []byte) { readChoice(a, value) })
		case "data": // embeddings
			a.known = a.known || value[0] == '['
		case "usage":
			readOpenAIUsage(a, value)
		case "error":
			a.readError(value)
		case "object":
			if string(value) == `"error"` { // vLLM before 0.10
				a.readError(b)
			}
		case "obfuscation": // padding against the reading of lengths
			a.vary(value)
		default:
			readExtension(a, key, value)
		}
	})
}

func readChoice(a *Answer, b []byte) {
	index, reason, stop := 0, "", ""
	members(b, func(key, value []byte) {
		switch string(key) {
		case "index":
			index, _ = wholeNumber(value)
		case "finish_reason":
			reason = text(value)
		case "stop_reason": // what was met of the stop words; some models on Bedrock have no other
			stop = text(value)
		case "delta", "message":
			readDelta(a, value)
		case "text": // completions
			a.out(KindContent, value)
		case "usage": // Moonshot
			readOpenAIUsage(a, value)
		case "error": // OpenRouter
			a.readError(value)
		}
	})
	a.open(index)
	if reason = firstOf(reason, stop); reason != "" {
		a.SetFinish(index, reason)
	}
}

func readDelta(a *Answer, b []byte) {
	members(b, func(key, value []byte) {
		switch string(key) {
		case "role":
			a.note(KindRole)
		case "content":
			if value[0] == '[' {
				readParts(a, value)
			} else {
				a.out(KindContent, value)
			}
		case "refusal":
			a.out(KindRefusal, value)
		case "reasoning_content", "reasoning": // DeepSeek and vLLM; OpenRouter and Groq
			a.out(KindReasoning, value)
		case "audio":
			members(value, func(key, value []byte) {
				switch string(key) {
				case "transcript", "data":
					a.out(KindContent, value)
				}
			})
		case "tool_calls":
			elements(value, func(value []byte) {
				members(value, func(key, value []byte) {
					switch string(key) {
					case "function", "custom":
						readFunction(a, value)
					}
				})
			})
		case "function_call": // deprecated form of tool_calls
			readFunction(a, value)
		}
	})
}

// readParts reads content that is a list, as Mistral's reasoning models send it.
func readParts(a *Answer, b []byte) {
	elements(b, func(value []byte) {
		members(value, func(key, value []byte) {
			switch string(key) {
			case "text":
				a.out(KindContent, value)
			case "thinking":
				a.out(KindReasoning, value)
			}
		})
	})
}

func readFunction(a *Answer, b []byte) {
	members(b, func(key, value []byte) {
		switch string(key) {
		case "name", "arguments", "input":
			a.out(KindTool, value)
		}
	})
}

// readOpenAIUsage reads a usage object, of the Responses API too. Details that are
// all zero tell nothing: OpenAI sends them for every model, whether or not it
// caches or reasons.
func readOpenAIUsage(a *Answer, b []byte) {
	if isNull(b) {
		return
	}
	var t tokens
	var total count
	times := timesFrom(semconv.GenAITimingSourceGroqUsage)
	members(b, func(key, value []byte) {
		switch string(key) {
		case "prompt_tokens", "input_tokens":
			t.input.read(value)
		case "completion_tokens", "output_tokens":
			t.output.read(value)
		case "total_tokens":
			total.read(value)
		case "prompt_cache_hit_tokens", "cached_tokens": // DeepSeek; Moonshot
			t.cached.read(value)
		case "reasoning_tokens": // SGLang
			t.reasoning.read(value)
		case "prompt_tokens_details", "input_tokens_details", "completion_tokens_details", "output_tokens_details":
			readOpenAIDetails(&t, value)
		default:
			times.readGroq(key, value)
		}
	})
	if t.cached.n == 0 && t.cacheWrite.n == 0 && t.reasoning.n == 0 {
		t.cached, t.cacheWrite, t.reasoning = count{}, count{}, count{}
	}
	// xAI counts reasoning beside the completion and not as a part of it, which
	// its total shows (docs.x.ai, "Consumption and Rate Limits"). So does Perplexity for
	// research, where there is more of it than a part can be.
	if t.reasoning.n > 0 && (total.n == t.input.n+t.output.n+t.reasoning.n || t.reasoning.n > t.output.n) {
		t.output.n += t.reasoning.n
	}
	a.setUsage(t)
	a.SetTimes(times)
}

func readOpenAIDetails(t *tokens, b []byte) {
	members(b, func(key, value []byte) {
		switch string(key) {
		case "cached_tokens":
			t.cached.read(value)
		case "cache_write_tokens":
			t.cacheWrite.read(value)
		case "reasoning_tokens":
			t.reasoning.read(value)
		}
	})
}

// openAIHeaders reads openai-processing-ms.
func openAIHeaders(h http.Header) EngineTimes {
	t := timesFrom(semconv.GenAITimingSourceOpenAIHeaders)
	t.Processing = duration(header(h, "Openai-Processing-Ms"), milliseconds)
	return t
}
