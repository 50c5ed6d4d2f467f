package genailangchain_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tmc/langchaingo/chains"
	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/prompts"
	"github.com/tmc/langchaingo/schema"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	genailangchain "github.com/genaitrace/otelgenai/adapters/langchaingo"
	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/genaitrace/content"
)

// A word that nobody else writes, and an address that redaction knows.
const (
	secret  = "XYZZYPLUGH"
	address = "jane.xyzzy@example.com"
	planted = secret + " " + address
)

// everything is all telemetry that has left, as text.
func (r *recording) everything(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	for _, s := range r.spans.Ended() {
		fmt.Fprintln(&b, s.Name(), s.Status(), s.Attributes(), s.Links())
		for _, e := range s.Events() {
			fmt.Fprintln(&b, e.Name, e.Attributes)
		}
	}
	for _, l := range r.logs.all {
		fmt.Fprintln(&b, l.EventName(), l.Body())
		l.WalkAttributes(func(kv attribute.KeyValue) bool {
			fmt.Fprintln(&b, kv.Key, kv.Value.String())
			return true
		})
	}
	var got metricdata.ResourceMetrics
	require.NoError(t, r.reader.Collect(t.Context(), &got))
	fmt.Fprintf(&b, "%+v", got.ScopeMetrics)
	return b.String()
}

// TestPlantedSecrets puts the same words everywhere that content passes, and looks for
// them in all that was recorded.
func TestPlantedSecrets(t *testing.T) {
	key := genaitrace.WithHashKey([]byte("0123456789abcdef0123456789abcdef"))
	for _, tt := range []struct {
		level         content.Level
		place         content.Place
		word, address bool
	}{
		{content.Off, content.OnEventsAndSpans, false, false},
		{content.Hash, content.OnEventsAndSpans, false, false},
		{content.Redacted, content.OnEventsAndSpans, true, false},
		{content.Full, content.OnEventsAndSpans, true, true},
	} {
		t.Run(tt.level.String(), func(t *testing.T) {
			r := record(genaitrace.WithContent(tt.level), genaitrace.WithContentPlace(tt.place), key)
			useEverything(t, r)
			all := r.everything(t)
			assert.Equal(t, tt.word, strings.Contains(all, secret), "the word")
			assert.Equal(t, tt.address, strings.Contains(all, address), "the address")
			if tt.level == content.Full {
				for _, part := range []string{"asked", "answered", "thought", "argument", "result", "searched", "described"} {
					assert.True(t, strings.Contains(all, part+" "+planted), "what the policy lets pass is there: %s", part)
				}
			}
			for _, never := range []string{"document ", "input "} {
				assert.False(t, strings.Contains(all, never+secret), never)
			}
			for _, s := range r.spans.Ended() {
				assert.NotContains(t, line(s, []string{"error.type"})+s.Status().Description, secret, "messages of errors are on no span")
			}
		})
	}
}

func useEverything(t *testing.T, r *recording) {
	t.Helper()
	failure := errors.New("error " + planted)
	answer := func(w http.ResponseWriter, r *http.Request) {
		stream(nil, role, delta(`"reasoning_content":"thought `+planted+`"`), delta(`"content":"answered `+planted+`"`), finish, told, done)(w, r)
	}
	refusal := func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"error":{"message":"status %s"}}`, planted)
	}
	for _, client := range []*http.Client{r.transport(), plainClient()} {
		h := genailangchain.NewHandler(r.Tracer, "component")
		model := genailangchain.WrapModel(serve(t, answer, refusal).openai(t, client), r.Tracer, request)
		messages := []llms.MessageContent{
			llms.TextParts(llms.ChatMessageTypeSystem, "asked "+planted),
			{Role: llms.ChatMessageTypeHuman, Parts: []llms.ContentPart{llms.TextPart("asked " + planted), llms.ImageURLPart("https://example.com/" + secret)}},
			{Role: llms.ChatMessageTypeAI, Parts: []llms.ContentPart{llms.ToolCall{ID: "c", Type: "function", FunctionCall: &llms.FunctionCall{Name: "f", Arguments: `{"q":"argument ` + planted + `"}`}}}},
			{Role: llms.ChatMessageTypeTool, Parts: []llms.ContentPart{llms.ToolCallResponse{ToolCallID: "c", Content: "result " + planted}}},
		}
		options := []llms.CallOption{
			streaming(ignore), llms.WithMetadata(map[string]any{"user": planted}),
			llms.WithTools([]llms.Tool{{Type: "function", Function: &llms.FunctionDefinition{Name: "f", Description: "described " + planted, Parameters: map[string]any{"d": planted}}}}),
		}
		_, err := model.GenerateContent(t.Context(), messages, options...)
		require.NoError(t, err)
		_, err = model.GenerateContent(t.Context(), messages, options...)
		require.Error(t, err)
		failing := genailangchain.WrapModel(fake(func(context.Context, llms.CallOptions) (*llms.ContentResponse, error) { return nil, failure }), r.Tracer, request)
		chain := genailangchain.WrapChain(chains.NewLLMChain(failing, prompts.NewPromptTemplate("asked {{.q}}", []string{"q"})), r.Tracer, "chain")
		_, err = chains.Predict(t.Context(), chain, map[string]any{"q": planted})
		require.ErrorIs(t, err, failure)

		m := genailangchain.NewModelHandler(r.Tracer, request)
		m.HandleLLMGenerateContentStart(t.Context(), messages)
		m.HandleLLMGenerateContentEnd(t.Context(), &llms.ContentResponse{Choices: []*llms.ContentChoice{{Content: "answered " + planted, ReasoningContent: "thought " + planted}}})
		h.HandleToolStart(t.Context(), "argument "+planted)
		h.HandleToolEnd(t.Context(), "result "+planted)
		h.HandleRetrieverStart(t.Context(), "searched "+planted)
		h.HandleRetrieverEnd(t.Context(), "searched "+planted, []schema.Document{{PageContent: "document " + planted, Metadata: map[string]any{"m": planted}}})
		h.HandleChainStart(t.Context(), map[string]any{"input": "input " + planted})
		h.HandleText(t.Context(), "input "+planted)
		h.HandleAgentAction(t.Context(), schema.AgentAction{Tool: "input " + planted, ToolInput: "input " + planted, Log: "input " + planted})
		h.HandleAgentFinish(t.Context(), schema.AgentFinish{Log: "input " + planted})
		h.HandleStreamingFunc(t.Context(), []byte("input "+planted))
		h.HandleChainError(t.Context(), failure)
	}
	_, err := genailangchain.WrapTool(&echo{}, r.Tracer).Call(t.Context(), "argument "+planted)
	require.NoError(t, err)
	_, err = genailangchain.WrapTool(&brokenTool{failure}, r.Tracer).Call(t.Context(), "argument "+planted)
	require.Error(t, err)
	found := searches(func(context.Context, string) ([]schema.Document, error) {
		return []schema.Document{{PageContent: "document " + planted, Metadata: map[string]any{"id": "1", "m": planted}, Score: .5}}, nil
	})
	_, err = genailangchain.WrapRetriever(found, r.Tracer, genaitrace.RetrievalRequest{DataSource: "docs"}, genailangchain.WithDocumentID(documentID)).GetRelevantDocuments(t.Context(), "searched "+planted)
	require.NoError(t, err)
	_, err = genailangchain.WrapEmbedder(embeds{}, r.Tracer, genaitrace.Request{Model: "e"}).CreateEmbedding(t.Context(), []string{"input " + planted})
	require.NoError(t, err)
}

type echo struct{}

func (*echo) Name() string                                         { return "echo" }
func (*echo) Description() string                                  { return "described " + planted }
func (*echo) Call(_ context.Context, input string) (string, error) { return "result " + planted, nil }

type embeds struct{}

func (embeds) CreateEmbedding(ctx context.Context, texts []string) ([][]float32, error) {
	return vectors(ctx, texts)
}
