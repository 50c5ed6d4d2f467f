package contract

import (
	"fmt"

	"go.opentelemetry.io/otel/attribute"

	"github.com/genaitrace/otelgenai/capture"
	"github.com/genaitrace/otelgenai/semconv"
)

// spanType is what decides which type of span the vocabulary sees.
type spanType struct {
	name, operation, role string
	kind                  int
	mcp                   bool
}

// recognize returns the type of a span. It remembers the answers: services record
// few distinct combinations.
func (k *Checker) recognize(i int, s *capture.Span) (*semconv.Span, bool) {
	id := spanType{kind: int(s.Kind)}
	if k.knownName(s.Name) {
		id.name = s.Name
	}
	v, known := &k.view, &k.contract.program.known
	id.operation, id.role, id.mcp = v.text(i, known.operation), v.text(i, known.role), v.has(i, known.mcpMethod)
	if found, ok := k.recognized[id]; ok {
		return found, found != nil
	}
	var found *semconv.Span
	if t, ok := semconv.RecognizeSpan(s.Name, s.Kind, s.Attributes.Get); ok {
		found = &t
	}
	if len(k.recognized) < maxInfos && len(id.operation)+len(id.role) <= maxKey {
		k.recognized[id] = found
	}
	return found, found != nil
}

// knownName reports whether the vocabulary has a span of that name.
func (k *Checker) knownName(name string) bool {
	known, ok := k.names[name]
	if !ok {
		_, known = semconv.LookupSpan(name)
		if len(k.names) < maxInfos && len(name) <= maxKey {
			k.names[name] = known
		}
	}
	return known
}

// hasSpelling reports whether a span has an attribute, however spelled.
func (k *Checker) hasSpelling(i int, key attribute.Key) bool {
	s := k.view.spans[i]
	if s.Attributes.Has(key) {
		return true
	}
	canonical, _ := canonicalKey(key)
	if id, ok := k.contract.program.keys.ids[canonical]; ok && k.view.has(i, id) {
		return true
	}
	for j := range s.Attributes {
		if k.view.info(i, j).canonical == canonical {
			return true
		}
	}
	return false
}

// checkConvention checks what the vocabulary requires of this type of span.
func (k *Checker) checkConvention(i int, s *capture.Span) {
	r := k.contract.program.words.convention
	if r.severity == "" {
		return
	}
	kind, ok := k.recognize(i, s)
	if !ok {
		return
	}
	for n := range kind.Attributes {
		a := &kind.Attributes[n]
		if a.Level != semconv.LevelRequired {
			continue
		}
		k.test(r)
		if k.hasSpelling(i, a.Key) || !k.speaks(i) {
			continue
		}
		k.findOn(r, i, "", string(a.Key), func(f *Finding) {
			f.Message = fmt.Sprintf("%s is a span of the type %s and has no %s", k.name(s), kind.Type, a.Key)
			f.Expected, f.Found = string(a.Key), "nothing"
		})
	}
}

// speaks reports whether a span has any word of the vocabulary. One without may have
// the name of a span of this module by chance.
func (k *Checker) speaks(i int) bool {
	for j := range k.view.spans[i].Attributes {
		if attr := &k.view.info(i, j).attr; attr.Origin == semconv.OriginGenAI || attr.Origin == semconv.OriginHouse || attr.Origin == semconv.OriginAlias {
			return true
		}
	}
	return false
}
