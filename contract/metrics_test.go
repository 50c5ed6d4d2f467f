package contract_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/capture"
	"github.com/genaitrace/otelgenai/contract"
)

const worked = roleOfJobs + "metrics: {work: {instrument: %s, unit: %q, required_with: [job], of: {role: job, when: {status: unset}, value: %s, tolerance: %s}}}"

func TestAMetricAddsUpToWhatTheSpansSay(t *testing.T) {
	for _, tt := range []struct {
		name                               string
		instrument, unit, value, tolerance string
		got                                *capture.Capture
		want                               []string
	}{
		{"seconds of durations", "histogram", "s", "duration", "{}", with(traces(job(), job(), job(failed)), histogram("work", "s", 2, 0.2)), []string{}},
		{"milliseconds of durations", "histogram", "ms", "duration", "{}", with(traces(job()), histogram("work", "ms", 1, 100)), []string{}},
		{"another unit of the attribute", "histogram", "s", "attr(llm.ttft_ms)", "{}", with(traces(job(number("llm.ttft_ms", 40)), job()), histogram("work", "s", 1, 0.04)), []string{}},
		{"tokens", "counter", "{token}", "attr(ai.tokens.input)", "{}", with(traces(job(whole("gen_ai.usage.input_tokens", 7)), job(whole("ai.tokens.input", 5))), counter("work", "{token}", 4, 8)), []string{}},
		{"a counter that misses some", "counter", "{token}", "attr(ai.tokens.input)", "{}", with(traces(job(whole("ai.tokens.input", 7))), counter("work", "{token}", 6)), []string{"metric.sum"}},
		{"too many measurements", "histogram", "s", "duration", "{pct: 60}", with(traces(job()), histogram("work", "s", 2, 0.2)), []string{"metric.measurements"}},
		{"several series and services", "histogram", "s", "duration", "{}", with(traces(job(), job()), histogram("work", "s", 1, 0.1, text("a", "x")), histogram("work", "s", 1, 0.1, text("a", "y"))), []string{}},
		{"each measurement a little off", "histogram", "s", "duration", "{abs: 1ms}", with(traces(job(), job(), job()), histogram("work", "s", 3, 0.303)), []string{}},
		{"all of them more", "histogram", "s", "duration", "{abs: 1ms}", with(traces(job(), job(), job()), histogram("work", "s", 3, 0.304)), []string{"metric.sum"}},
		{"a share of all", "histogram", "s", "duration", "{pct: 1}", with(traces(job(), job(), job()), histogram("work", "s", 3, 0.303)), []string{}},
		{"more than the share", "histogram", "s", "duration", "{pct: 1}", with(traces(job(), job(), job()), histogram("work", "s", 3, 0.31)), []string{"metric.sum"}},
		{"no number", "histogram", "s", "duration", "{pct: 1}", with(traces(job()), histogram("work", "s", 1, nan)), []string{"metric.sum"}},
		{"nothing to measure", "histogram", "s", "attr(llm.ttft_ms)", "{}", traces(job()), []string{}},
		{"nothing measured", "histogram", "s", "attr(llm.ttft_ms)", "{}", traces(job(number("llm.ttft_ms", 40))), []string{"metric.missing"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := parse(t, sprintf(worked, tt.instrument, tt.unit, tt.value, tt.tolerance))
			assert.Equal(t, tt.want, rulesOf(c.Check(tt.got)))
		})
	}
}

func TestAMetricIsTheQuotientOfWhatTheSpansSay(t *testing.T) {
	const asked = roleOfJobs + "metrics: {work: {instrument: histogram, unit: %q, required_with: [job], of: {role: job, value: %q, per: %q, tolerance: {pct: 1}}}}"
	times := []any{number("llm.ttft_ms", 100), number("genai.last_token_ms", 1100), whole("ai.tokens.output", 51), whole("ai.tokens.input", 200)}
	const tokens, took = "attr(ai.tokens.output) - 1", "attr(genai.last_token_ms) - attr(llm.ttft_ms)"
	for _, tt := range []struct {
		name, unit, value, per string
		got                    *capture.Capture
		want                   []string
	}{
		{"a time per token", "s", took, tokens, with(traces(job(times...), job(times...)), histogram("work", "s", 2, 0.04)), []string{}},
		{"another time per token", "s", took, tokens, with(traces(job(times...)), histogram("work", "s", 1, 0.03)), []string{"metric.sum"}},
		{"in milliseconds", "ms", took, tokens, with(traces(job(times...)), histogram("work", "ms", 1, 20)), []string{}},
		{"tokens a second", "{token}/s", tokens, took, with(traces(job(times...)), histogram("work", "{token}/s", 1, 50)), []string{}},
		{"tokens a millisecond", "{token}/ms", tokens, took, with(traces(job(times...)), histogram("work", "{token}/ms", 1, 0.05)), []string{}},
		{"a wrong rate", "{token}/s", tokens, took, with(traces(job(times...)), histogram("work", "{token}/s", 1, 51)), []string{"metric.sum"}},
		{"a share", "1", "attr(ai.tokens.output)", "attr(ai.tokens.input)", with(traces(job(times...)), histogram("work", "1", 1, 0.255)), []string{}},
		{"a share of times", "1", "attr(llm.ttft_ms)", "attr(genai.last_token_ms)", with(traces(job(times...)), histogram("work", "1", 1, 0.0909)), []string{}},
		{"nothing to divide by", "s", took, tokens, traces(job(number("llm.ttft_ms", 100), number("genai.last_token_ms", 100), whole("ai.tokens.output", 1)), job()), []string{}},
		{"measured all the same", "s", took, tokens, with(traces(job(number("llm.ttft_ms", 100), number("genai.last_token_ms", 100), whole("ai.tokens.output", 1))), histogram("work", "s", 1, 0)), []string{"metric.measurements"}},
		{"nothing measured", "s", took, tokens, traces(job(times...)), []string{"metric.missing"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			assert.Equal(t, tt.want, rulesOf(parse(t, sprintf(asked, tt.unit, tt.value, tt.per)).Check(tt.got)))
		})
	}
}

// Where nobody can tell what was measured, nothing is said.
func TestAMetricIsNotComparedWhereThatCannotBeDone(t *testing.T) {
	c := parse(t, roleOfJobs+"metrics: {work: {instrument: histogram, unit: s, required_with: [job], of: {role: job, unless: {any: [{within: job}, {orphan: true}]}, value: duration}}}")
	for _, tt := range []struct {
		name string
		got  *capture.Capture
		want []string
	}{
		{"at the root", with(traces(job()), histogram("work", "s", 1, 0.2)), []string{"metric.sum"}},
		{"one inside of another", with(traces(job(job())), histogram("work", "s", 1, 0.1)), []string{}},
		{"a parent that was not captured", traces(job(orphaned(capture.OriginRemote))), []string{}},
		{"one further up", traces(span("x", 0, 100, orphaned(capture.OriginRemote), job())), []string{}},
		{"in one of two traces", with(traces(job(), job(orphaned(capture.OriginRemote))), histogram("work", "s", 1, 0.1)), []string{}},
	} {
		assert.Equal(t, tt.want, rulesOf(c.Check(tt.got)), tt.name)
	}
}

func TestOnlyThePointsThatARuleIsAboutAreCompared(t *testing.T) {
	c := parse(t, roleOfJobs+"metrics: {work: {instrument: histogram, unit: s, series: 2, required_with: [job], attributes: {side: required}, "+
		"spellings: {labour: {kind: [job, task]}, old: {}}, of: {role: job, where: {side: in}, value: duration}}}")
	in, kind := text("side", "in"), text("kind", "task")
	for _, tt := range []struct {
		name string
		got  *capture.Capture
		want []string
	}{
		{"the right ones", with(traces(job()), histogram("work", "s", 1, 0.1, in), histogram("work", "s", 1, 7, text("side", "out"))), []string{}},
		{"none of them", with(traces(job()), histogram("work", "s", 1, 0.1, text("side", "out"))), []string{"metric.measurements", "metric.sum"}},
		{"another spelling", with(traces(job()), histogram("labour", "s", 1, 0.1, in, kind), histogram("labour", "s", 1, 0.1, in, text("kind", "play"))), []string{}},
		{"spellings beside one another", with(traces(job(), job()), histogram("labour", "s", 1, 0.1, in, kind), histogram("old", "s", 1, 0.1, in)), []string{}},
		{"a spelling that says something else", with(traces(job()), histogram("labour", "s", 1, 0.1, in)), []string{"metric.missing"}},
		{"a spelling that lacks something", with(traces(job()), histogram("old", "s", 1, 0.1)), []string{"attribute.missing", "metric.measurements", "metric.sum"}},
		{"series of all spellings", with(traces(job()), histogram("old", "s", 1, 0.1, in), histogram("work", "s", 0, 0, text("side", "a")), histogram("work", "s", 0, 0, text("side", "b"))), []string{"metric.series"}},
	} {
		assert.Equal(t, tt.want, rulesOf(c.Check(tt.got)), tt.name)
	}
}

func TestPointsAndRecordsAreHeldToTheirRules(t *testing.T) {
	c := parse(t, `
metrics: {work: {instrument: counter, attributes: {tier: {required: true, value: [gold]}, user: forbidden}}}
logs: {done: {attributes: {tier: required}}}
forbid: {values: ["builtin:email"], attributes: ["secret*"], content: true}
`)
	point := func(attributes ...attribute.KeyValue) *capture.Metric { return counterWith("work", attributes...) }
	record := func(attributes ...attribute.KeyValue) *capture.Log {
		return &capture.Log{EventName: "done", Attributes: attributes}
	}
	gold, mail := text("tier", "gold"), text("note", "ops@example.com")
	exemplar := point(gold)
	exemplar.Points[0].Exemplars = []capture.Exemplar{{Attributes: capture.Attributes{mail}}}
	for _, tt := range []struct {
		name string
		got  any
		want []string
	}{
		{"a point", point(gold), []string{}},
		{"a point that lacks something", point(), []string{"attribute.missing"}},
		{"a point with another value", point(text("tier", "tin")), []string{"attribute.value"}},
		{"a point with too much", point(gold, text("user", "me")), []string{"attribute.unexpected"}},
		{"a point with personal data", point(gold, mail), []string{"forbid.value"}},
		{"an exemplar with personal data", exemplar, []string{"forbid.value"}},
		{"a point with a slip of the pen", point(gold, text("gen_ai.request.modle", "x")), []string{"attribute.misspelt"}},
		{"a record", record(gold), []string{}},
		{"a record that lacks something", record(), []string{"attribute.missing"}},
		{"a record with personal data", record(gold, mail), []string{"forbid.value"}},
		{"a record with personal data in the body", &capture.Log{Body: attribute.MapValue(attribute.String("to", "ops@example.com"))}, []string{"forbid.value"}},
		{"a record with a secret", record(gold, text("secret.key", "x")), []string{"forbid.attribute"}},
		{"a record with content", record(gold, text("gen_ai.input.messages", "[]")), []string{"forbid.content"}},
	} {
		assert.Equal(t, tt.want, rulesOf(c.Check(with(traces(span("x", 0, 1)), tt.got))), tt.name)
	}
}

func TestACaptureIsNotChanged(t *testing.T) {
	got := with(traces(job(event("b", 2), event("a", 1))), histogram("work", "s", 1, 0.1, text("z", "1"), text("a", "2")))
	parse(t, jobWith("events: {order: [a, b]}")+"metrics: {work: {instrument: histogram, series: 1}}").Check(got)
	assert.Equal(t, "z", string(got.Metrics[0].Points[0].Attributes[0].Key))
	assert.Equal(t, "b", got.Spans[0].Events[0].Name)
}

// What was dropped, or came after its trace was judged, may be what a metric or a log
// record has more or less than the spans.
func TestOfAPartNobodyCanSayWhatIsMissing(t *testing.T) {
	c := parse(t, roleOfJobs+`
metrics: {work: {instrument: histogram, unit: s, of: {role: job, value: duration}}}
logs: {done: {of: {role: job}}, other: {}}
`)
	one := func() *capture.Capture {
		return with(traces(job()), histogram("work", "s", 2, 0.2), &capture.Log{EventName: "other"})
	}
	assert.Equal(t, []string{"log.count", "metric.measurements", "metric.sum"}, rulesOf(c.Check(one())))

	dropped := one()
	dropped.Dropped = 1
	assert.Empty(t, c.Check(dropped).Findings)

	k := c.NewChecker(contract.WithQuiet(time.Minute))
	done := func(id trace.TraceID) *capture.Log {
		return &capture.Log{EventName: "done", TraceID: id, SpanID: spanID(1, 1)}
	}
	for i := range 10 {
		id := traceID(i + 1)
		k.Add(with(traces(span("job", float64(i)*60_000, float64(i)*60_000+100, func(s *capture.Span) { s.TraceID = id })), done(id)))
	}
	k.Add(with(traces(span("job", 50, 150, func(s *capture.Span) { s.SpanID = spanID(1, 9) })), histogram("work", "s", 11, 1.1)))
	r := k.Report()
	assert.Equal(t, 1, r.Late)
	assert.Empty(t, r.Findings)
}
