package otlp

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/genaitrace/otelgenai/capture"
)

// framing is how the messages of an input are told apart.
type framing int8

const (
	unknownFraming framing = iota
	jsonFraming            // each ends with its outermost bracket
	bareFraming            // one protobuf message, read field by field
	sizedFraming           // 4 bytes of length, big endian, before each
	varintFraming          // a varint of length before each
)

// headSize is how many bytes detect wants to see.
const headSize = 512

// exportTag begins every export: field 1, with a length.
const exportTag = 1<<3 | byte(protowire.BytesType)

// detect tells the framing from the first bytes, and how many of them precede the
// first message. It does not guess; of any input at most one of these is true:
//   - JSON begins with an opening brace and, after it, a key or a closing brace. No
//     length of a message can be followed by that.
//   - A bare message begins with its tag (0a), a length and a resource (0a), a scope
//     (12) or a schema URL (1a). As a length, 0a would announce a message of 10 bytes,
//     too short for its second length to be followed by these.
//   - 4 bytes of length begin with a byte below 08, because no message is longer than
//     128 MiB. No tag is below 08, and as a varint it would announce a message too
//     short for a span.
//   - Any other varint is followed by the tag and a length that fits.
func detect(head []byte) (f framing, skip int, problem string) {
	trimmed := bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), space)
	switch {
	case isJSON(trimmed):
		return jsonFraming, len(head) - len(trimmed), ""
	case isExport(head, unknownSize):
		return bareFraming, 0, ""
	case isSized(head):
		return sizedFraming, 0, ""
	case isVarint(head):
		return varintFraming, 0, ""
	}
	return unknownFraming, 0, "this is no OTLP: " + unknownContent(head, trimmed)
}

// space is white space in JSON.
const space = " \t\r\n"

func isJSON(trimmed []byte) bool {
	if len(trimmed) == 0 {
		return true // an empty stream of documents
	}
	inner := bytes.TrimLeft(trimmed[1:], space)
	switch {
	case trimmed[0] != '{':
		return false
	case len(inner) == 0: // much white space, or the end
		return true
	case inner[0] == '"':
		return len(inner) == 1 || inner[1] >= ' '
	}
	return inner[0] == '}'
}

const unknownSize = math.MaxInt

// isExport reports whether an export of that size begins here, of which head may be a
// part.
func isExport(head []byte, size int) bool {
	if len(head) < 2 || head[0] != exportTag {
		return false
	}
	length, n := protowire.ConsumeVarint(head[1:])
	if n < 0 || length > uint64(size-1-n) {
		return false
	}
	inner := head[1+n:]
	if length == 0 || len(inner) == 0 {
		return true
	}
	return inner[0] == 0x0a || inner[0] == 0x12 || inner[0] == 0x1a
}

func isSized(head []byte) bool {
	if len(head) < 4 || head[0] >= 8 {
		return false
	}
	size := int(binary.BigEndian.Uint32(head))
	return size == 0 || isExport(head[4:], size) || bytes.HasPrefix(head[4:], zstd)
}

func isVarint(head []byte) bool {
	size, n := protowire.ConsumeVarint(head)
	return n > 0 && size >= 8 && size <= 1<<30 && isExport(head[n:], int(size))
}

// zstd begins a frame of that compression.
var zstd = []byte{0x28, 0xb5, 0x2f, 0xfd}

// unknownContent says what the input seems to be.
func unknownContent(head, trimmed []byte) string {
	switch {
	case bytes.HasPrefix(head, zstd):
		return "it is compressed with zstd; decompress it first"
	case trimmed[0] == '[':
		return "it is a JSON list; expected an object with resourceSpans, resourceMetrics or resourceLogs, or such objects one a line"
	}
	return fmt.Sprintf("it begins with %.16q; expected JSON or protobuf, as it is or compressed with gzip", head[:min(len(head), 16)])
}

// nextJSON reads the next document and decodes it.
func (r *Reader) nextJSON() (*capture.Capture, error) {
	if err := r.skipSpace(); err != nil {
		return nil, err
	}
	begin := r.at
	var scan jsonScan
	doc := r.message[:0]
	for done := false; !done; {
		chunk, err := r.chunk()
		if errors.Is(err, io.EOF) {
			found := diagnoseJSON(doc)
			if found == nil {
				found = &damage{offset: len(doc), text: "the document is cut off here"}
			}
			return nil, r.jsonError(begin, doc, found)
		}
		if err != nil {
			return nil, err
		}
		n, ended, found := scan.feed(chunk)
		doc = append(doc, chunk[:n]...)
		if found != nil {
			return nil, r.jsonError(begin, doc, found)
		}
		if len(doc) > r.limit {
			if found := diagnoseJSON(doc); found != nil && found.offset < len(doc) {
				return nil, r.jsonError(begin, doc, found) // what should have ended it is damaged
			}
			return nil, fmt.Errorf("%s:%d: the document is larger than %s: write one export a line (JSON lines), or raise the limit (WithMaxMessage)", r.name, begin.line, bytesOf(r.limit))
		}
		r.skip(n)
		done = ended
	}
	r.keepMemory(doc)
	all, found := scan.signals(doc)
	if found != nil {
		return nil, r.jsonError(begin, doc, found)
	}
	got, found := r.decoder.json(all, doc)
	if found != nil {
		return nil, r.jsonError(begin, doc, found)
	}
	return got, nil
}

// skipSpace moves on to the next document, and refuses what is none.
func (r *Reader) skipSpace() error {
	for {
		chunk, err := r.chunk()
		if err != nil {
			return err
		}
		rest := bytes.TrimLeft(chunk, space)
		r.skip(len(chunk) - len(rest))
		if len(rest) == 0 {
			continue
		}
		if rest[0] != '{' {
			return fmt.Errorf("%s:%d:%d: found %.20q; expected a JSON object", r.name, r.at.line, r.at.column, rest[:min(len(rest), 20)])
		}
		return nil
	}
}

// chunk returns what is buffered, at least a byte. It does not move on.
func (r *Reader) chunk() ([]byte, error) {
	if _, err := r.src.Peek(1); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, io.EOF
		}
		return nil, r.failed(err)
	}
	return r.src.Peek(r.src.Buffered())
}

// jsonError gives the line and the column of damage in a document.
func (r *Reader) jsonError(begin position, doc []byte, found *damage) error {
	begin.advance(doc[:min(found.offset, len(doc))])
	return fmt.Errorf("%s:%d:%d: %w", r.name, begin.line, begin.column, found)
}

// keepMemory lets the next message use the memory of this one, unless that is much.
func (r *Reader) keepMemory(message []byte) {
	const much = 4 << 20
	r.message = message
	if cap(message) > much {
		r.message = nil
	}
}

// nextProto reads the next message and decodes it.
func (r *Reader) nextProto() (*capture.Capture, error) {
	message, begin, err := r.protoMessage()
	if err != nil {
		return nil, err
	}
	if bytes.HasPrefix(message, zstd) {
		return nil, r.protoError(begin, &damage{text: "the message is compressed with zstd; have the Collector's file exporter write without compression"})
	}
	s, found := signalOf(message)
	if found != nil {
		return nil, r.protoError(begin, found)
	}
	got, found := r.decoder.proto(s, message)
	if found != nil {
		return nil, r.protoError(begin, found)
	}
	r.keepMemory(message)
	return got, nil
}

func (r *Reader) protoError(begin int64, found *damage) error {
	return fmt.Errorf("%s: byte %d: %w", r.name, begin+int64(found.offset), found)
}

// protoMessage reads the next message; begin is its offset in the input. Of a bare
// message it reads one field, which is a message of its own: that is how protobuf
// defines a list.
func (r *Reader) protoMessage() (message []byte, begin int64, err error) {
	begin = r.at.offset
	prefix, size, err := r.protoSize()
	if err != nil {
		return nil, 0, err
	}
	if size > uint64(r.limit) {
		return nil, 0, r.protoError(begin, &damage{text: fmt.Sprintf("a message of %d bytes is announced; the limit is %s (WithMaxMessage)", size, bytesOf(r.limit))})
	}
	buf := bytes.NewBuffer(r.message[:0])
	if r.framing == bareFraming {
		buf.Write(prefix)
	} else {
		begin += int64(len(prefix))
	}
	// CopyN allocates as the bytes come, so a false size costs nothing.
	n, err := io.CopyN(buf, r.src, int64(size))
	r.at.offset += n
	if errors.Is(err, io.EOF) {
		return nil, 0, r.protoError(begin, &damage{text: fmt.Sprintf("the message is cut off: %d of %d bytes are there", n, size)})
	}
	if err != nil {
		return nil, 0, r.failed(err)
	}
	return buf.Bytes(), begin, nil
}

// protoSize reads what precedes a message, and the size that it announces.
func (r *Reader) protoSize() (prefix []byte, size uint64, err error) {
	const longest = 1 + binary.MaxVarintLen64
	head, err := r.src.Peek(longest)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, 0, r.failed(err)
	}
	if len(head) == 0 {
		return nil, 0, io.EOF
	}
	var n int
	switch r.framing {
	case sizedFraming:
		if n = 4; len(head) >= n {
			size = uint64(binary.BigEndian.Uint32(head))
		}
	case varintFraming:
		size, n = protowire.ConsumeVarint(head)
	default:
		if head[0] != exportTag {
			return nil, 0, r.protoError(r.at.offset, &damage{text: fmt.Sprintf("found %#02x; expected another resource (0x0a)", head[0])})
		}
		if size, n = protowire.ConsumeVarint(head[1:]); n > 0 {
			n++
		}
	}
	if n <= 0 || n > len(head) {
		return nil, 0, r.protoError(r.at.offset, &damage{text: "the length of a message is cut off or damaged"})
	}
	prefix = append([]byte(nil), head[:n]...)
	r.skip(n)
	return prefix, size, nil
}

// bytesOf writes a size for people.
func bytesOf(n int) string {
	if n >= 1<<20 && n%(1<<20) == 0 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d bytes", n)
}
