package contract_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/genaitrace/otelgenai/capture"
	"github.com/genaitrace/otelgenai/contract"
)

const exercised = `
spans:
  gateway: {match: {name: gateway}}
  call: {match: {name: call}}
  retrieval: {match: {name: retrieval}}
  cache: {match: {name: cache}, optional: true}
requests:
  chat: {root: gateway, when: {not: {contains: retrieval}}, requires: [call]}
  rag: {root: gateway, when: {contains: retrieval}, requires: [retrieval, call]}
  warm: {root: cache, optional: true}
propagation:
  - {from: gateway, to: call}
  - {from: call, to: cache, optional: true}
timing:
  - {id: found-first, on: gateway, order: [start, retrieval.end, call.start]}
  - {id: cached, on: gateway, order: [start, cache.end], optional: true}
agree:
  - {keys: [build], across: [gateway, call]}
  - {keys: [region], optional: true}
`

// What a contract says and nothing shows would pass for ever.
func TestWhatWasNeverTestedIsFound(t *testing.T) {
	build := text("build", "1")
	chat := span("gateway", 0, 100, build, span("call", 10, 90, build))
	rag := span("gateway", 0, 100, span("retrieval", 1, 5), span("call", 10, 90))
	for _, tt := range []struct {
		name string
		got  *capture.Capture
		opts []contract.Option
		want []string
	}{
		{"everything", traces(chat, rag), nil, []string{}},
		{"nothing", traces(), nil, []string{
			"no request of the kind chat was seen", "no request of the kind rag was seen",
			"no span has the role call", "no span has the role gateway", "no span has the role retrieval",
			"the rule agree.mismatch build never applied", "the rule propagation.broken gateway → call never applied", "the rule timing.order found-first never applied",
		}},
		{"chat alone", traces(chat), nil, []string{
			"no request of the kind rag was seen", "no span has the role retrieval", "the rule timing.order found-first never applied",
		}},
		{"chat alone, as was asked", traces(chat), []contract.Option{contract.WithRequests("chat")}, []string{}},
		{"rag alone, as was asked", traces(rag), []contract.Option{contract.WithRequests("rag")}, []string{"the rule agree.mismatch build never applied"}},
		{"rag where chat was asked for", traces(rag), []contract.Option{contract.WithRequests("chat")}, []string{"no request of the kind chat was seen", "the rule agree.mismatch build never applied"}},
		{"no kind at all", traces(), []contract.Option{contract.WithRequests()}, []string{}},
		{"an optional kind, as was asked", traces(), []contract.Option{contract.WithRequests("warm")}, []string{}},
		{"an unknown kind", traces(chat), []contract.Option{contract.WithRequests("chta")}, []string{"the contract has no requests of the kind chta"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := parse(t, exercised).Check(tt.got, tt.opts...)
			var messages []string
			for _, f := range r.Findings {
				assert.Equal(t, "contract.unexercised", f.Rule, f.Text())
				messages = append(messages, f.Message)
			}
			assert.ElementsMatch(t, tt.want, messages)
		})
	}
	warned := parse(t, exercised+"severity: {contract.unexercised: warn}").Check(traces())
	assert.False(t, warned.Failed(false))
	off := parse(t, exercised+"severity: {contract.unexercised: \"off\"}").Check(traces())
	assert.Empty(t, off.Findings)
}

func TestTheReportCountsHowOftenEachRuleWasTested(t *testing.T) {
	r := parse(t, exercised).Check(traces(span("gateway", 0, 100, span("call", 10, 90), span("call", 20, 90))))
	tested := map[string]int{}
	for _, c := range r.Rules {
		tested[c.Rule+" "+c.On+" "+c.Key] = c.Tested
	}
	assert.Equal(t, 1, tested["contract.unexercised gateway "])
	assert.Equal(t, 2, tested["contract.unexercised call "])
	assert.Equal(t, 1, tested["request.incomplete chat call"])
	assert.Zero(t, tested["request.incomplete rag call"])
	assert.Equal(t, 2, tested["propagation.broken call gateway → call"])
	assert.Equal(t, map[string]int{"chat": 1, "rag": 0, "warm": 0}, r.Requests)
}

func TestExactTimesLeaveNoSlack(t *testing.T) {
	c := parse(t, roles("job")+"timing: [{id: a, on: job, optional: true, equal: [attr(llm.ttft_ms), duration], tolerance: {abs: 5ms, pct: 10}}]")
	got := traces(job(number("llm.ttft_ms", 101), event("late", 101), span("early", -1, 9), span("late", 1, 101)))
	assert.Empty(t, c.Check(got).Findings)
	assert.Equal(t, []string{"event.outside", "timing.equal", "topology.outlives", "topology.skew"}, rulesOf(c.Check(got, contract.WithExactTimes())))
	assert.Empty(t, c.Check(traces(job(number("llm.ttft_ms", 100))), contract.WithExactTimes()).Findings)

	twice := traces(span("all", 0, 100, span("job", 1, 2), span("job", 1, 2)))
	assert.Equal(t, []string{"topology.duplicate"}, rulesOf(c.Check(twice)))
	assert.Empty(t, c.Check(twice, contract.WithExactTimes()).Findings, "on a fake clock two calls can take place at once")
}
