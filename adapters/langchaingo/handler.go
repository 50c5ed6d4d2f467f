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

// A Component is what a [Handler] is attached to: callbacks do not say who calls.
type Component struct {
	// Name is the name of the chain, the agent, the tool or the data source: one of few.
	Name string
	// Agent says that runs of the chain are those of an agent: it is an executor. A chain
	// that calls the same handler in the same context meanwhile is a planning step of it,
	// as the chain inside an executor does.
	Agent bool
	// Model holds Provider and Model of a model. Where both are empty, callbacks of models
	// record nothing: their spans would count again what [WrapModel] or the transport of
	// package genaihttp counts.
	Model genaitrace.Request
}

// A Handler records what callbacks tell: runs of chains and agents, tools, searches, and
// model calls where [Component] asks for them, with the spans and metrics that the
// wrappers of this package make. Make one for each chain, tool, retriever and model, and
// use it as its callback handler. It is safe for concurrent use.
//
// Callbacks tell less than the wrappers see:
//
//   - The parent of each span is that of the context: a chain's span has no children.
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

	tracer    *genaitrace.Tracer
	component Component
	open      openSpans
}

var _ callbacks.Handler = (*Handler)(nil)

// NewHandler makes the handler of one component.
func NewHandler(tracer *genaitrace.Tracer, of Component) *Handler {
	return &Handler{tracer: tracer, component: of}
}

// The kinds of spans that are open.
type kind uint8

const (
	kindChain kind = iota
	kindTool
	kindRetriever
	kindModel
)

// HandleChainStart starts the span of a chain, an agent or a step of its.
func (h *Handler) HandleChainStart(ctx context.Context, _ map[string]any) {
	var inside context.Context
	var operation *genaitrace.Operation
	if agent := h.open.agent(ctx); agent != nil {
		_, operation = h.tracer.StartPlan(agent, h.component.Name)
	} else if h.component.Agent {
		runs, run := h.tracer.StartAgent(ctx, genaitrace.Agent{Name: h.component.Name})
		inside, operation = runs, run.Operation
	} else {
		_, run := h.tracer.StartWorkflow(ctx, h.component.Name)
		operation = run.Operation
	}
	if operation != nil {
		h.open.add(ctx, kindChain, &openSpan{inside: inside, end: func(_ any, err error) { operation.Fail(err) }})
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
	_, call := h.tracer.StartTool(ctx, genaitrace.ToolCall{Name: h.component.Name, Type: typeFunction})
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
	_, search := h.tracer.StartRetrieval(ctx, genaitrace.RetrievalRequest{DataSource: h.component.Name})
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

// HandleLLMGenerateContentStart starts the span of a model call, where [Component] asks
// for it and no call of [WrapModel] is around it.
func (h *Handler) HandleLLMGenerateContentStart(ctx context.Context, messages []llms.MessageContent) {
	model := h.component.Model
	if model.Provider == "" && model.Model == "" || genaitrace.CallFromContext(ctx) != nil {
		return
	}
	inside, call := h.tracer.StartCall(ctx, model)
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
