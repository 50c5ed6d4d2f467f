package contract

import (
	"fmt"
	"hash/maphash"
	"math"

	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/capture"
	"github.com/genaitrace/otelgenai/contract/spec"
)

// limitRules bounds how much is recorded.
type limitRules struct {
	spec.Limits
	spans, siblings, events, eventsPerSpan, attributes, bytes, names, dropped *rule

	cardinality []cardinalityRule
}

type cardinalityRule struct {
	*rule
	id keyID
}

func (p *compiler) limits() {
	s := p.spec.Limits
	l := limitRules{Limits: s}
	bound := func(n int, key, id string) *rule {
		at := p.at("limits", key)
		p.notNegative(at, key, n)
		if n == 0 {
			return nil
		}
		return p.rule(id, "", "", at)
	}
	l.spans = bound(s.SpansPerTrace, "spans_per_trace", "limit.spans")
	l.siblings = bound(s.Siblings, "siblings", "limit.siblings")
	l.events = bound(s.EventsPerTrace, "events_per_trace", "limit.events")
	l.eventsPerSpan = bound(s.EventsPerSpan, "events_per_span", "event.limit")
	l.attributes = bound(s.AttributesPerSpan, "attributes_per_span", "limit.attributes")
	l.bytes = bound(s.BytesPerTrace, "bytes_per_trace", "limit.bytes")
	if l.names = bound(s.SpanNames, "span_names", "limit.span_names"); l.names != nil {
		l.names.most = s.SpanNames
	}
	if !s.Dropped {
		l.dropped = p.rule("limit.dropped", "", "", spec.Position{})
	}
	for _, key := range sorted(s.Cardinality) {
		r := p.rule("limit.cardinality", "", key, p.at("limits", "cardinality", key))
		r.most = s.Cardinality[key]
		p.notNegative(p.at("limits", "cardinality", key), key, r.most)
		l.cardinality = append(l.cardinality, cardinalityRule{r, p.key(p.at("limits", "cardinality", key), key)})
	}
	p.program.limits = l
}

// checkLimits checks how much the trace holds.
func (k *Checker) checkLimits() {
	l, v := &k.contract.program.limits, &k.view
	first, spans, events, bytes := -1, 0, 0, 0
	for i, s := range v.spans {
		if v.outside[i] {
			continue
		}
		if spans++; first < 0 {
			first = i
		}
		counted := len(s.Events) - v.asked(i)
		events += counted
		if l.bytes != nil {
			bytes += size(s)
		}
		k.bound(l.eventsPerSpan, i, counted, l.EventsPerSpan, "%s has %d events", s)
		k.bound(l.attributes, i, len(s.Attributes), l.AttributesPerSpan, "%s has %d attributes", s)
		if l.dropped != nil {
			k.bound(l.dropped, i, droppedBy(s), 0, "%s lost %d attributes, events or links", s)
		}
		if l.names != nil {
			k.count(l.names, -1, "", s.Name)
		}
		for _, c := range l.cardinality {
			if kv, info := v.fact(i, c.id); kv != nil {
				k.count(c.rule, i, string(kv.Key), info.text(kv.Value.String()))
			}
		}
	}
	if l.siblings != nil {
		k.checkSiblings()
	}
	if first >= 0 {
		k.bound(l.spans, first, spans, l.SpansPerTrace, "%s: the trace has %d spans", v.spans[first])
		k.bound(l.events, first, events, l.EventsPerTrace, "%s: the trace has %d events", v.spans[first])
		k.bound(l.bytes, first, bytes, l.BytesPerTrace, "%s: the trace has %d bytes", v.spans[first])
	}
}

// droppedBy is how much the limits of the SDK took from a span.
func droppedBy(s *capture.Span) int {
	n := s.DroppedAttributes + s.DroppedEvents + s.DroppedLinks
	for i := range s.Events {
		n += s.Events[i].DroppedAttributes
	}
	for i := range s.Links {
		n += s.Links[i].DroppedAttributes
	}
	return n
}

func (k *Checker) bound(r *rule, i, n, most int, format string, s *capture.Span) {
	if r == nil {
		return
	}
	k.test(r)
	if n > most {
		k.find(r, i, "", func(f *Finding) {
			f.Message = fmt.Sprintf(format, k.name(s), n)
			f.Expected, f.Found = fmt.Sprintf("at most %d", most), fmt.Sprint(n)
		})
	}
}

// distinctValues counts the values of something over the whole capture, no further
// than one beyond its bound. It keeps hashes, because values can be long.
type distinctValues struct {
	hashes map[uint64]struct{}
	key    string // as it was spelled first
	at     place  // the earliest span that has it
}

var valueSeed = maphash.MakeSeed()

// count notes a value; i is the span that has it, −1 where that says nothing.
func (k *Checker) count(r *rule, i int, key, value string) {
	k.test(r)
	d := k.distinct[r.n]
	if d == nil {
		d = &distinctValues{hashes: map[uint64]struct{}{}}
		k.distinct[r.n] = d
	}
	if len(d.hashes) <= r.most {
		d.hashes[maphash.String(valueSeed, value)] = struct{}{}
	}
	if i < 0 {
		return
	}
	if at := k.spot(i); d.key == "" || at.before(&d.at) {
		at.path = k.path(i)
		d.at, d.key = at, key
	}
}

// judgeDistinct reports what has too many values.
func (k *Checker) judgeDistinct() {
	for _, r := range k.contract.program.rules {
		d := k.distinct[r.n]
		if d == nil || len(d.hashes) <= r.most {
			continue
		}
		k.findAt(r, d.at, "", d.key, func(f *Finding) {
			f.Message = fmt.Sprintf("%s has more than %d values", d.key, r.most)
			if d.key == "" {
				f.Message = fmt.Sprintf("spans have more than %d names", r.most)
			}
			f.Expected, f.Found = fmt.Sprintf("at most %d", r.most), "more"
		})
	}
}

// checkSiblings counts the spans of one name below one parent, or below none.
func (k *Checker) checkSiblings() {
	l, v := &k.contract.program.limits, &k.view
	k.first = resize(k.first, len(v.spans)+1) // the children of each span, from 1
	crowded := false
	for i := range v.spans {
		if !v.outside[i] {
			n := &k.first[v.trace.ParentIndex(i)+1]
			*n++
			crowded = crowded || int(*n) > l.Siblings
		}
	}
	k.test(l.siblings)
	if !crowded {
		return
	}
	type crowd struct {
		parent trace.SpanID // captured or not
		name   string
	}
	counts := map[crowd]int{}
	for i, s := range v.spans {
		if up := v.trace.ParentIndex(i); !v.outside[i] && int(k.first[up+1]) > l.Siblings {
			counts[crowd{s.ParentID, s.Name}]++
		}
	}
	for i, s := range v.spans {
		of := crowd{s.ParentID, s.Name}
		if n := counts[of]; n > l.Siblings && !v.outside[i] {
			delete(counts, of) // the first of them stands for all
			k.find(l.siblings, i, "", func(f *Finding) {
				f.Message = fmt.Sprintf("%d spans %s stand below one parent", n, k.name(s))
				f.Expected, f.Found = fmt.Sprintf("at most %d", l.Siblings), fmt.Sprint(n)
			})
		}
	}
}

// size is what a span holds in bytes: its names, keys and values, without the
// framing of any format.
func size(s *capture.Span) int {
	n := len(s.Name) + len(s.StatusMessage) + len(s.TraceState) + 48 + attributesSize(s.Attributes)
	for i := range s.Events {
		n += len(s.Events[i].Name) + 8 + attributesSize(s.Events[i].Attributes)
	}
	for i := range s.Links {
		n += 24 + attributesSize(s.Links[i].Attributes)
	}
	return n
}

func attributesSize(attributes capture.Attributes) int {
	n := 0
	for i := range attributes {
		n += len(attributes[i].Key) + valueSize(attributes[i].Value)
	}
	return n
}

// notFinite keeps damaged numbers out of comparisons.
func notFinite(f float64) bool { return math.IsNaN(f) || math.IsInf(f, 0) }
