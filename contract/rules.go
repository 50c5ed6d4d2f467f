package contract

import "slices"

// Rule describes one kind of finding.
type Rule struct {
	ID       string   // such as attribute.missing
	Severity Severity // what a finding of it is unless the contract says otherwise
	Brief    string   // what is wrong where it is found
	Fix      string   // how that is usually mended
}

// Rules returns every rule in order of its name.
func Rules() []Rule { return slices.Clone(rules) }

func ruleByID(id string) Rule {
	i := slices.IndexFunc(rules, func(r Rule) bool { return r.ID == id })
	if i < 0 {
		panic("contract: no rule " + id) // a test holds that there is one for each use
	}
	return rules[i]
}

var rules = []Rule{
	{"accept.expired", Error, "a violation was accepted until a day that has passed", "mend the violation, or accept it anew with a later day"},
	{"accept.stale", Error, "an accepted violation is not there any more", "delete the entry, so that the violation cannot come back unseen"},
	{"agree.mismatch", Error, "a fact differs between spans of one trace", "make every process use the same model, tokenizer or count, or record it at one place and pass it on"},
	{"attribute.deprecated", Warn, "an attribute is no longer used", "record its replacement"},
	{"attribute.empty", Error, "a text is empty", "record nothing where the value is not known"},
	{"attribute.misspelt", Error, "an attribute looks like a slip of the pen", "use the constant of package semconv, genaiconv or mcpconv"},
	{"attribute.missing", Error, "an attribute is required and not there", "set it before the span ends"},
	{"attribute.range", Error, "a number is outside its range", "look at the unit, and record nothing where the value is not known"},
	{"attribute.type", Error, "a value has another type than the vocabulary says", "use the function of package semconv, genaiconv or mcpconv, which takes the right type"},
	{"attribute.unexpected", Error, "an attribute is there and must not be", "do not record it here"},
	{"attribute.unknown", Warn, "an attribute in a namespace of the vocabulary is not part of it", "use a namespace of your own, or name the attribute in the contract"},
	{"attribute.value", Error, "a value is not one of the allowed ones", "record one of the allowed values, or allow it in the contract"},
	{"contract.unexercised", Error, "a part of the contract was never tested", "drive the service so that it happens, or mark the part as optional"},
	{"convention.missing", Error, "the vocabulary requires an attribute of this type of span, and it is not there", "set it when the span starts"},
	{"event.last", Error, "an event stands after the last one", "end the span at its terminal event"},
	{"event.limit", Error, "a span has too many events", "record one event for many tokens, or none: see genai.token.timeline"},
	{"event.missing", Error, "an event is required and not there", "add the event"},
	{"event.order", Error, "events stand in the wrong order", "add each event when it happens"},
	{"event.outside", Error, "an event lies outside its span, or has no time", "use one clock for the span and its events"},
	{"event.repeated", Error, "an event is there more than once", "add it once"},
	{"event.unexpected", Error, "an event is there that the contract does not allow", "remove it, or allow it in the contract"},
	{"forbid.attribute", Error, "an attribute is forbidden", "do not record it"},
	{"forbid.content", Error, "an attribute may hold the text of a user", "switch the recording of content off"},
	{"forbid.length", Error, "a text is too long", "shorten it, or record a hash and the length"},
	{"forbid.span", Error, "a span has a forbidden name", "do not start it"},
	{"forbid.value", Error, "a value holds something that must not be recorded", "do not record the value, or mask it first"},
	{"limit.attributes", Error, "a span has too many attributes", "record fewer"},
	{"limit.bytes", Error, "a trace is too large", "record less"},
	{"limit.cardinality", Error, "an attribute has too many values", "record a class of values instead, or bound them"},
	{"limit.dropped", Error, "the limits of the SDK took something away", "record less, or raise the limits of the SDK"},
	{"limit.events", Error, "a trace has too many events", "record fewer"},
	{"limit.siblings", Error, "too many spans of one name stand below one parent", "record one span for the whole loop"},
	{"limit.span_names", Error, "spans have too many names", "keep values out of the names of spans"},
	{"limit.spans", Error, "a trace has too many spans", "record fewer"},
	{"log.count", Error, "a span left no record of a log event, or more than one", "give the logger provider to every Tracer and middleware, and end the work once"},
	{"log.missing", Error, "a log event is required and not there", "emit it"},
	{"log.span", Error, "a log record belongs to no span of the right role", "emit it with the context of that span"},
	{"log.trace", Error, "a log record belongs to no trace", "emit it with the context of the span"},
	{"metric.buckets", Error, "a histogram has other boundaries than it must have", "create it with the instrument of package semconv or genaiconv, which sets them"},
	{"metric.instrument", Error, "a metric is of another kind than it must be", "create it with the instrument of package semconv or genaiconv"},
	{"metric.measurements", Error, "a metric has more or fewer measurements than there are spans", "record it once for each operation, on every path"},
	{"metric.missing", Error, "a metric is required and not there", "record it"},
	{"metric.series", Error, "a metric has too many series", "bound the values of its attributes"},
	{"metric.sum", Error, "a metric adds up to something else than the spans say", "record the same number on the span and in the metric, in the unit of each"},
	{"metric.unit", Error, "a metric has another unit than it must have", "create it with the instrument of package semconv or genaiconv"},
	{"metric.unknown", Warn, "a metric in a namespace of the vocabulary is not part of it", "use a namespace of your own, or name the metric in the contract"},
	{"metric.unsettled", Error, "a count of what is under way is not 0 in the end", "count down on every path for each time it was counted up, with the same attributes"},
	{"propagation.broken", Error, "a trace does not go on from one process to the next", "inject the context where the request is sent and extract it where it arrives"},
	{"propagation.missing", Error, "a call was made, and what it calls recorded nothing", "instrument the called service, or mark the hop as optional"},
	{"request.incomplete", Error, "a request does not show a role that its kind requires", "start the span inside the context of the request"},
	{"slo.missed", Error, "a percentile is beyond its bound", "make it faster, or change the objective"},
	{"span.count", Error, "there are too many or too few spans of a role", "start the span once, on every path"},
	{"span.kind", Error, "a span has the wrong kind", "give trace.WithSpanKind when the span starts"},
	{"span.name", Error, "a span has the wrong name", "name it as the conventions say"},
	{"span.parent", Error, "a span stands at the wrong place of the tree", "start it with the context of the span that it belongs to"},
	{"span.status", Error, "a span has a status that is not allowed", "set an error where the operation failed, and nothing otherwise"},
	{"span.undeclared", Error, "a span has no role in the contract", "give it a role, or leave its scope out"},
	{"timing.at_most", Error, "a time is longer than what holds it", "look at the unit, and at the moment from which it counts"},
	{"timing.equal", Error, "two values that are the same differ", "record one measurement everywhere"},
	{"timing.order", Error, "moments come in the wrong order", "use one clock, and start and end each span when the work does"},
	{"topology.duplicate", Error, "a span is there twice", "give each span an identifier of its own, and record each operation once"},
	{"topology.isolation", Error, "one trace holds facts of several tenants", "start a new trace for each tenant; do not share contexts"},
	{"topology.never_ended", Error, "a span was started and did not end", "end it on every path: defer span.End()"},
	{"topology.orphan", Error, "the parent of a span was not captured, or parents form a circle", "export the parent too, and use the context that Start returned"},
	{"topology.outlives", Error, "a span ends after its parent", "end it first, link it, or allow the pair of roles with a reason"},
	{"topology.remote_orphan", Error, "the parent of a span, in another process, was not captured", "capture that process too"},
	{"topology.repeated", Warn, "a span came several times, the same in everything; it counts once", "an exporter that tries again does that, and so do two exporters: register one"},
	{"topology.reversed", Error, "a span ends before it starts, or has no start", "use one clock for the start and the end"},
	{"topology.roots", Error, "a trace has too many roots", "pass the context on"},
	{"topology.skew", Error, "a span starts before its parent", "use one clock, or state the offset of the other one"},
	{"topology.trace_changed", Error, "the parent of a span is in another trace", "pass the whole span context on, trace identifier included"},
}
