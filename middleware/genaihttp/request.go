package genaihttp

import (
	"io"
	"net/http"
	"sync"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/middleware/wire"
)

// maxRequest bounds how much of a request's body is looked at, in bytes.
const maxRequest = 64 << 10

// peek reads the facts of a request from a second copy of its body, where the
// client can make one (Go's client makes one of bytes and strings). The body
// that is sent is not touched.
func peek(req *http.Request) (genaitrace.Request, bool) {
	if req.GetBody == nil || req.Body == nil || req.Body == http.NoBody {
		return genaitrace.Request{}, false
	}
	copied, err := req.GetBody()
	if err != nil {
		return genaitrace.Request{}, false
	}
	defer copied.Close()
	start, _ := io.ReadAll(io.LimitReader(copied, maxRequest))
	return wire.ReadRequest(start), true
}

// A tee keeps the start of a body as the transport sends it.
type tee struct {
	io.ReadCloser

	mu    sync.Mutex // the transport may still read when the answer is there
	start []byte
}

// teeBody keeps the start of the request's body as it is read, unless [peek] has
// read it already.
func teeBody(req *http.Request) *tee {
	if req.GetBody != nil || req.Body == nil || req.Body == http.NoBody {
		return nil
	}
	t := &tee{ReadCloser: req.Body}
	req.Body = t
	return t
}

func (t *tee) Read(p []byte) (int, error) {
	n, err := t.ReadCloser.Read(p)
	t.mu.Lock()
	if room := maxRequest - len(t.start); room > 0 {
		t.start = append(t.start, p[:min(n, room)]...)
	}
	t.mu.Unlock()
	return n, err
}

// facts reads what was sent so far.
func (t *tee) facts() genaitrace.Request {
	if t == nil {
		return genaitrace.Request{}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return wire.ReadRequest(t.start)
}
