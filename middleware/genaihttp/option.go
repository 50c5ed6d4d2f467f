package genaihttp

import (
	"context"
	"maps"
	"net/http"
	"strings"

	"go.opentelemetry.io/otel"
	otellog "go.opentelemetry.io/otel/log"
	"go.opentelemetry.io/otel/metric"
	otelprop "go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/internal/fault"
	"github.com/genaitrace/otelgenai/middleware/internal/tail"
	"github.com/genaitrace/otelgenai/middleware/wire"
	"github.com/genaitrace/otelgenai/propagation"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// ScopeName is the name of the instrumentation scope of http.server.request.duration
// and of the faults of this package. The spans are genaitrace's.
const ScopeName = "github.com/genaitrace/otelgenai/middleware/genaihttp"

type config struct {
	tracer        []genaitrace.Option
	meterProvider metric.MeterProvider
	propagators   otelprop.TextMapPropagator
	public        bool
	trusted       map[string]bool
	provider      genaiconv.ProviderNameAttr
	endpoints     []wire.Endpoint
	decoders      map[string]wire.Decoder
	filter        func(*http.Request) bool
	traceResponse bool
	tenant        func(*http.Request) string
	member        func(context.Context) propagation.Member
	tail          TailSampler
	faults        *fault.Counter
}

// An Option configures [NewHandler] and [NewTransport].
type Option interface{ apply(config) config }

type optionFunc func(config) config

func (f optionFunc) apply(c config) config { return f(c) }

func newConfig(opts []Option) config {
	c := config{}
	for _, o := range opts {
		if o != nil {
			c = o.apply(c)
		}
	}
	if c.meterProvider == nil {
		c.meterProvider = otel.GetMeterProvider()
	}
	if c.propagators == nil {
		c.propagators = propagation.New(propagation.WithMeterProvider(c.meterProvider))
	}
	c.faults = fault.NewCounter("genaihttp", c.meter())
	c.tail = tail.Guard(c.tail, c.faults)
	return c
}

func (c *config) meter() metric.Meter {
	return c.meterProvider.Meter(ScopeName, metric.WithInstrumentationVersion(genaitrace.Version))
}

// WithTracerProvider sets where spans go. Default, and where tp is nil: the
// global provider.
func WithTracerProvider(tp trace.TracerProvider) Option {
	return optionFunc(func(c config) config {
		c.tracer = append(c.tracer, genaitrace.WithTracerProvider(tp))
		return c
	})
}

// WithMeterProvider sets where metrics go. Default, and where mp is nil: the
// global provider.
func WithMeterProvider(mp metric.MeterProvider) Option {
	return optionFunc(func(c config) config {
		c.tracer = append(c.tracer, genaitrace.WithMeterProvider(mp))
		if mp != nil {
			c.meterProvider = mp
		}
		return c
	})
}

// WithLoggerProvider sets where log records go, such as genai.completion for each
// answer; they hold no content. Default, and where lp is nil: the global provider.
func WithLoggerProvider(lp otellog.LoggerProvider) Option {
	return optionFunc(func(c config) config {
		c.tracer = append(c.tracer, genaitrace.WithLoggerProvider(lp))
		return c
	})
}

// WithPropagators sets which headers are read and written. Default, and where
// p is nil: W3C Trace Context and baggage.
func WithPropagators(p otelprop.TextMapPropagator) Option {
	return optionFunc(func(c config) config {
		if p != nil {
			c.propagators = p
		}
		return c
	})
}

// WithPublicEndpoint tells the handler that strangers can call it: it starts a
// new trace, links to the caller's span, and drops the caller's baggage and
// sampling decision. Default: callers are trusted. It means nothing to the
// transport.
func WithPublicEndpoint() Option {
	return optionFunc(func(c config) config {
		c.public = true
		return c
	})
}

// WithVocabulary sets in which words the spans and metrics of model calls are
// written; see [genaitrace.WithVocabulary].
func WithVocabulary(v semconv.Vocabulary) Option {
	return optionFunc(func(c config) config {
		c.tracer = append(c.tracer, genaitrace.WithVocabulary(v))
		return c
	})
}

// WithFilter lets the handler leave requests alone for which trace returns false,
// such as health checks. Default, and where it panics: every request is traced. It
// means nothing to the transport.
func WithFilter(trace func(*http.Request) bool) Option {
	return optionFunc(func(c config) config {
		c.filter = trace
		return c
	})
}

// WithTrustedHosts names hosts, without a port, that the transport may send the
// full context to: tracestate and baggage. Loopback and private addresses and
// names without a dot or under .local, .internal and .localhost are trusted
// anyway, and so are the trusted hosts of a [propagation.Bridge] that is given as
// propagator; every other host gets traceparent alone. It means nothing to the
// handler.
func WithTrustedHosts(hosts ...string) Option {
	return optionFunc(func(c config) config {
		trusted := make(map[string]bool, len(c.trusted)+len(hosts))
		for h := range c.trusted {
			trusted[h] = true
		}
		for _, h := range hosts {
			trusted[strings.ToLower(h)] = true
		}
		c.trusted = trusted
		return c
	})
}

// WithEndpoint adds a path under which models are called, or says how the answers
// of a known one are read: an endpoint of the same path comes first. Default: the
// paths of OpenAI and of the servers that speak its API, Anthropic, Gemini, Bedrock,
// Ollama, llama.cpp, Text Generation Inference, SGLang, Triton and KServe. Where a path is
// all of a request's, it is also the route that names the handler's span.
func WithEndpoint(e wire.Endpoint) Option {
	return optionFunc(func(c config) config {
		c.endpoints = append(c.endpoints[:len(c.endpoints):len(c.endpoints)], e)
		return c
	})
}

// WithDecoder lets answers be read whose content encoding the caller asked for
// itself, such as "br", from a decoded copy. Default: gzip and deflate. See
// [wire.Decoder] for what a decoder must keep to: above all to read only when it is
// read from, as zstd of klauspost/compress does with WithDecoderConcurrency(1).
func WithDecoder(encoding string, decoder wire.Decoder) Option {
	return optionFunc(func(c config) config {
		decoders := maps.Clone(c.decoders)
		if decoders == nil {
			decoders = make(map[string]wire.Decoder, 1)
		}
		decoders[strings.ToLower(encoding)] = decoder
		c.decoders = decoders
		return c
	})
}

// WithProvider sets gen_ai.provider.name of the transport's spans. Default: what
// the path tells, such as anthropic for /v1/messages; openai by the conventions
// also stands for servers that speak its API.
func WithProvider(name genaiconv.ProviderNameAttr) Option {
	return optionFunc(func(c config) config {
		if name != "" {
			c.provider = name
		}
		return c
	})
}

// WithTenant tells the handler on whose behalf a request is, before the caller's
// context is read, so that one tenant's context never becomes the parent of another
// one's span: see [propagation.ContextWithTenant] and [propagation.WithTenants]. tenant
// must authenticate the request; "" is none. An outer handler that has authenticated
// it can set the tenant itself. It means nothing to the transport, and writes no attribute:
// for genai.tenant.id on the span and on all below, an outer handler sets
// genaitrace.ContextWith(ctx, genaitrace.TenantID(id)).
func WithTenant(tenant func(*http.Request) string) Option {
	return optionFunc(func(c config) config {
		c.tenant = tenant
		return c
	})
}

// WithMember lets the transport say more in our member of the tracestate, to hosts
// of one's own alone: member gets the context of each request that is sent. What it
// leaves zero stays as the context has it.
//
//	genaihttp.WithMember(func(ctx context.Context) propagation.Member {
//		arrived, _ := genaitrace.ArrivalFromContext(ctx)
//		return propagation.Member{Start: arrived, PipelineID: "rag-v3"}
//	})
//
// It means nothing to the handler.
func WithMember(member func(ctx context.Context) propagation.Member) Option {
	return optionFunc(func(c config) config {
		c.member = member
		return c
	})
}
