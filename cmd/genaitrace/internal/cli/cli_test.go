package cli_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/capture"
	"github.com/genaitrace/otelgenai/cmd/genaitrace/internal/cli"
	"github.com/genaitrace/otelgenai/cmd/genaitrace/otlp"
	"github.com/genaitrace/otelgenai/contract"
	"github.com/genaitrace/otelgenai/contract/spec"
)

// result is what a run of the command left.
type result struct {
	code           int
	stdout, stderr string
}

// run runs the command in this process.
func run(t *testing.T, stdin io.Reader, environ []string, args ...string) result {
	t.Helper()
	if stdin == nil {
		stdin = strings.NewReader("")
	}
	var stdout, stderr bytes.Buffer
	code := cli.Main(t.Context(), args, stdin, &stdout, &stderr, environ)
	return result{code, stdout.String(), stderr.String()}
}

const good, bad = "testdata/good.json", "testdata/bad.json"

func withContract(args ...string) []string {
	return append([]string{"check", "--contract", "testdata/contract.yaml"}, args...)
}

func mutating(args ...string) []string {
	return append([]string{"mutate", "--contract", "testdata/contract.yaml"}, args...)
}

func TestEachExitCodeHasItsCause(t *testing.T) {
	for _, tt := range []struct {
		name   string
		args   []string
		code   int
		stderr string // one line holds it
	}{
		{"the contract holds", withContract(good), 0, ""},
		{"several files are one capture", withContract("testdata/gateway.jsonl", "testdata/caller.jsonl"), 0, ""},
		{"in any order", withContract("testdata/caller.jsonl", "testdata/gateway.jsonl"), 0, ""},
		{"a part of a capture", withContract("testdata/gateway.jsonl"), 1, "the contract chat-gateway does not hold"},
		{"the contract is broken", withContract(bad), 1, "the contract chat-gateway does not hold: 1 error"},

		{"no command", nil, 2, "Usage:"},
		{"an unknown command", []string{"chekc"}, 2, `unknown command "chekc", did you mean "check"?`},
		{"a command like none", []string{"frobnicate"}, 2, `unknown command "frobnicate"; genaitrace --help lists them`},
		{"help on an unknown command", []string{"help", "serv"}, 2, `unknown command "serv", did you mean "serve"?`},
		{"an unknown flag", []string{"check", "--contrat", "x"}, 2, "unknown flag --contrat, did you mean --contract?"},
		{"a flag like none", []string{"check", "--frobnicate"}, 2, "unknown flag: --frobnicate; genaitrace check --help lists them"},
		{"a bad duration", withContract("--quiet", "soon", good), 2, `invalid argument "soon" for "--quiet"`},
		{"no quiet", withContract("--quiet", "0s", good), 2, "--quiet is 0s, want more than 0"},
		{"no contract", []string{"check", good}, 2, "--contract is missing"},
		{"no capture", withContract(), 2, "no capture is given"},
		{"a contract that is not there", []string{"check", "--contract", "testdata/none.yaml", good}, 2, "testdata/none.yaml"},
		{"an unknown profile", []string{"check", "--contract", "builtin:chatt", good}, 2, "chatt"},
		{"a misspelt key in the contract", []string{"check", "--contract", "testdata/misspelt.yaml", good}, 2,
			`testdata/misspelt.yaml:13:30: unknown key "reqired", did you mean "required"?`},
		{"a capture that is not there", withContract("testdata/none.json"), 2, "open testdata/none.json: no such file or directory"},
		{"a folder", withContract("testdata"), 2, "testdata"},
		{"a capture twice", withContract(good, good), 2, "the capture testdata/good.json is given twice"},
		{"a capture twice, spelled differently", withContract(good, "./"+good), 2, "the capture ./testdata/good.json is given twice"},
		{"a broken capture", withContract("testdata/broken.jsonl"), 2, "testdata/broken.jsonl"},
		{"an unknown format", withContract("--format", "jnit", good), 2, `--format is "jnit", want one of text, json, junit, github, did you mean "junit"?`},
		{"a format without a file", withContract("--format", "junit=", good), 2, "--format junit= names no file"},
		{"a format twice", withContract("--format", "json", "--format", "json", good), 2, "--format writes json to stdout twice"},
		{"a file twice", withContract("--format", "json=testdata/none/report", "--format", "junit=testdata/none/report", good), 2, "--format writes testdata/none/report twice"},
		{"a file twice, spelled differently", withContract("--format", "json=testdata/none/report", "--format", "junit=./testdata/none/report", good), 2, "--format writes testdata/none/report twice"},
		{"rules about everything", []string{"check", "--contract", "builtin:base", "testdata/unrelated.json"}, 0, ""},
		{"a file that cannot be written", withContract("--format", "json=testdata/none/report.json", good), 2, "--format json: open testdata/none/report.json"},
		{"an unknown severity", withContract("--fail-on", "info", good), 2, `--fail-on is "info", want error or warn`},
		{"an unknown rule", []string{"rules", "attribute.mising"}, 2, `there is no rule "attribute.mising", did you mean "attribute.missing"?`},
		{"a rule like none", []string{"rules", "x"}, 2, `there is no rule "x"; genaitrace rules lists them`},
		{"an argument too many", []string{"version", "x"}, 2, `genaitrace version takes no argument, found "x"`},
		{"two arguments too many", []string{"rules", "a", "b"}, 2, `genaitrace rules takes one argument, found also "b"`},

		{"mutate without a capture", []string{"mutate", "--contract", "testdata/contract.yaml"}, 2, "no capture is given"},
		{"a score above 1", mutating("--min-score", "95", good), 2, "--min-score is 95, want 0 to 1"},
		{"a contract that catches enough", mutating("--min-score", "0.5", good), 0, ""},
		{"a contract that misses too much", mutating(good), 1, "% of the faults, --min-score wants 95 %"},
		{"faults in a capture that is broken already", mutating(bad), 1, "does not hold: 1 error; faults are put into a capture that passes"},
		{"faults in nothing", mutating("testdata/empty.json"), 3, "nothing to check"},
		{"faults in something else", mutating("testdata/unrelated.json"), 3, "was not exercised"},

		{"a capture of nothing", withContract("testdata/empty.json"), 3, "nothing to check"},
		{"a capture of something else", withContract("testdata/unrelated.json"), 3, "the contract chat-gateway was not exercised"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := run(t, nil, nil, tt.args...)
			assert.Equal(t, tt.code, got.code, got.stderr)
			assert.Contains(t, got.stderr, tt.stderr)
			if tt.stderr != "Usage:" {
				assert.Equal(t, min(1, len(tt.stderr)), strings.Count(got.stderr, "\n"), "one line: %s", got.stderr)
			}
		})
	}
}

func TestACaptureIsReadFromStdin(t *testing.T) {
	file, err := os.Open(bad)
	require.NoError(t, err)
	defer file.Close()
	assert.Equal(t, 1, run(t, file, nil, withContract("-")...).code)

	got := run(t, strings.NewReader("{"), nil, withContract("-")...)
	assert.Equal(t, 2, got.code)
	assert.Contains(t, got.stderr, "stdin")
}

// A capture whose files each hold a part of every trace, longer than --quiet.
func TestPartsOfATraceMeetAcrossFiles(t *testing.T) {
	dir := t.TempDir()
	gateway, caller := filepath.Join(dir, "gateway.jsonl"), filepath.Join(dir, "caller.jsonl")
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var roots, calls bytes.Buffer
	for i := range 100 {
		root := &capture.Span{
			TraceID: trace.TraceID{1, 15: byte(i)}, SpanID: trace.SpanID{1, 7: byte(i)},
			Name: "POST /v1/chat/completions", Kind: trace.SpanKindServer,
			Start: start.Add(time.Duration(i) * time.Second), End: start.Add(time.Duration(i)*time.Second + time.Millisecond),
		}
		call := *root
		call.SpanID, call.ParentID, call.Name, call.Kind = trace.SpanID{2, 7: byte(i)}, root.SpanID, "chat toy-1", trace.SpanKindClient
		call.Attributes = capture.Attributes{
			attribute.String("gen_ai.operation.name", "chat"), attribute.String("gen_ai.provider.name", "vllm"),
			attribute.String("gen_ai.request.model", "toy-1"),
		}
		require.NoError(t, otlp.Write(&roots, &capture.Capture{Spans: []*capture.Span{root}}, otlp.JSONLines))
		require.NoError(t, otlp.Write(&calls, &capture.Capture{Spans: []*capture.Span{&call}}, otlp.JSONLines))
	}
	require.NoError(t, os.WriteFile(gateway, roots.Bytes(), 0o600))
	require.NoError(t, os.WriteFile(caller, calls.Bytes(), 0o600))

	assert.Equal(t, 1, run(t, nil, nil, withContract("--quiet", "5s", caller)...).code, "each file alone is not enough")
	got := run(t, nil, nil, withContract("--quiet", "5s", "--format", "json", gateway, caller)...)
	assert.Equal(t, 0, got.code, got.stderr)
	assert.Contains(t, got.stdout, `"late": 0`)
	assert.Contains(t, got.stdout, `"traces": 100`)
}

func TestAMetricThatWasExportedOftenIsOne(t *testing.T) {
	var file bytes.Buffer
	for n := range 3 {
		require.NoError(t, otlp.Write(&file, &capture.Capture{Metrics: []*capture.Metric{{
			Name: "requests", Unit: "{request}", Kind: capture.KindCounter, Temporality: capture.TemporalityCumulative,
			Points: []capture.Point{{Start: time.Unix(1, 0), Time: time.Unix(int64(n)+2, 0), Int: true, Value: float64(n)}},
		}}}, otlp.JSONLines))
	}
	got := run(t, &file, nil, withContract("--format", "json", "-")...)
	assert.Contains(t, got.stdout, `"metrics": 1`)
}

func TestABuiltInProfileIsAContract(t *testing.T) {
	for _, name := range contract.Builtins() {
		got := run(t, nil, nil, "check", "--contract", "builtin:"+name, good)
		assert.Contains(t, []int{0, 1, 3}, got.code, "%s: %s", name, got.stderr)
	}
}

func TestSeveralFormatsAreWrittenAtOnce(t *testing.T) {
	dir := t.TempDir()
	junit, summary := filepath.Join(dir, "report.xml"), filepath.Join(dir, "summary.md")
	require.NoError(t, os.WriteFile(summary, []byte("before\n"), 0o600))
	environ := []string{"GITHUB_STEP_SUMMARY=" + summary}

	got := run(t, nil, environ, withContract("--format", "json", "--format", "junit="+junit, "--format", "github="+filepath.Join(dir, "annotations"), bad)...)
	require.Equal(t, 1, got.code, got.stderr)

	var report struct {
		Format   string
		Findings []struct{ Rule, On, Key string }
	}
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &report), "stdout is JSON and nothing else")
	assert.Equal(t, "genaitrace.report/v1", report.Format)
	require.Len(t, report.Findings, 1)
	assert.Equal(t, "attribute.missing", report.Findings[0].Rule)

	xmlText, err := os.ReadFile(junit)
	require.NoError(t, err)
	require.NoError(t, xml.Unmarshal(xmlText, new(struct{})))
	assert.Contains(t, string(xmlText), "<failure")

	annotations, err := os.ReadFile(filepath.Join(dir, "annotations"))
	require.NoError(t, err)
	assert.Contains(t, string(annotations), "::error file=testdata/contract.yaml,line=13,title=attribute.missing::")

	markdown, err := os.ReadFile(summary)
	require.NoError(t, err)
	assert.True(t, strings.HasPrefix(string(markdown), "before\n### Contract chat-gateway: 1 error\n"), string(markdown))
}

func TestTextIsTheDefaultFormat(t *testing.T) {
	got := run(t, nil, nil, withContract(bad)...)
	assert.Contains(t, got.stdout, "attribute.missing")
	assert.Contains(t, got.stdout, "gen_ai.request.model")
}

func TestAReportThatCannotBeWrittenIsAnError(t *testing.T) {
	var stderr bytes.Buffer
	code := cli.Main(t.Context(), withContract(good), strings.NewReader(""), brokenPipe{}, &stderr, nil)
	assert.Equal(t, 2, code)
	assert.Equal(t, "genaitrace: --format text: io: read/write on closed pipe\n", stderr.String())
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestWarningsFailWhereTheyAreToldTo(t *testing.T) {
	dir := t.TempDir()
	text, err := os.ReadFile("testdata/contract.yaml")
	require.NoError(t, err)
	path := filepath.Join(dir, "contract.yaml")
	require.NoError(t, os.WriteFile(path, append(text, "severity: {attribute.missing: warn}\n"...), 0o600))

	assert.Equal(t, 0, run(t, nil, nil, "check", "--contract", path, bad).code)
	got := run(t, nil, nil, "check", "--contract", path, "--fail-on", "warn", bad)
	assert.Equal(t, 1, got.code)
	assert.Contains(t, got.stderr, "does not hold: 1 warning")
}

func TestRulesAreListedAndExplained(t *testing.T) {
	list := run(t, nil, nil, "rules")
	require.Equal(t, 0, list.code)
	for _, r := range contract.Rules() {
		assert.Contains(t, list.stdout, r.ID)
		one := run(t, nil, nil, "rules", r.ID)
		assert.Equal(t, 0, one.code)
		assert.Contains(t, one.stdout, r.Brief)
		assert.Contains(t, one.stdout, r.Fix)
	}
}

func TestProfilesAreListedAndPrinted(t *testing.T) {
	list := run(t, nil, nil, "profiles")
	require.Equal(t, 0, list.code)
	for _, name := range contract.Builtins() {
		assert.Contains(t, list.stdout, name)
		for _, arg := range []string{name, "builtin:" + name} {
			file := run(t, nil, nil, "profiles", arg)
			require.Equal(t, 0, file.code, file.stderr)
			_, err := spec.Decode(name, []byte(file.stdout))
			assert.NoError(t, err)
		}
	}
	got := run(t, nil, nil, "profiles", "nothing-like-it")
	assert.Equal(t, 2, got.code)
	assert.Contains(t, got.stderr, `there is no profile "nothing-like-it"`)
}

func TestTheSchemaIsJSON(t *testing.T) {
	got := run(t, nil, nil, "schema")
	require.Equal(t, 0, got.code)
	assert.True(t, json.Valid([]byte(got.stdout)))
}

func TestTheVersionIsPrinted(t *testing.T) {
	assert.True(t, strings.HasPrefix(run(t, nil, nil, "version").stdout, "genaitrace "))
	assert.Equal(t, 0, run(t, nil, nil, "--version").code)
}

func TestTheContractInTheDocumentIsOne(t *testing.T) {
	doc, err := os.ReadFile("../../../../docs/contract.md")
	require.NoError(t, err)
	_, text, ok := strings.Cut(string(doc), "```yaml\ncontract:")
	require.True(t, ok)
	text, rest, ok := strings.Cut("contract:"+text, "```")
	require.True(t, ok)
	_, accept, ok := strings.Cut(rest, "```yaml\naccept:")
	require.True(t, ok)
	accept, _, _ = strings.Cut(accept, "```")

	_, err = contract.Parse("docs/contract.md", []byte(text+"accept:"+accept))
	assert.NoError(t, err)
}

func TestAnOutputThatFailsIsNoUnknownCommand(t *testing.T) {
	full, err := os.Open(good) // only to be read
	require.NoError(t, err)
	defer full.Close()
	for _, args := range [][]string{{"rules"}, {"rules", "attribute.missing"}, {"profiles"}, {"schema"}, {"version"}} {
		var stderr bytes.Buffer
		assert.Equal(t, 2, cli.Main(t.Context(), args, strings.NewReader(""), full, &stderr, nil), args)
		assert.Contains(t, stderr.String(), "bad file descriptor", args)
	}
}
