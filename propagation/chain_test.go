package propagation_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/metadata"

	"github.com/genaitrace/otelgenai/propagation"
)

var chains = propagation.New(propagation.WithPromptChain())

// span n of a trace.
func spanID(n byte) trace.SpanID { return trace.SpanID{7: n} }

func inSpan(ctx context.Context, n byte) context.Context {
	return trace.ContextWithSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{1}, SpanID: spanID(n), TraceFlags: trace.FlagsSampled,
	}))
}

// A RAG request: a router, two retrievals, a rewrite of one of them, an answer.
func ragChain() context.Context {
	ctx := propagation.ContextWithHop(inSpan(context.Background(), 1), "router")
	ctx = propagation.ContextWithHop(inSpan(ctx, 2), "retrieve docs", spanID(1))
	ctx = propagation.ContextWithHop(inSpan(ctx, 3), "retrieve web", spanID(1))
	ctx = propagation.ContextWithHop(inSpan(ctx, 4), "rewrite → de", spanID(3))
	return propagation.ContextWithHop(inSpan(ctx, 5), "answer", spanID(2), spanID(4), spanID(9))
}

func names(hops []propagation.Hop) (list []string) {
	for _, hop := range hops {
		list = append(list, hop.Name)
	}
	return list
}

func TestAChainArrivesAsItWas(t *testing.T) {
	ctx := ragChain()
	want, ok := propagation.PromptChainFromContext(ctx)
	require.True(t, ok)
	want.ContextHash = "sha256:0230c6b1d833c51cc426492022677b74c60d82891931221a42db9e7bb06205e9"
	ctx = propagation.ContextWithPromptChain(ctx, want)
	for name, newCarrier := range transports {
		c, _ := newCarrier(nil)
		chains.Inject(ctx, c)
		got, ok := propagation.PromptChainFromContext(chains.Extract(context.Background(), c))
		assert.True(t, ok, name)
		assert.Equal(t, want, got, name)
	}
	md := metadata.MD{}
	chains.Inject(ctx, propagation.GRPCMetadata(md))
	assert.Contains(t, md["x-prompt-trace"][0], `rewrite \u2192 de`, "gRPC takes ASCII alone")
	assert.Contains(t, md["x-prompt-trace"][0], `"causal_deps":["0000000000000002","0000000000000004","0000000000000009"],"prompt_chain":["router",`)
}

func TestAHopIsTracedBackToItsCauses(t *testing.T) {
	c, _ := propagation.PromptChainFromContext(ragChain())
	assert.Equal(t, []string{"answer", "retrieve docs", "rewrite → de", "router", "retrieve web"}, names(c.Backtrace(spanID(5))))
	assert.Equal(t, []string{"rewrite → de", "retrieve web", "router"}, names(c.Backtrace(spanID(4))))
	assert.Equal(t, []string{"router"}, names(c.Backtrace(spanID(1))))
	assert.Empty(t, c.Backtrace(spanID(9)), "no hop of the chain")
	assert.Empty(t, c.Backtrace(trace.SpanID{}))

	circle := propagation.PromptChain{Hops: []propagation.Hop{
		{Name: "a", SpanID: spanID(1), Causes: []trace.SpanID{spanID(2), spanID(1)}},
		{Name: "b", SpanID: spanID(2), Causes: []trace.SpanID{spanID(1)}},
		{Name: "b again", SpanID: spanID(2)},
	}}
	assert.Equal(t, []string{"a", "b", "b again"}, names(circle.Backtrace(spanID(1))))
}

// The span of a hop links to what caused it.
func TestTheCausesOfAHopAreLinks(t *testing.T) {
	provider := sdktrace.NewTracerProvider()
	defer func() { assert.NoError(t, provider.Shutdown(context.Background())) }()
	c, _ := propagation.PromptChainFromContext(ragChain())
	_, span := provider.Tracer("test").Start(context.Background(), "answer", trace.WithLinks(c.Links()...))
	defer span.End()
	links := span.(sdktrace.ReadOnlySpan).Links()
	require.Len(t, links, 3)
	for i, n := range []byte{2, 4, 9} {
		assert.Equal(t, c.TraceID, links[i].SpanContext.TraceID())
		assert.Equal(t, spanID(n), links[i].SpanContext.SpanID())
	}
	assert.Empty(t, propagation.PromptChain{}.Links())
}

func TestAChainIsBounded(t *testing.T) {
	ctx := inSpan(context.Background(), 1)
	for i := range 100 {
		causes := make([]trace.SpanID, 0, 80)
		for n := range byte(80) {
			causes = append(causes, spanID(n/2)) // one invalid, each twice
		}
		ctx = propagation.ContextWithHop(ctx, fmt.Sprint(i, strings.Repeat("ü", 100)), causes...)
	}
	c, _ := propagation.PromptChainFromContext(ctx)
	require.Len(t, c.Hops, propagation.MaxHops)
	assert.True(t, strings.HasPrefix(c.Hops[31].Name, "99ü"), "the newest stay")
	assert.True(t, strings.HasPrefix(c.Hops[0].Name, "68ü"))
	assert.Len(t, c.Hops[0].Causes, 32)
	assert.Equal(t, spanID(32), c.Hops[0].Causes[31], "each once")
	assert.Len(t, c.Hops[0].Name, 128)

	c.ContextHash = strings.Repeat("x", 129)
	c.Hops = []propagation.Hop{{Name: "\xff\xfe ok"}, {Name: strings.Repeat("x", 127) + "ü"}, {Name: strings.Repeat("x", 125) + "\xff\xff\xff\xff"}}
	got, _ := propagation.PromptChainFromContext(propagation.ContextWithPromptChain(ctx, c))
	assert.Empty(t, got.ContextHash)
	assert.Equal(t, "\uFFFD ok", got.Hops[0].Name)
	assert.Equal(t, strings.Repeat("x", 127), got.Hops[1].Name)
	assert.Equal(t, strings.Repeat("x", 125)+"\uFFFD", got.Hops[2].Name)
	assert.Equal(t, "\xff\xfe ok", c.Hops[0].Name, "the caller's own is not changed")
}

func TestAChainBelongsToOneTrace(t *testing.T) {
	ctx := ragChain()
	elsewhere := trace.ContextWithSpanContext(ctx, extractW3C(benchTraceparent))
	_, ok := propagation.PromptChainFromContext(elsewhere)
	assert.False(t, ok)
	assert.NotContains(t, inject(chains, elsewhere), "x-prompt-trace")
	c, _ := propagation.PromptChainFromContext(propagation.ContextWithHop(elsewhere, "router"))
	assert.Equal(t, []string{"router"}, names(c.Hops), "a new one")

	foreign, _ := propagation.PromptChainFromContext(ctx)
	assert.Equal(t, elsewhere, propagation.ContextWithPromptChain(elsewhere, foreign))
	assert.Equal(t, context.Background(), propagation.ContextWithHop(context.Background(), "router"), "no span, no hop")
	assert.NotContains(t, inject(propagation.New(), ctx), "x-prompt-trace", "not asked for")

	// Two branches of one context do not share their hops.
	a, b := propagation.ContextWithHop(ctx, "a"), propagation.ContextWithHop(ctx, "b")
	chainA, _ := propagation.PromptChainFromContext(a)
	chainB, _ := propagation.PromptChainFromContext(b)
	assert.Equal(t, "a", chainA.Hops[5].Name)
	assert.Equal(t, "b", chainB.Hops[5].Name)
}

func TestAChainIsReadOrNot(t *testing.T) {
	const id = `"trace_id":"` + traceHex + `"`
	for _, tt := range []struct {
		why, value string
		want       []string
	}{
		{"names alone", `{` + id + `,"prompt_chain":["a","b"]}`, []string{"a", "b"}},
		{"unknown members", `{` + id + `,"prompt_chain":["a"],"x":[{}],"hops":"no"}`, nil},
		{"hops of another number", `{` + id + `,"prompt_chain":["a","b"],"hops":[{"span_id":"` + spanHex + `"}]}`, []string{"a", "b"}},
		{"bad spans", `{` + id + `,"span_id":"x","prompt_chain":["a"],"causal_deps":["x","","` + zeros + `"]}`, []string{"a"}},
		{"40 hops", `{` + id + `,"prompt_chain":["` + strings.Repeat(`x","`, 39) + `y"]}`, append(strings.Split(strings.Repeat("x", 31), ""), "y")},
		{"no hops", `{` + id + `,"prompt_chain":[]}`, nil},
		{"no trace", `{"prompt_chain":["a"]}`, nil},
		{"another trace", `{"trace_id":"` + traceHex[:31] + `1","prompt_chain":["a"]}`, nil},
		{"a short trace", `{"trace_id":"` + halfHex + `","prompt_chain":["a"]}`, nil},
		{"no object", `["a"]`, nil},
		{"no JSON", `user→router→llm-a`, nil},
		{"enormous", `{` + id + `,"prompt_chain":["` + strings.Repeat("x", 8192) + `"]}`, nil},
		{"deep", `{` + id + `,"prompt_chain":` + strings.Repeat("[", 4000) + strings.Repeat("]", 4000) + `}`, nil},
	} {
		ctx := chains.Extract(context.Background(), propagation.HTTPHeader{"Traceparent": {benchTraceparent}, "X-Prompt-Trace": {tt.value}})
		assert.True(t, trace.SpanContextFromContext(ctx).IsValid(), "%s broke the trace", tt.why)
		c, _ := propagation.PromptChainFromContext(ctx)
		assert.Equal(t, tt.want, names(c.Hops), tt.why)
		assert.Empty(t, c.Links(), tt.why)
	}
	ctx := chains.Extract(context.Background(), propagation.Map{"x-prompt-trace": `{` + id + `,"prompt_chain":["a"]}`})
	_, ok := propagation.PromptChainFromContext(ctx)
	assert.False(t, ok, "nothing to verify it against")
}
