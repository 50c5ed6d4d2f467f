package capture

import (
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// shared holds one Resource and one Scope for all telemetry that has the same.
type shared struct {
	resources map[sharedKey]*Resource
	scopes    map[instrumentation.Scope]*Scope
}

type sharedKey struct {
	attributes attribute.Distinct
	schemaURL  string
}

func newShared() shared {
	return shared{map[sharedKey]*Resource{}, map[instrumentation.Scope]*Scope{}}
}

func (s shared) resource(r *resource.Resource) *Resource {
	if r == nil {
		return nil
	}
	key := sharedKey{r.Equivalent(), r.SchemaURL()}
	if known, ok := s.resources[key]; ok {
		return known
	}
	made := &Resource{Attributes: r.Attributes(), SchemaURL: r.SchemaURL()}
	s.resources[key] = made
	return made
}

func (s shared) scope(of instrumentation.Scope) *Scope {
	if known, ok := s.scopes[of]; ok {
		return known
	}
	made := &Scope{Name: of.Name, Version: of.Version, SchemaURL: of.SchemaURL, Attributes: of.Attributes.ToSlice()}
	s.scopes[of] = made
	return made
}

// span copies a span.
func (s shared) span(from sdktrace.ReadOnlySpan) *Span {
	sc, parent, status := from.SpanContext(), from.Parent(), from.Status()
	to := &Span{
		TraceID:           sc.TraceID(),
		SpanID:            sc.SpanID(),
		TraceState:        sc.TraceState().String(),
		Flags:             sc.TraceFlags(),
		Name:              from.Name(),
		Kind:              from.SpanKind(),
		Start:             from.StartTime(),
		End:               from.EndTime(),
		Status:            status.Code,
		StatusMessage:     status.Description,
		Attributes:        cloned(from.Attributes()),
		DroppedAttributes: from.DroppedAttributes(),
		DroppedEvents:     from.DroppedEvents(),
		DroppedLinks:      from.DroppedLinks(),
		Resource:          s.resource(from.Resource()),
		Scope:             s.scope(from.InstrumentationScope()),
	}
	if parent.SpanID().IsValid() {
		to.ParentID, to.ParentOrigin = parent.SpanID(), OriginLocal
		if parent.IsRemote() {
			to.ParentOrigin = OriginRemote
		}
	}
	for _, e := range from.Events() {
		to.Events = append(to.Events, Event{
			Name: e.Name, Time: e.Time, Attributes: cloned(e.Attributes), DroppedAttributes: e.DroppedAttributeCount,
		})
	}
	for _, l := range from.Links() {
		to.Links = append(to.Links, Link{
			TraceID:           l.SpanContext.TraceID(),
			SpanID:            l.SpanContext.SpanID(),
			TraceState:        l.SpanContext.TraceState().String(),
			Flags:             l.SpanContext.TraceFlags(),
			Attributes:        cloned(l.Attributes),
			DroppedAttributes: l.DroppedAttributeCount,
		})
	}
	return to
}

// log copies a record, which belongs to its logger again afterwards.
func (s shared) log(from *sdklog.Record) *Log {
	to := &Log{
		Time:              from.Timestamp(),
		Observed:          from.ObservedTimestamp(),
		Severity:          int(from.Severity()),
		SeverityText:      from.SeverityText(),
		EventName:         from.EventName(),
		Body:              from.Body(),
		DroppedAttributes: from.DroppedAttributes(),
		TraceID:           from.TraceID(),
		SpanID:            from.SpanID(),
		Flags:             from.TraceFlags(),
		Resource:          s.resource(from.Resource()),
		Scope:             s.scope(from.InstrumentationScope()),
	}
	from.WalkAttributes(func(kv attribute.KeyValue) bool {
		to.Attributes = append(to.Attributes, kv)
		return true
	})
	return to
}

// cloned copies attributes, so that a change of the copy stays there.
func cloned(attributes []attribute.KeyValue) Attributes {
	return Attributes(slices.Clone(attributes))
}
