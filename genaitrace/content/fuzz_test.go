package content_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/genaitrace/otelgenai/genaitrace/content"
	"github.com/genaitrace/otelgenai/internal/secret"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

// FuzzRedact: whatever the text, what is redacted is valid, has no secret in it, and
// stays as it is when it is redacted again.
func FuzzRedact(f *testing.F) {
	for _, text := range secrets {
		f.Add(text)
		f.Add("a " + text + "\xff" + text)
	}
	f.Add(strings.Repeat("a@b.cd@", 50))
	f.Add("bearer bearer Basic eyJeyJ.eyJ.4111 4111 1111 1111 1111")
	f.Add(`jane\u00\u00340example.com %%4040`)
	f.Add("-----BEGIN PRIVATE KEY----------BEGIN PRIVATE KEY-----")
	f.Fuzz(func(t *testing.T, text string) {
		got := content.Redact(text)
		require.True(t, utf8.ValidString(got))
		for _, kind := range secret.All() {
			require.Equal(t, -1, kind.Find(got), "%s in %q", kind.Name, got)
		}
		require.Equal(t, got, content.Redact(got))
	})
}

// FuzzSanitizer: whatever is given, a value is valid JSON within its limit, and
// redacted it has no secret in any of its strings.
func FuzzSanitizer(f *testing.F) {
	for _, text := range secrets {
		f.Add(text, `{"a":["`+text+`"]}`, 300)
	}
	f.Add("\xff\x00\"\\", `"{\"a\":\"[1,2,{}]\"}"`, 256)
	f.Add(strings.Repeat("jane@example.com ", 100), `[[[[[[]]]]]]`, 0)
	f.Fuzz(func(t *testing.T, text, raw string, limit int) {
		s := content.Sanitizer{Limit: limit, Hasher: hasher(t)}
		most := content.DefaultLimit
		if limit != 0 {
			most = min(max(limit, content.MinLimit), content.MaxLimit)
		}
		messages := []genaiconv.Message{
			{Role: genaiconv.Role(raw), Name: text, Parts: genaiconv.Parts{genaiconv.TextPart{Content: text}}},
			{Role: genaiconv.RoleTool, Parts: genaiconv.Parts{
				genaiconv.ToolCallPart{ID: text, Name: raw, Arguments: raw}, genaiconv.ToolCallResponsePart{ID: text, Response: text},
				genaiconv.BlobPart{Content: []byte(text)}, genaiconv.GenericPart{GenericType: raw, Fields: map[string]any{text: raw}},
			}},
		}
		for _, level := range []content.Level{content.Hash, content.Redacted, content.Full} {
			v, err := s.Messages(level, messages)
			require.NoError(t, err)
			got := v.JSON()
			require.LessOrEqual(t, len(got), most)
			require.True(t, utf8.ValidString(got))
			var tree any
			require.NoError(t, json.Unmarshal([]byte(got), &tree), got)
			if level != content.Full {
				clean(t, tree)
			}
			v, err = s.Any(level, json.RawMessage(raw))
			if err == nil {
				require.LessOrEqual(t, len(v.JSON()), most)
				require.True(t, json.Valid([]byte(v.JSON())), v.JSON())
			}
			_ = v.Structured()
		}
	})
}

// clean checks every string of a value.
func clean(t *testing.T, tree any) {
	t.Helper()
	switch tree := tree.(type) {
	case string:
		for _, kind := range secret.All() {
			assert.Equal(t, -1, kind.Find(tree), "%s in %q", kind.Name, tree)
		}
	case []any:
		for _, item := range tree {
			clean(t, item)
		}
	case map[string]any:
		for name, item := range tree {
			clean(t, name)
			clean(t, item)
		}
	}
}
