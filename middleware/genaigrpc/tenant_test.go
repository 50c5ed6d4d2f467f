package genaigrpc_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/middleware/genaigrpc"
	"github.com/genaitrace/otelgenai/propagation"
)

// tenantOf reads whom an RPC is for, as a service that trusts its gateway may.
func tenantOf(ctx context.Context, method string) string {
	if method != completeMethod {
		panic(method)
	}
	return metadata.ValueFromIncomingContext(ctx, "x-tenant")[0]
}

func TestTheTracesOfTenantsAreKeptApart(t *testing.T) {
	key := genaigrpc.WithPropagators(propagation.New(propagation.WithTenants([]byte("a key of the services"))))
	for name, tc := range map[string]struct {
		caller, callee string
		joined         bool
	}{"the same": {"acme", "acme", true}, "another": {"acme", "evil", false}, "none": {"", "acme", false}} {
		t.Run(name, func(t *testing.T) {
			o := newTelemetry(t)
			l := connectLoopback(t, service{complete: func(context.Context, string) (string, error) { return "", nil }},
				[]grpc.ServerOption{grpc.StatsHandler(genaigrpc.NewServerHandler(o.options(key, genaigrpc.WithTenant(tenantOf))...))},
				[]grpc.DialOption{grpc.WithStatsHandler(genaigrpc.NewClientHandler(o.options(key)...))})
			ctx := metadata.AppendToOutgoingContext(t.Context(), "x-tenant", tc.callee)
			_, err := complete(propagation.ContextWithTenant(ctx, tc.caller), l.conn)
			require.NoError(t, err)
			l.stop()

			client := o.only("inference.v1.Inference/Complete", trace.SpanKindClient).SpanContext()
			server := o.only("inference.v1.Inference/Complete", trace.SpanKindServer)
			assert.Equal(t, tc.joined, server.Parent().SpanID() == client.SpanID())
			assert.Equal(t, tc.joined, server.SpanContext().TraceID() == client.TraceID())
			if !tc.joined {
				require.Len(t, server.Links(), 1)
				assert.Equal(t, client.SpanID(), server.Links()[0].SpanContext.SpanID())
			}
		})
	}
}

func TestATenantThatCannotBeToldSharesItsTraceWithNobody(t *testing.T) {
	o := newTelemetry(t)
	l := connect(t, service{generate: three},
		[]grpc.ServerOption{grpc.StatsHandler(genaigrpc.NewServerHandler(o.options(genaigrpc.WithTenant(tenantOf))...))},
		[]grpc.DialOption{grpc.WithStatsHandler(genaigrpc.NewClientHandler(o.options()...))})
	stream, err := generate(t.Context(), t, l.conn)
	require.NoError(t, err)
	_, err = read(stream)
	require.NoError(t, err)
	l.stop()
	assert.False(t, o.server().Parent().IsValid())
}

func TestAMemberTellsCalleesMoreOfTheTrace(t *testing.T) {
	began := time.UnixMilli(1_760_000_000_000)
	for name, tc := range map[string]struct {
		member func(context.Context) propagation.Member
		want   propagation.Member
	}{
		"more": {func(ctx context.Context) propagation.Member {
			at, _ := genaitrace.ArrivalFromContext(ctx)
			return propagation.Member{Start: at, PipelineID: "rag-v3", ModelID: "qwen"}
		}, propagation.Member{Caller: true, Start: began, PipelineID: "rag-v3", ModelID: "qwen"}},
		"panics": {func(context.Context) propagation.Member { panic("member") }, propagation.Member{}},
	} {
		t.Run(name, func(t *testing.T) {
			o := newTelemetry(t)
			var got propagation.Member
			l := connect(t, service{complete: func(ctx context.Context, _ string) (string, error) {
				got = propagation.MemberOf(trace.SpanContextFromContext(ctx))
				return "", nil
			}}, []grpc.ServerOption{grpc.StatsHandler(genaigrpc.NewServerHandler(o.options()...))},
				[]grpc.DialOption{grpc.WithStatsHandler(genaigrpc.NewClientHandler(o.options(genaigrpc.WithMember(tc.member))...))})
			ctx, call := o.tracer().StartCall(genaitrace.ContextWithArrival(t.Context(), began), genaitrace.Request{Model: "qwen"})
			_, err := complete(ctx, l.conn)
			require.NoError(t, err)
			call.End()
			l.stop()
			assert.True(t, tc.want.Start.Equal(got.Start))
			got.Start = tc.want.Start
			assert.Equal(t, tc.want, got)
		})
	}
}
