package guide

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestEveryCommandIsAccountedFor holds that each command of README.md, docs and the
// examples is run by TestCommandsRun, is one of go test, or is listed with the reason why
// not; and that what it names exists: packages, flags, tests, benchmarks, scripts, steps.
func TestEveryCommandIsAccountedFor(t *testing.T) {
	shown := make(map[string]bool)
	for _, c := range commands(t) {
		shown[c.line] = true
		for _, err := range check(c.line) {
			assert.NoError(t, err, "%s: %s", c.page, c.line)
		}
		_, isRun := runOf(c.line)
		left, isLeft := leaves[c.line]
		assert.True(t, isRun != isLeft || !isRun && (testsOnly(c.line) || gateOnly(c.line) || getsOurs(c.line) || servers.MatchString(c.line)),
			"%s shows a command that proofs_test.go does not know, or knows twice:\n%s", c.page, c.line)
		if left.by != "" {
			assert.Contains(t, read(t, left.by), left.having, "%s is said to run %s", left.by, c.line)
		}
	}
	for line := range runs {
		assert.True(t, shown[line], "no page shows %s any more", line)
	}
	for line := range leaves {
		assert.True(t, shown[line], "no page shows %s any more", line)
	}
}

// TestCommandsRun runs commands in a copy of what git has of the repository, with the
// programs of the repository built before: go run takes those, in the place of building
// each again. .ci/run has go run do it.
func TestCommandsRun(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and runs every example")
	}
	dir := checkout(t)
	build(t, dir)
	for name, text := range theReaders {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700))
	}
	var shelled sync.Map // what was run, for those that need it: once each
	printed := func(t *testing.T, line string) string {
		do, _ := shelled.LoadOrStore(line, sync.OnceValues(func() (string, error) { return shell(t.Context(), dir, line) }))
		out, err := do.(func() (string, error))()
		if !busy(out, err) {
			require.NoError(t, err, "%s\n%s", line, out)
		}
		return out
	}
	for _, c := range commands(t) {
		r, ok := runOf(c.line)
		if !ok {
			continue
		}
		t.Run(c.line, func(t *testing.T) {
			t.Parallel()
			if r.before != "" {
				printed(t, r.before)
			}
			assert.Contains(t, printed(t, cmp.Or(r.instead, c.line)), r.want)
			if r.makes != "" {
				info, err := os.Stat(filepath.Join(dir, r.makes))
				require.NoError(t, err)
				assert.Positive(t, info.Size())
			}
		})
	}
}

// busy tells a contract that does not hold for the times alone: two clocks read one after
// the other are far apart on a machine that is busy with other tests.
func busy(out string, err error) bool {
	var exit *exec.ExitError
	if !strings.Contains(out, tested) || !errors.As(err, &exit) || exit.ExitCode() != 1 {
		return false
	}
	found := regexp.MustCompile(`(?m)^error +(\S+)`).FindAllStringSubmatch(out, -1)
	return len(found) > 0 && !slices.ContainsFunc(found, func(f []string) bool {
		return !strings.HasPrefix(f[1], "timing.") && f[1] != "metric.sum"
	})
}

// shell runs a line and returns what it printed.
func shell(ctx context.Context, dir, line string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-e", "-o", "pipefail", "-c", line)
	cmd.Dir = dir
	cmd.WaitDelay = time.Second
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "OTEL_") && !strings.HasPrefix(variable, "GITHUB_") {
			cmd.Env = append(cmd.Env, variable)
		}
	}
	cmd.Env = append(cmd.Env, workspace, "PATH="+filepath.Join(dir, "bin")+string(os.PathListSeparator)+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// The pages speak of the workspace, also where this module is tested without it.
const workspace = "GOWORK="

// build makes the programs, and a go before the real one that runs them for go run.
func build(t *testing.T, dir string) {
	t.Helper()
	args := []string{"build", "-ldflags=-s -w", "-o", filepath.Join(dir, "bin") + "/"}
	if race { // so that what the tests have compiled is used again
		args = append(args, "-race")
	}
	script := "#!/usr/bin/env bash\nif [ \"$1\" = run ]; then\n  case $2 in\n"
	own := []string{"cmd/genaitrace", "internal/dashgen"}
	examples, err := filepath.Glob(filepath.Join(root, "examples", "*", "main.go"))
	require.NoError(t, err)
	for _, main := range examples {
		own = append(own, "examples/"+filepath.Base(filepath.Dir(main)))
	}
	for _, program := range own {
		args = append(args, "./"+program)
		script += fmt.Sprintf("  ./%[1]s | %[2]s/%[1]s) program=%[3]q; shift 2; exec %[4]q/\"$program\" \"$@\" ;;\n",
			program, module, filepath.Base(program), filepath.Join(dir, "bin"))
	}
	compile := exec.CommandContext(t.Context(), "go", args...)
	compile.Dir = root
	compile.Env = append(os.Environ(), workspace)
	out, err := compile.CombinedOutput()
	require.NoError(t, err, string(out))
	tool, err := exec.LookPath("go")
	require.NoError(t, err)
	script += fmt.Sprintf("  esac\nfi\nexec %q \"$@\"\n", tool)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "bin", "go"), []byte(script), 0o700))
}

// checkout copies the files that git has or would take.
func checkout(t *testing.T) string {
	t.Helper()
	list := exec.CommandContext(t.Context(), "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = root
	names, err := list.Output()
	if err != nil {
		t.Skipf("this is no clone: git ls-files: %v", err)
	}
	dir := t.TempDir()
	for name := range strings.SplitSeq(strings.TrimSuffix(string(names), "\x00"), "\x00") {
		text, err := os.ReadFile(filepath.Join(root, name))
		if os.IsNotExist(err) {
			continue // deleted, and not yet committed
		}
		require.NoError(t, err)
		require.NoError(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
	}
	return dir
}
