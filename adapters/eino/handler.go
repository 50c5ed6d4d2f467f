package genaieino

import (
	"context"
	"errors"

	"github.com/cloudwego/eino/callbacks"
	"github.com/cloudwego/eino/components"
	"github.com/cloudwego/eino/components/model"
	"github.com/cloudwego/eino/flow/agent/react"
	"github.com/cloudwego/eino/schema"

	"github.com/genaitrace/otelgenai/genaitrace"
)

// NewHandler makes a handler that records every component that it hears of. Register it
// once for the process, [callbacks.AppendGlobalHandlers], or give it to single runs,
// [compose.WithCallbacks]; where it comes both ways a component is recorded once. It is
// safe for concurrent use. With a nil Tracer it records nothing.
//
// [compose.WithCallbacks]: https://pkg.go.dev/github.com/cloudwego/eino/compose#WithCallbacks
func NewHandler(tr *genaitrace.Tracer, opts ...Option) callbacks.Handler {
	c := config{agents: map[string]bool{react.GraphName: true}}
	for _, o := range opts {
		if o != nil {
			o.apply(&c)
		}
	}
	return &handler{tr: tr, config: c}
}

type config struct {
	agents map[string]bool
}

// An Option configures [NewHandler].
type Option interface{ apply(*config) }

type optionFunc func(*config)

func (f optionFunc) apply(c *config) { f(c) }

// WithAgents names the graphs and chains that are agents: they are recorded as
// "invoke_agent {name}". The name is that of compose.WithGraphName or
// compose.WithNodeName; an agent of package adk gives its own to its chain. Default: the
// name that the ReAct agent has by default.
func WithAgents(names ...string) Option {
	return optionFunc(func(c *config) {
		for _, name := range names {
			c.agents[name] = true
		}
	})
}

// A handler hears of the start and the end of components. What it has started is in the
// context that OnStart returns.
type handler struct {
	config

	tr *genaitrace.Tracer
}

var _ callbacks.TimingChecker = (*handler)(nil)

// Needed keeps a stream from being copied where nothing would be read from the copy.
func (h *handler) Needed(ctx context.Context, info *callbacks.RunInfo, timing callbacks.CallbackTiming) bool {
	if h.tr == nil || info == nil { // it did not say what it is
		return false
	}
	if timing == callbacks.TimingOnEndWithStreamOutput {
		r := runOf(ctx, info)
		return r != nil && !r.isTaken()
	}
	return true
}

// OnStart starts the span of a component.
func (h *handler) OnStart(ctx context.Context, info *callbacks.RunInfo, input callbacks.CallbackInput) (out context.Context) {
	if info == nil {
		return ctx
	}
	defer func() {
		if out == nil { // what follows panicked
			out = ctx
		}
	}()
	defer report()
	around := runFrom(ctx)
	switch {
	case around == nil:
	case around.info == info:
		return ctx // heard already: the handler is registered twice
	case around.stoodInFor(info):
		around.model.ask(model.ConvCallbackInput(input))
		return ctx
	}
	return h.start(ctx, info, input)
}

// OnStartWithStreamInput starts the span of a component whose input comes as a stream,
// of which nothing is read.
func (h *handler) OnStartWithStreamInput(ctx context.Context, info *callbacks.RunInfo, input *schema.StreamReader[callbacks.CallbackInput]) context.Context {
	input.Close()
	return h.OnStart(ctx, info, nil)
}

// OnEnd ends the span of a component.
func (h *handler) OnEnd(ctx context.Context, info *callbacks.RunInfo, output callbacks.CallbackOutput) context.Context {
	defer report()
	if r := runOf(ctx, info); r != nil {
		defer r.giveBack(nil, false)
		if r.learn != nil {
			r.learn(output)
		}
	} else if around := runFrom(ctx); around.stoodInFor(info) {
		if out := model.ConvCallbackOutput(output); out != nil { // the wrapper sees the message itself
			around.model.note(&model.CallbackOutput{Config: out.Config, TokenUsage: out.TokenUsage})
		}
	}
	return ctx
}

// OnEndWithStreamOutput hears that a component gave back a stream. That of a model or a
// tool is read to its end; all others end with what runs below them.
func (h *handler) OnEndWithStreamOutput(ctx context.Context, info *callbacks.RunInfo, output *schema.StreamReader[callbacks.CallbackOutput]) context.Context {
	r := runOf(ctx, info)
	if r == nil || r.read == nil || !r.hold() {
		output.Close()
	} else {
		go r.drain(output)
	}
	if r != nil {
		r.giveBack(nil, true)
	}
	return ctx
}

// OnError ends the span of a component that failed or was interrupted.
func (h *handler) OnError(ctx context.Context, info *callbacks.RunInfo, err error) context.Context {
	if info == nil {
		return ctx
	}
	defer report()
	r := runOf(ctx, info)
	if r == nil && info.Component == components.ComponentOfChatModel && !runFrom(ctx).stoodInFor(info) {
		// Models that cannot build their request fail before they start.
		r = runFrom(h.start(ctx, info, nil))
		if r != nil && r.info != info {
			return ctx // nothing records
		}
	}
	if r != nil {
		r.giveBack(err, false)
	}
	return ctx
}

// report is for defer: what goes wrong here must not reach the component.
func report() {
	if v := recover(); v != nil {
		handle(errors.New("genaieino: a callback panicked: the component is not recorded, or not all of it"))
	}
}
