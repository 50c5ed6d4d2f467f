package cli_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
)

// binary is the command, built once.
var binary string

func TestMain(m *testing.M) {
	if what := os.Getenv(childVariable); what != "" {
		os.Exit(child(what))
	}
	dir, err := os.MkdirTemp("", "genaitrace")
	if err == nil {
		binary = filepath.Join(dir, "genaitrace")
		build := exec.Command("go", "build", "-o", binary, "../..")
		build.Stderr = os.Stderr
		err = build.Run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "the command cannot be built:", err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(dir)
		os.Exit(code)
	}))
}
