package contract_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/genaitrace/otelgenai/contract"
	"github.com/genaitrace/otelgenai/contract/spec"
)

// extended reads a contract that extends another one.
func extended(t *testing.T, base, over string) *contract.Contract {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "base.yaml"), []byte(header+base), 0o644))
	file := filepath.Join(dir, "over.yaml")
	require.NoError(t, os.WriteFile(file, []byte(header+"extends: base.yaml\n"+over), 0o644))
	c, err := contract.Load(file)
	require.NoError(t, err)
	return c
}

func TestWhatAFileSaysWinsOverWhatItExtends(t *testing.T) {
	for _, tt := range []struct {
		name, base, over string
		want             func(*spec.Contract) any
		is               any
	}{
		{
			"a role is merged", jobWith("kind: server"), "spans: {job: {name: work}}",
			func(c *spec.Contract) any { return []any{c.Spans["job"].Kind, c.Spans["job"].Name} },
			[]any{spec.Strings{"server"}, spec.Strings{"work"}},
		},
		{
			"a list of alternatives is replaced", jobWith("kind: [server, client]"), "spans: {job: {kind: internal}}",
			func(c *spec.Contract) any { return c.Spans["job"].Kind }, spec.Strings{"internal"},
		},
		{
			"a match is replaced", roleOfJobs, "spans: {job: {match: {kind: server}}}",
			func(c *spec.Contract) any { return c.Spans["job"].Match.Name }, spec.Strings(nil),
		},
		{
			"an attribute is replaced as a whole", jobWith("attributes: {size: {required: true, range: [1, 2]}, user: required}"), "spans: {job: {attributes: {size: optional}}}",
			func(c *spec.Contract) any {
				a := c.Spans["job"].Attributes
				return []any{a["size"].Required, a["size"].Range, a["user"].Required}
			},
			[]any{false, []float64(nil), true},
		},
		{
			"events are merged", jobWith("events: {max: 3, once: [a]}"), "spans: {job: {events: {once: [b]}}}",
			func(c *spec.Contract) any { return []any{c.Spans["job"].Events.Max, c.Spans["job"].Events.Once} },
			[]any{3, spec.Strings{"b"}},
		},
		{
			"a rule is lifted by nothing", jobWith("parent: {root: true}, events: {max: 3}"), "spans: {job: {parent: ~, events: null}}",
			func(c *spec.Contract) any { return c.Spans["job"].Parent == nil && c.Spans["job"].Events == nil }, true,
		},
		{
			"what must be becomes optional", "spans: {job: {match: {name: job}}}", "spans: {job: {optional: true}}",
			func(c *spec.Contract) any { return *c.Spans["job"].Optional }, true,
		},
		{
			"what is optional must be", roleOfJobs, "spans: {job: {optional: false}}",
			func(c *spec.Contract) any { return *c.Spans["job"].Optional }, false,
		},
		{
			"requirements of a request grow", roles("a", "b") + "requests: {work: {root: a, requires: [a]}}", "requests: {work: {requires: [b, a]}}",
			func(c *spec.Contract) any { return []any{c.Requests["work"].Root, c.Requests["work"].Requires} },
			[]any{"a", spec.Strings{"a", "b"}},
		},
		{
			"what is forbidden grows", `forbid: {content: true, values: ["builtin:email"], attributes: [a]}`, `forbid: {values: ["builtin:card"]}`,
			func(c *spec.Contract) any { return []any{c.Forbid.Content, c.Forbid.Values, c.Forbid.Attributes} },
			[]any{true, spec.Strings{"builtin:email", "builtin:card"}, spec.Strings{"a"}},
		},
		{
			"false is said", "forbid: {content: true}", "forbid: {content: false}",
			func(c *spec.Contract) any { return c.Forbid.Content }, false,
		},
		{
			"no limit is said", "limits: {spans_per_trace: 3, siblings: 4}", "limits: {spans_per_trace: 0}",
			func(c *spec.Contract) any { return []int{c.Limits.SpansPerTrace, c.Limits.Siblings} }, []int{0, 4},
		},
		{
			"a rule with an id takes the place of the earlier one", roleOfJobs + "timing: [{id: a, on: job, order: [start, end]}, {id: b, on: job, order: [start, end]}]",
			"timing: [{id: a, on: job, optional: true, order: [start, event(x), end]}, {id: c, on: job, order: [start, end]}]",
			func(c *spec.Contract) any {
				return []any{c.Timing[0].ID, c.Timing[0].Optional, c.Timing[1].ID, c.Timing[2].ID, len(c.Timing)}
			},
			[]any{"a", true, "b", "c", 3},
		},
		{
			"a hop takes the place of the one between the same roles", roles("a", "b") + "propagation: [{from: a, to: b}]", "propagation: [{from: a, to: b, optional: true}, {from: b, to: a}]",
			func(c *spec.Contract) any { return []any{c.Propagation[0].Optional, len(c.Propagation)} }, []any{true, 2},
		},
		{
			"severities are merged", "severity: {span.name: warn, span.kind: warn}", "severity: {span.name: error}",
			func(c *spec.Contract) any { return c.Severity },
			map[string]spec.Severity{"span.name": "error", "span.kind": "warn"},
		},
		{
			"a metric is replaced", "metrics: {work: {instrument: counter, required: true, series: 3}}", "metrics: {work: {instrument: counter}}",
			func(c *spec.Contract) any { return []any{c.Metrics["work"].Required, c.Metrics["work"].Series} }, []any{false, 0},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			assert.Equal(t, tt.is, tt.want(extended(t, tt.base, tt.over).Spec()))
		})
	}
}

func TestAFileThatIsExtendedIsNotChanged(t *testing.T) {
	before, err := contract.Builtin("chat")
	require.NoError(t, err)
	want := len(before.Spec().Spans["call"].Attributes)
	parse(t, "extends: [\"builtin:chat\"]\nspans: {call: {attributes: {user: required}, events: {max: 1}}}\nforbid: {values: [\"/x/\"]}")
	after, err := contract.Builtin("chat")
	require.NoError(t, err)
	assert.Len(t, after.Spec().Spans["call"].Attributes, want)
	assert.Equal(t, 100, after.Spec().Spans["call"].Events.Max)
	assert.NotContains(t, after.Spec().Forbid.Values, "/x/")
}

// Where a service is several things, it extends several profiles, and no rule of one
// may take the place of another's.
func TestProfilesThatAreExtendedTogetherKeepTheirRules(t *testing.T) {
	of := func(names ...string) map[string]spec.Timing {
		yaml := "extends: ["
		for _, n := range names {
			yaml += `"builtin:` + n + `", `
		}
		rules := map[string]spec.Timing{}
		for _, r := range parse(t, yaml+"]").Spec().Timing {
			rules[r.ID] = r
		}
		return rules
	}
	alone := map[string]map[string]spec.Timing{}
	for _, a := range contract.Builtins() {
		alone[a] = of(a)
	}
	for a, rules := range alone {
		for b := range alone {
			both := of(a, b)
			for id, rule := range rules {
				assert.Equal(t, rule.On, both[id].On, "%s: %s and %s", id, a, b)
			}
		}
	}
}

func TestAFindingNamesTheLineThatWon(t *testing.T) {
	c := extended(t, jobWith("attributes: {user: required, size: required}"), "spans:\n  job:\n    attributes:\n      user: {required: true}\n")
	r := c.Check(traces(job()))
	require.Len(t, r.Findings, 2)
	assert.Equal(t, "base.yaml:3:80", filepath.Base(r.Findings[0].Contract.String()), r.Findings[0].Key)
	assert.Equal(t, "over.yaml:7:7", filepath.Base(r.Findings[1].Contract.String()), r.Findings[1].Key)
}
