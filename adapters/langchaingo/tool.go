package genailangchain

import (
	"context"

	"github.com/genaitrace/otelgenai/genaitrace"
)

// A Tool is a tools.Tool.
type Tool interface {
	Name() string
	Description() string
	Call(ctx context.Context, input string) (string, error)
}

// WrapTool records the calls of a tool: a span "execute_tool {name}" and the metric
// gen_ai.execute_tool.duration. Input and output are written as the content policy
// says. The identifier that the model gave to the call is absent, since no tool is told
// it; and a tool that answers with a text about its failure has not failed.
//
// The result is as safe for concurrent use as tool is. A nil tool stays nil.
func WrapTool(tool Tool, tracer *genaitrace.Tracer) Tool {
	if tool == nil {
		return nil
	}
	return &wrappedTool{tool, tracer}
}

type wrappedTool struct {
	Tool

	tracer *genaitrace.Tracer
}

// typeFunction is the gen_ai.tool.type of what runs in this process.
const typeFunction = "function"

// Call is that of the tool.
func (t *wrappedTool) Call(ctx context.Context, input string) (output string, err error) {
	ctx, call := t.tracer.StartTool(ctx, genaitrace.ToolCall{Name: t.Name(), Type: typeFunction})
	defer call.EndErr(&err)
	call.SetArguments(input)
	output, err = t.Tool.Call(ctx, input)
	if err == nil {
		call.SetResult(output)
	}
	return output, err
}
