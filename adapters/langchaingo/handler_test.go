package genailangchain_test

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tmc/langchaingo/agents"
	"github.com/tmc/langchaingo/chains"
	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/llms/openai"
	"github.com/tmc/langchaingo/schema"
	"github.com/tmc/langchaingo/tools"
	"github.com/tmc/langchaingo/vectorstores"

	genailangchain "github.com/genaitrace/otelgenai/adapters/langchaingo"
)

// An agent whose parts have handlers and no wrappers: every span is there, below that of
// the context.
func TestCallbacksOfAnAgent(t *testing.T) {
	r := record()
	server := serve(t,
		stream(nil, delta(`"content":"Action: calculator\nAction Input: 2*21"`), finish, told, done),
		stream(nil, delta(`"content":"Final Answer: 42"`), finish, told, done))
	model := server.openai(t, plainClient(), openai.WithCallback(genailangchain.NewModelHandler(r.Tracer, request)))
	tool := tools.Calculator{CallbacksHandler: genailangchain.NewHandler(r.Tracer, "calculator")}
	executor := agents.NewExecutor(
		agents.NewOneShotAgent(model, []tools.Tool{tool}, agents.WithCallbacksHandler(genailangchain.NewHandler(r.Tracer, "step"))),
		agents.WithCallbacksHandler(genailangchain.NewHandler(r.Tracer, "accountant")))

	ctx, root := r.tp.Tracer("test").Start(t.Context(), "request")
	got, err := chains.Run(ctx, executor, "What is 2 times 21?")
	root.End()
	require.NoError(t, err)
	assert.Equal(t, "42", got)
	assert.Equal(t, `request (internal)
  invoke_workflow accountant (internal)
  invoke_workflow step (internal)
  chat gpt-4.1 (client) gen_ai.usage.output_tokens=7
  execute_tool calculator (internal) genai.tool.status=ok
  invoke_workflow step (internal)
  chat gpt-4.1 (client) gen_ai.usage.output_tokens=7
`, r.tree("genai.tool.status", "gen_ai.usage.output_tokens"))
}

// A handler of a model below a wrapper, and one that was not asked for model calls,
// count nothing twice.
func TestCallbacksOfAModelCountNothingTwice(t *testing.T) {
	for _, asked := range []bool{false, true} {
		r := record()
		handler := genailangchain.NewHandler(r.Tracer, "model")
		if asked {
			handler = genailangchain.NewModelHandler(r.Tracer, request)
		}
		model := genailangchain.WrapModel(serve(t, whole("Hi")).openai(t, r.transport(), openai.WithCallback(handler)), r.Tracer, request)
		_, err := model.GenerateContent(t.Context(), human("Hi"))
		require.NoError(t, err)
		assert.Equal(t, "chat gpt-4.1", r.one(t).Name())
	}
}

func TestCallbacksOfSearchesAndChains(t *testing.T) {
	r := record()
	retriever := vectorstores.ToRetriever(newLibrary(t, record()), 2)
	retriever.CallbacksHandler = genailangchain.NewHandler(r.Tracer, "animals")
	h := genailangchain.NewHandler(r.Tracer, "ask")
	ctx := t.Context()

	h.HandleChainStart(ctx, nil)
	_, err := retriever.GetRelevantDocuments(ctx, "zebra")
	require.NoError(t, err)
	h.HandleChainStart(ctx, nil) // inside the first
	h.HandleChainError(ctx, errors.New("secret"))
	h.HandleChainEnd(ctx, nil)
	h.HandleChainEnd(ctx, nil) // nothing is open any more
	assert.Equal(t, `invoke_workflow ask (internal)
retrieval animals (internal) genai.retriever.hit_count=2
invoke_workflow ask (internal, error) error.type=_OTHER
`, r.tree("genai.retriever.hit_count", "error.type"))
}

// What a component never reports the end of ends all the same, once.
func TestWhatIsAbandonedEnds(t *testing.T) {
	t.Run("with its context", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := record()
			h := genailangchain.NewHandler(r.Tracer, "n")
			m := genailangchain.NewModelHandler(r.Tracer, request)
			cancelled, cancel := context.WithCancel(t.Context())
			late, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			h.HandleRetrieverStart(cancelled, "q")
			time.Sleep(time.Millisecond)
			h.HandleToolStart(late, "q")
			time.Sleep(time.Millisecond)
			m.HandleLLMGenerateContentStart(late, nil)
			time.Sleep(time.Second)
			cancel()
			time.Sleep(time.Hour)
			assert.Equal(t, `retrieval n (internal)
execute_tool n (internal, error) error.type=timeout genai.tool.status=timeout
chat gpt-4.1 (client, error) error.type=timeout
`, r.tree("error.type", "genai.tool.status"))
			h.HandleRetrieverEnd(cancelled, "q", nil)
			h.HandleToolError(late, nil)
			m.HandleLLMError(late, nil)
			assert.Len(t, r.spans.Ended(), 3)
			for _, s := range r.spans.Ended() {
				assert.LessOrEqual(t, s.EndTime().Sub(s.StartTime()), time.Minute)
			}
		})
	})
	t.Run("after a time", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := record()
			h := genailangchain.NewHandler(r.Tracer, "n")
			h.HandleChainStart(context.Background(), nil)
			time.Sleep(time.Millisecond)
			h.HandleToolStart(context.Background(), "q")
			h.HandleToolEnd(context.Background(), "a")
			time.Sleep(15*time.Minute - time.Second)
			assert.Len(t, r.spans.Ended(), 1)
			time.Sleep(2 * time.Second)
			assert.Equal(t, "invoke_workflow n (internal, error) error.type=abandoned\nexecute_tool n (internal)\n", r.tree("error.type"))
			assert.Equal(t, map[string]uint64{"abandoned": 1}, r.points(t, "gen_ai.invoke_agent.duration", "error.type"), "it is counted")
			h.HandleChainEnd(context.Background(), nil)
			assert.Len(t, r.spans.Ended(), 2)
		})
	})
	t.Run("where there are too many", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := record()
			h := genailangchain.NewHandler(r.Tracer, "n")
			for i := range 1500 {
				h.HandleRetrieverStart(context.Background(), strconv.Itoa(i))
			}
			assert.Len(t, r.spans.Ended(), 500, "the oldest")
			for i := range 1500 {
				h.HandleRetrieverEnd(context.Background(), strconv.Itoa(i), nil)
			}
			assert.Len(t, r.spans.Ended(), 1500)
			assert.Equal(t, map[string]uint64{"abandoned": 500, "": 1000}, r.points(t, "gen_ai.retrieval.duration", "error.type"))
		})
	})
	t.Run("in a context that cannot be compared", func(t *testing.T) {
		r := record()
		h := genailangchain.NewHandler(r.Tracer, "n")
		ctx := incomparable{t.Context(), nil}
		h.HandleChainStart(ctx, nil)
		h.HandleChainEnd(ctx, nil)
		assert.Equal(t, "abandoned", attributeOf(r.one(t), "error.type"))
	})
	t.Run("real ones", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := record()
			ctx, cancel := context.WithCancel(context.Background())
			_, err := tools.Calculator{CallbacksHandler: genailangchain.NewHandler(r.Tracer, "calculator")}.Call(ctx, "no sum")
			require.NoError(t, err)
			assert.Empty(t, r.spans.Ended(), "it reports no end where it cannot read its input")
			cancel()
			synctest.Wait()
			assert.Equal(t, "cancelled", attributeOf(r.one(t), "genai.tool.status"))
		})
	})
}

type incomparable struct {
	context.Context

	_ []int
}

// Runs at the same time, each in a context of its own, are told apart.
func TestCallbacksAtTheSameTime(t *testing.T) {
	r := record()
	h := genailangchain.NewHandler(r.Tracer, "n")
	var group sync.WaitGroup
	for i := range 50 {
		group.Go(func() {
			ctx, root := r.tp.Tracer("test").Start(t.Context(), "request")
			defer root.End()
			h.HandleChainStart(ctx, nil)
			h.HandleChainStart(ctx, nil)
			h.HandleRetrieverStart(ctx, "a")
			h.HandleRetrieverStart(ctx, "b")
			h.HandleRetrieverEnd(ctx, "a", make([]schema.Document, i))
			h.HandleRetrieverEnd(ctx, "b", nil)
			h.HandleChainEnd(ctx, nil)
			h.HandleChainEnd(ctx, nil)
		})
	}
	group.Wait()
	byTrace := map[string]int{}
	for _, s := range r.spans.Ended() {
		assert.NotEqual(t, "Error", s.Status().Code.String())
		byTrace[s.SpanContext().TraceID().String()]++
	}
	assert.Len(t, byTrace, 50)
	for _, n := range byTrace {
		assert.Equal(t, 5, n)
	}
}

// Searches that overlap in one context are told apart by what they look for.
func TestSearchesInOneContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record()
		h := genailangchain.NewHandler(r.Tracer, "n")
		h.HandleRetrieverStart(t.Context(), "first")
		time.Sleep(time.Second)
		h.HandleRetrieverStart(t.Context(), "second")
		time.Sleep(time.Second)
		h.HandleRetrieverEnd(t.Context(), "first", make([]schema.Document, 1))
		time.Sleep(time.Second)
		h.HandleRetrieverEnd(t.Context(), "second", make([]schema.Document, 2))
		for i, s := range r.spans.Ended() {
			assert.Equal(t, int64(i+1), attributeOf(s, "genai.retriever.hit_count"))
			assert.Equal(t, 2*time.Second, s.EndTime().Sub(s.StartTime()))
		}
	})
}

// A client that reports its failures, and one that does not.
func TestCallbacksOfAModelThatFails(t *testing.T) {
	r := record()
	h := genailangchain.NewModelHandler(r.Tracer, request)
	refusal := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) }
	ctx, cancel := context.WithCancel(t.Context())
	_, err := serve(t, refusal).openai(t, plainClient(), openai.WithCallback(h)).GenerateContent(ctx, human("Hi"))
	require.Error(t, err)
	assert.Empty(t, r.spans.Ended(), "OpenAI's client does not tell its handler")
	cancel()
	require.Eventually(t, func() bool { return len(r.spans.Ended()) == 1 }, 10*time.Second, time.Millisecond)

	h.HandleLLMGenerateContentStart(t.Context(), human("Hi"))
	h.HandleLLMError(t.Context(), llms.NewError(llms.ErrCodeRateLimit, "openai", "secret"))
	assert.Equal(t, "rate_limit", attributeOf(r.spans.Ended()[1], "error.type"))
}
