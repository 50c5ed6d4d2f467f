package facts_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/genaitrace/facts"
	"github.com/genaitrace/otelgenai/semconv"
)

// record returns a tracer of some other instrumentation under a Processor.
func record(p facts.Processor, opts ...sdktrace.TracerProviderOption) (*sdktrace.TracerProvider, trace.Tracer, *tracetest.SpanRecorder) {
	spans := tracetest.NewSpanRecorder()
	opts = append(opts, sdktrace.WithSpanProcessor(p), sdktrace.WithSpanProcessor(spans))
	tp := sdktrace.NewTracerProvider(opts...)
	return tp, tp.Tracer("database/driver"), spans
}

func attributes(s sdktrace.ReadOnlySpan) map[string]any {
	m := map[string]any{}
	for _, kv := range s.Attributes() {
		m[string(kv.Key)] = kv.Value.AsInterface()
	}
	return m
}

func acme(ctx context.Context) context.Context {
	return genaitrace.ContextWith(ctx, genaitrace.TenantID("acme"), genaitrace.PromptVersion("v3"))
}

func TestSpansOfOthersAreStampedWithTheFactsOfTheirContext(t *testing.T) {
	_, tracer, spans := record(facts.Processor{})
	ctx, before := tracer.Start(t.Context(), "before")
	ctx, below := tracer.Start(acme(ctx), "below")
	_, deeper := tracer.Start(genaitrace.ContextWith(ctx, genaitrace.PromptVersion("v4")), "deeper", trace.WithNewRoot())
	for _, s := range []trace.Span{deeper, below, before} {
		s.End()
	}
	got := map[string]map[string]any{}
	for _, s := range spans.Ended() {
		got[s.Name()] = attributes(s)
	}
	assert.Equal(t, map[string]map[string]any{
		"before": {},
		"below":  {"genai.tenant.id": "acme", "gen_ai.prompt.version": "v3"},
		"deeper": {"genai.tenant.id": "acme", "gen_ai.prompt.version": "v4"},
	}, got)
}

func TestAnAttributeThatASpanWasStartedWithStays(t *testing.T) {
	_, tracer, spans := record(facts.Processor{})
	ctx := acme(t.Context())
	for name, start := range map[string][]attribute.KeyValue{
		"one":  {semconv.GenAITenantID("other"), attribute.Int("n", 1)},
		"none": {attribute.Int("n", 1)},
	} {
		_, span := tracer.Start(ctx, name, trace.WithAttributes(start...))
		span.SetAttributes(attribute.Int("late", 2))
		span.End()
	}
	for _, s := range spans.Ended() {
		want := map[string]any{"genai.tenant.id": "acme", "gen_ai.prompt.version": "v3", "n": int64(1), "late": int64(2)}
		if s.Name() == "one" {
			want["genai.tenant.id"] = "other"
		}
		assert.Equal(t, want, attributes(s), s.Name())
	}
	assert.Equal(t, "acme", genaitrace.FactsFromContext(ctx)[1].Value.AsString(), "the facts are as they were")
}

func TestFactsAreWrittenInTheWordsOfTheVocabulary(t *testing.T) {
	for words, want := range map[semconv.Vocabulary]map[string]any{
		semconv.Standard: {"genai.tenant.id": "acme", "gen_ai.prompt.version": "v3"},
		semconv.Both:     {"genai.tenant.id": "acme", "gen_ai.prompt.version": "v3", "genai.prompt.version": "v3"},
		semconv.House:    {"genai.tenant.id": "acme", "genai.prompt.version": "v3"},
		semconv.Legacy:   {"genai.tenant.id": "acme", "gen_ai.prompt.version": "v3"},
	} {
		_, tracer, spans := record(facts.Processor{Vocabulary: words})
		ctx := acme(t.Context())
		for range 2 { // the shared facts stay in Standard's words
			_, span := tracer.Start(ctx, "s")
			span.End()
		}
		assert.Equal(t, "gen_ai.prompt.version", string(genaitrace.FactsFromContext(ctx)[0].Key))
		require.Len(t, spans.Ended(), 2)
		for _, s := range spans.Ended() {
			assert.Equal(t, want, attributes(s), words)
		}
	}
}

// The spans of genaitrace carry the facts in the words of their Tracer.
func TestSpansOfGenaitraceAreLeftAlone(t *testing.T) {
	tp, _, spans := record(facts.Processor{Vocabulary: semconv.Both})
	tr := genaitrace.New(genaitrace.WithTracerProvider(tp))
	_, call := tr.StartCall(acme(t.Context()), genaitrace.Request{})
	call.End()
	got := attributes(spans.Ended()[0])
	assert.Equal(t, "acme", got["genai.tenant.id"])
	assert.NotContains(t, got, "genai.prompt.version")
}

func TestTheAttributeLimitOfTheSDKHolds(t *testing.T) {
	limits := sdktrace.NewSpanLimits()
	limits.AttributeCountLimit = 2
	_, tracer, spans := record(facts.Processor{}, sdktrace.WithRawSpanLimits(limits))
	_, span := tracer.Start(acme(t.Context()), "s", trace.WithAttributes(attribute.Int("n", 1)))
	span.End()
	got := spans.Ended()[0]
	assert.Len(t, got.Attributes(), 2)
	assert.Equal(t, int64(1), attributes(got)["n"], "what the span was started with")
	assert.Equal(t, 1, got.DroppedAttributes())
}

func TestContextsAreSharedByManyGoroutines(t *testing.T) {
	_, tracer, spans := record(facts.Processor{Vocabulary: semconv.House})
	ctx := acme(t.Context())
	var done sync.WaitGroup
	for range 8 {
		done.Go(func() {
			for i := range 50 {
				_, span := tracer.Start(ctx, fmt.Sprint(i), trace.WithAttributes(semconv.GenAITenantID("mine")))
				span.End()
			}
		})
	}
	done.Wait()
	assert.Len(t, spans.Ended(), 400)
}

func TestASpanWhoseContextHasNoFactsCostsNoAllocation(t *testing.T) {
	tp := sdktrace.NewTracerProvider()
	ctx, span := tp.Tracer("t").Start(t.Context(), "s")
	defer span.End()
	rw := span.(sdktrace.ReadWriteSpan)
	assert.Zero(t, testing.AllocsPerRun(100, func() { facts.Processor{}.OnStart(ctx, rw) }))
}

// BenchmarkOnStart is what a span of somebody else costs from its start to its
// end: alone, under a Processor where its context has no facts, with four facts,
// and with the same four given to its start.
func BenchmarkOnStart(b *testing.B) {
	four := genaitrace.ContextWith(context.Background(), genaitrace.TenantID("acme"), genaitrace.UserTier("free"),
		genaitrace.PromptVersion("v3"), genaitrace.ConversationID("conv-1"))
	span := func(b *testing.B, ctx context.Context, opts []sdktrace.TracerProviderOption, start ...trace.SpanStartOption) {
		b.Helper()
		tracer := sdktrace.NewTracerProvider(opts...).Tracer("bench")
		start = append(start, trace.WithAttributes(attribute.String("db.system.name", "postgresql")))
		b.ReportAllocs()
		for b.Loop() {
			_, span := tracer.Start(ctx, "query", start...)
			span.End()
		}
	}
	exporter := sdktrace.WithSpanProcessor(discard{})
	without := []sdktrace.TracerProviderOption{exporter}
	with := []sdktrace.TracerProviderOption{sdktrace.WithSpanProcessor(facts.Processor{}), exporter}
	b.Run("without", func(b *testing.B) { span(b, four, without) })
	b.Run("nofacts", func(b *testing.B) { span(b, context.Background(), with) })
	b.Run("facts", func(b *testing.B) { span(b, four, with) })
	b.Run("byhand", func(b *testing.B) { span(b, four, without, trace.WithAttributes(genaitrace.FactsFromContext(four)...)) })
}

// discard stands for an exporter.
type discard struct{ sdktrace.SpanProcessor }

func (discard) OnStart(context.Context, sdktrace.ReadWriteSpan) {}
func (discard) OnEnd(sdktrace.ReadOnlySpan)                     {}
