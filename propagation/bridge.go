package propagation

import (
	"context"
	"slices"
	"sync/atomic"

	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Bridge is the propagator of a service: it reads the first valid one of several
// trace context formats, writes one or several, and carries baggage and, if asked
// to, prompt chains, all within a budget. Unlike with
// [propagation.NewCompositeTextMapPropagator], a format never overwrites one of
// higher precedence.
//
// Make one with [New]. The zero value and a nil *Bridge are New(). A Bridge must
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

	shedBaggage, shedChains, shedState, conflicts, refusedBaggage atomic.Int64
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

// Fields returns the header names that Inject writes.
func (b *Bridge) Fields() []string {
	b = b.orPlain()
	fields := W3C.Fields()
	for _, f := range b.writes {
		fields = append(fields, formats[f].fields...)
	}
	if b.chain {
		fields = append(fields, promptTraceKey)
	}
	return append(fields, baggageKey)
}

// Received is what a [Bridge] found in a request.
type Received struct {
	// Format is the one that counts, 0 if there was none.
	Format Format
	// SpanContext is what it says, also where it did not become the parent. It may
	// have a trace ID alone.
	SpanContext trace.SpanContext
	// Parent says whether the next span continues it.
	Parent bool
	// Sampling is what the caller said of recording.
	Sampling Sampling
	// ParentSpanID is the caller's own parent, where the format tells it.
	ParentSpanID trace.SpanID
	// TraceName is the text that the trace ID was made of by [XTraceID] or
	// [JaegerTraceID], "" if it was an ID.
	TraceName string
	// Conflicts are the formats that said something else.
	Conflicts []Conflict
}

// A Conflict is a trace context that another one took precedence over.
type Conflict struct {
	// Source is the name of the format, or "x-prompt-trace" for a prompt chain of
	// another trace.
	Source string
	// SpanContext is what it says. It may have a trace ID alone.
	SpanContext trace.SpanContext
}

// Stats counts what a [Bridge] left out, since it was made.
type Stats struct {
	// What did not fit into the budget or its format.
	ShedBaggageMembers, ShedPromptChains, ShedStateMembers int64
	// RefusedBaggage counts requests with more than 8192 bytes of baggage.
	RefusedBaggage int64
	// Conflicts counts those that [Received] tells of.
	Conflicts int64
}

// Stats returns the counts so far. A nil Bridge shares them with all nil ones.
func (b *Bridge) Stats() Stats {
	b = b.orPlain()
	return Stats{
		ShedBaggageMembers: b.shedBaggage.Load(),
		ShedPromptChains:   b.shedChains.Load(),
		ShedStateMembers:   b.shedState.Load(),
		RefusedBaggage:     b.refusedBaggage.Load(),
		Conflicts:          b.conflicts.Load(),
	}
}

// Extract is [Bridge.Receive] without the report.
func (b *Bridge) Extract(ctx context.Context, carrier propagation.TextMapCarrier) context.Context {
	b = b.orPlain()
	var in incoming
	return b.receive(ctx, carrier, &in)
}

// Receive returns ctx with what carrier holds: the trace context as the parent of
// the next span, baggage, prompt chain. Each is left as it is in ctx if carrier
// holds none that is valid. It also reports what was found.
func (b *Bridge) Receive(ctx context.Context, carrier propagation.TextMapCarrier) (context.Context, Received) {
	b = b.orPlain()
	var in incoming
	ctx = b.receive(ctx, carrier, &in)
	return ctx, Received{
		Format:       in.format,
		SpanContext:  in.remote.sc,
		Parent:       in.parent,
		Sampling:     in.remote.sampling,
		ParentSpanID: in.remote.parentSpanID,
		TraceName:    in.remote.traceName,
		Conflicts:    in.conflicts,
	}
}

// incoming is what is read of a request.
type incoming struct {
	remote    remote
	format    Format
	parent    bool
	conflicts []Conflict
}

func (b *Bridge) receive(ctx context.Context, carrier propagation.TextMapCarrier, in *incoming) context.Context {
	b.readFormats(carrier, in)
	var bag baggage.Baggage
	if !b.public {
		var ok bool
		if bag, ok = readBaggage(carrier); !ok {
			b.refusedBaggage.Add(1)
		}
	}
	tag := ""
	if bag.Len() > 0 {
		if tag = bag.Member(tenantKey).Value(); tag != "" {
			bag = bag.DeleteMember(tenantKey)
		}
	}
	before := stateOf(ctx)
	if b.stranger(before, in, tag) {
		return apart(ctx, before, in)
	}
	if in.parent = in.remote.sc.HasTraceID(); in.parent || in.format != 0 {
		ctx = b.continued(ctx, carrier, before, in, tag)
	}
	if bag.Len() > 0 {
		ctx = baggage.ContextWithBaggage(ctx, bag)
	}
	return ctx
}

// readFormats finds the first valid format, and the others that contradict it.
func (b *Bridge) readFormats(carrier propagation.TextMapCarrier, in *incoming) {
	if readW3C(carrier, &in.remote) {
		in.format = W3C
	}
	for _, f := range b.reads {
		var r remote
		switch {
		case !f.read(carrier, &r):
		case in.format == 0 || !in.remote.sc.HasTraceID() && r.sc.HasTraceID():
			in.format, in.remote = f, r // a denial without IDs gives way to IDs
		case r.sc.HasTraceID() && contradict(in.remote.sc, r.sc):
			in.conflicts = append(in.conflicts, Conflict{f.String(), r.sc})
			b.conflicts.Add(1)
		}
	}
}

// contradict reports whether two span contexts name another trace, or other spans
// of one. Zipkin and Jaeger may know only the right half of a trace ID.
func contradict(a, b trace.SpanContext) bool {
	idA, idB := a.TraceID(), b.TraceID()
	if idA != idB {
		half := [8]byte{}
		short := [8]byte(idA[:8]) == half || [8]byte(idB[:8]) == half
		if !short || [8]byte(idA[8:]) != [8]byte(idB[8:]) {
			return true
		}
	}
	return a.HasSpanID() && b.HasSpanID() && a.SpanID() != b.SpanID()
}

// stranger reports whether the caller must not be the parent.
func (b *Bridge) stranger(before *state, in *incoming, tag string) bool {
	if b.public {
		return true
	}
	return before != nil && before.tenant != "" && in.format != 0 &&
		!isTenantTag(tag, b.tenantKey, before.tenant, in.remote.sc.TraceID())
}

// apart returns ctx with links to what was read, and nothing else of it.
func apart(ctx context.Context, before *state, in *incoming) context.Context {
	links := in.links(true)
	if len(links) == 0 {
		return ctx
	}
	st := state{links: links}
	if before != nil {
		st.tenant = before.tenant
	}
	return withState(ctx, st)
}

// links returns a link for each context that is not the parent.
func (in *incoming) links(all bool) []trace.Link {
	var links []trace.Link
	if sc := in.remote.sc; all && sc.IsValid() {
		links = append(links, trace.Link{SpanContext: sc})
	}
	for _, c := range in.conflicts {
		if c.SpanContext.IsValid() {
			links = append(links, trace.Link{SpanContext: c.SpanContext})
		}
	}
	return links
}

// continued returns ctx with what was read as the parent.
func (b *Bridge) continued(ctx context.Context, carrier propagation.TextMapCarrier, before *state, in *incoming, tag string) context.Context {
	var chain *PromptChain
	if b.chain {
		chain = b.readChain(carrier, in)
	}
	if before == nil && chain == nil && tag == "" && in.conflicts == nil && in.remote.plain() {
		return trace.ContextWithRemoteSpanContext(ctx, in.remote.sc)
	}
	st := in.remote.over(before)
	st.links, st.chain = in.links(false), chain
	if st.tenant == "" {
		st.tag, st.tagKey = tag, b.tenantKey
	}
	ctx = withState(ctx, st)
	if in.remote.sc.HasTraceID() {
		ctx = trace.ContextWithRemoteSpanContext(ctx, in.remote.sc)
	}
	return ctx
}

// readChain returns the prompt chain if it is of the trace that is continued.
func (b *Bridge) readChain(carrier propagation.TextMapCarrier, in *incoming) *PromptChain {
	c, _, ok := readChain(carrier)
	switch {
	case !ok:
		return nil
	case c.TraceID != in.remote.sc.TraceID():
		in.conflicts = append(in.conflicts, Conflict{promptTraceKey, trace.NewSpanContext(trace.SpanContextConfig{TraceID: c.TraceID, Remote: true})})
		b.conflicts.Add(1)
		return nil
	default:
		return &c
	}
}
