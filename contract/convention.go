package contract

import (
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
	if _, ok := semconv.LookupSpan(s.Name); ok {
		id.name = s.Name
	}
	id.operation = s.Attributes.String("gen_ai.operation.name")
	if id.operation == "" {
		id.operation = s.Attributes.String(semconv.AIOperationKey)
	}
	id.role = s.Attributes.String(semconv.GenAISpanRoleKey)
	id.mcp = s.Attributes.Has("mcp.method.name")
	if found, ok := k.recognized[id]; ok {
		return found, found != nil
	}
	var found *semconv.Span
	if t, ok := semconv.RecognizeSpan(s.Name, s.Kind, s.Attributes.Get); ok {
		found = &t
	}
	if len(k.recognized) < maxInfos {
		k.recognized[id] = found
	}
	return found, found != nil
}

// hasSpelling reports whether a span has an attribute, however spelled.
func (k *Checker) hasSpelling(i int, key attribute.Key) bool {
	s := k.view.spans[i]
	if s.Attributes.Has(key) {
		return true
	}
	canonical, _ := canonicalKey(key)
	for j := range s.Attributes {
		if k.view.cache.get(s.Attributes[j].Key).canonical == canonical {
			return true
		}
	}
	return false
}
