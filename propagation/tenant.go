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
//     of another tenant, the result has neither its span nor its baggage, and
//     [Links] has the span. So the next span begins a trace.
//
// A context that no tenant is known of stays the parent. Set the tenant before
// the context is extracted where callers could leave their proof out.
//
// The tenant's name never leaves the process.
func ContextWithTenant(ctx context.Context, tenant string) context.Context {
	var st state
	if before := stateOf(ctx); before != nil {
		st = *before
	}
	if st.tenant == tenant && st.tag == "" {
		return ctx
	}
	sc := trace.SpanContextFromContext(ctx)
	foreign := st.tenant != "" && st.tenant != tenant
	if st.tag != "" && st.traceID == sc.TraceID() {
		foreign = foreign || !isTenantTag(st.tag, st.tagKey, tenant, st.traceID)
	}
	if !foreign {
		st.tenant, st.tag = tenant, ""
		return withState(ctx, st)
	}
	apart := state{tenant: tenant}
	if sc.IsValid() {
		apart.links = []trace.Link{{SpanContext: sc}}
	}
	ctx = baggage.ContextWithoutBaggage(trace.ContextWithSpanContext(ctx, trace.SpanContext{}))
	return withState(ctx, apart)
}

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
