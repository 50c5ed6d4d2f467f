package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/genaitrace/otelgenai/contract/spec"
)

// Schema is a JSON Schema, as far as it is used here.
type Schema struct {
	Dialect              string             `json:"$schema,omitempty"`
	Title                string             `json:"title,omitempty"`
	Description          string             `json:"description,omitempty"`
	Ref                  string             `json:"$ref,omitempty"`
	AnyOf                []*Schema          `json:"anyOf,omitempty"`
	Type                 any                `json:"type,omitempty"` // a name or several
	Const                string             `json:"const,omitempty"`
	Enum                 []string           `json:"enum,omitempty"`
	Default              any                `json:"default,omitempty"`
	MinLength            int                `json:"minLength,omitempty"`
	Items                *Schema            `json:"items,omitempty"`
	Properties           map[string]*Schema `json:"properties,omitempty"`
	Required             []string           `json:"required,omitempty"`
	AdditionalProperties any                `json:"additionalProperties,omitempty"` // false or a schema
	Defs                 map[string]*Schema `json:"$defs,omitempty"`
}

// forms are what types that decode themselves accept: a struct beside its mapping,
// another type at all.
var forms = map[reflect.Type]*Schema{
	reflect.TypeFor[spec.Strings]():   scalarOrList("string"),
	reflect.TypeFor[spec.Values]():    scalarOrList("string", "number", "boolean"),
	reflect.TypeFor[spec.Attribute](): {Enum: []string{"required", "forbidden", "optional"}},
	reflect.TypeFor[spec.Count]():     {Type: "integer"},
}

func scalarOrList(types ...string) *Schema {
	scalar := &Schema{Type: types}
	if len(types) == 1 {
		scalar.Type = types[0]
	}
	return &Schema{AnyOf: []*Schema{scalar, {Type: "array", Items: scalar}}}
}

// RenderSchema returns the JSON Schema of the first of types, which is the whole
// file.
func RenderSchema(types []Type) ([]byte, error) {
	root := &Schema{
		Dialect: "https://json-schema.org/draft/2020-12/schema",
		Title:   "Observability contract " + spec.Version,
		Ref:     ref(types[0].Name).Ref,
		Defs:    map[string]*Schema{},
	}
	for i := range types {
		s, err := mapping(&types[i])
		if err != nil {
			return nil, err
		}
		root.Defs[types[i].Name] = s
	}
	for t, form := range forms {
		if t.Kind() != reflect.Struct {
			root.Defs[t.Name()] = form
		}
	}
	version := root.Defs[types[0].Name].Properties["contract"]
	version.Type, version.MinLength, version.Const = nil, 0, spec.Version

	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(root)
	return text.Bytes(), err
}

func ref(name string) *Schema { return &Schema{Ref: "#/$defs/" + name} }

// mapping returns the schema of a struct, with its short form if it has one.
func mapping(t *Type) (*Schema, error) {
	s := &Schema{Type: "object", Properties: map[string]*Schema{}, AdditionalProperties: false}
	for i := range t.Fields {
		f := &t.Fields[i]
		p, err := value(f.of, f.Words)
		if err != nil {
			return nil, fmt.Errorf("%s.%s: %w", t.Name, f.Name, err)
		}
		property := *p
		property.Description = meaning(t, f)
		property.Default = typedDefault(f)
		if f.Required {
			s.Required = append(s.Required, f.Key)
			if f.of.Kind() == reflect.String {
				property.MinLength = 1
			}
		}
		s.Properties[f.Key] = &property
	}
	if decodesItself(t.of) {
		short, ok := forms[t.of]
		if !ok {
			return nil, fmt.Errorf("%s decodes itself, and specgen does not know what it accepts: add it to the table of forms", t.Name)
		}
		s = &Schema{AnyOf: []*Schema{short, s}}
	}
	s.Description = oneLine(t.Doc)
	return s, nil
}

// value returns the schema of the values of a key. Words is their closed set.
func value(t reflect.Type, words []string) (*Schema, error) {
	switch {
	case t.Kind() == reflect.Pointer:
		return value(t.Elem(), words)
	case t.Kind() == reflect.Struct:
		return ref(t.Name()), nil
	case decodesItself(t):
		if _, ok := forms[t]; !ok {
			return nil, fmt.Errorf("the type %s decodes itself, and specgen does not know what it accepts: add it to the table of forms", t)
		}
		if words != nil {
			one := &Schema{Enum: words}
			return &Schema{AnyOf: []*Schema{one, {Type: "array", Items: one}}}, nil
		}
		return ref(t.Name()), nil
	}
	switch t.Kind() {
	case reflect.Map:
		return mapOf(t.Elem(), words)
	case reflect.Slice:
		item, err := value(t.Elem(), words)
		return &Schema{Type: "array", Items: item}, err
	case reflect.String:
		if words != nil {
			return &Schema{Enum: words}, nil
		}
		return &Schema{Type: []string{"string", "number"}}, nil
	case reflect.Bool:
		return &Schema{Type: "boolean"}, nil
	case reflect.Int:
		return &Schema{Type: "integer"}, nil
	case reflect.Float64:
		return &Schema{Type: "number"}, nil
	default:
		return nil, fmt.Errorf("specgen knows no schema for the type %s", t)
	}
}

// mapOf returns the schema of a mapping from names to t. A name may stand alone
// where a mapping is wanted: "spans: {gateway: }".
func mapOf(t reflect.Type, words []string) (*Schema, error) {
	item, err := value(t, words)
	if err != nil {
		return nil, err
	}
	if t.Kind() == reflect.Struct || t.Kind() == reflect.Pointer {
		item = &Schema{AnyOf: []*Schema{item, {Type: "null"}}}
	}
	return &Schema{Type: "object", AdditionalProperties: item}, nil
}

func typedDefault(f *Field) any {
	if f.Default == "" {
		return nil
	}
	if n, err := strconv.Atoi(f.Default); err == nil && f.of.Kind() == reflect.Int {
		return n
	}
	return f.Default
}

func oneLine(doc string) string { return strings.Join(strings.Fields(doc), " ") }
