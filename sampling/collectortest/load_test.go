package collectortest

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/tailsamplingprocessor"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/otelcol"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/sampling"
)

var (
	health = sampling.Match("health", sampling.Selector{Name: "GET /health*"})
	blocks = sampling.Match("guardrail", sampling.Selector{Event: "content_blocked"})
	byName = sampling.SlowBy("gen_ai.request.model", map[string]time.Duration{
		"fast": time.Second, "slow $$1": 20 * time.Second,
	}, 3*time.Second)
	everything = sampling.Selector{
		Name: "chat *", Kind: trace.SpanKindClient, Scope: "requests", Key: "k", Values: []string{"text", "7", "1000000", "true"},
		MinDuration: 50 * time.Millisecond, Failed: true,
	}
)

// expressible are policies that the Collector can follow. Each kind is among them.
var expressible = []sampling.Policy{
	sampling.Default(),
	sampling.Errors(),
	sampling.Slow(0),
	sampling.Slow(time.Millisecond),
	byName,
	sampling.SlowTTFT(1500 * time.Millisecond),
	health,
	blocks,
	sampling.Match("all", everything),
	sampling.Match("most", sampling.Selector{Name: "chat *", Kind: trace.SpanKindClient, Scope: "requests", MinDuration: 50 * time.Millisecond}),
	sampling.Match("scope", sampling.Selector{Scope: "others"}),
	sampling.Match("key", sampling.Selector{Key: "k"}),
	sampling.Match("numbers", sampling.Selector{Key: "k", Values: []string{"7", "1.5", "1e+06", "-3"}}),
	sampling.Match("million", sampling.Selector{Key: "k", Values: []string{"1000000"}}),
	sampling.Match("truth", sampling.Selector{Key: "k", Values: []string{"true"}}),
	sampling.Match("kind", sampling.Selector{Kind: trace.SpanKindServer, MinDuration: 2 * time.Second}),
	sampling.Match("event and more", sampling.Selector{Event: "content_blocked", Key: "k", Values: []string{"7"}}),
	sampling.Match("any name", sampling.Selector{Name: "*", Failed: true}),
	sampling.Baseline(0),
	sampling.Baseline(0.1),
	sampling.Baseline(1),
	sampling.Not(sampling.Errors()),
	sampling.Not(byName),
	sampling.Any(sampling.Baseline(0.01), sampling.Baseline(0.2)),
	sampling.All(sampling.Slow(0), sampling.Errors()),
	sampling.All(blocks, sampling.Baseline(0.5)),
	sampling.All(sampling.Not(health), sampling.Any(sampling.Errors(), sampling.Slow(time.Second)), sampling.Baseline(0.3)),
	sampling.First(
		sampling.Case{When: health, Then: sampling.Baseline(0)},
		sampling.Case{When: sampling.Errors(), Then: sampling.Baseline(0.5)},
		sampling.Case{Then: sampling.Default()},
	),
	sampling.First(sampling.Case{When: sampling.Not(sampling.Any(blocks, byName)), Then: sampling.Baseline(0.2)}, sampling.Case{Then: sampling.Baseline(1)}),
}

func options() sampling.CollectorOptions {
	return sampling.CollectorOptions{
		Backend:      "backend.example:4317",
		Samplers:     sampling.SamplerTier{DNS: "samplers:4317"},
		LoadBalancer: "http://balancer:4317",
	}
}

// load reads a configuration as the Collector does: unknown keys are errors, and every
// component validates its part.
func load(text string) (*otelcol.Config, error) {
	f, err := factories()
	if err != nil {
		return nil, err
	}
	provider, err := otelcol.NewConfigProvider(configuration(text))
	if err != nil {
		return nil, err
	}
	config, err := provider.Get(context.Background(), f)
	if err != nil {
		return nil, err
	}
	return config, confmap.Validate(config)
}

// starts makes the processor of the sampling tier, which then reads the policies.
func starts(config *otelcol.Config) error {
	factory := tailsamplingprocessor.NewFactory()
	settings := processortest.NewNopSettings(factory.Type())
	p, err := factory.CreateTraces(context.Background(), settings, config.Processors[component.NewID(factory.Type())], consumertest.NewNop())
	if err != nil {
		return err
	}
	if err := p.Start(context.Background(), componenttest.NewNopHost()); err != nil {
		return err
	}
	return p.Shutdown(context.Background())
}

// loads checks that the Collector takes every configuration whose components are here.
func loads(t *testing.T, c sampling.Collector) {
	t.Helper()
	texts := []string{c.Agent(), c.TailSampling()}
	if len(balancing) > 0 {
		texts = append(texts, c.LoadBalancing())
	}
	for _, text := range texts {
		_, err := load(text)
		require.NoError(t, err, text)
	}
}

func TestEveryTierLoads(t *testing.T) {
	for _, p := range expressible {
		t.Run(p.String(), func(t *testing.T) {
			c, err := sampling.CollectorConfig(p, options())
			require.NoError(t, err)
			loads(t, c)
			config, err := load(c.TailSampling())
			require.NoError(t, err, c.TailSampling())
			require.NoError(t, starts(config), c.TailSampling())
		})
	}
}

func TestEveryOptionLoads(t *testing.T) {
	for name, change := range map[string]func(*sampling.CollectorOptions){
		"static": func(o *sampling.CollectorOptions) {
			o.Samplers = sampling.SamplerTier{Hosts: []string{"a:4317", "b:4317"}, TLS: true}
		},
		"kubernetes": func(o *sampling.CollectorOptions) {
			o.Samplers = sampling.SamplerTier{Kubernetes: "samplers.monitoring:4317"}
		},
		"HTTP":  func(o *sampling.CollectorOptions) { o.HTTP = true },
		"plain": func(o *sampling.CollectorOptions) { o.Backend = "http://backend:4317" },
		"figures": func(o *sampling.CollectorOptions) {
			o.DecisionWait, o.WaitAfterRoot, o.TracesPerSecond = time.Minute, 10*time.Second, 7000
			o.TraceBytes, o.Decisions, o.AgentMemory = 1<<20, 1000, 1024
		},
		"environment": func(o *sampling.CollectorOptions) {
			o.Backend, o.LoadBalancer = "${env:BACKEND}", "http://${env:BALANCER}:4317"
			o.Samplers = sampling.SamplerTier{DNS: "${env:SAMPLERS}:4317"}
			o.Listen, o.HTTP = "${env:POD_IP}:4317", true
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("BACKEND", "backend:4317")
			t.Setenv("BALANCER", "balancer")
			t.Setenv("SAMPLERS", "samplers")
			t.Setenv("POD_IP", "10.0.0.1")
			o := options()
			change(&o)
			c, err := sampling.CollectorConfig(sampling.Default(), o)
			require.NoError(t, err)
			loads(t, c)
		})
	}
}

// The loader is strict: what this test changes is found.
func TestWrongKeysAreFound(t *testing.T) {
	c, err := sampling.CollectorConfig(sampling.Default(), options())
	require.NoError(t, err)
	provider, err := otelcol.NewConfigProvider(configuration(c.TailSampling(), "processors: {tail_sampling: {decision_weight: 3s}}"))
	require.NoError(t, err)
	f, err := factories()
	require.NoError(t, err)
	_, err = provider.Get(t.Context(), f)
	assert.ErrorContains(t, err, "decision_weight")
}

// randomPolicy makes a policy of any shape, valid or not.
//
// About half of what it asks for is in the traffic that request makes, the other half is
// what a configuration could misread.
func randomPolicy(r *rand.Rand, depth int) sampling.Policy {
	some := func() []sampling.Policy {
		var parts []sampling.Policy
		for range 1 + r.IntN(3) {
			parts = append(parts, randomPolicy(r, depth-1))
		}
		return parts
	}
	words := []string{"a", "b $x", "${env:HOME}", "\"'\\", "line\nbreak", "é\u2028", "7", "true", "[1]", "*", "x*", "\xff", ": #", "null"}
	word := func(met ...string) string {
		if r.IntN(2) == 0 {
			return pick(r, met...)
		}
		return pick(r, words...)
	}
	key := func() attribute.Key {
		return attribute.Key(word("k", "k", "llm.ttft_ms", "gen_ai.request.model"))
	}
	value := func() string {
		return word("text", "7", "true", "1000000", "1e+06", "1.5", "-3", "fast", "slow $$1", "1500", "2000")
	}
	kind := 13
	if depth == 0 {
		kind = 7
	}
	switch r.IntN(kind) {
	case 0:
		return sampling.Errors()
	case 1:
		return sampling.Slow(time.Duration(r.IntN(5)) * time.Second)
	case 2:
		return sampling.Baseline(float64(r.IntN(11)) / 10)
	case 3, 4, 5:
		s := sampling.Selector{}
		for range 1 + r.IntN(3) {
			switch r.IntN(7) {
			case 0:
				s.Name = word("chat a", "chat*", "GET /health", "GET /health*", "embed", "*")
			case 1:
				s.Kind = trace.SpanKind(r.IntN(6))
			case 2:
				s.Event = word("content_blocked", "early_stop")
			case 3:
				s.Key, s.Values, s.AtLeast = key(), []string{value(), value()}, 0
			case 4:
				s.Key, s.Values, s.AtLeast = key(), nil, pick(r, 1e21*r.Float64(), 1.5, 7, 1500, 1e6)
			case 5:
				s.MinDuration = time.Duration(r.IntN(1e9))
			case 6:
				s.Scope = word("requests")
			}
		}
		return sampling.Match(word("met"), s)
	case 6:
		limits := map[string]time.Duration{}
		for range r.IntN(4) {
			limits[value()] = time.Duration(1+r.IntN(20)) * time.Second
		}
		return sampling.SlowBy(pick(r, attribute.Key("gen_ai.request.model"), "absent"), limits, time.Second) // at most one value a trace
	case 7:
		return sampling.Any(some()...)
	case 8:
		return sampling.All(some()...)
	case 9:
		return sampling.Not(randomPolicy(r, depth-1))
	case 10:
		return sampling.First(
			sampling.Case{When: randomPolicy(r, depth-1), Then: randomPolicy(r, depth-1)},
			sampling.Case{Then: randomPolicy(r, depth-1)},
		)
	case 11:
		return sampling.Limit(randomPolicy(r, depth-1), 10)
	default:
		return sampling.KeyPath(randomPolicy(r, depth-1), sampling.Selector{Failed: true})
	}
}

// Any valid policy is refused or loads, and the processor understands it.
func TestRandomPoliciesLoadOrAreRefused(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var loaded, refused int
	for range 2000 {
		p := randomPolicy(r, 3)
		if p.Validate() != nil {
			continue
		}
		if loadsOrIsRefused(t, p) {
			loaded++
		} else {
			refused++
		}
	}
	t.Logf("%d policies load, %d are refused", loaded, refused)
	assert.Greater(t, loaded, 200)
	assert.Greater(t, refused, 100)
}

func loadsOrIsRefused(t *testing.T, p sampling.Policy) bool {
	t.Helper()
	o := options()
	o.DecisionWait = 10 * time.Minute
	c, err := sampling.CollectorConfig(p, o)
	if err != nil {
		assert.ErrorContains(t, err, "sampling: policy")
		return false
	}
	config, err := load(c.TailSampling())
	require.NoError(t, err, "%s\n%s", p, c.TailSampling())
	require.NoError(t, starts(config), "%s\n%s", p, c.TailSampling())
	return true
}

func FuzzPolicyLoadsOrIsRefused(f *testing.F) {
	for _, p := range expressible {
		text, err := json.Marshal(p)
		require.NoError(f, err)
		f.Add(text)
	}
	f.Add([]byte(`{"any":[{"match":{"name":"${env:X}","select":{"name":"\"\\$$*","values":["-1","1e9"],"key":"\u2028"}}},{"custom":{"name":"c"}}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var p sampling.Policy
		if json.Unmarshal(data, &p) != nil || p.Validate() != nil {
			t.Skip()
		}
		o := options()
		o.DecisionWait = time.Hour
		c, err := sampling.CollectorConfig(p, o)
		if err != nil {
			return
		}
		config, err := load(c.TailSampling())
		require.NoError(t, err, c.TailSampling())
		require.NoError(t, starts(config), c.TailSampling())
	})
}
