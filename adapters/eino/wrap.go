package genaieino

import (
	"context"
	"io"
	"reflect"
	"sync"

	"github.com/cloudwego/eino/callbacks"
	"github.com/cloudwego/eino/components"
	"github.com/cloudwego/eino/components/model"
	"github.com/cloudwego/eino/schema"

	"github.com/genaitrace/otelgenai/genaitrace"
)

// WrapChatModel records the calls of a model, with or without a handler of [NewHandler];
// with one, a call is recorded once. Prefer it where answers are streamed to somebody who
// may stop reading: see the package documentation. With a nil Tracer, or where nothing
// records, calls pass unchanged.
//
// Without a handler the model's name and settings are known from the options of the call
// alone, or from a transport that sees the request.
func WrapChatModel(m model.ToolCallingChatModel, tr *genaitrace.Tracer) model.ToolCallingChatModel {
	return &wrapper{inner: m, tr: tr}
}

type wrapper struct {
	inner model.ToolCallingChatModel
	tr    *genaitrace.Tracer
	tools []*schema.ToolInfo
}

// GetType is the type of the model within.
func (w *wrapper) GetType() string {
	if name, ok := components.GetType(w.inner); ok {
		return name
	}
	t := reflect.TypeOf(w.inner)
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Name()
}

// IsCallbacksEnabled is what the model within says.
func (w *wrapper) IsCallbacksEnabled() bool { return components.IsCallbacksEnabled(w.inner) }

// WithTools wraps the model that has the tools.
func (w *wrapper) WithTools(tools []*schema.ToolInfo) (model.ToolCallingChatModel, error) {
	inner, err := w.inner.WithTools(tools)
	if err != nil {
		return nil, err
	}
	return &wrapper{inner: inner, tr: w.tr, tools: tools}, nil
}

// Generate records a call with one answer.
func (w *wrapper) Generate(ctx context.Context, input []*schema.Message, opts ...model.Option) (answer *schema.Message, err error) {
	ctx, r := w.enter(ctx, input, opts)
	defer r.failOnPanic()
	answer, err = w.inner.Generate(ctx, input, opts...)
	if r == nil || !r.model.wrapped {
		return answer, err // a handler hears of the end
	}
	if err == nil {
		r.learn(answer)
	}
	r.giveBack(err, false)
	return answer, err
}

// Stream records a call whose answer comes in pieces.
func (w *wrapper) Stream(ctx context.Context, input []*schema.Message, opts ...model.Option) (*schema.StreamReader[*schema.Message], error) {
	ctx, r := w.enter(ctx, input, opts)
	defer r.failOnPanic()
	source, err := w.inner.Stream(ctx, input, opts...)
	if r == nil {
		return source, err
	}
	if err != nil || source == nil {
		r.giveBack(err, false)
		return source, err
	}
	if !r.take() || !r.hold() {
		return source, nil
	}
	r.model.call.SetRequest(genaitrace.Request{Stream: true})
	r.giveBack(nil, true)
	out, in := schema.Pipe[*schema.Message](0)
	go r.pass(source, in)
	return out, nil
}

// enter is the run of the call: one that a handler has just started for it, else one of
// its own.
func (w *wrapper) enter(ctx context.Context, input []*schema.Message, opts []model.Option) (context.Context, *run) {
	if r := runFrom(ctx); r != nil && r.model != nil && !r.model.wrapped && !r.isBack() && !r.isTaken() {
		return ctx, r
	}
	chosen := model.GetCommonOptions(&model.Options{Tools: w.tools}, opts...)
	info := &callbacks.RunInfo{Type: w.GetType(), Component: components.ComponentOfChatModel}
	inner, r := startModel(ctx, w.tr, info, &model.CallbackInput{Messages: input, Tools: chosen.Tools})
	if r == nil {
		return inner, nil
	}
	r.model.wrapped = true
	r.model.call.SetRequest(requested(chosen))
	return inner, r
}

// requested is what the options of a call say.
func requested(o *model.Options) (req genaitrace.Request) {
	if o.Model != nil {
		req.Model = *o.Model
	}
	if o.MaxTokens != nil {
		req.MaxTokens = *o.MaxTokens
	}
	if o.Temperature != nil {
		req.Temperature = widened(*o.Temperature)
	}
	if o.TopP != nil {
		req.TopP = widened(*o.TopP)
	}
	return req
}

// failOnPanic is for defer.
func (r *run) failOnPanic() {
	if v := recover(); v != nil {
		if r != nil {
			r.abort(&panicError{v})
		}
		panic(v)
	}
}

// pass hands a stream on, piece by piece: it holds one at most, and reads the next when
// that was taken. The spans have ended when the reader hears of the end.
func (r *run) pass(source *schema.StreamReader[*schema.Message], out *schema.StreamWriter[*schema.Message]) {
	var once sync.Once
	over := func(err error) { once.Do(func() { r.release(err) }) }
	defer func() {
		if v := recover(); v != nil { // of who made the stream, as Eino does it
			failure := &panicError{v}
			over(failure)
			out.Send(nil, failure)
		}
		source.Close()
		out.Close()
	}()
	next, stop := receive(r.model, source.Recv)
	for {
		piece, err := next()
		switch {
		case err == io.EOF: //nolint:errorlint // wrapped, it is the cause of something else
			over(nil)
			return
		case err != nil:
			over(err)
		}
		if closed := out.Send(piece, err); closed {
			stop()
			over(r.model.abandoned())
			return
		}
	}
}
