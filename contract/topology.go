package contract

import (
	"fmt"
	"reflect"
	"slices"
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
	orphan, remoteOrphan, traceChanged, duplicate, repeated *rule
	reversed, neverEnded, eventOutside                      *rule

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
	at := func(path ...string) spec.Position { return p.at(append([]string{"topology"}, path...)...) }
	t := topologyRules{
		orphan:       p.policyRule("topology.orphan", s.Orphans, spec.PolicyDeny, at("orphans")),
		remoteOrphan: p.policyRule("topology.remote_orphan", s.RemoteOrphans, spec.PolicyAllow, at("remote_orphans")),
		traceChanged: p.rule("topology.trace_changed", "", "", spec.Position{}),
		duplicate:    p.rule("topology.duplicate", "", "", spec.Position{}),
		repeated:     p.rule("topology.repeated", "", "", spec.Position{}),
		reversed:     p.rule("topology.reversed", "", "", spec.Position{}),
		neverEnded:   p.policyRule("topology.never_ended", s.NeverEnded, spec.PolicyDeny, at("never_ended")),
		eventOutside: p.rule("event.outside", "", "", spec.Position{}),
		skew:         p.rule("topology.skew", "", "", at("skew")),
		early:        p.duration(at("skew"), "skew", s.Skew, defaultSkew),
		outlives:     p.rule("topology.outlives", "", "", at("outlive")),
		late:         p.duration(at("outlive", "tolerance"), "tolerance", s.Outlive.Tolerance, defaultSkew),
		maxRoots:     s.Roots,
	}
	if s.Roots > 0 {
		t.roots = p.rule("topology.roots", "", "", at("roots"))
	}
	for _, pair := range s.Outlive.Allow {
		t.mayOutlive = append(t.mayOutlive, outlivePair{
			p.roleSet(pair.Position, spec.Strings{pair.Child}), p.roleSet(pair.Position, spec.Strings{pair.Parent}),
		})
	}
	if s.IsolateBy != nil {
		t.isolation = p.rule("topology.isolation", "", "", at("isolate_by"))
		for _, key := range s.IsolateBy {
			t.isolateBy = append(t.isolateBy, p.key(at("isolate_by"), key))
		}
	}
	p.program.topology = t
}

// checkTopology checks the tree of the trace.
func (k *Checker) checkTopology() {
	t, v := &k.contract.program.topology, &k.view
	roots, firstRoot := 0, -1
	for i, s := range v.spans {
		if v.outside[i] {
			continue
		}
		if v.trace.ParentIndex(i) < 0 {
			if roots++; firstRoot < 0 {
				firstRoot = i
			}
		}
		k.checkEnds(i, s)
		k.checkUp(i, s)
		k.checkTwice(i, s)
		k.checkRepeated(i, s)
	}
	if t.roots != nil && roots > 0 {
		k.test(t.roots)
		if roots > t.maxRoots {
			k.find(t.roots, firstRoot, "", func(f *Finding) {
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
			f.Expected, f.Found = "an identifier for each span", k.name(s)+" and "+k.name(v.trace.Span(s.SpanID))
		})
		return
	}
	if k.config.exact { // on a fake clock two calls can take place at once
		return
	}
	// Spans stand in order of their times, so those with the same ones are neighbours.
	for _, next := range v.spans[i+1 : min(i+1+maxTwins, len(v.spans))] {
		if !next.Start.Equal(s.Start) {
			return
		}
		if next.ParentID == s.ParentID && sameWork(s, next) {
			k.find(t.duplicate, i, "", func(f *Finding) {
				f.Message = fmt.Sprintf("%s was recorded twice, with the same times and attributes", k.name(s))
				f.Expected, f.Found = "one span", "the spans "+s.SpanID.String()+" and "+next.SpanID.String()
			})
			return
		}
	}
}

// once leaves out what came several times, the same in everything: OTLP delivers again
// what it had no answer for. It notes how often in k.repeated.
func (k *Checker) once(t *capture.Trace) *capture.Trace {
	k.repeated = nil
	var spans []*capture.Span
	for i, s := range t.Spans {
		first := t.Span(s.SpanID)
		switch {
		case first == s && (i == 0 || t.Spans[i-1] != s), !reflect.DeepEqual(first, s):
			if k.repeated != nil {
				spans = append(spans, s)
			}
			continue
		case k.repeated == nil:
			k.repeated = map[*capture.Span]int{}
			spans = slices.Clone(t.Spans[:i])
		}
		k.repeated[first]++
		k.spans--
	}
	if k.repeated == nil {
		return t
	}
	return capture.NewTrace(spans)
}

func (k *Checker) checkRepeated(i int, s *capture.Span) {
	r := k.contract.program.topology.repeated
	k.test(r)
	if n := k.repeated[s]; n > 0 {
		k.find(r, i, "", func(f *Finding) {
			f.Message = fmt.Sprintf("%s came %d times, the same in everything", k.name(s), n+1)
			f.Expected, f.Found = "once", fmt.Sprintf("%d times", n+1)
		})
	}
}

// maxTwins bounds with how many of the spans after it a span is compared.
const maxTwins = 8

// sameWork reports whether two spans are two records of one operation. On a coarse
// clock operations that take no time look alike.
func sameWork(a, b *capture.Span) bool {
	return a.Name == b.Name && a.Kind == b.Kind && a.Start.Equal(b.Start) && a.End.Equal(b.End) && a.Duration() > 0 &&
		a.Status == b.Status && len(a.Events) == len(b.Events) && slices.Equal(a.Attributes, b.Attributes)
}

// checkEnds checks the times of one span alone.
func (k *Checker) checkEnds(i int, s *capture.Span) {
	t := &k.contract.program.topology
	k.test(t.neverEnded)
	if !s.Ended() {
		k.find(t.neverEnded, i, "", func(f *Finding) {
			f.Message = fmt.Sprintf("%s did not end", k.name(s))
			f.Expected, f.Found = "an end", "none"
		})
		return
	}
	k.test(t.reversed)
	switch {
	case s.Start.IsZero():
		k.find(t.reversed, i, "", func(f *Finding) {
			f.Message = fmt.Sprintf("%s has no start", k.name(s))
			f.Expected, f.Found = "a start", "none"
		})
		return
	case s.End.Before(s.Start):
		k.find(t.reversed, i, "", func(f *Finding) {
			f.Message = fmt.Sprintf("%s ends %s before it starts", k.name(s), s.Start.Sub(s.End))
			f.Expected, f.Found = "0s or more", s.Duration().String()
		})
		return // every event would lie outside
	}
	early, late := k.slack(t.early), k.slack(t.late)
	for j := range s.Events {
		k.test(t.eventOutside)
		e := &s.Events[j]
		if e.Time.IsZero() || s.Start.Sub(e.Time) > early || e.Time.Sub(s.End) > late {
			k.findOn(t.eventOutside, i, "", e.Name, func(f *Finding) {
				f.Message = fmt.Sprintf("the event %s lies outside its span", clip(e.Name, 80))
				f.Expected = fmt.Sprintf("0s to %s after the start", s.Duration())
				f.Found = e.Time.Sub(s.Start).String()
				if e.Time.IsZero() {
					f.Message, f.Found = fmt.Sprintf("the event %s has no time", clip(e.Name, 80)), "no time"
				}
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
	if p.Start.IsZero() || s.Start.IsZero() {
		return
	}
	k.test(t.skew)
	if early := p.Start.Sub(s.Start); early > k.slack(t.early) {
		k.find(t.skew, i, "", func(f *Finding) {
			f.Message = fmt.Sprintf("%s starts %s before its parent %s", k.name(s), early, k.name(p))
			f.Expected, f.Found = "at most "+k.slack(t.early).String(), early.String()
		})
	}
	if !s.Ended() || !p.Ended() || apart(s) || apart(p) || k.gaveUp(up, i) {
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
		f.Message = fmt.Sprintf("%s ends %s after its parent %s", k.name(s), late, k.name(p))
		f.Expected, f.Found = "at most "+k.slack(t.late).String(), late.String()
	})
}

// apart reports whether a span hands work on, which goes on without it.
func apart(s *capture.Span) bool {
	return s.Kind == trace.SpanKindProducer || s.Kind == trace.SpanKindConsumer
}

// gaveUp reports whether a caller stopped to wait for a server, which cannot know
// before it notices.
func (k *Checker) gaveUp(caller, called int) bool {
	v := &k.view
	return v.spans[caller].Kind == trace.SpanKindClient && v.spans[called].Kind == trace.SpanKindServer && !v.completed(caller)
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
			kv, info := v.fact(i, id)
			if kv == nil || v.outside[i] {
				continue
			}
			text := info.text(kv.Value.String())
			if first < 0 {
				first, value = i, text
				k.test(t.isolation)
				continue
			}
			if text != value {
				k.findOn(t.isolation, i, "", string(kv.Key), func(f *Finding) {
					f.Message = fmt.Sprintf("%s differs between %s and %s", kv.Key, k.describe(first), k.describe(i))
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
	at     place
	role   string
	name   string
	parent trace.SpanID
	remote bool
}

// maxOrphans bounds the spans that wait for the end with all that is to be said of
// them. Others are judged by what is known when they come.
const maxOrphans = 10_000

func (k *Checker) orphan(i int, s *capture.Span) {
	if k.view.trace.Span(s.ParentID) != nil {
		k.find(k.contract.program.topology.orphan, i, "", func(f *Finding) {
			f.Message = fmt.Sprintf("%s is among the spans that it stands below", k.name(s))
			f.Expected, f.Found = "a tree", "a circle"
			f.Fix = "give each span an identifier of its own"
		})
		return
	}
	o := orphanSpan{at: k.where(i), role: k.view.firstRole(i), name: k.name(s), parent: s.ParentID, remote: mayBeRemote(s)}
	if len(k.orphans) < maxOrphans {
		k.orphans = append(k.orphans, o)
	} else {
		k.judgeOrphan(&o)
	}
}

func (k *Checker) judgeOrphans() {
	for i := range k.orphans {
		k.judgeOrphan(&k.orphans[i])
	}
}

// judgeOrphan says what is wrong with a span without its parent.
func (k *Checker) judgeOrphan(o *orphanSpan) {
	t := &k.contract.program.topology
	if other, ok := k.seen.elsewhere(o.parent, o.at.trace); ok {
		k.test(t.traceChanged)
		k.findAt(t.traceChanged, o.at, o.role, "", func(f *Finding) {
			f.Message = fmt.Sprintf("the parent of %s is in the trace %s", o.name, other)
			f.Expected, f.Found = "trace "+other.String(), "trace "+o.at.trace.String()
		})
		return
	}
	r := t.orphan
	if o.remote {
		r = t.remoteOrphan
	}
	k.test(r)
	k.findAt(r, o.at, o.role, "", func(f *Finding) {
		f.Message = fmt.Sprintf("the parent of %s was not captured", o.name)
		f.Expected, f.Found = "the parent in the same trace", "parent "+o.parent.String()
	})
}
