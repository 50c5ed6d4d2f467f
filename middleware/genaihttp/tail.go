package genaihttp

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"

	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/propagation"
)

// A TailSampler decides about traces once they have happened. *sampling.Tail is one.
// Its methods are called by many goroutines. A panic of theirs is counted in
// genai.telemetry.faults and goes no further.
type TailSampler interface {
	// Promise is what others are told of the span of ctx: sampled where the trace is
	// going to be kept. failed says that a response is a failure of the server.
	Promise(ctx context.Context, failed bool) trace.SpanContext
	// CalleeResponded takes what the response to a request made with ctx says of the
	// span that served it.
	CalleeResponded(ctx context.Context, callee trace.SpanContext)
}

// WithTailSampler joins the decisions of two processes: the handler tells its caller, in
// Server-Timing, whether the trace is kept here, and the transport tells its callees, where
// that is certain since the span of the request began, and s what they say, so that a
// failure which a callee handled keeps the caller's part too. Default, and where s is nil: neither.
//
// It is best effort. The handler speaks in the header, and once more in the trailer where
// it then knows better, the answer has no Content-Length, and the request says
// "TE: trailers". The transport says that to its own hosts ([WithTrustedHosts]), and listens to
// no others; a caller that closes a body before its io.EOF sees no trailer. Behind
// [WithPublicEndpoint] the handler tells nothing.
func WithTailSampler(s TailSampler) Option {
	return optionFunc(func(c config) config {
		c.tail = s
		return c
	})
}

// spanToTell is the context whose span the response tells.
func (c *config) spanToTell(ctx context.Context, failed bool) context.Context {
	if c.tail == nil || c.public {
		return ctx
	}
	promise := c.tail.Promise(ctx, failed)
	if c.traceResponse && !promise.IsValid() {
		return ctx
	}
	return trace.ContextWithSpanContext(ctx, promise)
}

// tellLate says in the trailer what was not known when the header went out. The
// span has ended.
func (w *writer) tellLate(failed bool) {
	c := w.config
	if c.tail == nil || c.public || w.status == 0 || w.hijacked || w.told || !w.trailers {
		return
	}
	const key = http.TrailerPrefix + "Server-Timing"
	sc := c.tail.Promise(w.ctx, failed)
	copied := w.Header()[key] // by a proxy, from its upstream
	if !sc.IsSampled() && copied == nil {
		return
	}
	trailer := http.Header{"Server-Timing": copied}
	propagation.InjectResponse(trace.ContextWithSpanContext(w.ctx, sc), propagation.HTTPHeader(trailer))
	w.Header()[key] = trailer["Server-Timing"]
}

// acceptsTrailers reports whether the caller reads trailers.
func acceptsTrailers(header http.Header) bool {
	for _, value := range header["Te"] {
		for coding := range strings.SplitSeq(value, ",") {
			if strings.EqualFold(strings.TrimSpace(coding), "trailers") {
				return true
			}
		}
	}
	return false
}

// askForTrailers says that trailers are read.
func (c *config) askForTrailers(req *http.Request) {
	if c.tail != nil && req.Header["Te"] == nil && c.trusts(req.URL) {
		req.Header["Te"] = []string{"trailers"}
	}
}

// listen tells the tail sampler what a response says, once.
func (c *config) listen(req *http.Request, resp *http.Response) {
	if c.tail == nil || resp == nil || !c.trusts(req.URL) {
		return
	}
	told := propagation.ReadResponse(propagation.HTTPHeader(resp.Header)).SpanContext
	if told.IsSampled() || resp.ContentLength >= 0 || resp.Body == nil || resp.Body == http.NoBody ||
		resp.StatusCode == http.StatusSwitchingProtocols {
		c.tail.CalleeResponded(req.Context(), told)
		return
	}
	resp.Body = &heardBody{ReadCloser: resp.Body, ctx: req.Context(), tail: c.tail, resp: resp, told: told}
}

// A heardBody waits for the trailer.
type heardBody struct {
	io.ReadCloser

	ctx  context.Context //nolint:containedctx // the request's
	tail TailSampler
	resp *http.Response
	told trace.SpanContext // by the header
	once sync.Once
}

func (b *heardBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF { // the trailer is there now, and not before
		b.once.Do(func() {
			late := propagation.ReadResponse(propagation.HTTPHeader(b.resp.Trailer)).SpanContext
			if late.IsValid() {
				b.told = late
			}
			b.tail.CalleeResponded(b.ctx, b.told)
		})
	}
	return n, err
}

func (b *heardBody) Close() error {
	b.once.Do(func() { b.tail.CalleeResponded(b.ctx, b.told) })
	return b.ReadCloser.Close()
}
