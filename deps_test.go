package otelgenai_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const module = "github.com/genaitrace/otelgenai/"

// What a service imports with us ends up in its binary and can force an upgrade
// on it. So each room has a list of what it may reach, indirectly too, outside
// the standard library, and each entry has its reason.
var (
	otelAPI = []string{
		"go.opentelemetry.io/otel", // globals and the error handler
		"go.opentelemetry.io/otel/attribute",
		"go.opentelemetry.io/otel/baggage",
		"go.opentelemetry.io/otel/codes",
		"go.opentelemetry.io/otel/internal",
		"go.opentelemetry.io/otel/log", // the globals of otel import its API
		"go.opentelemetry.io/otel/metric",
		"go.opentelemetry.io/otel/propagation",
		"go.opentelemetry.io/otel/semconv", // stable HTTP, RPC and server names
		"go.opentelemetry.io/otel/trace",
		"go.opentelemetry.io/auto/sdk", // imported by otel/trace
		"github.com/go-logr",           // imported by otel's error handler
		"github.com/cespare/xxhash/v2", // imported by otel/attribute
	}
	otelSDK = []string{
		"go.opentelemetry.io/otel/sdk", // for the rooms that wrap exporters
		"github.com/google/uuid",       // imported by it
		"golang.org/x/sys",             // imported by it
	}
	yamlLibrary  = []string{"github.com/goccy/go-yaml"} // for contract files; tests alone import these rooms
	grpcMetadata = []string{
		"google.golang.org/grpc/metadata", // gRPC's carrier is this type
		// What that package imports itself:
		"google.golang.org/grpc/connectivity",
		"google.golang.org/grpc/grpclog",
		"google.golang.org/grpc/internal",
		"google.golang.org/grpc/serviceconfig",
		"golang.org/x/sys",
	}
	grpcAll = []string{
		"google.golang.org", // grpc, its generated types and protobuf
		"golang.org/x/net",  // imported by grpc
		"golang.org/x/sys",  // imported by grpc
		"golang.org/x/text", // imported by grpc
	}
)

func TestEachRoomReachesOnlyWhatItMay(t *testing.T) {
	for _, room := range []struct {
		path    string
		allowed [][]string
		own     []string // rooms of this module it may import
	}{
		{"semconv", [][]string{otelAPI}, nil},
		{"semconv/genaiconv", [][]string{otelAPI}, []string{"semconv/internal/measure"}},
		{"semconv/mcpconv", [][]string{otelAPI}, []string{"semconv/internal/measure"}},
		{"propagation", [][]string{otelAPI, grpcMetadata}, nil},
		{"propagation/deferred", [][]string{otelAPI, otelSDK, grpcMetadata}, []string{"propagation"}},
		{"genaitrace", [][]string{otelAPI, grpcMetadata}, []string{"internal/bound", "internal/deadline", "internal/secret", "propagation", "semconv"}},
		{"genaitrace/facts", [][]string{otelAPI, otelSDK, grpcMetadata}, []string{"genaitrace", "internal/bound", "internal/deadline", "internal/secret", "propagation", "semconv"}},
		{"middleware/wire", [][]string{otelAPI, grpcMetadata}, []string{"genaitrace", "internal/bound", "internal/deadline", "internal/secret", "propagation", "semconv"}},
		{"middleware/genaihttp", [][]string{otelAPI, grpcMetadata}, []string{"genaitrace", "internal/bound", "internal/deadline", "internal/fault", "internal/secret", "middleware/internal/tail", "middleware/wire", "propagation", "semconv"}},
		{"middleware/genaigrpc", [][]string{otelAPI, grpcAll}, []string{"genaitrace", "internal/bound", "internal/deadline", "internal/fault", "internal/secret", "middleware/internal/tail", "propagation", "semconv"}},
		{"semconv/translate", [][]string{otelAPI, otelSDK}, nil},
		{"sampling", [][]string{otelAPI, otelSDK}, []string{"internal/bound", "semconv"}},
		{"capture", [][]string{otelAPI, otelSDK}, []string{"semconv"}},
		{"capture/waterfall", nil, nil},
		{"capture/view", [][]string{otelAPI, otelSDK, grpcMetadata}, []string{"capture", "genaitrace", "internal/bound", "internal/deadline", "internal/secret", "propagation", "semconv"}},
		{"contract", [][]string{otelAPI, otelSDK, yamlLibrary}, []string{"capture", "internal/secret", "semconv"}},
		{"contract/mutate", [][]string{otelAPI, otelSDK, yamlLibrary}, []string{"capture", "contract", "internal/secret", "semconv"}},
		{"contract/contracttest", [][]string{otelAPI, otelSDK, yamlLibrary}, []string{"capture", "contract", "internal/secret", "semconv"}},
	} {
		t.Run(room.path, func(t *testing.T) {
			allowed := slices.Concat(room.allowed...)
			for _, dep := range deps(t, room.path) {
				if own, ok := strings.CutPrefix(dep, module); ok {
					assert.True(t, own == room.path || hasPrefix(own, room.own) || strings.HasPrefix(own, room.path+"/"),
						"%s imports the room %s", room.path, own)
					continue
				}
				assert.True(t, hasPrefix(dep, allowed), "%s reaches %s, which no entry of its list allows", room.path, dep)
			}
		})
	}
}

// hasPrefix reports whether path is one of the entries or lies below one. Below
// the root of otel lies the SDK too, so that entry stands for itself alone.
func hasPrefix(path string, entries []string) bool {
	return slices.ContainsFunc(entries, func(entry string) bool {
		return path == entry || entry != "go.opentelemetry.io/otel" && strings.HasPrefix(path, entry+"/")
	})
}

// deps lists what a package reaches outside the standard library.
func deps(t *testing.T, room string) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", "./"+room)
	out, err := cmd.Output()
	require.NoError(t, err, "go list")
	return strings.Fields(string(out))
}
