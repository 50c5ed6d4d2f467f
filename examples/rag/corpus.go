package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/genaitrace/otelgenai/examples/internal/command"
)

// A chunk is a piece of a document that is found and quoted as one: the text under a
// heading, or a part of it.
type chunk struct {
	id    string // file#number: telemetry carries it, so it holds no text of the document
	title string // file § heading, for people
	text  string
}

const (
	// maxChunk is how long a chunk may be, in bytes, unless a paragraph is longer.
	maxChunk = 1000
	// maxFile bounds what is read of one file, maxCorpus what is read in all.
	maxFile   = 1 << 20
	maxCorpus = 16 << 20
)

// ownDocs are this project's documents, from the root of its repository.
var ownDocs = []string{"README.md", "ARCHITECTURE.md", "docs/*.md"}

// readDocs reads the Markdown files below dir; without dir, the project's own.
func readDocs(dir string) ([]chunk, error) {
	var names []string
	root := os.DirFS(".")
	if dir == "" {
		for _, pattern := range ownDocs {
			found, err := fs.Glob(root, pattern)
			if err != nil {
				return nil, err
			}
			names = append(names, found...)
		}
		if !slices.Contains(names, "ARCHITECTURE.md") {
			return nil, command.UsageError{Text: "this is not the root of the repository: run there, or name the documents with -docs DIR"}
		}
	} else {
		root = os.DirFS(dir)
		var err error
		if names, err = markdownBelow(root); err != nil {
			return nil, fmt.Errorf("-docs: %w", err)
		}
	}
	var chunks []chunk
	total := 0
	for _, name := range names {
		text, err := fs.ReadFile(root, name)
		switch {
		case err != nil:
			return nil, fmt.Errorf("document: %w", err)
		case len(text) > maxFile:
			return nil, fmt.Errorf("document %s has %d bytes, want at most %d", name, len(text), maxFile)
		}
		if total += len(text); total > maxCorpus {
			return nil, fmt.Errorf("the documents have more than %d bytes: name fewer with -docs DIR", maxCorpus)
		}
		chunks = append(chunks, split(name, strings.ToValidUTF8(string(text), "�"))...)
	}
	if len(chunks) == 0 {
		return nil, command.Usagef("-docs %s has no Markdown files (*.md) with text", dir)
	}
	return chunks, nil
}

// markdownBelow lists the Markdown files of root, hidden folders left out.
func markdownBelow(root fs.FS) (names []string, err error) {
	err = fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrPermission) && name != ".":
			return nil
		case err != nil:
			return err
		case entry.IsDir() && name != "." && strings.HasPrefix(entry.Name(), "."):
			return fs.SkipDir
		case entry.Type().IsRegular() && path.Ext(name) == ".md":
			names = append(names, name)
		}
		return nil
	})
	return names, err
}

// split cuts a Markdown file at its headings, and long sections between paragraphs.
func split(file, text string) []chunk {
	var (
		chunks  []chunk
		heading string
		section strings.Builder
		fenced  bool
	)
	flush := func() {
		title := file
		if heading != "" {
			title += " § " + heading
		}
		for _, part := range paragraphs(section.String()) {
			chunks = append(chunks, chunk{id: fmt.Sprintf("%s#%d", file, len(chunks)+1), title: title, text: part})
		}
		section.Reset()
	}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
		}
		if level := len(line) - len(strings.TrimLeft(line, "#")); !fenced && level > 0 && level < 7 && strings.HasPrefix(line[level:], " ") {
			flush()
			heading = strings.TrimSpace(line[level:])
			continue
		}
		section.WriteString(line)
	}
	flush()
	return chunks
}

// paragraphs joins the paragraphs of a section to parts of at most maxChunk bytes. A
// longer paragraph, such as a table, is cut between its lines.
func paragraphs(section string) (parts []string) {
	var part strings.Builder
	add := func(text, gap string) {
		if part.Len() > 0 && part.Len()+len(gap)+len(text) > maxChunk {
			parts = append(parts, part.String())
			part.Reset()
		}
		if part.Len() > 0 {
			part.WriteString(gap)
		}
		part.WriteString(text)
	}
	for paragraph := range strings.SplitSeq(section, "\n\n") {
		paragraph = strings.Trim(paragraph, "\n")
		switch {
		case strings.TrimSpace(paragraph) == "":
		case len(paragraph) <= maxChunk:
			add(paragraph, "\n\n")
		default:
			for line := range strings.SplitSeq(paragraph, "\n") {
				add(line, "\n")
			}
		}
	}
	if part.Len() > 0 {
		parts = append(parts, part.String())
	}
	return parts
}
