package benchmarks

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/genaitrace/otelgenai/benchmarks/internal/column"
)

// A visit is an application that reads one answer.
type visit struct {
	stream column.Stream // nil where the request failed
	cancel context.CancelFunc
	watch  watch

	tail string    // of what it has read
	seen time.Time // when it had the first token
}

// next reads on, and notes when the first token has come.
func (v *visit) next() bool {
	if v.stream == nil || !v.stream.Next() {
		return false
	}
	now := time.Now()
	v.tail += v.stream.Text()
	if v.seen.IsZero() && strings.Contains(v.tail, `"hi"`) {
		v.seen = now
	}
	v.tail = v.tail[max(0, len(v.tail)-len(`"hi"`)):]
	return true
}

// toFirstToken reads until the first token has come, or to the end.
func (v *visit) toFirstToken() {
	for v.seen.IsZero() && v.next() {
	}
}

func (v *visit) toTheEnd() {
	for v.next() {
	}
	v.close()
}

func (v *visit) close() {
	if v.stream != nil {
		_ = v.stream.Close()
	}
}

func (v *visit) closeEarly() {
	v.toFirstToken()
	v.close()
}

func (v *visit) cancelEarly() {
	v.toFirstToken()
	v.cancel()
	v.toTheEnd()
}

// abandon neither reads on nor closes; whoever called the application gives up on it.
func (v *visit) abandon() {
	v.toFirstToken()
	time.AfterFunc(4*pace, v.cancel)
}

// by is when the first token had certainly come to the application: when the client's
// transport had read it, and its library handed it on.
func (v *visit) by(log writeLog) time.Time {
	end := log.packed
	if v.watch.decoded {
		end = log.plain
	}
	read := v.watch.when(end)
	if read.Before(v.seen) {
		return v.seen
	}
	return read
}

// short is whether the client read less of the answer than there was.
func (v *visit) short(s *script) bool {
	all := s.packed
	if v.watch.decoded {
		all = s.plain
	}
	v.watch.mu.Lock()
	defer v.watch.mu.Unlock()
	return v.watch.total < all
}

// A watch notes when which part of an answer was read through a transport.
type watch struct {
	sent    time.Time // when the transport got the request
	decoded bool      // the transport decoded it

	mu    sync.Mutex
	total int
	reads []struct {
		upTo int
		at   time.Time
	}
}

func (w *watch) wrap(base http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		w.sent = time.Now()
		resp, err := base.RoundTrip(req)
		if err == nil {
			w.decoded = resp.Uncompressed
			resp.Body = &watchedBody{resp.Body, w}
		}
		return resp, err
	})
}

// when is when the first n bytes had been read; the end, where there were fewer.
func (w *watch) when(n int) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.reads {
		if r.upTo >= n {
			return r.at
		}
	}
	return time.Now()
}

type watchedBody struct {
	io.ReadCloser

	w *watch
}

func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	b.w.total += n
	b.w.reads = append(b.w.reads, struct {
		upTo int
		at   time.Time
	}{b.w.total, time.Now()})
	return n, err
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
