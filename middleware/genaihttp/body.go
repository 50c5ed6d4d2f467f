package genaihttp

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/internal/deadline"
	"github.com/genaitrace/otelgenai/middleware/wire"
	"github.com/genaitrace/otelgenai/semconv"
)

// idleTimeout ends the span of a stream that nobody reads. It passes once or
// twice before it does: reads are counted, not timed.
const idleTimeout = 15 * time.Minute

// A body passes a response on to its reader and tells the call what passed.
type body struct {
	io.ReadCloser
	attempt

	ctx context.Context //nolint:containedctx // its end is an end of the stream

	mu     sync.Mutex
	ended  bool
	answer *wire.Stream // nil where it cannot be read
	reads  uint64

	stop  func() bool // takes back the watch over ctx
	idle  *time.Timer
	quiet uint64 // reads at the last look of idle
}

// attach puts a body between the response and its reader.
func attach(ctx context.Context, resp *http.Response, a attempt) {
	if resp.StatusCode == http.StatusSwitchingProtocols || resp.Body == nil {
		if a.own {
			a.call.End()
		}
		return
	}
	b := &body{ReadCloser: resp.Body, ctx: ctx, attempt: a}
	b.exchange.Response, b.exchange.Status = resp.Header, resp.StatusCode
	if b.exchange.Streamed() || b.exchange.Document() {
		b.answer = wire.NewStream(a.call, b.exchange)
	}
	resp.Body = b
	b.mu.Lock()
	defer b.mu.Unlock()
	if ctx.Done() != nil {
		b.stop = context.AfterFunc(ctx, func() { b.finish(ctx.Err()) })
	}
	b.idle = time.AfterFunc(idleTimeout, b.lookIdle)
}

// follow lets a gateway's call follow the stream; nil where there is none.
func (b *body) follow(gateway *genaitrace.Call) *wire.Follower {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.answer == nil {
		return nil
	}
	return b.answer.Follow(gateway)
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended {
		return n, err
	}
	b.reads++
	if b.answer != nil {
		b.answer.Push(p[:n])
	}
	switch {
	case err != nil:
		b.end(err)
	case b.call.Joined() && b.answer != nil && (b.answer.Done() || b.answer.Failed()):
		b.end(io.EOF) // its owner ends the span when it sees the same
	}
	return n, err
}

func (b *body) Close() error {
	b.finish(errClosed)
	return b.ReadCloser.Close()
}

var (
	errClosed = errors.New("closed by its reader")
	errIdle   = errors.New("idle")
)

// lookIdle runs every idleTimeout.
func (b *body) lookIdle() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended {
		return
	}
	if b.reads == b.quiet {
		b.end(errIdle)
		return
	}
	b.quiet = b.reads
	b.idle.Reset(idleTimeout)
}

func (b *body) finish(why error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.ended {
		b.end(why)
	}
}

// end tells the call how the body ended. b.mu is held.
func (b *body) end(why error) {
	b.ended = true
	if b.stop != nil {
		b.stop()
	}
	if b.idle != nil {
		b.idle.Stop()
	}
	terminal := b.terminal(why)
	switch {
	case b.answer != nil && terminal != "":
		b.answer.Abandon(terminal)
	case b.answer != nil:
		b.answer.End(why)
	default:
		b.endUnread(why, terminal)
	}
	if b.exchange.Status >= http.StatusBadRequest {
		b.call.SetErrorType(strconv.Itoa(b.exchange.Status)) // unless the body said more
	}
	switch {
	case b.own:
		b.call.End()
	case b.exchange.Status >= http.StatusMultipleChoices: // a redirect or a failure: another attempt may follow
		b.call.Release()
	}
}

// terminal is how an abandoned body ended; "" for one that ended or broke.
func (b *body) terminal(why error) semconv.GenAIStreamTerminalAttr {
	switch {
	case errors.Is(why, io.EOF):
		return ""
	case errors.Is(why, errIdle), errors.Is(why, context.DeadlineExceeded):
		return semconv.GenAIStreamTerminalTimeout
	case b.ctx.Err() != nil: // also where Close came first to notice
		return abandoned(b.ctx)
	case deadline.Reached(b.ctx): // http.Client.Timeout cancels in more ways than one
		return semconv.GenAIStreamTerminalTimeout
	case errors.Is(why, errClosed), errors.Is(why, context.Canceled):
		return semconv.GenAIStreamTerminalClientCancelled
	}
	return ""
}

// endUnread is for an answer that nobody could read. Closing it before its io.EOF
// says nothing: it may be all that there was.
func (b *body) endUnread(why error, terminal semconv.GenAIStreamTerminalAttr) {
	switch {
	case b.exchange.Status >= http.StatusBadRequest: // a failure already
	case errors.Is(why, io.EOF), errors.Is(why, errClosed):
	case terminal != "":
		b.call.SetTerminal(terminal)
	default:
		b.call.SetTerminal(semconv.GenAIStreamTerminalTruncated)
	}
}
