package otlp

import "google.golang.org/protobuf/encoding/protowire"

// This file describes the messages of OTLP: for every field its number, its JSON
// name and what it may hold. Three checks share it: which signal a protobuf message
// is of, how deep it nests before pdata recurses into it, and where exactly damage
// lies, which pdata does not say.

// maxDepth is how many messages, or brackets of JSON, may lie in each other. OTLP
// itself needs 10 messages or 19 brackets; the rest is for attributes that hold
// lists and maps.
const maxDepth = 500

// Signal is what a message of OTLP carries.
type signal uint8

const (
	traces signal = iota
	metrics
	logs
)

// signals is how many there are.
const signals = 3

// String names the signal as its HTTP path does.
func (s signal) String() string { return [signals]string{"traces", "metrics", "logs"}[s] }

// envelope is the message that is exported for a signal.
func (s signal) envelope() messageID {
	return [signals]messageID{msgTraces, msgMetrics, msgLogs}[s]
}

// kind is what a field may hold.
type kind uint8

const (
	unknownField kind = iota // allowed and not looked at: OTLP grows
	removed                  // taken out of OTLP with the data that it held
	one                      // a message
	many                     // a list of messages
	text
	texts // a list of text
	blob
	traceID
	spanID
	boolean
	enum
	integer // a varint
	fixed32
	fixed64
	double
	integers // a list of varints
	fixed64s
	doubles
)

type field struct {
	name string // in JSON
	kind kind
	of   messageID // of one and many
}

// message holds the fields of a message by number.
type message []field

type messageID uint8

const (
	msgTraces messageID = iota
	msgMetrics
	msgLogs
	msgResourceSpans
	msgResourceMetrics
	msgResourceLogs
	msgScopeSpans
	msgScopeMetrics
	msgScopeLogs
	msgSpan
	msgMetric
	msgLog
	msgResource
	msgScope
	msgEntity
	msgKeyValue
	msgAnyValue
	msgArray
	msgMap
	msgEvent
	msgLink
	msgStatus
	msgGauge
	msgSum
	msgHistogram
	msgExponential
	msgSummary
	msgNumberPoint
	msgHistogramPoint
	msgExponentialPoint
	msgBuckets
	msgSummaryPoint
	msgQuantile
	msgExemplar
)

// field returns the field with that number.
func (id messageID) field(num protowire.Number) field {
	const formerScopes = 1000 // where pdata still reads what is field 2 today
	m := messages[id]
	switch {
	case int(num) < len(m):
		return m[num]
	case num == formerScopes && msgResourceSpans <= id && id <= msgResourceLogs:
		return m[2]
	}
	return field{}
}

var messages = [...]message{
	msgTraces:  {1: {"resourceSpans", many, msgResourceSpans}},
	msgMetrics: {1: {"resourceMetrics", many, msgResourceMetrics}},
	msgLogs:    {1: {"resourceLogs", many, msgResourceLogs}},

	msgResourceSpans:   {1: {"resource", one, msgResource}, 2: {"scopeSpans", many, msgScopeSpans}, 3: {"schemaUrl", text, 0}},
	msgResourceMetrics: {1: {"resource", one, msgResource}, 2: {"scopeMetrics", many, msgScopeMetrics}, 3: {"schemaUrl", text, 0}},
	msgResourceLogs:    {1: {"resource", one, msgResource}, 2: {"scopeLogs", many, msgScopeLogs}, 3: {"schemaUrl", text, 0}},

	msgScopeSpans:   {1: {"scope", one, msgScope}, 2: {"spans", many, msgSpan}, 3: {"schemaUrl", text, 0}},
	msgScopeMetrics: {1: {"scope", one, msgScope}, 2: {"metrics", many, msgMetric}, 3: {"schemaUrl", text, 0}},
	msgScopeLogs:    {1: {"scope", one, msgScope}, 2: {"logRecords", many, msgLog}, 3: {"schemaUrl", text, 0}},

	msgSpan: {
		1:  {"traceId", traceID, 0},
		2:  {"spanId", spanID, 0},
		3:  {"traceState", text, 0},
		4:  {"parentSpanId", spanID, 0},
		5:  {"name", text, 0},
		6:  {"kind", enum, 0},
		7:  {"startTimeUnixNano", fixed64, 0},
		8:  {"endTimeUnixNano", fixed64, 0},
		9:  {"attributes", many, msgKeyValue},
		10: {"droppedAttributesCount", integer, 0},
		11: {"events", many, msgEvent},
		12: {"droppedEventsCount", integer, 0},
		13: {"links", many, msgLink},
		14: {"droppedLinksCount", integer, 0},
		15: {"status", one, msgStatus},
		16: {"flags", fixed32, 0},
	},
	msgMetric: {
		1:  {"name", text, 0},
		2:  {"description", text, 0},
		3:  {"unit", text, 0},
		4:  {"", removed, 0},
		5:  {"gauge", one, msgGauge},
		6:  {"", removed, 0},
		7:  {"sum", one, msgSum},
		8:  {"", removed, 0},
		9:  {"histogram", one, msgHistogram},
		10: {"exponentialHistogram", one, msgExponential},
		11: {"summary", one, msgSummary},
		12: {"metadata", many, msgKeyValue},
	},
	msgLog: {
		1:  {"timeUnixNano", fixed64, 0},
		2:  {"severityNumber", enum, 0},
		3:  {"severityText", text, 0},
		5:  {"body", one, msgAnyValue},
		6:  {"attributes", many, msgKeyValue},
		7:  {"droppedAttributesCount", integer, 0},
		8:  {"flags", fixed32, 0},
		9:  {"traceId", traceID, 0},
		10: {"spanId", spanID, 0},
		11: {"observedTimeUnixNano", fixed64, 0},
		12: {"eventName", text, 0},
	},

	msgResource: {1: {"attributes", many, msgKeyValue}, 2: {"droppedAttributesCount", integer, 0}, 3: {"entityRefs", many, msgEntity}},
	msgScope:    {1: {"name", text, 0}, 2: {"version", text, 0}, 3: {"attributes", many, msgKeyValue}, 4: {"droppedAttributesCount", integer, 0}},
	msgEntity:   {1: {"schemaUrl", text, 0}, 2: {"type", text, 0}, 3: {"idKeys", texts, 0}, 4: {"descriptionKeys", texts, 0}},
	msgKeyValue: {1: {"key", text, 0}, 2: {"value", one, msgAnyValue}},
	msgAnyValue: {
		1: {"stringValue", text, 0},
		2: {"boolValue", boolean, 0},
		3: {"intValue", integer, 0},
		4: {"doubleValue", double, 0},
		5: {"arrayValue", one, msgArray},
		6: {"kvlistValue", one, msgMap},
		7: {"bytesValue", blob, 0},
	},
	msgArray: {1: {"values", many, msgAnyValue}},
	msgMap:   {1: {"values", many, msgKeyValue}},

	msgEvent: {1: {"timeUnixNano", fixed64, 0}, 2: {"name", text, 0}, 3: {"attributes", many, msgKeyValue}, 4: {"droppedAttributesCount", integer, 0}},
	msgLink: {
		1: {"traceId", traceID, 0},
		2: {"spanId", spanID, 0},
		3: {"traceState", text, 0},
		4: {"attributes", many, msgKeyValue},
		5: {"droppedAttributesCount", integer, 0},
		6: {"flags", fixed32, 0},
	},
	msgStatus: {2: {"message", text, 0}, 3: {"code", enum, 0}},

	msgGauge:       {1: {"dataPoints", many, msgNumberPoint}},
	msgSum:         {1: {"dataPoints", many, msgNumberPoint}, 2: {"aggregationTemporality", enum, 0}, 3: {"isMonotonic", boolean, 0}},
	msgHistogram:   {1: {"dataPoints", many, msgHistogramPoint}, 2: {"aggregationTemporality", enum, 0}},
	msgExponential: {1: {"dataPoints", many, msgExponentialPoint}, 2: {"aggregationTemporality", enum, 0}},
	msgSummary:     {1: {"dataPoints", many, msgSummaryPoint}},
	msgNumberPoint: {
		2: {"startTimeUnixNano", fixed64, 0},
		3: {"timeUnixNano", fixed64, 0},
		4: {"asDouble", double, 0},
		5: {"exemplars", many, msgExemplar},
		6: {"asInt", fixed64, 0},
		7: {"attributes", many, msgKeyValue},
		8: {"flags", integer, 0},
	},
	msgHistogramPoint: {
		2:  {"startTimeUnixNano", fixed64, 0},
		3:  {"timeUnixNano", fixed64, 0},
		4:  {"count", fixed64, 0},
		5:  {"sum", double, 0},
		6:  {"bucketCounts", fixed64s, 0},
		7:  {"explicitBounds", doubles, 0},
		8:  {"exemplars", many, msgExemplar},
		9:  {"attributes", many, msgKeyValue},
		10: {"flags", integer, 0},
		11: {"min", double, 0},
		12: {"max", double, 0},
	},
	msgExponentialPoint: {
		1:  {"attributes", many, msgKeyValue},
		2:  {"startTimeUnixNano", fixed64, 0},
		3:  {"timeUnixNano", fixed64, 0},
		4:  {"count", fixed64, 0},
		5:  {"sum", double, 0},
		6:  {"scale", integer, 0},
		7:  {"zeroCount", fixed64, 0},
		8:  {"positive", one, msgBuckets},
		9:  {"negative", one, msgBuckets},
		10: {"flags", integer, 0},
		11: {"exemplars", many, msgExemplar},
		12: {"min", double, 0},
		13: {"max", double, 0},
		14: {"zeroThreshold", double, 0},
	},
	msgBuckets: {1: {"offset", integer, 0}, 2: {"bucketCounts", integers, 0}},
	msgSummaryPoint: {
		2: {"startTimeUnixNano", fixed64, 0},
		3: {"timeUnixNano", fixed64, 0},
		4: {"count", fixed64, 0},
		5: {"sum", double, 0},
		6: {"quantileValues", many, msgQuantile},
		7: {"attributes", many, msgKeyValue},
		8: {"flags", integer, 0},
	},
	msgQuantile: {1: {"quantile", double, 0}, 2: {"value", double, 0}},
	msgExemplar: {
		2: {"timeUnixNano", fixed64, 0},
		3: {"asDouble", double, 0},
		4: {"spanId", spanID, 0},
		5: {"traceId", traceID, 0},
		6: {"asInt", fixed64, 0},
		7: {"filteredAttributes", many, msgKeyValue},
	},
}
