package mutate

import (
	"maps"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/capture"
	"github.com/genaitrace/otelgenai/contract/spec"
)

// plan is the list of faults for one contract and one capture.
type plan struct {
	spec *spec.Contract
	good *capture.Capture

	places     map[string][]place // by role, in the order of the traces and their spans
	rolesOf    map[*capture.Span][]string
	usedSpans  map[trace.SpanID]bool
	usedTraces map[trace.TraceID]bool
	canonicals map[attribute.Key]attribute.Key // see canonical

	faults []fault
	absent []string
}

// fault is one fault and how to put it.
type fault struct {
	operator Operator
	on, key  string
	// put returns the capture with the fault, or nil and why it fits nowhere.
	put func() (*capture.Capture, string)
}

func newPlan(c *spec.Contract, good *capture.Capture, roles func(*capture.Trace) map[*capture.Span][]string) *plan {
	p := &plan{
		spec: c, good: good,
		places: map[string][]place{}, rolesOf: map[*capture.Span][]string{},
		usedSpans: map[trace.SpanID]bool{}, usedTraces: map[trace.TraceID]bool{},
		canonicals: map[attribute.Key]attribute.Key{},
	}
	for _, t := range good.Traces() {
		p.usedTraces[t.ID] = true
		of := roles(t)
		for _, s := range t.Spans {
			p.usedSpans[s.SpanID], p.usedSpans[s.ParentID] = true, true
			p.rolesOf[s] = of[s]
			for _, role := range of[s] {
				p.places[role] = append(p.places[role], place{t, s})
			}
		}
	}
	for _, role := range sorted(c.Spans) {
		p.span(role)
	}
	for _, key := range sorted(c.Limits.Cardinality) {
		p.add(HighCardinality, "", key, func() (*capture.Capture, string) { return p.highCardinality(key) })
	}
	for _, name := range sorted(c.Metrics) {
		p.metric(name)
	}
	for _, name := range sorted(c.Logs) {
		p.log(name)
	}
	return p
}

func (p *plan) add(o Operator, on, key string, put func() (*capture.Capture, string)) {
	p.faults = append(p.faults, fault{o, on, key, put})
}

// first puts a fault at the first of the places where it changes something.
func first[T any](p *plan, places []T, put func(*draft, T) string) (*capture.Capture, string) {
	why := noChange
	for i, at := range places {
		d := p.draft()
		reason := put(d, at)
		if reason == "" && d.changed() {
			return d.capture(), ""
		}
		if i == 0 && reason != "" {
			why = reason
		}
	}
	return nil, why
}

func (p *plan) span(role string) {
	places := p.places[role]
	if len(places) == 0 {
		p.absent = append(p.absent, "span "+role)
		return
	}
	for _, f := range spanFaults {
		p.add(f.operator, role, "", func() (*capture.Capture, string) { return first(p, places, f.put) })
	}
	for _, n := range p.namedKeys(role) {
		having := filter(places, func(at place) bool { return hasFact(at.span.Attributes, n.is) })
		if len(having) == 0 {
			p.absent = append(p.absent, "attribute "+n.key+" of "+role)
			continue
		}
		for _, f := range attributeFaults {
			p.add(f.operator, role, n.key, func() (*capture.Capture, string) {
				return first(p, having, func(d *draft, at place) string {
					return change(&d.span(at.span).Attributes, n, f.put)
				})
			})
		}
	}
	for _, name := range p.namedEvents(role) {
		p.event(role, name, places)
	}
}

// change puts a fault into attributes.
func change(attributes *capture.Attributes, n *named, put attributeFault) string {
	changed, why := put(*attributes, n)
	if why == "" {
		*attributes = changed
	}
	return why
}

// eventPlace is an event of a span.
type eventPlace struct {
	place
	event int
}

func (p *plan) event(role, name string, places []place) {
	var having []eventPlace
	for _, at := range places {
		for i := range at.span.Events {
			if at.span.Events[i].Name == name {
				having = append(having, eventPlace{at, i})
			}
		}
	}
	if len(having) == 0 {
		p.absent = append(p.absent, "event "+name+" of "+role)
		return
	}
	for _, f := range eventFaults {
		p.add(f.operator, role, name, func() (*capture.Capture, string) {
			return first(p, having, func(d *draft, at eventPlace) string { return f.put(d.span(at.span), at.event) })
		})
	}
	for _, n := range p.namedKeysOf(role, name) {
		carrying := filter(having, func(at eventPlace) bool { return hasFact(at.span.Events[at.event].Attributes, n.is) })
		if len(carrying) == 0 {
			p.absent = append(p.absent, "attribute "+n.key+" of "+role+"/"+name)
			continue
		}
		for _, f := range attributeFaults {
			p.add(f.operator, role+"/"+name, n.key, func() (*capture.Capture, string) {
				return first(p, carrying, func(d *draft, at eventPlace) string {
					return change(&d.span(at.span).Events[at.event].Attributes, n, f.put)
				})
			})
		}
	}
}

func (p *plan) metric(name string) {
	metrics := p.good.Metric(name)
	if len(metrics) == 0 {
		p.absent = append(p.absent, "metric "+name)
		return
	}
	p.add(DropMetric, name, "", func() (*capture.Capture, string) {
		d := p.draft()
		for _, m := range metrics {
			d.dropMetric(m)
		}
		return d.capture(), ""
	})
	for _, f := range metricFaults {
		p.add(f.operator, name, "", func() (*capture.Capture, string) {
			return first(p, metrics, func(d *draft, m *capture.Metric) string { return f.put(d.metric(m)) })
		})
	}
	for _, key := range sorted(p.spec.Metrics[name].Attributes) {
		n := p.named(key, p.spec.Metrics[name].Attributes[key])
		having := filter(metrics, func(m *capture.Metric) bool {
			return slices.ContainsFunc(m.Points, func(point capture.Point) bool { return hasFact(point.Attributes, n.is) })
		})
		if len(having) == 0 {
			p.absent = append(p.absent, "attribute "+key+" of "+name)
			continue
		}
		for _, f := range attributeFaults {
			p.add(f.operator, name, key, func() (*capture.Capture, string) {
				return first(p, having, func(d *draft, m *capture.Metric) string { return changePoints(d.metric(m), n, f.put) })
			})
		}
	}
}

// changePoints puts a fault into the attributes of every point: one call records
// them all.
func changePoints(m *capture.Metric, n *named, put attributeFault) string {
	changed, why := false, noChange
	for i := range m.Points {
		attributes := &m.Points[i].Attributes
		if !hasFact(*attributes, n.is) {
			continue
		}
		if reason := change(attributes, n, put); reason == "" {
			changed = true
		} else {
			why = reason
		}
	}
	if changed {
		return ""
	}
	return why
}

func (p *plan) log(name string) {
	logs := filter(p.good.Logs, func(l *capture.Log) bool { return l.EventName == name })
	if len(logs) == 0 {
		p.absent = append(p.absent, "log event "+name)
		return
	}
	p.add(DropLog, name, "", func() (*capture.Capture, string) {
		d := p.draft()
		for _, l := range logs {
			d.dropLog(l)
		}
		return d.capture(), ""
	})
	p.add(DetachLog, name, "", func() (*capture.Capture, string) {
		return first(p, logs, func(d *draft, l *capture.Log) string {
			if !l.TraceID.IsValid() && !l.SpanID.IsValid() {
				return "the record belongs to no trace"
			}
			c := d.log(l)
			c.TraceID, c.SpanID = trace.TraceID{}, trace.SpanID{}
			return ""
		})
	})
	p.add(PersonalData, name, "body", func() (*capture.Capture, string) {
		return first(p, logs, func(d *draft, l *capture.Log) string {
			if l.Body.Type() != attribute.STRING {
				return notText
			}
			d.log(l).Body = attribute.StringValue(withPersonalData(l.Body.AsString()))
			return ""
		})
	})
	for _, key := range sorted(p.spec.Logs[name].Attributes) {
		n := p.named(key, p.spec.Logs[name].Attributes[key])
		having := filter(logs, func(l *capture.Log) bool { return hasFact(l.Attributes, n.is) })
		if len(having) == 0 {
			p.absent = append(p.absent, "attribute "+key+" of "+name)
			continue
		}
		for _, f := range attributeFaults {
			p.add(f.operator, name, key, func() (*capture.Capture, string) {
				return first(p, having, func(d *draft, l *capture.Log) string { return change(&d.log(l).Attributes, n, f.put) })
			})
		}
	}
}

func filter[T any](items []T, keep func(T) bool) []T {
	var kept []T
	for _, item := range items {
		if keep(item) {
			kept = append(kept, item)
		}
	}
	return kept
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
