package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

const systemPrompt = "You are a helpful assistant. Answer in one or two short sentences."

// client is the user of the gateway. It knows nothing of tracing.
type client struct {
	api       openai.Client
	model     string
	stream    bool
	maxTokens int
}

func newClient(gatewayURL string, transport http.RoundTripper, c *config) *client {
	opts := []option.RequestOption{
		option.WithBaseURL(gatewayURL + "/v1"),
		option.WithHTTPClient(&http.Client{Transport: transport}),
		option.WithMaxRetries(0), // one question, one trace
	}
	if c.baseURL == nil {
		opts = append(opts, option.WithAPIKey("none")) // a real one is for real servers
	}
	return &client{api: openai.NewClient(opts...), model: c.model, stream: c.stream, maxTokens: c.maxTokens}
}

// ask returns the answer, and hands its pieces to onText as they come.
func (c *client) ask(ctx context.Context, question string, onText func(string)) (string, error) {
	params := openai.ChatCompletionNewParams{
		Model: c.model,
		Messages: []openai.ChatCompletionMessageParamUnion{
			openai.SystemMessage(systemPrompt),
			openai.UserMessage(question),
		},
	}
	if c.maxTokens > 0 {
		params.MaxTokens = openai.Int(int64(c.maxTokens))
	}
	if c.stream {
		return c.askStreaming(ctx, params, onText)
	}
	completion, err := c.api.Chat.Completions.New(ctx, params)
	if err != nil || len(completion.Choices) == 0 {
		return "", explain(err)
	}
	text := completion.Choices[0].Message.Content
	onText(text)
	return text, nil
}

func (c *client) askStreaming(ctx context.Context, params openai.ChatCompletionNewParams, onText func(string)) (string, error) {
	params.StreamOptions.IncludeUsage = openai.Bool(true)
	stream := c.api.Chat.Completions.NewStreaming(ctx, params)
	defer func() { _ = stream.Close() }()
	var text strings.Builder
	for stream.Next() {
		for _, choice := range stream.Current().Choices {
			text.WriteString(choice.Delta.Content)
			onText(choice.Delta.Content)
		}
	}
	return text.String(), explain(stream.Err())
}

// explain adds what the server said, which openai-go keeps out of its error.
func explain(err error) error {
	if e, ok := errors.AsType[*openai.Error](err); ok && e.Message != "" {
		return fmt.Errorf("%w: %s", err, e.Message)
	}
	return err
}
