package genaitrace_test

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// benchAgent is one turn of an agent without its model calls: a plan, a search, a check
// and two tools.
func benchAgent(tr *genaitrace.Tracer, _ genaitrace.Request) {
	ctx, run := tr.StartAgent(context.Background(), genaitrace.Agent{Name: "support"})
	_, plan := tr.StartPlan(ctx, "")
	plan.End()
	_, search := tr.StartRetrieval(ctx, genaitrace.RetrievalRequest{
		DataSource: "handbook", Type: semconv.GenAIRetrieverTypeDense, TopK: 10, EmbeddingModel: "bge-m3",
	})
	search.SetHits(8)
	search.End()
	_, check := tr.StartGuardrail(ctx, genaitrace.GuardrailCheck{RuleID: "injection", Target: semconv.GenAIGuardrailTargetRetrieval})
	check.SetVerdict(semconv.GenAIGuardrailOutcomePass, "")
	check.End()
	for range 2 {
		_, tool := tr.StartTool(ctx, genaitrace.ToolCall{Name: "get_weather", CallID: "call_1", Type: "function"})
		tool.End()
	}
	run.End()
}

func startAgent(tracer trace.Tracer, _ genaitrace.Request) {
	s := agentSpans{tracer}
	ctx, _ := s.run()
	s.plan(ctx)
	s.search(ctx)
	s.check(ctx)
	s.tool(ctx)
	s.tool(ctx)
}

// agentSpans starts the spans of benchAgent by hand.
type agentSpans struct{ trace.Tracer }

func (s agentSpans) start(ctx context.Context, name string, attrs ...attribute.KeyValue) (context.Context, trace.Span) {
	return s.Start(ctx, name, trace.WithSpanKind(trace.SpanKindInternal), trace.WithAttributes(attrs...))
}

func (s agentSpans) run() (context.Context, trace.Span) {
	return s.start(context.Background(), "invoke_agent support", semconv.GenAISpanRole(semconv.GenAISpanRoleAgent),
		genaiconv.OperationName(genaiconv.OperationNameInvokeAgent), genaiconv.AgentName("support"))
}

func (s agentSpans) plan(ctx context.Context) trace.Span {
	_, span := s.start(ctx, "plan support", semconv.GenAISpanRole(semconv.GenAISpanRolePlan),
		genaiconv.OperationName(genaiconv.OperationNamePlan), genaiconv.AgentName("support"))
	return span
}

func (s agentSpans) search(ctx context.Context) trace.Span {
	_, span := s.start(ctx, "retrieval handbook", semconv.GenAISpanRole(semconv.GenAISpanRoleRetrieval),
		genaiconv.OperationName(genaiconv.OperationNameRetrieval), genaiconv.DataSourceID("handbook"),
		semconv.GenAIRetrieverType(semconv.GenAIRetrieverTypeDense), genaiconv.RetrievalTopK(10), genaiconv.RequestModel("bge-m3"))
	return span
}

func (s agentSpans) check(ctx context.Context) trace.Span {
	_, span := s.start(ctx, semconv.SpanGuardrailCheck, semconv.GenAISpanRole(semconv.GenAISpanRoleGuardrail),
		semconv.GenAIGuardrailTarget(semconv.GenAIGuardrailTargetRetrieval))
	return span
}

func (s agentSpans) tool(ctx context.Context) trace.Span {
	_, span := s.start(ctx, "execute_tool get_weather", semconv.GenAISpanRole(semconv.GenAISpanRoleTool),
		genaiconv.OperationName(genaiconv.OperationNameExecuteTool), genaiconv.ToolName("get_weather"),
		genaiconv.ToolCallID("call_1"), genaiconv.ToolType("function"), genaiconv.AgentName("support"))
	return span
}

// handwrittenWork are the metrics of benchAgent, each with its one set of attributes.
type handwrittenWork struct {
	agent, search, tool              metric.Float64Histogram
	inferences, tools                metric.Int64Histogram
	verdicts                         metric.Int64Counter
	ofAgent, ofCalls, ofSearch, used []metric.RecordOption
	passed                           []metric.AddOption
}

func newHandwrittenWork(m metric.Meter) handwrittenWork {
	set := func(attrs ...attribute.KeyValue) metric.MeasurementOption {
		return metric.WithAttributeSet(attribute.NewSet(attrs...))
	}
	agent := genaiconv.AgentName("support")
	return handwrittenWork{
		agent: must(genaiconv.NewInvokeAgentDuration(m)), search: must(genaiconv.NewRetrievalDuration(m)),
		tool: must(genaiconv.NewExecuteToolDuration(m)), inferences: must(genaiconv.NewInvokeAgentInferenceCalls(m)),
		tools: must(genaiconv.NewInvokeAgentToolCalls(m)), verdicts: must(semconv.NewGenAIGuardrailDecisions(m)),

		ofAgent: []metric.RecordOption{set(genaiconv.OperationName(genaiconv.OperationNameInvokeAgent), agent)},
		ofCalls: []metric.RecordOption{set(agent)},
		ofSearch: []metric.RecordOption{set(genaiconv.OperationName(genaiconv.OperationNameRetrieval),
			genaiconv.RequestModel("bge-m3"), genaiconv.DataSourceID("handbook"))},
		used: []metric.RecordOption{set(genaiconv.ToolName("get_weather"), genaiconv.ToolType("function"), agent)},
		passed: []metric.AddOption{set(semconv.GenAIGuardrailOutcome(semconv.GenAIGuardrailOutcomePass),
			semconv.GenAIGuardrailRuleID("injection"))},
	}
}

// agentTurn is benchAgent by hand.
func (h *handwritten) agentTurn(genaitrace.Request) {
	spans, m := agentSpans{h.tracer}, &h.work
	began := time.Now()
	ctx, run := spans.run()
	spans.plan(ctx).End()

	from := time.Now()
	search := spans.search(ctx)
	search.SetAttributes(semconv.GenAIRetrieverHitCount(8))
	search.End()
	m.search.Record(ctx, time.Since(from).Seconds(), m.ofSearch...)

	check := spans.check(ctx)
	check.SetAttributes(semconv.GenAIGuardrailOutcome(semconv.GenAIGuardrailOutcomePass), semconv.GenAIGuardrailRuleID("injection"))
	check.End()
	m.verdicts.Add(ctx, 1, m.passed...)

	for range 2 {
		from = time.Now()
		tool := spans.tool(ctx)
		tool.SetAttributes(semconv.GenAIToolStatus(semconv.GenAIToolStatusOK))
		tool.End()
		m.tool.Record(ctx, time.Since(from).Seconds(), m.used...)
	}
	run.End()
	m.agent.Record(ctx, time.Since(began).Seconds(), m.ofAgent...)
	m.inferences.Record(ctx, 0, m.ofCalls...)
	m.tools.Record(ctx, 2, m.ofCalls...)
}
