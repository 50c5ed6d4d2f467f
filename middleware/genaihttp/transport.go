package genaihttp

import (
	"context"
	"net/http"
	"strconv"

	otelsemconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/semconv"
)

type transport struct {
	base   http.RoundTripper
	config config
	tracer *genaitrace.Tracer
}

// NewTransport wraps a RoundTripper for the client of a model server: each
// model call (POST to …/chat/completions, …/completions or …/embeddings) gets a
// CLIENT span ("chat {model}") that ends with the response's body, and metrics.
// The stream is read as it passes to the caller. Where the request's context
// belongs to a running [genaitrace.Call], that call is fed and no second span
// is made. Every request carries the trace context on; other requests get
// nothing else.
//
// The span ends when the body reaches its end or breaks, is closed, when the
// request's context ends, or after 15 to 30 minutes in which nothing was read.
//
// An answer whose content encoding the caller asked for itself, as a proxy does
// when it forwards Accept-Encoding, passes unread: it tells its duration and
// status alone. Go's transport asks for gzip and decodes it where nobody else
// does.
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
	operation, ok := modelCall(req)
	if !ok {
		return t.send(outgoing(ctx, req), false)
	}
	host, port := splitHost(req.URL.Host)
	if port == 0 {
		port = defaultPort(req.URL.Scheme)
	}
	call, own := genaitrace.CallFromContext(ctx), false
	if !call.Watch() {
		own = true
		facts := peek(req)
		facts.Operation, facts.Provider = operation, t.config.provider
		facts.ServerAddress, facts.ServerPort = host, port
		ctx, call = t.tracer.StartCall(ctx, facts)
	}
	req = outgoing(ctx, req)
	if call == nil {
		return t.send(req, true)
	}
	if !own {
		call.SetRequest(genaitrace.Request{Provider: t.config.provider, ServerAddress: host, ServerPort: port})
	}
	return t.observe(req, call, own)
}

// observe makes the request and attaches the call to its response.
func (t *transport) observe(req *http.Request, call *genaitrace.Call, own bool) (*http.Response, error) {
	call.SetAttributes(otelsemconv.HTTPRequestMethodKey.String(req.Method))
	tee := teeBody(req)
	resp, err := t.send(req, true)
	call.SetRequest(tee.facts())
	if err != nil {
		if own {
			if req.Context().Err() == nil && isLate(req.Context()) {
				call.SetTerminal(semconv.GenAIStreamTerminalTimeout)
			}
			call.Fail(err)
		}
		return resp, err
	}
	call.SetAttributes(otelsemconv.HTTPResponseStatusCode(resp.StatusCode))
	if resp.StatusCode >= http.StatusBadRequest {
		call.SetTerminal(semconv.GenAIStreamTerminalHTTPError)
	}
	attach(req.Context(), resp, call, own)
	return resp, nil
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

// send passes the request on with the trace context in its headers.
func (t *transport) send(req *http.Request, marked bool) (*http.Response, error) {
	t.config.inject(req.Context(), req.URL, req.Header, marked)
	return t.base.RoundTrip(req)
}

func defaultPort(scheme string) int {
	if scheme == "https" {
		return 443
	}
	return 80
}

// statusType is the error.type of an HTTP failure that does not say more.
func statusType(status int) string { return strconv.Itoa(status) }
