package contract

import (
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/capture"
)

// spanRef names a span.
type spanRef struct {
	trace trace.TraceID
	span  trace.SpanID
}

// seenSpans remembers the spans of all traces, as far as there is room: links,
// parents in another trace and log records ask for them. Most captures never ask,
// so the indexes are made when one does.
type seenSpans struct {
	all     []seenSpan
	indexed int
	roles   map[spanRef]roleSet
	traces  map[trace.SpanID]trace.TraceID // invalid where several have such a span
}

type seenSpan struct {
	spanRef
	roles roleSet
}

func (s *seenSpans) add(span *capture.Span, roles roleSet) {
	if len(s.all) < maxRemembered {
		s.all = append(s.all, seenSpan{spanRef{span.TraceID, span.SpanID}, roles})
	}
}

func (s *seenSpans) index() {
	if s.roles == nil {
		s.roles, s.traces = map[spanRef]roleSet{}, map[trace.SpanID]trace.TraceID{}
	}
	for _, one := range s.all[s.indexed:] {
		s.roles[one.spanRef] |= one.roles
		if t, ok := s.traces[one.span]; ok && t != one.trace {
			s.traces[one.span] = trace.TraceID{}
		} else {
			s.traces[one.span] = one.trace
		}
	}
	s.indexed = len(s.all)
}

// rolesOf returns the roles of a span.
func (s *seenSpans) rolesOf(ref spanRef) roleSet {
	s.index()
	return s.roles[ref]
}

// elsewhere returns the trace that a span is in where that is another one.
func (s *seenSpans) elsewhere(id trace.SpanID, than trace.TraceID) (trace.TraceID, bool) {
	s.index()
	t, ok := s.traces[id]
	return t, ok && t.IsValid() && t != than
}

// anyHas reports whether one of the spans has one of the roles.
func (s *seenSpans) anyHas(refs []spanRef, roles roleSet) bool {
	for _, ref := range refs {
		if s.rolesOf(ref)&roles != 0 {
			return true
		}
	}
	return false
}

// linksOf returns where the links of a span lead.
func linksOf(s *capture.Span) []spanRef {
	var refs []spanRef
	for i := range s.Links {
		refs = append(refs, spanRef{s.Links[i].TraceID, s.Links[i].SpanID})
	}
	return refs
}
