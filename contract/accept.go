package contract

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/genaitrace/otelgenai/contract/spec"
)

// acceptRule is a known violation.
type acceptRule struct {
	stale, expired *rule
	id             glob
	on, key        string
	reason         string
	until          time.Time // the moment from which it counts again; zero for never
}

func (p *compiler) accept(s *spec.Accept) acceptRule {
	p.knownRule(s.Position, s.Rule)
	r := acceptRule{
		stale:   p.rule("accept.stale", s.On, s.Key, s.Position),
		expired: p.rule("accept.expired", s.On, s.Key, s.Position),
		id:      newGlob(s.Rule), on: s.On, key: s.Key, reason: s.Reason,
	}
	if strings.TrimSpace(s.Reason) == "" {
		p.failf(s.Position, "accept %s: reason is empty", s.Rule)
	}
	if s.Until != "" {
		day, err := time.Parse(time.DateOnly, s.Until)
		if err != nil {
			p.failf(s.Position, "accept %s: until is %q, want a day such as 2027-03-01", s.Rule, s.Until)
		}
		r.until = day.AddDate(0, 0, 1)
	}
	return r
}

func (r *acceptRule) matches(f *Finding) bool {
	return r.id.match(f.Rule) && (r.on == "" || r.on == f.On) && (r.key == "" || r.key == f.Key)
}

// accept moves accepted findings aside and reports entries that accept nothing.
func (k *Checker) accept(report *Report) {
	now := k.config.now
	for i := range k.contract.program.accept {
		r := &k.contract.program.accept[i]
		matched := false
		expired := !r.until.IsZero() && !now.Before(r.until)
		report.Findings = slices.DeleteFunc(report.Findings, func(f Finding) bool {
			if !r.matches(&f) {
				return false
			}
			matched = true
			if expired {
				return false
			}
			f.Reason = r.reason
			report.Accepted = append(report.Accepted, f)
			return true
		})
		switch {
		case !matched && k.config.requests == nil:
			k.test(r.stale)
			k.findAt(r.stale, place{}, "", "", func(f *Finding) {
				f.Message = fmt.Sprintf("nothing violates %s any more, which is accepted because %s", r.what(), r.reason)
				f.Expected, f.Found = "a violation of "+r.what(), "none"
			})
		case matched && expired:
			k.test(r.expired)
			k.findAt(r.expired, place{}, "", "", func(f *Finding) {
				f.Message = fmt.Sprintf("%s was accepted until %s, because %s", r.what(), r.until.AddDate(0, 0, -1).Format(time.DateOnly), r.reason)
				f.Expected, f.Found = "no violation of "+r.what(), "one"
			})
		}
	}
}

func (r *acceptRule) what() string {
	text := strings.Join(r.id, "*")
	if r.on != "" {
		text += " on " + r.on
	}
	if r.key != "" {
		text += " of " + r.key
	}
	return text
}
