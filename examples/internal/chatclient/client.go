// Package chatclient is the user of the examples: it asks a server that speaks
// OpenAI's API, with OpenAI's library, and knows nothing of tracing.
package chatclient

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

const systemPrompt = "You are a helpful assistant. Answer in one or two short sentences."

// Options says who is asked, and how.
type Options struct {
	BaseURL   string            // such as http://localhost:8000/v1
	Transport http.RoundTripper // nil: http.DefaultTransport
	APIKey    string            // empty: what OPENAI_API_KEY says
	Model     string
	Stream    bool
	MaxTokens int // 0: no limit
}

// A Client asks questions. It is safe for concurrent use.
type Client struct {
	api openai.Client
	o   Options
}

// New returns a client. It does not retry: one question, one request.
func New(o Options) *Client {
	opts := []option.RequestOption{
		option.WithBaseURL(o.BaseURL),
		option.WithHTTPClient(&http.Client{Transport: o.Transport}),
		option.WithMaxRetries(0),
	}
	if o.APIKey != "" {
		opts = append(opts, option.WithAPIKey(o.APIKey))
	}
	return &Client{api: openai.NewClient(opts...), o: o}
}

// What is wrong with an answer of status 200.
var (
	ErrNoAnswer   = errors.New("the response has no answer in it")
	ErrEndedEarly = errors.New("the answer ended early: no finish_reason came")
	ErrMixedUp    = errors.New("the pieces of the answer do not belong together")
)

// Ask returns the answer, or the part of it that came, and hands its pieces to
// onText as they come.
func (c *Client) Ask(ctx context.Context, question string, onText func(string), opts ...option.RequestOption) (string, error) {
	params := openai.ChatCompletionNewParams{
		Model: c.o.Model,
		Messages: []openai.ChatCompletionMessageParamUnion{
			openai.SystemMessage(systemPrompt),
			openai.UserMessage(question),
		},
	}
	if c.o.MaxTokens > 0 {
		params.MaxTokens = openai.Int(int64(c.o.MaxTokens))
	}
	if c.o.Stream {
		return c.stream(ctx, params, onText, opts)
	}
	completion, err := c.api.Chat.Completions.New(ctx, params, opts...)
	if err != nil {
		return "", explain(err)
	}
	if len(completion.Choices) == 0 {
		return "", ErrNoAnswer
	}
	text := completion.Choices[0].Message.Content
	onText(text)
	return text, nil
}

func (c *Client) stream(ctx context.Context, params openai.ChatCompletionNewParams, onText func(string), opts []option.RequestOption) (string, error) {
	answer, err := c.Stream(ctx, params, onText, opts...)
	if len(answer.Choices) == 0 {
		return "", err
	}
	return answer.Choices[0].Message.Content, err
}

// Stream sends any request and returns the answer, or the part of it that came, with
// the calls of tools in it. Its pieces of text go to onText as they come.
func (c *Client) Stream(ctx context.Context, params openai.ChatCompletionNewParams, onText func(string), opts ...option.RequestOption) (openai.ChatCompletion, error) {
	params.Model = c.o.Model
	params.StreamOptions.IncludeUsage = openai.Bool(true)
	stream := c.api.Chat.Completions.NewStreaming(ctx, params, opts...)
	defer func() { _ = stream.Close() }()
	var answer openai.ChatCompletionAccumulator
	finished := false
	for stream.Next() {
		chunk := stream.Current()
		if !answer.AddChunk(chunk) {
			return answer.ChatCompletion, ErrMixedUp
		}
		for _, choice := range chunk.Choices {
			onText(choice.Delta.Content)
			finished = finished || choice.FinishReason != ""
		}
	}
	if err := stream.Err(); err != nil {
		return answer.ChatCompletion, explain(err)
	}
	if !finished { // a connection can close in the middle of an answer without an error
		return answer.ChatCompletion, ErrEndedEarly
	}
	return answer.ChatCompletion, nil
}

// explain adds what the server said, which openai-go keeps out of its error.
func explain(err error) error {
	if e, ok := errors.AsType[*openai.Error](err); ok && e.Message != "" {
		return fmt.Errorf("%w: %s", err, e.Message)
	}
	return err
}
