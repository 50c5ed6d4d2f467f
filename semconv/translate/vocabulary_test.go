package translate_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/genaitrace/otelgenai/semconv/translate"
)

// nanos is an engine that uses the keys of vLLM and counts nanoseconds.
const nanos = `{
  "name": "nanos",
  "private": true,
  "namespaces": ["gen_ai."],
  "attributes": [
    {"theirs": "gen_ai.latency.time_in_model_prefill", "ours": "ai.prefill.duration_ms", "type": "int", "unit": "ns"}
  ]
}`

func TestAFurtherVocabularyIsAFile(t *testing.T) {
	v, err := translate.Parse([]byte(nanos))
	require.NoError(t, err)
	assert.Equal(t, "nanos", v.String())
	key := "gen_ai.latency.time_in_model_prefill"
	assert.Equal(t, kv("ai.prefill.duration_ms", 120.25), translator(t, v, translate.Standard).Attributes(kv(key, 120_250_000)))
	assert.Equal(t, kv(key, 0.12025), translator(t, v, translate.VLLM).Attributes(kv(key, 120_250_000)))
	assert.Equal(t, kv(key, 120_250_000), translator(t, translate.VLLM, v).Attributes(kv(key, 0.12025)))

	tr := translator(t, translate.VLLM, v)
	assert.Equal(t, kv(key, 1e-10), tr.Attributes(kv(key, 1e-10)), "a tenth of a nanosecond does not fit")
	assert.Equal(t, findings{{key, translate.NotExact, 1}}, tr.Report().Findings)
}

func TestAVocabularyMayExtendAnother(t *testing.T) {
	v, err := translate.Parse([]byte(`{"name": "fork", "extends": "semconv-1.36", "attributes": [{"theirs": "gen_ai.vendor", "ours": "gen_ai.provider.name"}]}`))
	require.NoError(t, err)
	in := kv("gen_ai.vendor", "openai", "gen_ai.usage.prompt_tokens", 7)
	assert.Equal(t, kv("gen_ai.provider.name", "openai", "gen_ai.usage.input_tokens", 7), translator(t, v, translate.Standard).Attributes(in))
	assert.Equal(t, kv("gen_ai.provider.name", "xai"), translator(t, v, translate.Standard).Attributes(kv("gen_ai.vendor", "xai")))
	assert.Equal(t, kv("gen_ai.provider.name", "x_ai"), translator(t, v, translate.Standard).Attributes(kv("gen_ai.system", "xai")))
}

func TestEveryFileIsAVocabulary(t *testing.T) {
	names := translate.Names()
	assert.Subset(t, names, []string{"standard", "house", "openllmetry", "envoy-ai-gateway", "loongsuite"})
	for _, name := range names {
		v := named(t, name)
		assert.Equal(t, name, v.String())
		_, err := translate.New(v, translate.Standard)
		require.NoError(t, err)
		_, err = translate.Parse([]byte(`{"name": "` + name + `"}`))
		assert.ErrorContains(t, err, "belongs to a vocabulary of this package")
	}
	_, err := translate.Named("openlmetry")
	assert.ErrorContains(t, err, `no vocabulary "openlmetry": want one of dotnet-extensions-ai, envoy-ai-gateway, `)
}

func TestParseNamesWhatIsWrong(t *testing.T) {
	rows := func(rows string) string { return `{"name": "x", "attributes": [` + rows + `]}` }
	messages := func(row string) string {
		return `{"name": "x", "namespaces": ["a."], "messages": [{` + row + `}]}`
	}
	metric := func(rows string) string { return `{"name": "x", "metrics": [` + rows + `]}` }
	for _, test := range []struct{ file, want string }{
		{"{\n\"name\": 1}", "line 2"},
		{"{\n\n\"title\": \"x\"}", `unknown field "title"`},
		{`{"name": "x"} {}`, "goes on after its end"},
		{`{}`, "name must be a word"},
		{`{"name": "house"}`, "belongs to a vocabulary of this package"},
		{`{"name": "x", "extends": "y"}`, `there is no vocabulary "y"`},
		{`{"name": "x", "namespaces": ["gen_ai"]}`, `namespace "gen_ai" must end with a dot`},
		{rows(`{}`), "attributes[0] (): theirs and ours are both absent"},
		{rows(`{"theirs": "a", "ours": "gen_ai.invented"}`), `attributes[0] (a): ours "gen_ai.invented" is not a key of the standard vocabulary`},
		{rows(`{"theirs": "a", "ours": "llm.ttft_ms", "unit": "fortnight"}`), `unit "fortnight" cannot be converted to "ms"`},
		{rows(`{"theirs": "a", "ours": "llm.ttft_ms", "type": "decimal"}`), `type "decimal" is unknown`},
		{rows(`{"theirs": "a"}, {"theirs": "a"}`), "attributes[1] (a): an earlier row without a condition always applies"},
		{rows(`{"theirs": "a", "when": {}}`), "when has no attribute"},
		{rows(`{"theirs": "a", "when": {"b": []}}`), `when "b" has no values`},
		{rows(`{"theirs": "a.*"}`), "lies in a namespace"},
		{rows(`{"theirs": "a", "ours": "llm.ttft_ms", "values": {}}`), "values are for strings"},
		{rows(`{"theirs": "a", "ours": "gen_ai.provider.name", "values": {"read": {"p": "x", "q": "x"}}}`), `values "p" and "q" both mean "x": write must say which one`},
		{`{"name": "x", "spans": [{"theirs": "a"}]}`, "spans[0] (a): ours is absent"},
		{`{"name": "x", "spans": [{"theirs": "a", "ours": "{b}"}]}`, `spans[0] (a): "b" is not a key of the standard vocabulary`},
		{`{"name": "x", "events": [{}]}`, "events[0]: theirs and ours are both absent"},
		{`{"name": "x", "events": [{"theirs": "a", "when": {}}]}`, "events[0] (a): when has no attribute"},
		{`{"name": "x", "events": [{"theirs": "a", "ours": "b"}]}`, `events[0] (a): ours "b" is not an event of the standard vocabulary`},
		{messages(`"theirs": "a.m", "ours": "gen_ai.request.model", "fields": {"role": "role"}`), `messages[0] (a.m): ours "gen_ai.request.model" is not a structured key`},
		{messages(`"theirs": "b", "ours": "gen_ai.input.messages", "fields": {"role": "role"}`), "messages[0] (b): theirs is not the beginning of keys in a namespace"},
		{messages(`"theirs": "a.m", "ours": "gen_ai.input.messages", "fields": {"content": "content"}`), "fields has no role"},
		{messages(`"theirs": "a.m", "ours": "gen_ai.input.messages", "fields": {"role": "role", "colour": "c"}`), `there is no field "colour"`},
		{messages(`"theirs": "a.m", "ours": "gen_ai.input.messages", "fields": {"role": "role", "content": "role"}`), `content and role are both "role"`},
		{messages(`"theirs": "a.m", "ours": "gen_ai.input.messages", "fields": {"role": "0.role"}`), `role "0.role" has a part that is a number or empty`},
		{messages(`"theirs": "a.m", "ours": "gen_ai.input.messages", "fields": {"role": "role", "call.name": "name"}`), `call.name "name" must have a part * for the number`},
		{messages(`"theirs": "a.m", "ours": "gen_ai.input.messages", "fields": {"role": "*.role"}`), `role "*.role" must have a part * for the number if it repeats, and else none`},
		{metric(`{}`), "metrics[0] (): theirs and ours are both absent"},
		{metric(`{"theirs": "a", "ours": "b"}`), `metrics[0] (a): ours "b" is not a metric of the standard vocabulary`},
		{metric(`{"theirs": "a", "ours": "gen_ai.client.inference.duration", "unit": "h"}`), `unit "h" cannot be converted to "s"`},
		{metric(`{"theirs": "a", "ours": "gen_ai.client.inference.duration", "derive": "mean"}`), `derive "mean" is not "sum"`},
		{metric(`{"theirs": "a", "ours": "gen_ai.client.inference.duration", "ours_only": {"a": "b"}}`), "ours_only needs derive"},
		{strings.Repeat(" ", 1<<20+1), "bytes, more than"},
	} {
		_, err := translate.Parse([]byte(test.file))
		require.ErrorContains(t, err, test.want)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(nanos))
	paths, err := filepath.Glob("vocabularies/*.json")
	require.NoError(f, err)
	for _, path := range paths {
		data, err := os.ReadFile(path)
		require.NoError(f, err)
		f.Add([]byte(strings.Replace(string(data), `"name": "`, `"name": "x`, 1)))
	}
	span := kv("gen_ai.operation.name", "chat", "gen_ai.request.top_k", 4, "openinference.span.kind", "TOOL", "input.value", "x", "llm.ttft_ms", 1.5)
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := translate.Parse(data)
		if err != nil {
			return
		}
		for _, pair := range [][2]*translate.Vocabulary{{v, translate.Standard}, {translate.Standard, v}, {v, v}, {v, translate.OpenInference}} {
			tr, err := translate.New(pair[0], pair[1])
			require.NoError(t, err)
			tr.Attributes(span)
		}
	})
}

// registry is what a file of semconv/registry says that matters here.
type registry struct {
	Attributes []struct {
		Key        string
		Type       string
		Unit       string
		Official   string
		Deprecated any
	}
	Aliases []struct {
		Kind, Name, Of, Unit string
		Keep                 bool
	}
	Metrics []struct {
		Name, Unit string
		Deprecated any
	}
	Events []struct {
		Name       string
		Deprecated any
	}
}

// vocabulary is what a file of this package says that matters here.
type vocabulary struct {
	Attributes, Metrics []struct {
		Theirs, Ours, Type, Unit string
		When                     map[string][]string
	}
	Events []struct{ Theirs, Ours string }
}

func readRegistry(t *testing.T, name string) (r registry) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "registry", name+".yaml"))
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(data, &r))
	return r
}

func readVocabulary(t *testing.T, name string) (v vocabulary) {
	t.Helper()
	data, err := os.ReadFile("vocabularies/" + name + ".json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &v))
	return v
}

func TestStandardIsTheRegistry(t *testing.T) {
	var want, got []string
	for _, name := range []string{"gen_ai", "mcp", "house", "external"} {
		r := readRegistry(t, name)
		for _, a := range r.Attributes {
			// Of the general keys only the official twin of a house key counts.
			if a.Deprecated != nil || a.Official != "" || strings.HasPrefix(a.Type, "template") || name == "external" && a.Key != "hw.model" {
				continue
			}
			want = append(want, fmt.Sprint(a.Key, " ", strings.Replace(a.Type, "enum", "string", 1), " ", a.Unit))
		}
		for _, m := range r.Metrics {
			if m.Deprecated == nil {
				want = append(want, fmt.Sprint(m.Name, " ", m.Unit))
			}
		}
		for _, e := range r.Events {
			if e.Deprecated == nil {
				want = append(want, e.Name)
			}
		}
	}
	v := readVocabulary(t, "standard")
	for _, a := range v.Attributes {
		if a.Ours != "" {
			got = append(got, fmt.Sprint(a.Ours, " ", a.Type, " ", a.Unit))
		}
	}
	for _, m := range v.Metrics {
		got = append(got, fmt.Sprint(m.Ours, " ", m.Unit))
	}
	for _, e := range v.Events {
		got = append(got, e.Ours)
	}
	assert.ElementsMatch(t, want, got, "semconv/registry and vocabularies/standard.json must have the same names")
}

func TestHouseHasEveryTwinAndAlias(t *testing.T) {
	r, twins, got := readRegistry(t, "house"), map[string]string{}, map[string]string{}
	for _, a := range readVocabulary(t, "house").Attributes {
		got[a.Theirs] = a.Ours
	}
	for _, a := range r.Attributes {
		if a.Official != "" {
			twins[a.Key] = a.Official
			assert.Equal(t, a.Official, got[a.Key], a.Key)
		}
	}
	for _, a := range r.Aliases {
		if a.Kind != "" || a.Keep {
			continue
		}
		want := a.Of
		if twin := twins[want]; twin != "" {
			want = twin
		}
		assert.Equal(t, want, got[a.Name], "alias %s", a.Name)
	}
}

// otel-go has the names of the two releases; it dropped them after the second.
func TestSemconvNamesAreThoseOfOTelGo(t *testing.T) {
	key := regexp.MustCompile(`= attribute\.Key\("((?:gen_ai|mcp|openai|aws\.bedrock)\.[^"]+)"\)`)
	for _, release := range []struct{ name, pkg string }{
		{"semconv-1.36", "v1.36.0"}, {"semconv-1.41", "v1.41.0"},
	} {
		dir, err := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.Dir}}", "go.opentelemetry.io/otel/semconv/"+release.pkg).Output()
		require.NoError(t, err)
		source, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "attribute_group.go"))
		require.NoError(t, err)
		ours := make(map[string]bool)
		for _, a := range readVocabulary(t, release.name).Attributes {
			if a.Theirs == "" {
				a.Theirs = a.Ours
			}
			ours[a.Theirs] = true
		}
		keys := key.FindAllStringSubmatch(string(source), -1)
		require.NotEmpty(t, keys)
		for _, k := range keys {
			assert.True(t, ours[k[1]], "%s has no row for %s", release.name, k[1])
		}
	}
}
