package otlp

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"

	"github.com/genaitrace/otelgenai/capture"
)

// DefaultMaxMessage bounds one JSON document, one line or one protobuf message, in
// bytes after decompression.
const DefaultMaxMessage = 64 << 20

// ReadFile reads a whole file. See [NewReader] for what it may hold. Metrics that
// were exported several times are merged as [Compact] does.
func ReadFile(path string, opts ...ReadOption) (*capture.Capture, error) {
	f, err := os.Open(path) //nolint:gosec // the caller chooses the file
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	return Read(path, f, opts...)
}

// Read reads everything from r. The name appears in errors. See [NewReader] for what
// r may hold. Metrics that were exported several times are merged as [Compact] does.
func Read(name string, r io.Reader, opts ...ReadOption) (*capture.Capture, error) {
	var (
		got    = new(capture.Capture)
		merger Merger
		in     = NewReader(name, r, opts...)
	)
	for {
		c, err := in.Next()
		if errors.Is(err, io.EOF) {
			got.Metrics = merger.Metrics()
			return got, nil
		}
		if err != nil {
			return nil, err
		}
		merger.Add(c.Metrics)
		c.Metrics = nil
		got.Add(c)
	}
}

// ReadOption changes how telemetry is read.
type ReadOption interface{ apply(*Reader) }

type readOption func(*Reader)

func (o readOption) apply(r *Reader) { o(r) }

// WithMaxMessage bounds one JSON document, one line or one protobuf message to that
// many bytes after decompression. Default [DefaultMaxMessage]; at most 128 MiB.
func WithMaxMessage(bytes int) ReadOption {
	return readOption(func(r *Reader) {
		if bytes > 0 {
			r.limit = min(bytes, 128<<20)
		}
	})
}

// Reader reads telemetry message by message, so that what it needs does not grow
// with the input. It must not be used concurrently.
type Reader struct {
	name  string
	src   *bufio.Reader
	limit int

	framing framing
	decoder *decoder
	at      position // of what was not read yet
	message []byte   // the last one; its memory is used again
	err     error    // of a Next that failed
}

// NewReader returns a reader of r. The name appears in errors. What r holds is told
// from its content, never from its name:
//
//   - JSON: a document with resourceSpans, resourceMetrics, resourceLogs or several of
//     them; or many such documents, as the file exporter of the OpenTelemetry Collector
//     writes them, one a line and signals mixed. White space between them does not
//     matter.
//   - Protobuf: an export of traces, metrics or logs; or many, signals mixed, each
//     after its length, in 4 bytes, big endian, as the Collector's file exporter
//     writes them, or as a varint, as the delimited streams of the protobuf libraries
//     do.
//   - Either of them compressed with gzip.
//
// An empty input is an empty capture. Nothing is read before the first Next.
func NewReader(name string, r io.Reader, opts ...ReadOption) *Reader {
	in := &Reader{
		name:    name,
		src:     bufio.NewReaderSize(r, 64<<10),
		limit:   DefaultMaxMessage,
		decoder: newDecoder(),
		at:      position{line: 1, column: 1},
	}
	for _, o := range opts {
		o.apply(in)
	}
	return in
}

// Dropped returns how much was not kept so far, by reason: for example spans without
// a trace id, which belong nowhere. The captures that Next returns count it too.
func (r *Reader) Dropped() map[string]int { return maps.Clone(r.decoder.dropped) }

// Next returns what the next message holds: metrics just as they were exported, so
// that a [Merger] can merge them. It returns [io.EOF] at the end. After an error it
// returns the same one again; the error names the place, as FILE:LINE:COLUMN or, in
// protobuf, by the offset of the byte.
func (r *Reader) Next() (*capture.Capture, error) {
	if r.err != nil {
		return nil, r.err
	}
	got, err := r.next()
	r.err = err
	return got, err
}

func (r *Reader) next() (*capture.Capture, error) {
	if r.framing == unknownFraming {
		if err := r.open(); err != nil {
			return nil, err
		}
	}
	if r.framing == jsonFraming {
		return r.nextJSON()
	}
	return r.nextProto()
}

// open finds out what the input holds.
func (r *Reader) open() error {
	head, err := r.peek()
	if err != nil {
		return err
	}
	if bytes.HasPrefix(head, []byte{0x1f, 0x8b}) {
		unzipped, err := gzip.NewReader(r.src)
		if err != nil {
			return r.failed(err)
		}
		r.src = bufio.NewReaderSize(unzipped, 64<<10)
		if head, err = r.peek(); err != nil {
			return err
		}
	}
	framing, skip, problem := detect(head)
	if problem != "" {
		return fmt.Errorf("%s: %s", r.name, problem)
	}
	r.framing = framing
	r.skip(skip)
	return nil
}

// peek returns the first bytes, as many as there are and as detect wants.
func (r *Reader) peek() ([]byte, error) {
	head, err := r.src.Peek(headSize)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, r.failed(err)
	}
	if len(head) == 0 {
		return nil, io.EOF
	}
	return head, nil
}

// skip moves on by n bytes, which are buffered.
func (r *Reader) skip(n int) {
	skipped, _ := r.src.Peek(n)
	r.at.advance(skipped)
	r.src.Discard(n) //nolint:errcheck,gosec // they are buffered
}

// position is a place in the input after decompression. Columns count bytes.
type position struct {
	offset       int64 // from 0
	line, column int   // from 1
}

func (p *position) advance(over []byte) {
	p.offset += int64(len(over))
	p.column += len(over)
	if last := bytes.LastIndexByte(over, '\n'); last >= 0 {
		p.line += bytes.Count(over, []byte{'\n'})
		p.column = len(over) - last
	}
}

// failed names the input in an error of reading it.
func (r *Reader) failed(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%s: cut off: %w", r.name, err)
	}
	return fmt.Errorf("%s: %w", r.name, err)
}

// keepMemory lets the next message use the memory of this one, unless that is much.
func (r *Reader) keepMemory(message []byte) {
	const much = 4 << 20
	r.message = message
	if cap(message) > much {
		r.message = nil
	}
}

// bytesOf writes a size for people.
func bytesOf(n int) string {
	if n >= 1<<20 && n%(1<<20) == 0 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d bytes", n)
}
