package genaihttp

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/baggage"
	otelsemconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/internal/bound"
	"github.com/genaitrace/otelgenai/propagation"
	"github.com/genaitrace/otelgenai/semconv"
)

type handler struct {
	next   http.Handler
	config config
	tracer *genaitrace.Tracer
}

// NewHandler wraps the handler of a gateway or service: it makes the SERVER
// span of each request ("POST /v1/chat/completions", role gateway) and, where
// the handler streams chat completions, notes their time to first token on the
// span and in genai.time_to_first_token. The span's route is the pattern that an
// [http.ServeMux] inside next matched, or a well-known path, never a raw path. A
// middleware between this handler and the mux that replaces the request hides the
// pattern: put the mux inside directly, or that middleware outside.
//
// A response of 500 and above, a panic, an error inside a stream and a stream
// that lacks its end make the span an Error; a client that goes away does not.
// Panics go on, http.ErrAbortHandler included.
func NewHandler(next http.Handler, opts ...Option) http.Handler {
	c := newConfig(opts)
	return &handler{next: next, config: c, tracer: genaitrace.New(c.tracer...)}
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	arrived := time.Now()
	ctx, options := h.parent(r)
	operation, _ := modelCall(r)
	start := route(r)
	ctx, call := h.tracer.StartGateway(ctx, genaitrace.GatewayRequest{
		Name:       spanName(r, start),
		Arrived:    arrived,
		Operation:  operation,
		Attributes: serverAttributes(r, start),
		Options:    options,
	})
	r = r.WithContext(ctx)
	if call == nil {
		h.next.ServeHTTP(w, r)
		return
	}
	rw := &writer{ResponseWriter: w, ctx: ctx, call: call}
	defer func() {
		panicked := recover()
		if after := route(r); after != start && after != "" {
			call.Span().SetName(spanName(r, after))
			call.SetAttributes(otelsemconv.HTTPRoute(after))
		}
		finish(ctx, rw, panicked)
		if panicked != nil {
			panic(panicked)
		}
	}()
	h.next.ServeHTTP(rw.wrap(), r)
}

// parent reads the caller's context. Inside another instrumentation's handler
// its span is the parent already.
func (h *handler) parent(r *http.Request) (context.Context, []trace.SpanStartOption) {
	ctx := r.Context()
	if local := trace.SpanContextFromContext(ctx); local.IsValid() && !local.IsRemote() {
		return ctx, nil
	}
	remote := h.config.propagators.Extract(ctx, propagation.HTTPHeader(r.Header))
	if !h.config.public {
		return remote, nil
	}
	options := []trace.SpanStartOption{trace.WithNewRoot()}
	if sc := trace.SpanContextFromContext(remote); sc.IsValid() {
		options = append(options, trace.WithLinks(trace.Link{SpanContext: sc}))
	}
	return baggage.ContextWithoutBaggage(ctx), options
}

// errAborted is a response that the handler gave up on.
var errAborted = errors.New("response aborted")

// finish ends the span with what is known of the response.
func finish(ctx context.Context, w *writer, panicked any) {
	call := w.call
	gone := ctx.Err() != nil                    // the client went away: the server cancels no sooner
	aborted := panicked == http.ErrAbortHandler //nolint:errorlint // net/http compares the same way
	status := w.status
	switch {
	case status != 0, w.hijacked:
	case panicked == nil && !gone:
		status = http.StatusOK // what net/http sends for a handler that wrote nothing
	}
	if status != 0 {
		call.SetAttributes(otelsemconv.HTTPResponseStatusCode(status))
	}
	switch {
	case panicked != nil && !aborted:
		call.SetErrorType("panic")
		call.SetTerminal(semconv.GenAIStreamTerminalError)
	case status >= http.StatusInternalServerError:
		call.SetErrorType(strconv.Itoa(status))
		call.SetTerminal(semconv.GenAIStreamTerminalHTTPError)
	case w.stream != nil && gone:
		w.stream.Abandon(abandoned(ctx))
	case w.stream != nil && aborted:
		w.stream.End(errAborted)
	case w.stream != nil:
		w.stream.End(nil)
	case gone:
		call.SetTerminal(abandoned(ctx))
	case aborted:
		call.SetTerminal(semconv.GenAIStreamTerminalTruncated)
	}
	call.End()
}

// abandoned says why a context that is done ended a stream.
func abandoned(ctx context.Context) semconv.GenAIStreamTerminalAttr {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return semconv.GenAIStreamTerminalTimeout
	}
	return semconv.GenAIStreamTerminalClientCancelled
}

// serverAttributes are what samplers may want to see of a request.
func serverAttributes(r *http.Request, route string) []attribute.KeyValue {
	attrs := make([]attribute.KeyValue, 0, 8)
	name, known := method(r)
	attrs = append(attrs, otelsemconv.HTTPRequestMethodKey.String(name))
	if !known {
		attrs = append(attrs, otelsemconv.HTTPRequestMethodOriginal(bound.String(r.Method, maxValue)))
	}
	if route != "" {
		attrs = append(attrs, otelsemconv.HTTPRoute(route))
	}
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	attrs = append(attrs, otelsemconv.URLScheme(scheme), otelsemconv.URLPath(bound.String(r.URL.Path, maxValue)))
	if host, port := splitHost(r.Host); host != "" {
		attrs = append(attrs, otelsemconv.ServerAddress(bound.String(host, maxValue)))
		if port > 0 {
			attrs = append(attrs, otelsemconv.ServerPort(port))
		}
	}
	if agent := r.UserAgent(); agent != "" {
		attrs = append(attrs, otelsemconv.UserAgentOriginal(bound.String(agent, maxValue)))
	}
	return attrs
}

// maxValue bounds attribute values that come from a request, in bytes.
const maxValue = 256

// splitHost splits "host:port", "host" and "[::1]:port"; a port that is absent
// or unreadable is 0.
func splitHost(hostport string) (host string, port int) {
	host, text, err := net.SplitHostPort(hostport)
	if err != nil {
		return strings.Trim(hostport, "[]"), 0
	}
	if port, err = strconv.Atoi(text); err != nil || port < 0 || port > 65535 {
		return host, 0
	}
	return host, port
}
