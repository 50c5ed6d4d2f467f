package genaiconv

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"go.opentelemetry.io/otel/attribute"
)

// JSONValue returns v as a string of JSON, which the convention allows on
// spans where a backend cannot take structured values. v is a list of
// [Message], [Parts], a list of [ToolDefinition] or [RetrievalDocument], the
// arguments or the result of a tool, or any other value that JSON has a form
// for. Invalid UTF-8 is replaced.
//
//	messages, err := genaiconv.JSONValue([]genaiconv.Message{…})
//	span.SetAttributes(genaiconv.InputMessages(messages))
func JSONValue(v any) (attribute.Value, error) {
	text, err := marshal(v)
	if err != nil {
		return attribute.Value{}, fmt.Errorf("genaiconv: value of type %T: %w", v, err)
	}
	return attribute.StringValue(string(text)), nil
}

// StructuredValue returns v, as for [JSONValue], as maps and lists, which the
// convention requires on events and prefers on spans.
func StructuredValue(v any) (attribute.Value, error) {
	text, err := marshal(v)
	if err != nil {
		return attribute.Value{}, fmt.Errorf("genaiconv: value of type %T: %w", v, err)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var tree any
	if err := decoder.Decode(&tree); err != nil {
		return attribute.Value{}, fmt.Errorf("genaiconv: value of type %T: %w", v, err)
	}
	return structured(tree), nil
}

// structured turns what JSON decodes to into a value; null is the empty value.
func structured(v any) attribute.Value {
	switch v := v.(type) {
	case string:
		return attribute.StringValue(v)
	case bool:
		return attribute.BoolValue(v)
	case json.Number:
		if i, err := v.Int64(); err == nil {
			return attribute.Int64Value(i)
		}
		f, err := v.Float64()
		if err != nil {
			return attribute.StringValue(v.String()) // beyond the range of numbers
		}
		return attribute.Float64Value(f)
	case []any:
		values := make([]attribute.Value, len(v))
		for i := range v {
			values[i] = structured(v[i])
		}
		return attribute.SliceValue(values...)
	case map[string]any:
		fields := make([]attribute.KeyValue, 0, len(v))
		for _, name := range slices.Sorted(maps.Keys(v)) {
			fields = append(fields, attribute.KeyValue{Key: attribute.Key(name), Value: structured(v[name])})
		}
		return attribute.MapValue(fields...)
	}
	return attribute.Value{}
}
