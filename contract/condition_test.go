package contract_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/otel/attribute"

	"github.com/genaitrace/otelgenai/capture"
	"github.com/genaitrace/otelgenai/contract"
)

// A condition selects the spans that get a role, so the table reads which ones do.
func TestAConditionSelectsSpans(t *testing.T) {
	got := traces(
		span("POST /ask", 0, 100, server, service("front"), &capture.Scope{Name: "http"}, text("genai.span.role", "gateway"),
			span("chat toy-1", 1, 90, client, service("front"), text("gen_ai.operation.name", "chat"), text("gen_ai.provider.name", "xai"), whole("gen_ai.usage.input_tokens", 12), truth("gen_ai.request.stream", true)),
			span("talk", 1, 90, client, failed, service("back"), text("ai.operation", "chat"), text("gen_ai.provider.name", "openai"), number("ai.response.delay_ms", 250), event("first_token", 5)),
			span("list", 1, 90, func(s *capture.Span) { s.Kind, s.Status = 0, 2 }, service("back"), attribute.StringSlice("tags", []string{"a", "b"}), number("load", 0.5)),
		),
	)
	for _, tt := range []struct {
		match string
		want  []string
	}{
		{"{kind: server}", []string{"POST /ask"}},
		{"{kind: internal}", []string{"list"}}, // unspecified is internal
		{"{kind: [server, internal]}", []string{"POST /ask", "list"}},
		{"{name: talk}", []string{"talk"}},
		{`{name: "*t*"}`, []string{"chat toy-1", "talk", "list"}},
		{`{name: "*t*t*"}`, []string{"chat toy-1", "list"}[:1]},
		{`{name: "t*t"}`, nil},
		{`{name: ["POST *", list]}`, []string{"POST /ask", "list"}},
		{"{span_role: gateway}", []string{"POST /ask"}},
		{"{operation: chat}", []string{"chat toy-1", "talk"}}, // in either vocabulary
		{"{attr: {gen_ai.provider.name: openai}}", []string{"talk"}},
		{"{attr: {gen_ai.provider.name: x_ai}}", nil}, // the values of one key have one spelling
		{`{attr: {gen_ai.provider.name: "*ai"}}`, []string{"chat toy-1", "talk"}},
		{"{attr: {ai.tokens.input: 12}}", []string{"chat toy-1"}},
		{"{attr: {gen_ai.response.time_to_first_chunk: 0.25}}", []string{"talk"}},
		{"{attr: {ai.response.delay_ms: 250}}", []string{"talk"}},
		{"{attr: {load: 0.5}}", []string{"list"}},
		{"{attr: {load: [1, 0.5]}}", []string{"list"}},
		{"{attr: {gen_ai.request.stream: true}}", []string{"chat toy-1"}},
		{"{attr: {gen_ai.request.stream: false}}", nil},
		{"{attr: {gen_ai.request.stream: \"true\"}}", nil},
		{"{attr: {tags: b}}", []string{"list"}},
		{"{attr: {tags: c}}", nil},
		{"{has: ai.tokens.input}", []string{"chat toy-1"}},
		{"{has: [gen_ai.operation.name, gen_ai.response.time_to_first_chunk]}", []string{"talk"}},
		{"{lacks: ai.operation}", []string{"POST /ask", "list"}},
		{"{lacks: [ai.operation, load]}", []string{"POST /ask"}},
		{"{event: [early_stop, \"first_*\"]}", []string{"talk"}},
		{"{status: error}", []string{"talk"}},
		{"{status: [ok, unset]}", []string{"POST /ask", "chat toy-1", "list"}},
		{"{scope: \"ht*\"}", []string{"POST /ask"}},
		{"{service: back}", []string{"talk", "list"}},
		{"{any: [{kind: server}, {status: ok}]}", []string{"POST /ask", "list"}},
		{"{all: [{kind: client}, {status: error}]}", []string{"talk"}},
		{"{not: {kind: client}}", []string{"POST /ask", "list"}},
		{"{kind: client, not: {status: error}, any: [{has: gen_ai.usage.input_tokens}]}", []string{"chat toy-1"}},
		{"{}", []string{"POST /ask", "chat toy-1", "talk", "list"}},
	} {
		t.Run(tt.match, func(t *testing.T) {
			c := parse(t, "spans: {it: {optional: true, match: "+tt.match+"}}")
			var have []string
			roles := c.Roles(got.Traces()[0])
			for _, s := range got.Spans {
				if len(roles[s]) > 0 {
					have = append(have, s.Name)
				}
			}
			assert.ElementsMatch(t, tt.want, have)
		})
	}
}

// The rest of a condition is about roles, so it stands in rules only.
func TestAConditionLooksAround(t *testing.T) {
	got := traces(
		span("gateway", 0, 100, span("call", 1, 90, span("engine", 2, 80, span("decode", 3, 70)))),
		span("gateway", 0, 100, span("other", 1, 90)),
		span("remote", 0, 100, orphaned(capture.OriginRemote), span("gateway", 1, 90)),
	)
	for _, tt := range []struct {
		on, when string
		want     int // how many spans of the role it holds for
	}{
		{"engine", "{parent: call}", 1},
		{"engine", "{parent: gateway}", 0},
		{"engine", "{parent: [decode, call]}", 1},
		{"engine", "{within: gateway}", 1},
		{"engine", "{within: engine}", 0},
		{"gateway", "{contains: decode}", 1},
		{"gateway", "{contains: gateway}", 3}, // at or below
		{"decode", "{contains: engine}", 0},
		{"gateway", "{not: {contains: [decode, engine]}}", 2},
		{"gateway", "{orphan: true}", 1},
		{"gateway", "{not: {orphan: true}}", 2},
		{"gateway", "{orphan: false}", 2},
		{"gateway", "{parent: call}", 0},
	} {
		t.Run(tt.on+" "+tt.when, func(t *testing.T) {
			c := parse(t, roles("gateway", "call", "engine", "decode")+"requests: {it: {optional: true, root: "+tt.on+", when: "+tt.when+"}}")
			assert.Equal(t, tt.want, c.Check(got).Requests["it"])
		})
	}
}

func TestSpellingsOfOneFactCountAsOne(t *testing.T) {
	c := parse(t, `
spans:
  job:
    match: {has: model}
    attributes:
      gen_ai.request.model: {spellings: [model], required: true, value: toy-1}
      ai.response.delay_ms: {spellings: [delay], range: [0, 100]}
      seconds: {unit: s, spellings: [secs]}
timing:
  - {id: a, on: job, optional: true, at_most: [attr(delay), attr(secs)]}
`)
	assert.Empty(t, c.Check(traces(job(text("model", "toy-1"), number("delay", 100), number("seconds", 0.1)))).Findings)
	r := c.Check(traces(job(text("model", "toy-2"), number("delay", 101), number("secs", 0.1))))
	assert.Equal(t, []string{"attribute.range", "attribute.value", "timing.at_most"}, rulesOf(r))
	r = c.Check(traces(job(text("ai.model.name", "toy-1"), text("model", "toy-2")))) // the vocabulary's spelling speaks
	assert.Empty(t, r.Findings)
}

func TestRequiredIffIsBothWays(t *testing.T) {
	c := parse(t, jobWith("attributes: {llm.ttft_ms: {required_iff: {event: first_token}}}"))
	for _, tt := range []struct {
		span *node
		want []string
	}{
		{job(), []string{}},
		{job(event("first_token", 1), number("llm.ttft_ms", 1)), []string{}},
		{job(event("first_token", 1)), []string{"attribute.missing"}},
		{job(number("llm.ttft_ms", 1)), []string{"attribute.unexpected"}},
	} {
		assert.Equal(t, tt.want, rulesOf(c.Check(traces(tt.span))))
	}
}

func TestSpansOutsideTheScopeHoldTheTreeTogether(t *testing.T) {
	c := parse(t, roles("gateway", "call")+`
scope: {services: "shop-*", ignore_scopes: [lib]}
requests: {it: {root: gateway, requires: [call]}}
limits: {spans_per_trace: 2, siblings: 1}
`)
	lib := &capture.Scope{Name: "lib"}
	shop := service("shop-1")
	assert.Empty(t, c.Check(traces(span("gateway", 0, 100, shop,
		span("middle", 1, 90, shop, lib, text("gen_ai.request.modle", "x"), span("call", 2, 80, shop)),
		span("middle", 1, 90, shop, lib, neverEnded),
		span("call", 1, 90, service("foreign"), text("gen_ai.request.modle", "x")),
	))).Findings)
	r := c.Check(traces(span("gateway", 0, 100, service("foreign"), span("call", 1, 90, service("foreign")))))
	assert.Equal(t, []string{"contract.unexercised"}, rulesOf(r))
	assert.Equal(t, 2, r.Spans)
}

func TestALaterParentIsStillTheParent(t *testing.T) {
	// The clock of the gateway is ahead, so its span stands after those below it.
	got := traces(span("gateway", 50, 150, span("call", 0, 90, span("engine", 1, 80))))
	c := parse(t, roles("gateway", "call", "engine")+`
requests: {it: {root: gateway, requires: [call, engine]}}
topology: {skew: 1s}
agree: [{keys: [a], across: [gateway, engine], optional: true}]
timing: [{id: inside, on: gateway, at_most: [engine.duration, call.duration, duration]}]
`)
	assert.Empty(t, c.Check(got).Findings)
	for s, roles := range c.Roles(got.Traces()[0]) {
		assert.Equal(t, []string{s.Name}, roles)
	}
}

func TestRolesOfAnEmptyTraceAreNone(t *testing.T) {
	assert.Empty(t, parse(t, roleOfJobs).Roles(&capture.Trace{}))
	assert.Equal(t, []string{"a", "b"}, parse(t, roles("job")+"requests: {b: {root: job}, a: {root: job}}").Requests())
	assert.Empty(t, contract.Rules()[0].Brief == "")
}
