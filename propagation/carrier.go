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
	multi, ok := carrier.(propagation.ValuesGetter)
	if !ok {
		return carrier.Get(key)
	}
	values := multi.Values(key)
	if len(values) != 1 {
		return ""
	}
	return values[0]
}

// combined returns all values of key as one list, in order, joined as RFC
// 9110, section 5.3 joins repeated fields.
func combined(carrier propagation.TextMapCarrier, key string) string {
	multi, ok := carrier.(propagation.ValuesGetter)
	if !ok {
		return carrier.Get(key)
	}
	values := multi.Values(key)
	switch len(values) {
	case 0:
		return ""
	case 1:
		return values[0]
	default:
		return strings.Join(values, ",")
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
	case key == tracestateKey, key == baggageKey:
		return strings.Join(values, ",")
	default:
		return values[0]
	}
}

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
