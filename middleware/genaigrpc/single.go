package genaigrpc

import (
	"errors"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"google.golang.org/grpc/codes"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/semconv"
)

// A modelRPC reads the messages of an RPC that calls a model.
type modelRPC interface {
	begin(serverStreams bool)
	sent(message any, at time.Time)     // by the client
	answered(message any, at time.Time) // by the server
}

// An ending is how an RPC ended.
type ending struct {
	code      codes.Code
	cancelled bool // by the client
	failed    bool // as this side sees it
	at        time.Time
}

// attributes say how an RPC ended.
func (e ending) attributes() []attribute.KeyValue {
	if e.failed {
		return failureAttributes[e.code]
	}
	return endAttributes[e.code]
}

// tell notes on a call how its RPC ended.
func (e ending) tell(call *genaitrace.Call) {
	switch {
	case e.cancelled:
		call.SetTerminal(semconv.GenAIStreamTerminalClientCancelled)
	case e.code == silent:
		call.SetTerminal(semconv.GenAIStreamTerminalTimeout)
	case e.code == codes.DeadlineExceeded:
		call.SetTerminal(semconv.GenAIStreamTerminalTimeout)
		call.SetErrorType(codeNames[e.code])
	case e.failed && e.code < codes.Code(len(codeNames)):
		call.SetErrorType(codeNames[e.code])
	}
}

var errRPC = errors.New("RPC failed")

// finish ends a call with its RPC.
func (e ending) finish(call *genaitrace.Call) {
	e.tell(call)
	if e.failed && !e.cancelled {
		call.Fail(errRPC)
		return
	}
	call.EndAt(e.at)
}

// A single is a model call that is its RPC, at the client.
type single struct {
	method *ModelCall
	call   *genaitrace.Call
	known  atomic.Bool

	streams bool // what the server sends is a stream
}

func (s *single) begin(serverStreams bool) {
	s.streams = serverStreams
	s.call.SetRequest(genaitrace.Request{Stream: serverStreams})
}

func (s *single) sent(message any, _ time.Time) {
	if !s.known.CompareAndSwap(false, true) {
		return
	}
	r := s.method.readRequest(message)
	s.call.SetRequest(r.Request)
	if attrs := r.attributes(); len(attrs) > 0 {
		s.call.SetAttributes(attrs...)
	}
}

func (s *single) answered(message any, at time.Time) {
	r := s.method.readResponse(s.call, message)
	if r.model != "" {
		s.call.SetResponse("", r.model)
	}
	if r.version != "" {
		s.call.SetRequest(genaitrace.Request{ModelVersion: r.version})
	}
	if s.streams {
		s.call.ChunkAt(r.kind, at)
	}
}
