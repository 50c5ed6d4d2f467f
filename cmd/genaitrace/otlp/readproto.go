package otlp

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/genaitrace/otelgenai/capture"
)

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
