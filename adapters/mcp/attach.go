package genaimcp

import (
	"fmt"
	"net/url"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	otelpropagation "go.opentelemetry.io/otel/propagation"
	otelsemconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/propagation"
	"github.com/genaitrace/otelgenai/semconv/mcpconv"
)

// ScopeName is the name of the instrumentation scope of every span and metric that
// this package makes.
const ScopeName = "github.com/genaitrace/otelgenai/adapters/mcp"

// An Endpoint is a [mcp.Client] or a [mcp.Server].
type Endpoint interface {
	AddSendingMiddleware(...mcp.Middleware)
	AddReceivingMiddleware(...mcp.Middleware)
}

// Attach records all that endpoint sends and receives. Call it once, before the first
// session; middleware that is added later runs around it.
func Attach(endpoint Endpoint, opts ...Option) {
	i := newInstrumentation(opts)
	endpoint.AddSendingMiddleware(i.send)
	endpoint.AddReceivingMiddleware(i.receive)
}

type config struct {
	tracerProvider trace.TracerProvider
	meterProvider  metric.MeterProvider
	propagator     otelpropagation.TextMapPropagator
	transport      mcp.Transport
	sessions       bool
}

// An Option configures [Attach].
type Option interface{ apply(config) config }

type optionFunc func(config) config

func (f optionFunc) apply(c config) config { return f(c) }

// WithTracerProvider sets where spans go. Default, and where tp is nil: the global
// provider at the time of [Attach].
func WithTracerProvider(tp trace.TracerProvider) Option {
	return optionFunc(func(c config) config { c.tracerProvider = tp; return c })
}

// WithMeterProvider sets where metrics go. Default, and where mp is nil: the global
// provider at the time of [Attach].
func WithMeterProvider(mp metric.MeterProvider) Option {
	return optionFunc(func(c config) config { c.meterProvider = mp; return c })
}

// WithPropagator sets how the context is written into and read from _meta. Default, and
// where p is nil: a [propagation.Bridge] of W3C Trace Context and baggage. A server that
// strangers call takes one that is made with [propagation.WithPublicEndpoint]: its spans
// link to those of the callers and are no part of their traces.
func WithPropagator(p otelpropagation.TextMapPropagator) Option {
	return optionFunc(func(c config) config { c.propagator = p; return c })
}

// WithTransport says which transport the sessions use, from which network.transport,
// network.protocol.name and a client's server.address and server.port are taken. Default:
// unknown, but for HTTP at a server, which is recognised.
func WithTransport(t mcp.Transport) Option {
	return optionFunc(func(c config) config { c.transport = t; return c })
}

// WithSessions records how long sessions last, as mcp.client.session.duration or
// mcp.server.session.duration. It costs a goroutine for each session that begins with
// initialize, which ends with the session. Sessions of the stateless protocol (2026-07-28
// and later) have no beginning and no end.
func WithSessions() Option {
	return optionFunc(func(c config) config { c.sessions = true; return c })
}

// instrumentation is what the two middlewares of an endpoint share.
type instrumentation struct {
	tracer     trace.Tracer
	propagator otelpropagation.TextMapPropagator
	sent       metric.Float64Histogram
	received   metric.Float64Histogram
	sessions   sessions
	series     series

	transport []attribute.KeyValue // of every message
	peer      []attribute.KeyValue // of every message that is sent
}

func newInstrumentation(opts []Option) *instrumentation {
	var c config
	for _, o := range opts {
		if o != nil {
			c = o.apply(c)
		}
	}
	if c.tracerProvider == nil {
		c.tracerProvider = otel.GetTracerProvider()
	}
	if c.meterProvider == nil {
		c.meterProvider = otel.GetMeterProvider()
	}
	if c.propagator == nil {
		c.propagator = propagation.New()
	}
	m := c.meterProvider.Meter(ScopeName, metric.WithInstrumentationVersion(genaitrace.Version))
	i := &instrumentation{
		tracer:     c.tracerProvider.Tracer(ScopeName, trace.WithInstrumentationVersion(genaitrace.Version)),
		propagator: c.propagator,
		sent:       instrument(mcpconv.NewClientOperationDuration(m)),
		received:   instrument(mcpconv.NewServerOperationDuration(m)),
		series:     newSeries(),
	}
	i.transport, i.peer = describe(c.transport)
	i.sessions.timed = c.sessions
	i.sessions.client = instrument(mcpconv.NewClientSessionDuration(m))
	i.sessions.server = instrument(mcpconv.NewServerSessionDuration(m))
	return i
}

// instrument reports what went wrong; the instrument can be used all the same.
func instrument[T any, I interface{ Inst() T }](i I, err error) T {
	if err != nil {
		otel.Handle(fmt.Errorf("genaimcp: %w", err))
	}
	return i.Inst()
}

// describe says what is known of a transport, and of the server at its other end.
func describe(t mcp.Transport) (transport, peer []attribute.KeyValue) {
	switch t := t.(type) {
	case *mcp.CommandTransport, *mcp.StdioTransport, *mcp.IOTransport:
		return []attribute.KeyValue{otelsemconv.NetworkTransportPipe}, nil
	case *mcp.StreamableClientTransport:
		return overHTTP, address(t.Endpoint)
	case *mcp.SSEClientTransport:
		return overHTTP, address(t.Endpoint)
	case *mcp.LoggingTransport:
		return describe(t.Transport)
	}
	return nil, nil
}

var overHTTP = []attribute.KeyValue{otelsemconv.NetworkTransportTCP, otelsemconv.NetworkProtocolName("http")}

func address(endpoint string) []attribute.KeyValue {
	u, err := url.Parse(endpoint)
	if err != nil || u.Hostname() == "" {
		return nil
	}
	attrs := []attribute.KeyValue{otelsemconv.ServerAddress(u.Hostname())}
	if port, err := strconv.Atoi(u.Port()); err == nil {
		return append(attrs, otelsemconv.ServerPort(port))
	}
	switch u.Scheme {
	case "http":
		return append(attrs, otelsemconv.ServerPort(80))
	case "https":
		return append(attrs, otelsemconv.ServerPort(443))
	}
	return attrs
}
