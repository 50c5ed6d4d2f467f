package genailangchain

import (
	"context"

	"github.com/tmc/langchaingo/llms"
	"go.opentelemetry.io/otel/attribute"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// WrapModel records the calls of a model. req says what all of them have in common:
// Provider and Model, which the conventions require and no llms.Model tells, and where
// they are known ServerAddress and ServerPort. The options of a call add to it:
// llms.WithModel wins over req.Model.
//
// The result is an [llms.ReasoningModel] where model is one. It has no other methods of
// model: embeddings go through [WrapEmbedder]. It is as safe for concurrent use as
// model is. Where nothing records, model is all that runs; a nil model stays nil.
//
// The deprecated method Call is that of model, which returns text alone: usage and
// finish reasons are unknown there, unless package genaihttp's transport tells them.
func WrapModel(model llms.Model, tracer *genaitrace.Tracer, req genaitrace.Request) llms.Model {
	if model == nil {
		return nil
	}
	m := &wrappedModel{inner: model, tracer: tracer, request: req}
	if r, ok := model.(llms.ReasoningModel); ok {
		return &reasoningModel{m, r}
	}
	return m
}

type wrappedModel struct {
	inner   llms.Model
	tracer  *genaitrace.Tracer
	request genaitrace.Request
}

// reasoningModel is a wrappedModel that says whether the model reasons.
type reasoningModel struct {
	*wrappedModel

	inner llms.ReasoningModel
}

func (m *reasoningModel) SupportsReasoning() bool { return m.inner.SupportsReasoning() }

// GenerateContent is that of the model.
func (m *wrappedModel) GenerateContent(ctx context.Context, messages []llms.MessageContent, options ...llms.CallOption) (*llms.ContentResponse, error) {
	return record(ctx, m, messages, options, func(ctx context.Context, options []llms.CallOption) (*llms.ContentResponse, *llms.ContentResponse, error) {
		answer, err := m.inner.GenerateContent(ctx, messages, options...)
		return answer, answer, err
	})
}

// Call is that of the model.
func (m *wrappedModel) Call(ctx context.Context, prompt string, options ...llms.CallOption) (string, error) {
	messages := []llms.MessageContent{llms.TextParts(llms.ChatMessageTypeHuman, prompt)}
	return record(ctx, m, messages, options, func(ctx context.Context, options []llms.CallOption) (string, *llms.ContentResponse, error) {
		text, err := m.inner.Call(ctx, prompt, options...) //nolint:staticcheck // who calls it gets it
		if err != nil {
			return text, nil, err
		}
		return text, &llms.ContentResponse{Choices: []*llms.ContentChoice{{Content: text}}}, nil
	})
}

// record makes one model call and records it. do returns its answer twice: as the
// caller wants it, and as it is recorded.
func record[T any](
	ctx context.Context, m *wrappedModel, messages []llms.MessageContent, options []llms.CallOption,
	do func(context.Context, []llms.CallOption) (T, *llms.ContentResponse, error),
) (result T, err error) {
	s := readSettings(options)
	ctx, call := m.tracer.StartCall(ctx, s.request(m.request))
	if call == nil {
		result, _, err = do(ctx, options)
		return result, err
	}
	var cause error
	defer call.EndErr(&cause)
	call.SetAttributes(s.attributes()...)
	call.SetInput(input(messages, s))

	stream := &stream{call: call, settings: s}
	result, answer, err := do(ctx, stream.wrap(options))
	if err != nil {
		noteFailure(ctx, call, err)
	}
	fed, cause := stream.end(ctx, answer, err)
	noteAnswer(call, s, answer, fed)
	return result, err
}

// noteAnswer notes what the answer tells. Where a transport fed the stream, it has told
// of every choice why it ended, and the library may know the first alone.
func noteAnswer(call *genaitrace.Call, s settings, answer *llms.ContentResponse, fed bool) {
	if answer == nil || len(answer.Choices) == 0 {
		return
	}
	call.SetUsage(usageOf(answer.Choices, s.choices > 1))
	if reasons := finishReasons(answer.Choices, s.choices > 1); len(reasons) > 0 && !fed {
		call.SetFinish(reasons...)
	}
	if first := answer.Choices[0]; first != nil {
		id, _ := first.GenerationInfo["id"].(string)
		model, _ := first.GenerationInfo["model"].(string)
		call.SetResponse(id, model)
	}
	call.SetOutput(output(answer.Choices, s.choices > 1))
}

// attributes are the settings that a [genaitrace.Request] has no field for.
func (s *settings) attributes() (attrs []attribute.KeyValue) {
	if s.tools > 0 {
		attrs = append(attrs, semconv.GenAIRequestToolCount(s.tools))
	}
	if len(s.stop) > 0 {
		attrs = append(attrs, genaiconv.RequestStopSequences(s.stop...))
	}
	if s.frequencyPenalty != nil {
		attrs = append(attrs, genaiconv.RequestFrequencyPenalty(*s.frequencyPenalty))
	}
	if s.presencePenalty != nil {
		attrs = append(attrs, genaiconv.RequestPresencePenalty(*s.presencePenalty))
	}
	return attrs
}
