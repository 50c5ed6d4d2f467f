package genailangchain_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/tmc/langchaingo/agents"
	"github.com/tmc/langchaingo/chains"
	"github.com/tmc/langchaingo/llms/openai"
	"github.com/tmc/langchaingo/schema"
	"github.com/tmc/langchaingo/tools"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	genailangchain "github.com/genaitrace/otelgenai/adapters/langchaingo"
	"github.com/genaitrace/otelgenai/genaitrace"
)

// An agent of LangChainGo with a model and a tool, all of them wrapped.
func ExampleWrapAgent() {
	spans := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	tracer := genaitrace.New(genaitrace.WithTracerProvider(provider))
	ctx := context.Background()

	server := modelServer("Action: calculator\nAction Input: 2 * 21", "Final Answer: 42")
	defer server.Close()
	llm, err := openai.New(openai.WithBaseURL(server.URL), openai.WithToken("none"), openai.WithModel("gpt-4.1"))
	if err != nil {
		fmt.Println(err)
		return
	}

	model := genailangchain.WrapModel(llm, tracer, genaitrace.Request{Provider: "openai", Model: "gpt-4.1"})
	tool := genailangchain.WrapTool(tools.Calculator{}, tracer)
	executor := agents.NewExecutor(agents.NewOneShotAgent(model, []tools.Tool{tool}))
	agent := genailangchain.WrapAgent(executor, tracer, genaitrace.Agent{Name: "accountant"})

	answer, err := chains.Run(ctx, agent, "What is 2 times 21?")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(answer)
	for _, s := range spans.GetSpans() {
		fmt.Println(s.SpanKind, s.Name)
	}
	// Output:
	// 42
	// client chat gpt-4.1
	// internal execute_tool calculator
	// client chat gpt-4.1
	// internal invoke_agent accountant
}

// A search, whatever finds the documents.
func ExampleWrapRetriever() {
	spans := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	tracer := genaitrace.New(genaitrace.WithTracerProvider(provider))

	retriever := genailangchain.WrapRetriever(shelf{}, tracer, genaitrace.RetrievalRequest{DataSource: "handbook"},
		genailangchain.WithDocumentID(func(d schema.Document) string { return fmt.Sprint(d.Metadata["file"]) }))
	documents, err := retriever.GetRelevantDocuments(context.Background(), "holidays")
	fmt.Println(len(documents), err)
	for _, s := range spans.GetSpans() {
		fmt.Println(s.Name)
		for _, kv := range s.Attributes {
			if kv.Key == "gen_ai.retrieval.documents" {
				fmt.Println(kv.Value.AsString())
			}
		}
	}
	// Output:
	// 1 <nil>
	// retrieval handbook
	// [{"id":"holidays.md","score":0.5}]
}

type shelf struct{}

func (shelf) GetRelevantDocuments(context.Context, string) ([]schema.Document, error) {
	return []schema.Document{{PageContent: "Thirty days.", Metadata: map[string]any{"file": "holidays.md"}, Score: .5}}, nil
}

// modelServer answers with the texts, one a request.
func modelServer(texts ...string) *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		whole(texts[0])(w, r)
		texts = texts[1:]
	}))
}
