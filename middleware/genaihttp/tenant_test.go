package genaihttp_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/middleware/genaihttp"
	"github.com/genaitrace/otelgenai/propagation"
)

// called returns the member of the tracestate that a server sees, and the parent of
// its span, where a client calls it on behalf of caller and it serves callee.
func called(t *testing.T, o *telemetry, caller, callee string, opts ...genaihttp.Option) (m propagation.Member, client trace.SpanContext) {
	t.Helper()
	opts = append(o.options(), opts...)
	server := httptest.NewServer(genaihttp.NewHandler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		m = propagation.MemberOf(trace.SpanContextFromContext(r.Context()))
	}), append(opts, genaihttp.WithTenant(func(*http.Request) string {
		if callee == "panic" {
			panic(callee)
		}
		return callee
	}))...))
	defer server.Close()
	ctx, span := o.tp.Tracer("test").Start(propagation.ContextWithTenant(t.Context(), caller), "client")
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, http.NoBody)
	require.NoError(t, err)
	resp, err := genaihttp.NewTransport(plain(t), opts...).RoundTrip(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	span.End()
	return m, span.SpanContext()
}

func TestTheTracesOfTenantsAreKeptApart(t *testing.T) {
	key := genaihttp.WithPropagators(propagation.New(propagation.WithTenants([]byte("a key of the services"))))
	for name, tc := range map[string]struct {
		caller, callee string
		joined         bool
	}{
		"the same": {"acme", "acme", true}, "another": {"acme", "evil", false},
		"none": {"", "acme", false}, "cannot be told": {"acme", "panic", false},
	} {
		t.Run(name, func(t *testing.T) {
			o := newTelemetry(t)
			_, client := called(t, o, tc.caller, tc.callee, key)
			server := o.named("GET")
			assert.Equal(t, tc.joined, server.Parent().SpanID() == client.SpanID())
			if !tc.joined {
				require.Len(t, server.Links(), 1)
				assert.Equal(t, client.SpanID(), server.Links()[0].SpanContext.SpanID())
			}
		})
	}
}

func TestAMemberTellsCalleesMoreOfTheTrace(t *testing.T) {
	o := newTelemetry(t)
	m, _ := called(t, o, "", "", genaihttp.WithMember(func(context.Context) propagation.Member {
		return propagation.Member{PipelineID: "rag-v3"}
	}))
	assert.Equal(t, "rag-v3", m.PipelineID)
}
