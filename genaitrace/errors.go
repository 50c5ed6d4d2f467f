package genaitrace

import (
	"context"
	"errors"
	"reflect"

	"github.com/genaitrace/otelgenai/internal/bound"
	"github.com/genaitrace/otelgenai/internal/deadline"
)

// outcome is how an operation ended.
type outcome uint8

const (
	succeeded outcome = iota
	cancelled         // by whoever waits for the answer: not an error
	timedOut
	failed
)

func (o outcome) isError() bool { return o == failed || o == timedOut }

// Values of error.type that do not name a Go type.
const (
	errTypeTimeout   = "timeout"
	errTypePanic     = "panic"
	errTypeTruncated = "stream_truncated"
)

// classify says how an operation that returned err ended. A context that is
// done explains errors that do not wrap its error, such as a gRPC status.
func classify(ctx context.Context, err error) (outcome, string) {
	if err == nil {
		return succeeded, ""
	}
	for _, cause := range []error{err, ctx.Err()} {
		switch {
		case errors.Is(cause, context.DeadlineExceeded):
			return timedOut, errTypeTimeout
		case errors.Is(cause, context.Canceled) && deadline.Reached(ctx):
			return timedOut, errTypeTimeout
		case errors.Is(cause, context.Canceled):
			return cancelled, ""
		}
	}
	return failed, errorType(err)
}

// errorType is a value for error.type of low cardinality: what the error says
// of itself through an ErrorType method, else the name of the first Go type in
// its chain that is not a mere wrapper, else _OTHER.
func errorType(err error) string {
	var typed interface{ ErrorType() string }
	if errors.As(err, &typed) {
		if name := bound.String(typed.ErrorType(), maxReason); name != "" {
			return name
		}
	}
	for ; err != nil; err = errors.Unwrap(err) {
		name := reflect.TypeOf(err).String()
		switch name {
		case "*errors.errorString", "*errors.joinError", "*fmt.wrapError", "*fmt.wrapErrors", "*url.Error":
		default:
			return name
		}
	}
	return bound.Other
}
