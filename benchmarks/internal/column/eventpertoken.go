package column

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// An eventPerToken is what tutorials show: each line of data is parsed and becomes an
// event of the span, and the first one is taken for the first token.
type eventPerToken struct {
	base   http.RoundTripper
	tracer trace.Tracer
}

func newEventPerToken(base http.RoundTripper, t Telemetry) *eventPerToken {
	return &eventPerToken{base: base, tracer: t.Traces.Tracer("event-per-token")}
}

func (e *eventPerToken) RoundTrip(req *http.Request) (*http.Response, error) {
	start := time.Now()
	req, span := startChat(e.tracer, req, start)
	resp, err := e.base.RoundTrip(req)
	if err != nil {
		failSpan(span, err)
		return resp, err
	}
	resp.Body = &eventBody{ReadCloser: resp.Body, tokens: tokenEvents{span: span, start: start}}
	return resp, nil
}

type eventBody struct {
	io.ReadCloser

	rest   []byte
	tokens tokenEvents
}

func (b *eventBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.rest = append(b.rest, p[:n]...)
	for {
		line, rest, ok := bytes.Cut(b.rest, []byte("\n"))
		if !ok {
			break
		}
		b.rest = rest
		if data, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("data: ")); ok {
			b.tokens.data(data)
		}
	}
	if err != nil {
		b.tokens.end(err)
	}
	return n, err
}

func (b *eventBody) Close() error {
	b.tokens.end(io.EOF)
	return b.ReadCloser.Close()
}

// tokenEvents is a span with an event for each chunk.
type tokenEvents struct {
	span  trace.Span
	start time.Time
	count int
	ended bool
}

type chunk struct {
	Choices []struct {
		Delta struct {
			Content string `json:"content"`
		} `json:"delta"`
		FinishReason string `json:"finish_reason"`
	} `json:"choices"`
	Usage *struct {
		PromptTokens     int `json:"prompt_tokens"`
		CompletionTokens int `json:"completion_tokens"`
	} `json:"usage"`
}

func (t *tokenEvents) data(data []byte) {
	var c chunk
	if json.Unmarshal(data, &c) != nil {
		return // the end mark
	}
	var text string
	for _, choice := range c.Choices {
		text += choice.Delta.Content
		if choice.FinishReason != "" {
			t.span.SetAttributes(genaiconv.ResponseFinishReasons(choice.FinishReason))
		}
	}
	if c.Usage != nil {
		t.usage(c.Usage.PromptTokens, c.Usage.CompletionTokens)
	}
	t.token(len(text))
}

func (t *tokenEvents) usage(input, output int) {
	t.span.SetAttributes(genaiconv.UsageInputTokens(input), genaiconv.UsageOutputTokens(output))
}

func (t *tokenEvents) token(size int) {
	elapsed := float64(time.Since(t.start)) / 1e6
	if t.count == 0 {
		t.span.SetAttributes(semconv.LLMTTFTMs(elapsed))
	}
	t.span.AddEvent("token", trace.WithAttributes(
		attribute.Int("index", t.count), attribute.Int("length", size), attribute.Float64("elapsed_ms", elapsed)))
	t.count++
}

func (t *tokenEvents) end(err error) {
	if t.ended {
		return
	}
	t.ended = true
	if err != nil && err != io.EOF { //nolint:errorlint // a reader's end is io.EOF itself
		t.span.SetStatus(codes.Error, err.Error())
	}
	t.span.End()
}
