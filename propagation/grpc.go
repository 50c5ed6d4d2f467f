package propagation

import (
	"strings"

	"go.opentelemetry.io/otel/propagation"
	"google.golang.org/grpc/metadata"
)

// GRPCMetadata is a carrier over gRPC metadata:
//
//	md := metadata.MD{}
//	propagator.Inject(ctx, propagation.GRPCMetadata(md))
//	ctx = metadata.NewOutgoingContext(ctx, md)
//
// Keys may be given in any letter case and are stored in lower case, the only
// form that gRPC accepts and delivers.
//
// A key that ends in "-bin" has a binary value. The metadata holds its bytes
// as they are; gRPC encodes them on the wire.
//
// Metadata taken from an outgoing context must be copied before it is written
// to. On a nil GRPCMetadata the reading methods find nothing and Set does
// nothing. Like the map it is, a GRPCMetadata must not be written to
// concurrently.
type GRPCMetadata metadata.MD

var (
	_ propagation.TextMapCarrier = GRPCMetadata(nil)
	_ propagation.ValuesGetter   = GRPCMetadata(nil)
)

// Get returns the value of key, or "" if there is none. Of a repeated
// tracestate or baggage key it returns the combined list, of a repeated
// traceparent key "", since the values contradict each other, and of any other
// repeated key the first value.
func (md GRPCMetadata) Get(key string) string {
	key = strings.ToLower(key)
	return oneValue(key, md[key])
}

// Values returns all values of key in order, without combining or choosing.
// The slice is the metadata's own: do not modify it.
func (md GRPCMetadata) Values(key string) []string {
	return md[strings.ToLower(key)]
}

// Set makes value the only value of key, in place of all earlier ones in any
// letter case. The key is left absent if value is empty or, unless the key is
// binary, holds anything but printable ASCII (0x20 to 0x7E), because grpc-go
// would fail the RPC. A key that holds anything but letters, digits, "_", "-"
// and "." is ignored for the same reason.
func (md GRPCMetadata) Set(key, value string) {
	if md == nil {
		return
	}
	key = strings.ToLower(key)
	deleteOtherCases(md, key)
	if value == "" || !isMetadataKey(key) || !isMetadataValue(key, value) {
		delete(md, key)
		return
	}
	md[key] = []string{value}
}

// Keys returns all keys as they are stored, in no particular order.
func (md GRPCMetadata) Keys() []string {
	keys := make([]string, 0, len(md))
	for key := range md {
		keys = append(keys, key)
	}
	return keys
}

// isMetadataKey reports whether key, in lower case, is a Header-Name of the
// gRPC over HTTP/2 protocol.
func isMetadataKey(key string) bool {
	for i := range len(key) {
		c := key[i]
		switch {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '-', c == '_', c == '.':
		default:
			return false
		}
	}
	return key != ""
}

// isMetadataValue reports whether value is legal for key: any bytes if the key
// is binary, else an ASCII-Value of the gRPC over HTTP/2 protocol.
func isMetadataValue(key, value string) bool {
	if strings.HasSuffix(key, "-bin") {
		return true
	}
	for i := range len(value) {
		if c := value[i]; c < ' ' || c > '~' {
			return false
		}
	}
	return true
}
