package genaihttp

import (
	"context"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/baggage"
	otelsemconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/internal/bound"
	"github.com/genaitrace/otelgenai/middleware/wire"
	"github.com/genaitrace/otelgenai/propagation"
)

type handler struct {
	next     http.Handler
	config   config
	tracer   *genaitrace.Tracer
	duration durations
	routes   *bound.Set // that metrics and names of spans tell apart
}

// maxRoutes is how many routes one handler tells apart.
const maxRoutes = 1000

// NewHandler wraps the handler of a gateway or service: it makes the SERVER
// span of each request ("POST /v1/chat/completions", role gateway) and, where
// the handler streams the answer of a model, notes its time to first token on the
// span and in genai.time_to_first_token. A token counts when it leaves: when the
// handler flushes it, or the server's buffer is full, or the handler returns.
//
// The span's route is the pattern that an [http.ServeMux] inside next matched,
// what [SetRoute] said, or a well-known path, never a raw path. A middleware
// between this handler and the mux that replaces the request hides the pattern;
// wrap the mux in a NewHandler as well, which then makes no span of its own.
//
// At its start nothing tells a question from a health check or a static file, so each
// request is one of the gateway; what shall not be, [WithFilter] leaves out. What is no
// POST has the operation _OTHER in metrics, else it is that of the path, or chat.
//
// A response of 500 and above, a panic, an error inside a stream and a stream
// that lacks its end make the span an Error; a client that goes away does not.
// Panics go on, http.ErrAbortHandler included.
//
// The span of a handler that does not return ends 10 seconds after its client left,
// after 15 to 30 minutes in which nothing of a response that began was written, or
// after an hour without a response, unless the connection was hijacked.
//
// Metrics: genai.time_to_first_token, and http.server.request.duration unless
// another instrumentation's handler is around this one.
func NewHandler(next http.Handler, opts ...Option) http.Handler {
	c := newConfig(opts)
	return &handler{
		next: next, config: c, tracer: genaitrace.New(c.tracer...),
		duration: newDurations(c.meter()), routes: &bound.Set{Limit: maxRoutes},
	}
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if p := probingOf(r.Context()); p != nil {
		h.probed(p, w, r)
		return
	}
	if !h.config.traces(r) {
		h.passBy(w, r)
		return
	}
	if x := exchangeOf(r.Context()); x != nil {
		defer func() { x.setRoute(h.config.route(r)) }() // the span is the outer handler's
		h.next.ServeHTTP(w, r)
		return
	}
	h.serve(w, r)
}

func (h *handler) serve(w http.ResponseWriter, outer *http.Request) {
	arrived := time.Now()
	ctx, options, nested := h.parent(outer)
	endpoint, _ := h.config.modelCall(outer)
	known := h.config.route(outer)
	ctx, call := h.tracer.StartGateway(ctx, genaitrace.GatewayRequest{
		Name:       spanName(outer, known),
		Arrived:    arrived,
		Operation:  operation(outer, endpoint),
		Attributes: serverAttributes(outer, known),
		Options:    options,
	})
	x := &exchange{handler: h}
	r := outer.WithContext(context.WithValue(ctx, exchangeKey{}, x))
	if call == nil && !h.duration.enabled(ctx) && !h.config.responds() {
		defer handBack(outer, r)
		h.next.ServeHTTP(w, r)
		return
	}
	rw := &writer{
		ResponseWriter: w, ctx: ctx, config: &h.config, call: call,
		trailers: acceptsTrailers(outer.Header), head: outer.Method == http.MethodHead,
		exchange: wire.Exchange{
			Path: outer.URL.Path, Request: outer.Header, Dialect: endpoint.Dialect, Decoders: h.config.decoders,
		},
	}
	x.writer = rw
	e := &ending{handler: h, exchange: x, writer: rw, request: outer, known: known, arrived: arrived, nested: nested}
	e.watch()
	defer func() {
		panicked := recover()
		handBack(outer, r)
		x.setRoute(h.config.route(r))
		e.finish(panicked)
		if panicked != nil {
			panic(panicked)
		}
	}()
	h.next.ServeHTTP(rw.wrap(), r)
}

// handBack gives the server's request what it and outer handlers look for after
// the handler: the files of a form, to remove them, and the pattern.
func handBack(outer, r *http.Request) {
	outer.MultipartForm = r.MultipartForm
	if r.Pattern != "" {
		outer.Pattern = r.Pattern
	}
}

// An exchange is what the handlers of one request share.
type exchange struct {
	handler *handler // that made it
	writer  *writer  // nil where nothing records

	mu      sync.Mutex
	route   string
	drained bool // see isDrained
}

type exchangeKey struct{}

func exchangeOf(ctx context.Context) *exchange {
	x, _ := ctx.Value(exchangeKey{}).(*exchange)
	return x
}

// SetRoute names the route of the request that ctx belongs to, for routers other
// than [http.ServeMux]: a pattern such as "/tenants/{tenant}/chat", never a path
// that a client chose. The first name counts. After 1,000 distinct routes of a handler
// a new one names no span, and is _OTHER to the metric.
func SetRoute(ctx context.Context, route string) {
	if x := exchangeOf(ctx); x != nil {
		x.setRoute(bound.String(route, maxValue))
	}
}

func (x *exchange) setRoute(route string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.route == "" {
		x.route = route
	}
}

func (x *exchange) matched() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.route
}

// parent reads the caller's context. Inside another instrumentation's handler,
// which nested tells, its span is the parent already.
func (h *handler) parent(r *http.Request) (ctx context.Context, options []trace.SpanStartOption, nested bool) {
	ctx = r.Context()
	if local := trace.SpanContextFromContext(ctx); local.IsValid() && !local.IsRemote() {
		return ctx, nil, true
	}
	if h.config.tenant != nil {
		ctx = propagation.ContextWithTenant(ctx, h.config.tenantOf(r))
	}
	remote := h.config.extract(ctx, r.Header)
	if links := propagation.Links(remote); len(links) > 0 {
		options = append(options, trace.WithLinks(links...))
	}
	if !h.config.public {
		return remote, options, false
	}
	options = append(options, trace.WithNewRoot())
	if sc := trace.SpanContextFromContext(remote); sc.IsValid() {
		options = append(options, trace.WithLinks(trace.Link{SpanContext: sc}))
	}
	return baggage.ContextWithoutBaggage(ctx), options, false
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
	attrs = append(attrs, otelsemconv.URLScheme(scheme(r)), otelsemconv.URLPath(bound.String(r.URL.Path, maxValue)))
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
