package genaieino

import (
	"context"
	"io"
	"strconv"
	"sync"

	"github.com/cloudwego/eino/callbacks"
	"github.com/cloudwego/eino/components/model"
	"github.com/cloudwego/eino/schema"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/genaitrace/content"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// providers are the names of those whose models and embeddings have a type of their own
// in Eino's extensions.
var providers = map[string]genaiconv.ProviderNameAttr{
	"OpenAI":     genaiconv.ProviderNameOpenAI,
	"Claude":     genaiconv.ProviderNameAnthropic,
	"Gemini":     genaiconv.ProviderNameGCPGemini,
	"DeepSeek":   genaiconv.ProviderNameDeepSeek,
	"Ollama":     "ollama",
	"OpenRouter": "openrouter",
}

// A modelCall is the call of a chat model.
type modelCall struct {
	call    *genaitrace.Call
	wrapped bool // it is that of a wrapper

	mu         sync.Mutex
	configured bool   // the model's own configuration is known
	finished   bool   // a reason why generation ended was told
	pieces     pieces // of the answer
}

// startModel starts the call of a chat model; the run is nil where nothing records.
func startModel(ctx context.Context, tr *genaitrace.Tracer, info *callbacks.RunInfo, in *model.CallbackInput) (context.Context, *run) {
	m := &modelCall{}
	req := genaitrace.Request{Provider: providers[info.Type]}
	if in != nil && in.Config != nil {
		m.configured = true
		configure(&req, in.Config)
	}
	var spanCtx context.Context
	spanCtx, m.call = tr.StartCall(ctx, req)
	if m.call == nil {
		return spanCtx, nil
	}
	m.setInput(in)
	r := &run{info: info, model: m, learn: func(output any) {
		m.note(model.ConvCallbackOutput(output))
		m.complete()
	}, read: func(next func() (callbacks.CallbackOutput, error)) error {
		m.call.SetRequest(genaitrace.Request{Stream: true})
		return m.readAll(ctx, next)
	}}
	return begin(ctx, spanCtx, r, m.call), r
}

// configure notes what a model says of its request. A 0 is unknown.
func configure(req *genaitrace.Request, c *model.Config) {
	req.Model, req.MaxTokens = c.Model, c.MaxTokens
	if c.Temperature != 0 {
		req.Temperature = widened(c.Temperature)
	}
	if c.TopP != 0 {
		req.TopP = widened(c.TopP)
	}
}

// widened is the number that was written: 0.7, and not the float64 next to that.
func widened(f float32) *float64 {
	v, err := strconv.ParseFloat(strconv.FormatFloat(float64(f), 'g', -1, 32), 64)
	if err != nil {
		v = float64(f)
	}
	return &v
}

// ask notes what the model within a wrapper says of its request.
func (m *modelCall) ask(in *model.CallbackInput) {
	if in == nil {
		return
	}
	m.setConfig(in.Config)
	m.setInput(in)
}

func (m *modelCall) setConfig(c *model.Config) {
	if c == nil {
		return
	}
	m.mu.Lock()
	news := !m.configured
	m.configured = true
	m.mu.Unlock()
	if news {
		var late genaitrace.Request
		configure(&late, c)
		m.call.SetRequest(late)
	}
}

func (m *modelCall) setInput(in *model.CallbackInput) {
	if in != nil && m.call.KeepsContent() {
		m.call.SetInput(genaitrace.Input{Messages: messages(in.Messages), Tools: definitions(in.Tools)})
	}
}

// note notes what an answer, or a piece of one, tells, and says what was in it.
func (m *modelCall) note(out *model.CallbackOutput) genaitrace.ChunkKind {
	if out == nil {
		return genaitrace.NoOutput
	}
	m.setConfig(out.Config)
	msg := out.Message
	if msg != nil && msg.ResponseMeta != nil {
		m.noteMeta(msg.ResponseMeta)
	}
	if u := out.TokenUsage; u != nil {
		m.setUsage(u.PromptTokens, u.PromptTokenDetails.CachedTokens, u.CompletionTokens, u.CompletionTokensDetails.ReasoningTokens)
	}
	if msg == nil {
		return genaitrace.NoOutput
	}
	if m.call.KeepsContent() {
		m.mu.Lock()
		m.pieces.add(msg)
		m.mu.Unlock()
	}
	return kindOf(msg)
}

func (m *modelCall) noteMeta(meta *schema.ResponseMeta) {
	if u := meta.Usage; u != nil {
		m.setUsage(u.PromptTokens, u.PromptTokenDetails.CachedTokens, u.CompletionTokens, u.CompletionTokensDetails.ReasoningTokens)
	}
	if meta.FinishReason != "" {
		m.mu.Lock()
		m.finished = true
		m.mu.Unlock()
		m.call.SetFinish(meta.FinishReason)
	}
}

func (m *modelCall) setUsage(input, cached, output, reasoning int) {
	m.call.SetUsage(genaitrace.Usage{
		InputTokens: known(input), CachedTokens: known(cached), OutputTokens: known(output), ReasoningTokens: known(reasoning),
	})
}

// known is a count of Eino, which has no word for one that is unknown: it is 0.
func known(n int) *int {
	if n == 0 {
		return nil
	}
	return &n
}

// kindOf says what a piece of an answer has.
func kindOf(msg *schema.Message) genaitrace.ChunkKind {
	switch {
	case msg.Content != "" || len(msg.AssistantGenMultiContent) > 0 || len(msg.MultiContent) > 0:
		return genaitrace.Visible
	case msg.ReasoningContent != "" || len(msg.ToolCalls) > 0:
		return genaitrace.Output
	}
	return genaitrace.NoOutput
}

// complete notes the answer as far as it came. What comes later changes nothing.
func (m *modelCall) complete() {
	m.mu.Lock()
	defer m.mu.Unlock()
	answer, err := m.pieces.join()
	m.pieces = pieces{}
	switch {
	case err != nil:
		m.call.Fault(semconv.GenAIFaultContent, err)
	case answer != nil:
		m.call.SetOutput(messages([]*schema.Message{answer}))
	}
}

// abandoned is how a stream ended whose reader went away.
func (m *modelCall) abandoned() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.finished {
		return nil
	}
	return context.Canceled
}

// receive is recv, and records what it returns.
func receive[T any](m *modelCall, recv func() (T, error)) (next func() (T, error), stop func()) {
	next, abandon := genaitrace.ReceiveChunks(m.call, func() (T, error) {
		item, err := recv()
		if err != nil {
			m.complete()
		}
		return item, err
	}, func(_ *genaitrace.Call, item T) genaitrace.ChunkKind { return m.note(model.ConvCallbackOutput(item)) })
	return next, func() { m.complete(); abandon() }
}

// readAll reads a stream to its end, or to that of the context.
func (m *modelCall) readAll(ctx context.Context, recv func() (callbacks.CallbackOutput, error)) error {
	next, stop := receive(m, recv)
	defer stop()
	for {
		_, err := next()
		switch {
		case err == io.EOF: //nolint:errorlint // wrapped, it is the cause of something else
			return nil
		case err != nil:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		}
	}
}

// pieces collects a streamed answer, up to the longest that content is kept of.
type pieces struct {
	all  []*schema.Message
	size int
}

// add keeps a copy: the message is the user's.
func (p *pieces) add(msg *schema.Message) {
	if p.size > content.MaxLimit {
		return
	}
	piece := &schema.Message{
		Role: msg.Role, Content: msg.Content, ReasoningContent: msg.ReasoningContent, Name: msg.Name,
		ToolCalls: append([]schema.ToolCall(nil), msg.ToolCalls...), AssistantGenMultiContent: msg.AssistantGenMultiContent,
	}
	p.size += len(piece.Content) + len(piece.ReasoningContent) + 64
	for _, call := range piece.ToolCalls {
		p.size += len(call.Function.Arguments) + 64
	}
	p.all = append(p.all, piece)
}

// join puts the pieces together; nil where there are none.
func (p *pieces) join() (*schema.Message, error) {
	switch len(p.all) {
	case 0:
		return nil, nil //nolint:nilnil // there is nothing to tell
	case 1:
		return p.all[0], nil
	}
	return schema.ConcatMessages(p.all)
}
