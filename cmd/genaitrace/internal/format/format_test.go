package format_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/capture"
	"github.com/genaitrace/otelgenai/cmd/genaitrace/internal/format"
	"github.com/genaitrace/otelgenai/contract"
	"github.com/genaitrace/otelgenai/contract/spec"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func at(line, column int) spec.Position {
	return spec.Position{File: "deploy/observability.yaml", Line: line, Column: column}
}

// mixed is a report with one of everything.
func mixed() *contract.Report {
	missing := contract.Finding{
		Rule: "attribute.missing", Severity: contract.Error, On: "infer", Key: "gen_ai.request.model",
		Message: "the span has no gen_ai.request.model", Expected: "gen_ai.request.model", Found: "nothing",
		Fix:     "set it when the span starts",
		TraceID: trace.TraceID{0x4b, 0xf9, 15: 0x36}, SpanID: trace.SpanID{0x00, 0xf0, 7: 0xb7},
		Path:     "POST /v1/chat/completions › chat toy-1",
		Source:   capture.Source{File: "/repo/gateway/ask.go", Line: 41, Function: "main.ask"},
		Contract: at(12, 7), Count: 3,
	}
	order := contract.Finding{
		Rule: "timing.order", Severity: contract.Error, On: "decode", Key: "first-token",
		Message: "first_token is before the start: 50% off, \"early\" <1 ms>",
		Path:    "POST /v1/chat | completions",
		Source:  capture.Source{File: "/go/pkg/mod/example.com/sdk@v1.2.3/decode.go", Line: 7},
		TraceID: trace.TraceID{1}, Contract: at(30, 5), Count: 1,
	}
	unknown := contract.Finding{
		Rule: "attribute.unknown", Severity: contract.Warn, On: "gateway", Key: "llm.ttft",
		Message: "llm.ttft is no key of the vocabulary", Fix: "did you mean llm.ttft_ms?",
		Contract: spec.Position{File: "builtin:chat", Line: 3, Column: 1}, Count: 1,
	}
	accepted := contract.Finding{
		Rule: "attribute.missing", Severity: contract.Error, On: "infer", Key: "gen_ai.response.id",
		Message: "the span has no gen_ai.response.id", Contract: at(14, 7), Count: 2,
		Reason: "vLLM does not return it",
	}
	return &contract.Report{
		Contract: "chat-gateway",
		Spans:    18, Traces: 2, Metrics: 3, Logs: 1,
		Requests: map[string]int{"chat": 2, "rag": 0},
		Findings: []contract.Finding{missing, order, unknown},
		Accepted: []contract.Finding{accepted},
		Rules: []contract.Coverage{
			{Rule: "span.count", On: "gateway", Tested: 2, Contract: at(8, 5)},
			{Rule: "attribute.missing", On: "infer", Key: "gen_ai.request.model", Tested: 6, Findings: 3, Contract: at(12, 7)},
			{Rule: "attribute.missing", On: "infer", Key: "gen_ai.response.id", Tested: 6, Findings: 2, Contract: at(14, 7)},
			{Rule: "attribute.unknown", Tested: 2, Findings: 1},
			{Rule: "timing.order", On: "decode", Key: "first-token", Tested: 2, Findings: 1, Contract: at(30, 5)},
			{Rule: "timing.at-most", On: "decode", Key: "stall", Contract: at(34, 5)},
		},
		Late: 1, Evicted: 2, Dropped: 3,
	}
}

func many(errors, warnings int) *contract.Report {
	r := &contract.Report{Contract: "big", Spans: 1, Traces: 1}
	for i := range errors + warnings {
		f := contract.Finding{Rule: "span.count", Severity: contract.Error, On: fmt.Sprint("role", i), Message: "too many", Count: 1}
		if i >= errors {
			f.Severity = contract.Warn
		}
		r.Findings = append(r.Findings, f)
	}
	return r
}

func hostile() *contract.Report {
	text := "a|b\r\n::error::x%\x01\x1b[31m<b>]]></failure>\xff`*_"
	return &contract.Report{Contract: text, Spans: 1, Traces: 1, Findings: []contract.Finding{{
		Rule: "forbid.value", Severity: contract.Error, On: text, Key: text, Message: text, Expected: text, Found: text,
		Path: text, Count: 1, Source: capture.Source{File: "/repo/a,b:c\n.go", Line: 1},
	}}}
}

func github(w io.Writer, r *contract.Report) error {
	return format.GitHub(w, r, "/repo", "/repo/cmd")
}

func junit(w io.Writer, r *contract.Report) error { return format.JUnit(w, r, false) }

func TestEachFormatMatchesItsGoldenFile(t *testing.T) {
	holds := &contract.Report{
		Contract: "chat-gateway", Spans: 9, Traces: 1, Requests: map[string]int{"chat": 1},
		Rules: []contract.Coverage{{Rule: "span.count", On: "gateway", Tested: 1, Contract: at(8, 5)}},
	}
	reports := map[string]*contract.Report{
		"mixed": mixed(), "holds": holds, "empty": {Contract: "chat-gateway"}, "hostile": hostile(),
	}
	for _, f := range []struct {
		extension string
		write     func(io.Writer, *contract.Report) error
	}{
		{"json", format.JSON},
		{"xml", junit},
		{"github", github},
		{"md", format.Summary},
	} {
		for name, r := range reports {
			t.Run(name+"."+f.extension, func(t *testing.T) {
				var got bytes.Buffer
				require.NoError(t, f.write(&got, r))
				golden := filepath.Join("testdata", name+"."+f.extension)
				if *update {
					require.NoError(t, os.WriteFile(golden, got.Bytes(), 0o644))
				}
				want, err := os.ReadFile(golden)
				require.NoError(t, err, "go test -update writes it")
				assert.Equal(t, string(want), got.String())
			})
		}
	}
}

func TestJSONIsValidWhateverTheTelemetrySays(t *testing.T) {
	for _, r := range []*contract.Report{mixed(), hostile(), {}} {
		var out bytes.Buffer
		require.NoError(t, format.JSON(&out, r))
		var got map[string]any
		require.NoError(t, json.Unmarshal(out.Bytes(), &got))
		assert.Len(t, got["findings"], len(r.Findings))
		assert.NotNil(t, got["accepted"], "an empty list, not null")
		assert.NotNil(t, got["rules"], "an empty list, not null")
	}
}

func TestJUnitIsWellFormedAndItsCountsAddUp(t *testing.T) {
	for _, r := range []*contract.Report{mixed(), hostile(), many(300, 2), {}} {
		var out bytes.Buffer
		require.NoError(t, junit(&out, r))
		var got struct {
			Tests    int `xml:"tests,attr"`
			Failures int `xml:"failures,attr"`
			Skipped  int `xml:"skipped,attr"`
			Suites   []struct {
				Tests    int `xml:"tests,attr"`
				Failures int `xml:"failures,attr"`
				Skipped  int `xml:"skipped,attr"`
				Cases    []struct {
					Failure []string  `xml:"failure"`
					Skipped *struct{} `xml:"skipped"`
				} `xml:"testcase"`
			} `xml:"testsuite"`
		}
		require.NoError(t, xml.Unmarshal(out.Bytes(), &got), out.String())
		var tests, failures, skipped int
		for _, s := range got.Suites {
			suiteFailures, suiteSkipped := 0, 0
			for _, c := range s.Cases {
				assert.False(t, len(c.Failure) > 0 && c.Skipped != nil, "a case has one outcome")
				if len(c.Failure) > 0 {
					suiteFailures++
				}
				if c.Skipped != nil {
					suiteSkipped++
				}
			}
			assert.Equal(t, []int{len(s.Cases), suiteFailures, suiteSkipped}, []int{s.Tests, s.Failures, s.Skipped})
			tests, failures, skipped = tests+s.Tests, failures+s.Failures, skipped+s.Skipped
		}
		assert.Equal(t, []int{tests, failures, skipped}, []int{got.Tests, got.Failures, got.Skipped})
	}
}

func TestJUnitPutsAFindingToTheRuleThatMadeIt(t *testing.T) {
	for _, rule := range []contract.Coverage{
		{Rule: "limit.spans", On: "infer", Key: "k"},
		{Rule: "limit.spans", On: "infer"},
		{Rule: "limit.spans", Key: "k"},
		{Rule: "limit.spans"},
	} {
		rule.Tested, rule.Findings = 1, 1
		var out bytes.Buffer
		require.NoError(t, junit(&out, &contract.Report{
			Rules:    []contract.Coverage{rule},
			Findings: []contract.Finding{{Rule: "limit.spans", Severity: contract.Error, On: "infer", Key: "k", Message: "too many"}},
		}))
		assert.Contains(t, out.String(), `tests="1" failures="1"`, "no second case: %+v", rule)
	}
}

func TestJUnitCountsWarningsAsTheCommandDoes(t *testing.T) {
	r := many(0, 1)
	var lenient, strict bytes.Buffer
	require.NoError(t, format.JUnit(&lenient, r, false))
	require.NoError(t, format.JUnit(&strict, r, true))
	assert.Contains(t, lenient.String(), `failures="0"`)
	assert.Contains(t, lenient.String(), "<system-out>warn   span.count  too many")
	assert.Contains(t, strict.String(), `failures="1"`)
}

func TestGitHubPutsOneCommandOnEachLine(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, github(&out, hostile()))
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	require.Len(t, lines, 1)
	assert.NotContains(t, lines[0], "\r")
	assert.True(t, strings.HasPrefix(lines[0], "::error file=a%2Cb%3Ac%0A.go,line=1,title=forbid.value::a|b\\r\\n::error::x%25"), lines[0])
}

func TestGitHubNamesAFileOnlyWhereTheRepositoryHasIt(t *testing.T) {
	source := func(file string) contract.Finding {
		return contract.Finding{Source: capture.Source{File: file, Line: 4}, Contract: at(12, 7)}
	}
	for _, tt := range []struct {
		name    string
		finding contract.Finding
		want    string
	}{
		{"a source of the repository", source("/repo/a/b.go"), "file=a/b.go,line=4,"},
		{"a source of a dependency", source("/go/pkg/mod/x.go"), "file=cmd/deploy/observability.yaml,line=12,"},
		{"a neighbour with the same beginning", source("/repository/x.go"), "file=cmd/deploy/observability.yaml,line=12,"},
		{"no source", contract.Finding{Contract: at(12, 7)}, "file=cmd/deploy/observability.yaml,line=12,"},
		{"a contract above the working directory", contract.Finding{Contract: spec.Position{File: "../observability.yaml", Line: 2}}, "file=observability.yaml,line=2,"},
		{"a contract without a line", contract.Finding{Contract: spec.Position{File: "c.yaml"}}, "file=cmd/c.yaml,line=1,"},
		{"a contract outside", contract.Finding{Contract: spec.Position{File: "/etc/c.yaml", Line: 2}}, ""},
		{"a built-in profile", contract.Finding{Contract: spec.Position{File: "builtin:chat", Line: 2}}, ""},
		{"nothing", contract.Finding{}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			tt.finding.Severity = contract.Warn
			require.NoError(t, github(&out, &contract.Report{Findings: []contract.Finding{tt.finding}}))
			assert.True(t, strings.HasPrefix(out.String(), "::warning "+tt.want+"title="), out.String())
		})
	}
}

func TestGitHubKeepsToTheAnnotationsThatAreShown(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, github(&out, many(13, 11)))
	assert.Equal(t, 10, strings.Count(out.String(), "::error "))
	assert.Equal(t, 10, strings.Count(out.String(), "::warning "))
	assert.Contains(t, out.String(), "and 3 more errors and 1 more warning\n")
}

func TestSummaryStaysBelowTheLimitOfAStep(t *testing.T) {
	r := many(2000, 2000)
	for i := range r.Findings {
		f := &r.Findings[i]
		f.Message, f.On, f.Path = strings.Repeat("é&", 5000), strings.Repeat("_", 5000), strings.Repeat("<", 5000)
		f.Reason = strings.Repeat(">", 5000)
	}
	r.Accepted = r.Findings
	var out bytes.Buffer
	require.NoError(t, format.Summary(&out, r))
	assert.Less(t, out.Len(), 1<<20)
	assert.True(t, utf8.Valid(out.Bytes()))
	assert.Contains(t, out.String(), "And 3900 more findings.")
}

func TestEachFormatReportsAWriterThatFails(t *testing.T) {
	for _, write := range []func(io.Writer, *contract.Report) error{format.JSON, junit, github, format.Summary} {
		assert.ErrorIs(t, write(broken{}, mixed()), errBroken)
	}
}

var errBroken = errors.New("disk full")

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errBroken }

// A log is read in terminals, too.
func TestAnAnnotationHoldsNoControlCharacter(t *testing.T) {
	var out strings.Builder
	require.NoError(t, github(&out, hostile()))
	assert.True(t, utf8.ValidString(out.String()))
	for line := range strings.Lines(out.String()) {
		assert.False(t, strings.ContainsFunc(strings.TrimSuffix(line, "\n"), unicode.IsControl), "%q", line)
	}
}
