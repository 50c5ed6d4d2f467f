package mutate

import "strings"

// Operator is one kind of fault.
type Operator string

// Faults of a span. Each is put at the first span of a role where it changes
// something.
const (
	// DropSpan: the span is not recorded, and its children stand below its parent.
	DropSpan Operator = "drop-span"
	// DropSpanOrphan: the span was started and never exported, so that its children
	// have no parent.
	DropSpanOrphan Operator = "drop-span-orphan"
	// Rename: the span has another name of the same shape.
	Rename Operator = "rename"
	// Kind: client becomes server and the other way round, so do producer and
	// consumer; internal becomes client.
	Kind Operator = "kind"
	// Reparent: the span stands below the parent of its parent.
	Reparent Operator = "reparent"
	// ReparentSibling: the span stands below the sibling before it, or after it where
	// it is the first: the context of one phase was passed on to the next.
	ReparentSibling Operator = "reparent-sibling"
	// Orphan: the span names a parent that nobody recorded.
	Orphan Operator = "orphan"
	// NewTrace: from the span on, the trace identifier is another one.
	NewTrace Operator = "new-trace"
	// NewRoot: the context was not passed on, so the span begins a trace.
	NewRoot Operator = "new-root"
	// Duplicate: the span is recorded twice, under two identifiers.
	Duplicate Operator = "duplicate"
	// Explode: 200 spans named token stand below the span, one for each token.
	Explode Operator = "explode"
	// SkewEarly: a clock is off, so that the span, with what is below it, starts a
	// second before its parent.
	SkewEarly Operator = "skew-early"
	// Outlive: the span ends a second after its parent.
	Outlive Operator = "outlive"
	// NeverEnd: the span does not end.
	NeverEnd Operator = "never-end"
	// ErrorWithoutType: the span fails, and no error.type says why.
	ErrorWithoutType Operator = "status-error-without-type"
	// ClearError: the status of a span that failed does not say so.
	ClearError Operator = "clear-error"
	// TenantSwap: what the contract isolates by has another value in the span and
	// what is below it.
	TenantSwap Operator = "tenant-swap"
	// Reorder: the span and the next sibling that has a role happen in the other
	// order.
	Reorder Operator = "reorder"
	// Flood: 500 events named token stand in the span, one for each token.
	Flood Operator = "flood"
)

// Faults of an attribute. Each is put at the first span of a role, event of such a
// span, metric or log record that has the attribute in any spelling.
const (
	// Drop: the attribute is missing.
	Drop Operator = "drop"
	// Retype: a number, a truth value or a list is recorded as text, text as a number.
	Retype Operator = "retype"
	// ScaleUp: a number is a thousand times as large.
	ScaleUp Operator = "scale-up"
	// ScaleDown: a number is a thousandth, rounded down where it is whole.
	ScaleDown Operator = "scale-down"
	// Negate: a number has the other sign.
	Negate Operator = "negate"
	// Misspell: a letter of the key is missing.
	Misspell Operator = "misspell"
	// UnknownMember: a text is none of those that the contract lists, or of the
	// members of an enumeration that it closes.
	UnknownMember Operator = "unknown-member"
	// PersonalData: a text holds an e-mail address.
	PersonalData Operator = "personal-data"
	// Huge: a text has 100 KB.
	Huge Operator = "huge"
	// Empty: a text is empty.
	Empty Operator = "empty"
	// HighCardinality: an attribute whose values the contract limits has one of its
	// own in every trace. The capture is repeated until that exceeds the limit.
	HighCardinality Operator = "high-cardinality"
)

// Faults of an event, put at the first span of the role that has it.
const (
	DropEvent        Operator = "drop-event"
	DuplicateEvent   Operator = "duplicate-event"
	RenameEvent      Operator = "rename-event"
	SwapEvents       Operator = "swap-events"        // it changes places with the next one
	EventBeforeStart Operator = "event-before-start" // by a second
	EventAfterEnd    Operator = "event-after-end"    // by a second
)

// Faults of a metric.
const (
	DropMetric  Operator = "drop-metric"
	Unit        Operator = "unit"           // it has another unit
	Instrument  Operator = "instrument"     // a counter or a histogram becomes a gauge, a gauge a counter
	Buckets     Operator = "buckets"        // a histogram has the boundaries that an SDK takes by itself
	Series      Operator = "explode-series" // 1,000 more series
	ScaleMetric Operator = "scale-metric"   // every measurement is a thousand times as large
	Undercount  Operator = "undercount"     // half of the measurements are missing
	Leak        Operator = "leak"           // an updowncounter was counted up once more than down
)

// Faults of a log event.
const (
	DropLog   Operator = "drop-log"
	DetachLog Operator = "detach-log" // a record carries no trace and no span
)

// hints say what in a contract catches a fault, in the order of reports. {on} and
// {key} stand for those of the mutant.
var hints = [...]struct {
	operator Operator
	hint     string
}{
	{DropSpan, "count of {on}, or {on} among what a request requires"},
	{DropSpanOrphan, "topology.orphans: deny, or count of {on}"},
	{Rename, "name of {on}"},
	{Kind, "kind of {on}"},
	{Reparent, "parent of {on}: is rather than within"},
	{ReparentSibling, "parent of {on}: is rather than within"},
	{Orphan, "parent of {on}, or topology.orphans: deny"},
	{NewTrace, "parent of {on}, or a hop to it in propagation"},
	{NewRoot, "parent of {on}, or a hop to it in propagation"},
	{Duplicate, "count of {on}"},
	{Explode, "limits.siblings, or forbid.spans"},
	{SkewEarly, "topology.skew"},
	{Outlive, "topology.outlive, unless {on} may"},
	{NeverEnd, "topology.never_ended: deny"},
	{ErrorWithoutType, "error.type of {on}: required_if or required_iff the status is error"},
	{ClearError, "error.type of {on}: required_iff the status is error"},
	{TenantSwap, "topology.isolate_by"},
	{Reorder, "order in a rule of timing"},
	{Flood, "events.max or events.allow of {on}, or limits.events_per_span"},
	{Drop, "{key}: required, or required_if with the condition under which it is there"},
	{Retype, "type of {key}"},
	{ScaleUp, "range of {key}, or a rule of timing or agree that compares it"},
	{ScaleDown, "a rule of timing or agree that compares {key}"},
	{Negate, "range of {key}"},
	{Misspell, "{key}: required"},
	{UnknownMember, "value of {key}, or members: closed"},
	{PersonalData, "forbid.values: builtin:email, without an exception for {key}"},
	{Huge, "forbid.length"},
	{Empty, "value of {key}"},
	{HighCardinality, "limits.cardinality of {key}"},
	{DropEvent, "events.require of {on}"},
	{DuplicateEvent, "events.once of {on}"},
	{RenameEvent, "events.require or events.allow of {on}"},
	{SwapEvents, "events.order of {on}"},
	{EventBeforeStart, "severity of event.outside"},
	{EventAfterEnd, "severity of event.outside"},
	{DropMetric, "{on}: required, or required_with a role"},
	{Unit, "unit of {on}"},
	{Instrument, "instrument of {on}"},
	{Buckets, "buckets of {on}"},
	{Series, "series of {on}"},
	{ScaleMetric, "{on}: of, with the value that it adds up"},
	{Undercount, "{on}: of, which names the spans that it measures"},
	{Leak, "settles of {on}"},
	{DropLog, "{on}: of, which names the spans that leave it, or required_with a role"},
	{DetachLog, "trace or on of {on}"},
}

// Operators returns every operator in the order of reports.
func Operators() []Operator {
	all := make([]Operator, len(hints))
	for i := range hints {
		all[i] = hints[i].operator
	}
	return all
}

func hintFor(m *Mutant) string {
	for _, h := range hints {
		if h.operator == m.Operator {
			return strings.NewReplacer("{on}", m.On, "{key}", m.Key).Replace(h.hint)
		}
	}
	return ""
}
