package column

import (
	"context"
	"net/http"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// openAIs are the columns whose client is OpenAI's library, which has no
// instrumentation of its own.
func openAIs() []Column {
	return []Column{
		{Name: "openai-go", Library: true, Client: openAI},
		{
			Name: "openai-go+event-per-token", Bare: "openai-go", Library: true, Client: openAIWithEvents,
			FirstToken: sinceStart(semconv.LLMTTFTMsKey, time.Millisecond),
		},
		{
			Name: "openai-go+otelgenai", Bare: "openai-go", Library: true, Client: openAI, Transport: ours,
			FirstToken: ourFirstToken, Ours: true, Metrics: true,
		},
	}
}

type openAIStream struct {
	*ssestream.Stream[openai.ChatCompletionChunk]
}

func (s openAIStream) Text() string {
	current := s.Current()
	return current.RawJSON()
}

func openAI(rt http.RoundTripper, _ Telemetry) Client {
	client := openai.NewClient(option.WithHTTPClient(&http.Client{Transport: rt}), option.WithAPIKey("none"), option.WithMaxRetries(0))
	return func(ctx context.Context, url string, _ http.Header) (Stream, error) {
		return openAIStream{client.Chat.Completions.NewStreaming(ctx, openai.ChatCompletionNewParams{
			Model:         "gpt-fx",
			Messages:      []openai.ChatCompletionMessageParamUnion{openai.UserMessage("hello")},
			StreamOptions: openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)},
		}, option.WithBaseURL(url+"/v1"))}, nil
	}
}

// openAIWithEvents is the application that makes the span around the library, with an
// event for each chunk.
func openAIWithEvents(rt http.RoundTripper, t Telemetry) Client {
	client, tracer := openAI(rt, t), t.Traces.Tracer("event-per-token")
	return func(ctx context.Context, url string, header http.Header) (Stream, error) {
		start := time.Now()
		ctx, span := tracer.Start(ctx, "chat gpt-fx", trace.WithSpanKind(trace.SpanKindClient), trace.WithTimestamp(start), trace.WithAttributes(
			genaiconv.OperationName(genaiconv.OperationNameChat),
			genaiconv.ProviderName(genaiconv.ProviderNameOpenAI),
			genaiconv.RequestModel("gpt-fx"),
		))
		stream, err := client(ctx, url, header)
		if err != nil {
			failSpan(span, err)
			return nil, err
		}
		return &eventStream{openAIStream: stream.(openAIStream), tokens: tokenEvents{span: span, start: start}}, nil
	}
}

type eventStream struct {
	openAIStream

	tokens tokenEvents
}

func (s *eventStream) Next() bool {
	if !s.openAIStream.Next() {
		s.tokens.end(s.Err())
		return false
	}
	current := s.Current()
	var size int
	for _, choice := range current.Choices {
		size += len(choice.Delta.Content)
		if choice.FinishReason != "" {
			s.tokens.span.SetAttributes(genaiconv.ResponseFinishReasons(choice.FinishReason))
		}
	}
	if current.JSON.Usage.Valid() {
		s.tokens.usage(int(current.Usage.PromptTokens), int(current.Usage.CompletionTokens))
	}
	s.tokens.token(size)
	return true
}

func (s *eventStream) Close() error {
	s.tokens.end(nil)
	return s.openAIStream.Close()
}
