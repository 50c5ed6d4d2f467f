package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
)

const statusPath = "/status"

// newStatusService is a service that is still starting when it is asked first.
func newStatusService() http.Handler {
	var asked atomic.Int64
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+statusPath, func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) == 1 {
			http.Error(w, "still starting", http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, "all is well") // the client may be gone
	})
	return mux
}

// A statusError is an answer of HTTP that is no success.
type statusError struct{ code int }

func (e *statusError) Error() string {
	return fmt.Sprintf("the service answers %d %s", e.code, http.StatusText(e.code))
}

// ErrorType is the error.type of the span.
func (e *statusError) ErrorType() string { return fmt.Sprint(e.code) }

// TryAgain reports whether the service may be back soon.
func (e *statusError) TryAgain() bool { return e.code == http.StatusServiceUnavailable }

// serviceStatus asks the service. The client sends the trace on, so what the service
// does is part of it.
func serviceStatus(ctx context.Context, client *http.Client, address string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address+statusPath, nil)
	if err != nil {
		return "", err
	}
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }() // it is only read
	if resp.StatusCode != http.StatusOK {
		return "", &statusError{resp.StatusCode}
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxResult))
	return string(text), err
}
