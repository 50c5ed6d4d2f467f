package contract

import (
	"fmt"
	"regexp"
	"strings"

	"go.opentelemetry.io/otel/attribute"

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
		p.fail(s.Position, "role %s: match is missing, so no span has the role", name)
	}
	bit := roleSet(1) << p.byRole[name]
	r.seen = p.rule("contract.unexercised", name, "", s.Position)
	r.seen.exercise, r.seen.needs = !isTrue(s.Optional), bit
	if s.Kind != nil {
		r.kind, r.kindText = p.rule("span.kind", name, "", s.Position), strings.Join(s.Kind, " or ")
		for _, k := range s.Kind {
			r.kinds |= 1 << oneOf(p, s.Position, "kind", k, kinds)
		}
	}
	if s.Name != nil {
		r.naming = p.rule("span.name", name, "", s.Position)
		for _, format := range s.Name {
			r.names = append(r.names, p.nameFormat(s.Position, format))
		}
	}
	if s.Status != nil {
		r.status, r.statusText = p.rule("span.status", name, "", s.Position), strings.Join(s.Status, " or ")
		for _, status := range s.Status {
			r.statuses |= 1 << oneOf(p, s.Position, "status", status, statuses)
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
		if r.kinds&(1<<s.Kind) == 0 {
			k.find(r.kind, i, "", func(f *Finding) {
				f.Message = fmt.Sprintf("%s span has the kind %s", r.name, s.Kind)
				f.Expected, f.Found = r.kindText, s.Kind.String()
			})
		}
	}
	if r.naming != nil {
		k.test(r.naming)
		if want, ok := matchName(v, i, r.names); !ok {
			k.find(r.naming, i, "", func(f *Finding) {
				f.Message = fmt.Sprintf("%s span is named %q", r.name, s.Name)
				f.Expected, f.Found = want, s.Name
			})
		}
	}
	if r.status != nil {
		k.test(r.status)
		if r.statuses&(1<<s.Status) == 0 {
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
}

var placeholder = regexp.MustCompile(`\{([^{}]+)\}`)

func (p *compiler) nameFormat(at spec.Position, format string) nameFormat {
	f := nameFormat{text: format}
	rest := 0
	for _, m := range placeholder.FindAllStringSubmatchIndex(format, -1) {
		f.parts = append(f.parts, format[rest:m[0]])
		f.facts = append(f.facts, p.keys.id(format[m[2]:m[3]]))
		rest = m[1]
	}
	f.parts = append(f.parts, format[rest:])
	if strings.ContainsAny(strings.Join(f.parts, ""), "{}") {
		p.fail(at, "name is %q: a brace is open", format)
	}
	return f
}

// expand puts the values of the span in, as far as it has them all.
func (f *nameFormat) expand(v *view, i int) (string, bool) {
	if len(f.facts) == 0 {
		return f.text, true
	}
	var b strings.Builder
	for j, id := range f.facts {
		kv, info := v.fact(i, id)
		if kv == nil {
			return f.text, false
		}
		b.WriteString(f.parts[j])
		b.WriteString(strings.ReplaceAll(info.text(kv.Value.String()), "*", "?"))
	}
	b.WriteString(f.parts[len(f.parts)-1])
	return b.String(), true
}

// matchName reports whether the name of a span has one of the formats, and returns
// what it should have been.
func matchName(v *view, i int, formats []nameFormat) (want string, ok bool) {
	name := strings.ReplaceAll(v.spans[i].Name, "*", "?")
	var wants []string
	for j := range formats {
		text, complete := formats[j].expand(v, i)
		if complete && newGlob(text).match(name) {
			return "", true
		}
		wants = append(wants, text)
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
		p.fail(s.Position, "parent of %s is empty: want is, within, link or root", role)
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
		p.root && up < 0,
		p.link != 0 && k.linked(i, p.link):
		return
	}
	k.find(p.rule, i, "", func(f *Finding) {
		f.Expected = p.text
		switch s := v.spans[i]; {
		case up >= 0:
			f.Found = "below " + v.describe(up)
		case s.ParentID.IsValid():
			f.Found = "its parent " + s.ParentID.String() + " is not in the trace"
		default:
			f.Found = "no parent"
		}
		f.Message = fmt.Sprintf("%s span is not %s", r.name, p.text)
	})
}

// linked reports whether a link of a span leads to one of its trace that has one
// of the roles.
func (k *Checker) linked(i int, roles roleSet) bool {
	v := &k.view
	for _, l := range v.spans[i].Links {
		if k.rolesOf(l.TraceID, l.SpanID)&roles != 0 {
			return true
		}
	}
	return false
}

// describe names a span with its role.
func (v *view) describe(i int) string {
	if role := v.firstRole(i); role != "" {
		return fmt.Sprintf("%s (%s)", v.spans[i].Name, role)
	}
	return v.spans[i].Name
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
		p.fail(s.Position, "count of %s: exactly stands alone", role)
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
		p.fail(s.Position, "count of %s: at least %d and at most %d cannot be", role, r.min, r.max)
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

// checkCount counts the spans of a role in the trace.
func (k *Checker) checkCount(r *roleRule, bit roleSet) {
	v, c := &k.view, r.count
	counts := map[int]int{} // by the span that is counted within
	total, some := 0, -1
	for i := range v.spans {
		if c.per >= 0 && v.roles[i]&(1<<c.per) != 0 {
			counts[i] += 0
		}
		if v.roles[i]&bit == 0 {
			continue
		}
		total++
		some = i
		if c.per >= 0 {
			for up := v.trace.ParentIndex(i); up >= 0; up = v.trace.ParentIndex(up) {
				if v.roles[up]&(1<<c.per) != 0 {
					counts[up]++
					break
				}
			}
		}
	}
	if c.per < 0 {
		if total > 0 {
			k.judgeCount(r, some, total)
		}
		return
	}
	for i := range v.spans {
		if n, ok := counts[i]; ok {
			k.judgeCount(r, i, n)
		}
	}
}

func (k *Checker) judgeCount(r *roleRule, i, n int) {
	c := r.count
	k.test(c.rule)
	if n >= c.min && (c.max < 0 || n <= c.max) {
		return
	}
	if n < c.min && c.unless != nil && c.unless.holds(&k.view, i) {
		return
	}
	k.find(c.rule, i, "", func(f *Finding) {
		where := "the trace"
		if c.per >= 0 {
			where = k.view.spans[i].Name
		}
		f.Message = fmt.Sprintf("%d spans of the role %s in %s", n, r.name, where)
		f.Expected, f.Found = c.text(), fmt.Sprint(n)
	})
}

// show writes a value for a message. Text is left out, because it may be a secret
// and the finding is about something else.
func show(v attribute.Value) string {
	if v.Type() == attribute.STRING {
		return fmt.Sprintf("%q", clip(v.AsString(), 80))
	}
	return clip(v.String(), 80)
}

func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}
