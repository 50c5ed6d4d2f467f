package genaihttp

import (
	"context"
	"net/http"

	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/propagation"
)

// WithTraceResponse tells the caller, in the header of each response, which span
// served it and whether it is sampled: the metric "trace" of Server-Timing, beside
// the metrics that the handler sets and in place of one that a proxied server sent
// (see [propagation.InjectResponse]). A user can then quote the trace of a failed
// request. Default: off. It means nothing to the transport.
//
// The trace ID goes to whoever called, strangers included.
func WithTraceResponse() Option {
	return optionFunc(func(c config) config {
		c.traceResponse = true
		return c
	})
}

// responds reports whether responses carry anything of the trace.
func (c *config) responds() bool { return c.traceResponse || c.tail != nil && !c.public }

// respond adds to the header of a response, just before it is sent, what the
// caller asked to know of the trace, and reports whether it says that the trace is kept.
// failed says that the response is a failure of the server.
func (c *config) respond(ctx context.Context, header http.Header, failed bool) (kept bool) {
	if !c.responds() {
		return false
	}
	ctx = c.spanToTell(ctx, failed)
	propagation.InjectResponse(ctx, propagation.HTTPHeader(header))
	return trace.SpanContextFromContext(ctx).IsSampled()
}
