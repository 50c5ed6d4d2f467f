package wire

import (
	"bytes"
	"encoding/json"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/semconv"
)

// maxChoices bounds the finish reasons that are kept.
const maxChoices = 16

// chat reads the events and bodies of OpenAI's chat completions.
type chat struct {
	id, model string
	usage     genaitrace.Usage
	cacheRead *int     // what llama.cpp tells beside its usage
	finish    []string // by choice
	known     bool     // something of the dialect was seen
	finished  bool
	done      bool // the end mark came
	failed    bool
	errType   string
	shape     shape
}

var doneMark = []byte("[DONE]")

// event reads the data of one event. chunk is false for end marks and
// heartbeats.
func (c *chat) event(event []byte) (kind genaitrace.ChunkKind, chunk bool) {
	if kind, ok := c.shape.match(event); ok {
		return kind, true
	}
	event = bytes.TrimSpace(event)
	if len(event) == 0 {
		return genaitrace.NoOutput, false
	}
	if bytes.Equal(event, doneMark) {
		c.done, c.known = true, true
		return genaitrace.NoOutput, false
	}
	return c.body(event), true
}

// body reads one JSON document: a chunk, or the whole answer where it is not
// streamed.
func (c *chat) body(b []byte) genaitrace.ChunkKind {
	kind := genaitrace.NoOutput
	plain := true // nothing but one string of output
	var choices, outputs int
	var output [2]int
	members(b, 0, func(key []byte, start, end int) {
		value := b[start:end]
		switch string(key) {
		case "id":
			if c.id == "" {
				c.id = text(value)
			}
		case "model":
			if c.model == "" {
				c.model = text(value)
			}
		case "usage":
			if !isNull(value) {
				plain = false
				c.readUsage(value)
			}
		case "x_groq": // {"usage": …} on the last chunk
			plain = false
			members(value, 0, func(key []byte, start, end int) {
				if string(key) == "usage" {
					c.readUsage(value[start:end])
				}
			})
		case "timings": // llama.cpp, on the last chunk
			plain = false
			members(value, 0, func(key []byte, start, end int) {
				if n, ok := count(value[start:end]); ok && string(key) == "cache_n" {
					c.cacheRead = &n
				}
			})
		case "error":
			if !isNull(value) {
				plain = false
				c.readError(value)
			}
		case "choices":
			c.known = true
			elements(b, start, func(start, end int) {
				choices++
				ch := c.readChoice(b, start)
				kind = max(kind, ch.kind)
				outputs += ch.outputs
				output = ch.output
				plain = plain && !ch.finished
			})
		}
	})
	if plain && choices == 1 && outputs == 1 && output[1] > 0 {
		c.shape.learn(b, output[0], output[1], kind)
	}
	return kind
}

// choice is what one element of choices holds.
type choice struct {
	kind     genaitrace.ChunkKind
	outputs  int    // non-empty pieces of output
	output   [2]int // bounds of the last one that is a plain string, quotes excluded
	finished bool
}

func (c *chat) readChoice(b []byte, at int) choice {
	var ch choice
	index, reason := 0, ""
	members(b, at, func(key []byte, start, end int) {
		value := b[start:end]
		switch string(key) {
		case "index":
			index, _ = count(value)
		case "finish_reason":
			reason = text(value)
		case "delta", "message":
			ch.readDelta(b, start)
		case "text": // legacy completions
			ch.add(b, start, end, genaitrace.Visible)
		}
	})
	if reason != "" && index >= 0 && index < maxChoices {
		ch.finished, c.finished = true, true
		for len(c.finish) <= index {
			c.finish = append(c.finish, "")
		}
		c.finish[index] = reason
	}
	return ch
}

func (ch *choice) readDelta(b []byte, at int) {
	members(b, at, func(key []byte, start, end int) {
		switch string(key) {
		case "content", "refusal":
			ch.add(b, start, end, genaitrace.Visible)
		case "reasoning_content", "reasoning":
			ch.add(b, start, end, genaitrace.Output)
		case "tool_calls":
			elements(b, start, func(start, _ int) {
				members(b, start, func(key []byte, start, _ int) {
					if string(key) == "function" {
						ch.readFunction(b, start)
					}
				})
			})
		case "function_call": // deprecated form of tool_calls
			ch.readFunction(b, start)
		}
	})
}

func (ch *choice) readFunction(b []byte, at int) {
	members(b, at, func(key []byte, start, end int) {
		if k := string(key); k == "name" || k == "arguments" {
			ch.add(b, start, end, genaitrace.Output)
		}
	})
}

// add notes a piece of output, where value is a string with something in it.
func (ch *choice) add(b []byte, start, end int, kind genaitrace.ChunkKind) {
	if !nonEmptyString(b[start:end]) {
		return
	}
	ch.kind = max(ch.kind, kind)
	ch.outputs++
	ch.output = [2]int{start + 1, end - 1}
}

// readUsage takes over what a usage object tells. Counts are cumulative, so the
// last one stands; one of zeros after a real one tells nothing. Nor do details
// that are all zero: OpenAI sends them for every model, whether or not it caches
// or reasons.
func (c *chat) readUsage(b []byte) {
	var u genaitrace.Usage
	total, details := 0, 0
	set := func(to **int, value []byte, sum *int) {
		if n, ok := count(value); ok {
			*to = &n
			*sum += n
		}
	}
	members(b, 0, func(key []byte, start, end int) {
		value := b[start:end]
		switch string(key) {
		case "prompt_tokens":
			set(&u.InputTokens, value, &total)
		case "completion_tokens":
			set(&u.OutputTokens, value, &total)
		case "prompt_cache_hit_tokens": // DeepSeek
			set(&u.CachedTokens, value, &details)
		case "prompt_tokens_details":
			members(value, 0, func(key []byte, start, end int) {
				if string(key) == "cached_tokens" {
					set(&u.CachedTokens, value[start:end], &details)
				}
			})
		case "completion_tokens_details":
			members(value, 0, func(key []byte, start, end int) {
				if string(key) == "reasoning_tokens" {
					set(&u.ReasoningTokens, value[start:end], &details)
				}
			})
		}
	})
	if details == 0 {
		u.CachedTokens, u.ReasoningTokens = nil, nil
	}
	if total > 0 || c.usage == (genaitrace.Usage{}) {
		c.usage = u
	}
}

// errTypeStream is the error.type of an error that does not say more.
const errTypeStream = "stream_error"

// readError reads {"type": …, "code": …} or a plain message. The code is the
// more exact of the two, where it is a word.
func (c *chat) readError(b []byte) {
	if c.failed {
		return
	}
	c.failed, c.errType = true, errTypeStream
	var code, kind string
	members(b, 0, func(key []byte, start, end int) {
		switch string(key) {
		case "code":
			code = text(b[start:end])
		case "type":
			kind = text(b[start:end])
		}
	})
	switch {
	case code != "":
		c.errType = code
	case kind != "":
		c.errType = kind
	}
}

// reasons returns the finish reasons of the choices that have one.
func (c *chat) reasons() []string {
	kept := make([]string, 0, len(c.finish))
	for _, r := range c.finish {
		if r != "" {
			kept = append(kept, r)
		}
	}
	return kept
}

// terminal says how the stream ended, when its bytes ended cleanly or not. Of a
// stream in another dialect it only knows that.
func (c *chat) terminal(clean bool) semconv.GenAIStreamTerminalAttr {
	switch {
	case c.failed:
		return semconv.GenAIStreamTerminalError
	case c.done:
		return semconv.GenAIStreamTerminalDone
	case !c.known && clean:
		return semconv.GenAIStreamTerminalEOF
	case c.finished && clean:
		return semconv.GenAIStreamTerminalFinish
	}
	return semconv.GenAIStreamTerminalTruncated
}

// whole reports whether an event that lacks its blank line is complete.
func whole(event []byte) bool {
	event = bytes.TrimSpace(event)
	return bytes.Equal(event, doneMark) || json.Valid(event)
}
