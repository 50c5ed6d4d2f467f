package cli_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestViewDrawsTraces(t *testing.T) {
	for _, tt := range []struct {
		name   string
		args   []string
		code   int
		stdout []string
		stderr string
	}{
		{"in the terminal", []string{good}, 0, []string{"trace ", "spans", "█"}, ""},
		{"in ASCII", []string{"--ascii", "--width", "60", good}, 0, []string{"#"}, ""},
		{"as a page", []string{"--html", "-", good}, 0, []string{"<!DOCTYPE html>", "<h1>good.json</h1>"}, ""},
		{"of two files", []string{"testdata/caller.jsonl", "testdata/gateway.jsonl"}, 0, []string{"└─"}, ""},
		{"no file", nil, 2, nil, "no capture is given; - is stdin"},
		{"no such file", []string{"testdata/none.json"}, 2, nil, "testdata/none.json"},
		{"broken", []string{"testdata/broken.jsonl"}, 2, nil, "testdata/broken.jsonl"},
		{"nothing in it", []string{"testdata/empty.json"}, 3, nil, "hold no span"},
		{"another trace", []string{"--trace", "abcabc", good}, 3, nil, "no trace of the captures fits --trace abcabc"},
		{"none failed", []string{"--failed", good}, 3, nil, "has a failed span"},
		{"no trace id", []string{"--trace", "xyz", good}, 2, nil, `--trace is "xyz", want the hexadecimal digits`},
		{"no order", []string{"--sort", "best", good}, 2, nil, `--sort is "best", want slowest, first or last`},
		{"none", []string{"--max", "0", good}, 2, nil, "--max is 0, want 1 or more"},
		{"too narrow", []string{"--width", "3", good}, 2, nil, "--width is 3, want 40 to 1000"},
		{"no folder", []string{"--html", "testdata/none/page.html", good}, 2, nil, "testdata/none"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := run(t, nil, nil, append([]string{"view"}, tt.args...)...)
			assert.Equal(t, tt.code, got.code, got.stderr)
			for _, want := range tt.stdout {
				assert.Contains(t, got.stdout, want)
			}
			assert.Contains(t, got.stderr, tt.stderr)
			if tt.code == 0 {
				assert.Empty(t, got.stderr)
			}
		})
	}
}

func TestAFileUnderTwoNamesIsReadOnce(t *testing.T) {
	other, err := filepath.Abs(good)
	require.NoError(t, err)
	got := run(t, nil, nil, "view", good, other)
	assert.Equal(t, 2, got.code)
	assert.Contains(t, got.stderr, "the capture "+other+" is given twice")
}

func TestWhatACaptureLosesIsTold(t *testing.T) {
	const doc = `{"resourceSpans":[{"scopeSpans":[{"spans":[{"spanId":"00f067aa0ba902b7"},{"traceId":"4bf92f3577b34da6a3ce929d0e0e4736","spanId":"00f067aa0ba902b7"}]}]}]}`
	for _, args := range [][]string{{"view", "-"}, withContract("-")} {
		got := run(t, strings.NewReader(doc), nil, args...)
		assert.Contains(t, got.stderr, "genaitrace: stdin: 1 spans, points and log records were dropped: span without a trace id\n", args[0])
	}
}

// The trace of good.json at three times, the second one longer than the others.
func TestViewChoosesTraces(t *testing.T) {
	const id = "4bf92f3577b34da6a3ce929d0e0e473"
	source, err := os.ReadFile(good)
	require.NoError(t, err)
	dir := t.TempDir()
	var files []string
	for i, change := range []struct{ id, second, end string }{
		{id + "1", "1767323041", "1767323041600000000"},
		{id + "2", "1767323042", "1767323042900000000"},
		{id + "3", "1767323043", "1767323043600000000"},
	} {
		text := strings.ReplaceAll(string(source), id+"6", change.id)
		text = strings.ReplaceAll(text, "1767323045600000000", change.end)
		text = strings.ReplaceAll(text, "1767323045", change.second)
		file := filepath.Join(dir, strconv.Itoa(i)+".json")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		files = append(files, file)
	}
	for _, tt := range []struct {
		name string
		args []string
		want []string // the last digits of the traces
		note string
	}{
		{"the slowest first", nil, []string{"2", "1", "3"}, ""},
		{"by start", []string{"--sort", "first"}, []string{"1", "2", "3"}, ""},
		{"the newest first", []string{"--sort", "last"}, []string{"3", "2", "1"}, ""},
		{"one", []string{"--trace", strings.ToUpper(id) + "3"}, []string{"3"}, ""},
		{"as many as wanted", []string{"--max", "2"}, []string{"2", "1"}, "2 of 3 traces are shown"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := run(t, nil, nil, append(append([]string{"view"}, tt.args...), files...)...)
			require.Zero(t, got.code, got.stderr)
			var found []string
			for line := range strings.Lines(got.stdout) {
				if rest, ok := strings.CutPrefix(line, "trace "+id); ok {
					found = append(found, rest[:1])
				}
			}
			assert.Equal(t, tt.want, found)
			assert.Contains(t, got.stderr, tt.note)
		})
	}
}

func TestViewWritesAPageInOneGo(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.html")
	require.NoError(t, os.WriteFile(page, []byte("old"), 0o600))
	got := run(t, nil, nil, "view", "--html", page, good)
	require.Zero(t, got.code, got.stderr)
	assert.Contains(t, got.stderr, "wrote "+page)
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	assert.True(t, strings.HasPrefix(string(text), "<!DOCTYPE html>"))
	left, err := os.ReadDir(filepath.Dir(page))
	require.NoError(t, err)
	assert.Len(t, left, 1, "nothing half written stays")
}
