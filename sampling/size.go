package sampling

import (
	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/genaitrace/otelgenai/semconv"
)

// Sizes of the SDK's types on 64-bit machines, in bytes.
const (
	snapshotSize = 416 + 16 // and the interface that holds it
	eventSize    = 72
	linkSize     = 96
	kvSize       = 64
)

// measure estimates how many bytes an ended span keeps from the garbage collector, without
// its name and keys, which are constants as a rule. In passing it finds the time to first
// token, in ms, 0 where there is none.
func measure(span sdktrace.ReadOnlySpan, attrs []attribute.KeyValue) (bytes int, ttft float64) {
	bytes = snapshotSize + cap(attrs)*kvSize
	for i := range attrs {
		switch v := &attrs[i].Value; v.Type() {
		case attribute.STRING:
			bytes += len(v.AsString())
		case attribute.INT64, attribute.FLOAT64:
			if attrs[i].Key == semconv.LLMTTFTMsKey {
				ms, _ := numberOf(*v)
				ttft = max(ttft, ms)
			}
		default:
			bytes += sizeOfValue(*v)
		}
	}
	for _, e := range span.Events() {
		bytes += eventSize + sizeOfAttributes(e.Attributes)
	}
	for _, l := range span.Links() {
		bytes += linkSize + sizeOfAttributes(l.Attributes)
	}
	return bytes, ttft
}

func sizeOfAttributes(attrs []attribute.KeyValue) int {
	n := cap(attrs) * kvSize
	for i := range attrs {
		n += sizeOfValue(attrs[i].Value)
	}
	return n
}

// sizeOfValue is what a value holds beyond its own size.
func sizeOfValue(v attribute.Value) int {
	switch v.Type() {
	case attribute.STRING:
		return len(v.AsString())
	case attribute.STRINGSLICE:
		n := 0
		for _, s := range v.AsStringSlice() {
			n += 16 + len(s)
		}
		return n
	case attribute.BOOLSLICE:
		return len(v.AsBoolSlice())
	case attribute.INT64SLICE:
		return 8 * len(v.AsInt64Slice())
	case attribute.FLOAT64SLICE:
		return 8 * len(v.AsFloat64Slice())
	case attribute.BYTESLICE:
		return len(v.AsByteSlice())
	case attribute.SLICE:
		n := 0
		for _, inner := range v.AsSlice() {
			n += kvSize - 16 + sizeOfValue(inner)
		}
		return n
	case attribute.MAP:
		return sizeOfAttributes(v.AsMap())
	default:
		return 0
	}
}
