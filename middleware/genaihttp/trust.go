package genaihttp

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/genaitrace/otelgenai/middleware/internal/tail"
	"github.com/genaitrace/otelgenai/propagation"
)

const propagatorPanicked = "propagator or WithMember panicked, request goes on without trace context"

// inject writes the context into the headers of an outgoing request: all of it
// for hosts of one's own, traceparent alone for third parties, whom tracestate
// and baggage are no business of. It replaces what a proxy copied from the request
// that it forwards. Where the propagators write nothing, it does nothing. A
// propagator that panics has written nothing.
func (c *config) inject(ctx context.Context, target *url.URL, header http.Header, marked bool) {
	defer c.faults.Catch(ctx, propagatorPanicked, func() {})
	fields := c.propagators.Fields()
	if len(fields) == 0 {
		return
	}
	sendsTraceparent := false
	for _, field := range fields {
		header.Del(field)
		sendsTraceparent = sendsTraceparent || strings.EqualFold(field, "traceparent")
	}
	if c.trusts(target) {
		ctx = tail.Promised(ctx, c.tail)
		if marked {
			ctx = propagation.ContextWithCallerMark(ctx)
		}
		if c.member != nil {
			ctx = propagation.ContextWithMember(ctx, c.member(ctx))
		}
		c.propagators.Inject(ctx, propagation.HTTPHeader(header))
		return
	}
	if b, ok := c.propagators.(*propagation.Bridge); ok {
		b.InjectTo(ctx, propagation.HTTPHeader(header), target.Host) // removes what it only reads, too
		return
	}
	if sendsTraceparent {
		propagation.InjectTraceparent(ctx, propagation.HTTPHeader(header))
		return
	}
	for _, private := range []string{"Tracestate", "Baggage", "Grpc-Trace-Bin"} {
		header.Del(private)
	}
}

func (c *config) trusts(target *url.URL) bool {
	host := target.Hostname()
	if c.trusted[strings.ToLower(strings.TrimSuffix(host, "."))] || propagation.IsOwnHost(host) {
		return true
	}
	b, ok := c.propagators.(*propagation.Bridge)
	return ok && b.Trusts(host)
}

// extract reads the caller's context. A propagator that panics has found nothing.
func (c *config) extract(ctx context.Context, header http.Header) (remote context.Context) {
	defer c.faults.Catch(ctx, propagatorPanicked, func() { remote = ctx })
	return c.propagators.Extract(ctx, propagation.HTTPHeader(header))
}

// unknownTenant is whom nobody's context belongs to.
const unknownTenant = "genaihttp: unknown"

// tenantOf says on whose behalf a request is. One who cannot be told, because
// telling panics, shares traces with nobody.
func (c *config) tenantOf(r *http.Request) (tenant string) {
	defer c.faults.Catch(r.Context(), "WithTenant panicked, request begins a trace", func() { tenant = unknownTenant })
	return c.tenant(r)
}

// traces reports whether a request is traced. One of which that cannot be told is.
func (c *config) traces(r *http.Request) (traced bool) {
	if c.filter == nil {
		return true
	}
	defer c.faults.Catch(r.Context(), "WithFilter panicked, request is traced", func() { traced = true })
	return c.filter(r)
}
