package genaihttp

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/middleware/wire"
	"github.com/genaitrace/otelgenai/semconv"
)

// A writer passes everything on to the server's ResponseWriter first, and then
// shows what was written to the observer of the stream.
type writer struct {
	http.ResponseWriter

	ctx      context.Context //nolint:containedctx // the request's
	config   *config
	call     *genaitrace.Call
	exchange wire.Exchange

	// The handler writes what follows, and only it; mu is for an end that does not
	// wait for it.
	mu       sync.Mutex
	ended    bool
	activity uint64         // writes and flushes
	copying  bool           // a write takes its time
	status   int            // 0 until the header is out
	stream   *wire.Stream   // nil where the response is not a stream of events
	follower *wire.Follower // of a stream that a transport of ours reads, in place of stream
	written  int64          // bytes of the body
	unsent   int            // of them, since the last flush
	hijacked bool           // what is sent is the handler's own
	told     bool           // the caller knows that the trace is kept
	trailers bool           // the caller reads trailers
	head     bool           // the caller gets no body
}

// Unwrap is for http.ResponseController.
func (w *writer) Unwrap() http.ResponseWriter {
	_, offered := w.ResponseWriter.(http.Hijacker) // then so does ours
	if _, deeper := w.ResponseWriter.(unwrapper); deeper && !offered {
		return beyond{w.ResponseWriter, w}
	}
	return w.ResponseWriter
}

type unwrapper interface{ Unwrap() http.ResponseWriter }

// A beyond is the writer of a middleware around the handler that leaves hijacking to the
// writer which it wraps itself: what finds it there passes us.
type beyond struct {
	http.ResponseWriter

	w *writer
}

func (b beyond) Unwrap() http.ResponseWriter { return b.ResponseWriter }

func (b beyond) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return b.w.tookOver(http.NewResponseController(b.ResponseWriter).Hijack())
}

// tookOver notes that the handler has the connection, where it has.
func (w *writer) tookOver(conn net.Conn, buf *bufio.ReadWriter, err error) (net.Conn, *bufio.ReadWriter, error) {
	if err == nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.hijacked = true
	}
	return conn, buf, err
}

func (w *writer) WriteHeader(status int) {
	// Informational headers may precede the real one.
	final := status >= http.StatusOK || status == http.StatusSwitchingProtocols
	if final {
		w.respond(status)
	}
	w.ResponseWriter.WriteHeader(status)
	if final {
		w.headerWritten(status)
	}
}

// impliedHeader is for the header that net/http sends with whatever a handler
// writes first.
func (w *writer) impliedHeader() {
	w.respond(http.StatusOK)
	w.headerWritten(http.StatusOK)
}

// respond is called before the header of the response is sent.
func (w *writer) respond(status int) {
	if w.status == 0 && !w.hijacked {
		w.told = w.config.respond(w.ctx, w.Header(), status >= http.StatusInternalServerError)
	}
}

func (w *writer) headerWritten(status int) {
	if w.status != 0 || w.hijacked {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.activity++
	w.status = status
	w.exchange.Response = w.Header()
	switch bodiless := w.head || status == http.StatusNoContent || status == http.StatusNotModified; {
	case bodiless || status >= http.StatusBadRequest:
		w.follower = nil // it is no stream of an answer
	case w.call != nil && !w.ended && w.follower == nil && w.exchange.Streamed():
		w.stream = wire.NewHeldStream(w.call, w.exchange)
	}
}

func (w *writer) Write(p []byte) (int, error) {
	w.impliedHeader()
	gone := w.gone()
	n, err := w.ResponseWriter.Write(p)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wrote(int64(n))
	if w.reader() != nil && !gone { // net/http takes what nobody gets any more
		if w.stream != nil {
			w.stream.Push(p[:n])
		}
		w.follower.Written()
		if w.unsent += n; w.unsent > serverBuffer {
			w.sent()
		}
	}
	return n, err
}

// wrote counts what was written. w is locked.
func (w *writer) wrote(n int64) {
	w.written += n
	w.activity++
}

// serverBuffer is what net/http holds back of a response until it is flushed, in
// bytes, for HTTP/1 and HTTP/2 alike.
const serverBuffer = 4 << 10

// sent notes that what was written has left. w is locked.
func (w *writer) sent() {
	w.unsent = 0
	if r := w.reader(); r != nil {
		r.Sent()
	}
}

// A streamReader is told of the stream that is written.
type streamReader interface {
	Sent()
	End(err error)
	Abandon(terminal semconv.GenAIStreamTerminalAttr)
}

// reader returns what reads the stream; nil where there is none.
func (w *writer) reader() streamReader {
	switch {
	case w.follower != nil:
		return w.follower
	case w.stream != nil:
		return w.stream
	}
	return nil
}

func (w *writer) WriteString(s string) (int, error) {
	if w.impliedHeader(); w.reader() != nil {
		return w.Write([]byte(s))
	}
	n, err := io.WriteString(w.ResponseWriter, s)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wrote(int64(n))
	return n, err
}

// gone reports whether the client went away. A deadline is somebody else's: the
// client still gets what is written after it.
func (w *writer) gone() bool { return errors.Is(w.ctx.Err(), context.Canceled) }

// complete reports whether all of a response of declared length was written.
func (w *writer) complete() bool {
	length, err := strconv.ParseInt(w.Header().Get("Content-Length"), 10, 64)
	return err == nil && length == w.written
}

// CloseNotify is what some frameworks call without looking whether it is there:
// gin does in Context.Stream.
func (w *writer) CloseNotify() <-chan bool {
	if n, ok := w.ResponseWriter.(http.CloseNotifier); ok { //nolint:staticcheck // deprecated, and in use
		return n.CloseNotify()
	}
	gone := make(chan bool, 1)
	context.AfterFunc(w.ctx, func() { gone <- true })
	return gone
}

// Push is HTTP/2 server push; where there is none it says so, as its contract
// has it.
func (w *writer) Push(target string, opts *http.PushOptions) error {
	if p, ok := w.ResponseWriter.(http.Pusher); ok {
		return p.Push(target, opts)
	}
	return http.ErrNotSupported
}

// FlushError is for http.ResponseController, also where the writer of a middleware
// around the handler has nothing but Unwrap: what is flushed there would pass us.
func (w *writer) FlushError() error {
	if !canFlush(w.ResponseWriter) {
		return http.ErrNotSupported
	}
	w.impliedHeader()
	gone := w.gone()
	err := http.NewResponseController(w.ResponseWriter).Flush()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.activity++; !gone && err == nil {
		w.sent()
	}
	return err
}

// canFlush reports whether http.ResponseController can flush w.
func canFlush(w http.ResponseWriter) bool {
	for {
		switch t := w.(type) {
		case http.Flusher, interface{ FlushError() error }:
			return true
		case unwrapper:
			w = t.Unwrap()
		default:
			return false
		}
	}
}

// flusher, hijacker and readerFrom are offered where the server offers them,
// and only there: what a type assertion finds on the wrapped writer, it finds on
// ours. Everything else is reached through http.ResponseController.
type flusher struct{ w *writer }

func (f flusher) Flush() { _ = f.w.FlushError() }

type hijacker struct{ w *writer }

func (h hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return h.w.tookOver(h.w.ResponseWriter.(http.Hijacker).Hijack())
}

type readerFrom struct{ w *writer }

func (r readerFrom) ReadFrom(src io.Reader) (int64, error) {
	if r.w.impliedHeader(); r.w.reader() != nil {
		return io.Copy(struct{ io.Writer }{r.w}, src)
	}
	r.w.setCopying(true)
	defer r.w.setCopying(false)
	n, err := r.w.ResponseWriter.(io.ReaderFrom).ReadFrom(src)
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	r.w.wrote(n)
	return n, err
}

func (w *writer) setCopying(copying bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.copying = copying
}

// wrap returns w with the optional interfaces of the server's writer.
func (w *writer) wrap() http.ResponseWriter {
	_, canFlush := w.ResponseWriter.(http.Flusher)
	_, canHijack := w.ResponseWriter.(http.Hijacker)
	_, canRead := w.ResponseWriter.(io.ReaderFrom)
	switch {
	case canFlush && canHijack && canRead: // HTTP/1
		return struct {
			*writer
			flusher
			hijacker
			readerFrom
		}{w, flusher{w}, hijacker{w}, readerFrom{w}}
	case canFlush && canHijack:
		return struct {
			*writer
			flusher
			hijacker
		}{w, flusher{w}, hijacker{w}}
	case canFlush && canRead:
		return struct {
			*writer
			flusher
			readerFrom
		}{w, flusher{w}, readerFrom{w}}
	case canFlush: // HTTP/2
		return struct {
			*writer
			flusher
		}{w, flusher{w}}
	case canHijack && canRead:
		return struct {
			*writer
			hijacker
			readerFrom
		}{w, hijacker{w}, readerFrom{w}}
	case canHijack:
		return struct {
			*writer
			hijacker
		}{w, hijacker{w}}
	case canRead:
		return struct {
			*writer
			readerFrom
		}{w, readerFrom{w}}
	}
	return w
}
