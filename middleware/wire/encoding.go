package wire

import (
	"bufio"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
)

// A Decoder undoes a content encoding: it returns a reader of what encoded holds.
// The reader reads from encoded in the goroutine that reads from it, and not ahead
// of what it returns (with klauspost/compress: zstd.WithDecoderConcurrency(1)). If
// it is an io.Closer, it is closed. After a panic the rest of the body is not read; that
// is counted in genai.telemetry.faults.
type Decoder func(encoded io.Reader) io.Reader

// decoders are those of the standard library.
var decoders = map[string]Decoder{
	"gzip":    func(r io.Reader) io.Reader { return &opened{from: r, open: openGzip} },
	"x-gzip":  func(r io.Reader) io.Reader { return &opened{from: r, open: openGzip} },
	"deflate": func(r io.Reader) io.Reader { return &opened{from: r, open: openDeflate} },
}

// openGzip hands out what a member holds before it looks for the next one, which
// the package's own reader waits for.
func openGzip(r io.Reader) (io.Reader, error) {
	m := &gzipMembers{from: bufio.NewReader(r)}
	var err error
	if m.zip, err = gzip.NewReader(m.from); err != nil {
		return nil, err
	}
	m.zip.Multistream(false)
	return m, nil
}

type gzipMembers struct {
	from *bufio.Reader
	zip  *gzip.Reader
	over bool // the member
}

func (m *gzipMembers) Read(p []byte) (int, error) {
	if m.over {
		if err := m.zip.Reset(m.from); err != nil {
			return 0, err
		}
		m.zip.Multistream(false)
		m.over = false
	}
	n, err := m.zip.Read(p)
	if errors.Is(err, io.EOF) {
		m.over, err = true, nil
	}
	return n, err
}

// openDeflate takes zlib's format, which the name stands for, and also that of
// servers that leave its frame out.
func openDeflate(r io.Reader) (io.Reader, error) {
	b := bufio.NewReader(r)
	head, err := b.Peek(2)
	if err != nil {
		return nil, err
	}
	if head[0]&0x0f == 8 && (int(head[0])<<8|int(head[1]))%31 == 0 {
		return zlib.NewReader(b)
	}
	return flate.NewReader(b), nil
}

// An opened reader reads the head of its format with the first Read.
type opened struct {
	from   io.Reader
	open   func(io.Reader) (io.Reader, error)
	reader io.Reader
}

func (o *opened) Read(p []byte) (n int, err error) {
	if o.reader == nil {
		if o.reader, err = o.open(o.from); err != nil {
			return 0, err
		}
	}
	return o.reader.Read(p)
}

// decoder returns what undoes the content encoding of the answer; encoded is false
// where it has none.
func (x Exchange) decoder() (d Decoder, encoded bool) {
	e := strings.ToLower(strings.TrimSpace(contentEncoding(x.Response)))
	if e == "" || e == "identity" {
		return nil, false
	}
	if d = x.Decoders[e]; d == nil {
		d = decoders[e]
	}
	return d, true
}

// isHidden reports whether a content encoding hides the body.
func (x Exchange) isHidden() bool {
	d, encoded := x.decoder()
	return encoded && d == nil
}

func contentEncoding(h http.Header) string { return strings.Join(h["Content-Encoding"], ",") }

// What is decoded of a body: some, and some more for each byte of it. A stream of
// tokens, flushed one by one, hardly shrinks to a tenth; a bomb, to a thousandth.
const (
	decodedFree  = 4 << 20
	decodedRatio = 100
)

// A decoding runs a decoder, which pulls what it reads, on bytes that are pushed.
// None of the standard library's can stop amid a block and go on later, so it runs
// in a goroutine of its own, from the first byte to finish. That runs only while
// push and finish wait for it: what it hands on, it hands on during their call.
type decoding struct {
	decoder  Decoder
	dispatch func([]byte)

	pushed chan []byte
	wants  chan struct{} // all of it is read
	ended  chan struct{} // closed when no more will be
	rest   []byte
	taken  atomic.Int64 // bytes that were pushed

	err     error // why it ended early
	started bool
	over    bool
}

func newDecoding(d Decoder, dispatch func([]byte)) *decoding {
	return &decoding{
		decoder: d, dispatch: dispatch,
		pushed: make(chan []byte), wants: make(chan struct{}), ended: make(chan struct{}),
	}
}

func (d *decoding) push(p []byte) {
	if d.over || len(p) == 0 {
		return
	}
	if !d.started {
		d.started = true
		go d.run()
		if !d.wait() {
			return
		}
	}
	select {
	case d.pushed <- p:
	case <-d.ended:
	}
	d.wait()
}

// wait waits until the decoder wants more, and reports whether it does.
func (d *decoding) wait() bool {
	select {
	case <-d.wants:
	case <-d.ended:
		d.over = true
	}
	return !d.over
}

// finish ends the decoder with the end of its input, and returns why it ended
// early, if it did. An input that is cut is the stream's to judge.
func (d *decoding) finish() error {
	if d.started && !d.over {
		close(d.pushed)
		for d.wait() { // until it sees the end
		}
	}
	d.over = true
	return d.err
}

// maxEmpty is how often in a row a decoder may return nothing.
const maxEmpty = 100

var (
	errTooMuch = errors.New("decoded to more than 4 MiB and a hundred times its size")
	errDecoder = errors.New("decoder panicked")
)

func (d *decoding) run() {
	defer close(d.ended)
	defer func() {
		if recover() != nil { // which may tell of content
			d.err = errDecoder
		}
	}()
	r := d.decoder(d)
	if c, ok := r.(io.Closer); ok {
		defer c.Close()
	}
	buf := make([]byte, 4<<10)
	for total, empty := 0, 0; ; {
		n, err := r.Read(buf)
		d.dispatch(buf[:n])
		if empty++; n > 0 {
			empty = 0
		}
		switch total += n; {
		case total > decodedFree+decodedRatio*int(d.taken.Load()):
			err = errTooMuch
		case empty == maxEmpty:
			err = io.ErrNoProgress
		}
		switch {
		case err == nil:
			continue
		case !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
			d.err = err
		}
		return
	}
}

// Read is for the decoder. One that reads in a goroutine of its own, against the
// contract, may do so after its end.
func (d *decoding) Read(p []byte) (int, error) {
	for len(d.rest) == 0 {
		select {
		case d.wants <- struct{}{}:
		case <-d.ended:
			return 0, io.EOF
		}
		select {
		case d.rest = <-d.pushed: // nil once it is closed
		case <-d.ended:
		}
		if d.rest == nil {
			return 0, io.EOF
		}
		d.taken.Add(int64(len(d.rest)))
	}
	n := copy(p, d.rest)
	d.rest = d.rest[n:]
	return n, nil
}
