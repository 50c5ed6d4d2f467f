package contract

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/capture"
)

// findingKey is what makes two violations the same finding.
type findingKey struct {
	rule    int
	on, key string
}

// found is a finding and where it was made.
type found struct {
	Finding
	at place
}

// place is where something was found; the zero value is nowhere.
type place struct {
	time   time.Time
	trace  trace.TraceID
	span   trace.SpanID
	path   string
	source capture.Source
}

// before orders places in a way that does not depend on the order of a capture.
func (p *place) before(other *place) bool {
	return cmp.Or(p.time.Compare(other.time), bytes.Compare(p.trace[:], other.trace[:]), bytes.Compare(p.span[:], other.span[:])) < 0
}

// maxFindings bounds the distinct findings: keys and names of events are chosen by
// whoever records.
const maxFindings = 10_000

// test notes that a rule was applied.
func (k *Checker) test(r *rule) { k.tested[r.n]++ }

// find notes a violation by the span i, −1 for none. Of violations by the same role
// and key the earliest is told, and the others are counted.
func (k *Checker) find(r *rule, i int, key string, tell func(*Finding)) {
	k.findOn(r, i, "", key, tell)
}

// findOn is find for something on a span, such as an event, or for a rule that is
// about no role of its own.
func (k *Checker) findOn(r *rule, i int, on, key string, tell func(*Finding)) {
	if i < 0 {
		k.findAt(r, place{}, on, key, tell)
		return
	}
	if r.on == "" && on == "" {
		on = k.view.firstRole(i)
	}
	at := k.spot(i)
	if f := k.news(r, &at, on, key); f != nil {
		f.at.path = k.path(i)
		k.tell(f, r, on, key, tell)
	}
}

// findAt notes a violation at a place that is known already.
func (k *Checker) findAt(r *rule, at place, on, key string, tell func(*Finding)) {
	if f := k.news(r, &at, on, key); f != nil {
		k.tell(f, r, on, key, tell)
	}
}

// news counts a violation and returns the finding where it is to be told: it is the
// first of its kind, or earlier than that which was told.
func (k *Checker) news(r *rule, at *place, on, key string) *found {
	if r.severity == "" {
		return nil
	}
	id := findingKey{r.n, clip(on, maxKey), clip(key, maxKey)}
	f, ok := k.found[id]
	switch {
	case ok:
		f.Count++
		if !at.before(&f.at) {
			return nil
		}
	case len(k.found) >= maxFindings:
		k.omitted++
		return nil
	default:
		f = &found{Finding: Finding{Count: 1}}
		k.found[id] = f
	}
	f.at = *at
	return f
}

// Bounds of what findings repeat of telemetry.
const (
	maxKey     = 120
	maxMessage = 400
)

func (k *Checker) tell(f *found, r *rule, on, key string, tell func(*Finding)) {
	f.Finding = Finding{
		Rule: r.id, Severity: r.severity, On: clip(cmp.Or(on, r.on), maxKey), Key: clip(cmp.Or(key, r.key), maxKey),
		Contract: r.at, Count: f.Count,
		TraceID: f.at.trace, SpanID: f.at.span, Path: f.at.path, Source: f.at.source,
	}
	tell(&f.Finding)
	// Keys and names of events come from telemetry, too.
	for _, text := range []*string{&f.On, &f.Key, &f.Expected, &f.Found} {
		if *text = clip(*text, maxMessage); k.secret(*text) {
			*text = hidden
		}
	}
	if f.Message = clip(f.Message, maxMessage); k.secret(f.Message) {
		f.Message = ruleByID(r.id).Brief
	}
	f.Fix = cmp.Or(f.Fix, ruleByID(r.id).Fix)
}

// hidden stands for what a report must not repeat.
const hidden = "<hidden>"

// findings returns what was found. Where two rules of a contract say the same of the
// same thing, such as a limit for one role and one for all, the first speaks.
func (k *Checker) findings() []Finding {
	type finding struct{ rule, on, key string }
	said := map[finding]bool{}
	var all []Finding
	for _, id := range k.foundInOrder() {
		f := k.found[id].Finding
		if same := (finding{f.Rule, f.On, f.Key}); !said[same] {
			said[same] = true
			all = append(all, f)
		}
	}
	return all
}

// foundInOrder returns the findings in the order of the rules.
func (k *Checker) foundInOrder() []findingKey {
	var ids []findingKey
	for id := range k.found {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b findingKey) int {
		return cmp.Or(cmp.Compare(a.rule, b.rule), cmp.Compare(a.on, b.on), cmp.Compare(a.key, b.key))
	})
	return ids
}

// spot says where a span is, except for its path.
func (k *Checker) spot(i int) place {
	s := k.view.spans[i]
	return place{time: s.Start, trace: s.TraceID, span: s.SpanID, source: s.Source}
}

// where says where a span is.
func (k *Checker) where(i int) place {
	at := k.spot(i)
	at.path = k.path(i)
	return at
}

// Bounds of a path: deeper ones are cut in the middle, and those of a damaged trace
// that has no end are not followed to their root.
const (
	maxPathNames = 12
	maxDepth     = 1000
)

// path names a span and those above it, from the root on.
func (k *Checker) path(i int) string {
	v := &k.view
	var names []string
	last, depth := i, 0
	for up := i; up >= 0 && depth < maxDepth; up = v.trace.ParentIndex(up) {
		if depth++; depth < maxPathNames {
			names = append(names, k.name(v.spans[up]))
		}
		last = up
	}
	switch {
	case depth == maxPathNames:
		names = append(names, k.name(v.spans[last]))
	case depth > maxPathNames:
		names = append(names, "…", k.name(v.spans[last]))
	}
	slices.Reverse(names)
	return strings.Join(names, " › ")
}

// name returns the name of a span for a message.
func (k *Checker) name(s *capture.Span) string {
	if k.secret(s.Name) {
		return hidden
	}
	return clip(s.Name, 80)
}

// show writes a value for a message.
func (k *Checker) show(kv *attribute.KeyValue, info *keyInfo) string {
	text := kv.Value.String()
	switch {
	case info.attr.Content, k.secret(text):
		return withheld(kv.Value)
	case kv.Value.Type() == attribute.STRING:
		return `"` + clip(text, 80) + `"`
	default:
		return clip(text, 80)
	}
}

// secret reports whether a text is nothing to repeat: a report is no place for it
// either.
func (k *Checker) secret(text string) bool {
	for _, find := range detectors {
		if find(text) >= 0 {
			return true
		}
	}
	for _, d := range k.contract.program.forbid.detectors {
		if d.find != nil && d.find(text) >= 0 {
			return true
		}
	}
	return false
}

func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}
