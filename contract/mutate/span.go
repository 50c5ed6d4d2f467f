package mutate

import (
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/capture"
)

// place is a span in its trace.
type place struct {
	trace *capture.Trace
	span  *capture.Span
}

// A spanFault changes a draft at a place, or says why it does not fit there.
type spanFault func(d *draft, at place) (why string)

// Amounts of the faults.
const (
	tokens   = 200         // spans of Explode
	floods   = 500         // events of Flood
	off      = time.Second // of times, more than any tolerance for clocks
	perToken = "token"
)

const (
	noParent   = "the span has no captured parent"
	notEnded   = "the span has not ended"
	noSibling  = "the span has no sibling"
	noChange   = "it changes nothing"
	noChildren = "the span has no children, so this is drop-span"
)

var spanFaults = []struct {
	operator Operator
	put      spanFault
}{
	{DropSpan, dropSpan},
	{DropSpanOrphan, dropSpanOrphan},
	{Rename, func(d *draft, at place) string {
		s := d.span(at.span)
		s.Name = rename(s.Name)
		return ""
	}},
	{Kind, func(d *draft, at place) string {
		s := d.span(at.span)
		s.Kind = otherKind(s.Kind)
		return ""
	}},
	{Reparent, reparent},
	{ReparentSibling, reparentSibling},
	{Orphan, func(d *draft, at place) string {
		if at.trace.Parent(at.span) == nil {
			return noParent
		}
		d.span(at.span).ParentID = d.spanID()
		return ""
	}},
	{NewTrace, func(d *draft, at place) string {
		if at.trace.Parent(at.span) == nil {
			return noParent
		}
		d.moveTrace(at)
		return ""
	}},
	{NewRoot, func(d *draft, at place) string {
		if at.trace.Parent(at.span) == nil {
			return noParent
		}
		d.moveTrace(at)
		s := d.span(at.span)
		s.ParentID, s.ParentOrigin = trace.SpanID{}, capture.OriginUnknown
		return ""
	}},
	{Duplicate, func(d *draft, at place) string {
		c := copySpan(at.span)
		c.SpanID = d.spanID()
		d.addSpan(c)
		return ""
	}},
	{Explode, explode},
	{SkewEarly, func(d *draft, at place) string {
		parent := at.trace.Parent(at.span)
		if parent == nil {
			return noParent
		}
		by := parent.Start.Add(-off).Sub(at.span.Start)
		if by >= 0 {
			return "the span starts a second before its parent already"
		}
		d.shift(at, at.subtree(), by)
		return ""
	}},
	{Outlive, outlive},
	{NeverEnd, func(d *draft, at place) string {
		d.span(at.span).End = time.Time{}
		return ""
	}},
	{ErrorWithoutType, func(d *draft, at place) string {
		s := d.span(at.span)
		s.Status = codes.Error
		s.Attributes = slices.DeleteFunc(s.Attributes, func(kv attribute.KeyValue) bool { return kv.Key == "error.type" })
		return ""
	}},
	{ClearError, func(d *draft, at place) string {
		if at.span.Status != codes.Error {
			return "no span of the role has failed"
		}
		s := d.span(at.span)
		s.Status, s.StatusMessage = codes.Unset, ""
		return ""
	}},
	{TenantSwap, tenantSwap},
	{Reorder, reorder},
	{Flood, flood},
}

func dropSpan(d *draft, at place) string {
	s := at.span
	d.dropSpan(s)
	for c := range at.trace.Children(s) {
		child := d.span(c)
		child.ParentID, child.ParentOrigin = s.ParentID, s.ParentOrigin
	}
	// What is logged without a span of its own is logged in the one above.
	d.logsOf(at, []*capture.Span{s}, func(l *capture.Log) { l.SpanID = s.ParentID })
	return ""
}

func dropSpanOrphan(d *draft, at place) string {
	for range at.trace.Children(at.span) { // one is enough
		d.dropSpan(at.span)
		return ""
	}
	return noChildren
}

// rename replaces each letter by the next of the alphabet, so that the shape stays
// and no word does.
func rename(name string) string {
	letters := []rune(name)
	for i, r := range letters {
		switch {
		case r == 'z' || r == 'Z':
			letters[i] = r - 25
		case r >= 'a' && r < 'z', r >= 'A' && r < 'Z':
			letters[i] = r + 1
		}
	}
	if string(letters) == name {
		return name + "-renamed"
	}
	return string(letters)
}

func otherKind(k trace.SpanKind) trace.SpanKind {
	switch k {
	case trace.SpanKindClient:
		return trace.SpanKindServer
	case trace.SpanKindServer:
		return trace.SpanKindClient
	case trace.SpanKindProducer:
		return trace.SpanKindConsumer
	case trace.SpanKindConsumer:
		return trace.SpanKindProducer
	default:
		return trace.SpanKindClient
	}
}

func reparent(d *draft, at place) string {
	parent := at.trace.Parent(at.span)
	if parent == nil {
		return noParent
	}
	above := at.trace.Parent(parent)
	if above == nil {
		return "the parent of the span has no captured parent"
	}
	d.span(at.span).ParentID = above.SpanID
	return ""
}

func reparentSibling(d *draft, at place) string {
	before, after := siblings(at)
	switch {
	case before != nil:
		d.span(at.span).ParentID = before.SpanID
	case after != nil:
		d.span(at.span).ParentID = after.SpanID
	default:
		return noSibling
	}
	return ""
}

// siblings returns the children of the same parent beside a span, by their start.
func siblings(at place) (before, after *capture.Span) {
	parent := at.trace.Parent(at.span)
	if parent == nil {
		return nil, nil
	}
	seen := false
	for c := range at.trace.Children(parent) {
		switch {
		case c == at.span:
			seen = true
		case !seen:
			before = c
		default:
			return before, c
		}
	}
	return before, nil
}

func explode(d *draft, at place) string {
	s := at.span
	step := s.Duration() / tokens
	for i := range tokens {
		d.addSpan(&capture.Span{
			TraceID: s.TraceID, SpanID: d.spanID(), ParentID: s.SpanID, ParentOrigin: capture.OriginLocal,
			TraceState: s.TraceState, Flags: s.Flags, Name: perToken, Kind: trace.SpanKindInternal,
			Start: s.Start.Add(time.Duration(i) * step), End: s.Start.Add(time.Duration(i+1) * step),
			Resource: s.Resource, Scope: s.Scope,
		})
	}
	return ""
}

func outlive(d *draft, at place) string {
	parent := at.trace.Parent(at.span)
	switch {
	case parent == nil:
		return noParent
	case !parent.Ended():
		return "the parent of the span has not ended"
	case !at.span.Ended():
		return notEnded
	}
	end := parent.End.Add(off)
	if !end.After(at.span.End) {
		return "the span ends a second after its parent already"
	}
	d.span(at.span).End = end
	return ""
}

// tenantSwap changes what the contract isolates by.
func tenantSwap(d *draft, at place) string {
	why := "the contract isolates by nothing"
	subtree, swapped := at.subtree(), false
	for _, key := range d.spec.Topology.IsolateBy {
		if why = swap(d, at, subtree, d.spellings(key, nil)); why == "" {
			swapped = true
		}
	}
	if swapped {
		return ""
	}
	return why
}

// swap gives a fact another value in a subtree. Where every span of the trace that
// has it is in there, the trace has another tenant, and nothing leaks.
func swap(d *draft, at place, subtree []*capture.Span, is func(attribute.Key) bool) string {
	having := func(s *capture.Span) bool { return hasFact(s.Attributes, is) }
	inside := filter(subtree, having)
	switch {
	case len(inside) == 0:
		return "no span from here on has what the contract isolates by"
	case len(inside) == len(filter(at.trace.Spans, having)):
		return "every span that has what the contract isolates by is here or below"
	}
	for _, s := range inside {
		c := d.span(s)
		for i := range c.Attributes {
			if is(c.Attributes[i].Key) {
				c.Attributes[i].Value = numbered(c.Attributes[i].Value, 1)
			}
		}
	}
	return ""
}

func hasFact(attributes capture.Attributes, is func(attribute.Key) bool) bool {
	return slices.ContainsFunc(attributes, func(kv attribute.KeyValue) bool { return is(kv.Key) })
}

// numbered returns the nth other value of the same type.
func numbered(v attribute.Value, n int) attribute.Value {
	switch v.Type() {
	case attribute.INT64:
		return attribute.Int64Value(v.AsInt64() + int64(n))
	case attribute.FLOAT64:
		return attribute.Float64Value(v.AsFloat64() + float64(n))
	case attribute.BOOL:
		return attribute.BoolValue(!v.AsBool())
	case attribute.STRING:
		return attribute.StringValue(v.AsString() + "-" + itoa(n))
	default:
		return attribute.StringValue(v.String() + "-" + itoa(n))
	}
}

func reorder(d *draft, at place) string {
	s := at.span
	parent := at.trace.Parent(s)
	if parent == nil {
		return noSibling
	}
	var next *capture.Span
	seen := false
	for c := range at.trace.Children(parent) {
		if seen && len(d.rolesOf[c]) > 0 {
			next = c
			break
		}
		seen = seen || c == s
	}
	switch {
	case next == nil:
		return "no later sibling of the span has a role"
	case !s.Ended() || !next.Ended():
		return "the span or its sibling has not ended"
	}
	end := s.End
	if next.End.After(end) {
		end = next.End
	}
	// Both stay within the time that the two take together.
	forward, back := end.Sub(s.End), s.Start.Sub(next.Start)
	d.shift(at, at.subtree(), forward)
	other := place{at.trace, next}
	d.shift(other, other.subtree(), back)
	return ""
}

func flood(d *draft, at place) string {
	s := d.span(at.span)
	end := s.End
	if n := len(s.Events); n > 0 {
		end = s.Events[n-1].Time // what comes last stays last
	}
	step := max(end.Sub(s.Start), 0) / floods
	if end.IsZero() {
		step = 0
	}
	events := make([]capture.Event, floods)
	for i := range events {
		events[i] = capture.Event{Name: perToken, Time: s.Start.Add(time.Duration(i) * step)}
	}
	s.Events = slices.Insert(s.Events, max(len(s.Events)-1, 0), events...)
	return ""
}
