package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/genaitrace/otelgenai/examples/internal/chatapi"
	"github.com/genaitrace/otelgenai/genaitrace"
)

// The headers of an answer say what it was made from: a header for each source, the
// best first, and one for each retriever that failed.
const (
	sourceHeader = "Rag-Source"
	failedHeader = "Rag-Failed"
)

// promptTemplate is the name and version of what prompt fills in.
var promptTemplate = genaitrace.Template{Name: "grounded-answer", Version: "1"}

// grounded puts what the pipeline finds before the last question of a request, and
// passes it on to gateway. What has no question passes as it is: gateway says what is
// wrong with it.
func grounded(p *pipeline, gateway http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, chatapi.MaxBody))
		if err != nil {
			tooBig := &chatapi.Error{Status: http.StatusRequestEntityTooLarge, Message: "the request is too large, or ended early"}
			tooBig.Write(w)
			return
		}
		if request, question, ok := readQuestion(body); ok {
			found, err := p.find(r.Context(), question)
			if err == nil {
				body, err = p.prompt(r, request, found)
			}
			if err != nil {
				refuse(w, r, err)
				return
			}
			for _, s := range found.sources {
				w.Header().Add(sourceHeader, s.id)
			}
			for _, name := range found.failed {
				w.Header().Add(failedHeader, name)
			}
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		gateway.ServeHTTP(w, r)
	})
}

// A chatRequest keeps what it does not know of.
type chatRequest struct {
	fields   map[string]json.RawMessage
	messages []json.RawMessage
	last     int // of messages: the last question
}

func readQuestion(body []byte) (req chatRequest, question string, ok bool) {
	if json.Unmarshal(body, &req.fields) != nil || json.Unmarshal(req.fields["messages"], &req.messages) != nil {
		return req, "", false
	}
	for i, raw := range req.messages {
		var m chatapi.Message
		if json.Unmarshal(raw, &m) == nil && m.Role == "user" && strings.TrimSpace(string(m.Content)) != "" {
			req.last, question, ok = i, string(m.Content), true
		}
	}
	return req, question, ok
}

// prompt returns the request with the sources before its last question.
func (p *pipeline) prompt(r *http.Request, req chatRequest, found finding) (body []byte, err error) {
	_, render := p.tracer.StartTemplate(r.Context(), promptTemplate)
	defer render.EndErr(&err)
	var text strings.Builder
	text.WriteString("Answer from the sources below and from nothing else, and cite them as [1]. " +
		"If they do not answer the question, say so.\n\nSources:\n")
	for i, s := range found.sources {
		fmt.Fprintf(&text, "[%d] %s\n%s\n\n", i+1, s.title, s.text)
	}
	system, err := json.Marshal(chatapi.Message{Role: "system", Content: chatapi.Content(text.String())})
	if err != nil {
		return nil, err
	}
	messages := append(append(append([]json.RawMessage{}, req.messages[:req.last]...), system), req.messages[req.last:]...)
	if req.fields["messages"], err = json.Marshal(messages); err != nil {
		return nil, err
	}
	return json.Marshal(req.fields)
}

// refuse says that nothing could be searched. Where the client left, nobody reads it.
func refuse(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil {
		return
	}
	e := &chatapi.Error{Status: http.StatusServiceUnavailable, Code: "retrieval_failed", Message: "the documents cannot be searched"}
	if known, ok := errors.AsType[*chatapi.Error](err); ok {
		e = known
	}
	e.Write(w)
}
