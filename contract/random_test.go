package contract_test

import (
	"math"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/capture"
)

// everything is a contract with a rule of every kind.
const everything = `
scope: {undeclared: warn, ignore_scopes: ["ignored*"]}
requests:
  chat: {root: gateway, when: {not: {contains: retrieval}}, requires: [call], requires_unless_failed: [engine]}
  rag: {root: gateway, when: {contains: retrieval}, requires: [retrieval, call]}
spans:
  gateway: {match: {any: [{kind: server}, {span_role: gateway}]}, kind: server, name: ["{http.request.method} *", gateway], parent: {root: true}, status: [unset, error]}
  call:
    match: {operation: [chat, text_completion]}
    kind: [client, internal]
    name: "chat {gen_ai.request.model}"
    parent: {within: gateway, root: true}
    count: {per: gateway, min: 1, max: 3, unless: {status: error}}
    attributes:
      gen_ai.request.model: {required: true, value: ["toy-*", big]}
      ai.tokens.input: {required_if: {status: unset, has: ai.tokens.output}, range: [1, 100]}
      error.type: {required_iff: {status: error}}
      size: {type: int, range: [0, 10]}
      tags: {value: [a, b]}
    events:
      allow: ["first_*", token, done]
      require: {first_token: {has: llm.ttft_ms}}
      order: [first_token, token, done]
      once: [first_token]
      last: done
      max: 5
      attributes: {first_token: {llm.ttft_ms: required}}
  retrieval: {match: {operation: retrieval}, parent: {is: [gateway, call]}}
  engine: {match: {name: engine}, parent: {link: call, is: call}, count: {per: call, max: 1}}
  item: {match: {lacks: [gen_ai.operation.name], name: "item *"}, parent: {link: engine}, optional: true}
metrics:
  gen_ai.client.inference.duration: {required_with: [call], series: 3, of: {role: call, value: duration, tolerance: {pct: 1}}, attributes: {gen_ai.request.model: required}}
  work: {instrument: counter, required: true}
logs:
  done: {on: [call], required_with: [call], attributes: {size: {range: [0, 3]}}}
propagation:
  - {from: call, to: engine, via: http}
  - {from: call, to: item, via: messaging, link: true}
forbid:
  content: true
  attributes: ["secret*"]
  values: ["builtin:email", "builtin:api-key", "builtin:bearer", "builtin:card", "builtin:private-key", "/x{3}/"]
  except: [contact]
  spans: [token]
  length: 60
  event_length: 20
limits: {spans_per_trace: 30, siblings: 4, events_per_span: 6, events_per_trace: 20, attributes_per_span: 6, bytes_per_trace: 4000, span_names: 6, cardinality: {gen_ai.request.model: 2, size: 3}}
timing:
  - {id: inside, on: call, at_most: [attr(llm.ttft_ms), duration], tolerance: {abs: 1ms}}
  - {id: event, on: call, equal: [attr(llm.ttft_ms), event(first_token) - start], tolerance: {pct: 5}}
  - {id: parts, on: gateway, order: [start, retrieval.end, call.start, call.end, end], tolerance: {abs: 2ms}}
  - {id: sums, on: gateway, at_most: [call.duration + engine.duration?, duration + retrieval.duration?], unless: {status: error}}
  - {id: parent, on: engine, at_most: [duration, parent.duration], when: {parent: call}}
topology: {roots: 2, remote_orphans: warn, isolate_by: [genai.tenant.id], skew: 1ms, outlive: {allow: [{child: engine, parent: call, reason: it streams}]}}
agree:
  - {keys: [genai.tenant.id, size], across: [call, engine], per: gateway, tolerance: {pct: 10}}
  - {keys: [gen_ai.request.model]}
slo:
  - {id: fast, on: call, value: duration, p50: 10ms, p99: 50ms, min: 1ms, samples: 2}
severity: {attribute.unknown: "off"}
accept:
  - {rule: limit.siblings, reason: known}
  - {rule: span.kind, on: call, reason: old, until: 2020-01-01}
`

// chooser makes choices from bytes, and from zeros once they are used up, so that a
// fuzzer steers what is made.
type chooser struct{ data []byte }

func (c *chooser) n(n int) int {
	if len(c.data) == 0 {
		return 0
	}
	b := c.data[0]
	c.data = c.data[1:]
	return int(b) % n
}

func choose[T any](c *chooser, from []T) T { return from[c.n(len(from))] }

var (
	someKeys = []attribute.Key{
		"gen_ai.operation.name", "gen_ai.request.model", "ai.model.name", "gen_ai.provider.name", "gen_ai.system", "ai.tokens.input",
		"gen_ai.usage.output_tokens", "llm.ttft_ms", "ai.response.delay_ms", "gen_ai.response.time_to_first_chunk", "error.type", "genai.tenant.id",
		"gen_ai.input.messages", "gen_ai.request.modle", "genai.zebra", "size", "tags", "secret.0", "contact", "http.request.method",
		"http.response.status_code", "genai.span.role", "mcp.method.name", "genai.stream.terminal", "", "note",
	}
	someValues = []attribute.Value{
		attribute.StringValue("chat"), attribute.StringValue("retrieval"), attribute.StringValue("toy-1"), attribute.StringValue("big"), attribute.StringValue("gateway"),
		attribute.StringValue("a"), attribute.StringValue("b*"), attribute.StringValue("POST"), attribute.StringValue(""), attribute.StringValue("\xff\x00"),
		attribute.StringValue("write to ops@example.com"), attribute.StringValue("sk-proj-abcdEFGH1234abcdEFGH1234"), attribute.StringValue("4111 1111 1111 1111"),
		attribute.StringValue("a text that is longer than what the contract of the test allows for a value"),
		attribute.IntValue(0), attribute.IntValue(7), attribute.IntValue(-1), attribute.IntValue(404), attribute.IntValue(math.MaxInt64),
		attribute.Float64Value(0.25), attribute.Float64Value(12), attribute.Float64Value(math.NaN()), attribute.Float64Value(math.Inf(1)), attribute.Float64Value(-1e300),
		attribute.BoolValue(true), attribute.StringSliceValue([]string{"a", "c"}), attribute.StringSliceValue(nil), attribute.Int64SliceValue([]int64{1}),
		attribute.Float64SliceValue([]float64{1}), attribute.BoolSliceValue([]bool{true}), attribute.ByteSliceValue([]byte("ops@example.com")), {},
	}
	someNames  = []string{"gateway", "POST /ask", "chat toy-1", "chat big", "engine", "item 1", "item 2", "token", "", "call ops@example.com", "\x1b[31mred\n"}
	someEvents = []string{"first_token", "token", "done", "other", ""}
	someScopes = []*capture.Scope{nil, {Name: "lib"}, {Name: "ignored.lib"}, {Name: "noisy", Attributes: capture.Attributes{text("secret", "x")}}}
	someHosts  = []*capture.Resource{nil, service("front"), service("back", text("owner", "ops@example.com"))}
)

// randomCapture makes a capture, damaged ones included.
func randomCapture(data []byte) *capture.Capture {
	c := &chooser{data}
	got := &capture.Capture{}
	for n := c.n(48); n > 0 && len(c.data) > 0; n-- {
		got.Spans = append(got.Spans, c.span())
	}
	for n := c.n(4); n > 0 && len(c.data) > 0; n-- {
		got.Metrics = append(got.Metrics, c.metric())
	}
	for n := c.n(4); n > 0 && len(c.data) > 0; n-- {
		got.Logs = append(got.Logs, &capture.Log{
			EventName: choose(c, someEvents), Body: choose(c, someValues), Attributes: c.attributes(), Time: c.time(),
			TraceID: c.traceID(), SpanID: c.spanID(), Resource: choose(c, someHosts), Scope: choose(c, someScopes),
		})
	}
	return got
}

func (c *chooser) traceID() trace.TraceID { return traceID(c.n(4)) }
func (c *chooser) spanID() trace.SpanID   { return spanID(0, c.n(40)) }

func (c *chooser) time() time.Time {
	switch n := c.n(128); n {
	case 0:
		return time.Time{}
	case 1:
		return time.Unix(0, 0)
	case 2:
		return time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)
	default:
		return ms(float64(n))
	}
}

func (c *chooser) span() *capture.Span {
	s := &capture.Span{
		TraceID: c.traceID(), SpanID: c.spanID(), ParentID: c.spanID(), ParentOrigin: capture.Origin(c.n(3)),
		Name: choose(c, someNames), Kind: trace.SpanKind(c.n(8) - 1), Start: c.time(), Status: codes.Code(c.n(4)),
		Attributes: c.attributes(), Resource: choose(c, someHosts), Scope: choose(c, someScopes),
	}
	if c.n(8) > 0 {
		s.End = c.time()
	}
	for n := c.n(4); n > 0; n-- {
		s.Events = append(s.Events, capture.Event{Name: choose(c, someEvents), Time: c.time(), Attributes: c.attributes()})
	}
	for n := c.n(3); n > 0; n-- {
		s.Links = append(s.Links, capture.Link{TraceID: c.traceID(), SpanID: c.spanID(), Attributes: c.attributes()})
	}
	s.DroppedEvents = c.n(8) / 7
	return s
}

func (c *chooser) attributes() (all capture.Attributes) {
	for n := c.n(6); n > 0; n-- {
		all = append(all, attribute.KeyValue{Key: choose(c, someKeys), Value: choose(c, someValues)})
	}
	return all
}

func (c *chooser) metric() *capture.Metric {
	m := &capture.Metric{
		Name: choose(c, []string{"gen_ai.client.inference.duration", "work", "gen_ai.nothing", "", "http.server.request.duration"}),
		Unit: choose(c, []string{"s", "ms", ""}),
		Kind: choose(c, []capture.MetricKind{capture.KindHistogram, capture.KindCounter, capture.KindExponential, capture.KindSummary, ""}),
	}
	for n := c.n(4); n > 0; n-- {
		m.Points = append(m.Points, capture.Point{
			Attributes: c.attributes(), Count: uint64(c.n(5)), Sum: choose(c, []float64{0, 0.1, math.NaN(), -1}), Value: float64(c.n(3)),
			Exemplars: []capture.Exemplar{{Attributes: c.attributes()}},
		})
	}
	return m
}
