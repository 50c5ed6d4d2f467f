package contract

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/genaitrace/otelgenai/capture"
)

// logRule is what holds for the records of one log event.
type logRule struct {
	name       string
	missing    *rule
	with       roleSet
	trace      *rule
	span       *rule
	on         roleSet
	onText     string
	attributes []attributeRule

	count *rule // nil where no spans are said to leave a record
	of    roleSet
	when  *condition
}

func (p *compiler) logs() {
	p.program.logs = map[string]*logRule{}
	for _, name := range sorted(p.spec.Logs) {
		s := p.spec.Logs[name]
		r := &logRule{name: name, on: p.roleSet(s.Position, s.On), onText: strings.Join(s.On, " or ")}
		if s.Required || s.RequiredWith != nil {
			r.missing, r.with = p.rule("log.missing", name, "", s.Position), p.roleSet(s.Position, s.RequiredWith)
		}
		if s.Trace || s.On != nil {
			r.trace = p.rule("log.trace", name, "", s.Position)
		}
		if s.On != nil {
			r.span = p.rule("log.span", name, "", s.Position)
		}
		if s.Of != nil {
			r.count = p.rule("log.count", name, "", s.Position)
			r.of, r.when = p.roleSet(s.Position, s.Of.Role), p.condition(s.Of.When, false)
			p.program.logged = append(p.program.logged, r)
		}
		for _, key := range sorted(s.Attributes) {
			a := s.Attributes[key]
			if a.RequiredIf != nil || a.RequiredIff != nil {
				p.failf(a.Position, "%s: conditions are about spans, a log record is none", key)
			}
			r.attributes = append(r.attributes, p.attribute(name, key, a))
		}
		p.program.logs[name] = r
	}
}

// checkLog checks one log record, except for its span, which may come later.
func (k *Checker) checkLog(l *capture.Log) {
	name := cmp.Or(l.EventName, "log")
	r := k.contract.program.logs[l.EventName]
	if r == nil {
		r = &logRule{}
	} else {
		k.seenLogs[l.EventName] = true
		k.owed.wrote(r, l)
	}
	k.checkOrigin(l.Resource, l.Scope)
	k.checkAttributes(name, l.Attributes)
	k.checkRules(name, l.Attributes, r.attributes)
	if k.contract.program.forbid.value != nil {
		k.searchValue(-1, name, "the body", l.Body)
	}
	at := place{time: l.Time, trace: l.TraceID, span: l.SpanID}
	if r.trace != nil {
		k.test(r.trace)
		if !l.TraceID.IsValid() || !l.SpanID.IsValid() {
			k.findAt(r.trace, at, "", "", func(f *Finding) {
				f.Message = fmt.Sprintf("a record of %s belongs to no span", name)
				f.Expected, f.Found = "the identifiers of a trace and a span", "none"
			})
			return
		}
	}
	if r.span != nil && len(k.logSpans) < maxRemembered {
		k.logSpans = append(k.logSpans, logSpan{r, spanRef{l.TraceID, l.SpanID}, l.Time})
	}
}

// logSpan is a log record whose span is looked for at the end.
type logSpan struct {
	rule *logRule
	on   spanRef
	time time.Time
}

// judgeLogs checks what is known of log records at the end.
func (k *Checker) judgeLogs() {
	k.judgeOwedLogs()
	for _, l := range k.logSpans {
		r := l.rule
		k.test(r.span)
		if k.seen.rolesOf(l.on)&r.on == 0 {
			k.findAt(r.span, place{time: l.time, trace: l.on.trace, span: l.on.span}, "", "", func(f *Finding) {
				f.Message = fmt.Sprintf("a record of %s belongs to no %s span", r.name, r.onText)
				f.Expected, f.Found = r.onText, "span "+l.on.span.String()
			})
		}
	}
	for _, name := range sorted(k.contract.program.logs) {
		r := k.contract.program.logs[name]
		if r.missing == nil || r.with != 0 && k.seenRoles&r.with == 0 {
			continue
		}
		k.test(r.missing)
		if !k.seenLogs[name] {
			k.findAt(r.missing, place{}, "", "", func(f *Finding) {
				f.Message = fmt.Sprintf("no log record of the event %s was emitted", name)
				f.Expected, f.Found = name, "nothing"
			})
		}
	}
}
