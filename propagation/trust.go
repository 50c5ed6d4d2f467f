package propagation

import (
	"context"
	"net"
	"net/netip"
	"strings"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// ownSuffixes end names that never leave one's own network (RFC 6761, RFC 6762,
// ICANN's .internal).
var ownSuffixes = []string{".localhost", ".local", ".internal"}

// IsOwnHost reports whether host, with or without a port, is in one's own network
// by its looks: a loopback, private or link-local address, a name without a dot,
// or one under .localhost, .local or .internal. All others are third parties.
func IsOwnHost(host string) bool {
	host = normalHost(host)
	if addr, err := netip.ParseAddr(host); err == nil {
		return addr.IsLoopback() || addr.IsPrivate() || addr.IsLinkLocalUnicast()
	}
	if !strings.Contains(host, ".") { // localhost, or a name of the local search domain
		return host != "" && !isNumber(host) && isASCII(host)
	}
	for _, suffix := range ownSuffixes {
		if strings.HasSuffix(host, suffix) {
			return true
		}
	}
	return false
}

// isNumber reports whether host is a number, which some resolvers take for an
// address of any network.
func isNumber(host string) bool {
	return strings.HasPrefix(host, "0x") || strings.Trim(host, "0123456789") == ""
}

// isASCII reports whether host is none of those that net/http maps to another name,
// such as one with dots of another script.
func isASCII(host string) bool {
	for i := range len(host) {
		if host[i] > 0x7F {
			return false
		}
	}
	return true
}

// normalHost returns host in lower case, without port, brackets and final dot.
func normalHost(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// InjectTraceparent writes what a third party may know: the traceparent, without
// tracestate and baggage, which it removes from carrier, as it does
// grpc-trace-bin.
func InjectTraceparent(ctx context.Context, carrier propagation.TextMapCarrier) {
	for _, key := range [...]string{tracestateKey, baggageKey, traceBinKey} {
		replace(carrier, key, "")
	}
	if sc := trace.SpanContextFromContext(ctx); sc.IsValid() {
		carrier.Set(traceparentKey, string(appendTraceparent(nil, sc)))
	}
}
