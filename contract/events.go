package contract

import (
	"fmt"
	"slices"
	"strings"

	"github.com/genaitrace/otelgenai/capture"
	"github.com/genaitrace/otelgenai/contract/spec"
)

// eventRules are what holds for the events of one role.
type eventRules struct {
	allowed   globs
	allow     *rule
	allowText []string
	require   []requiredEvent
	order     [][]string
	ordered   *rule
	once      []onceEvent
	last      []string
	lasting   *rule
	max       int
	limit     *rule
	asked     []askedEvent

	attributes map[string][]attributeRule
}

type requiredEvent struct {
	*rule
	name string
	when *condition
}

// askedEvent is an event that is many because somebody asked for them.
type askedEvent struct {
	name string
	id   keyID // of the attribute that says for how many
}

type onceEvent struct {
	*rule
	name string
}

func (p *compiler) events(role string, s *spec.Events) *eventRules {
	if s == nil {
		return nil
	}
	p.notNegative(s.Position, "max", s.Max)
	e := &eventRules{allowed: newGlobs(s.Allow), allowText: s.Allow, max: s.Max, attributes: map[string][]attributeRule{}}
	if s.Allow != nil {
		e.allow = p.rule("event.unexpected", role, "", s.Position)
	}
	for _, name := range sorted(s.Require) {
		e.require = append(e.require, requiredEvent{p.rule("event.missing", role, name, s.Position), name, p.condition(s.Require[name], false)})
	}
	for _, step := range s.Order {
		e.order = append(e.order, choice(step))
	}
	if e.order != nil {
		e.ordered = p.rule("event.order", role, strings.Join(s.Order, ", "), s.Position)
	}
	for _, name := range s.Once {
		e.once = append(e.once, onceEvent{p.rule("event.repeated", role, name, s.Position), name})
	}
	if s.Last != "" {
		e.last, e.lasting = choice(s.Last), p.rule("event.last", role, s.Last, s.Position)
	}
	if s.Max > 0 {
		e.limit = p.rule("event.limit", role, "", s.Position)
	}
	for _, name := range sorted(s.Asked) {
		e.asked = append(e.asked, askedEvent{name, p.key(s.Position, s.Asked[name])})
		p.program.asked |= 1 << p.byRole[role]
	}
	for _, event := range sorted(s.Attributes) {
		for _, key := range sorted(s.Attributes[event]) {
			e.attributes[event] = append(e.attributes[event], p.attribute(role+"/"+event, key, s.Attributes[event][key]))
		}
	}
	return e
}

// choice reads "a|b".
func choice(text string) []string {
	names := strings.Split(text, "|")
	for i := range names {
		names[i] = strings.TrimSpace(names[i])
	}
	return names
}

// checkEvents checks the events of one span of a role.
func (k *Checker) checkEvents(r *roleRule, i int) {
	e, events := r.events, k.view.spans[i].Events
	has := func(name string) bool {
		return slices.ContainsFunc(events, func(e capture.Event) bool { return e.Name == name })
	}
	if e.allow != nil {
		for j := range events {
			k.test(e.allow)
			if !e.allowed.match(events[j].Name) {
				k.findOn(e.allow, i, "", events[j].Name, func(f *Finding) {
					f.Message = fmt.Sprintf("%s has the event %s", r.name, clip(events[j].Name, 80))
					f.Expected, f.Found = among(e.allowText), clip(events[j].Name, 80)
				})
			}
		}
	}
	for _, req := range e.require {
		if !req.when.holds(&k.view, i) {
			continue
		}
		k.test(req.rule)
		if !has(req.name) {
			k.find(req.rule, i, "", func(f *Finding) {
				f.Message = fmt.Sprintf("%s has no event %s", r.name, req.name)
				f.Expected, f.Found = req.name, eventNames(events)
			})
		}
	}
	for _, once := range e.once {
		n := 0
		for j := range events {
			if events[j].Name == once.name {
				n++
			}
		}
		if n > 0 {
			k.test(once.rule)
		}
		if n > 1 {
			k.find(once.rule, i, "", func(f *Finding) {
				f.Message = fmt.Sprintf("%s has the event %s %d times", r.name, once.name, n)
				f.Expected, f.Found = "1", fmt.Sprint(n)
			})
		}
	}
	if e.limit != nil {
		k.test(e.limit)
		if n := len(events) - k.view.asked(i); n > e.max {
			k.find(e.limit, i, "", func(f *Finding) {
				f.Message = fmt.Sprintf("%s has %d events", r.name, n)
				f.Expected, f.Found = fmt.Sprintf("at most %d", e.max), fmt.Sprint(n)
			})
		}
	}
	k.checkEventOrder(r, i, events)
	for j := range events {
		rules := e.attributes[events[j].Name]
		for a := range rules {
			kv, info := k.view.among(events[j].Attributes, rules[a].id)
			k.checkAttribute(&rules[a], i, rules[a].on, kv, info)
		}
	}
}

// asked is how many events of a span do not count for limits, because somebody asked
// for them and the span says so.
func (v *view) asked(i int) (n int) {
	of := v.roles[i] & v.program.asked
	if of == 0 || len(v.spans[i].Events) == 0 {
		return 0
	}
	for r := range v.program.roles {
		if of&(1<<r) == 0 {
			continue
		}
		for _, a := range v.program.roles[r].events.asked {
			most, ok := v.number(i, a.id)
			if !ok || !(most > 0) {
				continue
			}
			there := 0
			for j := range v.spans[i].Events {
				if v.spans[i].Events[j].Name == a.name {
					there++
				}
			}
			n += int(min(float64(there), most))
		}
		return n // of one role: two may ask for the same
	}
	return n
}

// checkEventOrder checks the order and the last event, by the times of the events
// and not by their place: sources may sort them.
func (k *Checker) checkEventOrder(r *roleRule, i int, events []capture.Event) {
	e := r.events
	if e.ordered == nil && e.lasting == nil || len(events) < 2 {
		return
	}
	timeless := func(e capture.Event) bool { return e.Time.IsZero() }
	byTime, order := events, func(a, b capture.Event) int { return a.Time.Compare(b.Time) }
	if !slices.IsSortedFunc(events, order) || timeless(events[0]) {
		byTime = slices.DeleteFunc(slices.Clone(events), timeless) // event.outside is about them
		slices.SortStableFunc(byTime, order)
	}
	if e.ordered != nil {
		k.test(e.ordered)
		step := 0
		for _, event := range byTime {
			at := slices.IndexFunc(e.order, func(names []string) bool { return slices.Contains(names, event.Name) })
			if at < 0 {
				continue
			}
			if at < step {
				k.find(e.ordered, i, "", func(f *Finding) {
					f.Message = fmt.Sprintf("%s has %s after %s", r.name, event.Name, strings.Join(e.order[step], "|"))
					f.Expected, f.Found = e.ordered.key, eventNames(byTime)
				})
				break
			}
			step = at
		}
	}
	if e.lasting != nil {
		at := slices.IndexFunc(byTime, func(event capture.Event) bool { return slices.Contains(e.last, event.Name) })
		if at < 0 {
			return
		}
		k.test(e.lasting)
		if at < len(byTime)-1 {
			k.find(e.lasting, i, "", func(f *Finding) {
				f.Message = fmt.Sprintf("%s has %s after %s", r.name, byTime[at+1].Name, byTime[at].Name)
				f.Expected, f.Found = byTime[at].Name+" at the end", eventNames(byTime)
			})
		}
	}
}

func eventNames(events []capture.Event) string {
	if len(events) == 0 {
		return "no events"
	}
	var names []string
	for _, e := range events[:min(len(events), 8)] {
		names = append(names, clip(e.Name, 40))
	}
	if len(events) > 8 {
		names = append(names, "…")
	}
	return strings.Join(names, ", ")
}
