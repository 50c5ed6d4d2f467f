package propagation

import (
	"slices"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
)

// Bridge is the propagator of a service: it reads the first valid one of several
// trace context formats, writes one or several, and carries baggage and, if asked
// to, prompt chains, all within a budget. Unlike with
// [propagation.NewCompositeTextMapPropagator], a format never overwrites one of
// higher precedence.
//
// Make one with [New]. The zero value and a nil *Bridge carry the same as New(). A Bridge must
// not be copied and may be used by any number of goroutines.
type Bridge struct {
	reads, writes []Format // beside W3C, in order of precedence
	fixed         int      // the size of all that writes need, and of the traceparent
	budget        int
	chain         bool
	public        bool
	first         []string // baggage keys
	trusted       map[string]bool
	tenantKey     []byte

	meterProvider metric.MeterProvider

	shedBaggage, shedChains, shedState, conflicts, refusedBaggage count
}

var _ propagation.TextMapPropagator = (*Bridge)(nil)

// An Option configures a [Bridge].
type Option interface{ apply(*Bridge) }

type optionFunc func(*Bridge)

func (f optionFunc) apply(b *Bridge) { f(b) }

// WithFormats also reads and writes the given formats. What is no Format is
// ignored. Each costs 40 to 200 bytes a request.
func WithFormats(formats ...Format) Option {
	return optionFunc(func(b *Bridge) {
		b.reads, b.writes = addFormats(b.reads, formats), addFormats(b.writes, formats)
	})
}

// WithReadFormats also reads the given formats, and answers in those that are
// written anyway.
func WithReadFormats(formats ...Format) Option {
	return optionFunc(func(b *Bridge) { b.reads = addFormats(b.reads, formats) })
}

func addFormats(to, formats []Format) []Format {
	for _, f := range formats {
		if f.valid() && f != W3C && !slices.Contains(to, f) {
			to = append(to, f)
		}
	}
	slices.Sort(to)
	return to
}

// WithPromptChain also reads and writes X-Prompt-Trace, in HTTP headers, gRPC
// metadata and every other carrier: see [PromptChain]. A chain that belongs to
// another trace than the request is not taken.
func WithPromptChain() Option {
	return optionFunc(func(b *Bridge) { b.chain = true })
}

// WithPublicEndpoint is for servers that strangers can call: their context becomes
// a link ([Links]) and the next span begins a trace, so that they neither join
// our traces nor decide what is sampled. Their baggage, prompt chain and denials
// are dropped. Default: callers are trusted.
func WithPublicEndpoint() Option {
	return optionFunc(func(b *Bridge) { b.public = true })
}

// WithTrustedHosts names hosts that get all that there is, as if they were one's
// own: see [Bridge.InjectTo].
func WithTrustedHosts(hosts ...string) Option {
	return optionFunc(func(b *Bridge) {
		if b.trusted == nil {
			b.trusted = make(map[string]bool, len(hosts))
		}
		for _, host := range hosts {
			b.trusted[normalHost(host)] = true
		}
	})
}

// WithTenants lets processes that have the same key prove to one another for which
// tenant a context was made: see [ContextWithTenant]. The proof is a baggage member
// of 35 bytes. Without a key no context from outside of the process becomes the
// parent of a tenant's span.
func WithTenants(key []byte) Option {
	return optionFunc(func(b *Bridge) { b.tenantKey = slices.Clone(key) })
}

// The budget of a hop in bytes, as HTTP/2 and gRPC count header lists: names,
// values and 32 for each.
const (
	defaultBudget = 4096
	minBudget     = 1024
)

// WithBudget sets how many bytes of headers a hop may carry, counted as HTTP/2
// does: names, values and 32 for each. Default: 4096, half of what gRPC servers
// of other languages accept. Less than 1024 is 1024.
//
// What does not fit is left out: baggage first, then the prompt chain, then
// tracestate members of others, those above 128 characters before others and each
// from the right. The formats themselves and our own tracestate member always
// fit.
func WithBudget(bytes int) Option {
	return optionFunc(func(b *Bridge) { b.budget = max(bytes, minBudget) })
}

// WithBaggageFirst names the baggage members that are the last to be left out
// where there is no room for all, most important first. The others go in the
// order of their keys.
func WithBaggageFirst(keys ...string) Option {
	return optionFunc(func(b *Bridge) { b.first = slices.Clone(keys) })
}

// New returns a [Bridge] for W3C Trace Context and baggage and for what the options
// add. Without options it is the propagator to use where none was chosen.
func New(opts ...Option) *Bridge {
	b := new(Bridge)
	for _, opt := range opts {
		if opt != nil {
			opt.apply(b)
		}
	}
	if slices.Contains(b.reads, B3) { // which reads all that B3Multi reads
		b.reads = slices.DeleteFunc(b.reads, func(f Format) bool { return f == B3Multi })
	}
	b.fixed = b.needs()
	b.connect()
	return b
}

// plain stands for a nil Bridge.
var plain = New()

func (b *Bridge) orPlain() *Bridge {
	if b == nil {
		return plain
	}
	return b
}

// needs returns the size of what is never left out, but for our own tracestate
// member.
func (b *Bridge) needs() int {
	size := formats[W3C].size + headerSize(tracestateKey, 0)
	for _, f := range b.writes {
		size += formats[f].size
	}
	return size
}

// Fields returns the header names that Inject writes or, where they were copied from
// a request, removes.
func (b *Bridge) Fields() []string {
	b = b.orPlain()
	fields := W3C.Fields()
	for _, f := range b.writes {
		if f == B3Multi && slices.Contains(b.writes, B3) {
			continue // the same fields
		}
		fields = append(fields, formats[f].fields...)
	}
	if b.chain {
		fields = append(fields, promptTraceKey)
	}
	return append(fields, baggageKey)
}
