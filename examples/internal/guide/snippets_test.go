package guide

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const root = "../../.."

// TestEveryPieceOfGoCompiles holds each block of Go in README.md and docs against the Go
// files of the repository, one of which must have its lines, indented as it may be. The
// programs of docs/getting-started.md are built and run by .ci/trial instead.
func TestEveryPieceOfGoCompiles(t *testing.T) {
	sources := sources(t)
	blocks := 0
	for _, page := range pages(t) {
		text, err := os.ReadFile(filepath.Join(root, page))
		require.NoError(t, err)
		for _, block := range fenced(string(text), "go") {
			if page == "docs/getting-started.md" && strings.Contains(block, "\npackage ") {
				continue
			}
			blocks++
			want := "\n" + lines(block)
			assert.True(t, slices.ContainsFunc(sources, func(s string) bool { return strings.Contains(s, want) }),
				"%s shows Go that no file of the repository has:\n%s", page, block)
		}
	}
	assert.Greater(t, blocks, 5)
}

func TestLinksLeadSomewhere(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#\s]+)(#[^)\s]*)?\)`)
	for _, page := range pages(t) {
		text, err := os.ReadFile(filepath.Join(root, page))
		require.NoError(t, err)
		for _, found := range link.FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(found[1], "://") {
				continue
			}
			_, err := os.Stat(filepath.Join(root, filepath.Dir(page), found[1]))
			assert.NoError(t, err, "%s links to %s", page, found[1])
		}
	}
}

// pages are the documents for people, from the root on.
func pages(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md", "examples/*/*.md", "adapters/*/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		require.NoError(t, err)
		for _, path := range found {
			page, err := filepath.Rel(root, path)
			require.NoError(t, err)
			out = append(out, filepath.ToSlash(page))
		}
	}
	return out
}

// sources are the Go files of the repository, as lines without their indentation.
func sources(t *testing.T) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && strings.HasPrefix(d.Name(), ".") && len(d.Name()) > 2:
			return filepath.SkipDir
		case !d.IsDir() && strings.HasSuffix(path, ".go"):
			text, err := os.ReadFile(path)
			out = append(out, "\n"+lines(string(text)))
			return err
		}
		return nil
	})
	require.NoError(t, err)
	return out
}

// fenced returns the blocks of one language in a page.
func fenced(page, language string) []string {
	var blocks []string
	for {
		_, rest, ok := strings.Cut(page, "\n```"+language+"\n")
		if !ok {
			return blocks
		}
		block, after, _ := strings.Cut(rest, "\n```")
		blocks, page = append(blocks, block), after
	}
}

// lines is text without indentation and without empty lines.
func lines(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}
