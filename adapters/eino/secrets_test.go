package genaieino_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cloudwego/eino/components/prompt"
	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/schema"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"

	genaieino "github.com/genaitrace/otelgenai/adapters/eino"
	"github.com/genaitrace/otelgenai/capture"
	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/genaitrace/content"
)

func attr(s *capture.Span, key string) string { return s.Attributes.String(attribute.Key(key)) }

// everything is all text of all signals.
func everything(c *capture.Capture) string {
	var b strings.Builder
	attrs := func(all capture.Attributes) {
		for _, kv := range all {
			fmt.Fprintln(&b, kv.Key, all.String(kv.Key))
		}
	}
	for _, s := range c.Spans {
		fmt.Fprintln(&b, s.Name, s.StatusMessage, s.TraceState)
		attrs(s.Attributes)
		for _, e := range s.Events {
			fmt.Fprintln(&b, e.Name)
			attrs(e.Attributes)
		}
	}
	for _, l := range c.Logs {
		fmt.Fprintln(&b, l.EventName, l.Body.String())
		attrs(l.Attributes)
	}
	for _, m := range c.Metrics {
		for _, p := range m.Points {
			attrs(p.Attributes)
		}
	}
	return b.String()
}

// Secrets that a redactor knows, and a word that none does: where it turns up, text was
// written.
const (
	mail   = "jane.doe@example.com"
	apiKey = "sk-proj-Zx8Q2mN4vB7cL1kJ9hG6fD3sA5pO0iUy"
	canary = "xylophone"
	secret = canary + " " + mail + " " + apiKey
)

// runSecrets runs everything that has a place for text, with secrets in it.
func runSecrets(t *testing.T, r *recording) {
	t.Helper()
	handler := compose.WithCallbacks(r.handler())
	thinking := func() *piped {
		return &piped{pieces: []*schema.Message{
			{Role: schema.Assistant, ReasoningContent: secret}, {Role: schema.Assistant, Content: "so " + canary},
			{Role: schema.Assistant, ToolCalls: []schema.ToolCall{{Index: new(int), ID: "a", Function: schema.FunctionCall{Name: "t", Arguments: `{"city":"` + secret + `"}`}}}},
			finish("stop", 1, 1),
		}}
	}
	for _, end := range []error{nil, errors.New(secret)} {
		for _, s := range setups {
			m := thinking()
			m.end = end
			sr, err := s.stream(t.Context(), t, r, m)
			require.NoError(t, err)
			for err == nil {
				_, err = sr.Recv()
			}
			sr.Close()
		}
	}
	template := prompt.FromMessages(schema.FString, schema.SystemMessage(secret), schema.UserMessage("{q}"))
	chain, err := compose.NewChain[map[string]any, *schema.Message]().AppendChatTemplate(template).AppendChatModel(thinking()).Compile(t.Context())
	require.NoError(t, err)
	_, err = chain.Invoke(t.Context(), map[string]any{"q": secret}, handler)
	require.NoError(t, err)

	tellAll := newTool(t, "tell", func(context.Context, place) (string, error) { return secret, nil })
	fail := newTool(t, "fail", func(context.Context, place) (string, error) { return "", errors.New(secret) })
	crash := newTool(t, "crash", func(context.Context, place) (string, error) { panic(secret) })
	for _, name := range []string{"tell", "fail", "crash"} {
		asked := toolCall(name)
		asked.ToolCalls[0].Function.Arguments = `{"city":"` + secret + `"}`
		_, _ = toolsOf(t, compose.ToolsNodeConfig{Tools: []tool.BaseTool{tellAll, fail, crash}}).Invoke(t.Context(), asked, handler)
	}

	search := compose.NewChain[string, []*schema.Document]()
	found, err := search.AppendRetriever(&index{embedder: newEmbedder(t, newServer(t), nil), docs: []*schema.Document{
		{ID: "d", Content: secret, MetaData: map[string]any{"author": secret}},
	}}).Compile(t.Context())
	require.NoError(t, err)
	_, err = found.Invoke(t.Context(), secret, handler)
	require.NoError(t, err)

	parts := &schema.Message{Role: schema.User, UserInputMultiContent: []schema.MessageInputPart{
		{Type: schema.ChatMessagePartTypeText, Text: secret},
		{Type: schema.ChatMessagePartTypeImageURL, Image: &schema.MessageInputImage{MessagePartCommon: schema.MessagePartCommon{Base64Data: new(canary + "-inside")}}},
		{Type: schema.ChatMessagePartTypeImageURL, Image: &schema.MessageInputImage{MessagePartCommon: schema.MessagePartCommon{URL: new("data:text/plain," + canary + "-inside")}}},
		{Type: schema.ChatMessagePartTypeFileURL, File: &schema.MessageInputFile{MessagePartCommon: schema.MessagePartCommon{URL: new("https://x/?mail=" + mail)}}},
	}}
	_, err = genaieino.WrapChatModel(thinking(), r.tracer).Generate(t.Context(), []*schema.Message{parts, schema.ToolMessage(secret, "a"), nil})
	require.NoError(t, err)
}

func TestSecretsAreNowhere(t *testing.T) {
	for _, level := range []content.Level{content.Off, content.Hash, content.Redacted, content.Full} {
		t.Run(level.String(), func(t *testing.T) {
			r := record(t, genaitrace.WithContent(level), genaitrace.WithContentPlace(content.OnEventsAndSpans),
				genaitrace.WithHashKey([]byte("0123456789abcdef")), genaitrace.WithStackTraces())
			runSecrets(t, r)
			ended(t, r)
			text := everything(r.captured())
			if level == content.Full {
				assert.Contains(t, text, mail)
				assert.Contains(t, text, apiKey)
			} else {
				assert.NotContains(t, text, mail)
				assert.NotContains(t, text, apiKey)
			}
			assert.Equal(t, level >= content.Redacted, strings.Contains(text, canary), "text is written")
			assert.NotContains(t, text, canary+"-inside", "data inside a message never is")
		})
	}
}

// TestTheAnswerIsPutTogether from the pieces of a stream, and once, however it is recorded.
func TestTheAnswerIsPutTogether(t *testing.T) {
	for _, s := range setups {
		t.Run(s.name, func(t *testing.T) {
			r := record(t, genaitrace.WithContent(content.Full), genaitrace.WithContentPlace(content.OnSpans))
			sr, err := s.stream(t.Context(), t, r, &piped{pieces: answer()})
			readAll(t, sr, err)
			ended(t, r)
			assert.JSONEq(t, `[{"role":"assistant","parts":[{"type":"reasoning","content":"Hm."},{"type":"text","content":"It is sunny."}]}]`,
				attr(r.call(), "gen_ai.output.messages"))
			assert.JSONEq(t, `[{"role":"user","parts":[{"type":"text","content":"How is the weather?"}]}]`, attr(r.call(), "gen_ai.input.messages"))
		})
	}
}

// ended waits for readers of copies, which end on goroutines of their own.
func ended(t *testing.T, r *recording) {
	t.Helper()
	require.Eventually(t, func() bool {
		for _, s := range r.captured().Spans {
			if !s.Ended() {
				return false
			}
		}
		return true
	}, 10*time.Second, time.Millisecond)
}
