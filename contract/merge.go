package contract

import (
	"reflect"
	"slices"
	"strings"

	"github.com/genaitrace/otelgenai/contract/spec"
)

// merge adds a contract file to a contract: what the file says wins, also where it
// says false, 0 or nothing. Roles, requests, log events and the sections that are mappings
// are merged key by key; lists marked so grow; a rule with an id replaces the one with
// the same id.
func merge(into *spec.Contract, file *spec.File) {
	m := merger{file}
	m.structs(reflect.ValueOf(into).Elem(), reflect.ValueOf(&file.Contract).Elem(), nil)
}

type merger struct{ file *spec.File }

func (m merger) structs(into, over reflect.Value, path []string) {
	for i := range into.NumField() {
		field := into.Type().Field(i)
		key := field.Tag.Get("yaml")
		m.value(into.Field(i), over.Field(i), field.Tag.Get("merge"), append(slices.Clip(path), key))
	}
}

func (m merger) value(into, over reflect.Value, how string, path []string) {
	if over.IsZero() && !m.file.Has(path...) {
		return
	}
	switch {
	case into.Kind() == reflect.Map:
		m.maps(into, over, path)
	case into.Kind() == reflect.Struct:
		m.structs(into, over, path)
	case how == "deep" && !into.IsNil() && !over.IsNil():
		merged := reflect.New(into.Type().Elem()) // what is below belongs to a file
		merged.Elem().Set(into.Elem())
		m.structs(merged.Elem(), over.Elem(), path)
		into.Set(merged)
	case how == "add":
		into.Set(reflect.ValueOf(union(into.Interface().(spec.Strings), over.Interface().(spec.Strings))))
	case into.Kind() == reflect.Slice && identity(into.Type().Elem()) != nil:
		mergeRules(into, over)
	default:
		into.Set(over)
	}
}

func (m merger) maps(into, over reflect.Value, path []string) {
	merged := reflect.MakeMap(into.Type())
	for _, key := range into.MapKeys() {
		merged.SetMapIndex(key, into.MapIndex(key))
	}
	for _, key := range over.MapKeys() {
		value := reflect.New(into.Type().Elem()).Elem()
		value.Set(over.MapIndex(key))
		below := append(slices.Clip(path), key.String())
		switch base := into.MapIndex(key); {
		case !base.IsValid():
		case value.Type() == reflect.TypeFor[spec.Span](), value.Type() == reflect.TypeFor[spec.Request](), value.Type() == reflect.TypeFor[spec.Log]():
			value.Set(base)
			m.structs(value, over.MapIndex(key), below)
		case value.Kind() == reflect.Map:
			value.Set(base)
			m.maps(value, over.MapIndex(key), below)
		}
		merged.SetMapIndex(key, value)
	}
	into.Set(merged)
}

// mergeRules appends rules; one with the identity of an earlier one takes its place.
func mergeRules(into, over reflect.Value) {
	id := identity(into.Type().Elem())
	if into.Len() == 0 {
		into.Set(over)
		return
	}
	merged := reflect.AppendSlice(reflect.MakeSlice(into.Type(), 0, into.Len()+over.Len()), into)
next:
	for i := range over.Len() {
		for j := range merged.Len() {
			if id(merged.Index(j)) == id(over.Index(i)) {
				merged.Index(j).Set(over.Index(i))
				continue next
			}
		}
		merged = reflect.Append(merged, over.Index(i))
	}
	into.Set(merged)
}

// identity returns what makes two rules of a list the same, nil for other lists.
func identity(t reflect.Type) func(reflect.Value) string {
	var fields []string
	switch t {
	case reflect.TypeFor[spec.Timing](), reflect.TypeFor[spec.SLO]():
		fields = []string{"ID"}
	case reflect.TypeFor[spec.Hop]():
		fields = []string{"From", "To"}
	case reflect.TypeFor[spec.OutlivePair]():
		fields = []string{"Child", "Parent"}
	case reflect.TypeFor[spec.Accept]():
		fields = []string{"Rule", "On", "Key"}
	case reflect.TypeFor[spec.Agree]():
		return func(v reflect.Value) string {
			a := v.Interface().(spec.Agree)
			return strings.Join(a.Keys, " ") + "\n" + strings.Join(a.Across, " ") + "\n" + a.Per
		}
	default:
		return nil
	}
	return func(v reflect.Value) string {
		var parts []string
		for _, f := range fields {
			parts = append(parts, v.FieldByName(f).String())
		}
		return strings.Join(parts, "\n")
	}
}

func union(a, b spec.Strings) spec.Strings {
	all := slices.Clone(a)
	for _, s := range b {
		if !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return all
}
