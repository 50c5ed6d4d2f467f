package genailangchain

import (
	"context"
	"errors"
	"strings"

	"github.com/tmc/langchaingo/llms"

	"github.com/genaitrace/otelgenai/genaitrace"
	"github.com/genaitrace/otelgenai/semconv"
)

// noteFailure notes the error.type of a call, where it is better than a Go type.
func noteFailure(ctx context.Context, call *genaitrace.Call, err error) {
	switch name := errorType(ctx, err); name {
	case "":
	case errTypeTimeout:
		call.SetTerminal(semconv.GenAIStreamTerminalTimeout)
	default:
		call.SetErrorType(name)
	}
}

const (
	errTypeTimeout = "timeout"
	statusPrefix   = "API returned unexpected status code: "
	timeoutPrefix  = "request timeout: "
)

// errorType is what an error of a client says of itself: the code of an [llms.Error],
// or what the client wrote into the message before what the server said. Empty, its Go
// type is all there is.
func errorType(ctx context.Context, err error) string {
	if ctx.Err() != nil {
		return "" // the context says it
	}
	if coded, ok := errors.AsType[*llms.Error](err); ok {
		switch coded.Code {
		case llms.ErrCodeUnknown, llms.ErrCodeCanceled, "":
			return ""
		}
		return string(coded.Code)
	}
	message := err.Error()
	if _, status, ok := strings.Cut(message, statusPrefix); ok && isStatus(status) {
		return status[:3]
	}
	if strings.HasPrefix(message, timeoutPrefix) {
		return errTypeTimeout
	}
	return ""
}

// isStatus reports whether s begins with the status of a response that failed.
func isStatus(s string) bool {
	digit := func(i int) bool { return s[i] >= '0' && s[i] <= '9' }
	return len(s) >= 3 && (s[0] == '4' || s[0] == '5') && digit(1) && digit(2) && (len(s) == 3 || !digit(3))
}
