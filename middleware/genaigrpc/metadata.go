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

// inject returns ctx with outgoing metadata that carries the context from, in
// place of whatever trace context the metadata had: a proxy may have copied
// that from the RPC it serves. The metadata of ctx is copied, not changed. A
// propagator, or a member, that panics has written nothing.
func inject(ctx, from context.Context, p otelprop.TextMapPropagator, member func(context.Context) propagation.Member) (injected context.Context) {
	defer reportPanic(func() { injected = ctx })
	md, ok := metadata.FromOutgoingContext(ctx)
	if !ok {
		md = metadata.MD{}
	}
	fields := p.Fields()
	for _, field := range fields {
		delete(md, strings.ToLower(field))
	}
	if len(fields) > 0 {
		delete(md, "grpc-trace-bin") // else it would contradict what is written
	}
	if member != nil {
		from = propagation.ContextWithMember(from, member(from))
	}
	p.Inject(from, propagation.GRPCMetadata(md))
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
