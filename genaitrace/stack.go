package genaitrace

import (
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	otelsemconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/genaitrace/otelgenai/internal/bound"
)

const (
	// eventException is the conventions' name of the event.
	eventException = "exception"
	// maxStack is how long a stack may be, in bytes, and maxFrames how deep.
	maxStack, maxFrames = 1000, 32
)

// WithStackTraces adds to the span of an [Operation] that fails, such as a call of a
// tool, an event exception with the error.type and the stack of the goroutine that
// ended it: after a panic the functions that panicked, else the caller of Fail or
// EndErr. Functions, files without their folders, and lines, 1,000 bytes at most; never
// an argument, nor the message of the error. The log records of exceptions have the
// stack too, those of calls and inferences included. Default: none, since stacks tell
// how a service is built.
func WithStackTraces() Option {
	return optionFunc(func(c config) config {
		c.stacks = true
		return c
	})
}

// addStack adds the event to a span that ends at that time.
func addStack(span trace.Span, errType string, at time.Time) {
	span.AddEvent(eventException, trace.WithTimestamp(at), trace.WithAttributes(
		otelsemconv.ExceptionType(errType), otelsemconv.ExceptionStacktrace(stack())))
}

// stack is the stack of this goroutine from the first function that is none of this
// package or of the runtime.
func stack() string {
	var counters [maxFrames]uintptr
	frames := runtime.CallersFrames(counters[:runtime.Callers(3, counters[:])])
	var b strings.Builder
	for more := true; more; {
		var frame runtime.Frame
		frame, more = frames.Next()
		if frame.Function == "" || b.Len() == 0 && isOurs(frame.Function) {
			continue
		}
		line := frame.Function + " " + filepath.Base(frame.File) + ":" + strconv.Itoa(frame.Line) + "\n"
		if b.Len()+len(line) > maxStack {
			break
		}
		b.WriteString(line)
	}
	return bound.String(b.String(), maxStack)
}

func isOurs(function string) bool {
	return strings.HasPrefix(function, ScopeName+".") || strings.HasPrefix(function, "runtime.")
}
