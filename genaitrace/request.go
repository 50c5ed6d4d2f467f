package genaitrace

import (
	"math"
	"time"

	"go.opentelemetry.io/otel/attribute"
	otelsemconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/genaitrace/otelgenai/internal/bound"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// A Request holds what is known of a model call when it starts. Zero values are
// unknown and leave no attribute.
type Request struct {
	// Operation is what the model is asked to do; zero means chat.
	Operation genaiconv.OperationNameAttr
	// Provider is who serves the model, for example "vllm". The conventions
	// require it; zero leaves it out.
	Provider genaiconv.ProviderNameAttr
	// Model is the model that the request asks for.
	Model string
	// ModelVersion is the version or revision of the model that runs.
	ModelVersion string
	// RequestID identifies the request inside the service.
	RequestID string
	// Stream says that the answer is streamed.
	Stream bool
	// MaxTokens is the largest number of tokens to generate.
	MaxTokens int
	// Temperature, TopP, TopK and the penalties are the sampling settings of the
	// request, Seed is what makes its sampling repeat.
	Temperature, TopP                 *float64
	FrequencyPenalty, PresencePenalty *float64
	TopK, Seed                        *int
	// ReasoningLevel is the effort that the model is asked to spend on reasoning, in
	// the words of the provider, such as "low".
	ReasoningLevel string
	// PreviousResponseID identifies the stored response that the request goes on from.
	PreviousResponseID string
	// Choices is how many answers the request asks for; 1 is as good as unknown.
	Choices int
	// OutputType is the form of output that the request asks for.
	OutputType genaiconv.OutputTypeAttr
	// Dimensions is how long the vectors of an embeddings request shall be, Inputs
	// how many texts it asks vectors for.
	Dimensions, Inputs int
	// EncodingFormats are the encodings in which vectors may come back, such as
	// "float" and "base64"; the first eight count.
	EncodingFormats []string
	// ServerAddress and ServerPort say where a caller sends the request.
	ServerAddress string
	ServerPort    int
	// Arrived is when the request reached this process, or of a call when it is
	// sent: every time of this operation counts from there. Zero means now, and for
	// [Tracer.StartInference] first the time that a server middleware put into the
	// context ([ContextWithArrival]). A time in the future, or more than a day ago,
	// counts as unknown.
	Arrived time.Time
}

// operation is never empty.
func (r *Request) operation() genaiconv.OperationNameAttr {
	if r.Operation == "" {
		return genaiconv.OperationNameChat
	}
	return r.Operation
}

// clean bounds every string of the request.
func (r *Request) clean() {
	r.Operation = genaiconv.OperationNameAttr(bound.String(string(r.operation()), maxName))
	r.Provider = genaiconv.ProviderNameAttr(bound.String(string(r.Provider), maxName))
	r.Model = bound.String(r.Model, maxName)
	r.ModelVersion = bound.String(r.ModelVersion, maxName)
	r.RequestID = bound.String(r.RequestID, maxName)
	r.ServerAddress = bound.String(r.ServerAddress, maxName)
	r.OutputType = genaiconv.OutputTypeAttr(bound.String(string(r.OutputType), maxReason))
	r.ReasoningLevel = bound.String(r.ReasoningLevel, maxReason)
	r.PreviousResponseID = bound.String(r.PreviousResponseID, maxName)
	r.EncodingFormats = cleanFormats(r.EncodingFormats)
}

// maxFormats is how many encodings of vectors a request names at most.
const maxFormats = 8

// cleanFormats returns a bounded copy.
func cleanFormats(formats []string) []string {
	if len(formats) == 0 {
		return nil
	}
	clean := make([]string, min(len(formats), maxFormats))
	for i := range clean {
		clean[i] = bound.String(formats[i], maxReason)
	}
	return clean
}

// callRole is the role of the caller's span. In the engine every request is an
// inference.
func (r *Request) callRole() semconv.GenAISpanRoleAttr {
	if r.Operation == genaiconv.OperationNameEmbeddings {
		return semconv.GenAISpanRoleEmbedding
	}
	return semconv.GenAISpanRoleInference
}

// appendStart appends what samplers should see, and everything else that is
// known at the start.
func (r *Request) appendStart(attrs []attribute.KeyValue, role semconv.GenAISpanRoleAttr) []attribute.KeyValue {
	attrs = append(attrs, semconv.GenAISpanRole(role), genaiconv.OperationName(r.Operation))
	return r.appendFacts(attrs)
}

// appendFacts appends every known fact but the operation.
func (r *Request) appendFacts(attrs []attribute.KeyValue) []attribute.KeyValue {
	if r.Provider != "" {
		attrs = append(attrs, genaiconv.ProviderName(r.Provider))
	}
	if r.Model != "" {
		attrs = append(attrs, genaiconv.RequestModel(r.Model))
	}
	attrs = appendServer(attrs, r.ServerAddress, r.ServerPort)
	if r.ModelVersion != "" {
		attrs = append(attrs, semconv.AIModelVersion(r.ModelVersion))
	}
	if r.RequestID != "" {
		attrs = append(attrs, semconv.GenAIRequestID(r.RequestID))
	}
	if r.Stream {
		attrs = append(attrs, genaiconv.RequestStream(true))
	}
	if r.MaxTokens > 0 {
		attrs = append(attrs, genaiconv.RequestMaxTokens(r.MaxTokens))
	}
	if isFinite(r.Temperature) {
		attrs = append(attrs, genaiconv.RequestTemperature(*r.Temperature))
	}
	if isFinite(r.TopP) {
		attrs = append(attrs, genaiconv.RequestTopP(*r.TopP))
	}
	if isFinite(r.FrequencyPenalty) {
		attrs = append(attrs, genaiconv.RequestFrequencyPenalty(*r.FrequencyPenalty))
	}
	if isFinite(r.PresencePenalty) {
		attrs = append(attrs, genaiconv.RequestPresencePenalty(*r.PresencePenalty))
	}
	attrs = appendInt(attrs, genaiconv.RequestTopKKey, r.TopK)
	attrs = appendInt(attrs, genaiconv.RequestSeedKey, r.Seed)
	if r.Choices > 1 {
		attrs = append(attrs, genaiconv.RequestChoiceCount(r.Choices))
	}
	if r.OutputType != "" {
		attrs = append(attrs, genaiconv.OutputType(r.OutputType))
	}
	if r.ReasoningLevel != "" {
		attrs = append(attrs, genaiconv.RequestReasoningLevel(r.ReasoningLevel))
	}
	if r.PreviousResponseID != "" {
		attrs = append(attrs, genaiconv.RequestPreviousResponseID(r.PreviousResponseID))
	}
	if r.Dimensions > 0 {
		attrs = append(attrs, genaiconv.EmbeddingsDimensionCount(r.Dimensions))
	}
	if r.Inputs > 0 {
		attrs = append(attrs, semconv.GenAIEmbeddingsInputCount(r.Inputs))
	}
	if len(r.EncodingFormats) > 0 {
		attrs = append(attrs, genaiconv.RequestEncodingFormats(r.EncodingFormats...))
	}
	return attrs
}

func appendServer(attrs []attribute.KeyValue, address string, port int) []attribute.KeyValue {
	if address == "" {
		return attrs
	}
	attrs = append(attrs, otelsemconv.ServerAddress(address))
	if port > 0 {
		attrs = append(attrs, otelsemconv.ServerPort(port))
	}
	return attrs
}

// isFinite reports whether v is a known number that every exporter can write:
// one NaN makes a JSON encoder drop a whole batch.
func isFinite(v *float64) bool {
	return v != nil && !math.IsNaN(*v) && !math.IsInf(*v, 0)
}

// learn takes over what late knows and r does not, and returns that.
func (r *Request) learn(late Request) (news Request) {
	if r.ServerAddress == "" && late.ServerAddress != "" {
		learn(&r.ServerAddress, late.ServerAddress, &news.ServerAddress)
		learn(&r.ServerPort, late.ServerPort, &news.ServerPort)
	}
	learn(&r.Provider, late.Provider, &news.Provider)
	learn(&r.Model, late.Model, &news.Model)
	learn(&r.ModelVersion, late.ModelVersion, &news.ModelVersion)
	learn(&r.RequestID, late.RequestID, &news.RequestID)
	learn(&r.Stream, late.Stream, &news.Stream)
	learn(&r.MaxTokens, late.MaxTokens, &news.MaxTokens)
	learn(&r.Temperature, late.Temperature, &news.Temperature)
	learn(&r.TopP, late.TopP, &news.TopP)
	learn(&r.FrequencyPenalty, late.FrequencyPenalty, &news.FrequencyPenalty)
	learn(&r.PresencePenalty, late.PresencePenalty, &news.PresencePenalty)
	learn(&r.TopK, late.TopK, &news.TopK)
	learn(&r.Seed, late.Seed, &news.Seed)
	learn(&r.Choices, late.Choices, &news.Choices)
	learn(&r.OutputType, late.OutputType, &news.OutputType)
	learn(&r.ReasoningLevel, late.ReasoningLevel, &news.ReasoningLevel)
	learn(&r.PreviousResponseID, late.PreviousResponseID, &news.PreviousResponseID)
	learn(&r.Dimensions, late.Dimensions, &news.Dimensions)
	learn(&r.Inputs, late.Inputs, &news.Inputs)
	if r.EncodingFormats == nil {
		r.EncodingFormats, news.EncodingFormats = late.EncodingFormats, late.EncodingFormats
	}
	return news
}

// learn copies late to known and to news, unless it is zero or known is not.
func learn[T comparable](known *T, late T, news *T) {
	var zero T
	if *known == zero && late != zero {
		*known, *news = late, late
	}
}

// A Prompt holds what the engine knows of a prompt when prefill starts.
type Prompt struct {
	// Tokens is the length of the prompt, cached tokens included; zero is
	// unknown.
	Tokens int
	// Cached is how many of them the KV cache held: nil is unknown, new(0) a
	// miss.
	Cached *int
}

// promptFacts is a Prompt by value, so that a Phase holds no pointer of its
// caller.
type promptFacts struct {
	tokens int
	cached count
}

// facts are what is known, and nothing where the prompt contradicts itself.
func (p Prompt) facts() (f promptFacts, sane bool) {
	f.tokens = p.Tokens
	if p.Cached != nil {
		f.cached = count{n: *p.Cached, known: true}
	}
	if f.tokens < 0 || f.cached.n < 0 || f.tokens > 0 && f.cached.n > f.tokens {
		return promptFacts{}, false
	}
	return f, true
}

func (f promptFacts) appendTo(attrs []attribute.KeyValue) []attribute.KeyValue {
	if f.tokens > 0 {
		attrs = append(attrs, semconv.AITokensInput(f.tokens))
	}
	if f.cached.known {
		attrs = append(attrs, semconv.AITokensCached(f.cached.n), semconv.AIKVCacheHit(f.cached.n > 0))
		if f.tokens > 0 {
			attrs = append(attrs, semconv.AIKVCacheHitRatio(float64(f.cached.n)/float64(f.tokens)))
		}
	}
	return attrs
}

// Usage holds token counts. A nil field is unknown and leaves no attribute; use
// new(n) for a known one. Negative counts are dropped and counted as faults.
type Usage struct {
	// InputTokens is the length of the prompt, cached tokens included.
	InputTokens *int
	// OutputTokens is what was generated, reasoning included.
	OutputTokens *int
	// CachedTokens is the part of InputTokens that a cache held.
	CachedTokens *int
	// CacheWriteTokens is the part of InputTokens that was written to a cache.
	CacheWriteTokens *int
	// ReasoningTokens is the part of OutputTokens spent on reasoning.
	ReasoningTokens *int
}

// merge takes over what is known in u and reports whether each count is sane.
func (have *usage) merge(u Usage) (sane bool) {
	sane = true
	for _, f := range []struct {
		from *int
		to   *count
	}{
		{u.InputTokens, &have.input},
		{u.OutputTokens, &have.output},
		{u.CachedTokens, &have.cached},
		{u.CacheWriteTokens, &have.cacheWrite},
		{u.ReasoningTokens, &have.reasoning},
	} {
		switch {
		case f.from == nil:
		case *f.from < 0:
			sane = false
		default:
			*f.to = count{n: *f.from, known: true}
		}
	}
	return sane
}

// usage is Usage by value, so that handles hold no pointers of the caller.
type usage struct {
	input, output, cached, cacheWrite, reasoning count
}

type count struct {
	n     int
	known bool
}

// appendTo appends the counts: under their official keys, or, where an outer
// span of the same trace carries those, under the house keys. Backends add up
// gen_ai.usage.*, so one model call writes it once.
func (have *usage) appendTo(attrs []attribute.KeyValue, inner bool) []attribute.KeyValue {
	for _, f := range [...]struct {
		count
		official, house attribute.Key
	}{
		{have.input, genaiconv.UsageInputTokensKey, semconv.AITokensInputKey},
		{have.output, genaiconv.UsageOutputTokensKey, semconv.AITokensOutputKey},
		{have.cached, genaiconv.UsageCacheReadInputTokensKey, semconv.AITokensCachedKey},
		{have.cacheWrite, genaiconv.UsageCacheWriteInputTokensKey, semconv.AITokensCacheWriteKey},
		{have.reasoning, genaiconv.UsageReasoningOutputTokensKey, semconv.AITokensReasoningKey},
	} {
		switch {
		case !f.known:
		case inner:
			attrs = append(attrs, f.house.Int(f.n))
		default:
			attrs = append(attrs, f.official.Int(f.n))
		}
	}
	return attrs
}
