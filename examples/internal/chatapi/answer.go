package chatapi

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// The shapes of an answer.
type (
	// Response is a whole answer, or one chunk of a streamed one.
	Response struct {
		ID      string   `json:"id"`
		Object  string   `json:"object"`
		Created int64    `json:"created"`
		Model   string   `json:"model"`
		Choices []Choice `json:"choices"`
		Usage   *Usage   `json:"usage,omitempty"`
		Metrics *Metrics `json:"metrics,omitempty"`
	}

	// Choice is one of the answers to a request; there is one.
	Choice struct {
		Index        int     `json:"index"`
		Message      *Delta  `json:"message,omitempty"`
		Delta        *Delta  `json:"delta,omitempty"`
		FinishReason *string `json:"finish_reason"`
	}

	// Delta is a piece of an answer, or all of it.
	Delta struct {
		Role      string     `json:"role,omitempty"`
		Content   string     `json:"content,omitempty"`
		ToolCalls []ToolCall `json:"tool_calls,omitempty"`
	}

	// Usage counts tokens.
	Usage struct {
		PromptTokens     int32 `json:"prompt_tokens"`
		CompletionTokens int32 `json:"completion_tokens"`
		TotalTokens      int32 `json:"total_tokens"`
		Details          struct {
			CachedTokens int32 `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	}

	// Metrics is what vLLM tells of its work on a request, where it is told to; its
	// time to first token counts from the scheduler.
	Metrics struct {
		QueueTimeMs        float64 `json:"queue_time_ms"`
		TimeToFirstTokenMs float64 `json:"time_to_first_token_ms"`
		GenerationTimeMs   float64 `json:"generation_time_ms"`
	}
)

// NewUsage counts the tokens of a request, cached ones among the input.
func NewUsage(input, cached, output int32) *Usage {
	u := &Usage{PromptTokens: input, CompletionTokens: output, TotalTokens: input + output}
	u.Details.CachedTokens = cached
	return u
}

// An End is how an answer ended. What is nil is not told.
type End struct {
	Reason  string
	Usage   *Usage
	Metrics *Metrics
}

// A Writer sends an answer in one of its two forms. Where the request has tools, the
// calls that stand in the text (see [CallStart]) are sent as such.
type Writer interface {
	// Text sends a piece of the answer.
	Text(piece string) error
	// Finish sends its end.
	Finish(end End) error
	// Fail says why there is no end. The client may be gone, so it returns no error.
	Fail(err *Error)
}

// NewWriter returns what sends the answer to req.
func NewWriter(w http.ResponseWriter, req *Request) Writer {
	var calls *callParser
	if len(req.Tools) > 0 {
		calls = newCallParser()
	}
	if req.Stream {
		return &streamed{w: w, head: newHead(req, "chat.completion.chunk"), usage: req.StreamOptions.IncludeUsage, calls: calls}
	}
	return &whole{w: w, head: newHead(req, "chat.completion"), calls: calls}
}

// deltas are what a piece of text amounts to.
func (p *callParser) deltas(piece string) []Delta {
	if p == nil {
		return []Delta{{Content: piece}}
	}
	return p.feed(piece)
}

// finish is what is left, and the reason why the answer ended.
func (p *callParser) finish(reason string) ([]Delta, string) {
	if p == nil {
		return nil, reason
	}
	rest := p.end()
	if p.calls > 0 && reason == "stop" {
		reason = "tool_calls"
	}
	return rest, reason
}

func newHead(req *Request, object string) Response {
	return Response{ID: "chatcmpl-" + rand.Text(), Object: object, Created: time.Now().Unix(), Model: req.Model}
}

// whole is one JSON document at the end.
type whole struct {
	w       http.ResponseWriter
	head    Response
	calls   *callParser
	text    strings.Builder
	asked   []ToolCall
	written bool
}

func (a *whole) Text(piece string) error {
	a.add(a.calls.deltas(piece))
	return nil
}

func (a *whole) add(deltas []Delta) {
	for _, d := range deltas {
		a.text.WriteString(d.Content)
		for _, c := range d.ToolCalls {
			if c.ID != "" {
				c.Index = nil
				a.asked = append(a.asked, c)
			} else {
				a.asked[len(a.asked)-1].Function.Arguments += c.Function.Arguments
			}
		}
	}
}

func (a *whole) Finish(end End) error {
	rest, reason := a.calls.finish(end.Reason)
	a.add(rest)
	response := a.head
	response.Choices = []Choice{{
		Message:      &Delta{Role: "assistant", Content: a.text.String(), ToolCalls: a.asked},
		FinishReason: &reason,
	}}
	response.Usage, response.Metrics = end.Usage, end.Metrics
	a.written = true
	return WriteJSON(a.w, http.StatusOK, response)
}

func (a *whole) Fail(err *Error) {
	if !a.written {
		err.Write(a.w)
	}
}

// streamed is a server-sent event for each piece of text, between one that names
// the role and one that says why the text ended. Nothing is written before the
// first piece, so that a refusal keeps its HTTP status.
type streamed struct {
	w       http.ResponseWriter
	head    Response
	usage   bool // the client wants it
	calls   *callParser
	started bool
}

func (a *streamed) Text(piece string) error {
	if err := a.start(); err != nil {
		return err
	}
	return a.sendAll(a.calls.deltas(piece))
}

func (a *streamed) sendAll(deltas []Delta) error {
	for _, d := range deltas {
		if err := a.send(Choice{Delta: &d}); err != nil {
			return err
		}
	}
	return nil
}

func (a *streamed) start() error {
	if a.started {
		return nil
	}
	a.started = true
	a.w.Header().Set("Content-Type", "text/event-stream")
	a.w.Header().Set("Cache-Control", "no-cache")
	return a.send(Choice{Delta: &Delta{Role: "assistant"}})
}

func (a *streamed) Finish(end End) error {
	if err := a.start(); err != nil {
		return err
	}
	rest, reason := a.calls.finish(end.Reason)
	if err := a.sendAll(rest); err != nil {
		return err
	}
	if err := a.send(Choice{Delta: &Delta{}, FinishReason: &reason}); err != nil {
		return err
	}
	if a.usage {
		last := a.head
		last.Choices, last.Usage, last.Metrics = []Choice{}, end.Usage, end.Metrics
		if err := a.event(last); err != nil {
			return err
		}
	}
	if _, err := io.WriteString(a.w, "data: [DONE]\n\n"); err != nil {
		return err
	}
	return http.NewResponseController(a.w).Flush()
}

func (a *streamed) Fail(err *Error) {
	if !a.started {
		err.Write(a.w)
		return
	}
	_ = a.event(err) // the status is gone, and the client may be too
}

func (a *streamed) send(choice Choice) error {
	chunk := a.head
	chunk.Choices = []Choice{choice}
	return a.event(chunk)
}

func (a *streamed) event(v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(a.w, "data: %s\n\n", data); err != nil {
		return err
	}
	return http.NewResponseController(a.w).Flush()
}
