package otlp

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/capture"
)

// source makes random captures of what both a capture and OTLP can say.
type source struct {
	*rand.Rand
	resources []*capture.Resource
	scopes    []*capture.Scope
	series    int
}

func newSource(seed uint64) *source {
	s := &source{Rand: rand.New(rand.NewPCG(seed, 0))}
	s.resources = []*capture.Resource{nil, {SchemaURL: "https://example.org/schema"}, {Attributes: s.attributes(1)}, {Attributes: s.attributes(9), SchemaURL: "u"}}
	s.scopes = []*capture.Scope{nil, {Name: "scope"}, {Version: "1.2"}, {Name: "a", Version: "v", Attributes: s.attributes(2), SchemaURL: "x"}}
	return s
}

func pick[T any](s *source, all ...T) T { return all[s.IntN(len(all))] }

func (s *source) capture(size int) *capture.Capture {
	c := new(capture.Capture)
	for range size {
		c.Spans = append(c.Spans, s.span())
		c.Metrics = append(c.Metrics, s.metric())
		c.Logs = append(c.Logs, s.log())
	}
	return c
}

func (s *source) text() string {
	return pick(s, "", "a", "chat", "größer\n\t\"\\\u2028\x00", "a text that is longer than what is shared between the messages of one reader, which is no more than 128 bytes of each of them", fmt.Sprint(s.Uint64()))
}

func (s *source) time() time.Time {
	return pick(s, time.Time{}, time.Unix(0, s.Int64()).UTC(), time.Unix(1_800_000_000, s.Int64N(1e9)).UTC(), time.Unix(16_000_000_000, 7).UTC())
}

func (s *source) float() float64 {
	return pick(s, 0, -1.5, s.NormFloat64(), s.Float64()*1e300, 5e-324, 1<<53, 0.1, 1e21)
}

func (s *source) value(depth int) attribute.Value {
	switch s.IntN(12 - 2*min(depth, 1)) {
	case 0:
		return attribute.Value{}
	case 1:
		return attribute.BoolValue(s.IntN(2) == 0)
	case 2:
		return attribute.Int64Value(pick(s, 0, -1, int64(s.Uint64()), 1<<62))
	case 3:
		return attribute.Float64Value(s.float())
	case 4:
		return attribute.StringSliceValue([]string{s.text(), s.text(), s.text(), s.text()})
	case 5:
		return attribute.Int64SliceValue([]int64{s.Int64(), -1})
	case 6:
		return attribute.Float64SliceValue([]float64{s.float()})
	case 7:
		return attribute.BoolSliceValue([]bool{true, false, true})
	case 8:
		return attribute.ByteSliceValue([]byte{0, 255, byte(s.Uint32())})
	case 9:
		return attribute.StringValue(s.text())
	case 10:
		return attribute.SliceValue(attribute.StringValue(s.text()), attribute.IntValue(1), s.value(depth+1))
	default:
		return attribute.MapValue(s.attributes(s.IntN(8))...)
	}
}

func (s *source) attributes(n int) capture.Attributes {
	var attrs capture.Attributes
	for i := range n {
		attrs = append(attrs, attribute.KeyValue{Key: attribute.Key(fmt.Sprintf("key.%d", i)), Value: s.value(1)})
	}
	s.Shuffle(len(attrs), func(i, j int) { attrs[i], attrs[j] = attrs[j], attrs[i] })
	return attrs
}

func (s *source) traceID() (id trace.TraceID) {
	for i := range id {
		id[i] = byte(s.Uint32())
	}
	return id
}

func (s *source) spanID() (id trace.SpanID) {
	for i := range id {
		id[i] = byte(s.Uint32())
	}
	return id
}

func (s *source) span() *capture.Span {
	span := &capture.Span{
		TraceID: s.traceID(), SpanID: s.spanID(), TraceState: pick(s, "", "a=b"), Flags: trace.TraceFlags(s.IntN(256)),
		Name: s.text(), Kind: trace.SpanKind(s.IntN(6)), Start: s.time(), End: s.time(),
		Status: pick(s, codes.Unset, codes.Ok, codes.Error), StatusMessage: s.text(),
		Attributes:        s.attributes(s.IntN(5)),
		DroppedAttributes: s.IntN(3), DroppedEvents: s.IntN(3), DroppedLinks: s.IntN(3),
		Resource: pick(s, s.resources...), Scope: pick(s, s.scopes...),
	}
	if s.IntN(2) == 0 {
		span.ParentID, span.ParentOrigin = s.spanID(), pick(s, capture.OriginUnknown, capture.OriginLocal, capture.OriginRemote)
	}
	for range s.IntN(3) {
		span.Events = append(span.Events, capture.Event{Name: s.text(), Time: s.time(), Attributes: s.attributes(s.IntN(3)), DroppedAttributes: s.IntN(2)})
		span.Links = append(span.Links, capture.Link{
			TraceID: s.traceID(), SpanID: s.spanID(), TraceState: pick(s, "", "x=y"),
			Flags: trace.TraceFlags(s.IntN(256)), Attributes: s.attributes(s.IntN(3)), DroppedAttributes: s.IntN(2),
		})
	}
	return span
}

func (s *source) log() *capture.Log {
	return &capture.Log{
		Time: s.time(), Observed: s.time(), Severity: s.IntN(25), SeverityText: s.text(), EventName: s.text(),
		Body: s.value(0), Attributes: s.attributes(s.IntN(4)), DroppedAttributes: s.IntN(3),
		TraceID: pick(s, trace.TraceID{}, s.traceID()), SpanID: pick(s, trace.SpanID{}, s.spanID()), Flags: trace.TraceFlags(s.IntN(256)),
		Resource: pick(s, s.resources...), Scope: pick(s, s.scopes...),
	}
}

func (s *source) metric() *capture.Metric {
	s.series++
	m := &capture.Metric{
		Name: fmt.Sprintf("metric.%d", s.series), Description: s.text(), Unit: s.text(),
		Kind:     pick(s, capture.KindCounter, capture.KindUpDownCounter, capture.KindGauge, capture.KindHistogram, capture.KindExponential, capture.KindSummary),
		Resource: pick(s, s.resources...), Scope: pick(s, s.scopes...),
	}
	if m.Kind != capture.KindGauge && m.Kind != capture.KindSummary {
		m.Temporality = pick(s, capture.TemporalityUnknown, capture.TemporalityDelta, capture.TemporalityCumulative)
	}
	for i := range s.IntN(4) {
		p := s.point(m.Kind)
		p.Attributes = append(p.Attributes, attribute.Int("series", i))
		m.Points = append(m.Points, p)
	}
	return m
}

func (s *source) point(kind capture.MetricKind) capture.Point {
	p := capture.Point{Attributes: s.attributes(s.IntN(3)), Start: s.time(), Time: s.time()}
	if kind == capture.KindSummary {
		p.Count, p.Sum, p.HasSum = s.Uint64(), s.float(), true
		for range s.IntN(3) {
			p.Quantiles = append(p.Quantiles, capture.Quantile{Quantile: s.Float64(), Value: s.float()})
		}
		return p
	}
	for range s.IntN(2) {
		e := capture.Exemplar{Attributes: s.attributes(s.IntN(2)), Time: s.time(), Value: s.float(), TraceID: s.traceID(), SpanID: s.spanID()}
		if s.IntN(2) == 0 {
			e.Int, e.Value = true, float64(s.IntN(1e6))
		}
		p.Exemplars = append(p.Exemplars, e)
	}
	if kind == capture.KindCounter || kind == capture.KindUpDownCounter || kind == capture.KindGauge {
		p.Value = s.float()
		if s.IntN(2) == 0 {
			p.Int, p.Value = true, float64(-s.IntN(1e6))
		}
		return p
	}
	p.Count = s.Uint64()
	if s.IntN(2) == 0 {
		p.Sum, p.HasSum = s.float(), true
		low, high := s.float(), s.float()
		p.Min, p.Max = &low, &high
	}
	if kind == capture.KindExponential {
		p.Exponential = &capture.Exponential{
			Scale: int32(s.IntN(30) - 10), ZeroCount: s.Uint64(), ZeroThreshold: s.float(),
			PositiveOffset: int32(s.Uint32()), NegativeOffset: -3,
			PositiveCounts: []uint64{1, 0, s.Uint64()}, NegativeCounts: pick(s, nil, []uint64{7}),
		}
		return p
	}
	if s.IntN(3) > 0 {
		p.Bounds, p.BucketCounts = []float64{-1, 0, 2.5}, []uint64{s.Uint64(), 0, 1, 2}
	}
	return p
}

// sorted puts a capture into an order that does not depend on the groups in which it
// was written.
func sorted(c *capture.Capture) *capture.Capture {
	slices.SortFunc(c.Spans, func(a, b *capture.Span) int { return cmp.Compare(a.SpanID.String(), b.SpanID.String()) })
	slices.SortFunc(c.Metrics, func(a, b *capture.Metric) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(c.Logs, func(a, b *capture.Log) int {
		return cmp.Compare(fmt.Sprint(a.Observed, a.Time, a.Flags, a.Body, a.Attributes), fmt.Sprint(b.Observed, b.Time, b.Flags, b.Body, b.Attributes))
	})
	return c
}
