package genaihttp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/genaitrace/otelgenai/middleware/genaihttp"
	"github.com/genaitrace/otelgenai/middleware/wire"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// A call of each API is recognised by its path, which may name the model and say
// that the answer is streamed.
func TestTransportUnderstandsEachAPI(t *testing.T) {
	for _, tt := range []struct {
		fixture, path, body string
		name                string
		provider            string
	}{
		{"anthropic_basic", "/v1/messages", `{"model":"claude-fx","stream":true,"max_tokens":9}`, "chat claude-fx", "anthropic"},
		{"responses_reasoning_text", "/v1/responses", `{"model":"gpt-fx","stream":true}`, "chat gpt-fx", "openai"},
		{"gemini_thoughts", "/v1beta/models/gemini-fx:streamGenerateContent", `{"contents":[]}`, "generate_content gemini-fx", "gcp.gemini"},
		{"bedrock_converse_stream", "/model/nova-fx/converse-stream", `{"messages":[]}`, "chat nova-fx", "aws.bedrock"},
		{"ollama_chat", "/api/chat", `{"model":"llama-fx"}`, "chat llama-fx", "ollama"},
		{"llamacpp_native_completion", "/completion", `{"prompt":"x","stream":true}`, "text_completion", "llama.cpp"},
		{"tgi_stream_details", "/generate_stream", `{"inputs":"x"}`, "text_completion", "tgi"},
		{"triton_generate_stream", "/v2/models/ensemble/generate_stream", `{"text_input":"x"}`, "text_completion ensemble", "triton"},
		{"tgi_generate_headers", "/generate", `{"inputs":"x"}`, "text_completion", ""},
	} {
		t.Run(tt.fixture, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := fixtureNamed(t, tt.fixture)
				o := newTelemetry(t)
				base, stop := serve(&f)
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://engine.internal"+tt.path, strings.NewReader(tt.body))
				require.NoError(t, err)
				resp, err := genaihttp.NewTransport(base, o.options()...).RoundTrip(req)
				require.NoError(t, err)
				got, err := readAll(resp)
				require.NoError(t, err)
				require.NoError(t, resp.Body.Close())
				stop()
				assert.Equal(t, string(f.body), got, "the caller's bytes")
				span := o.onlyCall()
				assert.Equal(t, tt.name, span.Name())
				attrs := attributes(span)
				if tt.provider == "" {
					assert.NotContains(t, attrs, genaiconv.ProviderNameKey)
				} else {
					assert.Equal(t, tt.provider, attrs[genaiconv.ProviderNameKey])
				}
				if f.Expect.FirstChunkMs != nil {
					assert.Equal(t, true, attrs[genaiconv.RequestStreamKey])
				}
				checkAnswer(t, &f, o)
			})
		})
	}
}

// A gateway's handler reads what it writes in the same dialects.
func TestHandlerUnderstandsEachFraming(t *testing.T) {
	for _, name := range []string{"anthropic_thinking_tool", "bedrock_converse_stream", "ollama_thinking_tool", "gemini_thoughts", "responses_function_call"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := fixtureNamed(t, name)
				o := newTelemetry(t)
				w := httptest.NewRecorder()
				genaihttp.NewHandler(&f, o.options()...).ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/v1/chat/completions", http.NoBody))
				assert.True(t, bytes.Equal(f.body, w.Body.Bytes()))
				attrs := attributes(o.only())
				assert.Equal(t, *f.Expect.FirstTokenMs, attrs[semconv.LLMTTFTMsKey])
				assert.Equal(t, *f.Expect.FirstChunkMs, attrs[semconv.AIResponseDelayMsKey])
				assert.Equal(t, f.Expect.DataEvents, attrs[semconv.GenAIChunkCountKey])
				assert.Equal(t, f.Expect.Terminal, attrs[semconv.GenAIStreamTerminalKey])
				assert.NotContains(t, attrs, genaiconv.UsageInputTokensKey, "usage belongs to the call")
			})
		})
	}
}

func fixtureNamed(t *testing.T, name string) fixture {
	t.Helper()
	for _, f := range loadFixtures(t) {
		if f.Name == name {
			return f
		}
	}
	t.Fatalf("no fixture %s", name)
	return fixture{}
}

// house is a dialect that this module does not know.
type house struct{}

func (house) Read(a *wire.Answer, e wire.Event) {
	var event struct{ Tok, End string }
	if json.Unmarshal(e.Data, &event) != nil {
		return
	}
	if event.Tok != "" {
		a.Note(wire.KindContent)
	}
	if event.End != "" {
		a.SetFinish(0, event.End)
		a.Note(wire.KindDone)
	}
}

func TestAnEndpointOfOnesOwnIsTraced(t *testing.T) {
	endpoint := genaihttp.WithEndpoint(wire.Endpoint{Path: "/lm/*/run", Provider: "house", Dialect: house{}})
	const stream = "data: {\"tok\":\"hi\"}\n\ndata: {\"end\":\"length\"}\n\n"
	o := newTelemetry(t)
	transport := genaihttp.NewTransport(answers(200, "text/event-stream", stream), append(o.options(), endpoint)...)
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, "http://engine/lm/m7/run", strings.NewReader(`{"stream":true}`))
	require.NoError(t, err)
	resp, err := transport.RoundTrip(req)
	require.NoError(t, err)
	_, err = io.Copy(io.Discard, resp.Body)
	require.NoError(t, err)
	span := o.only()
	assert.Equal(t, "chat m7", span.Name())
	attrs := attributes(span)
	assert.Equal(t, "house", attrs[genaiconv.ProviderNameKey])
	assert.Equal(t, []string{"length"}, attrs[genaiconv.ResponseFinishReasonsKey])
	checkEnding(t, span, "done", "")
	assert.EqualValues(t, 1, attrs[semconv.GenAIChunkOutputCountKey])

	o = newTelemetry(t)
	handler := genaihttp.NewHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, stream)
	}), append(o.options(), endpoint)...)
	handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/lm/m7/run", http.NoBody))
	checkEnding(t, o.only(), "done", "")
	assert.EqualValues(t, 1, attributes(o.only())[semconv.GenAIChunkOutputCountKey])
}
