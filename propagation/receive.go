package propagation

import (
	"context"

	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

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
	b.readFormats(ctx, carrier, in)
	var bag baggage.Baggage
	if !b.public {
		var ok bool
		if bag, ok = readBaggage(carrier); !ok {
			b.refusedBaggage.add(ctx, 1)
		}
	}
	tag := ""
	if m := bag.Member(tenantKey); m.Key() != "" {
		tag, bag = m.Value(), bag.DeleteMember(tenantKey)
	}
	before := stateOf(ctx)
	if b.stranger(before, in, tag) {
		return apart(ctx, before, in.links(true))
	}
	if in.parent = in.remote.sc.HasTraceID(); in.parent || in.format != 0 {
		ctx = b.continued(ctx, carrier, before, in, tag)
	}
	if bag.Len() > 0 {
		ctx = baggage.ContextWithBaggage(ctx, bag)
		if b.tenantKey != nil && !in.parent && in.format == 0 {
			ctx = b.unproven(ctx, before)
		}
	}
	return ctx
}

// unproven returns ctx, which has baggage of a caller without a trace, with the note
// that nothing proves of which tenant it is.
func (b *Bridge) unproven(ctx context.Context, before *state) context.Context {
	var st state
	if before != nil {
		st = *before
	}
	st.tag, st.tagKey = "", b.tenantKey
	return withState(ctx, st)
}

// readFormats finds the first valid format, and the others that contradict it.
func (b *Bridge) readFormats(ctx context.Context, carrier propagation.TextMapCarrier, in *incoming) {
	if readW3C(carrier, &in.remote) {
		in.format = W3C
	}
	for _, f := range b.reads {
		var r remote
		switch {
		case !f.read(carrier, &r):
		case in.format == 0 || !in.remote.sc.HasTraceID() && r.sc.HasTraceID():
			in.format, in.remote = f, r // a denial without IDs gives way to IDs
		case !r.sc.HasTraceID():
		case contradict(in.remote.sc, r.sc):
			in.conflicts = append(in.conflicts, Conflict{f.String(), r.sc})
			b.conflicts.add(ctx, 1)
		default:
			in.remote.complete(&r)
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

// complete adds what another format says of the same trace and span.
func (r *remote) complete(other *remote) {
	if !r.parentSpanID.IsValid() && other.sc.HasSpanID() {
		r.parentSpanID = other.parentSpanID
	}
	if r.traceName == "" && other.sc.TraceID() == r.sc.TraceID() {
		r.traceName = other.traceName
	}
}

// stranger reports whether the caller must not be the parent, nor say anything
// else.
func (b *Bridge) stranger(before *state, in *incoming, tag string) bool {
	return b.public || before != nil && before.tenant != "" &&
		!isTenantTag(tag, b.tenantKey, before.tenant, in.remote.sc.TraceID())
}

// apart returns ctx with links to contexts that are not its parent. Of its state
// only what this process knows stays.
func apart(ctx context.Context, before *state, links []trace.Link) context.Context {
	if len(links) == 0 {
		return ctx
	}
	st := state{links: links}
	if before != nil {
		st.tenant = before.tenant
	}
	return withState(ctx, st)
}

// links returns a link for each context that is not the parent, which in.remote
// is unless all are asked for.
func (in *incoming) links(all bool) []trace.Link {
	var links []trace.Link
	if all {
		links = in.remote.links()
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
		chain = b.readChain(ctx, carrier, in)
	}
	if before == nil && chain == nil && tag == "" && b.tenantKey == nil && in.conflicts == nil && in.remote.plain() {
		return trace.ContextWithSpanContext(ctx, in.remote.sc)
	}
	st := in.remote.over(before)
	st.links, st.chain = in.links(false), chain
	if st.tenant == "" {
		st.tag, st.tagKey = tag, b.tenantKey
	}
	ctx = withState(ctx, st)
	if in.remote.sc.HasTraceID() {
		ctx = trace.ContextWithSpanContext(ctx, in.remote.sc)
	}
	return ctx
}

// readChain returns the prompt chain if it is of the trace that is continued.
func (b *Bridge) readChain(ctx context.Context, carrier propagation.TextMapCarrier, in *incoming) *PromptChain {
	c, ok := readChain(carrier)
	switch {
	case !ok:
		return nil
	case c.TraceID != in.remote.sc.TraceID():
		in.conflicts = append(in.conflicts, Conflict{promptTraceKey, trace.NewSpanContext(trace.SpanContextConfig{TraceID: c.TraceID, Remote: true})})
		b.conflicts.add(ctx, 1)
		return nil
	default:
		return &c
	}
}
