package genaihttp

import (
	"io"
	"net/http"
	"sync"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/middleware/wire"
)

// maxAhead bounds how much of a request's body is read before it is sent, in
// bytes.
const maxAhead = 64 << 10

// A requestBody reads the facts of a request from its body as that is sent.
//
// Samplers want the model before. So the start of a body that the client can
// make again (it has GetBody: bytes or a file, never a live stream) is read
// ahead, and handed out first. GetBody itself is left alone: with many clients it
// rewinds the very body that is to be sent.
type requestBody struct {
	io.ReadCloser

	ahead    []byte // read, but not handed out yet
	aheadErr error  // what ended reading ahead, to be told after it
	atEnd    bool   // the body told its io.EOF

	drained bool // what is not sent may be read when it is closed

	mu     sync.Mutex // the transport may still read when the answer is there
	reader *wire.RequestReader
	sent   bool // the transport began to read
}

// readBody puts a requestBody in the place of the request's body, if it has one.
func readBody(req *http.Request, reader *wire.RequestReader) *requestBody {
	b := &requestBody{ReadCloser: req.Body, reader: reader}
	if req.Body == nil || req.Body == http.NoBody {
		return b
	}
	if req.GetBody != nil {
		b.readAhead(req.ContentLength)
	} else {
		b.drained = exchangeOf(req.Context()).isDrained()
	}
	req.Body = b
	return b
}

func (b *requestBody) readAhead(length int64) {
	size := int64(maxAhead)
	if length > 0 && length < size {
		size = length + 1 // so that the end is seen
	}
	buf := make([]byte, size)
	n := 0
	for n < len(buf) && b.aheadErr == nil {
		var m int
		m, b.aheadErr = b.ReadCloser.Read(buf[n:])
		n += m
	}
	b.ahead = buf[:n]
	_, _ = b.reader.Write(b.ahead)
}

func (b *requestBody) Read(p []byte) (int, error) {
	if len(b.ahead) > 0 {
		n := copy(p, b.ahead)
		b.ahead = b.ahead[n:]
		return n, nil
	}
	if b.aheadErr != nil {
		return 0, b.aheadErr
	}
	if b.atEnd {
		return 0, io.EOF
	}
	if b.drained {
		b.began()
	}
	n, err := b.ReadCloser.Read(p)
	// net/http's transport asks once more after the end. The server may have closed
	// its body by then, because the answer has begun, and that error would break the
	// connection and the answer with it (golang/go#40747).
	b.atEnd = err == io.EOF
	b.mu.Lock()
	_, _ = b.reader.Write(p[:n])
	b.mu.Unlock()
	return n, err
}

// began notes that somebody reads the body, and reports whether somebody did
// before.
func (b *requestBody) began() (before bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	before, b.sent = b.sent, true
	return before
}

// Close reads the start of a body that was never sent, such as where the server
// could not be reached.
func (b *requestBody) Close() error {
	if b.drained && !b.began() {
		rest, _ := io.ReadAll(io.LimitReader(b.ReadCloser, maxAhead))
		b.mu.Lock()
		_, _ = b.reader.Write(rest)
		b.mu.Unlock()
	}
	return b.ReadCloser.Close()
}

// tools is how many tools the request offers, as far as was read.
func (b *requestBody) tools() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.reader.Tools()
}

// facts is what was read so far, and whether the answer will tell its usage.
func (b *requestBody) facts() (facts genaitrace.Request, usage bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.reader.Request(), b.reader.ExpectsUsage()
}
