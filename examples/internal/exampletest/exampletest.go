// Package exampletest holds what the tests of the examples share.
package exampletest

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/genaitrace/otelgenai/capture"
)

// WithoutCollector hides what the environment of the tests says of OpenTelemetry.
func WithoutCollector(t *testing.T) {
	t.Helper()
	for _, name := range os.Environ() {
		if name, _, _ = strings.Cut(name, "="); strings.HasPrefix(name, "OTEL_") {
			t.Setenv(name, "")
		}
	}
}

// InOrder fails the test unless text has all parts, one after the other.
func InOrder(t *testing.T, text string, parts ...string) {
	t.Helper()
	rest := text
	for _, part := range parts {
		_, after, ok := strings.Cut(rest, part)
		if !ok {
			t.Fatalf("%q is missing, or not in this order, in:\n%s", part, text)
		}
		rest = after
	}
}

// Tree writes the traces of a capture: names, kinds, roles, status, and the value of
// each key that a span has. Children that ran side by side, whose names begin with
// parallel, stand in the order of their names.
func Tree(c *capture.Capture, parallel string, keys ...string) string {
	var out strings.Builder
	for _, trace := range c.Traces() {
		var walk func(spans []*capture.Span, indent string)
		walk = func(spans []*capture.Span, indent string) {
			sortRuns(spans, parallel)
			for _, s := range spans {
				fmt.Fprintf(&out, "%s%s [%v %s] %v", indent, s.Name, s.Kind, s.Attributes.String("genai.span.role"), s.Status)
				for _, kv := range s.Attributes {
					if slices.Contains(keys, string(kv.Key)) {
						fmt.Fprintf(&out, " %s=%s", kv.Key, kv.Value.String())
					}
				}
				out.WriteString("\n")
				walk(slices.Collect(trace.Children(s)), indent+"  ")
			}
		}
		walk(trace.Roots(), "")
	}
	return out.String()
}

// sortRuns sorts what stands together and begins with prefix by name.
func sortRuns(spans []*capture.Span, prefix string) {
	for i := 0; i < len(spans); i++ {
		n := 0
		for i+n < len(spans) && strings.HasPrefix(spans[i+n].Name, prefix) {
			n++
		}
		slices.SortStableFunc(spans[i:i+n], func(a, b *capture.Span) int { return strings.Compare(a.Name, b.Name) })
		i += n
	}
}
