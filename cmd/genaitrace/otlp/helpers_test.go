package otlp

import (
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// childEnv is set where this test binary runs as another program, which may end with
// connections open.
const childEnv = "OTLP_TEST_CHILD"

func child() bool { return os.Getenv(childEnv) != "" }

func TestMain(m *testing.M) {
	if child() {
		os.Exit(m.Run())
	}
	goleak.VerifyTestMain(m)
}

// head returns the first bytes of a file.
func head(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(data[:min(len(data), 32)])
}

func parse(number string) float64 {
	f, err := strconv.ParseFloat(number, 64)
	if err != nil {
		panic(err)
	}
	return f
}
