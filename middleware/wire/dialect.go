package wire

import "slices"

// A Dialect reads the answers of one API. Those of this package are values; users
// add their own by implementing it and naming it in an [Endpoint] or an
// [Exchange].
type Dialect interface {
	// Read notes in a what an event of a stream tells, or a whole answer. It is
	// called in the order of the events, from one goroutine for each answer, but
	// from many for a Dialect that reads many: it has no state of its own. It neither
	// changes the event nor keeps a reference to it. A panic is counted in
	// genai.telemetry.faults, and what was noted before it stands. Empty events,
	// "[DONE]", AWS exceptions and what comes after the end do not reach it.
	Read(a *Answer, e Event)
}

// An Event is one event of a stream, or a whole answer.
type Event struct {
	// Name is what the framing calls it: the field "event" of a server-sent
	// event, the type of an AWS message.
	Name []byte
	// Data is its content, JSON as a rule, without space around it.
	Data []byte

	failed bool // the framing itself tells of a failure
	bare   bool // JSON that stood in no field of a server-sent event
}

// The dialects of this package. Where none is named, [NewStream] and [ReadBody]
// find out: the path and the headers tell what to expect, and the first event
// that looks like one of them decides. A stream that fits none tells its chunks, an
// error and that it ended, and nothing else.
var (
	// OpenAI is chat completions, completions and embeddings, with what vLLM,
	// SGLang, llama.cpp, Ollama, Text Generation Inference, Groq, Fireworks,
	// DeepSeek, OpenRouter and others add to them.
	OpenAI Dialect = openAI{}
	// Responses is OpenAI's Responses API.
	Responses Dialect = responses{}
	// Anthropic is the Messages API.
	Anthropic Dialect = anthropic{}
	// Gemini is generateContent of Google's APIs.
	Gemini Dialect = gemini{}
	// Bedrock is Converse and InvokeModel of Amazon Bedrock.
	Bedrock Dialect = bedrock{}
	// Ollama is the native API of Ollama.
	Ollama Dialect = ollama{}
	// LlamaCPP is the native completion of llama.cpp.
	LlamaCPP Dialect = llamaCPP{}
	// TGI is the native API of Hugging Face's Text Generation Inference.
	TGI Dialect = tgi{}
	// SGLang is the native API of SGLang.
	SGLang Dialect = sglang{}
	// Triton is the generate extension of Triton Inference Server and the HTTP
	// API of the Open Inference Protocol (KServe V2).
	Triton Dialect = triton{}
)

// dialects are all of them.
var dialects = []Dialect{OpenAI, Responses, Anthropic, Gemini, Bedrock, Ollama, LlamaCPP, TGI, SGLang, Triton}

// A sign is what a JSON object has at its top that tells its dialect: each of the
// members, where "name=text" asks for a string that begins with text and "name={" for
// an object.
type sign struct {
	dialect Dialect
	members []string
}

// signs are tried in order.
var signs = []sign{
	{Responses, []string{"type=response."}},
	{Responses, []string{"object=response"}},
	{Responses, []string{"type=error", "code"}},
	{Anthropic, []string{"type=message_"}},
	{Anthropic, []string{"type=content_block_"}},
	{Anthropic, []string{"type=message", "role"}},
	{OpenAI, []string{"choices"}},
	{OpenAI, []string{"object=list", "data"}},
	{Gemini, []string{"candidates"}},
	{Gemini, []string{"promptFeedback"}},
	{Gemini, []string{"usageMetadata"}},
	{SGLang, []string{"meta_info"}},
	{TGI, []string{"token={"}},
	{TGI, []string{"generated_text"}},
	{Triton, []string{"text_output"}},
	{Triton, []string{"outputs", "model_name"}},
	{Bedrock, []string{"output", "stopReason"}},
	{Ollama, []string{"done", "model"}},
	{Ollama, []string{"embeddings", "model"}},
	{LlamaCPP, []string{"content", "stop"}},
}

// maxMembers bounds how many members of an object are looked at for signs.
const maxMembers = 64

// recognise returns the dialect that the JSON object b is in; nil where it could
// be any.
func recognise(b []byte) Dialect {
	type member struct{ key, value []byte }
	all := make([]member, 0, 16)
	members(b, func(key, value []byte) {
		if len(all) < maxMembers {
			all = append(all, member{key, value})
		}
	})
	for _, s := range signs {
		if !slices.ContainsFunc(s.members, func(want string) bool {
			return !slices.ContainsFunc(all, func(m member) bool { return tells(want, m.key, m.value) })
		}) {
			return s.dialect
		}
	}
	return nil
}

// tells reports whether a member is the wanted one.
func tells(want string, key, value []byte) bool {
	n := len(key)
	if len(want) < n || want[:n] != string(key) {
		return false
	}
	if len(want) == n {
		return true
	}
	text := want[n+1:]
	if text == "{" {
		return want[n] == '=' && value[0] == '{'
	}
	return want[n] == '=' && nonEmptyString(value) && len(value) > len(text)+1 && string(value[1:len(text)+1]) == text
}
