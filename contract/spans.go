package contract

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/genaitrace/otelgenai/contract/spec"
)

// roleRule is what holds for the spans of one role.
type roleRule struct {
	name  string
	match *condition
	seen  *rule

	kind     *rule
	kinds    uint8
	kindText string

	naming *rule
	names  []nameFormat

	status     *rule
	statuses   uint8
	statusText string

	parent *parentRule
	count  *countRule

	attributes []attributeRule
	events     *eventRules
}

func (p *compiler) role(name string, s spec.Span) roleRule {
	r := roleRule{name: name, match: p.condition(s.Match, true)}
	if s.Match == nil {
		hint := ""
		if _, ok := p.spec.Spans["match"]; ok {
			hint = "; match is indented as a role is: indent it below " + name
		}
		p.failf(s.Position, "role %s: match is missing, so no span has the role%s", name, hint)
	}
	bit := roleSet(1) << p.byRole[name]
	r.seen = p.rule("contract.unexercised", name, "", s.Position)
	r.seen.exercise, r.seen.needs = !isTrue(s.Optional), bit
	if s.Kind != nil {
		r.kind, r.kindText = p.rule("span.kind", name, "", s.Position), strings.Join(s.Kind, " or ")
		for _, k := range s.Kind {
			r.kinds |= kindBit(oneOf(p, p.at("spans", name, "kind"), "kind", k, kinds))
		}
	}
	if s.Name != nil {
		r.naming = p.rule("span.name", name, "", s.Position)
		for _, format := range s.Name {
			r.names = append(r.names, p.nameFormat(p.at("spans", name, "name"), format))
		}
	}
	if s.Status != nil {
		r.status, r.statusText = p.rule("span.status", name, "", s.Position), strings.Join(s.Status, " or ")
		for _, status := range s.Status {
			r.statuses |= statusBit(oneOf(p, p.at("spans", name, "status"), "status", status, statuses))
		}
	}
	r.parent = p.parent(name, s.Parent)
	r.count = p.count(name, s.Count)
	for _, key := range sorted(s.Attributes) {
		r.attributes = append(r.attributes, p.attribute(name, key, s.Attributes[key]))
	}
	r.events = p.events(name, s.Events)
	return r
}

// checkRole checks one span of a role.
func (k *Checker) checkRole(r *roleRule, i int) {
	v, s := &k.view, k.view.spans[i]
	k.test(r.seen)
	if r.kind != nil {
		k.test(r.kind)
		if r.kinds&kindBit(s.Kind) == 0 {
			k.find(r.kind, i, "", func(f *Finding) {
				f.Message = fmt.Sprintf("%s span has the kind %s", r.name, s.Kind)
				f.Expected, f.Found = r.kindText, s.Kind.String()
			})
		}
	}
	if r.naming != nil {
		k.test(r.naming)
		if want, ok := k.matchName(i, r.names); !ok {
			k.find(r.naming, i, "", func(f *Finding) {
				f.Message = fmt.Sprintf("%s span is named %q", r.name, k.name(s))
				f.Expected, f.Found = want, k.name(s)
			})
		}
	}
	if r.status != nil {
		k.test(r.status)
		if r.statuses&statusBit(s.Status) == 0 {
			k.find(r.status, i, "", func(f *Finding) {
				f.Message = fmt.Sprintf("%s span has the status %s", r.name, s.Status)
				f.Expected, f.Found = r.statusText, s.Status.String()
			})
		}
	}
	if r.parent != nil {
		k.checkParent(r, i)
	}
	for a := range r.attributes {
		kv, info := v.fact(i, r.attributes[a].id)
		k.checkAttribute(&r.attributes[a], i, r.name, kv, info)
	}
	if r.events != nil {
		k.checkEvents(r, i)
	}
}

// nameFormat is a format of a span's name: globs, and the values of facts.
type nameFormat struct {
	text  string
	parts []string // text, with a fact after each but the last
	facts []keyID
	whole glob // of text, where there are no facts
	plain bool // text has no star
}

var placeholder = regexp.MustCompile(`\{([^{}]+)\}`)

func (p *compiler) nameFormat(at spec.Position, format string) nameFormat {
	f := nameFormat{text: format, whole: newGlob(format), plain: !strings.Contains(format, "*")}
	rest := 0
	for _, m := range placeholder.FindAllStringSubmatchIndex(format, -1) {
		f.parts = append(f.parts, format[rest:m[0]])
		f.facts = append(f.facts, p.key(at, format[m[2]:m[3]]))
		rest = m[1]
	}
	f.parts = append(f.parts, format[rest:])
	if strings.ContainsAny(strings.Join(f.parts, ""), "{}") {
		p.failf(at, "name is %q: a brace is open", format)
	}
	return f
}

// matches reports whether the span is named so. A format with a fact that the span
// does not have matches nothing.
func (f *nameFormat) matches(v *view, i int) bool {
	name := v.spans[i].Name
	switch {
	case len(f.facts) == 0:
		return f.whole.match(name)
	case f.plain:
		for j, id := range f.facts {
			kv, info := v.fact(i, id)
			if kv == nil {
				return false
			}
			var ok bool
			if name, ok = strings.CutPrefix(name, f.parts[j]); !ok {
				return false
			}
			if name, ok = strings.CutPrefix(name, info.text(kv.Value.String())); !ok {
				return false
			}
		}
		return name == f.parts[len(f.parts)-1]
	default:
		// A star in a value stands for itself.
		text, ok := f.expand(v, i, func(s string) string { return strings.ReplaceAll(s, "*", "\x00") })
		return ok && newGlob(text).match(strings.ReplaceAll(name, "*", "\x00"))
	}
}

// expand puts the values of the span in; false where it lacks one.
func (f *nameFormat) expand(v *view, i int, escape func(string) string) (string, bool) {
	var b strings.Builder
	for j, id := range f.facts {
		kv, info := v.fact(i, id)
		if kv == nil {
			return "", false
		}
		b.WriteString(f.parts[j])
		b.WriteString(escape(info.text(kv.Value.String())))
	}
	b.WriteString(f.parts[len(f.parts)-1])
	return b.String(), true
}

// matchName reports whether the name of a span has one of the formats, and returns
// what it should have been.
func (k *Checker) matchName(i int, formats []nameFormat) (want string, ok bool) {
	for j := range formats {
		if formats[j].matches(&k.view, i) {
			return "", true
		}
	}
	var wants []string
	for j := range formats {
		text, complete := formats[j].expand(&k.view, i, func(s string) string { return s })
		if !complete || k.secret(text) {
			text = formats[j].text
		}
		wants = append(wants, clip(text, 120))
	}
	return strings.Join(wants, " or "), false
}

// parentRule says where in the tree a span must be.
type parentRule struct {
	*rule
	is, within roleSet
	link       roleSet
	root       bool
	text       string
}

func (p *compiler) parent(role string, s *spec.Parent) *parentRule {
	if s == nil {
		return nil
	}
	r := &parentRule{
		rule: p.rule("span.parent", role, "", s.Position),
		is:   p.roleSet(s.Position, s.Is), within: p.roleSet(s.Position, s.Within),
		link: p.roleSet(s.Position, s.Link), root: s.Root,
	}
	var parts []string
	for _, part := range []struct {
		text  string
		roles spec.Strings
	}{{"below ", s.Is}, {"inside ", s.Within}, {"linked to ", s.Link}} {
		if part.roles != nil {
			parts = append(parts, part.text+strings.Join(part.roles, " or "))
		}
	}
	if s.Root {
		parts = append(parts, "a root")
	}
	r.text = strings.Join(parts, ", or ")
	if r.text == "" {
		p.failf(s.Position, "parent of %s is empty: want is, within, link or root", role)
	}
	return r
}

func (k *Checker) checkParent(r *roleRule, i int) {
	v, p := &k.view, r.parent
	k.test(p.rule)
	up := v.trace.ParentIndex(i)
	switch {
	case p.is != 0 && up >= 0 && v.roles[up]&p.is != 0,
		p.within != 0 && v.above[i]&p.within != 0,
		p.root && up < 0:
		return
	}
	links := linksOf(v.spans[i])
	if p.link == 0 || links == nil || len(k.linked) >= maxOrphans && !k.seen.anyHas(links, p.link) {
		k.find(p.rule, i, "", func(f *Finding) { p.misplaced(f, r.name, k.above(i)) })
	} else if len(k.linked) < maxOrphans {
		k.linked = append(k.linked, linkedSpan{p, r.name, k.where(i), k.above(i), links})
	}
}

// above says what a span stands below.
func (k *Checker) above(i int) string {
	s := k.view.spans[i]
	if up := k.view.trace.ParentIndex(i); up >= 0 {
		return "below " + k.describe(up)
	}
	if s.ParentID.IsValid() {
		return "its parent " + s.ParentID.String() + " is not in the trace"
	}
	return "no parent"
}

func (p *parentRule) misplaced(f *Finding, role, found string) {
	f.Message = fmt.Sprintf("%s span is not %s", role, p.text)
	f.Expected, f.Found = p.text, found
}

// linkedSpan is a span that stands at the right place if one of its links leads to
// the right role, which is known for certain at the end.
type linkedSpan struct {
	rule  *parentRule
	role  string
	at    place
	found string
	links []spanRef
}

func (k *Checker) judgeLinked() {
	for _, l := range k.linked {
		if !k.seen.anyHas(l.links, l.rule.link) {
			k.findAt(l.rule.rule, l.at, "", "", func(f *Finding) { l.rule.misplaced(f, l.role, l.found) })
		}
	}
}

// describe names a span with its role.
func (k *Checker) describe(i int) string {
	name := k.name(k.view.spans[i])
	if role := k.view.firstRole(i); role != "" {
		return fmt.Sprintf("%s (%s)", name, role)
	}
	return name
}

// countRule says how many spans of a role there are.
type countRule struct {
	*rule
	per      int // the role whose spans are counted within; −1 for the trace
	perName  string
	min, max int
	unless   *condition
}

func (p *compiler) count(role string, s *spec.Count) *countRule {
	if s == nil {
		return nil
	}
	r := &countRule{rule: p.rule("span.count", role, "", s.Position), per: -1, perName: "trace", max: -1, unless: p.condition(s.Unless, false)}
	if s.Per != "" && s.Per != "trace" {
		r.per, r.perName = p.roleIndex(s.Position, s.Per), s.Per
	}
	switch {
	case s.Exactly != nil && (s.Min != nil || s.Max != nil):
		p.failf(s.Position, "count of %s: exactly stands alone", role)
	case s.Exactly != nil:
		r.min, r.max = *s.Exactly, *s.Exactly
	default:
		if s.Min != nil {
			r.min = *s.Min
		}
		if s.Max != nil {
			r.max = *s.Max
		}
	}
	if r.min < 0 || r.max >= 0 && r.max < r.min {
		p.failf(s.Position, "count of %s: at least %d and at most %d cannot be", role, r.min, r.max)
	}
	return r
}

func (c *countRule) text() string {
	switch {
	case c.max < 0:
		return fmt.Sprintf("at least %d", c.min)
	case c.min == c.max:
		return fmt.Sprintf("exactly %d", c.min)
	case c.min == 0:
		return fmt.Sprintf("at most %d", c.max)
	default:
		return fmt.Sprintf("%d to %d", c.min, c.max)
	}
}

// checkCount counts the spans of a role in the trace, or in each span of another
// role: those to which it is the next above.
func (k *Checker) checkCount(r *roleRule, bit roleSet) {
	v, c := &k.view, r.count
	if c.per >= 0 {
		k.checkCountPer(r, bit)
		return
	}
	first, total := -1, 0
	if v.any&bit != 0 {
		for i := range v.spans {
			if v.roles[i]&bit == 0 {
				continue
			}
			if total++; first < 0 {
				first = i
			}
		}
		k.judgeCount(r, first, total)
	}
}

func (k *Checker) checkCountPer(r *roleRule, bit roleSet) {
	v, per := &k.view, r.count.per
	if v.any&(1<<per) == 0 {
		return
	}
	over := v.nearest(per)
	k.first = resize(k.first, len(v.spans))
	for i := range v.spans {
		if up := over[i]; up >= 0 && v.roles[i]&bit != 0 {
			k.first[up]++
		}
	}
	for i, n := range k.first {
		if v.roles[i]&(1<<per) != 0 {
			k.judgeCount(r, i, int(n))
		}
	}
}

func (k *Checker) judgeCount(r *roleRule, i, n int) {
	c := r.count
	k.test(c.rule)
	if n >= c.min && (c.max < 0 || n <= c.max) {
		return
	}
	if c.unless != nil && c.unless.holds(&k.view, i) {
		return
	}
	k.find(c.rule, i, "", func(f *Finding) {
		where := "the trace"
		if c.per >= 0 {
			where = k.name(k.view.spans[i])
		}
		f.Message = fmt.Sprintf("%s of the role %s in %s", count(n, "span"), r.name, where)
		f.Expected, f.Found = c.text(), fmt.Sprint(n)
	})
}
