package contract

import (
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/capture"
	"github.com/genaitrace/otelgenai/contract/spec"
)

// Severity is how grave a finding is.
type Severity string

// Severities.
const (
	Error Severity = "error"
	Warn  Severity = "warn"
)

// Finding is one violation of a contract.
type Finding struct {
	// Rule is the stable name of what was violated, such as attribute.missing. Rules
	// lists them.
	Rule     string   `json:"rule"`
	Severity Severity `json:"severity"`

	// On is the role of the span, or the metric or log event; Key the attribute, the
	// event or the id of the rule. Either may be empty.
	On  string `json:"on,omitempty"`
	Key string `json:"key,omitempty"`

	// Message says in one line what is wrong.
	Message string `json:"message"`
	// Expected and Found say what the contract wants and what there was.
	Expected string `json:"expected,omitempty"`
	Found    string `json:"found,omitempty"`
	// Fix says how to mend it.
	Fix string `json:"fix,omitempty"`

	// Where it was seen. Path names the span from its root on: "POST /chat › chat
	// toy-1". Source is the line that started it, where that is known.
	TraceID trace.TraceID  `json:"-"`
	SpanID  trace.SpanID   `json:"-"`
	Path    string         `json:"path,omitempty"`
	Source  capture.Source `json:"-"`

	// Contract is the place of the rule in the contract file.
	Contract spec.Position `json:"-"`

	// Count is how often the same was found; the rest of the finding is of the earliest
	// span.
	Count int `json:"count"`

	// Reason is why the finding is accepted; empty where it is not.
	Reason string `json:"reason,omitempty"`
}

// Report is the result of a check.
type Report struct {
	Contract string // the name of the contract

	// What was checked.
	Spans, Traces, Metrics, Logs int
	// Requests counts the requests of each kind.
	Requests map[string]int

	// Findings are the violations, the gravest first; Accepted are those that the
	// contract accepts.
	Findings, Accepted []Finding

	// Rules says of each rule of the contract how often it was tested.
	Rules []Coverage

	// Late counts spans that came after their trace was taken to be complete, and
	// Evicted traces that were checked early, because the open ones held too much.
	// Both are zero for a capture that is checked at once.
	Late, Evicted int
	// Dropped counts what the capture did not keep.
	Dropped int
	// Omitted counts violations that are not among the findings, because those were of
	// more than 10,000 kinds.
	Omitted int
}

// Coverage says how often a rule was tested.
type Coverage struct {
	Rule     string `json:"rule"`
	On       string `json:"on,omitempty"`
	Key      string `json:"key,omitempty"`
	Tested   int    `json:"tested"`
	Findings int    `json:"findings"`
	// Line of the contract file.
	Contract spec.Position `json:"-"`
}

// Count returns the number of findings of a severity. A finding that was made
// several times counts once.
func (r *Report) Count(s Severity) int {
	n := 0
	for i := range r.Findings {
		if r.Findings[i].Severity == s {
			n++
		}
	}
	return n
}

// Failed reports whether there is an error, or, where warnings count too, any
// finding.
func (r *Report) Failed(warningsToo bool) bool {
	return r.Count(Error) > 0 || warningsToo && len(r.Findings) > 0
}

// Empty reports whether there was nothing to check at all.
func (r *Report) Empty() bool { return r.Spans == 0 && r.Metrics == 0 && r.Logs == 0 }
