package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/anthropics/anthropic-sdk-go/v2"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/v2/option"
	ollama "github.com/ollama/ollama/api"
	"github.com/openai/openai-go/v3"
	openaioption "github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	goopenai "github.com/sashabaranov/go-openai"
)

// What the libraries are asked through. Each answer is all that its library hands to
// its user, as the library writes it.

func openaiClient(base string, client *http.Client) openai.Client {
	return openai.NewClient(openaioption.WithBaseURL(base+"/v1"), openaioption.WithHTTPClient(client),
		openaioption.WithAPIKey("none"), openaioption.WithMaxRetries(0))
}

func openaiParams() openai.ChatCompletionNewParams {
	p := openai.ChatCompletionNewParams{
		Model:       "gpt-fx",
		Messages:    []openai.ChatCompletionMessageParamUnion{openai.UserMessage("a secret")},
		Temperature: openai.Float(0.5),
	}
	return p
}

func openaiStream(ctx context.Context, base string, client *http.Client, heard func(string)) (string, error) {
	c, params := openaiClient(base, client), openaiParams()
	params.StreamOptions.IncludeUsage = openai.Bool(true)
	stream := c.Chat.Completions.NewStreaming(ctx, params)
	defer stream.Close()
	var all strings.Builder
	for stream.Next() {
		chunk := stream.Current()
		all.WriteString(chunk.RawJSON() + "\n")
		for _, choice := range chunk.Choices {
			heard(choice.Delta.Content)
		}
	}
	return all.String(), stream.Err()
}

func openaiWhole(ctx context.Context, base string, client *http.Client, _ func(string)) (string, error) {
	c := openaiClient(base, client)
	completion, err := c.Chat.Completions.New(ctx, openaiParams())
	if err != nil {
		return "", err
	}
	return completion.RawJSON(), nil
}

func openaiResponses(ctx context.Context, base string, client *http.Client, heard func(string)) (string, error) {
	c := openaiClient(base, client)
	stream := c.Responses.NewStreaming(ctx, responses.ResponseNewParams{
		Model: "gpt-fx", Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("a secret")},
	})
	defer stream.Close()
	var all strings.Builder
	for stream.Next() {
		event := stream.Current()
		all.WriteString(event.RawJSON() + "\n")
		heard(event.Delta)
	}
	return all.String(), stream.Err()
}

func anthropicStream(ctx context.Context, base string, client *http.Client, heard func(string)) (string, error) {
	c := anthropic.NewClient(anthropicoption.WithBaseURL(base), anthropicoption.WithHTTPClient(client),
		anthropicoption.WithAPIKey("none"), anthropicoption.WithMaxRetries(0))
	stream := c.Messages.NewStreaming(ctx, anthropic.MessageNewParams{
		Model: "claude-fx", MaxTokens: 64,
		Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("a secret"))},
	})
	defer stream.Close()
	var all strings.Builder
	for stream.Next() {
		event := stream.Current()
		all.WriteString(event.RawJSON() + "\n")
		heard(event.Delta.Text)
	}
	return all.String(), stream.Err()
}

func goOpenAIStream(ctx context.Context, base string, client *http.Client, heard func(string)) (string, error) {
	config := goopenai.DefaultConfig("none")
	config.BaseURL, config.HTTPClient = base+"/v1", client
	stream, err := goopenai.NewClientWithConfig(config).CreateChatCompletionStream(ctx, goopenai.ChatCompletionRequest{
		Model: "gpt-fx", StreamOptions: &goopenai.StreamOptions{IncludeUsage: true},
		Messages: []goopenai.ChatCompletionMessage{{Role: "user", Content: "a secret"}},
	})
	if err != nil {
		return "", err
	}
	defer stream.Close()
	var all strings.Builder
	for {
		chunk, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return all.String(), nil
		}
		if err != nil {
			return all.String(), err
		}
		write(&all, chunk)
		for _, choice := range chunk.Choices {
			heard(choice.Delta.Content)
		}
	}
}

func ollamaChat(ctx context.Context, base string, client *http.Client, heard func(string)) (string, error) {
	u, err := url.Parse(base)
	if err != nil {
		return "", err
	}
	var all strings.Builder
	err = ollama.NewClient(u, client).Chat(ctx, &ollama.ChatRequest{
		Model: "llama-fx", Messages: []ollama.Message{{Role: "user", Content: "a secret"}},
	}, func(r ollama.ChatResponse) error {
		write(&all, r)
		heard(r.Message.Content)
		return nil
	})
	return all.String(), err
}

func write(all *strings.Builder, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		all.WriteString(err.Error())
	}
	all.Write(append(text, '\n'))
}
