package genaitrace

import (
	"context"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/internal/bound"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// A Fact is something that is true of all that happens in a context: on whose
// behalf it runs, what set it going. See [ContextWith].
type Fact struct {
	kind  factKind
	value string
}

type factKind uint8

const (
	promptName factKind = iota
	promptVersion
	traceSource
	tenantID
	userTier
	conversationID
	requestID
	factKinds
)

// factKeys are the keys of the facts, official where there is one.
var factKeys = [factKinds]attribute.Key{
	promptName:     genaiconv.PromptNameKey,
	promptVersion:  genaiconv.PromptVersionKey,
	traceSource:    semconv.GenAITraceSourceKey,
	tenantID:       semconv.GenAITenantIDKey,
	userTier:       semconv.GenAIUserTierKey,
	conversationID: genaiconv.ConversationIDKey,
	requestID:      semconv.GenAIRequestIDKey,
}

// PromptName is the name of the prompt template (gen_ai.prompt.name).
func PromptName(name string) Fact { return Fact{promptName, name} }

// PromptVersion is the version of the prompt template, a semantic version or a
// commit (gen_ai.prompt.version).
func PromptVersion(version string) Fact { return Fact{promptVersion, version} }

// TraceSource is what set the request going (genai.trace.source).
func TraceSource(source semconv.GenAITraceSourceAttr) Fact {
	return Fact{traceSource, string(source)}
}

// TenantID is the tenant on whose behalf the request runs (genai.tenant.id).
func TenantID(id string) Fact { return Fact{tenantID, id} }

// UserTier is the service level of the user (genai.user.tier).
func UserTier(tier string) Fact { return Fact{userTier, tier} }

// ConversationID is the conversation that the request belongs to
// (gen_ai.conversation.id).
func ConversationID(id string) Fact { return Fact{conversationID, id} }

// RequestID identifies the request inside the service (genai.request_id). On the
// spans of an operation, [Request.RequestID] wins over it.
func RequestID(id string) Fact { return Fact{requestID, id} }

// ContextWith adds facts to those of ctx; of two of a kind the inner one, and of
// one call the later one, holds. Every span that a [Tracer] starts in the
// returned context carries them, and with the SpanProcessor of package
// genaitrace/facts every other span too.
//
// Values are made valid UTF-8 and cut to 256 bytes; an empty one is unknown and
// changes nothing. Facts stay in the process: nothing sends them to another one.
func ContextWith(ctx context.Context, facts ...Fact) context.Context {
	outer, _ := ctx.Value(factsKey).(*factSet)
	inner := &factSet{}
	if outer != nil {
		inner.values = outer.values
	}
	for _, f := range facts {
		if value := bound.String(f.value, maxName); value != "" {
			inner.values[f.kind] = value
		}
	}
	if outer == nil && inner.values == [factKinds]string{} || outer != nil && inner.values == outer.values {
		return ctx
	}
	for kind, value := range inner.values {
		if value != "" {
			inner.attrs = append(inner.attrs, factKeys[kind].String(value))
		}
	}
	inner.attrs = slices.Clip(inner.attrs) // spans share it
	return context.WithValue(ctx, factsKey, inner)
}

// A factSet is immutable.
type factSet struct {
	values [factKinds]string
	attrs  []attribute.KeyValue // the known ones
}

// FactsFromContext returns what [ContextWith] put into ctx, in the words of
// [semconv.Standard]. The slice is shared: do not change it.
func FactsFromContext(ctx context.Context) []attribute.KeyValue {
	set, _ := ctx.Value(factsKey).(*factSet)
	if set == nil {
		return nil
	}
	return set.attrs
}

// factOf returns one fact of ctx; empty where it is unknown.
func factOf(ctx context.Context, kind factKind) string {
	if set, _ := ctx.Value(factsKey).(*factSet); set != nil {
		return set.values[kind]
	}
	return ""
}

// facts are those of ctx in the Tracer's words.
func (t *Tracer) facts(ctx context.Context) []attribute.KeyValue {
	attrs := FactsFromContext(ctx)
	if len(attrs) == 0 || t.words == semconv.Standard {
		return attrs
	}
	return t.words.Rewrite(slices.Clone(attrs))
}

// startAttributes is what the span of a request starts with. What the request
// says itself comes last, and wins.
func (t *Tracer) startAttributes(ctx context.Context, req *Request, role semconv.GenAISpanRoleAttr) []attribute.KeyValue {
	facts := FactsFromContext(ctx)
	attrs := append(make([]attribute.KeyValue, 0, 12+len(facts)), facts...)
	return t.words.Rewrite(req.appendStart(attrs, role))
}

// withFacts adds the facts of ctx to the prepared options of a span.
func (t *Tracer) withFacts(ctx context.Context, prepared []trace.SpanStartOption) []trace.SpanStartOption {
	facts := t.facts(ctx)
	if len(facts) == 0 {
		return prepared
	}
	return append(slices.Clip(prepared), trace.WithAttributes(facts...))
}
