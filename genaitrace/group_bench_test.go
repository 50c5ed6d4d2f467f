package genaitrace_test

import (
	"context"
	"sync"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/genaitrace"
)

const benchTasks = 4

// BenchmarkGroup is a fan-out to four tasks that do nothing: by a Group, and by
// goroutines that each start and end a span by hand; and a Group where nothing records.
func BenchmarkGroup(b *testing.B) {
	task := func(context.Context) error { return nil }
	group := func(b *testing.B, sampler sdktrace.Sampler) {
		b.Helper()
		tp, mp := benchProviders(sampler)
		tr := genaitrace.New(genaitrace.WithTracerProvider(tp), genaitrace.WithMeterProvider(mp))
		b.ReportAllocs()
		for b.Loop() {
			g := tr.NewGroup(context.Background())
			for range benchTasks {
				g.Go("search", task)
			}
			if err := g.Wait(); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.Run("otelgenai", func(b *testing.B) { group(b, sdktrace.AlwaysSample()) })
	b.Run("handwritten", func(b *testing.B) {
		tp, _ := benchProviders(sdktrace.AlwaysSample())
		tracer := tp.Tracer("handwritten")
		b.ReportAllocs()
		for b.Loop() {
			var wg sync.WaitGroup
			for range benchTasks {
				wg.Go(func() {
					ctx, span := tracer.Start(context.Background(), "search", trace.WithSpanKind(trace.SpanKindInternal))
					defer span.End()
					_ = task(ctx)
				})
			}
			wg.Wait()
		}
	})
	b.Run("notrecording", func(b *testing.B) { group(b, sdktrace.NeverSample()) })
}
