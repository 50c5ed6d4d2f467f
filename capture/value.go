package capture

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"go.opentelemetry.io/otel/attribute"

	"github.com/genaitrace/otelgenai/semconv"
)

// repeats reports whether a value is likely the same in the next run, of a test
// with a fake clock where exact. Where the registry knows the key, it says what is
// a measurement; a number with a fraction that nobody knows is taken for one.
func repeats(kv attribute.KeyValue, exact bool) bool {
	known, ok := semconv.Lookup(kv.Key)
	last := string(kv.Key[strings.LastIndexAny(string(kv.Key), "._")+1:])
	switch {
	case identities[last], kv.Value.Type() == attribute.STRING && identifier.MatchString(kv.Value.AsString()):
		return false
	case exact:
		return true
	case durations[last], ok && timeUnits[known.Unit]:
		return false
	case kv.Value.Type() == attribute.FLOAT64, kv.Value.Type() == attribute.FLOAT64SLICE:
		return ok && known.Unit == ""
	default:
		return true
	}
}

// What the last word of a key says of its values.
var (
	identities = words("id", "uuid", "hash", "digest", "fingerprint", "port", "pid", "timeline")
	durations  = words("time", "timestamp", "duration", "latency", "elapsed", "ms", "us", "ns", "seconds")
	timeUnits  = words("s", "ms", "us", "ns", "min", "h")
)

func words(all ...string) map[string]bool {
	set := make(map[string]bool, len(all))
	for _, w := range all {
		set[w] = true
	}
	return set
}

var (
	// identifier is a UUID, or 16 hexadecimal digits and more.
	identifier = regexp.MustCompile(`(?i)^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$|^[0-9a-f]{16,}$`)
	// localPort is an address that a test listened at.
	localPort = regexp.MustCompile(`(127\.0\.0\.1|localhost|0\.0\.0\.0|\[::1?\]):\d+`)
)

func withoutPorts(s string) string { return localPort.ReplaceAllString(s, "$1:<port>") }

// literal returns a value so that its type shows: text in quotes, a double with a
// point or an exponent.
func literal(v attribute.Value) string {
	switch v.Type() {
	case attribute.EMPTY:
		return "<empty>"
	case attribute.STRING:
		return strconv.Quote(v.AsString())
	case attribute.FLOAT64:
		text := v.String()
		if strings.Trim(text, "-0123456789") == "" {
			text += ".0"
		}
		return text
	default:
		return printable(v.String())
	}
}

// typeName returns a type as contracts name it.
func typeName(t attribute.Type) string {
	switch t {
	case attribute.BOOL:
		return "boolean"
	case attribute.INT64:
		return "int"
	case attribute.FLOAT64:
		return "double"
	case attribute.STRING:
		return "string"
	case attribute.BOOLSLICE:
		return "boolean[]"
	case attribute.INT64SLICE:
		return "int[]"
	case attribute.FLOAT64SLICE:
		return "double[]"
	case attribute.STRINGSLICE:
		return "string[]"
	default:
		return strings.ToLower(t.String())
	}
}

// printable returns s as one line that cannot drive a terminal.
func printable(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(s)
	}
	return s
}

// globs are patterns of which one must match; * stands for any text.
type globs [][]string

func newGlobs(patterns []string) globs {
	g := make(globs, 0, len(patterns))
	for _, p := range patterns {
		g = append(g, strings.Split(p, "*"))
	}
	return g
}

func (g globs) match(s string) bool {
	for _, parts := range g {
		if matches(parts, s) {
			return true
		}
	}
	return false
}

// matches reports whether the parts of a glob stand in s in their order.
func matches(parts []string, s string) bool {
	last := len(parts) - 1
	if last == 0 {
		return s == parts[0]
	}
	rest, ok := strings.CutPrefix(s, parts[0])
	for _, part := range parts[1:last] {
		if !ok {
			return false
		}
		_, rest, ok = strings.Cut(rest, part)
	}
	return ok && strings.HasSuffix(rest, parts[last])
}
