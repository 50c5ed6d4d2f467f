package genaieino

import (
	"context"
	"io"
	"strings"

	"github.com/cloudwego/eino/callbacks"
	"github.com/cloudwego/eino/components"
	"github.com/cloudwego/eino/components/embedding"
	"github.com/cloudwego/eino/components/model"
	"github.com/cloudwego/eino/components/retriever"
	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/schema"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/genaitrace/content"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// start starts what stands for a component. Where nothing records it, no run is in the
// context that is returned.
func (h *handler) start(ctx context.Context, info *callbacks.RunInfo, input any) context.Context {
	switch info.Component {
	case components.ComponentOfChatModel:
		ctx, _ = startModel(ctx, h.tr, info, model.ConvCallbackInput(input))
		return ctx
	case components.ComponentOfEmbedding:
		return h.startEmbedding(ctx, info, embedding.ConvCallbackInput(input))
	case components.ComponentOfRetriever:
		return h.startRetriever(ctx, info, retriever.ConvCallbackInput(input))
	case components.ComponentOfTool:
		return h.startTool(ctx, info, tool.ConvCallbackInput(input))
	case components.ComponentOfPrompt:
		spanCtx, op := h.tr.StartTemplate(ctx, genaitrace.Template{Name: info.Name})
		return begin(ctx, spanCtx, &run{info: info}, op)
	case compose.ComponentOfGraph, compose.ComponentOfChain, compose.ComponentOfWorkflow:
		return h.startGraph(ctx, info)
	case compose.ComponentOfPassthrough:
		return ctx
	}
	return h.startStep(ctx, info)
}

// startGraph starts an agent, or a workflow where it is the outermost graph. Others are
// steps of it: a workflow of their own would take its model calls away from it.
func (h *handler) startGraph(ctx context.Context, info *callbacks.RunInfo) context.Context {
	r := &run{info: info, graph: true}
	switch {
	case h.agents[info.Name]:
		spanCtx, agent := h.tr.StartAgent(ctx, genaitrace.Agent{Name: info.Name})
		return begin(ctx, spanCtx, r, agent.Operation)
	case runFrom(ctx).inGraph():
		return h.startStep(ctx, info)
	}
	spanCtx, workflow := h.tr.StartWorkflow(ctx, info.Name)
	return begin(ctx, spanCtx, r, workflow.Operation)
}

// steps are the verbs for components that are no operation of the conventions.
var steps = map[components.Component]string{
	components.ComponentOfIndexer:     "index",
	components.ComponentOfLoader:      "load",
	components.ComponentOfTransformer: "transform",
	compose.ComponentOfToolsNode:      "tools",
}

func (h *handler) startStep(ctx context.Context, info *callbacks.RunInfo) context.Context {
	name, ok := steps[info.Component]
	if !ok {
		name = strings.ToLower(string(info.Component))
	}
	if of := called(info); of != "" {
		name += " " + of
	}
	spanCtx, op := h.tr.StartTask(ctx, name)
	return begin(ctx, spanCtx, &run{info: info}, op)
}

// called is the name that the program gave a component, else that of its type.
func called(info *callbacks.RunInfo) string {
	if info.Name != "" {
		return info.Name
	}
	return info.Type
}

func (h *handler) startRetriever(ctx context.Context, info *callbacks.RunInfo, in *retriever.CallbackInput) context.Context {
	req := genaitrace.RetrievalRequest{DataSource: called(info)}
	if in != nil {
		req.TopK = in.TopK
	}
	spanCtx, search := h.tr.StartRetrieval(ctx, req)
	if in != nil {
		search.SetQuery(in.Query)
	}
	return begin(ctx, spanCtx, &run{info: info, learn: func(output any) {
		if out := retriever.ConvCallbackOutput(output); out != nil {
			search.SetHits(len(out.Docs))
			search.SetDocuments(documents(out.Docs)...)
		}
	}}, search.Operation)
}

// documents tells which documents were found. Eino has no word for a score that is
// unknown: it is 0.
func documents(found []*schema.Document) []genaitrace.Document {
	out := make([]genaitrace.Document, 0, len(found))
	for _, d := range found {
		if d == nil {
			continue
		}
		one := genaitrace.Document{ID: d.ID}
		if score := d.Score(); score != 0 {
			one.Score = &score
		}
		out = append(out, one)
	}
	return out
}

func (h *handler) startEmbedding(ctx context.Context, info *callbacks.RunInfo, in *embedding.CallbackInput) context.Context {
	req := genaitrace.Request{Operation: genaiconv.OperationNameEmbeddings, Provider: providers[info.Type]}
	if in != nil {
		req.Inputs = len(in.Texts)
		if in.Config != nil {
			req.Model = in.Config.Model
		}
	}
	spanCtx, call := h.tr.StartCall(ctx, req)
	return begin(ctx, spanCtx, &run{info: info, learn: func(output any) {
		out := embedding.ConvCallbackOutput(output)
		if out == nil {
			return
		}
		if out.Config != nil {
			call.SetRequest(genaitrace.Request{Model: out.Config.Model})
		}
		if out.TokenUsage != nil {
			call.SetUsage(genaitrace.Usage{InputTokens: known(out.TokenUsage.PromptTokens)})
		}
	}}, call)
}

// unknownTool is the type of what stands in for a tool that does not exist, under a name
// that the model made up.
const unknownTool = "UnknownTool"

func (h *handler) startTool(ctx context.Context, info *callbacks.RunInfo, in *tool.CallbackInput) context.Context {
	asked := genaitrace.ToolCall{Name: called(info), CallID: compose.GetToolCallID(ctx), Type: "function"}
	if info.Type == unknownTool {
		asked.Name = ""
	}
	spanCtx, call := h.tr.StartTool(ctx, asked)
	if in != nil {
		call.SetArguments(in.ArgumentsInJSON)
	}
	return begin(ctx, spanCtx, &run{
		info:        info,
		interrupted: func() { call.SetStatus(semconv.GenAIToolStatusCancelled) },
		learn: func(output any) {
			if out := tool.ConvCallbackOutput(output); out != nil {
				setResult(call, out)
			}
		},
		read: func(next func() (callbacks.CallbackOutput, error)) error { return readTool(ctx, call, next) },
	}, call.Operation)
}

func setResult(call genaitrace.Tool, out *tool.CallbackOutput) {
	if out.ToolOutput != nil {
		call.SetResult(out.ToolOutput)
		return
	}
	call.SetResult(out.Response)
}

// readTool reads what a tool streams, and puts its text together where it is kept.
func readTool(ctx context.Context, call genaitrace.Tool, next func() (callbacks.CallbackOutput, error)) error {
	var text strings.Builder
	keeps := call.KeepsContent()
	defer func() {
		if text.Len() > 0 {
			call.SetResult(text.String())
		}
	}()
	for {
		item, err := next()
		switch {
		case err == io.EOF: //nolint:errorlint // wrapped, it is the cause of something else
			return nil
		case err != nil:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		}
		if out := tool.ConvCallbackOutput(item); keeps && out != nil && text.Len() < content.MaxLimit {
			text.WriteString(out.Response)
		}
	}
}
