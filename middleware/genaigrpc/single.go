package genaigrpc

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/semconv"
)

// A modelRPC reads the messages of an RPC that calls a model.
type modelRPC interface {
	begin(clientStreams, serverStreams bool)
	sent(message any, at time.Time)     // by the client
	answered(message any, at time.Time) // by the server
	end(how ending)
}

// An ending is how an RPC ended.
type ending struct {
	code      codes.Code
	cancelled bool // by the client
	failed    bool // as this side sees it
	at        time.Time
}

// tell notes on a call how its RPC ended.
func (e ending) tell(call *genaitrace.Call) {
	switch {
	case e.cancelled:
		call.SetTerminal(semconv.GenAIStreamTerminalClientCancelled)
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
	own    bool // nobody else ends it
	known  atomic.Bool

	streams bool // what the server sends is a stream
	idle    idle
}

func (s *single) begin(clientStreams, serverStreams bool) {
	s.streams = serverStreams
	s.call.SetRequest(genaitrace.Request{Stream: serverStreams})
	if s.own && (clientStreams || serverStreams) {
		s.idle.start(func() {
			s.call.SetTerminal(semconv.GenAIStreamTerminalTimeout)
			s.call.End()
		})
	}
}

func (s *single) sent(message any, _ time.Time) {
	s.idle.moved()
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
	s.idle.moved()
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

func (s *single) end(how ending) {
	s.idle.stop()
	if s.own {
		how.finish(s.call)
	}
}

// idleTimeout ends a model call that nobody reads nor cancels. It passes once or
// twice before it does: messages are counted, not timed.
const idleTimeout = 15 * time.Minute

// An idle notices that no message passes any more. The zero value never does.
type idle struct {
	messages atomic.Uint64

	mu      sync.Mutex
	timer   *time.Timer
	quiet   uint64 // messages at the last look
	stopped bool
}

func (i *idle) moved() { i.messages.Add(1) }

func (i *idle) start(passed func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.stopped && i.timer == nil {
		i.timer = time.AfterFunc(idleTimeout, func() { i.look(passed) })
	}
}

func (i *idle) look(passed func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.stopped {
		return
	}
	if n := i.messages.Load(); n != i.quiet {
		i.quiet = n
		i.timer.Reset(idleTimeout)
		return
	}
	i.stopped = true
	passed()
}

func (i *idle) stop() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.stopped = true
	if i.timer != nil {
		i.timer.Stop()
	}
}
