package genaitrace

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/internal/bound"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// A GatewayRequest describes the span of a gateway's entry.
type GatewayRequest struct {
	// Name of the span, for example "POST /v1/chat/completions": a route,
	// never a raw path.
	Name string
	// Arrived is when the request reached this process; zero means now.
	Arrived time.Time
	// Operation is what the model is asked to do; zero means chat.
	Operation genaiconv.OperationNameAttr
	// Attributes and Options are given to the span at its start.
	Attributes []attribute.KeyValue
	Options    []trace.SpanStartOption
}

// StartGateway starts the span of a gateway's entry (SERVER). It writes no
// usage, which belongs to the span of the call that the gateway makes. The
// context carries the arrival time for what runs below.
//
// Metrics: genai.time_to_first_token and genai.active_requests, with
// genai.span.role=gateway.
func (t *Tracer) StartGateway(ctx context.Context, req GatewayRequest) (context.Context, *Call) {
	if t == nil || t.metrics == nil {
		return ctx, nil
	}
	r := Request{Operation: req.Operation, Arrived: req.Arrived}
	r.clean()
	arrived, now := t.arrival(ctx, req.Arrived)
	facts := t.facts(ctx)
	attrs := append(make([]attribute.KeyValue, 0, len(facts)+len(req.Attributes)+1), facts...)
	attrs = append(attrs, semconv.GenAISpanRole(semconv.GenAISpanRoleGateway))
	attrs = append(attrs, req.Attributes...)
	options, began := startOptions(trace.SpanKindServer, attrs, req.Arrived, arrived, now, len(req.Options))
	ctx, span := t.tracer.Start(ctx, bound.String(req.Name, maxName), append(options, req.Options...)...)
	note := &arrivalNote{at: arrived}
	ctx = context.WithValue(ctx, arrivalKey, note)
	if !span.IsRecording() && !t.metrics.gatewayEnabled(ctx) {
		return ctx, nil
	}
	c := &Call{t: t, ctx: ctx, span: span, req: r, gateway: true, base: now, after: now.Sub(arrived), began: began}
	c.clock.start(c.base, c.after, t.stalls)
	c.underWay = t.metrics.enter(ctx, gatewaySide, &r)
	note.gateway = c
	return ctx, c
}

// gatewayOf returns the gateway that the request of ctx came through in this process,
// or nil.
func gatewayOf(ctx context.Context) *Call {
	if note, ok := ctx.Value(arrivalKey).(*arrivalNote); ok {
		return note.gateway
	}
	return nil
}

var (
	templateOperation  = newOperationKind(semconv.SpanPromptRender, semconv.GenAISpanRoleTemplate, "")
	authOperation      = newOperationKind(semconv.SpanAuthValidateToken, semconv.GenAISpanRoleAuth, "")
	routeOperation     = newOperationKind(semconv.SpanGatewayRoute, semconv.GenAISpanRoleRoute, "")
	rateLimitOperation = newOperationKind(semconv.SpanGatewayRatelimit, semconv.GenAISpanRoleRateLimit, semconv.GenAIRateLimitWaitMsKey)
	cacheOperation     = newOperationKind(semconv.SpanGatewayCache, semconv.GenAISpanRoleCache, "")
)

// A Template says which prompt template is filled. Empty values are unknown.
type Template struct {
	// Name is the name of the template.
	Name string
	// Version is its version: a semantic version or a commit.
	Version string
}

// StartTemplate starts the filling of a prompt template (prompt.render). Neither
// the template nor what is filled in is recorded.
func (t *Tracer) StartTemplate(ctx context.Context, template Template) (context.Context, *Operation) {
	ctx, o := t.startOperation(ctx, &templateOperation)
	if template.Name != "" {
		o.note(genaiconv.PromptName(bound.String(template.Name, maxName)))
	}
	if template.Version != "" {
		o.note(genaiconv.PromptVersion(bound.String(template.Version, maxName)))
	}
	return ctx, o
}

// StartAuth starts the check of who calls (auth.validate_token). End it with
// [Operation.Fail] where the caller is turned away.
func (t *Tracer) StartAuth(ctx context.Context) (context.Context, *Operation) {
	return t.startOperation(ctx, &authOperation)
}

// StartRateLimit starts the wait for a rate limit (gateway.ratelimit). Its length
// is genai.ratelimit.wait_ms, which is no part of llm.queue_wait_ms; the span of the
// gateway that ctx belongs to gets the sum of its waits. End it with
// [Operation.Fail] where the limit turns the request away.
func (t *Tracer) StartRateLimit(ctx context.Context) (context.Context, *Operation) {
	gateway := gatewayOf(ctx)
	ctx, o := t.startOperation(ctx, &rateLimitOperation)
	if o != nil && gateway != nil {
		gateway.mu.Lock()
		defer gateway.mu.Unlock()
		gateway.limits.open++
		o.gateway = gateway
	}
	return ctx, o
}

// rateLimits are the waits of one request for rate limits.
type rateLimits struct {
	open  int // that have not ended
	ended int
	wrong bool // the end of one is not known
	total int64
}

// waited notes that a wait has ended.
func (c *Call) waited(ns int64, sane bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.limits.open--
	c.limits.ended++
	c.limits.total += ns
	c.limits.wrong = c.limits.wrong || !sane
}

// appendTo appends their sum, where all of it is known.
func (l *rateLimits) appendTo(attrs []attribute.KeyValue) []attribute.KeyValue {
	if l.ended == 0 || l.open > 0 || l.wrong {
		return attrs
	}
	return append(attrs, semconv.GenAIRateLimitWaitMs(ms(l.total)))
}

// A Route is the choice of a backend.
type Route struct{ *Operation }

// StartRoute starts the choice of a backend for a model (gateway.route); an empty
// model is unknown.
func (t *Tracer) StartRoute(ctx context.Context, model string) (context.Context, Route) {
	ctx, o := t.startOperation(ctx, &routeOperation)
	if model != "" {
		o.note(genaiconv.RequestModel(bound.String(model, maxName)))
	}
	return ctx, Route{o}
}

// SetBackend notes which software runs the model where the request goes, such as
// "vllm". An empty value is unknown and changes nothing.
func (r Route) SetBackend(backend string) {
	if backend != "" {
		r.note(semconv.GenAIBackendType(bound.String(backend, maxName)))
	}
}

// A CacheLookup asks a cache of answers or prompts.
type CacheLookup struct{ *Operation }

// StartCache starts a look-up in a cache of answers or prompts (gateway.cache).
// What was asked for is not recorded. The KV cache of an engine is no such cache:
// [Prompt] has what it held.
func (t *Tracer) StartCache(ctx context.Context) (context.Context, CacheLookup) {
	ctx, o := t.startOperation(ctx, &cacheOperation)
	return ctx, CacheLookup{o}
}

// SetHit notes whether the cache had what was asked for.
func (c CacheLookup) SetHit(hit bool) { c.note(semconv.GenAICacheHit(hit)) }
