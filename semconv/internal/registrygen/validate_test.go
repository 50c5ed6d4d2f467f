package main

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// Each text is a whole registry with one mistake.
func TestAMistakeGivesOneErrorWithItsPlace(t *testing.T) {
	const (
		valid   = "package: semconv\nattributes:\n"
		role    = valid + "  - {key: genai.span.role, type: enum, brief: x,\n     members: [{value: queue, brief: x}]}\n"
		carries = valid + "  - {key: a.b, type: int, brief: x}\nevents:\n  - name: e\n    brief: x\n    attributes:\n      - {key: a.b, "
	)
	tests := map[string]struct{ text, want string }{
		"empty file": {
			"", "a.yaml: want one YAML document that is not empty",
		},
		"broken YAML": {
			"package: [", "a.yaml:1:10: sequence end token ']' not found",
		},
		"unknown field": {
			valid + "  - {key: a.b, type: int, brief: x,\n     units: s}",
			`a.yaml:4:6: unknown field "units"`,
		},
		"field given twice": {
			"package: semconv\nstrip: a\nstrip: b\n",
			`a.yaml:3:1: mapping key "strip" already defined at [2:1]`,
		},
		"package that is no name": {
			"package: Sem-Conv\n",
			`a.yaml:1: package: "Sem-Conv" is not a Go package name`,
		},
		"key declared twice": {
			valid + "  - {key: a.b, type: int, brief: x}\n  - {key: a.b, type: int, brief: x}\n",
			"a.yaml:4: attributes[1].key: key a.b is already declared at a.yaml:3",
		},
		"key in upper case": {
			valid + "  - {key: a.Bc, type: int, brief: x}\n",
			`a.yaml:3: attributes[0].key: "a.Bc" is not a namespace and lower case words, joined by dots`,
		},
		"key without a namespace": {
			valid + "  - {key: model, type: int, brief: x}\n",
			`a.yaml:3: attributes[0].key: "model" is not a namespace and lower case words, joined by dots`,
		},
		"no brief": {
			valid + "  - key: a.b\n    type: int\n",
			"a.yaml:3: attributes[0].brief: is missing",
		},
		"unknown type": {
			valid + "  - {key: a.b, type: float, brief: x}\n",
			`a.yaml:3: attributes[0].type: unknown type "float", want one of any, boolean, double, enum, int, int[], string, string[], template[string]`,
		},
		"unknown stability": {
			valid + "  - {key: a.b, type: int, brief: x, stability: experimental}\n",
			`a.yaml:3: attributes[0].stability: unknown stability "experimental"`,
		},
		"unit without a number": {
			valid + "  - {key: a.b, type: string, brief: x, unit: s}\n",
			"a.yaml:3: attributes[0].unit: a unit needs a number, a.b is of type string",
		},
		"example of another type": {
			valid + "  - key: a.b\n    type: int\n    brief: x\n    examples: [1, 1.5]\n",
			"a.yaml:6: attributes[0].examples[1]: 1.5 is not of type int",
		},
		"enum without members": {
			valid + "  - {key: a.b, type: enum, brief: x}\n",
			"a.yaml:3: attributes[0].members: enum a.b has no members",
		},
		"members without enum": {
			valid + "  - {key: a.b, type: string, brief: x, members: [{value: c, brief: x}]}\n",
			"a.yaml:3: attributes[0].members: only an enum has members, a.b is of type string",
		},
		"member given twice": {
			valid + "  - key: a.b\n    type: enum\n    brief: x\n    members:\n" +
				"      - {value: c, brief: x}\n      - {value: c, go: D, brief: x}\n",
			"a.yaml:8: attributes[0].members[1].value: member a.b=c is already declared at a.yaml:7",
		},
		"twin that is no key": {
			valid + "  - {key: a.b, type: int, brief: x, official: gen_ai.b}\n",
			"a.yaml:3: attributes[0].official: gen_ai.b is not a key of another file",
		},
		"key outside the namespace": {
			"package: genaiconv\nstrip: gen_ai\nattributes:\n  - {key: a.b, type: int, brief: x}\n",
			"a.yaml:4: attributes[0].key: a.b is outside the file's namespace gen_ai",
		},
		"two keys with one Go name": {
			valid + "  - {key: a.b_c, type: int, brief: x}\n  - {key: a.b.c, type: int, brief: x}\n",
			"a.yaml:4: attributes[1]: Go name semconv.ABC is already declared at a.yaml:3",
		},
		"member with the Go name of a key": {
			valid + "  - {key: a.b, type: enum, brief: x, members: [{value: key, brief: x}]}\n",
			"a.yaml:3: attributes[0].members[0]: Go name semconv.ABKey is already declared at a.yaml:3",
		},
		"metric given twice": {
			"package: semconv\nmetrics:\n  - &m {name: a.b, instrument: gauge, type: int, unit: s, brief: x}\n  - *m\n",
			"a.yaml:4: metrics[1].name: metric a.b is already declared at a.yaml:3",
		},
		"member that is no Go name": {
			valid + "  - key: a.b\n    type: enum\n    brief: x\n    members:\n      - {value: c/d, brief: x}\n",
			`a.yaml:7: attributes[0].members[0]: "ABC/d" is not an exported Go name, give one with go`,
		},
		"unknown instrument": {
			"package: semconv\nmetrics:\n  - {name: a.b, instrument: meter, type: int, unit: s, brief: x}\n",
			`a.yaml:3: metrics[0].instrument: unknown instrument "meter", want one of counter, gauge, histogram, updowncounter`,
		},
		"metric of unknown type": {
			"package: semconv\nmetrics:\n  - {name: a.b, instrument: gauge, type: string, unit: s, brief: x}\n",
			`a.yaml:3: metrics[0].type: unknown type "string", want one of double, int`,
		},
		"metric without unit": {
			"package: semconv\nmetrics:\n  - {name: a.b, instrument: gauge, type: int, brief: x}\n",
			"a.yaml:3: metrics[0].unit: is missing",
		},
		"buckets of a counter": {
			"package: semconv\nmetrics:\n  - {name: a.b, instrument: counter, type: int, unit: s, brief: x, buckets: [1]}\n",
			"a.yaml:3: metrics[0].buckets: only a histogram has buckets, a.b is a counter",
		},
		"buckets out of order": {
			"package: semconv\nmetrics:\n  - {name: a.b, instrument: histogram, type: int, unit: s, brief: x, buckets: [1, 1]}\n",
			"a.yaml:3: metrics[0].buckets: boundary 1 does not rise above 1",
		},
		"metric with an unknown key": {
			"package: semconv\nmetrics:\n  - name: a.b\n    instrument: counter\n    type: int\n    unit: s\n" +
				"    brief: x\n    attributes: [{key: server.prot, level: required}]\n",
			"a.yaml:8: metrics[0].attributes[0].key: server.prot is not a key of the registry",
		},
		"span of unknown role": {
			"package: semconv\nspans:\n  - {type: queue.wait, kind: internal, role: queue, brief: x}\n",
			`a.yaml:3: spans[0].role: "queue" is not a member of genai.span.role`,
		},
		"span of unknown kind": {
			role + "spans:\n  - {type: queue.wait, kind: inner, role: queue, brief: x}\n",
			`a.yaml:6: spans[0].kind: unknown kind "inner", want one of client, consumer, internal, producer, server`,
		},
		"span that refines a refinement": {
			role + "spans:\n  - {type: a, kind: client, role: queue, brief: x}\n  - {type: b, refines: a, brief: x}\n" +
				"  - {type: c, refines: b, brief: x}\n",
			"a.yaml:8: spans[2].refines: b is not a span of the registry that stands by itself",
		},
		"attribute of unknown level": {
			carries + "level: must}\n",
			`a.yaml:8: events[0].attributes[0].level: unknown level "must", want one of required, conditional, recommended, opt_in`,
		},
		"condition that no program understands": {
			carries + "level: conditional, if: it suits, when: it suits}\n",
			`a.yaml:8: events[0].attributes[0].when: "it suits": want known, failed, has KEY, missing KEY, KEY = VALUE|… or KEY != VALUE|…`,
		},
		"condition over an unknown key": {
			carries + "level: conditional, if: x, when: has a.z}\n",
			"a.yaml:8: events[0].attributes[0].when: a.z is not a key of the registry",
		},
		"condition for programs only": {
			carries + "level: recommended, when: failed}\n",
			"a.yaml:8: events[0].attributes[0]: if and when belong together: one for people, one for checkers",
		},
		"conditional without a condition": {
			carries + "level: conditional}\n",
			"a.yaml:8: events[0].attributes[0].when: is missing: a.b is conditional",
		},
		"attribute carried twice": {
			carries + "level: required}\n      - {key: a.b, level: required}\n",
			"a.yaml:9: events[0].attributes[1].key: a.b stands here twice",
		},
		"alias of nothing": {
			valid + "aliases:\n  - {name: b, of: a.b}\n",
			"a.yaml:4: aliases[0].of: a.b is not declared",
		},
		"alias in another unit": {
			valid + "  - {key: a.b, type: double, unit: s, brief: x}\naliases:\n  - {name: b, of: a.b, unit: ms}\n",
			"a.yaml:5: aliases[0].factor: is missing: b is in ms, a.b in s",
		},
		"alias that is a key": {
			valid + "  - {key: a.b, type: double, brief: x}\naliases:\n  - {name: a.b, of: a.b}\n",
			"a.yaml:5: aliases[0].name: key a.b is already declared at a.yaml:3",
		},
		"values that are kept without a reason": {
			valid + "  - {key: a.b, type: double, brief: x}\naliases:\n  - {name: b, of: a.b, keep: true}\n",
			"a.yaml:5: aliases[0].keep: is for an attribute without factor and values, whose note says why",
		},
		"values that are kept and converted": {
			valid + "  - {key: a.b, type: double, unit: s, brief: x}\naliases:\n  - {name: b, of: a.b, unit: ms, factor: 0.001, keep: true, note: x}\n",
			"a.yaml:5: aliases[0].keep: is for an attribute without factor and values, whose note says why",
		},
		"word that is settled and a name": {
			valid + "  - {key: a.b, type: double, brief: x}\naliases:\n  - {name: b, of: a.b}\nsettled:\n  - {kind: attribute, name: b, as: x}\n",
			"a.yaml:7: settled[0].name: b is a key, declared at a.yaml:5",
		},
		"word that is settled twice": {
			valid + "settled:\n  - {kind: span, name: b, as: x}\n  - {kind: event, name: b, as: x}\n",
			"a.yaml:5: settled[1].name: settled word b is already declared at a.yaml:4",
		},
		"replacement that is no key": {
			valid + "  - {key: a.b, type: int, brief: x, deprecated: x, replacement: a.c}\n",
			"a.yaml:3: attributes[0].replacement: a.c is not a key of the registry",
		},
		"replacement without a reason": {
			valid + "  - {key: a.b, type: int, brief: x, replacement: a.c}\n  - {key: a.c, type: int, brief: x}\n",
			"a.yaml:3: attributes[0].deprecated: is missing",
		},
		"event given twice": {
			"package: semconv\nevents:\n  - {name: a_b, brief: x}\n  - {name: a_b, brief: x}\n",
			"a.yaml:4: events[1].name: event a_b is already declared at a.yaml:3",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Load(fstest.MapFS{"a.yaml": {Data: []byte(tt.text)}})
			require.EqualError(t, err, tt.want)
		})
	}
}

func TestAMistakeBetweenTwoFiles(t *testing.T) {
	const official = "package: genaiconv\nstrip: gen_ai\nattributes:\n  - {key: gen_ai.b, type: int, brief: x}\n"
	tests := map[string]struct{ text, want string }{
		"same package": {
			"package: genaiconv\n",
			"b.yaml:1: package: package genaiconv is already declared at a.yaml:1",
		},
		"key in the namespace of the other": {
			"package: semconv\nattributes:\n  - {key: gen_ai.c, type: int, brief: x}\n",
			"b.yaml:3: attributes[0].key: gen_ai.c belongs to a.yaml",
		},
		"twin of another type": {
			"package: semconv\nattributes:\n  - {key: a.b, type: string, brief: x, official: gen_ai.b}\n",
			"b.yaml:3: attributes[0].official: a.b is of type string, gen_ai.b of type int",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Load(fstest.MapFS{
				"a.yaml": {Data: []byte(official)},
				"b.yaml": {Data: []byte(tt.text)},
			})
			require.EqualError(t, err, tt.want)
		})
	}
}

func TestAllMistakesAreReportedAtOnce(t *testing.T) {
	_, err := Load(fstest.MapFS{"a.yaml": {Data: []byte(
		"package: semconv\nattributes:\n  - {key: a.b, type: int}\n  - {key: a.c, type: long, brief: x}\n")}})

	require.ErrorContains(t, err, "a.yaml:3: attributes[0].brief")
	require.ErrorContains(t, err, "a.yaml:4: attributes[1].type")
}

func TestAFolderWithoutYAMLIsAnError(t *testing.T) {
	_, err := Load(fstest.MapFS{"notes.txt": {}})

	require.EqualError(t, err, "the registry holds no *.yaml file")
}
