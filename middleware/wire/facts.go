package wire

import (
	"encoding/json"
	"slices"

	"github.com/genaitrace/otelgenai/genaitrace"
)

// facts is what the body and the path of a request tell.
type facts struct {
	endpoint          Endpoint
	model             string
	streamed          *bool
	maxTokens         int
	temperature, topP *float64
	includeUsage      bool
	tools             int
}

// What a member of a request is, by its name. The names of the APIs do not
// collide.
const (
	modelMember       = "model"
	streamMember      = "stream"
	maxTokensMember   = "max_tokens"
	temperatureMember = "temperature"
	topPMember        = "top_p"
	usageMember       = "include_usage"
	toolsMember       = "tools"
	settingsMember    = "settings" // its own members are read, one level deep
)

var wanted = map[string]string{
	"model":  modelMember,
	"stream": streamMember,

	"max_tokens": maxTokensMember, "max_completion_tokens": maxTokensMember, // OpenAI, Anthropic, vLLM, Triton
	"max_output_tokens": maxTokensMember, // Responses, Gemini
	"maxOutputTokens":   maxTokensMember, // Gemini
	"maxTokens":         maxTokensMember, // Converse
	"maxTokenCount":     maxTokensMember, // Titan
	"max_gen_len":       maxTokensMember, // Llama on Bedrock
	"max_new_tokens":    maxTokensMember, // Text Generation Inference, SGLang, Nova
	"num_predict":       maxTokensMember, // Ollama
	"n_predict":         maxTokensMember, // llama.cpp

	"temperature": temperatureMember,
	"top_p":       topPMember, "topP": topPMember,

	"include_usage": usageMember,
	"tools":         toolsMember,
	"functions":     toolsMember, // OpenAI, before tools

	"stream_options":       settingsMember, // OpenAI
	"options":              settingsMember, // Ollama
	"parameters":           settingsMember, // Text Generation Inference, Triton, KServe
	"sampling_params":      settingsMember, // SGLang
	"generationConfig":     settingsMember, // Gemini
	"generation_config":    settingsMember,
	"inferenceConfig":      settingsMember, // Converse
	"textGenerationConfig": settingsMember, // Titan
	"toolConfig":           settingsMember, // Converse
}

func newFacts(path string, own []Endpoint) (f facts) {
	f.endpoint, _ = FindEndpoint(path, own...)
	f.model, _ = f.endpoint.match(path)
	return f
}

func (f *facts) note(member string, value []byte) {
	switch member {
	case modelMember:
		if model := text(value); model != "" {
			f.model = model
		}
	case streamMember:
		if b := string(value); b == "true" || b == "false" {
			f.streamed = new(b == "true")
		}
	case maxTokensMember:
		if n, ok := wholeNumber(value); ok && n > 0 {
			f.maxTokens = n
		}
	case temperatureMember:
		f.temperature = number(value)
	case topPMember:
		f.topP = number(value)
	case usageMember:
		f.includeUsage = string(value) == "true"
	}
}

func (f *facts) noteArray(member string, elements int) {
	if member == toolsMember {
		f.tools = elements
	}
}

func (f *facts) request() genaitrace.Request {
	return genaitrace.Request{
		Model: f.model, Stream: f.stream(), MaxTokens: f.maxTokens, Temperature: f.temperature, TopP: f.topP,
	}
}

// stream reports whether the answer is to be streamed.
func (f *facts) stream() bool {
	switch {
	case f.endpoint.stream == always:
		return true
	case f.streamed != nil:
		return *f.streamed
	}
	return f.endpoint.stream == unlessAsked
}

func (f *facts) expectsUsage() bool {
	d := f.endpoint.Dialect
	if d == nil {
		d = f.endpoint.likely
	}
	switch {
	case d == Triton: // it has no word of tokens
		return false
	case !f.stream(), f.includeUsage:
		return true
	}
	return d != OpenAI && slices.Contains(dialects, d)
}

// number is the number that value holds; NaN and the like are none in JSON.
func number(value []byte) (f *float64) {
	if json.Unmarshal(value, &f) != nil {
		return nil
	}
	return f
}
