package otlp

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/capture"
)

// Bits of Span.flags beside the trace flags of W3C.
const (
	flagParentKnown  = 1 << 8 // the next bit says something
	flagParentRemote = 1 << 9
)

// Reasons for which spans are not kept.
const (
	noTraceID = "span without a trace id"
	noSpanID  = "span without a span id"
)

func (d *decoder) spans(to *capture.Capture, from ptrace.Traces) {
	for _, rs := range from.ResourceSpans().All() {
		resource := d.resource(rs.Resource(), rs.SchemaUrl())
		for _, ss := range rs.ScopeSpans().All() {
			scope := d.scope(ss.Scope(), ss.SchemaUrl())
			for _, s := range ss.Spans().All() {
				switch {
				case s.TraceID().IsEmpty():
					d.drop(noTraceID)
				case s.SpanID().IsEmpty():
					d.drop(noSpanID)
				default:
					to.Spans = append(to.Spans, d.span(s, resource, scope))
				}
			}
		}
	}
}

func (d *decoder) span(s ptrace.Span, resource *capture.Resource, scope *capture.Scope) *capture.Span {
	return &capture.Span{
		TraceID:      trace.TraceID(s.TraceID()),
		SpanID:       trace.SpanID(s.SpanID()),
		ParentID:     trace.SpanID(s.ParentSpanID()),
		ParentOrigin: originOf(s),
		TraceState:   d.shared(s.TraceState().AsRaw()),
		Flags:        trace.TraceFlags(s.Flags()),

		Name:  d.shared(s.Name()),
		Kind:  kindOf(s.Kind()),
		Start: timeOf(s.StartTimestamp()),
		End:   timeOf(s.EndTimestamp()),

		Status:        statusOf(s.Status().Code()),
		StatusMessage: d.text(s.Status().Message()),

		Attributes: d.attributes(s.Attributes()),
		Events:     d.events(s.Events()),
		Links:      d.links(s.Links()),

		DroppedAttributes: int(s.DroppedAttributesCount()),
		DroppedEvents:     int(s.DroppedEventsCount()),
		DroppedLinks:      int(s.DroppedLinksCount()),

		Resource: resource,
		Scope:    scope,
	}
}

func originOf(s ptrace.Span) capture.Origin {
	switch {
	case s.ParentSpanID().IsEmpty() || s.Flags()&flagParentKnown == 0:
		return capture.OriginUnknown
	case s.Flags()&flagParentRemote != 0:
		return capture.OriginRemote
	}
	return capture.OriginLocal
}

// kindOf relies on the API and OTLP having the same numbers.
func kindOf(k ptrace.SpanKind) trace.SpanKind {
	if k < ptrace.SpanKindInternal || k > ptrace.SpanKindConsumer {
		return trace.SpanKindUnspecified
	}
	return trace.SpanKind(k)
}

func statusOf(c ptrace.StatusCode) codes.Code {
	switch c {
	case ptrace.StatusCodeOk:
		return codes.Ok
	case ptrace.StatusCodeError:
		return codes.Error
	}
	return codes.Unset
}

func (d *decoder) events(from ptrace.SpanEventSlice) []capture.Event {
	if from.Len() == 0 {
		return nil
	}
	events := make([]capture.Event, from.Len())
	for i := range events {
		e := from.At(i)
		events[i] = capture.Event{
			Name:              d.shared(e.Name()),
			Time:              timeOf(e.Timestamp()),
			Attributes:        d.attributes(e.Attributes()),
			DroppedAttributes: int(e.DroppedAttributesCount()),
		}
	}
	return events
}

func (d *decoder) links(from ptrace.SpanLinkSlice) []capture.Link {
	if from.Len() == 0 {
		return nil
	}
	links := make([]capture.Link, from.Len())
	for i := range links {
		l := from.At(i)
		links[i] = capture.Link{
			TraceID:           trace.TraceID(l.TraceID()),
			SpanID:            trace.SpanID(l.SpanID()),
			TraceState:        d.shared(l.TraceState().AsRaw()),
			Flags:             trace.TraceFlags(l.Flags()),
			Attributes:        d.attributes(l.Attributes()),
			DroppedAttributes: int(l.DroppedAttributesCount()),
		}
	}
	return links
}

func encodeSpans(spans []*capture.Span) ptrace.Traces {
	out := ptrace.NewTraces()
	groups := newGrouping(func(r *capture.Resource) ptrace.ResourceSpans {
		rs := out.ResourceSpans().AppendEmpty()
		putResource(rs.Resource(), rs.SetSchemaUrl, r)
		return rs
	}, func(rs ptrace.ResourceSpans, s *capture.Scope) ptrace.ScopeSpans {
		ss := rs.ScopeSpans().AppendEmpty()
		putScope(ss.Scope(), ss.SetSchemaUrl, s)
		return ss
	})
	for _, s := range spans {
		putSpan(groups.scope(s.Resource, s.Scope).Spans().AppendEmpty(), s)
	}
	return out
}

func putSpan(to ptrace.Span, s *capture.Span) {
	to.SetTraceID(pcommon.TraceID(s.TraceID))
	to.SetSpanID(pcommon.SpanID(s.SpanID))
	to.SetParentSpanID(pcommon.SpanID(s.ParentID))
	to.TraceState().FromRaw(s.TraceState)
	to.SetFlags(flagsOf(s))
	to.SetName(s.Name)
	to.SetKind(ptrace.SpanKind(s.Kind))
	to.SetStartTimestamp(timestamp(s.Start))
	to.SetEndTimestamp(timestamp(s.End))

	switch s.Status {
	case codes.Ok:
		to.Status().SetCode(ptrace.StatusCodeOk)
	case codes.Error:
		to.Status().SetCode(ptrace.StatusCodeError)
	}
	to.Status().SetMessage(s.StatusMessage)

	putAttributes(to.Attributes(), s.Attributes)
	to.Events().EnsureCapacity(len(s.Events))
	for i := range s.Events {
		putEvent(to.Events().AppendEmpty(), &s.Events[i])
	}
	to.Links().EnsureCapacity(len(s.Links))
	for i := range s.Links {
		putLink(to.Links().AppendEmpty(), &s.Links[i])
	}
	to.SetDroppedAttributesCount(uint32Of(s.DroppedAttributes))
	to.SetDroppedEventsCount(uint32Of(s.DroppedEvents))
	to.SetDroppedLinksCount(uint32Of(s.DroppedLinks))
}

func flagsOf(s *capture.Span) uint32 {
	flags := uint32(s.Flags)
	switch s.ParentOrigin {
	case capture.OriginLocal:
		flags |= flagParentKnown
	case capture.OriginRemote:
		flags |= flagParentKnown | flagParentRemote
	}
	return flags
}

func putEvent(to ptrace.SpanEvent, e *capture.Event) {
	to.SetName(e.Name)
	to.SetTimestamp(timestamp(e.Time))
	putAttributes(to.Attributes(), e.Attributes)
	to.SetDroppedAttributesCount(uint32Of(e.DroppedAttributes))
}

func putLink(to ptrace.SpanLink, l *capture.Link) {
	to.SetTraceID(pcommon.TraceID(l.TraceID))
	to.SetSpanID(pcommon.SpanID(l.SpanID))
	to.TraceState().FromRaw(l.TraceState)
	to.SetFlags(uint32(l.Flags))
	putAttributes(to.Attributes(), l.Attributes)
	to.SetDroppedAttributesCount(uint32Of(l.DroppedAttributes))
}
