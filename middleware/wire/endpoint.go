package wire

import (
	"strings"

	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// An Endpoint is a path under which servers answer calls of a model. Users name
// their own to have them traced, or to say what is spoken there.
type Endpoint struct {
	// Path is how the path of the URL ends: "/chat/completions". A "*" stands for
	// any text, which is the model: "/models/*:generateContent".
	Path string
	// Operation is what the model is asked to do; zero means chat.
	Operation genaiconv.OperationNameAttr
	// Provider is gen_ai.provider.name; zero is unknown.
	Provider genaiconv.ProviderNameAttr
	// Dialect is how its answers are read. nil means that the answer tells.
	Dialect Dialect

	likely Dialect // where the answer does not tell
	stream streaming
}

// streaming says which requests to an endpoint get a stream.
type streaming uint8

const (
	ifAsked     streaming = iota // "stream": true
	unlessAsked                  // all but those with "stream": false
	always
)

// What models are asked to do.
const (
	chat       = genaiconv.OperationNameChat
	completion = genaiconv.OperationNameTextCompletion
	content    = genaiconv.OperationNameGenerateContent
	embeddings = genaiconv.OperationNameEmbeddings
	// inference is a model on tensors, which need not be text.
	inference genaiconv.OperationNameAttr = "inference"
)

// Servers that the conventions have no name for.
const (
	serverOllama genaiconv.ProviderNameAttr = "ollama"
	serverLlama  genaiconv.ProviderNameAttr = "llama.cpp"
	serverTGI    genaiconv.ProviderNameAttr = "tgi"
	serverTriton genaiconv.ProviderNameAttr = "triton"
)

// endpoints are tried in order.
var endpoints = []Endpoint{
	{"/deployments/*/chat/completions", chat, genaiconv.ProviderNameAzureAIOpenAI, nil, OpenAI, ifAsked},
	{"/deployments/*/completions", completion, genaiconv.ProviderNameAzureAIOpenAI, nil, OpenAI, ifAsked},
	{"/deployments/*/embeddings", embeddings, genaiconv.ProviderNameAzureAIOpenAI, nil, OpenAI, ifAsked},
	{"/chat/completions", chat, genaiconv.ProviderNameOpenAI, nil, OpenAI, ifAsked},
	{"/completions", completion, genaiconv.ProviderNameOpenAI, nil, OpenAI, ifAsked},
	{"/api/embeddings", embeddings, serverOllama, nil, Ollama, ifAsked},
	{"/embeddings", embeddings, genaiconv.ProviderNameOpenAI, nil, OpenAI, ifAsked},
	{"/responses", chat, genaiconv.ProviderNameOpenAI, nil, Responses, ifAsked},
	{"/v1/messages", chat, genaiconv.ProviderNameAnthropic, nil, Anthropic, ifAsked},
	{"/publishers/anthropic/models/*:rawPredict", chat, genaiconv.ProviderNameGCPVertexAI, nil, Anthropic, ifAsked},
	{"/publishers/anthropic/models/*:streamRawPredict", chat, genaiconv.ProviderNameGCPVertexAI, nil, Anthropic, always},
	{"/publishers/google/models/*:generateContent", content, genaiconv.ProviderNameGCPVertexAI, nil, Gemini, ifAsked},
	{"/publishers/google/models/*:streamGenerateContent", content, genaiconv.ProviderNameGCPVertexAI, nil, Gemini, always},
	{"/models/*:generateContent", content, genaiconv.ProviderNameGCPGemini, nil, Gemini, ifAsked},
	{"/models/*:streamGenerateContent", content, genaiconv.ProviderNameGCPGemini, nil, Gemini, always},
	{"/models/*:embedContent", embeddings, genaiconv.ProviderNameGCPGemini, nil, Gemini, ifAsked},
	{"/models/*:batchEmbedContents", embeddings, genaiconv.ProviderNameGCPGemini, nil, Gemini, ifAsked},
	{"/model/*/converse", chat, genaiconv.ProviderNameAWSBedrock, nil, Bedrock, ifAsked},
	{"/model/*/converse-stream", chat, genaiconv.ProviderNameAWSBedrock, nil, Bedrock, always},
	{"/model/*/invoke", chat, genaiconv.ProviderNameAWSBedrock, nil, Bedrock, ifAsked},
	{"/model/*/invoke-with-response-stream", chat, genaiconv.ProviderNameAWSBedrock, nil, Bedrock, always},
	{"/api/chat", chat, serverOllama, nil, Ollama, unlessAsked},
	{"/api/generate", completion, serverOllama, nil, Ollama, unlessAsked},
	{"/api/embed", embeddings, serverOllama, nil, Ollama, ifAsked},
	{"/completion", completion, serverLlama, nil, LlamaCPP, ifAsked},
	{"/infill", completion, serverLlama, nil, LlamaCPP, ifAsked},
	{"/v2/models/*/generate", completion, serverTriton, nil, Triton, ifAsked},
	{"/v2/models/*/generate_stream", completion, serverTriton, nil, Triton, always},
	{"/v2/models/*/infer", inference, serverTriton, nil, Triton, ifAsked},
	{"/generate_stream", completion, serverTGI, nil, TGI, always},
	{"/generate", completion, "", nil, TGI, ifAsked}, // or SGLang
}

// FindEndpoint returns the endpoint that a path belongs to: one of own, in their
// order, or one of those that this package knows.
func FindEndpoint(path string, own ...Endpoint) (Endpoint, bool) {
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	for _, list := range [...][]Endpoint{own, endpoints} {
		for i := range list {
			if _, ok := list[i].match(path); ok {
				return list[i], true
			}
		}
	}
	return Endpoint{}, false
}

// match reports whether path belongs to e, and the model that it names.
func (e *Endpoint) match(path string) (model string, ok bool) {
	before, after, star := strings.Cut(e.Path, "*")
	if !star {
		return "", e.Path != "" && strings.HasSuffix(path, e.Path)
	}
	path, ok = strings.CutSuffix(path, after)
	if !ok {
		return "", false
	}
	_, model, ok = strings.Cut(path, before)
	model, _, _ = strings.Cut(model, "/versions/") // of a model on Triton
	return model, ok && model != ""
}
