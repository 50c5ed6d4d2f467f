package mutate

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/capture"
	"github.com/genaitrace/otelgenai/contract"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func at(ms float64) time.Time {
	return start.Add(time.Duration(ms * float64(time.Millisecond)))
}

// name makes an identifier that reads as text in dumps.
func name(text string) (id trace.SpanID) {
	copy(id[:], text)
	return id
}

func traceName(text string) (id trace.TraceID) {
	copy(id[:], text)
	return id
}

// chat is a contract that says something about every kind of thing.
const chat = `
contract: genai.observability/v1
name: chat
requests:
  chat: {root: gateway, requires_unless_failed: [engine, prefill, decode]}
spans:
  gateway:
    match: {kind: server, name: "POST *"}
    name: "POST {http.route}"
    kind: server
    parent: {root: true}
    count: 1
    attributes:
      http.route: required
      genai.tenant.id: optional
      error.type: {required_iff: {status: error}}
  engine:
    match: {span_role: inference}
    name: inference.generate
    kind: internal
    parent: {is: gateway}
    count: {per: gateway, max: 1}
    attributes:
      genai.span.role: required
      gen_ai.request.model: {required: true, value: [toy-1, toy-2]}
      gen_ai.request.stream: optional
      gen_ai.request.stop_sequences: optional
      llm.ttft_ms: {required_if: {contains: decode}, range: [0, 60000]}
      ai.tokens.cached: optional
      genai.tenant.id: optional
      error.type: {required_iff: {status: error}}
  prefill:
    match: {span_role: prefill}
    name: inference.prefill
    parent: {is: engine}
  decode:
    match: {span_role: decode}
    parent: {is: engine}
    count: {per: engine, max: 1}
    events:
      allow: [first_token, done]
      order: [first_token, done]
      once: [done]
      last: done
      attributes: {first_token: {llm.ttft_ms: required}}
metrics:
  genai.time_to_first_token:
    required_with: [engine]
    attributes: {gen_ai.request.model: required}
    series: 10
    of: {role: engine, value: attr(llm.ttft_ms), tolerance: {abs: 1ms}}
  genai.active_requests: {required_with: [engine], series: 10, settles: true}
logs:
  genai.completion:
    required_with: [engine]
    on: [engine]
    attributes: {gen_ai.response.id: required}
forbid: {values: builtin:email, length: 1000}
limits: {siblings: 20, cardinality: {gen_ai.request.model: 20}}
timing:
  - {id: phases, on: engine, order: [start, prefill.start, prefill.end, decode.start, end]}
  - {id: ttft, on: engine, equal: [attr(llm.ttft_ms), decode.event(first_token) - start], tolerance: {abs: 1ms}}
topology: {isolate_by: [genai.tenant.id], roots: 1}
`

func parse(t *testing.T, text string) *contract.Contract {
	t.Helper()
	c, err := contract.Parse("test.yaml", []byte(text))
	require.NoError(t, err)
	return c
}

// request is one streamed request, one that failed, and what was recorded beside
// the spans.
func request() *capture.Capture {
	engineHost := &capture.Resource{Attributes: capture.Attributes{attribute.String("service.name", "engine")}}
	tenant := attribute.String("genai.tenant.id", "acme")
	role := func(role string) attribute.KeyValue { return attribute.String("genai.span.role", role) }
	ok, failed := traceName("ok"), traceName("failed")

	return &capture.Capture{
		Spans: []*capture.Span{
			{
				TraceID: ok, SpanID: name("gateway"), Name: "POST /chat", Kind: trace.SpanKindServer, Start: at(0), End: at(100),
				Attributes: capture.Attributes{attribute.String("http.route", "/chat"), tenant},
			},
			{
				TraceID: ok, SpanID: name("engine"), ParentID: name("gateway"), ParentOrigin: capture.OriginRemote,
				Name: "inference.generate", Kind: trace.SpanKindInternal, Start: at(1), End: at(99),
				Attributes: capture.Attributes{
					role("inference"), attribute.String("gen_ai.operation.name", "chat"), attribute.String("gen_ai.request.model", "toy-1"), attribute.Bool("gen_ai.request.stream", true),
					attribute.StringSlice("gen_ai.request.stop_sequences", []string{"END"}),
					attribute.Float64("llm.ttft_ms", 40), attribute.Int("ai.tokens.cached", 1500), tenant,
				},
				Resource: engineHost,
			},
			{
				TraceID: ok, SpanID: name("prefill"), ParentID: name("engine"), ParentOrigin: capture.OriginLocal,
				Name: "inference.prefill", Kind: trace.SpanKindInternal, Start: at(10), End: at(40),
				Attributes: capture.Attributes{role("prefill")}, Resource: engineHost,
			},
			{
				TraceID: ok, SpanID: name("decode"), ParentID: name("engine"), ParentOrigin: capture.OriginLocal,
				Name: "inference.decode", Kind: trace.SpanKindInternal, Start: at(40), End: at(98),
				Attributes: capture.Attributes{role("decode")}, Resource: engineHost,
				Events: []capture.Event{
					{Name: "first_token", Time: at(41), Attributes: capture.Attributes{attribute.Float64("llm.ttft_ms", 40)}},
					{Name: "done", Time: at(97)},
				},
			},
			{
				TraceID: failed, SpanID: name("gateway2"), Name: "POST /chat", Kind: trace.SpanKindServer, Start: at(200), End: at(210),
				Status: codes.Error, StatusMessage: "overloaded",
				Attributes: capture.Attributes{attribute.String("http.route", "/chat"), attribute.String("error.type", "overloaded")},
				Links:      []capture.Link{{TraceID: ok, SpanID: name("decode")}},
			},
		},
		Metrics: []*capture.Metric{{
			Name: "genai.time_to_first_token", Unit: "s", Kind: capture.KindHistogram, Temporality: capture.TemporalityCumulative,
			Points: []capture.Point{{
				Attributes: capture.Attributes{attribute.String("gen_ai.request.model", "toy-1")}, Start: at(0), Time: at(300),
				Count: 1, Sum: 0.04, HasSum: true, Min: new(0.04), Max: new(0.04),
				Bounds:       []float64{0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10},
				BucketCounts: []uint64{0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
				Exemplars:    []capture.Exemplar{{Time: at(41), Value: 0.04, TraceID: ok, SpanID: name("engine")}},
			}},
			Resource: engineHost,
		}, {
			Name: "genai.active_requests", Unit: "{request}", Kind: capture.KindUpDownCounter, Temporality: capture.TemporalityCumulative,
			Points: []capture.Point{{Start: at(0), Time: at(300), Int: true}},
		}},
		Logs: []*capture.Log{{
			Time: at(98), Observed: at(98), EventName: "genai.completion", Body: attribute.StringValue("completed"),
			Attributes: capture.Attributes{attribute.String("gen_ai.response.id", "r-1")},
			TraceID:    ok, SpanID: name("engine"), Resource: engineHost,
		}},
	}
}

// lines writes down everything that a capture holds, a fact a line.
func lines(c *capture.Capture) []string {
	var out []string
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	for _, s := range c.Spans {
		id := spanText(s.SpanID)
		add("%s in %s, flags %v, state %q", id, traceText(s.TraceID), s.Flags, s.TraceState)
		add("%s parent %s, origin %d", id, spanText(s.ParentID), s.ParentOrigin)
		add("%s name %s", id, s.Name)
		add("%s kind %s", id, s.Kind)
		add("%s from %s to %s", id, timeText(s.Start), timeText(s.End))
		add("%s status %s %s", id, s.Status, s.StatusMessage)
		for _, kv := range s.Attributes {
			add("%s has %s", id, keyText(kv))
		}
		for i, e := range s.Events {
			add("%s event %d %s at %s%s", id, i, e.Name, timeText(e.Time), setText(e.Attributes))
		}
		for _, l := range s.Links {
			add("%s link to %s in %s%s", id, spanText(l.SpanID), traceText(l.TraceID), setText(l.Attributes))
		}
		add("%s rest %v %v %v %p %p %v", id, s.DroppedAttributes, s.DroppedEvents, s.DroppedLinks, s.Resource, s.Scope, s.Source)
	}
	for _, m := range c.Metrics {
		add("metric %s unit %q, %s, temporality %d, %q %p %p", m.Name, m.Unit, m.Kind, m.Temporality, m.Description, m.Resource, m.Scope)
		for i, p := range m.Points {
			id := fmt.Sprintf("point %d%s", i, setText(p.Attributes))
			add("%s from %s to %s int %t", id, timeText(p.Start), timeText(p.Time), p.Int)
			add("%s value %g count %d sum %.6g %t min %s max %s", id, p.Value, p.Count, p.Sum, p.HasSum, floatText(p.Min), floatText(p.Max))
			add("%s bounds %v", id, p.Bounds)
			add("%s buckets %v", id, p.BucketCounts)
			if p.Exponential != nil {
				add("%s exponential %+v", id, *p.Exponential)
			}
			for _, q := range p.Quantiles {
				add("%s quantile %v", id, q)
			}
			for _, e := range p.Exemplars {
				add("%s exemplar %g at %s of %s", id, e.Value, timeText(e.Time), spanText(e.SpanID))
			}
		}
	}
	for _, l := range c.Logs {
		add("log %s at %s %s in %s %s body %s%s", l.EventName, timeText(l.Time), timeText(l.Observed), traceText(l.TraceID), spanText(l.SpanID), l.Body.String(), setText(l.Attributes))
	}
	return append(out, fmt.Sprintf("dropped %d", c.Dropped))
}

func spanText(id trace.SpanID) string { return idText(id[:]) }

func traceText(id trace.TraceID) string { return idText(id[:]) }

// idText reads what name wrote; what a fault made up has no name.
func idText(id []byte) string {
	text := strings.TrimRight(string(id), "\x00")
	switch {
	case text == "":
		return "none"
	case id[0] == 0xfa:
		return "new"
	default:
		return text
	}
}

func timeText(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.Sub(start).String()
}

func floatText(f *float64) string {
	if f == nil {
		return "none"
	}
	return fmt.Sprintf("%g", *f)
}

func keyText(kv attribute.KeyValue) string {
	text := kv.Value.String()
	if len(text) > 80 {
		text = fmt.Sprintf("%s… (%d bytes)", text[:8], len(text))
	}
	return fmt.Sprintf("%s %s %s", kv.Key, kv.Value.Type(), text)
}

func setText(attributes capture.Attributes) string {
	text := ""
	for _, kv := range attributes {
		text += " {" + keyText(kv) + "}"
	}
	return text
}

// diff returns what one capture holds and the other does not: lines with a minus
// that are missing, then lines with a plus that are new.
func diff(before, after *capture.Capture) []string {
	was, is := lines(before), lines(after)
	count := map[string]int{}
	for _, l := range was {
		count[l]++
	}
	for _, l := range is {
		count[l]--
	}
	var out []string
	for _, l := range was {
		if count[l] > 0 {
			count[l]--
			out = append(out, "- "+l)
		}
	}
	for _, l := range is {
		if count[l] < 0 {
			count[l]++
			out = append(out, "+ "+l)
		}
	}
	return out
}

// put makes the capture with one fault; where it fits nowhere, it returns why.
func put(t *testing.T, c *contract.Contract, good *capture.Capture, o Operator, on, key string) (*capture.Capture, string) {
	t.Helper()
	for _, f := range newPlan(c.Spec(), good, c.Roles).faults {
		if f.operator == o && f.on == on && f.key == key {
			return f.put()
		}
	}
	require.Fail(t, "no such fault", "%s of %s %s", o, on, key)
	return nil, ""
}
