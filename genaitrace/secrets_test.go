package genaitrace_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/baggage"
	otelpropagation "go.opentelemetry.io/otel/propagation"

	"github.com/genaitrace/otelgenai/capture"
	"github.com/genaitrace/otelgenai/contract"
	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/genaitrace/content"
	"github.com/genaitrace/otelgenai/propagation"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// planted are secrets of every sort, and a word that no redactor knows: where it turns
// up, text was written.
var planted = []string{
	"jane.doe@example.com", "sk-proj-Zx8Q2mN4vB7cL1kJ9hG6fD3sA5pO0iUy", "AKIAIOSFODNN7EXAMPLE",
	"q1W2e3R4t5Y6u7I8o9P0aSdFgHjKlZxC", "4111111111111111", "5500 0000 0000 0004",
	"f8Kq2ZtR7wXb1NvM4cLp9HsJ6dGy3TaE5uQoW0iB", "MIIEpAIBAAKCAQEA75",
}

const canary = "xylophone"

func secretText() string {
	return canary + " " + strings.Join(planted[:3], ", ") + " Bearer " + planted[3] + " " + planted[4] + " / " + planted[5] + " " + planted[6] +
		"\n-----BEGIN PRIVATE KEY-----\n" + planted[7] + "\n-----END PRIVATE KEY-----"
}

// secretInput has secrets wherever an input has a place for text.
func secretInput() genaitrace.Input {
	s := secretText()
	escaped := fmt.Sprintf(`{"to":"jane.doe\u0040example.com","n":%s,"%s":[%q]}`, planted[4], planted[0], s)
	return genaitrace.Input{
		Instructions: genaiconv.Parts{genaiconv.TextPart{Content: s}},
		Messages: []genaiconv.Message{
			{Role: genaiconv.RoleUser, Name: planted[0], Parts: genaiconv.Parts{genaiconv.TextPart{Content: s}, genaiconv.ReasoningPart{Content: s}}},
			{Role: genaiconv.Role(planted[1]), Parts: genaiconv.Parts{
				genaiconv.ToolCallPart{ID: planted[2], Name: planted[1], Arguments: escaped},
				genaiconv.ToolCallResponsePart{ID: planted[2], Response: map[string]any{planted[0]: s, "n": 4111111111111111}},
				genaiconv.ServerToolCallPart{Name: planted[1], Call: map[string]any{"q": s}},
				genaiconv.BlobPart{Modality: genaiconv.ModalityImage, Content: []byte(s)},
				genaiconv.FilePart{FileID: planted[1]}, genaiconv.URIPart{URI: "https://x/?mail=" + planted[0]},
				genaiconv.CompactionPart{Content: s}, genaiconv.GenericPart{GenericType: planted[1], Fields: map[string]any{planted[0]: s}},
			}},
		},
		Tools: []genaiconv.ToolDefinition{{Type: planted[1], Name: planted[1], Description: s, Parameters: map[string]any{"default": s}}},
	}
}

// secretWrappers are all ways to record something, with secrets wherever they take text.
// send gets the contexts that a service would call others with.
func secretWrappers(tr *genaitrace.Tracer, send func(context.Context)) map[string]func(ctx context.Context) {
	in := secretInput()
	failure := errors.New(secretText())
	req := genaitrace.Request{Provider: "vllm", Model: "m", Stream: true}
	fill := func(ctx context.Context) {
		call := genaitrace.CallFromContext(ctx)
		call.SetPrompt(tr.DescribePrompt(genaitrace.PromptText{Messages: in.Messages, Rendered: secretText(), Tokens: 9}))
		call.SetInput(in)
		call.SetOutput(in.Messages)
		send(ctx)
	}
	items := func(n int, err error) iter.Seq2[string, error] {
		return func(yield func(string, error) bool) {
			for range n {
				if !yield(secretText(), nil) {
					return
				}
			}
			if err != nil {
				yield(secretText(), err)
			}
		}
	}
	observe := func(*genaitrace.Call, string) genaitrace.ChunkKind { return genaitrace.Visible }
	return map[string]func(context.Context){
		"call": func(ctx context.Context) {
			ctx, call := tr.StartCall(ctx, req)
			fill(ctx)
			call.Fail(failure)
		},
		"inference": func(ctx context.Context) {
			ctx, inf := tr.StartInference(ctx, req)
			inf.SetPrompt(tr.DescribePrompt(genaitrace.PromptText{Messages: in.Messages}))
			inf.SetInput(in)
			inf.SetOutput(in.Messages)
			send(ctx)
			_, decode := inf.StartDecode(ctx)
			decode.Token()
			decode.Fail(failure)
			inf.Fail(failure)
		},
		"do, failed": func(ctx context.Context) {
			_, _ = genaitrace.Do(ctx, tr, req, func(ctx context.Context) (int, error) { fill(ctx); return 0, failure })
		},
		"do, panic": func(ctx context.Context) {
			defer func() { _ = recover() }()
			_, _ = genaitrace.Do(ctx, tr, req, func(ctx context.Context) (int, error) { fill(ctx); panic(secretText()) })
		},
		"range": func(ctx context.Context) {
			ctx, call := tr.StartCall(ctx, req)
			fill(ctx)
			for range genaitrace.RangeChunks(call, items(3, nil), observe) {
			}
		},
		"range, failed": func(ctx context.Context) {
			ctx, call := tr.StartCall(ctx, req)
			fill(ctx)
			for range genaitrace.RangeChunks(call, items(3, failure), observe) {
			}
		},
		"receive, abandoned": func(ctx context.Context) {
			ctx, call := tr.StartCall(ctx, req)
			fill(ctx)
			next, stop := genaitrace.ReceiveChunks(call, func() (string, error) { return secretText(), nil }, nil)
			_, _ = next()
			stop()
		},
		"read": func(ctx context.Context) {
			ctx, call := tr.StartCall(ctx, req)
			fill(ctx)
			body := io.NopCloser(strings.NewReader(secretText()))
			reader := genaitrace.ReadChunks(call, body, nil)
			_, _ = io.ReadAll(reader)
			_ = reader.Close()
		},
		"tokens": func(ctx context.Context) {
			ctx, inf := tr.StartInference(ctx, req)
			inf.SetInput(in)
			_, decode := inf.StartDecode(ctx)
			for range genaitrace.RangeTokens(decode, items(3, failure), nil) {
			}
			inf.Fail(failure)
		},
		"tool": func(ctx context.Context) {
			ctx, tool := tr.StartTool(ctx, genaitrace.ToolCall{Name: "mail", CallID: "call_1"})
			tool.SetDescription(secretText())
			tool.SetArguments(fmt.Sprintf(`{"to":"jane.doe\u0040example.com","text":%q}`, secretText()))
			tool.SetResult(secretText())
			send(ctx)
			tool.Fail(failure)
		},
		"tool, panic": func(ctx context.Context) {
			defer func() { _ = recover() }()
			var err error
			_, tool := tr.StartTool(ctx, genaitrace.ToolCall{Name: "mail"})
			defer tool.EndErr(&err)
			panic(secretText())
		},
		"retrieval": func(ctx context.Context) {
			_, search := tr.StartRetrieval(ctx, genaitrace.RetrievalRequest{DataSource: "docs", QueryHash: secretText()})
			search.SetQuery(secretText())
			search.Fail(failure)
		},
		"template": func(ctx context.Context) {
			_, render := tr.StartTemplate(ctx, genaitrace.Template{Name: "support"})
			facts := tr.DescribePrompt(genaitrace.PromptText{Messages: in.Messages})
			facts.Hash = secretText() // no hash: dropped
			render.SetPrompt(facts)
			render.Fail(failure)
		},
		"judgements": func(ctx context.Context) {
			_, evaluation := tr.StartEvaluation(ctx, genaitrace.EvaluationRequest{Name: "Relevance"})
			evaluation.SetLabel("pass")
			evaluation.SetExplanation(secretText())
			evaluation.End()
			tr.RecordEvaluation(ctx, genaitrace.EvaluationResult{Name: "Relevance", Explanation: secretText(), Err: failure})
			tr.RecordVerdict(ctx, genaitrace.Verdict{Type: semconv.GenAISignalTypeSafety, Found: true, Explanation: secretText()})
			tr.RecordSignal(ctx, genaitrace.Signal{Type: semconv.GenAISignalTypeRewardScore, Metadata: secretText()})
		},
		"gateway": func(ctx context.Context) {
			_, gateway := tr.StartGateway(ctx, genaitrace.GatewayRequest{Name: "POST /v1/chat/completions"})
			gateway.SetInput(in)
			gateway.SetOutput(in.Messages)
			gateway.Fail(failure)
		},
	}
}

// noSecrets is a contract of nothing but what must not be written.
const noSecrets = `
contract: genai.observability/v1
name: no secrets
forbid: {values: ["builtin:email", "builtin:api-key", "builtin:bearer", "builtin:card", "builtin:private-key"]}
`

// Secrets are looked for in everything that finished: spans, events, links, log records,
// metrics and exemplars, baggage, and what goes to the next service.
func TestSecretsAreNowhere(t *testing.T) {
	forbidden, err := contract.Parse("secrets.yaml", []byte(noSecrets))
	require.NoError(t, err)
	for _, level := range []content.Level{content.Off, content.Hash, content.Redacted, content.Full} {
		for name := range allSecrets(nil, nil) {
			t.Run(level.String()+"/"+name, func(t *testing.T) {
				errs := handled(t)
				tr, captured := observed(t, genaitrace.WithContent(level), genaitrace.WithContentPlace(content.OnEventsAndSpans), genaitrace.WithStackTraces())
				ctx, gateway := tr.StartGateway(t.Context(), genaitrace.GatewayRequest{Name: "POST /ask"})
				ctx = propagation.ContextWithHop(ctx, "ask")
				var sent []string
				allSecrets(tr, func(ctx context.Context) {
					headers := otelpropagation.MapCarrier{}
					propagation.New(propagation.WithPromptChain()).Inject(ctx, headers)
					assert.NotEmpty(t, headers)
					sent = append(sent, fmt.Sprint(headers, baggage.FromContext(ctx)))
				})[name](ctx)
				gateway.End()
				got := captured()
				got.Logs = append(got.Logs, &capture.Log{EventName: strings.Join(sent, "\n")})
				require.NotEmpty(t, got.Spans)
				for _, err := range errs() {
					assert.NotContains(t, err.Error(), canary, "what is reported")
				}

				report := forbidden.Check(got)
				switch level {
				case content.Off, content.Hash:
					assertNowhere(t, got, append([]string{canary}, planted...)...)
					assert.Empty(t, report.Findings)
				case content.Redacted:
					assertNowhere(t, got, planted...)
					assert.Empty(t, report.Findings)
				case content.Full: // the test can fail
					if !withoutContent[name] {
						assert.NotEmpty(t, report.Findings)
						assert.Contains(t, everything(got), planted[0])
						assert.Contains(t, everything(got), canary)
					}
				}
			})
		}
	}
}
