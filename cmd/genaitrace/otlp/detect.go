package otlp

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
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
//   - JSON begins with an opening brace, perhaps after white space, and has a key or a
//     closing brace after it. As lengths and tags these do not fit in each other.
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
