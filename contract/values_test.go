package contract_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"

	"github.com/genaitrace/otelgenai/capture"
)

func TestTypesAreHeldWhereverTheyAreSaid(t *testing.T) {
	values := map[string]attribute.Value{
		"string": attribute.StringValue("a"), "int": attribute.IntValue(1), "double": attribute.Float64Value(1), "boolean": attribute.BoolValue(true),
		"string[]": attribute.StringSliceValue([]string{"a"}), "int[]": attribute.Int64SliceValue([]int64{1}), "double[]": attribute.Float64SliceValue([]float64{1}),
		"boolean[]": attribute.BoolSliceValue([]bool{true}), "bytes": attribute.ByteSliceValue([]byte("a")), "list": attribute.SliceValue(attribute.IntValue(1)), "map": attribute.MapValue(), "nothing": {},
	}
	// A list without items has lost their type on the wire.
	empty := []attribute.Value{
		attribute.SliceValue(), attribute.StringSliceValue(nil), attribute.Int64SliceValue(nil), attribute.Float64SliceValue(nil), attribute.BoolSliceValue(nil),
	}
	for _, want := range []string{"string", "int", "double", "boolean", "string[]", "int[]", "double[]", "enum", "any"} {
		c := parse(t, jobWith("attributes: {fact: {type: \""+want+"\"}}"))
		for have, value := range values {
			r := c.Check(traces(job(attribute.KeyValue{Key: "fact", Value: value})))
			fits := want == have || want == "any" || want == "enum" && have == "string"
			require.Equal(t, !fits, len(r.Findings) == 1, "%s for %s", have, want)
			if !fits {
				assert.Contains(t, r.Findings[0].Message, "fact of job is of the type "+have)
			}
		}
		for _, value := range empty {
			r := c.Check(traces(job(attribute.KeyValue{Key: "fact", Value: value})))
			list := want == "any" || want[len(want)-1] == ']'
			assert.Equal(t, list, len(r.Findings) == 0, "%v for %s", value.Type(), want)
		}
	}
}

func TestValuesAreComparedAsTheCanonicalKeySpellsThem(t *testing.T) {
	azure := []*node{
		job(text("gen_ai.system", "az.ai.openai")), job(text("gen_ai.provider.name", "azure.ai.openai")),
	}
	for _, written := range []string{"gen_ai.provider.name: azure.ai.openai", "gen_ai.system: az.ai.openai"} {
		c := parse(t, roles("job")+"requests: {azure: {root: job, when: {attr: {"+written+"}}}}")
		assert.Equal(t, 2, c.Check(traces(azure...)).Requests["azure"], written)
	}
	agree := parse(t, "agree: [{keys: [gen_ai.provider.name]}]\nseverity: {attribute.deprecated: \"off\"}")
	assert.Empty(t, agree.Check(traces(span("all", 0, 100, azure[0], azure[1]))).Findings)
}

func TestNumbersAgreeWithinTheirTolerance(t *testing.T) {
	c := parse(t, "agree: [{keys: [size], tolerance: {pct: 10}}, {keys: [llm.ttft_ms], optional: true}]")
	two := func(a, b attribute.KeyValue) *capture.Capture { return traces(job(a, span("part", 1, 2, b))) }
	assert.Empty(t, c.Check(two(whole("size", 100), number("size", 110))).Findings)
	assert.Equal(t, []string{"agree.mismatch"}, rulesOf(c.Check(two(whole("size", 100), whole("size", 120)))))
	assert.Equal(t, []string{"agree.mismatch"}, rulesOf(c.Check(two(whole("size", 100), text("size", "100 MB")))))
	r := c.Check(traces(job(whole("size", 100), span("part", 1, 2, whole("size", 100)), span("part", 3, 4, whole("size", 1)), span("part", 5, 6, whole("size", 2)))))
	require.Len(t, r.Findings, 1)
	assert.Equal(t, 1, r.Findings[0].Count, "one finding for a trace")
}

func TestLengthsCountWhatAValueHolds(t *testing.T) {
	c := parse(t, "forbid: {length: 7}")
	for _, tt := range []struct {
		value attribute.Value
		long  bool
	}{
		{attribute.StringValue("1234567"), false},
		{attribute.StringValue("12345678"), true},
		{attribute.StringSliceValue([]string{"1234", "567"}), false},
		{attribute.StringSliceValue([]string{"1234", "5678"}), true},
		{attribute.Int64SliceValue([]int64{1}), true},
		{attribute.Float64SliceValue([]float64{1}), true},
		{attribute.BoolSliceValue(make([]bool, 8)), true},
		{attribute.ByteSliceValue(make([]byte, 8)), true},
		{attribute.SliceValue(attribute.StringValue("1234"), attribute.StringValue("5678")), true},
		{attribute.MapValue(attribute.String("1234", "5678")), true},
		{attribute.IntValue(1 << 60), false},
		{attribute.Value{}, false},
	} {
		r := c.Check(traces(job(attribute.KeyValue{Key: "fact", Value: tt.value})))
		assert.Equal(t, tt.long, len(r.Findings) == 1, tt.value.String())
	}
}

func TestObjectivesNameTheWorstSpan(t *testing.T) {
	c := parse(t, roleOfJobs+"slo: [{id: speed, on: job, value: attr(speed), when: {status: unset}, min: '10', max: '100', p95: '90', samples: 3}]")
	jobs := func(speeds ...float64) *capture.Capture {
		var all []*node
		for i, s := range speeds {
			all = append(all, span("all", float64(i), 100, span("job", float64(i), 99, number("speed", s))))
		}
		return traces(append(all, job(failed, number("speed", 1000)), job())...)
	}
	assert.Empty(t, c.Check(jobs(5, 200)).Findings, "too few samples")
	assert.Empty(t, c.Check(jobs(10, 50, 90)).Findings)
	r := c.Check(jobs(9, 50, 101, 9, 101))
	require.Len(t, r.Findings, 3)
	assert.Equal(t, []string{"speed max", "speed min", "speed p95"}, []string{r.Findings[0].Key, r.Findings[1].Key, r.Findings[2].Key})
	assert.Equal(t, []string{traceID(3).String(), traceID(1).String(), traceID(3).String()}, []string{r.Findings[0].TraceID.String(), r.Findings[1].TraceID.String(), r.Findings[2].TraceID.String()})
	assert.Equal(t, "all › job", r.Findings[0].Path)
}

func TestMoreThanIsRememberedIsStillJudged(t *testing.T) {
	const n = 10_100
	var all []*node
	for i := range n {
		all = append(all, span("ask", 0, 1, client), span("answer", 5, 6, server, orphaned(capture.OriginLocal), link(1, 7*i)))
	}
	got := traces(all...)
	c := parse(t, roles("ask", "answer")+"propagation: [{from: ask, to: answer, link: true}]\n"+
		"topology: {orphans: deny}\n")
	r := c.Check(got)
	counts := map[string]int{}
	for _, f := range r.Findings {
		counts[f.Rule] += f.Count
	}
	assert.Equal(t, map[string]int{"propagation.broken": n, "propagation.missing": n, "topology.orphan": n}, counts)
}
