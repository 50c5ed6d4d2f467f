package guide

import (
	"fmt"
	"regexp"
	"strings"
)

// A run is a command that is run from a clean checkout.
type run struct {
	want    string // is printed
	makes   string // a file that is written
	before  string // a command that makes what this one needs
	instead string // run in its place: the pages leave a part to their reader, or it never ends
}

// A leave is a command that is not run, with the reason. Where something else runs it,
// by is a file of the repository that has the text having.
type leave struct{ because, by, having string }

const (
	serve   = "go run ./cmd/genaitrace serve --contract "
	record  = serve + "builtin:chat --record trace.jsonl -- go run ./examples/chat"
	theirs  = "serve --contract observability.yaml -- ./e2e.sh"
	latest  = "go run github.com/genaitrace/otelgenai/cmd/genaitrace@latest "
	current = "go run github.com/genaitrace/otelgenai/cmd/genaitrace " // what latest is once it is released
	inCI    = "serve --contract observability.yaml --format text --format github --format junit=observability.xml --record observability.jsonl.gz -- ./e2e.sh"
)

// theReaders are files that the pages leave to their reader.
var theReaders = map[string]string{
	"observability.yaml": "contract: genai.observability/v1\nname: own\nextends: [examples/chat/contract.yaml]\n",
	"e2e.sh":             "#!/bin/sh\nexec go run ./examples/chat -n 4\n",
}

// tested is what a check reports last, and what no other command prints.
const tested = "rules tested"

// runs are commands that are run here. Those of the examples and of genaitrace are run
// without an entry; one is for those of which more is known, or which need something first.
var runs = map[string]run{
	"go run ./examples/chat":                     {want: "inference.prefill"},
	"go run ./examples/chat -n 8 -concurrency 4": {want: "queue.wait"},
	"go run ./examples/rag":                      {want: "rag.rerank"},
	"go run ./examples/gateway -once":            {want: "where the TTFT of chat toy-1 went"},
	"go run ./internal/dashgen":                  {makes: "docs/dashboards/grafana.json"},
	"go run ./cmd/genaitrace view gateway.jsonl": {before: "go run ./examples/gateway -once -record gateway.jsonl"},
	record: {want: tested, makes: "trace.jsonl"},
	"go run ./cmd/genaitrace view --html trace.html trace.jsonl": {makes: "trace.html", before: record},
	latest + theirs: {want: tested, instead: current + theirs},
	latest + inCI:   {want: tested, makes: "observability.xml", instead: current + inCI},
	"genaitrace check --contract observability.yaml gateway.jsonl engine.jsonl": {
		want: tested, before: "go run ./examples/chat -n 4 -record gateway.jsonl && go run ./examples/chat -n 4 -record engine.jsonl",
	},
	"genaitrace profiles":                            {want: "gateway"},
	"genaitrace profiles gateway":                    {want: "spans:"},
	"genaitrace rules":                               {want: "attribute.missing"},
	"genaitrace schema > contract.schema.json":       {makes: "contract.schema.json"},
	"genaitrace serve --contract observability.yaml": {want: "nothing", instead: "timeout -s INT 2 genaitrace serve --contract observability.yaml --grpc 127.0.0.1:0 --http 127.0.0.1:0 2>&1 || true"},
	"genaitrace mutate":                              {want: "--contract", instead: "genaitrace mutate --help 2>&1"},
	"genaitrace serve":                               {want: "--contract", instead: "genaitrace serve --help 2>&1"},
	"genaitrace view":                                {want: "--html", instead: "genaitrace view --help 2>&1"},
	"genaitrace view --html":                         {want: "--html", instead: "genaitrace view --help 2>&1"},
}

var (
	ours    = regexp.MustCompile(`^(go run \./(examples/|cmd/genaitrace )|genaitrace )`)
	drawn   = regexp.MustCompile(`^go run \./cmd/genaitrace view ([a-z]+)\.jsonl$`)
	servers = regexp.MustCompile(` -(base-url|upstream) `) // of models
)

// runOf says how a command is run, if it is.
func runOf(line string) (r run, ok bool) {
	if r, ok = runs[line]; ok || !ours.MatchString(line) || servers.MatchString(line) {
		return r, ok
	}
	if strings.HasPrefix(line, serve) {
		r.want = tested
	}
	if found := drawn.FindStringSubmatch(line); found != nil { // of the example of that name
		r.before = fmt.Sprintf("go run ./examples/%[1]s -record %[1]s.jsonl", found[1])
	}
	return r, true
}

const (
	gate  = ".ci/run"
	trial = ".ci/trial"
)

// leaves are the commands that are not run here. Four kinds need no entry:
//   - of the gate, which runs this test; its steps are looked for
//   - of go test, because most take minutes; packages, flags and tests are looked for
//   - those that ask a server of models, which the tests of the examples have in their place
//   - go get of what this repository will release, which .ci/trial does with a replacement
var leaves = map[string]leave{
	"git clone https://github.com/genaitrace/otelgenai && cd otelgenai": {because: "needs the network"},
	"go generate ./...":                          {"changes the checkout", gate, "go generate ./..."},
	"cd benchmarks && GOWORK=off go run ./table": {because: "takes long, on a quiet machine"},
	"go run ./genaitrace/internal/costdoc":       {because: "takes seven minutes"},

	// The gate and its scripts do not run themselves.
	"bash .ci/trial":          {"is a step of the gate", gate, "bash .ci/trial"},
	"bash .ci/apidiff":        {"compares with a release", ".github/workflows/ci.yml", "bash .ci/apidiff"},
	"bash .ci/release v0.2.0": {because: "makes a release"},

	// Software of others.
	"promtool check rules rules.yaml":                          {"needs promtool", "internal/dashgen/generated_test.go", `ask("check", "rules", "rules.yaml")`},
	"promtool test rules rules_test.yaml":                      {"needs promtool", "internal/dashgen/generated_test.go", `ask("test", "rules", "rules_test.yaml")`},
	"otelcol-contrib --config sampler.yaml --config mine.yaml": {"needs a Collector", "integration/collector_test.go", `args = append(args, "--config="+file)`},

	// What a module outside the repository does: .ci/trial follows the page with this
	// repository in the place of what is not released.
	"mkdir hello && cd hello":       {"a module outside", trial, `cd "$work"`},
	"go mod init example.com/hello": {"a module outside", trial, "go mod init example.com/hello"},
	"go mod tidy":                   {"a module outside", trial, "go mod tidy"},
	"go tool genaitrace serve --contract builtin:streaming-chat --record trace.jsonl":              {"a module outside", trial, "serve --contract builtin:streaming-chat --record trace.jsonl"},
	"go tool genaitrace serve --contract builtin:streaming-chat -- ./e2e.sh":                       {because: "the script is the reader's"},
	"go tool genaitrace view trace.jsonl":                                                          {"a module outside", trial, "view trace.jsonl"},
	"go tool genaitrace view --html trace.html trace.jsonl":                                        {"a module outside", trial, "view --html trace.html trace.jsonl"},
	"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318 OTEL_SERVICE_NAME=service go run ./service": {"a module outside", trial, "OTEL_SERVICE_NAME=service bin/service"},
	"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318 OTEL_SERVICE_NAME=client go run ./client":   {"a module outside", trial, "OTEL_SERVICE_NAME=client bin/client"},

	"bash integration/parts && cd integration && GOWORK=off go test ./...": {"builds for some ten minutes", gate, "bash integration/parts"},
}
