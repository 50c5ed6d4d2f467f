package column

import (
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// sinceStart reads the first token's time from an attribute that counts from the start
// of the span.
func sinceStart(key attribute.Key, unit time.Duration) func(sdktrace.ReadOnlySpan) (time.Time, bool) {
	return func(s sdktrace.ReadOnlySpan) (time.Time, bool) {
		for _, a := range s.Attributes() {
			if a.Key == key {
				return s.StartTime().Add(time.Duration(a.Value.AsFloat64() * float64(unit))), true
			}
		}
		return time.Time{}, false
	}
}
