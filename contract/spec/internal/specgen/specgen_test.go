package main

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/genaitrace/otelgenai/contract/spec"
)

// The folder of package spec and the document, seen from this test.
const (
	specFolder = "../.."
	document   = "../../../../docs/contract.md"
)

func TestGeneratedFilesAreUpToDate(t *testing.T) {
	schema, text, err := render(specFolder, document)
	require.NoError(t, err)
	got, err := os.ReadFile(specFolder + "/schema.json")
	require.NoError(t, err)
	require.Equal(t, string(schema), string(got), "schema.json differs, run: go generate ./contract/spec")
	require.Equal(t, string(spec.Schema()), string(got), "the embedded schema is another one")
	got, err = os.ReadFile(document)
	require.NoError(t, err)
	require.Equal(t, string(text), string(got), "docs/contract.md differs, run: go generate ./contract/spec")
}

// A rewording of a comment must not lose what editors offer.
func TestTheCommentsNameTheClosedSets(t *testing.T) {
	types, err := Model(reflect.TypeFor[spec.Contract](), specFolder)
	require.NoError(t, err)
	found := map[string]*Field{}
	for i := range types {
		for j := range types[i].Fields {
			f := &types[i].Fields[j]
			found[types[i].Name+"."+f.Key] = f
		}
	}
	statuses := []string{"unset", "ok", "error"}
	policies := []string{"allow", "warn", "deny"}
	for key, want := range map[string][]string{
		"Condition.kind":          {"internal", "server", "client", "producer", "consumer"},
		"Condition.status":        statuses,
		"Span.status":             statuses,
		"Attribute.members":       {"open", "closed"},
		"Attribute.type":          {"string", "int", "double", "boolean", "string[]", "int[]", "double[]", "any"},
		"Metric.instrument":       {"counter", "updowncounter", "gauge", "histogram"},
		"Hop.via":                 {"http", "grpc", "websocket", "messaging"},
		"Contract.severity":       {"error", "warn", "off"},
		"Scope.undeclared":        policies,
		"Topology.orphans":        policies,
		"Topology.remote_orphans": policies,
		"Topology.never_ended":    policies,
		"Condition.operation":     nil,
		"Count.per":               nil,
		"Forbid.values":           nil,
	} {
		if assert.Contains(t, found, key) {
			assert.Equal(t, want, found[key].Words, key)
		}
	}
	for key, want := range map[string]string{
		"Count.per": "trace", "Topology.orphans": "deny", "Topology.skew": "2ms", "SLO.samples": "1", "Hop.via": "",
	} {
		assert.Equal(t, want, found[key].Default, key)
	}
}

func TestAClosedSetEndsWithItsSentence(t *testing.T) {
	src := &source{words: map[string][]string{"Policy": {"allow", "deny"}}}
	for doc, want := range map[string][]string{
		"Via is the transport: http, grpc or web.":            {"http", "grpc", "web"},
		"Via is http, grpc, or web. It helps.":                {"http", "grpc", "web"},
		"Via is the transport: http (default) or\ngrpc.":      {"http", "grpc"},
		"Type is one of: int, int[], any (default).":          {"int", "int[]", "any"},
		"Per is what is counted within: trace, or a role.":    nil,
		"Values are: builtin:email, or anything.":             nil,
		"Optional says that a capture without it is allowed.": nil,
		"Unit is s.": nil,
		"Name is the name, short or long, of the span.": nil,
		"Via is http, grpc or web, and more later.":     nil,
	} {
		assert.Equal(t, want, src.wordsOf(reflect.TypeFor[string](), doc), doc)
		assert.Nil(t, src.wordsOf(reflect.TypeFor[int](), doc), "numbers have no words")
	}
	assert.Equal(t, []string{"allow", "deny"}, src.wordsOf(reflect.TypeFor[map[string]spec.Policy](), "By name."))
}

func TestTheReferenceReplacesOnlyWhatIsBetweenItsMarks(t *testing.T) {
	types := []Type{{
		Name: "Hop", Doc: "Hop is a way. See [Hop].\n", of: reflect.TypeFor[spec.Hop](),
		Fields: []Field{
			{Key: "from", Name: "From", Doc: "From is the role\nthat sends.", Required: true, of: reflect.TypeFor[string]()},
			{Key: "to", Name: "To", Doc: "To receives from From: a|b.", Default: "x", of: reflect.TypeFor[spec.Strings]()},
			{Key: "any", Name: "Any", Doc: "Any and From are alike.", of: reflect.TypeFor[[]float64]()},
		},
	}}
	const reference = markBegin + `

### Type Hop

Hop is a way. See [Hop](#type-hop).

| key | value | default | meaning |
|---|---|---|---|
| ` + "`from` | text | required | The role that sends. |\n" +
		"| `to` | text, or a list | `x` | Receives from `from`: a\\|b. |\n" +
		"| `any` | list of numbers |  | And `from` are alike. |\n\n" + markEnd

	got, err := PutReference([]byte("# Title\n\n"+markBegin+"\nold\n"+markEnd+"\n\nProse.\n"), types)
	require.NoError(t, err)
	assert.Equal(t, "# Title\n\n"+reference+"\n\nProse.\n", string(got))

	got, err = PutReference(nil, types)
	require.NoError(t, err)
	assert.Equal(t, "# Contract\n\n"+reference+"\n", string(got), "a new document")

	_, err = PutReference([]byte("# Title\n"), types)
	require.ErrorContains(t, err, markBegin)
	_, err = PutReference([]byte(markBegin+"\n"), types)
	require.ErrorContains(t, err, markEnd)
}

type (
	documented struct {
		A string `yaml:"a"`
		B int    `yaml:"b"`
		C string `yaml:"-"`
		D string
	}
	selfMade []string
)

func (*selfMade) UnmarshalYAML(any) error { return nil }

func TestWhatTheGeneratorCannotKnowIsAnError(t *testing.T) {
	write := func(text string) string {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "spec.go"), []byte("package x\n"+text), 0o600))
		return dir
	}
	of := reflect.TypeFor[documented]()

	types, err := Model(of, write("// documented is one.\ntype documented struct {\n// A and B are both.\nA string\nB int\n}\n"))
	require.NoError(t, err)
	require.Len(t, types, 1)
	require.Len(t, types[0].Fields, 2, "those with a key")
	assert.Equal(t, "A and B are both.\n", types[0].Fields[1].Doc, "one comment for both")

	_, err = Model(of, write("// documented is one.\ntype documented struct {\n// A is one.\nA string\nB int\n}\n"))
	require.EqualError(t, err, "documented.B has no doc comment")
	_, err = Model(of, write("type documented struct {}\n"))
	require.EqualError(t, err, "the type documented has no doc comment")
	_, err = Model(of, write("type other struct {}\n"))
	require.ErrorContains(t, err, "holds no type documented")

	_, err = value(reflect.TypeFor[selfMade](), nil)
	require.ErrorContains(t, err, "add it to the table of forms")
	_, err = value(reflect.TypeFor[chan int](), nil)
	require.ErrorContains(t, err, "no schema for the type chan int")
}
