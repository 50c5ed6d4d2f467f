package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"

	"github.com/genaitrace/otelgenai/examples/internal/inferencev1"
	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/middleware/genaihttp"
)

// numberKey is the attribute for the number of a request.
const numberKey = "chat.request.number"

const chatPath = "/v1/chat/completions"

// gateway is the first hop: an OpenAI-compatible HTTP server before the
// inference service.
type gateway struct {
	backend inferencev1.InferenceClient
	tracer  *genaitrace.Tracer
}

func newGateway(backend grpc.ClientConnInterface, tel *telemetry) http.Handler {
	g := &gateway{backend: inferencev1.NewInferenceClient(backend), tracer: tel.tracer}
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+chatPath, g.chat)
	return traced(mux, tel)
}

// traced gives every request to next a SERVER span, with its number on it.
func traced(next http.Handler, tel *telemetry) http.Handler {
	numbered := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n := r.Header.Get(numberHeader); n != "" {
			trace.SpanFromContext(r.Context()).SetAttributes(attribute.String(numberKey, n))
		}
		next.ServeHTTP(w, r)
	})
	return genaihttp.NewHandler(numbered,
		genaihttp.WithTracerProvider(tel.traces),
		genaihttp.WithMeterProvider(tel.metrics),
	)
}

func (g *gateway) chat(w http.ResponseWriter, r *http.Request) {
	req, err := readRequest(w, r)
	if err != nil {
		writeError(w, err)
		return
	}
	var out answer = &wholeAnswer{w: w, head: newHead(req, "chat.completion")}
	if req.Stream {
		out = &streamedAnswer{w: w, head: newHead(req, "chat.completion.chunk"), usage: req.StreamOptions.IncludeUsage}
	}
	last, err := g.generate(r.Context(), req, out.text)
	if err == nil {
		err = out.finish(last.GetFinishReason(), newChatUsage(last.GetUsage()))
	}
	if err != nil && r.Context().Err() == nil { // else nobody reads it
		out.fail(err)
	}
}

// generate calls the inference service, hands on its text as it comes, and
// returns its last message once the call is over.
func (g *gateway) generate(ctx context.Context, req *chatRequest, text func(string) error) (last *inferencev1.GenerateResponse, err error) {
	ctx, call := g.tracer.StartCall(ctx, genaitrace.Request{
		Provider:    "toy",
		Model:       req.Model,
		Stream:      true, // the service knows no other way
		Temperature: req.Temperature,
	})
	defer call.EndErr(&err)

	stream, err := g.backend.Generate(ctx, req.backend())
	if err != nil {
		return nil, err
	}
	for {
		msg, err := stream.Recv()
		switch {
		case errors.Is(err, io.EOF) && last != nil:
			return last, nil
		case errors.Is(err, io.EOF):
			return nil, io.ErrUnexpectedEOF
		case err != nil:
			return nil, err
		case msg.GetText() != "":
			call.Chunk(genaitrace.Visible)
			if err := text(msg.GetText()); err != nil {
				return nil, err
			}
		default:
			call.Chunk(genaitrace.NoOutput)
		}
		if msg.GetFinishReason() != "" {
			last = msg
			call.SetFinish(msg.GetFinishReason())
			call.SetUsage(usage(msg.GetUsage()))
		}
	}
}

// usage keeps unknown what the service does not know.
func usage(u *inferencev1.Usage) genaitrace.Usage {
	if u == nil {
		return genaitrace.Usage{}
	}
	known := func(n *int32) *int {
		if n == nil {
			return nil
		}
		return new(int(*n))
	}
	//nolint:protogetter // a getter does not tell unknown from zero
	return genaitrace.Usage{
		InputTokens:  known(u.InputTokens),
		CachedTokens: known(u.CachedTokens),
		OutputTokens: known(u.OutputTokens),
	}
}

// answer is one of the two forms of a response.
type answer interface {
	text(piece string) error
	finish(reason string, usage *chatUsage) error
	fail(err error)
}

func newHead(req *chatRequest, object string) chatResponse {
	return chatResponse{ID: "chatcmpl-" + rand.Text(), Object: object, Created: time.Now().Unix(), Model: req.Model}
}

// wholeAnswer is one JSON document at the end.
type wholeAnswer struct {
	w       http.ResponseWriter
	head    chatResponse
	all     strings.Builder
	written bool
}

func (a *wholeAnswer) text(piece string) error {
	a.all.WriteString(piece)
	return nil
}

func (a *wholeAnswer) finish(reason string, usage *chatUsage) error {
	response := a.head
	response.Choices = []chatChoice{{
		Message:      &chatDelta{Role: "assistant", Content: a.all.String()},
		FinishReason: &reason,
	}}
	response.Usage = usage
	a.written = true
	return writeJSON(a.w, http.StatusOK, response)
}

func (a *wholeAnswer) fail(err error) {
	if !a.written {
		writeError(a.w, err)
	}
}

// streamedAnswer is a server-sent event for each piece of text, between one that
// names the role and one that says why the text ended. Nothing is written before
// the first piece, so that a refusal of the service keeps its HTTP status.
type streamedAnswer struct {
	w       http.ResponseWriter
	head    chatResponse
	usage   bool // the client wants it
	started bool
}

func (a *streamedAnswer) text(piece string) error {
	if err := a.start(); err != nil {
		return err
	}
	return a.send(chatChoice{Delta: &chatDelta{Content: piece}})
}

func (a *streamedAnswer) start() error {
	if a.started {
		return nil
	}
	a.started = true
	a.w.Header().Set("Content-Type", "text/event-stream")
	a.w.Header().Set("Cache-Control", "no-cache")
	return a.send(chatChoice{Delta: &chatDelta{Role: "assistant"}})
}

func (a *streamedAnswer) finish(reason string, usage *chatUsage) error {
	if err := a.start(); err != nil {
		return err
	}
	if err := a.send(chatChoice{Delta: &chatDelta{}, FinishReason: &reason}); err != nil {
		return err
	}
	if a.usage {
		last := a.head
		last.Choices, last.Usage = []chatChoice{}, usage
		if err := a.event(last); err != nil {
			return err
		}
	}
	if _, err := io.WriteString(a.w, "data: [DONE]\n\n"); err != nil {
		return err
	}
	return http.NewResponseController(a.w).Flush()
}

func (a *streamedAnswer) fail(err error) {
	if !a.started {
		writeError(a.w, err)
		return
	}
	_ = a.event(toAPIError(err)) // the status is gone, and the client may be too
}

func (a *streamedAnswer) send(choice chatChoice) error {
	chunk := a.head
	chunk.Choices = []chatChoice{choice}
	return a.event(chunk)
}

func (a *streamedAnswer) event(v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(a.w, "data: %s\n\n", data); err != nil {
		return err
	}
	return http.NewResponseController(a.w).Flush()
}

func writeError(w http.ResponseWriter, err error) {
	e := toAPIError(err)
	_ = writeJSON(w, e.status, e) // the client may be gone
}

func writeJSON(w http.ResponseWriter, status int, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, err = w.Write(data)
	return err
}
