package genaihttp_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/genaitrace/otelgenai/middleware/genaihttp"
	"github.com/genaitrace/otelgenai/semconv"
)

// A bareWriter is a ResponseWriter with nothing else to it.
type bareWriter struct {
	header http.Header
	body   strings.Builder
	status int
	calls  []string
	fail   error // of Write, after 3 bytes
}

func newBareWriter() *bareWriter { return &bareWriter{header: http.Header{}} }

func (w *bareWriter) Header() http.Header    { return w.header }
func (w *bareWriter) WriteHeader(status int) { w.status = status }
func (w *bareWriter) Write(p []byte) (int, error) {
	w.calls = append(w.calls, "Write")
	if w.fail != nil {
		p = p[:3]
	}
	n, _ := w.body.Write(p)
	return n, w.fail
}

type bareFlusher struct{ *bareWriter }

func (w bareFlusher) Flush() { w.calls = append(w.calls, "Flush") }

type bareHijacker struct{ *bareWriter }

func (w bareHijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	w.calls = append(w.calls, "Hijack")
	return nil, nil, nil
}

type bareReaderFrom struct{ *bareWriter }

func (w bareReaderFrom) ReadFrom(r io.Reader) (int64, error) {
	w.calls = append(w.calls, "ReadFrom")
	return io.Copy(&w.body, r)
}

// bareWriters returns w with each combination of the optional interfaces.
func bareWriters(w *bareWriter) []http.ResponseWriter {
	f, h, r := bareFlusher{w}, bareHijacker{w}, bareReaderFrom{w}
	type (
		flusher    interface{ Flush() }
		hijacker   = http.Hijacker
		readerFrom = io.ReaderFrom
	)
	return []http.ResponseWriter{
		w, f, h, r,
		struct {
			*bareWriter
			flusher
			hijacker
		}{w, f, h},
		struct {
			*bareWriter
			flusher
			readerFrom
		}{w, f, r},
		struct {
			*bareWriter
			hijacker
			readerFrom
		}{w, h, r},
		struct {
			*bareWriter
			flusher
			hijacker
			readerFrom
		}{w, f, h, r},
	}
}

// offers lists the optional interfaces of w that handlers choose their way by.
func offers(w http.ResponseWriter) (all []string) {
	if _, ok := w.(http.Flusher); ok {
		all = append(all, "Flusher")
	}
	if _, ok := w.(http.Hijacker); ok {
		all = append(all, "Hijacker")
	}
	if _, ok := w.(io.ReaderFrom); ok {
		all = append(all, "ReaderFrom")
	}
	return all
}

// A type assertion finds on the wrapped writer what it finds on the server's.
func TestTypeAssertionsTellTheTruth(t *testing.T) {
	check := func(t *testing.T, w http.ResponseWriter, r *http.Request) {
		t.Helper()
		want := offers(w)
		ran := false
		genaihttp.NewHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			ran = true
			assert.Equal(t, want, offers(w))
		}), newTelemetry(t).options()...).ServeHTTP(w, r)
		assert.True(t, ran)
	}
	for _, w := range bareWriters(newBareWriter()) {
		t.Run(fmt.Sprint("bare ", offers(w)), func(t *testing.T) {
			check(t, w, httptest.NewRequest(http.MethodGet, "/", nil))
		})
	}
	t.Run("ResponseRecorder", func(t *testing.T) {
		check(t, httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
	})
	eachProtocol(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.ProtoMajor {
		case 1:
			assert.Equal(t, []string{"Flusher", "Hijacker", "ReaderFrom"}, offers(w))
		case 2:
			assert.Equal(t, []string{"Flusher"}, offers(w))
		}
		check(t, w, r)
	})
}

// An otherWriter is the writer of another middleware: it has what the server's writer
// has, but for http.ResponseController alone.
type otherWriter struct{ http.ResponseWriter }

func (w otherWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func behindAnother(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(otherWriter{w}, r) })
}

// A flush that another middleware's writer only passes on is a flush all the same.
func TestAFlushBehindAnotherMiddlewareIsSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newTelemetry(t)
		base, stop := serve(behindAnother(genaihttp.NewHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			_, ok := w.(http.Flusher)
			assert.False(t, ok, "there was none")
			time.Sleep(100 * time.Millisecond)
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, textEvent)
			assert.NoError(t, http.NewResponseController(w).Flush())
			time.Sleep(time.Second)
			_, _ = io.WriteString(w, finishEvent+doneEvent)
		}), o.options()...)))
		defer stop()
		resp, err := post(t.Context(), &http.Client{Transport: base})
		require.NoError(t, err)
		_, err = readAll(resp)
		require.NoError(t, err)
		synctest.Wait()
		assert.InDelta(t, 100, attributes(o.only())["llm.ttft_ms"], 0.1)
	})
}

func TestAWriterThatCannotFlushSaysSo(t *testing.T) {
	for name, w := range map[string]http.ResponseWriter{"bare": newBareWriter(), "behind another": otherWriter{newBareWriter()}} {
		t.Run(name, func(t *testing.T) {
			o := newTelemetry(t)
			genaihttp.NewHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				assert.ErrorIs(t, http.NewResponseController(w).Flush(), http.ErrNotSupported)
				w.WriteHeader(http.StatusTeapot)
			}), o.options()...).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
			assert.EqualValues(t, http.StatusTeapot, attributes(o.only())["http.response.status_code"])
		})
	}
}

// eachProtocol runs a handler on a real server, over HTTP/1 and HTTP/2.
func eachProtocol(t *testing.T, handler http.HandlerFunc) {
	t.Helper()
	for _, http2 := range []bool{false, true} {
		t.Run(map[bool]string{false: "HTTP/1", true: "HTTP/2"}[http2], func(t *testing.T) {
			server := httptest.NewUnstartedServer(handler)
			server.Config.ErrorLog = quiet
			server.EnableHTTP2 = http2
			server.StartTLS()
			defer server.Close()
			resp, err := server.Client().Get(server.URL)
			require.NoError(t, err)
			_, err = readAll(resp)
			require.NoError(t, err)
			resp.Body.Close()
			if http2 {
				assert.Equal(t, 2, resp.ProtoMajor)
			}
		})
	}
}

// What the optional interfaces do, the server's writer does.
func TestOptionalInterfacesReachTheServersWriter(t *testing.T) {
	for i := range bareWriters(nil) {
		bare := newBareWriter()
		w := bareWriters(bare)[i]
		genaihttp.NewHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if f, ok := w.(http.Flusher); ok {
				f.Flush()
			}
			if r, ok := w.(io.ReaderFrom); ok {
				n, err := r.ReadFrom(strings.NewReader("abc"))
				assert.EqualValues(t, 3, n)
				assert.NoError(t, err)
			}
			n, err := io.WriteString(w, "de")
			assert.Equal(t, 2, n)
			assert.NoError(t, err)
			if h, ok := w.(http.Hijacker); ok {
				_, _, err := h.Hijack()
				assert.NoError(t, err)
			}
		}), newTelemetry(t).options()...).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
		var want []string
		for _, offered := range offers(w) {
			want = append(want, map[string]string{"Flusher": "Flush", "Hijacker": "Hijack", "ReaderFrom": "ReadFrom"}[offered])
		}
		assert.ElementsMatch(t, append(want, "Write"), bare.calls)
		assert.Contains(t, []string{"de", "abcde"}, bare.body.String())
	}
}

// http.ResponseController finds the server's writer, and gives the answers that
// it gives without us.
func TestResponseControllerWorks(t *testing.T) {
	control := func(w http.ResponseWriter) []error {
		rc := http.NewResponseController(w)
		return []error{
			rc.EnableFullDuplex(),
			rc.SetReadDeadline(time.Now().Add(time.Minute)),
			rc.SetWriteDeadline(time.Now().Add(time.Minute)),
			rc.Flush(),
		}
	}
	eachProtocol(t, func(w http.ResponseWriter, r *http.Request) {
		want := control(w)
		genaihttp.NewHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			assert.Equal(t, want, control(w))
		}), newTelemetry(t).options()...).ServeHTTP(w, r)
		assert.NoError(t, want[3])
		assert.NoError(t, want[2])
	})
}

// A deadline that passes is the server's to enforce: the write fails as without
// us.
func TestAnErrorOfTheServersWriterIsPassedOn(t *testing.T) {
	o := newTelemetry(t)
	bare := newBareWriter()
	bare.fail = os.ErrDeadlineExceeded
	genaihttp.NewHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		n, err := w.Write([]byte(textEvent))
		assert.Equal(t, 3, n)
		assert.ErrorIs(t, err, os.ErrDeadlineExceeded)
	}), o.options()...).ServeHTTP(bare, httptest.NewRequest(http.MethodPost, "/v1/chat/completions", nil))
	got := attributes(o.only())
	assert.NotContains(t, got, semconv.GenAIChunkCountKey, "three bytes are no event")
}

// Files go the short way, by ReadFrom; streams of events, which it would hide,
// do not.
func TestCopyingAFileKeepsTheShortWay(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stream")
	require.NoError(t, os.WriteFile(path, []byte(textEvent+finishEvent+doneEvent), 0o600))
	for contentType, want := range map[string]string{"application/octet-stream": "ReadFrom", "text/event-stream": "Write"} {
		o := newTelemetry(t)
		bare := newBareWriter()
		genaihttp.NewHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			file, err := os.Open(path)
			if !assert.NoError(t, err) {
				return
			}
			defer file.Close()
			w.Header().Set("Content-Type", contentType)
			_, err = io.Copy(w, file)
			assert.NoError(t, err)
		}), o.options()...).ServeHTTP(bareReaderFrom{bare}, httptest.NewRequest(http.MethodGet, "/", nil))
		assert.Equal(t, []string{want}, bare.calls, contentType)
		assert.Equal(t, textEvent+finishEvent+doneEvent, bare.body.String())
		if want == "Write" {
			checkEnding(t, o.only(), "done", "")
		} else {
			checkEnding(t, o.only(), "", "")
		}
	}
}

// Frameworks ask for CloseNotify without looking: it is there on any server, and
// tells when the client left.
func TestCloseNotifyTellsWhenTheClientLeft(t *testing.T) {
	o := newTelemetry(t)
	left := make(chan struct{})
	server := httptest.NewServer(genaihttp.NewHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		gone := w.(http.CloseNotifier).CloseNotify() //nolint:staticcheck // deprecated, and in use
		say(w, textEvent)
		assert.True(t, <-gone)
		close(left)
	}), o.options()...))
	defer server.Close()
	resp, err := server.Client().Post(server.URL, "application/json", strings.NewReader(chatRequest))
	require.NoError(t, err)
	readUntil(t, resp, textEvent)
	resp.Body.Close()
	<-left
}

func TestPushSaysWhereThereIsNone(t *testing.T) {
	genaihttp.NewHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		assert.True(t, errors.Is(w.(http.Pusher).Push("/style.css", nil), http.ErrNotSupported))
	}), newTelemetry(t).options()...).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
}

// However a handler writes its events, they are seen.
func TestEventsAreSeenHoweverTheyAreWritten(t *testing.T) {
	stream := textEvent + finishEvent + doneEvent
	for name, write := range map[string]func(w http.ResponseWriter){
		"Write":       func(w http.ResponseWriter) { _, _ = w.Write([]byte(stream)) },
		"WriteString": func(w http.ResponseWriter) { _, _ = io.WriteString(w, stream) },
		"Copy":        func(w http.ResponseWriter) { _, _ = io.Copy(w, strings.NewReader(stream)) },
		"Fprint":      func(w http.ResponseWriter) { fmt.Fprint(w, stream) },
		"bytes": func(w http.ResponseWriter) {
			for i := range stream {
				_, _ = w.Write([]byte{stream[i]})
			}
		},
		"header first": func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusOK)
			_, _ = w.Write([]byte(stream))
		},
		"flush first": func(w http.ResponseWriter) {
			_ = http.NewResponseController(w).Flush()
			_, _ = w.Write([]byte(stream))
		},
	} {
		t.Run(name, func(t *testing.T) {
			var o *telemetry
			eachProtocol(t, func(w http.ResponseWriter, r *http.Request) {
				o = newTelemetry(t)
				genaihttp.NewHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
					write(w)
				}), o.options()...).ServeHTTP(w, r)
				checkEnding(t, o.only(), "done", "")
				assert.EqualValues(t, 2, attributes(o.only())[semconv.GenAIChunkCountKey])
			})
		})
	}
}
