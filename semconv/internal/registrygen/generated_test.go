package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// Folders of the real registry and of package semconv, seen from this test.
const (
	registryFolder = "../../registry"
	semconvFolder  = "../.."
	docsFolder     = "../../../docs"
)

// The registry is read once for all tests, which do not change it.
var readRegistry = sync.OnceValues(func() ([]*File, error) { return Load(os.DirFS(registryFolder)) })

func loadRegistry(t *testing.T) []*File {
	t.Helper()
	files, err := readRegistry()
	require.NoError(t, err)
	return files
}

var renderDocs = sync.OnceValues(func() (map[string][]byte, error) {
	files, err := readRegistry()
	if err != nil {
		return nil, err
	}
	return RenderDocs(files)
})

func renderedDocs(t *testing.T) map[string][]byte {
	t.Helper()
	documents, err := renderDocs()
	require.NoError(t, err)
	return documents
}

func TestGeneratedFilesAreUpToDate(t *testing.T) {
	rendered, err := Render(loadRegistry(t))
	require.NoError(t, err)

	tree := os.DirFS(semconvFolder)
	for name, want := range rendered {
		got, err := fs.ReadFile(tree, name)
		require.NoError(t, err, "run: go generate ./semconv")
		require.Equal(t, string(want), string(got), "%s differs, run: go generate ./semconv", name)
	}

	documents := renderedDocs(t)
	for name, want := range documents {
		got, err := os.ReadFile(path.Join(docsFolder, name))
		require.NoError(t, err, "run: go generate ./semconv")
		require.Equal(t, string(want), string(got), "docs/%s differs, run: go generate ./semconv", name)
	}
	exported, err := os.ReadDir(path.Join(docsFolder, "registry"))
	require.NoError(t, err)
	for _, entry := range exported {
		require.Contains(t, documents, "registry/"+entry.Name(), "it comes from no YAML file any more, delete it")
	}

	err = fs.WalkDir(tree, ".", func(name string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(name, "_gen.go") {
			require.Contains(t, rendered, name, "%s comes from no YAML file any more, delete it", name)
		}
		return err
	})
	require.NoError(t, err)
}

// The constants are read from the written Go, so that templates cannot change
// a value on its way.
func TestConstantsEqualTheirYAMLValues(t *testing.T) {
	for _, f := range loadRegistry(t) {
		if f.Package == "" {
			continue
		}
		got := constants(t, path.Join(semconvFolder, folder(f.Package)))
		for _, a := range f.Attributes {
			require.Equal(t, a.Key, got[f.attributeName(a)+"Key"])
			for _, m := range a.Members {
				require.Equal(t, m.Value, got[f.memberName(a, m)])
			}
		}
		for _, m := range f.Metrics {
			require.Equal(t, m.Name, got[f.metricName(m)+"Name"])
		}
		for _, e := range f.Events {
			require.Equal(t, e.Name, got[f.eventName(e)])
		}
		for _, e := range f.Entities {
			require.Equal(t, e.Type, got[f.entityName(e)])
		}
		for _, h := range f.Headers {
			require.Equal(t, h.Name, got[f.headerName(h)])
		}
		for _, s := range f.Spans {
			require.Equal(t, s.Type, got[f.spanName(s)])
		}
	}
}

func TestHouseKeysStayInTheHouseNamespaces(t *testing.T) {
	for _, f := range loadRegistry(t) {
		if f.Package != "semconv" {
			continue
		}
		for _, a := range f.Attributes {
			namespace, _, _ := strings.Cut(a.Key, ".")
			require.Contains(t, []string{"ai", "llm", "genai"}, namespace, "%s is not a house key", a.Key)
		}
		for _, m := range f.Metrics {
			namespace, _, _ := strings.Cut(m.Name, ".")
			require.Equal(t, "genai", namespace, "%s is not a house metric", m.Name)
		}
	}
}

func TestRegistryIsUTF8(t *testing.T) {
	for _, f := range loadRegistry(t) {
		text, err := os.ReadFile(path.Join(registryFolder, f.name))
		require.NoError(t, err)
		require.True(t, utf8.Valid(text), "%s is not UTF-8", f.name)
	}
}

// constants maps the string constants in the generated files of a folder to
// their values, conversions such as attribute.Key("a.b") included.
func constants(t *testing.T, folder string) map[string]string {
	t.Helper()
	names, err := fs.Glob(os.DirFS(folder), "*_gen.go")
	require.NoError(t, err)
	values := map[string]string{}
	for _, name := range names {
		file, err := parser.ParseFile(token.NewFileSet(), path.Join(folder, name), nil, 0)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			if decl, ok := n.(*ast.GenDecl); ok && decl.Tok != token.CONST {
				return false
			}
			spec, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			value := spec.Values[0]
			if call, ok := value.(*ast.CallExpr); ok {
				value = call.Args[0]
			}
			values[spec.Names[0].Name], err = strconv.Unquote(value.(*ast.BasicLit).Value)
			require.NoError(t, err)
			return false
		})
	}
	return values
}
