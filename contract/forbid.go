package contract

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/attribute"

	"github.com/genaitrace/otelgenai/capture"
	"github.com/genaitrace/otelgenai/contract/spec"
)

// forbidRule says what must not be recorded.
type forbidRule struct {
	content, attribute, span, value, length, eventLength *rule

	spans     globs
	detectors []detector

	maxLength, maxEventLength int
}

func (p *compiler) forbid() {
	s := p.spec.Forbid
	f := forbidRule{spans: newGlobs(s.Spans), maxLength: s.Length, maxEventLength: s.EventLength}
	p.notNegative(p.at("forbid", "length"), "length", s.Length)
	p.notNegative(p.at("forbid", "event_length"), "event_length", s.EventLength)
	on := func(set bool, key, id string) *rule {
		if !set {
			return nil
		}
		return p.rule(id, "", "", p.at("forbid", key))
	}
	f.content = on(s.Content, "content", "forbid.content")
	f.attribute = on(s.Attributes != nil, "attributes", "forbid.attribute")
	f.span = on(s.Spans != nil, "spans", "forbid.span")
	f.value = on(s.Values != nil, "values", "forbid.value")
	f.length = on(s.Length > 0, "length", "forbid.length")
	f.eventLength = on(s.EventLength > 0, "event_length", "forbid.length")
	for _, name := range s.Values {
		f.detectors = append(f.detectors, p.detector(p.atValue(name), name))
	}
	p.program.forbid = f
}

// atValue returns where a value is forbidden: files add to the list.
func (p *compiler) atValue(name string) spec.Position {
	for _, f := range slices.Backward(p.files) {
		if i := slices.Index(f.Contract.Forbid.Values, name); i >= 0 {
			return f.At("forbid", "values", strconv.Itoa(i))
		}
	}
	return spec.Position{}
}

func (p *compiler) detector(at spec.Position, name string) detector {
	if pattern, ok := strings.CutPrefix(name, "/"); ok && strings.HasSuffix(pattern, "/") && len(pattern) > 1 {
		re, err := regexp.Compile(strings.TrimSuffix(pattern, "/"))
		if err != nil {
			p.failf(at, "values: %s: %v", name, err)
			return detector{}
		}
		return detector{name, func(s string) int {
			if at := re.FindStringIndex(s); at != nil {
				return at[0]
			}
			return -1
		}}
	}
	find := oneOf(p, at, "values", strings.TrimPrefix(name, builtinPrefix), detectors)
	return detector{strings.TrimPrefix(name, builtinPrefix), find}
}

// carrier says what an attribute stands on.
type carrier int8

const (
	ownAttribute    carrier = iota // a span, a point of a metric, a log record
	innerAttribute                 // an event or a link of a span
	originAttribute                // a resource or a scope
)

// checkForbidden checks one attribute.
func (k *Checker) checkForbidden(i int, on string, kv *attribute.KeyValue, info *keyInfo, carried carrier) {
	f := &k.contract.program.forbid
	if f.content != nil {
		k.test(f.content)
		if info.content {
			k.findOn(f.content, i, on, string(kv.Key), func(found *Finding) {
				found.Message = fmt.Sprintf("%s is recorded, which may hold the text of a user", kv.Key)
				found.Expected, found.Found = "nothing", withheld(kv.Value)
			})
		}
	}
	if f.attribute != nil {
		k.test(f.attribute)
		if info.banned {
			k.findOn(f.attribute, i, on, string(kv.Key), func(found *Finding) {
				found.Message = fmt.Sprintf("%s is recorded, which the contract forbids", kv.Key)
				found.Expected, found.Found = "nothing", withheld(kv.Value)
			})
		}
	}
	length, most := f.length, f.maxLength
	switch {
	case carried == originAttribute:
		length = nil // they are sent once, and a command line is long
	case carried == innerAttribute && f.eventLength != nil:
		length, most = f.eventLength, f.maxEventLength
	}
	if length != nil {
		k.test(length)
		if n := textSize(kv.Value); n > most {
			k.findOn(length, i, on, string(kv.Key), func(found *Finding) {
				found.Message = fmt.Sprintf("%s has %d bytes", kv.Key, n)
				found.Expected, found.Found = fmt.Sprintf("at most %d bytes", most), fmt.Sprintf("%d bytes", n)
			})
		}
	}
	if f.value != nil && !info.skip {
		k.searchValue(i, on, string(kv.Key), kv.Value)
	}
}

// checkOrigin checks what a span, a metric or a log record was recorded by. Many
// share one, which is checked once.
func (k *Checker) checkOrigin(resource *capture.Resource, scope *capture.Scope) {
	if resource != nil && k.isNew(resource) {
		k.checkAll("resource", resource.Attributes)
	}
	if scope != nil && k.isNew(scope) {
		k.checkAll("scope", scope.Attributes)
	}
}

func (k *Checker) isNew(origin any) bool {
	if origin == k.lastOrigin[0] || origin == k.lastOrigin[1] {
		return false
	}
	k.lastOrigin = [2]any{k.lastOrigin[1], origin}
	if _, ok := k.origins[origin]; ok {
		return false
	}
	if len(k.origins) >= maxInfos {
		clear(k.origins)
	}
	k.origins[origin] = struct{}{}
	return true
}

func (k *Checker) checkAll(on string, attributes capture.Attributes) {
	for j := range attributes {
		k.checkForbidden(-1, on, &attributes[j], k.view.cache.get(attributes[j].Key), originAttribute)
	}
}

// searchValue looks for personal data and secrets in a value, however deep.
func (k *Checker) searchValue(i int, on, key string, v attribute.Value) {
	switch v.Type() {
	case attribute.STRING:
		k.searchText(i, on, key, v.AsString())
	case attribute.STRINGSLICE:
		for _, s := range v.AsStringSlice() {
			k.searchText(i, on, key, s)
		}
	case attribute.BYTESLICE:
		k.searchText(i, on, key, string(v.AsByteSlice()))
	case attribute.SLICE:
		for _, item := range v.AsSlice() {
			k.searchValue(i, on, key, item)
		}
	case attribute.MAP:
		for _, kv := range v.AsMap() {
			k.searchValue(i, on, key+"."+string(kv.Key), kv.Value)
		}
	}
}

// searchText never repeats what it found: a report is no place for it either.
func (k *Checker) searchText(i int, on, key, s string) {
	f := &k.contract.program.forbid
	k.test(f.value)
	if len(s) < minSecret {
		return
	}
	if _, ok := k.clean[s]; ok {
		return
	}
	for _, d := range f.detectors {
		at := d.find(s)
		if at < 0 {
			continue
		}
		k.findOn(f.value, i, on, key, func(found *Finding) {
			found.Message = fmt.Sprintf("%s holds something that looks like %s", key, d.label())
			found.Expected, found.Found = "nothing of the kind", fmt.Sprintf("one at byte %d of %d", at, len(s))
		})
		return
	}
	if len(s) <= maxClean && len(k.clean) < maxInfos {
		k.clean[strings.Clone(s)] = struct{}{} // s may be a part of a large buffer
	}
}

const (
	minSecret = 6  // the shortest thing that is looked for is a@b.cd
	maxClean  = 64 // the longest text that is remembered as clean
)

// checkForbiddenSpan checks the name and the status of a span.
func (k *Checker) checkForbiddenSpan(i int, s *capture.Span) {
	f := &k.contract.program.forbid
	if f.span != nil {
		k.test(f.span)
		if f.spans.match(s.Name) {
			k.find(f.span, i, "", func(found *Finding) {
				found.Message = fmt.Sprintf("the span %s is recorded, which the contract forbids", k.name(s))
				found.Expected, found.Found = "nothing", k.name(s)
			})
		}
	}
	k.checkForbiddenName(i, "the name", s.Name)
	k.checkForbiddenName(i, "the status message", s.StatusMessage)
}

// checkForbiddenName searches text that is no attribute.
func (k *Checker) checkForbiddenName(i int, what, s string) {
	if k.contract.program.forbid.value != nil && s != "" {
		k.searchText(i, "", what, s)
	}
}

// textSize is the size of a value that can be long, and zero for a number.
func textSize(v attribute.Value) int {
	switch v.Type() {
	case attribute.INT64, attribute.FLOAT64, attribute.BOOL:
		return 0
	case attribute.STRING:
		return len(v.AsString())
	default:
		return valueSize(v)
	}
}

// valueSize is what a value holds in bytes.
func valueSize(v attribute.Value) int {
	switch v.Type() {
	case attribute.STRING:
		return len(v.AsString())
	case attribute.BOOL:
		return 1
	case attribute.INT64, attribute.FLOAT64:
		return 8
	case attribute.STRINGSLICE:
		n := 0
		for _, s := range v.AsStringSlice() {
			n += len(s)
		}
		return n
	case attribute.SLICE:
		n := 0
		for _, item := range v.AsSlice() {
			n += valueSize(item)
		}
		return n
	case attribute.MAP:
		return attributesSize(v.AsMap())
	case attribute.BYTESLICE:
		return len(v.AsByteSlice())
	case attribute.INT64SLICE:
		return 8 * len(v.AsInt64Slice())
	case attribute.FLOAT64SLICE:
		return 8 * len(v.AsFloat64Slice())
	case attribute.BOOLSLICE:
		return len(v.AsBoolSlice())
	default:
		return 0
	}
}
