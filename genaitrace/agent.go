package genaitrace

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/internal/bound"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// An Agent holds what is known of an agent when a run of it starts, or when it is
// created. Zero values are unknown and leave no attribute.
type Agent struct {
	// Name is the name of the agent: one of few.
	Name string
	// Description says what it is for, Version which release of it runs.
	Description, Version string
	// ID identifies an agent that a service keeps. It is left out where the run is in
	// this process: an object in memory has no identifier that lasts.
	ID string
	// DataSource identifies what its answers are grounded in.
	DataSource string
	// Remote says that another service runs it: the span is that of a client.
	Remote bool
	// Request holds the model and the settings that all of its model calls share, and
	// of a remote agent the provider, which the conventions require, and the server.
	// Operation, Stream and Arrived are ignored.
	Request Request
}

// clean bounds every string, and leaves what the conventions have for remote agents
// only to those.
func (a *Agent) clean(operation genaiconv.OperationNameAttr) {
	a.Name = bound.String(a.Name, maxName)
	a.Description = bound.String(a.Description, maxName)
	a.Version = bound.String(a.Version, maxName)
	a.ID = bound.String(a.ID, maxName)
	a.DataSource = bound.String(a.DataSource, maxName)
	a.Request.Operation, a.Request.Stream = operation, false
	a.Request.clean()
	a.Request.ReasoningLevel, a.Request.EncodingFormats = "", nil
	if !a.Remote {
		a.ID, a.Version = "", ""
		a.Request.Provider, a.Request.ServerAddress, a.Request.PreviousResponseID = "", "", ""
	}
}

func (a *Agent) appendTo(attrs []attribute.KeyValue) []attribute.KeyValue {
	attrs = append(attrs, genaiconv.OperationName(a.Request.Operation))
	if a.Name != "" {
		attrs = append(attrs, genaiconv.AgentName(a.Name))
	}
	if a.Description != "" {
		attrs = append(attrs, genaiconv.AgentDescription(a.Description))
	}
	if a.ID != "" {
		attrs = append(attrs, genaiconv.AgentID(a.ID))
	}
	if a.Version != "" {
		attrs = append(attrs, genaiconv.AgentVersion(a.Version))
	}
	if a.DataSource != "" {
		attrs = append(attrs, genaiconv.DataSourceID(a.DataSource))
	}
	return a.Request.appendFacts(attrs)
}

var (
	agentOperation    = newOperationKind(string(genaiconv.OperationNameInvokeAgent), semconv.GenAISpanRoleAgent, "")
	workflowOperation = newOperationKind(string(genaiconv.OperationNameInvokeWorkflow), semconv.GenAISpanRoleWorkflow, "")
	createOperation   = newOperationKind(string(genaiconv.OperationNameCreateAgent), semconv.GenAISpanRoleAgent, "")
	planOperation     = newOperationKind(string(genaiconv.OperationNamePlan), semconv.GenAISpanRolePlan, "")
)

// An AgentRun is one run of an agent or a workflow, or the creation of an agent.
type AgentRun struct {
	*Operation

	end *agentEnd
}

// StartAgent starts a run of an agent ("invoke_agent {agent}"; INTERNAL, or CLIENT
// where another service runs it; after 100 distinct agents the span's name is
// "invoke_agent"). Model calls, tools and plans below belong to the run by the context
// that is returned: tools and plans carry its name, and a run in this process counts
// the model calls (embeddings apart) and the tools, those of an agent inside it not,
// since that counts its own. The tokens of its calls add up to ai.tokens.input and
// ai.tokens.output of a run in this process, in the words of the house, so that no
// backend adds them to those of the calls; where a call told none, their sum is unknown
// and absent.
//
// Metrics: gen_ai.invoke_agent.duration, .inference_calls and .tool_calls, or of a
// remote one gen_ai.client.operation.duration.
func (t *Tracer) StartAgent(ctx context.Context, agent Agent) (context.Context, AgentRun) {
	return t.startAgent(ctx, &agentOperation, agentName, agent)
}

// StartWorkflow starts a run of a workflow in this process ("invoke_workflow
// {workflow}", INTERNAL): a fixed course of steps, where an agent chooses its own. It is
// like a run of an agent, with the name in gen_ai.agent.name; what an agent inside it
// does counts there.
//
// Metric: gen_ai.invoke_agent.duration.
func (t *Tracer) StartWorkflow(ctx context.Context, name string) (context.Context, AgentRun) {
	return t.startAgent(ctx, &workflowOperation, workflowName, Agent{Name: name})
}

// StartCreateAgent starts the creation of an agent at a service ("create_agent
// {agent}", CLIENT). [AgentRun.SetID] notes the identifier that the service gave it.
//
// Metric: gen_ai.client.operation.duration.
func (t *Tracer) StartCreateAgent(ctx context.Context, agent Agent) (context.Context, AgentRun) {
	agent.Remote = true
	return t.startAgent(ctx, &createOperation, createName, agent)
}

func (t *Tracer) startAgent(ctx context.Context, kind *operationKind, names nameKind, agent Agent) (context.Context, AgentRun) {
	if t == nil || t.metrics == nil {
		return ctx, AgentRun{}
	}
	agent.clean(genaiconv.OperationNameAttr(kind.name))
	spanKind := trace.SpanKindInternal
	if agent.Remote {
		spanKind = trace.SpanKindClient
	}
	inner := !agent.Remote || isInner(ctx)
	ctx, span, began := t.startSpan(ctx, t.suffixed(names, kind.name, agent.Name), spanKind, agent.appendTo(kind.attributes(ctx, 12)))
	if !span.IsRecording() && !t.metrics.agentEnabled(ctx, agent.Remote) {
		return ctx, AgentRun{}
	}
	operation, end := newWork(t, ctx, span, began, kind, agentEnd{
		name: agent.Name, remote: agent.Remote, request: agent.Request, inner: inner,
	})
	run := AgentRun{operation, end}
	if kind == &createOperation {
		return ctx, run
	}
	return context.WithValue(ctx, agentKey, end), run
}

func (m *metrics) agentEnabled(ctx context.Context, remote bool) bool {
	if remote {
		return m.client.other.Enabled(ctx)
	}
	w := &m.work
	return w.agent.Enabled(ctx) || w.agentInferences.Enabled(ctx) || w.agentTools.Enabled(ctx)
}

// SetID notes the identifier of a remote agent that was not known at the start. An
// empty value is unknown and changes nothing.
func (r AgentRun) SetID(id string) {
	if r.Operation != nil && r.end.remote && id != "" {
		r.note(genaiconv.AgentID(bound.String(id, maxName)))
	}
}

// SetFinish notes why the run's last answer ended, one reason a choice. Reasons that
// are all empty are unknown and change nothing.
func (r AgentRun) SetFinish(reasons ...string) {
	if r.Operation == nil {
		return
	}
	if finish := cleanReasons(nil, reasons); len(finish) > 0 {
		r.note(genaiconv.ResponseFinishReasons(finish...))
	}
}

// SetUsage notes token counts of the run; known fields replace those of earlier calls,
// and the sums of its model calls. It is for a run whose calls are not seen here: under
// gen_ai.usage.* that of a remote agent, under ai.tokens.* another one.
func (r AgentRun) SetUsage(u Usage) {
	if r.Operation == nil {
		return
	}
	sane := true
	r.learn(func() { sane = r.end.usage.merge(u) })
	if !sane {
		r.t.metrics.fault(r.ctx, semconv.GenAIFaultCount, errCount)
	}
}

// StartPlan starts a planning step of an agent ("plan {agent}", INTERNAL). An empty
// name stands for the agent whose run the context belongs to.
func (t *Tracer) StartPlan(ctx context.Context, agent string) (context.Context, *Operation) {
	if t == nil || t.tracer == nil {
		return ctx, nil
	}
	agent = bound.String(agent, maxName)
	if agent == "" {
		agent = agentOf(ctx).agentName()
	}
	attrs := append(planOperation.attributes(ctx, 2), genaiconv.OperationName(genaiconv.OperationNamePlan))
	if agent != "" {
		attrs = append(attrs, genaiconv.AgentName(agent))
	}
	ctx, span, began := t.startSpan(ctx, t.suffixed(planName, planOperation.name, agent), trace.SpanKindInternal, attrs)
	if !span.IsRecording() {
		return ctx, nil
	}
	return ctx, t.newOperation(ctx, span, began, &planOperation)
}
