// Package toyserver is the toy engine as a server of its own that speaks OpenAI's
// API, as vLLM, SGLang or llama.cpp do. It records nothing. What it knows of its work
// on a request it tells in the answer, in vLLM's words: how long the request waited,
// and how long prefill and decode took. It calls tools as those servers do: the model
// writes of them in its text, which the server turns into the API's calls.
package toyserver

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/genaitrace/otelgenai/examples/internal/chatapi"
	"github.com/genaitrace/otelgenai/examples/internal/toy"
)

// New returns the server: POST /v1/chat/completions, GET /v1/models and GET /health.
func New(cfg toy.Config) http.Handler {
	s := &server{engine: toy.New(cfg, nil)}
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+chatapi.Path, s.chat)
	mux.HandleFunc("GET /v1/models", models)
	mux.HandleFunc("GET /health", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		e := &chatapi.Error{Status: http.StatusNotFound, Message: fmt.Sprintf("there is no %s %s here", r.Method, r.URL.Path)}
		e.Write(w)
	})
	return mux
}

type server struct{ engine *toy.Engine }

func (s *server) chat(w http.ResponseWriter, r *http.Request) {
	req, err := chatapi.ReadRequest(w, r)
	if err != nil {
		toAPIError(err).Write(w)
		return
	}
	out := chatapi.NewWriter(w, req)
	if req.Model != toy.Model {
		out.Fail(&chatapi.Error{
			Status: http.StatusNotFound, Code: "model_not_found",
			Message: fmt.Sprintf("the model %q does not exist", req.Model),
		})
		return
	}
	res, err := s.engine.Generate(r.Context(), forEngine(req), out.Text)
	if err == nil {
		err = out.Finish(chatapi.End{
			Reason: res.FinishReason,
			Usage:  chatapi.NewUsage(int32(res.InputTokens), int32(res.CachedTokens), int32(res.OutputTokens)),
			Metrics: &chatapi.Metrics{
				QueueTimeMs: ms(res.Queue), TimeToFirstTokenMs: ms(res.Prefill), GenerationTimeMs: ms(res.Decode),
			},
		})
	}
	if err != nil && r.Context().Err() == nil { // else nobody reads it
		out.Fail(toAPIError(err))
	}
}

func forEngine(r *chatapi.Request) toy.Request {
	out := toy.Request{Temperature: r.Temperature}
	if limit := r.MaxTokens(); limit != nil {
		out.MaxTokens = int(*limit)
	}
	for _, turn := range r.Turns() {
		out.Messages = append(out.Messages, toy.Message(turn))
	}
	return out
}

func toAPIError(err error) *chatapi.Error {
	if e, ok := errors.AsType[*chatapi.Error](err); ok {
		return e
	}
	if errors.Is(err, toy.ErrOverloaded) {
		return &chatapi.Error{Status: http.StatusTooManyRequests, Code: "overloaded", Message: err.Error()}
	}
	return &chatapi.Error{Status: http.StatusInternalServerError, Message: err.Error()}
}

func models(w http.ResponseWriter, _ *http.Request) {
	_ = chatapi.WriteJSON(w, http.StatusOK, map[string]any{ // the client may be gone
		"object": "list",
		"data":   []map[string]any{{"id": toy.Model, "object": "model", "created": 0, "owned_by": "toy"}},
	})
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
