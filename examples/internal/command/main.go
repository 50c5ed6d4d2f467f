package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"go.opentelemetry.io/otel"
)

// A Run is a program: it gets its arguments without its name.
type Run func(ctx context.Context, args []string, stdout, stderr io.Writer) error

// Main runs a program until it ends or is interrupted, and exits: with 2 after a
// mistake on the command line, with 1 after another error. Faults of telemetry become
// warnings.
func Main(name string, run Run) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once

	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		fmt.Fprintf(os.Stderr, "warning: telemetry: %v\n", err)
	}))
	os.Exit(exitCode(name, run(ctx, os.Args[1:], os.Stdout, os.Stderr), os.Stderr))
}

func exitCode(name string, err error, stderr io.Writer) int {
	switch {
	case err == nil || errors.Is(err, flag.ErrHelp):
		return 0
	case errors.As(err, new(UsageError)):
		fmt.Fprintf(stderr, "%s: %v\n%[1]s -help lists the flags.\n", name, err)
		return 2
	case errors.As(err, new(ShownError)):
	default:
		fmt.Fprintf(stderr, "%s: %v\n", name, err)
	}
	return 1
}

// A UsageError is a mistake on the command line.
type UsageError struct{ Text string }

func (e UsageError) Error() string { return e.Text }

// Usagef makes a UsageError.
func Usagef(format string, args ...any) error { return UsageError{fmt.Sprintf(format, args...)} }

// A ShownError has been printed already, where the answer would be.
type ShownError struct{ Err error }

func (e ShownError) Error() string { return e.Err.Error() }

// Unwrap returns the error that was printed.
func (e ShownError) Unwrap() error { return e.Err }
