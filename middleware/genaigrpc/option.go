package genaigrpc

import (
	"context"
	"time"

	"go.opentelemetry.io/otel"
	otellog "go.opentelemetry.io/otel/log"
	"go.opentelemetry.io/otel/metric"
	otelprop "go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/internal/fault"
	"github.com/genaitrace/otelgenai/middleware/internal/tail"
	"github.com/genaitrace/otelgenai/propagation"
	"github.com/genaitrace/otelgenai/semconv"
)

// ScopeName is the name of the instrumentation scope of every span and metric
// that this package makes.
const ScopeName = "github.com/genaitrace/otelgenai/middleware/genaigrpc"

type config struct {
	tracerProvider trace.TracerProvider
	meterProvider  metric.MeterProvider
	loggerProvider otellog.LoggerProvider // nil is the global one
	propagator     otelprop.TextMapPropagator
	publicEndpoint bool
	tenant         func(ctx context.Context, method string) string
	member         func(context.Context) propagation.Member
	tail           TailSampler
	vocabulary     []semconv.Vocabulary // none, or the one
	modelCalls     map[string]*ModelCall
	idleTimeout    time.Duration // 0: none
	faults         *fault.Counter
}

func newConfig(opts []Option) config {
	c := config{modelCalls: defaultModelCalls, idleTimeout: defaultIdleTimeout}
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
		c.propagator = propagation.New(propagation.WithMeterProvider(c.meterProvider))
	}
	c.faults = newFaults(c.meterProvider)
	c.tail = tail.Guard(c.tail, c.faults)
	calls := make(map[string]*ModelCall, len(c.modelCalls))
	for name, m := range c.modelCalls {
		counted := *m
		counted.faults = c.faults
		calls[name] = &counted
	}
	c.modelCalls = calls
	return c
}

func (c config) tracer() trace.Tracer {
	return c.tracerProvider.Tracer(ScopeName, trace.WithInstrumentationVersion(genaitrace.Version))
}

// calls returns what records model calls.
func (c config) calls() *genaitrace.Tracer {
	opts := []genaitrace.Option{
		genaitrace.WithTracerProvider(c.tracerProvider), genaitrace.WithMeterProvider(c.meterProvider),
		genaitrace.WithLoggerProvider(c.loggerProvider),
	}
	for _, v := range c.vocabulary {
		opts = append(opts, genaitrace.WithVocabulary(v))
	}
	return genaitrace.New(opts...)
}

// words are what attributes of model calls are written in on other spans.
func (c config) words() semconv.Vocabulary {
	for _, v := range c.vocabulary {
		if v.Valid() {
			return v
		}
	}
	return semconv.Standard
}

func (c config) meter() metric.Meter { return meterOf(c.meterProvider) }

func meterOf(mp metric.MeterProvider) metric.Meter {
	return mp.Meter(ScopeName, metric.WithInstrumentationVersion(genaitrace.Version))
}

func newFaults(mp metric.MeterProvider) *fault.Counter {
	return fault.NewCounter("genaigrpc", meterOf(mp))
}

// globalFaults count what belongs to no handler.
func globalFaults() *fault.Counter { return newFaults(otel.GetMeterProvider()) }

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

// WithLoggerProvider sets where log records go, such as genai.completion for each
// model call; they hold no content. Default, and where lp is nil: the global provider
// at the time the handler is made.
func WithLoggerProvider(lp otellog.LoggerProvider) Option {
	return optionFunc(func(c config) config {
		if lp != nil {
			c.loggerProvider = lp
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

// WithVocabulary sets in which words the spans and metrics of model calls are
// written; see [genaitrace.WithVocabulary].
func WithVocabulary(v semconv.Vocabulary) Option {
	return optionFunc(func(c config) config {
		c.vocabulary = []semconv.Vocabulary{v}
		return c
	})
}

// WithIdleTimeout sets how often a handler looks for RPCs that no message passes any
// more, in either direction, and ends their spans; each ends one to two times as long
// after its last message. Default: 15 minutes. Less than a second means a second; 0 and
// less mean never, and spans of streams that are never ended stay in memory.
//
// Nothing happens to the RPC. Where it ends after all, that is counted as the fault
// "late" in genai.telemetry.faults and recorded nowhere. See [NewClientHandler] and
// [NewServerHandler] for what the span says then.
func WithIdleTimeout(d time.Duration) Option {
	return optionFunc(func(c config) config {
		c.idleTimeout = 0
		if d > 0 {
			c.idleTimeout = max(d, minIdleTimeout)
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

// WithTenant tells the server handler on whose behalf an RPC is, before the caller's
// context is read, so that one tenant's context never becomes the parent of another
// one's span: see [propagation.ContextWithTenant] and [propagation.WithTenants].
// tenant gets the context of the RPC, with its metadata and peer, and its full
// method, and must authenticate it: no interceptor has run yet. "" is none. Client
// handlers ignore it.
func WithTenant(tenant func(ctx context.Context, method string) string) Option {
	return optionFunc(func(c config) config {
		c.tenant = tenant
		return c
	})
}

// WithMember lets the client handler say more in our member of the tracestate:
// member gets the context of each RPC. What it leaves zero stays as the context has
// it. Server handlers ignore it.
//
//	genaigrpc.WithMember(func(ctx context.Context) propagation.Member {
//		arrived, _ := genaitrace.ArrivalFromContext(ctx)
//		return propagation.Member{Start: arrived, PipelineID: "rag-v3"}
//	})
func WithMember(member func(ctx context.Context) propagation.Member) Option {
	return optionFunc(func(c config) config {
		c.member = member
		return c
	})
}
