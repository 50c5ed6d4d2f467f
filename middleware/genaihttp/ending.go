package genaihttp

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	otelsemconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/genaitrace/otelgenai/internal/deadline"
	"github.com/genaitrace/otelgenai/semconv"
)

// An ending ends the span of a handler once: when the handler returns, or where it
// does not, some time after there was anything to wait for.
type ending struct {
	*handler

	exchange *exchange
	writer   *writer
	request  *http.Request // as the server knows it
	known    string        // route at the start
	arrived  time.Time
	nested   bool // inside another instrumentation's handler

	stop  func() bool // takes back the watch over the request's context
	idle  *time.Timer
	left  *time.Timer // runs once the client is gone
	quiet int         // looks in a row at which nothing had been written
	seen  uint64      // activity at the last look
}

const (
	// lingering is how long a handler has to return once its client left.
	lingering = 10 * time.Second
	// unansweredLooks is how often idleTimeout passes before a handler is given
	// up that has not begun to answer.
	unansweredLooks = 4
)

func (e *ending) watch() {
	ctx := e.writer.ctx
	e.writer.mu.Lock()
	defer e.writer.mu.Unlock()
	e.idle = time.AfterFunc(idleTimeout, e.lookIdle)
	if ctx.Done() == nil {
		return
	}
	e.stop = context.AfterFunc(ctx, func() {
		e.writer.mu.Lock()
		defer e.writer.mu.Unlock()
		if e.writer.gone() && !e.writer.ended { // with a deadline, it may still get an answer
			e.left = time.AfterFunc(lingering, func() { e.abandon(abandoned(ctx)) })
		}
	})
}

// lookIdle runs every idleTimeout.
func (e *ending) lookIdle() {
	w := e.writer
	w.mu.Lock()
	limit := 1
	if w.status == 0 {
		limit = unansweredLooks
	}
	if e.quiet++; w.activity != e.seen || w.copying || w.hijacked {
		e.quiet = 0
	}
	e.seen = w.activity
	wait := e.quiet < limit && !w.ended
	if wait {
		e.idle.Reset(idleTimeout)
	}
	w.mu.Unlock()
	if !wait {
		e.abandon(semconv.GenAIStreamTerminalTimeout)
	}
}

// finish ends the span of a handler that returned or panicked.
func (e *ending) finish(panicked any) {
	w := e.writer
	if w.status == 0 && !w.hijacked && panicked == nil && !w.gone() {
		w.impliedHeader() // what net/http sends for a handler that wrote nothing
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !e.begin() {
		return
	}
	errType := w.settle(panicked)
	e.end(errType)
	w.tellLate(errType != "")
}

// abandon ends the span of a handler that does not return.
func (e *ending) abandon(why semconv.GenAIStreamTerminalAttr) {
	w := e.writer
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.hijacked || !e.begin() {
		return
	}
	if r := w.reader(); r != nil {
		r.Abandon(why)
	} else {
		w.call.SetTerminal(why)
	}
	errType := ""
	if why == semconv.GenAIStreamTerminalTimeout {
		errType = "timeout"
	}
	e.end(errType)
}

// begin reports whether the span has still to end. The writer is locked.
func (e *ending) begin() bool {
	if e.writer.ended {
		return false
	}
	e.writer.ended = true
	e.idle.Stop()
	if e.stop != nil {
		e.stop()
	}
	if e.left != nil {
		e.left.Stop()
	}
	return true
}

// end ends the span and records how long it took.
func (e *ending) end(errType string) {
	w := e.writer
	matched := cmp.Or(e.exchange.matched(), e.known)
	route := e.routes.Value(matched)
	if matched != e.known {
		w.call.Span().SetName(spanName(e.request, route))
		w.call.SetAttributes(otelsemconv.HTTPRoute(matched))
	}
	if w.status != 0 {
		w.call.SetAttributes(otelsemconv.HTTPResponseStatusCode(w.status))
	}
	took := time.Since(e.arrived)
	w.call.EndAt(e.arrived.Add(took))
	if !e.nested {
		e.duration.record(w.ctx, took, e.request, route, w.status, errType)
	}
}

// errAborted is a response that the handler gave up on.
var errAborted = errors.New("response aborted")

// settle tells the call how the response ended, and returns the error.type where
// the server failed. w is locked.
func (w *writer) settle(panicked any) (errType string) {
	aborted := panicked == http.ErrAbortHandler //nolint:errorlint // net/http compares the same way
	call := w.call
	switch {
	case panicked != nil && !aborted:
		errType = "panic"
		call.SetTerminal(semconv.GenAIStreamTerminalError)
	case w.status >= http.StatusInternalServerError:
		errType = strconv.Itoa(w.status)
		call.SetTerminal(semconv.GenAIStreamTerminalHTTPError)
	case w.reader() != nil && w.ctx.Err() != nil:
		w.reader().Abandon(abandoned(w.ctx))
	case w.reader() != nil && aborted:
		w.reader().End(errAborted)
	case w.reader() != nil:
		w.reader().End(nil)
	case w.gone() && !w.complete():
		call.SetTerminal(semconv.GenAIStreamTerminalClientCancelled)
	case aborted:
		call.SetTerminal(semconv.GenAIStreamTerminalTruncated)
	}
	if errType != "" {
		call.SetErrorType(errType)
	}
	if w.stream != nil {
		w.stream.Abandon(semconv.GenAIStreamTerminalClientCancelled) // of a failure too: its decoder ends
	}
	return errType
}

// abandoned says why a context that is done ended a stream.
func abandoned(ctx context.Context) semconv.GenAIStreamTerminalAttr {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) || deadline.Reached(ctx) {
		return semconv.GenAIStreamTerminalTimeout
	}
	return semconv.GenAIStreamTerminalClientCancelled
}
