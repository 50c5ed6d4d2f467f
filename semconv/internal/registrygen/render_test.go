package main

import (
	"flag"
	"os"
	"path"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestEveryFeatureOfTheFormatRenders(t *testing.T) {
	const folder = "testdata/sample"
	files, err := Load(os.DirFS(folder))
	require.NoError(t, err)
	rendered, err := Render(files)
	require.NoError(t, err)

	require.Len(t, rendered, 4)
	for name, got := range rendered {
		golden := filepath.Join(folder, path.Base(name)+".golden")
		if *update {
			require.NoError(t, os.WriteFile(golden, got, 0o644))
		}
		want, err := os.ReadFile(golden)
		require.NoError(t, err)
		require.Equal(t, string(want), string(got), "%s differs, run: go test ./semconv/internal/registrygen -update", golden)
	}
}

func TestRunWritesEachPackageToItsFolder(t *testing.T) {
	out, docs := t.TempDir(), t.TempDir()
	require.NoError(t, run("testdata/sample", out, docs))

	require.FileExists(t, filepath.Join(out, "registry_gen.go"))
	require.FileExists(t, filepath.Join(out, "sample", "attributes_gen.go"))
	require.FileExists(t, filepath.Join(out, "sample", "names_gen.go"))
	require.FileExists(t, filepath.Join(out, "sample", "metrics_gen.go"))
	require.FileExists(t, filepath.Join(docs, "vocabulary.md"))
	require.FileExists(t, filepath.Join(docs, "registry", "sample.yaml"))
}

func TestRunWritesNothingOnAMistake(t *testing.T) {
	registry, out := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(registry, "a.yaml"), []byte("package: semconv\nkeys: []\n"), 0o644))

	require.EqualError(t, run(registry, out, out), `a.yaml:2:1: unknown field "keys"`)
	entries, err := os.ReadDir(out)
	require.NoError(t, err)
	require.Empty(t, entries)
}

func TestAnAnchorIsTheListItNames(t *testing.T) {
	files, err := Load(fstest.MapFS{"a.yaml": {Data: []byte(`
package: semconv
attributes:
  - {key: a.d, type: int, brief: x}
metrics:
  - {name: a.b, instrument: counter, type: int, unit: s, brief: x, attributes: &shared [{key: a.d, level: required}]}
  - {name: a.c, instrument: counter, type: int, unit: s, brief: x, attributes: *shared}
`)}})

	require.NoError(t, err)
	require.Equal(t, []Ref{{Key: "a.d", Level: "required"}}, files[0].Metrics[1].Attributes)
}
