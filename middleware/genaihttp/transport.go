package genaihttp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	otelsemconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/internal/deadline"
	"github.com/genaitrace/otelgenai/middleware/wire"
	"github.com/genaitrace/otelgenai/semconv"
)

type transport struct {
	base   http.RoundTripper
	config config
	tracer *genaitrace.Tracer
}

// NewTransport wraps a RoundTripper for the client of a model server: each
// model call (POST to a path such as …/chat/completions, …/v1/messages or
// …/api/chat; see [WithEndpoint]) gets a CLIENT span ("chat {model}") that ends
// with the response's body, and metrics. The stream is read as it passes to the
// caller, in whichever dialect of [wire.Dialect] it is. Where the request's context
// belongs to a running [genaitrace.Call], that call is fed and no second span
// is made. Every request carries the trace context on; other requests get
// nothing else.
//
// The span ends when the body reaches its end or breaks, is closed, when the
// request's context ends, or after 15 to 30 minutes in which nothing was read.
//
// Where the caller asked for a content encoding itself, as a proxy does when it
// forwards Accept-Encoding, the answer is read from a decoded copy: gzip and
// deflate, and what [WithDecoder] adds. A goroutine holds the decoder until the
// body's end. Any other encoding passes unread, and tells its duration and status
// alone. (Go's transport asks for gzip and decodes it where nobody else does.)
//
// A nil base means http.DefaultTransport. Retries of a client are a span each.
func NewTransport(base http.RoundTripper, opts ...Option) http.RoundTripper {
	if base == nil {
		base = http.DefaultTransport
	}
	c := newConfig(opts)
	return &transport{base: base, config: c, tracer: genaitrace.New(c.tracer...)}
}

func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	endpoint, ok := t.config.modelCall(req)
	if !ok {
		return t.send(outgoing(ctx, req), false)
	}
	out := outgoing(ctx, req)
	body := readBody(out, wire.NewRequestReader(req.URL.Path, t.config.endpoints...))
	facts, usage := body.facts()
	facts.ServerAddress, facts.ServerPort = splitHost(req.URL.Host)
	if facts.ServerPort == 0 {
		facts.ServerPort = defaultPort(req.URL.Scheme)
	}
	a := attempt{
		call: genaitrace.CallFromContext(ctx), body: body,
		exchange: wire.Exchange{
			Path: req.URL.Path, Request: out.Header, Dialect: endpoint.Dialect, Decoders: t.config.decoders,
		},
	}
	if a.number = a.call.Watch(); a.number > 0 {
		a.call.SetRequest(facts)
	} else {
		facts.Operation, facts.Provider = endpoint.Operation, cmp.Or(t.config.provider, endpoint.Provider)
		ctx, a.call = t.start(ctx, facts)
		a.number, a.own = a.call.Watch(), true
		out = out.WithContext(ctx)
	}
	if a.call == nil {
		return t.send(out, false)
	}
	return t.try(out, a, usage && a.call.Span().IsRecording())
}

// An attempt is one round trip of a call.
type attempt struct {
	call   *genaitrace.Call
	number int
	own    bool // the transport started the call and ends it
	body   *requestBody

	exchange wire.Exchange
}

// note adds what is true of this attempt. Of a span that another instrumentation
// made, its owner knows more: it sees all attempts.
func (a attempt) note(attr attribute.KeyValue) {
	if !a.call.Joined() {
		a.call.SetAttributes(attr)
	}
}

// start starts a call, or joins that of a client library which makes spans itself.
// The span of our own handler is none of those, whatever SDK it is of.
func (t *transport) start(ctx context.Context, facts genaitrace.Request) (context.Context, *genaitrace.Call) {
	// Spans that do not record are values that cannot be compared, but their contexts can.
	if x := exchangeOf(ctx); x != nil && x.writer != nil && x.writer.call.Span().SpanContext().Equal(trace.SpanContextFromContext(ctx)) {
		return t.tracer.StartCall(ctx, facts)
	}
	return t.tracer.JoinCall(ctx, facts)
}

// try makes the request and attaches the attempt to its response.
func (t *transport) try(req *http.Request, a attempt, marked bool) (resp *http.Response, err error) {
	handedOver := false
	defer func() {
		if !handedOver { // the transport below panics
			a.fail(req.Context(), "panic", errNoAnswer)
		}
	}()
	a.note(otelsemconv.HTTPRequestMethodKey.String(req.Method))
	if a.number > 1 {
		a.note(otelsemconv.HTTPRequestResendCount(a.number - 1))
	}
	resp, err = t.send(req, marked)
	handedOver = true
	late, _ := a.body.facts()
	a.call.SetRequest(late)
	if n := a.body.tools(); n > 0 {
		a.call.SetAttributes(semconv.GenAIRequestToolCount(n))
	}
	if err != nil || resp == nil {
		a.fail(req.Context(), "", err)
		return resp, err
	}
	a.note(otelsemconv.HTTPResponseStatusCode(resp.StatusCode))
	if resp.StatusCode >= http.StatusBadRequest {
		a.call.SetTerminal(semconv.GenAIStreamTerminalHTTPError)
	}
	attach(req.Context(), resp, a)
	return resp, nil
}

var errNoAnswer = errors.New("no answer")

// fail notes an attempt that brought no answer.
func (a attempt) fail(ctx context.Context, errType string, err error) {
	if errType != "" {
		a.call.SetErrorType(errType)
	}
	if ctx.Err() == nil && deadline.Reached(ctx) {
		a.call.SetTerminal(semconv.GenAIStreamTerminalTimeout)
	}
	if !a.own {
		a.call.Release()
		return
	}
	// A dropped connection is an io.EOF here, and no good end of anything.
	a.call.Fail(fmt.Errorf("round trip: %w", cmp.Or(err, errNoAnswer)))
}

// CloseIdleConnections is what http.Client.CloseIdleConnections looks for.
func (t *transport) CloseIdleConnections() {
	if c, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// outgoing is a copy of the request with headers of its own: the caller's is not
// touched.
func outgoing(ctx context.Context, req *http.Request) *http.Request {
	out := req.WithContext(ctx)
	if out.Header = req.Header.Clone(); out.Header == nil {
		out.Header = make(http.Header)
	}
	return out
}

// send passes the request on with the trace context in its headers. marked tells
// the server that its caller reports the token usage: where the answer will not
// tell it, the server must.
func (t *transport) send(req *http.Request, marked bool) (*http.Response, error) {
	t.config.inject(req.Context(), req.URL, req.Header, marked)
	t.config.askForTrailers(req)
	resp, err := t.base.RoundTrip(req)
	t.config.listen(req, resp)
	return resp, err
}

func defaultPort(scheme string) int {
	if scheme == "https" {
		return 443
	}
	return 80
}
