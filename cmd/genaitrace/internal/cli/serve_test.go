//go:build unix

package cli_test

import (
	"bytes"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// serving is the built command while it runs serve.
type serving struct {
	*exec.Cmd
	stdout, stderr string // files
}

// serve starts the built command as a user would, with this test binary as the
// child that does what the words say; without any there is no child.
func serve(t *testing.T, words string, flags ...string) *serving {
	t.Helper()
	args := append([]string{"serve", "--contract", "testdata/contract.yaml"}, flags...)
	if words != "" {
		args = append(args, "--", os.Args[0])
	}
	dir := t.TempDir()
	s := &serving{exec.Command(binary, args...), filepath.Join(dir, "stdout"), filepath.Join(dir, "stderr")}
	s.Env = append(os.Environ(), childVariable+"="+words)
	stdout, err := os.Create(s.stdout)
	require.NoError(t, err)
	stderr, err := os.Create(s.stderr)
	require.NoError(t, err)
	s.Stdout, s.Stderr = stdout, stderr
	t.Cleanup(func() {
		_, _ = stdout.Close(), stderr.Close()
		_ = s.Process.Kill()
	})
	return s
}

// end waits for the command to exit.
func (s *serving) end(t *testing.T) result {
	t.Helper()
	_ = s.Wait() // the exit code says more
	return result{s.ProcessState.ExitCode(), read(t, s.stdout), read(t, s.stderr)}
}

func (s *serving) run(t *testing.T) result {
	t.Helper()
	require.NoError(t, s.Start())
	return s.end(t)
}

// until waits until a file says something.
func until(t *testing.T, path, text string) {
	t.Helper()
	require.Eventually(t, func() bool { return strings.Contains(read(t, path), text) }, 20*time.Second, 5*time.Millisecond)
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

func TestServeChecksWhatItsCommandRecords(t *testing.T) {
	const broken, failed = "genaitrace: the contract chat-gateway does not hold: 1 error\n", "failed with exit code 7\n"
	for _, tt := range []struct {
		words  string
		code   int
		stderr []string
	}{
		{"good", 0, nil},
		{"good good bad", 1, []string{broken}},
		{"nothing", 3, []string{"genaitrace: nothing to check: nothing arrived"}},
		{"good fails", 4, []string{failed}},
		{"bad fails", 4, []string{broken, failed}},
		{"fails", 4, []string{"nothing to check", failed}},
	} {
		for _, protocol := range []string{"http", "grpc"} {
			t.Run(tt.words+" over "+protocol, func(t *testing.T) {
				t.Setenv("GENAITRACE_TEST_PROTOCOL", protocol)
				got := serve(t, tt.words).run(t)
				assert.Equal(t, tt.code, got.code, got.stderr)
				for _, line := range tt.stderr {
					assert.Contains(t, got.stderr, line)
				}
				assert.Equal(t, len(tt.stderr), strings.Count(got.stderr, "\n"), got.stderr)
				assert.Equal(t, strings.Contains(tt.words, "bad"), strings.Contains(got.stdout, "attribute.missing"), got.stdout)
			})
		}
	}
}

func TestServeIgnoresWhereTelemetryWouldHaveGone(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://127.0.0.1:1")
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "not a header")
	assert.Equal(t, 0, serve(t, "good").run(t).code)
}

func TestServeTellsOfSpansThatDidNotEnd(t *testing.T) {
	got := serve(t, "open").run(t)
	assert.Equal(t, 1, got.code)
	assert.Contains(t, got.stderr, `1 span did not arrive although a child of it did ("chat toy-1"): it had not ended, or was lost`)
}

func TestTheCommandHasTheStdinOfServe(t *testing.T) {
	s := serve(t, "echoes good")
	s.Stdin = strings.NewReader("hello\n")
	got := s.run(t)
	assert.Equal(t, 0, got.code, got.stderr)
	assert.True(t, strings.HasPrefix(got.stdout, "hello\n"), got.stdout)
}

func TestServeRecordsWhatArrived(t *testing.T) {
	path := filepath.Join(t.TempDir(), "capture.jsonl")
	first := serve(t, "good bad", "--record", path).run(t)
	require.Equal(t, 1, first.code, first.stderr)
	again := run(t, nil, nil, withContract(path)...)
	assert.Equal(t, 1, again.code)
	assert.Equal(t, first.stdout, again.stdout)
}

func TestWhatTheCommandLeavesRunningIsHeardToo(t *testing.T) {
	got := serve(t, "leaves", "--quiet", "2s").run(t)
	assert.Equal(t, 0, got.code, got.stderr)
}

func TestNothingIsLeftRunning(t *testing.T) {
	got := serve(t, "good leaves-stubborn", "--grace", "500ms").run(t)
	assert.Equal(t, 0, got.code, got.stderr)
	assertGone(t, got.stdout)
}

func TestASignalIsPassedOn(t *testing.T) {
	for _, signal := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		s := serve(t, "waits bad")
		require.NoError(t, s.Start())
		until(t, s.stdout, "ready")
		require.NoError(t, s.Process.Signal(signal))
		got := s.end(t)
		assert.Equal(t, 1, got.code, got.stderr)
		assert.Contains(t, got.stdout, "attribute.missing")
	}
}

func TestAStubbornCommandIsKilledAfterTheGrace(t *testing.T) {
	s := serve(t, "good leaves-stubborn ignores", "--grace", "200ms")
	require.NoError(t, s.Start())
	until(t, s.stdout, "ready")
	require.Eventually(t, func() bool { return strings.Count(read(t, s.stdout), "ready") == 2 }, 20*time.Second, 5*time.Millisecond)
	require.NoError(t, s.Process.Signal(syscall.SIGTERM))
	got := s.end(t)
	assert.Equal(t, 4, got.code, got.stderr)
	assert.Contains(t, got.stderr, "failed: signal: killed")
	assertGone(t, got.stdout)
}

func TestASecondSignalKillsAStubbornCommand(t *testing.T) {
	s := serve(t, "good leaves-stubborn ignores", "--grace", "10m")
	require.NoError(t, s.Start())
	require.Eventually(t, func() bool { return strings.Count(read(t, s.stdout), "ready") == 2 }, 20*time.Second, 5*time.Millisecond)
	require.NoError(t, s.Process.Signal(os.Interrupt))
	require.NoError(t, s.Process.Signal(syscall.SIGTERM)) // a second interrupt may be lost in the first
	got := s.end(t)
	assert.Equal(t, 4, got.code)
	assert.Contains(t, got.stderr, "failed: signal: killed")
	assertGone(t, got.stdout)
}

var pids = regexp.MustCompile(`ready (\d+)`)

// assertGone checks that every process that said it is ready has ended.
func assertGone(t *testing.T, stdout string) {
	t.Helper()
	found := pids.FindAllStringSubmatch(stdout, -1)
	require.NotEmpty(t, found)
	for _, f := range found {
		pid, err := strconv.Atoi(f[1])
		require.NoError(t, err)
		assert.Eventually(t, func() bool {
			state, err := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output()
			return err != nil || bytes.HasPrefix(bytes.TrimSpace(state), []byte("Z"))
		}, 20*time.Second, 10*time.Millisecond, "process %d is left", pid)
	}
}

func TestWithoutACommandServeEndsAtASignal(t *testing.T) {
	s := serve(t, "", "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0")
	require.NoError(t, s.Start())
	until(t, s.stderr, "\n")
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), childVariable+"=bad")
	child.Env = append(child.Env, regexp.MustCompile(`OTEL_\w+=\S+`).FindAllString(read(t, s.stderr), -1)...)
	out, err := child.CombinedOutput()
	require.NoError(t, err, string(out))
	require.NoError(t, s.Process.Signal(os.Interrupt))
	got := s.end(t)
	assert.Equal(t, 1, got.code, got.stderr)
	assert.Contains(t, got.stdout, "attribute.missing")
}

func TestServeSaysWhatKeepsItFromRunning(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	same := filepath.Join(t.TempDir(), "out.json")
	serve := func(args ...string) []string {
		return append([]string{"serve", "--contract", "testdata/contract.yaml"}, args...)
	}
	for _, tt := range []struct {
		name   string
		args   []string
		code   int
		stderr string
	}{
		{"a port is taken for gRPC", serve("--grpc", taken.Addr().String(), "--", "true"), 4, "address already in use"},
		{"a port is taken for HTTP", serve("--http", taken.Addr().String(), "--", "true"), 4, "address already in use"},
		{"a taken port has a way out", serve("--http", taken.Addr().String(), "--", "true"), 4, "; --grpc and --http say where it listens"},
		{"others can reach it", serve("--http", ":0", "--", "true"), 4, "--remote that others may reach it"},
		{"the command is not found", serve("--", "no-such-command"), 4, `the command cannot be run: exec: "no-such-command": executable file not found in $PATH`},
		{"the command is no program", serve("--", "./testdata/good.json"), 4, "the command cannot be run: fork/exec ./testdata/good.json: permission denied"},
		{"the dashes are missing", serve("go", "test"), 2, `"go" is no flag; a command goes behind --, as in: genaitrace serve --contract FILE -- go test`},
		{"words stand before the dashes", serve("go", "--", "test"), 2, `"go" is no flag; a command goes behind --`},
		{"quiet is negative", serve("--quiet", "-1s", "--", "true"), 2, "--quiet is -1s"},
		{"the record cannot be written", serve("--record", "testdata/none/capture.jsonl", "--", "true"), 2, "--record: open testdata/none/capture.jsonl"},
		{"two write one file", serve("--record", same, "--format", "json="+same, "--", "true"), 2, "--record and --format both write "},
		{"the contract is broken", []string{"serve", "--contract", "testdata/misspelt.yaml", "--", "true"}, 2, "testdata/misspelt.yaml:13:30"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := run(t, nil, os.Environ(), tt.args...)
			assert.Equal(t, tt.code, got.code)
			assert.Contains(t, got.stderr, tt.stderr)
			assert.Equal(t, 1, strings.Count(got.stderr, "\n"), got.stderr)
		})
	}
}

func TestCheckRunsAsAProgram(t *testing.T) {
	for args, code := range map[string]int{good: 0, bad: 1, "testdata/none.json": 2, "testdata/empty.json": 3} {
		cmd := exec.Command(binary, withContract(args)...)
		_ = cmd.Run() // the exit code says more
		assert.Equal(t, code, cmd.ProcessState.ExitCode(), args)
	}
}

func TestAPageGoesIntoAPipeAndDoesNotReplaceIt(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "page")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	page := make(chan string, 1)
	go func() {
		text, _ := os.ReadFile(pipe)
		page <- string(text)
	}()
	got := run(t, nil, nil, "view", "--html", pipe, good)
	require.Equal(t, 0, got.code, got.stderr)
	info, err := os.Stat(pipe)
	require.NoError(t, err)
	require.Equal(t, fs.ModeNamedPipe, info.Mode().Type(), "it was replaced")
	assert.True(t, strings.HasPrefix(<-page, "<!DOCTYPE html>"))
}
