package command

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"time"
)

// RecordUsage describes the flag -record.
const RecordUsage = "`file` to write the telemetry to, as OTLP: .json, .jsonl or .pb, also with .gz"

// NewFlags makes the flags of a program. What is wrong with them is for [Parse] to say.
func NewFlags(name string) *flag.FlagSet {
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	return flags
}

// Parse reads the flags; with -h it says what the program is about, and returns
// [flag.ErrHelp]. What stands behind the flags belongs behind the one that instead
// names. A mistake is a [UsageError].
func Parse(flags *flag.FlagSet, args []string, stderr io.Writer, about, instead string) error {
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintln(stderr, about)
		flags.SetOutput(stderr)
		flags.PrintDefaults()
		return err
	case err != nil:
		return UsageError{err.Error()}
	case flags.NArg() > 0:
		return Usagef("unexpected argument %q: %s", flags.Arg(0), instead)
	}
	return nil
}

// BaseURL reads the flag -base-url. Its error does not repeat the text, which may hold a
// password.
func BaseURL(text string) (*url.URL, error) {
	base, err := url.Parse(text)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return nil, UsageError{"-base-url is no URL of a server, want something like http://localhost:11434/v1"}
	}
	if base.Path == "" {
		base.Path = "/" // else JoinPath makes a relative one
	}
	return base, nil
}

// Milliseconds writes d as the waterfall does.
func Milliseconds(d time.Duration) string {
	if d > 0 && d < 50*time.Microsecond {
		return "<0.1 ms"
	}
	return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
}
