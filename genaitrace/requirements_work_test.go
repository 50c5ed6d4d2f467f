package genaitrace_test

import (
	"context"

	"go.opentelemetry.io/otel/attribute"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// The pairings of searches, tools, agents and judgements, each with every fact known.

func retrievalPairing() pairing {
	return pairing{by: "Tracer.StartRetrieval", name: "retrieval handbook", run: func(ctx context.Context, r *recording, err error) {
		_, search := r.StartRetrieval(ctx, fullRetrieval())
		search.SetQuery("what does a token cost")
		search.SetHits(2)
		search.SetReranked(true)
		search.SetDocuments(genaitrace.Document{ID: "cost.md#3", Score: new(0.75)}, genaitrace.Document{ID: "cost.md#4"})
		finish(search, err)
	}}
}

func fullRetrieval() genaitrace.RetrievalRequest {
	return genaitrace.RetrievalRequest{
		DataSource: "handbook", Type: semconv.GenAIRetrieverTypeHybrid, TopK: 10, Provider: "qdrant",
		EmbeddingModel: "bge-m3", Dimensions: 1024, QueryHash: "b7c4e19f02ad5310",
		ServerAddress: "vectors.internal", ServerPort: 6333,
	}
}

func rerankPairing() pairing {
	return pairing{by: "Tracer.StartRerank", name: semconv.SpanRAGRerank, run: func(ctx context.Context, r *recording, err error) {
		_, rerank := r.StartRerank(ctx, "bge-reranker")
		rerank.SetHits(4)
		finish(rerank, err)
	}}
}

func memoryPairing() pairing {
	return pairing{by: "Tracer.StartMemory", name: "upsert_memory", run: func(ctx context.Context, r *recording, err error) {
		_, memory := r.StartMemory(ctx, genaitrace.MemoryAccess{
			Operation: genaiconv.OperationNameUpsertMemory, StoreID: "ms_1", RecordID: "mem_1", Remote: true, Provider: "mem0",
			ServerAddress: "memory.internal", ServerPort: 8080,
		})
		memory.SetQuery("what does she drink")
		memory.SetContents([]map[string]any{{"id": "mem_1", "text": "tea"}})
		memory.SetRecords(1)
		finish(memory, err)
	}}
}

func remoteAgent() genaitrace.Agent {
	return genaitrace.Agent{
		Name: "weather", Description: "tells the weather", Version: "2.1.0", ID: "asst_1", DataSource: "stations", Remote: true,
		Request: genaitrace.Request{
			Provider: "openai", Model: "gpt-5", MaxTokens: 512, Temperature: new(0.7), TopP: new(0.95), Seed: new(0), Choices: 2,
			FrequencyPenalty: new(0.2), PresencePenalty: new(0.0), PreviousResponseID: "resp_0", OutputType: genaiconv.OutputTypeText,
			ServerAddress: "api.openai.com", ServerPort: 443,
		},
	}
}

func createAgentPairing() pairing {
	return pairing{by: "Tracer.StartCreateAgent", name: "create_agent weather", run: func(ctx context.Context, r *recording, err error) {
		agent := remoteAgent()
		agent.ID, agent.DataSource = "", ""
		agent.Request = genaitrace.Request{Provider: "openai", Model: "gpt-5", ServerAddress: "api.openai.com", ServerPort: 443}
		_, create := r.StartCreateAgent(ctx, agent)
		create.SetID("asst_1")
		create.SetInput(genaitrace.Input{Instructions: everyInput().Instructions})
		finish(create, err)
	}}
}

var agentWithout = map[string][]attribute.Key{bySetAttributes: {
	genaiconv.RequestStopSequencesKey, "gen_ai.usage.text.*", "gen_ai.usage.image.*", "gen_ai.usage.audio.*",
}}

func remoteAgentPairing() pairing {
	return pairing{by: "Tracer.StartAgent", name: "invoke_agent weather", run: func(ctx context.Context, r *recording, err error) {
		_, run := r.StartAgent(ctx, remoteAgent())
		run.SetInput(everyInput())
		run.SetOutput(everyInput().Messages)
		run.SetFinish("stop")
		run.SetUsage(genaitrace.Usage{
			InputTokens: new(2456), OutputTokens: new(512), CachedTokens: new(1024), CacheWriteTokens: new(0),
		})
		finish(run, err)
	}, facts: []genaitrace.Fact{genaitrace.ConversationID("c-1")}, without: agentWithout}
}

func agentPairing() pairing {
	return pairing{by: "Tracer.StartAgent", name: "invoke_agent weather", run: func(ctx context.Context, r *recording, err error) {
		agent := remoteAgent()
		agent.Remote = false
		_, run := r.StartAgent(ctx, agent)
		run.SetInput(everyInput())
		run.SetOutput(everyInput().Messages)
		run.SetFinish("stop")
		run.SetUsage(genaitrace.Usage{InputTokens: new(2456), OutputTokens: new(512)})
		finish(run, err)
	}, facts: []genaitrace.Fact{genaitrace.ConversationID("c-1")}, without: agentWithout}
}

func planPairing() pairing {
	return pairing{by: "Tracer.StartPlan", name: "plan weather", run: func(ctx context.Context, r *recording, err error) {
		_, plan := r.StartPlan(ctx, "weather")
		finish(plan, err)
	}}
}

func toolPairing() pairing {
	return pairing{by: "Tracer.StartTool", name: "execute_tool get_weather", run: func(ctx context.Context, r *recording, err error) {
		ctx, run := r.StartAgent(ctx, genaitrace.Agent{Name: "weather"})
		_, tool := r.StartTool(ctx, genaitrace.ToolCall{Name: "get_weather", CallID: "call_1", Type: "function"})
		tool.SetDescription("tells the weather of a city")
		tool.SetArguments(map[string]any{"city": "Bergen"})
		tool.SetResult("rain")
		finish(tool, err)
		run.End()
	}, facts: []genaitrace.Fact{genaitrace.ConversationID("c-1")}}
}

func guardrailPairing() pairing {
	return pairing{by: "Tracer.StartGuardrail", name: semconv.SpanGuardrailCheck, run: func(ctx context.Context, r *recording, err error) {
		_, check := r.StartGuardrail(ctx, genaitrace.GuardrailCheck{RuleID: "pii-email", Target: semconv.GenAIGuardrailTargetOutput})
		check.SetVerdict(semconv.GenAIGuardrailOutcomeBlock, "personal-data")
		finish(check, err)
	}}
}

func evaluationPairing() pairing {
	return pairing{by: "Tracer.StartEvaluation", name: semconv.SpanEvaluationRun, run: func(ctx context.Context, r *recording, err error) {
		_, evaluation := r.StartEvaluation(ctx, genaitrace.EvaluationRequest{Name: "Relevance", Model: "qwen2.5-7b-instruct"})
		evaluation.SetScore(0)
		evaluation.SetLabel("not_relevant")
		finish(evaluation, err)
	}}
}
