package capture

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// Capture is what was collected: spans, metrics and log records. The zero value
// is an empty capture. It is plain data; reading it concurrently is safe.
type Capture struct {
	Spans   []*Span // in any order; one that has not ended has no End
	Metrics []*Metric
	Logs    []*Log

	// Dropped counts what arrived and was not kept, because a limit was reached.
	Dropped int
}

// Attributes are the attributes of a span, an event, a resource …, in the order
// in which they were given.
type Attributes []attribute.KeyValue

// Get returns the value of key. Where a damaged source holds a key twice, the
// last value counts.
func (a Attributes) Get(key attribute.Key) (attribute.Value, bool) {
	for i := len(a) - 1; i >= 0; i-- {
		if a[i].Key == key {
			return a[i].Value, true
		}
	}
	return attribute.Value{}, false
}

// Has reports whether key is there.
func (a Attributes) Has(key attribute.Key) bool {
	_, ok := a.Get(key)
	return ok
}

// String returns the value of key as text, empty where it is absent.
func (a Attributes) String(key attribute.Key) string {
	v, ok := a.Get(key)
	if !ok {
		return ""
	}
	return v.String()
}

// Resource is what telemetry was recorded about: a service, a process. Many spans
// share one.
type Resource struct {
	Attributes Attributes
	SchemaURL  string
}

// Service returns the service.name, empty where there is none.
func (r *Resource) Service() string {
	if r == nil {
		return ""
	}
	return r.Attributes.String("service.name")
}

// Scope is the instrumentation that recorded. Many spans share one.
type Scope struct {
	Name, Version string
	Attributes    Attributes
	SchemaURL     string
}

// Origin says where the parent of a span is.
type Origin int8

// Origins of a parent.
const (
	OriginUnknown Origin = iota // the source does not say, or there is no parent
	OriginLocal                 // in the same process
	OriginRemote                // its context came over a network
)

// Span is one span.
type Span struct {
	TraceID      trace.TraceID
	SpanID       trace.SpanID
	ParentID     trace.SpanID // invalid where there is no parent
	ParentOrigin Origin
	TraceState   string
	Flags        trace.TraceFlags

	Name string
	Kind trace.SpanKind
	// Start and End bound the span. End is zero where the span has not ended.
	Start, End time.Time

	Status        codes.Code
	StatusMessage string

	Attributes Attributes
	Events     []Event
	Links      []Link

	// What the limits of the SDK took away.
	DroppedAttributes, DroppedEvents, DroppedLinks int

	Resource *Resource // nil where unknown
	Scope    *Scope    // nil where unknown
	Source   Source    // zero where unknown
}

// Ended reports whether s has ended.
func (s *Span) Ended() bool { return !s.End.IsZero() }

// Duration is End − Start, and zero where the span has not ended.
func (s *Span) Duration() time.Duration {
	if !s.Ended() {
		return 0
	}
	return s.End.Sub(s.Start)
}

// Event is an event of a span.
type Event struct {
	Name              string
	Time              time.Time
	Attributes        Attributes
	DroppedAttributes int
}

// Link is a link of a span to another one.
type Link struct {
	TraceID           trace.TraceID
	SpanID            trace.SpanID
	TraceState        string
	Flags             trace.TraceFlags
	Attributes        Attributes
	DroppedAttributes int
}

// Source is the line of code that started a span.
type Source struct {
	File     string // as the compiler names it; absolute unless built with -trimpath
	Line     int    // from 1; 0 where unknown
	Function string
}

// Known reports whether there is a line.
func (s Source) Known() bool { return s.Line > 0 }

// String returns file:line, with the file named from the working directory on where
// it is below that, and nothing for an unknown line.
func (s Source) String() string {
	if !s.Known() {
		return ""
	}
	file := s.File
	if dir, err := os.Getwd(); err == nil {
		if rel, err := filepath.Rel(dir, file); err == nil && filepath.IsLocal(rel) {
			file = rel
		}
	}
	return file + ":" + strconv.Itoa(s.Line)
}

// MetricKind is the form of a metric's data.
type MetricKind string

// Kinds of metrics. A sum that only grows is a counter.
const (
	KindCounter       MetricKind = "counter"
	KindUpDownCounter MetricKind = "updowncounter"
	KindGauge         MetricKind = "gauge"
	KindHistogram     MetricKind = "histogram"
	KindExponential   MetricKind = "exponential histogram"
	KindSummary       MetricKind = "summary"
)

// Temporality says what the points of a metric count from.
type Temporality int8

// Temporalities, with the numbers of OTLP.
const (
	TemporalityUnknown Temporality = iota // gauges and summaries have none
	TemporalityDelta
	TemporalityCumulative
)

// Metric is one metric with its points.
type Metric struct {
	Name, Description, Unit string
	Kind                    MetricKind
	Temporality             Temporality
	Points                  []Point
	Resource                *Resource
	Scope                   *Scope
}

// Point is one data point of a metric: one series at one time.
type Point struct {
	Attributes  Attributes
	Start, Time time.Time

	Int   bool    // the instrument records integers
	Value float64 // of a counter, an updowncounter or a gauge

	// Of histograms and summaries.
	Count    uint64
	Sum      float64
	HasSum   bool
	Min, Max *float64 // nil where not recorded

	Bounds       []float64 // of a histogram, in rising order
	BucketCounts []uint64  // one more than Bounds

	Exponential *Exponential // of an exponential histogram
	Quantiles   []Quantile   // of a summary

	Exemplars []Exemplar
}

// Exponential holds the buckets of an exponential histogram, as OTLP defines
// them.
type Exponential struct {
	Scale                          int32
	ZeroCount                      uint64
	ZeroThreshold                  float64
	PositiveOffset, NegativeOffset int32
	PositiveCounts, NegativeCounts []uint64
}

// Quantile is one value of a summary.
type Quantile struct{ Quantile, Value float64 }

// Exemplar is one measured value with the span that was active.
type Exemplar struct {
	Attributes Attributes // those that the point does not have
	Time       time.Time
	Int        bool
	Value      float64
	TraceID    trace.TraceID
	SpanID     trace.SpanID
}

// Log is one log record or event.
type Log struct {
	Time, Observed    time.Time
	Severity          int // 1 to 24; 0 where unknown
	SeverityText      string
	EventName         string
	Body              attribute.Value
	Attributes        Attributes
	DroppedAttributes int
	TraceID           trace.TraceID // invalid where the record belongs to no trace
	SpanID            trace.SpanID
	Flags             trace.TraceFlags
	Resource          *Resource
	Scope             *Scope
}

// Select returns the spans that match, in the order of the capture.
func (c *Capture) Select(match func(*Span) bool) []*Span {
	var spans []*Span
	for _, s := range c.Spans {
		if match(s) {
			spans = append(spans, s)
		}
	}
	return spans
}

// Named returns the spans of that name, in the order of the capture.
func (c *Capture) Named(name string) []*Span {
	return c.Select(func(s *Span) bool { return s.Name == name })
}

// Metric returns the metrics of that name; several scopes or resources may record
// the same one.
func (c *Capture) Metric(name string) []*Metric {
	var metrics []*Metric
	for _, m := range c.Metrics {
		if m.Name == name {
			metrics = append(metrics, m)
		}
	}
	return metrics
}

// Traces returns the spans by trace, in the order in which the traces began.
func (c *Capture) Traces() []*Trace {
	byID := make(map[trace.TraceID][]*Span)
	var order []trace.TraceID
	for _, s := range c.Spans {
		if _, seen := byID[s.TraceID]; !seen {
			order = append(order, s.TraceID)
		}
		byID[s.TraceID] = append(byID[s.TraceID], s)
	}
	traces := make([]*Trace, 0, len(order))
	for _, id := range order {
		traces = append(traces, NewTrace(byID[id]))
	}
	slices.SortStableFunc(traces, func(a, b *Trace) int { return a.Spans[0].Start.Compare(b.Spans[0].Start) })
	return traces
}

// Add puts what other holds into c. The two share it from then on.
func (c *Capture) Add(other *Capture) {
	c.Spans = append(c.Spans, other.Spans...)
	c.Metrics = append(c.Metrics, other.Metrics...)
	c.Logs = append(c.Logs, other.Logs...)
	c.Dropped += other.Dropped
}

// byStart orders spans by their start, the longer one first where they start
// together: so a parent stands before its children. One that has not ended is the
// longest.
func byStart(a, b *Span) int {
	if c := a.Start.Compare(b.Start); c != 0 {
		return c
	}
	switch {
	case a.Ended() && b.Ended():
		return b.End.Compare(a.End)
	case a.Ended():
		return 1
	case b.Ended():
		return -1
	default:
		return 0
	}
}
