package contract

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/attribute"

	"github.com/genaitrace/otelgenai/contract/spec"
	"github.com/genaitrace/otelgenai/semconv"
)

// attributeRule is what holds for one attribute of a role, an event, a metric or a
// log record.
type attributeRule struct {
	id  keyID
	key string
	on  string // what carries it, for messages

	missing    *rule // nil where it need not be there
	requiredIf *condition
	unexpected *rule // nil where it may be there
	allowedIf  *condition

	typing *rule
	typ    semconv.Type

	value  *rule
	values []valueTest
	text   string

	bounds   *rule
	min, max float64
}

func (p *compiler) attribute(on, key string, a spec.Attribute) attributeRule {
	r := attributeRule{id: p.keys.id(key), key: key, on: on}
	given := 0
	for _, set := range []bool{a.Required, a.RequiredIf != nil, a.RequiredIff != nil, a.Forbidden} {
		if set {
			given++
		}
	}
	if given > 1 {
		p.failf(a.Position, "%s: only one of required, required_if, required_iff and forbidden can be said", key)
	}
	if a.Required || a.RequiredIf != nil || a.RequiredIff != nil {
		r.missing = p.rule("attribute.missing", on, key, a.Position)
	}
	if a.Forbidden || a.RequiredIff != nil {
		r.unexpected = p.rule("attribute.unexpected", on, key, a.Position)
	}
	r.requiredIf = p.condition(a.RequiredIf, false)
	if a.RequiredIff != nil {
		r.requiredIf = p.condition(a.RequiredIff, false)
		r.allowedIf = r.requiredIf
	}
	p.attributeType(&r, on, a)
	p.attributeValue(&r, on, a)
	return r
}

// attributeType holds the type of a key that the vocabulary does not know; those
// it knows are checked wherever they stand.
func (p *compiler) attributeType(r *attributeRule, on string, a spec.Attribute) {
	known, ok := semconv.Lookup(attribute.Key(r.key))
	switch {
	case a.Type != "":
		t := oneOf(p, a.Position, "type", a.Type, types)
		if ok && t != known.Type && (t != semconv.TypeString || known.Type != semconv.TypeEnum && known.Type != semconv.TypeTemplate) {
			p.failf(a.Position, "%s is %s in the vocabulary, not %s", r.key, known.Type, a.Type)
		}
		r.typ, r.typing = t, p.rule("attribute.type", on, r.key, a.Position)
	case ok:
		r.typ = known.Type
	default:
		p.key(a.Position, r.key)
	}
	if ok && a.Unit != "" && known.Unit != a.Unit {
		p.failf(a.Position, "%s has the unit %q in the vocabulary, not %q", r.key, known.Unit, a.Unit)
	}
}

func (p *compiler) attributeValue(r *attributeRule, on string, a spec.Attribute) {
	if a.Range != nil {
		if len(a.Range) != 2 || a.Range[0] > a.Range[1] {
			p.failf(a.Position, "%s: range is a lowest and a highest number, such as [0, 60000]", r.key)
			return
		}
		// The range speaks of the key as it is written here, values are compared in the
		// canonical spelling.
		factor := p.keys.info(attribute.Key(r.key)).factor
		r.bounds, r.min, r.max = p.rule("attribute.range", on, r.key, a.Position), a.Range[0]*factor, a.Range[1]*factor
	}
	values := a.Value
	switch a.Members {
	case "", "open":
	case "closed":
		canonical, _ := canonicalKey(attribute.Key(r.key))
		known, _ := semconv.Lookup(canonical)
		if len(known.Members) == 0 {
			p.failf(a.Position, "%s: members is closed, and the vocabulary has no members of it", r.key)
		}
		for _, m := range known.Members {
			values = append(values, m.Value)
		}
	default:
		p.failf(a.Position, "%s: members is %q, want open or closed", r.key, a.Members)
	}
	if values != nil {
		r.value, r.values = p.rule("attribute.value", on, r.key, a.Position), p.valueTests(r.key, values)
		var words []string
		for _, v := range values {
			words = append(words, fmt.Sprint(v))
		}
		r.text = strings.Join(words, " or ")
	}
}

// checkAttribute checks one attribute of the span i, or of one of its events.
func (k *Checker) checkAttribute(r *attributeRule, i int, on string, kv *attribute.KeyValue, info *keyInfo) {
	v := &k.view
	if kv == nil {
		if r.missing != nil && r.requiredIf.holds(v, i) {
			k.test(r.missing)
			k.find(r.missing, i, "", func(f *Finding) { missing(f, r, on) })
		}
		return
	}
	if r.missing != nil {
		k.test(r.missing)
	}
	if r.unexpected != nil {
		k.test(r.unexpected)
		if r.allowedIf == nil || !r.allowedIf.holds(v, i) {
			k.find(r.unexpected, i, "", func(f *Finding) {
				f.Message = fmt.Sprintf("%s has %s", on, kv.Key)
				f.Expected, f.Found = "no "+r.key, k.show(kv, info)
			})
		}
	}
	k.checkValue(r, i, on, kv, info)
}

func missing(f *Finding, r *attributeRule, on string) {
	f.Message = fmt.Sprintf("%s has no %s", on, r.key)
	f.Expected, f.Found = r.key, "nothing"
	if canonical, _ := canonicalKey(attribute.Key(r.key)); string(canonical) != r.key {
		f.Expected += " or " + string(canonical)
	}
}

// checkValue checks what an attribute holds.
func (k *Checker) checkValue(r *attributeRule, i int, on string, kv *attribute.KeyValue, info *keyInfo) {
	if r.typing != nil {
		k.test(r.typing)
		if !holds(kv.Value, r.typ) {
			k.find(r.typing, i, "", func(f *Finding) { k.wrongType(f, on, kv, info, r.typ) })
		}
	}
	if r.bounds != nil {
		k.test(r.bounds)
		if n, ok := number(kv.Value, info.factor); ok && (n < r.min || n > r.max || n != n) {
			k.find(r.bounds, i, "", func(f *Finding) {
				f.Message = fmt.Sprintf("%s of %s is out of range", kv.Key, on)
				f.Expected, f.Found = between(r.min/info.factor, r.max/info.factor), k.show(kv, info)
			})
		}
	}
	if r.value != nil {
		k.test(r.value)
		if !everyValue(r.values, info, kv.Value) {
			k.find(r.value, i, "", func(f *Finding) {
				f.Message = fmt.Sprintf("%s of %s is not allowed", kv.Key, on)
				f.Expected, f.Found = r.text, k.show(kv, info)
			})
		}
	}
}

func (k *Checker) wrongType(f *Finding, on string, kv *attribute.KeyValue, info *keyInfo, want semconv.Type) {
	f.Message = fmt.Sprintf("%s of %s is of the type %s", kv.Key, on, typeOf(kv.Value))
	f.Expected, f.Found = string(want), typeOf(kv.Value)+" "+k.show(kv, info)
}

// among lists words that there are to choose from.
func among(words []string) string {
	return cmp.Or(strings.Join(words, " or "), "none")
}

func between(lowest, highest float64) string {
	return strconv.FormatFloat(lowest, 'g', 12, 64) + " to " + strconv.FormatFloat(highest, 'g', 12, 64)
}

// withheld says of a value what can be said without it.
func withheld(v attribute.Value) string {
	return fmt.Sprintf("a value of the type %s with %d bytes", typeOf(v), valueSize(v))
}

// wordRules hold for every attribute of every span, whatever its role: the
// vocabulary is the contract.
type wordRules struct {
	typing, empty, negative, unknown, misspelt, deprecated, convention *rule
}

func (p *compiler) words() {
	rule := func(id string) *rule { return p.rule(id, "", "", spec.Position{}) }
	p.program.words = wordRules{
		typing: rule("attribute.type"), empty: rule("attribute.empty"), negative: rule("attribute.range"), unknown: rule("attribute.unknown"), misspelt: rule("attribute.misspelt"),
		deprecated: rule("attribute.deprecated"), convention: rule("convention.missing"),
	}
}

// checkWord checks one attribute against the vocabulary.
func (k *Checker) checkWord(i int, on string, kv *attribute.KeyValue, info *keyInfo) {
	w := &k.contract.program.words
	if info.known {
		k.test(w.typing)
		if !holds(kv.Value, info.attr.Type) {
			k.findOn(w.typing, i, on, string(kv.Key), func(f *Finding) { k.wrongType(f, cmp.Or(on, "the span"), kv, info, info.attr.Type) })
		}
		k.checkPlausible(i, on, kv, info)
		if info.attr.Deprecated != "" {
			k.test(w.deprecated)
			k.findOn(w.deprecated, i, on, string(kv.Key), func(f *Finding) {
				f.Message = fmt.Sprintf("%s is deprecated: %s", kv.Key, info.attr.Deprecated)
				if info.attr.Replacement != "" {
					f.Expected, f.Found = string(info.attr.Replacement), string(kv.Key)
				}
			})
		}
		return
	}
	if info.id != noKey {
		k.checkPlausible(i, on, kv, info)
		return
	}
	if !inOurs(kv.Key) {
		return
	}
	k.test(w.misspelt)
	k.test(w.unknown)
	near := k.suggest(kv.Key)
	if near == "" {
		k.findOn(w.unknown, i, on, string(kv.Key), func(f *Finding) {
			f.Message = fmt.Sprintf("the vocabulary has no attribute %s", kv.Key)
			f.Expected, f.Found = "a key of the vocabulary", string(kv.Key)
		})
		return
	}
	k.findOn(w.misspelt, i, on, string(kv.Key), func(f *Finding) {
		f.Message = fmt.Sprintf("the vocabulary has no attribute %s, did you mean %s?", kv.Key, near)
		f.Expected, f.Found = string(near), string(kv.Key)
	})
}

// checkPlausible finds the two ways in which an unknown value is written as a known
// one: an empty text, and a quantity below zero.
func (k *Checker) checkPlausible(i int, on string, kv *attribute.KeyValue, info *keyInfo) {
	w := &k.contract.program.words
	switch kv.Value.Type() {
	case attribute.STRING:
		// An empty url.query and the like say something.
		if info.attr.Origin == semconv.OriginGeneral && info.id == noKey {
			return
		}
		k.test(w.empty)
		if kv.Value.AsString() == "" {
			k.findOn(w.empty, i, on, string(kv.Key), func(f *Finding) {
				f.Message = fmt.Sprintf("%s is empty", kv.Key)
				f.Expected, f.Found = "a value, or no attribute", `""`
			})
		}
	case attribute.INT64, attribute.FLOAT64:
		if info.attr.Unit == "" {
			return
		}
		k.test(w.negative)
		if n, _ := number(kv.Value, 1); n < 0 || notFinite(n) {
			k.findOn(w.negative, i, on, string(kv.Key), func(f *Finding) {
				f.Message = fmt.Sprintf("%s is %s, which no quantity is", kv.Key, k.show(kv, info))
				f.Expected, f.Found = "0 or more", k.show(kv, info)
			})
		}
	}
}

// maxSuggested bounds how many unknown keys are looked up: a look-up reads the whole
// registry.
const maxSuggested = 1000

// suggest returns the key that was probably meant, empty where none is near.
func (k *Checker) suggest(key attribute.Key) attribute.Key {
	near, ok := k.suggested[key]
	if ok || len(k.suggested) >= maxSuggested || len(key) > maxKey {
		return near
	}
	if all := semconv.Suggest(string(key)); len(all) > 0 {
		near = all[0]
	}
	k.suggested[key] = near
	return near
}
