package integration_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

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
