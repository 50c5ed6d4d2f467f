package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
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

// numberHeader tells the gateway which of several requests it is.
const numberHeader = "X-Request-Number"

func withNumber(n int) option.RequestOption { return option.WithHeader(numberHeader, strconv.Itoa(n)) }

var (
	errNoAnswer   = errors.New("the response has no answer in it")
	errEndedEarly = errors.New("the answer ended early: no finish_reason came")
)

// ask returns the answer, or the part of it that came, and hands its pieces to
// onText as they come.
func (c *client) ask(ctx context.Context, question string, onText func(string), opts ...option.RequestOption) (string, error) {
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
		return c.askStreaming(ctx, params, onText, opts)
	}
	completion, err := c.api.Chat.Completions.New(ctx, params, opts...)
	if err != nil {
		return "", explain(err)
	}
	if len(completion.Choices) == 0 {
		return "", errNoAnswer
	}
	text := completion.Choices[0].Message.Content
	onText(text)
	return text, nil
}

func (c *client) askStreaming(ctx context.Context, params openai.ChatCompletionNewParams, onText func(string), opts []option.RequestOption) (string, error) {
	params.StreamOptions.IncludeUsage = openai.Bool(true)
	stream := c.api.Chat.Completions.NewStreaming(ctx, params, opts...)
	defer func() { _ = stream.Close() }()
	var text strings.Builder
	finished := false
	for stream.Next() {
		for _, choice := range stream.Current().Choices {
			text.WriteString(choice.Delta.Content)
			onText(choice.Delta.Content)
			finished = finished || choice.FinishReason != ""
		}
	}
	if err := stream.Err(); err != nil {
		return text.String(), explain(err)
	}
	if !finished { // a connection can close in the middle of an answer without an error
		return text.String(), errEndedEarly
	}
	return text.String(), nil
}

// explain adds what the server said, which openai-go keeps out of its error.
func explain(err error) error {
	if e, ok := errors.AsType[*openai.Error](err); ok && e.Message != "" {
		return fmt.Errorf("%w: %s", err, e.Message)
	}
	return err
}
