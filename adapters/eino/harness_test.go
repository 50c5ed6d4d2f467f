package genaieino_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cloudwego/eino-ext/components/model/openai"
	"github.com/cloudwego/eino/callbacks"
	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/components/tool/utils"
	"github.com/cloudwego/eino/schema"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	genaieino "github.com/genaitrace/otelgenai/adapters/eino"
	"github.com/genaitrace/otelgenai/capture"
	"github.com/genaitrace/otelgenai/contract"
	"github.com/genaitrace/otelgenai/genaitrace"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A recording is a Tracer on the real SDK, and what it recorded.
type recording struct {
	*capture.Recorder

	t      testing.TB
	tracer *genaitrace.Tracer
}

// record makes a Tracer. At the end of the test each span must have ended.
func record(t testing.TB, opts ...genaitrace.Option) *recording {
	t.Helper()
	r := &recording{Recorder: capture.NewRecorder(capture.WithoutSource()), t: t}
	r.tracer = genaitrace.New(append([]genaitrace.Option{
		genaitrace.WithTracerProvider(r.TracerProvider()), genaitrace.WithMeterProvider(r.MeterProvider()),
		genaitrace.WithLoggerProvider(r.LoggerProvider()),
	}, opts...)...)
	t.Cleanup(func() {
		for _, s := range r.captured().Spans {
			assert.False(t, s.End.IsZero(), "span %q has not ended", s.Name)
		}
		if t.Failed() {
			t.Logf("seen:\n%s", r.tree())
		}
	})
	return r
}

func (r *recording) handler(opts ...genaieino.Option) callbacks.Handler {
	return genaieino.NewHandler(r.tracer, opts...)
}

func (r *recording) captured() *capture.Capture {
	got, err := r.Capture(context.Background())
	require.NoError(r.t, err)
	return got
}

// tree is what was recorded, with the keys of all attributes, and values that do not
// change from run to run.
func (r *recording) tree() string {
	var b strings.Builder
	require.NoError(r.t, r.captured().WriteTree(&b, capture.TreeOptions{
		Attributes: []string{"*"}, Events: true,
		Values: []string{
			"gen_ai.*.name", "gen_ai.usage.*", "ai.tokens.*", "gen_ai.request.*", "gen_ai.response.model",
			"gen_ai.response.finish_reasons", "gen_ai.retrieval.*", "gen_ai.data_source.id", "genai.retriever.hit_count",
			"genai.stream.terminal", "genai.tool.status", "error.type", "gen_ai.tool.call.id", "genai.embeddings.input_count",
		},
	}))
	return b.String()
}

// holds checks what was recorded against testdata/contract.yaml.
func (r *recording) holds() {
	r.t.Helper()
	c, err := contract.Load(filepath.Join("testdata", "contract.yaml"))
	require.NoError(r.t, err)
	if report := c.Check(r.captured()); report.Failed(false) {
		var text strings.Builder
		require.NoError(r.t, report.WriteText(&text))
		r.t.Error(text.String())
	}
}

// span returns the only span of that name.
func (r *recording) span(name string) *capture.Span {
	r.t.Helper()
	found := r.captured().Named(name)
	require.Len(r.t, found, 1, "spans named %q in\n%s", name, r.captured())
	return found[0]
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
		return
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "run the test with -update to write it")
	assert.Equal(t, string(want), got)
}

// sorted is a tree whose siblings stand in the order of their text, for those that start
// side by side.
func sorted(tree string) string {
	return strings.Join(sortSpans(strings.Split(strings.TrimRight(tree, "\n"), "\n"), 0), "\n") + "\n"
}

// sortSpans sorts spans that stand at an indentation; below each are its attributes, and
// then its children, which stand two spaces further in.
func sortSpans(lines []string, indent int) []string {
	at := func(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }
	var spans [][]string
	for _, line := range lines {
		if at(line) == indent {
			spans = append(spans, nil)
		}
		spans[len(spans)-1] = append(spans[len(spans)-1], line)
	}
	for i, span := range spans {
		if first := slices.IndexFunc(span, func(line string) bool { return at(line) == indent+2 }); first > 0 {
			spans[i] = append(span[:first:first], sortSpans(span[first:], indent+2)...)
		}
	}
	slices.SortStableFunc(spans, slices.Compare)
	return slices.Concat(spans...)
}

// A chatRequest is what the server reads of a request.
type chatRequest struct {
	Stream   bool
	Messages []struct {
		Role, Content string
	}
	Tools []struct {
		Function struct{ Name string }
	}
	Input []string // of embeddings
}

const usage = `{"prompt_tokens":12,"completion_tokens":5,"total_tokens":17,` +
	`"prompt_tokens_details":{"cached_tokens":8},"completion_tokens_details":{"reasoning_tokens":2}}`

// answers are the pieces of the answers of the server: tools are asked for once, two at a
// time.
func (q *chatRequest) answer() (pieces []string, reason string) {
	last := q.Messages[len(q.Messages)-1]
	if len(q.Tools) == 0 || last.Role == "tool" {
		return []string{`{"role":"assistant","reasoning_content":"Hm. "}`, `{"content":"It is "}`, `{"content":"sunny."}`}, "stop"
	}
	for i, city := range []string{"Paris", "Rome"} {
		pieces = append(pieces, fmt.Sprintf(`{"role":"assistant","tool_calls":[{"index":%d,"id":"call_%d","type":"function",`+
			`"function":{"name":%q,"arguments":"{\"city\":\"%s\"}"}}]}`, i, i+1, q.Tools[0].Function.Name, city))
	}
	return pieces, "tool_calls"
}

// newServer serves the API of OpenAI on loopback. A message can ask it to fail.
func newServer(t testing.TB) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, r *http.Request) {
		var q chatRequest
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		q.serve(w)
	})
	mux.HandleFunc("POST /v1/embeddings", func(w http.ResponseWriter, r *http.Request) {
		var q chatRequest
		_ = json.NewDecoder(r.Body).Decode(&q)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"object":"list","model":"embed-1","data":[`)
		for i := range q.Input {
			fmt.Fprintf(w, `%s{"object":"embedding","index":%d,"embedding":[0.5,0.25]}`, strings.Repeat(",", min(i, 1)), i)
		}
		fmt.Fprint(w, `],"usage":{"prompt_tokens":7,"total_tokens":7}}`)
	})
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	return srv.URL + "/v1"
}

func (q *chatRequest) serve(w http.ResponseWriter) {
	wish := q.Messages[len(q.Messages)-1].Content
	if wish == "refuse" {
		http.Error(w, `{"error":{"message":"secret prompt","type":"server_error"}}`, http.StatusServiceUnavailable)
		return
	}
	pieces, reason := q.answer()
	if !q.Stream {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"id":"r1","object":"chat.completion","model":"gpt-x-2026","choices":[{"index":0,"message":%s,"finish_reason":%q}],"usage":%s}`,
			merged(pieces), reason, usage)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	event := func(choices, used string) {
		fmt.Fprintf(w, "data: {\"id\":\"r1\",\"object\":\"chat.completion.chunk\",\"model\":\"gpt-x-2026\",\"choices\":[%s],\"usage\":%s}\n\n", choices, used)
		w.(http.Flusher).Flush()
	}
	for i, piece := range pieces {
		event(fmt.Sprintf(`{"index":0,"delta":%s,"finish_reason":null}`, piece), "null")
		if wish == "break" && i == 1 {
			panic(http.ErrAbortHandler)
		}
	}
	event(fmt.Sprintf(`{"index":0,"delta":{},"finish_reason":%q}`, reason), "null")
	event("", usage)
	fmt.Fprint(w, "data: [DONE]\n\n")
}

// merged is the message that the pieces make.
func merged(pieces []string) string {
	whole := map[string]any{}
	for _, piece := range pieces {
		var fields map[string]any
		_ = json.Unmarshal([]byte(piece), &fields)
		for key, value := range fields {
			switch v := value.(type) {
			case []any:
				before, _ := whole[key].([]any)
				whole[key] = append(before, v...)
			case string:
				before, _ := whole[key].(string)
				if key == "role" {
					before = ""
				}
				whole[key] = before + v
			}
		}
	}
	text, _ := json.Marshal(whole)
	return string(text)
}

// newModel is the model of Eino's extensions, with a client of its own.
func newModel(t testing.TB, url string, transport http.RoundTripper) *openai.ChatModel {
	t.Helper()
	if transport == nil {
		own := &http.Transport{}
		t.Cleanup(own.CloseIdleConnections)
		transport = own
	}
	limit, heat := 64, float32(0.7)
	m, err := openai.NewChatModel(t.Context(), &openai.ChatModelConfig{
		APIKey: "k", BaseURL: url, Model: "gpt-x", MaxTokens: &limit, Temperature: &heat, HTTPClient: &http.Client{Transport: transport},
	})
	require.NoError(t, err)
	return m
}

type place struct {
	City string `json:"city"`
}

// newTool is a tool that does what handle does.
func newTool(t testing.TB, name string, handle func(context.Context, place) (string, error)) tool.InvokableTool {
	t.Helper()
	made, err := utils.InferTool(name, "about a city", handle)
	require.NoError(t, err)
	return made
}

func sunny(context.Context, place) (string, error) { return "sunny", nil }

func ask(text string) []*schema.Message { return []*schema.Message{schema.UserMessage(text)} }
