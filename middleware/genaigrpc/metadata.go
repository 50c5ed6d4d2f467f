package genaigrpc

import (
	"context"
	"strings"

	otelprop "go.opentelemetry.io/otel/propagation"
	"google.golang.org/grpc/metadata"

	"github.com/genaitrace/otelgenai/internal/fault"
	"github.com/genaitrace/otelgenai/propagation"
)

const propagatorPanicked = "propagator or WithMember panicked, RPC goes on without trace context"

// extract returns ctx with what the propagator finds in the incoming metadata, of which
// it reads a copy. A propagator that panics has found nothing.
func (h *serverHandler) extract(ctx context.Context) (extracted context.Context) {
	defer h.faults.Catch(ctx, propagatorPanicked, func() { extracted = ctx })
	md, ok := metadata.FromIncomingContext(ctx)
	if !ok {
		return ctx
	}
	return h.propagator.Extract(ctx, propagation.GRPCMetadata(md))
}

// An injector writes the trace context into outgoing metadata.
type injector struct {
	propagator otelprop.TextMapPropagator
	member     func(context.Context) propagation.Member // nil: none
	fields     []string                                 // lower-case, of what the propagator writes
	faults     *fault.Counter
}

func newInjector(p otelprop.TextMapPropagator, member func(context.Context) propagation.Member, faults *fault.Counter) (i injector) {
	i = injector{propagator: p, member: member, faults: faults}
	defer faults.Catch(context.Background(), propagatorPanicked, func() {})
	for _, field := range p.Fields() {
		i.fields = append(i.fields, strings.ToLower(field))
	}
	if len(i.fields) > 0 {
		i.fields = append(i.fields, "grpc-trace-bin") // else it would contradict what is written
	}
	return i
}

// inject returns ctx with outgoing metadata that carries the context from, in
// place of whatever trace context the metadata had: a proxy may have copied
// that from the RPC it serves. The metadata of ctx is copied, not changed. A
// propagator, or a member, that panics has written nothing.
func (i *injector) inject(ctx, from context.Context) (injected context.Context) {
	defer i.faults.Catch(ctx, propagatorPanicked, func() { injected = ctx })
	md, ok := metadata.FromOutgoingContext(ctx)
	if !ok {
		md = metadata.MD{}
	}
	for _, field := range i.fields {
		delete(md, field)
	}
	if i.member != nil {
		from = propagation.ContextWithMember(from, i.member(from))
	}
	i.propagator.Inject(from, propagation.GRPCMetadata(md))
	return metadata.NewOutgoingContext(ctx, md)
}

// unknownTenant is whom nobody's context belongs to.
const unknownTenant = "genaigrpc: unknown"

// tenantOf says on whose behalf an RPC is. One who cannot be told, because telling
// panics, shares traces with nobody.
func (h *serverHandler) tenantOf(ctx context.Context, method string) (tenant string) {
	defer h.faults.Catch(ctx, "WithTenant panicked, RPC begins a trace", func() { tenant = unknownTenant })
	return h.tenant(ctx, method)
}
