package mutate

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/capture"
)

const completion = "log genai.completion at 98ms 98ms in ok engine body completed {gen_ai.response.id STRING r-1}"

func TestEachFaultChangesOnlyWhatItSays(t *testing.T) {
	tests := []struct {
		operator Operator
		on, key  string
		want     string
	}{
		{Rename, "decode", "", `
- decode name inference.decode
+ decode name jogfsfodf.efdpef`},
		{Kind, "decode", "", `
- decode kind internal
+ decode kind client`},
		{Kind, "gateway", "", `
- gateway kind server
+ gateway kind client`},
		{Reparent, "decode", "", `
- decode parent engine, origin 1
+ decode parent gateway, origin 1`},
		{ReparentSibling, "decode", "", `
- decode parent engine, origin 1
+ decode parent prefill, origin 1`},
		{ReparentSibling, "prefill", "", `
- prefill parent engine, origin 1
+ prefill parent decode, origin 1`},
		{Orphan, "decode", "", `
- decode parent engine, origin 1
+ decode parent new, origin 1`},
		{NewTrace, "engine", "", `
- engine in ok, flags 00, state ""
- prefill in ok, flags 00, state ""
- decode in ok, flags 00, state ""
- gateway2 link to decode in ok
- ` + completion + `
+ engine in new, flags 00, state ""
+ prefill in new, flags 00, state ""
+ decode in new, flags 00, state ""
+ gateway2 link to decode in new
+ ` + strings.Replace(completion, "in ok", "in new", 1)},
		{NewRoot, "decode", "", `
- decode in ok, flags 00, state ""
- decode parent engine, origin 1
- gateway2 link to decode in ok
+ decode in new, flags 00, state ""
+ decode parent none, origin 0
+ gateway2 link to decode in new`},
		{SkewEarly, "engine", "", `
- engine from 1ms to 99ms
- prefill from 10ms to 40ms
- decode from 40ms to 98ms
- decode event 0 first_token at 41ms {llm.ttft_ms FLOAT64 40}
- decode event 1 done at 97ms
- ` + completion + `
+ engine from -1s to -902ms
+ prefill from -991ms to -961ms
+ decode from -961ms to -903ms
+ decode event 0 first_token at -960ms {llm.ttft_ms FLOAT64 40}
+ decode event 1 done at -904ms
+ ` + strings.Replace(completion, "98ms 98ms", "-903ms -903ms", 1)},
		{Outlive, "decode", "", `
- decode from 40ms to 98ms
+ decode from 40ms to 1.099s`},
		{NeverEnd, "decode", "", `
- decode from 40ms to 98ms
+ decode from 40ms to never`},
		{ErrorWithoutType, "decode", "", `
- decode status Unset 
+ decode status Error `},
		{ClearError, "gateway", "", `
- gateway2 status Error overloaded
+ gateway2 status Unset `},
		{TenantSwap, "engine", "", `
- engine has genai.tenant.id STRING acme
+ engine has genai.tenant.id STRING acme-1`},
		{Reorder, "prefill", "", `
- prefill from 10ms to 40ms
- decode from 40ms to 98ms
- decode event 0 first_token at 41ms {llm.ttft_ms FLOAT64 40}
- decode event 1 done at 97ms
+ prefill from 68ms to 98ms
+ decode from 10ms to 68ms
+ decode event 0 first_token at 11ms {llm.ttft_ms FLOAT64 40}
+ decode event 1 done at 67ms`},

		{Drop, "engine", "llm.ttft_ms", `
- engine has llm.ttft_ms FLOAT64 40`},
		{Retype, "engine", "llm.ttft_ms", `
- engine has llm.ttft_ms FLOAT64 40
+ engine has llm.ttft_ms STRING 40`},
		{Retype, "engine", "ai.tokens.cached", `
- engine has ai.tokens.cached INT64 1500
+ engine has ai.tokens.cached STRING 1500`},
		{Retype, "engine", "gen_ai.request.model", `
- engine has gen_ai.request.model STRING toy-1
+ engine has gen_ai.request.model INT64 1`},
		{Retype, "engine", "gen_ai.request.stream", `
- engine has gen_ai.request.stream BOOL true
+ engine has gen_ai.request.stream STRING true`},
		{Retype, "engine", "gen_ai.request.stop_sequences", `
- engine has gen_ai.request.stop_sequences STRINGSLICE ["END"]
+ engine has gen_ai.request.stop_sequences STRING ["END"]`},
		{ScaleUp, "engine", "llm.ttft_ms", `
- engine has llm.ttft_ms FLOAT64 40
+ engine has llm.ttft_ms FLOAT64 40000`},
		{ScaleUp, "engine", "ai.tokens.cached", `
- engine has ai.tokens.cached INT64 1500
+ engine has ai.tokens.cached INT64 1500000`},
		{ScaleDown, "engine", "llm.ttft_ms", `
- engine has llm.ttft_ms FLOAT64 40
+ engine has llm.ttft_ms FLOAT64 0.04`},
		{ScaleDown, "engine", "ai.tokens.cached", `
- engine has ai.tokens.cached INT64 1500
+ engine has ai.tokens.cached INT64 1`},
		{Negate, "engine", "ai.tokens.cached", `
- engine has ai.tokens.cached INT64 1500
+ engine has ai.tokens.cached INT64 -1500`},
		{Misspell, "engine", "gen_ai.request.model", `
- engine has gen_ai.request.model STRING toy-1
+ engine has gen_ai.request.moel STRING toy-1`},
		{UnknownMember, "engine", "gen_ai.request.model", `
- engine has gen_ai.request.model STRING toy-1
+ engine has gen_ai.request.model STRING no_such_member`},
		{PersonalData, "engine", "gen_ai.request.model", `
- engine has gen_ai.request.model STRING toy-1
+ engine has gen_ai.request.model STRING toy-1 jane.doe@example.com`},
		{Huge, "engine", "gen_ai.request.model", `
- engine has gen_ai.request.model STRING toy-1
+ engine has gen_ai.request.model STRING toy-1xxx… (100000 bytes)`},
		{Empty, "engine", "gen_ai.request.model", `
- engine has gen_ai.request.model STRING toy-1
+ engine has gen_ai.request.model STRING `},
		{Drop, "decode", "genai.span.role", ` 
- decode has genai.span.role STRING decode`}, // named by match alone
		{Drop, "gateway", "error.type", `
- gateway2 has error.type STRING overloaded`}, // not the first span of the role

		{DropEvent, "decode", "first_token", `
- decode event 0 first_token at 41ms {llm.ttft_ms FLOAT64 40}
- decode event 1 done at 97ms
+ decode event 0 done at 97ms`},
		{DuplicateEvent, "decode", "done", `
+ decode event 2 done at 97ms`},
		{RenameEvent, "decode", "done", `
- decode event 1 done at 97ms
+ decode event 1 epof at 97ms`},
		{SwapEvents, "decode", "first_token", `
- decode event 0 first_token at 41ms {llm.ttft_ms FLOAT64 40}
- decode event 1 done at 97ms
+ decode event 0 done at 41ms
+ decode event 1 first_token at 97ms {llm.ttft_ms FLOAT64 40}`},
		{EventBeforeStart, "decode", "done", `
- decode event 1 done at 97ms
+ decode event 1 done at -960ms`},
		{EventAfterEnd, "decode", "done", `
- decode event 1 done at 97ms
+ decode event 1 done at 1.098s`},
		{ScaleUp, "decode/first_token", "llm.ttft_ms", `
- decode event 0 first_token at 41ms {llm.ttft_ms FLOAT64 40}
+ decode event 0 first_token at 41ms {llm.ttft_ms FLOAT64 40000}`},

		{DropLog, "genai.completion", "", `
- ` + completion},
		{DetachLog, "genai.completion", "", `
- ` + completion + `
+ ` + strings.Replace(completion, "in ok engine", "in none none", 1)},
		{PersonalData, "genai.completion", "body", `
- ` + completion + `
+ ` + strings.Replace(completion, "completed", "completed jane.doe@example.com", 1)},
		{Empty, "genai.completion", "gen_ai.response.id", `
- ` + completion + `
+ ` + strings.Replace(completion, "r-1", "", 1)},
	}
	c := parse(t, chat)
	for _, tt := range tests {
		good := request()
		mutated, why := put(t, c, good, tt.operator, tt.on, tt.key)
		if assert.NotNil(t, mutated, "%s of %s %s: %s", tt.operator, tt.on, tt.key, why) {
			assert.Equal(t, strings.TrimSpace(tt.want), strings.TrimSpace(strings.Join(diff(good, mutated), "\n")), "%s of %s %s", tt.operator, tt.on, tt.key)
		}
	}
}

func TestADroppedSpanLeavesItsChildren(t *testing.T) {
	good := request()
	mutated, _ := put(t, parse(t, chat), good, DropSpan, "engine", "")
	changes := slices.DeleteFunc(diff(good, mutated), func(l string) bool { return strings.HasPrefix(l, "- engine") })
	assert.Equal(t, []string{
		"- prefill parent engine, origin 1", "- decode parent engine, origin 1", "- " + completion,
		"+ prefill parent gateway, origin 2", "+ decode parent gateway, origin 2",
		"+ " + strings.Replace(completion, "engine", "gateway", 1),
	}, changes, "the span above has them")

	mutated, _ = put(t, parse(t, chat), good, DropSpanOrphan, "engine", "")
	for _, l := range diff(good, mutated) {
		assert.Contains(t, l, "- engine", "nothing else")
	}
	assert.Len(t, mutated.Spans, len(good.Spans)-1)
}

func TestADuplicateHasAnIdentifierOfItsOwn(t *testing.T) {
	good := request()
	mutated, _ := put(t, parse(t, chat), good, Duplicate, "decode", "")
	changes := diff(good, mutated)
	for i := range changes {
		changes[i] = strings.Replace(changes[i], "+ new", "decode", 1)
	}
	assert.Equal(t, slices.DeleteFunc(lines(good), func(l string) bool { return !strings.HasPrefix(l, "decode") }), changes)
}

func TestASpanForEachToken(t *testing.T) {
	good := request()
	mutated, _ := put(t, parse(t, chat), good, Explode, "decode", "")
	added := mutated.Spans[len(good.Spans):]
	require.Len(t, added, tokens)
	ids := map[trace.SpanID]bool{}
	for _, s := range added {
		assert.Equal(t, "token", s.Name)
		assert.Equal(t, name("decode"), s.ParentID)
		assert.False(t, s.Start.Before(at(40)) || s.End.After(at(98)), "within its parent")
		ids[s.SpanID] = true
	}
	assert.Len(t, ids, tokens)
	assert.Equal(t, lines(good), lines(&capture.Capture{Spans: mutated.Spans[:len(good.Spans)], Metrics: mutated.Metrics, Logs: mutated.Logs}))
}

// The order and the last event hold still, so that only the number is wrong.
func TestAFloodKeepsTheLastEventLast(t *testing.T) {
	for role, events := range map[string]int{"decode": 2, "engine": 0} {
		good := request()
		mutated, _ := put(t, parse(t, chat), good, Flood, role, "")
		s := mutated.Spans[slices.IndexFunc(mutated.Spans, func(s *capture.Span) bool { return s.SpanID == name(role) })]
		assert.Len(t, s.Events, events+floods)
		for i, e := range s.Events {
			assert.False(t, e.Time.Before(s.Start) || e.Time.After(s.End))
			if e.Name == "done" {
				assert.Equal(t, len(s.Events)-1, i)
				assert.Equal(t, at(97), e.Time)
			}
		}
	}
}

func TestAFaultThatChangesNothingDoesNotCount(t *testing.T) {
	with := func(change func(c *capture.Capture)) *capture.Capture {
		c := request()
		change(c)
		return c
	}
	engine := func(kv attribute.KeyValue) *capture.Capture {
		return with(func(c *capture.Capture) {
			s := c.Spans[1]
			s.Attributes = slices.DeleteFunc(s.Attributes, func(a attribute.KeyValue) bool { return a.Key == kv.Key })
			s.Attributes = append(s.Attributes, kv)
		})
	}
	for _, tt := range []struct {
		operator Operator
		on, key  string
		good     *capture.Capture
		why      string
	}{
		{Reparent, "engine", "", request(), "the parent of the span has no captured parent"},
		{Reparent, "gateway", "", request(), noParent},
		{ReparentSibling, "engine", "", request(), noSibling},
		{Orphan, "gateway", "", request(), noParent},
		{NewTrace, "gateway", "", request(), noParent},
		{NewRoot, "gateway", "", request(), noParent},
		{SkewEarly, "gateway", "", request(), noParent},
		{SkewEarly, "decode", "", with(func(c *capture.Capture) { c.Spans[3].Start = at(-1000) }), "the span starts a second before its parent already"},
		{Outlive, "gateway", "", request(), noParent},
		{Outlive, "decode", "", with(func(c *capture.Capture) { c.Spans[3].End = at(1099) }), "the span ends a second after its parent already"},
		{Outlive, "decode", "", with(func(c *capture.Capture) { c.Spans[1].End = time.Time{} }), "the parent of the span has not ended"},
		{Outlive, "decode", "", with(func(c *capture.Capture) { c.Spans[3].End = time.Time{} }), notEnded},
		{NeverEnd, "decode", "", with(func(c *capture.Capture) { c.Spans[3].End = time.Time{} }), noChange},
		{ErrorWithoutType, "decode", "", with(func(c *capture.Capture) { c.Spans[3].Status = codes.Error }), noChange},
		{ClearError, "decode", "", request(), "no span of the role has failed"},
		{DropSpanOrphan, "decode", "", request(), noChildren},
		{TenantSwap, "gateway", "", request(), "every span that has what the contract isolates by is here or below"},
		{TenantSwap, "decode", "", request(), "no span from here on has what the contract isolates by"},
		{Reorder, "decode", "", request(), "no later sibling of the span has a role"},
		{Reorder, "gateway", "", request(), noSibling},
		{Reorder, "prefill", "", with(func(c *capture.Capture) { c.Spans[2].Start, c.Spans[2].End = c.Spans[3].Start, c.Spans[3].End }), noChange},

		{ScaleUp, "engine", "ai.tokens.cached", engine(attribute.Int("ai.tokens.cached", 0)), noChange},
		{ScaleUp, "engine", "ai.tokens.cached", engine(attribute.Int("ai.tokens.cached", math.MaxInt64/2)), noChange},
		{ScaleDown, "engine", "ai.tokens.cached", engine(attribute.Int("ai.tokens.cached", 0)), noChange},
		{Negate, "engine", "llm.ttft_ms", engine(attribute.Float64("llm.ttft_ms", 0)), noChange},
		{Negate, "engine", "llm.ttft_ms", engine(attribute.Float64("llm.ttft_ms", math.NaN())), noChange},
		{Negate, "engine", "gen_ai.request.model", request(), notANumber},
		{ScaleUp, "engine", "gen_ai.request.stream", request(), notANumber},
		{Empty, "engine", "gen_ai.request.model", engine(attribute.String("gen_ai.request.model", "")), noChange},
		{PersonalData, "engine", "gen_ai.request.stream", request(), notText},
		{Huge, "engine", "llm.ttft_ms", request(), notText},
		{UnknownMember, "engine", "gen_ai.request.stop_sequences", request(), "the contract allows every text"},

		{SwapEvents, "decode", "done", request(), "no event follows"},
		{EventAfterEnd, "decode", "done", with(func(c *capture.Capture) { c.Spans[3].End = time.Time{} }), notEnded},

		{Buckets, "genai.time_to_first_token", "", with(func(c *capture.Capture) { c.Metrics[0].Kind = capture.KindGauge }), "the metric is no histogram with boundaries"},
		{Buckets, "genai.time_to_first_token", "", with(func(c *capture.Capture) { c.Metrics[0].Points[0].Bounds = defaultBounds }), noChange},
		{Series, "genai.time_to_first_token", "", with(func(c *capture.Capture) { c.Metrics[0].Points = nil }), "the metric has no points"},
		{Undercount, "genai.time_to_first_token", "", with(func(c *capture.Capture) { c.Metrics[0].Kind = capture.KindGauge }), "a gauge counts nothing"},
		{Undercount, "genai.time_to_first_token", "", with(func(c *capture.Capture) { c.Metrics[0].Points[0] = capture.Point{} }), noChange},
		{ScaleMetric, "genai.time_to_first_token", "", with(func(c *capture.Capture) { c.Metrics[0].Points[0] = capture.Point{} }), noChange},

		{DetachLog, "genai.completion", "", with(func(c *capture.Capture) { c.Logs[0].TraceID, c.Logs[0].SpanID = trace.TraceID{}, trace.SpanID{} }), "the record belongs to no trace"},
		{PersonalData, "genai.completion", "body", with(func(c *capture.Capture) { c.Logs[0].Body = attribute.IntValue(1) }), notText},
		{HighCardinality, "", "gen_ai.request.model", with(func(c *capture.Capture) { c.Spans = c.Spans[4:] }), "no span has the attribute"},
	} {
		mutated, why := put(t, parse(t, chat), tt.good, tt.operator, tt.on, tt.key)
		assert.Nil(t, mutated, "%s of %s %s", tt.operator, tt.on, tt.key)
		assert.Equal(t, tt.why, why, "%s of %s %s", tt.operator, tt.on, tt.key)
	}
}

// What does not fit at the first span of a role may fit at a later one.
func TestAFaultIsPutWhereItFits(t *testing.T) {
	good := request()
	good.Spans[2].Attributes[0] = attribute.String("genai.span.role", "decode") // two of them, the first is short
	good.Spans[2].Events = []capture.Event{{Name: "done", Time: at(40)}}
	mutated, _ := put(t, parse(t, chat), good, SwapEvents, "decode", "first_token")
	assert.Equal(t, []string{
		"- decode event 0 first_token at 41ms {llm.ttft_ms FLOAT64 40}", "- decode event 1 done at 97ms",
		"+ decode event 0 done at 41ms", "+ decode event 1 first_token at 97ms {llm.ttft_ms FLOAT64 40}",
	}, diff(good, mutated))
}

func TestEverySpellingOfAnAttributeHasTheFault(t *testing.T) {
	good := request()
	good.Spans[1].Attributes = append(good.Spans[1].Attributes, attribute.String("ai.model.name", "toy-1"))
	mutated, _ := put(t, parse(t, chat), good, Drop, "engine", "gen_ai.request.model")
	assert.Equal(t, []string{"- engine has gen_ai.request.model STRING toy-1", "- engine has ai.model.name STRING toy-1"}, diff(good, mutated))
}

func TestAWordThatMayMeanAnythingIsNoSpelling(t *testing.T) {
	good := request()
	good.Spans[1].Attributes[5] = attribute.Float64("ttft", 40)
	c := parse(t, chat)
	assert.Contains(t, newPlan(c.Spec(), good, c.Roles).absent, "attribute llm.ttft_ms of engine")
}

// Each attribute and event is named at one place only.
func TestFaultsArePutAtWhateverTheContractNames(t *testing.T) {
	c := parse(t, `
contract: genai.observability/v1
name: names
spans:
  server:
    match: {kind: server}
  step:
    match: {kind: internal, any: [{has: a.matched}, {all: [{attr: {a.valued: x}}]}, {operation: chat}, {span_role: decode}], event: e.matched}
    name: "* {a.in_name}"
    attributes: {a.described: {type: int}}
    events:
      allow: [e.allowed, "e.glob*"]
      require: {e.required: }
      order: ["e.first|e.second"]
      once: e.once
      last: e.last
      attributes: {e.described: {a.of_event: {type: string}}}
metrics:
  m: {instrument: histogram, unit: "1", of: {role: step, value: attr(a.measured)}}
agree:
  - {keys: a.agreed, across: [server, step]}
  - {keys: a.agreed_everywhere}
timing:
  - {id: a, on: step, equal: [attr(a.timed), "event(e.timed, a.of_timed)"]}
  - {id: b, on: server, at_most: [step.attr(a.timed_from_outside), attr(a.of_server)]}
  - {id: c, on: server, order: [step.event(e.from_outside), end]}
slo:
  - {id: d, on: step, value: attr(a.objective), max: 1}
`)
	step := &capture.Span{TraceID: traceName("t"), SpanID: name("step"), Name: "step", Kind: trace.SpanKindInternal, Start: at(0), End: at(1)}
	for _, key := range []attribute.Key{
		"a.matched", "a.valued", "a.in_name", "a.described", "a.measured", "a.agreed", "a.agreed_everywhere", "a.timed",
		"a.timed_from_outside", "a.of_server", "a.objective", "gen_ai.operation.name", "genai.span.role",
	} {
		step.Attributes = append(step.Attributes, key.Int(1))
	}
	for _, event := range []string{
		"e.matched", "e.allowed", "e.globbed", "e.required", "e.first", "e.second", "e.once", "e.last", "e.described", "e.timed", "e.from_outside", "e.unnamed",
	} {
		step.Events = append(step.Events, capture.Event{Name: event, Time: at(0), Attributes: capture.Attributes{attribute.Int("a.of_event", 1), attribute.Int("a.of_timed", 1)}})
	}
	var found []string
	for _, f := range newPlan(c.Spec(), &capture.Capture{Spans: []*capture.Span{step}}, c.Roles).faults {
		if f.operator == Drop || f.operator == DropEvent {
			found = append(found, f.on+" "+f.key)
		}
	}
	assert.ElementsMatch(t, []string{
		"step a.matched", "step a.valued", "step a.in_name", "step a.described", "step a.measured", "step a.agreed", "step a.timed",
		"step a.timed_from_outside", "step a.objective", "step gen_ai.operation.name", "step genai.span.role",
		"step e.matched", "step e.allowed", "step e.required", "step e.first", "step e.second", "step e.once", "step e.last", "step e.described",
		"step e.timed", "step e.from_outside", "step/e.described a.of_event", "step/e.timed a.of_timed",
	}, found)
}

func TestRenameKeepsTheShape(t *testing.T) {
	for name, want := range map[string]string{
		"chat toy-1": "dibu upz-1", "POST /v1/Zz": "QPTU /w1/Aa", "": "-renamed", "42": "42-renamed", "会話": "会話-renamed",
	} {
		assert.Equal(t, want, rename(name))
	}
}

func TestAMisspeltKeyMeansNothing(t *testing.T) {
	for key, want := range map[string]string{
		"gen_ai.request.model": "gen_ai.request.moel", "llm.ttft_ms": "llm.ttf_ms", "x": "", "a.1": "",
	} {
		got, ok := misspelt(key, func(short attribute.Key) bool { return short == "" })
		assert.Equal(t, want, got, key)
		assert.Equal(t, want != "", ok)
	}
	got, _ := misspelt("a.bcd", func(short attribute.Key) bool { return short == "a.bd" })
	assert.Equal(t, "a.bc", got, "the next letter, where the middle one has a meaning")
}
