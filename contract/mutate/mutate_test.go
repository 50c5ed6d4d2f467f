package mutate

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"

	"github.com/genaitrace/otelgenai/contract"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func find(t *testing.T, r *Result, o Operator, on, key string) Mutant {
	t.Helper()
	i := slices.IndexFunc(r.Mutants, func(m Mutant) bool { return m.Operator == o && m.On == on && m.Key == key })
	require.GreaterOrEqual(t, i, 0, "no mutant %s of %s %s", o, on, key)
	return r.Mutants[i]
}

func TestRunTellsWhatCatchesAFault(t *testing.T) {
	r, err := Run(parse(t, chat), request())
	require.NoError(t, err)
	for _, want := range []Mutant{
		{Operator: Rename, On: "prefill", By: []string{"span.name"}},
		{Operator: ReparentSibling, On: "decode", By: []string{"span.parent", "topology.outlives"}},
		{Operator: TenantSwap, On: "engine", By: []string{"topology.isolation"}},
		{Operator: ScaleUp, On: "engine", Key: "llm.ttft_ms", By: []string{"metric.sum", "timing.equal"}},
		{Operator: Drop, On: "decode/first_token", Key: "llm.ttft_ms", By: []string{"attribute.missing"}},
		{Operator: HighCardinality, Key: "gen_ai.request.model", By: []string{"attribute.value", "limit.cardinality"}},
		{Operator: Undercount, On: "genai.time_to_first_token", By: []string{"metric.measurements", "metric.sum"}},
		{Operator: Leak, On: "genai.active_requests", By: []string{"metric.unsettled"}},
		{Operator: DetachLog, On: "genai.completion", By: []string{"log.trace"}},
		{Operator: Rename, On: "decode"},
		{Operator: Kind, On: "prefill"},
		{Operator: Drop, On: "engine", Key: "ai.tokens.cached"},
	} {
		want.Caught = want.By != nil
		assert.Equal(t, want, find(t, r, want.Operator, want.On, want.Key))
	}
	assert.Equal(t, "chat", r.Contract)
	assert.Equal(t, []string{"attribute error.type of engine"}, r.Absent)
	assert.InDelta(t, 1-float64(len(r.Survivors()))/float64(len(r.Mutants)), r.Score(), 1e-9)

	again, err := Run(parse(t, chat), request())
	require.NoError(t, err)
	assert.Equal(t, r, again, "the same input gives the same result")
}

func TestAWarningDoesNotCatch(t *testing.T) {
	const text = chat + "severity: {span.kind: warn}\n"
	r, err := Run(parse(t, text), request())
	require.NoError(t, err)
	m := find(t, r, Kind, "engine", "")
	assert.False(t, m.Caught)
	assert.Equal(t, []string{"span.kind"}, m.Warned)

	var out strings.Builder
	require.NoError(t, r.WriteText(&out))
	assert.Contains(t, out.String(), "  kind of engine\n      → only a warning: severity of span.kind\n")
}

// A warning about the good capture is there with every fault; none of them caused
// it.
func TestAWarningThatWasThereBeforeIsNotTheFaults(t *testing.T) {
	good := request()
	good.Spans[2].Attributes = append(good.Spans[2].Attributes, attribute.String("genai.nobodys_key_at_all", "x"))
	r, err := Run(parse(t, chat), good)
	require.NoError(t, err)
	require.Equal(t, 1, parse(t, chat).Check(good).Count(contract.Warn))
	assert.Empty(t, find(t, r, Kind, "prefill", "").Warned)
}

func TestRunRefusesACaptureThatDoesNotPass(t *testing.T) {
	bad := request()
	bad.Spans[1].ParentID = name("nobody")
	_, err := Run(parse(t, chat), bad)
	require.ErrorContains(t, err, "does not pass the contract chat")
	require.ErrorContains(t, err, "\n  span.parent: engine span is not below gateway")
}

func TestRunRefusesACaptureInWhichNothingApplies(t *testing.T) {
	c := parse(t, "contract: genai.observability/v1\nname: nothing\nforbid: {content: true}\n")
	_, err := Run(c, request())
	require.ErrorContains(t, err, "shows nothing that the contract names")
}

func TestOptionsReachTheChecker(t *testing.T) {
	late := request()
	late.Spans[1].End = at(101) // within the tolerance
	_, err := Run(parse(t, chat), late)
	require.NoError(t, err)
	_, err = Run(parse(t, chat), late, WithCheck(contract.WithExactTimes()))
	require.ErrorContains(t, err, "topology.outlives")
}

func TestTheGoodCaptureStaysAsItWas(t *testing.T) {
	good := request()
	before := lines(good)
	spans := slices.Clone(good.Spans)
	c := parse(t, chat)
	for _, f := range newPlan(c.Spec(), good, c.Roles).faults {
		mutated, why := f.put()
		require.Equal(t, before, lines(good), "%s of %s %s", f.operator, f.on, f.key)
		require.Equal(t, mutated == nil, why != "")
		if mutated != nil {
			require.NotEmpty(t, diff(good, mutated), "%s of %s %s changes nothing", f.operator, f.on, f.key)
		}
	}
	assert.Equal(t, spans, good.Spans)
}

// Every operator is in reports, and each is put somewhere.
func TestEveryOperatorIsUsed(t *testing.T) {
	c := parse(t, chat)
	used := map[Operator]bool{}
	for _, f := range newPlan(c.Spec(), request(), c.Roles).faults {
		if mutated, _ := f.put(); mutated != nil {
			used[f.operator] = true
		}
		assert.Contains(t, Operators(), f.operator)
	}
	for _, o := range Operators() {
		assert.True(t, used[o], "%s is nowhere", o)
		assert.NotContains(t, hintFor(&Mutant{Operator: o, On: "x", Key: "y"}), "{")
	}
}

func TestWriteText(t *testing.T) {
	for name, r := range map[string]*Result{
		"report": {
			Contract: "chat",
			Mutants: []Mutant{
				{Operator: DropSpan, On: "engine", Caught: true, By: []string{"span.parent"}},
				{Operator: Reparent, On: "prefill"},
				{Operator: DropSpan, On: "prefill", Caught: true, By: []string{"request.incomplete"}},
				{Operator: ScaleUp, On: "engine", Key: "llm.ttft_ms"},
				{Operator: Kind, On: "engine", Warned: []string{"span.kind"}},
				{Operator: HighCardinality, Key: "gen_ai.request.model"},
				{Operator: Undercount, On: "genai.time_to_first_token"},
			},
			Skipped: []Skipped{{Operator: ClearError, On: "engine", Why: "no span of the role has failed"}},
			Absent: []string{
				"span decode", "attribute error.type of engine", "attribute error.type of prefill", "event token_stall of decode",
				"metric genai.queue.wait",
			},
		},
		"all_caught": {Contract: "chat", Mutants: []Mutant{{Operator: DropSpan, On: "engine", Caught: true, By: []string{"span.parent"}}}},
	} {
		var out strings.Builder
		require.NoError(t, r.WriteText(&out))
		golden := "testdata/" + name + ".golden"
		if *update {
			require.NoError(t, os.WriteFile(golden, []byte(out.String()), 0o600))
		}
		want, err := os.ReadFile(golden)
		require.NoError(t, err)
		assert.Equal(t, string(want), out.String(), name)
	}
}

func TestTheScoreIsNotRoundedUp(t *testing.T) {
	assert.Equal(t, "100.0", percent(1))
	assert.Equal(t, "99.9", percent(0.9999))
	assert.Equal(t, "0.0", percent((&Result{}).Score()))
}
