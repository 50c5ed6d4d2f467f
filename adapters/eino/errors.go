package genaieino

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/cloudwego/eino/compose"
)

// isInterrupt reports whether a graph stopped to be resumed, which is no failure.
func isInterrupt(err error) bool {
	if _, ok := compose.IsInterruptRerunError(err); ok {
		return true
	}
	_, ok := compose.ExtractInterruptInfo(err)
	return ok
}

// A panicError stands for a panic of a component.
type panicError struct{ value any }

func (p *panicError) Error() string { return fmt.Sprint("panic: ", p.value) }

// ErrorType is the error.type of the span.
func (*panicError) ErrorType() string { return "panic" }

// Types of Eino that wrap the errors of components.
const (
	einoPanic = "*safe.panicErr"
	einoNode  = "*compose.internalError"
)

// isPanic reports whether Eino made err from a panic.
func isPanic(err error) bool {
	for ; err != nil; err = errors.Unwrap(err) {
		if reflect.TypeOf(err).String() == einoPanic {
			return true
		}
	}
	return false
}

// cause is the error of the component itself, whose type says more than those that Eino
// puts around it.
func cause(err error) error {
	if isPanic(err) {
		return &panicError{err}
	}
	inner := err
	for e := err; e != nil; e = errors.Unwrap(e) {
		if wrapped := errors.Unwrap(e); wrapped != nil && reflect.TypeOf(e).String() == einoNode {
			inner = wrapped
		}
	}
	return inner
}
