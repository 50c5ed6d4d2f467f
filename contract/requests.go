package contract

import (
	"cmp"
	"fmt"

	"github.com/genaitrace/otelgenai/contract/spec"
)

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
		p.failf(s.Position, "requests.%s: the key root is missing", name)
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
	return cmp.Or(text, "none")
}
