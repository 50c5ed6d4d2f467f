package contract_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"

	"github.com/genaitrace/otelgenai/capture"
	"github.com/genaitrace/otelgenai/contract"
	"github.com/genaitrace/otelgenai/contract/spec"
)

// ruleCase is a contract, a capture that passes it, and one that fails with exactly
// one finding.
type ruleCase struct {
	rule      string
	contract  string // after the header
	good, bad *capture.Capture
	want      contract.Finding // On, Key, Expected, Found and Path
	also      []string         // rules that cannot but find the same fault
	opts      []contract.Option
}

// roleOfJobs is a contract with one role.
const roleOfJobs = "spans: {job: {match: {name: job}, optional: true}}\n"

// jobWith is a contract with one role and something to say of it.
func jobWith(yaml string) string {
	return "spans: {job: {match: {name: job}, optional: true, " + yaml + "}}\n"
}

func job(parts ...any) *node { return span("job", 0, 100, parts...) }

// jobs is a contract with roles of these names.
func roles(names ...string) string {
	yaml := "spans:\n"
	for _, name := range names {
		yaml += "  " + name + ": {match: {name: " + name + "}, optional: true}\n"
	}
	return yaml
}

func on(day string) contract.Option {
	now, err := time.Parse(time.DateOnly, day)
	if err != nil {
		panic(err)
	}
	return contract.WithNow(now)
}

// names returns spans of these names below one.
func children(names ...string) []any {
	var all []any
	for i, name := range names {
		all = append(all, span(name, float64(10*i), float64(10*i+5)))
	}
	return all
}

var ruleCases = []ruleCase{
	{
		rule:     "accept.expired",
		contract: jobWith("attributes: {user: required}") + "accept: [{rule: attribute.missing, on: job, reason: later, until: 2026-03-31}]",
		bad:      traces(job()), // TestAnAcceptedViolation has the good ones
		want:     contract.Finding{On: "job", Expected: "no violation of attribute.missing on job", Found: "one"},
		also:     []string{"attribute.missing"}, opts: []contract.Option{on("2026-04-01")},
	},
	{
		rule:     "accept.stale",
		contract: jobWith("attributes: {user: required}") + "accept: [{rule: attribute.missing, key: user, reason: later}]",
		good:     traces(job()), bad: traces(job(text("user", "a"))),
		want: contract.Finding{Key: "user", Expected: "a violation of attribute.missing of user", Found: "none"},
	},
	{
		rule:     "agree.mismatch",
		contract: roles("ask", "answer") + "agree: [{keys: [build, size], across: [ask, answer]}]",
		good:     traces(span("ask", 0, 9, text("build", "a")), span("ask", 0, 9, text("build", "b"), span("answer", 1, 2, text("build", "b")))),
		bad:      traces(span("ask", 0, 9, text("build", "a"), span("answer", 1, 2, text("build", "b")))),
		want:     contract.Finding{On: "ask, answer", Key: "build", Expected: `build "a"`, Found: `build "b"`, Path: "ask › answer"},
	},
	{
		rule:     "agree.mismatch",
		contract: roles("ask", "answer") + "agree: [{keys: [build], across: [answer], per: ask}]",
		good: traces(span("all", 0, 99, span("ask", 0, 9, span("answer", 1, 2, text("build", "a")), span("answer", 3, 4, text("build", "a"))),
			span("ask", 10, 19, span("answer", 11, 12, text("build", "b"))))),
		bad: traces(span("all", 0, 99, span("ask", 0, 9, span("answer", 1, 2, text("build", "a")), span("ask", 3, 5, span("answer", 3, 4, text("build", "b")))),
			span("ask", 10, 19, span("answer", 11, 12, text("build", "c"))))),
		want: contract.Finding{On: "answer", Key: "build", Expected: `build "a"`, Found: `build "b"`, Path: "all › ask › ask › answer"},
	},
	{
		rule:     "attribute.deprecated",
		contract: roleOfJobs,
		good:     traces(job(text("gen_ai.provider.name", "openai"))), bad: traces(job(text("gen_ai.system", "openai"))),
		want: contract.Finding{On: "job", Key: "gen_ai.system", Expected: "gen_ai.provider.name", Found: "gen_ai.system", Path: "job"},
	},
	{
		rule:     "attribute.empty",
		contract: roleOfJobs,
		good:     traces(job(text("gen_ai.request.model", "toy-1"), text("url.query", ""))), bad: traces(job(text("gen_ai.request.model", ""))),
		want: contract.Finding{On: "job", Key: "gen_ai.request.model", Expected: "a value, or no attribute", Found: `""`, Path: "job"},
	},
	{
		rule:     "attribute.misspelt",
		contract: roleOfJobs,
		good:     traces(job(text("gen_ai.request.model", "toy-1"))), bad: traces(job(text("gen_ai.request.modle", "toy-1"))),
		want: contract.Finding{On: "job", Key: "gen_ai.request.modle", Expected: "gen_ai.request.model", Found: "gen_ai.request.modle", Path: "job"},
	},
	{
		rule:     "attribute.missing",
		contract: jobWith("attributes: {user: required}"),
		good:     traces(job(text("user", "a"))), bad: traces(span("all", 0, 100, job())),
		want: contract.Finding{On: "job", Key: "user", Expected: "user", Found: "nothing", Path: "all › job"},
	},
	{
		rule:     "attribute.missing",
		contract: jobWith("attributes: {ai.response.delay_ms: {required_if: {status: error}}}"),
		good:     traces(job(), job(failed, number("gen_ai.response.time_to_first_chunk", 0.04))), bad: traces(job(failed)),
		want: contract.Finding{On: "job", Key: "ai.response.delay_ms", Expected: "ai.response.delay_ms or gen_ai.response.time_to_first_chunk", Found: "nothing", Path: "job"},
	},
	{
		rule:     "attribute.range",
		contract: jobWith("attributes: {size: {range: [1, 10]}}"),
		good:     traces(job(whole("size", 10)), job()), bad: traces(job(whole("size", 11))),
		want: contract.Finding{On: "job", Key: "size", Expected: "1 to 10", Found: "11", Path: "job"},
	},
	{
		rule:     "attribute.range",
		contract: jobWith("attributes: {gen_ai.response.time_to_first_chunk: {range: [0, 60]}}"),
		good:     traces(job(number("ai.response.delay_ms", 60000))), bad: traces(job(number("ai.response.delay_ms", 60001))),
		want: contract.Finding{On: "job", Key: "gen_ai.response.time_to_first_chunk", Expected: "0 to 60000", Found: "60001", Path: "job"},
	},
	{
		rule:     "attribute.range",
		contract: roleOfJobs,
		good:     traces(job(whole("ai.tokens.input", 0))), bad: traces(job(whole("ai.tokens.input", -1))),
		want: contract.Finding{On: "job", Key: "ai.tokens.input", Expected: "0 or more", Found: "-1", Path: "job"},
	},
	{
		rule:     "attribute.type",
		contract: roleOfJobs,
		good:     traces(job(number("llm.ttft_ms", 12))), bad: traces(job(text("llm.ttft_ms", "12"))),
		want: contract.Finding{On: "job", Key: "llm.ttft_ms", Expected: "double", Found: `string "12"`, Path: "job"},
	},
	{
		rule:     "attribute.type",
		contract: jobWith("attributes: {size: {type: int}}"),
		good:     traces(job(whole("size", 1))), bad: traces(job(number("size", 1))),
		want: contract.Finding{On: "job", Key: "size", Expected: "int", Found: "double 1", Path: "job"},
	},
	{
		rule:     "attribute.unexpected",
		contract: jobWith("attributes: {user: forbidden}"),
		good:     traces(job()), bad: traces(job(text("user", "a"))),
		want: contract.Finding{On: "job", Key: "user", Expected: "no user", Found: `"a"`, Path: "job"},
	},
	{
		rule:     "attribute.unexpected",
		contract: jobWith("attributes: {error.type: {required_iff: {status: error}}}"),
		good:     traces(job(), job(failed, text("error.type", "timeout"))), bad: traces(job(text("error.type", "timeout"))),
		want: contract.Finding{On: "job", Key: "error.type", Expected: "no error.type", Found: `"timeout"`, Path: "job"},
	},
	{
		rule:     "attribute.unknown",
		contract: roleOfJobs,
		good:     traces(job(text("mine.zebra.stripes", "a"))), bad: traces(job(text("genai.zebra.stripes", "a"))),
		want: contract.Finding{On: "job", Key: "genai.zebra.stripes", Expected: "a key of the vocabulary", Found: "genai.zebra.stripes", Path: "job"},
	},
	{
		rule:     "attribute.value",
		contract: jobWith(`attributes: {tier: {value: [gold, "silver*"]}}`),
		good:     traces(job(text("tier", "silver-2")), job(attribute.StringSlice("tier", []string{"gold", "silver"}))), bad: traces(job(text("tier", "bronze"))),
		want: contract.Finding{On: "job", Key: "tier", Expected: "gold or silver*", Found: `"bronze"`, Path: "job"},
	},
	{
		rule:     "attribute.value",
		contract: jobWith(`attributes: {tier: {value: [gold, silver]}}`),
		good:     traces(job(attribute.StringSlice("tier", []string{"gold", "silver"}))), bad: traces(job(attribute.StringSlice("tier", []string{"gold", "bronze"}))),
		want: contract.Finding{On: "job", Key: "tier", Expected: "gold or silver", Found: `["gold","bronze"]`, Path: "job"},
	},
	{
		rule:     "attribute.value",
		contract: jobWith(`attributes: {gen_ai.operation.name: {members: closed}}`),
		good:     traces(job(text("gen_ai.operation.name", "create_memory"))), bad: traces(job(text("gen_ai.operation.name", "talk"))),
		want: contract.Finding{On: "job", Key: "gen_ai.operation.name", Expected: "chat or generate_content or text_completion or embeddings or retrieval or fetch_response or create_agent or invoke_agent or execute_tool or invoke_workflow or plan or search_memory or create_memory or update_memory or upsert_memory or delete_memory or create_memory_store or delete_memory_store", Found: `"talk"`, Path: "job"},
	},
	{
		rule:     "contract.unexercised",
		contract: "spans: {job: {match: {name: job}}}\n",
		good:     traces(job()), bad: traces(span("other", 0, 1)),
		want: contract.Finding{On: "job", Expected: "at least one", Found: "none"},
	},
	{
		rule:     "convention.missing",
		contract: roleOfJobs,
		good:     traces(span("chat toy-1", 0, 9, client, text("gen_ai.operation.name", "chat"), text("gen_ai.provider.name", "vllm"))),
		bad:      traces(span("chat toy-1", 0, 9, client, text("gen_ai.operation.name", "chat"))),
		want:     contract.Finding{Key: "gen_ai.provider.name", Expected: "gen_ai.provider.name", Found: "nothing", Path: "chat toy-1"},
	},
	{
		rule:     "convention.missing",
		contract: roleOfJobs,
		good:     traces(span("queue.wait", 0, 9), span("queue.wait", 0, 9, text("messaging.system", "nats")), span("queue.wait", 0, 9, number("llm.queue_wait_ms", 9), text("genai.span.role", "queue"))),
		bad:      traces(span("queue.wait", 0, 9, number("llm.queue_wait_ms", 9))),
		want:     contract.Finding{Key: "genai.span.role", Expected: "genai.span.role", Found: "nothing", Path: "queue.wait"},
	},
	{
		rule:     "event.last",
		contract: jobWith(`events: {last: "done|stopped"}`),
		good:     traces(job(event("begin", 1), event("done", 2)), job(event("begin", 1))), bad: traces(job(event("begin", 1), event("stopped", 2), event("more", 3))),
		want: contract.Finding{On: "job", Key: "done|stopped", Expected: "stopped at the end", Found: "begin, stopped, more", Path: "job"},
	},
	{
		rule:     "event.limit",
		contract: jobWith("events: {max: 2}"),
		good:     traces(job(event("a", 1), event("a", 2))), bad: traces(job(event("a", 1), event("a", 2), event("a", 3))),
		want: contract.Finding{On: "job", Expected: "at most 2", Found: "3", Path: "job"},
	},
	{
		rule:     "event.limit",
		contract: jobWith("events: {max: 1}") + "limits: {events_per_span: 1}",
		good:     traces(job(event("a", 1))), bad: traces(job(event("a", 1), event("a", 2))),
		want: contract.Finding{On: "job", Expected: "at most 1", Found: "2", Path: "job"},
	},
	{
		rule:     "event.limit",
		contract: jobWith("events: {max: 1, asked: {a: limit}}") + "limits: {events_per_trace: 2}",
		good:     traces(job(event("a", 1), event("a", 2), event("a", 3), event("b", 4), whole("limit", 3))), bad: traces(job(event("a", 1), event("a", 2), event("a", 3), whole("limit", 1))),
		want: contract.Finding{On: "job", Expected: "at most 1", Found: "2", Path: "job"},
	},
	{
		rule:     "event.limit",
		contract: jobWith("events: {asked: {a: limit}}") + "limits: {events_per_span: 1}",
		good:     traces(job(event("a", 1), event("a", 2), event("b", 4), whole("limit", 9))), bad: traces(job(event("a", 1), event("a", 2), event("a", 3))),
		want: contract.Finding{On: "job", Expected: "at most 1", Found: "3", Path: "job"},
	},
	{
		rule:     "event.missing",
		contract: jobWith("events: {require: {done: {status: unset}, begin: {}}}"),
		good:     traces(job(event("begin", 1), event("done", 2)), job(failed, event("begin", 1))), bad: traces(job(event("begin", 1))),
		want: contract.Finding{On: "job", Key: "done", Expected: "done", Found: "begin", Path: "job"},
	},
	{
		rule:     "event.order",
		contract: jobWith(`events: {order: [begin, "more|less", done]}`),
		good:     traces(job(event("done", 4), event("less", 3), event("more", 2), event("other", 0), event("begin", 1))), bad: traces(job(event("begin", 3), event("less", 2))),
		want: contract.Finding{On: "job", Key: "begin, more|less, done", Expected: "begin, more|less, done", Found: "less, begin", Path: "job"},
	},
	{
		rule:     "event.outside",
		contract: roleOfJobs,
		good:     traces(job(event("a", -1), event("b", 101))), bad: traces(job(event("late", 103))),
		want: contract.Finding{On: "job", Key: "late", Expected: "0s to 100ms after the start", Found: "103ms", Path: "job"},
	},
	{
		rule:     "event.outside",
		contract: roleOfJobs,
		good:     traces(job(event("a", 50))), bad: traces(job(capture.Event{Name: "never"})),
		want: contract.Finding{On: "job", Key: "never", Expected: "0s to 100ms after the start", Found: "no time", Path: "job"},
	},
	{
		rule:     "event.repeated",
		contract: jobWith("events: {once: [done]}"),
		good:     traces(job(event("done", 1), event("more", 1), event("more", 2))), bad: traces(job(event("done", 1), event("done", 2))),
		want: contract.Finding{On: "job", Key: "done", Expected: "1", Found: "2", Path: "job"},
	},
	{
		rule:     "event.unexpected",
		contract: jobWith(`events: {allow: [done, "part.*"]}`),
		good:     traces(job(event("done", 1), event("part.1", 2))), bad: traces(job(event("done", 1), event("token", 2))),
		want: contract.Finding{On: "job", Key: "token", Expected: "done or part.*", Found: "token", Path: "job"},
	},
	{
		rule:     "forbid.attribute",
		contract: roleOfJobs + `forbid: {attributes: ["*.prompt.*"]}`,
		good:     traces(job(text("my.prompt", "x"))), bad: traces(job(text("my.prompt.0", "hello"))),
		want: contract.Finding{On: "job", Key: "my.prompt.0", Expected: "nothing", Found: "a value of the type string with 5 bytes", Path: "job"},
	},
	{
		rule:     "forbid.attribute",
		contract: roleOfJobs + `forbid: {attributes: [note]}`,
		good:     traces(job(event("saved", 1))), bad: traces(job(event("saved", 1, text("note", "hello")))),
		want: contract.Finding{On: "saved", Key: "note", Expected: "nothing", Found: "a value of the type string with 5 bytes", Path: "job"},
	},
	{
		rule:     "forbid.content",
		contract: roleOfJobs + "forbid: {content: true}",
		good:     traces(job(text("genai.prompt.hash", "5f3a"))), bad: traces(job(text("gen_ai.input.messages", "[]"))),
		want: contract.Finding{On: "job", Key: "gen_ai.input.messages", Expected: "nothing", Found: "a value of the type string with 2 bytes", Path: "job"},
	},
	{
		rule:     "forbid.length",
		contract: roleOfJobs + "forbid: {length: 8, event_length: 4}",
		good:     traces(job(text("note", "12345678"), whole("big", 1<<60), event("a", 1, text("note", "1234")))), bad: traces(job(text("note", "123456789"))),
		want: contract.Finding{On: "job", Key: "note", Expected: "at most 8 bytes", Found: "9 bytes", Path: "job"},
	},
	{
		rule:     "forbid.length",
		contract: roleOfJobs + "forbid: {length: 8, event_length: 4}",
		good:     traces(job()), bad: traces(job(event("saved", 1, text("note", "12345")))),
		want: contract.Finding{On: "saved", Key: "note", Expected: "at most 4 bytes", Found: "5 bytes", Path: "job"},
	},
	{
		rule:     "forbid.span",
		contract: roleOfJobs + `forbid: {spans: ["token *"]}`,
		good:     traces(job()), bad: traces(job(span("token 17", 1, 2))),
		want: contract.Finding{Expected: "nothing", Found: "token 17", Path: "job › token 17"},
	},
	{
		rule:     "forbid.value",
		contract: roleOfJobs + "forbid: {values: [builtin:email], except: [contact]}",
		good:     traces(job(text("note", "ask ops"), text("contact", "ops@example.com"))), bad: traces(job(text("note", "ask ops@example.com"))),
		want: contract.Finding{On: "job", Key: "note", Expected: "nothing of the kind", Found: "one at byte 4 of 19", Path: "job"},
	},
	{
		rule:     "forbid.value",
		contract: roleOfJobs + `forbid: {values: ['/\bCASE-\d+/']}`,
		good:     traces(job(text("note", "CASE-"))), bad: traces(job(attribute.StringSlice("notes", []string{"open", "CASE-7 is open"}))),
		want: contract.Finding{On: "job", Key: "notes", Expected: "nothing of the kind", Found: "one at byte 0 of 14", Path: "job"},
	},
	{
		rule:     "forbid.value",
		contract: roleOfJobs + "forbid: {values: [builtin:email]}",
		good:     traces(job()), bad: traces(span("mail to ops@example.com", 0, 1)),
		want: contract.Finding{Key: "the name", Expected: "nothing of the kind", Found: "one at byte 8 of 23", Path: "<hidden>"},
	},
	{
		rule:     "forbid.value",
		contract: roleOfJobs + "forbid: {values: [builtin:api-key]}",
		good:     traces(job(service("a"))), bad: traces(job(service("a", attribute.StringSlice("process.command_args", []string{"serve", "--api-key=sk-proj-abcdEFGH1234abcdEFGH1234abcdEFGH"})))),
		want: contract.Finding{On: "resource", Key: "process.command_args", Expected: "nothing of the kind", Found: "one at byte 10 of 50"},
	},
	{
		rule:     "limit.attributes",
		contract: roleOfJobs + "limits: {attributes_per_span: 1}",
		good:     traces(job(whole("a", 1))), bad: traces(job(whole("a", 1), whole("b", 1))),
		want: contract.Finding{On: "job", Expected: "at most 1", Found: "2", Path: "job"},
	},
	{
		rule:     "limit.bytes",
		contract: roleOfJobs + "limits: {bytes_per_trace: 100}",
		good:     traces(job()), bad: traces(job(text("note", strings.Repeat("x", 46)))),
		want: contract.Finding{On: "job", Expected: "at most 100", Found: "101", Path: "job"},
	},
	{
		rule:     "limit.cardinality",
		contract: roleOfJobs + "limits: {cardinality: {user: 2}}",
		good:     traces(job(text("user", "a")), job(text("user", "b")), job(text("user", "a"))), bad: traces(job(text("user", "a")), job(text("user", "b")), job(text("user", "c"))),
		want: contract.Finding{Key: "user", Expected: "at most 2", Found: "more", Path: "job"},
	},
	{
		rule:     "limit.dropped",
		contract: roleOfJobs,
		good:     traces(job()), bad: traces(job(func(s *capture.Span) { s.DroppedEvents = 3 })),
		want: contract.Finding{On: "job", Expected: "at most 0", Found: "3", Path: "job"},
	},
	{
		rule:     "limit.events",
		contract: roleOfJobs + "limits: {events_per_trace: 2}",
		good:     traces(job(event("a", 1), span("part", 0, 9, event("a", 1)))), bad: traces(job(event("a", 1), span("part", 0, 9, event("a", 1), event("a", 2)))),
		want: contract.Finding{On: "job", Expected: "at most 2", Found: "3", Path: "job"},
	},
	{
		rule:     "limit.siblings",
		contract: roleOfJobs + "limits: {siblings: 2}",
		good:     traces(job(children("token", "token", "other", "other")...)), bad: traces(job(children("other", "token", "token", "token")...)),
		want: contract.Finding{Expected: "at most 2", Found: "3", Path: "job › token"},
	},
	{
		rule:     "limit.span_names",
		contract: roleOfJobs + "limits: {span_names: 2}",
		good:     traces(job(span("part", 1, 2)), job()), bad: traces(job(span("part 1", 1, 2)), job(span("part 2", 1, 2))),
		want: contract.Finding{Expected: "at most 2", Found: "more"},
	},
	{
		rule:     "limit.spans",
		contract: roleOfJobs + "limits: {spans_per_trace: 2}",
		good:     traces(job(span("part", 1, 2)), job(span("part", 1, 2))), bad: traces(job(span("part", 1, 2), span("part", 3, 4))),
		want: contract.Finding{On: "job", Expected: "at most 2", Found: "3", Path: "job"},
	},
	{ // a span without a record, of a service that writes some
		rule:     "log.count",
		contract: roleOfJobs + "logs: {done: {of: {role: job, when: {status: error}}}, other: {}}",
		good: with(traces(job(failed), job()),
			&capture.Log{EventName: "done", TraceID: traceID(1), SpanID: spanID(1, 1)}, &capture.Log{EventName: "other"}),
		bad:  with(traces(job(failed)), &capture.Log{EventName: "other"}),
		want: contract.Finding{On: "done", Expected: "1", Found: "0"},
	},
	{ // one that writes none has no logger provider
		rule:     "log.count",
		contract: roleOfJobs + "logs: {done: {of: {role: job}}}",
		good:     with(traces(job()), &capture.Log{EventName: "somebody else's"}),
		bad: with(traces(job()),
			&capture.Log{EventName: "done", TraceID: traceID(1), SpanID: spanID(1, 1)}, &capture.Log{EventName: "done", TraceID: traceID(1), SpanID: spanID(1, 1)}),
		want: contract.Finding{On: "done", Expected: "1", Found: "2"},
	},
	{
		rule:     "log.missing",
		contract: roleOfJobs + "logs: {done: {required_with: [job]}}",
		good:     with(traces(job()), &capture.Log{EventName: "done"}), bad: traces(job()),
		want: contract.Finding{On: "done", Expected: "done", Found: "nothing"},
	},
	{
		rule:     "log.span",
		contract: roleOfJobs + "logs: {done: {on: [job]}}",
		good:     with(traces(job()), &capture.Log{EventName: "done", TraceID: traceID(1), SpanID: spanID(1, 1)}),
		bad:      with(traces(job(span("part", 1, 2))), &capture.Log{EventName: "done", TraceID: traceID(1), SpanID: spanID(1, 2)}),
		want:     contract.Finding{On: "done", Expected: "job", Found: "span 0000000100000002"},
	},
	{
		rule:     "log.trace",
		contract: roleOfJobs + "logs: {done: {trace: true}}",
		good:     with(traces(job()), &capture.Log{EventName: "done", TraceID: traceID(1), SpanID: spanID(1, 1)}, &capture.Log{EventName: "other"}),
		bad:      with(traces(job()), &capture.Log{EventName: "done", TraceID: traceID(1)}),
		want:     contract.Finding{On: "done", Expected: "the identifiers of a trace and a span", Found: "none"},
	},
	{
		rule:     "metric.buckets",
		contract: roleOfJobs + "metrics: {work: {instrument: histogram, unit: s, buckets: [1, 2]}}",
		good: with(traces(job()), &capture.Metric{Name: "work", Unit: "s", Kind: capture.KindHistogram, Points: []capture.Point{{Bounds: []float64{1, 2}}}},
			&capture.Metric{Name: "work", Unit: "s", Kind: capture.KindExponential, Points: []capture.Point{{}}}),
		bad:  with(traces(job()), &capture.Metric{Name: "work", Unit: "s", Kind: capture.KindHistogram, Points: []capture.Point{{Bounds: []float64{0, 5}}}}),
		want: contract.Finding{On: "work", Expected: "[1 2]", Found: "[0 5]"},
	},
	{
		rule:     "metric.instrument",
		contract: roleOfJobs + "metrics: {work: {instrument: counter}}",
		good:     with(traces(job()), &capture.Metric{Name: "work", Unit: "s", Kind: capture.KindCounter}), bad: with(traces(job()), histogram("work", "s", 0, 0)),
		want: contract.Finding{On: "work", Expected: "counter", Found: "histogram"},
	},
	{
		rule:     "metric.measurements",
		contract: roleOfJobs + "metrics: {work: {instrument: histogram, unit: s, of: {role: job}}}",
		good:     with(traces(job(), job()), histogram("work", "s", 2, 0.2)), bad: with(traces(job(), job()), histogram("work", "s", 1, 0.1)),
		want: contract.Finding{On: "work", Expected: "2", Found: "1"},
	},
	{
		rule:     "metric.missing",
		contract: roleOfJobs + "metrics: {work: {instrument: histogram, unit: s, required_with: [job]}}",
		good:     with(traces(job()), histogram("work", "s", 1, 0.1)), bad: traces(job()),
		want: contract.Finding{On: "work", Expected: "work", Found: "nothing"},
	},
	{
		rule:     "metric.series",
		contract: roleOfJobs + "metrics: {work: {instrument: histogram, unit: s, series: 1}}",
		good:     with(traces(job()), histogram("work", "s", 1, 0.1, text("a", "x")), histogram("work", "s", 1, 0.1, text("a", "x"))),
		bad:      with(traces(job()), histogram("work", "s", 1, 0.1, text("a", "x")), histogram("work", "s", 1, 0.1, text("a", "y"))),
		want:     contract.Finding{On: "work", Expected: "at most 1", Found: "2"},
	},
	{
		rule:     "metric.sum",
		contract: roleOfJobs + "metrics: {work: {instrument: histogram, unit: s, of: {role: job, value: duration, tolerance: {abs: 5ms}}}}",
		good:     with(traces(job(), job()), histogram("work", "s", 2, 0.209)), bad: with(traces(job(), job()), histogram("work", "s", 2, 0.211)),
		want: contract.Finding{On: "work", Key: "duration", Expected: "200ms, give or take 10ms", Found: "211ms"},
	},
	{
		rule:     "metric.unit",
		contract: roleOfJobs,
		good:     with(traces(job()), &capture.Metric{Name: "gen_ai.client.operation.duration", Unit: "s", Kind: capture.KindHistogram}),
		bad:      with(traces(job()), &capture.Metric{Name: "gen_ai.client.operation.duration", Unit: "ms", Kind: capture.KindHistogram}),
		want:     contract.Finding{On: "gen_ai.client.operation.duration", Expected: "s", Found: "ms"},
	},
	{
		rule:     "metric.unknown",
		contract: roleOfJobs,
		good:     with(traces(job()), histogram("mine.speed", "ms", 0, 0)), bad: with(traces(job()), histogram("gen_ai.client.speed", "ms", 0, 0)),
		want: contract.Finding{On: "gen_ai.client.speed", Expected: "a metric of the vocabulary", Found: "gen_ai.client.speed"},
	},
	{
		rule:     "metric.unsettled",
		contract: roleOfJobs + "metrics: {work: {instrument: updowncounter, settles: true}}",
		good: with(traces(job()), underWay(capture.TemporalityCumulative, 0, text("a", "x")), underWay(capture.TemporalityCumulative, 0, text("a", "y")),
			underWay(capture.TemporalityDelta, 2), underWay(capture.TemporalityDelta, -2)),
		bad:  with(traces(job()), underWay(capture.TemporalityCumulative, 0, text("a", "x")), underWay(capture.TemporalityCumulative, 1, text("a", "y"))),
		want: contract.Finding{On: "work", Expected: "0", Found: "1"},
	},
	{
		rule:     "metric.unsettled",
		contract: roleOfJobs + "metrics: {work: {instrument: updowncounter, settles: true}}",
		good:     with(traces(job()), underWay(capture.TemporalityDelta, 1), underWay(capture.TemporalityDelta, -1)),
		bad:      with(traces(job()), underWay(capture.TemporalityDelta, 2, text("a", "x")), underWay(capture.TemporalityDelta, -1, text("a", "x"))),
		want:     contract.Finding{On: "work", Expected: "0", Found: "1"},
	},
	{
		rule:     "propagation.broken",
		contract: roles("ask", "answer") + "propagation: [{from: ask, to: answer, via: grpc}]",
		good:     traces(span("ask", 0, 9, client, span("answer", 1, 8, server))),
		bad:      traces(span("ask", 0, 9, client, service("front")), span("answer", 1, 8, server, service("back"))),
		want:     contract.Finding{On: "answer", Key: "ask → answer", Expected: "inside ask, in its trace", Found: "a trace of its own, without a parent: no context arrived", Path: "answer"},
	},
	{
		rule:     "propagation.broken",
		contract: roles("ask", "answer") + "propagation: [{from: ask, to: answer, link: true, via: messaging}]",
		good:     traces(span("answer", 11, 18, consumer, link(2, 1)), span("ask", 0, 9, producer)),
		bad:      traces(span("answer", 1, 18, consumer, link(2, 7)), span("ask", 0, 9, producer)),
		want:     contract.Finding{On: "answer", Key: "ask → answer", Expected: "inside ask, in its trace, or linked to it", Found: "a trace of its own, without a parent: no context arrived", Path: "answer"},
	},
	{
		rule:     "propagation.missing",
		contract: roles("ask", "answer") + "propagation: [{from: ask, to: answer}]",
		good:     traces(span("ask", 0, 9, client, span("answer", 1, 8)), span("ask", 0, 9, client, failed)), bad: traces(span("ask", 0, 9, client, span("answer", 1, 8)), span("ask", 0, 9, client)),
		want: contract.Finding{On: "ask", Key: "ask → answer", Expected: "a span of the role answer below it", Found: "none", Path: "ask"},
	},
	{
		rule:     "propagation.missing",
		contract: roles("ask", "answer") + "propagation: [{from: ask, to: answer, link: true}]",
		good:     traces(span("answer", 11, 18, consumer, link(2, 1)), span("ask", 0, 9, producer)),
		bad:      traces(span("answer", 11, 18, consumer, link(2, 1)), span("ask", 0, 9, producer), span("ask", 20, 29, producer)),
		want:     contract.Finding{On: "ask", Key: "ask → answer", Expected: "a span of the role answer below it", Found: "none", Path: "ask"},
	},
	{
		rule:     "request.incomplete",
		contract: roles("job", "part", "rest") + "requests: {work: {root: job, requires: [part], requires_unless_failed: [rest]}}",
		good:     traces(job(children("part", "rest")...), job(append(children("part"), failed)...)), bad: traces(job(children("part")...)),
		want: contract.Finding{On: "work", Key: "rest", Expected: "a span of the role rest", Found: "job, part", Path: "job"},
	},
	{
		rule:     "slo.missed",
		contract: roleOfJobs + "slo: [{id: speed, on: job, value: duration, p50: 50ms}]",
		good:     traces(span("job", 0, 50), span("job", 0, 900)), bad: traces(span("job", 0, 51), span("all", 0, 999, span("job", 0, 900))),
		want: contract.Finding{On: "job", Key: "speed p50", Expected: "at most 50ms", Found: "51ms", Path: "all › job"},
	},
	{
		rule:     "span.count",
		contract: jobWith("count: 1"),
		good:     traces(job(), span("other", 0, 1)), bad: traces(span("all", 0, 100, job(), span("job", 1, 2))),
		want: contract.Finding{On: "job", Expected: "exactly 1", Found: "2", Path: "all › job"},
	},
	{
		rule:     "span.count",
		contract: "spans: {all: {match: {name: all}}, job: {match: {name: job}, count: {per: all, min: 1, unless: {status: error}}}}",
		good:     traces(span("all", 0, 100, job()), span("all", 0, 100, failed)), bad: traces(span("all", 0, 100, span("all", 1, 99, span("job", 1, 2)))),
		want: contract.Finding{On: "job", Expected: "at least 1", Found: "0", Path: "all"},
	},
	{
		rule:     "span.kind",
		contract: jobWith("kind: [internal, client]"),
		good:     traces(job(client), job(func(s *capture.Span) { s.Kind = 0 })), bad: traces(job(server)),
		want: contract.Finding{On: "job", Expected: "internal or client", Found: "server", Path: "job"},
	},
	{
		rule:     "span.name",
		contract: `spans: {job: {match: {has: user}, name: ["job {user}", "task *"]}}`,
		good:     traces(span("job a*b", 0, 1, text("user", "a*b")), span("task 7", 0, 1, text("user", "c"))), bad: traces(span("job a", 0, 1, text("user", "b"))),
		want: contract.Finding{On: "job", Expected: "job b or task *", Found: "job a", Path: "job a"},
	},
	{
		rule:     "span.parent",
		contract: `spans: {all: {match: {name: all}}, job: {match: {name: job}, parent: {is: all}}}`,
		good:     traces(span("all", 0, 100, job())), bad: traces(span("all", 0, 100, span("more", 0, 100, job()))),
		want: contract.Finding{On: "job", Expected: "below all", Found: "below more", Path: "all › more › job"},
	},
	{
		rule:     "span.parent",
		contract: `spans: {all: {match: {name: all}}, job: {match: {name: job}, parent: {within: all, root: true}}}`,
		good:     traces(span("all", 0, 100, span("more", 0, 100, job())), job(server, orphaned(capture.OriginRemote))), bad: traces(span("all", 0, 100), span("more", 0, 100, job())),
		want: contract.Finding{On: "job", Expected: "inside all, or a root", Found: "below more", Path: "more › job"},
	},
	{
		rule:     "span.parent",
		contract: `spans: {batch: {match: {name: batch}}, job: {match: {name: job}, parent: {link: batch}}}`,
		good:     traces(job(link(2, 1)), span("batch", 0, 100)), bad: traces(job(link(2, 9)), span("batch", 0, 100)),
		want: contract.Finding{On: "job", Expected: "linked to batch", Found: "no parent", Path: "job"},
	},
	{
		rule:     "span.status",
		contract: jobWith("status: [unset, error]"),
		good:     traces(job(), job(failed)), bad: traces(job(func(s *capture.Span) { s.Status = 2 })),
		want: contract.Finding{On: "job", Expected: "unset or error", Found: "Ok", Path: "job"},
	},
	{
		rule:     "span.undeclared",
		contract: roleOfJobs + "scope: {undeclared: deny, ignore_scopes: [lib]}",
		good:     traces(job(span("other", 0, 1, &capture.Scope{Name: "lib"}))), bad: traces(job(span("other", 0, 1))),
		want: contract.Finding{Key: "other", Expected: "a role", Found: "other", Path: "job › other"},
	},
	{
		rule:     "timing.at_most",
		contract: roleOfJobs + "timing: [{id: inside, on: job, at_most: [attr(llm.ttft_ms), duration], tolerance: {abs: 5ms}}]",
		good:     traces(job(number("llm.ttft_ms", 105))), bad: traces(job(number("llm.ttft_ms", 106))),
		want: contract.Finding{On: "job", Key: "inside", Expected: "attr(llm.ttft_ms) ≤ duration, give or take 5ms", Found: "106ms and 100ms", Path: "job"},
	},
	{
		rule:     "timing.equal",
		contract: roleOfJobs + "timing: [{id: same, on: job, equal: [attr(llm.ttft_ms), event(first_token) - start], why: it is one thing}]",
		good:     traces(job(number("llm.ttft_ms", 40), event("first_token", 40))), bad: traces(job(number("llm.ttft_ms", 40), event("first_token", 41))),
		want: contract.Finding{On: "job", Key: "same", Expected: "attr(llm.ttft_ms) = event(first_token) - start", Found: "40ms and 41ms", Path: "job", Fix: "it is one thing"},
	},
	{
		rule:     "timing.order",
		contract: roles("job", "part", "rest") + "timing: [{id: first, on: job, order: [start, part.end, rest.start, end]}]",
		good:     traces(job(span("part", 0, 9), span("rest", 9, 90))), bad: traces(span("all", 0, 200, span("job", 50, 150, span("part", 60, 70), span("rest", 69, 90)))),
		want: contract.Finding{On: "job", Key: "first", Expected: "part.end, then rest.start", Found: "start+20ms and start+19ms", Path: "all › job"},
	},
	{
		rule:     "topology.duplicate",
		contract: roleOfJobs,
		good:     traces(job()), bad: traces(span("all", 0, 100, job(), span("job", 2, 3, func(s *capture.Span) { s.SpanID = spanID(1, 2) }))),
		want: contract.Finding{On: "job", Expected: "an identifier for each span", Found: "job and job", Path: "all › job"},
	},
	{
		rule:     "topology.duplicate",
		contract: roleOfJobs,
		good:     traces(span("all", 0, 100, span("job", 1, 9), span("job", 1, 8), span("quick", 1, 1), span("quick", 1, 1))), bad: traces(span("all", 0, 100, span("job", 1, 9), span("job", 1, 9))),
		want: contract.Finding{On: "job", Expected: "one span", Found: "the spans 0000000100000002 and 0000000100000003", Path: "all › job"},
	},
	{
		rule:     "topology.duplicate",
		contract: roleOfJobs,
		good:     traces(job(), job()), bad: traces(job(span("job", 0, 100, func(s *capture.Span) { s.ParentID = spanID(0, 0) }))),
		want: contract.Finding{On: "job", Expected: "one span", Found: "the spans 0000000100000001 and 0000000100000002", Path: "job"},
	},
	{
		rule:     "topology.repeated",
		contract: roleOfJobs,
		good:     traces(job()), bad: traces(job(), job(func(s *capture.Span) { s.TraceID, s.SpanID = traceID(1), spanID(1, 1) })),
		want: contract.Finding{On: "job", Expected: "once", Found: "2 times", Path: "job"},
	},
	{
		rule:     "topology.isolation",
		contract: roleOfJobs + "topology: {isolate_by: [genai.tenant.id]}",
		good:     traces(job(text("genai.tenant.id", "a"), span("part", 1, 2)), job(text("genai.tenant.id", "b"))), bad: traces(job(text("genai.tenant.id", "a"), span("part", 1, 2, text("genai.tenant.id", "b")))),
		want: contract.Finding{Key: "genai.tenant.id", Expected: "one value", Found: "two values", Path: "job › part"},
	},
	{
		rule:     "topology.never_ended",
		contract: roleOfJobs,
		good:     traces(job()), bad: traces(job(neverEnded)),
		want: contract.Finding{On: "job", Expected: "an end", Found: "none", Path: "job"},
	},
	{
		rule:     "topology.orphan",
		contract: roleOfJobs,
		good:     traces(job(orphaned(capture.OriginRemote)), job(server, orphaned(capture.OriginUnknown))), bad: traces(job(orphaned(capture.OriginLocal))),
		want: contract.Finding{On: "job", Expected: "the parent in the same trace", Found: "parent 0000006300000063", Path: "job"},
	},
	{
		rule:     "topology.orphan",
		contract: roleOfJobs,
		good:     traces(job()), bad: traces(job(server, below(1, 2), span("part", 0, 100))),
		want: contract.Finding{On: "job", Expected: "a tree", Found: "a circle", Path: "job"},
	},
	{
		rule:     "topology.outlives",
		contract: roles("job", "part", "rest") + "topology: {outlive: {tolerance: 5ms, allow: [{child: part, parent: job, reason: it streams}]}}",
		good: traces(job(span("part", 0, 200), span("rest", 0, 105)), job(span("later", 0, 200, consumer)), // work that is handed on
			job(client, failed, span("late", 0, 200, server)), job(client, text("genai.stream.terminal", "client_cancelled"), span("late", 0, 200, server))), // the caller gave up
		bad:  traces(job(span("rest", 0, 106))),
		want: contract.Finding{On: "rest", Expected: "at most 5ms", Found: "6ms", Path: "job › rest"},
	},
	{
		rule:     "topology.remote_orphan",
		contract: roleOfJobs + "topology: {remote_orphans: warn}",
		good:     traces(job()), bad: traces(job(server, orphaned(capture.OriginUnknown))),
		want: contract.Finding{Severity: contract.Warn, On: "job", Expected: "the parent in the same trace", Found: "parent 0000006300000063", Path: "job"},
	},
	{
		rule:     "topology.reversed",
		contract: roleOfJobs,
		good:     traces(span("job", 5, 5)), bad: traces(span("job", 5, 4, event("inside", 4.5))),
		want: contract.Finding{On: "job", Expected: "0s or more", Found: "-1ms", Path: "job"},
	},
	{
		rule:     "topology.reversed",
		contract: roleOfJobs,
		good:     traces(job()), bad: traces(job(func(s *capture.Span) { s.Start = time.Time{} })),
		want: contract.Finding{On: "job", Expected: "a start", Found: "none", Path: "job"},
	},
	{
		rule:     "topology.roots",
		contract: roleOfJobs + "topology: {roots: 1, remote_orphans: allow}",
		good:     traces(job(), job(orphaned(capture.OriginRemote))), bad: traces(job(span("part", 1, 2, server, orphaned(capture.OriginRemote)))),
		want: contract.Finding{On: "job", Expected: "at most 1", Found: "2", Path: "job"},
	},
	{
		rule:     "topology.skew",
		contract: roleOfJobs + "topology: {skew: 5ms}",
		good:     traces(job(span("part", -5, 9))), bad: traces(job(span("part", -6, 9))),
		want: contract.Finding{Expected: "at most 5ms", Found: "6ms", Path: "job › part"},
	},
	{
		rule:     "topology.trace_changed",
		contract: roleOfJobs,
		good:     traces(job()), bad: traces(span("other", 0, 100), job(server, below(1, 1))),
		want: contract.Finding{On: "job", Expected: "trace 00000000000000000000000000000001", Found: "trace 00000000000000000000000000000002", Path: "job"},
	},
}

func TestEachRulePassesWhatIsRightAndFindsWhatIsWrong(t *testing.T) {
	severities := map[string]contract.Severity{}
	for _, r := range contract.Rules() {
		severities[r.ID] = r.Severity
	}
	for _, tt := range ruleCases {
		t.Run(tt.rule, func(t *testing.T) {
			c := parse(t, tt.contract)
			if tt.good != nil {
				for _, f := range c.Check(tt.good, tt.opts...).Findings {
					assert.Fail(t, "the good capture fails", f.Text())
				}
			}

			report := c.Check(tt.bad, tt.opts...)
			var found []contract.Finding
			for _, f := range report.Findings {
				if f.Rule == tt.rule {
					found = append(found, f)
				} else {
					assert.Contains(t, tt.also, f.Rule, f.Text())
				}
			}
			require.Len(t, found, 1)
			f := found[0]
			want := tt.want
			if want.Severity == "" {
				want.Severity = severities[tt.rule]
			}
			assert.Equal(t, want.Severity, f.Severity)
			assert.Equal(t, want.On, f.On, "on")
			assert.Equal(t, want.Key, f.Key, "key")
			assert.Equal(t, want.Expected, f.Expected, "expected")
			assert.Equal(t, want.Found, f.Found, "found")
			assert.Equal(t, want.Path, f.Path, "path")
			assert.NotEmpty(t, f.Message)
			assert.NotEmpty(t, f.Fix)
			assert.Equal(t, 1, f.Count)
			if want.Fix != "" {
				assert.Equal(t, want.Fix, f.Fix)
			}
			if f.Contract != (spec.Position{}) {
				assert.Equal(t, "test.yaml", f.Contract.File)
			}
		})
	}
}

func TestEveryRuleHasACase(t *testing.T) {
	cases := map[string]bool{}
	for _, tt := range ruleCases {
		cases[tt.rule] = true
	}
	for _, r := range contract.Rules() {
		assert.True(t, cases[r.ID], r.ID)
		assert.NotEmpty(t, r.Brief, r.ID)
		assert.NotEmpty(t, r.Fix, r.ID)
		delete(cases, r.ID)
	}
	assert.Empty(t, cases)
}

// A name of a rule in the code is text, so the compiler cannot hold that it exists.
func TestEveryRuleThatTheCodeNamesExists(t *testing.T) {
	known, families := map[string]bool{}, map[string]bool{}
	for _, r := range contract.Rules() {
		known[r.ID] = true
		families[strings.Split(r.ID, ".")[0]] = true
	}
	id := regexp.MustCompile(`^([a-z_]+)\.[a-z_]+$`)
	used := map[string]bool{}
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") || name == "rules.go" {
			continue
		}
		source, err := os.ReadFile(name)
		require.NoError(t, err)
		file, err := parser.ParseFile(token.NewFileSet(), name, source, 0)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			lit, ok := n.(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING {
				return true
			}
			s, err := strconv.Unquote(lit.Value)
			require.NoError(t, err)
			if m := id.FindStringSubmatch(s); m != nil && families[m[1]] {
				assert.True(t, known[s], "%s names %s", name, s)
				used[s] = true
			}
			return true
		})
	}
	for rule := range known {
		assert.True(t, used[rule], "nothing finds %s", rule)
	}
}
