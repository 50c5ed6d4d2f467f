package contract_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/genaitrace/otelgenai/capture"
)

// A term is read by comparing it with a constant that it is not, because the finding
// says what it was.
func TestATermSaysWhatASpanShows(t *testing.T) {
	got := traces(span("gateway", 0, 1000, text("who", "me"), whole("n", 7), number("nan", math.NaN()),
		number("llm.ttft_ms", 250), number("gen_ai.response.time_to_first_chunk", 0.2), whole("ai.tokens.input", 12), whole("ai.queue.wait_ms", 3), number("wait", 1.5), number("speed", 40),
		event("first_token", 260, number("llm.ttft_ms", 255), whole("n", 3)), event("first_token", 240, number("wait", 2)),
		span("engine", 100, 900,
			span("queue", 110, 150, whole("n", 1)), span("queue", 200, 230, whole("n", 2)),
			span("decode", 300, 800, event("first_token", 310, number("llm.ttft_ms", 9))), span("open", 300, 0, neverEnded),
			span("quick", 400, 401, span("queue", 400, 401)), // below a span of another role
			span("timeless", 400, 500, func(s *capture.Span) { s.Start = (capture.Span{}).Start }),
		),
	))
	const contractOf = `
spans:
  gateway: {optional: true, match: {name: gateway}, attributes: {wait: {type: double, unit: s}, speed: {type: double, unit: "{token}/s"}}}
  engine: {optional: true, match: {name: engine}}
  queue: {optional: true, match: {name: queue}}
  decode: {optional: true, match: {name: decode}}
  open: {optional: true, match: {name: open}}
  timeless: {optional: true, match: {name: timeless}}
  absent: {optional: true, match: {name: absent}}
topology: {never_ended: allow}
severity: {topology.reversed: "off", attribute.range: "off"}
timing: [{id: it, on: %s, optional: true, equal: [%q, %q]}]
`
	const none = "the rule does not apply"
	for _, tt := range []struct{ on, term, constant, want string }{
		{"gateway", "duration", "1ms", "1s"},
		{"gateway", "end - start", "1ms", "1s"},
		{"engine", "start", "end", "start+0s"}, // moments count from the span
		{"engine", "parent.start", "end", "start−100ms"},
		{"engine", "parent.duration", "1ms", "1s"},
		{"engine", "parent.attr(n)", "1", "7"},
		{"engine", "parent.event(first_token)", "end", "start+140ms"},
		{"gateway", "parent.duration", "1ms", none},

		// Attributes: numbers, and durations where the unit is one of time.
		{"gateway", "attr(n)", "1", "7"},
		{"gateway", "attr(speed)", "1", "40"},
		{"gateway", "attr(ai.tokens.input)", "1", "12"},
		{"gateway", "attr(gen_ai.usage.input_tokens)", "1", "12"},
		{"gateway", "attr(llm.ttft_ms)", "1ms", "250ms"},
		{"gateway", "attr(gen_ai.response.time_to_first_chunk)", "1ms", "200ms"},
		{"gateway", "attr(ai.response.delay_ms)", "1ms", "200ms"},
		{"gateway", "attr(genai.ratelimit.wait_ms)", "1ms", "3ms"},
		{"gateway", "attr(wait)", "1ms", "1.5s"},
		{"gateway", "attr( wait )", "1ms", "1.5s"},
		{"gateway", "attr(who)", "1", none},
		{"gateway", "attr(nan)", "1", none},
		{"gateway", "attr(missing)", "1", none},

		// Events: the first of a name.
		{"gateway", "event(first_token)", "end", "start+240ms"},
		{"gateway", "event(first_token) - start", "1ms", "240ms"},
		{"gateway", "event(first_token, wait)", "1ms", "2s"},
		{"gateway", "event(first_token, n)", "1", none}, // the second one has it
		{"gateway", "event(missing)", "end", none},
		{"decode", "event(first_token, llm.ttft_ms)", "1ms", "9ms"},

		// Roles: the sum of durations, the first start, the last end, the first fact.
		{"gateway", "queue.duration", "1ms", "71ms"},
		{"engine", "queue.start", "end", "start+10ms"},
		{"engine", "queue.end", "end", "start+301ms"},
		{"engine", "queue.attr(n)", "5", "1"},
		{"gateway", "decode.event(first_token) - start", "1ms", "310ms"},
		{"gateway", "decode.event(first_token, llm.ttft_ms)", "1ms", "9ms"},
		{"gateway", "decode.attr(n)", "1", none},
		{"gateway", "absent.duration", "1ms", none},
		{"queue", "queue.duration", "1ms", none}, // below, not at
		{"gateway", "open.duration", "1ms", none},
		{"gateway", "open.end", "end", none},
		{"gateway", "open.start", "end", "start+300ms"},
		{"gateway", "timeless.duration", "1ms", none},
		{"gateway", "timeless.start", "end", none},
		{"gateway", "timeless.end", "end", "start+500ms"},

		// Sums.
		{"gateway", "duration - engine.duration", "1ms", "200ms"},
		{"gateway", "queue.duration + decode.duration", "1ms", "571ms"},
		{"gateway", "attr(n) - attr(ai.tokens.input)", "1", "-5"},
		{"gateway", "start + 250ms", "end", "start+250ms"},
		{"gateway", "-5ms + duration", "1ms", "995ms"},
		{"gateway", "0 + attr(n)", "1", "7"},
		{"gateway", "attr(llm.ttft_ms) + absent.duration", "1ms", none},
		{"gateway", "attr(llm.ttft_ms) + absent.duration?", "1ms", "250ms"},
		{"gateway", "absent.duration? + attr(wait)?", "1ms", "1.5s"},
		{"gateway", "absent.duration? + absent.duration?", "1ms", none},
		{"gateway", "attr(nan)?", "1", none}, // it is there, and damaged
		{"gateway", "attr(n)", "0", "7"},     // 0 is of every kind
		{"gateway", "duration", "0", "1s"},
		{"gateway", "1.5h", "1ms", "1h30m0s"},
	} {
		t.Run(tt.on+" "+tt.term, func(t *testing.T) {
			c := parse(t, fmt.Sprintf(contractOf, tt.on, tt.term, tt.constant))
			r := c.Check(got)
			if tt.want == none {
				assert.Empty(t, r.Findings)
				return
			}
			require.Len(t, r.Findings, 1)
			assert.Equal(t, "timing.equal", r.Findings[0].Rule)
			assert.Regexp(t, "^"+regexpQuote(tt.want)+" and ", r.Findings[0].Found)
		})
	}
}

func TestATraceWithoutTimesIsNoReasonToPanic(t *testing.T) {
	c := parse(t, roles("job")+"timing: [{id: a, on: job, optional: true, order: [start, event(x), end], tolerance: {abs: 1ms}}]")
	timeless := func(s *capture.Span) { s.Start, s.End = capture.Span{}.Start, capture.Span{}.End }
	assert.Equal(t, []string{"topology.never_ended"}, rulesOf(c.Check(traces(job(timeless, event("x", 1), span("job", 1, 2))))))
}

func TestTolerancesAreTheLargerOfTheTwo(t *testing.T) {
	const rule = roleOfJobs + "timing: [{id: a, on: job, optional: true, equal: [attr(llm.ttft_ms), duration], tolerance: %s}]"
	for _, tt := range []struct {
		tolerance string
		off       float64 // milliseconds
		found     bool
	}{
		{"{}", 0, false},
		{"{}", 0.001, true},
		{"{abs: 5ms}", 5, false},
		{"{abs: 5ms}", 5.001, true},
		{"{abs: 5ms}", -5.001, true},
		{"{pct: 10}", 11, false}, // of the larger value
		{"{pct: 10}", 12, true},
		{"{abs: 5ms, pct: 10}", 11, false},
		{"{abs: 20ms, pct: 10}", 19, false},
	} {
		c := parse(t, fmt.Sprintf(rule, tt.tolerance))
		r := c.Check(traces(job(number("llm.ttft_ms", 100+tt.off))))
		assert.Equal(t, tt.found, len(r.Findings) == 1, "%s %g", tt.tolerance, tt.off)
	}
}
