package genaieino_test

import (
	"context"
	"io"
	"net/http"
	"testing"

	"github.com/cloudwego/eino-ext/libs/acl/openai"
	"github.com/cloudwego/eino/callbacks"
	"github.com/cloudwego/eino/components"
	"github.com/cloudwego/eino/components/document"
	"github.com/cloudwego/eino/components/embedding"
	"github.com/cloudwego/eino/components/indexer"
	"github.com/cloudwego/eino/components/prompt"
	"github.com/cloudwego/eino/components/retriever"
	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/flow/agent"
	"github.com/cloudwego/eino/flow/agent/react"
	"github.com/cloudwego/eino/schema"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	genaieino "github.com/genaitrace/otelgenai/adapters/eino"
	"github.com/genaitrace/otelgenai/middleware/genaihttp"
	"github.com/genaitrace/otelgenai/semconv"
)

// readAll reads a stream to its end.
func readAll[T any](t *testing.T, sr *schema.StreamReader[T], err error) (all []T) {
	t.Helper()
	require.NoError(t, err)
	defer sr.Close()
	for {
		item, err := sr.Recv()
		if err == io.EOF {
			return all
		}
		require.NoError(t, err)
		all = append(all, item)
	}
}

func TestAChain(t *testing.T) {
	template := prompt.FromMessages(schema.FString, schema.SystemMessage("Be brief."), schema.UserMessage("{question}"))
	for _, streamed := range []bool{false, true} {
		r := record(t)
		chain, err := compose.NewChain[map[string]any, string]().
			AppendChatTemplate(template, compose.WithNodeName("brief")).
			AppendChatModel(genaieino.WrapChatModel(newModel(t, newServer(t), nil), r.tracer)).
			AppendLambda(compose.TransformableLambda(func(_ context.Context, in *schema.StreamReader[*schema.Message]) (*schema.StreamReader[string], error) {
				return schema.StreamReaderWithConvert(in, func(m *schema.Message) (string, error) { return m.Content, nil }), nil
			}), compose.WithNodeName("text")).
			Compile(t.Context(), compose.WithGraphName("answer"))
		require.NoError(t, err)
		question := map[string]any{"question": "How is the weather?"}
		if streamed {
			sr, err := chain.Stream(t.Context(), question, compose.WithCallbacks(r.handler()))
			assert.Equal(t, []string{"", "It is ", "sunny.", ""}, readAll(t, sr, err))
			golden(t, "chain_streamed", r.tree())
			r.holds()
		} else {
			text, err := chain.Invoke(t.Context(), question, compose.WithCallbacks(r.handler()))
			require.NoError(t, err)
			assert.Equal(t, "It is sunny.", text)
			golden(t, "chain", r.tree())
			r.holds()
		}
	}
}

// index is a search in memory whose vectors come from a real server.
type index struct {
	embedder embedding.Embedder
	docs     []*schema.Document
}

func (s *index) Retrieve(ctx context.Context, query string, _ ...retriever.Option) ([]*schema.Document, error) {
	ctx = callbacks.EnsureRunInfo(ctx, "Memory", components.ComponentOfRetriever)
	ctx = callbacks.OnStart(ctx, &retriever.CallbackInput{Query: query, TopK: 2})
	_, err := s.embedder.EmbedStrings(callbacks.ReuseHandlers(ctx, &callbacks.RunInfo{Type: "OpenAI", Component: components.ComponentOfEmbedding}), []string{query})
	if err != nil {
		callbacks.OnError(ctx, err)
		return nil, err
	}
	callbacks.OnEnd(ctx, &retriever.CallbackOutput{Docs: s.docs})
	return s.docs, nil
}

func (s *index) Store(_ context.Context, docs []*schema.Document, _ ...indexer.Option) (ids []string, err error) {
	for _, d := range docs {
		ids = append(ids, d.ID)
	}
	return ids, nil
}

func (*index) GetType() string          { return "Memory" }
func (*index) IsCallbacksEnabled() bool { return true }

func newEmbedder(t *testing.T, url string, transport http.RoundTripper) embedding.Embedder {
	t.Helper()
	e, err := openai.NewEmbeddingClient(t.Context(), &openai.EmbeddingConfig{
		APIKey: "k", BaseURL: url, Model: "embed-1", HTTPClient: &http.Client{Transport: transport},
	})
	require.NoError(t, err)
	return e
}

// TestAGraphWithBranchesSideBySide retrieves and calls tools at the same time, and gives
// both to a chain inside it.
func TestAGraphWithBranchesSideBySide(t *testing.T) {
	r := record(t)
	url := newServer(t)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	docs := []*schema.Document{(&schema.Document{ID: "doc-1", Content: "dry"}).WithScore(0.9), {ID: "doc-2", Content: "wet"}}

	chatModel := newModel(t, url, transport)
	weather := newTool(t, "get_weather", sunny)
	info, err := weather.Info(t.Context())
	require.NoError(t, err)
	withTools, err := chatModel.WithTools([]*schema.ToolInfo{info})
	require.NoError(t, err)
	tools, err := compose.NewToolNode(t.Context(), &compose.ToolsNodeConfig{Tools: []tool.BaseTool{weather}})
	require.NoError(t, err)

	final := compose.NewChain[map[string]any, *schema.Message]()
	final.AppendLambda(compose.InvokableLambda(func(context.Context, map[string]any) ([]*schema.Message, error) { return ask("So?"), nil })).
		AppendChatModel(chatModel)

	g := compose.NewGraph[string, *schema.Message]()
	require.NoError(t, g.AddRetrieverNode("search", &index{embedder: newEmbedder(t, url, transport), docs: docs},
		compose.WithNodeName("handbook"), compose.WithOutputKey("docs")))
	require.NoError(t, g.AddLambdaNode("wrap", compose.InvokableLambda(func(_ context.Context, q string) ([]*schema.Message, error) { return ask(q), nil })))
	require.NoError(t, g.AddChatModelNode("ask", withTools, compose.WithNodeName("ask")))
	require.NoError(t, g.AddToolsNode("tools", tools, compose.WithNodeName("weather"), compose.WithOutputKey("tools")))
	require.NoError(t, g.AddGraphNode("final", final, compose.WithNodeName("final")))
	for _, edge := range [][2]string{
		{compose.START, "search"}, {compose.START, "wrap"}, {"wrap", "ask"}, {"ask", "tools"},
		{"search", "final"}, {"tools", "final"}, {"final", compose.END},
	} {
		require.NoError(t, g.AddEdge(edge[0], edge[1]))
	}
	graph, err := g.Compile(t.Context(), compose.WithGraphName("rag"), compose.WithNodeTriggerMode(compose.AllPredecessor))
	require.NoError(t, err)

	answer, err := graph.Invoke(t.Context(), "How is the weather?", compose.WithCallbacks(r.handler()))
	require.NoError(t, err)
	assert.Equal(t, "It is sunny.", answer.Content)
	golden(t, "graph", sorted(r.tree()))
	r.holds()
}

// TestAnAgent runs a ReAct agent over the HTTP transport of this module: what it sees is
// added to the spans of the handler.
func TestAnAgent(t *testing.T) {
	for _, streamed := range []bool{false, true} {
		r := record(t)
		transport := &http.Transport{}
		t.Cleanup(transport.CloseIdleConnections)
		chatModel := newModel(t, newServer(t), genaihttp.NewTransport(transport,
			genaihttp.WithTracerProvider(r.TracerProvider()), genaihttp.WithMeterProvider(r.MeterProvider())))
		made, err := react.NewAgent(t.Context(), &react.AgentConfig{
			ToolCallingModel: genaieino.WrapChatModel(chatModel, r.tracer),
			ToolsConfig:      compose.ToolsNodeConfig{Tools: []tool.BaseTool{newTool(t, "get_weather", sunny)}},
		})
		require.NoError(t, err)
		option := agent.WithComposeOptions(compose.WithCallbacks(r.handler()))
		if streamed {
			sr, err := made.Stream(t.Context(), ask("How is the weather?"), option)
			readAll(t, sr, err)
			golden(t, "agent_streamed", sorted(r.tree())) // two tools side by side
		} else {
			_, err := made.Generate(t.Context(), ask("How is the weather?"), option)
			require.NoError(t, err)
			golden(t, "agent", sorted(r.tree()))
		}
		r.holds()
		for _, call := range r.captured().Named("chat gpt-x") {
			assert.False(t, call.Attributes.Has("ai.tokens.input"), "usage is written once, in the words of the conventions")
		}
		total := 0.0
		for _, m := range r.captured().Metric("gen_ai.client.inference.usage.input_tokens") {
			for _, p := range m.Points {
				total += p.Value
			}
		}
		assert.InDelta(t, 24, total, 0, "input tokens of two calls")
	}
}

type loader struct{}

func (loader) Load(context.Context, document.Source, ...document.LoaderOption) ([]*schema.Document, error) {
	return []*schema.Document{{ID: "d"}}, nil
}

type splitter struct{}

func (splitter) Transform(_ context.Context, docs []*schema.Document, _ ...document.TransformerOption) ([]*schema.Document, error) {
	return append(docs, docs...), nil
}

// plainIndex leaves its callbacks to the graph.
type plainIndex struct{ *index }

func (plainIndex) IsCallbacksEnabled() bool { return false }

func TestIngestion(t *testing.T) {
	r := record(t)
	chain, err := compose.NewChain[document.Source, []string]().
		AppendLoader(loader{}).
		AppendDocumentTransformer(splitter{}, compose.WithNodeName("paragraphs")).
		AppendIndexer(plainIndex{&index{}}).
		Compile(t.Context(), compose.WithGraphName("ingest"))
	require.NoError(t, err)
	ids, err := chain.Invoke(t.Context(), document.Source{URI: "file:///secret"}, compose.WithCallbacks(r.handler()))
	require.NoError(t, err)
	assert.Equal(t, []string{"d", "d"}, ids)
	golden(t, "ingestion", r.tree())
}

// TestGraphsInsideGraphs are steps, unless they are agents.
func TestGraphsInsideGraphs(t *testing.T) {
	r := record(t)
	url := newServer(t)
	inner := func() *compose.Chain[[]*schema.Message, *schema.Message] {
		c := compose.NewChain[[]*schema.Message, *schema.Message]()
		return c.AppendChatModel(newModel(t, url, nil))
	}
	back := compose.InvokableLambda(func(_ context.Context, m *schema.Message) ([]*schema.Message, error) {
		return []*schema.Message{m}, nil
	})
	chain, err := compose.NewChain[[]*schema.Message, *schema.Message]().
		AppendGraph(inner(), compose.WithNodeName("draft")).AppendLambda(back, compose.WithNodeName("back")).
		AppendGraph(inner(), compose.WithNodeName("critic")).
		Compile(t.Context(), compose.WithGraphName("write"))
	require.NoError(t, err)
	_, err = chain.Invoke(t.Context(), ask("A poem."), compose.WithCallbacks(r.handler(genaieino.WithAgents("critic"))))
	require.NoError(t, err)
	golden(t, "nested", r.tree())
	r.holds()
	assert.Equal(t, "12", r.span("invoke_workflow write").Attributes.String(semconv.AITokensInputKey), "the agent counts its own call")
}
