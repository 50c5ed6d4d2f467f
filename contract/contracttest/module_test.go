package contracttest_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The service and the tests of somebody who has this module as a dependency.
var userModule = map[string]string{
	"go.mod": `module example.com/shop

go 1.26.0

require (
	github.com/genaitrace/otelgenai v0.0.0
	go.opentelemetry.io/otel v1.47.0
	go.opentelemetry.io/otel/trace v1.47.0
)

replace github.com/genaitrace/otelgenai => ROOT
`,
	"observability.yaml": `contract: genai.observability/v1
name: shop
requests:
  chat: {root: gateway, requires: [infer]}
spans:
  gateway: {match: {name: "POST /chat"}, kind: server}
  infer: {match: {name: infer}, parent: {is: gateway}, attributes: {model: required}}
`,
	"shop.go": `package shop

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

func chat(tp trace.TracerProvider, model string, end bool) {
	tracer := tp.Tracer("shop")
	ctx, span := tracer.Start(context.Background(), "POST /chat", trace.WithSpanKind(trace.SpanKindServer))
	defer span.End()
	_, infer := tracer.Start(ctx, "infer")
	if model != "" {
		infer.SetAttributes(attribute.String("model", model))
	}
	if end {
		infer.End()
	}
}
`,
	"shop_test.go": `package shop

import (
	"flag"
	"testing"

	"github.com/genaitrace/otelgenai/contract/contracttest"
)

func TestMain(m *testing.M) { contracttest.Main(m) }

func TestHolds(t *testing.T) {
	obs := contracttest.New(t, contracttest.File("observability.yaml"))
	chat(obs.TracerProvider(), "toy", true)
	obs.Require(t, "chat")
	obs.Span(t, "infer").Attr("model").Equal("toy")
}

func TestBroken(t *testing.T) {
	obs := contracttest.New(t, contracttest.File("observability.yaml"))
	chat(obs.TracerProvider(), "", true)
	obs.Require(t, "chat")
}

func TestLeaks(t *testing.T) {
	obs := contracttest.New(t, contracttest.File("observability.yaml"))
	chat(obs.TracerProvider(), "toy", false)
}

func TestBubble(t *testing.T) {
	contracttest.Synctest(t, contracttest.File("observability.yaml"), func(t *testing.T, obs *contracttest.Observer) {
		chat(obs.TracerProvider(), "", true)
	})
}

func TestGolden(t *testing.T) {
	obs := contracttest.New(t, contracttest.File("observability.yaml"))
	chat(obs.TracerProvider(), "toy", true)
	obs.Golden(t, "testdata/chat.trace.txt")
	if flag.Lookup("update") == nil {
		t.Error("there is no flag update")
	}
}
`,
	"own/own_test.go": `package own

import (
	"flag"
	"testing"

	"github.com/genaitrace/otelgenai/contract/contracttest"
)

var update = flag.Bool("update", false, "of the user")

func TestMain(m *testing.M) { contracttest.Main(m) }

func TestAFlagOfOnesOwn(t *testing.T) {
	obs := contracttest.New(t, contracttest.Builtin("base"))
	_, span := obs.TracerProvider().Tracer("").Start(t.Context(), "s")
	span.End()
	obs.Golden(t, "testdata/own.trace.txt")
	obs.Require(t)
	if !*update {
		t.Error("the flag is not set")
	}
}
`,
}

func TestInTheModuleOfAUser(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a module")
	}
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	dir := t.TempDir()
	for name, text := range userModule {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(strings.ReplaceAll(text, "ROOT", filepath.ToSlash(root))), 0o600))
	}
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.sum"), sums, 0o600))
	run := func(in, name string, args ...string) string {
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir = filepath.Join(dir, in)
		cmd.Env = append(os.Environ(), "GOFLAGS="+os.Getenv("GOFLAGS")+" -mod=mod", "GOPROXY=off", "GOWORK=off", "UPDATE_GOLDEN=")
		out, err := cmd.CombinedOutput()
		if exit := new(exec.ExitError); !errors.As(err, &exit) { // a test that fails is looked at below
			require.NoError(t, err)
		}
		return string(out)
	}
	if out := run("", "go", "test", "-vet=off", "-ldflags=-s -w", "-c", "-o", dir+string(filepath.Separator), "./..."); out != "" {
		t.Log(out)
	}
	shop, own := filepath.Join(dir, "shop.test"), filepath.Join(dir, "own.test")

	assert.Contains(t, run("", shop, "-test.run=Golden"), "there is no golden file testdata/chat.trace.txt; run the test with -update to write it.")
	updated := run("own", own, "-test.v", "-update") + run("", shop, "-test.v", "-test.run=Golden", "-update")
	assert.Contains(t, updated, "wrote testdata/own.trace.txt")
	assert.Contains(t, updated, "--- PASS: TestAFlagOfOnesOwn")
	assert.Contains(t, updated, "--- PASS: TestGolden")
	golden, err := os.ReadFile(filepath.Join(dir, "testdata", "chat.trace.txt"))
	require.NoError(t, err)
	assert.Equal(t, "POST /chat [server]\n  infer [internal]\n      model: \"toy\"\n", string(golden))

	out := run("", shop, "-test.v")
	for _, part := range []string{
		"--- PASS: TestHolds",
		"--- PASS: TestGolden",
		"--- FAIL: TestBroken",
		"shop_test.go:22: contracttest: the contract shop does not hold (1 error):",
		"error  attribute.missing  infer has no model",
		"span      POST /chat › infer\n",
		"started   shop.go:14\n",
		"contract  observability.yaml:7:",
		"say why in observability.yaml:",
		"--- FAIL: TestLeaks",
		"shop_test.go:26: contracttest: spans have not ended",
		"error  topology.never_ended  infer did not end",
		"--- FAIL: TestBubble",
	} {
		assert.Contains(t, out, part)
	}
	if t.Failed() {
		t.Log(updated, out)
	}
}
