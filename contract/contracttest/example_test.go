package contracttest_test

import (
	"fmt"
	"strings"

	"github.com/genaitrace/otelgenai/contract/contracttest"
)

// console stands for the *testing.T of a test: it prints the first lines of failures.
type console struct {
	failed  bool
	cleanup func()
}

func (*console) Helper()             {}
func (*console) Logf(string, ...any) {}
func (c *console) Failed() bool      { return c.failed }
func (c *console) Cleanup(f func())  { c.cleanup = f }
func (c *console) Errorf(format string, args ...any) {
	c.failed = true
	lines := strings.Split(fmt.Sprintf(format, args...), "\n")
	for _, line := range lines[:min(len(lines), 4)] {
		fmt.Println(strings.TrimRight(line, " "))
	}
}
func (c *console) Fatalf(format string, args ...any) {
	c.Errorf(format, args...)
	panic("the test ends")
}

// A test of a service that keeps its contract.
func Example() {
	t := &console{} // a *testing.T
	obs := contracttest.New(t, contracttest.File("testdata/observability.yaml"))
	newShop(obs).chat() // give obs.TracerProvider() and the others to the service, and call it
	obs.Require(t, "chat")

	infer := obs.Span(t, "infer")
	infer.Attr("llm.ttft_ms").Between(1, 60_000)
	infer.Child("decode").Events("first_token").Present()
	obs.NoSpan(t, "retrieve")
	fmt.Println("failed:", t.Failed())
	// Output:
	// failed: false
}

// A test of a service that breaks it.
func ExampleObserver_Require() {
	t := &console{} // a *testing.T
	obs := contracttest.New(t, contracttest.File("testdata/observability.yaml"))
	service := newShop(obs)
	service.noModel = true
	service.chat()
	obs.Require(t, "chat")
	// Output:
	// contracttest: the contract shop does not hold (1 error):
	//
	// error  attribute.missing  infer has no gen_ai.request.model
	//        span      POST /v1/chat/completions › inference.generate
}
