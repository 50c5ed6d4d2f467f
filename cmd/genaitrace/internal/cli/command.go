package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// command is a running command with everything it starts.
type command struct {
	cmd    *exec.Cmd
	exited chan error // what Wait returned
}

// start runs args with what env adds to the environment, in a process group of its
// own: so a signal reaches everything the command starts, and nothing of it is
// left at the end. Such a group cannot read from a terminal; where stdin is one,
// the command reads nothing.
func (a *app) start(args, env []string) (*command, error) {
	cmd := exec.Command(args[0], args[1:]...) //nolint:gosec // the user gives the command
	cmd.Env = childEnv(a.environ, env)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = a.stdin, a.stdout, a.stderr
	if isTerminal(a.stdin) {
		cmd.Stdin = nil
	}
	cmd.WaitDelay = time.Second // for pipes that something left behind holds open
	ownGroup(cmd)
	if err := cmd.Start(); err != nil {
		return nil, fail(exitFailed, "the command cannot be run: %w", err)
	}
	c := &command{cmd, make(chan error, 1)}
	go func() { c.exited <- cmd.Wait() }()
	return c, nil
}

// wait waits for the command to exit and returns how it failed. The first signal,
// and the end of ctx, are passed on; what has not exited grace later is killed,
// and a second signal kills at once.
func (c *command) wait(ctx context.Context, signals <-chan os.Signal, grace time.Duration) error {
	done := ctx.Done()
	var late <-chan time.Time
	interrupted := false
	interrupt := func(s os.Signal) {
		if interrupted {
			c.kill()
			return
		}
		interrupted = true
		c.signal(s)
		late = time.After(grace)
	}
	for {
		select {
		case err := <-c.exited:
			c.terminate() // what it left running flushes now
			return c.explain(err)
		case s := <-signals:
			interrupt(s)
		case <-done:
			done = nil
			interrupt(os.Interrupt)
		case <-late:
			late = nil
			c.kill()
		}
	}
}

func (c *command) explain(err error) error {
	var exit *exec.ExitError
	switch {
	case err == nil || errors.Is(err, exec.ErrWaitDelay):
		return nil
	case errors.As(err, &exit) && exit.Exited():
		return fail(exitFailed, "the command %s failed with exit code %d", c.cmd.Args[0], exit.ExitCode())
	default:
		return fail(exitFailed, "the command %s failed: %w", c.cmd.Args[0], err)
	}
}

// childEnv returns environ with env in the place of everything that would send
// telemetry elsewhere or in another way. How metrics are aggregated stays.
func childEnv(environ, env []string) []string {
	var out []string
	for _, v := range environ {
		name, _, _ := strings.Cut(v, "=")
		if !strings.HasPrefix(name, "OTEL_EXPORTER_OTLP_") || strings.HasPrefix(name, "OTEL_EXPORTER_OTLP_METRICS_") &&
			(strings.HasSuffix(name, "_TEMPORALITY_PREFERENCE") || strings.HasSuffix(name, "_HISTOGRAM_AGGREGATION")) {
			out = append(out, v)
		}
	}
	return append(out, env...)
}

func isTerminal(r io.Reader) bool {
	f, ok := r.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 // or /dev/null, which is as empty
}
