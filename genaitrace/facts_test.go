package genaitrace_test

import (
	"context"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/semconv"
)

// allFacts is one of each kind, and their keys and values.
func allFacts() ([]genaitrace.Fact, map[string]any) {
	return []genaitrace.Fact{
			genaitrace.PromptName("summary"), genaitrace.PromptVersion("v3"),
			genaitrace.TraceSource(semconv.GenAITraceSourceAgentLoop),
			genaitrace.TenantID("acme"), genaitrace.UserTier("free"),
			genaitrace.ConversationID("conv-1"), genaitrace.RequestID("req-1"),
		}, map[string]any{
			"gen_ai.prompt.name": "summary", "gen_ai.prompt.version": "v3",
			"genai.trace.source": "agent_loop",
			"genai.tenant.id":    "acme", "genai.user.tier": "free",
			"gen_ai.conversation.id": "conv-1", "genai.request_id": "req-1",
		}
}

func factsOf(ctx context.Context) map[string]any {
	return dims(attribute.NewSet(genaitrace.FactsFromContext(ctx)...))
}

func TestFactsOfContextsAreMergedAndTheInnerHolds(t *testing.T) {
	facts, want := allFacts()
	assert.Equal(t, want, factsOf(genaitrace.ContextWith(t.Context(), facts...)))
	assert.Empty(t, genaitrace.FactsFromContext(t.Context()))

	outer := genaitrace.ContextWith(t.Context(), genaitrace.TenantID("acme"), genaitrace.UserTier("free"))
	inner := genaitrace.ContextWith(outer, genaitrace.UserTier("gold"), genaitrace.PromptVersion("v3"), genaitrace.PromptVersion("v4"))
	assert.Equal(t, map[string]any{"genai.tenant.id": "acme", "genai.user.tier": "gold", "gen_ai.prompt.version": "v4"}, factsOf(inner))
	assert.Equal(t, map[string]any{"genai.tenant.id": "acme", "genai.user.tier": "free"}, factsOf(outer), "the outer context is as it was")
}

func TestAnEmptyFactIsUnknownAndChangesNothing(t *testing.T) {
	ctx := genaitrace.ContextWith(t.Context(), genaitrace.TenantID(""), genaitrace.Fact{})
	assert.Equal(t, t.Context(), ctx, "nothing to add")
	outer := genaitrace.ContextWith(ctx, genaitrace.TenantID("acme"))
	assert.Equal(t, outer, genaitrace.ContextWith(outer, genaitrace.TenantID(""), genaitrace.TenantID("acme")))
}

func TestFactsAreBounded(t *testing.T) {
	ctx := genaitrace.ContextWith(t.Context(), genaitrace.TenantID(strings.Repeat("é", 1000)), genaitrace.RequestID("a\xffb"))
	for _, kv := range genaitrace.FactsFromContext(ctx) {
		assert.LessOrEqual(t, len(kv.Value.AsString()), 256, kv.Key)
		assert.True(t, utf8.ValidString(kv.Value.AsString()), kv.Key)
	}
}

// A caller that appends to the slice must not write into that of others.
func TestFactsOfAContextCannotBeAppendedTo(t *testing.T) {
	ctx := genaitrace.ContextWith(t.Context(), genaitrace.TenantID("acme"), genaitrace.UserTier("free"), genaitrace.RequestID("r"))
	facts := genaitrace.FactsFromContext(ctx)
	assert.Equal(t, len(facts), cap(facts))
}

// Each span that this package starts, in each vocabulary.
func TestEverySpanCarriesTheFactsOfItsContext(t *testing.T) {
	facts, want := allFacts()
	for _, words := range []semconv.Vocabulary{semconv.Standard, semconv.Both, semconv.House, semconv.Legacy} {
		t.Run(words.String(), func(t *testing.T) {
			r := record(t)
			r.Tracer = genaitrace.New(genaitrace.WithTracerProvider(r.provider), genaitrace.WithVocabulary(words))
			ctx := genaitrace.ContextWith(t.Context(), facts...)
			ctx, gateway := r.StartGateway(ctx, genaitrace.GatewayRequest{Name: "POST /"})
			ctx, call := r.StartCall(ctx, genaitrace.Request{})
			ctx, inf := r.StartInference(ctx, genaitrace.Request{})
			inf.StartQueue(ctx)
			inf.StartTokenize(ctx)
			inf.StartSchedule(ctx)
			inf.StartPrefill(ctx, genaitrace.Prompt{})
			inf.StartDecode(ctx)
			inf.StartPostprocess(ctx)
			inf.End()
			call.End()
			gateway.End()

			assert.Equal(t, want, factsOf(ctx), "the context is as it was")
			require.Len(t, r.recorder.Ended(), 9)
			for _, s := range r.recorder.Ended() {
				got := seen{s, t}
				for key, value := range want {
					if key == "gen_ai.prompt.version" && words == semconv.House {
						assert.False(t, got.has(attribute.Key(key)), "%s of %s", key, s.Name())
						continue
					}
					assert.Equal(t, value, got.text(attribute.Key(key)), "%s of %s", key, s.Name())
				}
				twin := words == semconv.Both || words == semconv.House
				assert.Equal(t, twin, got.has(semconv.GenAIPromptVersionKey), s.Name())
			}
		})
	}
}

func TestAPhaseCarriesTheFactsOfItsOwnContext(t *testing.T) {
	r := record(t)
	ctx, inf := r.StartInference(genaitrace.ContextWith(t.Context(), genaitrace.UserTier("free")), genaitrace.Request{})
	inf.StartPrefill(genaitrace.ContextWith(ctx, genaitrace.UserTier("gold")), genaitrace.Prompt{})
	inf.End()
	assert.Equal(t, "free", r.span(semconv.SpanInferenceGenerate).text(semconv.GenAIUserTierKey))
	assert.Equal(t, "gold", r.span(semconv.SpanInferencePrefill).text(semconv.GenAIUserTierKey))
}

func TestWhatARequestSaysItselfWinsOverTheFactsOfItsContext(t *testing.T) {
	r := record(t)
	ctx := genaitrace.ContextWith(t.Context(), genaitrace.RequestID("outer"), genaitrace.TenantID("acme"))
	_, call := r.StartCall(ctx, genaitrace.Request{RequestID: "inner"})
	call.End()
	_, gateway := r.StartGateway(ctx, genaitrace.GatewayRequest{Name: "POST /", Attributes: []attribute.KeyValue{semconv.GenAITenantID("other")}})
	gateway.End()
	assert.Equal(t, "inner", r.span("chat").text(semconv.GenAIRequestIDKey))
	assert.Equal(t, "other", r.span("POST /").text(semconv.GenAITenantIDKey))
}

func TestASamplerSeesTheFactsOfACall(t *testing.T) {
	var tenants []string
	r := record(t, sdktrace.WithSampler(samplerFunc(func(p sdktrace.SamplingParameters) {
		for _, kv := range p.Attributes {
			if kv.Key == semconv.GenAITenantIDKey {
				tenants = append(tenants, kv.Value.AsString())
			}
		}
	})))
	_, call := r.StartCall(genaitrace.ContextWith(t.Context(), genaitrace.TenantID("acme")), genaitrace.Request{})
	call.End()
	assert.Equal(t, []string{"acme"}, tenants)
}

type samplerFunc func(sdktrace.SamplingParameters)

func (f samplerFunc) ShouldSample(p sdktrace.SamplingParameters) sdktrace.SamplingResult {
	f(p)
	return sdktrace.SamplingResult{Decision: sdktrace.RecordAndSample}
}
func (samplerFunc) Description() string { return "sees" }

// Spans that are made after the fact, and that of a batch, which is a root.
func TestReportedPhasesAndBatchesCarryTheFactsOfTheirContext(t *testing.T) {
	r := record(t)
	ctx := genaitrace.ContextWith(t.Context(), genaitrace.TenantID("acme"))
	_, batch := r.StartBatch(ctx, genaitrace.BatchFacts{Model: "m"})
	batch.End()
	ctx, call := r.StartCall(ctx, genaitrace.Request{})
	call.RecordPhases(allPhases())
	_, inf := r.StartInference(ctx, genaitrace.Request{})
	inf.RecordPhases(allPhases())
	inf.End()
	call.End()
	require.Len(t, r.recorder.Ended(), 3+2*6)
	for _, s := range r.recorder.Ended() {
		assert.True(t, seen{s, t}.has(semconv.GenAITenantIDKey), s.Name())
	}
}
