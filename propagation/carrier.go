package propagation

import (
	"strings"

	"go.opentelemetry.io/otel/propagation"
)

// The header names of the formats, in the lower case in which gRPC and
// HTTP/2 send them.
const (
	traceparentKey = "traceparent"
	tracestateKey  = "tracestate"
	baggageKey     = "baggage"
	traceBinKey    = "grpc-trace-bin"
)

// single returns the value of key if carrier has exactly one. A carrier that
// cannot tell how many values it has is taken at its word.
func single(carrier propagation.TextMapCarrier, key string) string {
	one, several := fieldsOf(carrier, key)
	if several != nil {
		return ""
	}
	return one
}

// combined returns all values of key as one list, in order, joined as RFC
// 9110, section 5.3 joins repeated fields.
func combined(carrier propagation.TextMapCarrier, key string) string {
	one, several := fieldsOf(carrier, key)
	if several != nil {
		return strings.Join(several, ",")
	}
	return one
}

// fieldsOf returns the value of key if there is one, "" if there is none, and
// all values if there are several. The switch spares the common carriers a
// call through an interface.
func fieldsOf(carrier propagation.TextMapCarrier, key string) (one string, several []string) {
	var values []string
	switch c := carrier.(type) {
	case HTTPHeader:
		values = c.Values(key)
	case GRPCMetadata:
		values = c[key] // ours are in lower case
	case propagation.ValuesGetter:
		values = c.Values(key)
	default:
		return carrier.Get(key), nil
	}
	switch len(values) {
	case 0:
		return "", nil
	case 1:
		return values[0], nil
	default:
		return "", values
	}
}

// oneValue reduces the values of a repeated field to the one that Get of a
// carrier returns. Lists are combined. Two traceparent fields contradict each
// other, so that neither is used. Of any other field the first value counts.
// The key is in lower case.
func oneValue(key string, values []string) string {
	switch {
	case len(values) == 0:
		return ""
	case len(values) == 1:
		return values[0]
	case key == traceparentKey:
		return ""
	case key == tracestateKey, key == baggageKey, key == serverTimingKey:
		return strings.Join(values, ",")
	default:
		return values[0]
	}
}

// headerSize is what a header counts towards the limits of HTTP/2 and gRPC
// (RFC 9113, section 6.5.2).
func headerSize(key string, valueLen int) int { return len(key) + valueLen + 32 }

// deleteOtherCases removes every key of m that differs from key in letter case
// alone, so that a value set under one spelling is the only one that is sent.
func deleteOtherCases(m map[string][]string, key string) {
	for k := range m {
		if len(k) == len(key) && k != key && strings.EqualFold(k, key) {
			delete(m, k)
		}
	}
}

// trimOWS removes the optional whitespace of RFC 9110, section 5.6.3 (space
// and horizontal tab) from both ends of s.
func trimOWS(s string) string {
	for s != "" && (s[0] == ' ' || s[0] == '\t') {
		s = s[1:]
	}
	for s != "" && (s[len(s)-1] == ' ' || s[len(s)-1] == '\t') {
		s = s[:len(s)-1]
	}
	return s
}
