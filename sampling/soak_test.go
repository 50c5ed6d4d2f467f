package sampling_test

import (
	"context"
	"errors"
	"flag"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"

	"github.com/genaitrace/otelgenai/sampling"
)

var (
	soak  = flag.Duration("soak", time.Second, "how long the mixed load runs")
	large = flag.Bool("large", false, "run traces of a million spans")
)

// What a service may meet in a minute, and in the largest traces:
//
//	go test -race -run 'TestMixedLoad|TestMemory' ./sampling -soak 1m -large

// TestMixedLoadLeavesNothingBehind runs everything at once: traces of many shapes, some
// without end, a custom policy that panics, an exporter that fails and pauses, flushes
// and collections.
func TestMixedLoadLeavesNothingBehind(t *testing.T) {
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(error) {}))
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	before := heap()
	var count atomic.Int64
	e := &counting{}
	e.before = func() error {
		switch count.Add(1) % 50 {
		case 10:
			return errors.New("no route")
		case 20:
			panic("broken")
		case 30:
			time.Sleep(50 * time.Millisecond)
		}
		return nil
	}
	tail, err := sampling.NewTail(e,
		sampling.Any(sampling.Errors(), sampling.Slow(20*time.Millisecond), sampling.Baseline(0.05), sampling.Custom("odd"),
			sampling.AboveQuantile(0.99, sampling.QuantileOptions{}), sampling.TargetRate(100, 0.01, 0.5),
			sampling.Limit(sampling.Match("all", sampling.Selector{Name: "*"}), 100),
			sampling.KeyPath(sampling.Baseline(0.2), sampling.Selector{MinDuration: time.Millisecond})),
		sampling.WithCustom("odd", func(seen sampling.Trace) bool {
			if len(seen.Spans)%7 == 0 {
				panic("seven")
			}
			return len(seen.Spans)%31 == 0
		}),
		sampling.WithLimits(sampling.Limits{Bytes: 4 << 20, QueueBytes: 2 << 20, TraceBytes: 1 << 20, Traces: 2000}))
	require.NoError(t, err)
	provider := sdktrace.NewTracerProvider(tail.ProviderOptions()...)
	tracer := provider.Tracer("soak")

	ctx, cancel := context.WithTimeout(context.Background(), *soak)
	defer cancel()
	var wait sync.WaitGroup
	for g := range 4 {
		wait.Go(func() {
			random := rand.New(rand.NewPCG(uint64(g), 8))
			for ctx.Err() == nil {
				mixedTrace(tail, tracer, random)
			}
		})
	}
	wait.Go(func() {
		for ctx.Err() == nil {
			_ = tail.ForceFlush(ctx)
			time.Sleep(10 * time.Millisecond)
		}
	})
	wait.Wait()
	require.NoError(t, tail.Shutdown(context.Background()))
	require.NoError(t, provider.Shutdown(context.Background()))
	t.Logf("%d spans exported", e.spans.Load())
	assert.Positive(t, e.spans.Load())
	assert.Less(t, heap()-before, 4.0, "MiB more than at the start")
}

func mixedTrace(tail *sampling.Tail, tracer trace.Tracer, random *rand.Rand) {
	ctx, root := tracer.Start(remote(random.Float64(), random.IntN(2) == 0, ""), "root")
	if random.IntN(2) == 0 {
		ctx, root = tracer.Start(context.Background(), "root")
	}
	for range random.IntN(40) {
		inner, span := tracer.Start(ctx, "inner")
		if random.IntN(3) == 0 {
			ctx = inner
		}
		if random.IntN(200) == 0 {
			span.SetStatus(codes.Error, "")
		}
		if random.IntN(100) != 0 {
			span.End()
		}
	}
	if random.IntN(500) == 0 {
		time.Sleep(30 * time.Millisecond)
	}
	if random.IntN(3) == 0 {
		tail.CalleeResponded(ctx, answer(ctx, random.IntN(2) == 0, "genai=k:1,ot=th:0"))
	}
	tail.Promise(ctx, random.IntN(100) == 0)
	if random.IntN(50) != 0 {
		root.End()
	}
	if random.IntN(20) == 0 {
		_, late := tracer.Start(ctx, "late")
		late.End()
	}
}

// counting is an exporter that counts.
type counting struct {
	before func() error
	spans  atomic.Int64
}

func (e *counting) ExportSpans(_ context.Context, spans []sdktrace.ReadOnlySpan) error {
	if err := e.before(); err != nil {
		return err
	}
	for _, span := range spans {
		_ = span.SpanContext()
	}
	e.spans.Add(int64(len(spans)))
	return nil
}
func (*counting) Shutdown(context.Context) error { return nil }

// TestMemoryIsBounded has the two loads that break other tail samplers: a trace without
// end, and roots that never end.
func TestMemoryIsBounded(t *testing.T) {
	spans, roots := 30_000, 3_000
	if *large {
		spans, roots = 1_000_000, 50_000
	}
	const limit = 8 << 20
	t.Run("a trace without end", func(t *testing.T) {
		s := serve(t, sampling.Errors(), sampling.WithLimits(sampling.Limits{Bytes: limit}))
		before := heap()
		ctx, root := s.Start(context.Background(), "root")
		for range spans {
			_, span := s.Start(ctx, "span")
			span.End()
		}
		assert.Less(t, heap()-before, 1.1*limit/(1<<20), "MiB")
		root.End()
		assert.Equal(t, map[string]int64{"dropped": 10_001, "truncated": int64(spans - 10_000)}, s.outcomes())
	})
	t.Run("roots that never end", func(t *testing.T) {
		s := serve(t, sampling.Errors(), sampling.WithLimits(sampling.Limits{Bytes: limit}))
		before := heap()
		var open []trace.Span // what the application holds, not the Tail
		for range roots {
			ctx, root := s.Start(context.Background(), "root")
			open = append(open, root)
			for range 10 {
				_, span := s.Start(ctx, "span")
				span.End()
			}
		}
		const perTrace, perRoot = 600, 700 // bytes, ours and the application's
		assert.Less(t, heap()-before, 1.1*(limit+float64(roots)*(perTrace+perRoot))/(1<<20), "MiB")
		assert.Positive(t, s.outcomes()["shed"])
		assert.LessOrEqual(t, s.metric("genai.sampling.buffer.bytes", "")[""], int64(limit))
		runtime.KeepAlive(open)
	})
}
