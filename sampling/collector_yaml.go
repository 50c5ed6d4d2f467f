package sampling

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

// What CollectorConfig writes is a small part of YAML, so a service that imports this
// package needs no YAML library.

// A node is a YAML mapping in a fixed order.
type node []entry

type entry struct {
	key   string // plain
	value any    // node, []node, []string, []int, string, bool, float64 or int
}

// write appends the mapping with an indentation of depth.
func (n node) write(b *strings.Builder, depth int) {
	indent := strings.Repeat("  ", depth)
	for _, e := range n {
		b.WriteString(indent)
		e.write(b, depth)
	}
}

// write appends an entry whose line is already indented.
func (e entry) write(b *strings.Builder, depth int) {
	b.WriteString(e.key + ":")
	indent := strings.Repeat("  ", depth+1)
	switch v := e.value.(type) {
	case node:
		b.WriteByte('\n')
		v.write(b, depth+1)
	case []node:
		b.WriteByte('\n')
		for _, item := range v {
			b.WriteString(indent + "- ")
			item[0].write(b, depth+2)
			item[1:].write(b, depth+2)
		}
	case []string:
		b.WriteByte('\n')
		for _, item := range v {
			b.WriteString(indent + "- " + scalar(item) + "\n")
		}
	case []int:
		b.WriteByte('\n')
		for _, item := range v {
			fmt.Fprintf(b, "%s- %d\n", indent, item)
		}
	case string:
		b.WriteString(" " + scalar(v) + "\n")
	case float64:
		// 15 digits: 7, not 7.000000000000001, per cent.
		b.WriteString(" " + strconv.FormatFloat(v, 'g', 15, 64) + "\n")
	default:
		fmt.Fprintf(b, " %v\n", v)
	}
}

// plain are strings that need no quotes, unless they are a keyword.
var plain = regexp.MustCompile(`^([A-Za-z]([A-Za-z0-9_.:/-]*[A-Za-z0-9])?|[0-9]+(ms|s|m))$`)

// scalar writes a string. Go's escapes are YAML's.
func scalar(s string) string {
	switch strings.ToLower(s) {
	case "y", "n", "yes", "no", "on", "off", "true", "false", "null":
	default:
		if plain.MatchString(s) {
			return s
		}
	}
	return strconv.Quote(s)
}

// verbatim protects a string from the Collector's expansion of ${...}.
func verbatim(s string) string { return strings.ReplaceAll(s, "$", "$$") }

// comment writes lines as YAML comments; none can break out of its line.
func comment(lines ...string) string {
	var b strings.Builder
	for _, line := range lines {
		b.WriteString("# ")
		b.WriteString(strings.Map(func(r rune) rune {
			if unicode.IsPrint(r) {
				return r
			}
			return '\uFFFD'
		}, line))
		b.WriteByte('\n')
	}
	return b.String()
}
