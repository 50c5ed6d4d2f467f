package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/genaitrace/otelgenai/examples/internal/inferencev1"
)

// The part of the OpenAI chat API that the gateway speaks.
type (
	chatRequest struct {
		Model         string        `json:"model"`
		Messages      []chatMessage `json:"messages"`
		N             int           `json:"n"`
		Stream        bool          `json:"stream"`
		StreamOptions struct {
			IncludeUsage bool `json:"include_usage"`
		} `json:"stream_options"`
		MaxTokens           *int32   `json:"max_tokens"` // the older name
		MaxCompletionTokens *int32   `json:"max_completion_tokens"`
		Temperature         *float64 `json:"temperature"`
	}

	chatMessage struct {
		Role    string      `json:"role"`
		Content chatContent `json:"content"`
	}

	// chatContent is a string, or a list of parts of which those with text count.
	chatContent string

	// chatResponse is a whole response, or one chunk of a streamed one.
	chatResponse struct {
		ID      string       `json:"id"`
		Object  string       `json:"object"`
		Created int64        `json:"created"`
		Model   string       `json:"model"`
		Choices []chatChoice `json:"choices"`
		Usage   *chatUsage   `json:"usage,omitempty"`
	}

	chatChoice struct {
		Index        int        `json:"index"`
		Message      *chatDelta `json:"message,omitempty"`
		Delta        *chatDelta `json:"delta,omitempty"`
		FinishReason *string    `json:"finish_reason"`
	}

	chatDelta struct {
		Role    string `json:"role,omitempty"`
		Content string `json:"content,omitempty"`
	}

	chatUsage struct {
		PromptTokens     int32 `json:"prompt_tokens"`
		CompletionTokens int32 `json:"completion_tokens"`
		TotalTokens      int32 `json:"total_tokens"`
		Details          struct {
			CachedTokens int32 `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	}
)

func (c *chatContent) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err == nil {
		*c = chatContent(text)
		return nil
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if err := json.Unmarshal(data, &parts); err != nil {
		return errors.New("content is neither a string nor a list of parts")
	}
	var all strings.Builder
	for _, p := range parts {
		all.WriteString(p.Text)
	}
	*c = chatContent(all.String())
	return nil
}

// maxBody bounds the body of a request.
const maxBody = 1 << 20

// readRequest decodes and checks a request.
func readRequest(w http.ResponseWriter, r *http.Request) (*chatRequest, error) {
	var req chatRequest
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&req); err != nil {
		if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return nil, &apiError{http.StatusRequestEntityTooLarge, "", fmt.Sprintf("the body is larger than %d bytes", tooLarge.Limit)}
		}
		return nil, badRequest("the body is not a chat request: %v", err)
	}
	switch {
	case req.Model == "":
		return nil, badRequest("model is missing")
	case len(req.Messages) == 0:
		return nil, badRequest("messages are missing")
	case req.N < 0 || req.N > 1:
		return nil, badRequest("n is %d, but only one choice is supported", req.N)
	case req.maxTokens() != nil && *req.maxTokens() < 1:
		return nil, badRequest("max_tokens is %d, want at least 1", *req.maxTokens())
	}
	for i, m := range req.Messages {
		if !slices.Contains([]string{"system", "developer", "user", "assistant"}, m.Role) {
			return nil, badRequest("messages[%d].role is %q, want system, developer, user or assistant", i, m.Role)
		}
	}
	return &req, nil
}

func (r *chatRequest) maxTokens() *int32 {
	if r.MaxCompletionTokens != nil {
		return r.MaxCompletionTokens
	}
	return r.MaxTokens
}

// backend is the same request for the inference service.
func (r *chatRequest) backend() *inferencev1.GenerateRequest {
	out := &inferencev1.GenerateRequest{Model: r.Model, MaxTokens: r.maxTokens(), Temperature: r.Temperature}
	for _, m := range r.Messages {
		out.Messages = append(out.Messages, &inferencev1.Message{Role: m.Role, Content: string(m.Content)})
	}
	return out
}

func newChatUsage(u *inferencev1.Usage) *chatUsage {
	usage := &chatUsage{
		PromptTokens:     u.GetInputTokens(),
		CompletionTokens: u.GetOutputTokens(),
		TotalTokens:      u.GetInputTokens() + u.GetOutputTokens(),
	}
	usage.Details.CachedTokens = u.GetCachedTokens()
	return usage
}

// apiError is an error in the shape that OpenAI clients read.
type apiError struct {
	status  int
	code    string
	message string
}

func (e *apiError) Error() string { return e.message }

func badRequest(format string, args ...any) error {
	return &apiError{http.StatusBadRequest, "", fmt.Sprintf(format, args...)}
}

// toAPIError gives an error of the backend its HTTP status.
func toAPIError(err error) *apiError {
	if e, ok := errors.AsType[*apiError](err); ok {
		return e
	}
	s := status.Convert(err)
	switch s.Code() {
	case codes.NotFound:
		return &apiError{http.StatusNotFound, "model_not_found", s.Message()}
	case codes.InvalidArgument:
		return &apiError{http.StatusBadRequest, "", s.Message()}
	case codes.ResourceExhausted:
		return &apiError{http.StatusTooManyRequests, "overloaded", s.Message()}
	case codes.Unavailable:
		return &apiError{http.StatusServiceUnavailable, "", "the inference service cannot be reached"}
	case codes.DeadlineExceeded:
		return &apiError{http.StatusGatewayTimeout, "", "the inference service did not answer in time"}
	default:
		return &apiError{http.StatusInternalServerError, "", s.Message()}
	}
}

func (e *apiError) MarshalJSON() ([]byte, error) {
	kind := "invalid_request_error"
	if e.status >= http.StatusInternalServerError {
		kind = "server_error"
	}
	var code *string
	if e.code != "" {
		code = &e.code
	}
	return json.Marshal(map[string]any{"error": map[string]any{
		"message": e.message, "type": kind, "param": nil, "code": code,
	}})
}
