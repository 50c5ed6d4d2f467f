package wire

import (
	"mime"
	"net/http"
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

const (
	providerOllama genaiconv.ProviderNameAttr = "ollama"
	providerTGI    genaiconv.ProviderNameAttr = "tgi"
	providerTriton genaiconv.ProviderNameAttr = "triton"
	providerLlama  genaiconv.ProviderNameAttr = "llama.cpp"
)

// endpoints are tried in order.
var endpoints = []Endpoint{
	{Path: "/deployments/*/chat/completions", Operation: genaiconv.OperationNameChat, Provider: genaiconv.ProviderNameAzureAIOpenAI, likely: OpenAI},
	{Path: "/deployments/*/completions", Operation: genaiconv.OperationNameTextCompletion, Provider: genaiconv.ProviderNameAzureAIOpenAI, likely: OpenAI},
	{Path: "/deployments/*/embeddings", Operation: genaiconv.OperationNameEmbeddings, Provider: genaiconv.ProviderNameAzureAIOpenAI, likely: OpenAI},
	{Path: "/chat/completions", Operation: genaiconv.OperationNameChat, Provider: genaiconv.ProviderNameOpenAI, likely: OpenAI},
	{Path: "/completions", Operation: genaiconv.OperationNameTextCompletion, Provider: genaiconv.ProviderNameOpenAI, likely: OpenAI},
	{Path: "/api/embeddings", Operation: genaiconv.OperationNameEmbeddings, Provider: providerOllama, likely: Ollama},
	{Path: "/embeddings", Operation: genaiconv.OperationNameEmbeddings, Provider: genaiconv.ProviderNameOpenAI, likely: OpenAI},
	{Path: "/responses", Operation: genaiconv.OperationNameChat, Provider: genaiconv.ProviderNameOpenAI, likely: Responses},
	{Path: "/v1/messages", Operation: genaiconv.OperationNameChat, Provider: genaiconv.ProviderNameAnthropic, likely: Anthropic},
	{Path: "/publishers/anthropic/models/*:rawPredict", Operation: genaiconv.OperationNameChat, Provider: genaiconv.ProviderNameGCPVertexAI, likely: Anthropic},
	{Path: "/publishers/anthropic/models/*:streamRawPredict", Operation: genaiconv.OperationNameChat, Provider: genaiconv.ProviderNameGCPVertexAI, likely: Anthropic, stream: always},
	{Path: "/publishers/google/models/*:generateContent", Operation: genaiconv.OperationNameGenerateContent, Provider: genaiconv.ProviderNameGCPVertexAI, likely: Gemini},
	{Path: "/publishers/google/models/*:streamGenerateContent", Operation: genaiconv.OperationNameGenerateContent, Provider: genaiconv.ProviderNameGCPVertexAI, likely: Gemini, stream: always},
	{Path: "/models/*:generateContent", Operation: genaiconv.OperationNameGenerateContent, Provider: genaiconv.ProviderNameGCPGemini, likely: Gemini},
	{Path: "/models/*:streamGenerateContent", Operation: genaiconv.OperationNameGenerateContent, Provider: genaiconv.ProviderNameGCPGemini, likely: Gemini, stream: always},
	{Path: "/models/*:embedContent", Operation: genaiconv.OperationNameEmbeddings, Provider: genaiconv.ProviderNameGCPGemini, likely: Gemini},
	{Path: "/models/*:batchEmbedContents", Operation: genaiconv.OperationNameEmbeddings, Provider: genaiconv.ProviderNameGCPGemini, likely: Gemini},
	{Path: "/model/*/converse", Operation: genaiconv.OperationNameChat, Provider: genaiconv.ProviderNameAWSBedrock, likely: Bedrock},
	{Path: "/model/*/converse-stream", Operation: genaiconv.OperationNameChat, Provider: genaiconv.ProviderNameAWSBedrock, likely: Bedrock, stream: always},
	{Path: "/model/*/invoke", Operation: genaiconv.OperationNameChat, Provider: genaiconv.ProviderNameAWSBedrock, likely: Bedrock},
	{Path: "/model/*/invoke-with-response-stream", Operation: genaiconv.OperationNameChat, Provider: genaiconv.ProviderNameAWSBedrock, likely: Bedrock, stream: always},
	{Path: "/api/chat", Operation: genaiconv.OperationNameChat, Provider: providerOllama, likely: Ollama, stream: unlessAsked},
	{Path: "/api/generate", Operation: genaiconv.OperationNameTextCompletion, Provider: providerOllama, likely: Ollama, stream: unlessAsked},
	{Path: "/api/embed", Operation: genaiconv.OperationNameEmbeddings, Provider: providerOllama, likely: Ollama},
	{Path: "/completion", Operation: genaiconv.OperationNameTextCompletion, Provider: providerLlama, likely: LlamaCPP},
	{Path: "/infill", Operation: genaiconv.OperationNameTextCompletion, Provider: providerLlama, likely: LlamaCPP},
	{Path: "/v2/models/*/generate", Operation: genaiconv.OperationNameTextCompletion, Provider: providerTriton, likely: Triton},
	{Path: "/v2/models/*/generate_stream", Operation: genaiconv.OperationNameTextCompletion, Provider: providerTriton, likely: Triton, stream: always},
	{Path: "/v2/models/*/infer", Operation: genaiconv.OperationNameTextCompletion, Provider: providerTriton, likely: Triton},
	{Path: "/generate_stream", Operation: genaiconv.OperationNameTextCompletion, Provider: providerTGI, likely: TGI, stream: always},
	{Path: "/generate", Operation: genaiconv.OperationNameTextCompletion, likely: TGI}, // or SGLang
}

// FindEndpoint returns the endpoint that a path belongs to: one of own, in their
// order, or one of those that this package knows.
func FindEndpoint(path string, own ...Endpoint) (Endpoint, bool) {
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	for _, list := range [...][]Endpoint{own, endpoints} {
		for _, e := range list {
			if _, ok := e.match(path); ok {
				return e, true
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

// An Exchange is what is known of a request and its answer before the answer's
// body comes. The zero value knows nothing: then the body itself has to tell.
type Exchange struct {
	// Path is the path of the request's URL.
	Path string
	// Request and Response are the headers.
	Request, Response http.Header
	// Status is that of the answer; zero means 200.
	Status int
	// Dialect is how the answer is read. nil means to find out.
	Dialect Dialect
}

// A framing is how a body is split into events.
type framing uint8

const (
	unframed    framing = iota // a whole answer, or nothing that can be read
	serverSent                 // server-sent events
	jsonLines                  // a document a line
	jsonValues                 // documents in an array
	awsMessages                // AWS event-stream
	unknown                    // the first byte has to tell
)

// Streamed reports whether the body is a stream of events that can be read: its
// content type says so, and no content encoding hides it.
func (x Exchange) Streamed() bool { return x.framing() != unframed }

// Document reports whether the body is a whole answer that can be read.
func (x Exchange) Document() bool {
	return !isEncoded(x.Response) && isJSON(x.Response) && x.framing() == unframed
}

func (x Exchange) framing() framing {
	if x.Response == nil {
		return unknown
	}
	if isEncoded(x.Response) {
		return unframed
	}
	switch mediaType(x.Response) {
	case "text/event-stream":
		return serverSent
	case "application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines", "application/stream+json":
		return jsonLines
	case "application/vnd.amazon.eventstream":
		return awsMessages
	case "application/json":
		if strings.HasSuffix(x.Path, ":streamGenerateContent") && x.Status < http.StatusBadRequest {
			return jsonValues // Gemini's stream without "alt=sse"
		}
	}
	return unframed
}

// likely is the dialect to expect: the chosen one, else what the headers or the
// path say.
func (x Exchange) likely() (d Dialect, sure bool) {
	if x.Dialect != nil {
		return x.Dialect, true
	}
	switch {
	case x.framing() == awsMessages:
		return Bedrock, true
	case x.Request.Get("Anthropic-Version") != "":
		return Anthropic, false
	case x.Request.Get("X-Goog-Api-Key") != "":
		return Gemini, false
	case x.Response.Get("X-Compute-Type") != "":
		return TGI, false
	case x.Response.Get("Server") == "llama.cpp" && strings.HasSuffix(x.Path, "/completions"):
		return nil, false // its own API or OpenAI's
	}
	if e, ok := FindEndpoint(x.Path); ok {
		return e.likely, false
	}
	return nil, false
}

func mediaType(h http.Header) string {
	t, _, _ := mime.ParseMediaType(h.Get("Content-Type"))
	return t
}

func isJSON(h http.Header) bool {
	t := mediaType(h)
	return t == "application/json" || strings.HasSuffix(t, "+json")
}

// isEncoded reports whether a content encoding hides the body.
func isEncoded(h http.Header) bool {
	e := h.Get("Content-Encoding")
	return e != "" && !strings.EqualFold(e, "identity")
}
