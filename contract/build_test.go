package contract_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/capture"
	"github.com/genaitrace/otelgenai/contract"
)

// Kinds and statuses by short names.
const (
	server   = trace.SpanKindServer
	client   = trace.SpanKindClient
	internal = trace.SpanKindInternal
	producer = trace.SpanKindProducer
	consumer = trace.SpanKindConsumer

	failed = codes.Error
)

// epoch is when every test trace begins.
var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// ms is a moment in milliseconds after the epoch.
func ms(n float64) time.Time { return epoch.Add(time.Duration(n * float64(time.Millisecond))) }

// node is a span with what stands below it.
type node struct {
	span     capture.Span
	children []*node
	edits    []func(*capture.Span)
}

// span makes a node of one line: the name, the start and the end in milliseconds,
// and any of a kind, a status, attributes, events, links, a resource, a scope, a
// source, functions that change it, and the spans below it.
func span(name string, from, to float64, parts ...any) *node {
	n := &node{span: capture.Span{Name: name, Kind: internal, Start: ms(from), End: ms(to)}}
	for _, part := range parts {
		switch part := part.(type) {
		case trace.SpanKind:
			n.span.Kind = part
		case codes.Code:
			n.span.Status = part
		case attribute.KeyValue:
			n.span.Attributes = append(n.span.Attributes, part)
		case capture.Event:
			n.span.Events = append(n.span.Events, part)
		case capture.Link:
			n.span.Links = append(n.span.Links, part)
		case *capture.Resource:
			n.span.Resource = part
		case *capture.Scope:
			n.span.Scope = part
		case capture.Source:
			n.span.Source = part
		case func(*capture.Span):
			n.edits = append(n.edits, part)
		case *node:
			n.children = append(n.children, part)
		default:
			panic(fmt.Sprintf("a span has no %T", part))
		}
	}
	return n
}

// traces makes a capture in which each node is the root of a trace. Identifiers
// count from 1: the third span of the second trace is spanID(2, 3).
func traces(roots ...*node) *capture.Capture {
	got := &capture.Capture{}
	for i, root := range roots {
		next := 0
		root.add(got, i+1, &next, trace.SpanID{})
	}
	return got
}

func (n *node) add(to *capture.Capture, traceNumber int, next *int, parent trace.SpanID) {
	*next++
	s := n.span
	s.TraceID, s.SpanID, s.ParentID = traceID(traceNumber), spanID(traceNumber, *next), parent
	if parent.IsValid() {
		s.ParentOrigin = capture.OriginLocal
	}
	id := s.SpanID
	for _, edit := range n.edits {
		edit(&s)
	}
	to.Spans = append(to.Spans, &s)
	for _, c := range n.children {
		c.add(to, traceNumber, next, id)
	}
}

func traceID(n int) (id trace.TraceID) {
	binary.BigEndian.PutUint64(id[8:], uint64(n))
	return id
}

func spanID(traceNumber, n int) (id trace.SpanID) {
	binary.BigEndian.PutUint32(id[:], uint32(traceNumber))
	binary.BigEndian.PutUint32(id[4:], uint32(n))
	return id
}

func text(key, value string) attribute.KeyValue           { return attribute.String(key, value) }
func whole(key string, value int) attribute.KeyValue      { return attribute.Int(key, value) }
func number(key string, value float64) attribute.KeyValue { return attribute.Float64(key, value) }
func truth(key string, value bool) attribute.KeyValue     { return attribute.Bool(key, value) }

func event(name string, at float64, attributes ...attribute.KeyValue) capture.Event {
	return capture.Event{Name: name, Time: ms(at), Attributes: attributes}
}

func link(traceNumber, n int) capture.Link {
	return capture.Link{TraceID: traceID(traceNumber), SpanID: spanID(traceNumber, n)}
}

func service(name string, attributes ...attribute.KeyValue) *capture.Resource {
	return &capture.Resource{Attributes: append(capture.Attributes{text("service.name", name)}, attributes...)}
}

// orphaned makes a span name a parent that nobody recorded.
func orphaned(origin capture.Origin) func(*capture.Span) {
	return func(s *capture.Span) { s.ParentID, s.ParentOrigin = spanID(99, 99), origin }
}

// below makes a span name another one as its parent.
func below(traceNumber, n int) func(*capture.Span) {
	return func(s *capture.Span) { s.ParentID = spanID(traceNumber, n) }
}

func neverEnded(s *capture.Span) { s.End = time.Time{} }

// histogram is a metric with one point in the boundaries of a contract that names
// none.
func histogram(name, unit string, count uint64, sum float64, attributes ...attribute.KeyValue) *capture.Metric {
	return &capture.Metric{Name: name, Unit: unit, Kind: capture.KindHistogram, Temporality: capture.TemporalityCumulative, Points: []capture.Point{
		{Attributes: attributes, Count: count, Sum: sum, HasSum: true},
	}}
}

// with puts metrics and log records beside the spans.
func with(got *capture.Capture, parts ...any) *capture.Capture {
	for _, part := range parts {
		switch part := part.(type) {
		case *capture.Metric:
			got.Metrics = append(got.Metrics, part)
		case *capture.Log:
			got.Logs = append(got.Logs, part)
		default:
			panic(fmt.Sprintf("a capture has no %T", part))
		}
	}
	return got
}

const header = "contract: genai.observability/v1\nname: test\n"

// parse reads a contract without its first two lines.
func parse(t testing.TB, yaml string) *contract.Contract {
	t.Helper()
	c, err := contract.Parse("test.yaml", []byte(header+yaml))
	require.NoError(t, err)
	return c
}

// short is a finding in one line, without what tests look at apart.
func short(f contract.Finding) string {
	return fmt.Sprintf("%s %s %s on=%q key=%q", f.Severity, f.Rule, f.Path, f.On, f.Key)
}

// rulesOf returns the rules of the findings, each once.
func rulesOf(r *contract.Report) []string {
	ids := []string{}
	for _, f := range r.Findings {
		ids = append(ids, f.Rule)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

func regexpQuote(s string) string { return regexp.QuoteMeta(s) }

func sprintf(format string, args ...any) string { return fmt.Sprintf(format, args...) }

func linkWith(key, value string) func(*capture.Span) {
	return func(s *capture.Span) { s.Links[0].Attributes = capture.Attributes{text(key, value)} }
}

func statusMessage(message string) func(*capture.Span) {
	return func(s *capture.Span) { s.StatusMessage = message }
}

var nan = math.NaN()

// counter is a metric with a point for each value.
func counter(name, unit string, values ...float64) *capture.Metric {
	m := &capture.Metric{Name: name, Unit: unit, Kind: capture.KindCounter, Temporality: capture.TemporalityCumulative}
	for i, v := range values {
		m.Points = append(m.Points, capture.Point{Attributes: capture.Attributes{whole("series", i)}, Value: v})
	}
	return m
}

// counterWith is a counter with one point.
func counterWith(name string, attributes ...attribute.KeyValue) *capture.Metric {
	return &capture.Metric{Name: name, Kind: capture.KindCounter, Points: []capture.Point{{Attributes: attributes}}}
}

// underWay is an updowncounter with one point.
func underWay(temporality capture.Temporality, n float64, attributes ...attribute.KeyValue) *capture.Metric {
	return &capture.Metric{Name: "work", Kind: capture.KindUpDownCounter, Temporality: temporality, Points: []capture.Point{{Attributes: attributes, Value: n}}}
}
