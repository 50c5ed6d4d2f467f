package contract_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/genaitrace/otelgenai/contract"
)

func TestAnAcceptedViolationIsSetAsideWithItsReason(t *testing.T) {
	const rules = `
spans:
  job: {match: {name: job}, attributes: {user: required, size: required}}
  task: {match: {name: task}, attributes: {user: required}}
severity: {attribute.missing: %s}
accept: [%s]
`
	bad := traces(job(), span("task", 0, 1))
	for _, tt := range []struct {
		name, entry     string
		day             string
		accepted, found []string // as rule on key
	}{
		{"a rule, a role and a key", "{rule: attribute.missing, on: job, key: user, reason: r}", "2026-01-01",
			[]string{"attribute.missing job user"}, []string{"attribute.missing job size", "attribute.missing task user"}},
		{"a rule and a key", "{rule: attribute.missing, key: user, reason: r}", "2026-01-01",
			[]string{"attribute.missing job user", "attribute.missing task user"}, []string{"attribute.missing job size"}},
		{"a rule", "{rule: attribute.missing, reason: r}", "2026-01-01",
			[]string{"attribute.missing job size", "attribute.missing job user", "attribute.missing task user"}, nil},
		{"a glob", `{rule: "attribute.*", on: task, reason: r}`, "2026-01-01",
			[]string{"attribute.missing task user"}, []string{"attribute.missing job size", "attribute.missing job user"}},
		{"two entries", "{rule: attribute.missing, on: job, reason: r}, {rule: attribute.missing, on: task, reason: r}", "2026-01-01",
			[]string{"attribute.missing job size", "attribute.missing job user", "attribute.missing task user"}, nil},
		{"the last day", "{rule: attribute.missing, reason: r, until: 2026-01-01}", "2026-01-01",
			[]string{"attribute.missing job size", "attribute.missing job user", "attribute.missing task user"}, nil},
		{"the day after", "{rule: attribute.missing, on: task, reason: r, until: 2025-12-31}", "2026-01-01",
			nil, []string{"accept.expired task ", "attribute.missing job size", "attribute.missing job user", "attribute.missing task user"}},
		{"nothing to accept", "{rule: span.name, on: job, reason: r}", "2026-01-01",
			nil, []string{"accept.stale job ", "attribute.missing job size", "attribute.missing job user", "attribute.missing task user"}},
		{"nothing to accept, and too late", "{rule: span.name, on: job, reason: r, until: 2025-12-31}", "2026-01-01",
			nil, []string{"accept.stale job ", "attribute.missing job size", "attribute.missing job user", "attribute.missing task user"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := parse(t, sprintf(rules, "error", tt.entry)).Check(bad, on(tt.day))
			list := func(findings []contract.Finding) (all []string) {
				for _, f := range findings {
					all = append(all, f.Rule+" "+f.On+" "+f.Key)
				}
				return all
			}
			assert.Equal(t, tt.accepted, list(r.Accepted))
			assert.Equal(t, tt.found, list(r.Findings))
			for _, f := range r.Accepted {
				assert.Equal(t, "r", f.Reason)
			}
			assert.Equal(t, len(tt.found) > 0, r.Failed(false))
		})
	}

	warned := parse(t, sprintf(rules, "warn", "{rule: attribute.missing, reason: r}")).Check(bad)
	assert.False(t, warned.Failed(true), "a warning can be accepted, too")
}

func TestOneKindOfRequestsDoesNotMakeAnEntryStale(t *testing.T) {
	c := parse(t, roles("job", "task")+`
requests: {work: {root: job}, rest: {root: task, optional: true}}
accept: [{rule: span.status, on: task, reason: r}]
`)
	r := c.Check(traces(job()), contract.WithRequests("work"))
	assert.Empty(t, r.Findings, "what is accepted may belong to the other kind")
	assert.Equal(t, []string{"accept.stale"}, rulesOf(c.Check(traces(job()))))
}

func TestSeveritiesFollowTheLongestPattern(t *testing.T) {
	c := parse(t, jobWith("attributes: {user: required, gone: forbidden, size: {range: [1, 2]}}")+`
severity: {"*": warn, "attribute.*": "off", attribute.missing: error}
`)
	r := c.Check(traces(job(neverEnded), job(), span("job", 0, 1)))
	require.Len(t, r.Findings, 2)
	assert.Equal(t, "error attribute.missing job on=\"job\" key=\"user\"", short(r.Findings[0]))
	assert.Equal(t, "warn topology.never_ended job on=\"job\" key=\"\"", short(r.Findings[1]))
	assert.Equal(t, []int{1, 1}, []int{r.Count(contract.Error), r.Count(contract.Warn)})
	assert.Equal(t, 3, r.Findings[0].Count, "a violation by three spans is one finding")

	r = c.Check(traces(job(whole("size", 9), text("gone", "x"), text("user", "a"))))
	assert.Empty(t, r.Findings, "a rule that is off finds nothing")
	for _, rule := range r.Rules {
		assert.NotEqual(t, "attribute.range", rule.Rule, "and is not counted")
	}
}
