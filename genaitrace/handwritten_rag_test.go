package genaitrace_test

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// What stands around a model call, each by us and by hand.

// handwrittenRAG are the metrics of this file, each with its sets of attributes.
type handwrittenRAG struct {
	embed, search, tool, other                    metric.Float64Histogram
	inputs                                        metric.Int64Histogram
	calls                                         metric.Int64UpDownCounter
	verdicts, evaluations                         metric.Int64Counter
	embedded, searched, used, created, remembered []metric.RecordOption
	calling, passed, judged                       []metric.AddOption
}

func newHandwrittenRAG(m metric.Meter) handwrittenRAG {
	set := func(attrs ...attribute.KeyValue) metric.MeasurementOption {
		return metric.WithAttributeSet(attribute.NewSet(attrs...))
	}
	operation, provider, model := genaiconv.OperationName, genaiconv.ProviderName, genaiconv.RequestModel
	return handwrittenRAG{
		embed: must(genaiconv.NewClientEmbeddingsDuration(m)), search: must(genaiconv.NewRetrievalDuration(m)),
		tool: must(genaiconv.NewExecuteToolDuration(m)), other: must(genaiconv.NewClientOperationDuration(m)),
		inputs: must(genaiconv.NewClientEmbeddingsOperationInputTokens(m)), calls: must(semconv.NewGenAIActiveCalls(m)),
		verdicts: must(semconv.NewGenAIGuardrailDecisions(m)), evaluations: must(semconv.NewGenAIEvaluations(m)),

		embedded: []metric.RecordOption{set(operation(genaiconv.OperationNameEmbeddings), provider("vllm"), model("bge-m3"),
			genaiconv.ResponseModel("bge-m3"))},
		searched:   []metric.RecordOption{set(operation(genaiconv.OperationNameRetrieval), genaiconv.DataSourceID("handbook"))},
		used:       []metric.RecordOption{set(genaiconv.ToolName("get_weather"), genaiconv.ToolType("function"))},
		created:    []metric.RecordOption{set(operation(genaiconv.OperationNameCreateAgent), provider("openai"), model("gpt-5"))},
		remembered: []metric.RecordOption{set(operation(genaiconv.OperationNameSearchMemory), provider("mem0"))},
		calling:    []metric.AddOption{set(operation(genaiconv.OperationNameEmbeddings), provider("vllm"), model("bge-m3"))},
		passed: []metric.AddOption{set(semconv.GenAIGuardrailOutcome(semconv.GenAIGuardrailOutcomePass),
			semconv.GenAIGuardrailRuleID("injection"))},
		judged: []metric.AddOption{set(genaiconv.EvaluationName("Relevance"), genaiconv.EvaluationScoreLabel("pass"),
			model(benchRequest().Model))},
	}
}

// workSpans starts the spans of this file by hand.
type workSpans struct{ trace.Tracer }

func (s workSpans) start(kind trace.SpanKind, name string, role semconv.GenAISpanRoleAttr, attrs ...attribute.KeyValue) (context.Context, trace.Span) {
	return s.Start(context.Background(), name, trace.WithSpanKind(kind), trace.WithAttributes(append(attrs, semconv.GenAISpanRole(role))...))
}

func (s workSpans) embed() (context.Context, trace.Span) {
	return s.start(trace.SpanKindClient, "embeddings bge-m3", semconv.GenAISpanRoleInference,
		genaiconv.OperationName(genaiconv.OperationNameEmbeddings), genaiconv.ProviderName("vllm"),
		genaiconv.RequestModel("bge-m3"), semconv.GenAIEmbeddingsInputCount(1))
}

func (s workSpans) search() (context.Context, trace.Span) {
	return s.start(trace.SpanKindInternal, "retrieval handbook", semconv.GenAISpanRoleRetrieval,
		genaiconv.OperationName(genaiconv.OperationNameRetrieval), genaiconv.DataSourceID("handbook"),
		semconv.GenAIRetrieverType(semconv.GenAIRetrieverTypeDense), genaiconv.RetrievalTopK(10))
}

func (s workSpans) rerank() (context.Context, trace.Span) {
	return s.start(trace.SpanKindInternal, semconv.SpanRAGRerank, semconv.GenAISpanRoleRerank,
		genaiconv.OperationName("rerank"), genaiconv.RequestModel("bge-reranker"))
}

func (s workSpans) tool() (context.Context, trace.Span) {
	return s.start(trace.SpanKindInternal, "execute_tool get_weather", semconv.GenAISpanRoleTool,
		genaiconv.OperationName(genaiconv.OperationNameExecuteTool), genaiconv.ToolName("get_weather"),
		genaiconv.ToolCallID("call_1"), genaiconv.ToolType("function"))
}

func (s workSpans) create() (context.Context, trace.Span) {
	return s.start(trace.SpanKindClient, "create_agent support", semconv.GenAISpanRoleAgent,
		genaiconv.OperationName(genaiconv.OperationNameCreateAgent), genaiconv.AgentName("support"),
		genaiconv.ProviderName("openai"), genaiconv.RequestModel("gpt-5"))
}

func (s workSpans) memory() (context.Context, trace.Span) {
	return s.start(trace.SpanKindClient, "search_memory", semconv.GenAISpanRoleMemory,
		genaiconv.OperationName(genaiconv.OperationNameSearchMemory), genaiconv.MemoryStoreID("ms_1"), genaiconv.ProviderName("mem0"))
}

func (s workSpans) check() (context.Context, trace.Span) {
	return s.start(trace.SpanKindInternal, semconv.SpanGuardrailCheck, semconv.GenAISpanRoleGuardrail,
		semconv.GenAIGuardrailTarget(semconv.GenAIGuardrailTargetOutput))
}

func (s workSpans) evaluate() (context.Context, trace.Span) {
	return s.start(trace.SpanKindInternal, semconv.SpanEvaluationRun, semconv.GenAISpanRoleEvaluation,
		genaiconv.EvaluationName("Relevance"), genaiconv.RequestModel(benchRequest().Model))
}

// starting starts some of these spans.
func starting(spans ...func(workSpans) (context.Context, trace.Span)) func(trace.Tracer, genaitrace.Request) {
	return func(tracer trace.Tracer, _ genaitrace.Request) {
		for _, start := range spans {
			start(workSpans{tracer})
		}
	}
}

// benchRAG finds the documents for a question: its vector, a search and a new order.
func benchRAG(tr *genaitrace.Tracer, _ genaitrace.Request) {
	ctx := context.Background()
	_, embed := tr.StartCall(ctx, genaitrace.Request{Operation: genaiconv.OperationNameEmbeddings, Provider: "vllm", Model: "bge-m3", Inputs: 1})
	embed.SetUsage(genaitrace.Usage{InputTokens: new(17)})
	embed.SetResponse("", "bge-m3")
	embed.End()
	_, search := tr.StartRetrieval(ctx, genaitrace.RetrievalRequest{DataSource: "handbook", Type: semconv.GenAIRetrieverTypeDense, TopK: 10})
	search.SetHits(8)
	search.End()
	_, rerank := tr.StartRerank(ctx, "bge-reranker")
	rerank.SetHits(4)
	rerank.End()
}

// retrieve is benchRAG by hand.
func (h *handwritten) retrieve(genaitrace.Request) {
	spans, m := workSpans{h.tracer}, &h.rag
	began := time.Now()
	ctx, embed := spans.embed()
	m.calls.Add(ctx, 1, m.calling...)
	embed.SetAttributes(genaiconv.UsageInputTokens(17), genaiconv.ResponseModel("bge-m3"))
	took := time.Since(began)
	embed.End()
	m.embed.Record(ctx, took.Seconds(), m.embedded...)
	m.inputs.Record(ctx, 17, m.embedded...)
	m.calls.Add(ctx, -1, m.calling...)

	began = time.Now()
	ctx, search := spans.search()
	search.SetAttributes(semconv.GenAIRetrieverHitCount(8))
	search.End()
	m.search.Record(ctx, time.Since(began).Seconds(), m.searched...)

	_, rerank := spans.rerank()
	rerank.SetAttributes(semconv.GenAIRetrieverHitCount(4))
	rerank.End()
}

// benchTool is one call of a tool.
func benchTool(tr *genaitrace.Tracer, _ genaitrace.Request) {
	_, tool := tr.StartTool(context.Background(), genaitrace.ToolCall{Name: "get_weather", CallID: "call_1", Type: "function"})
	tool.End()
}

// useTool is benchTool by hand.
func (h *handwritten) useTool(genaitrace.Request) {
	began := time.Now()
	ctx, tool := workSpans{h.tracer}.tool()
	tool.SetAttributes(semconv.GenAIToolStatus(semconv.GenAIToolStatusOK))
	tool.End()
	h.rag.tool.Record(ctx, time.Since(began).Seconds(), h.rag.used...)
}

// benchRemote makes an agent elsewhere, and looks into its memory.
func benchRemote(tr *genaitrace.Tracer, _ genaitrace.Request) {
	ctx := context.Background()
	_, create := tr.StartCreateAgent(ctx, genaitrace.Agent{Name: "support", Remote: true, Request: genaitrace.Request{Provider: "openai", Model: "gpt-5"}})
	create.SetID("asst_1")
	create.End()
	_, memory := tr.StartMemory(ctx, genaitrace.MemoryAccess{
		Operation: genaiconv.OperationNameSearchMemory, StoreID: "ms_1", Remote: true, Provider: "mem0",
	})
	memory.SetRecords(3)
	memory.End()
}

// remote is benchRemote by hand.
func (h *handwritten) remote(genaitrace.Request) {
	spans, m := workSpans{h.tracer}, &h.rag
	began := time.Now()
	ctx, create := spans.create()
	create.SetAttributes(genaiconv.AgentID("asst_1"))
	create.End()
	m.other.Record(ctx, time.Since(began).Seconds(), m.created...)

	began = time.Now()
	ctx, memory := spans.memory()
	memory.SetAttributes(genaiconv.MemoryRecordCount(3))
	memory.End()
	m.other.Record(ctx, time.Since(began).Seconds(), m.remembered...)
}

// benchJudgements are a safety check and an evaluation of one answer.
func benchJudgements(tr *genaitrace.Tracer, req genaitrace.Request) {
	ctx := context.Background()
	_, check := tr.StartGuardrail(ctx, genaitrace.GuardrailCheck{RuleID: "injection", Target: semconv.GenAIGuardrailTargetOutput})
	check.SetVerdict(semconv.GenAIGuardrailOutcomePass, "")
	check.End()
	_, evaluation := tr.StartEvaluation(ctx, genaitrace.EvaluationRequest{Name: "Relevance", Model: req.Model})
	evaluation.SetScore(0.75)
	evaluation.SetLabel("pass")
	evaluation.End()
}

// judge is benchJudgements by hand.
func (h *handwritten) judge(genaitrace.Request) {
	spans, m := workSpans{h.tracer}, &h.rag
	ctx, check := spans.check()
	check.SetAttributes(semconv.GenAIGuardrailOutcome(semconv.GenAIGuardrailOutcomePass), semconv.GenAIGuardrailRuleID("injection"))
	check.End()
	m.verdicts.Add(ctx, 1, m.passed...)

	ctx, evaluation := spans.evaluate()
	evaluation.SetAttributes(genaiconv.EvaluationScoreValue(0.75), genaiconv.EvaluationScoreLabel("pass"))
	evaluation.End()
	m.evaluations.Add(ctx, 1, m.judged...)
}

const benchTasks = 4

// benchGroup are tasks at one time.
func benchGroup(tr *genaitrace.Tracer, _ genaitrace.Request) {
	group := tr.NewGroup(context.Background())
	for range benchTasks {
		group.Go("search.dense", benchTask)
	}
	if err := group.Wait(); err != nil {
		panic(err)
	}
}

func benchTask(context.Context) error { return nil }

// group is benchGroup by hand.
func (h *handwritten) group(req genaitrace.Request) {
	runTasks(h.tracer, func(span trace.Span) { span.End() })
}

func startGroup(tracer trace.Tracer, _ genaitrace.Request) { runTasks(tracer, func(trace.Span) {}) }

// runTasks runs tasks at one time, the first failure of which cancels the others.
func runTasks(tracer trace.Tracer, end func(trace.Span)) {
	ctx, cancel := context.WithCancelCause(context.Background())
	var tasks sync.WaitGroup
	var once sync.Once
	var failure error
	for range benchTasks {
		tasks.Go(func() {
			ctx, span := tracer.Start(ctx, "search.dense")
			defer end(span)
			if err := benchTask(ctx); err != nil {
				once.Do(func() { failure = err })
				cancel(err)
			}
		})
	}
	tasks.Wait()
	cancel(nil)
	if failure != nil {
		panic(failure)
	}
}
