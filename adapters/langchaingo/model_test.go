package genailangchain_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tmc/langchaingo/llms"
	"go.opentelemetry.io/otel/attribute"
	lognoop "go.opentelemetry.io/otel/log/noop"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	genailangchain "github.com/genaitrace/otelgenai/adapters/langchaingo"
	"github.com/genaitrace/otelgenai/genaitrace"
)

func keyOf(key string) attribute.Key { return attribute.Key(key) }

// Whether or not the transport of genaihttp sees the bytes too, there is one span, and
// the tokens are counted once.
func TestACallIsOneSpanWithTheTransportAndWithout(t *testing.T) {
	const facts = "gen_ai.provider.name gen_ai.request.model gen_ai.request.stream gen_ai.request.temperature gen_ai.request.max_tokens gen_ai.response.finish_reasons gen_ai.usage.input_tokens gen_ai.usage.output_tokens gen_ai.usage.reasoning.output_tokens genai.stream.terminal genai.chunk.count genai.chunk.output_count ai.tokens.input"
	for _, tt := range []struct {
		name    string
		answer  http.HandlerFunc
		options []llms.CallOption
		want    string
		chunks  [2]string // without the transport, and with it
	}{
		{
			"in one piece", whole("Hello world"), nil,
			"chat gpt-4.1 (client) gen_ai.provider.name=openai gen_ai.request.model=gpt-4.1 gen_ai.request.temperature=0 gen_ai.request.max_tokens=64 gen_ai.response.finish_reasons=[stop] gen_ai.usage.input_tokens=12 gen_ai.usage.output_tokens=7 gen_ai.usage.reasoning.output_tokens=3",
			[2]string{},
		},
		{
			"streamed", stream(nil, complete...), []llms.CallOption{streaming(ignore)},
			"chat gpt-4.1 (client) gen_ai.provider.name=openai gen_ai.request.model=gpt-4.1 gen_ai.request.stream=true gen_ai.request.temperature=0 gen_ai.request.max_tokens=64 gen_ai.response.finish_reasons=[stop] gen_ai.usage.input_tokens=12 gen_ai.usage.output_tokens=7 gen_ai.usage.reasoning.output_tokens=3",
			[2]string{" genai.stream.terminal=finish genai.chunk.count=5 genai.chunk.output_count=3", " genai.stream.terminal=done genai.chunk.count=6 genai.chunk.output_count=3"},
		},
	} {
		for i, with := range []string{"without the transport", "with the transport"} {
			t.Run(tt.name+" "+with, func(t *testing.T) {
				r := record()
				server := serve(t, tt.answer)
				client := plainClient()
				if i == 1 {
					client = r.transport()
				}
				model := genailangchain.WrapModel(server.openai(t, client), r.Tracer, request)
				answer, err := model.GenerateContent(t.Context(), human("Hi"), append(tt.options, llms.WithMaxTokens(64), llms.WithTemperature(0))...)
				require.NoError(t, err)
				assert.Equal(t, "Hello world", answer.Choices[0].Content)
				assert.Equal(t, tt.want+tt.chunks[i]+"\n", r.tree(strings.Fields(facts)...))
				assert.Equal(t, map[string]uint64{"openai": 1}, r.points(t, "gen_ai.client.inference.duration", "gen_ai.provider.name"))
				if i == 1 {
					assert.Equal(t, "chatcmpl-1", attributeOf(r.one(t), "gen_ai.response.id"), "what the transport alone knows")
				}
				if len(tt.options) > 0 {
					ttft, first := attributeOf(r.one(t), "llm.ttft_ms").(float64), attributeOf(r.one(t), "genai.first_visible_ms").(float64)
					assert.GreaterOrEqual(t, first, ttft, "reasoning comes before the answer")
				}
				assert.Len(t, server.requests, 1)
			})
		}
	}
}

// A model of which a test says what it does.
type fake func(ctx context.Context, o llms.CallOptions) (*llms.ContentResponse, error)

func (f fake) GenerateContent(ctx context.Context, _ []llms.MessageContent, options ...llms.CallOption) (*llms.ContentResponse, error) {
	var o llms.CallOptions
	for _, option := range options {
		option(&o)
	}
	return f(ctx, o)
}

func (f fake) Call(ctx context.Context, prompt string, options ...llms.CallOption) (string, error) {
	return llms.GenerateFromSinglePrompt(ctx, f, prompt, options...)
}

func answer(text string) *llms.ContentResponse {
	return &llms.ContentResponse{Choices: []*llms.ContentChoice{{Content: text, StopReason: "stop"}}}
}

// TestTheTimesAreThoseOfTheChunks plays clients that call one streaming function, or
// both for one chunk, as those of LangChainGo do.
func TestTheTimesAreThoseOfTheChunks(t *testing.T) {
	const tool = `[{"id":"c","type":"function","function":{"name":"f","arguments":"{"}}]`
	type chunk struct{ reasoning, text string }
	chunks := []chunk{{"", ""}, {"hm", ""}, {"so", ""}, {"", "Hello"}, {"", " world"}, {"", ""}}
	textOnly := func(context.Context, []byte) error { return nil }
	both := func(context.Context, []byte, []byte) error { return nil }
	type times struct {
		ttft, visible   any
		chunks, outputs int64
	}
	for _, tt := range []struct {
		name    string
		options []llms.CallOption
		tells   string // what the client calls: text, both, either
		chunks  []chunk
		want    times
	}{
		{"text alone", []llms.CallOption{llms.WithStreamingFunc(textOnly)}, "text", []chunk{{"", ""}, {"", "Hello"}, {"", ""}}, times{20.0, 20.0, 3, 1}},
		{"both functions of each chunk, text wanted", []llms.CallOption{llms.WithStreamingFunc(textOnly)}, "both", chunks, times{20.0, 40.0, 6, 4}},
		{"both functions, reasoning wanted", []llms.CallOption{llms.WithStreamingReasoningFunc(both)}, "both", chunks, times{20.0, 40.0, 6, 4}},
		{"both functions, both wanted", []llms.CallOption{llms.WithStreamingFunc(textOnly), llms.WithStreamingReasoningFunc(both)}, "both", chunks, times{20.0, 40.0, 6, 4}},
		{"the function that fits, text wanted", []llms.CallOption{llms.WithStreamingFunc(textOnly)}, "either", chunks[1:5], times{10.0, 30.0, 4, 4}},
		{"the function that fits, both wanted", []llms.CallOption{llms.WithStreamingFunc(textOnly), llms.WithStreamingReasoningFunc(both)}, "either", chunks[1:5], times{10.0, 30.0, 4, 4}},
		{"the call of a tool is no answer text", []llms.CallOption{llms.WithStreamingFunc(textOnly), llms.WithTools([]llms.Tool{{}})}, "both", []chunk{{"", tool}, {"", "Hello"}}, times{10.0, 20.0, 2, 2}},
		{"nor is one of the old kind", []llms.CallOption{llms.WithStreamingFunc(textOnly), llms.WithFunctions([]llms.FunctionDefinition{{}})}, "text", []chunk{{"", `{"name":"f","arguments":"{}"}`}, {"", "Hello"}}, times{10.0, 20.0, 2, 2}},
		{"where no tool was offered it is text", []llms.CallOption{llms.WithStreamingFunc(textOnly)}, "both", []chunk{{"", tool}}, times{10.0, 10.0, 1, 1}},
		{"text like JSON", []llms.CallOption{llms.WithStreamingFunc(textOnly), llms.WithTools([]llms.Tool{{}})}, "both", []chunk{{"hm", ""}, {"", `[{"a":1}]`}, {"", `{"name":1}`}}, times{10.0, 20.0, 3, 3}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := record()
				model := genailangchain.WrapModel(fake(func(ctx context.Context, o llms.CallOptions) (*llms.ContentResponse, error) {
					for _, c := range tt.chunks {
						time.Sleep(10 * time.Millisecond)
						if o.StreamingFunc != nil && (tt.tells != "either" || c.text != "") {
							require.NoError(t, o.StreamingFunc(ctx, []byte(c.text)))
						}
						if o.StreamingReasoningFunc != nil && (tt.tells == "both" || tt.tells == "either" && c.reasoning != "") {
							require.NoError(t, o.StreamingReasoningFunc(ctx, []byte(c.reasoning), []byte(c.text)))
						}
					}
					return answer("Hello world"), nil
				}), r.Tracer, request)
				_, err := model.GenerateContent(t.Context(), human("Hi"), tt.options...)
				require.NoError(t, err)
				s := r.one(t)
				got := times{attributeOf(s, "llm.ttft_ms"), attributeOf(s, "genai.first_visible_ms"), attributeOf(s, "genai.chunk.count").(int64), attributeOf(s, "genai.chunk.output_count").(int64)}
				assert.Equal(t, tt.want, got)
			})
		})
	}
}

func TestWhatTheOptionsSayIsRecorded(t *testing.T) {
	for _, tt := range []struct {
		name    string
		options []llms.CallOption
		want    map[string]any
		absent  []string
	}{
		{"nothing", nil, map[string]any{"gen_ai.request.model": "gpt-4.1"}, []string{
			"gen_ai.request.temperature", "gen_ai.request.top_p", "gen_ai.request.top_k", "gen_ai.request.seed", "gen_ai.request.max_tokens",
			"gen_ai.request.stop_sequences", "gen_ai.request.frequency_penalty", "gen_ai.request.presence_penalty", "genai.request.tool_count", "gen_ai.request.stream", "gen_ai.output.type",
		}},
		{"everything", []llms.CallOption{
			llms.WithModel("o4"), llms.WithTemperature(.7), llms.WithTopP(.9), llms.WithTopK(40), llms.WithSeed(7), llms.WithMaxTokens(64), llms.WithN(3),
			llms.WithStopWords([]string{"\nObservation:"}), llms.WithFrequencyPenalty(.5), llms.WithPresencePenalty(-.5), llms.WithJSONMode(), streaming(ignore),
			llms.WithTools([]llms.Tool{{Type: "function"}}), llms.WithFunctions([]llms.FunctionDefinition{{}}),
		}, map[string]any{
			"gen_ai.request.model": "o4", "gen_ai.request.temperature": .7, "gen_ai.request.top_p": .9, "gen_ai.request.top_k": int64(40), "gen_ai.request.seed": int64(7),
			"gen_ai.request.max_tokens": int64(64), "gen_ai.request.choice.count": int64(3), "gen_ai.request.stop_sequences": []string{"\nObservation:"},
			"gen_ai.request.frequency_penalty": .5, "gen_ai.request.presence_penalty": -.5, "gen_ai.output.type": "json", "gen_ai.request.stream": true, "genai.request.tool_count": int64(2),
		}, nil},
		{"zeros that are meant", []llms.CallOption{llms.WithTemperature(0), llms.WithTopP(0), llms.WithSeed(0), llms.WithMaxTokens(0), llms.WithTopK(0)},
			map[string]any{"gen_ai.request.temperature": 0.0, "gen_ai.request.top_p": 0.0, "gen_ai.request.seed": int64(0)}, []string{"gen_ai.request.max_tokens", "gen_ai.request.top_k"}},
		{"all at once, zeros unknown", []llms.CallOption{llms.WithOptions(llms.CallOptions{TopP: .5, MaxTokens: 9})},
			map[string]any{"gen_ai.request.top_p": .5, "gen_ai.request.max_tokens": int64(9)}, []string{"gen_ai.request.temperature", "gen_ai.request.seed", "gen_ai.request.top_k"}},
		{"no sense", []llms.CallOption{llms.WithMaxTokens(-1), llms.WithTopK(-1), llms.WithN(-1), llms.WithStopWords(make([]string, 1000))},
			nil, []string{"gen_ai.request.max_tokens", "gen_ai.request.top_k", "gen_ai.request.choice.count"}},
		{"candidates", []llms.CallOption{llms.WithCandidateCount(2), llms.WithResponseMIMEType("text/plain")},
			map[string]any{"gen_ai.request.choice.count": int64(2), "gen_ai.output.type": "text"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := record()
			var seen llms.CallOptions
			model := genailangchain.WrapModel(fake(func(_ context.Context, o llms.CallOptions) (*llms.ContentResponse, error) {
				seen = o
				return answer(""), nil
			}), r.Tracer, request)
			_, err := model.GenerateContent(t.Context(), human("Hi"), tt.options...)
			require.NoError(t, err)
			for key, want := range tt.want {
				assert.Equal(t, want, attributeOf(r.one(t), key), key)
			}
			for _, key := range tt.absent {
				assert.Nil(t, attributeOf(r.one(t), key), key)
			}
			var given llms.CallOptions
			for _, option := range tt.options {
				option(&given)
			}
			seen.StreamingFunc, given.StreamingFunc, seen.StreamingReasoningFunc = nil, nil, nil
			assert.Equal(t, given, seen, "the model gets the options as they were given")
		})
	}
}

// The model behaves as it did, whatever it does.
func TestTheModelPassesUnchanged(t *testing.T) {
	r := record()
	assert.Nil(t, genailangchain.WrapModel(nil, r.Tracer, request))

	inner := fake(func(_ context.Context, o llms.CallOptions) (*llms.ContentResponse, error) {
		assert.Nil(t, o.StreamingFunc, "nobody asked for a stream")
		assert.Nil(t, o.StreamingReasoningFunc)
		return nil, io.EOF
	})
	for _, tracer := range []*genaitrace.Tracer{r.Tracer, nil} {
		model := genailangchain.WrapModel(inner, tracer, request)
		_, err := model.GenerateContent(t.Context(), nil)
		assert.Equal(t, io.EOF, err)
		_, err = model.Call(t.Context(), "Hi") //nolint:staticcheck // it is recorded too
		assert.Equal(t, io.EOF, err)
		assert.False(t, llms.SupportsReasoningModel(model))
	}
	for _, s := range r.spans.Ended() {
		assert.Equal(t, "Error", s.Status().Code.String(), "an EOF is no good end of a call")
	}
	assert.Len(t, r.spans.Ended(), 2)
	server := serve(t, whole("Hello"))
	reasoning := genailangchain.WrapModel(server.openai(t, plainClient()), r.Tracer, request)
	_, ok := reasoning.(llms.ReasoningModel)
	assert.True(t, ok)
	text, err := reasoning.Call(t.Context(), "Hi") //nolint:staticcheck // it is recorded too
	require.NoError(t, err)
	assert.Equal(t, "Hello", text)

	odd := genailangchain.WrapModel(fake(func(context.Context, llms.CallOptions) (*llms.ContentResponse, error) {
		return &llms.ContentResponse{Choices: []*llms.ContentChoice{nil, {ToolCalls: []llms.ToolCall{{}}, GenerationInfo: map[string]any{"usage": nil, "id": 5}}}}, nil
	}), r.Tracer, request)
	_, err = odd.GenerateContent(t.Context(), []llms.MessageContent{{Parts: []llms.ContentPart{nil, llms.CachedContent{}, llms.ToolCall{}}}}, llms.WithTools([]llms.Tool{{}}))
	assert.NoError(t, err)
}

// How each death of a stream is told, with the transport and without.
func TestEveryDeathOfAStream(t *testing.T) {
	own := errors.New("own")
	hang := func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	cut := func(w http.ResponseWriter, _ *http.Request) {
		conn, _, _ := w.(http.Hijacker).Hijack()
		conn.Close()
	}
	status := func(code int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(code)
			_, _ = io.WriteString(w, body)
		}
	}
	type ending struct {
		failed   bool
		errType  any
		terminal any
	}
	for _, tt := range []struct {
		name    string
		answer  http.HandlerFunc
		each    func(text string, cancel context.CancelFunc) error
		timeout time.Duration
		client  time.Duration
		want    ending  // without the transport
		with    *ending // with it, where it knows more
		err     bool
		panics  bool
	}{
		{name: "complete", answer: stream(nil, complete...), want: ending{terminal: "finish"}, with: &ending{terminal: "done"}},
		{name: "no end mark", answer: stream(nil, role, hello), want: ending{terminal: "eof"}, with: &ending{true, "stream_truncated", "truncated"}},
		{name: "empty", answer: stream(nil), want: ending{}, with: &ending{terminal: "eof"}},
		{name: "only an end mark", answer: stream(nil, done), want: ending{}, with: &ending{terminal: "done"}},
		{name: "connection cut", answer: stream(cut, role, hello), want: ending{true, "stream_truncated", "truncated"}, err: true},
		{name: "cut before anything", answer: stream(cut), want: ending{failed: true}, err: true},
		{name: "error inside the stream", answer: stream(nil, role, hello, `{"error":{"message":"out of memory","type":"server_error"}}`), want: ending{terminal: "eof"}, with: &ending{true, "server_error", "error"}},
		{name: "status 429", answer: status(429, `{"error":{"message":"slow down","type":"rate_limit_error"}}`), want: ending{true, "429", nil}, with: &ending{true, "rate_limit_error", "http_error"}, err: true},
		{name: "status 500 without a body", answer: status(500, ""), want: ending{true, "500", nil}, with: &ending{true, "500", "http_error"}, err: true},
		{name: "function returns an error", answer: stream(hang, role, hello, world), each: func(text string, _ context.CancelFunc) error {
			if text == "Hello" {
				return own
			}
			return nil
		}, want: ending{terminal: "client_cancelled"}, err: true},
		{name: "cancelled in the function", answer: stream(hang, role, hello), each: func(text string, cancel context.CancelFunc) error {
			if text == "Hello" {
				cancel()
			}
			return nil
		}, want: ending{terminal: "client_cancelled"}},
		{name: "deadline", answer: stream(hang, role, hello), timeout: 300 * time.Millisecond, want: ending{true, "timeout", "timeout"}},
		{name: "deadline before the first chunk", answer: hang, timeout: 100 * time.Millisecond, want: ending{true, "timeout", "timeout"}, err: true},
		{name: "time-out of the HTTP client before the first chunk", answer: hang, client: 100 * time.Millisecond, want: ending{true, "timeout", "timeout"}, err: true},
		{name: "panic in the function", answer: stream(hang, role, hello), each: func(text string, _ context.CancelFunc) error {
			if text == "Hello" {
				panic("own")
			}
			return nil
		}, want: ending{true, "panic", "error"}, with: &ending{true, "panic", "client_cancelled"}, panics: true},
		{name: "nobody listens", answer: cut, want: ending{failed: true}, err: true},
	} {
		for _, with := range []bool{false, true} {
			name, want := tt.name+" without the transport", tt.want
			if with {
				name = tt.name + " with the transport"
				if tt.with != nil {
					want = *tt.with
				}
			}
			t.Run(name, func(t *testing.T) {
				r := record()
				client := plainClient()
				if with {
					client = r.transport()
				}
				client.Timeout = tt.client
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if tt.timeout > 0 {
					ctx, cancel = context.WithTimeout(t.Context(), tt.timeout)
					defer cancel()
				}
				model := genailangchain.WrapModel(serve(t, tt.answer).openai(t, client), r.Tracer, request)
				var err error
				call := func() {
					_, err = model.GenerateContent(ctx, human("Hi"), streaming(func(text string) error {
						if tt.each == nil {
							return nil
						}
						return tt.each(text, cancel)
					}))
				}
				if tt.panics {
					assert.PanicsWithValue(t, "own", call)
				} else {
					call()
				}
				if tt.err {
					assert.Error(t, err)
				}
				s := r.one(t)
				got := ending{s.Status().Code.String() == "Error", attributeOf(s, "error.type"), attributeOf(s, "genai.stream.terminal")}
				if want.failed && want.errType == nil {
					assert.NotNil(t, got.errType)
					want.errType, want.terminal = got.errType, got.terminal
				}
				assert.Equal(t, want, got)
				assert.NotContains(t, s.Status().Description, "slow down")
			})
		}
	}
}

func TestErrorsHaveTheTypeThatTheyTell(t *testing.T) {
	for _, tt := range []struct {
		name string
		err  error
		want any
	}{
		{"a code", llms.NewError(llms.ErrCodeRateLimit, "openai", "secret"), "rate_limit"},
		{"no code", llms.NewError(llms.ErrCodeUnknown, "openai", "secret"), "*llms.Error"},
		{"a cancellation", llms.NewError(llms.ErrCodeCanceled, "openai", "secret"), nil},
		{"a time-out", llms.NewError(llms.ErrCodeTimeout, "openai", "secret"), "timeout"},
		{"a status in the message", errors.New("anthropic: API returned unexpected status code: 529: secret"), "529"},
		{"no such status", errors.New("API returned unexpected status code: 1234"), "_OTHER"},
		{"nothing", errors.New("secret"), "_OTHER"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := record()
			model := genailangchain.WrapModel(fake(func(context.Context, llms.CallOptions) (*llms.ContentResponse, error) { return nil, tt.err }), r.Tracer, request)
			_, err := model.GenerateContent(t.Context(), nil)
			assert.Equal(t, tt.err, err)
			assert.Equal(t, tt.want, attributeOf(r.one(t), "error.type"))
		})
	}
}

func TestManyCallsAtOnce(t *testing.T) {
	r := record()
	server := serve(t, stream(nil, complete...))
	model := genailangchain.WrapModel(server.openai(t, r.transport()), r.Tracer, request)
	options := []llms.CallOption{streaming(ignore), llms.WithMaxTokens(5)}
	var group sync.WaitGroup
	for range 32 {
		group.Go(func() {
			_, err := model.GenerateContent(t.Context(), human("Hi"), options...)
			assert.NoError(t, err)
		})
	}
	group.Wait()
	require.Len(t, r.spans.Ended(), 32)
	for _, s := range r.spans.Ended() {
		assert.Equal(t, int64(6), attributeOf(s, "genai.chunk.count"))
		assert.Equal(t, int64(7), attributeOf(s, "gen_ai.usage.output_tokens"))
	}
}

// A chunk costs a reading of the clock and no memory.
func TestAChunkAllocatesNothing(t *testing.T) {
	for name, tracer := range map[string]*genaitrace.Tracer{"recorded": record().Tracer, "nothing records": nil} {
		model := genailangchain.WrapModel(fake(func(ctx context.Context, o llms.CallOptions) (*llms.ContentResponse, error) {
			chunk := []byte("Hello")
			assert.Zero(t, testing.AllocsPerRun(1000, func() { _ = o.StreamingFunc(ctx, chunk) }), name)
			return answer("Hello"), nil
		}), tracer, request)
		_, err := model.GenerateContent(t.Context(), human("Hi"), llms.WithStreamingFunc(func(context.Context, []byte) error { return nil }),
			llms.WithTools([]llms.Tool{{}}))
		require.NoError(t, err)
	}
}

// Where nothing records, the model gets what it was given, and no more.
func TestNothingRecords(t *testing.T) {
	for _, tracer := range []*genaitrace.Tracer{nil, genaitrace.New(
		genaitrace.WithTracerProvider(tracenoop.NewTracerProvider()), genaitrace.WithMeterProvider(metricnoop.NewMeterProvider()),
		genaitrace.WithLoggerProvider(lognoop.NewLoggerProvider()))} {
		model := genailangchain.WrapModel(counts{t, 1}, tracer, request)
		_, err := model.GenerateContent(t.Context(), human("Hi"), streaming(ignore))
		require.NoError(t, err)
	}
}

// counts is a model that wants a number of options.
type counts struct {
	t    *testing.T
	want int
}

func (c counts) GenerateContent(_ context.Context, _ []llms.MessageContent, options ...llms.CallOption) (*llms.ContentResponse, error) {
	assert.Len(c.t, options, c.want)
	return answer(""), nil
}

func (c counts) Call(context.Context, string, ...llms.CallOption) (string, error) { return "", nil }
