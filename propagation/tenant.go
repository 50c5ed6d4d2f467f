package propagation

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"

	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/trace"
)

// ContextWithTenant returns ctx as that of a request on behalf of tenant, which
// the caller must have authenticated: a name in a header proves nothing. It keeps
// the traces of tenants apart.
//
//   - Under a tenant, a [Bridge] takes only a context as the parent that proves to
//     have been made for that tenant (see [WithTenants]). Any other becomes a
//     link, and its baggage is dropped. A [Format], which knows of no proof, makes
//     everything a link.
//   - Where ctx is that of another tenant already, or was extracted with the proof
//     of another, the result has neither its span nor its baggage, and [Links] has
//     the span: the next span begins a trace. With [WithTenants] that holds for
//     what was extracted without a proof, too.
//
// So set the tenant before the context is extracted, or else the spans before and
// after are of two traces. The tenant's name never leaves the process.
func ContextWithTenant(ctx context.Context, tenant string) context.Context {
	var st state
	if before := stateOf(ctx); before != nil {
		st = *before
	}
	if st.tenant == tenant && (tenant == "" || !st.tagged()) {
		return ctx
	}
	sc := trace.SpanContextFromContext(ctx)
	foreign := st.tenant != "" && st.tenant != tenant
	if st.tagged() && !isTenantTag(st.tag, st.tagKey, tenant, st.traceID) {
		// A trace that began here is nobody else's, but the baggage is.
		foreign = foreign || st.traceID == sc.TraceID()
		ctx = baggage.ContextWithoutBaggage(ctx)
	}
	if !foreign {
		st.tenant, st.tag, st.tagKey = tenant, "", nil
		return withState(ctx, st)
	}
	apart := state{tenant: tenant}
	if sc.IsValid() {
		apart.links = []trace.Link{{SpanContext: sc}}
	}
	ctx = baggage.ContextWithoutBaggage(trace.ContextWithSpanContext(ctx, trace.SpanContext{}))
	return withState(ctx, apart)
}

// tagged reports whether it is still to be proved for which tenant the context was
// made.
func (st *state) tagged() bool { return st.tag != "" || st.tagKey != nil }

// tenantKey is the baggage member that proves for which tenant a context was
// made. The proof is bound to the trace, so that it is worth nothing elsewhere
// and tells nobody which traces are of one tenant.
const tenantKey = "genai.tenant"

const tenantTagLen = 22 // 16 bytes in base64

func tenantTag(key []byte, tenant string, id trace.TraceID) string {
	mac := hmac.New(sha256.New, key)
	mac.Write(id[:])
	mac.Write([]byte(tenant))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:16])
}

func isTenantTag(tag string, key []byte, tenant string, id trace.TraceID) bool {
	return len(key) > 0 && len(tag) == tenantTagLen && hmac.Equal([]byte(tag), []byte(tenantTag(key, tenant, id)))
}
