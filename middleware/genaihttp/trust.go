package genaihttp

import (
	"context"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/propagation"
)

// inject writes the context into the headers of an outgoing request: all of it
// for hosts of one's own, traceparent alone for third parties, whom tracestate
// and baggage are no business of.
func (c *config) inject(ctx context.Context, target *url.URL, header http.Header, marked bool) {
	if !c.trusts(target) {
		for _, field := range c.propagators.Fields() {
			if !strings.EqualFold(field, "traceparent") {
				header.Del(field) // a proxy copies it from the request that it forwards
			}
		}
		sc := trace.SpanContextFromContext(ctx).WithTraceState(trace.TraceState{})
		ctx = trace.ContextWithSpanContext(ctx, sc)
		propagation.W3C{}.Inject(ctx, propagation.HTTPHeader(header))
		return
	}
	if marked {
		ctx = propagation.ContextWithCallerMark(ctx)
	}
	c.propagators.Inject(ctx, propagation.HTTPHeader(header))
}

// ownSuffixes end names that never leave one's own network (RFC 6761, RFC 6762,
// ICANN's .internal).
var ownSuffixes = []string{".localhost", ".local", ".internal"}

func (c *config) trusts(target *url.URL) bool {
	host := strings.ToLower(strings.TrimSuffix(target.Hostname(), "."))
	if c.trusted[host] {
		return true
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		addr = addr.Unmap()
		return addr.IsLoopback() || addr.IsPrivate() || addr.IsLinkLocalUnicast()
	}
	if !strings.Contains(host, ".") {
		return host != "" // localhost, or a name of the local search domain
	}
	for _, suffix := range ownSuffixes {
		if strings.HasSuffix(host, suffix) {
			return true
		}
	}
	return false
}
