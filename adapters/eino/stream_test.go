package genaieino_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cloudwego/eino/callbacks"
	"github.com/cloudwego/eino/components"
	"github.com/cloudwego/eino/components/model"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/schema"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"

	genaieino "github.com/genaitrace/otelgenai/adapters/eino"
	"github.com/genaitrace/otelgenai/capture"
	"github.com/genaitrace/otelgenai/semconv"
)

// gap is the time between the pieces of an answer.
const gap = 10 * time.Millisecond

// A piped model gives its answer piece by piece, as Eino's own models do.
type piped struct {
	callbacks bool // it calls them itself
	pieces    []*schema.Message
	end       error // in the place of the end of the stream
	once      bool  // it ends so once
	refuse    error
	crash     bool // in the call
	explode   bool // in what the reader of the stream runs
	deaf      bool // its context means nothing to it
	sent      atomic.Int64
	release   func() // Eino does not close the source of copies in which it panicked
}

func finish(reason string, prompt, completion int) *schema.Message {
	return &schema.Message{Role: schema.Assistant, ResponseMeta: &schema.ResponseMeta{
		FinishReason: reason, Usage: &schema.TokenUsage{PromptTokens: prompt, CompletionTokens: completion, TotalTokens: prompt + completion},
	}}
}

// answer is a role, a thought, two words and an end, which come 10 ms apart.
func answer() []*schema.Message {
	return []*schema.Message{
		{Role: schema.Assistant},
		{Role: schema.Assistant, ReasoningContent: "Hm."},
		{Role: schema.Assistant, Content: "It is "},
		{Role: schema.Assistant, Content: "sunny."},
		finish("stop", 12, 5),
	}
}

func (m *piped) GetType() string          { return "Piped" }
func (m *piped) IsCallbacksEnabled() bool { return m.callbacks }
func (m *piped) WithTools([]*schema.ToolInfo) (model.ToolCallingChatModel, error) {
	return m, nil
}

func (m *piped) Generate(ctx context.Context, in []*schema.Message, opts ...model.Option) (*schema.Message, error) {
	sr, err := m.Stream(ctx, in, opts...)
	if err != nil {
		return nil, err
	}
	return schema.ConcatMessageStream(sr)
}

func (m *piped) Stream(ctx context.Context, in []*schema.Message, _ ...model.Option) (*schema.StreamReader[*schema.Message], error) {
	if m.callbacks {
		ctx = callbacks.EnsureRunInfo(ctx, m.GetType(), components.ComponentOfChatModel)
		ctx = callbacks.OnStart(ctx, &model.CallbackInput{Messages: in, Config: &model.Config{Model: "m"}})
	}
	if m.crash {
		panic("secret prompt")
	}
	if m.refuse != nil {
		if m.callbacks {
			callbacks.OnError(ctx, m.refuse)
		}
		return nil, m.refuse
	}
	sr, sw := schema.Pipe[*schema.Message](0)
	go m.send(ctx, sw)
	if m.explode {
		sr.SetAutomaticClose()
		m.release = sr.Close
		n := 0
		sr = schema.StreamReaderWithConvert(sr, func(msg *schema.Message) (*schema.Message, error) {
			if n++; n > 2 {
				panic("secret prompt")
			}
			return msg, nil
		})
	}
	if m.callbacks {
		_, out := callbacks.OnEndWithStreamOutput(ctx, schema.StreamReaderWithConvert(sr, func(msg *schema.Message) (*model.CallbackOutput, error) {
			return &model.CallbackOutput{Message: msg}, nil
		}))
		sr = schema.StreamReaderWithConvert(out, func(o *model.CallbackOutput) (*schema.Message, error) { return o.Message, nil })
	}
	return sr, nil
}

func (m *piped) send(ctx context.Context, sw *schema.StreamWriter[*schema.Message]) {
	defer sw.Close()
	gone := ctx.Done()
	if m.deaf {
		gone = nil
	}
	for _, piece := range m.pieces {
		select {
		case <-time.After(gap):
		case <-gone:
			sw.Send(nil, ctx.Err())
			return
		}
		if sw.Send(piece, nil) {
			return
		}
		m.sent.Add(1)
	}
	if again := m.sent.Load() > int64(len(m.pieces)); m.end != nil && (!m.once || !again) {
		time.Sleep(gap)
		sw.Send(nil, m.end)
	}
}

// A setup is a way to record a model.
type setup struct {
	name      string
	callbacks bool // of the model itself
	wrapped   bool
	handler   bool // and a graph
}

var setups = []setup{
	{"handler", false, false, true},
	{"handler, callbacks of the model", true, false, true},
	{"wrapper", false, true, false},
	{"wrapper, callbacks of the model", true, true, false},
	{"wrapper and handler", false, true, true},
	{"wrapper and handler, callbacks of the model", true, true, true},
}

// stream begins a streamed answer of m.
func (s setup) stream(ctx context.Context, t *testing.T, r *recording, m *piped) (*schema.StreamReader[*schema.Message], error) {
	t.Helper()
	m.callbacks = s.callbacks
	var used model.ToolCallingChatModel = m
	if s.wrapped {
		used = genaieino.WrapChatModel(m, r.tracer)
	}
	if !s.handler {
		return used.Stream(ctx, ask("How is the weather?"), model.WithModel("m"))
	}
	graph, err := compose.NewChain[[]*schema.Message, *schema.Message]().AppendChatModel(used).Compile(ctx, compose.WithGraphName("answer"))
	require.NoError(t, err)
	return graph.Stream(ctx, ask("How is the weather?"), compose.WithCallbacks(r.handler()))
}

// A reader reads as a user does who is a little later than the pieces, and stops after
// some of them, or never.
func read(sr *schema.StreamReader[*schema.Message], stopAfter int) (n int, err error) {
	defer sr.Close()
	time.Sleep(gap / 2)
	for ; n != stopAfter; n++ {
		time.Sleep(gap)
		if _, err := sr.Recv(); err != nil {
			return n, err
		}
	}
	return n, nil
}

// call is the span of the model.
func (r *recording) call() *capture.Span {
	r.t.Helper()
	found := r.captured().Select(func(s *capture.Span) bool { return s.Attributes.String("genai.span.role") == "inference" })
	require.Len(r.t, found, 1)
	return found[0]
}

func TestFirstTokenTimes(t *testing.T) {
	for _, s := range setups {
		t.Run(s.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := record(t)
				m := &piped{pieces: answer()}
				sr, err := s.stream(t.Context(), t, r, m)
				require.NoError(t, err)
				n, err := read(sr, -1)
				assert.Equal(t, io.EOF, err)
				assert.Equal(t, 5, n)
				synctest.Wait()

				call := r.call()
				for key, want := range map[string]string{
					"llm.ttft_ms": "20", "genai.first_visible_ms": "30", "genai.chunk.count": "5", "genai.chunk.output_count": "3",
					"gen_ai.usage.input_tokens": "12", "gen_ai.usage.output_tokens": "5", "genai.stream.terminal": "finish",
					"gen_ai.response.time_to_first_chunk": "0.01",
				} {
					assert.Equal(t, want, call.Attributes.String(attribute.Key(key)), key)
				}
			})
		})
	}
}

// TestASlowReader shows when a copy is read: at once, whatever the reader of the stream
// does, by a handler alone; a wrapper is one piece ahead of its reader.
func TestASlowReader(t *testing.T) {
	for _, s := range setups {
		t.Run(s.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := record(t)
				m := &piped{pieces: answer()}
				sr, err := s.stream(t.Context(), t, r, m)
				require.NoError(t, err)
				time.Sleep(time.Second)
				synctest.Wait()
				ahead := m.sent.Load()
				_, err = read(sr, -1)
				assert.Equal(t, io.EOF, err)
				synctest.Wait()

				if s.wrapped {
					assert.Equal(t, int64(1), ahead, "pieces taken before anybody reads")
				} else {
					assert.Equal(t, int64(5), ahead, "pieces taken before anybody reads")
					assert.Equal(t, "20", r.call().Attributes.String(semconv.LLMTTFTMsKey))
				}
			})
		})
	}
}

// TestTheReaderGoesAway shows what becomes of the model when its reader closes the stream
// without ending the context.
func TestTheReaderGoesAway(t *testing.T) {
	for _, s := range setups {
		t.Run(s.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := record(t)
				m := &piped{pieces: append(append(answer()[:3:3], answer()[2:]...), answer()...)}
				sr, err := s.stream(t.Context(), t, r, m)
				require.NoError(t, err)
				_, err = read(sr, 2)
				require.NoError(t, err)
				time.Sleep(time.Second)
				synctest.Wait()

				terminal := r.call().Attributes.String(semconv.GenAIStreamTerminalKey)
				assert.Empty(t, r.call().Attributes.String("error.type"))
				if s.wrapped {
					assert.LessOrEqual(t, m.sent.Load(), int64(4), "the model stops")
					assert.Equal(t, "client_cancelled", terminal)
				} else {
					assert.Equal(t, int64(11), m.sent.Load(), "the model goes on to its end")
					assert.Equal(t, "finish", terminal)
				}
			})
		})
	}
}

// TestDeathsOfStreams: every way in which a stream can end, recorded in every way.
func TestDeathsOfStreams(t *testing.T) {
	broken := errors.New("secret prompt")
	deaths := []struct {
		name string
		m    func() *piped
		ctx  func(context.Context) (context.Context, context.CancelFunc)
		stop int // after so many pieces
	}{
		{name: "finish", m: func() *piped { return &piped{pieces: answer()} }},
		{name: "end without a finish reason", m: func() *piped { return &piped{pieces: answer()[:4]} }},
		{name: "nothing at all", m: func() *piped { return &piped{} }},
		{name: "error on the way", m: func() *piped { return &piped{pieces: answer()[:3], end: broken} }},
		{name: "error after the finish reason", m: func() *piped { return &piped{pieces: answer(), end: broken} }},
		{name: "truncated", m: func() *piped {
			return &piped{pieces: answer()[:3], end: fmt.Errorf("recv: %w", io.ErrUnexpectedEOF)}
		}},
		{name: "refused", m: func() *piped { return &piped{refuse: broken} }},
		{name: "panic of the model", m: func() *piped { return &piped{crash: true} }},
		{name: "panic in the stream", m: func() *piped { return &piped{pieces: answer(), explode: true} }},
		{name: "closed early", m: func() *piped { return &piped{pieces: answer()} }, stop: 2},
		{name: "closed after the finish reason", m: func() *piped { return &piped{pieces: answer()} }, stop: 5},
		{name: "cancelled", m: func() *piped { return &piped{pieces: answer()} }, ctx: func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(32*time.Millisecond, cancel)
			return ctx, cancel
		}},
		{name: "cancelled, and the model is deaf", m: func() *piped { return &piped{pieces: answer(), deaf: true} }, ctx: func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(32*time.Millisecond, cancel)
			return ctx, cancel
		}},
		{name: "deadline", m: func() *piped { return &piped{pieces: answer()} }, ctx: func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, 32*time.Millisecond)
		}},
	}
	var b strings.Builder
	for _, d := range deaths {
		fmt.Fprintf(&b, "%s\n", d.name)
		for _, s := range setups {
			synctest.Test(t, func(t *testing.T) {
				r := record(t)
				ctx, cancel := t.Context(), context.CancelFunc(func() {})
				if d.ctx != nil {
					ctx, cancel = d.ctx(ctx)
				}
				defer cancel()
				m := d.m()
				got := died(func() error {
					sr, err := s.stream(ctx, t, r, m)
					if err != nil {
						return err
					}
					stop := d.stop
					if stop == 0 {
						stop = -1
					}
					_, err = read(sr, stop)
					return err
				})
				time.Sleep(2 * time.Second)
				if m.release != nil {
					m.release()
				}
				synctest.Wait()
				call := r.call()
				fmt.Fprintf(&b, "  %-44s %s", s.name, outcome(call))
				if s.handler {
					fmt.Fprintf(&b, " | workflow %s", outcome(r.span("invoke_workflow answer")))
				}
				fmt.Fprintf(&b, " | the reader got %s\n", got)
			})
		}
	}
	golden(t, "deaths", b.String())
}

// died says how a reader saw the end.
func died(f func() error) (got string) {
	defer func() {
		if v := recover(); v != nil {
			got = "a panic"
		}
	}()
	switch err := f(); {
	case err == nil:
		return "enough"
	case err == io.EOF:
		return "the end"
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return "the end of its context"
	default:
		return "an error"
	}
}

// outcome is how a span ended.
func outcome(s *capture.Span) string {
	out := "ok"
	if kind := s.Attributes.String("error.type"); kind != "" {
		out = "error " + kind
	}
	if terminal := s.Attributes.String(semconv.GenAIStreamTerminalKey); terminal != "" {
		out += " (" + terminal + ")"
	}
	return fmt.Sprintf("%s %v", out, s.End.Sub(s.Start))
}
