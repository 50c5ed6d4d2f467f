package capture

import (
	"runtime"
	"strings"
)

// maxFrames is how deep below the call of Start a line is looked for.
const maxFrames = 64

// callers returns the stack of whoever called the method that calls it.
func callers() []uintptr {
	var pcs [maxFrames]uintptr
	n := runtime.Callers(3, pcs[:])
	return append([]uintptr(nil), pcs[:n]...)
}

// Packages whose frames are not the line that somebody looks for. What follows a
// path is taken in.
var (
	// sdkPackages carry a call of Start to the SDK.
	sdkPackages = []string{"go.opentelemetry.io/otel", "go.opentelemetry.io/auto"}

	// instrumentPackages start spans on behalf of who calls them.
	instrumentPackages = []string{
		"go.opentelemetry.io/contrib",
		module + "adapters", module + "capture", module + "genaitrace", module + "middleware",
		module + "propagation", module + "sampling", module + "semconv",
	}

	// plumbingPackages stand between an instrument and the code that uses it.
	plumbingPackages = []string{
		"runtime", "reflect", "sync", "testing", "net/http", "internal",
		"google.golang.org/grpc", "golang.org/x/net", "golang.org/x/sync",
	}
)

const module = "github.com/genaitrace/otelgenai/"

// resolve returns the line on the stack that the reader of a report looks for: the
// first one of neither an instrument nor the plumbing around it. A server that
// net/http calls has no such line; then it is where the plumbing meets the
// instrument.
func resolve(stack []uintptr) Source {
	var meeting Source
	met := false
	frames := runtime.CallersFrames(stack)
	for more := true; more; {
		var f runtime.Frame
		f, more = frames.Next()
		pkg := packageOf(f.Function)
		if f.Line == 0 || within(pkg, sdkPackages) {
			continue
		}
		s := Source{File: f.File, Line: f.Line, Function: f.Function}
		switch {
		case strings.HasSuffix(f.File, "_test.go"): // of the instruments themselves, perhaps
			return s
		case within(pkg, instrumentPackages):
			if !met {
				meeting = s
			}
		case within(pkg, plumbingPackages), strings.HasSuffix(f.File, ".pb.go"):
			met = true
			if !meeting.Known() {
				meeting = s
			}
		default:
			return s
		}
	}
	return meeting
}

// packageOf returns the import path of a function: what stands before the first
// dot of its last element.
func packageOf(function string) string {
	slash := strings.LastIndexByte(function, '/') + 1
	if dot := strings.IndexByte(function[slash:], '.'); dot >= 0 {
		return function[:slash+dot]
	}
	return function
}

func within(pkg string, paths []string) bool {
	for _, p := range paths {
		if rest, ok := strings.CutPrefix(pkg, p); ok && (rest == "" || rest[0] == '/') {
			return true
		}
	}
	return false
}
