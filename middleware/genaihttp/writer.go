package genaihttp

import (
	"io"
	"mime"
	"net/http"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/middleware/wire"
)

// A writer passes everything on to the server's ResponseWriter first, and then
// shows what was written to the observer of the stream.
type writer struct {
	http.ResponseWriter

	call   *genaitrace.Call
	status int          // 0 until the header is out
	stream *wire.Stream // nil where the response is not a stream of events
}

// Unwrap is for http.ResponseController.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *writer) WriteHeader(status int) {
	w.ResponseWriter.WriteHeader(status)
	// Informational headers may precede the real one.
	if status >= http.StatusOK || status == http.StatusSwitchingProtocols {
		w.headerWritten(status)
	}
}

func (w *writer) headerWritten(status int) {
	if w.status != 0 {
		return
	}
	w.status = status
	if isEventStream(w.Header()) {
		w.stream = wire.NewStream(w.call)
	}
}

func (w *writer) Write(p []byte) (int, error) {
	w.headerWritten(http.StatusOK)
	n, err := w.ResponseWriter.Write(p)
	if w.stream != nil {
		w.stream.Push(p[:n])
	}
	return n, err //nolint:wrapcheck // the server's own error
}

func (w *writer) WriteString(s string) (int, error) {
	if w.headerWritten(http.StatusOK); w.stream != nil {
		return w.Write([]byte(s))
	}
	return io.WriteString(w.ResponseWriter, s) //nolint:wrapcheck // the server's own error
}

// isEventStream reports whether a body is server-sent events that can be read:
// a content encoding hides them.
func isEventStream(h http.Header) bool {
	if e := h.Get("Content-Encoding"); e != "" && e != "identity" {
		return false
	}
	mediaType, _, _ := mime.ParseMediaType(h.Get("Content-Type"))
	return mediaType == "text/event-stream"
}

// flusher, hijacker and readerFrom are offered where the server offers them,
// and only there: what a type assertion finds on the wrapped writer, it finds on
// ours. Everything else is reached through http.ResponseController.
type flusher struct{ w *writer }

func (f flusher) Flush() { _ = f.FlushError() }

func (f flusher) FlushError() error {
	f.w.headerWritten(http.StatusOK)
	return http.NewResponseController(f.w.ResponseWriter).Flush() //nolint:wrapcheck // the server's own error
}

type readerFrom struct{ w *writer }

func (r readerFrom) ReadFrom(src io.Reader) (int64, error) {
	if r.w.headerWritten(http.StatusOK); r.w.stream != nil {
		return io.Copy(struct{ io.Writer }{r.w}, src) //nolint:wrapcheck // the server's own error
	}
	return r.w.ResponseWriter.(io.ReaderFrom).ReadFrom(src) //nolint:forcetypeassert,wrapcheck // wrap looked
}

// wrap returns w with the optional interfaces of the server's writer.
func (w *writer) wrap() http.ResponseWriter {
	_, canFlush := w.ResponseWriter.(http.Flusher)
	hijacker, canHijack := w.ResponseWriter.(http.Hijacker)
	_, canRead := w.ResponseWriter.(io.ReaderFrom)
	switch {
	case canFlush && canHijack && canRead: // HTTP/1
		return struct {
			*writer
			flusher
			http.Hijacker
			readerFrom
		}{w, flusher{w}, hijacker, readerFrom{w}}
	case canFlush && canHijack:
		return struct {
			*writer
			flusher
			http.Hijacker
		}{w, flusher{w}, hijacker}
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
			http.Hijacker
			readerFrom
		}{w, hijacker, readerFrom{w}}
	case canHijack:
		return struct {
			*writer
			http.Hijacker
		}{w, hijacker}
	case canRead:
		return struct {
			*writer
			readerFrom
		}{w, readerFrom{w}}
	}
	return w
}
