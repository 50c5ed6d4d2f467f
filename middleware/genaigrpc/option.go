package genaigrpc

import (
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	otelprop "go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/propagation"
)

// ScopeName is the name of the instrumentation scope of every span and metric
// that this package makes.
const ScopeName = "github.com/genaitrace/otelgenai/middleware/genaigrpc"

type config struct {
	tracerProvider trace.TracerProvider
	meterProvider  metric.MeterProvider
	propagator     otelprop.TextMapPropagator
	publicEndpoint bool
	tail           TailSampler
}

func newConfig(opts []Option) config {
	c := config{propagator: propagation.New()}
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
	return c
}

func (c config) tracer() trace.Tracer {
	return c.tracerProvider.Tracer(ScopeName, trace.WithInstrumentationVersion(genaitrace.Version))
}

func (c config) meter() metric.Meter {
	return c.meterProvider.Meter(ScopeName, metric.WithInstrumentationVersion(genaitrace.Version))
}

// An Option configures [NewServerHandler] and [NewClientHandler].
type Option interface{ apply(config) config }

type optionFunc func(config) config

func (f optionFunc) apply(c config) config { return f(c) }

// WithTracerProvider sets where spans go. Default, and where tp is nil: the
// global provider at the time the handler is made.
func WithTracerProvider(tp trace.TracerProvider) Option {
	return optionFunc(func(c config) config {
		if tp != nil {
			c.tracerProvider = tp
		}
		return c
	})
}

// WithMeterProvider sets where metrics go. Default, and where mp is nil: the
// global provider at the time the handler is made.
func WithMeterProvider(mp metric.MeterProvider) Option {
	return optionFunc(func(c config) config {
		if mp != nil {
			c.meterProvider = mp
		}
		return c
	})
}

// WithPropagators sets what reads and writes the trace context in metadata.
// Default, and where p is nil: [propagation.New], which is W3C trace context
// and baggage; the global propagator is not used.
//
// Baggage goes wherever a connection leads. Give the handler of a connection
// to a third party [propagation.W3C] alone.
func WithPropagators(p otelprop.TextMapPropagator) Option {
	return optionFunc(func(c config) config {
		if p != nil {
			c.propagator = p
		}
		return c
	})
}

// WithPublicEndpoint is for servers that strangers can reach: the trace context
// of an RPC becomes a link of a new root span, so that strangers neither join
// our traces nor decide what is sampled, and their baggage is dropped. Default:
// the caller is trusted and its span becomes the parent. Client handlers ignore
// it.
func WithPublicEndpoint() Option {
	return optionFunc(func(c config) config {
		c.publicEndpoint = true
		return c
	})
}
