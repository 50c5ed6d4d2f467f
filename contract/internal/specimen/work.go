package specimen

import (
	"context"
	"time"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// RAG embeds a question, searches two indexes at once, reranks, checks what was found,
// and asks.
func (s *Service) RAG() {
	s.entry(func(ctx context.Context) {
		_, embed := s.tracer.StartCall(ctx, genaitrace.Request{
			Operation: genaiconv.OperationNameEmbeddings, Provider: "vllm", Model: "bge-m3", Inputs: 1, Dimensions: 1024,
		})
		s.sleep(8 * time.Millisecond)
		embed.SetUsage(genaitrace.Usage{InputTokens: new(17)})
		embed.SetResponse("", "bge-m3")
		embed.End()

		s.search(ctx)

		_, rerank := s.tracer.StartRerank(ctx, "bge-reranker")
		s.sleep(6 * time.Millisecond)
		rerank.SetHits(4)
		rerank.End()
		_, again := s.tracer.StartRerank(ctx, "bge-reranker")
		s.sleep(time.Millisecond)
		again.Fail(failed("out_of_memory"))
		s.Call(ctx, false)
	})
}

// search is a hybrid search; its two halves run together.
func (s *Service) search(ctx context.Context) {
	ctx, search := s.tracer.StartRetrieval(ctx, genaitrace.RetrievalRequest{
		DataSource: "handbook", Type: semconv.GenAIRetrieverTypeHybrid, TopK: 10, EmbeddingModel: "bge-m3", Dimensions: 1024,
	})
	defer search.End()
	group := s.tracer.NewGroup(ctx)
	for _, half := range []string{"search.dense", "search.sparse"} {
		group.Go(half, func(context.Context) error {
			s.sleep(15 * time.Millisecond)
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		search.Fail(err)
		return
	}
	search.SetHits(8)
	search.SetReranked(false)
}

type toolError string

func (e toolError) Error() string     { return string(e) }
func (e toolError) ErrorType() string { return string(e) }

// tool runs a tool that the model asked for; its first attempt fails.
func (s *Service) tool(ctx context.Context) {
	for _, err := range []error{toolError("station_down"), nil} {
		_, tool := s.tracer.StartTool(ctx, genaitrace.ToolCall{Name: "get_weather", CallID: "call_1", Type: "function"})
		s.sleep(30 * time.Millisecond)
		tool.Fail(err)
	}
}

// Tools asks a model, runs the tool that it asks for, and asks again.
func (s *Service) Tools() {
	s.entry(func(ctx context.Context) {
		s.Call(ctx, false)
		s.tool(ctx)
		s.Call(ctx, false)
	})
}

// Agent is one run of an agent that remembers, plans, asks, uses a tool, and whose answer
// is checked and judged.
func (s *Service) Agent() {
	ctx := genaitrace.ContextWith(context.Background(), genaitrace.ConversationID("c-1"))
	ctx, run := s.tracer.StartAgent(ctx, genaitrace.Agent{Name: "weather", Request: genaitrace.Request{Model: Model}})
	defer run.End()
	s.sleep(time.Millisecond)
	_, memory := s.tracer.StartMemory(ctx, genaitrace.MemoryAccess{StoreID: "preferences"})
	s.sleep(time.Millisecond)
	memory.SetRecords(3)
	memory.End()
	_, forgets := s.tracer.StartMemory(ctx, genaitrace.MemoryAccess{StoreID: "preferences", Operation: genaiconv.OperationNameDeleteMemory})
	s.sleep(time.Millisecond)
	forgets.Fail(failed("store_down"))
	_, plan := s.tracer.StartPlan(ctx, "")
	s.sleep(2 * time.Millisecond)
	plan.End()
	s.Call(ctx, false)
	s.tool(ctx)
	s.Call(ctx, false)
	_, check := s.tracer.StartGuardrail(ctx, genaitrace.GuardrailCheck{RuleID: "pii", Target: semconv.GenAIGuardrailTargetOutput})
	s.sleep(time.Millisecond)
	check.SetVerdict(semconv.GenAIGuardrailOutcomePass, "")
	check.End()
	_, evaluation := s.tracer.StartEvaluation(ctx, genaitrace.EvaluationRequest{Name: "Relevance", Model: Model})
	s.sleep(time.Millisecond)
	evaluation.SetScore(4)
	evaluation.SetLabel("relevant")
	evaluation.End()
	run.SetFinish("stop")
}
