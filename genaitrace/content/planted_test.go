package content_test

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/genaitrace/otelgenai/genaitrace/content"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// planted are secrets, and a part of each that tells it.
var planted = []struct{ secret, part string }{
	{"4111 1111 1111 1111", "1111 1111 1111"},
	{"4111111111111111", "11111111111"},
	{"4111-1111-1111-1111", "1111-1111-1111"},
	{"3782 822463 10005", "822463"},
	{"jane.doe@example.com", "doe@example"},
	{"jane%40example.com", "%40example"},
	{"sk-proj-Zx8Q2mN4vB7cL1kJ9hG6fD3sA5pO0iUy", "Zx8Q2mN4vB7"},
	{"AKIAIOSFODNN7EXAMPLE", "OSFODNN7"},
	{"Bearer q1W2e3R4t5Y6u7I8o9P0aSdFgHjKlZxC", "q1W2e3R4t5Y6"},
	{"Basic YWRtaW46aHVudGVyMg==", "YWRtaW46aHVudGVy"},
	{"eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U", "dozjgNryP4J3jVm"},
	{"-----BEGIN RSA PRIVATE KEY-----\nMIIEabcdefghsecretsecret\n-----END RSA PRIVATE KEY-----", "abcdefghsecretse"},
}

// around is what stands around them; some of it looks like the start of one.
var (
	around = []string{
		"2025", "12", "2025-11-30", "5", "4", "3.14", "12:30", "4111", "4111 1111", "the", "order", "x=1", "a/b", "a@", "@", "logo@2x.png",
		"sk-", "AKIA", "Bearer", "Basic", "-----BEGIN", "{", "}", "[", "]", `"`, "'", "<", ">", `\`, `\n`, "%", "&", "?", "=", "–", "日本", "，", "",
	}
	between = []string{" ", " ", "\n", "\t", ", ", ": ", "; ", "/", "|", "\u00a0", "，", "是"}
)

// TestNoSecretIsWrittenWhateverStandsAroundIt plants secrets in texts, names of fields and
// JSON within JSON, and looks for them in what is written.
func TestNoSecretIsWrittenWhateverStandsAroundIt(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	runs := 10_000
	if testing.Short() {
		runs = 1000
	}
	words := func(b *strings.Builder, before bool) {
		for range r.IntN(8) {
			pair := []string{around[r.IntN(len(around))], between[r.IntN(len(between))]}
			if !before {
				pair[0], pair[1] = pair[1], pair[0]
			}
			b.WriteString(strings.Join(pair, ""))
		}
	}
	for range runs {
		p := planted[r.IntN(len(planted))]
		var b strings.Builder
		words(&b, true)
		if r.IntN(3) == 0 {
			b.WriteString(strings.Repeat("pad ", r.IntN(1500)))
		}
		b.WriteString(p.secret)
		words(&b, false)
		s := content.Sanitizer{Limit: content.MinLimit + r.IntN(2000)}
		v, err := written(r, &s, b.String())
		require.NoError(t, err)
		require.LessOrEqual(t, len(v.JSON()), s.Limit)
		require.NotContains(t, v.JSON(), p.part, "in %q", b.String())
	}
}

// written puts a text into content in one of many ways.
func written(r *rand.Rand, s *content.Sanitizer, text string) (content.Value, error) {
	object, _ := json.Marshal(map[string]any{"x": []any{text, 1.5}}) // strings have JSON
	quoted, _ := json.Marshal(string(object))
	switch r.IntN(5) {
	case 0:
		return s.Any(content.Redacted, text)
	case 1:
		return s.Any(content.Redacted, map[string]any{text: map[string]any{"a": text}})
	case 2:
		return s.Any(content.Redacted, string(object))
	case 3:
		return s.Any(content.Redacted, json.RawMessage(quoted))
	default:
		return s.Messages(content.Redacted, []genaiconv.Message{{Role: "user", Name: text, Parts: genaiconv.Parts{
			genaiconv.TextPart{Content: string(quoted)}, genaiconv.TextPart{Content: string(object)},
			genaiconv.ToolCallPart{Name: text, ID: text, Arguments: string(object)},
		}}})
	}
}
