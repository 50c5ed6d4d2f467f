package sampling

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/otel/attribute"
)

// A condition is a test of one span in the language of the Collector (OTTL), or of one
// event of a span.
type condition struct {
	text  string
	event bool
}

// condition writes what s selects.
func (s Selector) condition() (condition, error) {
	var parts []string
	if s.Event != "" {
		parts = append(parts, "spanevent.name == "+strconv.Quote(s.Event))
	}
	if s.Kind != 0 {
		parts = append(parts, "span.kind == SPAN_KIND_"+strings.ToUpper(s.Kind.String()))
	}
	switch prefix, ok := strings.CutSuffix(s.Name, "*"); {
	case ok && prefix == "":
	case ok:
		parts = append(parts, fmt.Sprintf("HasPrefix(span.name, %q)", prefix))
	case s.Name != "":
		parts = append(parts, "span.name == "+strconv.Quote(s.Name))
	}
	if s.Failed {
		parts = append(parts, "span.status.code == STATUS_CODE_ERROR")
	}
	if s.MinDuration != 0 {
		parts = append(parts, fmt.Sprintf("span.end_time_unix_nano - span.start_time_unix_nano >= %d", s.MinDuration))
	}
	if s.Scope != "" {
		parts = append(parts, "scope.name == "+strconv.Quote(s.Scope))
	}
	switch path := attributePath(s.Key); {
	case s.Key == "":
	case len(s.Values) > 0:
		test, err := valueTest(path, s.Values)
		if err != nil {
			return condition{}, err
		}
		parts = append(parts, test)
	case s.AtLeast != 0:
		parts = append(parts, path+" >= "+floatLiteral(s.AtLeast))
	default:
		parts = append(parts, path+" != nil")
	}
	if len(parts) == 0 { // the name is "*"
		parts = append(parts, "span.name != nil")
	}
	for _, given := range append([]string{s.Name, s.Scope, s.Event, string(s.Key)}, s.Values...) {
		if !utf8.ValidString(given) {
			return condition{}, fmt.Errorf("%q is not valid UTF-8, and no span that reaches the Collector holds such a text: correct it", given)
		}
	}
	return condition{strings.Join(parts, " and "), s.Event != ""}, nil
}

func attributePath(key attribute.Key) string { return fmt.Sprintf("span.attributes[%q]", string(key)) }

// valueTest tests whether an attribute has one of the values, as textOf writes them.
func valueTest(path string, values []string) (string, error) {
	var tests []string
	for _, value := range values {
		if strings.HasPrefix(value, "[") || strings.HasPrefix(value, "{") {
			return "", fmt.Errorf("the value %q looks like a list or a map, which the Collector does not compare as text: "+
				"let the service write what matters as an attribute of its own", value)
		}
		tests = append(tests, path+" == "+strconv.Quote(value))
		if value == "true" || value == "false" {
			tests = append(tests, path+" == "+value)
		}
		if n, err := strconv.ParseInt(value, 10, 64); err == nil && n > math.MinInt64 && strconv.FormatInt(n, 10) == value {
			tests = append(tests, fmt.Sprintf("(IsInt(%s) and %s == %d)", path, path, n))
		}
		if f, err := strconv.ParseFloat(value, 64); err == nil && !math.IsInf(f, 0) && !math.IsNaN(f) && number(f) == value {
			tests = append(tests, fmt.Sprintf("(IsDouble(%s) and %s == %s)", path, path, floatLiteral(f)))
		}
	}
	if len(tests) == 1 {
		return tests[0], nil
	}
	return "(" + strings.Join(tests, " or ") + ")", nil
}

// floatLiteral writes a number with the point that the language wants.
func floatLiteral(f float64) string {
	s := strconv.FormatFloat(f, 'g', -1, 64)
	mantissa, exponent, scientific := strings.Cut(s, "e")
	if !strings.Contains(mantissa, ".") {
		mantissa += ".0"
	}
	if scientific {
		return mantissa + "e" + exponent
	}
	return mantissa
}

// atom makes the test of a condition on any span of a trace.
func (c condition) atom(name string, waits time.Duration) atom {
	key := "span"
	if c.event {
		key = "spanevent"
	}
	return atom{name: name, kind: "ottl_condition", settings: node{
		{"error_mode", "ignore"},
		{key, []string{verbatim(c.text)}},
	}, rank: 3, waits: waits}
}
