package mutate

import (
	"encoding/binary"
	"reflect"
	"slices"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/capture"
)

// draft is a capture that is being changed. It shares everything with the good one
// but what was asked for: a span, metric or log record that is to be changed must
// come from its methods.
type draft struct {
	*plan
	spans   map[*capture.Span]*capture.Span // copies; nil for one that was dropped
	metrics map[*capture.Metric]*capture.Metric
	logs    map[*capture.Log]*capture.Log
	added   []*capture.Span
	ids     uint64
}

func (p *plan) draft() *draft {
	return &draft{
		plan: p, spans: map[*capture.Span]*capture.Span{},
		metrics: map[*capture.Metric]*capture.Metric{}, logs: map[*capture.Log]*capture.Log{},
	}
}

// span returns a copy of s that may be changed, always the same one.
func (d *draft) span(s *capture.Span) *capture.Span {
	c, ok := d.spans[s]
	if !ok {
		c = copySpan(s)
		d.spans[s] = c
	}
	return c
}

func copySpan(s *capture.Span) *capture.Span {
	c := *s
	c.Attributes = slices.Clone(s.Attributes)
	c.Links = slices.Clone(s.Links)
	c.Events = slices.Clone(s.Events)
	for i := range c.Events {
		c.Events[i].Attributes = slices.Clone(c.Events[i].Attributes)
	}
	return &c
}

func (d *draft) dropSpan(s *capture.Span) { d.spans[s] = nil }

func (d *draft) addSpan(s *capture.Span) { d.added = append(d.added, s) }

// metric returns a copy of m that may be changed, down to the attributes of its
// points; what else points refer to must be replaced, not changed.
func (d *draft) metric(m *capture.Metric) *capture.Metric {
	c, ok := d.metrics[m]
	if !ok {
		c = new(*m)
		c.Points = slices.Clone(m.Points)
		for i := range c.Points {
			c.Points[i].Attributes = slices.Clone(c.Points[i].Attributes)
		}
		d.metrics[m] = c
	}
	return c
}

func (d *draft) dropMetric(m *capture.Metric) { d.metrics[m] = nil }

// log returns a copy of l that may be changed.
func (d *draft) log(l *capture.Log) *capture.Log {
	c, ok := d.logs[l]
	if !ok {
		c = new(*l)
		c.Attributes = slices.Clone(l.Attributes)
		d.logs[l] = c
	}
	return c
}

func (d *draft) dropLog(l *capture.Log) { d.logs[l] = nil }

// changed reports whether d differs from the good capture.
func (d *draft) changed() bool {
	return len(d.added) > 0 || differ(d.spans) || differ(d.metrics) || differ(d.logs)
}

func differ[T any](copies map[*T]*T) bool {
	for original, c := range copies {
		if c == nil || !reflect.DeepEqual(original, c) {
			return true
		}
	}
	return false
}

// capture returns the changed capture.
func (d *draft) capture() *capture.Capture {
	return &capture.Capture{
		Spans:   append(replace(d.good.Spans, d.spans), d.added...),
		Metrics: replace(d.good.Metrics, d.metrics),
		Logs:    replace(d.good.Logs, d.logs),
		Dropped: d.good.Dropped,
	}
}

func replace[T any](all []*T, copies map[*T]*T) []*T {
	out := make([]*T, 0, len(all))
	for _, item := range all {
		if c, ok := copies[item]; !ok {
			out = append(out, item)
		} else if c != nil {
			out = append(out, c)
		}
	}
	return out
}

// spanID returns an identifier that nothing in the capture has.
func (d *draft) spanID() (id trace.SpanID) {
	for {
		d.ids++
		binary.BigEndian.PutUint64(id[:], 0xfa17<<48|d.ids)
		if !d.usedSpans[id] {
			return id
		}
	}
}

// traceID does the same for traces.
func (d *draft) traceID() (id trace.TraceID) {
	for {
		d.ids++
		binary.BigEndian.PutUint64(id[:8], 0xfa17<<48)
		binary.BigEndian.PutUint64(id[8:], d.ids)
		if !d.usedTraces[id] {
			return id
		}
	}
}

// subtree returns the span and all below it.
func (p place) subtree() []*capture.Span {
	return append([]*capture.Span{p.span}, slices.Collect(p.trace.Descendants(p.span))...)
}

// logsOf calls f with each log record that belongs to one of the spans.
func (d *draft) logsOf(p place, spans []*capture.Span, f func(*capture.Log)) {
	for _, l := range d.good.Logs {
		if l.TraceID == p.trace.ID && slices.ContainsFunc(spans, func(s *capture.Span) bool { return s.SpanID == l.SpanID }) {
			f(d.log(l))
		}
	}
}

// shift moves spans in time, with their events and log records.
func (d *draft) shift(p place, spans []*capture.Span, by time.Duration) {
	for _, s := range spans {
		c := d.span(s)
		c.Start = c.Start.Add(by)
		if c.Ended() {
			c.End = c.End.Add(by)
		}
		for i := range c.Events {
			c.Events[i].Time = c.Events[i].Time.Add(by)
		}
	}
	d.logsOf(p, spans, func(l *capture.Log) {
		l.Time, l.Observed = later(l.Time, by), later(l.Observed, by)
	})
}

// later keeps an unknown time unknown.
func later(t time.Time, by time.Duration) time.Time {
	if t.IsZero() {
		return t
	}
	return t.Add(by)
}

// moveTrace gives the subtree of p another trace identifier, also where links and
// log records name it.
func (d *draft) moveTrace(p place) {
	id, subtree := d.traceID(), p.subtree()
	moved := make(map[trace.SpanID]bool, len(subtree))
	for _, s := range subtree {
		moved[s.SpanID] = true
		d.span(s).TraceID = id
	}
	for _, s := range d.good.Spans {
		for i := range s.Links {
			if s.Links[i].TraceID == p.trace.ID && moved[s.Links[i].SpanID] {
				d.span(s).Links[i].TraceID = id
			}
		}
	}
	d.logsOf(p, subtree, func(l *capture.Log) { l.TraceID = id })
}
