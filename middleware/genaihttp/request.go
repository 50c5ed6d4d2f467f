package genaihttp

import (
	"io"
	"net/http"
	"sync"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/middleware/wire"
)

// maxPeek bounds how much of a request's body is looked at before it is sent, in
// bytes: images make bodies long, and looking takes time.
const maxPeek = 4 << 20

// peek reads the facts of a request from a second copy of its body, where the
// client can make one (Go's client makes one of bytes and strings). The body
// that is sent is not touched.
func peek(req *http.Request) genaitrace.Request {
	if req.GetBody == nil || req.Body == nil || req.Body == http.NoBody {
		return genaitrace.Request{}
	}
	body, err := req.GetBody()
	if err != nil {
		return genaitrace.Request{}
	}
	defer body.Close()
	p := peeker{left: maxPeek}
	_, _ = io.Copy(&p, body) // without a buffer where body holds the bytes itself
	return p.reader.Request()
}

// A peeker lets a reader see only the start of a body.
type peeker struct {
	reader wire.RequestReader
	left   int
}

func (p *peeker) Write(b []byte) (int, error) {
	n, _ := p.reader.Write(b[:min(len(b), p.left)])
	if p.left -= n; p.left == 0 {
		return n, io.ErrShortWrite // enough
	}
	return n, nil
}

// A tee reads the facts of a request as the transport sends its body.
type tee struct {
	io.ReadCloser

	mu     sync.Mutex // the transport may still read when the answer is there
	reader wire.RequestReader
}

// teeBody reads the request's body as it is sent, unless [peek] has.
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
	_, _ = t.reader.Write(p[:n])
	t.mu.Unlock()
	return n, err
}

// facts is what was read so far.
func (t *tee) facts() genaitrace.Request {
	if t == nil {
		return genaitrace.Request{}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.reader.Request()
}
