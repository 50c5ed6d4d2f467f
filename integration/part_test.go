package integration_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// scratch is a folder for what several tests use.
var scratch string

func TestMain(m *testing.M) {
	var err error
	if scratch, err = os.MkdirTemp("", "integration"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(scratch)
		os.Exit(code)
	}))
}

// part returns the path of what bash integration/parts has got, or skips the test.
func part(t *testing.T, path ...string) string {
	t.Helper()
	root := os.Getenv("INTEGRATION_PARTS")
	if root == "" {
		here, err := os.Getwd()
		require.NoError(t, err)
		root = filepath.Join(filepath.Dir(here), ".cache", "integration")
	}
	found := filepath.Join(append([]string{root}, path...)...)
	if _, err := os.Stat(found); err != nil {
		t.Skipf("%s is missing: bash integration/parts %s gets it", found, path[0])
	}
	return found
}
