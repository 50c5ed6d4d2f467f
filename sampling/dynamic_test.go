package sampling_test

import (
	"context"
	"math"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/genaitrace/otelgenai/sampling"
)

// second runs n traces spread over a second of the test's clock; make says what the
// i-th is like. It returns how many were kept.
func (s *service) second(n int, shape func(i int) shape) (kept int) {
	s.t.Helper()
	before := s.outcomes()["dropped"]
	for i := range n {
		one := shape(i)
		if one.r == 0 {
			one.r = rand.Float64() // a trace of its own
		}
		s.run(one)
		time.Sleep(time.Second / time.Duration(n))
	}
	return n - int(s.outcomes()["dropped"]-before)
}

func (s *service) gauge(name string, by attribute.Key) map[string]float64 {
	s.t.Helper()
	values := map[string]float64{}
	if data, ok := s.collect(name).(metricdata.Gauge[float64]); ok {
		for _, p := range data.DataPoints {
			v, _ := p.Attributes.Value(by)
			values[v.AsString()] = p.Value
		}
	}
	return values
}

// uniform is the randomness of traces, the same in each run.
func uniform() func() float64 {
	return rand.New(rand.NewPCG(1, 2)).Float64
}

func TestAboveQuantileKeepsTheSlowestPerModel(t *testing.T) {
	const model = attribute.Key("gen_ai.request.model")
	p := sampling.AboveQuantile(0.99, sampling.QuantileOptions{By: model})
	inBubble(t, p, func(t *testing.T, s *service) {
		random := rand.New(rand.NewPCG(1, 2))
		shapes := func(i int) shape {
			name, scale := "small", float64(100*time.Millisecond)
			if i%2 == 1 {
				name, scale = "large", float64(10*time.Second)
			}
			return shape{lasts: time.Duration(scale * math.Exp(random.NormFloat64()/2)), attrs: []attribute.KeyValue{model.String(name)}}
		}
		assert.Zero(t, s.second(1000, shapes), "nothing is learned yet")
		kept := 0
		for range 20 {
			kept += s.second(1000, shapes)
		}
		assert.InDelta(t, 200, kept, 60, "one in a hundred, of each model")
		limits := s.gauge("genai.sampling.slow_threshold", "genai.sampling.group")
		assert.InDelta(t, 0.1*math.Exp(2.326/2), limits["small"], 0.04)
		assert.InDelta(t, 10*math.Exp(2.326/2), limits["large"], 4)

		time.Sleep(2 * time.Minute)
		assert.Empty(t, s.gauge("genai.sampling.slow_threshold", "genai.sampling.group"), "too few traces to learn from")
	})
}

func TestEqualDurationsAreNotAboveTheirQuantile(t *testing.T) {
	inBubble(t, sampling.AboveQuantile(0.9, sampling.QuantileOptions{Floor: time.Millisecond}), func(t *testing.T, s *service) {
		same := func(int) shape { return shape{lasts: 777 * time.Millisecond} }
		for range 3 {
			assert.Zero(t, s.second(300, same))
		}
		s.run(shape{lasts: 850 * time.Millisecond})
		assert.Len(t, s.exported(), 1)
	})
}

func TestManyValuesShareALimit(t *testing.T) {
	const model = attribute.Key("model")
	inBubble(t, sampling.AboveQuantile(0.5, sampling.QuantileOptions{By: model, MinSamples: 1}), func(t *testing.T, s *service) {
		s.second(200, func(i int) shape { return shape{lasts: time.Second, attrs: []attribute.KeyValue{model.Int(i)}} })
		time.Sleep(2 * time.Second)
		limits := s.gauge("genai.sampling.slow_threshold", "genai.sampling.group")
		assert.Len(t, limits, 65)
		assert.Contains(t, limits, "_OTHER")
	})
}

func TestTargetRateKeepsEverythingWhileThereIsLittle(t *testing.T) {
	inBubble(t, sampling.TargetRate(50, 0.01, 1), func(t *testing.T, s *service) {
		r := uniform()
		shapes := func(int) shape { return shape{r: r()} }
		for range 5 {
			assert.Equal(t, 20, s.second(20, shapes))
		}
		s.second(1000, shapes) // adapts
		for range 5 {
			assert.InDelta(t, 50, s.second(1000, shapes), 25)
		}
		assert.InDelta(t, 0.05, s.gauge("genai.sampling.probability", "genai.sampling.policy")["target_rate"], 0.01)
		s.second(5_000, shapes)
		assert.InDelta(t, 50, s.second(5_000, shapes), 50, "not below the least share")
		for range 40 {
			s.second(20, shapes)
		}
		assert.Equal(t, 20, s.second(20, shapes), "and back")
	})
}

func TestLimitKeepsToItsBudgetAndSaysSo(t *testing.T) {
	p := sampling.Any(sampling.Limit(sampling.Any(sampling.Errors(), sampling.Baseline(0.25)), 20), sampling.Slow(time.Minute))
	inBubble(t, p, func(t *testing.T, s *service) {
		r := uniform()
		shapes := func(i int) shape { return shape{r: r(), fails: i%10 == 0} } // 325 in 1000 are kept by the inner policy
		assert.Equal(t, 40, s.second(40, func(int) shape { return shape{fails: true} }), "the first second is free")
		for range 15 {
			s.second(1000, shapes)
		}
		kept := 0
		for range 10 {
			kept += s.second(1000, shapes)
		}
		assert.InDelta(t, 200, kept, 60)

		// Counts stay true: each kept trace stands for 1/p.
		s.flush()
		from := len(s.exporter.all())
		for range 10 {
			s.second(1000, shapes)
		}
		s.flush()
		var estimate float64
		for _, span := range s.exporter.all()[from:] {
			if span.Status.Code != 0 {
				estimate += weight(span.SpanContext.TraceState().Get("ot"))
			}
		}
		assert.InDelta(t, 1000, estimate, 900, "errors")
		for range 20 {
			s.second(10, shapes)
		}
		assert.Equal(t, 10, s.second(10, func(int) shape { return shape{fails: true} }), "the budget is free again")
	})
}

func TestLimitTakesFromWhatIsLikelyFirst(t *testing.T) {
	// A hundred errors and a quarter of nine hundred others a second: within 280, all of
	// the quarter have room, and about half of the errors.
	p := sampling.Limit(sampling.Any(sampling.Errors(), sampling.Baseline(0.25)), 280)
	inBubble(t, p, func(t *testing.T, s *service) {
		r := uniform()
		shapes := func(i int) shape { return shape{r: r(), fails: i%10 == 0} }
		kept := 0
		for second := range 20 {
			if n := s.second(1000, shapes); second >= 10 {
				kept += n
			}
		}
		assert.InDelta(t, 2800, kept, 140)
	})
}

func TestAdaptiveFollowsLatencyAndMemory(t *testing.T) {
	var memory atomic.Uint64
	p := sampling.Any(sampling.Errors(), sampling.Adaptive(sampling.AdaptiveOptions{P95: 120 * time.Millisecond, Memory: 0.85}))
	inBubble(t, p, func(t *testing.T, s *service) {
		r := uniform()
		run := func(seconds int, lasts time.Duration, inUse float64) float64 {
			memory.Store(math.Float64bits(inUse))
			for range seconds {
				s.second(100, func(int) shape { return shape{r: r(), lasts: lasts} })
			}
			return s.gauge("genai.sampling.probability", "genai.sampling.policy")["adaptive"]
		}
		assert.InDelta(t, 0.95, run(3, 50*time.Millisecond, 0.5), 1e-9, "calm")
		assert.InDelta(t, 0.95*0.75, run(2, 200*time.Millisecond, 0.5), 0.3, "one pressure")
		assert.InDelta(t, 0.05, run(20, 200*time.Millisecond, 0.9), 1e-9, "both")
		assert.Equal(t, 1, s.second(1, func(int) shape { return shape{fails: true} }), "what fails is kept all the same")
		assert.InDelta(t, 0.05, run(20, 50*time.Millisecond, 0.8), 1e-9, "in between it stays")
		assert.InDelta(t, 0.95, run(30, 50*time.Millisecond, 0.1), 1e-9, "back")
		memory.Store(math.Float64bits(math.NaN()))
		assert.InDelta(t, 0.05, run(30, 200*time.Millisecond, math.NaN()), 1e-9, "unknown memory is no calm and no pressure")
	}, sampling.WithMemoryPressure(func() float64 { return math.Float64frombits(memory.Load()) }))
}

func TestAMemorySourceThatPanicsOrBlocksIsUnknown(t *testing.T) {
	faults := collectFaults(t)
	synctest.Test(t, func(t *testing.T) {
		reads, block := 0, make(chan struct{})
		s := serve(t, sampling.Adaptive(sampling.AdaptiveOptions{Memory: 0.5}), sampling.WithMemoryPressure(func() float64 {
			switch reads++; {
			case reads == 3:
				panic("no device")
			case reads > 5:
				<-block
			}
			return 0.9
		}))
		share := func() float64 { return s.gauge("genai.sampling.probability", "genai.sampling.policy")["adaptive"] }
		time.Sleep(5500 * time.Millisecond)
		assert.Less(t, share(), 0.2)
		time.Sleep(30 * time.Second)
		assert.InDelta(t, 0.95, share(), 1e-9, "a stale reading is none")
		close(block)
		s.shutdown()
	})
	assert.Equal(t, []string{"sampling: the memory pressure panicked: no device"}, faults())
}

// weight is how many spans a span with this "ot" member stands for.
func weight(ot string) float64 {
	th := ot[len("th:"):]
	var t, unit float64 = 0, 1
	for _, c := range th {
		unit /= 16
		d := float64(c - '0')
		if c >= 'a' {
			d = float64(c-'a') + 10
		}
		t += d * unit
	}
	return 1 / (1 - t)
}

// What runs when it is judged has lasted until then: nothing is learnt from it that is
// shorter, also where no span of it has ended.
func TestWhatRunsIsNotLearntAsShort(t *testing.T) {
	p := sampling.AboveQuantile(0.5, sampling.QuantileOptions{MinSamples: 10})
	inBubble(t, p, func(t *testing.T, s *service) {
		for range 20 {
			s.Start(context.Background(), "never ends")
		}
		time.Sleep(15 * time.Second)
		s.request("short", time.Second, false)
		assert.Empty(t, s.exported(), "it is shorter than most")
		s.request("long", time.Minute, false)
		assert.Len(t, s.exported(), 3)
	}, sampling.WithLimits(sampling.Limits{Age: 10 * time.Second}))
}
