package spec

import (
	"fmt"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
)

// Strings is a list of text; a single one may stand without the list.
type Strings []string

// Values is a list of text, numbers and truth values (string, int64, float64,
// bool); a single one may stand without the list.
type Values []any

// Severity is how grave a finding is.
type Severity string

// Severities. Off switches a rule off.
const (
	SeverityError Severity = "error"
	SeverityWarn  Severity = "warn"
	SeverityOff   Severity = "off"
)

// Policy is what becomes of something: allow, warn or deny.
type Policy string

// Policies.
const (
	PolicyAllow Policy = "allow"
	PolicyWarn  Policy = "warn"
	PolicyDeny  Policy = "deny"
)

// Words of the short form of an [Attribute].
const (
	wordRequired  = "required"
	wordForbidden = "forbidden"
	wordOptional  = "optional"
)

// UnmarshalYAML accepts a scalar or a list.
func (s *Strings) UnmarshalYAML(node ast.Node) error {
	items, err := scalars(node)
	if err != nil {
		return err
	}
	*s = make(Strings, 0, len(items))
	for i, item := range items {
		text, ok := item.(string)
		if !ok {
			return at(nodes(node)[i], fmt.Sprintf("%v is a %s, want text: put it in quotes", item, kindOf(item)))
		}
		*s = append(*s, text)
	}
	return nil
}

// UnmarshalYAML accepts a scalar or a list.
func (v *Values) UnmarshalYAML(node ast.Node) error {
	items, err := scalars(node)
	if err != nil {
		return err
	}
	*v = items
	return nil
}

// UnmarshalYAML accepts a word or a mapping.
func (a *Attribute) UnmarshalYAML(node ast.Node) error {
	if word, ok := node.(*ast.StringNode); ok {
		switch word.Value {
		case wordRequired:
			*a = Attribute{Required: true}
		case wordForbidden:
			*a = Attribute{Forbidden: true}
		case wordOptional:
			*a = Attribute{}
		default:
			return at(node, fmt.Sprintf("%q is none of required, forbidden, optional", word.Value))
		}
		return nil
	}
	type plain Attribute
	return yaml.NodeToValue(node, (*plain)(a), yaml.Strict())
}

// UnmarshalYAML accepts a number or a mapping.
func (c *Count) UnmarshalYAML(node ast.Node) error {
	if n, ok := node.(*ast.IntegerNode); ok {
		var exactly int
		if err := yaml.NodeToValue(n, &exactly); err != nil {
			return err
		}
		*c = Count{Exactly: &exactly}
		return nil
	}
	type plain Count
	return yaml.NodeToValue(node, (*plain)(c), yaml.Strict())
}

// nodes returns the items of a list, or a single one.
func nodes(node ast.Node) []ast.Node {
	if list, ok := node.(*ast.SequenceNode); ok {
		return list.Values
	}
	return []ast.Node{node}
}

func scalars(node ast.Node) ([]any, error) {
	var values []any
	for _, n := range nodes(node) {
		if text, ok := withColon(n); ok {
			values = append(values, text)
			continue
		}
		scalar, ok := n.(ast.ScalarNode)
		if !ok {
			return nil, at(n, "want a value or a list of values")
		}
		switch v := scalar.GetValue().(type) {
		case string, bool, float64:
			values = append(values, v)
		case int64:
			values = append(values, v)
		case uint64:
			values = append(values, int64(v))
		default:
			return nil, at(n, fmt.Sprintf("%v is neither text nor a number nor a truth value", v))
		}
	}
	return values, nil
}

// withColon returns text such as builtin:email. The library takes it for a mapping
// where it stands inside braces, although no space follows the colon.
func withColon(n ast.Node) (string, bool) {
	if m, ok := n.(*ast.MappingNode); ok && len(m.Values) == 1 {
		n = m.Values[0]
	}
	pair, ok := n.(*ast.MappingValueNode)
	if !ok {
		return "", false
	}
	key, value := pair.Key.GetToken(), pair.Value.GetToken()
	if key == nil || value == nil || key.Position.Line != value.Position.Line || value.Position.Column != key.Position.Column+len(key.Value)+1 {
		return "", false
	}
	return key.Value + ":" + value.Value, true
}

func kindOf(v any) string {
	switch v.(type) {
	case bool:
		return "truth value"
	case int64, float64:
		return "number"
	default:
		return "text"
	}
}
