package genaitrace_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/propagation"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// workMetrics are the metrics of what stands in this file.
var workMetrics = []string{
	genaiconv.RetrievalDurationName, genaiconv.ExecuteToolDurationName, genaiconv.InvokeAgentDurationName,
	genaiconv.InvokeAgentInferenceCallsName, genaiconv.InvokeAgentToolCallsName, genaiconv.ClientOperationDurationName,
	semconv.GenAIEvaluationsName, semconv.GenAIGuardrailDecisionsName,
}

// runRAG is a question that is answered from what two indexes have: each step takes
// 10 ms, and each gets the context of the workflow.
func runRAG(t *testing.T, r *recording) {
	t.Helper()
	const step = 10 * time.Millisecond
	ctx, flow := r.StartWorkflow(t.Context(), "answer")
	defer flow.End()

	_, embed := r.StartCall(ctx, genaitrace.Request{Operation: genaiconv.OperationNameEmbeddings, Provider: "vllm", Model: "bge-m3", Inputs: 1})
	time.Sleep(step)
	embed.SetUsage(genaitrace.Usage{InputTokens: new(17)})
	embed.SetResponse("", "bge-m3")
	embed.End()

	searchCtx, search := r.StartRetrieval(ctx, fullRetrieval())
	group := r.NewGroup(searchCtx)
	for _, name := range []string{"search.dense", "search.sparse"} {
		group.Go(name, func(context.Context) error {
			time.Sleep(step)
			return nil
		})
		synctest.Wait() // a fixed order
	}
	assert.NoError(t, group.Wait())
	search.SetDocuments(genaitrace.Document{ID: "cost.md#3", Score: new(0.75)}, genaitrace.Document{ID: "cost.md#4", Score: new(0.5)})
	search.End()

	_, rerank := r.StartRerank(ctx, "bge-reranker")
	time.Sleep(step)
	rerank.SetHits(1)
	rerank.End()

	_, check := r.StartGuardrail(ctx, genaitrace.GuardrailCheck{RuleID: "injection", Target: semconv.GenAIGuardrailTargetRetrieval})
	check.SetVerdict(semconv.GenAIGuardrailOutcomeFlag, "prompt-injection")
	check.End()

	_, call := r.StartCall(ctx, genaitrace.Request{Provider: "vllm", Model: "qwen2.5-7b-instruct"})
	time.Sleep(step)
	call.SetUsage(genaitrace.Usage{InputTokens: new(2456), OutputTokens: new(512)})
	call.End()

	_, evaluation := r.StartEvaluation(ctx, genaitrace.EvaluationRequest{Name: "Relevance", Model: "qwen2.5-7b-instruct"})
	evaluation.SetScore(4)
	evaluation.SetLabel("relevant")
	evaluation.End()
}

// runAgent is an agent that remembers, plans, asks, calls a tool and hands something to
// a remote agent.
func runAgent(t *testing.T, r *recording) {
	t.Helper()
	agent := remoteAgent()
	agent.Remote = false
	ctx, run := r.StartAgent(genaitrace.ContextWith(t.Context(), genaitrace.ConversationID("c-1")), agent)
	defer run.Fail(typedError("no_answer"))

	_, memory := r.StartMemory(ctx, genaitrace.MemoryAccess{StoreID: "ms_1"})
	memory.SetRecords(0)
	memory.End()
	_, plan := r.StartPlan(ctx, "")
	plan.End()
	for i := range 2 {
		_, call := r.StartCall(ctx, genaitrace.Request{Provider: "vllm", Model: "qwen2.5-7b-instruct"})
		time.Sleep(10 * time.Millisecond)
		call.SetUsage(genaitrace.Usage{InputTokens: new(100), OutputTokens: new(20)})
		call.End()
		_, tool := r.StartTool(ctx, genaitrace.ToolCall{Name: "get_weather", CallID: "call_1", Type: "function", Attempt: i + 1})
		time.Sleep(10 * time.Millisecond)
		tool.Fail(typedError("station_down"))
	}
	_, other := r.StartAgent(ctx, remoteAgent())
	other.SetUsage(genaitrace.Usage{InputTokens: new(7), OutputTokens: new(3)})
	other.End()
	_, remote := r.StartMemory(ctx, genaitrace.MemoryAccess{
		Operation: genaiconv.OperationNameCreateMemory, Provider: "mem0", Remote: true, ServerAddress: "memory.internal", ServerPort: 8080,
	})
	remote.SetRecordID("mem_1")
	remote.SetStoreID("ms_1")
	remote.End()
}

func TestTheMetricsOfWorkAreExact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record(t)
		runRAG(t, r)
		assert.InDelta(t, 0.01, r.once(genaiconv.RetrievalDurationName), 1e-12)
		assert.Equal(t, map[string]any{
			"gen_ai.operation.name": "retrieval", "gen_ai.provider.name": "qdrant", "gen_ai.request.model": "bge-m3",
			"gen_ai.data_source.id": "handbook",
		}, dims(r.point(genaiconv.RetrievalDurationName).Attributes))
		assert.InDelta(t, 0.04, r.once(genaiconv.InvokeAgentDurationName), 1e-12)
		assert.Equal(t, map[string]any{"gen_ai.operation.name": "invoke_workflow", "gen_ai.agent.name": "answer"},
			dims(r.point(genaiconv.InvokeAgentDurationName).Attributes))
		assert.NotContains(t, r.allMetrics(), genaiconv.InvokeAgentInferenceCallsName, "a workflow is no agent")
		assert.Equal(t, map[string]int64{"flag": 1}, r.sumBy(semconv.GenAIGuardrailDecisionsName, semconv.GenAIGuardrailOutcomeKey))
		assert.Equal(t, map[string]int64{"relevant": 1}, r.sumBy(semconv.GenAIEvaluationsName, genaiconv.EvaluationScoreLabelKey))
	})
	synctest.Test(t, func(t *testing.T) {
		r := record(t)
		runAgent(t, r)
		p := r.point(genaiconv.ExecuteToolDurationName)
		assert.Equal(t, uint64(2), p.Count)
		assert.InDelta(t, 0.02, p.Sum, 1e-12)
		assert.Equal(t, map[string]any{
			"gen_ai.tool.name": "get_weather", "gen_ai.tool.type": "function", "gen_ai.agent.name": "weather", "error.type": "station_down",
		}, dims(p.Attributes))
		assert.InDelta(t, 0.04, r.once(genaiconv.InvokeAgentDurationName), 1e-12)
		assert.Equal(t, map[string]any{
			"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "weather", "gen_ai.request.model": "gpt-5", "error.type": "no_answer",
		}, dims(r.point(genaiconv.InvokeAgentDurationName).Attributes))
		assert.Equal(t, 2, r.total(genaiconv.ClientOperationDurationName), "the remote agent and the remote memory")
		var run seen
		for _, s := range r.spans("invoke_agent weather") {
			if s.SpanKind() == trace.SpanKindInternal {
				run = s
			}
		}
		assert.Equal(t, int64(200), run.int(semconv.AITokensInputKey), "the sum of its calls")
		assert.Equal(t, int64(40), run.int(semconv.AITokensOutputKey))
		assert.False(t, run.has(genaiconv.UsageInputTokensKey), "backends would add it to that of the calls")
	})
}

// calls are the values of a histogram of calls, by agent.
func (r *recording) calls(name string) map[string]int64 {
	r.t.Helper()
	m, ok := r.metric(name)
	if !ok {
		return nil
	}
	h, ok := m.Data.(metricdata.Histogram[int64])
	require.True(r.t, ok, "%s is a %T", name, m.Data)
	by := map[string]int64{}
	for _, p := range h.DataPoints {
		agent, _ := p.Attributes.Value(genaiconv.AgentNameKey)
		by[agent.AsString()] += p.Sum
	}
	return by
}

func TestARunCountsItsOwnCallsAndTools(t *testing.T) {
	r := record(t)
	call := func(ctx context.Context, operation genaiconv.OperationNameAttr) (context.Context, *genaitrace.Call) {
		return r.StartCall(ctx, genaitrace.Request{Operation: operation})
	}
	tool := func(ctx context.Context) {
		_, tool := r.StartTool(ctx, genaitrace.ToolCall{Name: "clock"})
		tool.End()
	}
	ctx, outer := r.StartAgent(t.Context(), genaitrace.Agent{Name: "outer"})
	first, a := call(ctx, "")
	_, within := call(first, "") // what a client makes of a framework's call
	within.End()
	a.End()
	_, embed := call(ctx, genaiconv.OperationNameEmbeddings)
	embed.End()
	tool(ctx)
	toolCtx, handoff := r.StartTool(ctx, genaitrace.ToolCall{Name: "handoff"})
	below, inner := r.StartAgent(toolCtx, genaitrace.Agent{Name: "inner"})
	for range 3 {
		_, c := call(below, genaiconv.OperationNameChat)
		c.End()
	}
	tool(below)
	inner.End()
	handoff.End()
	flowCtx, flow := r.StartWorkflow(below, "flow") // counts for nobody
	_, c := call(flowCtx, "")
	c.End()
	flow.End()
	outer.End()
	_, idle := r.StartAgent(t.Context(), genaitrace.Agent{Name: "idle"})
	idle.End()

	assert.Equal(t, map[string]int64{"outer": 1, "inner": 3, "idle": 0}, r.calls(genaiconv.InvokeAgentInferenceCallsName))
	assert.Equal(t, map[string]int64{"outer": 2, "inner": 1, "idle": 0}, r.calls(genaiconv.InvokeAgentToolCallsName))
	for _, s := range r.spans("execute_tool clock") {
		assert.Contains(t, []string{"outer", "inner"}, s.text(genaiconv.AgentNameKey))
	}
}

// The calls of a service whose caller tells the usage are still its calls.
func TestARunCountsCallsUnderAMarkedCaller(t *testing.T) {
	r := record(t)
	marked := propagation.ContextWithCallerMark(trace.ContextWithRemoteSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled, Remote: true,
	})))
	ctx, run := r.StartAgent(marked, genaitrace.Agent{Name: "a"})
	_, call := r.StartCall(ctx, genaitrace.Request{})
	call.SetUsage(genaitrace.Usage{InputTokens: new(5)})
	call.End()
	run.End()
	assert.Equal(t, map[string]int64{"a": 1}, r.calls(genaiconv.InvokeAgentInferenceCallsName))
	assert.Equal(t, int64(5), r.span("invoke_agent a").int(semconv.AITokensInputKey))
}

func TestTheTokensOfARunAreKnownOnlyWhereThoseOfAllCallsAre(t *testing.T) {
	type usages []genaitrace.Usage
	in, both := genaitrace.Usage{InputTokens: new(5)}, genaitrace.Usage{InputTokens: new(7), OutputTokens: new(0)}
	for name, tt := range map[string]struct {
		calls  usages
		open   bool // the last call has not ended
		set    genaitrace.Usage
		want   map[attribute.Key]int64
		faults int
	}{
		"no call":                 {},
		"each told both":          {calls: usages{both, both}, want: map[attribute.Key]int64{semconv.AITokensInputKey: 14, semconv.AITokensOutputKey: 0}},
		"one told half":           {calls: usages{both, in}, want: map[attribute.Key]int64{semconv.AITokensInputKey: 12}},
		"one told nothing":        {calls: usages{both, {}}},
		"one goes on":             {calls: usages{both, both}, open: true},
		"too many to add":         {calls: usages{{InputTokens: new(math.MaxInt)}, in}},
		"the run says for itself": {calls: usages{both}, set: in, want: map[attribute.Key]int64{semconv.AITokensInputKey: 5, semconv.AITokensOutputKey: 0}},
		"it says nonsense":        {set: genaitrace.Usage{InputTokens: new(-1)}, faults: 1},
	} {
		t.Run(name, func(t *testing.T) {
			handled(t)
			r := record(t)
			ctx, run := r.StartAgent(t.Context(), genaitrace.Agent{})
			var calls []*genaitrace.Call
			for _, u := range tt.calls {
				_, call := r.StartCall(ctx, genaitrace.Request{})
				call.SetUsage(u)
				calls = append(calls, call)
			}
			run.SetUsage(tt.set)
			for i, call := range calls {
				if !tt.open || i < len(calls)-1 {
					call.End()
				}
			}
			run.End()
			for _, call := range calls {
				call.End()
			}
			s := r.span("invoke_agent")
			got := map[attribute.Key]int64{}
			for _, kv := range s.Attributes() {
				if strings.HasPrefix(string(kv.Key), "ai.tokens.") || strings.HasPrefix(string(kv.Key), "gen_ai.usage.") {
					got[kv.Key] = kv.Value.AsInt64()
				}
			}
			if tt.want == nil {
				tt.want = map[attribute.Key]int64{}
			}
			assert.Equal(t, tt.want, got)
			assert.Equal(t, tt.faults, r.faults()[semconv.GenAIFaultCount])
		})
	}
}

func TestHowAToolEndsIsItsStatus(t *testing.T) {
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	set := genaitrace.Tool.SetStatus
	for name, tt := range map[string]struct {
		ctx     context.Context
		end     func(genaitrace.Tool)
		status  semconv.GenAIToolStatusAttr
		errType string
	}{
		"well":                    {nil, func(tool genaitrace.Tool) { tool.End() }, "ok", ""},
		"an error":                {nil, func(tool genaitrace.Tool) { tool.Fail(typedError("boom")) }, "error", "boom"},
		"a deadline":              {nil, func(tool genaitrace.Tool) { tool.Fail(context.DeadlineExceeded) }, "timeout", "timeout"},
		"cancelled":               {cancelled, func(tool genaitrace.Tool) { tool.Fail(errors.New("x")) }, "cancelled", ""},
		"it answered an error":    {nil, func(tool genaitrace.Tool) { set(tool, "error"); tool.End() }, "error", "tool_error"},
		"it said time is up":      {nil, func(tool genaitrace.Tool) { set(tool, "timeout"); tool.End() }, "timeout", "timeout"},
		"denied":                  {nil, func(tool genaitrace.Tool) { set(tool, "denied"); tool.End() }, "denied", ""},
		"denied with an error":    {nil, func(tool genaitrace.Tool) { set(tool, "denied"); tool.Fail(typedError("policy")) }, "denied", "policy"},
		"ok, and then an error":   {nil, func(tool genaitrace.Tool) { set(tool, "ok"); tool.Fail(typedError("boom")) }, "error", "boom"},
		"denied, and then ok":     {nil, func(tool genaitrace.Tool) { set(tool, "denied"); set(tool, "ok"); tool.End() }, "ok", ""},
		"denied after it ended":   {nil, func(tool genaitrace.Tool) { tool.End(); set(tool, "denied") }, "ok", ""},
		"a panic":                 {nil, func(tool genaitrace.Tool) { defer func() { _ = recover() }(); defer tool.EndErr(nil); panic("x") }, "error", "panic"},
		"a status of one's own":   {nil, func(tool genaitrace.Tool) { set(tool, "queued"); tool.End() }, "queued", ""},
		"an answer with an error": {nil, func(tool genaitrace.Tool) { set(tool, "error"); tool.Fail(typedError("boom")) }, "error", "boom"},
	} {
		t.Run(name, func(t *testing.T) {
			r := record(t)
			ctx := tt.ctx
			if ctx == nil {
				ctx = t.Context()
			}
			_, tool := r.StartTool(ctx, genaitrace.ToolCall{Name: "clock"})
			tt.end(tool)
			s := r.span("execute_tool clock")
			assert.Equal(t, string(tt.status), s.text(semconv.GenAIToolStatusKey))
			s.assertStatus(tt.errType)
			errType, _ := dims(r.point(genaiconv.ExecuteToolDurationName).Attributes)["error.type"].(string)
			assert.Equal(t, tt.errType, errType, "the metric says the same")
		})
	}
}

// Each attempt at a call is a span of its own, and says which it is.
func TestTheAttemptsOfATool(t *testing.T) {
	r := record(t)
	for _, attempt := range []int{1, 2, 0, -1} {
		_, tool := r.StartTool(t.Context(), genaitrace.ToolCall{Name: "clock", CallID: "call_1", Attempt: attempt})
		tool.End()
	}
	spans := r.spans("execute_tool clock")
	require.Len(t, spans, 4)
	assert.EqualValues(t, 1, spans[0].int(semconv.GenAIAttemptKey))
	assert.EqualValues(t, 2, spans[1].int(semconv.GenAIAttemptKey))
	for _, s := range spans[2:] {
		assert.False(t, s.has(semconv.GenAIAttemptKey), "what is no number of an attempt is unknown")
	}
}

// A verdict or a result is that of a check that came to one.
func TestWhatFailsHasDecidedNothing(t *testing.T) {
	for name, err := range map[string]error{"fails": typedError("model_down"), "is cancelled": context.Canceled} {
		t.Run(name, func(t *testing.T) {
			r := record(t)
			_, check := r.StartGuardrail(t.Context(), genaitrace.GuardrailCheck{RuleID: "pii", Target: semconv.GenAIGuardrailTargetInput})
			check.SetVerdict(semconv.GenAIGuardrailOutcomePass, "")
			check.Fail(err)
			_, evaluation := r.StartEvaluation(t.Context(), genaitrace.EvaluationRequest{Name: "Relevance"})
			evaluation.SetScore(1)
			evaluation.SetLabel("pass")
			evaluation.Fail(err)
			assert.False(t, r.span(semconv.SpanGuardrailCheck).has(semconv.GenAIGuardrailOutcomeKey))
			assert.False(t, r.span(semconv.SpanEvaluationRun).has(genaiconv.EvaluationScoreValueKey))
			assert.Empty(t, r.allMetrics())
		})
	}
	r := record(t)
	_, check := r.StartGuardrail(t.Context(), genaitrace.GuardrailCheck{})
	check.End()
	_, evaluation := r.StartEvaluation(t.Context(), genaitrace.EvaluationRequest{})
	evaluation.End()
	assert.False(t, r.span(semconv.SpanGuardrailCheck).has(semconv.GenAIGuardrailOutcomeKey), "no verdict is not the verdict pass")
	assert.Equal(t, "_OTHER", r.span(semconv.SpanEvaluationRun).text(genaiconv.EvaluationNameKey), "required")
	assert.Empty(t, r.allMetrics())
}

func TestAGuardrailTellsWhichRuleDecided(t *testing.T) {
	r := record(t)
	_, check := r.StartGuardrail(t.Context(), genaitrace.GuardrailCheck{RuleID: "all", Target: semconv.GenAIGuardrailTargetToolCall})
	check.SetVerdict(semconv.GenAIGuardrailOutcomePass, "")
	check.SetVerdict(semconv.GenAIGuardrailOutcomeBlock, "shell")
	check.SetRule("")
	check.SetRule("no-rm")
	check.End()
	check.SetRule("late")
	s := r.span(semconv.SpanGuardrailCheck)
	s.assertStatus("") // that it blocks is no failure
	assert.Equal(t, "no-rm", s.text(semconv.GenAIGuardrailRuleIDKey))
	points := r.sums(semconv.GenAIGuardrailDecisionsName)
	require.Len(t, points, 1)
	assert.Equal(t, map[string]any{
		"genai.guardrail.outcome": "block", "genai.guardrail.rule_id": "no-rm", "genai.guardrail.label": "shell",
	}, dims(points[0].Attributes))
}

func TestTheDocumentsOfASearchAreBounded(t *testing.T) {
	handled(t)
	r := record(t)
	_, search := r.StartRetrieval(t.Context(), genaitrace.RetrievalRequest{})
	var documents []genaitrace.Document
	for i := range 500 {
		documents = append(documents, genaitrace.Document{ID: fmt.Sprint("d", i), Score: new(1 / float64(i+1))})
	}
	documents[1] = genaitrace.Document{ID: strings.Repeat(`"\xff`, 500), Score: new(math.NaN())}
	documents[2] = genaitrace.Document{ID: "no score"}
	search.SetDocuments(documents...)
	search.End()
	s := r.span("retrieval")
	text := s.text(genaiconv.RetrievalDocumentsKey)
	assert.LessOrEqual(t, len(text), 2000)
	var got []genaiconv.RetrievalDocument
	require.NoError(t, json.Unmarshal([]byte(text), &got), text)
	require.Greater(t, len(got), 20)
	assert.Equal(t, genaiconv.RetrievalDocument{ID: "d0", Score: new(1.0)}, got[0])
	assert.Nil(t, got[1].Score, "no number")
	assert.LessOrEqual(t, len(got[1].ID), 128)
	assert.Equal(t, genaiconv.RetrievalDocument{ID: "no score"}, got[2])
	assert.Equal(t, int64(500), s.int(semconv.GenAIRetrieverHitCountKey), "all of them")
	assert.Equal(t, map[semconv.GenAIFaultAttr]int{semconv.GenAIFaultCount: 1}, r.faults())
}

func TestTheDocumentsOfASearchKeepTheirLimitToTheByte(t *testing.T) {
	for first := range 32 {
		r := record(t)
		_, search := r.StartRetrieval(t.Context(), genaitrace.RetrievalRequest{})
		documents := []genaitrace.Document{{ID: strings.Repeat("d", first)}}
		for range 200 {
			documents = append(documents, genaitrace.Document{ID: "0123456"})
		}
		search.SetDocuments(documents...)
		search.End()
		text := r.span("retrieval").text(genaiconv.RetrievalDocumentsKey)
		assert.LessOrEqual(t, len(text), 2000)
		assert.Greater(t, len(text), 1950)
	}
}

func TestTheHitsOfASearch(t *testing.T) {
	two := []genaitrace.Document{{ID: "a"}, {ID: "b"}}
	for name, tt := range map[string]struct {
		tell func(genaitrace.Retrieval)
		want any
	}{
		"nothing":                 {func(genaitrace.Retrieval) {}, nil},
		"none":                    {func(s genaitrace.Retrieval) { s.SetHits(0) }, int64(0)},
		"no document":             {func(s genaitrace.Retrieval) { s.SetDocuments() }, int64(0)},
		"documents":               {func(s genaitrace.Retrieval) { s.SetDocuments(two...) }, int64(2)},
		"documents of more":       {func(s genaitrace.Retrieval) { s.SetHits(9); s.SetDocuments(two...) }, int64(9)},
		"documents, then more":    {func(s genaitrace.Retrieval) { s.SetDocuments(two...); s.SetHits(9) }, int64(9)},
		"documents, then others":  {func(s genaitrace.Retrieval) { s.SetDocuments(two...); s.SetDocuments(two[0]) }, int64(1)},
		"a negative number":       {func(s genaitrace.Retrieval) { s.SetHits(3); s.SetHits(-1) }, int64(3)},
		"after the end":           {func(s genaitrace.Retrieval) { s.End(); s.SetHits(3); s.SetDocuments(two...) }, nil},
		"documents without words": {func(s genaitrace.Retrieval) { s.SetDocuments(genaitrace.Document{}) }, int64(1)},
	} {
		t.Run(name, func(t *testing.T) {
			handled(t)
			r := record(t)
			_, search := r.StartRetrieval(t.Context(), genaitrace.RetrievalRequest{})
			tt.tell(search)
			search.End()
			s := r.span("retrieval")
			if tt.want == nil {
				assert.False(t, s.has(semconv.GenAIRetrieverHitCountKey))
				return
			}
			assert.Equal(t, tt.want, s.int(semconv.GenAIRetrieverHitCountKey))
		})
	}
}

// A hash is the one place where the text of a query could slip in.
func TestOnlyAHashIsTheHashOfAQuery(t *testing.T) {
	for hash, ok := range map[string]bool{
		"b7c4e19f02ad5310": true, "B7C4E19F": true, strings.Repeat("0", 64): true, "": true,
		"how long is a stall": false, "beef": false, "b7c4e19g": false, strings.Repeat("0", 65): false, "b7c4e19f ": false,
	} {
		reported := handled(t)
		r := record(t)
		_, search := r.StartRetrieval(t.Context(), genaitrace.RetrievalRequest{QueryHash: hash})
		search.End()
		assert.Equal(t, ok && hash != "", r.span("retrieval").has(semconv.GenAIRetrieverQueryHashKey), hash)
		assert.Equal(t, !ok, r.faults()[semconv.GenAIFaultParse] == 1, hash)
		for _, err := range reported() {
			assert.NotContains(t, err.Error(), hash)
		}
	}
}

func TestBadNumbersOfWorkAreDroppedAndCounted(t *testing.T) {
	reported := handled(t)
	r := record(t)
	_, search := r.StartRetrieval(t.Context(), genaitrace.RetrievalRequest{TopK: -1, Dimensions: -1, ServerPort: 80})
	search.SetHits(-1)
	search.End()
	_, rerank := r.StartRerank(t.Context(), "")
	rerank.SetHits(-1)
	rerank.End()
	_, memory := r.StartMemory(t.Context(), genaitrace.MemoryAccess{ServerPort: 80})
	memory.SetRecords(-1)
	memory.End()
	_, evaluation := r.StartEvaluation(t.Context(), genaitrace.EvaluationRequest{Name: "n"})
	evaluation.SetScore(math.Inf(1))
	evaluation.End()
	assert.Equal(t, map[semconv.GenAIFaultAttr]int{semconv.GenAIFaultCount: 5}, r.faults())
	assert.Len(t, reported(), 1, "once a kind")
	for _, s := range r.recorder.Ended() {
		for _, kv := range s.Attributes() {
			assert.Contains(t, []attribute.Key{
				semconv.GenAISpanRoleKey, genaiconv.OperationNameKey, genaiconv.EvaluationNameKey,
			}, kv.Key)
		}
	}
}

// workHandles starts one of each with the same text everywhere, and ends them.
func workHandles(ctx context.Context, tr *genaitrace.Tracer, text string, err error) {
	flowCtx, flow := tr.StartWorkflow(ctx, text)
	request := genaitrace.Request{Provider: genaiconv.ProviderNameAttr(text), Model: text, ServerAddress: text, ServerPort: 1, PreviousResponseID: text}
	remote := genaitrace.Agent{Name: text, Description: text, Version: text, ID: text, DataSource: text, Remote: true, Request: request}
	local := remote
	local.Remote = false
	ctx, run := tr.StartAgent(flowCtx, local)
	_, other := tr.StartAgent(ctx, remote)
	_, create := tr.StartCreateAgent(ctx, remote)
	_, plan := tr.StartPlan(ctx, text)
	_, memory := tr.StartMemory(ctx, genaitrace.MemoryAccess{
		Operation: genaiconv.OperationNameAttr(text), StoreID: text, RecordID: text, Remote: true,
		Provider: genaiconv.ProviderNameAttr(text), ServerAddress: text, ServerPort: 1,
	})
	_, tool := tr.StartTool(ctx, genaitrace.ToolCall{Name: text, CallID: text, Type: text})
	_, search := tr.StartRetrieval(ctx, genaitrace.RetrievalRequest{
		DataSource: text, Type: semconv.GenAIRetrieverTypeAttr(text), Provider: genaiconv.ProviderNameAttr(text),
		EmbeddingModel: text, ServerAddress: text, ServerPort: 1,
	})
	_, rerank := tr.StartRerank(ctx, text)
	_, check := tr.StartGuardrail(ctx, genaitrace.GuardrailCheck{RuleID: text, Target: semconv.GenAIGuardrailTargetAttr(text)})
	_, evaluation := tr.StartEvaluation(ctx, genaitrace.EvaluationRequest{Name: text, Model: text})
	other.SetID(text)
	other.SetFinish(text)
	memory.SetRecordID(text)
	memory.SetStoreID(text)
	memory.SetRecords(1)
	tool.SetStatus(semconv.GenAIToolStatusAttr(text))
	search.SetDocuments(genaitrace.Document{ID: text})
	search.SetHits(1)
	search.SetReranked(true)
	rerank.SetHits(1)
	check.SetRule(text)
	check.SetVerdict(semconv.GenAIGuardrailOutcomeAttr(text), text)
	evaluation.SetScore(1)
	evaluation.SetLabel(text)
	run.SetUsage(genaitrace.Usage{})
	for _, h := range []ender{evaluation, check, rerank, search, tool, memory, plan, create, other, run, flow} {
		finish(h, err)
	}
}

func TestWhatWorkIsToldIsValidAndBounded(t *testing.T) {
	bad := strings.Repeat("a\xff", 1<<12)
	r := record(t)
	workHandles(t.Context(), r.Tracer, bad, nil)
	workHandles(t.Context(), r.Tracer, bad, typedError(bad))
	require.Len(t, r.recorder.Ended(), 22)
	for _, s := range r.recorder.Ended() {
		assertBounded(t, s.Attributes())
		assert.LessOrEqual(t, len(s.Name()), 300)
	}
	for _, m := range r.allMetrics() {
		for _, set := range attributesOf(t, m) {
			assertBounded(t, set.ToSlice())
		}
	}
	assert.Empty(t, r.faults())
}

// After 100 distinct names a span goes without, and a metric says _OTHER.
func TestTheNamesOfWorkAreBounded(t *testing.T) {
	r := record(t)
	for i := range 150 {
		workHandles(t.Context(), r.Tracer, fmt.Sprint("n", i), nil)
	}
	names := map[string]int{}
	for _, s := range r.recorder.Ended() {
		names[s.Name()]++
	}
	for _, plain := range []string{"execute_tool", "retrieval", "memory"} {
		assert.Equal(t, 50, names[plain], plain)
	}
	for _, plain := range []string{"invoke_agent", "invoke_workflow", "create_agent", "plan"} {
		assert.GreaterOrEqual(t, names[plain], 50, plain)
	}
	assert.LessOrEqual(t, len(names), 7*101+7)
	for _, name := range workMetrics {
		m, ok := r.metric(name)
		require.True(t, ok, name)
		sets := attributesOf(t, m)
		operations := 1
		switch name {
		case genaiconv.InvokeAgentDurationName: // agents and workflows
			operations = 2
		case genaiconv.ClientOperationDurationName: // agents, their creation, memory
			operations = 3
		}
		assert.LessOrEqual(t, len(sets), operations*101, name)
		others := 0
		for _, set := range sets {
			for _, kv := range set.ToSlice() {
				if kv.Value.AsString() == "_OTHER" {
					others++
					break
				}
			}
		}
		assert.GreaterOrEqual(t, others, 1, name)
	}
}

// The product of bounded dimensions is bounded too, and nothing is lost.
func TestTheSeriesOfWorkAreBounded(t *testing.T) {
	r := record(t, sdktrace.WithSampler(sdktrace.NeverSample()))
	for i := range 4000 {
		_, tool := r.StartTool(t.Context(), genaitrace.ToolCall{Name: fmt.Sprint("t", i%97), Type: fmt.Sprint("k", i%89)})
		tool.Fail(typedError(fmt.Sprint("e", i%3)))
	}
	assert.LessOrEqual(t, len(r.points(genaiconv.ExecuteToolDurationName)), 1000+3)
	assert.Equal(t, 4000, r.total(genaiconv.ExecuteToolDurationName))
}

func TestWhereNothingRecordsWorkCostsNothing(t *testing.T) {
	unsampled := genaitrace.New(
		genaitrace.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample()))),
		genaitrace.WithMeterProvider(metricnoop.NewMeterProvider()))
	var nilTracer *genaitrace.Tracer
	for name, tr := range map[string]*genaitrace.Tracer{"unsampled": unsampled, "nil Tracer": nilTracer, "zero Tracer": {}} {
		t.Run(name, func(t *testing.T) {
			workHandles(t.Context(), tr, "text", typedError("x")) // nil handles take it all
			_, search := tr.StartRetrieval(t.Context(), fullRetrieval())
			assert.Nil(t, search.Operation)
			_, tool := tr.StartTool(t.Context(), genaitrace.ToolCall{Name: "clock"})
			assert.Nil(t, tool.Operation)
			ctx, run := tr.StartAgent(t.Context(), genaitrace.Agent{Name: "a"})
			assert.Nil(t, run.Operation)
			assert.Equal(t, tr == unsampled, trace.SpanContextFromContext(ctx).IsValid(), "the trace context goes on")
			documents := []genaitrace.Document{{ID: "a"}}
			assert.Zero(t, testing.AllocsPerRun(100, func() {
				search.SetDocuments(documents...)
				search.SetHits(1)
				search.End()
				tool.SetStatus("denied")
				tool.Fail(context.Canceled)
				run.SetFinish("stop")
				run.SetUsage(genaitrace.Usage{InputTokens: new(1)})
				run.End()
			}))
			assert.False(t, search.Span().IsRecording())
		})
	}
}

// The metrics are recorded also where the span is not.
func TestTheMetricsOfWorkNeedNoSampledSpan(t *testing.T) {
	r := record(t, sdktrace.WithSampler(sdktrace.NeverSample()))
	workHandles(t.Context(), r.Tracer, "text", nil)
	for _, name := range workMetrics {
		assert.Contains(t, r.allMetrics(), name)
	}
	assert.Empty(t, r.recorder.Ended())
}

// What the conventions have for an agent at a service, an object in memory has not.
func TestAnAgentInThisProcessHasNoIdentifierThatLasts(t *testing.T) {
	r := record(t)
	agent := remoteAgent()
	agent.Remote = false
	_, run := r.StartAgent(t.Context(), agent)
	run.SetID("asst_1")
	run.End()
	for _, key := range []attribute.Key{genaiconv.AgentIDKey, genaiconv.AgentVersionKey, genaiconv.ProviderNameKey, "server.address", "server.port"} {
		assert.False(t, r.span("invoke_agent weather").has(key), key)
	}
}

// A workflow is named like an agent, and is none.
func TestTheToolsOfAWorkflowBelongToNoAgent(t *testing.T) {
	r := record(t)
	ctx, flow := r.StartWorkflow(t.Context(), "answer")
	_, tool := r.StartTool(ctx, genaitrace.ToolCall{Name: "clock"})
	tool.End()
	_, plan := r.StartPlan(ctx, "")
	plan.End()
	flow.End()
	assert.False(t, r.span("execute_tool clock").has(genaiconv.AgentNameKey))
	assert.False(t, r.span("plan").has(genaiconv.AgentNameKey))
	assert.Equal(t, map[string]any{"gen_ai.tool.name": "clock"}, dims(r.point(genaiconv.ExecuteToolDurationName).Attributes))
}

func TestTheDurationsOfWorkSayHowItFailed(t *testing.T) {
	for errType, err := range map[string]error{"boom": typedError("boom"), "timeout": context.DeadlineExceeded, "": context.Canceled} {
		r := record(t)
		workHandles(t.Context(), r.Tracer, "text", err)
		for _, name := range workMetrics {
			if !strings.HasSuffix(name, ".duration") {
				continue
			}
			points := r.points(name)
			require.NotEmpty(t, points, name)
			for _, p := range points {
				got, _ := dims(p.Attributes)["error.type"].(string)
				assert.Equal(t, errType, got, name)
			}
		}
	}
}

func TestWorkSpeaksTheChosenVocabulary(t *testing.T) {
	for words, want := range map[semconv.Vocabulary][]attribute.Key{
		semconv.Standard: {genaiconv.OperationNameKey, genaiconv.RequestModelKey},
		semconv.Both:     {genaiconv.OperationNameKey, genaiconv.RequestModelKey, semconv.AIOperationKey, semconv.AIModelNameKey},
		semconv.House:    {semconv.AIOperationKey, semconv.AIModelNameKey},
		semconv.Legacy:   {genaiconv.OperationNameKey, genaiconv.RequestModelKey, "gen_ai.system"},
	} {
		t.Run(words.String(), func(t *testing.T) {
			r := recordWith(t, []genaitrace.Option{genaitrace.WithVocabulary(words)})
			_, search := r.StartRetrieval(t.Context(), genaitrace.RetrievalRequest{Provider: "qdrant", EmbeddingModel: "bge-m3"})
			search.End()
			var got []attribute.Key
			for _, kv := range r.span("retrieval").Attributes() {
				if kv.Key != semconv.GenAISpanRoleKey && kv.Key != genaiconv.ProviderNameKey {
					got = append(got, kv.Key)
				}
			}
			assert.ElementsMatch(t, want, got)
		})
	}
}

// A handle may be told and ended from anywhere.
func TestWorkIsSafeForConcurrentUse(t *testing.T) {
	r := record(t)
	for range 50 {
		ctx, run := r.StartAgent(t.Context(), genaitrace.Agent{Name: "a"})
		_, search := r.StartRetrieval(ctx, genaitrace.RetrievalRequest{})
		_, tool := r.StartTool(ctx, genaitrace.ToolCall{Name: "clock"})
		together(
			func() { search.SetHits(1) },
			func() { search.SetDocuments(genaitrace.Document{ID: "a"}) },
			func() { search.End() },
			func() { tool.SetStatus("denied") },
			func() { tool.Fail(typedError("x")) },
			func() { _, call := r.StartCall(ctx, genaitrace.Request{}); call.SetUsage(fullUsage()); call.End() },
			func() { _, tool := r.StartTool(ctx, genaitrace.ToolCall{}); tool.End() },
			func() { run.SetUsage(genaitrace.Usage{InputTokens: new(1)}) },
			func() { run.End() },
		)
	}
	assert.Len(t, r.recorder.Ended(), 50*5)
}
