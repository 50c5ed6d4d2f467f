package sampling_test

import (
	"context"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/sampling"
)

// A model says which spans any(errors, baseline(1/4)) exports, in the plainest way.
type model struct {
	local    map[trace.TraceID]*localTrace // with open spans
	kept     map[trace.TraceID]bool
	exported map[trace.SpanID]int
}

type localTrace struct {
	open  int
	ended []trace.SpanID
	keep  bool
}

func (m *model) start(sc trace.SpanContext) {
	if m.local[sc.TraceID()] == nil {
		m.local[sc.TraceID()] = &localTrace{keep: m.kept[sc.TraceID()]}
	}
	m.local[sc.TraceID()].open++
}

func (m *model) end(sc trace.SpanContext, failed bool) {
	l := m.local[sc.TraceID()]
	l.open--
	l.ended = append(l.ended, sc.SpanID())
	l.keep = l.keep || failed
	if l.open == 0 {
		m.judge(sc.TraceID())
		delete(m.local, sc.TraceID())
	} else if l.keep {
		m.kept[sc.TraceID()] = true
	}
}

// promise is Tail.Promise: what fails is kept from then on.
func (m *model) promise(id trace.TraceID, failed bool) bool {
	l := m.local[id]
	if l == nil {
		return m.kept[id]
	}
	if failed {
		m.keep(id)
	}
	return l.keep || drawn(id)
}

// keep is a callee that keeps its part.
func (m *model) keep(id trace.TraceID) {
	m.kept[id] = true
	if l := m.local[id]; l != nil {
		l.keep = true
	}
}

// drawn reports whether the baseline has a trace.
func drawn(id trace.TraceID) bool { return binary.BigEndian.Uint64(id[8:])%(1<<56) >= 3<<54 }

func (m *model) judge(id trace.TraceID) {
	if l := m.local[id]; l.keep || drawn(id) {
		m.kept[id] = true
		for _, span := range l.ended {
			m.exported[span]++
		}
	}
}

// TestTheSpansOfAKeptTraceAreExportedOnceAndThoseOfADroppedOneNever runs traces of any
// shape: trees, several local roots, spans that end before or after their parents or
// start after their trace is over, spans that never end, and what is told to callers
// and heard from callees in between.
func TestTheSpansOfAKeptTraceAreExportedOnceAndThoseOfADroppedOneNever(t *testing.T) {
	runs := 300
	if testing.Short() {
		runs = 30
	}
	for seed := range runs {
		random := rand.New(rand.NewPCG(uint64(seed), 8))
		m := &model{map[trace.TraceID]*localTrace{}, map[trace.TraceID]bool{}, map[trace.SpanID]int{}}
		s := serve(t, sampling.Any(sampling.Errors(), sampling.Baseline(0.25)))
		type running struct {
			context.Context
			trace.Span
		}
		var started []context.Context // of any span that was started
		var open []running
		failures := random.Float64() / 4
		said := random.Float64() / 4 // of the failures, by others
		for range 20 + random.IntN(200) {
			if len(open) == 0 || random.IntN(5) < 3 {
				ctx := remote(random.Float64(), false, "")
				switch n := random.IntN(10); {
				case n < 1:
					ctx = context.Background()
				case n < 2 && len(started) > 0: // another call of a trace that was here
					sc := trace.SpanContextFromContext(started[random.IntN(len(started))])
					ctx = trace.ContextWithRemoteSpanContext(context.Background(), sc)
				case n < 4 && len(started) > 0:
					ctx = started[random.IntN(len(started))]
				case len(open) > 0:
					ctx = open[random.IntN(len(open))].Context
				}
				ctx, span := s.Start(ctx, "span")
				started, open = append(started, ctx), append(open, running{ctx, span})
				m.start(span.SpanContext())
				continue
			}
			if random.IntN(5) == 0 {
				ctx, failed := started[random.IntN(len(started))], random.Float64() < failures*said
				id := trace.SpanContextFromContext(ctx).TraceID()
				require.Equal(t, m.promise(id, failed), s.tail.Promise(ctx, failed).IsSampled(), "seed %d", seed)
				if random.Float64() < failures*said {
					m.keep(id)
					s.tail.CalleeResponded(ctx, answer(ctx, true, "genai=k:1"))
				}
			}
			i := random.IntN(len(open))
			failed := random.Float64() < failures
			if failed {
				open[i].SetStatus(codes.Error, "")
			}
			m.end(open[i].SpanContext(), failed)
			open[i].End()
			open = append(open[:i], open[i+1:]...)
		}
		for id := range m.local {
			m.judge(id)
		}
		s.shutdown()
		exported := map[trace.SpanID]int{}
		for _, span := range s.exporter.all() {
			exported[span.SpanContext.SpanID()]++
		}
		require.Equal(t, m.exported, exported, "seed %d", seed)
	}
}

// TestManyTracesAtOnceAreKeptWhole has each trace ended by several goroutines.
func TestManyTracesAtOnceAreKeptWhole(t *testing.T) {
	const goroutines, traces = 8, 200
	s := serve(t, sampling.Any(sampling.Errors(), sampling.Baseline(0.25)))
	type fate struct {
		spans int
		keep  bool
	}
	var (
		mu    sync.Mutex
		fates = map[trace.TraceID]fate{}
		wait  sync.WaitGroup
	)
	for g := range goroutines {
		wait.Go(func() {
			random := rand.New(rand.NewPCG(uint64(g), 8))
			for i := range traces {
				ctx, root := s.Start(context.Background(), "root")
				n := random.IntN(20)
				failing := -1
				if i%10 == 0 {
					failing = random.IntN(n + 1)
				}
				var children sync.WaitGroup
				for c := range n {
					children.Go(func() {
						_, span := s.Start(ctx, "child")
						if c == failing {
							span.SetStatus(codes.Error, "")
						}
						span.End()
					})
				}
				children.Wait()
				root.End()
				id := root.SpanContext().TraceID()
				mu.Lock()
				fates[id] = fate{n + 1, failing >= 0 && failing < n || binary.BigEndian.Uint64(id[8:])%(1<<56) >= 3<<54}
				mu.Unlock()
			}
		})
	}
	wait.Wait()
	s.flush()
	exported := map[trace.TraceID]int{}
	for _, span := range s.exporter.all() {
		exported[span.SpanContext.TraceID()]++
	}
	for id, f := range fates {
		if f.keep {
			assert.Equal(t, f.spans, exported[id])
		} else {
			assert.Zero(t, exported[id])
		}
	}
}

// TestCountsStayTrue estimates how many spans of each kind there were from what was
// exported: each stands for 1/p.
func TestCountsStayTrue(t *testing.T) {
	const traces = 20_000
	p := sampling.Any(
		sampling.Errors(),
		sampling.Slow(time.Second),
		sampling.All(sampling.Match("vip", sampling.Selector{Name: "vip*"}), sampling.Baseline(0.5)),
		sampling.KeyPath(sampling.Baseline(0.3), sampling.Selector{Name: "user.b"}, sampling.Selector{Kind: trace.SpanKindServer}),
		sampling.First(
			sampling.Case{When: sampling.Match("health", health), Then: sampling.Baseline(0.01)},
			sampling.Case{Then: sampling.Baseline(0.05)},
		),
	)
	s := serve(t, p, sampling.WithHead(sampling.HeadRatio(0.02)))
	random := rand.New(rand.NewPCG(8, 8))
	truth := map[string]float64{}
	for i := range traces {
		name := []string{"vip", "user", "GET /healthz"}[i%3]
		d := time.Duration(random.ExpFloat64() * float64(300*time.Millisecond))
		fail := random.IntN(100) == 0
		at := time.Now()
		ctx, root := s.Start(remote(random.Float64(), false, ""), name, trace.WithTimestamp(at), trace.WithSpanKind(trace.SpanKindServer))
		_, a := s.Start(ctx, name+".a")
		a.End()
		_, b := s.Start(ctx, name+".b")
		if fail {
			b.SetStatus(codes.Error, "")
		}
		b.End()
		root.End(trace.WithTimestamp(at.Add(d)))
		for _, suffix := range []string{"", ".a", ".b"} {
			truth[name+suffix]++
		}
		if d >= time.Second {
			truth[name+" slow"]++
		}
	}
	s.flush()
	estimate, variance := map[string]float64{}, map[string]float64{}
	for _, span := range s.exporter.all() {
		w := weight(span.SpanContext.TraceState().Get("ot"))
		names := []string{span.Name}
		if span.EndTime.Sub(span.StartTime) >= time.Second {
			names = append(names, span.Name+" slow")
		}
		for _, name := range names {
			estimate[name] += w
			variance[name] += w * (w - 1)
		}
	}
	for name, n := range truth {
		sigma := math.Sqrt(variance[name])
		assert.InDelta(t, n, estimate[name], 3*sigma+1e-6, "%s: sigma %.1f", name, sigma)
	}
	assert.Zero(t, variance["user slow"], "what is certain is counted, not estimated")
	assert.Less(t, len(s.exporter.all()), traces, "of three spans a trace")
}
