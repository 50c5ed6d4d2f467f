package contract

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/capture"
	"github.com/genaitrace/otelgenai/contract/spec"
)

// defaultSkew is how far the clocks of two processes may be apart unless the
// contract says otherwise.
const defaultSkew = 2 * time.Millisecond

// topologyRules are what holds for the tree as a whole.
type topologyRules struct {
	orphan, remoteOrphan, traceChanged, duplicate *rule
	reversed, neverEnded, eventOutside            *rule

	roots    *rule
	maxRoots int

	skew       *rule
	early      time.Duration
	outlives   *rule
	late       time.Duration
	mayOutlive []outlivePair

	isolation *rule
	isolateBy []keyID
}

type outlivePair struct{ child, parent roleSet }

func (p *compiler) topology() {
	s := p.spec.Topology
	t := topologyRules{
		orphan:       p.policyRule("topology.orphan", s.Orphans, spec.PolicyDeny, s.Position),
		remoteOrphan: p.policyRule("topology.remote_orphan", s.RemoteOrphans, spec.PolicyAllow, s.Position),
		traceChanged: p.rule("topology.trace_changed", "", "", s.Position),
		duplicate:    p.rule("topology.duplicate", "", "", s.Position),
		reversed:     p.rule("topology.reversed", "", "", s.Position),
		neverEnded:   p.policyRule("topology.never_ended", s.NeverEnded, spec.PolicyDeny, s.Position),
		eventOutside: p.rule("event.outside", "", "", s.Position),
		skew:         p.rule("topology.skew", "", "", s.Position),
		early:        p.duration(s.Position, "skew", s.Skew, defaultSkew),
		outlives:     p.rule("topology.outlives", "", "", s.Position),
		late:         p.duration(s.Position, "outlive.tolerance", s.Outlive.Tolerance, defaultSkew),
		maxRoots:     s.Roots,
	}
	if s.Roots > 0 {
		t.roots = p.rule("topology.roots", "", "", s.Position)
	}
	for _, pair := range s.Outlive.Allow {
		t.mayOutlive = append(t.mayOutlive, outlivePair{
			p.roleSet(pair.Position, spec.Strings{pair.Child}), p.roleSet(pair.Position, spec.Strings{pair.Parent}),
		})
	}
	if s.IsolateBy != nil {
		t.isolation = p.rule("topology.isolation", "", "", s.Position)
		for _, key := range s.IsolateBy {
			t.isolateBy = append(t.isolateBy, p.keys.id(key))
		}
	}
	p.program.topology = t
}

// checkTopology checks the tree of the trace.
func (k *Checker) checkTopology() {
	t, v := &k.contract.program.topology, &k.view
	roots, lastRoot := 0, -1
	for i, s := range v.spans {
		if v.outside[i] {
			continue
		}
		if v.trace.ParentIndex(i) < 0 {
			roots, lastRoot = roots+1, i
		}
		k.checkEnds(i, s)
		k.checkUp(i, s)
		k.checkTwice(i, s)
	}
	if t.roots != nil && roots > 0 {
		k.test(t.roots)
		if roots > t.maxRoots {
			k.find(t.roots, lastRoot, "", func(f *Finding) {
				f.Message = fmt.Sprintf("the trace has %d spans without a captured parent", roots)
				f.Expected, f.Found = fmt.Sprintf("at most %d", t.maxRoots), fmt.Sprint(roots)
			})
		}
	}
	if t.isolation != nil {
		k.checkIsolation()
	}
}

// checkTwice finds a span that is there twice, under one identifier or under two.
func (k *Checker) checkTwice(i int, s *capture.Span) {
	t, v := &k.contract.program.topology, &k.view
	k.test(t.duplicate)
	if v.trace.Span(s.SpanID) != s {
		k.find(t.duplicate, i, "", func(f *Finding) {
			f.Message = fmt.Sprintf("two spans have the identifier %s", s.SpanID)
		})
		return
	}
	next := v.trace.NextSibling(i)
	if next < 0 || k.config.exact { // on a fake clock two calls can take place at once
		return
	}
	// Siblings stand in order of their times.
	other := v.spans[next]
	if other.Name == s.Name && other.Start.Equal(s.Start) && other.End.Equal(s.End) && slices.Equal(other.Attributes, s.Attributes) {
		k.find(t.duplicate, i, "", func(f *Finding) {
			f.Message = fmt.Sprintf("%s was recorded twice, with the same times and attributes", s.Name)
		})
	}
}

// checkEnds checks the times of one span alone.
func (k *Checker) checkEnds(i int, s *capture.Span) {
	t := &k.contract.program.topology
	k.test(t.neverEnded)
	if !s.Ended() {
		k.find(t.neverEnded, i, "", func(f *Finding) {
			f.Message = fmt.Sprintf("%s did not end", s.Name)
			f.Expected, f.Found = "an end", "none"
		})
		return
	}
	k.test(t.reversed)
	if s.End.Before(s.Start) {
		k.find(t.reversed, i, "", func(f *Finding) {
			f.Message = fmt.Sprintf("%s ends %s before it starts", s.Name, s.Start.Sub(s.End))
		})
	}
	early, late := k.slack(t.early), k.slack(t.late)
	for j := range s.Events {
		e := &s.Events[j]
		k.test(t.eventOutside)
		if e.Time.Add(early).Before(s.Start) || e.Time.After(s.End.Add(late)) {
			k.findOn(t.eventOutside, i, "", e.Name, func(f *Finding) {
				f.Message = fmt.Sprintf("the event %s lies outside its span", clip(e.Name, 80))
				f.Expected = fmt.Sprintf("0 to %s after the start", s.End.Sub(s.Start))
				f.Found = e.Time.Sub(s.Start).String()
			})
		}
	}
}

// slack returns a tolerance, which is nothing where times are exact.
func (k *Checker) slack(d time.Duration) time.Duration {
	if k.config.exact {
		return 0
	}
	return d
}

// checkUp checks a span against its parent.
func (k *Checker) checkUp(i int, s *capture.Span) {
	t, v := &k.contract.program.topology, &k.view
	up := v.trace.ParentIndex(i)
	if up < 0 {
		if s.ParentID.IsValid() {
			k.orphan(i, s)
		}
		return
	}
	p := v.spans[up]
	k.test(t.skew)
	if early := p.Start.Sub(s.Start); early > k.slack(t.early) {
		k.find(t.skew, i, "", func(f *Finding) {
			f.Message = fmt.Sprintf("%s starts %s before its parent %s", s.Name, early, p.Name)
			f.Expected, f.Found = "at most "+k.slack(t.early).String(), early.String()
		})
	}
	if !s.Ended() || !p.Ended() || apart(s) || apart(p) {
		return
	}
	k.test(t.outlives)
	late := s.End.Sub(p.End)
	if late <= k.slack(t.late) {
		return
	}
	for _, pair := range t.mayOutlive {
		if v.roles[i]&pair.child != 0 && v.roles[up]&pair.parent != 0 {
			return
		}
	}
	k.find(t.outlives, i, "", func(f *Finding) {
		f.Message = fmt.Sprintf("%s ends %s after its parent %s", s.Name, late, p.Name)
		f.Expected, f.Found = "at most "+k.slack(t.late).String(), late.String()
	})
}

// apart reports whether a span hands work on, which goes on without it.
func apart(s *capture.Span) bool {
	return s.Kind == trace.SpanKindProducer || s.Kind == trace.SpanKindConsumer
}

// mayBeRemote reports whether the parent of a span can be in another process. Where
// the source does not say, the kind does.
func mayBeRemote(s *capture.Span) bool {
	switch s.ParentOrigin {
	case capture.OriginRemote:
		return true
	case capture.OriginLocal:
		return false
	default:
		return s.Kind == trace.SpanKindServer || s.Kind == trace.SpanKindConsumer
	}
}

// checkIsolation checks that facts such as the tenant are the same everywhere.
func (k *Checker) checkIsolation() {
	t, v := &k.contract.program.topology, &k.view
	for _, id := range t.isolateBy {
		first, value := -1, ""
		for i := range v.spans {
			kv, _ := v.fact(i, id)
			if kv == nil || v.outside[i] {
				continue
			}
			text := kv.Value.String()
			if first < 0 {
				first, value = i, text
				k.test(t.isolation)
				continue
			}
			if text != value {
				k.findOn(t.isolation, i, "", string(kv.Key), func(f *Finding) {
					f.Message = fmt.Sprintf("%s differs between %s and %s", kv.Key, v.describe(first), v.describe(i))
					f.Expected, f.Found = "one value", "two values"
				})
				break
			}
		}
	}
}

// orphanSpan is a span whose parent was not in its trace. Whether the parent is in
// another trace is known only at the end.
type orphanSpan struct {
	trace   trace.TraceID
	parent  trace.SpanID
	remote  bool
	finding Finding
}

// maxOrphans bounds the spans that wait for the end.
const maxOrphans = 10_000

func (k *Checker) orphan(i int, s *capture.Span) {
	o := orphanSpan{trace: s.TraceID, parent: s.ParentID, remote: mayBeRemote(s)}
	k.where(&o.finding, i)
	o.finding.Message = s.Name
	if len(k.orphans) < maxOrphans {
		k.orphans = append(k.orphans, o)
	} else {
		k.judgeOrphan(&o)
	}
}

// judgeOrphan says what is wrong with a span without its parent.
func (k *Checker) judgeOrphan(o *orphanSpan) {
	t := &k.contract.program.topology
	r := t.orphan
	if o.remote {
		r = t.remoteOrphan
	}
	other, elsewhere := k.traceOf(o.parent)
	if elsewhere && other != o.trace {
		r = t.traceChanged
	}
	k.test(r)
	k.findAt(r, o.finding, "", "", func(f *Finding) {
		name := o.finding.Message
		f.Found = "parent " + o.parent.String()
		switch r {
		case t.traceChanged:
			f.Message = fmt.Sprintf("the parent of %s is in the trace %s", name, other)
			f.Expected = "trace " + other.String()
			f.Found = "trace " + o.trace.String()
		default:
			f.Message = fmt.Sprintf("the parent of %s was not captured", name)
			f.Expected = "the parent in the same trace"
		}
	})
}

// limitRules bounds how much is recorded.
type limitRules struct {
	spec.Limits
	spans, siblings, events, eventsPerSpan, attributes, bytes, names, dropped *rule

	cardinality []cardinalityRule
}

type cardinalityRule struct {
	*rule
	id  keyID
	max int
}

func (p *compiler) limits() {
	s := p.spec.Limits
	l := limitRules{Limits: s}
	bound := func(n int, id string) *rule {
		if n < 0 {
			p.fail(s.Position, "a limit is %d, want 0 for none, or more", n)
		}
		if n == 0 {
			return nil
		}
		return p.rule(id, "", "", s.Position)
	}
	l.spans = bound(s.SpansPerTrace, "limit.spans")
	l.siblings = bound(s.Siblings, "limit.siblings")
	l.events = bound(s.EventsPerTrace, "limit.events")
	l.eventsPerSpan = bound(s.EventsPerSpan, "event.limit")
	l.attributes = bound(s.AttributesPerSpan, "limit.attributes")
	l.bytes = bound(s.BytesPerTrace, "limit.bytes")
	l.names = bound(s.SpanNames, "limit.span_names")
	if !s.Dropped {
		l.dropped = p.rule("limit.dropped", "", "", s.Position)
	}
	for _, key := range sorted(s.Cardinality) {
		r := p.rule("limit.cardinality", "", key, s.Position)
		l.cardinality = append(l.cardinality, cardinalityRule{r, p.keys.id(key), s.Cardinality[key]})
	}
	p.program.limits = l
}

// checkLimits checks how much the trace holds.
func (k *Checker) checkLimits() {
	l, v := &k.contract.program.limits, &k.view
	events, bytes := 0, 0
	for i, s := range v.spans {
		if v.outside[i] {
			continue
		}
		events += len(s.Events)
		if l.bytes != nil {
			bytes += size(s)
		}
		k.bound(l.eventsPerSpan, i, len(s.Events), l.EventsPerSpan, "%s has %d events", s.Name)
		k.bound(l.attributes, i, len(s.Attributes), l.AttributesPerSpan, "%s has %d attributes", s.Name)
		if l.dropped != nil {
			k.bound(l.dropped, i, s.DroppedAttributes+s.DroppedEvents+s.DroppedLinks, 0, "%s lost %d attributes, events or links", s.Name)
		}
		if l.siblings != nil {
			k.checkSiblings(i)
		}
		if l.names != nil {
			k.distinct(l.names, i, "", s.Name, l.SpanNames, "spans have more than %d names")
		}
	}
	if l.siblings != nil {
		k.countSiblings(v.trace.Roots(), -1)
	}
	k.bound(l.spans, 0, len(v.spans), l.SpansPerTrace, "%s: the trace has %d spans", v.spans[0].Name)
	k.bound(l.events, 0, events, l.EventsPerTrace, "%s: the trace has %d events", v.spans[0].Name)
	k.bound(l.bytes, 0, bytes, l.BytesPerTrace, "%s: the trace has %d bytes", v.spans[0].Name)
	for _, c := range l.cardinality {
		for i := range v.spans {
			if kv, _ := v.fact(i, c.id); kv != nil && !v.outside[i] {
				k.distinct(c.rule, i, string(kv.Key), kv.Value.String(), c.max, string(kv.Key)+" has more than %d values")
			}
		}
	}
}

func (k *Checker) bound(r *rule, i, n, most int, format, name string) {
	if r == nil {
		return
	}
	k.test(r)
	if n > most {
		k.find(r, i, "", func(f *Finding) {
			f.Message = fmt.Sprintf(format, name, n)
			f.Expected, f.Found = fmt.Sprintf("at most %d", most), fmt.Sprint(n)
		})
	}
}

// distinct counts the values of something over the whole capture, no further than
// one beyond its bound.
func (k *Checker) distinct(r *rule, i int, key, value string, most int, format string) {
	k.test(r)
	values := k.values[r.n]
	if values == nil {
		values = map[string]struct{}{}
		k.values[r.n] = values
	}
	if _, seen := values[value]; !seen && len(values) <= most {
		values[strings.Clone(value)] = struct{}{}
	}
	if len(values) > most {
		k.findOn(r, i, "", key, func(f *Finding) {
			f.Message = fmt.Sprintf(format, most)
			f.Expected, f.Found = fmt.Sprintf("at most %d", most), "more"
		})
	}
}

// checkSiblings counts the children of a span by name.
func (k *Checker) checkSiblings(i int) {
	v := &k.view
	first := v.trace.FirstChild(i)
	if first < 0 || v.trace.NextSibling(first) < 0 {
		return
	}
	var children []*capture.Span
	for c := first; c >= 0; c = v.trace.NextSibling(c) {
		children = append(children, v.spans[c])
	}
	k.countSiblings(children, i)
}

// countSiblings counts spans by name; i is what they are below, −1 for nothing.
func (k *Checker) countSiblings(spans []*capture.Span, i int) {
	l := &k.contract.program.limits
	k.test(l.siblings)
	if len(spans) <= l.Siblings {
		return
	}
	counts := map[string]int{}
	for _, s := range spans {
		counts[s.Name]++
	}
	for name, n := range counts {
		if n > l.Siblings {
			k.find(l.siblings, max(i, 0), "", func(f *Finding) {
				f.Message = fmt.Sprintf("%d spans %s stand below one parent", n, clip(name, 80))
				f.Expected, f.Found = fmt.Sprintf("at most %d", l.Siblings), fmt.Sprint(n)
			})
			return
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
