package genaigrpc

import (
	"context"
	"fmt"
	"strings"

	"go.opentelemetry.io/otel"
	otelprop "go.opentelemetry.io/otel/propagation"
	"google.golang.org/grpc/metadata"

	"github.com/genaitrace/otelgenai/propagation"
)

// extract returns ctx with what p finds in the incoming metadata, of which it
// reads a copy. A propagator that panics has found nothing.
func extract(ctx context.Context, p otelprop.TextMapPropagator) (extracted context.Context) {
	defer reportPanic(func() { extracted = ctx })
	md, ok := metadata.FromIncomingContext(ctx)
	if !ok {
		return ctx
	}
	return p.Extract(ctx, propagation.GRPCMetadata(md))
}

// An injector writes the trace context into outgoing metadata.
type injector struct {
	propagator otelprop.TextMapPropagator
	member     func(context.Context) propagation.Member // nil: none
	fields     []string                                 // lower-case, of what the propagator writes
}

func newInjector(p otelprop.TextMapPropagator, member func(context.Context) propagation.Member) (i injector) {
	i = injector{propagator: p, member: member}
	defer reportPanic(func() {})
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
	defer reportPanic(func() { injected = ctx })
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

// reportPanic is for defer: it keeps a panic of a propagator from the RPC.
func reportPanic(restore func()) {
	if v := recover(); v != nil {
		restore()
		otel.Handle(fmt.Errorf("genaigrpc: propagator panicked, RPC goes on without trace context: %v", v))
	}
}

// unknownTenant is whom nobody's context belongs to.
const unknownTenant = "genaigrpc: unknown"

// tenantOf says on whose behalf an RPC is. One who cannot be told, because telling
// panics, shares traces with nobody.
func tenantOf(ctx context.Context, method string, tell func(context.Context, string) string) (tenant string) {
	defer func() {
		if v := recover(); v != nil {
			tenant = unknownTenant
			otel.Handle(fmt.Errorf("genaigrpc: WithTenant panicked, RPC begins a trace: %v", v))
		}
	}()
	return tell(ctx, method)
}
