package contract

import (
	"fmt"
	"slices"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/capture"
	"github.com/genaitrace/otelgenai/contract/spec"
)

// hopRule says that a trace goes on from one role to another.
type hopRule struct {
	broken, lost     *rule
	from, to         int
	fromName, toName string
	via              string
	link             bool
	optional         bool // the called process need not be captured
	when             *condition
}

// advice says for each transport where a context usually gets lost.
var advice = map[string]string{
	"http":      "inject into the headers of the request (genaihttp.NewTransport does) and extract where it arrives (genaihttp.NewHandler); look for a proxy that drops traceparent",
	"grpc":      "both ends need the stats handler (genaigrpc.NewClientHandler, genaigrpc.NewServerHandler), and the call the context of the request, not context.Background()",
	"websocket": "headers travel with the handshake alone: put the context of each message into the message",
	"messaging": "inject into the headers of the message, and extract or link where it is consumed",
}

func (p *compiler) hop(s *spec.Hop) hopRule {
	name := s.From + " → " + s.To
	r := hopRule{
		from: p.roleIndex(s.Position, s.From), to: p.roleIndex(s.Position, s.To), fromName: s.From, toName: s.To,
		via: s.Via, link: s.Link, optional: s.Optional, when: p.condition(s.When, false),
		broken: p.rule("propagation.broken", s.To, name, s.Position),
		lost:   p.rule("propagation.missing", s.From, name, s.Position),
	}
	if s.Via != "" {
		oneOf(p, s.Position, "via", s.Via, advice)
	}
	r.broken.exercise, r.broken.needs = !s.Optional, 1<<r.from|1<<r.to
	return r
}

// hopEnd is one end of a hop that has lost the other. What it was is said at the
// end, when every trace is known.
type hopEnd struct {
	hop     int
	arrived bool // the receiving end
	at      place
	end     time.Time
	parent  trace.SpanID
	name    string
	service string
	found   string
	links   []spanRef // of a receiving end
}

// maxHopEnds bounds what waits for the end. The ends of others are judged apart,
// when they come.
const maxHopEnds = 10_000

// checkHop looks at both ends of a hop in the trace.
func (k *Checker) checkHop(n int, r *hopRule) {
	v := &k.view
	from, to := roleSet(1)<<r.from, roleSet(1)<<r.to
	if v.any&(from|to) == 0 {
		return
	}
	for i, s := range v.spans {
		if v.roles[i]&to != 0 {
			k.test(r.broken)
			if r.link {
				k.rememberLinks(s)
			}
			if v.above[i]&from == 0 {
				k.hopEnd(n, i, true)
			}
		}
		if v.roles[i]&from == 0 || r.when != nil && !r.when.holds(v, i) || r.when == nil && !v.completed(i) {
			continue
		}
		if !r.optional {
			k.test(r.lost)
		}
		if !v.hasBelow(i, to) {
			k.hopEnd(n, i, false)
		}
	}
}

// rememberLinks notes which spans a receiving end comes from.
func (k *Checker) rememberLinks(s *capture.Span) {
	for _, ref := range linksOf(s) {
		if len(k.hopLinks) < maxRemembered {
			k.hopLinks[ref] = struct{}{}
		}
	}
}

// hasBelow reports whether a span below i, and not i itself, has one of the roles.
func (v *view) hasBelow(i int, roles roleSet) bool {
	for c := v.trace.FirstChild(i); c >= 0; c = v.trace.NextSibling(c) {
		if v.below[c]&roles != 0 {
			return true
		}
	}
	return false
}

func (k *Checker) hopEnd(n, i int, arrived bool) {
	v, s := &k.view, k.view.spans[i]
	e := hopEnd{hop: n, arrived: arrived, at: k.where(i), end: s.End, parent: s.ParentID, name: k.name(s), service: s.Resource.Service(), found: k.above(i)}
	if arrived {
		e.links = linksOf(s)
	}
	if v.trace.ParentIndex(i) < 0 && !s.ParentID.IsValid() {
		e.found = "a trace of its own, without a parent: no context arrived"
	}
	switch {
	case len(k.hopEnds) < maxHopEnds:
		k.hopEnds = append(k.hopEnds, e)
	case k.joined(&e):
	case arrived:
		k.broken(&e, nil)
	default:
		k.lost(&e)
	}
}

// joined reports whether a link leads over the hop.
func (k *Checker) joined(e *hopEnd) bool {
	r := &k.contract.program.hops[e.hop]
	if !r.link {
		return false
	}
	if e.arrived {
		return k.seen.anyHas(e.links, 1<<r.from)
	}
	_, ok := k.hopLinks[spanRef{e.at.trace, e.at.span}]
	return ok
}

// judgeHops says which hop broke: it joins the ends that sent and the ends that
// received nothing by their time.
func (k *Checker) judgeHops() {
	ends := slices.DeleteFunc(k.hopEnds, func(e hopEnd) bool { return k.joined(&e) })
	slices.SortStableFunc(ends, func(a, b hopEnd) int {
		switch {
		case a.at.before(&b.at):
			return -1
		case b.at.before(&a.at):
			return 1
		default:
			return 0
		}
	})
	// Of each hop those that sent and have no partner yet, the earliest first.
	senders := make([][]*hopEnd, len(k.contract.program.hops))
	for i := range ends {
		e := &ends[i]
		open := senders[e.hop]
		if !e.arrived {
			senders[e.hop] = append(open, e)
			continue
		}
		// Those that ended before anything arrived sent something else.
		under := slices.IndexFunc(open, func(s *hopEnd) bool { return s.end.IsZero() || !e.at.time.After(s.end) })
		if under < 0 {
			under = len(open)
		}
		for _, s := range open[:under] {
			k.lost(s)
		}
		open = open[under:]
		if len(open) == 0 {
			k.broken(e, nil)
		} else {
			k.broken(e, open[0])
			open = open[1:]
		}
		senders[e.hop] = open
	}
	for _, open := range senders {
		for _, s := range open {
			k.lost(s)
		}
	}
}

// broken reports a receiving end that does not belong to the sending one.
func (k *Checker) broken(e, sender *hopEnd) {
	r := &k.contract.program.hops[e.hop]
	if _, changed := k.seen.elsewhere(e.parent, e.at.trace); r.optional && sender == nil && !changed {
		return // the process that sent was not captured, or there was none
	}
	k.findAt(r.broken, e.at, "", "", func(f *Finding) {
		f.Expected = fmt.Sprintf("inside %s, in its trace", r.fromName)
		if r.link {
			f.Expected += ", or linked to it"
		}
		f.Found = e.found
		if other, ok := k.seen.elsewhere(e.parent, e.at.trace); ok {
			f.Found = fmt.Sprintf("the trace %s, while its parent is in %s", e.at.trace, other)
		}
		f.Message = fmt.Sprintf("the hop from %s to %s%s broke: %s%s is not part of the calling trace", r.fromName, r.toName, over(r.via), e.name, of(e.service))
		if sender != nil {
			f.Message += fmt.Sprintf("; %s%s called at that time, in the trace %s", sender.name, of(sender.service), sender.at.trace)
		}
		f.Fix = advice[r.via]
	})
}

// lost reports a sending end for which nothing was recorded.
func (k *Checker) lost(e *hopEnd) {
	r := &k.contract.program.hops[e.hop]
	if r.optional {
		return
	}
	k.findAt(r.lost, e.at, "", "", func(f *Finding) {
		f.Message = fmt.Sprintf("%s%s called%s, and no %s span was captured for it", e.name, of(e.service), over(r.via), r.toName)
		f.Expected, f.Found = "a span of the role "+r.toName+" below it", "none"
	})
}

func over(transport string) string {
	if transport == "" {
		return ""
	}
	return " over " + transport
}

func of(service string) string {
	if service == "" {
		return ""
	}
	return " of " + clip(service, 80)
}
