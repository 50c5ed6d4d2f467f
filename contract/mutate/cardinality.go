package mutate

import (
	"slices"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/capture"
)

// maxSpans bounds a capture that is repeated to exceed a limit.
const maxSpans = 200_000

// highCardinality repeats the capture until an attribute, which has a value of its
// own in every trace, has more values than the contract allows. Metrics count what
// was added, so that nothing but the values is wrong.
func (p *plan) highCardinality(key string) (*capture.Capture, string) {
	is := p.spellings(key, nil)
	traces := 0
	for _, t := range p.good.Traces() {
		if slices.ContainsFunc(t.Spans, func(s *capture.Span) bool { return hasFact(s.Attributes, is) }) {
			traces++
		}
	}
	if traces == 0 {
		return nil, "no span has the attribute"
	}
	times := p.spec.Limits.Cardinality[key]/traces + 1
	if times*len(p.good.Spans) > maxSpans {
		return nil, "the limit is so high that the capture would have to be repeated " + itoa(times) + " times"
	}
	out := &capture.Capture{Dropped: p.good.Dropped}
	d, values := p.draft(), 0
	for range times {
		r := &repetition{draft: d, is: is, traces: map[trace.TraceID]trace.TraceID{}, spans: map[trace.SpanID]trace.SpanID{}, value: map[trace.TraceID]int{}}
		r.add(out, &values)
	}
	for _, m := range p.good.Metrics {
		c := d.metric(m)
		for i := range c.Points {
			repeat(&c.Points[i], m.Kind, uint64(times))
		}
		out.Metrics = append(out.Metrics, c)
	}
	return out, ""
}

// repetition is one copy of the capture under identifiers of its own.
type repetition struct {
	*draft
	is     func(attribute.Key) bool
	traces map[trace.TraceID]trace.TraceID
	spans  map[trace.SpanID]trace.SpanID
	value  map[trace.TraceID]int // the number of the value, by new trace
}

func (r *repetition) add(out *capture.Capture, values *int) {
	for _, s := range r.good.Spans {
		if _, ok := r.traces[s.TraceID]; !ok {
			*values++
			r.traces[s.TraceID] = r.traceID()
			r.value[r.traces[s.TraceID]] = *values
		}
		r.spans[s.SpanID] = r.spanID()
	}
	for _, s := range r.good.Spans {
		c := copySpan(s)
		c.TraceID, c.SpanID, c.ParentID = r.traces[s.TraceID], r.spans[s.SpanID], r.renamed(s.ParentID)
		for i := range c.Links {
			if id, ok := r.traces[c.Links[i].TraceID]; ok {
				c.Links[i].TraceID, c.Links[i].SpanID = id, r.renamed(c.Links[i].SpanID)
			}
		}
		r.vary(c)
		out.Spans = append(out.Spans, c)
	}
	for _, l := range r.good.Logs {
		c := new(*l)
		if id, ok := r.traces[l.TraceID]; ok {
			c.TraceID, c.SpanID = id, r.renamed(l.SpanID)
		}
		out.Logs = append(out.Logs, c)
	}
}

// renamed returns the new identifier of a span. A parent that was not captured
// keeps its own.
func (r *repetition) renamed(id trace.SpanID) trace.SpanID {
	if to, ok := r.spans[id]; ok {
		return to
	}
	return id
}

// vary gives the attribute the value of its trace, also where the name of the span
// repeats it.
func (r *repetition) vary(s *capture.Span) {
	for i := range s.Attributes {
		kv := &s.Attributes[i]
		if !r.is(kv.Key) {
			continue
		}
		was := kv.Value
		kv.Value = numbered(was, r.value[s.TraceID])
		if text := was.String(); text != "" {
			s.Name = strings.ReplaceAll(s.Name, text, kv.Value.String())
		}
	}
}

// repeat makes a point count everything n times.
func repeat(p *capture.Point, kind capture.MetricKind, n uint64) {
	if kind != capture.KindGauge {
		p.Value *= float64(n)
	}
	p.Count *= n
	p.Sum *= float64(n)
	p.BucketCounts = multiplied(p.BucketCounts, n)
	if e := p.Exponential; e != nil {
		e = new(*e)
		e.ZeroCount *= n
		e.PositiveCounts, e.NegativeCounts = multiplied(e.PositiveCounts, n), multiplied(e.NegativeCounts, n)
		p.Exponential = e
	}
}

func multiplied(counts []uint64, n uint64) []uint64 {
	if counts == nil {
		return nil
	}
	out := make([]uint64, len(counts))
	for i, c := range counts {
		out[i] = c * n
	}
	return out
}
