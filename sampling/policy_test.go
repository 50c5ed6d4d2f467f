package sampling_test

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/sampling"
)

var (
	health  = sampling.Selector{Name: "GET /health*"}
	kernels = sampling.Selector{Key: "genai.span.role", Values: []string{"kernel"}}
	entry   = sampling.Selector{Kind: trace.SpanKindServer}
)

// policies are all kinds of policies, as they print and as JSON.
var policies = []struct {
	policy     sampling.Policy
	text, json string
}{
	{sampling.Errors(), `errors`, `{"errors":{}}`},
	{sampling.Slow(0), `slow(3s)`, `{"slow":{"over":"3s"}}`},
	{
		sampling.SlowBy("gen_ai.request.model", map[string]time.Duration{"b": time.Minute, "a": time.Second}, 3*time.Second),
		`slow_by(gen_ai.request.model, "a": 1s, "b": 1m0s, other: 3s)`,
		`{"slow_by":{"key":"gen_ai.request.model","limits":{"a":"1s","b":"1m0s"},"other":"3s"}}`,
	},
	{
		sampling.SlowTTFT(1500 * time.Millisecond),
		`match(slow_ttft: {llm.ttft_ms>=1500})`,
		`{"match":{"name":"slow_ttft","select":{"key":"llm.ttft_ms","at_least":1500}}}`,
	},
	{
		sampling.Match("all", sampling.Selector{
			Name: "chat *", Kind: trace.SpanKindClient, Scope: "genaitrace", Key: "k", Values: []string{"v", "w"},
			Event: "early_stop", MinDuration: 50 * time.Millisecond, Failed: true,
		}),
		`match(all: {name=chat * kind=client scope=genaitrace k=v|w event=early_stop duration>=50ms failed})`,
		`{"match":{"name":"all","select":{"name":"chat *","kind":"client","scope":"genaitrace","key":"k","values":["v","w"],"event":"early_stop","min_duration":"50ms","failed":true}}}`,
	},
	{sampling.Custom("odd"), `custom(odd)`, `{"custom":{"name":"odd"}}`},
	{sampling.Baseline(0.05), `baseline(0.05)`, `{"baseline":{"ratio":0.05}}`},
	{sampling.TargetRate(10, 0.01, 1), `target_rate(10/s, 0.01 to 1)`, `{"target_rate":{"per_second":10,"min":0.01,"max":1}}`},
	{
		sampling.AboveQuantile(0.99, sampling.QuantileOptions{By: "m", Window: time.Minute, MinSamples: 5, Floor: time.Second, Ceiling: time.Minute}),
		`above_quantile(0.99, by: m, window: 1m0s, min samples: 5, floor: 1s, ceiling: 1m0s)`,
		`{"above_quantile":{"q":0.99,"by":"m","window":"1m0s","min_samples":5,"floor":"1s","ceiling":"1m0s"}}`,
	},
	{
		sampling.Adaptive(sampling.AdaptiveOptions{P95: 120 * time.Millisecond, Memory: 0.85}),
		`adaptive(0.8, 0.05 to 0.95, p95: 120ms, memory: 0.85)`,
		`{"adaptive":{"p95":"120ms","memory":0.85}}`,
	},
	{sampling.Limit(sampling.Errors(), 5), `limit(errors, 5/s)`, `{"limit":{"of":{"errors":{}},"per_second":5}}`},
	{sampling.Default(), `any(errors, slow(3s), baseline(0.05))`, `{"any":[{"errors":{}},{"slow":{"over":"3s"}},{"baseline":{"ratio":0.05}}]}`},
	{sampling.All(sampling.Errors(), sampling.Baseline(0.5)), `all(errors, baseline(0.5))`, `{"all":[{"errors":{}},{"baseline":{"ratio":0.5}}]}`},
	{sampling.Not(sampling.Errors()), `not(errors)`, `{"not":{"of":{"errors":{}}}}`},
	{
		sampling.First(sampling.Case{When: sampling.Match("health", health), Then: sampling.Baseline(0)}, sampling.Case{Then: sampling.Errors()}),
		`first(match(health: {name=GET /health*}) => baseline(0), errors)`,
		`{"first":[{"when":{"match":{"name":"health","select":{"name":"GET /health*"}}},"then":{"baseline":{"ratio":0}}},{"then":{"errors":{}}}]}`,
	},
	{
		sampling.KeyPath(sampling.Baseline(1), entry, sampling.Selector{Failed: true}),
		`key_path(baseline(1), {kind=server}, {failed})`,
		`{"key_path":{"of":{"baseline":{"ratio":1}},"spans":[{"kind":"server"},{"failed":true}]}}`,
	},
	{
		sampling.Layers(sampling.Errors(), sampling.Layer{Select: kernels, Ratio: 0.01}),
		`layers(errors, {genai.span.role=kernel}: 0.01)`,
		`{"layers":{"of":{"errors":{}},"layers":[{"select":{"key":"genai.span.role","values":["kernel"]},"ratio":0.01}]}}`,
	},
}

func TestPoliciesPrintAndGoThroughJSON(t *testing.T) {
	for _, c := range policies {
		t.Run(c.text, func(t *testing.T) {
			require.NoError(t, c.policy.Validate())
			assert.Equal(t, c.text, c.policy.String())
			written, err := json.Marshal(c.policy)
			require.NoError(t, err)
			assert.JSONEq(t, c.json, string(written))
			var read sampling.Policy
			require.NoError(t, json.Unmarshal(written, &read))
			assert.Equal(t, c.policy, read)
		})
	}
}

func TestAPolicyIsAFieldOfAConfiguration(t *testing.T) {
	var config struct {
		Sampling sampling.Policy `json:"sampling"`
		Absent   sampling.Policy `json:"absent,omitzero"`
	}
	require.NoError(t, json.Unmarshal([]byte(`{"sampling": {"slow": {"over": "2s"}}, "absent": null}`), &config))
	assert.Equal(t, sampling.Slow(2*time.Second), config.Sampling)
	assert.True(t, config.Absent.IsZero())
	assert.Equal(t, "none", config.Absent.String())
	written, err := json.Marshal(config)
	require.NoError(t, err)
	assert.JSONEq(t, `{"sampling": {"slow": {"over": "2s"}}}`, string(written))
}

func TestWrongJSONIsRefusedWithItsPlace(t *testing.T) {
	for text, message := range map[string]string{
		`[]`:                                     "a policy is an object",
		`{}`:                                     "has one key",
		`{"errors": {}, "slow": {}}`:             "has one key",
		`{"sometimes": {}}`:                      `no policy is called "sometimes"; there are above_quantile, adaptive, all`,
		`{"slow": {"over": 3}}`:                  "slow: ",
		`{"slow": {"over": "3 s"}}`:              "slow: time: unknown unit",
		`{"slow": {"above": "3s"}}`:              `slow: json: unknown field "above"`,
		`{"errors": null}`:                       "errors: null is no content",
		`{"any": [{"slow": {"over": "x"}}]}`:     "any: slow: ",
		`{"match": {"select": {"kind": "web"}}}`: `"web" is none of internal, server`,
	} {
		var p sampling.Policy
		err := json.Unmarshal([]byte(text), &p)
		assert.ErrorContains(t, err, message, text)
	}
}

func TestWrongPoliciesAreRefusedWithTheirPlace(t *testing.T) {
	none := sampling.Policy{}
	deep := sampling.Errors()
	for range 100 {
		deep = sampling.Any(deep)
	}
	var many []sampling.Policy
	for i := range 100 {
		many = append(many, sampling.Custom(fmt.Sprint(i)))
	}
	for _, c := range []struct {
		policy  sampling.Policy
		message string
	}{
		{sampling.Any(many...), "more than 95 different reasons"},
		{sampling.Any(many...), "policy.any.8.custom: more than 8 custom policies"},
		{none, "sampling: no policy given"},
		{sampling.Any(), "policy.any: has no policies"},
		{sampling.Any(sampling.Errors(), none), "policy.any.1: no policy here"},
		{sampling.Any(sampling.Errors(), sampling.Slow(-1)), "policy.any.1.slow: -1ns is no limit"},
		{sampling.SlowBy("", nil, time.Second), "slow_by: key is empty"},
		{sampling.SlowBy("m", map[string]time.Duration{"a": 0}, time.Second), "slow_by: 0s is no limit"},
		{sampling.Baseline(1.5), "baseline: ratio is 1.5 and must be from 0 to 1"},
		{sampling.Baseline(math.NaN()), "ratio is NaN"},
		{sampling.Match("", entry), "match: name is empty"},
		{sampling.Match("x", sampling.Selector{}), "would select every span"},
		{sampling.Match("x", sampling.Selector{Name: "*.b"}), "a * may only stand at its end"},
		{sampling.Match("x", sampling.Selector{Values: []string{"a"}}), "need the key of an attribute"},
		{sampling.Match("x", sampling.Selector{Key: "k", AtLeast: -1}), "at_least is -1"},
		{sampling.Match("x", sampling.Selector{Key: "k", AtLeast: 1, Values: []string{"a"}}), "exclude each other"},
		{sampling.Match("x", sampling.Selector{Kind: 9}), "kind 9 does not exist"},
		{sampling.Match("x", sampling.Selector{MinDuration: -1}), "must not be negative"},
		{sampling.Custom(""), "custom: name is empty"},
		{sampling.Not(sampling.Baseline(0.5)), "policy.not.of.baseline: depends on chance"},
		{sampling.Not(sampling.TargetRate(1, 0, 1)), "depends on chance"},
		{sampling.First(sampling.Case{When: sampling.Limit(sampling.Errors(), 1), Then: sampling.Errors()}), "policy.first.0.when.limit: depends on chance"},
		{sampling.First(), "first: has no cases"},
		{sampling.First(sampling.Case{Then: sampling.Errors()}, sampling.Case{Then: sampling.Errors()}), "0.when is empty, so the cases after it decide nothing"},
		{sampling.First(sampling.Case{When: sampling.Errors()}), "policy.first.0.then: no policy here"},
		{sampling.KeyPath(sampling.Errors()), "key_path: spans is empty"},
		{sampling.All(sampling.KeyPath(sampling.Errors(), entry)), "policy.all.0.key_path: may stand at the top"},
		{sampling.KeyPath(sampling.KeyPath(sampling.Errors(), entry), entry), "policy.key_path.of.key_path: may stand at the top"},
		{sampling.Layers(sampling.Errors()), "layers is empty"},
		{sampling.Any(sampling.Layers(sampling.Errors(), sampling.Layer{Select: kernels})), "policy.any.0.layers: may stand at the top only"},
		{sampling.Layers(sampling.Errors(), sampling.Layer{Select: sampling.Selector{Failed: true}}), "policy.layers.layers.0: scope, event, min_duration and failed are not known"},
		{sampling.TargetRate(0, 0, 1), "per_second is 0"},
		{sampling.TargetRate(1, 0.5, 0.1), "min 0.5 is greater than max 0.1"},
		{sampling.Limit(sampling.Errors(), math.Inf(1)), "per_second is +Inf"},
		{sampling.AboveQuantile(1, sampling.QuantileOptions{}), "q is 1"},
		{sampling.AboveQuantile(0.9, sampling.QuantileOptions{Floor: 2, Ceiling: 1}), "ceiling 1ns is below floor 2ns"},
		{sampling.AboveQuantile(0.9, sampling.QuantileOptions{Window: -1}), "none may be negative"},
		{sampling.Adaptive(sampling.AdaptiveOptions{}), "neither p95 nor memory is given"},
		{sampling.Adaptive(sampling.AdaptiveOptions{P95: 1, Start: 0.9, Max: 0.5}), "start 0.9 is not between"},
		{deep, "nested too deeply"},
		{sampling.Any(sampling.SlowBy("a", nil, 1), sampling.SlowBy("b", nil, 1), sampling.SlowBy("c", nil, 1), sampling.SlowBy("d", nil, 1), sampling.SlowBy("e", nil, 1)), "more than 4 different attributes"},
	} {
		err := c.policy.Validate()
		require.Error(t, err, c.policy.String())
		assert.ErrorContains(t, err, c.message)
		assert.ErrorContains(t, err, "sampling: ")
		_, err = sampling.NewTail(&exporter{}, c.policy)
		assert.ErrorContains(t, err, c.message)
	}
}

func TestEachThingWrongIsNamed(t *testing.T) {
	err := sampling.Any(sampling.Slow(-1), sampling.Baseline(2)).Validate()
	assert.ErrorContains(t, err, "policy.any.0.slow")
	assert.ErrorContains(t, err, "policy.any.1.baseline")
}

func TestWrongOptionsAreRefused(t *testing.T) {
	keep := func(sampling.Trace) bool { return true }
	for _, c := range []struct {
		policy  sampling.Policy
		option  sampling.Option
		message string
	}{
		{sampling.Errors(), sampling.WithLimits(sampling.Limits{Traces: -1}), "must not be negative"},
		{sampling.Errors(), sampling.WithLimits(sampling.Limits{QueueBytes: 1}), "the largest traces could not be exported"},
		{sampling.Errors(), sampling.WithHead(sampling.HeadRatio(2)), "HeadRatio(2)"},
		{sampling.Errors(), sampling.WithTrust(7), "WithTrust(7)"},
		{sampling.Errors(), sampling.WithCustom("odd", keep), `WithCustom("odd"): the policy has no custom(odd)`},
		{sampling.Errors(), sampling.WithCustom("odd", nil), "the function is nil"},
		{sampling.Custom("odd"), nil, "give its function with WithCustom"},
		{sampling.Adaptive(sampling.AdaptiveOptions{Memory: 0.5}), nil, "WithMemoryPressure"},
	} {
		_, err := sampling.NewTail(&exporter{}, c.policy, c.option)
		assert.ErrorContains(t, err, c.message)
	}
	_, err := sampling.NewTail(nil, sampling.Baseline(2))
	assert.ErrorContains(t, err, "exporter is nil")
	assert.ErrorContains(t, err, "baseline")
}

func FuzzPolicy(f *testing.F) {
	for _, c := range policies {
		f.Add([]byte(c.json))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var p sampling.Policy
		if json.Unmarshal(data, &p) != nil {
			return
		}
		_ = p.String()
		valid := p.Validate()
		written, err := json.Marshal(p)
		require.NoError(t, err)
		var again sampling.Policy
		require.NoError(t, json.Unmarshal(written, &again), "%s", written)
		assert.Equal(t, p.String(), again.String())
		if valid == nil {
			assert.NoError(t, again.Validate())
		}
	})
}
