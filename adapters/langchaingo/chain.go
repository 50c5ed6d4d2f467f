package genailangchain

import (
	"context"

	"github.com/tmc/langchaingo/callbacks"
	"github.com/tmc/langchaingo/schema"

	"github.com/genaitrace/otelgenai/genaitrace"
)

// A Runnable is a chains.Chain, or the executor of an agent, which is one. O is
// chains.ChainCallOption; the compiler finds it.
type Runnable[O any] interface {
	Call(ctx context.Context, inputs map[string]any, options ...O) (map[string]any, error)
	GetMemory() schema.Memory
	GetInputKeys() []string
	GetOutputKeys() []string
}

// WrapChain records the runs of a chain: a span "invoke_workflow {name}" around all
// that runs inside, with the sum of the tokens of its model calls, and the metric
// gen_ai.invoke_agent.duration. The calls of a wrapped chain or agent inside it count
// there. name is one of few. chains.Call, Run, Predict and Apply
// take the result, and so do chains that hold others. What goes in and comes out is not
// recorded.
//
// Memory is loaded before the chain is called and saved after it, outside the span. A
// callback handler of the chain is called as before. The result is as safe for
// concurrent use as chain is.
func WrapChain[O any](chain Runnable[O], tracer *genaitrace.Tracer, name string) *Chain[O] {
	return &Chain[O]{chain, func(ctx context.Context) (context.Context, genaitrace.AgentRun) {
		return tracer.StartWorkflow(ctx, name)
	}}
}

// WrapAgent is [WrapChain] for the executor of an agent: the span is
// "invoke_agent {agent.Name}". Tools of [WrapTool] and models of [WrapModel] inside it
// are its children and carry its name, and it counts them.
func WrapAgent[O any](executor Runnable[O], tracer *genaitrace.Tracer, agent genaitrace.Agent) *Chain[O] {
	return &Chain[O]{executor, func(ctx context.Context) (context.Context, genaitrace.AgentRun) {
		return tracer.StartAgent(ctx, agent)
	}}
}

// A Chain is a chains.Chain whose runs are recorded.
type Chain[O any] struct {
	Runnable[O]

	start func(context.Context) (context.Context, genaitrace.AgentRun)
}

// Call is that of the chain.
func (c *Chain[O]) Call(ctx context.Context, inputs map[string]any, options ...O) (outputs map[string]any, err error) {
	ctx, run := c.start(ctx)
	defer run.EndErr(&err)
	return c.Runnable.Call(ctx, inputs, options...)
}

// GetCallbackHandler is that of the chain, nil where it has none.
func (c *Chain[O]) GetCallbackHandler() callbacks.Handler {
	if haver, ok := c.Runnable.(callbacks.HandlerHaver); ok {
		return haver.GetCallbackHandler()
	}
	return nil
}
