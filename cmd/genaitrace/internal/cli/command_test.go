//go:build unix

package cli

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// shell starts a shell script as a command.
func shell(t *testing.T, script string) (*command, *bytes.Buffer) {
	t.Helper()
	stdout, err := os.CreateTemp(t.TempDir(), "stdout")
	require.NoError(t, err)
	a := &app{stdin: os.Stdin, stdout: stdout, stderr: os.Stderr, environ: os.Environ()}
	c, err := a.start([]string{"sh", "-c", script}, nil)
	require.NoError(t, err)
	var out bytes.Buffer
	t.Cleanup(func() { c.kill() })
	require.Eventually(t, func() bool {
		text, err := os.ReadFile(stdout.Name())
		out.Reset()
		out.Write(text)
		return err == nil && bytes.Contains(text, []byte("ready"))
	}, 10*time.Second, 5*time.Millisecond, "the script says ready")
	return c, &out
}

func TestASignalReachesTheCommandAndItsExitIsAwaited(t *testing.T) {
	c, _ := shell(t, `trap 'exit 7' TERM; echo ready; while :; do sleep 0.01; done`)
	signals := make(chan os.Signal, 1)
	signals <- syscall.SIGTERM
	assert.EqualError(t, c.wait(t.Context(), signals, time.Minute), "the command sh failed with exit code 7")
}

func TestTheEndOfTheContextIsPassedOn(t *testing.T) {
	c, _ := shell(t, `trap 'exit 0' INT; echo ready; while :; do sleep 0.01; done`)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	assert.NoError(t, c.wait(ctx, nil, time.Minute))
}

// stubborn ignores every polite signal, as does what it starts.
const stubborn = `trap '' INT TERM HUP; sleep 300 & echo $! ready; wait`

func TestWhatIgnoresASignalIsKilledAfterTheGrace(t *testing.T) {
	c, out := shell(t, stubborn)
	signals := make(chan os.Signal, 1)
	signals <- syscall.SIGTERM
	assert.EqualError(t, c.wait(t.Context(), signals, 50*time.Millisecond), "the command sh failed: signal: killed")
	assertGone(t, out)
}

func TestASecondSignalKillsAtOnce(t *testing.T) {
	c, out := shell(t, stubborn)
	signals := make(chan os.Signal, 2)
	signals <- os.Interrupt
	signals <- os.Interrupt
	began := time.Now()
	assert.EqualError(t, c.wait(t.Context(), signals, time.Hour), "the command sh failed: signal: killed")
	assert.Less(t, time.Since(began), time.Minute)
	assertGone(t, out)
}

func TestWhatTheCommandLeavesRunningIsAskedToEnd(t *testing.T) {
	c, out := shell(t, `sleep 300 & echo $! ready`)
	assert.NoError(t, c.wait(t.Context(), nil, time.Minute))
	assertGone(t, out)
}

// assertGone checks that the process whose number comes first in out ends.
func assertGone(t *testing.T, out *bytes.Buffer) {
	t.Helper()
	pid, err := strconv.Atoi(strings.Fields(out.String())[0])
	require.NoError(t, err)
	assert.Eventually(t, func() bool { return !running(pid) }, 10*time.Second, 5*time.Millisecond, "process %d is left", pid)
}

// running reports whether a process does more than wait to be reaped, which is up
// to init.
func running(pid int) bool {
	state, err := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output()
	return err == nil && !strings.HasPrefix(strings.TrimSpace(string(state)), "Z")
}

func TestACommandThatDoesNotExistIsAnError(t *testing.T) {
	a := &app{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr}
	_, err := a.start([]string{"no-such-command"}, nil)
	assert.ErrorContains(t, err, "the command cannot be run")
	assert.ErrorContains(t, err, "no-such-command")
	assert.ErrorIs(t, err, exec.ErrNotFound)
}

func TestNothingInTheEnvironmentSendsTelemetryElsewhere(t *testing.T) {
	got := childEnv(
		[]string{"PATH=/bin", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://elsewhere", "OTEL_EXPORTER_OTLP_HEADERS=key=secret", "OTEL_SERVICE_NAME=gateway",
			"OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE=delta", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT=http://elsewhere"},
		[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://here"},
	)
	assert.Equal(t, []string{"PATH=/bin", "OTEL_SERVICE_NAME=gateway", "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE=delta", "OTEL_EXPORTER_OTLP_ENDPOINT=http://here"}, got)
}
