package genaitrace_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/semconv"
	"github.com/genaitrace/otelgenai/semconv/genaiconv"
)

func template(t testing.TB, source string) *genaitrace.PromptTemplate {
	t.Helper()
	p, err := genaitrace.ParsePromptTemplate("support", "v3", source)
	require.NoError(t, err)
	return p
}

func TestTheFactsOfATemplate(t *testing.T) {
	for name, c := range map[string]struct {
		source, rendered string
		depth            int
		density, span    *float64
	}{
		"no variable":     {"Be brief.", "Be brief.", 1, new(0.0), nil},
		"one":             {"Ask {{.Name}}!", "Ask Jane!", 1, new(4.0 / 9), new(4.0 / 9)},
		"two":             {"{{.A}} and {{.B}}.", "aaaaa and b.", 1, new(6.0 / 12), new(11.0 / 12)},
		"of others":       {"Ask {{name}} {{ upper name }}", "Ask a b", 1, new(2.0 / 7), new(3.0 / 7)},
		"nested":          {`{{define "inner"}}[{{.}}]{{end}}{{define "outer"}}<{{template "inner" .}}>{{end}}x{{template "outer" .}}`, "x<[abc]>", 3, new(3.0 / 8), new(3.0 / 8)},
		"a branch":        {"a{{if .X}}b{{else}}c{{end}}", "ab", 1, nil, nil},
		"a loop":          {`{{define "d"}}{{.}}{{end}}{{range .}}{{template "d" .}}{{end}}`, "abc", 2, nil, nil},
		"with":            {"{{with .X}}b{{end}}", "b", 1, nil, nil},
		"an assignment":   {"{{$x := 1}}a{{/* nothing */}}", "a", 1, new(0.0), nil},
		"not its text":    {"a long template {{.}}", "short", 1, nil, nil},
		"unknown":         {`a{{template "gone" .}}`, "ab", 1, nil, nil},
		"itself":          {`{{define "r"}}{{template "r" .}}{{end}}{{template "r" .}}`, "x", 32, nil, nil},
		"nothing":         {"", "", 1, nil, nil},
		"without variant": {"{{.}}", "", 1, nil, nil},
	} {
		var tr *genaitrace.Tracer
		f := tr.DescribePrompt(genaitrace.PromptText{Template: template(t, c.source), Rendered: c.rendered})
		assert.Equal(t, c.depth, f.TemplateDepth, name)
		assertShare(t, c.density, f.PlaceholderDensity, name)
		assertShare(t, c.span, f.ReferenceSpan, name)
		assert.Equal(t, "support v3", f.Name+" "+f.Version)
	}
	_, err := genaitrace.ParsePromptTemplate("support", "v3", "{{if}}")
	require.ErrorContains(t, err, "support")
}

func assertShare(t *testing.T, want, got *float64, name string) {
	t.Helper()
	if want == nil || got == nil {
		assert.Equal(t, want, got, name)
		return
	}
	assert.InDelta(t, *want, *got, 1e-12, name)
}

func TestTheFactsOfMessages(t *testing.T) {
	tr, _ := observed(t)
	messages := []genaiconv.Message{say(genaiconv.RoleSystem, "Be brief."), say("jane@example.com", "Hello"), say(genaiconv.RoleUser, "Hello")}
	f := tr.DescribePrompt(genaitrace.PromptText{Messages: messages, Tokens: 1024})
	assert.Equal(t, []string{"system", "_OTHER", "user"}, f.Roles)
	assert.Equal(t, "1k-4k", f.LengthBucket)
	assert.Len(t, f.Hash, 16)
	assert.Equal(t, f.Hash, tr.DescribePrompt(genaitrace.PromptText{Messages: messages}).Hash)
	assert.NotEqual(t, f.Hash, tr.DescribePrompt(genaitrace.PromptText{Messages: messages[1:]}).Hash)

	other, _ := observed(t, genaitrace.WithHashKey([]byte("another key that is long enough")))
	assert.NotEqual(t, f.Hash, other.DescribePrompt(genaitrace.PromptText{Messages: messages}).Hash)
	keyless := genaitrace.New()
	assert.Empty(t, keyless.DescribePrompt(genaitrace.PromptText{Messages: messages}).Hash, "no key, no hash")
	assert.Empty(t, keyless.Hash("x"))
	assert.Equal(t, genaitrace.PromptFacts{}, tr.DescribePrompt(genaitrace.PromptText{}))
	assert.Len(t, tr.DescribePrompt(genaitrace.PromptText{Messages: make([]genaiconv.Message, 1000)}).Roles, 32)
}

func TestTheEntropyOfCharactersFallsIntoItsRange(t *testing.T) {
	var letters strings.Builder
	for r := rune(0x4e00); r < 0x4e00+1024; r++ {
		letters.WriteRune(r)
	}
	for text, want := range map[string]string{
		"":                                "",
		"aaaa":                            "0-1",
		"abab":                            "1-2", // exactly 1
		"abcd":                            "2-3",
		"The quick brown fox jumps over.": "4-5",
		letters.String():                  "8+", // 10
		strings.Repeat("a", 64<<10) + "bcdefghijklmnop": "0-1", // only the start counts
	} {
		var tr *genaitrace.Tracer
		assert.Equal(t, want, tr.DescribePrompt(genaitrace.PromptText{Messages: []genaiconv.Message{say(genaiconv.RoleUser, text)}}).EntropyBucket)
	}
}

func TestPromptFactsAreBoundedWhereTheyAreWritten(t *testing.T) {
	tr, captured := observed(t)
	long := strings.Repeat("x", 5000) + "\xff"
	_, call := tr.StartCall(t.Context(), genaitrace.Request{Model: "m"})
	call.SetPrompt(genaitrace.PromptFacts{
		Name: long, Version: long, Hash: long, LengthBucket: long, EntropyBucket: long, Roles: []string{long, long},
		TemplateDepth: -1, PlaceholderDensity: new(2.0), ReferenceSpan: new(math.NaN()),
	})
	call.End()
	s := captured().Spans[0]
	for _, kv := range s.Attributes {
		assert.LessOrEqual(t, len(kv.Value.String()), 256, kv.Key)
	}
	assert.False(t, s.Attributes.Has(semconv.GenAIPromptHashKey), "that is no hash")
	assert.False(t, s.Attributes.Has(semconv.GenAIPromptPlaceholderDensityKey))
	assert.False(t, s.Attributes.Has(semconv.GenAIPromptReferenceSpanKey))
	assert.False(t, s.Attributes.Has(semconv.GenAIPromptTemplateDepthKey))
}

func FuzzParsePromptTemplate(f *testing.F) {
	f.Add("Ask {{.Name}}!", 9)
	f.Add(`{{define "a"}}{{template "a"}}{{template "a"}}{{end}}{{template "a"}}`, 3)
	f.Add(`{{range .}}{{else}}{{with $x := 1}}{{end}}{{end}}{{block "b" .}}{{end}}`, 0)
	f.Fuzz(func(t *testing.T, source string, length int) {
		p, err := genaitrace.ParsePromptTemplate("n", "v", source)
		if err != nil {
			return
		}
		var tr *genaitrace.Tracer
		facts := tr.DescribePrompt(genaitrace.PromptText{Template: p, Rendered: strings.Repeat("x", min(max(length, 0), 1<<16))})
		for _, share := range []*float64{facts.PlaceholderDensity, facts.ReferenceSpan} {
			if share != nil {
				require.GreaterOrEqual(t, *share, 0.0)
				require.LessOrEqual(t, *share, 1.0)
			}
		}
		require.LessOrEqual(t, facts.TemplateDepth, 32)
	})
}
