package genailangchain

import (
	"context"
	"errors"
	"fmt"

	"github.com/tmc/langchaingo/callbacks"
	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/schema"

	"github.com/genaitrace/otelgenai/genaitrace"
)

// A Handler records what callbacks tell of chains, tools, searches and, where it is a
// [NewModelHandler], of model calls, with the spans and metrics that the wrappers of this
// package make. It is safe for concurrent use.
//
// Callbacks tell less than the wrappers see:
//
//   - They do not say who calls. So a Handler belongs to one chain, tool, retriever or
//     model, and has its name.
//   - The parent of each span is that of the context: a chain's span has no children.
//   - The executor of an agent counts as a chain, since its model calls and tools, which
//     the metrics of agents count, are not seen.
//   - What ends is found by its context, a search by its query too. Of two that run at the
//     same time in one context (chains.Apply) nobody can say which has ended, so their
//     ends may be exchanged. Give each a context of its own.
//   - Some clients and tools report no end when they fail: those of OpenAI and Google,
//     vectorstores.Retriever, tools.Calculator. Such a span ends with its context, as
//     cancelled or timed out, else after 15 minutes with error.type abandoned. Of more
//     than 1,000 open ones of a Handler the oldest is ended in that way. The metrics have
//     the error.type too, which is how often it happened.
//   - A model call has no time to first token, and no settings.
//   - Where the type of a context cannot be compared, spans end as abandoned at once.
//
// HandleAgentAction tells the name that a model chose before anybody looked for a tool of
// that name, and HandleStreamingFunc comes in a context of its own, so nothing is made of
// either. HandleAgentFinish says what HandleChainEnd does.
type Handler struct {
	callbacks.SimpleHandler // for the callbacks of which nothing is recorded

	tracer *genaitrace.Tracer
	name   string
	model  *genaitrace.Request // nil where model calls are not recorded
	open   openSpans
}

var _ callbacks.Handler = (*Handler)(nil)

// NewHandler makes the handler of the chain, the tool or the retriever of that name: one
// of few. Callbacks of models record nothing.
func NewHandler(tracer *genaitrace.Tracer, name string) *Handler {
	return &Handler{tracer: tracer, name: name}
}

// NewModelHandler makes the handler of a model; req is what [WrapModel] takes. A call
// inside one of WrapModel is not recorded again. But below the handler the transport of
// package genaihttp counts the same tokens once more: use one of the two.
func NewModelHandler(tracer *genaitrace.Tracer, req genaitrace.Request) *Handler {
	return &Handler{tracer: tracer, name: req.Model, model: &req}
}

// The kinds of spans that are open.
type kind uint8

const (
	kindChain kind = iota
	kindTool
	kindRetriever
	kindModel
)

// HandleChainStart starts the span of a chain.
func (h *Handler) HandleChainStart(ctx context.Context, _ map[string]any) {
	_, run := h.tracer.StartWorkflow(ctx, h.name)
	if run.Operation != nil {
		h.open.add(ctx, kindChain, &openSpan{end: func(_ any, err error) { run.Fail(err) }})
	}
}

// HandleChainEnd ends it.
func (h *Handler) HandleChainEnd(ctx context.Context, _ map[string]any) {
	h.open.end(ctx, kindChain, 0, nil, nil)
}

// HandleChainError ends it as failed.
func (h *Handler) HandleChainError(ctx context.Context, err error) {
	h.open.end(ctx, kindChain, 0, nil, failure(err))
}

// HandleToolStart starts the span of a tool.
func (h *Handler) HandleToolStart(ctx context.Context, input string) {
	_, call := h.tracer.StartTool(ctx, genaitrace.ToolCall{Name: h.name, Type: typeFunction})
	if call.Operation == nil {
		return
	}
	call.SetArguments(input)
	h.open.add(ctx, kindTool, &openSpan{end: func(output any, err error) {
		if err == nil {
			call.SetResult(output)
		}
		call.Fail(err)
	}})
}

// HandleToolEnd ends it.
func (h *Handler) HandleToolEnd(ctx context.Context, output string) {
	h.open.end(ctx, kindTool, 0, output, nil)
}

// HandleToolError ends it as failed.
func (h *Handler) HandleToolError(ctx context.Context, err error) {
	h.open.end(ctx, kindTool, 0, nil, failure(err))
}

// HandleRetrieverStart starts the span of a search.
func (h *Handler) HandleRetrieverStart(ctx context.Context, query string) {
	_, search := h.tracer.StartRetrieval(ctx, genaitrace.RetrievalRequest{DataSource: h.name})
	if search.Operation == nil {
		return
	}
	search.SetQuery(query)
	h.open.add(ctx, kindRetriever, &openSpan{query: hash(query), end: func(found any, err error) {
		if documents, ok := found.([]schema.Document); ok && err == nil {
			noteDocuments(search, documents, nil)
		}
		search.Fail(err)
	}})
}

// HandleRetrieverEnd ends it.
func (h *Handler) HandleRetrieverEnd(ctx context.Context, query string, documents []schema.Document) {
	h.open.end(ctx, kindRetriever, hash(query), documents, nil)
}

// HandleLLMGenerateContentStart starts the span of a model call.
func (h *Handler) HandleLLMGenerateContentStart(ctx context.Context, messages []llms.MessageContent) {
	if h.model == nil || genaitrace.CallFromContext(ctx) != nil {
		return
	}
	inside, call := h.tracer.StartCall(ctx, *h.model)
	if call == nil {
		return
	}
	call.SetInput(input(messages, settings{}))
	h.open.add(ctx, kindModel, &openSpan{end: func(result any, err error) {
		answer, _ := result.(*llms.ContentResponse)
		noteAnswer(call, settings{}, answer, false)
		if err != nil {
			noteFailure(inside, call, err)
			err = fmt.Errorf("call: %w", err) // a bare io.EOF would be a good end
		}
		call.Fail(err)
	}})
}

// HandleLLMGenerateContentEnd ends it.
func (h *Handler) HandleLLMGenerateContentEnd(ctx context.Context, answer *llms.ContentResponse) {
	h.open.end(ctx, kindModel, 0, answer, nil)
}

// HandleLLMError ends it as failed.
func (h *Handler) HandleLLMError(ctx context.Context, err error) {
	h.open.end(ctx, kindModel, 0, nil, failure(err))
}

// failure is an error even where the callback brings none.
func failure(err error) error {
	if err == nil {
		return errUnknown
	}
	return err
}

var errUnknown = errors.New("failed without an error")
