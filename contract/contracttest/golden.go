package contracttest

import (
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/genaitrace/otelgenai/capture"
)

// updateEnv is the environment variable that rewrites golden files.
const updateEnv = "UPDATE_GOLDEN"

// Golden fails the test where the spans that were recorded so far differ from those
// in a file: names, kinds, roles, statuses, links, events and attributes. What changes
// from run to run is shown as its type; under [Synctest] times are shown. See
// [Observer.GoldenTree] for something else.
//
// The file is written anew where the environment has UPDATE_GOLDEN=1, or where the
// test binary has a flag named update ([Main] adds one) that is set.
func (o *Observer) Golden(t TB, path string) {
	t.Helper()
	o.GoldenTree(t, path, capture.TreeOptions{Attributes: []string{"*"}, Events: true, Links: true, Times: o.bubble})
}

// GoldenTree is [Observer.Golden] with the choice of what the file shows.
func (o *Observer) GoldenTree(t TB, path string, show capture.TreeOptions) {
	t.Helper()
	var b strings.Builder
	_ = o.Capture(t).WriteTree(&b, show) // a Builder does not fail
	got := b.String()
	if updating() {
		if err := write(path, got); err != nil {
			t.Fatalf("contracttest: %v", err)
		}
		t.Logf("contracttest: wrote %s", path)
		return
	}
	data, err := os.ReadFile(path) //nolint:gosec // the test names its own file
	switch want := strings.ReplaceAll(string(data), "\r\n", "\n"); {
	case errors.Is(err, fs.ErrNotExist):
		t.Fatalf("contracttest: there is no golden file %s; %s. It would hold:\n\n%s", path, howToUpdate("to write it"), got)
	case err != nil:
		t.Fatalf("contracttest: %v", err)
	case got != want:
		t.Errorf("contracttest: the spans differ from %s (-), found (+); %s:\n\n%s",
			path, howToUpdate("if that is right"), diff(want, got))
	}
}

func write(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o644)
}

// updating looks for the flag only now: a package that registered it would clash
// with every test that does.
func updating() bool {
	if set := os.Getenv(updateEnv); set != "" {
		return set != "0" && set != "false"
	}
	f := flag.Lookup("update")
	return f != nil && f.Value.String() == "true"
}

func howToUpdate(why string) string {
	how := "set " + updateEnv + "=1 " + why
	if flag.Lookup("update") != nil {
		how = "run the test with -update " + why
	}
	return how
}
