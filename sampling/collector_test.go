package sampling_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/genaitrace/otelgenai/sampling"
)

// What the configurations mean to the real Collector is tested in the module
// collectortest.

func collectorOptions() sampling.CollectorOptions {
	return sampling.CollectorOptions{
		Backend:      "backend.example:4317",
		Samplers:     sampling.SamplerTier{DNS: "samplers.monitoring:4317"},
		LoadBalancer: "http://balancer.monitoring:4317",
	}
}

func ExampleCollectorConfig() {
	policy := sampling.First(
		sampling.Case{When: sampling.Match("health", sampling.Selector{Name: "GET /health*"}), Then: sampling.Baseline(0)},
		sampling.Case{Then: sampling.Default()},
	)
	c, err := sampling.CollectorConfig(policy, sampling.CollectorOptions{
		Backend:  "https://backend.example:4317",
		Samplers: sampling.SamplerTier{Kubernetes: "samplers.monitoring:4317"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	// Also c.LoadBalancing() and, where there are agents, c.Agent().
	fmt.Println(c.TailSampling())
	// Output:
	// # Configuration of the sampling tier, for OpenTelemetry Collector Contrib, v0.161.0 or later.
	// # It judges traces by the policy
	// #   first(match(health: {name=GET /health*}) => baseline(0), any(errors, slow(3s), baseline(0.05)))
	// # Run it with --feature-gates=processor.tailsamplingprocessor.usetracestate, so that
	// # its share is the same as that of others who sample consistently (ot=th).
	// receivers:
	//   otlp:
	//     protocols:
	//       grpc:
	//         endpoint: "0.0.0.0:4317"
	//         max_recv_msg_size_mib: 16
	// processors:
	//   memory_limiter:
	//     check_interval: 1s
	//     limit_percentage: 80
	//     spike_limit_percentage: 20
	//   tail_sampling:
	//     decision_wait: 30s
	//     num_traces: 50000
	//     expected_new_traces_per_sec: 500
	//     maximum_trace_size_bytes: 16777216
	//     decision_cache:
	//       sampled_cache_size: 500000
	//       non_sampled_cache_size: 500000
	//     policies:
	//       - name: "drop health"
	//         type: drop
	//         drop:
	//           drop_sub_policy:
	//             - name: health
	//               type: ottl_condition
	//               ottl_condition:
	//                 error_mode: ignore
	//                 span:
	//                   - "HasPrefix(span.name, \"GET /health\")"
	//       - name: errors
	//         type: status_code
	//         status_code:
	//           status_codes:
	//             - ERROR
	//       - name: "slow 3s"
	//         type: latency
	//         latency:
	//           threshold_ms: 2999
	//       - name: "baseline 0.05"
	//         type: probabilistic
	//         probabilistic:
	//           sampling_percentage: 5
	// exporters:
	//   otlp_grpc:
	//     endpoint: backend.example:4317
	//     tls:
	//       insecure: false
	//     retry_on_failure:
	//       enabled: true
	//       initial_interval: 1s
	//       randomization_factor: 0.5
	//       multiplier: 1.5
	//       max_interval: 30s
	//       max_elapsed_time: 300s
	//     sending_queue:
	//       sizer: bytes
	//       queue_size: 268435456
	//       batch:
	//         flush_timeout: 200ms
	//         min_size: 524288
	//         max_size: 3145728
	// service:
	//   pipelines:
	//     traces:
	//       receivers:
	//         - otlp
	//       processors:
	//         - memory_limiter
	//         - tail_sampling
	//       exporters:
	//         - otlp_grpc
}

// Agents are the Collectors beside the services. They talk to the first tier alone.
func ExampleCollector_Agent() {
	c, err := sampling.CollectorConfig(sampling.Default(), sampling.CollectorOptions{
		Backend:      "https://backend.example:4317",
		Samplers:     sampling.SamplerTier{DNS: "samplers.monitoring:4317"},
		LoadBalancer: "http://balancer.gpu-group-7:4317",
		HTTP:         true,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(c.Agent())
	// Output:
	// # Configuration of the agent, for OpenTelemetry Collector Contrib, v0.161.0 or later.
	// # It takes spans from the services beside it and sends them to the load-balancing tier.
	// receivers:
	//   otlp:
	//     protocols:
	//       grpc:
	//         endpoint: localhost:4317
	//         max_recv_msg_size_mib: 16
	//       http:
	//         endpoint: localhost:4318
	// processors:
	//   memory_limiter:
	//     check_interval: 1s
	//     limit_mib: 512
	//     spike_limit_mib: 128
	// exporters:
	//   otlp_grpc:
	//     endpoint: balancer.gpu-group-7:4317
	//     tls:
	//       insecure: true
	//     retry_on_failure:
	//       enabled: true
	//       initial_interval: 1s
	//       randomization_factor: 0.5
	//       multiplier: 1.5
	//       max_interval: 30s
	//       max_elapsed_time: 300s
	//     sending_queue:
	//       sizer: bytes
	//       queue_size: 67108864
	//       batch:
	//         flush_timeout: 200ms
	//         min_size: 524288
	//         max_size: 3145728
	// service:
	//   pipelines:
	//     traces:
	//       receivers:
	//         - otlp
	//       processors:
	//         - memory_limiter
	//       exporters:
	//         - otlp_grpc
}

func TestTheSamePolicyIsWrittenTheSameWay(t *testing.T) {
	policy := sampling.SlowBy("m", map[string]time.Duration{"a": 1e9, "b": 2e9, "c": 3e9, "d": 4e9, "e": 5e9}, 6e9)
	first, err := sampling.CollectorConfig(policy, collectorOptions())
	require.NoError(t, err)
	for range 20 {
		again, err := sampling.CollectorConfig(policy, collectorOptions())
		require.NoError(t, err)
		assert.Equal(t, first, again)
	}
}

func TestWithoutAnAddressForThemThereAreNoAgents(t *testing.T) {
	o := collectorOptions()
	o.LoadBalancer = ""
	c, err := sampling.CollectorConfig(sampling.Default(), o)
	require.NoError(t, err)
	assert.Empty(t, c.Agent())
	assert.NotEmpty(t, c.LoadBalancing())
}

func TestWhatTheCollectorCannotDoIsNamedWithTheWayOut(t *testing.T) {
	var models []sampling.Policy
	for i := range 9 {
		models = append(models, sampling.All(
			sampling.Match("a", sampling.Selector{Name: fmt.Sprint("a", i)}),
			sampling.Match("b", sampling.Selector{Name: fmt.Sprint("b", i)}),
		))
	}
	for _, c := range []struct {
		policy   sampling.Policy
		messages []string
	}{
		{sampling.Any(sampling.Errors(), sampling.Custom("odd")), []string{"policy.any.1.custom: ", "cannot call a function", "Match that"}},
		{sampling.AboveQuantile(0.99, sampling.QuantileOptions{}), []string{"policy.above_quantile: ", "use Slow or SlowBy"}},
		{sampling.TargetRate(1, 0, 1), []string{"policy.target_rate: ", "use Baseline"}},
		{sampling.Adaptive(sampling.AdaptiveOptions{P95: time.Second}), []string{"policy.adaptive: ", "use Baseline"}},
		{sampling.Limit(sampling.Errors(), 5), []string{"policy.limit: ", "leave Limit out"}},
		{sampling.KeyPath(sampling.Errors(), entry), []string{"policy.key_path: ", "leave KeyPath to the Tail"}},
		{sampling.Layers(sampling.Errors(), sampling.Layer{Select: kernels}), []string{"policy.layers: ", "the policy inside it"}},
		{sampling.Slow(1500 * time.Microsecond), []string{"policy.slow: ", "whole milliseconds, and 1.5ms is none: round it"}},
		{sampling.SlowBy("m", map[string]time.Duration{"a": 1}, time.Second), []string{"policy.slow_by: ", "1ns is none"}},
		{sampling.SlowBy("m", map[string]time.Duration{"": 1e9}, time.Second), []string{"policy.slow_by: ", "empty value"}},
		{sampling.Match("list", sampling.Selector{Key: "k", Values: []string{`["a"]`}}), []string{"policy.match: ", `"[\"a\"]" looks like a list`}},
		{sampling.Match("broken", sampling.Selector{Name: "a\xff"}), []string{"policy.match: ", "not valid UTF-8"}},
		{sampling.Not(sampling.Any(models...)), []string{"policy.not: ", "more than 64 policies"}},
		{sampling.Slow(-1), []string{"policy.slow: -1ns is no limit"}},
		{sampling.Policy{}, []string{"no policy given"}},
		{
			sampling.Any(sampling.Custom("a"), sampling.First(sampling.Case{Then: sampling.TargetRate(1, 0, 1)})),
			[]string{"policy.any.0.custom", "policy.any.1.first.0.then.target_rate"},
		},
	} {
		got, err := sampling.CollectorConfig(c.policy, collectorOptions())
		require.Error(t, err, c.policy.String())
		assert.Zero(t, got)
		for _, message := range c.messages {
			assert.ErrorContains(t, err, message)
		}
		for line := range strings.SplitSeq(err.Error(), "\n") {
			assert.True(t, strings.HasPrefix(line, "sampling: "), line)
		}
	}
}

func TestWrongCollectorOptionsAreNamed(t *testing.T) {
	for _, c := range []struct {
		change  func(*sampling.CollectorOptions)
		message string
	}{
		{func(o *sampling.CollectorOptions) { o.Backend = "" }, `Backend is "": give "host:port"`},
		{func(o *sampling.CollectorOptions) { o.Backend = "https://backend/v1" }, `Backend is "backend/v1"`},
		{func(o *sampling.CollectorOptions) { o.Backend = "backend:otlp" }, `Backend is "backend:otlp": the port is "otlp"`},
		{func(o *sampling.CollectorOptions) { o.Backend = "backend:70000" }, "from 1 to 65535"},
		{func(o *sampling.CollectorOptions) { o.LoadBalancer = "a b:1" }, "LoadBalancer"},
		{func(o *sampling.CollectorOptions) { o.Listen = ":4317" }, "Listen"},
		{func(o *sampling.CollectorOptions) { o.Listen, o.HTTP = "${env:LISTEN}", true }, "Listen is \"${env:LISTEN}\", and its port must be a number"},
		{func(o *sampling.CollectorOptions) { o.SamplerListen = "x" }, "SamplerListen"},
		{func(o *sampling.CollectorOptions) { o.AgentListen = "x\n:1" }, "AgentListen"},
		{func(o *sampling.CollectorOptions) { o.Samplers = sampling.SamplerTier{} }, "Samplers must have one of Hosts, DNS and Kubernetes, and has 0"},
		{func(o *sampling.CollectorOptions) { o.Samplers.Hosts = []string{"a:1"} }, "and has 2"},
		{func(o *sampling.CollectorOptions) { o.Samplers = sampling.SamplerTier{Hosts: []string{"a:1", "b"}} }, "Samplers.Hosts[1]"},
		{func(o *sampling.CollectorOptions) { o.Samplers = sampling.SamplerTier{Kubernetes: "a.b"} }, "Samplers.Kubernetes"},
		{func(o *sampling.CollectorOptions) { o.Samplers = sampling.SamplerTier{DNS: "${env:SAMPLERS}"} }, "Samplers.DNS"},
		{func(o *sampling.CollectorOptions) { o.DecisionWait = 1500 * time.Millisecond }, "DecisionWait is 1.5s and must be whole seconds"},
		{func(o *sampling.CollectorOptions) { o.DecisionWait = -time.Second }, "DecisionWait is -1s"},
		{func(o *sampling.CollectorOptions) { o.DecisionWait = 7 * time.Second }, "no trace is seen to last 3s, which the policy asks for: give at least 8s"},
		{func(o *sampling.CollectorOptions) { o.WaitAfterRoot = time.Minute }, "WaitAfterRoot is 1m0s and must be whole seconds, up to DecisionWait 30s"},
		{func(o *sampling.CollectorOptions) { o.TracesPerSecond = -1 }, "TracesPerSecond is -1"},
		{func(o *sampling.CollectorOptions) { o.Traces = 14_999 }, "Traces is 14999, less than the 15000 that come within DecisionWait"},
		{func(o *sampling.CollectorOptions) { o.TraceBytes = -1 }, "TraceBytes is -1"},
		{func(o *sampling.CollectorOptions) { o.Decisions = -1 }, "Decisions is -1"},
		{func(o *sampling.CollectorOptions) { o.AgentMemory = 10 }, "AgentMemory is 10 MiB"},
	} {
		o := collectorOptions()
		c.change(&o)
		_, err := sampling.CollectorConfig(sampling.Default(), o)
		assert.ErrorContains(t, err, c.message)
		assert.ErrorContains(t, err, "sampling: CollectorOptions.")
	}
}

func TestTheDefaultWaitSeesTheLongestLimit(t *testing.T) {
	for policy, wait := range map[*sampling.Policy]string{
		new(sampling.Errors()): "decision_wait: 30s",
		new(sampling.SlowBy("m", map[string]time.Duration{"a": 20 * time.Second}, time.Second)):      "decision_wait: 35s",
		new(sampling.Not(sampling.Slow(60500 * time.Millisecond))):                                   "decision_wait: 76s",
		new(sampling.Match("long", sampling.Selector{Name: "decode", MinDuration: 2 * time.Minute})): "decision_wait: 135s",
	} {
		c, err := sampling.CollectorConfig(*policy, collectorOptions())
		require.NoError(t, err)
		assert.Contains(t, c.TailSampling(), wait+"\n", policy.String())
	}
	o := collectorOptions()
	o.TracesPerSecond, o.WaitAfterRoot = 4000, 10*time.Second
	c, err := sampling.CollectorConfig(sampling.Default(), o)
	require.NoError(t, err)
	assert.Contains(t, c.TailSampling(), "num_traces: 240000\n")
	assert.Contains(t, c.TailSampling(), "    decision_wait_after_root_received: 10s\n")
}

// parsed reads a configuration by a YAML library.
func parsed(t *testing.T, text string) (names []string) {
	t.Helper()
	var c struct {
		Receivers  map[string]any
		Processors struct {
			MemoryLimiter map[string]any `yaml:"memory_limiter"`
			TailSampling  struct {
				Policies []struct{ Name, Type string }
			} `yaml:"tail_sampling"`
		}
		Exporters map[string]any
		Service   map[string]any
	}
	require.NoError(t, yaml.Unmarshal([]byte(text), &c), text)
	require.NotEmpty(t, c.Processors.TailSampling.Policies, text)
	for _, p := range c.Processors.TailSampling.Policies {
		names = append(names, p.Name)
		assert.NotEmpty(t, p.Type)
	}
	return names
}

func TestNamesSurviveTheFile(t *testing.T) {
	for _, name := range []string{
		"plain", "yes", "null", "a: b", "# no comment", "- item", "it's \"quoted\" \\", "line\nbreak\r\t", "é\u2028\u0085\ufeff", "🙂", "{}", "%", "12", "1e3", "~",
	} {
		policy := sampling.Match(name, sampling.Selector{Name: name})
		c, err := sampling.CollectorConfig(policy, collectorOptions())
		require.NoError(t, err)
		assert.Equal(t, []string{name}, parsed(t, c.TailSampling()))
	}
}

func TestEachPolicyOfTheCollectorHasANameOfItsOwn(t *testing.T) {
	long := strings.Repeat("long", 100)
	c, err := sampling.CollectorConfig(sampling.Any(
		sampling.Match("same", sampling.Selector{Name: "a"}),
		sampling.Match("same", sampling.Selector{Name: "b"}),
		sampling.Match("same (2)", sampling.Selector{Name: "c"}),
		sampling.Match("same", sampling.Selector{Name: "a"}), // twice the same
		sampling.Match(long, sampling.Selector{Name: "d"}),
		sampling.Match("$", sampling.Selector{Name: "e"}),
	), collectorOptions())
	require.NoError(t, err)
	assert.Equal(t, []string{"same", "same (2)", "same (2) (2)", long[:100], "$$"}, parsed(t, c.TailSampling()))
}

func FuzzCollectorConfig(f *testing.F) {
	for _, c := range policies {
		f.Add([]byte(c.json))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var p sampling.Policy
		if json.Unmarshal(data, &p) != nil {
			return
		}
		o := collectorOptions()
		o.DecisionWait = 24 * time.Hour
		c, err := sampling.CollectorConfig(p, o)
		if err != nil {
			assert.ErrorContains(t, err, "sampling: ")
			return
		}
		require.NoError(t, p.Validate())
		names := map[string]bool{}
		for _, name := range parsed(t, c.TailSampling()) {
			assert.False(t, names[name], name)
			names[name] = true
		}
	})
}
