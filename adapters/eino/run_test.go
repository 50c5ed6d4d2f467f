package genaieino_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/callbacks"
	"github.com/cloudwego/eino/components"
	"github.com/cloudwego/eino/components/model"
	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/components/tool/utils"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/schema"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	genaieino "github.com/genaitrace/otelgenai/adapters/eino"
	"github.com/genaitrace/otelgenai/capture"
	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/middleware/genaihttp"
	"github.com/genaitrace/otelgenai/semconv"
)

type lambda = func(context.Context, string) (string, error)

// graphOf runs lambdas side by side.
func graphOf(t *testing.T, lambdas map[string]lambda, opts ...compose.GraphCompileOption) compose.Runnable[string, map[string]any] {
	t.Helper()
	g := compose.NewGraph[string, map[string]any]()
	for name, do := range lambdas {
		require.NoError(t, g.AddLambdaNode(name, compose.InvokableLambda(do), compose.WithNodeName(name), compose.WithOutputKey(name)))
		require.NoError(t, g.AddEdge(compose.START, name))
		require.NoError(t, g.AddEdge(name, compose.END))
	}
	made, err := g.Compile(t.Context(), append(opts, compose.WithGraphName("graph"), compose.WithNodeTriggerMode(compose.AllPredecessor))...)
	require.NoError(t, err)
	return made
}

func assertFailed(t *testing.T, s *capture.Span, errType string) {
	t.Helper()
	assert.Equal(t, codes.Error, s.Status, s.Name)
	assert.Equal(t, errType, s.Attributes.String("error.type"), s.Name)
}

func assertWell(t *testing.T, s *capture.Span) {
	t.Helper()
	assert.NotEqual(t, codes.Error, s.Status, s.Name)
	assert.False(t, s.Attributes.Has("error.type"), s.Name)
}

type ownError struct{}

func (ownError) Error() string { return "secret prompt" }

func TestErrorsAreThoseOfTheComponent(t *testing.T) {
	r := record(t)
	graph := graphOf(t, map[string]lambda{"fails": func(context.Context, string) (string, error) { return "", ownError{} }})
	_, err := graph.Invoke(t.Context(), "in", compose.WithCallbacks(r.handler()))
	require.Error(t, err)
	for _, name := range []string{"lambda fails", "invoke_workflow graph"} {
		assertFailed(t, r.span(name), "genaieino_test.ownError")
	}
}

func TestAPanicEndsTheComponentAndItsGraph(t *testing.T) {
	r := record(t)
	graph := graphOf(t, map[string]lambda{"fails": func(context.Context, string) (string, error) { panic("secret prompt") }})
	_, err := graph.Invoke(t.Context(), "in", compose.WithCallbacks(r.handler()))
	require.Error(t, err)
	for _, name := range []string{"lambda fails", "invoke_workflow graph"} {
		assertFailed(t, r.span(name), "panic")
	}
}

// TestABranchThatGoesOn outlives the graph that failed beside it, and tells its own end.
func TestABranchThatGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record(t)
		graph := graphOf(t, map[string]lambda{
			"fails": func(context.Context, string) (string, error) { time.Sleep(gap); return "", ownError{} },
			"goes on": func(context.Context, string) (string, error) {
				time.Sleep(10 * gap)
				return "done", nil
			},
		}, compose.WithEagerExecution())
		_, err := graph.Invoke(t.Context(), "in", compose.WithCallbacks(r.handler()))
		require.Error(t, err)
		time.Sleep(time.Minute)
		synctest.Wait()
		assertFailed(t, r.span("lambda fails"), "genaieino_test.ownError")
		assertWell(t, r.span("lambda goes on"))
		assert.Equal(t, 10*gap, r.span("lambda goes on").Duration())
	})
}

// TestWhatNobodyEnds ends with its context, and a while after it.
func TestWhatNobodyEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record(t)
		ctx, cancel := context.WithCancel(t.Context())
		ctx = callbacks.InitCallbacks(ctx, &callbacks.RunInfo{Name: "cell", Component: compose.ComponentOfLambda}, r.handler())
		ctx = callbacks.OnStart(ctx, "in")
		callbacks.OnStart(callbacks.ReuseHandlers(ctx, &callbacks.RunInfo{Name: "t", Component: components.ComponentOfTool}), "{}")
		time.Sleep(gap)
		cancel()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		assertWell(t, r.span("lambda cell"))
		assert.Equal(t, gap+time.Second, r.span("lambda cell").Duration())
		assert.Equal(t, "cancelled", r.span("execute_tool t").Attributes.String(semconv.GenAIToolStatusKey))
	})
}

// store keeps checkpoints in memory.
type store struct {
	mu   sync.Mutex
	kept map[string][]byte
}

func (s *store) Get(_ context.Context, id string) ([]byte, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text, ok := s.kept[id]
	return text, ok, nil
}

func (s *store) Set(_ context.Context, id string, text []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept[id] = text
	return nil
}

func toolCall(names ...string) *schema.Message {
	var calls []schema.ToolCall
	for i, name := range names {
		calls = append(calls, schema.ToolCall{ID: string(rune('a' + i)), Function: schema.FunctionCall{Name: name, Arguments: `{"city":"Rome"}`}})
	}
	return schema.AssistantMessage("", calls)
}

// toolsOf is a graph of one ToolsNode.
func toolsOf(t *testing.T, config compose.ToolsNodeConfig, opts ...compose.GraphCompileOption) compose.Runnable[*schema.Message, []*schema.Message] {
	t.Helper()
	node, err := compose.NewToolNode(t.Context(), &config)
	require.NoError(t, err)
	g := compose.NewGraph[*schema.Message, []*schema.Message]()
	require.NoError(t, g.AddToolsNode("tools", node))
	require.NoError(t, g.AddEdge(compose.START, "tools"))
	require.NoError(t, g.AddEdge("tools", compose.END))
	made, err := g.Compile(t.Context(), append(opts, compose.WithGraphName("graph"))...)
	require.NoError(t, err)
	return made
}

func TestAnInterruptIsNoFailure(t *testing.T) {
	r := record(t)
	asked := false
	approve := newTool(t, "approve", func(ctx context.Context, _ place) (string, error) {
		if !asked {
			asked = true
			return "", tool.Interrupt(ctx, "may I?")
		}
		return "yes", nil
	})
	graph := toolsOf(t, compose.ToolsNodeConfig{Tools: []tool.BaseTool{approve}}, compose.WithCheckPointStore(&store{kept: map[string][]byte{}}))
	_, err := graph.Invoke(t.Context(), toolCall("approve"), compose.WithCallbacks(r.handler()), compose.WithCheckPointID("1"))
	_, interrupted := compose.ExtractInterruptInfo(err)
	require.True(t, interrupted, "%v", err)
	for _, s := range r.captured().Spans {
		assertWell(t, s)
	}
	assert.Equal(t, "cancelled", r.span("execute_tool approve").Attributes.String(semconv.GenAIToolStatusKey))

	_, err = graph.Invoke(t.Context(), toolCall("approve"), compose.WithCallbacks(r.handler()), compose.WithCheckPointID("1"))
	require.NoError(t, err)
	tools := r.captured().Named("execute_tool approve")
	require.Len(t, tools, 2)
	assert.Equal(t, "ok", tools[1].Attributes.String(semconv.GenAIToolStatusKey))

	stopped := graphOf(t, map[string]lambda{"later": func(context.Context, string) (string, error) { return "", nil }},
		compose.WithInterruptBeforeNodes([]string{"later"}), compose.WithCheckPointStore(&store{kept: map[string][]byte{}}))
	_, err = stopped.Invoke(t.Context(), "in", compose.WithCallbacks(r.handler()), compose.WithCheckPointID("2"))
	require.Error(t, err)
	for _, s := range r.captured().Spans {
		assertWell(t, s)
	}
}

func TestTools(t *testing.T) {
	broken := func(context.Context, place) (string, error) { return "", ownError{} }
	panics := func(context.Context, place) (string, error) { panic("secret") }
	for _, c := range []struct {
		name, status, errType string
		do                    func(context.Context, place) (string, error)
	}{
		{"well", "ok", "", sunny},
		{"failing", "error", "genaieino_test.ownError", broken},
		{"panicking", "error", "panic", panics},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := record(t)
			graph := toolsOf(t, compose.ToolsNodeConfig{Tools: []tool.BaseTool{newTool(t, "get_weather", c.do)}})
			_, err := graph.Invoke(t.Context(), toolCall("get_weather"), compose.WithCallbacks(r.handler()))
			assert.Equal(t, c.errType == "", err == nil)
			span := r.span("execute_tool get_weather")
			assert.Equal(t, c.status, span.Attributes.String(semconv.GenAIToolStatusKey))
			assert.Equal(t, c.errType, span.Attributes.String("error.type"))
			assert.Equal(t, r.span("tools").SpanID, span.ParentID)
		})
	}
}

// TestAToolThatTheModelMadeUp: what its stand-in calls is heard under its name.
func TestAToolThatTheModelMadeUp(t *testing.T) {
	r := record(t)
	graph := toolsOf(t, compose.ToolsNodeConfig{
		Tools: []tool.BaseTool{newTool(t, "get_weather", sunny)},
		UnknownToolsHandler: func(ctx context.Context, _, _ string) (string, error) {
			callbacks.OnEnd(callbacks.OnStart(ctx, "{}"), "there is none")
			return "there is none", nil
		},
	})
	_, err := graph.Invoke(t.Context(), toolCall("secret_prompt"), compose.WithCallbacks(r.handler()))
	require.NoError(t, err)
	assert.Equal(t, "_OTHER", r.span("execute_tool").Attributes.String("gen_ai.tool.name"))
	assert.NotContains(t, everything(r.captured()), "secret_prompt")
}

func TestToolsThatStream(t *testing.T) {
	for _, c := range []struct {
		name string
		end  error
	}{{"well", nil}, {"broken", ownError{}}} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := record(t)
				streams, err := utils.InferStreamTool("news", "of a city", func(context.Context, place) (*schema.StreamReader[string], error) {
					sr, sw := schema.Pipe[string](0)
					go func() {
						defer sw.Close()
						time.Sleep(gap)
						sw.Send("all ", nil)
						time.Sleep(gap)
						sw.Send("quiet", c.end)
					}()
					return sr, nil
				})
				require.NoError(t, err)
				graph := toolsOf(t, compose.ToolsNodeConfig{Tools: []tool.BaseTool{streams}})
				sr, err := graph.Stream(t.Context(), toolCall("news"), compose.WithCallbacks(r.handler()))
				require.NoError(t, err)
				time.Sleep(time.Second)
				for err == nil {
					_, err = sr.Recv()
				}
				sr.Close()
				synctest.Wait()
				for _, name := range []string{"execute_tool news", "tools", "invoke_workflow graph"} {
					assert.Equal(t, 2*gap, r.span(name).Duration(), name)
					if c.end == nil {
						assertWell(t, r.span(name))
					} else {
						assertFailed(t, r.span(name), "genaieino_test.ownError")
					}
				}
			})
		})
	}
}

// TestAStreamThatBreaksBeforeItsGraphReturns: the graph waits for another branch.
func TestAStreamThatBreaksBeforeItsGraphReturns(t *testing.T) {
	for _, wrapped := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r := record(t)
			var used model.ToolCallingChatModel = &piped{pieces: answer()[:1], end: ownError{}}
			if wrapped {
				used = genaieino.WrapChatModel(used, r.tracer)
			}
			g := compose.NewGraph[[]*schema.Message, map[string]any]()
			require.NoError(t, g.AddChatModelNode("model", used, compose.WithOutputKey("model")))
			require.NoError(t, g.AddLambdaNode("slow", compose.InvokableLambda(func(context.Context, []*schema.Message) (string, error) {
				time.Sleep(10 * gap)
				return "done", nil
			}), compose.WithOutputKey("slow")))
			for _, name := range []string{"model", "slow"} {
				require.NoError(t, g.AddEdge(compose.START, name))
				require.NoError(t, g.AddEdge(name, compose.END))
			}
			graph, err := g.Compile(t.Context(), compose.WithGraphName("graph"), compose.WithNodeTriggerMode(compose.AllPredecessor))
			require.NoError(t, err)
			sr, err := graph.Stream(t.Context(), ask("x"), compose.WithCallbacks(r.handler()))
			for err == nil {
				_, err = sr.Recv()
			}
			require.ErrorIs(t, err, ownError{})
			sr.Close()
			synctest.Wait()
			for _, name := range []string{"chat", "invoke_workflow graph"} {
				assertFailed(t, r.span(name), "genaieino_test.ownError")
			}
		})
	}
}

// A retrying model asks another one again where its stream breaks.
type retrying struct{ model.ToolCallingChatModel }

func (m retrying) Stream(ctx context.Context, in []*schema.Message, opts ...model.Option) (*schema.StreamReader[*schema.Message], error) {
	for {
		sr, err := m.ToolCallingChatModel.Stream(ctx, in, opts...)
		if err != nil {
			return nil, err
		}
		whole, err := schema.ConcatMessageStream(sr)
		if err == nil {
			return schema.StreamReaderFromArray([]*schema.Message{whole}), nil
		}
	}
}

func (retrying) IsCallbacksEnabled() bool { return true }

func TestARetryMakesUpForABrokenStream(t *testing.T) {
	r := record(t)
	inner := &piped{pieces: answer(), end: ownError{}, once: true}
	chain, err := compose.NewChain[[]*schema.Message, *schema.Message]().
		AppendChatModel(retrying{genaieino.WrapChatModel(inner, r.tracer)}).Compile(t.Context(), compose.WithGraphName("answer"))
	require.NoError(t, err)
	sr, err := chain.Stream(t.Context(), ask("x"), compose.WithCallbacks(r.handler()))
	readAll(t, sr, err)
	ended(t, r)
	calls := r.captured().Named("chat")
	require.Len(t, calls, 2)
	assertFailed(t, calls[0], "genaieino_test.ownError")
	assertWell(t, calls[1])
	assertWell(t, r.span("invoke_workflow answer"))
}

// TestTheSameHandlerTwice: for the process and for the run.
func TestTheSameHandlerTwice(t *testing.T) {
	r := record(t)
	callbacks.AppendGlobalHandlers(r.handler())
	defer callbacks.InitCallbackHandlers(nil)
	chain, err := compose.NewChain[[]*schema.Message, *schema.Message]().
		AppendChatModel(newModel(t, newServer(t), nil)).Compile(t.Context(), compose.WithGraphName("twice"))
	require.NoError(t, err)
	sr, err := chain.Stream(t.Context(), ask("How is the weather?"), compose.WithCallbacks(r.handler(), r.handler()))
	readAll(t, sr, err)
	ended(t, r)
	assert.Len(t, r.captured().Spans, 2)
}

// TestComponentsByThemselves are heard through the handlers of the process.
func TestComponentsByThemselves(t *testing.T) {
	r := record(t)
	callbacks.AppendGlobalHandlers(r.handler())
	defer callbacks.InitCallbackHandlers(nil)
	_, err := newModel(t, newServer(t), nil).Generate(t.Context(), ask("How is the weather?"))
	require.NoError(t, err)
	assert.Equal(t, "12", r.span("chat gpt-x").Attributes.String("gen_ai.usage.input_tokens"))
}

// TestAModelThatFailsBeforeItStarts tells of an error and never of a start.
func TestAModelThatFailsBeforeItStarts(t *testing.T) {
	r := record(t)
	chain, err := compose.NewChain[[]*schema.Message, *schema.Message]().
		AppendChatModel(newModel(t, newServer(t), nil)).Compile(t.Context(), compose.WithGraphName("answer"))
	require.NoError(t, err)
	_, err = chain.Stream(t.Context(), ask("x"), compose.WithCallbacks(r.handler()), compose.WithChatModelOption(model.WithToolChoice(schema.ToolChoiceForced)))
	require.Error(t, err)
	assert.Equal(t, codes.Error, r.span("chat").Status)
	assert.Equal(t, codes.Error, r.span("invoke_workflow answer").Status)
}

// TestOverHTTP: what a real server does wrong, seen by a handler, with and without a
// wrapper, and with the transport of this module below.
func TestOverHTTP(t *testing.T) {
	for _, wrapped := range []bool{false, true} {
		for _, fed := range []bool{false, true} {
			for wish, want := range map[string]string{"refuse": "error", "break": "truncated"} {
				r := record(t)
				own := &http.Transport{}
				t.Cleanup(own.CloseIdleConnections)
				var transport http.RoundTripper = own
				if fed {
					transport = genaihttp.NewTransport(own, genaihttp.WithTracerProvider(r.TracerProvider()), genaihttp.WithMeterProvider(r.MeterProvider()))
				}
				var used model.ToolCallingChatModel = newModel(t, newServer(t), transport)
				if wrapped {
					used = genaieino.WrapChatModel(used, r.tracer)
				}
				chain, err := compose.NewChain[[]*schema.Message, *schema.Message]().AppendChatModel(used).Compile(t.Context(), compose.WithGraphName("answer"))
				require.NoError(t, err)
				sr, err := chain.Stream(t.Context(), ask(wish), compose.WithCallbacks(r.handler()))
				if want == "truncated" {
					require.NoError(t, err)
					for err == nil {
						_, err = sr.Recv()
					}
					assert.NotEqual(t, io.EOF, err)
					sr.Close()
				}
				require.Error(t, err)
				ended(t, r)
				assert.Equal(t, codes.Error, r.span("chat gpt-x").Status, "%s, wrapped %v, fed %v", wish, wrapped, fed)
				assert.Equal(t, codes.Error, r.span("invoke_workflow answer").Status)
				if want == "truncated" {
					assert.Equal(t, want, r.span("chat gpt-x").Attributes.String(semconv.GenAIStreamTerminalKey))
				}
				assert.NotContains(t, everything(r.captured()), "secret")
				r.holds()
			}
		}
	}
}

// TestAnAgentOfTheDevelopmentKit runs one of package adk.
func TestAnAgentOfTheDevelopmentKit(t *testing.T) {
	r := record(t)
	callbacks.AppendGlobalHandlers(r.handler(genaieino.WithAgents("forecaster")))
	defer callbacks.InitCallbackHandlers(nil)
	made, err := adk.NewChatModelAgent(t.Context(), &adk.ChatModelAgentConfig{
		Name: "forecaster", Description: "tells the weather", Model: genaieino.WrapChatModel(newModel(t, newServer(t), nil), r.tracer),
		ToolsConfig: adk.ToolsConfig{ToolsNodeConfig: compose.ToolsNodeConfig{Tools: []tool.BaseTool{newTool(t, "get_weather", sunny)}}},
	})
	require.NoError(t, err)
	events := adk.NewRunner(t.Context(), adk.RunnerConfig{Agent: made, EnableStreaming: true}).Query(t.Context(), "How is the weather?")
	for {
		event, ok := events.Next()
		if !ok {
			break
		}
		require.NoError(t, event.Err)
		if event.Output != nil && event.Output.MessageOutput != nil && event.Output.MessageOutput.MessageStream != nil {
			readAll(t, event.Output.MessageOutput.MessageStream, nil)
		}
	}
	ended(t, r)
	golden(t, "adk", sorted(r.tree()))
	r.holds()
}

// TestWhereNothingRecords nothing is copied, and no goroutine runs.
func TestWhereNothingRecords(t *testing.T) {
	off := genaitrace.New(genaitrace.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample()))))
	for name, tr := range map[string]*genaitrace.Tracer{"no tracer": nil, "not sampled": off} {
		t.Run(name, func(t *testing.T) {
			m := &piped{pieces: answer()}
			chain, err := compose.NewChain[[]*schema.Message, *schema.Message]().
				AppendChatModel(genaieino.WrapChatModel(m, tr)).Compile(t.Context())
			require.NoError(t, err)
			sr, err := chain.Stream(t.Context(), ask("x"), compose.WithCallbacks(genaieino.NewHandler(tr)))
			require.NoError(t, err)
			require.Eventually(t, func() bool { return !strings.Contains(stacks(), "eino.(*run)") }, 10*time.Second, time.Millisecond)
			assert.Len(t, readAll(t, sr, nil), 5)
		})
	}
}

// stacks are those of all goroutines.
func stacks() string {
	text := make([]byte, 1<<20)
	return string(text[:runtime.Stack(text, true)])
}

// TestAStreamThatNobodyReads ends with its context.
func TestAStreamThatNobodyReads(t *testing.T) {
	for _, s := range setups {
		t.Run(s.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := record(t)
				ctx, cancel := context.WithCancel(t.Context())
				sr, err := s.stream(ctx, t, r, &piped{pieces: answer()})
				require.NoError(t, err)
				time.Sleep(gap * 3 / 2)
				cancel()
				time.Sleep(2 * time.Second)
				synctest.Wait()
				for _, span := range r.captured().Spans {
					assert.True(t, span.Ended(), span.Name)
					assertWell(t, span)
				}
				assert.Equal(t, "client_cancelled", r.call().Attributes.String(semconv.GenAIStreamTerminalKey))
				sr.Close()
			})
		})
	}
}

func TestWrapChatModel(t *testing.T) {
	t.Run("settings of the call", func(t *testing.T) {
		r := record(t)
		used, err := genaieino.WrapChatModel(&piped{pieces: answer()}, r.tracer).WithTools([]*schema.ToolInfo{{Name: "t"}})
		require.NoError(t, err)
		_, err = used.Generate(t.Context(), ask("x"), model.WithModel("m"), model.WithTemperature(0), model.WithTopP(0.9), model.WithMaxTokens(7))
		require.NoError(t, err)
		for key, want := range map[string]string{
			"gen_ai.request.model": "m", "gen_ai.request.temperature": "0", "gen_ai.request.top_p": "0.9", "gen_ai.request.max_tokens": "7",
		} {
			assert.Equal(t, want, attr(r.span("chat m"), key), key)
		}
	})
	t.Run("tools that cannot be bound", func(t *testing.T) {
		_, err := genaieino.WrapChatModel(unbound{}, nil).WithTools(nil)
		assert.ErrorIs(t, err, errUnbound)
	})
	t.Run("type", func(t *testing.T) {
		typed := genaieino.WrapChatModel(&piped{}, nil)
		name, _ := components.GetType(typed)
		assert.Equal(t, "Piped", name)
		name, _ = components.GetType(genaieino.WrapChatModel(&unbound{}, nil))
		assert.Equal(t, "unbound", name)
		assert.True(t, components.IsCallbacksEnabled(genaieino.WrapChatModel(&piped{callbacks: true}, nil)))
		assert.False(t, components.IsCallbacksEnabled(typed))
	})
}

var errUnbound = errors.New("no tools")

type unbound struct{ echoModel }

func (unbound) WithTools([]*schema.ToolInfo) (model.ToolCallingChatModel, error) {
	return nil, errUnbound
}
