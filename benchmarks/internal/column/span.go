package column

import (
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/genaitrace/otelgenai/semconv"
)

// sinceStart reads the first token's time from an attribute that counts from the start
// of the span.
func sinceStart(key attribute.Key, unit time.Duration) func(sdktrace.ReadOnlySpan, time.Time) (time.Time, bool) {
	return func(s sdktrace.ReadOnlySpan, _ time.Time) (time.Time, bool) {
		return after(s, s.StartTime(), key, unit)
	}
}

// ourFirstToken is the time of our event. A library that ends its span before our part
// of it is complete leaves the attribute alone, which counts from sending.
func ourFirstToken(s sdktrace.ReadOnlySpan, sent time.Time) (time.Time, bool) {
	for _, e := range s.Events() {
		if e.Name == semconv.EventFirstToken {
			return e.Time, true
		}
	}
	return after(s, sent, semconv.LLMTTFTMsKey, time.Millisecond)
}

func after(s sdktrace.ReadOnlySpan, start time.Time, key attribute.Key, unit time.Duration) (time.Time, bool) {
	for _, a := range s.Attributes() {
		if a.Key == key {
			return start.Add(time.Duration(a.Value.AsFloat64() * float64(unit))), true
		}
	}
	return time.Time{}, false
}
