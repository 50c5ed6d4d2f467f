package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/genaitrace/otelgenai/contract/spec"
)

// Exit codes. A script may rely on them.
const (
	exitOK       = 0
	exitFindings = 1 // the contract is broken
	exitUsage    = 2 // the command line, the contract or a capture cannot be read
	exitNothing  = 3 // there was nothing to check
	exitFailed   = 4 // the receiver or the command failed
)

const exitCodes = `Exit codes:
  0  the contract holds
  1  there are findings (see --fail-on)
  2  the command line, the contract or a capture cannot be read
  3  nothing was checked: no telemetry, or none that the contract speaks about
  4  the receiver or the command failed`

// failure is an error with its exit code; of several that are joined, that of the
// first counts. Without err, it was reported already.
type failure struct {
	code int
	err  error
}

func (f *failure) Error() string {
	if f.err == nil {
		return ""
	}
	return f.err.Error()
}

func (f *failure) Unwrap() error { return f.err }

func fail(code int, format string, args ...any) error {
	return &failure{code, fmt.Errorf(format, args...)}
}

// app is one run of the command.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	environ        []string
}

// Main runs the command with args, which do not hold its name, and returns the
// exit code. It reads environ and not the environment of the process, and writes
// one line to stderr for each error. Ending ctx interrupts it.
func Main(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer, environ []string) int {
	a := &app{stdin, stdout, stderr, environ}
	root := a.root()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitOK
	}
	var failed *failure
	if !errors.As(err, &failed) { // cobra's own, or that of stdout
		failed = &failure{exitUsage, unknownCommand(cmd, args, err)}
		err = failed
	}
	a.complain(err)
	return failed.code
}

// complain writes a line to stderr for each error that err joins.
func (a *app) complain(err error) {
	switch e := err.(type) { //nolint:errorlint // its own level is looked at
	case nil:
	case *failure:
		a.complain(e.err)
	case interface{ Unwrap() []error }:
		for _, each := range e.Unwrap() {
			a.complain(each)
		}
	default:
		a.notef("%v", err)
	}
}

// notef writes one line to stderr.
func (a *app) notef(format string, args ...any) {
	text := strings.ReplaceAll(strings.TrimSpace(fmt.Sprintf(format, args...)), "\n", " ")
	fmt.Fprintf(a.stderr, "genaitrace: %s\n", text)
}

// getenv returns a variable; of one that is set twice, the last value counts.
func (a *app) getenv(key string) string {
	for _, v := range slices.Backward(a.environ) {
		if value, ok := strings.CutPrefix(v, key+"="); ok {
			return value
		}
	}
	return ""
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "genaitrace",
		Short:         "Check what a generative AI service records against a contract, and show it",
		Long:          "genaitrace checks the traces, metrics and logs of a generative AI service against an\nobservability contract: in CI, around a test run, or on captures in files. It also shows\nthem: view draws traces in the terminal and as pages.\n\n" + exitCodes,
		Version:       version(),
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cmd.SetOut(a.stderr)
			_ = cmd.Help()
			return &failure{code: exitUsage}
		},
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.DisableSuggestions = true // unknownCommand makes them, in one line
	root.SetFlagErrorFunc(flagError)
	root.SetHelpCommand(help())
	root.AddCommand(a.check(), a.serve(), a.mutate(), a.view(), a.rules(), a.profiles(), a.schema(), a.version())
	return root
}

// help is cobra's own but for an unknown command, which is an error here.
func help() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Explain a command",
		RunE: func(cmd *cobra.Command, args []string) error {
			about, _, err := cmd.Root().Find(args)
			if err != nil {
				return &failure{exitUsage, unknownCommand(cmd, args, err)}
			}
			return about.Help()
		},
	}
}

// unknownCommand says which command of args is none, instead of err, which takes
// several lines. Another err it returns.
func unknownCommand(cmd *cobra.Command, args []string, err error) error {
	if !strings.HasPrefix(err.Error(), "unknown command ") {
		return err
	}
	i := slices.IndexFunc(args, func(arg string) bool { return !strings.HasPrefix(arg, "-") })
	if i < 0 {
		return err
	}
	var names []string
	for _, c := range cmd.Root().Commands() {
		names = append(names, c.Name())
	}
	if near := spec.Nearest(args[i], names); near != "" {
		return fmt.Errorf("unknown command %q, did you mean %q?", args[i], near)
	}
	return fmt.Errorf("unknown command %q; genaitrace --help lists them", args[i])
}

func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return &failure{exitUsage, err}
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	if near := spec.Nearest(unknown.GetSpecifiedName(), names); near != "" {
		return fail(exitUsage, "unknown flag --%s, did you mean --%s?", unknown.GetSpecifiedName(), near)
	}
	return fail(exitUsage, "%w; %s --help lists them", err, cmd.CommandPath())
}

// noArgs refuses arguments.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fail(exitUsage, "%s takes no argument, found %q", cmd.CommandPath(), args[0])
	}
	return nil
}

// oneArg allows one argument.
func oneArg(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return fail(exitUsage, "%s takes one argument, found also %q", cmd.CommandPath(), args[1])
	}
	return nil
}
