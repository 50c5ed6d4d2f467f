package column

import (
	"context"
	"net/http"
	"time"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/anthropics/anthropic-sdk-go/v2/packages/ssestream"

	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// anthropics are the columns whose client is Anthropic's library, which makes a span
// of each call unless told otherwise.
func anthropics() []Column {
	const bare = "anthropic-sdk-go-off"
	return []Column{
		{Name: bare, API: Anthropic, Library: true, Client: anthropicSDK(false)},
		{
			Name: "anthropic-sdk-go", API: Anthropic, Bare: bare, Library: true, Client: anthropicSDK(true),
			FirstToken: sinceStart(genaiconv.ResponseTimeToFirstChunkKey, time.Second), StopReason: "anthropic.message.stop_reason",
		},
		{
			Name: "anthropic-sdk-go+otelgenai", API: Anthropic, Bare: bare, Library: true, Client: anthropicSDK(true),
			Transport: ours, FirstToken: ourFirstToken, Ours: true, Metrics: true,
		},
	}
}

type anthropicStream struct {
	*ssestream.Stream[anthropic.MessageStreamEventUnion]
}

func (s anthropicStream) Text() string {
	current := s.Current()
	return current.RawJSON()
}

func anthropicSDK(spans bool) func(http.RoundTripper, Telemetry) Client {
	return func(rt http.RoundTripper, t Telemetry) Client {
		client := anthropic.NewClient(option.WithHTTPClient(&http.Client{Transport: rt}), option.WithAPIKey("none"), option.WithMaxRetries(0),
			option.WithTracerProvider(t.Traces), option.WithOpenTelemetryTraces(spans))
		return func(ctx context.Context, url string, _ http.Header) (Stream, error) {
			return anthropicStream{client.Messages.NewStreaming(ctx, anthropic.MessageNewParams{
				Model: "claude-fx", MaxTokens: 4096,
				Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("hello"))},
			}, option.WithBaseURL(url))}, nil
		}
	}
}
