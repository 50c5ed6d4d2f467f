package genaihttp

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"go.opentelemetry.io/otel"

	"github.com/genaitrace/otelgenai/propagation"
)

// inject writes the context into the headers of an outgoing request: all of it
// for hosts of one's own, traceparent alone for third parties, whom tracestate
// and baggage are no business of. It replaces what a proxy copied from the request
// that it forwards. Where the propagators write nothing, it does nothing. A
// propagator that panics has written nothing.
func (c *config) inject(ctx context.Context, target *url.URL, header http.Header, marked bool) {
	defer func() {
		if v := recover(); v != nil {
			otel.Handle(fmt.Errorf("genaihttp: propagator panicked, request goes on without trace context: %v", v))
		}
	}()
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
		ctx = c.promised(ctx)
		if marked {
			ctx = propagation.ContextWithCallerMark(ctx)
		}
		if c.member != nil {
			ctx = propagation.ContextWithMember(ctx, c.member(ctx))
		}
		c.propagators.Inject(ctx, propagation.HTTPHeader(header))
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
	return c.trusted[strings.ToLower(strings.TrimSuffix(host, "."))] || propagation.IsOwnHost(host)
}

// extract reads the caller's context. A propagator that panics has found nothing.
func (c *config) extract(ctx context.Context, header http.Header) (remote context.Context) {
	defer func() {
		if v := recover(); v != nil {
			remote = ctx
			otel.Handle(fmt.Errorf("genaihttp: propagator panicked, request goes on without trace context: %v", v))
		}
	}()
	return c.propagators.Extract(ctx, propagation.HTTPHeader(header))
}

// unknownTenant is whom nobody's context belongs to.
const unknownTenant = "genaihttp: unknown"

// tenantOf says on whose behalf a request is. One who cannot be told, because
// telling panics, shares traces with nobody.
func (c *config) tenantOf(r *http.Request) (tenant string) {
	defer func() {
		if v := recover(); v != nil {
			tenant = unknownTenant
			otel.Handle(fmt.Errorf("genaihttp: WithTenant panicked, request begins a trace: %v", v))
		}
	}()
	return c.tenant(r)
}
