package collectortest

import (
	"context"
	"encoding/binary"
	"flag"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/tailsamplingprocessor"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/featuregate"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/sampling"
	"github.com/genaitrace/otelgenai/semconv"
)

// spans collects what ends, and is an exporter too.
type spans struct {
	mu  sync.Mutex
	all []sdktrace.ReadOnlySpan
}

func (s *spans) OnStart(context.Context, sdktrace.ReadWriteSpan) {}
func (s *spans) OnEnd(span sdktrace.ReadOnlySpan) {
	s.ExportSpans(context.Background(), []sdktrace.ReadOnlySpan{span})
}
func (s *spans) ForceFlush(context.Context) error { return nil }
func (s *spans) Shutdown(context.Context) error   { return nil }

func (s *spans) ExportSpans(_ context.Context, spans []sdktrace.ReadOnlySpan) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, spans...)
	return nil
}

// A decision is what became of a kept trace: how often each span came, and the
// probability that its spans carry, 0 where they carry none.
type decision struct {
	spans       map[string]int
	probability float64
}

type decisions map[string]*decision

func (d decisions) add(traceID, spanID, tracestate string) {
	if d[traceID] == nil {
		d[traceID] = &decision{spans: map[string]int{}}
	}
	d[traceID].spans[spanID]++
	d[traceID].probability = probability(tracestate)
}

// ids are how often each span of each trace came.
func (d decisions) ids() map[string]map[string]int {
	ids := map[string]map[string]int{}
	for id, trace := range d {
		ids[id] = trace.spans
	}
	return ids
}

// probability reads th from the ot member of a tracestate.
func probability(tracestate string) float64 {
	for member := range strings.SplitSeq(tracestate, ",") {
		value, ok := strings.CutPrefix(member, "ot=")
		if !ok {
			continue
		}
		for field := range strings.SplitSeq(value, ";") {
			if th, ok := strings.CutPrefix(field, "th:"); ok {
				n, err := strconv.ParseUint((th + "00000000000000")[:14], 16, 64)
				if err == nil {
					return 1 - float64(n)/(1<<56)
				}
			}
		}
	}
	return 0
}

func ofSDK(spans []sdktrace.ReadOnlySpan) decisions {
	d := decisions{}
	for _, span := range spans {
		sc := span.SpanContext()
		d.add(sc.TraceID().String(), sc.SpanID().String(), sc.TraceState().String())
	}
	return d
}

func ofOTLP(spans []ptrace.Span) decisions {
	d := decisions{}
	for _, span := range spans {
		d.add(span.TraceID().String(), span.SpanID().String(), span.TraceState().AsRaw())
	}
	return d
}

// traffic makes the spans of n traces in a service with a Tail, and returns all of them, and
// what the Tail made of them. All carry "ot=th:0", for the head samples everything, as where
// a Collector decides.
func traffic(t testing.TB, p sampling.Policy, n int, r *rand.Rand) (all []sdktrace.ReadOnlySpan, kept decisions) {
	t.Helper()
	var ended, exported spans
	tail, err := sampling.NewTail(&exported, p, sampling.WithHead(sampling.HeadAlways()))
	require.NoError(t, err)
	provider := sdktrace.NewTracerProvider(append(tail.ProviderOptions(), sdktrace.WithSpanProcessor(&ended))...)
	tracer := provider.Tracer("requests")
	for range n {
		request(tracer, r)
	}
	require.NoError(t, tail.Shutdown(context.Background()))
	require.NoError(t, provider.Shutdown(context.Background()))
	return ended.all, ofSDK(exported.all)
}

func pick[T any](r *rand.Rand, values ...T) T { return values[r.IntN(len(values))] }

// request makes a trace in which everything that policies look at may happen. Limits are
// met exactly and missed by a nanosecond.
func request(tracer trace.Tracer, r *rand.Rand) {
	start := time.Now()
	limit := pick(r, time.Millisecond, time.Second, 2*time.Second, 3*time.Second, 20*time.Second)
	lasts := limit + pick(r, 0, -1, 1, time.Millisecond, -time.Millisecond, time.Duration(r.IntN(1e9)))
	at := func(share float64) trace.SpanEventOption {
		return trace.WithTimestamp(start.Add(time.Duration(share * float64(lasts))))
	}
	var attrs []attribute.KeyValue
	if model := pick(r, "", "fast", "slow $$1", "another"); model != "" {
		attrs = append(attrs, attribute.String("gen_ai.request.model", model))
	}
	name := pick(r, "GET /health", "GET /healthz", "chat a", "chat b", "embed")
	ctx, root := tracer.Start(context.Background(), name, at(0), trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(attrs...))
	for range r.IntN(4) {
		_, span := tracer.Start(ctx, pick(r, "chat a", "retrieve", "GET /health"), at(0.1), trace.WithSpanKind(trace.SpanKind(1+r.IntN(5))))
		if r.IntN(3) == 0 {
			span.SetAttributes(pick(r,
				attribute.String("k", "text"), attribute.String("k", "7"), attribute.String("k", "true"), attribute.Int("k", 7),
				attribute.Int("k", 1_000_000), attribute.Float64("k", 1e6), attribute.Float64("k", 7), attribute.Float64("k", 1.5),
				attribute.Int("k", -3), attribute.Bool("k", true), attribute.StringSlice("k", []string{"7"}),
			))
		}
		if r.IntN(10) == 0 {
			span.AddEvent(pick(r, "content_blocked", "early_stop"))
		}
		if r.IntN(6) == 0 {
			span.SetStatus(codes.Error, "")
		}
		if r.IntN(4) == 0 {
			span.SetAttributes(pick(r,
				attribute.Float64("llm.ttft_ms", 1499.9), attribute.Float64("llm.ttft_ms", 1500), attribute.Int("llm.ttft_ms", 1500),
				attribute.Int("llm.ttft_ms", 3), attribute.String("llm.ttft_ms", "2000"),
			))
		}
		span.End(at(0.9 * r.Float64()))
	}
	root.End(at(1))
}

// followsTracestate makes the Collectors of the test sample consistently.
func followsTracestate(t testing.TB) {
	t.Helper()
	const gate = "processor.tailsamplingprocessor.usetracestate"
	require.NoError(t, featuregate.GlobalRegistry().Set(gate, true))
	t.Cleanup(func() { require.NoError(t, featuregate.GlobalRegistry().Set(gate, false)) })
}

// assertSame checks that two deciders kept the same traces, each span once, and say the same
// probability.
func assertSame(t *testing.T, all, tail, collector decisions) {
	t.Helper()
	for id := range all {
		byTail, byCollector := tail[id], collector[id]
		switch {
		case byTail == nil && byCollector == nil:
		case byTail == nil:
			t.Errorf("trace %s is kept by the Collector only", id)
		case byCollector == nil:
			t.Errorf("trace %s is kept by the Tail only", id)
		default:
			assert.Equal(t, all[id].spans, byTail.spans, "of the Tail")
			assert.Equal(t, all[id].spans, byCollector.spans, "of the Collector")
			assert.InDelta(t, byTail.probability, byCollector.probability, 1e-12)
		}
	}
	for id := range collector {
		assert.Contains(t, all, id)
	}
}

// send sends spans as the SDK does, a hundred at a time.
func send(t testing.TB, address string, spans []sdktrace.ReadOnlySpan) {
	t.Helper()
	exporter, err := otlptracegrpc.New(context.Background(), otlptracegrpc.WithEndpoint(address), otlptracegrpc.WithInsecure())
	require.NoError(t, err)
	for len(spans) > 0 {
		batch := spans[:min(len(spans), 100)]
		require.NoError(t, exporter.ExportSpans(context.Background(), batch))
		spans = spans[len(batch):]
	}
	require.NoError(t, exporter.Shutdown(context.Background()))
}

// judged gives spans to the processor of the sampling tier, with the configuration for
// a policy, and returns what it keeps.
func judged(t testing.TB, c sampling.Collector, all []sdktrace.ReadOnlySpan) decisions {
	t.Helper()
	config, err := load(c.TailSampling())
	require.NoError(t, err)
	var sink consumertest.TracesSink
	factory := tailsamplingprocessor.NewFactory()
	p, err := factory.CreateTraces(context.Background(), processortest.NewNopSettings(factory.Type()),
		config.Processors[component.NewID(factory.Type())], &sink)
	require.NoError(t, err)
	require.NoError(t, p.Start(context.Background(), componenttest.NewNopHost()))
	for _, traces := range toOTLP(t, all) {
		require.NoError(t, p.ConsumeTraces(context.Background(), traces))
	}
	require.NoError(t, p.Shutdown(context.Background()))
	var kept []ptrace.Span
	for _, traces := range sink.AllTraces() {
		for _, rs := range traces.ResourceSpans().All() {
			for _, ss := range rs.ScopeSpans().All() {
				for _, span := range ss.Spans().All() {
					kept = append(kept, span)
				}
			}
		}
	}
	return ofOTLP(kept)
}

// The sampling tier keeps the traces that a Tail keeps.
func TestTheSamplerDecidesAsATailDoes(t *testing.T) {
	followsTracestate(t)
	for i, p := range expressible {
		t.Run(p.String(), func(t *testing.T) {
			c, err := sampling.CollectorConfig(p, options())
			require.NoError(t, err)
			all, byTail := traffic(t, p, 300, rand.New(rand.NewPCG(uint64(i), 7)))
			assertSame(t, ofSDK(all), byTail, judged(t, c, all))
			t.Logf("%d of 300 traces kept by both", len(byTail))
		})
	}
}

var seed = flag.Uint64("seed", 3, "of the random policies and their traffic")

// Policies of any shape that the Collector takes mean the same there.
func TestRandomPoliciesMeanTheSame(t *testing.T) {
	followsTracestate(t)
	r := rand.New(rand.NewPCG(*seed, 4))
	compared := 0
	for compared < 150 {
		p := randomPolicy(r, 3)
		if p.Validate() != nil {
			continue
		}
		c, err := sampling.CollectorConfig(p, options())
		if err != nil {
			continue
		}
		compared++
		all, byTail := traffic(t, p, 30, r)
		assertSame(t, ofSDK(all), byTail, judged(t, c, all))
		require.False(t, t.Failed(), p.String())
	}
}

// Behind a Tail that exports everything, the share is the one of consistent sampling: the
// traces whose lowest 56 bits are R >= T, as the specification has it.
func TestBehindATailTheShareIsConsistent(t *testing.T) {
	followsTracestate(t)
	var exported spans
	tail, err := sampling.NewTail(&exported, sampling.Baseline(1))
	require.NoError(t, err)
	provider := sdktrace.NewTracerProvider(tail.ProviderOptions()...)
	for range 2000 {
		_, span := provider.Tracer("").Start(context.Background(), "request")
		span.End()
	}
	require.NoError(t, tail.Shutdown(context.Background()))
	c, err := sampling.CollectorConfig(sampling.Baseline(0.25), options())
	require.NoError(t, err)
	kept := judged(t, c, exported.all)
	for _, span := range exported.all {
		id := span.SpanContext().TraceID()
		r := binary.BigEndian.Uint64(id[8:]) & (1<<56 - 1)
		d := kept[id.String()]
		require.Equal(t, r >= 3<<54, d != nil, id)
		if d != nil {
			require.InDelta(t, 0.25, d.probability, 1e-12)
		}
	}
}

// What a Tail kept can be kept by its reason, and what its spans say of their probability
// stays.
func TestWhatATailKeptIsKept(t *testing.T) {
	followsTracestate(t)
	var exported spans
	tail, err := sampling.NewTail(&exported, sampling.Any(sampling.Errors(), sampling.Baseline(0.3)))
	require.NoError(t, err)
	tracer := sdktrace.NewTracerProvider(tail.ProviderOptions()...).Tracer("requests")
	r := rand.New(rand.NewPCG(7, 8))
	for range 300 {
		request(tracer, r)
	}
	require.NoError(t, tail.Shutdown(context.Background()))
	byTail := ofSDK(exported.all)
	require.NotEmpty(t, byTail)
	c, err := sampling.CollectorConfig(sampling.Any(
		sampling.Match("tail", sampling.Selector{Key: semconv.GenAISamplingReasonKey}), sampling.Baseline(0.01),
	), options())
	require.NoError(t, err)
	assert.Equal(t, byTail, judged(t, c, exported.all))
}

// Without the feature gate, or where spans carry no ot, the Collector's own hash takes
// the same share of traces, though not the same traces, and its spans say nothing of it.
func TestTheCollectorsOwnHashKeepsTheSameShare(t *testing.T) {
	const n, ratio = 20_000, 0.1
	c, err := sampling.CollectorConfig(sampling.Baseline(ratio), options())
	require.NoError(t, err)
	var ended spans
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(&ended))
	for range n {
		_, span := provider.Tracer("").Start(context.Background(), "request")
		span.End()
	}
	kept := judged(t, c, ended.all)
	sigma := math.Sqrt(n * ratio * (1 - ratio))
	assert.InDelta(t, n*ratio, len(kept), 3*sigma)
	for id, d := range kept {
		require.Zero(t, d.probability, id)
	}
	t.Logf("%d of %d kept, %.0f ± %.0f expected", len(kept), n, n*ratio, 3*sigma)
}
