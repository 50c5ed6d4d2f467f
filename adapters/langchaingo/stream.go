package genailangchain

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/tmc/langchaingo/llms"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/semconv"
)

// A stream stamps the chunks of one call as they reach its streaming functions.
type stream struct {
	call     *genaitrace.Call
	settings settings

	mu      sync.Mutex // a client may call the two functions from two goroutines
	begun   bool
	fed     bool      // a transport stamps what the chunks are made of
	empty   time.Time // of a chunk without text that may yet turn out to be reasoning
	stopped bool      // a streaming function returned an error
}

// wrap adds an option that puts the stream before the caller's functions. Where the
// caller streams text alone, reasoning is listened to all the same: a client that has
// it tells it to the other function, and asks for no more because of it.
func (s *stream) wrap(options []llms.CallOption) []llms.CallOption {
	if !s.settings.streams() {
		return options
	}
	return append(options[:len(options):len(options)], func(o *llms.CallOptions) {
		if s.settings.options.StreamingFunc != nil {
			o.StreamingFunc = s.text
		}
		o.StreamingReasoningFunc = s.reasoning
	})
}

// text stands for the caller's StreamingFunc.
func (s *stream) text(ctx context.Context, chunk []byte) error {
	s.stampText(chunk)
	return s.noteStop(s.settings.options.StreamingFunc(ctx, chunk))
}

// reasoning stands for the caller's StreamingReasoningFunc, if there is one.
func (s *stream) reasoning(ctx context.Context, reasoning, chunk []byte) error {
	s.stampReasoning(reasoning, chunk)
	if s.settings.options.StreamingReasoningFunc == nil {
		return nil
	}
	return s.noteStop(s.settings.options.StreamingReasoningFunc(ctx, reasoning, chunk))
}

func (s *stream) stampText(chunk []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settle(genaitrace.NoOutput)
	if len(chunk) == 0 {
		s.empty = time.Now()
		return
	}
	s.stamp(s.kind(chunk), time.Time{})
}

// stampReasoning gets what stampText got too, where the client calls both functions.
func (s *stream) stampReasoning(reasoning, chunk []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kind := genaitrace.NoOutput
	switch {
	case len(chunk) > 0 && s.settings.options.StreamingFunc != nil:
		return
	case len(chunk) > 0:
		kind = s.kind(chunk)
	case len(reasoning) > 0:
		kind = genaitrace.Output
	}
	if !s.settle(kind) {
		s.stamp(kind, time.Time{})
	}
}

// settle stamps the chunk without text, if there is one.
func (s *stream) settle(kind genaitrace.ChunkKind) bool {
	if s.empty.IsZero() {
		return false
	}
	s.stamp(kind, s.empty)
	s.empty = time.Time{}
	return true
}

// stamp stamps a chunk, unless the transport below has stamped the event that it is
// made of: that has the call before the first chunk comes up here.
func (s *stream) stamp(kind genaitrace.ChunkKind, at time.Time) {
	if !s.begun {
		s.begun, s.fed = true, s.call.Watch() == 0
	}
	if !s.fed {
		s.call.ChunkAt(kind, at)
	}
}

// noteStop notes that a function of the caller stopped the stream.
func (s *stream) noteStop(err error) error {
	if err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.stopped = true
	}
	return err
}

// end says how the stream ended. It returns whether a transport fed it, and what ended
// it, also where err is nil.
func (s *stream) end(ctx context.Context, answer *llms.ContentResponse, err error) (fed bool, cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settle(genaitrace.NoOutput)
	switch {
	case ctx.Err() != nil && s.begun && err == nil && !complete(answer):
		return s.fed, ctx.Err() // OpenAI's client returns what it has by then
	case ctx.Err() != nil:
	case s.stopped && (err != nil || !complete(answer)):
		s.call.SetTerminal(semconv.GenAIStreamTerminalClientCancelled)
	case s.begun && errors.Is(err, io.ErrUnexpectedEOF):
		s.call.SetTerminal(semconv.GenAIStreamTerminalTruncated)
	case err == nil && !s.begun:
		s.call.Watch() // an earlier attempt that failed does not count: this one was no transport's
	}
	if err != nil {
		err = fmt.Errorf("call: %w", err) // a bare io.EOF would be a good end
	}
	return s.fed, err
}

// kind says what a chunk holds. OpenAI's client gives the calls of tools to the same
// function as text, as JSON.
func (s *stream) kind(chunk []byte) genaitrace.ChunkKind {
	if s.settings.tools > 0 && isToolCall(chunk) {
		return genaitrace.Output
	}
	return genaitrace.Visible
}

func isToolCall(chunk []byte) bool {
	type function struct {
		Name      *string `json:"name"`
		Arguments *string `json:"arguments"`
	}
	switch {
	case bytes.HasPrefix(chunk, []byte(`[{"`)):
		var calls []struct {
			Function *function `json:"function"`
		}
		return json.Unmarshal(chunk, &calls) == nil && len(calls) > 0 && calls[0].Function != nil
	case bytes.HasPrefix(chunk, []byte(`{"name":`)):
		var call function
		return json.Unmarshal(chunk, &call) == nil && call.Name != nil && call.Arguments != nil
	}
	return false
}
