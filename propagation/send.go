package propagation

import (
	"context"
	"net/http"

	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/propagation"
	"google.golang.org/grpc/metadata"
)

// Inject writes what ctx holds to carrier: the trace context in every format of b,
// baggage, prompt chain, within the budget. What carrier already holds of these,
// for instance because a proxy copied it from the request that it forwards, is
// replaced or, where the context has none of it, removed. Without a valid span
// context in ctx there is nothing to replace it by, and it stays.
func (b *Bridge) Inject(ctx context.Context, carrier propagation.TextMapCarrier) {
	b = b.orPlain()
	room := b.room()
	o := outgoingOf(ctx)
	if o.sc.IsValid() {
		o.room = room
		parent, state := formatW3C(&o)
		carrier.Set(traceparentKey, parent)
		replace(carrier, tracestateKey, state)
		room -= len(state)
	}
	for _, f := range b.writes {
		f.clear(&o, carrier)
	}
	for _, f := range b.writes {
		f.write(&o, carrier)
	}
	b.shedState.add(ctx, o.shed)
	st := stateOf(ctx)
	if b.chain {
		room -= b.writeChain(ctx, st, &o, carrier, room)
	}
	b.writeBaggage(ctx, st, &o, carrier, room)
}

// room is what the formats leave of the budget.
func (b *Bridge) room() int {
	budget, fixed := b.budget, b.fixed
	if budget == 0 {
		budget = defaultBudget
	}
	if fixed == 0 { // the zero value
		fixed = b.needs()
	}
	// The tracestate always has room for our own member.
	return max(budget-fixed, len(memberKey)+1+maxValue)
}

// writeChain writes the prompt chain and returns what it took.
func (b *Bridge) writeChain(ctx context.Context, st *state, o *outgoing, carrier propagation.TextMapCarrier, room int) int {
	value := ""
	if st != nil && st.chain != nil && st.chain.TraceID == o.sc.TraceID() && o.sc.IsValid() && len(st.chain.Hops) > 0 {
		value = formatChain(st.chain)
	}
	size := headerSize(promptTraceKey, len(value))
	if value != "" && (size > room || len(value) > maxChainLen) {
		b.shedChains.add(ctx, 1)
		value = ""
	}
	if o.sc.IsValid() {
		replace(carrier, promptTraceKey, value)
	}
	if value == "" {
		return 0
	}
	return size
}

func (b *Bridge) writeBaggage(ctx context.Context, st *state, o *outgoing, carrier propagation.TextMapCarrier, room int) {
	tag := ""
	switch {
	case st == nil || !o.sc.IsValid():
	case st.tenant != "" && len(b.tenantKey) > 0:
		tag = tenantTag(b.tenantKey, st.tenant, o.sc.TraceID())
	case st.tenant == "" && o.st != nil:
		tag = st.tag // passed on by who does not know the tenant
	}
	bag := baggage.FromContext(ctx)
	if bag.Len() == 0 && tag == "" {
		if o.sc.IsValid() {
			replace(carrier, baggageKey, "")
		}
		return
	}
	list, shed := formatBaggage(bag, tag, b.first, room-headerSize(baggageKey, 0))
	b.shedBaggage.add(ctx, shed)
	replace(carrier, baggageKey, list)
}

// InjectTo is Inject for a request to host, which may have a port. Third parties,
// which are neither one's own by [IsOwnHost] nor of [WithTrustedHosts], get the
// traceparent alone; whatever else carrier holds of what b reads or writes is
// removed, because it may have been copied from a request.
func (b *Bridge) InjectTo(ctx context.Context, carrier propagation.TextMapCarrier, host string) {
	b = b.orPlain()
	if b.Trusts(host) {
		b.Inject(ctx, carrier)
		return
	}
	for _, key := range b.Fields() {
		replace(carrier, key, "")
	}
	for _, f := range b.reads {
		for _, key := range formats[f].fields {
			replace(carrier, key, "")
		}
	}
	InjectTraceparent(ctx, carrier)
}

// Trusts reports whether host, which may have a port, gets all that there is: one's own
// by [IsOwnHost], or one of [WithTrustedHosts].
func (b *Bridge) Trusts(host string) bool {
	return b.orPlain().trusted[normalHost(host)] || IsOwnHost(host)
}

// FromHTTP returns the context of r with what its headers hold.
func (b *Bridge) FromHTTP(r *http.Request) context.Context {
	return b.Extract(r.Context(), HTTPHeader(r.Header))
}

// ToHTTP writes the context of r, a request that this process is about to make, to
// its headers, as much as its host may know: see [Bridge.InjectTo]. An http.Client
// that follows a redirect takes headers along to another host, which the transport of
// middleware/genaihttp does not: it writes them for each request.
func (b *Bridge) ToHTTP(r *http.Request) {
	if r.Header == nil {
		r.Header = make(http.Header)
	}
	b.InjectTo(r.Context(), HTTPHeader(r.Header), r.URL.Host)
}

// FromGRPC returns ctx, that of a gRPC service method, with what the incoming
// metadata holds.
func (b *Bridge) FromGRPC(ctx context.Context) context.Context {
	md, ok := metadata.FromIncomingContext(ctx)
	if !ok {
		return ctx
	}
	return b.Extract(ctx, GRPCMetadata(md))
}

// ToGRPC returns ctx with outgoing metadata that holds what ctx holds, beside the
// metadata that ctx has already. It is for services of one's own; for others use
// [Bridge.InjectTo].
func (b *Bridge) ToGRPC(ctx context.Context) context.Context {
	md, ok := metadata.FromOutgoingContext(ctx) // a copy
	if !ok {
		md = metadata.MD{}
	}
	b.Inject(ctx, GRPCMetadata(md))
	return metadata.NewOutgoingContext(ctx, md)
}
