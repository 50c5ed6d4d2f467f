package genaitrace_test

import (
	"context"
	"io"
	"iter"
	"testing"

	metricnoop "go.opentelemetry.io/otel/metric/noop"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/genaitrace/otelgenai/genaitrace"
)

// BenchmarkWrapped is one item of a stream: without a wrapper, wrapped where a
// span records, with an observer, and where nothing records.
func BenchmarkWrapped(b *testing.B) {
	tp, mp := benchProviders(sdktrace.AlwaysSample())
	recording := genaitrace.New(genaitrace.WithTracerProvider(tp), genaitrace.WithMeterProvider(mp))
	off, _ := benchProviders(sdktrace.NeverSample())
	nothing := genaitrace.New(genaitrace.WithTracerProvider(off), genaitrace.WithMeterProvider(metricnoop.NewMeterProvider()))
	observe := func(_ *genaitrace.Call, n int) genaitrace.ChunkKind { return genaitrace.ChunkKind(n & 1) }
	start := func(tr *genaitrace.Tracer) *genaitrace.Call {
		_, call := tr.StartCall(context.Background(), benchRequest())
		return call
	}
	endless := iter.Seq2[int, error](func(yield func(int, error) bool) {
		for n := 0; yield(n, nil); n++ {
		}
	})
	one := func() (int, error) { return 1, nil }

	for name, wrap := range map[string]func(iter.Seq2[int, error]) iter.Seq2[int, error]{
		"Range/bare": func(seq iter.Seq2[int, error]) iter.Seq2[int, error] { return seq },
		"Range/recording": func(seq iter.Seq2[int, error]) iter.Seq2[int, error] {
			return genaitrace.RangeChunks(start(recording), seq, nil)
		},
		"Range/observed": func(seq iter.Seq2[int, error]) iter.Seq2[int, error] {
			return genaitrace.RangeChunks(start(recording), seq, observe)
		},
		"Range/notrecording": func(seq iter.Seq2[int, error]) iter.Seq2[int, error] {
			return genaitrace.RangeChunks(start(nothing), seq, observe)
		},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			n := 0 // b.Loop has no place in a loop over a sequence
			for range wrap(endless) {
				if n++; n >= b.N {
					b.StopTimer() // what the end of a call costs is in genaihttp's benchmarks of a stream
					break
				}
			}
		})
	}
	for name, recv := range map[string]func() (int, error){
		"Receive/bare":         one,
		"Receive/recording":    first(genaitrace.ReceiveChunks(start(recording), one, nil)),
		"Receive/observed":     first(genaitrace.ReceiveChunks(start(recording), one, observe)),
		"Receive/notrecording": first(genaitrace.ReceiveChunks(start(nothing), one, observe)),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				recv()
			}
		})
	}
	for name, r := range map[string]io.Reader{
		"Read/bare":         zeros{},
		"Read/recording":    genaitrace.ReadChunks(start(recording), zeros{}, nil),
		"Read/notrecording": genaitrace.ReadChunks(start(nothing), zeros{}, nil),
	} {
		b.Run(name, func(b *testing.B) {
			p := make([]byte, 64)
			b.ReportAllocs()
			for b.Loop() {
				r.Read(p)
			}
		})
	}
	ctx, inf := recording.StartInference(context.Background(), benchRequest())
	_, d := inf.StartDecode(ctx)
	tokens := genaitrace.ReceiveTokens(d, one, nil)
	b.Run("Tokens/recording", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			tokens()
		}
	})
	inf.End()
}

func first[A, B any](a A, _ B) A { return a }
