package genaitrace

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/genaitrace/content"
	"github.com/genaitrace/otelgenai/internal/bound"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// A ToolCall holds what is known of a call of a tool when it starts. Its arguments, its
// result and what the model is told of it are content and have no place here; see
// [Tool.SetArguments] and [Tool.SetDescription].
type ToolCall struct {
	// Name is the name of the tool as the model knows it: a constant of the program,
	// never what a model made up. The conventions require it; empty is _OTHER.
	Name string
	// CallID is the identifier that the model gave to the call; empty is unknown.
	CallID string
	// Type says where the tool runs: function (here), extension (at the provider) or
	// datastore; empty is unknown.
	Type string
	// Attempt is the number of this attempt at the call, from 1, where a call that
	// fails is tried again: each attempt is a span of its own, and counts as a call of
	// the run. 0 is unknown.
	Attempt int
}

// errTypeTool is the error.type of a tool that answered with an error: the word of the
// conventions for MCP.
const errTypeTool = "tool_error"

var toolOperation = newOperationKind(string(genaiconv.OperationNameExecuteTool), semconv.GenAISpanRoleTool, "")

// A Tool is one call of a tool.
type Tool struct {
	*Operation

	end *toolEnd
}

// StartTool starts a call of a tool ("execute_tool {tool}", INTERNAL; after 100
// distinct tools the span's name is "execute_tool"). gen_ai.agent.name is that of the
// run that the context belongs to, see [Tracer.StartAgent], which also counts the
// call.
//
// How it ends is genai.tool.status: ok, or what [Operation.Fail] makes of its error
// (error, timeout, cancelled), or what [Tool.SetStatus] says. Metric:
// gen_ai.execute_tool.duration.
func (t *Tracer) StartTool(ctx context.Context, call ToolCall) (context.Context, Tool) {
	if t == nil || t.metrics == nil {
		return ctx, Tool{}
	}
	call.Name = bound.String(call.Name, maxName)
	call.Type = bound.String(call.Type, maxReason)
	run := agentOf(ctx)
	run.countTool()

	attrs := append(toolOperation.attributes(ctx, 7), genaiconv.OperationName(genaiconv.OperationNameExecuteTool))
	name := t.suffixed(toolName, toolOperation.name, call.Name)
	if call.Name == "" {
		call.Name = bound.Other
	}
	attrs = append(attrs, genaiconv.ToolName(call.Name))
	if call.CallID != "" {
		attrs = append(attrs, genaiconv.ToolCallID(bound.String(call.CallID, maxName)))
	}
	if call.Type != "" {
		attrs = append(attrs, genaiconv.ToolType(call.Type))
	}
	if call.Attempt > 0 {
		attrs = append(attrs, semconv.GenAIAttempt(call.Attempt))
	}
	if agent := run.agentName(); agent != "" {
		attrs = append(attrs, genaiconv.AgentName(agent))
	}
	ctx, span, began := t.startSpan(ctx, name, trace.SpanKindInternal, attrs)
	if !span.IsRecording() && !t.metrics.work.tool.Enabled(ctx) && !t.logs.enabled(ctx, toolCallEvent) {
		return ctx, Tool{}
	}
	operation, end := newWork(t, ctx, span, began, &toolOperation, toolEnd{
		callID: boundCopy(call.CallID, maxName),
		series: workSeries{toolWork, [maxWorkKeys]string{call.Name, call.Type, run.agentName()}},
	})
	return ctx, Tool{operation, end}
}

// SetStatus says how the call ended where its error does not: error where the tool
// answered with one (the span fails with error.type tool_error), denied where a rule or
// a person did not allow it (no failure, unless [Operation.Fail] makes it one), timeout,
// cancelled. The last value counts; ok does not win over an error.
func (t Tool) SetStatus(status semconv.GenAIToolStatusAttr) {
	if t.Operation == nil {
		return
	}
	status = semconv.GenAIToolStatusAttr(bound.String(string(status), maxReason))
	t.learn(func() { t.end.status = status })
}

// toolEnd is what a call of a tool adds to its end.
type toolEnd struct {
	series  workSeries
	callID  string
	status  semconv.GenAIToolStatusAttr
	content *toolContent // nil where nothing may be written
}

func (e *toolEnd) settle(end operationEnd, attrs []attribute.KeyValue) (operationEnd, []attribute.KeyValue) {
	if end.how == succeeded {
		switch e.status {
		case semconv.GenAIToolStatusError:
			end.how, end.errType = failed, errTypeTool
		case semconv.GenAIToolStatusTimeout:
			end.how, end.errType = timedOut, errTypeTimeout
		case semconv.GenAIToolStatusOK, semconv.GenAIToolStatusCancelled, semconv.GenAIToolStatusDenied:
		}
	}
	status := e.status
	if status == "" || status == semconv.GenAIToolStatusOK {
		status = toolStatus(end.how)
	}
	e.status = status
	attrs = e.content.appendTo(attrs, content.OnSpans)
	return end, append(attrs, semconv.GenAIToolStatus(status))
}

func toolStatus(how outcome) semconv.GenAIToolStatusAttr {
	switch how {
	case cancelled:
		return semconv.GenAIToolStatusCancelled
	case timedOut:
		return semconv.GenAIToolStatusTimeout
	case failed:
		return semconv.GenAIToolStatusError
	case succeeded:
	}
	return semconv.GenAIToolStatusOK
}

func (e *toolEnd) record(o *Operation, end operationEnd) {
	e.log(o, end)
	m := &o.t.metrics.work
	if !m.tool.Enabled(o.ctx) {
		return
	}
	e.series.values[3] = end.errType
	m.tool.Record(o.ctx, seconds(end.took), m.sets.of(e.series).record...)
}
