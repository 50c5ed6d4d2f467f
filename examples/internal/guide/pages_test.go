package guide

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/require"
)

// A piece is a fenced block of a page.
type piece struct {
	page, language, text string
}

// pieces are the fenced blocks of every page, indented ones included.
func pieces(t *testing.T) []piece {
	t.Helper()
	fence := regexp.MustCompile("(?ms)^ *```([a-z]*)\n(.*?)^ *```$")
	var all []piece
	for _, page := range pages(t) {
		for _, found := range fence.FindAllStringSubmatch(read(t, page), -1) {
			all = append(all, piece{page, found[1], found[2]})
		}
	}
	return all
}

// read returns a page.
func read(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, page))
	require.NoError(t, err)
	return string(text)
}

// A command is a line for a shell, and the first page that has it.
type command struct{ line, page string }

// programs begin what a page shows as a command in the middle of a sentence or of a table.
var programs = regexp.MustCompile(`^([A-Z_]+=\S+ )*(go|bash|sh|cd|git|genaitrace|promtool|prometheus|otelcol|otelcol-contrib|` +
	`curl|docker|kubectl|helm|npm|npx|pip|python3?|vllm|ollama|llama-server|tritonserver) \S`)

// mentions name a command of Go without saying of what.
var mentions = regexp.MustCompile(`^go (test|run|install|get|vet|build)( -tags \S+)?$`)

// commands are what the pages ask to be typed: the lines of blocks for a shell, what the
// workflows in blocks of YAML run, and pieces of code in a sentence that begin with a
// program. Each is there once. The changelog tells of the past and is left out.
func commands(t *testing.T) []command {
	t.Helper()
	var all []command
	seen := make(map[string]bool)
	add := func(page, line string) {
		line = strings.Join(strings.Fields(line), " ")
		if line != "" && !seen[line] && !mentions.MatchString(line) {
			seen[line] = true
			all = append(all, command{line, page})
		}
	}
	for _, p := range pieces(t) {
		switch p.language {
		case "sh", "bash", "shell", "console":
			for line := range strings.Lines(strings.ReplaceAll(p.text, "\\\n", " ")) {
				add(p.page, withoutComment(strings.TrimPrefix(line, "$ ")))
			}
		case "yaml":
			for _, step := range steps(t, p.text) {
				add(p.page, step)
			}
		}
	}
	code := regexp.MustCompile("`([^`]+)`(?:\\s+in\\s+\\[([a-z/]+)\\]\\()?") // a module of its own may be named behind it
	for _, page := range pages(t) {
		if page == "CHANGELOG.md" {
			continue
		}
		for _, found := range code.FindAllStringSubmatch(withoutBlocks(read(t, page)), -1) {
			if line := strings.ReplaceAll(found[1], `\|`, "|"); programs.MatchString(line) {
				if found[2] != "" {
					line = "cd " + found[2] + " && GOWORK=off " + line
				}
				add(page, line)
			}
		}
	}
	return all
}

// withoutComment cuts a comment off, which begins behind a space and not within quotes.
func withoutComment(line string) string {
	quote := rune(0)
	for i, r := range line {
		switch {
		case quote != 0:
			if r == quote {
				quote = 0
			}
		case r == '\'' || r == '"':
			quote = r
		case r == '#' && (i == 0 || line[i-1] == ' '):
			return line[:i]
		}
	}
	return line
}

// withoutBlocks is the text of a page between its fenced blocks.
func withoutBlocks(page string) string {
	return regexp.MustCompile("(?ms)^ *```.*?^ *```$").ReplaceAllString(page, "")
}

// steps are what a workflow for GitHub runs.
func steps(t *testing.T, text string) []string {
	t.Helper()
	var workflow struct {
		Jobs map[string]struct {
			Steps []struct{ Run string }
		}
	}
	if !strings.Contains(text, "\njobs:\n") {
		return nil
	}
	require.NoError(t, yaml.Unmarshal([]byte(text), &workflow))
	var runs []string
	for _, job := range workflow.Jobs {
		for _, step := range job.Steps {
			runs = append(runs, step.Run)
		}
	}
	return runs
}
