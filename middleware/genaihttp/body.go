package genaihttp

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/genaitrace/otelgenai/internal/deadline"
	"github.com/genaitrace/otelgenai/middleware/wire"
	"github.com/genaitrace/otelgenai/semconv"
)

// idleTimeout ends the span of a stream that nobody reads. It passes once or
// twice before it does: reads are counted, not timed.
const idleTimeout = 15 * time.Minute

// maxDocument bounds the JSON answer that is kept to read usage from, in bytes.
const maxDocument = 1 << 20

// A body passes a response on to its reader and tells the call what passed.
type body struct {
	io.ReadCloser
	attempt

	ctx context.Context //nolint:containedctx // its end is an end of the stream

	mu       sync.Mutex
	ended    bool
	stream   *wire.Stream // a stream of events, or
	document bool         // a JSON document
	kept     []byte
	reads    uint64

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
	if b.exchange.Streamed() {
		b.stream = wire.NewStream(a.call, b.exchange)
	}
	b.document = b.exchange.Document()
	resp.Body = b
	b.mu.Lock()
	defer b.mu.Unlock()
	if ctx.Done() != nil {
		b.stop = context.AfterFunc(ctx, func() { b.finish(ctx.Err()) })
	}
	b.idle = time.AfterFunc(idleTimeout, b.lookIdle)
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended {
		return n, err
	}
	b.reads++
	switch {
	case b.stream != nil:
		b.stream.Push(p[:n])
	case b.document:
		b.keep(p[:n])
	}
	if err != nil {
		b.end(err)
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

var errLongDocument = errors.New("response: JSON document longer than 1 MiB: its usage is not read")

// keep collects a JSON document; one that is too long is given up.
func (b *body) keep(p []byte) {
	if len(b.kept)+len(p) > maxDocument {
		b.kept, b.document = nil, false
		b.call.Fault(semconv.GenAIFaultParse, errLongDocument)
		return
	}
	b.kept = append(b.kept, p...)
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
	case b.stream != nil && terminal != "":
		b.stream.Abandon(terminal)
	case b.stream != nil:
		b.stream.End(why)
	default:
		b.endDocument(why, terminal)
	}
	b.kept = nil
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

// endDocument reads a whole answer. Closing one that was read in full without
// waiting for its io.EOF is how JSON decoders behave, not an abandonment.
func (b *body) endDocument(why error, terminal semconv.GenAIStreamTerminalAttr) {
	if b.document {
		wire.ReadBody(b.call, b.exchange, b.kept)
	}
	switch {
	case b.exchange.Status >= http.StatusBadRequest: // a failure already
	case errors.Is(why, io.EOF), errors.Is(why, errClosed):
	case terminal != "":
		b.call.SetTerminal(terminal)
	default:
		b.call.SetTerminal(semconv.GenAIStreamTerminalTruncated)
	}
}
