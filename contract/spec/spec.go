package spec

// Version is the value of the key contract in every contract file.
const Version = "genai.observability/v1"

// Contract is one contract file.
type Contract struct {
	// Contract is the version of the format: genai.observability/v1.
	Contract string `required:"true" yaml:"contract"`
	// Name names the contract in reports.
	Name string `yaml:"name"`
	// Description says what the contract is for.
	Description string `yaml:"description"`
	// Extends lists what this file adds to: built-in profiles (builtin:chat) and
	// files, relative to this one. A later one adds to an earlier one, and this file
	// to all: roles, attributes and named rules of the same name are merged, and
	// what this file says wins.
	Extends Strings `yaml:"extends"`
	// Scope bounds what the contract speaks about.
	Scope Scope `yaml:"scope"`
	// Requests are the kinds of requests, each with the roles it must show.
	Requests map[string]Request `yaml:"requests"`
	// Spans are the roles of spans. Every other section names spans by their role.
	Spans map[string]Span `yaml:"spans"`
	// Metrics are rules for metrics, by name.
	Metrics map[string]Metric `yaml:"metrics"`
	// Logs are rules for log records and events, by event name.
	Logs map[string]Log `yaml:"logs"`
	// Propagation lists the hops over which the trace must go on.
	Propagation []Hop `yaml:"propagation"`
	// Forbid says what must not be recorded.
	Forbid Forbid `yaml:"forbid"`
	// Limits bounds how much is recorded.
	Limits Limits `yaml:"limits"`
	// Timing are rules between durations, moments and numbers.
	Timing []Timing `yaml:"timing"`
	// Topology are rules for the tree as a whole.
	Topology Topology `yaml:"topology"`
	// Agree lists facts that must be the same on all spans of a trace.
	Agree []Agree `yaml:"agree"`
	// SLO are bounds for percentiles over all spans of a role.
	SLO []SLO `yaml:"slo"`
	// Severity changes how grave a finding is, by rule (attribute.unknown) or by a
	// glob over rules (timing.*). The longest match wins.
	Severity map[string]Severity `yaml:"severity"`
	// Accept lists known violations that are not to fail the check, each with a
	// reason.
	Accept []Accept `yaml:"accept"`
}

// Scope bounds what a contract speaks about. Spans outside it still hold the tree
// together.
type Scope struct {
	// Services are globs over service.name; without any, every service counts.
	Services Strings `merge:"add" yaml:"services"`
	// IgnoreScopes are globs over the names of instrumentation scopes whose spans
	// are not looked at.
	IgnoreScopes Strings `merge:"add" yaml:"ignore_scopes"`
	// Undeclared says what becomes of spans without a role: allow (default), warn or
	// deny.
	Undeclared Policy `yaml:"undeclared"`
}

// Request is one kind of request.
type Request struct {
	Position Position `yaml:"-"` // in the file; set by Decode

	// Root is the role of the span that stands for the whole request. Where the file
	// only adds to a request that it extends, it may be left out.
	Root string `yaml:"root"`
	// When must hold for the root span, so that kinds with the same root can be told
	// apart. Without it every span of the role is a request of this kind.
	When *Condition `yaml:"when"`
	// Requires lists roles that each such request shows at or below its root.
	Requires Strings `merge:"add" yaml:"requires"`
	// RequiresUnlessFailed lists roles that a request must show unless it failed, or
	// was left by its caller, before it was complete. Failed is an error as status, an
	// error.type, an HTTP status of 400 or more, or an RPC status that is not OK.
	RequiresUnlessFailed Strings `merge:"add" yaml:"requires_unless_failed"`
	// Optional says that a capture without such a request is fine.
	Optional *bool `yaml:"optional"`
}

// Span is a role of spans and what holds for each span of it.
type Span struct {
	Position Position `yaml:"-"` // in the file; set by Decode

	// Match says which spans have the role. A span may have several.
	Match *Condition `yaml:"match"`
	// Kind is the span kind that each must have: internal, server, client, producer or
	// consumer.
	Kind Strings `yaml:"kind"`
	// Name holds globs, one of which the name of each must match. {key} stands for
	// the value of an attribute: "chat {gen_ai.request.model}".
	Name Strings `yaml:"name"`
	// Parent says where in the tree each must be.
	Parent *Parent `yaml:"parent"`
	// Count says how many there are.
	Count *Count `yaml:"count"`
	// Status lists the allowed statuses: unset, ok, error. Without it all are.
	Status Strings `yaml:"status"`
	// Attributes are rules for attributes, by key. The spellings of a key (house,
	// official, older) count as one, with units converted.
	Attributes map[string]Attribute `yaml:"attributes"`
	// Events are rules for the events of each.
	Events *Events `merge:"deep" yaml:"events"`
	// Optional says that a capture without such a span is fine. Otherwise a role that
	// no span has is reported as contract.unexercised.
	Optional *bool `yaml:"optional"`
}

// Condition selects spans. All parts that are given must hold; a list is a choice.
// Text is a glob, in which * stands for anything.
type Condition struct {
	Position Position `yaml:"-"` // in the file; set by Decode

	// Kind is the span kind: internal, server, client, producer, consumer.
	Kind Strings `yaml:"kind"`
	// Name is the name of the span.
	Name Strings `yaml:"name"`
	// SpanRole is the value of genai.span.role.
	SpanRole Strings `yaml:"span_role"`
	// Operation is the value of gen_ai.operation.name, or of ai.operation.
	Operation Strings `yaml:"operation"`
	// Attr gives the values that attributes have.
	Attr map[string]Values `yaml:"attr"`
	// Has lists attributes that are all there.
	Has Strings `yaml:"has"`
	// Lacks lists attributes none of which is there.
	Lacks Strings `yaml:"lacks"`
	// Event lists events of which at least one is there.
	Event Strings `yaml:"event"`
	// Status is the status of the span: unset, ok, error.
	Status Strings `yaml:"status"`
	// Scope is the name of the instrumentation scope.
	Scope Strings `yaml:"scope"`
	// Service is the service.name.
	Service Strings `yaml:"service"`
	// Parent lists roles of which the parent has one. Not allowed in match.
	Parent Strings `yaml:"parent"`
	// Within lists roles of which a span above has one. Not allowed in match.
	Within Strings `yaml:"within"`
	// Contains lists roles of which a span at or below has one. Not allowed in match.
	Contains Strings `yaml:"contains"`
	// Orphan says whether the parent of the span, or of one above it, was not captured.
	// Not allowed in match.
	Orphan *bool `yaml:"orphan"`
	// Any holds where one of its conditions does.
	Any []Condition `yaml:"any"`
	// All holds where all of its conditions do.
	All []Condition `yaml:"all"`
	// Not holds where its condition does not.
	Not *Condition `yaml:"not"`
}

// Parent says where in the tree a span must be. Of several parts one must hold.
type Parent struct {
	Position Position `yaml:"-"` // in the file; set by Decode

	// Is lists roles of which the parent has one.
	Is Strings `yaml:"is"`
	// Within lists roles of which a span above has one.
	Within Strings `yaml:"within"`
	// Link lists roles to a span of which a link must lead, for work that goes on
	// apart from its request.
	Link Strings `yaml:"link"`
	// Root allows a span without a parent, or with one in a process that was not
	// captured.
	Root bool `yaml:"root"`
}

// Count says how many spans of a role there are. The short form is a number: that
// many in each trace that has the role.
type Count struct {
	Position Position `yaml:"-"` // in the file; set by Decode

	// Per is what is counted within: trace (default), or a role, whose every span
	// then has so many below it. A span counts for the nearest one above it.
	Per string `yaml:"per"`
	// Exactly is the number.
	Exactly *int `yaml:"exactly"`
	// Min is the lowest number.
	Min *int `yaml:"min"`
	// Max is the highest number.
	Max *int `yaml:"max"`
	// Unless lifts the bounds where the span that is counted within meets it.
	Unless *Condition `yaml:"unless"`
}

// Attribute is a rule for one attribute. The short form is a word: required,
// forbidden, or optional, which only names it so that its type is held and the
// contract is complete.
type Attribute struct {
	Position Position `yaml:"-"` // in the file; set by Decode

	// Required says that every span of the role has it.
	Required bool `yaml:"required"`
	// RequiredIf says when a span must have it.
	RequiredIf *Condition `yaml:"required_if"`
	// RequiredIff says when a span must have it, and that no other may.
	RequiredIff *Condition `yaml:"required_iff"`
	// Forbidden says that no span of the role has it.
	Forbidden bool `yaml:"forbidden"`
	// Spellings are further keys under which the value may stand.
	Spellings Strings `yaml:"spellings"`
	// Type is the type of the values: string, int, double, boolean, string[], int[],
	// double[], any. Without it that of the vocabulary.
	Type string `yaml:"type"`
	// Unit is the unit of the values, in UCUM. Without it that of the vocabulary.
	Unit string `yaml:"unit"`
	// Value lists the allowed values; text is a glob.
	Value Values `yaml:"value"`
	// Range is the lowest and the highest allowed number.
	Range []float64 `yaml:"range"`
	// Members says whether values outside the vocabulary's enumeration are allowed:
	// open (default) or closed.
	Members string `yaml:"members"`
}

// Events are rules for the events of a span.
type Events struct {
	Position Position `yaml:"-"` // in the file; set by Decode

	// Allow holds globs over names; an event that none matches is a finding. Without
	// it every event may be there.
	Allow Strings `yaml:"allow"`
	// Require lists events that each span has, with a condition or an empty one.
	Require map[string]*Condition `yaml:"require"`
	// Order lists events in the order in which those that are there must stand.
	// "a|b" is a choice.
	Order []string `yaml:"order"`
	// Once lists events that a span has at most once.
	Once Strings `yaml:"once"`
	// Last is the event, or the choice "a|b", after which none stands.
	Last string `yaml:"last"`
	// Max is the highest number of events of one span.
	Max int `yaml:"max"`
	// Asked lists events that are many because somebody asked for them, each with the
	// attribute of the span that says for how many: so many of them do not count for
	// max, nor for the limits of events.
	Asked map[string]string `yaml:"asked"`
	// Attributes are rules for the attributes of events, by event.
	Attributes map[string]map[string]Attribute `yaml:"attributes"`
}

// Metric is a rule for one metric. Instrument, unit and boundaries come from the
// vocabulary where it knows the metric.
type Metric struct {
	Position Position `yaml:"-"` // in the file; set by Decode

	// Required says that the metric must be there. Otherwise it may be missing.
	Required bool `yaml:"required"`
	// RequiredWith lists roles: where a span of one was seen that has something to
	// measure, the metric must be there.
	RequiredWith Strings `yaml:"required_with"`
	// Instrument is counter, updowncounter, gauge or histogram.
	Instrument string `yaml:"instrument"`
	// Unit is the unit, in UCUM.
	Unit string `yaml:"unit"`
	// Buckets are the boundaries of a histogram.
	Buckets []float64 `yaml:"buckets"`
	// Attributes are rules for the attributes of every point.
	Attributes map[string]Attribute `yaml:"attributes"`
	// Series is the highest number of distinct attribute sets.
	Series int `yaml:"series"`
	// Spellings are other metrics that say the same, such as older ones, each with the
	// values that attributes of its points have then.
	Spellings map[string]map[string]Values `yaml:"spellings"`
	// Settles says that an updowncounter, which counts what is under way, is 0 in the
	// end.
	Settles bool `yaml:"settles"`
	// Of says which spans are measured: the number of measurements of a histogram
	// equals the number of spans.
	Of *Measured `yaml:"of"`
}

// Measured says which spans a metric measures.
type Measured struct {
	// Role lists the roles of the spans.
	Role Strings `required:"true" yaml:"role"`
	// When is a further condition for the spans.
	When *Condition `yaml:"when"`
	// Unless is a condition under which nobody can tell what is measured: where one of
	// the spans meets it, the metric is not compared.
	Unless *Condition `yaml:"unless"`
	// Where gives the values that attributes of a point have; other points are not
	// compared.
	Where map[string]Values `yaml:"where"`
	// Value is the term that the sum of the metric adds up, such as
	// attr(llm.ttft_ms). Spans without it are not counted.
	Value string `yaml:"value"`
	// Per is a term that the value is divided by, span by span. Where it is 0, there is
	// nothing to measure.
	Per string `yaml:"per"`
	// Tolerance is how far the sums may differ.
	Tolerance *Tolerance `yaml:"tolerance"`
}

// Log is a rule for the log records with one event name.
type Log struct {
	Position Position `yaml:"-"` // in the file; set by Decode

	// Required says that there must be such a record.
	Required bool `yaml:"required"`
	// RequiredWith lists roles: where a span of one was seen, a record must be there.
	RequiredWith Strings `yaml:"required_with"`
	// Attributes are rules for the attributes of each record.
	Attributes map[string]Attribute `yaml:"attributes"`
	// On lists roles: each record belongs to a captured span that has one.
	On Strings `yaml:"on"`
	// Trace says that each record carries the identifiers of a trace and a span.
	Trace bool `yaml:"trace"`
	// Of says which spans leave a record: exactly one each. Only services are judged that
	// wrote a record of some event of the contract: one without a logger provider writes
	// none, and that is fine.
	Of *Logged `merge:"deep" yaml:"of"`
}

// Logged says which spans leave a log record.
type Logged struct {
	// Role lists the roles of the spans.
	Role Strings `merge:"add" required:"true" yaml:"role"`
	// When is a further condition for the spans.
	When *Condition `yaml:"when"`
}

// Hop is a way over which the trace goes on from one process to another.
type Hop struct {
	Position Position `yaml:"-"` // in the file; set by Decode

	// From is the role of the span that sends.
	From string `required:"true" yaml:"from"`
	// To is the role of the span that receives: below a span of From, in its trace.
	To string `required:"true" yaml:"to"`
	// Via is the transport: http, grpc, websocket or messaging. It makes the advice
	// in a finding precise.
	Via string `yaml:"via"`
	// Link allows that a link leads from the receiving span to the sending one
	// instead, as queues have it.
	Link bool `yaml:"link"`
	// When must hold for the span that sends; only then the hop must be there. Without
	// it a call must arrive unless it failed or was cancelled.
	When *Condition `yaml:"when"`
	// Optional says that a capture without this hop is fine.
	Optional bool `yaml:"optional"`
}

// Forbid says what must not be recorded.
type Forbid struct {
	Position Position `yaml:"-"` // in the file; set by Decode

	// Content forbids every attribute of the vocabulary that may hold the text of a
	// user, such as gen_ai.input.messages.
	Content bool `yaml:"content"`
	// Attributes are globs over keys, so that indexed keys do not escape.
	Attributes Strings `merge:"add" yaml:"attributes"`
	// Values are what no text may hold: builtin:email, builtin:api-key,
	// builtin:bearer, builtin:card, builtin:private-key, or a regular expression
	// between slashes.
	Values Strings `merge:"add" yaml:"values"`
	// Except are globs over keys whose values are not searched.
	Except Strings `merge:"add" yaml:"except"`
	// Spans are globs over names of spans.
	Spans Strings `merge:"add" yaml:"spans"`
	// Length is the highest length of a text value, in bytes.
	Length int `yaml:"length"`
	// EventLength is the same for attributes of events.
	EventLength int `yaml:"event_length"`
}

// Limits bounds how much is recorded. Zero is no limit.
type Limits struct {
	Position Position `yaml:"-"` // in the file; set by Decode

	// SpansPerTrace bounds the spans of one trace.
	SpansPerTrace int `yaml:"spans_per_trace"`
	// Siblings bounds the spans of one name below one parent: what a span for each
	// token breaks first.
	Siblings int `yaml:"siblings"`
	// EventsPerSpan bounds the events of one span.
	EventsPerSpan int `yaml:"events_per_span"`
	// EventsPerTrace bounds the events of one trace.
	EventsPerTrace int `yaml:"events_per_trace"`
	// AttributesPerSpan bounds the attributes of one span.
	AttributesPerSpan int `yaml:"attributes_per_span"`
	// BytesPerTrace bounds the text and numbers of one trace: names, keys and values.
	BytesPerTrace int `yaml:"bytes_per_trace"`
	// SpanNames bounds the distinct names of spans in the whole capture.
	SpanNames int `yaml:"span_names"`
	// Cardinality bounds the distinct values of attributes of spans in the whole
	// capture, by key.
	Cardinality map[string]int `yaml:"cardinality"`
	// Dropped allows what the limits of an SDK took away; otherwise that is a finding.
	Dropped bool `yaml:"dropped"`
}

// Timing is a rule between terms. A term is made of the following, with + and −
// between them; one that ends in ? counts as zero where it is absent, else the
// rule does not apply.
//
//	duration  start  end        of the span itself
//	attr(KEY)                   a number; with a unit of time it is a duration
//	event(NAME)                 the moment of the first event of that name
//	event(NAME, KEY)            a number on that event
//	ROLE.duration ROLE.start ROLE.end    of the spans of a role below it
//	ROLE.attr(KEY) ROLE.event(NAME)      the same, of the first of them
//	parent.duration …           of its parent
//	250ms  3                    a constant
type Timing struct {
	Position Position `yaml:"-"` // in the file; set by Decode

	// ID names the rule.
	ID string `required:"true" yaml:"id"`
	// On is the role of the span that the rule is about.
	On string `required:"true" yaml:"on"`
	// When must hold for the span.
	When *Condition `yaml:"when"`
	// Unless must not hold for the span.
	Unless *Condition `yaml:"unless"`
	// AtMost lists terms each of which is at most the next one.
	AtMost []string `yaml:"at_most"`
	// Equal lists terms that are equal.
	Equal []string `yaml:"equal"`
	// Order lists moments in the order in which they come.
	Order []string `yaml:"order"`
	// Tolerance is how far values may be off.
	Tolerance *Tolerance `yaml:"tolerance"`
	// Why says what the rule is for; a finding repeats it.
	Why string `yaml:"why"`
	// Optional says that a capture to which the rule never applies is fine.
	Optional bool `yaml:"optional"`
}

// Tolerance is how far two values may be apart: the larger of the two counts.
type Tolerance struct {
	// Abs is a duration such as 5ms, or a number for values without a unit.
	Abs string `yaml:"abs"`
	// Pct is a share of the larger value, in percent.
	Pct float64 `yaml:"pct"`
}

// Topology are rules for the tree as a whole.
type Topology struct {
	Position Position `yaml:"-"` // in the file; set by Decode

	// Orphans says what becomes of a span whose parent was not captured although it
	// is not in another process: allow, warn or deny (default).
	Orphans Policy `yaml:"orphans"`
	// RemoteOrphans says the same of a span whose parent may be in another process:
	// allow (default), warn or deny.
	RemoteOrphans Policy `yaml:"remote_orphans"`
	// Roots is the highest number of spans of a trace without a captured parent; 0 is
	// no limit.
	Roots int `yaml:"roots"`
	// Skew is how long before its parent a span may start. Default 2ms.
	Skew string `yaml:"skew"`
	// Outlive says how long after its parent a span may end, and which roles may do
	// so at will.
	Outlive Outlive `yaml:"outlive"`
	// IsolateBy lists attributes whose value must be the same wherever they stand in
	// one trace, such as genai.tenant.id.
	IsolateBy Strings `merge:"add" yaml:"isolate_by"`
	// NeverEnded says what becomes of spans that did not end: allow, warn or deny
	// (default).
	NeverEnded Policy `yaml:"never_ended"`
}

// Outlive says which spans may end after their parent.
type Outlive struct {
	// Tolerance is how long after. Default 2ms.
	Tolerance string `yaml:"tolerance"`
	// Allow lists pairs of roles that may do so at will.
	Allow []OutlivePair `yaml:"allow"`
}

// OutlivePair is one exception with its reason.
type OutlivePair struct {
	Position Position `yaml:"-"` // in the file; set by Decode

	// Child is the role of the span that ends late.
	Child string `required:"true" yaml:"child"`
	// Parent is the role of its parent.
	Parent string `required:"true" yaml:"parent"`
	// Reason says why that is right.
	Reason string `required:"true" yaml:"reason"`
}

// Agree says that facts are the same on all spans of a trace.
type Agree struct {
	Position Position `yaml:"-"` // in the file; set by Decode

	// Keys are the attributes.
	Keys Strings `required:"true" yaml:"keys"`
	// Across lists the roles that are compared. Without any, all spans are.
	Across Strings `yaml:"across"`
	// Per is what is compared within: trace (default), or a role, within each span of
	// which (itself included) the values agree.
	Per string `yaml:"per"`
	// Tolerance is how far numbers may be apart.
	Tolerance *Tolerance `yaml:"tolerance"`
	// Why says what the rule is for.
	Why string `yaml:"why"`
	// Optional says that a capture in which nothing was compared is fine.
	Optional bool `yaml:"optional"`
}

// SLO bounds percentiles of a term over all spans of a role.
type SLO struct {
	Position Position `yaml:"-"` // in the file; set by Decode

	// ID names the objective.
	ID string `required:"true" yaml:"id"`
	// On is the role.
	On string `required:"true" yaml:"on"`
	// Value is the term, such as attr(llm.ttft_ms).
	Value string `required:"true" yaml:"value"`
	// When must hold for the span.
	When *Condition `yaml:"when"`
	// P50, P95, P99 and Max are upper bounds: a duration such as 1500ms, or a number.
	P50 string `yaml:"p50"`
	P95 string `yaml:"p95"`
	P99 string `yaml:"p99"`
	Max string `yaml:"max"`
	// Min is a lower bound for every value.
	Min string `yaml:"min"`
	// Samples is how many values there must be before the objective is judged.
	// Default 1.
	Samples int `yaml:"samples"`
}

// Accept is a known violation that does not fail the check.
type Accept struct {
	Position Position `yaml:"-"` // in the file; set by Decode

	// Rule is the rule, such as attribute.missing, or a glob over rules.
	Rule string `required:"true" yaml:"rule"`
	// On is the role, the metric or the log event; without it any.
	On string `yaml:"on"`
	// Key is the attribute, the event or the id of the rule; without it any.
	Key string `yaml:"key"`
	// Reason says why it is accepted.
	Reason string `required:"true" yaml:"reason"`
	// Until is the last day, as 2027-03-01. After it the violation counts again.
	Until string `yaml:"until"`
}
