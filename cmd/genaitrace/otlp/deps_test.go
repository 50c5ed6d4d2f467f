package otlp

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The examples import this package, so it stays small: each module that it reaches,
// indirectly too, has its reason here.
var allowed = []string{
	"github.com/genaitrace/otelgenai",           // capture and what it imports
	"go.opentelemetry.io/otel",                  // imported by capture, SDK included
	"go.opentelemetry.io/auto/sdk",              // imported by otel/trace
	"github.com/cespare/xxhash",                 // imported by otel/attribute
	"github.com/go-logr",                        // imported by otel
	"github.com/google/uuid",                    // imported by the SDK
	"go.opentelemetry.io/collector/pdata",       // decodes OTLP
	"go.opentelemetry.io/collector/featuregate", // imported by pdata
	"github.com/hashicorp/go-version",           // imported by featuregate
	"github.com/json-iterator/go",               // imported by pdata
	"github.com/modern-go",                      // imported by json-iterator
	"go.uber.org/multierr",                      // imported by pdata
	"google.golang.org/grpc",                    // the receiver
	"google.golang.org/protobuf",                // imported by grpc
	"google.golang.org/genproto/googleapis/rpc", // the same
	"golang.org/x",                              // the same
}

func TestThePackageReachesOnlyWhatItMay(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".").Output()
	require.NoError(t, err)
	used := make(map[string]bool)
	for _, dep := range strings.Fields(string(out)) {
		i := slices.IndexFunc(allowed, func(entry string) bool { return dep == entry || strings.HasPrefix(dep, entry+"/") })
		if assert.GreaterOrEqual(t, i, 0, "the package reaches %s", dep) {
			used[allowed[i]] = true
		}
	}
	for _, entry := range allowed {
		assert.True(t, used[entry], "%s is not reached any more", entry)
	}
}
