package genailangchain_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tmc/langchaingo/agents"
	"github.com/tmc/langchaingo/chains"
	"github.com/tmc/langchaingo/embeddings"
	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/prompts"
	"github.com/tmc/langchaingo/schema"
	"github.com/tmc/langchaingo/tools"
	"github.com/tmc/langchaingo/vectorstores"

	genailangchain "github.com/genaitrace/otelgenai/adapters/langchaingo"
	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/semconv"
)

// What is wrapped goes where the thing itself went.
var (
	_ chains.Chain              = (*genailangchain.Chain[chains.ChainCallOption])(nil)
	_ tools.Tool                = genailangchain.Tool(nil)
	_ embeddings.EmbedderClient = genailangchain.EmbedderClient(nil)
)

// A library is a vector store that finds its documents by the vectors of a real
// embedder.
type library struct {
	embedder  embeddings.Embedder
	documents []schema.Document
	vectors   [][]float32
}

func (l *library) AddDocuments(ctx context.Context, documents []schema.Document, _ ...vectorstores.Option) ([]string, error) {
	for _, d := range documents {
		vectors, err := l.embedder.EmbedDocuments(ctx, []string{d.PageContent})
		if err != nil {
			return nil, err
		}
		l.documents, l.vectors = append(l.documents, d), append(l.vectors, vectors...)
	}
	return nil, nil
}

func (l *library) SimilaritySearch(ctx context.Context, query string, n int, _ ...vectorstores.Option) ([]schema.Document, error) {
	wanted, err := l.embedder.EmbedQuery(ctx, query)
	if err != nil {
		return nil, err
	}
	found := slices.Clone(l.documents)
	for i := range found {
		for j, x := range l.vectors[i] {
			found[i].Score += x * wanted[j]
		}
	}
	slices.SortFunc(found, func(a, b schema.Document) int { return int(1000 * (b.Score - a.Score)) })
	return found[:min(n, len(found))], nil
}

// vectors counts letters: it is real enough to find by.
func vectors(_ context.Context, texts []string) ([][]float32, error) {
	out := make([][]float32, len(texts))
	for i, text := range texts {
		out[i] = make([]float32, 26)
		for _, c := range strings.ToLower(text) {
			if c >= 'a' && c <= 'z' {
				out[i][c-'a'] += 1 / float32(len(text))
			}
		}
	}
	return out, nil
}

func newLibrary(t *testing.T, r *recording) *library {
	t.Helper()
	embedder, err := embeddings.NewEmbedder(genailangchain.WrapEmbedder(embeddings.EmbedderClientFunc(vectors), r.Tracer,
		genaitrace.Request{Provider: "local", Model: "letters"}))
	require.NoError(t, err)
	plain, err := embeddings.NewEmbedder(embeddings.EmbedderClientFunc(vectors))
	require.NoError(t, err)
	l := &library{embedder: plain}
	_, err = l.AddDocuments(t.Context(), []schema.Document{
		{PageContent: "The zebra zigzags.", Metadata: map[string]any{"id": "zebra.md"}},
		{PageContent: "An owl hoots.", Metadata: map[string]any{"id": "owl.md"}},
		{PageContent: "Ducks quack.", Metadata: map[string]any{"id": "duck.md"}},
	})
	require.NoError(t, err)
	l.embedder = embedder
	return l
}

func documentID(d schema.Document) string { id, _ := d.Metadata["id"].(string); return id }

// A question is answered from documents, by the chains of LangChainGo.
func TestAnAnswerFromDocuments(t *testing.T) {
	r := record(genaitrace.WithHashKey([]byte("0123456789abcdef")))
	server := serve(t, whole("They zigzag."))
	model := genailangchain.WrapModel(server.openai(t, r.transport()), r.Tracer, request)
	retriever := genailangchain.WrapRetriever(vectorstores.ToRetriever(newLibrary(t, r), 2), r.Tracer,
		genaitrace.RetrievalRequest{DataSource: "animals", Type: semconv.GenAIRetrieverTypeDense, TopK: 2, EmbeddingModel: "letters"},
		genailangchain.WithDocumentID(documentID))
	inner := genailangchain.WrapChain(chains.LoadStuffQA(model), r.Tracer, "stuff")
	chain := genailangchain.WrapChain(chains.NewRetrievalQA(inner, retriever), r.Tracer, "ask")

	got, err := chains.Run(t.Context(), chain, "Do zebras zigzag?")
	require.NoError(t, err)
	assert.Equal(t, "They zigzag.", got)
	assert.Contains(t, server.requests[0], "zigzags", "the document reached the model")
	assert.Equal(t, `invoke_workflow ask (internal)
  retrieval animals (internal) genai.retriever.hit_count=2 genai.retriever.type=dense gen_ai.retrieval.top_k=2
    embeddings letters (client)
  invoke_workflow stuff (internal) ai.tokens.input=12
    chat gpt-4.1 (client) gen_ai.usage.input_tokens=12
`, r.tree("gen_ai.usage.input_tokens", "ai.tokens.input", "genai.retriever.hit_count", "genai.retriever.type", "gen_ai.retrieval.top_k"))

	for _, s := range r.spans.Ended() {
		switch s.Name() {
		case "retrieval animals":
			documents := attributeOf(s, "gen_ai.retrieval.documents").(string)
			assert.Regexp(t, `^\[\{"id":"zebra.md","score":0\.\d+\},\{"id":"[a-z]+\.md","score":0\.\d+\}\]$`, documents)
			assert.NotEmpty(t, attributeOf(s, "genai.retriever.query_hash"))
		case "embeddings letters":
			assert.Equal(t, int64(26), attributeOf(s, "gen_ai.embeddings.dimension.count"))
		}
	}
}

// The executors of LangChainGo, of both kinds of agent, with tools that go well and wrong.
func TestAnAgentWithTools(t *testing.T) {
	const tree = "gen_ai.agent.name gen_ai.agent.inference.count gen_ai.response.finish_reasons genai.tool.status error.type ai.tokens.output"
	broken := &brokenTool{err: errors.New("secret")}
	t.Run("functions", func(t *testing.T) {
		r := record()
		server := serve(t, toolCall("calculator", `{"__arg1":"2*21"}`), whole("It is 42."))
		model := genailangchain.WrapModel(server.openai(t, r.transport()), r.Tracer, request)
		tool := genailangchain.WrapTool(tools.Calculator{}, r.Tracer)
		agent := genailangchain.WrapAgent(agents.NewExecutor(agents.NewOpenAIFunctionsAgent(model, []tools.Tool{tool})), r.Tracer, genaitrace.Agent{Name: "accountant"})
		got, err := chains.Run(t.Context(), agent, "What is 2 times 21?")
		require.NoError(t, err)
		assert.Equal(t, "It is 42.", got)
		assert.Contains(t, server.requests[1], `"42"`, "the tool's answer reached the model")
		assert.Equal(t, `invoke_agent accountant (internal) gen_ai.agent.name=accountant ai.tokens.output=14
  chat gpt-4.1 (client) gen_ai.response.finish_reasons=[tool_calls]
  execute_tool calculator (internal) gen_ai.agent.name=accountant genai.tool.status=ok
  chat gpt-4.1 (client) gen_ai.response.finish_reasons=[stop]
`, r.tree(strings.Fields(tree)...))
	})
	t.Run("one shot, streamed", func(t *testing.T) {
		r := record()
		server := serve(t,
			stream(nil, delta(`"content":"Action: calculator\n"`), delta(`"content":"Action Input: 2*21"`), finish, told, done),
			stream(nil, delta(`"content":"Final Answer: 42"`), finish, told, done))
		model := genailangchain.WrapModel(server.openai(t, plainClient()), r.Tracer, request)
		tool := genailangchain.WrapTool(tools.Calculator{}, r.Tracer)
		agent := genailangchain.WrapAgent(agents.NewExecutor(agents.NewOneShotAgent(model, []tools.Tool{tool})), r.Tracer, genaitrace.Agent{Name: "accountant"})
		got, err := chains.Run(t.Context(), agent, "What is 2 times 21?", chains.WithStreamingFunc(func(context.Context, []byte) error { return nil }))
		require.NoError(t, err)
		assert.Equal(t, "42", got)
		assert.Equal(t, `invoke_agent accountant (internal) ai.tokens.output=14
  chat gpt-4.1 (client) genai.chunk.output_count=2
  execute_tool calculator (internal)
  chat gpt-4.1 (client) genai.chunk.output_count=1
`, r.tree("ai.tokens.output", "genai.chunk.output_count"))
	})
	t.Run("a tool that fails", func(t *testing.T) {
		r := record()
		server := serve(t, toolCall("broken", `{}`))
		model := genailangchain.WrapModel(server.openai(t, r.transport()), r.Tracer, request)
		agent := genailangchain.WrapAgent(agents.NewExecutor(agents.NewOpenAIFunctionsAgent(model, []tools.Tool{genailangchain.WrapTool(broken, r.Tracer)})), r.Tracer, genaitrace.Agent{Name: "accountant"})
		_, err := chains.Run(t.Context(), agent, "Go")
		assert.Equal(t, broken.err, err)
		assert.Equal(t, `invoke_agent accountant (internal, error) gen_ai.agent.name=accountant error.type=_OTHER ai.tokens.output=7
  chat gpt-4.1 (client) gen_ai.response.finish_reasons=[tool_calls]
  execute_tool broken (internal, error) gen_ai.agent.name=accountant genai.tool.status=error error.type=_OTHER
`, r.tree(strings.Fields(tree)...))
	})
}

type brokenTool struct{ err error }

func (*brokenTool) Name() string        { return "broken" }
func (*brokenTool) Description() string { return "fails" }
func (b *brokenTool) Call(context.Context, string) (string, error) {
	if b.err == nil {
		panic("own")
	}
	return "", b.err
}

type searches func(ctx context.Context, query string) ([]schema.Document, error)

func (f searches) GetRelevantDocuments(ctx context.Context, query string) ([]schema.Document, error) {
	return f(ctx, query)
}

// What goes wrong inside a wrapper comes out as it was, and the span ends.
func TestFailuresPassUnchanged(t *testing.T) {
	own := errors.New("own")
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	r := record()
	failing := fake(func(context.Context, llms.CallOptions) (*llms.ContentResponse, error) { return nil, own })
	for name, run := range map[string]func(context.Context) error{
		"execute_tool broken": func(ctx context.Context) error {
			_, err := genailangchain.WrapTool(&brokenTool{own}, r.Tracer).Call(ctx, "x")
			return err
		},
		"retrieval docs": func(ctx context.Context) error {
			_, err := genailangchain.WrapRetriever(searches(func(context.Context, string) ([]schema.Document, error) { return nil, own }), r.Tracer, genaitrace.RetrievalRequest{DataSource: "docs"}).GetRelevantDocuments(ctx, "x")
			return err
		},
		"embeddings e": func(ctx context.Context) error {
			_, err := genailangchain.WrapEmbedder(embeddings.EmbedderClientFunc(func(context.Context, []string) ([][]float32, error) { return nil, own }), r.Tracer, genaitrace.Request{Model: "e"}).CreateEmbedding(ctx, []string{"x"})
			return err
		},
		"invoke_workflow c": func(ctx context.Context) error {
			_, err := chains.Predict(ctx, genailangchain.WrapChain(chains.NewLLMChain(failing, prompts.NewPromptTemplate("x", nil)), r.Tracer, "c"), nil)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			for ctx, status := range map[context.Context]string{t.Context(): "Error", cancelled: "Unset"} {
				r.spans.Reset()
				assert.ErrorIs(t, run(ctx), own)
				s := r.one(t)
				assert.Equal(t, name, s.Name())
				assert.Equal(t, status, s.Status().Code.String())
			}
		})
	}
	t.Run("a panic", func(t *testing.T) {
		r.spans.Reset()
		assert.PanicsWithValue(t, "own", func() { _, _ = genailangchain.WrapTool(&brokenTool{}, r.Tracer).Call(t.Context(), "x") })
		assert.Equal(t, "panic", attributeOf(r.one(t), "error.type"))
	})
	t.Run("a panic of WithDocumentID", func(t *testing.T) {
		r.spans.Reset()
		found := []schema.Document{{PageContent: "x", Score: .5}}
		got, err := genailangchain.WrapRetriever(searches(func(context.Context, string) ([]schema.Document, error) { return found, nil }), r.Tracer, genaitrace.RetrievalRequest{DataSource: "docs"},
			genailangchain.WithDocumentID(func(schema.Document) string { panic("own") }), nil).GetRelevantDocuments(t.Context(), "x")
		require.NoError(t, err)
		assert.Equal(t, found, got)
		assert.Equal(t, `[{"score":0.5}]`, attributeOf(r.one(t), "gen_ai.retrieval.documents"))
	})
	assert.Nil(t, genailangchain.WrapTool(nil, r.Tracer))
	assert.Nil(t, genailangchain.WrapRetriever(nil, r.Tracer, genaitrace.RetrievalRequest{}))
	assert.Nil(t, genailangchain.WrapEmbedder(nil, r.Tracer, genaitrace.Request{}))
}

// Without a Tracer everything works, and nothing is recorded.
func TestNoTracer(t *testing.T) {
	server := serve(t, toolCall("calculator", `{"__arg1":"2*21"}`), whole("It is 42."))
	model := genailangchain.WrapModel(server.openai(t, plainClient()), nil, request)
	tool := genailangchain.WrapTool(tools.Calculator{CallbacksHandler: genailangchain.NewHandler(nil, "c")}, nil)
	agent := genailangchain.WrapAgent(agents.NewExecutor(agents.NewOpenAIFunctionsAgent(model, []tools.Tool{tool}),
		agents.WithCallbacksHandler(genailangchain.NewHandler(nil, "a"))), nil, genaitrace.Agent{Name: "a"})
	got, err := chains.Run(t.Context(), agent, "What is 2 times 21?")
	require.NoError(t, err)
	assert.Equal(t, "It is 42.", got)
}

// Runs of one chain at the same time in one context, as chains.Apply makes them, keep
// their model calls.
func TestRunsAtTheSameTime(t *testing.T) {
	r := record()
	model := genailangchain.WrapModel(fake(func(context.Context, llms.CallOptions) (*llms.ContentResponse, error) { return answer("x"), nil }), r.Tracer, request)
	chain := genailangchain.WrapChain(chains.NewLLMChain(model, prompts.NewPromptTemplate("{{.q}}", []string{"q"})), r.Tracer, "each")
	inputs := make([]map[string]any, 20)
	for i := range inputs {
		inputs[i] = map[string]any{"q": "q"}
	}
	_, err := chains.Apply(t.Context(), chain, inputs, 5)
	require.NoError(t, err)
	assert.Equal(t, strings.Repeat("invoke_workflow each (internal)\n  chat gpt-4.1 (client)\n", 20), r.tree())
}

// A callback handler of a chain is called as it was.
func TestTheHandlerOfAChainIsCalled(t *testing.T) {
	r, inside := record(), record()
	model := fake(func(context.Context, llms.CallOptions) (*llms.ContentResponse, error) { return answer("x"), nil })
	prompt := prompts.NewPromptTemplate("q", nil)
	handler := genailangchain.NewHandler(inside.Tracer, "own")
	for _, options := range [][]chains.ChainCallOption{nil, {chains.WithCallback(handler)}} {
		_, err := chains.Predict(t.Context(), genailangchain.WrapChain(chains.NewLLMChain(model, prompt, options...), r.Tracer, "c"), nil)
		require.NoError(t, err)
	}
	assert.Len(t, r.spans.Ended(), 2)
	assert.Equal(t, "invoke_workflow own", inside.one(t).Name())
	assert.Nil(t, genailangchain.WrapChain(chains.NewRetrievalQA(nil, nil), r.Tracer, "no handler").GetCallbackHandler())
}
