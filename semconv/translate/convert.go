package translate

import (
	"math"
	"strconv"

	"go.opentelemetry.io/otel/attribute"
)

// size is how many of the smallest unit of its kind a unit is.
func size(unit string) (n float64, kind string) {
	switch unit {
	case "ns":
		return 1, "time"
	case "us", "µs":
		return 1e3, "time"
	case "ms":
		return 1e6, "time"
	case "s":
		return 1e9, "time"
	case "By/s":
		return 1, "rate"
	case "MBy/s":
		return 1e6, "rate"
	case "{token}", "token":
		return 1, "token"
	}
	return 0, ""
}

// scale is the change from one unit to another of its kind, as the sizes of the
// two. The zero scale changes nothing.
type scale struct{ from, to float64 }

func (s scale) none() bool { return s.from == s.to }

// ratio returns the scale from one unit to another, if there is one: between
// units of one kind, and from any unit to itself.
func ratio(from, to string) (scale, bool) {
	if from == to {
		return scale{}, true
	}
	f, kind := size(from)
	t, other := size(to)
	return scale{f, t}, kind != "" && kind == other
}

// grid is the largest number of nanoseconds (26 days) that survives the way
// into any unit, as a float64, and back.
const grid = 1 << 51

// apply converts a number. Whole nanoseconds, which is what clocks give, survive
// the way there and back exactly; anything finer does within one unit in the
// last place.
func (s scale) apply(x float64) float64 {
	if s.none() {
		return x
	}
	if n := math.Round(x * s.from); math.Abs(n) <= grid && n/s.from == x {
		return n / s.to
	}
	if s.from < s.to {
		return x / (s.to / s.from)
	}
	return x * (s.from / s.to)
}

// maxExact bounds the integers that a float64 holds exactly.
const maxExact = 1 << 53

// convert changes unit and type of a value. It reports false where the new
// type cannot hold exactly what the old one said.
func convert(v attribute.Value, s scale, typ string) (attribute.Value, bool) {
	if !s.none() {
		var x float64
		switch v.Type() {
		case attribute.FLOAT64:
			x = v.AsFloat64()
		case attribute.INT64:
			n := v.AsInt64()
			if n > maxExact || n < -maxExact {
				return v, false
			}
			x = float64(n)
		default:
			return v, false
		}
		v = attribute.Float64Value(s.apply(x))
	}
	switch typ {
	case "any":
		return v, true
	case "string":
		return toString(v)
	case "string[]":
		return toStrings(v)
	case "int":
		return toInt(v)
	case "double":
		return toDouble(v)
	case "int[]":
		return v, v.Type() == attribute.INT64SLICE
	case "boolean":
		return v, v.Type() == attribute.BOOL
	}
	return v, false
}

func toString(v attribute.Value) (attribute.Value, bool) {
	switch v.Type() {
	case attribute.STRING:
		return v, true
	case attribute.INT64:
		return attribute.StringValue(strconv.FormatInt(v.AsInt64(), 10)), true
	case attribute.STRINGSLICE:
		if list := v.AsStringSlice(); len(list) == 1 {
			return attribute.StringValue(list[0]), true
		}
	}
	return v, false
}

func toStrings(v attribute.Value) (attribute.Value, bool) {
	switch v.Type() {
	case attribute.STRINGSLICE:
		return v, true
	case attribute.STRING:
		return attribute.StringSliceValue([]string{v.AsString()}), true
	}
	return v, false
}

func toInt(v attribute.Value) (attribute.Value, bool) {
	switch v.Type() {
	case attribute.INT64:
		return v, true
	case attribute.FLOAT64:
		x := v.AsFloat64()
		if x == math.Trunc(x) && math.Abs(x) <= maxExact && (x != 0 || !math.Signbit(x)) {
			return attribute.Int64Value(int64(x)), true
		}
	case attribute.STRING:
		n, err := strconv.ParseInt(v.AsString(), 10, 64)
		if err == nil && strconv.FormatInt(n, 10) == v.AsString() {
			return attribute.Int64Value(n), true
		}
	}
	return v, false
}

func toDouble(v attribute.Value) (attribute.Value, bool) {
	switch v.Type() {
	case attribute.FLOAT64:
		return v, true
	case attribute.INT64:
		if n := v.AsInt64(); n <= maxExact && n >= -maxExact {
			return attribute.Float64Value(float64(n)), true
		}
	}
	return v, false
}
