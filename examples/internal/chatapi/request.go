package chatapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// Path is where a model is asked.
const Path = "/v1/chat/completions"

// A Request is a conversation to go on with.
type Request struct {
	Model         string    `json:"model"`
	Messages      []Message `json:"messages"`
	Tools         []Tool    `json:"tools"`
	N             int       `json:"n"`
	Stream        bool      `json:"stream"`
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	OldMaxTokens        *int32   `json:"max_tokens"`
	MaxCompletionTokens *int32   `json:"max_completion_tokens"`
	Temperature         *float64 `json:"temperature"`
}

// A Message is one turn of a conversation.
type Message struct {
	Role       string     `json:"role"`
	Content    Content    `json:"content"`
	ToolCalls  []ToolCall `json:"tool_calls,omitempty"`   // of the assistant
	ToolCallID string     `json:"tool_call_id,omitempty"` // of role tool: the call that this answers
}

// Content is a string, or a list of parts of which those with text count.
type Content string

// UnmarshalJSON reads both forms.
func (c *Content) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err == nil {
		*c = Content(text)
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
	*c = Content(all.String())
	return nil
}

// MaxBody bounds the body of a request, in bytes.
const MaxBody = 1 << 20

// ReadRequest decodes and checks a request. Its error is an [*Error].
func ReadRequest(w http.ResponseWriter, r *http.Request) (*Request, error) {
	var req Request
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, MaxBody)).Decode(&req); err != nil {
		if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return nil, &Error{http.StatusRequestEntityTooLarge, "", fmt.Sprintf("the body is larger than %d bytes", tooLarge.Limit)}
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
	case req.MaxTokens() != nil && *req.MaxTokens() < 1:
		return nil, badRequest("max_tokens is %d, want at least 1", *req.MaxTokens())
	}
	for i, m := range req.Messages {
		if !slices.Contains([]string{"system", "developer", "user", "assistant"}, m.Role) && (m.Role != "tool" || len(req.Tools) == 0) {
			return nil, badRequest("messages[%d].role is %q, want system, developer, user or assistant, or where there are tools, tool", i, m.Role)
		}
	}
	return &req, req.checkTools()
}

// MaxTokens is the limit under either of its names; nil where there is none.
func (r *Request) MaxTokens() *int32 {
	if r.MaxCompletionTokens != nil {
		return r.MaxCompletionTokens
	}
	return r.OldMaxTokens
}

// An Error is an error in the shape that OpenAI clients read.
type Error struct {
	Status  int // of the answer, where it has not begun
	Code    string
	Message string
}

func (e *Error) Error() string { return e.Message }

func badRequest(format string, args ...any) error {
	return &Error{http.StatusBadRequest, "", fmt.Sprintf(format, args...)}
}

// MarshalJSON writes the object that clients look for.
func (e *Error) MarshalJSON() ([]byte, error) {
	kind := "invalid_request_error"
	if e.Status >= http.StatusInternalServerError {
		kind = "server_error"
	}
	var code *string
	if e.Code != "" {
		code = &e.Code
	}
	return json.Marshal(map[string]any{"error": map[string]any{
		"message": e.Message, "type": kind, "param": nil, "code": code,
	}})
}

// Write answers with the error. The client may be gone, so it returns none.
func (e *Error) Write(w http.ResponseWriter) { _ = WriteJSON(w, e.Status, e) }

// WriteJSON answers with v.
func WriteJSON(w http.ResponseWriter, status int, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, err = w.Write(data)
	return err
}
