package propagation_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/baggage"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/propagation"
)

// A tenancy is two processes that share a key.
func newTenancy(t *testing.T) (bridge *propagation.Bridge, tracer trace.Tracer) {
	t.Helper()
	provider := sdktrace.NewTracerProvider()
	t.Cleanup(func() { assert.NoError(t, provider.Shutdown(context.Background())) })
	return propagation.New(propagation.WithTenants([]byte("shared key"))), provider.Tracer("test")
}

// sent is what a process sends that works for tenant, and its span.
func sent(bridge *propagation.Bridge, tracer trace.Tracer, tenant string) (propagation.Map, trace.SpanContext) {
	ctx, span := tracer.Start(propagation.ContextWithTenant(context.Background(), tenant), "call")
	defer span.End()
	m := propagation.Map{}
	bridge.Inject(ctx, m)
	return m, span.SpanContext()
}

func TestATenantGoesOnWithItsOwnTrace(t *testing.T) {
	bridge, tracer := newTenancy(t)
	m, caller := sent(bridge, tracer, "acme")
	ctx, got := bridge.Receive(propagation.ContextWithTenant(context.Background(), "acme"), m)
	assert.True(t, got.Parent)
	_, span := tracer.Start(ctx, "serve")
	assert.Equal(t, caller.TraceID(), span.SpanContext().TraceID())
	assert.Zero(t, baggage.FromContext(ctx).Len(), "the proof is no baggage of the application")
	assert.NotContains(t, m["baggage"], "acme", "the name stays inside")
}

// Whatever a caller sends, the span of one tenant has no parent of another.
func TestNoTenantsContextIsTheParentOfAnothersSpan(t *testing.T) {
	bridge, tracer := newTenancy(t)
	stolen, victim := sent(bridge, tracer, "acme")
	own, _ := sent(bridge, tracer, "evil")
	unproven := propagation.Map{"traceparent": stolen["traceparent"]}
	otherKey, _ := sent(propagation.New(propagation.WithTenants([]byte("guessed key"))), tracer, "evil")

	for name, m := range map[string]propagation.Map{
		"as it was sent":                 stolen,
		"without the proof":              unproven,
		"with the proof of its own":      {"traceparent": stolen["traceparent"], "baggage": own["baggage"]},
		"with an empty proof":            {"traceparent": stolen["traceparent"], "baggage": "genai.tenant="},
		"with a short proof":             {"traceparent": stolen["traceparent"], "baggage": "genai.tenant=AAAA"},
		"with a proof by another key":    {"traceparent": stolen["traceparent"], "baggage": otherKey["baggage"]},
		"with both proofs":               {"traceparent": stolen["traceparent"], "baggage": stolen["baggage"] + "," + own["baggage"]},
		"with a name in baggage":         {"traceparent": stolen["traceparent"], "baggage": "tenant=evil,genai.tenant=evil"},
		"for a trace alone":              {"trace-id": victim.TraceID().String()},
		"by a format without tracestate": {"b3": victim.TraceID().String() + "-" + victim.SpanID().String() + "-1"},
	} {
		t.Run(name, func(t *testing.T) {
			bridge := propagation.New(append(everything, propagation.WithTenants([]byte("shared key")))...)
			ctx, got := bridge.Receive(propagation.ContextWithTenant(context.Background(), "evil"), m)
			assert.False(t, got.Parent)
			assert.Zero(t, baggage.FromContext(ctx).Len())
			_, span := tracer.Start(ctx, "serve", trace.WithLinks(propagation.Links(ctx)...))
			assert.NotEqual(t, victim.TraceID(), span.SpanContext().TraceID())
			if got.SpanContext.IsValid() {
				require.Len(t, propagation.Links(ctx), 1)
				assert.Equal(t, victim.SpanID(), propagation.Links(ctx)[0].SpanContext.SpanID())
			}
			next := propagation.Map{}
			bridge.Inject(ctx, next)
			assert.NotContains(t, next["traceparent"], victim.TraceID().String())
		})
	}
}

func TestAFormatAloneProvesNoTenant(t *testing.T) {
	bridge, tracer := newTenancy(t)
	m, caller := sent(bridge, tracer, "acme")
	ctx := propagation.W3C.Extract(propagation.ContextWithTenant(context.Background(), "acme"), m)
	assert.False(t, trace.SpanContextFromContext(ctx).IsValid())
	require.Len(t, propagation.Links(ctx), 1)
	assert.Equal(t, caller.SpanID(), propagation.Links(ctx)[0].SpanContext.SpanID())
}

// Nor does baggage without a trace.
func TestBaggageOfAnUnknownTenantIsDropped(t *testing.T) {
	bridge, _ := newTenancy(t)
	ctx := bridge.Extract(propagation.ContextWithTenant(context.Background(), "acme"), propagation.Map{"baggage": "a=1", "b3": "0"})
	assert.Zero(t, baggage.FromContext(ctx).Len())
}

// The tenant may become known only after the context was read.
func TestATenantThatIsKnownLateIsStillKeptApart(t *testing.T) {
	bridge, tracer := newTenancy(t)
	m, victim := sent(bridge, tracer, "acme")
	for name, m := range map[string]propagation.Map{
		"with its proof":    m,
		"without the proof": {"traceparent": m["traceparent"]},
	} {
		ctx, server := tracer.Start(bridge.Extract(context.Background(), m), "serve")
		assert.Equal(t, victim.TraceID(), server.SpanContext().TraceID(), "of a service that knows no tenant yet")

		same := propagation.ContextWithTenant(ctx, "acme")
		assert.Equal(t, name == "with its proof", server.SpanContext().Equal(trace.SpanContextFromContext(same)), name)
		assert.Equal(t, ctx, propagation.ContextWithTenant(ctx, ""), "nothing is claimed")

		other := propagation.ContextWithTenant(baggage.ContextWithBaggage(ctx, parseBaggage(t, "secret=1")), "evil")
		assert.False(t, trace.SpanContextFromContext(other).IsValid(), name)
		assert.Zero(t, baggage.FromContext(other).Len())
		require.Len(t, propagation.Links(other), 1)
		assert.Equal(t, server.SpanContext(), propagation.Links(other)[0].SpanContext)
		_, span := tracer.Start(other, "infer")
		assert.NotEqual(t, victim.TraceID(), span.SpanContext().TraceID())
	}

	// A trace that began here is nobody else's.
	ctx, span := tracer.Start(bridge.Extract(context.Background(), propagation.Map{}), "serve")
	assert.Equal(t, span.SpanContext(), trace.SpanContextFromContext(propagation.ContextWithTenant(ctx, "acme")))
}

// Baggage is as foreign as the span that it came with, or without.
func TestBaggageDoesNotReachATenantThatIsKnownLate(t *testing.T) {
	bridge, tracer := newTenancy(t)
	m, _ := sent(bridge, tracer, "acme")
	m["baggage"] += ",secret=1"
	for name, m := range map[string]propagation.Map{
		"with a proof":    m,
		"without a proof": {"traceparent": m["traceparent"], "baggage": "secret=1"},
		"without a trace": {"baggage": "secret=1"},
		"with a denial":   {"b3": "0", "baggage": "secret=1"},
	} {
		bridge := propagation.New(propagation.WithTenants([]byte("shared key")), propagation.WithFormats(propagation.B3))
		remote := bridge.Extract(context.Background(), m)
		root, span := tracer.Start(remote, "serve", trace.WithNewRoot())
		for where, ctx := range map[string]context.Context{"at once": remote, "in a trace of its own": root} {
			require.Equal(t, "1", baggage.FromContext(ctx).Member("secret").Value(), name)
			other := propagation.ContextWithTenant(ctx, "evil")
			assert.Zero(t, baggage.FromContext(other).Len(), "%s, %s", name, where)
			if where != "at once" {
				assert.Equal(t, span.SpanContext(), trace.SpanContextFromContext(other), "which is nobody else's")
			}
			own := propagation.ContextWithTenant(ctx, "acme")
			assert.Equal(t, name == "with a proof", baggage.FromContext(own).Len() > 0, "%s, %s", name, where)
		}
	}
	// What this process put there itself stays.
	ctx := baggage.ContextWithBaggage(context.Background(), parseBaggage(t, "region=eu"))
	ctx = propagation.ContextWithTenant(bridge.Extract(ctx, propagation.Map{}), "acme")
	assert.Equal(t, 1, baggage.FromContext(ctx).Len())
}

// The application cannot write the proof, by mistake or otherwise.
func TestTheProofIsNoBaggageOfTheApplication(t *testing.T) {
	bridge, tracer := newTenancy(t)
	ctx, _ := tracer.Start(propagation.ContextWithTenant(context.Background(), "acme"), "call")
	m := propagation.Map{}
	bridge.Inject(baggage.ContextWithBaggage(ctx, parseBaggage(t, "genai.tenant=mine,a=1")), m)
	assert.Regexp(t, "^genai.tenant=[^,]{22},a=1$", m["baggage"])
	_, got := bridge.Receive(propagation.ContextWithTenant(context.Background(), "acme"), m)
	assert.True(t, got.Parent)
	ctx = bridge.Extract(context.Background(), propagation.Map{"traceparent": benchTraceparent, "baggage": "genai.tenant=,a=1"})
	assert.Equal(t, 1, baggage.FromContext(ctx).Len())
}

// A worker that takes a job of one tenant in the context of another.
func TestATenantCannotTakeOverTheContextOfAnother(t *testing.T) {
	bridge, tracer := newTenancy(t)
	ctx, span := tracer.Start(propagation.ContextWithTenant(context.Background(), "acme"), "job")
	ctx = propagation.ContextWithHop(ctx, "router")
	for _, tenant := range []string{"evil", ""} {
		other := propagation.ContextWithTenant(ctx, tenant)
		_, next := tracer.Start(other, "job", trace.WithLinks(propagation.Links(other)...))
		assert.NotEqual(t, span.SpanContext().TraceID(), next.SpanContext().TraceID(), "%q", tenant)
		assert.Len(t, propagation.Links(other), 1)
		_, ok := propagation.PromptChainFromContext(other)
		assert.False(t, ok)
		back := propagation.ContextWithTenant(other, "acme")
		assert.False(t, trace.SpanContextFromContext(back).IsValid(), "the way back leads to no span either")
	}
	assert.Equal(t, ctx, propagation.ContextWithTenant(ctx, "acme"))
	m := propagation.Map{}
	bridge.Inject(ctx, m)
	assert.Contains(t, m["baggage"], "genai.tenant=")
}

// A service that knows no tenants passes the proof on, with and without a key.
func TestAProofIsPassedOnByWhoKnowsNoTenant(t *testing.T) {
	bridge, tracer := newTenancy(t)
	m, caller := sent(bridge, tracer, "acme")
	for name, relay := range map[string]*propagation.Bridge{"with the key": bridge, "without": propagation.New()} {
		ctx, span := tracer.Start(relay.Extract(context.Background(), m), "relay")
		next := propagation.Map{}
		relay.Inject(ctx, next)
		_, got := bridge.Receive(propagation.ContextWithTenant(context.Background(), "acme"), next)
		assert.True(t, got.Parent, name)
		assert.Equal(t, caller.TraceID(), got.SpanContext.TraceID())
		assert.Equal(t, span.SpanContext().SpanID(), got.SpanContext.SpanID())

		// In a trace of its own the proof would prove nothing.
		fresh, _ := tracer.Start(relay.Extract(context.Background(), m), "other", trace.WithNewRoot())
		next = propagation.Map{}
		relay.Inject(fresh, next)
		assert.NotContains(t, next, "baggage", name)
	}
}

// Without a key nothing from outside can be proved.
func TestWithoutAKeyATenantsSpansBeginInThisProcess(t *testing.T) {
	_, tracer := newTenancy(t)
	bridge := propagation.New()
	m, _ := sent(bridge, tracer, "acme")
	assert.NotContains(t, m, "baggage")
	_, got := bridge.Receive(propagation.ContextWithTenant(context.Background(), "acme"), m)
	assert.False(t, got.Parent)
	id := got.SpanContext.TraceID()
	mac := hmac.New(sha256.New, nil)
	mac.Write(append(id[:], "acme"...))
	m["baggage"] = "genai.tenant=" + base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:16])
	_, got = bridge.Receive(propagation.ContextWithTenant(context.Background(), "acme"), m)
	assert.False(t, got.Parent, "no key is no key that all share")
}
