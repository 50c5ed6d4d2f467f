package genaitrace_test

import (
	"context"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/genaitrace"
)

// discard stands for an exporter: the SDK makes the snapshot of each span that
// it would export, and the span goes no further.
type discard struct{}

func (discard) OnStart(context.Context, sdktrace.ReadWriteSpan) {}
func (discard) OnEnd(sdktrace.ReadOnlySpan)                     {}
func (discard) Shutdown(context.Context) error                  { return nil }
func (discard) ForceFlush(context.Context) error                { return nil }

func benchProviders(sampler sdktrace.Sampler) (trace.TracerProvider, metric.MeterProvider) {
	return sdktrace.NewTracerProvider(sdktrace.WithSampler(sampler), sdktrace.WithSpanProcessor(discard{})),
		sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))
}

// streamLength is the length of the streams of BenchmarkToken, so that neither a
// token clock nor a queue of events grows beyond what a real stream makes of it.
// Where a stream ends and the next one starts, the timer stands still: what that
// costs (packing the timeline, copying the events) is in BenchmarkInference500.
const streamLength = 2000

// BenchmarkToken is the cost of one generated token: with a sampled span, with
// metrics alone, where nothing records, with an event a token, and as an event of
// the otel API with three attributes under the SDK's default limits.
func BenchmarkToken(b *testing.B) {
	decode := func(b *testing.B, tp trace.TracerProvider, mp metric.MeterProvider, opts ...genaitrace.Option) {
		tr := genaitrace.New(append(opts, genaitrace.WithTracerProvider(tp), genaitrace.WithMeterProvider(mp))...)
		ctx, inf := tr.StartInference(context.Background(), benchRequest())
		_, d := inf.StartDecode(ctx)
		b.ReportAllocs()
		for n := 0; b.Loop(); n++ {
			if n == streamLength {
				b.StopTimer()
				n = 0
				d.End()
				_, d = inf.StartDecode(ctx)
				b.StartTimer()
			}
			d.Token()
		}
		inf.End()
	}
	b.Run("recording", func(b *testing.B) {
		tp, mp := benchProviders(sdktrace.AlwaysSample())
		decode(b, tp, mp)
	})
	b.Run("metricsonly", func(b *testing.B) {
		tp, mp := benchProviders(sdktrace.NeverSample())
		decode(b, tp, mp)
	})
	b.Run("notrecording", func(b *testing.B) {
		tp, _ := benchProviders(sdktrace.NeverSample())
		tr := genaitrace.New(genaitrace.WithTracerProvider(tp), genaitrace.WithMeterProvider(metricnoop.NewMeterProvider()))
		ctx, inf := tr.StartInference(context.Background(), benchRequest())
		_, d := inf.StartDecode(ctx)
		b.ReportAllocs()
		for b.Loop() {
			d.Token() // a nil handle: nothing to restart
		}
	})
	b.Run("everytoken", func(b *testing.B) { // an event a token, each kept
		limits := sdktrace.NewSpanLimits()
		limits.EventCountLimit = streamLength + 100
		tp := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(discard{}), sdktrace.WithRawSpanLimits(limits))
		_, mp := benchProviders(sdktrace.AlwaysSample())
		decode(b, tp, mp, genaitrace.WithTokenEvents(streamLength))
	})
	b.Run("clock", func(b *testing.B) { // what a token cannot do without
		begin := time.Now()
		b.ReportAllocs()
		for b.Loop() {
			elapsed = time.Since(begin)
		}
	})
	b.Run("addevent", func(b *testing.B) {
		tp, _ := benchProviders(sdktrace.AlwaysSample())
		tracer := tp.Tracer("bench")
		_, span := tracer.Start(context.Background(), "decode")
		b.ReportAllocs()
		for n := 0; b.Loop(); n++ {
			if n == streamLength {
				b.StopTimer()
				n = 0
				span.End()
				_, span = tracer.Start(context.Background(), "decode")
				b.StartTimer()
			}
			addTokenEvent(span, n)
		}
		span.End()
	})
}

var elapsed time.Duration // keeps the reading of the clock from being left out

// addTokenEvent is what instrumentation does that writes an event a token.
func addTokenEvent(span trace.Span, n int) {
	span.AddEvent("token", trace.WithAttributes(
		attribute.Int("index", n), attribute.Int("length", 4), attribute.Bool("first", n == 0)))
}
