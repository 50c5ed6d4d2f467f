package contract

import (
	"fmt"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/contract/spec"
)

// hopRule says that a trace goes on from one role to another.
type hopRule struct {
	broken, lost     *rule
	from, to         int
	fromName, toName string
	via              string
	link             bool
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
		via: s.Via, link: s.Link, when: p.condition(s.When, false),
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
	hop        int
	arrived    bool // the receiving end
	trace      trace.TraceID
	parent     trace.SpanID
	name       string
	service    string
	start, end time.Time
	found      string
	links      []trace.SpanID
	finding    Finding
}

// maxHopEnds bounds what waits for the end.
const maxHopEnds = 10_000

// checkHop looks at both ends of a hop in the trace.
func (k *Checker) checkHop(n int, r *hopRule) {
	v := &k.view
	from, to := roleSet(1)<<r.from, roleSet(1)<<r.to
	for i := range v.spans {
		if v.roles[i]&to != 0 {
			k.test(r.broken)
			if v.above[i]&from == 0 && (!r.link || !k.linked(i, from)) {
				k.hopEnd(n, i, true)
			}
		}
		if v.roles[i]&from == 0 || r.when != nil && !r.when.holds(v, i) || r.when == nil && !v.completed(i) {
			continue
		}
		k.test(r.lost)
		if !v.hasBelow(i, to) && !r.link {
			k.hopEnd(n, i, false)
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
	e := hopEnd{hop: n, arrived: arrived, trace: s.TraceID, parent: s.ParentID, name: s.Name, service: s.Resource.Service(), start: s.Start, end: s.End}
	switch up := v.trace.ParentIndex(i); {
	case up >= 0:
		e.found = "below " + v.describe(up)
	case s.ParentID.IsValid():
		e.found = "its parent " + s.ParentID.String() + " is not in its trace"
	default:
		e.found = "a trace of its own, without a parent: no context arrived"
	}
	k.where(&e.finding, i)
	if len(k.hopEnds) < maxHopEnds {
		k.hopEnds = append(k.hopEnds, e)
	}
}

// judgeHops says which hop broke: it joins the ends that sent and the ends that
// received nothing by their time.
func (k *Checker) judgeHops() {
	used := make([]bool, len(k.hopEnds))
	for i := range k.hopEnds {
		e := &k.hopEnds[i]
		if !e.arrived {
			continue
		}
		r := &k.contract.program.hops[e.hop]
		if r.link && k.rolesOf(e.trace, e.parent)&(1<<r.from) != 0 {
			continue
		}
		sender := k.sender(e, used)
		if sender >= 0 {
			used[sender] = true
		}
		k.findAt(r.broken, e.finding, "", "", func(f *Finding) {
			f.Expected = fmt.Sprintf("inside %s, in its trace", r.fromName)
			f.Found = e.found
			if other, ok := k.traceOf(e.parent); ok && other != e.trace {
				f.Found = fmt.Sprintf("the trace %s, while its parent is in %s", e.trace, other)
			}
			f.Message = fmt.Sprintf("the hop from %s to %s%s broke: %s%s is not part of the calling trace", r.fromName, r.toName, via(r.via), e.name, in(e.service))
			if sender >= 0 {
				from := &k.hopEnds[sender]
				f.Message += fmt.Sprintf("; %s%s called at that time, in the trace %s", from.name, in(from.service), from.trace)
			}
			f.Fix = advice[r.via]
		})
	}
	for i := range k.hopEnds {
		e := &k.hopEnds[i]
		if e.arrived || used[i] {
			continue
		}
		r := &k.contract.program.hops[e.hop]
		k.findAt(r.lost, e.finding, "", "", func(f *Finding) {
			f.Message = fmt.Sprintf("%s%s called over%s, and no %s span was captured for it", e.name, in(e.service), orHop(via(r.via)), r.toName)
			f.Expected, f.Found = "a span of the role "+r.toName+" below it", "none"
		})
	}
}

// sender returns the end that probably sent what e received: one of the same hop
// that was under way when e started.
func (k *Checker) sender(e *hopEnd, used []bool) int {
	for i := range k.hopEnds {
		s := &k.hopEnds[i]
		if s.arrived || used[i] || s.hop != e.hop || e.start.Before(s.start) || !s.end.IsZero() && e.start.After(s.end) {
			continue
		}
		return i
	}
	return -1
}

func via(transport string) string {
	if transport == "" {
		return ""
	}
	return " over " + transport
}

func orHop(via string) string {
	if via == "" {
		return " the hop"
	}
	return via[len(" over"):]
}

func in(service string) string {
	if service == "" {
		return ""
	}
	return " of " + service
}

// requestRule is one kind of request.
type requestRule struct {
	name    string
	seen    *rule
	root    int
	when    *condition
	require []requiredRole
}

type requiredRole struct {
	*rule
	role         int
	name         string
	unlessFailed bool
}

func (p *compiler) request(name string, s spec.Request) requestRule {
	if s.Root == "" {
		p.fail(s.Position, "requests.%s: the key root is missing", name)
	}
	r := requestRule{name: name, root: p.roleIndex(s.Position, s.Root), when: p.condition(s.When, false)}
	r.seen = p.rule("contract.unexercised", name, "", s.Position)
	r.seen.exercise = !isTrue(s.Optional)
	r.seen.needs = 1 << r.root
	for _, list := range []struct {
		roles        spec.Strings
		unlessFailed bool
	}{{s.Requires, false}, {s.RequiresUnlessFailed, true}} {
		for _, role := range list.roles {
			rule := p.rule("request.incomplete", name, role, s.Position)
			r.require = append(r.require, requiredRole{rule, p.roleIndex(s.Position, role), role, list.unlessFailed})
			r.seen.needs |= 1 << p.roleIndex(s.Position, role)
		}
	}
	return r
}

func (k *Checker) checkRequest(n int, r *requestRule, i int) {
	v := &k.view
	if v.roles[i]&(1<<r.root) == 0 || !r.when.holds(v, i) {
		return
	}
	k.test(r.seen)
	k.requests[n]++
	for _, req := range r.require {
		if req.unlessFailed && !v.completed(i) {
			continue
		}
		k.test(req.rule)
		if v.below[i]&(1<<req.role) == 0 {
			k.find(req.rule, i, "", func(f *Finding) {
				f.Message = fmt.Sprintf("a request of the kind %s shows no %s", r.name, req.name)
				f.Expected, f.Found = "a span of the role "+req.name, k.view.roleList(v.below[i])
			})
		}
	}
}

// roleList names the roles of a set.
func (v *view) roleList(set roleSet) string {
	text := ""
	for r := range v.program.roles {
		if set&(1<<r) != 0 {
			if text != "" {
				text += ", "
			}
			text += v.program.roles[r].name
		}
	}
	return cmpOr(text, "none")
}
