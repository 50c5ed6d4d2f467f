package contract_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/genaitrace/otelgenai/contract"
)

// Lines count from 1, and the header has two.
func TestAnErrorNamesThePlaceAndTheWayOut(t *testing.T) {
	for _, tt := range []struct{ name, yaml, want string }{
		// Keys and types.
		{"an unknown section", "span: {}", `test.yaml:3:1: unknown key "span", did you mean "spans"?`},
		{"an unknown key", "spans:\n  job:\n    mach: {name: job}", `test.yaml:5:5: unknown key "mach", did you mean "match"?`},
		{"a value of another type", "limits: {siblings: many}", `test.yaml:3:20: want a whole number, found text`},
		{"a list for a mapping", "spans:\n  - job: {match: {name: job}}", `test.yaml:4:3: want a mapping, found a list: write key: value, without the dash or the brackets`},
		{"a mapping for a list", "timing: {id: a}", `test.yaml:3:9: want a list, found a mapping: write a dash before each item`},
		{"a percentage", "agree: [{keys: [user], tolerance: {pct: 10%}}]", `test.yaml:3:41: want a number, found text; a percentage is a number, such as 10`},
		{"a tab", "spans:\n\tjob: {match: {name: job}}", `test.yaml:4:1: a tab stands here; YAML is indented with spaces`},
		{"a line too far left", "spans:\n  job:\n     match: {name: job}\n    kind: server", `test.yaml:6:5: this does not belong here: compare how this line and those before it are indented`},
		{"a match beside its role", "spans:\n  job:\n  match: {name: job}", `test.yaml:4:3: role job: match is missing, so no span has the role; match is indented as a role is: indent it below job`},
		{"a required key", "timing: [{on: job}]", `test.yaml:3:11: timing.0: the key id is missing`},
		{"a word that is no rule", "spans: {job: {match: {name: job}, attributes: {user: mandatory}}}", `test.yaml:3:54: "mandatory" is none of required, forbidden, optional`},

		// Roles.
		{"an unknown role", roles("answer") + "requests:\n  work: {root: anwser}", `test.yaml:6:3: there is no role "anwser", did you mean "answer"?`},
		{"an unknown role among few", roles("ask", "answer") + "propagation: [{from: zebra, to: ask}]", `test.yaml:6:16: there is no role "zebra"; roles are answer, ask`},
		{"an unknown role among none", "requests: {work: {root: job}}", `test.yaml:3:12: there is no role "job"; roles are named in the section spans`},
		{"an unknown role in a condition", roleOfJobs + "requests: {work: {root: job, when: {contains: prat}}}", `test.yaml:4:30: there is no role "prat"; roles are job`},
		{"an unknown role in a term", roleOfJobs + "timing: [{id: a, on: job, equal: [duration, prat.duration]}]", `test.yaml:4:11: there is no role "prat"; roles are job`},
		{"a role without match", "spans: {job: {kind: server}}", `test.yaml:3:9: role job: match is missing, so no span has the role`},
		{"a role in capitals", "spans: {Job: {match: {name: job}}}", `test.yaml:3:9: role "Job": a role is a word of lower case letters, digits and _`},
		{"a role that means something else", "spans: {parent: {match: {name: job}}}", `test.yaml:3:9: role "parent": the word has a meaning of its own`},
		{"a role in match", "spans: {job: {match: {parent: job}}}", `test.yaml:3:15: parent cannot stand in match, because roles are not known yet: say it in parent, or in the condition of a rule`},
		{"a parent of nothing", jobWith("parent: {}"), `test.yaml:3:51: parent of job is empty: want is, within, link or root`},
		{"a request without a root", roleOfJobs + "requests: {work: {requires: [job]}}", `test.yaml:4:12: requests.work: the key root is missing`},
		{"more than 64 roles", manyRoles(65), `test.yaml:68:3: the contract has 65 roles, more than 64`},

		// Words of closed sets.
		{"a kind", "spans: {job: {match: {kind: sever}}}", `test.yaml:3:15: kind is "sever", want one of client, consumer, internal, producer, server: did you mean "server"?`},
		{"a status", jobWith("status: [OK]"), `test.yaml:3:51: status is "OK", want one of error, ok, unset`},
		{"a policy", "topology: {orphans: forbid}", `test.yaml:3:12: "forbid" is none of allow, warn, deny`},
		{"a policy for undeclared spans", "scope:\n  undeclared: forbid", `test.yaml:4:3: "forbid" is none of allow, warn, deny`},
		{"a transport", roles("ask", "answer") + "propagation: [{from: ask, to: answer, via: htp}]", `test.yaml:6:16: via is "htp", want one of grpc, http, messaging, websocket: did you mean "http"?`},
		{"an instrument", "metrics: {work: {instrument: timer}}", `test.yaml:3:11: instrument is "timer", want one of counter, gauge, histogram, updowncounter`},
		{"a detector", `forbid: {values: ["builtin:e-mail"]}`, `test.yaml:3:19: values is "e-mail", want one of api-key, bearer, card, email, private-key: did you mean "email"?`},
		{"a regular expression", `forbid: {values: ["/(/"]}`, "test.yaml:3:19: values: /(/: error parsing regexp: missing closing ): `(`"},
		{"members", jobWith("attributes: {gen_ai.operation.name: {members: shut}}"), `test.yaml:3:64: gen_ai.operation.name: members is "shut", want open or closed`},
		{"members of no enumeration", jobWith("attributes: {user: {members: closed}}"), `test.yaml:3:64: user: members is closed, and the vocabulary has no members of it`},

		// Rules.
		{"a severity", "severity: {attribute.missing: fatal}", `test.yaml:3:12: severity of attribute.missing is "fatal", want error, warn or off`},
		{"a rule in severity", "severity:\n  attribute.mising: warn", `test.yaml:4:3: there is no rule "attribute.mising", did you mean "attribute.missing"?`},
		{"a glob in severity", "severity: {timings.*: warn}", `test.yaml:3:12: there is no rule "timings.*"`},
		{"a rule in accept", "accept: [{rule: span.nmae, reason: x}]", `test.yaml:3:11: there is no rule "span.nmae", did you mean "span.name"?`},
		{"a reason", "accept: [{rule: span.name, reason: ' '}]", `test.yaml:3:11: accept span.name: reason is empty`},
		{"a day", "accept: [{rule: span.name, reason: x, until: 1 March}]", `test.yaml:3:11: accept span.name: until is "1 March", want a day such as 2027-03-01`},

		// Keys of attributes.
		{"an attribute nobody knows", jobWith("attributes: {gen_ai.request.modle: required}"), `test.yaml:3:64: the vocabulary has no attribute gen_ai.request.modle, did you mean gen_ai.request.model? One of your own needs its type in attributes`},
		{"an attribute that is like none", jobWith("attributes: {genai.zebra.stripes: required}"), `test.yaml:3:64: the vocabulary has no attribute genai.zebra.stripes; one of your own needs its type in attributes`},
		{"an attribute in has", jobWith("attributes: {user: {required_if: {has: gen_ai.usage.input_token}}}"), `test.yaml:3:71: the vocabulary has no attribute gen_ai.usage.input_token, did you mean gen_ai.usage.input_tokens? One of your own needs its type in attributes`},
		{"an attribute in attr", "spans: {job: {match: {attr: {gen_ai.operation.nam: chat}}}}", `test.yaml:3:15: the vocabulary has no attribute gen_ai.operation.nam, did you mean gen_ai.operation.name? One of your own needs its type in attributes`},
		{"an attribute in a name", jobWith(`name: "chat {gen_ai.request.modl}"`), `test.yaml:3:51: the vocabulary has no attribute gen_ai.request.modl, did you mean gen_ai.request.model? One of your own needs its type in attributes`},
		{"an attribute in a term", roleOfJobs + "slo: [{id: a, on: job, value: attr(llm.ttft), p99: 1s}]", `test.yaml:4:8: the vocabulary has no attribute llm.ttft, did you mean llm.ttft_ms? One of your own needs its type in attributes`},
		{"an attribute in agree", "agree: [{keys: [ai.model.nam]}]", `test.yaml:3:10: the vocabulary has no attribute ai.model.nam, did you mean ai.model.name? One of your own needs its type in attributes`},
		{"an attribute of isolation", "topology: {isolate_by: [genai.tenantid]}", `test.yaml:3:12: the vocabulary has no attribute genai.tenantid, did you mean genai.tenant.id? One of your own needs its type in attributes`},
		{"an attribute of cardinality", "limits: {cardinality: {ai.model.nam: 8}}", `test.yaml:3:24: the vocabulary has no attribute ai.model.nam, did you mean ai.model.name? One of your own needs its type in attributes`},
		{"more than 4096 attributes", jobWith("attributes: {" + manyKeys(5000) + "}"), `test.yaml: the contract names more than 4096 attributes`},
		{"more than 4096 attributes in conditions", jobWith("attributes: {user: {required_if: {has: [" + strings.ReplaceAll(manyKeys(5000), ": required", "") + "]}}}"), `test.yaml: the contract names more than 4096 attributes`},
		{"a brace", jobWith(`name: "chat {model"`), `test.yaml:3:51: name is "chat {model": a brace is open`},
		{"a type", jobWith("attributes: {user: {type: text}}"), `test.yaml:3:64: type is "text", want one of any, boolean, double, double[], enum, int, int[], string, string[]`},
		{"a type that is another one", jobWith("attributes: {llm.ttft_ms: {type: int}}"), `test.yaml:3:64: llm.ttft_ms is double in the vocabulary, not int`},
		{"a unit that is another one", jobWith("attributes: {llm.ttft_ms: {unit: s}}"), `test.yaml:3:64: llm.ttft_ms has the unit "ms" in the vocabulary, not "s"`},
		{"two units", "spans:\n  a: {match: {name: a}, attributes: {wait: {unit: s}}}\n  b: {match: {name: b}, attributes: {wait: {unit: ms}}}", `test.yaml:5:38: wait has the unit "ms" here and "s" elsewhere`},
		{"a spelling of two", "spans:\n  a: {match: {name: a}, attributes: {wait: {spellings: x}, delay: {spellings: x}}}", `test.yaml:4:38: wait: x is another spelling of delay already`},
		{"two requirements", jobWith("attributes: {user: {required: true, forbidden: true}}"), `test.yaml:3:64: user: only one of required, required_if, required_iff and forbidden can be said`},
		{"a range of one", jobWith("attributes: {size: {range: [1]}}"), `test.yaml:3:64: size: range is a lowest and a highest number, such as [0, 60000]`},
		{"a range the wrong way round", jobWith("attributes: {size: {range: [2, 1]}}"), `test.yaml:3:64: size: range is a lowest and a highest number, such as [0, 60000]`},
		{"a condition for a metric", "metrics: {work: {instrument: counter, attributes: {user: {required_if: {kind: server}}}}}", `test.yaml:3:52: user: conditions are about spans, a point of a metric has none`},
		{"a condition for a log record", "logs: {done: {attributes: {user: {required_if: {kind: server}}}}}", `test.yaml:3:28: user: conditions are about spans, a log record is none`},
		{"a metric nobody knows", "metrics: {gen_ai.client.speed: {required: true}}", `test.yaml:3:11: the vocabulary has no metric gen_ai.client.speed; if it is your own, say its instrument and unit`},

		// Numbers.
		{"a count", jobWith("count: {exactly: 1, max: 2}"), `test.yaml:3:51: count of job: exactly stands alone`},
		{"a count that cannot be", jobWith("count: {min: 3, max: 2}"), `test.yaml:3:51: count of job: at least 3 and at most 2 cannot be`},
		{"a limit", "limits: {spans_per_trace: -1}", `test.yaml:3:10: spans_per_trace is -1, want 0 or more`},
		{"a length", "forbid: {length: -1}", `test.yaml:3:10: length is -1, want 0 or more`},
		{"a number of events", jobWith("events: {max: -1}"), `test.yaml:3:51: max is -1, want 0 or more`},
		{"a number of series", "metrics: {work: {instrument: counter, series: -1}}", `test.yaml:3:11: series is -1, want 0 or more`},
		{"a duration", "topology: {skew: 5}", `test.yaml:3:12: skew is "5", want a duration such as 5ms`},
		{"a negative duration", "topology: {outlive: {tolerance: -5ms}}", `test.yaml:3:22: tolerance is "-5ms", want a duration such as 5ms`},
		{"a tolerance", roleOfJobs + "timing: [{id: a, on: job, equal: [duration, 5ms], tolerance: {abs: 5 ms}}]", `test.yaml:4:11: abs is "5 ms", want a duration such as 5ms, or a number`},
		{"a negative tolerance", roleOfJobs + "timing: [{id: a, on: job, equal: [duration, 5ms], tolerance: {pct: -1}}]", `test.yaml:4:11: a tolerance cannot be negative`},
		{"an objective without a bound", roleOfJobs + "slo: [{id: a, on: job, value: duration}]", `test.yaml:4:8: slo a: want p50, p95, p99, max or min`},
		{"an objective of another kind", roleOfJobs + "slo: [{id: a, on: job, value: duration, p99: '3'}]", `test.yaml:4:8: slo a: p99 is "3" and "duration" is a duration`},

		// Terms.
		{"an empty term", roleOfJobs + "timing: [{id: a, on: job, equal: ['', start]}]", `test.yaml:4:11: "": a part is empty`},
		{"an empty part", roleOfJobs + "timing: [{id: a, on: job, equal: ['end + ', start]}]", `test.yaml:4:11: "end + ": a part is empty`},
		{"an unknown part", roleOfJobs + "timing: [{id: a, on: job, equal: [longth, start]}]", `test.yaml:4:11: "longth": "longth" is none of duration, start, end, attr(KEY), event(NAME), event(NAME, KEY), with a role or parent and a dot before it, and no constant such as 5ms`},
		{"an open parenthesis", roleOfJobs + "timing: [{id: a, on: job, equal: ['attr(size', start]}]", `test.yaml:4:11: "attr(size": want attr(…)`},
		{"a constant", roleOfJobs + "timing: [{id: a, on: job, equal: [5mss, duration]}]", `test.yaml:4:11: a part of 5mss is "5mss", want a duration such as 5ms, or a number`},
		{"dimensions that differ", roleOfJobs + "timing: [{id: a, on: job, at_most: [duration, attr(ai.tokens.input)]}]", `test.yaml:4:11: timing a: "duration" is a duration and "attr(ai.tokens.input)" a number`},
		{"dimensions that are added", roleOfJobs + "timing: [{id: a, on: job, at_most: [duration + attr(ai.tokens.input), 5ms]}]", `test.yaml:4:11: "duration + attr(ai.tokens.input)" adds numbers and times`},
		{"moments that are added", roleOfJobs + "timing: [{id: a, on: job, order: [start + end, end]}]", `test.yaml:4:11: "start + end" adds moments: only their difference means something`},
		{"a moment that may be absent", roleOfJobs + "timing: [{id: a, on: job, order: ['event(x)?', end]}]", `test.yaml:4:11: "event(x)?": a moment cannot be optional, because no moment is zero`},
		{"an order of durations", roleOfJobs + "timing: [{id: a, on: job, order: [duration, 5ms]}]", `test.yaml:4:11: timing a: "duration" is a duration, want a moment`},
		{"two relations", roleOfJobs + "timing: [{id: a, on: job, order: [start, end], equal: [start, end]}]", `test.yaml:4:11: timing a: only one of at_most, equal and order can be said`},
		{"one term", roleOfJobs + "timing: [{id: a, on: job, order: [start]}]", `test.yaml:4:11: timing a: want at_most, equal or order with two terms or more`},
		{"a rate of another kind", roleOfJobs + "metrics: {work: {instrument: histogram, unit: s, of: {role: job, value: attr(ai.tokens.input), per: duration}}}", `test.yaml:4:11: work has the unit "s", and "attr(ai.tokens.input) / duration" is a rate`},
		{"a quotient of moments", roleOfJobs + "metrics: {work: {instrument: histogram, unit: s, of: {role: job, value: duration, per: start}}}", `test.yaml:4:11: "duration" / "start": a moment cannot be divided`},
		{"a quotient of nothing", roleOfJobs + "metrics: {work: {instrument: histogram, unit: s, of: {role: job, per: duration}}}", `test.yaml:4:11: per divides a value, and there is none`},
		{"a counter that settles", roleOfJobs + "metrics: {work: {instrument: counter, settles: true}}", `test.yaml:4:11: settles: work is a counter, and only an updowncounter counts what is under way`},
		{"an orphan by its role", "spans: {job: {match: {orphan: true}}}", `test.yaml:3:15: orphan cannot stand in match, because the tree is not known yet: say it in the condition of a rule`},
		{"a sum of another kind", roleOfJobs + "metrics: {work: {instrument: histogram, unit: s, of: {role: job, value: attr(ai.tokens.input)}}}", `test.yaml:4:11: work has the unit "s", and "attr(ai.tokens.input)" is a number`},
		{"a rule twice", roleOfJobs + "timing:\n  - {id: a, on: job, order: [start, end]}\n  - {id: a, on: job, order: [end, start]}", `test.yaml:6:6: timing: a is there twice`},
		{"an exception twice", "accept:\n  - {rule: span.name, on: a, reason: x}\n  - {rule: span.name, on: a, reason: y}", `test.yaml:5:6: accept: span.name, a is there twice`},

		// What is extended.
		{"an unknown profile", "extends: [builtin:chatt]", `test.yaml:3:11: there is no built-in profile "chatt" among agent, base, batch, chat, engine, gateway, rag, requirements, streaming-chat, tools: did you mean "chat"?`},
		{"a file from memory", "extends: [other.yaml]", `test.yaml:3:11: a contract that is read from memory extends built-in profiles only`},
		{"itself", "extends: test.yaml", `test.yaml:3:1: test.yaml extends itself: test.yaml → test.yaml`},

		// Aliases of YAML.
		{"an alias of nothing", "spans: {job: *x}", `test.yaml:3:14: *x names nothing: &x must stand before it`},
		{"an alias inside itself", "spans: &x {job: *x}", `test.yaml:3:17: *x stands inside the value that it names`},
		{"a bomb", bomb(), `test.yaml:4:43: the file has more than 100000 values, aliases counted`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := contract.Parse("test.yaml", []byte(header+tt.yaml))
			assert.EqualError(t, err, tt.want)
		})
	}
}

func manyKeys(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "k%d: required, ", i)
	}
	return b.String()
}

func manyRoles(n int) string {
	var b strings.Builder
	b.WriteString("spans:\n")
	for i := range n {
		fmt.Fprintf(&b, "  r%02d: {match: {name: job}}\n", i)
	}
	return b.String()
}

// bomb is a file that aliases make large.
func bomb() string {
	var b strings.Builder
	b.WriteString("spans:\n  a0: &a0 {name: [x, x, x, x, x, x, x, x, x, x]}\n")
	for i := 1; i < 9; i++ {
		fmt.Fprintf(&b, "  a%d: &a%d [", i, i)
		for range 10 {
			fmt.Fprintf(&b, "*a%d, ", i-1)
		}
		b.WriteString("]\n")
	}
	return b.String()
}

func TestAFileThatIsNoContractSaysSo(t *testing.T) {
	for _, tt := range []struct{ name, file, want string }{
		{"nothing", "", `c.yaml:1:1: is empty, want "contract: genai.observability/v1"`},
		{"a comment", "# later", `c.yaml:1:1: is empty, want "contract: genai.observability/v1"`},
		{"a list", "- a", `c.yaml:1:1: want a mapping that starts with "contract: genai.observability/v1"`},
		{"another format", "apiVersion: v1\nkind: Pod", `c.yaml:1:1: the key contract is missing, want "contract: genai.observability/v1"`},
		{"another version", "contract: genai.observability/v2", `c.yaml:1:11: contract is "genai.observability/v2", this version reads genai.observability/v1`},
		{"two documents", header + "---\n" + header, `c.yaml:4:1: a second document starts here; a contract file is one document`},
		{"brackets without end", header + "spans: " + strings.Repeat("[", 1<<19), "c.yaml:3:1: is nested deeper than 100 levels"},
		{"dashes without end", header + "spans:\n" + strings.Repeat("- ", 1<<18), "c.yaml:4:1: is nested deeper than 100 levels"},
		{"a NUL byte", header + "\x00", "c.yaml:3:1: holds a NUL byte; a contract is text in UTF-8"},
		{"a large file", header + strings.Repeat("#", 1<<20), "c.yaml: is too large for a contract, which has at most 1048576 bytes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := contract.Parse("c.yaml", []byte(tt.file))
			assert.EqualError(t, err, tt.want)
		})
	}
}

func TestBracketsInTextAreNoNesting(t *testing.T) {
	parse(t, "# "+strings.Repeat("[", 200)+"\ndescription: \"it's "+strings.Repeat("{", 200)+"\"\nforbid: {values: ['/"+strings.Repeat("[{]", 200)+"/'], spans: [it's]} # "+strings.Repeat("[", 200))
}

func TestFilesExtendFilesBesideThem(t *testing.T) {
	dir := t.TempDir()
	write := func(name, yaml string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte("contract: genai.observability/v1\n"+yaml), 0o644))
		return path
	}
	write("shared/base.yaml", "extends: builtin:base\nspans: {job: {match: {name: job}}}")
	write("shared/more.yaml", "extends: [base.yaml, ./base.yaml, ../shared/base.yaml]")
	service := write("service.yaml", "name: service\nextends: [shared/more.yaml, shared/base.yaml]\nspans: {job: {kind: server}}")
	c, err := contract.Load(service)
	require.NoError(t, err)
	assert.Equal(t, "service", c.Name())
	assert.Equal(t, []string{"job"}, []string(c.Spec().Spans["job"].Match.Name))
	assert.Equal(t, []string{"server"}, []string(c.Spec().Spans["job"].Kind))

	write("a.yaml", "extends: b.yaml")
	b := write("b.yaml", "extends: ./a.yaml")
	a := filepath.Join(dir, "a.yaml")
	_, err = contract.Load(a)
	assert.EqualError(t, err, b+":2:1: "+a+" extends itself: "+a+" → "+b+" → "+a)

	gone := write("gone.yaml", "name: x\nextends: [builtin:base, missing.yaml]")
	_, err = contract.Load(gone)
	assert.EqualError(t, err, gone+":3:25: open "+filepath.Join(dir, "missing.yaml")+": no such file or directory")
	_, err = contract.Load(write("plain.yaml", "name: x\nextends: gateway"))
	assert.ErrorContains(t, err, `plain.yaml:3:1: open `)
	assert.ErrorContains(t, err, `: no such file or directory; did you mean "builtin:gateway"?`)
	_, err = contract.Load(filepath.Join(dir, "missing.yaml"))
	assert.ErrorIs(t, err, os.ErrNotExist)
	_, err = contract.Builtin("rags")
	assert.ErrorContains(t, err, `tools: did you mean "rag"?`)

	for i := range 40 {
		write(fmt.Sprintf("long/%d.yaml", i), fmt.Sprintf("extends: %d.yaml", i+1))
	}
	_, err = contract.Load(filepath.Join(dir, "long", "0.yaml"))
	assert.ErrorContains(t, err, "31.yaml:2:1: more than 32 files make one contract")

	huge := filepath.Join(dir, "huge.yaml")
	require.NoError(t, os.WriteFile(huge, nil, 0o644))
	require.NoError(t, os.Truncate(huge, 1<<40))
	_, err = contract.Load(huge)
	assert.EqualError(t, err, huge+": is too large for a contract, which has at most 1048576 bytes")
}
