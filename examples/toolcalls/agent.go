package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/shared"

	"github.com/genaitrace/otelgenai/examples/internal/chatclient"
	"github.com/genaitrace/otelgenai/genaitrace"
)

const agentName = "assistant"

const systemPrompt = "You are a helpful assistant. Use the tools for what you do not know, several at once where they do not need each other. Then answer in a few short sentences."

// An agent asks a model, does what the model asks for, and asks again with the results,
// until the model answers.
type agent struct {
	tracer *genaitrace.Tracer
	model  *chatclient.Client
	name   string // of the model
	tools  map[string]*tool
	offer  []openai.ChatCompletionToolUnionParam

	maxSteps    int           // model calls of a run
	toolTimeout time.Duration // of an attempt
	retryDelay  time.Duration
	out         io.Writer // told of each step
}

func newAgent(tracer *genaitrace.Tracer, model *chatclient.Client, name string, tools []*tool) *agent {
	a := &agent{
		tracer: tracer, model: model, name: name, tools: make(map[string]*tool),
		maxSteps: 8, toolTimeout: 10 * time.Second, retryDelay: 20 * time.Millisecond, out: io.Discard,
	}
	for _, t := range tools {
		a.tools[t.name] = t
		a.offer = append(a.offer, openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
			Name: t.name, Description: openai.String(t.description), Parameters: t.parameters,
		}))
	}
	return a
}

// A stepsError means that the model went on asking for tools.
type stepsError struct{ max int }

func (e *stepsError) Error() string {
	return fmt.Sprintf("the model has not answered after %d steps, the most that -max-steps allows", e.max)
}

// ErrorType is the error.type of the run.
func (*stepsError) ErrorType() string { return "max_steps" }

// run answers a question. Its span is around everything; the tokens of the model calls
// below add up on it.
func (a *agent) run(ctx context.Context, question string) (answer string, err error) {
	ctx, run := a.tracer.StartAgent(ctx, genaitrace.Agent{Name: agentName, Request: genaitrace.Request{Model: a.name}})
	defer run.EndErr(&err)

	messages := []openai.ChatCompletionMessageParamUnion{openai.SystemMessage(systemPrompt), openai.UserMessage(question)}
	for step := 1; step <= a.maxSteps; step++ {
		choice, usage, err := a.ask(ctx, messages)
		if err != nil {
			return "", err
		}
		message := choice.Message
		a.tell(step, message, usage)
		if len(message.ToolCalls) == 0 {
			run.SetFinish(choice.FinishReason)
			return message.Content, nil
		}
		results, err := a.callAll(ctx, message.ToolCalls)
		if err != nil {
			return "", err
		}
		messages = append(messages, message.ToParam())
		for _, r := range results {
			messages = append(messages, openai.ToolMessage(r.text, r.call.ID))
			r.tell(a.out)
		}
		fmt.Fprintln(a.out)
	}
	return "", &stepsError{a.maxSteps}
}

// ask is one step: one streamed call of the model. Its span is made by the transport.
func (a *agent) ask(ctx context.Context, messages []openai.ChatCompletionMessageParamUnion) (openai.ChatCompletionChoice, openai.CompletionUsage, error) {
	answer, err := a.model.Stream(ctx, openai.ChatCompletionNewParams{Messages: messages, Tools: a.offer}, func(string) {})
	if err != nil {
		return openai.ChatCompletionChoice{}, openai.CompletionUsage{}, err
	}
	if len(answer.Choices) == 0 {
		return openai.ChatCompletionChoice{}, openai.CompletionUsage{}, chatclient.ErrNoAnswer
	}
	choice := answer.Choices[0]
	for i := range choice.Message.ToolCalls { // what some servers leave out
		c := &choice.Message.ToolCalls[i]
		c.Type = "function"
		if c.ID == "" {
			c.ID = fmt.Sprintf("call_%d_%d", len(messages), i)
		}
	}
	return choice, answer.Usage, nil
}

// maxParallel is how many tools run at a time.
const maxParallel = 8

// callAll calls the tools side by side, each in a task of a group, so that its spans stay
// below the run. A tool that fails fails nothing else: the model is told. The error is
// that of a run that nobody waits for any more.
func (a *agent) callAll(ctx context.Context, calls []openai.ChatCompletionMessageToolCallUnion) ([]result, error) {
	results := make([]result, len(calls))
	group := a.tracer.NewGroup(ctx)
	group.SetLimit(maxParallel)
	for i, c := range calls {
		task := "tool.unknown" // the name is the model's, and only a known one is a name of a span
		if a.tools[c.Function.Name] != nil {
			task = "tool." + c.Function.Name
		}
		group.Go(task, func(ctx context.Context) error {
			results[i] = a.call(ctx, c)
			return ctx.Err()
		})
	}
	return results, group.Wait()
}

// A result is what came of a call.
type result struct {
	call     openai.ChatCompletionMessageToolCallUnion
	text     string // for the model
	attempts []error
}

// call checks a call, and makes it; what failed for a while it makes once more.
func (a *agent) call(ctx context.Context, c openai.ChatCompletionMessageToolCallUnion) result {
	r := result{call: c}
	t := a.tools[c.Function.Name]
	denied := a.check(ctx, t, c)
	for attempt := 1; attempt <= 2; attempt++ {
		text, err := a.attempt(ctx, t, c, attempt, denied)
		r.attempts = append(r.attempts, err)
		if r.text = text; err != nil {
			r.text = "error: " + err.Error()
		}
		if !temporary(err) || !pause(ctx, a.retryDelay) {
			break
		}
	}
	return r
}

// attempt makes a call once, with a span of its own. A tool that panics has failed.
func (a *agent) attempt(ctx context.Context, t *tool, c openai.ChatCompletionMessageToolCallUnion, attempt int, denied error) (text string, err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("the tool crashed")
		}
	}()
	call := genaitrace.ToolCall{CallID: c.ID, Attempt: attempt}
	if t != nil {
		call.Name, call.Type = t.name, t.kind
	}
	ctx, span := a.tracer.StartTool(ctx, call)
	defer span.EndErr(&err) // sees the panic first
	span.SetArguments(c.Function.Arguments)
	switch {
	case t == nil:
		return "", &unknownToolError{c.Function.Name}
	case denied != nil:
		span.SetStatus(deniedStatus)
		span.End()
		return "", denied
	}
	ctx, cancel := context.WithTimeout(ctx, a.toolTimeout)
	defer cancel()
	text, err = t.run(ctx, json.RawMessage(c.Function.Arguments))
	text = short(text)
	span.SetResult(text)
	return text, err
}

// pause waits before the next attempt; false where nobody waits for it any more.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
