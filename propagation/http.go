package propagation

import (
	"encoding/base64"
	"iter"
	"net/http"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/propagation"
)

// HTTPHeader is a carrier over HTTP header fields:
//
//	ctx = propagator.Extract(ctx, propagation.HTTPHeader(r.Header))
//
// Keys may be given in any letter case and are stored in the canonical form of
// [http.CanonicalHeaderKey], which is the form that net/http delivers.
//
// A key that ends in "-bin" has a binary value, as in gRPC: [HTTPHeader.Set]
// takes the bytes, the header holds them as base64, [HTTPHeader.Get] returns
// the bytes. A propagator made for gRPC metadata thus works over HTTP.
//
// On a nil HTTPHeader the reading methods find nothing and Set does nothing.
// Like the map it is, an HTTPHeader must not be written to concurrently.
type HTTPHeader http.Header

var (
	_ propagation.TextMapCarrier = HTTPHeader(nil)
	_ propagation.ValuesGetter   = HTTPHeader(nil)
)

// Get returns the value of key, or "" if there is none. Of a repeated
// tracestate, baggage or server-timing field it returns the combined list (RFC 9110, section
// 5.3), of a repeated traceparent field "", since the values contradict each
// other, and of any other repeated field the first value.
//
// Of a binary key it returns the first value that is base64, decoded; the
// padding may be absent, and several values may be joined by commas.
func (h HTTPHeader) Get(key string) string {
	field := canonicalField(key)
	if !isBinaryField(field) {
		return oneValue(strings.ToLower(key), h[field])
	}
	for value := range binaryValues(h[field]) {
		return value
	}
	return ""
}

// Values returns all values of key in order, without combining or choosing.
// The values of a binary key are decoded, those that are not base64 left out.
// The slice is the header's own unless the key is binary: do not modify it.
func (h HTTPHeader) Values(key string) []string {
	field := canonicalField(key)
	if !isBinaryField(field) {
		return h[field]
	}
	return slices.Collect(binaryValues(h[field]))
}

// Set makes value the only value of key, in place of all earlier ones in any
// letter case. The key is left absent if value is empty or holds a byte that
// is illegal in an HTTP field value (RFC 9110, section 5.5: a control
// character other than the tab), because net/http would refuse to send the
// request. A key that is not a field name is ignored.
func (h HTTPHeader) Set(key, value string) {
	if h == nil {
		return
	}
	field := canonicalField(key)
	deleteOtherCases(h, field)
	if isBinaryField(field) {
		value = base64.RawStdEncoding.EncodeToString([]byte(value))
	}
	if value == "" || !isFieldValue(value) || !isFieldName(field) {
		delete(h, field)
		return
	}
	h[field] = []string{value}
}

func (HTTPHeader) holdsBytes() {}

// Keys returns the names of all header fields as they are stored, in no
// particular order.
func (h HTTPHeader) Keys() []string {
	keys := make([]string, 0, len(h))
	for key := range h {
		keys = append(keys, key)
	}
	return keys
}

// canonicalField is http.CanonicalHeaderKey, which allocates for every name
// that net/http does not know, without that allocation for the names of this
// package.
func canonicalField(key string) string {
	switch key {
	case traceparentKey:
		return "Traceparent"
	case tracestateKey:
		return "Tracestate"
	case baggageKey:
		return "Baggage"
	case traceBinKey:
		return traceBinField
	case b3Key:
		return "B3"
	case b3TraceIDKey:
		return "X-B3-Traceid"
	case b3SpanIDKey:
		return "X-B3-Spanid"
	case b3ParentSpanIDKey:
		return "X-B3-Parentspanid"
	case b3SampledKey:
		return "X-B3-Sampled"
	case b3FlagsKey:
		return "X-B3-Flags"
	case jaegerKey:
		return "Uber-Trace-Id"
	case contractTraceIDKey:
		return "Trace-Id"
	case contractSpanIDKey:
		return "Span-Id"
	case contractParentSpanIDKey:
		return "Parent-Span-Id"
	case xTraceIDKey:
		return "X-Trace-Id"
	case promptTraceKey:
		return "X-Prompt-Trace"
	case serverTimingKey:
		return "Server-Timing"
	default:
		return http.CanonicalHeaderKey(key)
	}
}

// traceBinField is grpc-trace-bin as net/http stores it.
const traceBinField = "Grpc-Trace-Bin"

// isBinaryField reports whether a field, in canonical form, has a binary value.
func isBinaryField(field string) bool {
	return strings.HasSuffix(field, "-Bin")
}

// binaryValues yields what a binary field holds, decoded. gRPC requires its
// peers to accept values that are padded and values that are joined by commas.
func binaryValues(lists []string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, list := range lists {
			for item := range strings.SplitSeq(list, ",") {
				item = strings.TrimRight(trimOWS(item), "=")
				value, err := base64.RawStdEncoding.DecodeString(item)
				if err == nil && len(value) > 0 && !yield(string(value)) {
					return
				}
			}
		}
	}
}

// isFieldName reports whether s is a token (RFC 9110, section 5.6.2).
func isFieldName(s string) bool {
	for i := range len(s) {
		c := s[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0:
		default:
			return false
		}
	}
	return s != ""
}

// isFieldValue reports whether s consists of bytes that are legal in a field
// value (RFC 9110, section 5.5). Bytes above 0x7F are: HTTP passes them on
// uninterpreted.
func isFieldValue(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\t' || c == 0x7F {
			return false
		}
	}
	return true
}
