package genaitrace

import (
	"io"
	"time"

	"github.com/genaitrace/otelgenai/semconv"
)

// ReadChunks is [RangeChunks] for an answer that is read as bytes. Each Read that
// brings some is a chunk; observe must not keep or change them. io.EOF ends the
// call well, and any other error as truncated: the stream broke. Close before
// that abandons it, or, deferred by a reader that panics, ends it as failed; it
// closes r where r can be closed. The context's end ends the call of a reader that
// is dropped without Close.
//
// Read is for one goroutine, Close for any.
func ReadChunks(call *Call, r io.Reader, observe func(*Call, []byte) ChunkKind) io.ReadCloser {
	if call == nil || call.t == nil {
		if rc, ok := r.(io.ReadCloser); ok {
			return rc
		}
		return io.NopCloser(r)
	}
	call.endWithContext()
	return &chunkReader{r: r, chunks: chunks[[]byte]{call: call, observe: observe}}
}

type chunkReader struct {
	r      io.Reader
	chunks chunks[[]byte]
}

func (c *chunkReader) Read(p []byte) (int, error) {
	defer c.chunks.call.endOnPanic()
	n, err := c.r.Read(p)
	if n > 0 && n <= len(p) {
		c.chunks.stamp(p[:n])
	}
	if err != nil {
		c.chunks.call.endBody(err)
	}
	return n, err
}

func (c *chunkReader) Close() (err error) {
	r := recover() // only a deferred function itself can
	if r != nil {
		c.chunks.call.end(nil, panicked, time.Time{})
	}
	defer c.chunks.call.abandon() // after the source, which may have more to tell
	if rc, ok := c.r.(io.Closer); ok {
		err = rc.Close()
	}
	if r != nil {
		panic(r)
	}
	return err
}

// endBody ends the call with the error that ended the reading of its answer.
func (c *Call) endBody(err error) {
	if how, _ := classify(c.ctx, err); how == failed && err != io.EOF { //nolint:errorlint // wrapped, it is the cause of something else
		c.SetTerminal(semconv.GenAIStreamTerminalTruncated)
	}
	c.endStream(err, time.Time{})
}
