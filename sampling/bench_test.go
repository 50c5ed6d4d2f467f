package sampling_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric/noop"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/sampling"
)

// discard is an exporter that costs nothing.
type discard struct{}

func (discard) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error { return nil }
func (discard) Shutdown(context.Context) error                             { return nil }

// tape records the calls that a provider makes to its processor, to be played to a
// Tail alone.
type tape struct{ calls []call }

type call struct {
	ctx   context.Context
	start sdktrace.ReadWriteSpan
	end   sdktrace.ReadOnlySpan // set where a span ends
}

func (p *tape) OnStart(ctx context.Context, span sdktrace.ReadWriteSpan) {
	p.calls = append(p.calls, call{ctx: ctx, start: span})
}
func (p *tape) OnEnd(span sdktrace.ReadOnlySpan) { p.calls = append(p.calls, call{end: span}) }
func (*tape) Shutdown(context.Context) error     { return nil }
func (*tape) ForceFlush(context.Context) error   { return nil }

// next plays the calls from the i-th on, up to the end of a span, and returns how far it
// came.
func (p *tape) next(tail *sampling.Tail, i int) int {
	for {
		c := &p.calls[i%len(p.calls)]
		i++
		if c.end != nil {
			tail.OnEnd(c.end)
			return i
		}
		tail.OnStart(c.ctx, c.start)
	}
}

// attributes are those of a usual span.
func attributes() []attribute.KeyValue {
	return []attribute.KeyValue{
		attribute.String("http.request.method", "POST"), attribute.String("http.route", "/v1/chat/completions"),
		attribute.Int("http.response.status_code", 200), attribute.String("server.address", "gateway"),
		attribute.Int("server.port", 8080),
	}
}

// traceOf10 runs a trace of ten spans with five attributes each.
func traceOf10(tracer trace.Tracer, fail bool) {
	ctx, root := tracer.Start(context.Background(), "POST /v1/chat/completions", trace.WithSpanKind(trace.SpanKindServer))
	root.SetAttributes(attributes()...)
	for range 3 {
		inner, span := tracer.Start(ctx, "chat")
		span.SetAttributes(attributes()...)
		for range 2 {
			_, leaf := tracer.Start(inner, "phase")
			leaf.SetAttributes(attributes()...)
			if fail {
				leaf.SetStatus(codes.Error, "")
			}
			leaf.End()
		}
		span.End()
	}
	root.End()
}

func policy() sampling.Policy {
	return sampling.Any(sampling.Errors(), sampling.Slow(time.Hour), sampling.Baseline(1e-9))
}

func newTail(b testing.TB, p sampling.Policy, opts ...sampling.Option) *sampling.Tail {
	tail, err := sampling.NewTail(discard{}, p, append([]sampling.Option{sampling.WithMeterProvider(noop.NewMeterProvider())}, opts...)...)
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, tail.Shutdown(context.Background())) })
	return tail
}

// measure reports allocations, and the processor time of the whole process, which a busy
// machine changes less than the time on the clock.
func measure(b *testing.B) {
	b.ReportAllocs()
	start := cpuTime()
	b.Cleanup(func() { b.ReportMetric(float64(cpuTime()-start)/float64(b.N), "cpu-ns/op") })
}

// prepare records traces of ten spans; few, because a span that has just ended is in the
// processor's cache.
func prepare(fail bool) *tape {
	p := &tape{}
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(p),
		sdktrace.WithSampler(sdktrace.AlwaysRecord(sdktrace.NeverSample())))
	for range 16 {
		traceOf10(provider.Tracer("bench"), fail)
	}
	return p
}

func TestADroppedSpanAllocatesNothing(t *testing.T) {
	p, tail := prepare(false), newTail(t, policy())
	play := func() {
		for i := 0; i < len(p.calls); {
			i = p.next(tail, i)
		}
	}
	play() // makes room for as many traces as there are at a time
	assert.Zero(t, testing.AllocsPerRun(100, play))
}

// BenchmarkTail has one span an op. "dropped" and "kept" are what the Tail adds to a
// span that is recorded: OnStart and OnEnd, on prepared spans of traces of ten. "sampler"
// is one call of it for a span below another, "root" for the first span of a request,
// which tells when it began. "plain" is a span with five attributes that is recorded and
// seen by an empty processor, "never" the same span under NeverSample, "whole" under
// a Tail that drops it.
func BenchmarkTail(b *testing.B) {
	replay := func(b *testing.B, fail bool) {
		p, tail := prepare(fail), newTail(b, policy())
		i := 0
		for measure(b); b.Loop(); {
			i = p.next(tail, i)
		}
	}
	b.Run("dropped", func(b *testing.B) { replay(b, false) })
	b.Run("kept", func(b *testing.B) { replay(b, true) })
	b.Run("sampler", func(b *testing.B) {
		tail := newTail(b, policy())
		sampler := tail.Sampler()
		provider := sdktrace.NewTracerProvider(tail.ProviderOptions()...)
		ctx, root := provider.Tracer("bench").Start(context.Background(), "root")
		defer root.End()
		p := sdktrace.SamplingParameters{
			ParentContext: ctx, TraceID: root.SpanContext().TraceID(), Name: "chat", Attributes: attributes(),
		}
		for measure(b); b.Loop(); {
			sampler.ShouldSample(p)
		}
	})
	b.Run("root", func(b *testing.B) {
		sampler := newTail(b, policy()).Sampler()
		p := sdktrace.SamplingParameters{
			ParentContext: context.Background(), TraceID: trace.TraceID{1}, Name: "POST /v1/chat/completions", Attributes: attributes(),
			Kind: trace.SpanKindServer,
		}
		for measure(b); b.Loop(); {
			sampler.ShouldSample(p)
		}
	})
	whole := func(b *testing.B, opts ...sdktrace.TracerProviderOption) {
		tracer := sdktrace.NewTracerProvider(opts...).Tracer("bench")
		n := 0
		for measure(b); b.Loop(); n++ {
			if n%10 == 0 {
				traceOf10(tracer, false)
			}
		}
	}
	b.Run("plain", func(b *testing.B) {
		whole(b, sdktrace.WithSampler(sdktrace.AlwaysRecord(sdktrace.NeverSample())), sdktrace.WithSpanProcessor(nothing{}))
	})
	b.Run("never", func(b *testing.B) { whole(b, sdktrace.WithSampler(sdktrace.NeverSample())) })
	b.Run("whole", func(b *testing.B) { whole(b, newTail(b, policy()).ProviderOptions()...) })
}

// BenchmarkAbovePlain says what a Tail costs a service beside what recording costs it: the
// three take turns, so that a busy machine burdens them alike. An op is a trace of ten
// spans under each of them. "plain-ns/span" is processor time for recording above
// never sampling, "tail-ns/span" that of the Tail above recording, and
// "tail-cores" the same at 100,000 spans a second; the Tail keeps one trace in a hundred.
func BenchmarkAbovePlain(b *testing.B) {
	tail := newTail(b, sampling.Any(sampling.Errors(), sampling.Slow(time.Hour), sampling.Baseline(0.01)))
	tracers := [3]trace.Tracer{}
	for i, opts := range [][]sdktrace.TracerProviderOption{
		{sdktrace.WithSampler(sdktrace.NeverSample())},
		{sdktrace.WithSampler(sdktrace.AlwaysRecord(sdktrace.NeverSample())), sdktrace.WithSpanProcessor(nothing{})},
		tail.ProviderOptions(),
	} {
		tracers[i] = sdktrace.NewTracerProvider(opts...).Tracer("bench")
	}
	const turn = 2000 // traces
	var used [3]time.Duration
	n := 0
	for ; b.Loop(); n++ {
		if n%turn != 0 {
			continue
		}
		for i, tracer := range tracers {
			start := cpuTime()
			for range turn {
				traceOf10(tracer, false)
			}
			used[i] += cpuTime() - start
		}
	}
	spans := float64((n+turn-1)/turn) * turn * 10
	b.ReportMetric(float64(used[1]-used[0])/spans, "plain-ns/span")
	above := float64(used[2]-used[1]) / spans
	b.ReportMetric(above, "tail-ns/span")
	b.ReportMetric(above*100_000/1e9, "tail-cores")
}

// nothing is the empty processor.
type nothing struct{}

func (nothing) OnStart(context.Context, sdktrace.ReadWriteSpan) {}
func (nothing) OnEnd(sdktrace.ReadOnlySpan)                     {}
func (nothing) Shutdown(context.Context) error                  { return nil }
func (nothing) ForceFlush(context.Context) error                { return nil }
