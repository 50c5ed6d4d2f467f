package main

import "slices"

// attributeType says how the values of a registry type appear in Go.
type attributeType struct {
	kind    string         // types of one kind hold the same values
	param   string         // parameters of the constructor; %s is the Go name
	expr    string         // its result; %s is the Go name
	number  bool           // whether a unit makes sense
	accepts func(any) bool // whether a YAML value is a valid example
}

var attributeTypes = map[string]attributeType{
	"string":  {kind: "string", param: "v string", expr: "%sKey.String(v)", accepts: isString},
	"int":     {kind: "int", param: "v int", expr: "%sKey.Int(v)", accepts: isInt, number: true},
	"double":  {kind: "double", param: "v float64", expr: "%sKey.Float64(v)", accepts: isNumber, number: true},
	"boolean": {kind: "boolean", param: "v bool", expr: "%sKey.Bool(v)", accepts: isBool},
	"int[]": {
		kind: "int[]", param: "v ...int", expr: "%sKey.IntSlice(v)", accepts: isInts,
	},
	"string[]": {
		kind: "string[]", param: "v ...string", expr: "%sKey.StringSlice(v)", accepts: isStrings,
	},
	"enum": {
		kind: "string", param: "v %sAttr", expr: "%sKey.String(string(v))", accepts: isString,
	},
	"any": {
		kind: "any", param: "v attribute.Value", expr: "attribute.KeyValue{Key: %sKey, Value: v}", accepts: isAny,
	},
	"template[string]": {
		kind: "template", param: "name, v string", expr: `attribute.String(string(%sKey)+"."+name, v)`, accepts: isString,
	},
}

// metricTypes maps the type of a metric to the front of its Go instrument.
var metricTypes = map[string]string{"int": "Int64", "double": "Float64"}

// instruments maps the instrument of a metric to the back of its Go instrument.
var instruments = map[string]string{
	"histogram":     "Histogram",
	"counter":       "Counter",
	"updowncounter": "UpDownCounter",
	"gauge":         "Gauge",
}

func isString(v any) bool { _, ok := v.(string); return ok }

func isBool(v any) bool { _, ok := v.(bool); return ok }

func isAny(any) bool { return true }

// isInt accepts both integer types of the YAML library: it reads a number
// without a sign as uint64.
func isInt(v any) bool {
	switch v.(type) {
	case int64, uint64:
		return true
	}
	return false
}

func isNumber(v any) bool {
	_, ok := v.(float64)
	return ok || isInt(v)
}

func isStrings(v any) bool { return isListOf(v, isString) }

func isInts(v any) bool { return isListOf(v, isInt) }

func isListOf(v any, accepts func(any) bool) bool {
	values, ok := v.([]any)
	return ok && !slices.ContainsFunc(values, func(v any) bool { return !accepts(v) })
}

// hasMember reports whether value is a known value of the enum a.
func (a Attribute) hasMember(value string) bool {
	return slices.ContainsFunc(a.Members, func(m Member) bool { return m.Value == value })
}
