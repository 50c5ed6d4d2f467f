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
// done explains errors that do not wrap its error, such as a gRPC status. The methods
// of an error are code of the user's, and many panic where the error is a nil pointer:
// no panic of theirs reaches who ends the operation.
func classify(ctx context.Context, err error) (how outcome, errType string) {
	if err == nil {
		return succeeded, ""
	}
	defer func() {
		if recover() != nil {
			how, errType = failed, typeName(err)
		}
	}()
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

// isError is errors.Is that lets no panic through.
func isError(err, target error) (is bool) {
	defer func() {
		if recover() != nil {
			is = false
		}
	}()
	return errors.Is(err, target)
}

// errorType is a value for error.type of low cardinality: what the error says
// of itself through an ErrorType method, else the name of the first Go type in
// its chain that is not a mere wrapper, else _OTHER.
func errorType(err error) (errType string) {
	outermost := err
	defer func() {
		if recover() != nil {
			errType = typeName(outermost)
		}
	}()
	var typed interface{ ErrorType() string }
	if errors.As(err, &typed) {
		if name := bound.String(typed.ErrorType(), maxReason); name != "" {
			return name
		}
	}
	for ; err != nil; err = errors.Unwrap(err) {
		if name := typeName(err); name != bound.Other {
			return name
		}
	}
	return bound.Other
}

// typeName is the name of an error's Go type, or _OTHER where that is a mere wrapper.
func typeName(err error) string {
	switch name := reflect.TypeOf(err).String(); name {
	case "*errors.errorString", "*errors.joinError", "*fmt.wrapError", "*fmt.wrapErrors", "*url.Error":
		return bound.Other
	default:
		return name
	}
}
