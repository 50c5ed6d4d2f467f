package guide

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
	"observability.yaml": "contract: genai.observability/v1\nname: own\nextends: [examples/chat/observability.yaml]\n",
	"e2e.sh":             "#!/bin/sh\nexec go run ./examples/chat -n 4\n",
}

// tested is what a check reports last, and what no other command prints.
const tested = "rules tested"

// runs are the commands that are run here.
var runs = map[string]run{
	"go run ./examples/toolcalls":                                                    {want: "execute_tool"},
	`go run ./examples/toolcalls -prompt "What is (3 + 4) * 12.5?"`:                  {want: "87.5"},
	"go run ./cmd/genaitrace view toolcalls.jsonl":                                   {want: "execute_tool", before: "go run ./examples/toolcalls -record toolcalls.jsonl"},
	serve + "examples/toolcalls/contract.yaml -- go run ./examples/toolcalls":        {want: tested},
	"go run ./examples/chat":                                                         {want: "inference.prefill"},
	"go run ./examples/chat -n 8 -concurrency 4":                                     {want: "queue.wait"},
	"go run ./examples/rag":                                                          {want: "rag.rerank"},
	"go run ./examples/gateway -once":                                                {want: "where the TTFT of chat toy-1 went"},
	"go run ./internal/dashgen":                                                      {makes: "docs/dashboards/grafana.json"},
	"go run ./cmd/genaitrace view rag.jsonl":                                         {want: "rag.rerank", before: "go run ./examples/rag -record rag.jsonl"},
	record:                                                                           {want: tested, makes: "trace.jsonl"},
	serve + "builtin:gateway -- " + "go run ./examples/chat":                         {want: tested},
	serve + "examples/chat/observability.yaml -- go run ./examples/chat -n 4":        {want: tested},
	serve + "examples/gateway/observability.yaml -- go run ./examples/gateway -once": {want: tested},
	serve + "examples/rag/contract.yaml -- go run ./examples/rag":                    {want: tested},
	`go run ./examples/rag -prompt "Why is there no event for each token?"`:          {want: "rag.rerank"},
	"go run ./cmd/genaitrace view --html trace.html trace.jsonl":                     {makes: "trace.html", before: record},
	current + "serve --contract builtin:gateway -- go test ./...":                    {want: tested, instead: current + "serve --contract builtin:gateway -- go run ./examples/gateway -once"},
	latest + theirs: {want: tested, instead: current + theirs},
	latest + inCI:   {want: tested, makes: "observability.xml", instead: current + inCI},
	"genaitrace check --contract observability.yaml gateway.jsonl engine.jsonl": {
		want: tested, before: "go run ./examples/chat -n 4 -record gateway.jsonl && go run ./examples/chat -n 4 -record engine.jsonl",
	},
	"genaitrace profiles":                            {want: "gateway"},
	"genaitrace profiles gateway":                    {want: "spans:"},
	"genaitrace rules":                               {want: "attribute.missing"},
	"genaitrace rules attribute.missing":             {want: "attribute"},
	"genaitrace schema > contract.schema.json":       {makes: "contract.schema.json"},
	"genaitrace serve --contract observability.yaml": {want: "nothing", instead: "timeout -s INT 2 genaitrace serve --contract observability.yaml --grpc 127.0.0.1:0 --http 127.0.0.1:0 2>&1 || true"},
	"genaitrace mutate":                              {want: "--contract", instead: "genaitrace mutate --help 2>&1"},
	"genaitrace serve":                               {want: "--contract", instead: "genaitrace serve --help 2>&1"},
	"genaitrace view":                                {want: "--html", instead: "genaitrace view --help 2>&1"},
	"genaitrace view --html":                         {want: "--html", instead: "genaitrace view --help 2>&1"},
}

const (
	gate  = ".ci/run"
	trial = ".ci/trial"
)

// leaves are the commands that are not run here. Two kinds need no entry. Those of go test,
// because most take minutes: their packages, flags and tests are looked for instead. And go
// get of what this repository will release, which .ci/trial does with a replacement.
var leaves = map[string]leave{
	"git clone https://github.com/genaitrace/otelgenai && cd otelgenai": {because: "needs the network"},
	"go generate ./...":                          {"changes the checkout", gate, "go generate ./..."},
	"cd benchmarks && GOWORK=off go run ./table": {because: "takes long, on a quiet machine"},
	"go run ./genaitrace/internal/costdoc":       {because: "takes seven minutes"},

	// The gate and its scripts do not run themselves.
	"bash .ci/run":       {because: "runs this test"},
	"bash .ci/run STEP…": {because: "runs this test"},
	"INTEGRATION=full bash .ci/run integration collector": {"builds for many minutes", ".github/workflows/ci.yml", "INTEGRATION"},
	"bash .ci/run format vet lint":                        {because: "builds a linter"},
	"bash .ci/trial":                                      {"is a step of the gate", gate, "bash .ci/trial"},
	"bash .ci/apidiff":                                    {"compares with a release", ".github/workflows/ci.yml", "bash .ci/apidiff"},
	"bash .ci/release v0.2.0":                             {because: "makes a release"},

	// Software of others.
	"go run ./examples/toolcalls -base-url http://localhost:11434/v1 -model qwen3:4b": {because: "needs a model server"},
	"go run ./examples/gateway -upstream http://localhost:11434":                      {"needs a model server", "examples/gateway/run_test.go", "func TestRunServes("},
	"go run ./examples/gateway -upstream http://localhost:8000 -once -model NAME":     {"needs a model server", "examples/gateway/run_test.go", "func TestRunOnceWithAServer("},
	"promtool check rules rules.yaml":                                                 {"needs promtool", "internal/dashgen/generated_test.go", `ask("check", "rules", "rules.yaml")`},
	"promtool test rules rules_test.yaml":                                             {"needs promtool", "internal/dashgen/generated_test.go", `ask("test", "rules", "rules_test.yaml")`},
	"otelcol-contrib --config sampler.yaml --config mine.yaml":                        {"needs a Collector", "integration/collector_test.go", `args = append(args, "--config="+file)`},

	// What a module outside the repository does: .ci/trial follows the page with this
	// repository in the place of what is not released.
	"mkdir hello && cd hello":       {"a module outside", trial, `cd "$work"`},
	"go mod init example.com/hello": {"a module outside", trial, "go mod init example.com/hello"},
	"go mod tidy":                   {"a module outside", trial, "go mod tidy"},
	"go tool genaitrace serve --contract builtin:streaming-chat --record trace.jsonl":              {"a module outside", trial, "serve --contract builtin:streaming-chat --record trace.jsonl"},
	"go tool genaitrace serve --contract builtin:gateway -- go test ./...":                         {because: "the tests are the reader's"},
	"go tool genaitrace view trace.jsonl":                                                          {"a module outside", trial, "view trace.jsonl"},
	"go tool genaitrace view --html trace.html trace.jsonl":                                        {"a module outside", trial, "view --html trace.html trace.jsonl"},
	"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318 OTEL_SERVICE_NAME=service go run ./service": {"a module outside", trial, "OTEL_SERVICE_NAME=service bin/service"},
	"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318 OTEL_SERVICE_NAME=client go run ./client":   {"a module outside", trial, "OTEL_SERVICE_NAME=client bin/client"},

	"bash integration/parts && cd integration && GOWORK=off go test ./...": {"builds for some ten minutes", gate, "bash integration/parts"},
}
