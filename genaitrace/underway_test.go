package genaitrace_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/semconv"
)

// underWay is how many requests of hosts and gateways, and how many calls, are under
// way.
func (r *recording) underWay() map[string]int64 {
	r.t.Helper()
	n := r.sumBy(semconv.GenAIActiveRequestsName, semconv.GenAISpanRoleKey)
	for _, calls := range r.sumBy(semconv.GenAIActiveCallsName, semconv.GenAISpanRoleKey) {
		n["call"] += calls
	}
	return n
}

var underWayKinds = map[string]string{"Inference": "inference", "Call": "call", "Gateway": "gateway"}

func TestARequestIsUnderWayFromStartToEnd(t *testing.T) {
	for kind, counted := range underWayKinds {
		for name, end := range map[string]func(ender){
			"End":          ender.End,
			"End twice":    func(h ender) { h.End(); h.End(); h.Fail(errors.New("late")) },
			"Fail":         func(h ender) { h.Fail(errors.New("device lost")) },
			"cancelled":    func(h ender) { h.Fail(context.Canceled) },
			"EndErr":       func(h ender) { err := errors.New("device lost"); h.EndErr(&err) },
			"a panic":      func(h ender) { defer func() { _ = recover() }(); defer h.EndErr(nil); panic("boom") },
			"many at once": endAtOnce,
		} {
			for _, sampler := range []sdktrace.Sampler{sdktrace.AlwaysSample(), sdktrace.NeverSample()} {
				t.Run(kind+"/"+name+"/"+sampler.Description(), func(t *testing.T) {
					r := record(t, sdktrace.WithSampler(sampler))
					h, _ := handleKinds[kind].start(t.Context(), r)
					assert.Equal(t, map[string]int64{counted: 1}, r.underWay())
					end(h)
					assert.Equal(t, map[string]int64{counted: 0}, r.underWay())
				})
			}
		}
	}
}

func endAtOnce(h ender) {
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(h.End)
	}
	wg.Wait()
}

// A call that learns of its model leaves under the attributes that it entered with.
func TestACallLeavesAsItEntered(t *testing.T) {
	r := record(t)
	_, call := r.StartCall(t.Context(), genaitrace.Request{})
	call.SetRequest(genaitrace.Request{Model: "m", Provider: "vllm"})
	call.SetResponse("", "m-2")
	call.End()
	points := r.sums(semconv.GenAIActiveCallsName)
	require.Len(t, points, 1)
	assert.Zero(t, points[0].Value)
	assert.Equal(t, map[string]any{"gen_ai.operation.name": "chat"}, dims(points[0].Attributes))
}

// A span processor that panics in the end of a span breaks no count.
func TestARequestLeavesWhereASpanProcessorPanics(t *testing.T) {
	for kind, counted := range underWayKinds {
		t.Run(kind, func(t *testing.T) {
			r := record(t, sdktrace.WithSpanProcessor(panicking{}))
			h, _ := handleKinds[kind].start(t.Context(), r)
			assert.PanicsWithValue(t, "processor", h.End)
			assert.Equal(t, map[string]int64{counted: 0}, r.underWay())
		})
	}
}

type panicking struct{ discard }

func (panicking) OnEnd(sdktrace.ReadOnlySpan) { panic("processor") }

// One process that is a gateway, calls a model and runs it counts each once.
func TestEachHopIsCountedForItself(t *testing.T) {
	r := record(t)
	ctx, gateway := r.StartGateway(t.Context(), genaitrace.GatewayRequest{Name: "POST /"})
	ctx, call := r.StartCall(ctx, fullRequest())
	_, inf := r.StartInference(ctx, fullRequest())
	assert.Equal(t, map[string]int64{"gateway": 1, "call": 1, "inference": 1}, r.underWay())
	points := r.sums(semconv.GenAIActiveCallsName)
	require.Len(t, points, 1)
	assert.Equal(t, map[string]any{
		"gen_ai.operation.name": "chat", "gen_ai.provider.name": "vllm", "gen_ai.request.model": "qwen2.5-7b-instruct",
	}, dims(points[0].Attributes))
	inf.End()
	call.End()
	gateway.End()
	assert.Equal(t, map[string]int64{"gateway": 0, "call": 0, "inference": 0}, r.underWay())
}

func TestANilHandleIsNotUnderWay(t *testing.T) {
	r := record(t)
	r.reader = sdkmetric.NewManualReader()
	r.meters = sdkmetric.NewMeterProvider(sdkmetric.WithReader(r.reader),
		sdkmetric.WithView(sdkmetric.NewView(sdkmetric.Instrument{Name: "*"}, sdkmetric.Stream{Aggregation: sdkmetric.AggregationDrop{}})))
	r.Tracer = genaitrace.New(genaitrace.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample()))),
		genaitrace.WithMeterProvider(r.meters))
	_, inf := r.StartInference(t.Context(), fullRequest())
	require.Nil(t, inf)
	inf.End()
	_, call := r.StartCall(t.Context(), fullRequest())
	require.Nil(t, call)
	call.End()
	_, gateway := r.StartGateway(t.Context(), genaitrace.GatewayRequest{})
	require.Nil(t, gateway)
	gateway.End()
	assert.Empty(t, r.allMetrics())
}

// Whatever starts and ends in whatever order, the counts are those of the handles
// that are open.
func TestTheCountsAreThoseOfTheOpenHandles(t *testing.T) {
	r := record(t, sdktrace.WithSampler(sdktrace.TraceIDRatioBased(0.5)))
	open := map[string][]ender{}
	want := map[string]int64{}
	for range 500 {
		for kind, counted := range underWayKinds {
			if rand.IntN(2) == 0 {
				h, _ := handleKinds[kind].start(t.Context(), r)
				open[kind] = append(open[kind], h)
				want[counted]++
			}
			if n := len(open[kind]); n > 0 && rand.IntN(2) == 0 {
				i := rand.IntN(n)
				open[kind][i].End()
				if rand.IntN(2) == 0 {
					open[kind][i].Fail(errors.New("late"))
				}
				open[kind][i] = open[kind][n-1]
				open[kind] = open[kind][:n-1]
				want[counted]--
			}
		}
	}
	assert.Equal(t, want, r.underWay())
	for _, handles := range open {
		for _, h := range handles {
			h.End()
		}
	}
	for counted := range want {
		want[counted] = 0
	}
	assert.Equal(t, want, r.underWay())
}
