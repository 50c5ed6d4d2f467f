package contract_test

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"

	"github.com/genaitrace/otelgenai/capture"
	"github.com/genaitrace/otelgenai/contract"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const chatService = `
spans:
  gateway: {match: {kind: server}, attributes: {http.route: required}}
  call:
    match: {operation: chat}
    kind: client
    name: "chat {gen_ai.request.model}"
    parent: {is: gateway}
    attributes:
      gen_ai.request.model: required
      gen_ai.response.finish_reasons: {required_if: {status: unset}}
requests:
  chat: {root: gateway, requires: [call]}
  batch: {root: gateway, when: {attr: {http.route: /batch}}, optional: true}
forbid: {values: ["builtin:email"]}
timing:
  - {id: ttft-inside, on: call, optional: true, at_most: [attr(llm.ttft_ms), duration], tolerance: {abs: 1ms}, why: llm.ttft_ms counts milliseconds}
accept:
  - {rule: attribute.missing, on: gateway, reason: the router is replaced in May, until: 2026-12-31}
`

func TestTheReportIsWrittenForPeople(t *testing.T) {
	model := text("gen_ai.request.model", "toy-1")
	chat := []any{client, text("gen_ai.operation.name", "chat"), text("gen_ai.provider.name", "vllm")}
	call := func(name string, parts ...any) *node { return span(name, 5, 95, append(parts, chat...)...) }
	stop := attribute.StringSlice("gen_ai.response.finish_reasons", []string{"stop"})
	for name, got := range map[string]*capture.Capture{
		"holds": traces(span("POST /chat", 0, 100, server, call("chat toy-1", model, stop))),
		"findings": traces(
			span("POST /chat", 0, 100, server,
				call("chat toy-1", model, number("llm.ttft_ms", 250), capture.Source{File: "/src/app/ask.go", Line: 41}),
				call("chat", model, stop, text("note", "write to ops@example.com"), text("gen_ai.request.modle", "x"))),
			span("POST /chat", 0, 100, server, call("chat toy-1", model), call("chat toy-1", model, text("genai.zebra", "x"))),
		),
		"hostile": traces(span("POST /chat\n\x1b[31merror  fake.rule", 0, 100, server, text("gen_ai.request.model\r\n", "\x07"),
			call("chat \xff", model, stop, text("gen_ai.response.id\u202e", "x")))),
		"empty": {},
	} {
		t.Run(name, func(t *testing.T) {
			r := parse(t, strings.Replace(chatService, "name: test", "name: chat", 1)).Check(got, on("2026-03-01"))
			r.Contract = "chat-gateway"
			if name == "findings" {
				r.Late, r.Evicted, r.Dropped, r.Omitted = 1, 2, 3, 4
			}
			var b strings.Builder
			require.NoError(t, r.WriteText(&b))
			golden := filepath.Join("testdata", "report", name+".txt")
			if *update {
				require.NoError(t, os.MkdirAll(filepath.Dir(golden), 0o755))
				require.NoError(t, os.WriteFile(golden, []byte(b.String()), 0o644))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err, "go test -update writes it")
			assert.Equal(t, string(want), b.String())
			for _, c := range b.String() {
				assert.False(t, c != '\n' && (c < ' ' || c == 0x7f), "no control character")
			}
		})
	}
}

func TestASourceIsNamedFromTheWorkingDirectory(t *testing.T) {
	dir, err := os.Getwd()
	require.NoError(t, err)
	f := contract.Finding{Severity: contract.Error, Rule: "span.name", Message: "m", Source: capture.Source{File: filepath.Join(dir, "sub", "ask.go"), Line: 7}}
	assert.Equal(t, "error  span.name  m\n       started   "+filepath.Join("sub", "ask.go")+":7\n", f.Text())
}

func TestADeepPathIsCutInTheMiddle(t *testing.T) {
	top := span("leaf", 0, 1, neverEnded)
	for i := 20; i > 0; i-- {
		top = span(sprintf("s%d", i), 0, 1, top)
	}
	r := parse(t, roleOfJobs).Check(traces(top))
	require.Len(t, r.Findings, 1)
	assert.Equal(t, "s1 › … › s11 › s12 › s13 › s14 › s15 › s16 › s17 › s18 › s19 › s20 › leaf", r.Findings[0].Path)
}

func TestAnOverlongNameIsCut(t *testing.T) {
	r := parse(t, roleOfJobs).Check(traces(span(strings.Repeat("ü", 5000), 0, 1, neverEnded, text("genai."+strings.Repeat("x", 5000), "y"), event(strings.Repeat("e", 5000), 5))))
	assert.NotEmpty(t, r.Findings)
	for _, f := range r.Findings {
		assert.Less(t, len(f.Text()), 1500)
	}
}

func TestManyKindsOfFindingsAreBoundedAndCounted(t *testing.T) {
	root := span("job", 0, 1)
	for i := range 10_050 {
		root.span.Attributes = append(root.span.Attributes, text(sprintf("genai.zebra%d.stripes", i), "x"))
	}
	r := parse(t, roleOfJobs).Check(traces(root))
	assert.Len(t, r.Findings, 10_000)
	assert.Equal(t, 50, r.Omitted)
	assert.Contains(t, r.Summary(), ", 50 violations not listed")
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errFull }

var errFull = errors.New("disk full")

func TestAWriterThatFailsIsReported(t *testing.T) {
	assert.ErrorIs(t, (&contract.Report{}).WriteText(fullDisk{}), errFull)
}
