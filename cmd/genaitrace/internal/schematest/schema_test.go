// Package schematest holds the schema of contract files against what reads them.
// It is apart from the schema because the validator is no dependency of the library.
package schematest

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/genaitrace/otelgenai/contract/spec"
)

const contractFolder = "../../../../contract"

func compile(t *testing.T) *jsonschema.Schema {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(spec.Schema()))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	require.NoError(t, c.AddResource("contract.json", document))
	schema, err := c.Compile("contract.json")
	require.NoError(t, err, "the schema is valid itself")
	return schema
}

func validate(t *testing.T, schema *jsonschema.Schema, file []byte) error {
	t.Helper()
	text, err := yaml.YAMLToJSON(file)
	require.NoError(t, err)
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	require.NoError(t, err)
	return schema.Validate(value)
}

func TestEveryContractInTheTreeIsValid(t *testing.T) {
	schema := compile(t)
	profiles, err := filepath.Glob(filepath.Join(contractFolder, "profiles/*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, profiles)
	for _, name := range profiles {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		assert.NoError(t, validate(t, schema, text), name)
	}
	for _, pattern := range []string{"testdata/*.yaml", "*/testdata/*.yaml"} {
		files, err := filepath.Glob(filepath.Join(contractFolder, pattern))
		require.NoError(t, err)
		for _, name := range files {
			text, err := os.ReadFile(name)
			require.NoError(t, err)
			if _, err := spec.Decode(name, text); err == nil { // not wrong on purpose
				assert.NoError(t, validate(t, schema, text), name)
			}
		}
	}
}

const version = "contract: genai.observability/v1\n"

// What the decoder reads the schema allows, short forms included.
func TestTheSchemaAllowsEveryForm(t *testing.T) {
	schema := compile(t)
	for _, text := range []string{
		"",
		"extends: builtin:chat",
		"extends: [builtin:chat, other.yaml]",
		"scope: {services: gate*, undeclared: warn}",
		"requests: {chat: {root: gateway, when: {attr: {a.b: [1, true, text]}}, requires: [inference]}}",
		"spans: {gateway: }",
		"spans: {gateway: {count: 1}}",
		"spans: {gateway: {count: {per: gateway, min: 1, max: 2}}}",
		"spans: {gateway: {kind: [client, internal], status: error}}",
		"spans: {gateway: {attributes: {a: required, b: forbidden, c: optional, d: {range: [0, 1.5], members: closed}}}}",
		"spans: {gateway: {attributes: {a: , b: {required_if: {not: {any: [{has: x}, {all: [{lacks: [y, z]}]}]}}}}}}",
		"spans: {gateway: {events: {require: {first_token: , done: {status: ok}}, order: [first_token, 'a|b'], attributes: {done: {a: required}}}}}",
		"metrics: {m: {instrument: histogram, unit: s, buckets: [0.1, 1], of: {role: gateway, tolerance: {abs: 5ms, pct: 1}}}}",
		"logs: {e: {required_with: [gateway], trace: true}}",
		"propagation: [{from: a, to: b, via: grpc}]",
		"limits: {siblings: 5, cardinality: {a: 20}}",
		"timing: [{id: a, on: b, at_most: [attr(x), 3]}]",
		"topology: {orphans: deny, outlive: {tolerance: 1s, allow: [{child: a, parent: b, reason: c}]}}",
		"agree: [{keys: a}]",
		"slo: [{id: a, on: b, value: duration, p50: 100, p99: 1500ms}]",
		"severity: {attribute.unknown: warn, 'timing.*': 'off'}",
		"accept: [{rule: attribute.missing, reason: known, until: 2027-03-01}]",
	} {
		_, err := spec.Decode("contract.yaml", []byte(version+text))
		assert.NoError(t, err, text)
		assert.NoError(t, validate(t, schema, []byte(version+text)), text)
	}
}

func TestTheSchemaRefusesWhatIsWrong(t *testing.T) {
	schema := compile(t)
	for name, text := range map[string]string{
		"no version":                    "name: a",
		"another version":               "contract: genai.observability/v2",
		"a list":                        "[]",
		"an unknown key":                version + "span: {}",
		"an unknown key below":          version + "spans: {a: {optinal: true}}",
		"an unknown key in a condition": version + "spans: {a: {match: {any: [{not: {nam: x}}]}}}",
		"a missing key":                 version + "slo: [{on: a, value: duration}]",
		"a missing key in a list":       version + "propagation: [{from: a}]",
		"a missing reason":              version + "accept: [{rule: attribute.missing}]",
		"an empty key":                  version + "slo: [{id: '', on: a, value: duration}]",
		"an unknown word":               version + "spans: {a: {attributes: {x: mandatory}}}",
		"an unknown span kind":          version + "spans: {a: {match: {kind: srever}}}",
		"an unknown kind in a list":     version + "spans: {a: {match: {kind: [client, srever]}}}",
		"an unknown status":             version + "spans: {a: {status: failed}}",
		"an unknown policy":             version + "topology: {orphans: error}",
		"an unknown severity":           version + "severity: {a: fatal}",
		"an unknown transport":          version + "propagation: [{from: a, to: b, via: tcp}]",
		"an unknown instrument":         version + "metrics: {m: {instrument: summary}}",
		"an unknown type":               version + "spans: {a: {attributes: {x: {type: number}}}}",
		"text for a list":               version + "spans: {a: {events: {order: done}}}",
		"text for a number":             version + "limits: {siblings: many}",
		"text for a truth value":        version + "spans: {a: {optional: 'true'}}",
		"a fraction for a count":        version + "spans: {a: {count: 1.5}}",
		"a list for text":               version + "name: [a]",
		"a number for a name":           version + "extends: [3]",
		"a mapping for values":          version + "spans: {a: {match: {attr: {x: {}}}}}",
		"a mapping for a list":          version + "spans: {a: {match: {any: {name: x}}}}",
	} {
		assert.Error(t, validate(t, schema, []byte(text)), name)
	}
}

// An editor underlines the place.
func TestARefusalNamesThePlace(t *testing.T) {
	err := validate(t, compile(t), []byte(version+"spans: {gateway: {optinal: true}}"))
	require.ErrorContains(t, err, "/spans/gateway")
	require.ErrorContains(t, err, "optinal")
}
