package genaitrace

import (
	"slices"
	"strings"

	"github.com/genaitrace/otelgenai/internal/bound"
)

// Longest attribute values, in bytes. Strings that come from the wire are cut
// there and made valid UTF-8: one invalid string makes OTLP drop a whole batch.
const (
	maxName   = 256
	maxReason = 64
	// maxReasons is how many finish reasons (one a choice) a span carries.
	maxReasons = 16
	// maxDistinct is how many distinct values a process uses for one span name
	// or metric dimension that a caller can choose, such as the model.
	maxDistinct = 100
)

// boundCopy is bound.String as a copy. Where a struct holds strings and pointers,
// keeping one of its strings would put what the pointers point to on the heap,
// also where nothing records.
func boundCopy(s string, limit int) string { return strings.Clone(bound.String(s, limit)) }

// cleanReasons puts finish reasons, bounded, in the place of the old ones, which stay
// where none is told: many APIs send an empty reason until they know one.
func cleanReasons(old, reasons []string) []string {
	if !slices.ContainsFunc(reasons, func(r string) bool { return r != "" }) {
		return old
	}
	kept := slices.Grow(old[:0], min(len(reasons), maxReasons))
	for _, r := range reasons {
		if len(kept) == maxReasons {
			break
		}
		kept = append(kept, bound.String(r, maxReason))
	}
	return kept
}

// ms converts nanoseconds to the float64 milliseconds of house keys.
func ms(ns int64) float64 { return float64(ns) / 1e6 }

// seconds converts nanoseconds to the float64 seconds of metrics.
func seconds(ns int64) float64 { return float64(ns) / 1e9 }
