package contract

import (
	"fmt"
	"slices"
)

// judgeExercise reports the parts of the contract that were never tested.
func (k *Checker) judgeExercise() {
	p := k.contract.program
	wanted := ^roleSet(0)
	if k.config.requests != nil {
		wanted = k.wantedRoles()
	}
	for _, r := range p.rules {
		if !r.exercise || k.tested[r.n] > 0 || r.needs&^wanted != 0 || k.config.requests != nil && r.needs == 0 {
			continue
		}
		if request := p.requestOf(r); request != "" && k.config.requests != nil && !slices.Contains(k.config.requests, request) {
			continue
		}
		unexercised := *r
		unexercised.id, unexercised.severity = ruleUnexercised, p.unexercised
		k.findAt(&unexercised, place{}, "", "", func(f *Finding) {
			f.Message = p.unseen(r)
			f.Expected, f.Found = "at least one", "none"
		})
	}
}

const ruleUnexercised = "contract.unexercised"

// wantedRoles returns the roles that the requests of the check need, and reports a
// kind of requests that the contract does not have.
func (k *Checker) wantedRoles() roleSet {
	p := k.contract.program
	var wanted roleSet
	for _, name := range k.config.requests {
		i := slices.IndexFunc(p.requests, func(r requestRule) bool { return r.name == name })
		if i >= 0 {
			wanted |= p.requests[i].seen.needs
			continue
		}
		r := &rule{n: -1, id: ruleUnexercised, severity: Error}
		k.findAt(r, place{}, name, "", func(f *Finding) {
			f.Message = fmt.Sprintf("the contract has no requests of the kind %s", name)
			f.Expected, f.Found = among(k.contract.Requests()), name
			f.Fix = "name a kind of requests of the contract"
		})
	}
	return wanted
}

// requestOf returns the kind of request that a rule stands for.
func (p *program) requestOf(r *rule) string {
	for i := range p.requests {
		if p.requests[i].seen == r {
			return p.requests[i].name
		}
	}
	return ""
}

// unseen says what a rule that was never tested would have tested.
func (p *program) unseen(r *rule) string {
	switch {
	case p.requestOf(r) != "":
		return fmt.Sprintf("no request of the kind %s was seen", r.on)
	case r.id == ruleUnexercised:
		return fmt.Sprintf("no span has the role %s", r.on)
	default:
		return fmt.Sprintf("the rule %s %s never applied", r.id, r.key)
	}
}

// coverage says how often each rule was tested.
func (k *Checker) coverage() []Coverage {
	counts := map[int]int{}
	for id := range k.found {
		counts[id.rule]++
	}
	var all []Coverage
	for _, r := range k.contract.program.rules {
		if r.severity == "" || r.id == "accept.expired" || r.id == "accept.stale" {
			continue
		}
		all = append(all, Coverage{Rule: r.id, On: r.on, Key: r.key, Tested: k.tested[r.n], Findings: counts[r.n], Contract: r.at})
	}
	return all
}
